"""One function with the analyses that every feature group shares: op stream, loop nest, trip counts, def-use, accesses.

Computed once per function. What is counted is independent of how the program was printed: module ops and terminators
without operands are left out, and so are the bodies of named linalg ops (a custom print leaves both out).
Implied work is made explicit instead: an op on whole tensors becomes loop nests with accesses (`Node.virtual`).

Conventions
-----------
* A loop over several dimensions (`scf.parallel`, `affine.parallel`, `scf.forall`, linalg) is one `Loop` per dimension.
* Trip counts are averages per entry. Bounds that depend on outer loops are averaged over the outer iterations, exactly
  up to `POINT_BUDGET` of them and by stratified sampling (deterministic) beyond.
* A trip count that depends on an unknown value of a known range is taken at the middle of that range, any other one
  that the text does not tell, or extent, as `UNKNOWN_TRIP`; both are counted in `loops.unknown`.
* A condition that the text does not tell is taken with probability 1/2.
* Loops made of branches (`flow_walk`) are loops like those written as such.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial
from typing import Any

from .accesses import ACCESSES, access_of
from .affine import variable
from .conditions import probability
from .expectations import expected
from .flow_walk import flow_walk
from .induction import EARLY_TRIP
from .loop_bounds import bounds_of
from .nests import enter, implies, while_bounds, while_counted
from .nodes import PROMOTED_ELEMENTS, UNKNOWN_TRIP, Access, Loop, Node, product
from .op_classes import CLASSES, WHILE_LOOPS, is_bare_terminator, op_class
from .program import Block, Op, Program
from .trip_counts import TripCounts
from .values import Values

_COUNTED = WHILE_LOOPS | {"torch.prim.Loop"}
_LOOPS = _COUNTED | {"affine.for", "affine.parallel", "scf.for", "scf.parallel", "scf.forall"}
_BRANCHES = frozenset(
    ("affine.if", "scf.if", "scf.index_switch", "stablehlo.if", "stablehlo.case", "mhlo.if", "mhlo.case",
     "tosa.cond_if", "torch.prim.If")
)  # fmt: skip
_SYMBOL_TABLES = (".func", "builtin.module")
Visit = tuple[Iterator[Op], Loop | None, float, int, Loop | None]
"""Operations to add, the loop they are in, their executions, their block, and the loop that ends with them."""
_MOST_KINDS = 20_000
_kinds: dict[tuple[str, str], tuple[str, str, int]] = {}
"""(operation name, type of its first result) -> (class, element type, lanes)."""


class FunctionView(Values):
    """See the module. Build one with `FunctionView(program, function_op)`."""

    def __init__(self, program: Program, function: Op) -> None:
        super().__init__(program)
        self.function = function
        self.nodes: list[Node] = []
        """Real and virtual nodes in order."""
        self.loops: list[Loop] = []
        """Outer loops before inner ones."""
        self.top_loops: list[Loop] = []
        self.accesses: list[Access] = []
        self.defining: dict[int, Node] = {}
        """Value id -> the node that makes it."""
        self.branches = 0
        self.unknown_branches = 0
        self.branch_entropy = 0.0
        """Executions times 4p(1-p), summed over conditionals with probability p."""
        self.back_edges = 0
        self.block_streams: list[list[Node]] = []
        """The real nodes of each block, in order."""
        self._trip_counts = TripCounts(self.loop_of_iv, partial(expected, self))
        self._synthetic = 0
        self.renamed: dict[int, int] = {}
        """Block argument -> the one value that it stands for."""
        self.chosen: dict[int, Loop] = {}
        """Block argument of a control-flow graph that is one of several values -> the loop that it is in."""
        self.own: set[Op] = set()
        """Operations that are a loop's own and cost nothing: the test and the step of its counter."""
        self.memo: dict[str, Any] = {}
        """What groups share beyond this class, by name."""
        self.arguments: list[int] = []
        if function.regions and function.regions[0].blocks:
            self.arguments = list(function.regions[0].blocks[0].args)
        self._walk()
        self._connect()

    # ---- walk ---------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        blocks = [b for r in self.function.regions for b in r.blocks]
        flow = flow_walk(self, blocks) if len(blocks) > 1 else None
        if flow is not None:
            for block, loop, execs in flow.blocks():
                self._visit([(iter(block.ops), loop, execs, self._open_block(), None)])
            return
        factors = self._cfg_factors(blocks)
        stack: list[Visit] = []
        for block, factor in reversed(list(zip(blocks, factors, strict=True))):
            stack.append((iter(block.ops), None, factor, self._open_block(), None))
        self._visit(stack)

    def _visit(self, stack: list[Visit]) -> None:
        while stack:
            ops, loop, execs, block_id, closing = stack[-1]
            for op in ops:
                name = op.name
                if not op.operands and (
                    (op.implied and not op.regions) or (not op.results and is_bare_terminator(name))
                ):
                    if op.regions:
                        self._push_regions(op, stack, loop, execs)
                        break
                    continue
                if name.endswith(_SYMBOL_TABLES):
                    continue  # a symbol table of its own
                node = self._add(op, name, loop, execs, block_id)
                if name in _LOOPS:
                    self._enter_loop(op, node, stack, loop, execs)
                    break
                if name in _BRANCHES:
                    self._enter_branch(op, stack, loop, execs)
                    break
                if op.regions or node.lanes != 1 or implies(name):
                    enter(self, op, node, stack, loop, execs)
                    break
            else:
                stack.pop()
                if closing is not None:
                    self._close(closing)

    def _cfg_factors(self, blocks: list[Block]) -> list[float]:
        """How often each block runs where loops cannot be told: UNKNOWN_TRIP for each edge back in the text over it."""
        factors = [1.0] * len(blocks)
        if len(blocks) < 2:
            return factors
        position = {b.label: i for i, b in enumerate(blocks)}
        for i, block in enumerate(blocks):
            if not block.ops:
                continue
            for target in {position[s] for s in block.ops[-1].successors if s in position}:
                if target <= i:
                    self.back_edges += 1
                    if self.back_edges <= 16:
                        for j in range(target, i + 1):
                            factors[j] = min(factors[j] * UNKNOWN_TRIP, 1e12)
        return factors

    def _open_block(self) -> int:
        self.block_streams.append([])
        return len(self.block_streams) - 1

    def _push_regions(self, op: Op, stack: list[Any], loop: Loop | None, execs: float) -> None:
        for region in reversed(op.regions):
            stack.extend((iter(b.ops), loop, execs, self._open_block(), None) for b in reversed(region.blocks))

    def _add(self, op: Op, name: str, loop: Loop | None, execs: float, block_id: int) -> Node:
        nodes = self.nodes
        node = Node(len(nodes), name, op, loop, execs, block_id)
        results = op.results
        spec = ACCESSES.get(name)
        if results:
            written = self.program.value_types[results[0]]
            kind = _kinds.get((name, written)) if written else None
            if kind is None:
                info = self.type_of(results[0])
                lanes = product(info.shape) if info.shape and info.kind in ("vector", "tensor") else 1
                kind = op_class(name, info.element), info.element, lanes
                if written and len(_kinds) < _MOST_KINDS:
                    _kinds[name, written] = kind
            node.cls, node.element, node.lanes = kind
            defining = self.defining
            for result in results:
                defining[result] = node
        elif spec is not None and op.operands:
            info = self.type_of(op.operands[0])
            node.element = info.element
            if info.kind == "vector" and info.shape:
                node.lanes = product(info.shape)
            node.cls = op_class(name, node.element)
        else:
            node.cls = op_class(name, "")
        nodes.append(node)
        self.block_streams[block_id].append(node)
        if loop is not None:
            loop.nodes.append(node)
        if spec is not None and len(op.operands) > spec[1]:
            node.access = access_of(self, op, node, spec)
            self.accesses.append(node.access)
        return node

    def _new_loop(self, kind: str, parent: Loop | None, iv: Hashable, node: Node | None) -> Loop:
        loop = Loop(kind, parent, iv, node)
        self.loops.append(loop)
        (self.top_loops if parent is None else parent.children).append(loop)
        self.loop_of_iv[iv] = loop
        if isinstance(iv, int):
            self._linear[iv] = variable(iv)
        return loop

    def rename(self, argument: int, value: int) -> None:
        """Take a block argument for the value that it stands for."""
        value = self.renamed.get(value, value)
        self.renamed[argument] = value
        self._linear[argument] = self.linear(value)

    def release(self, loop: Loop) -> None:
        """Take what is a loop's own out of its body."""
        for node in loop.nodes:
            if node.op in self.own:
                node.operands = node.results = ()
                node.cls = "yield"
                node.free = True
        loop.nodes = [node for node in loop.nodes if not node.free]

    def _close(self, loop: Loop) -> None:
        """Set the end of a loop's body, and of the loops of the same op around it."""
        if self.own:
            self.release(loop)
        current: Loop | None = loop
        while current is not None and current.node is loop.node:
            current.last = len(self.nodes)
            current = current.parent

    # ---- loops and branches -------------------------------------------------------------------------------------

    def _enter_loop(self, op: Op, node: Node, stack: list[Any], parent: Loop | None, execs: float) -> None:
        name = op.name
        body = op.regions[0].blocks[0] if op.regions and op.regions[0].blocks else None
        args = list(body.args) if body is not None else []
        counted = while_counted(self, op) if name == "scf.while" else None
        if counted is not None:
            self.own.update(counted.own)
            dims = [(counted.lowers, counted.uppers, counted.step)]
        else:
            dims = (while_bounds(self, op) if name in _COUNTED else bounds_of(self, op, args)) or [([], [], 1)]
        loop = parent
        for i, (lowers, uppers, step) in enumerate(dims):
            iv: Hashable = args[i] if i < len(args) and name not in WHILE_LOOPS else self._new_iv()
            if counted is not None:
                iv = counted.counter
            loop = self._new_loop(name, loop, iv, node)
            loop.parallel = name in ("affine.parallel", "scf.parallel", "scf.forall")
            loop.step = step
            entries = execs if i == 0 else loop.parent.execs  # type: ignore[union-attr]
            early = EARLY_TRIP if counted is not None and counted.early else 0.0
            self._trip_counts.count(loop, lowers, uppers, entries, early=early)
        assert loop is not None
        for level in self.loops[len(self.loops) - len(dims) :]:
            level.first = len(self.nodes)
        n_ivs = 0 if name in WHILE_LOOPS else len(dims)
        if body is not None and name in ("affine.for", "scf.for"):
            carried = args[n_ivs:]
            last = body.ops[-1] if body.ops else None
            yielded = list(last.operands) if last is not None and last.name.endswith(".yield") else []
            for i, arg in enumerate(carried):
                loop.carried.append((arg, yielded[i] if len(yielded) == len(carried) else None))
        elif name in WHILE_LOOPS and len(op.regions) == 2 and op.regions[1].blocks:
            last = op.regions[1].blocks[0].ops[-1] if op.regions[1].blocks[0].ops else None
            if name == "scf.while":
                self._join(op, loop)
            for i, arg in enumerate(args):
                if counted is not None and arg == counted.counter:
                    continue
                loop.carried.append((arg, last.operands[i] if last is not None and i < len(last.operands) else None))
        first = True
        for region in reversed(op.regions):
            for block in reversed(region.blocks):
                stack.append((iter(block.ops), loop, loop.execs, self._open_block(), loop if first else None))
                first = False
        if first:
            self._close(loop)

    def _join(self, op: Op, loop: Loop) -> None:
        """What the condition of an `scf.while` hands to the body: a value that goes round is the same one there."""
        before, after = (region.blocks[0] for region in op.regions)
        condition = before.ops[-1] if before.ops else None
        for arg, value in zip(after.args, condition.operands[1:] if condition is not None else (), strict=False):
            if value in before.args:
                self.rename(arg, value)
            else:
                self.chosen[arg] = loop

    def _new_iv(self) -> Hashable:
        self._synthetic += 1
        return ("iv", self._synthetic)

    def _enter_branch(self, op: Op, stack: list[Any], loop: Loop | None, execs: float) -> None:
        self.branches += 1
        n = max(1, len([r for r in op.regions if r.blocks]))
        taken = probability(self, self._trip_counts, op, loop)
        if op.name == "scf.index_switch" or taken is None:
            if taken is None:
                self.unknown_branches += 1
            shares = [1.0 / max(n, 2)] * len(op.regions)
        else:
            shares = [taken, 1.0 - taken]
        self.branch_entropy += execs * 4.0 * shares[0] * (1.0 - shares[0]) if shares else 0.0
        for i in range(len(op.regions) - 1, -1, -1):
            for block in reversed(op.regions[i].blocks):
                share = shares[i] if i < len(shares) else 0.5
                stack.append((iter(block.ops), loop, execs * share, self._open_block(), None))

    # ---- def-use ------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        renamed = self.renamed
        if renamed:
            for node in self.nodes:
                if any(v in renamed for v in node.operands):
                    node.operands = [renamed.get(v, v) for v in node.operands]
        defining = self.defining
        for node in self.nodes:
            if node.operands:
                node.producers = list(filter(None, map(defining.get, node.operands)))
        self._hoist()

    def _hoist(self) -> None:
        """Set `Node.free`, and `Node.home`: arithmetic moves out with its operands, loads where no loop left stores."""
        made = {n.results[0] for n in self.nodes if n.cls == "alloc" and n.results}
        if made:
            kept = {
                a.root for a in self.accesses if a.extent > PROMOTED_ELEMENTS or a.address.terms or a.root not in made
            }
            reached = {a.root for a in self.accesses}
            for node in self.nodes:
                root = node.access.root if node.access is not None else None
                if node.cls == "alloc":
                    root = node.results[0] if node.results else (node.operands[0] if node.operands else None)
                node.free = node.free or (root in made and root in reached and root not in kept)
        storing: set[Loop] = set()
        for node in self.nodes:
            if node.cls in _WRITES and not node.free:
                loop = node.loop
                while loop is not None and loop not in storing:
                    storing.add(loop)
                    loop = loop.parent
        level: dict[int, Loop | None] = {**self.chosen}
        for loop in self.loops:
            if isinstance(loop.iv, int):
                level[loop.iv] = loop
            for arg, _ in loop.carried:
                level[arg] = loop
        for node in self.nodes:
            here = node.loop
            if here is None:
                continue
            access = node.access
            cls = node.cls
            if access is not None:
                if access.is_store or not access.known or node.virtual or cls != "load":
                    continue
                ivs = access.address.variables()
                while here is not None and here.iv not in ivs and here not in storing:
                    here = here.parent
                node.home = here
            elif cls in _MOVABLE and not node.virtual:
                best: Loop | None = None
                depth = 0
                for v in node.operands:
                    at = level.get(v)
                    if at is not None and at.depth > depth:
                        best, depth = at, at.depth
                if best is not None and best.last <= node.index:  # made in a loop that has ended
                    best = _around(node, level)
                node.home = best
            if node.home is not None:
                for v in node.results:
                    level[v] = node.home

    @property
    def innermost(self) -> list[Loop]:
        """Loops without a loop inside."""
        return [loop for loop in self.loops if not loop.children]


def _around(node: Node, level: dict[int, Loop | None]) -> Loop | None:
    """The innermost loop around a node of those that make its operands, or that those are in."""
    best: Loop | None = None
    for v in node.operands:
        at = level.get(v)
        while at is not None and at.last <= node.index:
            at = at.parent
        if at is not None and (best is None or at.depth > best.depth):
            best = at
    return best


_WRITES = frozenset(("store", "call", "copy", "sync", "other"))


_MOVABLE = frozenset(CLASSES) - _WRITES - {"load", "alloc", "loop", "branch", "yield"}
