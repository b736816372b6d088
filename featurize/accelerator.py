"""Feature group `accelerator`: a program on whole tensors as an accelerator runs it, one operation after the other.

Products go to an array of multipliers that takes 16 input and 16 output channels at once, tensors lie in a scratchpad
from the operation that makes them to the last one that reads them, and an elementwise operation whose only input
nobody else reads is done while that input is written. All features are 0 for a function without tensor operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .function_view import FunctionView
from .nodes import Access, Loop, Node, product
from .op_classes import TENSOR_VIEWS

ARRAY = 16
"""Channels on each side of the array: 256 products a cycle."""
_ELEMENTS_PER_CYCLE = 8.0
"""What the element-wise unit takes."""
_BYTES_PER_CYCLE = 16.0
"""What moves to and from memory."""

FEATURES: dict[str, tuple[str, str]] = {
    "accelerator.steps": ("operations on tensors; views, constants and what is done along with another apart", "count"),
    "accelerator.steps_fused": ("element-wise operations done along with the one before", "count"),
    "accelerator.steps_array": ("steps with products that are added up: convolutions, matrix products", "count"),
    "accelerator.macs": ("multiply-accumulates", "count"),
    "accelerator.macs_log": ("log1p of accelerator.macs", "log count"),
    "accelerator.macs_window_log": ("log1p of those of convolutions with a window", "log count"),
    "accelerator.macs_pointwise_log": ("log1p of those of matrix products and windows of one element", "log count"),
    "accelerator.macs_depthwise_log": ("log1p of those of convolutions of each channel by itself", "log count"),
    "accelerator.macs_dynamic_log": ("log1p of those of two tensors neither of which is a constant", "log count"),
    "accelerator.macs_padded_log": ("log1p of them with channels rounded up to multiples of 16", "log count"),
    "accelerator.array_share": ("multiply-accumulates over those with channels rounded up", "share"),
    "accelerator.depthwise_share": ("share of the multiply-accumulates that are depthwise", "share"),
    "accelerator.array_cycles_log": ("log1p of cycles of a 16 x 16 array for all products", "log cycles"),
    "accelerator.cycles": (
        "cycles: for each step the slowest of array, element-wise unit (8 elements) and memory (16 bytes)",
        "cycles",
    ),
    "accelerator.cycles_log": ("log1p of accelerator.cycles", "log cycles"),
    "accelerator.utilization": ("multiply-accumulates over 256 times these cycles", "share"),
    "accelerator.cycles_largest": ("share of these cycles in the longest step", "share"),
    "accelerator.cycles_memory": ("share of these cycles in steps that wait for memory", "share"),
    "accelerator.cycles_elementwise": ("share of these cycles in steps of the element-wise unit", "share"),
    "accelerator.elements_log": ("log1p of the elements that element-wise steps write", "log count"),
    "accelerator.windows_log": ("log1p of the elements that pools and reductions read", "log count"),
    "accelerator.moved_log": ("log1p of the elements that steps without arithmetic write", "log count"),
    "accelerator.channels_out": ("output channels of array steps, mean weighted by cycles", "count"),
    "accelerator.channels_in": ("input channels of array steps, mean weighted by cycles", "count"),
    "accelerator.taps": ("window elements of array steps, mean weighted by cycles", "count"),
    "accelerator.positions_log": ("log1p of output positions of array steps, mean weighted by cycles", "log count"),
    "accelerator.weights": ("elements of constants that array steps read", "count"),
    "accelerator.weights_log": ("log1p of accelerator.weights", "log count"),
    "accelerator.weights_padded": ("accelerator.weights with output channels rounded up to multiples of 16", "count"),
    "accelerator.weights_padded_log": ("log1p of them with output channels rounded up to multiples of 16", "log count"),
    "accelerator.outputs": ("output channels of all array steps: one bias and one scale each", "count"),
    "accelerator.constant_bytes": ("bytes of all constants", "bytes"),
    "accelerator.constant_bytes_log": ("log1p of accelerator.constant_bytes", "log bytes"),
    "accelerator.peak_bytes": ("most bytes of tensors alive at once, with fused steps", "bytes"),
    "accelerator.peak_bytes_log": ("log1p of accelerator.peak_bytes", "log bytes"),
    "accelerator.interface_bytes": ("bytes of the tensors that come in and go out", "bytes"),
    "accelerator.peak_values": ("most tensors alive at once", "count"),
    "accelerator.step_bytes_max_log": ("log1p of the most bytes of the tensors of one step", "log bytes"),
    "accelerator.traffic": ("bytes that all steps read and write, constants apart", "bytes"),
    "accelerator.traffic_log": ("log1p of the bytes that all steps read and write, constants apart", "log bytes"),
    "accelerator.reuse_distance": ("steps between making and last reading a tensor, mean", "count"),
}  # fmt: skip


@dataclass
class _Step:
    """One operation on tensors, with what is done along with it."""

    node: Node
    reads: list[int]
    """Roots of the tensors it reads, constants apart."""
    writes: list[int]
    constants: list[int]
    macs: float = 0.0
    elements: float = 0.0
    """Written ones."""
    combined: float = 0.0
    """Read ones of a reduction."""
    has_arithmetic: bool = False
    channels_out: float = 1.0
    channels_in: float = 1.0
    taps: float = 1.0
    is_depthwise: bool = False

    @property
    def positions(self) -> float:
        return self.macs / (self.channels_out * self.channels_in * self.taps)

    @property
    def padded(self) -> float:
        """Multiply-accumulates with channels rounded up."""
        inputs = 1.0 if self.is_depthwise else _rounded(self.channels_in)
        return self.positions * self.taps * inputs * _rounded(self.channels_out)

    @property
    def array_cycles(self) -> float:
        return self.padded / (ARRAY if self.is_depthwise else ARRAY * ARRAY)


def _rounded(channels: float) -> float:
    return math.ceil(channels / ARRAY) * float(ARRAY)


def accelerator(view: FunctionView) -> dict[str, float]:
    """All features of `FEATURES`."""
    out = dict.fromkeys(FEATURES, 0.0)
    steps, n_fused = _steps(view)
    if not steps:
        return out
    size = _Sizes(view)
    array = [step for step in steps if step.macs]
    out["accelerator.steps"] = float(len(steps))
    out["accelerator.steps_fused"] = float(n_fused)
    out["accelerator.steps_array"] = float(len(array))
    _products(out, array)
    _cycles(out, steps, size)
    simple = [s for s in steps if not s.macs]
    out["accelerator.elements_log"] = math.log1p(sum(s.elements for s in simple if s.has_arithmetic and not s.combined))
    out["accelerator.windows_log"] = math.log1p(sum(s.combined for s in simple))
    out["accelerator.moved_log"] = math.log1p(sum(s.elements for s in simple if not s.has_arithmetic))
    weights = [(s, sum(size.elements(v) for v in s.constants[:1])) for s in array]
    total = sum(n for _, n in weights)
    out["accelerator.weights"], out["accelerator.weights_log"] = total, math.log1p(total)
    padded = sum(n / s.channels_out * _rounded(s.channels_out) for s, n in weights)
    out["accelerator.weights_padded"], out["accelerator.weights_padded_log"] = padded, math.log1p(padded)
    out["accelerator.outputs"] = sum(s.channels_out for s in array)
    constants = {v for s in steps for v in s.constants}
    stored = sum(map(size.bytes, constants))
    out["accelerator.constant_bytes"], out["accelerator.constant_bytes_log"] = stored, math.log1p(stored)
    _memory(out, view, steps, size)
    return out


def _products(out: dict[str, float], array: Sequence[_Step]) -> None:
    by_kind: Counter[str] = Counter()
    for step in array:
        kind = "depthwise" if step.is_depthwise else "window" if step.taps > 1 else "pointwise"
        by_kind[kind] += step.macs  # type: ignore[assignment]
        if not step.constants:
            by_kind["dynamic"] += step.macs  # type: ignore[assignment]
    macs, padded = sum(s.macs for s in array), sum(s.padded for s in array)
    cycles = sum(s.array_cycles for s in array)
    out["accelerator.macs"], out["accelerator.macs_log"] = macs, math.log1p(macs)
    for kind in ("window", "pointwise", "depthwise", "dynamic"):
        out[f"accelerator.macs_{kind}_log"] = math.log1p(by_kind[kind])
    out["accelerator.macs_padded_log"] = math.log1p(padded)
    out["accelerator.array_cycles_log"] = math.log1p(cycles)
    if macs:
        out["accelerator.array_share"] = macs / padded
        out["accelerator.depthwise_share"] = by_kind["depthwise"] / macs
        for name, values in (
            ("channels_out", [s.channels_out for s in array]),
            ("channels_in", [s.channels_in for s in array]),
            ("taps", [s.taps for s in array]),
        ):
            weighted = sum(v * s.array_cycles for v, s in zip(values, array, strict=True))
            out[f"accelerator.{name}"] = weighted / cycles
        positions = sum(s.positions * s.array_cycles for s in array) / cycles
        out["accelerator.positions_log"] = math.log1p(positions)


def _cycles(out: dict[str, float], steps: Sequence[_Step], size: _Sizes) -> None:
    total = memory = elementwise = largest = 0.0
    for step in steps:
        moved = sum(size.bytes(v) for v in (*step.reads, *step.writes, *step.constants)) / _BYTES_PER_CYCLE
        units = max(step.elements if not step.macs else 0.0, step.combined) / _ELEMENTS_PER_CYCLE
        cycles = max(step.array_cycles, units, moved)
        total += cycles
        largest = max(largest, cycles)
        if cycles == moved:
            memory += cycles
        elif cycles == units:
            elementwise += cycles
    out["accelerator.cycles"], out["accelerator.cycles_log"] = total, math.log1p(total)
    if total:
        out["accelerator.utilization"] = out["accelerator.macs"] / (ARRAY * ARRAY * total)
        out["accelerator.cycles_largest"] = largest / total
        out["accelerator.cycles_memory"] = memory / total
        out["accelerator.cycles_elementwise"] = elementwise / total


def _memory(out: dict[str, float], view: FunctionView, steps: Sequence[_Step], size: _Sizes) -> None:
    """Arguments live from the start, results to the end; the others from where they are made to their last reader."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for position, step in enumerate(steps):
        for value in step.reads:
            first.setdefault(value, 0)  # an argument
            last[value] = position
        for value in step.writes:
            first.setdefault(value, position)
            last.setdefault(value, position)
    for value in size.results():
        if value in first:
            last[value] = len(steps) - 1
    change = [0.0] * (len(steps) + 1)
    number = [0] * (len(steps) + 1)
    for value, start in first.items():
        change[start] += size.bytes(value)
        change[last[value] + 1] -= size.bytes(value)
        number[start] += 1
        number[last[value] + 1] -= 1
    peak = most = alive = 0.0
    live = 0
    for position in range(len(steps)):
        alive += change[position]
        live += number[position]
        peak, most = max(peak, alive), max(most, live)
    made = {v for s in steps for v in s.writes}
    outside = {v for s in steps for v in s.reads if v not in made} | {v for v in size.results() if v in made}
    out["accelerator.interface_bytes"] = sum(map(size.bytes, outside))
    touched = [sum(map(size.bytes, (*s.reads, *s.writes))) for s in steps]
    out["accelerator.peak_bytes"], out["accelerator.peak_bytes_log"] = peak, math.log1p(peak)
    out["accelerator.peak_values"] = float(most)
    out["accelerator.step_bytes_max_log"] = math.log1p(max(touched))
    out["accelerator.traffic"], out["accelerator.traffic_log"] = sum(touched), math.log1p(sum(touched))
    out["accelerator.reuse_distance"] = sum(last[v] - first[v] for v in made) / len(made) if made else 0.0


