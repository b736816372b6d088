"""Which weights are copied to the cache, ahead of the operation or in parts while it runs.

The order of decisions is that of Vela's scheduler: one operation after the other, by what the operation before leaves
of time and of the cache.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import plan
from .cost import SCALE_BYTES, Place, input_elements, op_cycles, passes
from .devices import Memory, Npu, up
from .steps import Step, Tensor

_SPLIT = 16
"""Weights are copied for multiples of so many output channels."""
_STARTUP_CYCLES = 1000
"""What may be waited for before the first operation."""
_UNLIMITED = 1 << 30


def buffer_weights(steps: Sequence[Step], npu: Npu) -> None:
    """Decide for each step."""
    before: Step | None = None
    for step in steps:
        _propose_buffer(step, before, npu)
        before = step


def encoded_weights(step: Step, npu: Npu) -> tuple[int, int]:
    """Bytes of the weights as they are stored, and of their biases and scales.

    Bytes for each, as measured: 0.896 if the order in which they are stored leaves no gaps that zeros fill, else more.
    """
    op = step.op
    cut = plan(op, npu)
    deep, convolves = op.input[3], op.kind == "conv"
    grain = 8 if npu.shared or cut.part_kernel else 32
    even = deep % grain == 0
    if cut.part_kernel:
        per_weight = 1.089 if 1 in op.window else 1.02 if even else 1.055
    elif convolves and even and op.output[3] % cut.micro[2] == 0:
        per_weight = 0.896
    else:
        per_weight = 1.01
    return up(int(step.weights * per_weight) + 16, 16), SCALE_BYTES * up(op.output[3], 16)


def _home(tensor: Tensor, npu: Npu) -> Place:
    """Where a tensor lies before the cache is filled."""
    return Place(npu.constants if tensor.interface == "constant" else npu.tensors, tensor.bricks)


def copied_cycles(size: float, source: Memory, target: Memory) -> int:
    """Cycles to copy between memories."""
    return max(int(size / source.copied) + source.read_latency, int(size / target.write) + target.write_latency)


def read_cycles(size: float, rate: float, memory: Memory) -> int:
    return int(size / rate) + memory.read_latency


def slice_cycles(step: Step, depth: int, npu: Npu, *, staged: bool, first: bool = True, last: bool = True) -> int:
    """Cycles for so many output channels, before the cache is filled; `staged`: with the weights in it; `first`,
    `last`: as those of `op_cycles`."""
    op = step.op if depth == step.op.output[3] else step.of_depth(depth)
    target = Place(npu.tensors, True) if step.chained else _home(step.writes, npu)
    weights = None if not step.weights else npu.cache if staged else npu.constants
    return op_cycles(op, npu, _home(step.reads[0], npu), target, weights, first=first, last=last)


@dataclass(frozen=True)
class _Buffers:
    """Weights in parts, each copied while the one before is used."""

    slices: tuple[int, ...]
    """Output channels where they are cut."""
    sizes: tuple[int, ...]
    """Bytes of each part."""
    bytes: int
    """That both buffers, or the only one, take."""
    double: bool

    @property
    def first(self) -> int:
        """Bytes of the buffer of the first part."""
        return max(self.sizes[::2]) if self.double else self.bytes


def _propose_buffer(step: Step, before: Step | None, npu: Npu) -> None:
    """Copy weights to the cache for this operation, if that is no slower."""
    limit = npu.cache_bytes if not npu.shared else _UNLIMITED
    limit -= sum(tensor.bytes for tensor in step.reads if tensor.staged)
    depth = step.op.output[3]
    run = slice_cycles(step, depth, npu, staged=False)
    step.slack_cycles, step.slack_bytes = float(run), limit
    if not step.weights:
        return
    slack = before.slack_cycles if before is not None else 0.0
    slack_bytes = before.slack_bytes if before is not None else limit
    fetches = passes(step.op, npu)
    unmoved, transfer = unmoved_cycles(step, npu), copied_cycles(step.stored_bytes, npu.constants, npu.cache)
    smallest = int(transfer * min(depth, _SPLIT) / depth)
    at_start = before is None and fetches > 1 and (smallest < unmoved / 10 or smallest <= _STARTUP_CYCLES)
    slices = _slices(step, slack, limit, npu, at_start=at_start, follows=before is not None)
    buffers = _buffers(slices, step.stored_bytes, limit) if slices is not None else None
    if buffers is None:
        return
    ahead = before is not None and buffers.first < slack_bytes
    usable = slack if ahead else float(_STARTUP_CYCLES) if at_start else 0.0
    taken = _taken(step, buffers, usable, npu)
    reading = taken.input_cycles
    if not npu.shared and step.reads[0].interface != "input":
        input_bytes = math.prod(step.op.input) * step.op.input_bits // 8
        if input_bytes + buffers.bytes <= limit:
            reading = read_cycles(taken.input_bytes, npu.cache.read, npu.cache)
        elif input_bytes < slack_bytes and _prefers_input(step, taken, run, npu):
            return
    new = max(taken.run + taken.waits, taken.weight_cycles, reading)
    parts = len(buffers.sizes)
    if run > unmoved:
        if taken.waits / parts < _STARTUP_CYCLES:
            new -= int(taken.waits)
        if parts > 1 and taken.run + taken.waits == new and at_start:
            new -= parts * (_STARTUP_CYCLES // 2)
    before_that = max(run, unmoved, reading)
    if before_that < new or (fetches == 1 and transfer + taken.weight_cycles > before_that):
        return
    step.buffered, step.buffer_bytes, step.first_bytes = True, buffers.bytes, buffers.sizes[0]
    step.ahead_bytes = buffers.sizes[0] if ahead else 0
    step.slack_cycles = float(taken.last)
    step.slack_bytes = limit - (buffers.sizes[-1] if buffers.double else buffers.bytes)


def unmoved_cycles(step: Step, npu: Npu) -> int:
    """To read all weights where they lie, as often as the operation does."""
    return read_cycles(step.stored_bytes, npu.constants.weights, npu.constants) * passes(step.op, npu)


def _prefers_input(step: Step, taken: _Taken, run: int, npu: Npu) -> bool:
    """Whether the cache is better used for the input, which it cannot hold beside the weights."""
    elements = input_elements(step.op, npu, step.reads[0].bricks)
    cached = read_cycles(elements * step.op.input_bits / 8, npu.cache.read, npu.cache)
    by_input = max(run, unmoved_cycles(step, npu), cached)
    by_weights = max(taken.run + taken.waits, taken.weight_cycles, taken.input_cycles)
    return by_input < by_weights and by_input < taken.input_cycles


def _slices(step: Step, slack: float, limit: int, npu: Npu, *, at_start: bool, follows: bool) -> tuple[int, ...] | None:
    """Output channels where weights are cut if copying them promises something, else None."""
    depth, fetches, whole = step.op.output[3], passes(step.op, npu), step.stored_bytes
    transfer, unmoved = copied_cycles(whole, npu.constants, npu.cache), unmoved_cycles(step, npu)
    moved = read_cycles(whole, npu.cache.weights, npu.cache) * fetches
    if moved >= unmoved:
        return None
    run = slice_cycles(step, depth, npu, staged=False)
    visible = max(transfer - slack, 0)
    if step.op.permuted:  # its channels end up elsewhere: all at once
        hidden = visible < transfer / 20 or visible < _STARTUP_CYCLES or at_start
        faster = moved + visible < unmoved or run <= unmoved
        return (0, depth) if whole <= limit and hidden and faster else None
    block = plan(step.op, npu).block[2]
    smallest = int(transfer * min(depth, _SPLIT) / depth)
    hides = follows and smallest < slack and fetches > 1
    if not (at_start or moved + visible < unmoved or depth // block > 2 or hides):
        return None
    return _sliced(step, npu, transfer, slack, limit // 2, run > unmoved, block)


def _buffers(slices: tuple[int, ...], whole: int, limit: int) -> _Buffers | None:
    """Two buffers if they fit, else one; None if that does not fit either."""
    depth = slices[-1]
    sizes = tuple(-(-whole * (b - a) // depth) for a, b in itertools.pairwise(slices))
    both = max(sizes[::2]) + max(sizes[1::2], default=0)
    if len(sizes) > 1 and both <= limit:
        return _Buffers(slices, sizes, both, double=True)
    return _Buffers(slices, sizes, max(sizes), double=False) if max(sizes) <= limit else None


def _sliced(
    step: Step, npu: Npu, transfer: int, slack: float, half: int, dominated: bool, block: int
) -> tuple[int, ...] | None:
    """Output channels at which weights are cut, so that copying one part hides behind the part before; None: do not."""
    depth, whole = step.op.output[3], step.stored_bytes
    least = min(_SPLIT / depth, 1.0)
    share = min(slack / transfer, 1.0)
    aligned = math.floor(share / least) * least
    ahead = 1.0 if 1.0 - aligned < least / 2 else share
    if dominated and 0.5 < ahead < 1.0:
        ahead = min(max(up(int(depth * 0.5), _SPLIT) / depth, 0.5), 1.0)
    ahead = min(max(ahead, least), min(half / whole, 1.0))
    if ahead >= 1.0:
        return 0, depth
    first = max(int(depth * ahead) // _SPLIT * _SPLIT, _SPLIT)
    if first >= depth:
        return 0, depth
    run = slice_cycles(step, first, npu, staged=True, last=False)
    part = up(max(int(depth * run / transfer), _SPLIT), block)
    if part / depth * whole > half:
        part = int(half / whole * depth)
    while True:
        grain = block if part > block else _SPLIT
        part = max(part // grain * grain, _SPLIT)
        slices = (0, *range(first, depth, part), depth)
        largest = max(b - a for a, b in itertools.pairwise(slices)) * whole / depth
        if largest <= half or (first == _SPLIT and part == _SPLIT):
            break
        if part > first:
            part = up(part // 2, _SPLIT)
        else:
            first = up(first // 2, _SPLIT)
    if len(slices) > 3 and part / up(part, block) < 0.3 and dominated:
        return None
    return slices


@dataclass(frozen=True)
class _Taken:
    """What all parts of an operation take."""

    run: int
    """Cycles."""
    waits: float
    """Cycles that weights are waited for."""
    input_bytes: float
    input_cycles: int
    """To read those where tensors lie."""
    weight_cycles: int
    """To read the weights from the cache."""
    last: int
    """Cycles of the last part."""


def _taken(step: Step, buffers: _Buffers, slack: float, npu: Npu) -> _Taken:
    """`slack`: cycles before the first part in which it can be copied."""
    run = last = fetches = 0
    waits = input_bytes = weight_bytes = 0.0
    for (start, end), size in zip(itertools.pairwise(buffers.slices), buffers.sizes, strict=True):
        part = step.of_depth(end - start)
        times = passes(part, npu)
        input_bytes += input_elements(part, npu, step.reads[0].bricks) * part.input_bits / 8
        weight_bytes += size * times
        fetches += times
        waits += max(copied_cycles(size, npu.constants, npu.cache) - slack, 0.0)
        ends = {"first": start == 0, "last": end == buffers.slices[-1]}
        last = slice_cycles(step, end - start, npu, staged=True, **ends)
        run += last
        slack = float(last) if buffers.double else 0.0
    home = _home(step.reads[0], npu).memory
    input_cycles = read_cycles(input_bytes, home.read, home)
    weight_cycles = int(weight_bytes / fetches / npu.cache.weights + npu.cache.read_latency) * fetches
    return _Taken(run, waits, input_bytes, input_cycles, weight_cycles, last)
