"""The blocks of a control-flow graph as `FunctionView` walks them: in loops, each with how often it runs.

A loop of the graph becomes a `Loop` of kind "cf" as if it had been written as `scf.for` or `scf.while`: its counter's
test, step and branches are the loop's own and cost nothing, the branch that enters it stands for the operation.

Conventions
-----------
* A loop with a test of a counter has the trip count that the test says. Where it can be left by another branch too,
  half of that; where the test has another condition, half of that but `EARLY_TRIP` at most; both are counted as
  unknown. A loop without a test of a counter is taken to run `UNKNOWN_TRIP` times.
* Every block in a loop runs as often as the branches inside say; a loop is left as often as it is entered, by each of
  its exits alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .accesses import group, outlive
from .conditions import probability
from .flow_graph import Edge, FlowGraph, FlowLoop, flow_graph, left_by
from .induction import EARLY_TRIP, Carried, Countable, countable
from .nodes import Loop, Node
from .program import Block, Op
from .trip_counts import MOST_EXECUTIONS

if TYPE_CHECKING:
    from .function_view import FunctionView


def flow_walk(view: FunctionView, blocks: list[Block]) -> FlowWalk | None:
    """A walk of a function's blocks; None where they have no cycle or one that is entered in two places."""
    graph = flow_graph(blocks)
    return FlowWalk(view, graph) if graph is not None else None


