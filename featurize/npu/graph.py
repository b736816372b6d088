"""The operations on tensors of a function as TOSA writes them, each checked, and the order in which they run."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..attribute_text import property_text
from ..program import Op, Program
from ..types import TypeInfo, parse_type
from .devices import Shape


class UnknownNetwork(Exception):
    """A function that is no network an NPU could run: shapes that are not fixed, operations that do not fit."""


def is_network(function: Op) -> bool:
    """Whether a function is straight-line code of TOSA operations."""
    ops = [op for region in function.regions for block in region.blocks for op in block.ops]
    return any(op.name.startswith("tosa.") for op in ops) and not any(op.regions for op in ops)


_LARGEST_EXTENT, MOST_ELEMENTS, MOST_STEPS = 1 << 20, 1 << 32, 4_000
"""Of what is planned: nothing that an NPU could run is larger, and the plan of anything takes a bounded time."""
_INT = re.compile(r"-?\d+")
_DENSE = re.compile(r"dense<(?:\[([^\]]*)\]|(-?\d+))>")
_WINDOWS = {"conv2d": "conv", "depthwise_conv2d": "depthwise", "transpose_conv2d": "transposed"}
_POOLS = {"avg_pool2d": "average", "max_pool2d": "maximum_pool"}
ACTIVATIONS = frozenset(("clamp", "table"))
BINARY = frozenset(("add", "sub", "mul", "maximum", "minimum"))
WINDOWED = frozenset(("conv", "depthwise"))
POOLS = frozenset(_POOLS.values())


@dataclass(eq=False)
class Value:
    """A tensor."""

    shape: tuple[int, ...]
    bits: int
    interface: str = ""
    """"input", "output" or "constant" of the network, "" for one in between."""
    text: str = ""
    """Of a constant."""
    makers: list[Node] = field(default_factory=list)
    readers: list[Node] = field(default_factory=list)

    def ints(self) -> list[int]:
        """Numbers of a constant: one where all are the same, none where the text does not say."""
        match = _DENSE.search(self.text)
        if match is None:
            return []
        return [int(n) for n in (match[1] if match[1] is not None else match[2]).split(",")]


@dataclass(eq=False)
class Read:
    """A tensor as an operation reads it."""

    value: Value
    shape: tuple[int, ...]
    """As the operation sees it: a reshaped tensor is read in another shape."""
    part: tuple[int, ...] | None = None
    """Extents of the part that is read."""
    offset: tuple[int, ...] | None = None
    scaled: bool = False


@dataclass(eq=False)
class Node:
    """One operation."""

    kind: str
    """ "conv", "depthwise", "transposed", "average", "maximum_pool", "matmul", "add", "sub", "mul", "maximum",
    "minimum", "rescale", "clamp", "table", "copy", "transpose", "resize", "sum" or "max"."""
    reads: list[Read]
    out: Value
    shape: tuple[int, ...]
    """Of the output, as the operation writes it."""
    part: tuple[int, ...] | None = None
    """Extents of the part that is written."""
    offset: tuple[int, ...] | None = None
    window: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Top, bottom, left, right."""
    weights: int = 0
    per_channel: bool = False
    multiplier: int = 0
    shift: int = 0
    zeros: tuple[int, int] = (0, 0)
    """Zero points of a rescaling's input and output."""
    permutation: tuple[int, ...] = ()
    axis: int = 0
    scaled: bool = False
    """Whether a rescaling is done along with writing."""
    place: int = -1
    """Where it is written in the program's text; -1 for what only the NPU needs."""

    def retarget(self, out: Value) -> None:
        """Write another tensor."""
        self.out.makers.remove(self)
        self.out = out
        out.makers.append(self)

    def reread(self, at: int, value: Value) -> None:
        """Read another tensor."""
        self.reads[at].value.readers.remove(self)
        self.reads[at].value = value
        value.readers.append(self)


def four(shape: Sequence[int]) -> Shape:
    """A shape as (batch, height, width, channels)."""
    sizes = [1, 1, 1, 1, *shape]
    return math.prod(sizes[:-3]), sizes[-3], sizes[-2], sizes[-1]