class _Sizes:
    """Elements and bytes of tensors."""

    def __init__(self, view: FunctionView) -> None:
        self.view = view

    def elements(self, value: int) -> float:
        shape = self.view.type_of(value).shape
        return float(product(shape)) if shape else 1.0

    def bytes(self, value: int) -> float:
        return self.elements(value) * (self.view.type_of(value).element_bits or 32) / 8

    def results(self) -> list[int]:
        """Roots of what the function returns."""
        returns = [n for n in self.view.nodes if n.name.endswith(".return")]
        return [_root(self.view, v) for v in returns[-1].operands] if returns else []


def _root(view: FunctionView, value: int) -> int:
    """The tensor behind views, and behind results that are written in place."""
    while True:
        node = view.defining.get(value)
        if value in view.tied:
            value = view.tied[value]
        elif node is not None and node.name in TENSOR_VIEWS and node.operands:
            value = node.operands[0]
        else:
            return value


def _steps(view: FunctionView) -> tuple[list[_Step], int]:
    """The steps in order, and how many operations are done along with the one before."""
    if not any(view.type_of(v).kind == "tensor" for n in view.nodes for v in n.results):
        return [], 0
    readers: Counter[int] = Counter()
    nests: list[tuple[Node, list[Node]]] = []
    for node in view.nodes:
        if node.virtual:
            if nests:
                nests[-1][1].append(node)
            continue
        nests.append((node, []))
        if node.name not in TENSOR_VIEWS:  # what reads a view reads what is behind it
            readers.update({_root(view, v) for v in node.operands})
    steps: list[_Step] = []
    making: dict[int, _Step] = {}
    n_fused = 0
    for node, inner in nests:
        made = [v for v in node.results if view.type_of(v).kind == "tensor"]
        if not made or node.cls == "const" or node.name in TENSOR_VIEWS or not node.operands:
            continue
        tensors = [v for v in node.operands if view.type_of(v).kind == "tensor"]
        fixed = [v for v in tensors if _is_constant(view, v)]
        constants = [v for v in fixed if product(view.type_of(v).shape or ()) > 1]  # zero points and scales apart
        reads = list(dict.fromkeys(_root(view, v) for v in tensors if v not in fixed))
        accesses = [n.access for n in inner if n.access is not None]
        before = making.get(reads[0]) if len(reads) == 1 else None
        if before is not None and readers[reads[0]] == 1 and len(made) == 1 and _is_elementwise(accesses, fixed):
            before.writes[before.writes.index(reads[0])] = made[0]
            making[made[0]] = before
            n_fused += 1
            continue
        step = _Step(node, reads, made, constants)
        _count(step, view, inner)
        steps.append(step)
        making.update(dict.fromkeys(made, step))
    return steps, n_fused


