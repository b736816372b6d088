"""What a `FunctionView` is made of: loops, operations as nodes, memory accesses."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from .affine import LARGEST, Linear, constant
from .program import Op
from .types import UNKNOWN_SIZE

UNKNOWN_TRIP = UNKNOWN_SIZE
"""Stands for a trip count or a dynamic extent that the text does not tell; each use is counted, never hidden."""
PROMOTED_ELEMENTS = 8
"""A buffer made in the function with at most this many elements can live in registers."""


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
        "extent",
        "group",
        "indices",
        "is_store",
        "known",
        "lanes",
        "linear",
        "loop",
        "masked",
        "node",
        "root",
        "shape",
        "stride",
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
        self.linear = True
        """Whether the address is linear: no mod, floordiv, min or max in it."""
        self.extent = 1
        """Elements of the root."""
        self.group = 0
        """Number of (root, address without its constant) among those of the function."""
        self.stride = 0
        """Elements the address moves when `loop` takes one step; 0 outside of loops."""

    @property
    def bytes(self) -> float:
        """Bytes touched in one execution."""
        return self.bits * self.lanes / 8

    def stride_in(self, loop: Loop) -> int:
        """Elements the address moves when `loop` takes one step; with `mod` in it, at a quarter of the range."""
        address = self.address
        if self.linear:
            return address.terms.get(loop.iv, 0) * loop.step
        names = address.variables()
        if loop.iv not in names:
            return 0
        env: dict[Hashable, int] = dict.fromkeys(names, 0)
        env[loop.iv] = loop.step * int(loop.trip // 4)
        before = int(address.evaluate(env))
        env[loop.iv] += loop.step
        return int(address.evaluate(env)) - before


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


def product(shape: Sequence[int | None]) -> int:
    return min(math.prod([UNKNOWN_TRIP if d is None else d for d in shape]), LARGEST)
