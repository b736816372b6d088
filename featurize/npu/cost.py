"""Cycles of one operation, for a place of each tensor and of the weights."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

from .blocks import SUBKERNEL, Plan, plan
from .devices import Block, Memory, Npu, Shape, TensorOp, up

SCALE_BYTES = 10
"""A bias and a scale for each output channel."""


@dataclass(frozen=True)
class Place:
    """Where a tensor lies, and how."""

    memory: Memory
    bricks: bool = False
    """In bricks of 16 channels; else channels last."""


def macs(op: TensorOp, npu: Npu) -> float:
    """Multiply-accumulates as Vela counts them: those of poolings too."""
    if op.kind in ("elements", "resize", "transpose"):
        return 0.0
    if op.kind == "matmul":
        return float(math.prod(op.input) * (op.second or op.input)[2])
    outputs = float(math.prod(op.output) * op.window[0] * op.window[1])
    channels = op.input[3] if op.kind in ("conv", "product", "sum") else 1
    return outputs * channels / (2 if op.is_sparse(npu) else 1)


@functools.lru_cache(maxsize=16384)
def op_cycles(
    op: TensorOp,
    npu: Npu,
    source: Place,
    target: Place,
    constants: Memory | None = None,
    *,
    first: bool = True,
    last: bool = True,
) -> int:
    """Cycles of the NPU: its multipliers, its outputs or its commands, and the ends, where nothing overlaps.

    `constants`: where weights are read from, None without; `first`, `last`: whether nothing before or after it belongs
    to the same operation, and so overlaps.
    """
    if op.kind == "transpose":
        size = math.prod(op.input) * op.input_bits / 8
        taken = int(in_bursts(size, _transposed_run(op), source) / source.memory.bytes_per_cycle)
        whole = op.input[3] * op.input_bits == 64  # rows of 8 bytes follow each other
        run = _transposed_run(op)
        given = int(in_bursts(size, run if whole else min(128, run), target) / target.memory.bytes_per_cycle)
        return max(taken + source.memory.read_latency, given + target.memory.write_latency)
    if op.kind == "matmul":
        return _matmul_cycles(op, npu, source, target)
    return _cycles_of(op, plan(op, npu), npu, source, target, constants, first, last)


def _cycles_of(
    op: TensorOp,
    cut: Plan,
    npu: Npu,
    source: Place,
    target: Place,
    constants: Memory | None,
    first: bool = True,
    last: bool = True,
) -> int:
    taken, given = _ends(op, cut, source, target)
    if op.kind in ("elements", "resize"):
        elements = math.prod(stored(op.output, target))
        outputs = math.ceil(op.output_cycles * elements)
        command = ((taken + given) / math.prod(cut.block) + op.output_cycles) / 4
        return max(math.ceil(command * elements), outputs)
    block = _within(cut.block, op.output, op.permuted)
    array = _array_cycles(op, cut, npu)
    outputs_of_block = float(math.ceil(op.output_cycles * math.prod(block)))
    if constants is not None:
        outputs_of_block = max(outputs_of_block, SCALE_BYTES * block[2] * constants.read_latency / 256)
    times = _blocks_of_outputs(op, cut)
    waiting = 0.0 if times <= 1 else taken + given if npu.shared else abs(given - taken)
    command = (waiting + array + outputs_of_block) / 4
    ends = taken if first else 0.0
    if last:
        ends += min(max(array, command), max(outputs_of_block, command)) + given
    return int(max(array, outputs_of_block, command) * times + ends)


def _matmul_cycles(op: TensorOp, npu: Npu, source: Place, target: Place) -> int:
    """For each column a product element by element, then the sum of it, both from memory to memory."""
    scratch = Place(source.memory)
    products = TensorOp("elements", op.input, op.input, second=op.input, output_bits=32, output_cycles=0.75)
    sums = TensorOp("sum", op.input, (*op.input[:3], 1), output_cycles=0.5)
    cut = plan(replace(sums, input_bits=32), npu)
    columns = (op.second or op.input)[2]
    return (op_cycles(products, npu, source, scratch) + _cycles_of(sums, cut, npu, scratch, target, None)) * columns


def _transposed_run(op: TensorOp) -> int:
    return up(op.input[3], 8) * op.input_bits * (op.input[2] if op.input[3] * op.input_bits == 64 else 1)


def _within(block: Block, shape: Shape, permuted: str = "") -> Block:
    high, wide, deep = (min(a, b) for a, b in zip(block, shape[1:], strict=True))
    return high, wide, deep


def _blocks_of_outputs(op: TensorOp, cut: Plan) -> float:
    """In micro-blocks, so that the last one counts by what it holds."""
    block = _within(cut.block, op.output)
    whole = math.prod(-(-n // step) for n, step in zip(op.output[1:], cut.micro, strict=True))
    return op.output[0] * whole / math.prod(-(-n // step) for n, step in zip(block, cut.micro, strict=True))


def _array_cycles(op: TensorOp, cut: Plan, npu: Npu) -> float:
    """Cycles of the multipliers for one block."""
    if op.kind in ("elements", "resize"):
        return 0.0
    high, wide, deep = (-(-n // step) for n, step in zip(_within(cut.block, op.output), cut.micro, strict=True))
    area = high * wide
    channels = min(cut.input_block[2], op.input[3])
    weights = 4 * cut.micro[2]  # to decode those of one step
    total = 0.0
    for left in range(0, op.window[1], SUBKERNEL):
        for top in range(0, op.window[0], SUBKERNEL):
            elements = min(op.window[0] - top, SUBKERNEL) * min(op.window[1] - left, SUBKERNEL)
            groups = 1
            if op.kind in ("pool", "copy"):
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


def _ends(op: TensorOp, cut: Plan, source: Place, target: Place) -> tuple[float, float]:
    """Cycles to read the first inputs and to write the last outputs."""
    shapes = [op.input] if op.second is None else [op.input, op.second]
    taken = 0.0
    for shape in shapes:
        read = math.prod(_within(cut.input_block, shape)) * op.input_bits / 8
        size = in_bursts(read, read_run(shape, op.input_bits, cut.input_block, source), source)
        taken = max(taken, source.memory.read_latency + int(size / source.memory.bytes_per_cycle))
    written = math.prod(_within(cut.block, op.output)) * op.output_bits / 8
    size = in_bursts(written, write_run(op.output, op.output_bits, cut.block, target), target)
    return taken, target.memory.write_latency + int(size / target.memory.bytes_per_cycle)


def passes(op: TensorOp, npu: Npu) -> int:
    """Blocks over the output's area: how often all weights are read."""
    block = _within(plan(op, npu).block, op.output)
    return op.output[0] * -(-op.output[1] // block[0]) * -(-op.output[2] // block[1])


def input_elements(op: TensorOp, npu: Npu, bricks: bool) -> int:
    """Elements of the first input that are read, over and over for the blocks that need them."""
    if op.kind in ("elements", "resize", "transpose"):
        shape = op.output if npu.shared and op.kind == "elements" else op.input
        return 0 if math.prod(op.input) == 1 else math.prod(stored(shape, Place(npu.cache, bricks)))
    if op.kind == "matmul":
        return math.prod(op.input) * (op.second or op.input)[2]
    cut = plan(op, npu)
    area = math.prod(min(a, b) for a, b in zip(cut.input_block[:2], op.input[1:3], strict=True))
    parts = math.prod(-(-size // SUBKERNEL) for size in op.window)
    block = _within(cut.block, op.output)
    deep = 1 if op.keeps_channels else -(-op.output[3] // block[2])
    return area * up(op.input[3], 16 if bricks else 1) * parts * passes(op, npu) * deep


def stored(shape: Shape, place: Place) -> Shape:
    """The shape with what bricks are filled up with."""
    return (*shape[:3], up(shape[3], 16)) if place.bricks else shape


def read_run(shape: Shape, bits: int, block: Block, place: Place) -> int:
    """Bits that lie in a row of what a block reads."""
    if place.bricks:
        return bits * block[1] * block[2] if shape[2] * bits * 2 == block[2] else 16 * bits * block[1]
    return bits * block[1] * block[2] if shape[3] * bits // 8 == block[2] else bits * block[2]


def write_run(shape: Shape, bits: int, block: Block, place: Place) -> int:
    """Bits that lie in a row of what a block writes."""
    if place.bricks:
        return bits * block[1] * block[2] if shape[2] * bits * 2 == block[2] else 16 * bits * block[1]
    if block[2] <= 16 and shape[3] * bits // 8 == block[2]:
        return bits * block[1] * block[2]
    return min(512, 16 * bits, block[2] * bits)


def in_bursts(size: float, run_bits: int, place: Place) -> float:
    """Bytes with bursts counted in full: a run may be shorter than one."""
    burst = place.memory.burst
    return float(int(size * burst / max(min(burst, run_bits // 8), 1)))