def _is_constant(view: FunctionView, value: int) -> bool:
    node = view.defining.get(_root(view, value))
    return node is not None and (node.cls == "const" or not node.operands)


def _is_elementwise(accesses: Sequence[Access], fixed: Sequence[int]) -> bool:
    """Whether each element of the result comes from the element at the same place."""
    places = [
        [i for i, extent in zip(a.indices, a.shape, strict=False) if extent != 1]
        for a in accesses
        if a.root not in fixed
    ]
    return all(place == places[0] for place in places)


def _count(step: _Step, view: FunctionView, inner: Sequence[Node]) -> None:
    for node in inner:
        if node.access is not None:
            if node.access.is_store:
                step.elements = max(step.elements, node.execs)
            continue
        step.has_arithmetic = True
        reductions = [loop for loop in _around(node.loop) if loop.reduction]
        if not reductions:
            continue
        if node.cls in ("fmul", "imul", "fma"):
            step.macs += node.execs
            _channels(step, view, [n.access for n in inner if n.loop is node.loop and n.access is not None], reductions)
        else:
            step.combined = max(step.combined, node.execs)


def _around(loop: Loop | None) -> list[Loop]:
    found = []
    while loop is not None:
        found.append(loop)
        loop = loop.parent
    return found


def _channels(step: _Step, view: FunctionView, accesses: Sequence[Access], reductions: Sequence[Loop]) -> None:
    """Channels stand in the last subscript: loops of the result's are output channels, reductions of an input's are
    input channels; what is left of the reductions is the window."""
    out = next((a for a in accesses if a.is_store), None)
    loads = [a for a in accesses if not a.is_store and (out is None or a.root != out.root)]
    if out is None or not loads:
        return
    last = _loops(view, out, -1)
    inputs = [loop for loop in _loops(view, loads[0], -1) if loop.reduction]
    step.channels_out = max(1.0, math.prod(loop.trip for loop in last))
    step.channels_in = max(1.0, math.prod(loop.trip for loop in inputs))
    step.taps = max(1.0, math.prod(loop.trip for loop in reductions) / step.channels_in)
    step.is_depthwise = not inputs and any(loop in last for loop in _loops(view, loads[0], -1))


def _loops(view: FunctionView, access: Access, position: int) -> list[Loop]:
    if not access.indices:
        return []
    return [view.loop_of_iv[iv] for iv in access.indices[position].variables() if iv in view.loop_of_iv]