class Graph:
    """The operations of a function, in order, before anything is merged."""

    def __init__(self, program: Program, function: Op) -> None:
        self.program = program
        self.values: dict[int, Value] = {}
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []
        for block in (b for region in function.regions for b in region.blocks):
            for argument in block.args:
                self._value(argument).interface = "input"
            for op in block.ops:
                self._add(op)

    def _value(self, value: int) -> Value:
        found = self.values.get(value)
        if found is None:
            info = parse_type(self.program.value_types[value])
            shape = _fixed(info)
            bits = info.element_bits or 8
            found = Value(shape, 8 if bits <= 8 else 16 if bits <= 16 else 32 if bits <= 32 else 64)
            self.values[value] = found
        return found

    def _add(self, op: Op) -> None:
        name = op.name.rpartition(".")[2]
        if name == "return":
            for operand in op.operands:
                value = self._value(operand)
                self.outputs.append(value)
                if value.interface != "input":
                    value.interface = "output"
            return
        if not op.results:
            return
        out = self._value(op.results[0])
        if name in ("const", "const_shape"):
            out.interface, out.text = "constant", op.text
            return
        inputs = [self._value(v) for v in op.operands]
        node = _node(name, op.text, inputs, out)
        if node is not None:
            _check(node)
            node.place = op.offset
            self.insert(node)

    def insert(self, node: Node) -> Value:
        """Add an operation to the network; what it makes."""
        self.nodes.append(node)
        node.out.makers.append(node)
        for read in node.reads:
            read.value.readers.append(node)
        return node.out

    def drop(self, node: Node) -> None:
        """Take an operation out of the network."""
        self.nodes.remove(node)
        for read in node.reads:
            if node in read.value.readers:
                read.value.readers.remove(node)
        if node in node.out.makers:
            node.out.makers.remove(node)


def _fixed(info: TypeInfo) -> tuple[int, ...]:
    """The shape. UnknownNetwork if it is not fixed or too large."""
    if info.shape is None and not info.shaped:
        return ()
    sizes = [size or 0 for size in info.shape or (0,)]
    if not all(0 < size <= _LARGEST_EXTENT for size in sizes) or math.prod(sizes) > MOST_ELEMENTS:
        raise UnknownNetwork(f"a tensor of shape {info.shape}")
    return tuple(sizes)


@functools.lru_cache(maxsize=4096)
def _ints(text: str, key: str) -> tuple[int, ...]:
    """Integers of an attribute; each network is read for two NPUs."""
    inside = property_text(text, key).rpartition(":")[2]
    return tuple(int(n) for n in _INT.findall(inside))


def _pair(text: str, key: str) -> tuple[int, int]:
    found = _ints(text, key)
    return (found[0], found[1]) if len(found) == 2 else (1, 1)


def _node(name: str, text: str, inputs: Sequence[Value], out: Value) -> Node | None:
    def node(kind: str, count: int = 1) -> Node:
        return Node(kind, [Read(v, v.shape) for v in inputs[:count]], out, out.shape)

    if not inputs:
        return None
    if name in _WINDOWS:
        found = node(_WINDOWS[name])
        weights = inputs[1].shape if len(inputs) > 1 else ()
        if len(weights) != 4:
            raise UnknownNetwork(f"{name} with weights of shape {weights}")
        found.weights = math.prod(weights)
        found.window = (weights[0], weights[1]) if name == "depthwise_conv2d" else (weights[1], weights[2])
        found.stride = _pair(text, "stride")
        found.dilation = _pair(text, "dilation")
        pad = _ints(text, "out_pad" if name == "transpose_conv2d" else "pad")
        found.pad = (pad[0], pad[1], pad[2], pad[3]) if len(pad) == 4 else (0, 0, 0, 0)
        if inputs[1].interface != "constant":
            found.weights = 0
        return found
    if name in _POOLS:
        found = node(_POOLS[name])
        found.window, found.stride = _pair(text, "kernel"), _pair(text, "stride")
        pad = _ints(text, "pad")
        found.pad = (pad[0], pad[1], pad[2], pad[3]) if len(pad) == 4 else (0, 0, 0, 0)
        return found
    if name in BINARY:
        return node(name, 2)
    if name == "rescale":
        found = node("rescale")
        if len(inputs) < 3:
            raise UnknownNetwork("rescale without a multiplier and a shift")
        numbers = [(value.ints() or [0])[0] for value in inputs[1:5]]
        found.multiplier, found.shift = numbers[0], max(numbers[1], 0)
        found.zeros = (numbers[2], numbers[3]) if len(numbers) == 4 else (0, 0)
        found.per_channel = math.prod(inputs[1].shape) > 1
        return found
    if name == "matmul":
        return node("matmul", 2)
    if name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_all", "reduce_any", "argmax"):
        found = node("sum" if name == "reduce_sum" else "max")
        found.axis = (_ints(f"x = {property_text(text, 'axis').partition(':')[0]}", "x") or [0])[0]
        return found
    if name == "transpose":
        found = node("transpose")
        found.permutation = _ints(text, "perms")
        return found
    if name in ("concat", "slice", "pad", "resize", "clamp", "table", "reshape", "identity"):
        count = len(inputs) if name == "concat" else 1
        found = node(name, count)
        if name == "concat":
            found.axis = (_ints(f"x = {property_text(text, 'axis').partition(':')[0]}", "x") or [0])[0]
        if name == "slice":
            found.offset = tuple(inputs[1].ints()) if len(inputs) > 1 else ()
        if name == "pad":
            found.permutation = tuple(inputs[1].ints()) if len(inputs) > 1 else ()
        return found
    return node("add" if len([v for v in inputs if v.interface != "constant"]) > 1 else "clamp", min(len(inputs), 2))


