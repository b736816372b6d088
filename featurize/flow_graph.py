"""Control-flow graphs: natural loops and their nesting, and an order of the blocks in which each loop is one piece.

Everything is linear in blocks and edges (almost: union-find) and iterative. Loops are found as Tarjan and Havlak do:
headers from the inside out, each loop's body by going backwards from its back edges, found loops taken as one block.

References
----------
R. Tarjan: "Testing flow graph reducibility", JCSS 1974. P. Havlak: "Nesting of reducible and irreducible loops",
TOPLAS 1997.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .program import Block


@dataclass(frozen=True)
class Edge:
    """A way from the end of a block to a successor."""

    source: int
    target: int
    """Positions in `FlowGraph.blocks`."""
    values: Sequence[int]
    """What the target's arguments become; empty where the operands cannot be told apart."""


@dataclass(eq=False)
class FlowLoop:
    """A natural loop: one header, all blocks from which a back edge to it is reached without passing it."""

    header: int
    parent: FlowLoop | None = None
    depth: int = 0
    """Loops around it."""
    entering: list[Edge] = field(default_factory=list)
    back: list[Edge] = field(default_factory=list)
    exits: int = 0
    """Edges that leave it."""
    leads: int = 0
    """Of those, edges that stay in the loop around it."""


class FlowGraph:
    """The reachable blocks of a reducible graph that has a cycle; build one with `flow_graph`."""

    def __init__(self, blocks: list[Block], edges: list[list[Edge]]) -> None:
        self.blocks = blocks
        self.edges = edges
        """Of each block, in the order of its successors."""
        self.incoming: list[list[Edge]] = [[] for _ in blocks]
        """From reachable blocks."""
        self.order: list[int] = []
        """Reachable blocks, each after all that lead to it (back edges apart), the blocks of a loop in one piece."""
        self.loop: list[FlowLoop | None] = [None] * len(blocks)
        """The innermost loop that a block is in; a header is in its own."""
        self.n_back = 0
        """Back edges."""


def flow_graph(blocks: list[Block]) -> FlowGraph | None:
    """The graph of a function's blocks; None where it has no cycle or one that is entered in two places."""
    edges = _edges(blocks)
    numbers, last, finished = _depth_first(edges)
    graph = FlowGraph(blocks, edges)
    incoming = graph.incoming
    for source in finished:
        for edge in edges[source]:
            incoming[edge.target].append(edge)

    def above(a: int, b: int) -> bool:
        """Whether `a` is `b` or above it in the depth-first tree: an edge from `b` to `a` is a back edge."""
        return numbers[a] <= numbers[b] <= last[a]

    header = [-1] * len(blocks)
    """Of the innermost loop around a block, its own loop apart."""
    found = list(range(len(blocks)))

    def outermost(block: int) -> int:
        """The header of the outermost loop found so far that a block is in, or the block."""
        while found[block] != block:
            found[block] = found[found[block]]
            block = found[block]
        return block

    loops: dict[int, FlowLoop] = {}
    for w in sorted(finished, key=numbers.__getitem__, reverse=True):
        back = [edge for edge in incoming[w] if above(w, edge.source)]
        if not back:
            continue
        loops[w] = FlowLoop(w, back=back, entering=[e for e in incoming[w] if not above(w, e.source)])
        body = [x for x in dict.fromkeys(outermost(edge.source) for edge in back) if x != w]
        seen = set(body)
        for x in body:  # grows
            for edge in incoming[x]:
                if above(x, edge.source):
                    continue
                y = outermost(edge.source)
                if not above(w, y):
                    return None
                if y != w and y not in seen:
                    seen.add(y)
                    body.append(y)
        for x in body:
            header[x] = found[x] = w
        graph.n_back += len(back)
    if not loops:
        return None
    members: dict[int, list[int]] = {}
    for block in reversed(finished):
        members.setdefault(header[block], []).append(block)
    stack = [iter(members[-1])]
    while stack:
        for block in stack[-1]:
            own = loops.get(block)
            around = loops.get(header[block])
            graph.order.append(block)
            if own is None:
                graph.loop[block] = around
                continue
            graph.loop[block] = own
            own.parent = around
            own.depth = around.depth + 1 if around is not None else 0
            stack.append(iter(members.get(block, ())))
            break
        else:
            stack.pop()
    _count_exits(graph)
    return graph


def left_by(graph: FlowGraph, edge: Edge, chain: list[FlowLoop]) -> FlowLoop | None:
    """The outermost loop that an edge leaves; `chain` are the loops around its source, outermost first."""
    loop = graph.loop[edge.target]
    if loop is not None and loop.header == edge.target and chain[loop.depth : loop.depth + 1] != [loop]:
        loop = loop.parent  # enters it; a back edge stays in it
    kept = 0 if loop is None else loop.depth + 1
    return chain[kept] if kept < len(chain) else None


def _count_exits(graph: FlowGraph) -> None:
    chain: list[FlowLoop] = []
    loops: list[FlowLoop] = []
    for block in graph.order:
        loop = graph.loop[block]
        del chain[0 if loop is None else loop.depth :]
        if loop is not None:
            chain.append(loop)
            if loop.header == block:
                loops.append(loop)
        for edge in graph.edges[block]:
            left = left_by(graph, edge, chain)
            if left is not None:
                assert loop is not None
                loop.exits += 1
                left.leads += 1
                if left.parent is not None:
                    left.parent.exits -= 1
    for loop in reversed(loops):  # an edge leaves all loops between
        if loop.parent is not None:
            loop.parent.exits += loop.exits


def _edges(blocks: list[Block]) -> list[list[Edge]]:
    """The operands of a terminator: its own, then the arguments of each successor."""
    position = {block.label: i for i, block in enumerate(blocks)}
    edges: list[list[Edge]] = []
    for source, block in enumerate(blocks):
        here: list[Edge] = []
        op = block.ops[-1] if block.ops else None
        if op is not None and op.successors:
            targets = [position.get(label, -1) for label in op.successors]
            at = len(op.operands) - sum(len(blocks[t].args) for t in targets if t >= 0)
            for target in targets:
                if target >= 0:
                    n = len(blocks[target].args)
                    here.append(Edge(source, target, op.operands[at : at + n] if at >= 0 else ()))
                    at += n if at >= 0 else 0
        edges.append(here)
    return edges


def _depth_first(edges: list[list[Edge]]) -> tuple[list[int], list[int], list[int]]:
    """(number of each block as it is reached, largest number below it, blocks as they are finished) from the first."""
    numbers = [-1] * len(edges)
    last = [-1] * len(edges)
    finished: list[int] = []
    numbers[0] = count = 0
    stack = [(0, reversed(edges[0]))]  # the last successor first, so that the first one comes first in the order
    while stack:
        block, rest = stack[-1]
        for edge in rest:
            if numbers[edge.target] < 0:
                count += 1
                numbers[edge.target] = count
                stack.append((edge.target, reversed(edges[edge.target])))
                break
        else:
            last[block] = count
            finished.append(block)
            stack.pop()
    return numbers, last, finished