class FlowWalk:
    """Walk `blocks`, and add the operations of each to the view before you ask for the next."""

    def __init__(self, view: FunctionView, graph: FlowGraph) -> None:
        self.view = view
        self.graph = graph
        self._runs = [0.0] * len(graph.blocks)
        """Executions of each block by the edges seen so far; of a header, entries of its loop."""
        self._runs[0] = 1.0
        self._chain: list[FlowLoop] = []
        """The loops around the current block, outermost first."""
        self._loops: list[Loop] = []
        """The same, as loops of the view."""
        self._outlived = False
        """Whether an address has the counter of a loop that has ended."""
        view.back_edges = graph.n_back
        self._rename()

    def blocks(self) -> Iterator[tuple[Block, Loop | None, float]]:
        """Each reachable block with the loop it is in and its executions; then those that nothing reaches."""
        for at in self.graph.order:
            self._enter(at)
            loop = self._loops[-1] if self._loops else None
            view = self.view
            first = len(view.nodes)
            runs = loop.execs if loop is not None and self._chain[-1].header == at else self._runs[at]
            yield self.graph.blocks[at], loop, runs
            self._leave(at, loop, runs, view.nodes[first:])
        self._close(0)
        if self._outlived:
            group(self.view, self.view.accesses)
        reached = set(self.graph.order)
        for at, block in enumerate(self.graph.blocks):
            if at not in reached:
                yield block, None, 0.0

    # ---- values -------------------------------------------------------------------------------------------------

    def _rename(self) -> None:
        """Find the block arguments that are one value whatever edge is taken, but for an edge that hands them on."""
        graph, view = self.graph, self.view
        renamed = view.renamed
        for at in graph.order[1:]:
            block = graph.blocks[at]
            if not block.args:
                continue
            incoming = graph.incoming[at]
            whole = all(len(e.values) == len(block.args) for e in incoming)
            for k, argument in enumerate(block.args):
                ways = {renamed.get(e.values[k], e.values[k]) for e in incoming} if whole else set()
                ways.discard(argument)
                if len(ways) == 1:
                    view.rename(argument, ways.pop())

    # ---- loops --------------------------------------------------------------------------------------------------

    def _enter(self, at: int) -> None:
        found = self.graph.loop[at]
        self._close(0 if found is None else found.depth + (found.header != at))
        view = self.view
        if found is not None and found.header == at:
            parent = self._loops[-1] if self._loops else None
            self._chain.append(found)
            self._loops.append(self._new_loop(found, parent, self._runs[at]))
        if self._loops and found is not None:
            for argument in self.graph.blocks[at].args:
                if argument not in self.view.renamed:
                    view.chosen[argument] = self._loops[-1]

    def _close(self, depth: int) -> None:
        while len(self._loops) > depth:
            self._chain.pop()
            loop = self._loops.pop()
            loop.last = len(self.view.nodes)
            self.view.release(loop)

    def _new_loop(self, found: FlowLoop, parent: Loop | None, entries: float) -> Loop:
        view = self.view
        carried = self._carried(found)
        counted = self._countable(found, carried)
        loop = view._new_loop("cf", parent, counted.counter if counted is not None else view._new_iv(), None)
        loop.first = len(view.nodes)
        if counted is None:
            view._trip_counts.count(loop, [], [], entries)
        else:
            loop.step = counted.step
            early = EARLY_TRIP if counted.early else math.inf if found.exits > 1 else 0.0
            view._trip_counts.count(loop, counted.lowers, counted.uppers, entries, early=early)
            view.own.update(counted.own)
        for c in carried:
            if counted is None or c.argument != counted.counter:
                loop.carried.append((c.argument, c.made[0] if len(set(c.made)) == 1 else None))
        return loop

    def _carried(self, found: FlowLoop) -> list[Carried]:
        """The header's arguments that change on the way round."""
        view = self.view
        renamed = view.renamed
        arguments = self.graph.blocks[found.header].args
        whole = all(len(e.values) == len(arguments) for e in (*found.entering, *found.back))
        carried = []
        for k, argument in enumerate(arguments if whole else ()):
            if argument not in renamed:
                starts, made = (
                    tuple([renamed.get(e.values[k], e.values[k]) for e in es]) for es in (found.entering, found.back)
                )
                carried.append(Carried(argument, starts, made, tuple(map(view.linear, made))))
        return carried

    def _countable(self, found: FlowLoop, carried: list[Carried]) -> Countable | None:
        """By the test in the header, or at the only way back; the one at the way back where the header has none."""
        if not carried:
            return None
        graph = self.graph
        latches = {e.source for e in found.back}
        for at in (found.header, *(latches - {found.header} if len(latches) == 1 else ())):
            edges = graph.edges[at]
            op = graph.blocks[at].ops[-1]
            if len(edges) != 2 or op.name != "cf.cond_br" or not op.operands or graph.loop[at] is not found:
                continue
            inside = [self._inside(found, e) for e in edges]
            if inside[0] == inside[1]:
                continue
            counted = countable(self.view, carried, op.operands[0], stays=inside[0], after=at in latches)
            if counted is not None:
                return counted
        return None

    def _inside(self, found: FlowLoop, edge: Edge) -> bool:
        loop = self.graph.loop[edge.target]
        while loop is not None and loop.depth > found.depth:
            loop = loop.parent
        return loop is found

    # ---- branches -----------------------------------------------------------------------------------------------

    def _leave(self, at: int, loop: Loop | None, runs: float, nodes: list[Node]) -> None:
        """Hand the executions of a block on to its successors, and free what is the loop's own."""
        view, graph = self.view, self.graph
        edges = graph.edges[at]
        exits = [left_by(graph, e, self._chain) for e in edges]
        kept = [e for e, left in zip(edges, exits, strict=True) if left is None]
        shares = [1.0 / len(kept)] * len(kept) if kept else []
        op = graph.blocks[at].ops[-1] if graph.blocks[at].ops else None
        own = False
        if op is not None and len(edges) > 1:
            taken: float | None = None
            if len(kept) == len(edges):
                taken = probability(view, view._trip_counts, op, loop) if len(edges) == 2 else None
                if taken is not None:
                    shares = [taken, 1.0 - taken]
                entropy = 4.0 * shares[0] * (1.0 - shares[0])
            else:
                assert loop is not None
                own = self._chain[-1].exits == 1 or self._tests(op)
                leaves = min(1.0, 1.0 / max(loop.trip, 1.0))
                entropy = 4.0 * leaves * (1.0 - leaves)
            if not own:
                view.branches += 1
                view.unknown_branches += taken is None
                view.branch_entropy += runs * entropy
        for edge, share in zip(kept, shares, strict=True):
            self._runs[edge.target] = min(self._runs[edge.target] + runs * share, MOST_EXECUTIONS)
        for edge, left in zip(edges, exits, strict=True):
            if left is not None:
                entries = self._loops[left.depth].entries
                self._runs[edge.target] = min(self._runs[edge.target] + entries / left.leads, MOST_EXECUTIONS)
        for node in nodes:
            if node.access is not None:
                self._outlived |= outlive(view, node.access)
        if nodes and nodes[-1].op is op and edges:
            if len(edges) == 1:
                self._pass(nodes[-1], edges[0])
            elif own and loop is not None:
                self._stand_for(nodes[-1], loop, edges)

    def _stand_for(self, node: Node, loop: Loop, edges: list[Edge]) -> None:
        """A loop's own branch costs nothing; it stands for the operation where no plain branch enters the loop."""
        node.operands = [v for edge in edges for v in edge.values if v != loop.iv]
        loop.nodes.pop()
        if any(len(self.graph.edges[e.source]) == 1 for e in self._chain[-1].entering):
            node.cls = "yield"
            node.free = True
            return
        node.cls = "loop"
        node.execs = loop.entries
        node.loop = node.home = loop.parent
        if loop.parent is not None:
            loop.parent.nodes.append(node)

    def _pass(self, node: Node, edge: Edge) -> None:
        """A branch without a condition: it enters a loop, or it yields values as the end of a region does."""
        found = self.graph.loop[edge.target]
        node.cls = "yield"
        if found is not None and found.header == edge.target:
            if found not in self._chain[found.depth : found.depth + 1]:
                node.cls = "loop"
                return
            counter = self._loops[found.depth].iv
            arguments = self.graph.blocks[edge.target].args
            if len(arguments) == len(node.operands):
                node.operands = [v for v, a in zip(node.operands, arguments, strict=True) if a != counter]
        node.free = not node.operands

    def _tests(self, op: Op) -> bool:
        made = self.view.program.value_defs[op.operands[0]] if op.operands else None
        return isinstance(made, Op) and made in self.view.own