def _check(node: Node) -> None:
    """UnknownNetwork if shapes and attributes of an operation do not fit."""
    rank, ranks = len(node.shape), [len(read.shape) for read in node.reads]
    fits = rank <= 6 and max(ranks) <= 6
    if node.kind in ("conv", "depthwise", "transposed", *POOLS):
        small = (*node.window, *node.stride, *node.dilation)
        fits &= rank == ranks[0] == 4 and all(0 < n <= MOST_STEPS for n in small)
        fits &= node.kind == "transposed" or min(node.pad) >= 0
        fits &= node.kind != "depthwise" or (fits and node.shape[-1] % node.reads[0].shape[-1] == 0)
    elif node.kind == "transpose":
        fits &= sorted(node.permutation) == list(range(rank)) and ranks[0] == rank
    elif node.kind in ("sum", "max", "concat"):
        fits &= ranks[0] > 0 and -ranks[0] <= node.axis < ranks[0]
        fits &= node.kind != "concat" or all(r == rank for r in ranks)
    elif node.kind in BINARY:
        fits &= len(ranks) == 2
    elif node.kind == "matmul":
        fits &= rank == 3 and ranks == [3, 3]
    elif node.kind == "pad":
        fits &= rank == ranks[0] and len(node.permutation) in (0, 2 * rank) and min(node.permutation, default=0) >= 0
    elif node.kind == "slice":
        fits &= rank == ranks[0] and len(node.offset or ()) in (0, rank)
    elif node.kind == "resize":
        fits &= rank == ranks[0] == 4
    batches = math.prod(node.shape[:-3]) if node.kind not in ("reshape", "identity", "transpose") else 1
    if not fits or batches > MOST_STEPS:
        raise UnknownNetwork(f"{node.kind} of {[read.shape for read in node.reads]} to {node.shape}")


def in_order(outputs: Sequence[Value]) -> list[Node]:
    """Operations in the order in which they run: back from the results, the last input of each first.

    UnknownNetwork where one needs its own result.
    """
    done: set[int] = set()
    entered: set[int] = set()
    found: list[Node] = []
    for output in outputs:
        stack: list[tuple[Node, bool]] = [(maker, False) for maker in output.makers]
        while stack:
            node, ready = stack.pop()
            if id(node) in done:
                continue
            if ready:
                done.add(id(node))
                found.append(node)
                continue
            if id(node) in entered:
                raise UnknownNetwork(f"{node.kind} needs its own result")
            entered.add(id(node))
            stack.append((node, True))
            stack.extend((maker, False) for read in node.reads for maker in reversed(list(_pending(read, done))))
    return found


def _pending(read: Read, done: set[int]) -> Iterator[Node]:
    return (maker for maker in read.value.makers if id(maker) not in done)
