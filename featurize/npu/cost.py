"""Cycles and bytes of one operation on its own."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from .blocks import SUBKERNEL, Plan, plan
from .devices import Block, Memory, Npu, TensorOp, up

_SCALE_BYTES = 10
"""A bias and a scale for each output channel."""


@dataclass(frozen=True)
class Cost:
    """What operations take."""

    cycles: float = 0.0
    compute: float = 0.0
    """Cycles if memory were never waited for."""
    array: float = 0.0
    """Cycles of the multipliers alone."""
    tensor_bytes: float = 0.0
    """To and from where tensors lie that are not cached, bursts counted in full."""
    cache_bytes: float = 0.0
    constant_bytes: float = 0.0
    macs: float = 0.0
    """Multiply-accumulates as Vela counts them: those of poolings too."""

    def times(self, number: int) -> Cost:
        """What so many take."""
        return self if number == 1 else Cost(*(number * value for value in self._values()))

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(self._values(), other._values(), strict=True)))

    def _values(self) -> tuple[float, ...]:
        tensors = self.tensor_bytes, self.cache_bytes, self.constant_bytes
        return self.cycles, self.compute, self.array, *tensors, self.macs


@functools.lru_cache(maxsize=4096)
def cost(op: TensorOp, npu: Npu) -> Cost:
    """The longest of the cycles of the NPU and of each memory."""
    cut = plan(op, npu)
    source, target = (npu.cache if cached else npu.tensors for cached in (op.input_cached, op.output_cached))
    block = _within(cut.block, op.output)
    if op.kind == "elements":
        array = times = 0.0
        compute = (op.element_cycles or npu.output_cycles) * math.prod(op.output)
        fetches, read = 0, _read(op, cut.block, math.prod(op.input) * op.inputs, source)
    else:
        fetches = passes(op, npu)
        area = math.prod(min(a, b) for a, b in zip(cut.input_block[:2], op.input[1:3], strict=True))
        parts = math.prod(-(-size // SUBKERNEL) for size in op.window)
        deep = 1 if op.kind in ("depthwise", "pool") else -(-op.output[3] // block[2])
        channels = up(op.input[3], 16 if op.input_bricks else 1)
        read = _read(op, cut.input_block, area * channels * parts * fetches * deep, source)
        array, times = _array_cycles(op, cut, npu), _blocks_of_outputs(op, cut, block)
        compute = _compute(op, cut, npu, array, times)
    channels = up(op.output[3], 16 if op.output_bricks else 1)
    written = _write(op, cut.block, math.prod(op.output[:3]) * channels, target)
    weights = float(op.weight_bytes) * fetches
    scales = float(_SCALE_BYTES * op.output[3] * fetches) if op.weight_bytes else 0.0
    tensors = (0.0 if op.input_cached else read) + (0.0 if op.output_cached else written)
    cache = read + written - tensors
    constants = weights + scales
    if op.weights_cached:
        cache += weights + op.weight_bytes
        constants = op.weight_bytes + scales
    home = npu.cache if op.weights_cached else npu.constants
    cycles = max(
        compute,
        read / source.read,
        written / target.write,
        weights / home.weights,
        scales / npu.constants.scales,
        (tensors + (constants if npu.tensors == npu.constants else 0.0)) / npu.tensors.bytes_per_cycle,
        cache / npu.cache.bytes_per_cycle,
        constants / npu.constants.bytes_per_cycle,
    )
    return Cost(cycles, compute, array * times, tensors, cache, constants, _macs(op, npu))


def passes(op: TensorOp, npu: Npu) -> int:
    """Blocks over the output's area: how often all weights are read."""
    block = _within(plan(op, npu).block, op.output)
    return op.output[0] * -(-op.output[1] // block[0]) * -(-op.output[2] // block[1])


def _within(block: Block, shape: tuple[int, ...]) -> Block:
    high, wide, deep = (min(a, b) for a, b in zip(block, shape[1:], strict=True))
    return high, wide, deep


def _blocks_of_outputs(op: TensorOp, cut: Plan, block: Block) -> float:
    """In micro-blocks, so that the last one counts by what it holds."""
    whole = math.prod(-(-n // step) for n, step in zip(op.output[1:], cut.micro, strict=True))
    return op.output[0] * whole / math.prod(-(-n // step) for n, step in zip(block, cut.micro, strict=True))


def _compute(op: TensorOp, cut: Plan, npu: Npu, array: float, times: float) -> float:
    """Cycles of the NPU: its multipliers, its outputs or its commands, and the ends, where nothing overlaps."""
    source, target = (npu.cache if cached else npu.tensors for cached in (op.input_cached, op.output_cached))
    block, inputs = _within(cut.block, op.output), _within(cut.input_block, op.input)
    outputs = float(math.ceil(npu.output_cycles * math.prod(block)))
    if op.weight_bytes:
        home = npu.cache if op.weights_cached else npu.constants
        outputs = max(outputs, _SCALE_BYTES * block[2] * home.read_latency / 256)
    taken = source.read_latency + _read(op, cut.input_block, math.prod(inputs), source) / source.bytes_per_cycle
    given = target.write_latency + _write(op, cut.block, math.prod(block), target) / target.bytes_per_cycle
    waiting = taken + given if npu.shared else abs(given - taken) if times > 1 else 0.0
    command = (waiting + array + outputs) / 4
    return max(array, outputs, command) * times + min(max(array, command), max(outputs, command)) + taken + given


def _array_cycles(op: TensorOp, cut: Plan, npu: Npu) -> float:
    """Cycles of the multipliers for one block."""
    high, wide, deep = (-(-n // step) for n, step in zip(_within(cut.block, op.output), cut.micro, strict=True))
    area = high * wide
    channels = min(cut.input_block[2], op.input[3])
    weights = 4 * cut.micro[2]  # to decode those of one step
    total = 0.0
    for left in range(0, op.window[1], SUBKERNEL):
        for top in range(0, op.window[0], SUBKERNEL):
            elements = min(op.window[0] - top, SUBKERNEL) * min(op.window[1] - left, SUBKERNEL)
            groups = 1
            if op.kind == "pool":
                steps, each = 1, max(4, elements) * area * (op.input_bits // 2)
            elif op.kind == "depthwise":
                steps, each = -(-elements // 4), max(weights, 4 * area * (op.input_bits // 8))
            elif cut.part_kernel:
                steps, each = -(-elements // (2 if op.input_bits == 16 else 4)), max(weights, 4 * area)
                groups = -(-channels // 8)
            elif npu.shared:
                steps, each = elements, max(weights, 4 * area)
            else:
                steps, each = elements, max(weights, channels // 8 * area) * (op.input_bits // 8)
            cycles = each * steps * deep * groups / (2 if op.is_sparse(npu) else 1)
            if area == 1:  # a step waits for the one before it
                cycles += 2 * (steps if deep == 1 else (steps - 1) * deep) * groups
            total += cycles
    if op.kind in ("conv", "product", "sum"):
        total *= -(-op.input[3] // max(channels, 1))
    return total


def _macs(op: TensorOp, npu: Npu) -> float:
    if op.kind == "elements":
        return 0.0
    outputs = float(math.prod(op.output) * op.window[0] * op.window[1])
    channels = op.input[3] if op.kind in ("conv", "product", "sum") else 1
    return outputs * channels / (2 if op.is_sparse(npu) else 1)


def _read(op: TensorOp, block: Block, elements: int, memory: Memory) -> float:
    """Bytes read for so many elements, in runs of what a block has in a row."""
    bits = op.input_bits
    if op.input_bricks:
        run = 16 * bits * block[1]
    elif op.input[3] * bits // 8 == block[2]:
        run = bits * block[1] * block[2]
    else:
        run = bits * block[2]
    return _in_bursts(elements * bits / 8, run, memory)


def _write(op: TensorOp, block: Block, elements: int, memory: Memory) -> float:
    bits = op.output_bits
    if op.output_bricks:
        run = 16 * bits * block[1]
    elif block[2] <= 16 and op.output[3] * bits // 8 == block[2]:
        run = bits * block[1] * block[2]
    else:
        run = min(512, 16 * bits, block[2] * bits)
    return _in_bursts(elements * bits / 8, run, memory)


def _in_bursts(size: float, run_bits: int, memory: Memory) -> float:
    """Bytes with bursts counted in full: a run may be shorter than one."""
    return size * memory.burst / max(min(memory.burst, run_bits // 8), 1)
