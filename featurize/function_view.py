"""One function with the analyses that every feature group shares: op stream, loop nest, trip counts, def-use, accesses.

Computed once per function. What is counted is independent of how the program was printed: module ops and terminators
without operands are left out, and so are the bodies of named linalg ops (a custom print leaves both out).
Implied work is made explicit instead: a linalg op becomes a loop nest with its accesses (`Node.virtual`).

Conventions
-----------
* A loop over several dimensions (`scf.parallel`, `affine.parallel`, `scf.forall`, linalg) is one `Loop` per dimension.
* Trip counts are averages per entry. Bounds that depend on outer loops are averaged over the outer iterations, exactly
  up to `POINT_BUDGET` of them and by stratified sampling (deterministic) beyond.
* A trip count or extent that the text does not tell is taken as `UNKNOWN_TRIP` and counted in `loops.unknown`.
* A condition that the text does not tell is taken with probability 1/2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .affine import (
    AffineError,
    AffineMap,
    InlineMap,
    Linear,
    Term,
    constant,
    dot,
    make_term,
    parse_inline,
    parse_map,
    parse_set,
    variable,
)
from .linalg import implied_nest
from .op_classes import CLASSES, is_bare_terminator, op_class
from .program import Block, Op, Program
from .types import TypeInfo, parse_type

UNKNOWN_TRIP = 16
"""Stands for a trip count or a dynamic extent that the text does not tell; each use is counted, never hidden."""
PROMOTED_ELEMENTS = 8
"""A buffer made in the function with at most this many elements can live in registers."""
POINT_BUDGET = 2048
"""Most outer iterations looked at one by one when bounds or conditions depend on them."""

_LOOPS = {"affine.for", "affine.parallel", "scf.for", "scf.parallel", "scf.forall", "scf.while"}
_BRANCHES = {"affine.if", "scf.if", "scf.index_switch"}
_TYPELESS_RESULT = {
    "arith.cmpf": "i1",
    "arith.cmpi": "i1",
    "affine.apply": "index",
    "affine.min": "index",
    "affine.max": "index",
    "memref.dim": "index",
    "tensor.dim": "index",
    "linalg.index": "index",
}
_ACCESSES: dict[str, tuple[bool, int, bool]] = {
    # name -> (is a store, operand position of the memref, subscripts written as an affine map)
    "affine.load": (False, 0, True),
    "affine.store": (True, 1, True),
    "affine.vector_load": (False, 0, True),
    "affine.vector_store": (True, 1, True),
    "memref.load": (False, 0, False),
    "memref.store": (True, 1, False),
    "vector.load": (False, 0, False),
    "vector.store": (True, 1, False),
    "vector.transfer_read": (False, 0, False),
    "vector.transfer_write": (True, 1, False),
    "vector.maskedload": (False, 0, False),
    "vector.maskedstore": (True, 0, False),
    "vector.gather": (False, 0, False),
    "vector.scatter": (True, 0, False),
    "vector.expandload": (False, 0, False),
    "vector.compressstore": (True, 0, False),
    "memref.atomic_rmw": (True, 1, False),
    "tensor.extract": (False, 0, False),
    "tensor.insert": (True, 1, False),
}
_ALIASES = {
    "memref.subview",
    "memref.cast",
    "memref.reinterpret_cast",
    "memref.expand_shape",
    "memref.collapse_shape",
    "memref.view",
    "memref.memory_space_cast",
    "memref.transpose",
}

_ATTR_REF = r"(?:affine_(?:map|set)<.*?\)\s*>(?!=)|#[\w$.-]+)"
_BOUND = re.compile(rf"\s*(max|min)?\s*(?:(-?\d+)|(%[\w$.#-]+)|({_ATTR_REF})\s*\(([^)]*)\)\s*(?:\[([^\]]*)\])?)", re.S)
_STEP = re.compile(r"\s*step\s+(\d+)")
_APPLIED = re.compile(rf"\s*({_ATTR_REF})", re.S)
_INT = re.compile(r"-?\d+")
_CONSTANT_INT = re.compile(r"(?:\{[^}]*\}\s*)?(?:\(\)\s*<\{.*?value\s*=\s*)?(-?\d+|true|false)\s*(?::|$|\}|,|\()", re.S)
_DYNAMIC = -(2**63)
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FloatArray = npt.NDArray[np.float64]
Env = dict[Hashable, Any]


class Loop:
    """One loop of one dimension."""

    __slots__ = (
        "carried",
        "children",
        "constant_trip",
        "depth",
        "differences",
        "entries",
        "execs",
        "first",
        "high",
        "iv",
        "kind",
        "last",
        "low",
        "lowers",
        "max_trip",
        "node",
        "nodes",
        "parallel",
        "parent",
        "reduction",
        "step",
        "trip",
        "unknown",
    )

    def __init__(self, kind: str, parent: Loop | None, iv: Hashable, node: Node | None) -> None:
        self.kind = kind
        """Op name, e.g. "affine.for"; "linalg" for an implied loop."""
        self.parent = parent
        self.children: list[Loop] = []
        self.depth: int = 1 if parent is None else parent.depth + 1
        self.iv = iv
        self.node = node
        self.lowers: list[Linear] = []
        """The loop starts at the largest of these."""
        self.differences: list[Linear] = []
        """upper - lower of each pair whose value is known in terms of outer ivs; the smallest counts."""
        self.step = 1
        self.trip = float(UNKNOWN_TRIP)
        """Average number of iterations each time the loop is entered."""
        self.max_trip = float(UNKNOWN_TRIP)
        self.constant_trip = False
        """The same number of iterations each time."""
        self.unknown = False
        self.low = 0.0
        self.high = float(UNKNOWN_TRIP)
        """Range of the loop variable over all iterations, as far as bounds tell."""
        self.entries = 0.0
        """How often the loop is entered in one call of the function."""
        self.execs = 0.0
        """How often its body runs in one call of the function."""
        self.parallel = False
        self.reduction = False
        self.nodes: list[Node] = []
        """Nodes whose innermost loop this is, in order."""
        self.carried: list[tuple[int, int | None]] = []
        """(block argument, yielded value) of each loop-carried value."""
        self.first = self.last = 0
        """Node indices of its body: first <= index < last."""


class Access:
    """One load or store of memory, with the address as a linear form where it is one."""

    __slots__ = (
        "address",
        "bits",
        "broadcast",
        "coefficients",
        "extent",
        "indices",
        "is_store",
        "known",
        "lanes",
        "loop",
        "masked",
        "node",
        "root",
        "shape",
        "strides",
        "weight",
    )

    def __init__(self, node: Node, root: int, is_store: bool, loop: Loop | None, weight: float) -> None:
        self.node = node
        self.root = root
        """Value id of the memref behind all subviews and casts."""
        self.is_store = is_store
        self.loop = loop
        self.weight = weight
        """Executions in one call of the function."""
        self.bits = 32
        """Bits of one element."""
        self.lanes = 1
        """Elements touched in one execution."""
        self.masked = False
        """A vector transfer that may reach past the end of its memref."""
        self.broadcast = False
        """A vector transfer that repeats elements."""
        self.indices: list[Linear] = []
        self.shape: tuple[int, ...] = ()
        """Extents of the root (dynamic ones as UNKNOWN_TRIP)."""
        self.strides: tuple[int, ...] = ()
        """Elements."""
        self.address = constant(0)
        """Offset from the root in elements."""
        self.known = True
        """False where a subscript is not a function of loop ivs and constants alone."""
        self.extent = 1
        """Elements of the root."""
        self.coefficients: dict[Hashable, int] = {}
        """iv -> elements the address moves when that loop takes one step (lazily filled)."""

    @property
    def bytes(self) -> float:
        """Bytes touched in one execution."""
        return self.bits * self.lanes / 8


class Node:
    """One operation of the function, or (`virtual`) one that a linalg op implies."""

    __slots__ = (
        "access",
        "block",
        "cls",
        "element",
        "execs",
        "free",
        "home",
        "index",
        "lanes",
        "loop",
        "name",
        "op",
        "operands",
        "producers",
        "results",
        "virtual",
    )

    def __init__(self, index: int, name: str, op: Op | None, loop: Loop | None, execs: float, block: int) -> None:
        self.index = index
        self.name = name
        self.op = op
        self.loop = loop
        self.execs = execs
        self.block = block
        self.cls = "other"
        self.element = ""
        """Element type of the first result (of the stored value for a store)."""
        self.lanes = 1
        """Elements of the result: 1 for a scalar, the product of the shape for a vector."""
        self.virtual = op is None
        self.access: Access | None = None
        self.operands: Sequence[int] = op.operands if op is not None else ()
        self.results: Sequence[int] = op.results if op is not None else ()
        self.producers: list[Node] = []
        self.free = False
        """A buffer of a few elements at constant subscripts lives in registers: it costs nothing."""
        self.home = loop
        """The loop that runs it once what does not change is moved out of inner loops, as a compiler does."""


class FunctionView:
    """See the module. Build one with `FunctionView(program, function_op)`."""

    def __init__(self, program: Program, function: Op) -> None:
        self.program = program
        self.function = function
        self.nodes: list[Node] = []
        """Real and virtual nodes in order."""
        self.loops: list[Loop] = []
        """Outer loops before inner ones."""
        self.top_loops: list[Loop] = []
        self.accesses: list[Access] = []
        self.defining: dict[int, Node] = {}
        """Value id -> the node that makes it."""
        self.loop_of_iv: dict[Hashable, Loop] = {}
        self.branches = 0
        self.unknown_branches = 0
        self.branch_entropy = 0.0
        """Executions times 4p(1-p), summed over conditionals with probability p."""
        self.back_edges = 0
        self.block_streams: list[list[Node]] = []
        """The real nodes of each block, in order."""
        self._linear: dict[int, Linear] = {}
        self._layouts: dict[int, tuple[tuple[int, ...], tuple[int, ...], bool]] = {}
        self._types: dict[int, TypeInfo] = {}
        self._domains: dict[tuple[int, ...], tuple[Env, FloatArray]] = {}
        self._synthetic = 0
        self.memo: dict[str, Any] = {}
        """What groups share beyond this class, by name."""
        self.arguments: list[int] = []
        if function.regions and function.regions[0].blocks:
            self.arguments = list(function.regions[0].blocks[0].args)
        self._walk()
        self._connect()

    # ---- values -------------------------------------------------------------------------------------------------

    def type_of(self, value: int) -> TypeInfo:
        """The parsed type of a value; inferred from its definition where the text does not say."""
        info = self._types.get(value)
        if info is None:
            text = self.program.value_types[value]
            if not text:
                text = self._infer_type(value)
            info = self._types[value] = parse_type(text)
        return info

    def _infer_type(self, value: int) -> str:
        defined = self.program.value_defs[value]
        if not isinstance(defined, Op):
            return "index" if value in self.loop_of_iv else ""
        fixed = _TYPELESS_RESULT.get(defined.name)
        if fixed is not None:
            return fixed
        access = _ACCESSES.get(defined.name)
        if access is not None and len(defined.operands) > access[1]:
            return self.type_of(defined.operands[access[1]]).element
        return ""

    def text_of(self, op: Op) -> str:
        """The operation's text without comments."""
        text = op.text
        return _strip_comments(text) if "//" in text else text

    def attribute(self, text: str) -> str:
        """An attribute as written, with a leading alias replaced."""
        if text.startswith("#"):
            aliases = self.program.attribute_aliases
            return aliases.get(text) or aliases.get(text[1:]) or text
        return text

    def linear(self, value: int) -> Linear:
        """An index value as a linear form over loop ivs; a value that cannot be followed is a variable of its own."""
        known = self._linear.get(value)
        if known is not None:
            return known
        chain = [value]  # iterative: definitions first
        while chain:
            current = chain[-1]
            if current in self._linear:
                chain.pop()
                continue
            node = self.program.value_defs[current]
            if not isinstance(node, Op) or node.name not in _FOLDABLE or current not in node.results:
                self._linear[current] = variable(current)
                continue
            waiting = [v for v in node.operands if v not in self._linear and v != current]
            if waiting and len(chain) < 10_000:
                chain.extend(waiting)
                continue
            self._linear[current] = self._fold(node, current)
        return self._linear[value]

    def folds(self, value: int) -> bool:
        """Whether an index value is a linear form of loop variables and constants, hence free as part of an address."""
        form = self.linear(value)
        return all(v in self.loop_of_iv for v in form.terms)

    def _fold(self, op: Op, value: int) -> Linear:
        name = op.name
        args = [self._linear.get(v) or variable(v) for v in op.operands]
        try:
            if name in ("arith.constant", "index.constant"):
                match = _CONSTANT_INT.search(self.text_of(op).lstrip())
                text = match.group(1) if match else ""
                return (
                    variable(value)
                    if not text
                    else constant(
                        {"true": 1, "false": 0}.get(text) or int(text)
                        if text not in ("true", "false")
                        else int(text == "true")
                    )
                )
            if name in ("affine.apply", "affine.min", "affine.max"):
                results = self._apply(self.text_of(op), args)
                return results[0] if name == "affine.apply" else make_term(name[7:], results)
            if name.endswith(("index_cast", "index_castui", "casts", "castu", "extsi", "extui", "trunci")):
                return args[0]
            last = name.rpartition(".")[2]
            a, b = args[0], args[-1]
            if last in ("addi", "add"):
                return a + b
            if last in ("subi", "sub"):
                return a - b
            if last in ("muli", "mul"):
                return make_term("mul", [a, b])
            if last == "shli" and not b.terms and 0 <= b.const < 63:
                return a.scaled(1 << b.const)
            kind = _FOLD_TERM.get(last)
            if kind is not None:
                return make_term(kind, [a, b])
            if name in ("memref.dim", "tensor.dim") and not b.terms:
                shape = self.type_of(op.operands[0]).shape
                extent = shape[b.const] if shape is not None and 0 <= b.const < len(shape) else None
                if extent is not None:
                    return constant(extent)
        except (AffineError, IndexError, ValueError):
            pass
        return variable(value)

    def _apply(self, text: str, args: list[Linear]) -> list[Linear]:
        """The results of the first affine map in `text` on `args` (dims, then symbols)."""
        stripped = text.lstrip()
        match = None if is_generic(stripped) else _APPLIED.match(stripped)
        mapped = self.map_of(match.group(1) if match else property_text(text, "map"))
        return [r.substitute(args) for r in mapped.results]

    def map_of(self, text: str) -> AffineMap:
        """Parse an `affine_map<...>` or an alias of one. Raises AffineError."""
        return parse_map(self.attribute(text))

    # ---- walk ---------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        blocks = [b for r in self.function.regions for b in r.blocks]
        factors = self._cfg_factors(blocks)
        stack: list[tuple[Iterator[Op], Loop | None, float, int, Loop | None]] = []
        for block, factor in reversed(list(zip(blocks, factors, strict=True))):
            stack.append((iter(block.ops), None, factor, self._open_block(), None))
        while stack:
            ops, loop, execs, block_id, closing = stack[-1]
            op = next(ops, None)
            if op is None:
                stack.pop()
                if closing is not None:
                    self._close(closing)
                continue
            name = op.name
            if op.implied and not op.regions:
                if not op.operands:
                    continue
            elif not op.operands and not op.results and is_bare_terminator(name):
                self._push_regions(op, stack, loop, execs)
                continue
            if name == "builtin.module" or name.endswith(".func"):
                continue  # a symbol table of its own
            node = self._add(op, name, loop, execs, block_id)
            if name in _LOOPS:
                self._enter_loop(op, node, stack, loop, execs)
            elif name in _BRANCHES:
                self._enter_branch(op, stack, loop, execs)
            elif name.startswith("linalg.") and name not in ("linalg.yield", "linalg.index"):
                self._enter_linalg(op, node, stack, loop, execs)
            elif op.regions and name not in ("stablehlo.reduce", "mhlo.reduce"):
                self._push_regions(op, stack, loop, execs)

    def _cfg_factors(self, blocks: list[Block]) -> list[float]:
        """How often each block of a control-flow graph runs: UNKNOWN_TRIP for each back edge that spans it."""
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
        node = Node(len(self.nodes), name, op, loop, execs, block_id)
        if op.results:
            info = self.type_of(op.results[0])
            node.element = info.element
            if info.kind in ("vector", "tensor") and info.shape:
                node.lanes = _product(info.shape)
        elif op.operands and name in _ACCESSES:
            info = self.type_of(op.operands[0])
            node.element = info.element
            if info.kind == "vector" and info.shape:
                node.lanes = _product(info.shape)
        node.cls = op_class(name, node.element)
        self.nodes.append(node)
        self.block_streams[block_id].append(node)
        if loop is not None:
            loop.nodes.append(node)
        for result in op.results:
            self.defining[result] = node
        spec = _ACCESSES.get(name)
        if spec is not None and len(op.operands) > spec[1]:
            self._add_access(op, node, spec)
        elif name == "memref.copy" and len(op.operands) == 2:
            self._copy_nest(op, node, loop, execs)
        return node

    def _new_loop(self, kind: str, parent: Loop | None, iv: Hashable, node: Node | None) -> Loop:
        loop = Loop(kind, parent, iv, node)
        self.loops.append(loop)
        (self.top_loops if parent is None else parent.children).append(loop)
        self.loop_of_iv[iv] = loop
        if isinstance(iv, int):
            self._linear[iv] = variable(iv)
        return loop

    def _close(self, loop: Loop) -> None:
        """Set the end of a loop's body, and of the loops of the same op around it."""
        current: Loop | None = loop
        while current is not None and current.node is loop.node:
            current.last = len(self.nodes)
            current = current.parent

    # ---- loops --------------------------------------------------------------------------------------------------

    def _enter_loop(self, op: Op, node: Node, stack: list[Any], parent: Loop | None, execs: float) -> None:
        name = op.name
        body = op.regions[0].blocks[0] if op.regions and op.regions[0].blocks else None
        args = list(body.args) if body is not None else []
        dims = self._bounds(op, args) or [([], [], 1)]
        loop = parent
        for i, (lowers, uppers, step) in enumerate(dims):
            iv: Hashable = args[i] if i < len(args) and name != "scf.while" else self._new_iv()
            loop = self._new_loop(name, loop, iv, node)
            loop.parallel = name in ("affine.parallel", "scf.parallel", "scf.forall")
            loop.step = step
            self._count_trips(loop, lowers, uppers, execs if i == 0 else loop.parent.execs)  # type: ignore[union-attr]
        assert loop is not None
        for level in self.loops[len(self.loops) - len(dims) :]:
            level.first = len(self.nodes)
        n_ivs = 0 if name == "scf.while" else len(dims)
        if body is not None and name in ("affine.for", "scf.for"):
            carried = args[n_ivs:]
            last = body.ops[-1] if body.ops else None
            yielded = list(last.operands) if last is not None and last.name.endswith(".yield") else []
            for i, arg in enumerate(carried):
                loop.carried.append((arg, yielded[i] if len(yielded) == len(carried) else None))
        elif name == "scf.while" and len(op.regions) == 2 and op.regions[1].blocks:
            last = op.regions[1].blocks[0].ops[-1] if op.regions[1].blocks[0].ops else None
            for i, arg in enumerate(args):
                loop.carried.append((arg, last.operands[i] if last is not None and i < len(last.operands) else None))
        first = True
        for region in reversed(op.regions):
            for block in reversed(region.blocks):
                stack.append((iter(block.ops), loop, loop.execs, self._open_block(), loop if first else None))
                first = False
        if first:
            self._close(loop)

    def _new_iv(self) -> Hashable:
        self._synthetic += 1
        return ("iv", self._synthetic)

    def _bounds(self, op: Op, args: list[int]) -> list[tuple[list[Linear], list[Linear], int]]:
        """(lower bounds, upper bounds, step) of each dimension of a loop op; no upper bounds where unknown."""
        unknown: list[tuple[list[Linear], list[Linear], int]] = [([], [], 1)]
        try:
            if op.name == "affine.for":
                return [self._affine_for(op)]
            if op.name == "scf.for":
                lower, upper, step = (self.linear(v) for v in op.operands[:3])
                return [_scf_dim(lower, upper, step)]
            if op.name == "scf.parallel":
                n = max(1, len(args))
                lin = [self.linear(v) for v in op.operands[: 3 * n]]
                return [_scf_dim(lin[i], lin[n + i], lin[2 * n + i]) for i in range(n)]
            if op.name == "affine.parallel":
                return self._affine_parallel(op)
            if op.name == "scf.forall":
                return self._forall(op)
        except (AffineError, IndexError, ValueError):
            n = len(args) if op.name in ("scf.parallel", "affine.parallel", "scf.forall") else 1
            return unknown * max(1, n)
        return unknown

    def _affine_for(self, op: Op) -> tuple[list[Linear], list[Linear], int]:
        text = self.text_of(op)
        operands = [self.linear(v) for v in op.operands]
        if is_generic(text):
            lower_map = self.map_of(property_text(text, "lowerBoundMap"))
            upper_map = self.map_of(property_text(text, "upperBoundMap"))
            step = int((_INT.search(property_text(text, "step")) or _INT.search("1")).group())  # type: ignore[union-attr]
            n = lower_map.n_dims + lower_map.n_symbols
            lowers = [r.substitute(operands[:n]) for r in lower_map.results]
            uppers = [r.substitute(operands[n:]) for r in upper_map.results]
            return lowers, uppers, step
        at = text.index("=") + 1
        lowers, at, used = self._bound(text, at, operands)
        at = text.index("to", at) + 2
        uppers, at, _ = self._bound(text, at, operands[used:])
        match = _STEP.match(text, at)
        return lowers, uppers, int(match.group(1)) if match else 1

    def _bound(self, text: str, at: int, operands: list[Linear]) -> tuple[list[Linear], int, int]:
        """One bound of a custom `affine.for`: (expressions, end in the text, operands used)."""
        match = _BOUND.match(text, at)
        if match is None:
            raise AffineError("unreadable loop bound")
        if match.group(2):
            return [constant(int(match.group(2)))], match.end(), 0
        if match.group(3):
            return [operands[0]], match.end(), 1
        mapped = self.map_of(match.group(4))
        n = mapped.n_dims + mapped.n_symbols
        return [r.substitute(operands[:n]) for r in mapped.results], match.end(), n

    def _affine_parallel(self, op: Op) -> list[tuple[list[Linear], list[Linear], int]]:
        text = self.text_of(op)
        operands = [self.linear(v) for v in op.operands]
        if is_generic(text):
            lower_map, upper_map = (self.map_of(property_text(text, k)) for k in ("lowerBoundsMap", "upperBoundsMap"))
            n = lower_map.n_dims + lower_map.n_symbols
            m = upper_map.n_dims + upper_map.n_symbols
            steps = [int(s) for s in _INT.findall(property_text(text, "steps"))]
            lowers = _grouped(
                [r.substitute(operands[:n]) for r in lower_map.results],
                property_text(text, "lowerBoundsGroups"),
                len(steps),
            )
            uppers = _grouped(
                [r.substitute(operands[n : n + m]) for r in upper_map.results],
                property_text(text, "upperBoundsGroups"),
                len(steps),
            )
            return list(zip(lowers, uppers, steps, strict=True))
        parts = _top_level_groups(text)
        if len(parts) < 3:
            raise AffineError("unreadable affine.parallel")
        lower_lists, used = self._inline_bounds(parts[1], operands)
        upper_lists, _ = self._inline_bounds(parts[2], operands[used:])
        rest = text[text.index("to") :] if "to" in text else ""
        step_match = re.search(r"\bstep\s*\(([^)]*)\)", rest)
        steps = [int(s) for s in _INT.findall(step_match.group(1))] if step_match else [1] * len(lower_lists)
        return list(zip(lower_lists, upper_lists, steps, strict=True))

    def _inline_bounds(self, text: str, operands: list[Linear]) -> tuple[list[list[Linear]], int]:
        pieces = _split_top(text)
        flat: list[str] = []
        sizes: list[int] = []
        for piece in pieces:
            piece = piece.strip()
            inner = re.match(r"(?:min|max)\s*\((.*)\)$", piece, re.S)
            members = _split_top(inner.group(1)) if inner else [piece]
            flat += members
            sizes.append(len(members))
        mapped = parse_inline(", ".join(flat))
        order = mapped.names
        values = _by_name(mapped, operands[: len(order)])
        results = [r.substitute(values) for r in mapped.results]
        out, at = [], 0
        for size in sizes:
            out.append(results[at : at + size])
            at += size
        return out, len(order)

    def _forall(self, op: Op) -> list[tuple[list[Linear], list[Linear], int]]:
        text = self.text_of(op)
        operands = [self.linear(v) for v in op.operands]
        if is_generic(text):
            lists = [
                static_list(property_text(text, k)) for k in ("staticLowerBound", "staticUpperBound", "staticStep")
            ]
        else:
            parts = _top_level_groups(text)
            if re.search(r"\)\s*in\s*\(", text):
                upper = _mixed_list(parts[1])
                lists = [[0] * len(upper), upper, [1] * len(upper)]
            else:
                lists = [_mixed_list(p) for p in parts[1:4]]
        at = 0
        resolved: list[list[Linear]] = []
        for entries in lists:
            row = []
            for entry in entries:
                if entry is None:
                    row.append(operands[at])
                    at += 1
                else:
                    row.append(constant(entry))
            resolved.append(row)
        return [_scf_dim(lo, up, st) for lo, up, st in zip(*resolved, strict=True)]

    def _count_trips(self, loop: Loop, lowers: list[Linear], uppers: list[Linear], entries: float) -> None:
        loop.lowers = lowers
        loop.entries = entries
        if len(lowers) == len(uppers) == 1 and not lowers[0].terms and not uppers[0].terms:
            difference = constant(uppers[0].const - lowers[0].const)
            loop.differences = [difference]
            loop.trip = loop.max_trip = float(max(0, -(-difference.const // loop.step)))
            loop.constant_trip = True
            loop.execs = entries * loop.trip
            loop.low = float(lowers[0].const)
            loop.high = loop.low + max(0.0, loop.trip - 1) * loop.step
            return
        ancestors = self._ancestors(loop.parent)
        ivs = {a.iv for a in ancestors}
        differences = [u - lo for lo in lowers for u in uppers]
        known = [d for d in differences if d.variables() <= ivs]
        loop.differences = known
        if not known:
            loop.unknown = True
            loop.execs = entries * UNKNOWN_TRIP
            loop.low, loop.high = _range(loop, self.loop_of_iv)
            return
        if all(not d.terms for d in known):
            loop.trip = loop.max_trip = float(max(0, -(-min(d.const for d in known) // loop.step)))
            loop.constant_trip = len(known) == len(differences)
            loop.unknown = False
        else:
            group = self._component(ancestors, set().union(*(d.variables() for d in known)))
            env, weights = self.domain(group)
            trips = self._trips(loop, env, len(weights))
            total = float(weights.sum())
            loop.trip = float((weights * trips).sum() / total) if total > 0 else 0.0
            loop.max_trip = float(trips.max()) if len(trips) else 0.0
            if total > len(weights) + 0.5:  # sampled: the largest count may lie between the points
                most = min(_largest(d, self.loop_of_iv) for d in known)
                if math.isfinite(most):
                    loop.max_trip = max(loop.max_trip, -(-most // loop.step))
            loop.constant_trip = bool(len(trips)) and float(trips.min()) == loop.max_trip
        loop.execs = entries * loop.trip
        loop.low, loop.high = _range(loop, self.loop_of_iv)

    def _ancestors(self, loop: Loop | None) -> list[Loop]:
        out = []
        while loop is not None:
            out.append(loop)
            loop = loop.parent
        out.reverse()
        return out

    def _component(self, ancestors: list[Loop], wanted: set[Hashable]) -> tuple[Loop, ...]:
        """The ancestors whose iterations decide: those named, those in their bounds, variable loops tied to them."""
        chosen = set(wanted)
        dependencies = {
            a.iv: set().union(*(d.variables() for d in a.differences)) if a.differences else set() for a in ancestors
        }
        for _ in range(len(ancestors)):
            before = len(chosen)
            for a in ancestors:
                deps = dependencies[a.iv]
                if a.iv in chosen:
                    chosen |= deps
                elif deps & chosen and not a.constant_trip:
                    chosen.add(a.iv)
            # a loop whose start depends on another is needed with it even when its count is constant
            for a in ancestors:
                if a.iv in chosen:
                    for lower in a.lowers:
                        chosen |= lower.variables()
            if len(chosen) == before:
                break
        return tuple(a for a in ancestors if a.iv in chosen)

    def domain(self, loops: tuple[Loop, ...]) -> tuple[Env, FloatArray]:
        """Iterations of a chain of loops as points: iv -> values (one per point), and the weight of each point."""
        key = tuple(id(loop) for loop in loops)
        known = self._domains.get(key)
        if known is not None:
            return known
        if not loops:
            return {}, np.ones(1)
        env, weights = self.domain(loops[:-1])
        loop = loops[-1]
        n = len(weights)
        if n > POINT_BUDGET // 2 and n > 64:
            keep = np.arange(0, n, max(2, (8 * n) // POINT_BUDGET))
            factor = float(weights.sum()) / max(float(weights[keep].sum()), 1e-300)
            env = {v: a[keep] for v, a in env.items()}
            weights = weights[keep] * factor
            n = len(weights)
        trips = self._trips(loop, env, n)
        lower = self._lower(loop, env, n)
        total = float(trips.sum())
        if total <= POINT_BUDGET:
            counts = trips.astype(np.int64)
            origin = np.repeat(np.arange(n), counts)
            starts = np.repeat(np.cumsum(counts) - counts, counts)
            position = np.arange(int(counts.sum())) - starts
            new_weights = weights[origin]
        else:
            per_point = max(1, POINT_BUDGET // max(n, 1))
            counts = np.minimum(trips, per_point).astype(np.int64)
            origin = np.repeat(np.arange(n), counts)
            starts = np.repeat(np.cumsum(counts) - counts, counts)
            stratum = np.arange(int(counts.sum())) - starts
            share = trips[origin] / counts[origin]
            position = np.floor((stratum + 0.5) * share)
            new_weights = weights[origin] * share
        new_env: Env = {v: a[origin] for v, a in env.items()}
        new_env[loop.iv] = lower[origin] + loop.step * position
        self._domains[key] = (new_env, new_weights)
        return new_env, new_weights

    def _trips(self, loop: Loop, env: Env, n: int) -> FloatArray:
        if not loop.differences:
            return np.full(n, float(UNKNOWN_TRIP))
        length = np.full(n, np.inf)
        for difference in loop.differences:
            try:
                length = np.minimum(length, difference.evaluate(env))
            except KeyError:
                continue
        length = np.where(np.isfinite(length), length, UNKNOWN_TRIP * loop.step)
        return np.maximum(0.0, np.ceil(length / loop.step))

    def _lower(self, loop: Loop, env: Env, n: int) -> FloatArray:
        lower = np.full(n, -np.inf)
        for expression in loop.lowers:
            try:
                lower = np.maximum(lower, expression.evaluate(env))
            except KeyError:
                continue
        return np.where(np.isfinite(lower), lower, 0.0)

    # ---- branches -----------------------------------------------------------------------------------------------

    def _enter_branch(self, op: Op, stack: list[Any], loop: Loop | None, execs: float) -> None:
        self.branches += 1
        n = max(1, len([r for r in op.regions if r.blocks]))
        taken = self._probability(op, loop)
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

    def _probability(self, op: Op, loop: Loop | None) -> float | None:
        """Share of the iterations in which the first region runs; None where the text does not tell."""
        ancestors = self._ancestors(loop)
        ivs = {a.iv for a in ancestors}
        try:
            if op.name == "affine.if":
                text = self.text_of(op)
                match = None if is_generic(text) else _APPLIED.match(text)
                condition = parse_set(self.attribute(match.group(1) if match else property_text(text, "condition")))
                operands = [self.linear(v) for v in op.operands]
                constraints = [(c.substitute(operands), eq) for c, eq in condition.constraints]
            elif op.name == "scf.if" and op.operands:
                constraints = self._comparison(op.operands[0])
            else:
                return None
        except (AffineError, IndexError, ValueError):
            return None
        wanted: set[Hashable] = set().union(*(c.variables() for c, _ in constraints)) if constraints else set()
        if not constraints or not wanted <= ivs:
            return None
        env, weights = self.domain(self._component(ancestors, wanted))
        holds = np.ones(len(weights), dtype=bool)
        for expression, equality in constraints:
            value = expression.evaluate(env)
            holds &= (value == 0) if equality else (value >= 0)
        total = float(weights.sum())
        return float((weights * holds).sum() / total) if total > 0 else 0.0

    def _comparison(self, value: int) -> list[tuple[Linear, bool]]:
        """`arith.cmpi` on index values as constraints; empty where it is something else."""
        op = self.program.value_defs[value]
        if not isinstance(op, Op) or op.name != "arith.cmpi" or len(op.operands) != 2:
            return []
        text = self.text_of(op).lstrip()
        if is_generic(text):
            match = _INT.search(property_text(text, "predicate"))
            predicate = _PREDICATES[int(match.group())] if match else ""
        else:
            predicate = text.split(",", 1)[0].strip()
        a, b = (self.linear(v) for v in op.operands)
        one = constant(1)
        return {
            "eq": [(a - b, True)],
            "slt": [(b - a - one, False)],
            "ult": [(b - a - one, False)],
            "sle": [(b - a, False)],
            "ule": [(b - a, False)],
            "sgt": [(a - b - one, False)],
            "ugt": [(a - b - one, False)],
            "sge": [(a - b, False)],
            "uge": [(a - b, False)],
        }.get(predicate, [])

    # ---- accesses -----------------------------------------------------------------------------------------------

    def _add_access(self, op: Op, node: Node, spec: tuple[bool, int, bool]) -> None:
        is_store, position, mapped = spec
        memref = op.operands[position]
        info = self.type_of(memref)
        rank = len(info.shape) if info.shape is not None else 0
        rest = op.operands[position + 1 :]
        indices: list[Linear]
        indices = self._subscripts(op, position) if mapped else [self.linear(v) for v in rest[:rank]]
        access = Access(node, memref, is_store, node.loop, node.execs)
        if info.kind == "tensor" and is_store and op.results:
            access.root = memref
        value = (
            (op.operands[0] if position else op.operands[-1]) if is_store else (op.results[0] if op.results else memref)
        )
        value_info = self.type_of(value)
        if value_info.kind == "vector" and value_info.shape:
            access.lanes = max(1, _product(value_info.shape))
        if op.name.startswith("vector.transfer"):
            self._transfer(op, access)
        access.bits = info.element_bits or 32
        self._place(access, memref, indices)
        node.access = access
        self.accesses.append(access)

    def _transfer(self, op: Op, access: Access) -> None:
        """Broadcast dimensions of a transfer touch one element; one that is not in bounds for certain is masked."""
        text = self.text_of(op)
        in_bounds = property_text(text, "in_bounds")
        shape = self.type_of(op.results[0] if op.results else op.operands[0]).shape or ()
        access.masked = bool(shape) and ("false" in in_bounds or not in_bounds)
        written = property_text(text, "permutation_map")
        if not written:
            return
        try:
            results = self.map_of(written).results
        except AffineError:
            return
        if len(shape) == len(results):
            kept = [d for d, r in zip(shape, results, strict=True) if r.terms]
            access.broadcast = len(kept) < len(results)
            access.lanes = max(1, _product(kept))

    def _subscripts(self, op: Op, position: int) -> list[Linear]:
        text = self.text_of(op)
        operands = [self.linear(v) for v in op.operands[position + 1 :]]
        try:
            if is_generic(text):
                return [r.substitute(operands) for r in self.map_of(property_text(text, "map")).results]
            start = text.index("[")
            inline = parse_inline(text[start + 1 : text.index("]", start)])
            values = operands if inline.uses == inline.names else _by_name(inline, operands)
            return [r.substitute(values) for r in inline.results]
        except (AffineError, IndexError, ValueError, TypeError):
            return []

    def _place(self, access: Access, memref: int, indices: list[Linear]) -> None:
        """Follow subviews and casts to the root, and write the address as a linear form there."""
        offset = constant(0)
        current = memref
        for _ in range(64):
            op = self.program.value_defs[current]
            if not isinstance(op, Op) or op.name not in _ALIASES or not op.operands:
                break
            if op.name == "memref.subview":
                moved = self._through_subview(op, indices)
                if moved is None:
                    break
                indices = moved
            elif op.name != "memref.cast":
                shape, strides, _ = self.layout(current)
                if len(shape) == len(indices):
                    offset = offset + dot(indices, strides)
                indices = []
            current = op.operands[0]
        shape, strides, _ = self.layout(current)
        access.root = current
        access.shape, access.strides = shape, strides
        access.extent = max(1, math.prod(shape)) if shape else 1
        if not indices and shape:
            whole = self.layout(memref)[0]
            access.shape, access.strides = whole, self.layout(memref)[1]
            access.indices = []
            access.address = offset
        else:
            fits = len(indices) == len(shape)
            access.indices = indices if fits else []
            access.address = dot(indices, strides) if fits else offset
        loops = self.loop_of_iv
        access.known = all(v in loops for v in access.address.variables())

    def layout(self, memref: int) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
        """(extents, strides in elements, all static) of a memref or tensor; unknown extents count as UNKNOWN_TRIP."""
        known = self._layouts.get(memref)
        if known is None:
            known = self._layouts[memref] = self._layout(memref)
        return known

    def _layout(self, memref: int) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
        info = self.type_of(memref)
        if info.shape is None:
            return (), (), False
        shape = tuple(UNKNOWN_TRIP if d is None else d for d in info.shape)
        row_major = [1] * len(shape)
        for i in range(len(shape) - 2, -1, -1):
            row_major[i] = row_major[i + 1] * max(1, shape[i + 1])
        strides = tuple(row_major)
        if info.strides is not None and len(info.strides) == len(shape):
            strides = tuple(row_major[i] if s is None else s for i, s in enumerate(info.strides))
        return shape, strides, None not in info.shape

    def _through_subview(self, op: Op, indices: list[Linear]) -> list[Linear] | None:
        text = self.text_of(op)
        operands = [self.linear(v) for v in op.operands[1:]]
        try:
            if is_generic(text):
                lists = [
                    static_list(property_text(text, k)) for k in ("static_offsets", "static_sizes", "static_strides")
                ]
            else:
                lists = []
                at = 0
                for _ in range(3):
                    start = text.index("[", at)
                    at = _closing(text, start)
                    lists.append(_mixed_list(text[start + 1 : at]))
        except (ValueError, IndexError):
            return None
        resolved: list[list[Linear]] = []
        used = 0
        for entries in lists:
            row = []
            for entry in entries:
                if entry is None:
                    if used >= len(operands):
                        return None
                    row.append(operands[used])
                    used += 1
                else:
                    row.append(constant(entry))
            resolved.append(row)
        offsets, sizes, strides = resolved
        result_shape = self.type_of(op.results[0]).shape if op.results else None
        if result_shape is None or len(indices) != len(result_shape):
            return None
        out = []
        at = 0
        dropped = len(offsets) - len(indices)
        for i, offset in enumerate(offsets):
            unit = not sizes[i].terms and sizes[i].const == 1
            keep = at < len(indices) and not (
                dropped and unit and not (result_shape[at] == 1 and len(offsets) - i == len(indices) - at)
            )
            if keep:
                out.append(offset + make_term("mul", [indices[at], strides[i]]))
                at += 1
            else:
                dropped -= 1
                out.append(offset)
        return out if at == len(indices) else None

    # ---- implied loop nests -------------------------------------------------------------------------------------

    def _enter_linalg(self, op: Op, node: Node, stack: list[Any], parent: Loop | None, execs: float) -> None:
        nest = implied_nest(self, op)
        generic = op.name == "linalg.generic"
        if nest is None:
            if generic:
                self._push_regions(op, stack, parent, execs)
            return
        loop = parent
        inner = execs
        ivs: list[Linear] = []
        for extent, iterator in zip(nest.extents, nest.iterators, strict=True):
            iv = self._new_iv()
            ivs.append(variable(iv))
            loop = self._new_loop("linalg", loop, iv, node)
            loop.parallel = iterator == "parallel"
            loop.reduction = iterator == "reduction"
            loop.first = len(self.nodes)
            self._count_trips(loop, [constant(0)], [] if extent is None else [constant(extent)], inner)
            inner = loop.execs
        block = self._open_block()
        self._virtual_accesses(node, nest.accesses, False, ivs, loop, inner, block)
        element = self.type_of(nest.accesses[-1][0]).element if nest.accesses else ""
        if not generic:
            for cls in nest.compute:
                self._virtual(loop, inner, block, op_class_for_virtual(cls, element), element)
            self._virtual_accesses(node, nest.accesses, True, ivs, loop, inner, block)
            if loop is not None and loop is not parent:
                self._close(loop)
            return
        self._virtual_accesses(node, nest.accesses, True, ivs, loop, inner, block)
        first = True
        for region in reversed(op.regions):
            for body in reversed(region.blocks):
                stack.append(
                    (iter(body.ops), loop, inner, self._open_block(), loop if first and loop is not parent else None)
                )
                first = False
        if first and loop is not None and loop is not parent:
            self._close(loop)

    def _virtual_accesses(
        self,
        node: Node,
        accesses: Sequence[tuple[int, tuple[Linear, ...], bool]],
        stores: bool,
        ivs: list[Linear],
        loop: Loop | None,
        execs: float,
        block: int,
    ) -> None:
        for operand, results, is_store in accesses:
            if is_store == stores:
                self._virtual_access(node, operand, [r.substitute(ivs) for r in results], stores, loop, execs, block)

    def _virtual(self, loop: Loop | None, execs: float, block: int, cls: str, element: str) -> Node:
        node = Node(len(self.nodes), "", None, loop, execs, block)
        node.cls = cls
        node.element = element
        self.nodes.append(node)
        if loop is not None:
            loop.nodes.append(node)
        return node

    def _virtual_access(
        self,
        owner: Node,
        memref: int,
        indices: list[Linear],
        is_store: bool,
        loop: Loop | None,
        execs: float,
        block: int,
    ) -> None:
        info = self.type_of(memref)
        node = self._virtual(loop, execs, block, "store" if is_store else "load", info.element)
        access = Access(node, memref, is_store, loop, execs)
        access.bits = info.element_bits or 32
        self._place(access, memref, indices)
        node.access = access
        self.accesses.append(access)

    def _copy_nest(self, op: Op, node: Node, parent: Loop | None, execs: float) -> None:
        """`memref.copy` as a loop nest over the source's shape."""
        info = self.type_of(op.operands[0])
        if info.shape is None:
            return
        loop = parent
        inner = execs
        ivs: list[Linear] = []
        for extent in info.shape:
            iv = self._new_iv()
            ivs.append(variable(iv))
            loop = self._new_loop("linalg", loop, iv, node)
            loop.parallel = True
            loop.first = len(self.nodes)
            self._count_trips(loop, [constant(0)], [] if extent is None else [constant(extent)], inner)
            inner = loop.execs
        block = self._open_block()
        self._virtual_access(node, op.operands[0], ivs, False, loop, inner, block)
        self._virtual_access(node, op.operands[1], ivs, True, loop, inner, block)
        if loop is not None and loop is not parent:
            self._close(loop)

    # ---- def-use ------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        defining = self.defining
        for node in self.nodes:
            if node.operands:
                node.producers = [defining[v] for v in node.operands if v in defining]
        self._hoist()

    def _hoist(self) -> None:
        """Set `Node.free`, and `Node.home`: arithmetic moves out with its operands, loads where no loop left stores."""
        made = {n.results[0]: n for n in self.nodes if n.cls == "alloc" and n.results}
        if made:
            kept = {
                a.root for a in self.accesses if a.extent > PROMOTED_ELEMENTS or a.address.terms or a.root not in made
            }
            reached = {a.root for a in self.accesses}
            for node in self.nodes:
                root = node.access.root if node.access is not None else None
                if node.cls == "alloc":
                    root = node.results[0] if node.results else (node.operands[0] if node.operands else None)
                node.free = root in made and root in reached and root not in kept
        storing: set[int] = set()
        for node in self.nodes:
            if node.cls in _WRITES and not node.free:
                loop = node.loop
                while loop is not None and id(loop) not in storing:
                    storing.add(id(loop))
                    loop = loop.parent
        level: dict[int, Loop | None] = {}
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
                while here is not None and here.iv not in ivs and id(here) not in storing:
                    here = here.parent
                node.home = here
            elif cls in _MOVABLE and not node.virtual:
                best: Loop | None = None
                depth = 0
                for v in node.operands:
                    at = level.get(v)
                    if at is not None and at.depth > depth:
                        best, depth = at, at.depth
                node.home = best
            if node.home is not None:
                for v in node.results:
                    level[v] = node.home

    def stride(self, access: Access, loop: Loop) -> int:
        """Elements the address moves when `loop` takes one step; with `mod` in it, at a quarter of the range."""
        known = access.coefficients.get(loop.iv)
        if known is None:
            address = access.address
            if address.is_linear():
                known = address.terms.get(loop.iv, 0) * loop.step
            else:
                known = self._numeric_stride(address, loop)
            access.coefficients[loop.iv] = known
        return known

    def _numeric_stride(self, address: Linear, loop: Loop) -> int:
        names = address.variables()
        if loop.iv not in names:
            return 0
        env: Env = dict.fromkeys(names, 0)
        env[loop.iv] = loop.step * int(loop.trip // 4)
        before = int(address.evaluate(env))
        env[loop.iv] += loop.step
        return int(address.evaluate(env)) - before

    @property
    def innermost(self) -> list[Loop]:
        """Loops without a loop inside."""
        return [loop for loop in self.loops if not loop.children]


_WRITES = frozenset(("store", "call", "copy", "sync", "other"))
_MOVABLE = frozenset(CLASSES) - _WRITES - {"load", "alloc", "loop", "branch", "yield"}
_FOLD_TERM = {
    "minsi": "min",
    "minui": "min",
    "maxsi": "max",
    "maxui": "max",
    "mins": "min",
    "maxs": "max",
    "divsi": "floordiv",
    "divui": "floordiv",
    "floordivsi": "floordiv",
    "ceildivsi": "ceildiv",
    "ceildivui": "ceildiv",
    "remsi": "mod",
    "remui": "mod",
    "divs": "floordiv",
    "divu": "floordiv",
    "rems": "mod",
    "remu": "mod",
}
_FOLDABLE = {
    "arith.constant",
    "index.constant",
    "affine.apply",
    "affine.min",
    "affine.max",
    "arith.index_cast",
    "arith.index_castui",
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.shli",
    "memref.dim",
    "tensor.dim",
    "index.add",
    "index.sub",
    "index.mul",
    "index.casts",
    "index.castu",
    *(f"arith.{n}" for n in _FOLD_TERM),
    *(f"index.{n}" for n in ("mins", "maxs", "divs", "divu", "rems", "remu")),
}


def op_class_for_virtual(cls: str, element: str) -> str:
    """The class of an implied operation: the integer counterpart where the element type is an integer."""
    if element[:1] == "i" or element[:2] in ("si", "ui"):
        return {"fadd": "iadd", "fmul": "imul", "fminmax": "iadd", "fdiv": "idiv", "fma": "imul"}.get(cls, cls)
    return cls


def _largest(expression: Linear, loops: dict[Hashable, Loop]) -> float:
    """An upper bound of an expression over the ranges of the loop variables; inf where it is not linear in them."""
    total = float(expression.const)
    for v, c in expression.terms.items():
        loop = loops.get(v)
        if loop is None:
            return math.inf
        total += c * (loop.high if c > 0 else loop.low)
    return total


def _range(loop: Loop, loops: dict[Hashable, Loop]) -> tuple[float, float]:
    """(least, largest) value of a loop's variable."""
    lows = [-_largest(lower.scaled(-1), loops) for lower in loop.lowers]
    highs = [_largest(lower, loops) for lower in loop.lowers]
    low = max((x for x in lows if math.isfinite(x)), default=0.0)
    high = max((x for x in highs if math.isfinite(x)), default=low)
    return low, high + max(0.0, loop.max_trip - 1) * loop.step


def _by_name(inline: InlineMap, operands: list[Linear]) -> list[Linear]:
    """The operands, listed as the text mentions them, in the order of `inline.names`."""
    mentions = inline.uses if len(operands) == len(inline.uses) else inline.written
    value = dict(zip(mentions, operands, strict=True))
    return [value[name] for name in inline.names]


def _scf_dim(lower: Linear, upper: Linear, step: Linear) -> tuple[list[Linear], list[Linear], int]:
    if step.terms or step.const <= 0:
        return [lower], [], 1
    uppers = [upper]
    if len(upper.terms) == 1 and upper.const == 0:
        ((term, coefficient),) = upper.terms.items()
        if isinstance(term, Term) and term.kind == "min" and coefficient == 1:
            uppers = list(term.args)
    lowers = [lower]
    if len(lower.terms) == 1 and lower.const == 0:
        ((term, coefficient),) = lower.terms.items()
        if isinstance(term, Term) and term.kind == "max" and coefficient == 1:
            lowers = list(term.args)
    return lowers, uppers, step.const


def _product(shape: Sequence[int | None]) -> int:
    return math.prod(UNKNOWN_TRIP if d is None else d for d in shape)


def _grouped(flat: list[Linear], groups: str, n: int) -> list[list[Linear]]:
    """Split the results of a bounds map into dims: `dense<[1, 2]> : tensor<2xi32>` or a splat `dense<1> : …`."""
    body = groups.split(":", 1)[0]
    sizes = [int(s) for s in _INT.findall(body)] or [1]
    if len(sizes) == 1:
        sizes = sizes * n
    out, at = [], 0
    for size in sizes:
        out.append(flat[at : at + size])
        at += size
    return out


_GENERIC = re.compile(r"\s*\([^()]*\)\s*(?:<\{|[({:\[])")


def is_generic(text: str) -> bool:
    """Whether an operation's text is in generic syntax: `(%operands) <{…}> … : (types) -> types`."""
    return text.lstrip()[:1] == "(" and _GENERIC.match(text) is not None


_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|->|>=|<=|==|[<>\[\](){},]')


def property_text(text: str, key: str) -> str:
    """The attribute `key = …` of a generic operation's text, up to the comma or bracket that ends it; "" if none."""
    match = re.search(rf"(?<![\w.$]){re.escape(key)}\s*=\s*", text)
    if match is None:
        return ""
    depth = 0
    for token in _STRUCTURE.finditer(text, match.end()):
        t = token.group()
        if t in ("<", "[", "(", "{"):
            depth += 1
        elif t in (">", "]", ")", "}"):
            depth -= 1
            if depth < 0:
                return text[match.end() : token.start()].strip()
        elif t == "," and depth == 0:
            return text[match.end() : token.start()].strip()
    return text[match.end() :].strip()


def _closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes."""
    depth = 0
    for token in _STRUCTURE.finditer(text, start):
        t = token.group()
        if t in ("<", "[", "(", "{"):
            depth += 1
        elif t in (">", "]", ")", "}"):
            depth -= 1
            if depth == 0:
                return token.start()
    raise ValueError("bracket does not close")


def _top_level_groups(text: str) -> list[str]:
    """The insides of the parenthesised groups of a text, in order."""
    out = []
    at = text.find("(")
    while at >= 0:
        end = _closing(text, at)
        out.append(text[at + 1 : end])
        at = text.find("(", end)
    return out


def _split_top(text: str) -> list[str]:
    """Split at commas outside brackets."""
    out, depth, start = [], 0, 0
    for token in _STRUCTURE.finditer(text):
        t = token.group()
        if t in ("<", "[", "(", "{"):
            depth += 1
        elif t in (">", "]", ")", "}"):
            depth -= 1
        elif t == "," and depth == 0:
            out.append(text[start : token.start()])
            start = token.end()
    last = text[start:]
    return [*out, last] if last.strip() else out


def _mixed_list(text: str) -> list[int | None]:
    """`%a, 4, 8` -> [None, 4, 8]."""
    return [None if part.strip().startswith("%") else int(part) for part in _split_top(text)]


def static_list(text: str) -> list[int | None]:
    """`array<i64: -9223372036854775808, 4>` -> [None, 4]."""
    _, _, body = text.partition(":")
    return [None if int(s) == _DYNAMIC else int(s) for s in _INT.findall(body)]


def _strip_comments(text: str) -> str:
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda m: m.group(1) or " ", text)
