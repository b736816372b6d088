"""Which blocks an operation is cut into: of those whose inputs and sums fit, the one that fetches least."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .devices import Block, Npu, TensorOp, up

Ints = npt.NDArray[np.int64]
SUBKERNEL = 8
"""A window is walked in parts of at most 8 x 8."""
_SPLIT = 16
"""Blocks of more channels than that have a multiple of it."""
_BANK_BYTES = 1024
_BANKS = 20
"""Of the shared memory, for two blocks of inputs and two of sums."""


@dataclass(frozen=True)
class Plan:
    """How an operation is cut."""

    block: Block
    input_block: Block
    micro: Block
    """Outputs made at a time."""
    part_kernel: bool
    """A window's elements are taken four at a time with few channels, rather than many channels of one."""


@functools.lru_cache(maxsize=4096)
def plan(op: TensorOp, npu: Npu) -> Plan:
    """The blocks of one operation."""
    part_kernel = op.kind == "conv" and _prefers_part_kernel(op, npu)
    micro = _micro_block(op, npu, part_kernel)
    if op.kind in ("depthwise", "pool") and not npu.shared:
        block, input_block = _by_area(op, npu, micro)
    else:
        block, input_block = _by_fetches(op, npu, micro, _channels_at_once(op, npu, micro, part_kernel))
    return Plan(block, input_block, micro, part_kernel)


def _prefers_part_kernel(op: TensorOp, npu: Npu) -> bool:
    """Whichever way leaves less of the array idle."""
    depth, elements = op.input[3], op.window[0] * op.window[1]
    if npu.shared:
        at_once, step = (4, 32) if op.input_bits == 8 else (2, 16)
        part = depth / up(depth, 8) * elements / up(elements, at_once)
        return depth <= 8 or part >= depth / up(depth, step)
    rounded = elements // 5 * 5 + max(elements % 5, 2)
    return depth / up(depth, 16) * elements / rounded >= depth / up(depth, 64)


def _micro_block(op: TensorOp, npu: Npu, part_kernel: bool) -> Block:
    """The one with the least waste of those that can do the operation."""
    candidates = npu.micro_blocks
    if len(candidates) > 1 and op.kind != "elements":
        pointwise = op.kind in ("conv", "product") and op.window == (1, 1) and not part_kernel
        if op.kind in ("depthwise", "pool") and op.input_bits <= 8:
            candidates = candidates[:1]
        elif not (pointwise and op.input_bits == 16):
            candidates = candidates[1:]
    _, *extents = op.output
    return min(candidates, key=lambda u: math.prod(up(n, step) for n, step in zip(extents, u, strict=True)))


def _channels_at_once(op: TensorOp, npu: Npu, micro: Block, part_kernel: bool) -> int:
    """Input channels of a block, where they are not the output's."""
    if npu.shared:
        most = 16 if op.input_bits == 16 or part_kernel else 32
        return up(min(op.input[3], most), 4 if op.input_bits == 16 else 8)
    return 16 if part_kernel else 32 if micro[2] == 16 or op.input_bits == 32 else 64


def _sum_bytes(op: TensorOp, npu: Npu) -> int:
    """Of one sum."""
    if op.input_bits == 16 and op.kind != "pool":
        return 5 if npu.shared else 8
    return 4


def _reach(op: TensorOp) -> list[int]:
    """Extent of the part of the window that is walked at once."""
    return [min((size - 1) * step + 1, SUBKERNEL) for size, step in zip(op.window, op.dilation, strict=True)]


def _unit(op: TensorOp, npu: Npu, micro: Block, depth: int) -> Block:
    """What an input block of so many channels is rounded up to."""
    if npu.shared:
        return micro[0], micro[1], 8
    bits = depth * op.input_bits
    if bits > 256:
        height, width, bricks = 1, 1, 4
    elif bits > 128:
        height, width, bricks = 1, 2, 2
    else:
        height, width, bricks = (1, 4, 1) if micro == (1, 4, 8) else (2, 2, 1)
    return height, width, bricks * 128 // op.input_bits


def _least_depth(npu: Npu, micro: Block) -> int:
    return micro[2] if npu.shared else _SPLIT


@functools.lru_cache(maxsize=64)
def _blocks(micro: Block, largest: Block, most: int, least_depth: int) -> tuple[Ints, Ints, Ints]:
    """Heights, widths and depths of all blocks of at most `most` outputs, in the order in which they are tried."""
    depths = sorted({*range(least_depth, _SPLIT + 1, micro[2]), *range(_SPLIT, largest[2] + 1, micro[2])})
    found = [
        (height, width, depth)
        for depth in depths
        for height in range(micro[0], min(largest[0], most // up(depth, least_depth)) + 1, micro[0])
        for width in range(micro[1], min(largest[1], most // (up(depth, least_depth) * height)) + 1, micro[1])
    ]
    table = np.array(found, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _up(values: Ints, step: int) -> Ints:
    return -(-values // step) * step


def _by_fetches(op: TensorOp, npu: Npu, micro: Block, channels: int) -> tuple[Block, Block]:
    """Output and input block: the least bytes of inputs and weights are fetched for all blocks together."""
    least = _least_depth(npu, micro)
    heights, widths, depths = _blocks(micro, npu.largest_block, npu.sum_bytes // 2 // _sum_bytes(op, npu), least)
    _, high, wide, deep = op.output
    ends = [up(min(n, most), step) for n, most, step in zip(op.output[1:], npu.largest_block, micro, strict=True)]
    last = max(ends[2], least)
    tried = (heights <= ends[0]) & (widths <= ends[1]) & (depths <= last) & (depths >= min(last, _SPLIT))
    tried &= (depths % _SPLIT == 0) | (depths >= deep)
    heights, widths, depths = heights[tried], widths[tried], depths[tried]
    unit = _unit(op, npu, micro, channels)
    reach = _reach(op)
    in_heights = _up((heights - 1) * op.stride[0] + reach[0], unit[0])
    in_widths = _up((widths - 1) * op.stride[1] + reach[1], unit[1])
    in_depths = depths if op.keeps_channels else np.full_like(depths, channels)
    fits = _fits(op, npu, (heights, widths, depths), (in_heights, in_widths, in_depths), unit[2])
    if not fits.any():
        fits[0] = True
    heights, widths, depths, in_heights, in_widths, in_depths = (
        values[fits] for values in (heights, widths, depths, in_heights, in_widths, in_depths)
    )
    if op.kind in ("product", "elements"):
        fetched = 1.0 / (heights * widths * depths)
    else:
        parts = math.prod(-(-((k - 1) * d + 1) // SUBKERNEL) for k, d in zip(op.window, op.dilation, strict=True))
        fetched = in_heights * in_widths * float(op.input[3] * parts) * (high / heights) * (wide / widths)
        if not op.keeps_channels:
            fetched *= -(-deep // depths)
        if op.kind in ("conv", "depthwise"):
            times = -(-high // heights) * -(-wide // widths) * (1 if op.keeps_channels else deep)
            fetched += float(op.window[0] * op.window[1] * op.input[3]) * times
    holds_all = math.prod(op.input) < in_heights * in_widths * in_depths * 2.0
    best = _cheapest(np.where(holds_all, fetched / 2, fetched), op, (heights, widths), (in_heights, in_widths))
    return (
        (int(heights[best]), int(widths[best]), int(depths[best])),
        (int(in_heights[best]), int(in_widths[best]), int(in_depths[best])),
    )


def _fits(op: TensorOp, npu: Npu, blocks: tuple[Ints, Ints, Ints], inputs: tuple[Ints, Ints, Ints], unit: int) -> Ints:
    """Whether two blocks of inputs and two of sums fit, of each."""
    in_heights, in_widths, in_depths = inputs
    bytes_in = op.input_bits // 8
    if not npu.shared:
        if op.kind == "elements":
            return np.ones(len(in_heights), np.bool_)
        held = _up(np.minimum(in_depths, op.input[3]), unit)
        return in_heights * in_widths * held * bytes_in * 2 <= npu.input_bytes  # type: ignore[return-value]
    heights, widths, depths = blocks
    size = _sum_bytes(op, npu)
    in_bytes = in_heights * in_widths * _up(in_depths * bytes_in, 8)
    in_banks = _up(-(-in_bytes // _BANK_BYTES) * 2, 4)
    if op.kind == "elements":
        return in_banks * op.inputs <= _BANKS  # type: ignore[return-value]
    banks = -(-heights * widths * _up(depths, 8) * size // _BANK_BYTES) * 2
    return in_banks + _up(banks, 12 if size == 5 else 8) <= _BANKS  # type: ignore[return-value]


def _cheapest(
    fetched: npt.NDArray[np.float64], op: TensorOp, block: tuple[Ints, Ints], inputs: tuple[Ints, Ints]
) -> int:
    """The first of the cheapest; of small ones that are as cheap, the last that covers most of the input."""
    best = int(np.argmin(fetched))
    ties = np.flatnonzero((fetched == fetched[best]) & (block[0] <= 4) & (block[1] <= 4))
    if len(ties) < 2:
        return best
    cover = np.minimum(inputs[0][ties], op.input[1]) * np.minimum(inputs[1][ties], op.input[2])
    return int(ties[len(ties) - 1 - int(np.argmax(cover[::-1]))])


def _by_area(op: TensorOp, npu: Npu, micro: Block) -> tuple[Block, Block]:
    """Output and input block where each output channel has its own input channel: the most of the output, in its
    proportions, with room to read a row of the next block."""
    grain = micro[0] * micro[1] * _SPLIT
    sums, room_in = npu.sum_bytes // _sum_bytes(op, npu), npu.input_bytes // (op.input_bits // 8)
    height, width, depth = (up(n, step) for n, step in zip(op.output[1:], (*micro[:2], _SPLIT), strict=True))
    most = tuple(min(n, limit) for n, limit in zip((height, width, depth), npu.largest_block, strict=True))
    pointwise = op.window == (1, 1)
    area = width * depth if pointwise else height * width
    best, best_metric = (micro[0], micro[1], _SPLIT), math.inf
    for deep in range(_SPLIT, min(max(npu.macs, sums // grain), most[2]) + 1, _SPLIT):
        found = _largest(op, npu, micro, deep, (height, width), (most[0], most[1]), sums, room_in)
        if found is None:
            break
        unit = _unit(op, npu, micro, deep)[2]
        idle = (unit - (deep % unit or unit)) / unit
        cover = 1 + abs(1 - area / (found[1] * (found[2] if pointwise else found[0])))
        metric = cover * (1 + abs(1 - most[2] / deep) / 10) * (1 + idle / 10)
        if metric < best_metric:
            best, best_metric = found, metric
            if deep >= depth and found[1] >= width and found[0] >= height:
                break
    high, wide, deep = best
    while wide < width or high < height or deep < depth:
        row = math.prod(_needed(op, npu, micro, (micro[0], wide, deep)))
        if room_in - math.prod(_needed(op, npu, micro, (high, wide, deep))) >= row:
            break
        if high > micro[0]:
            high -= micro[0]
        elif deep > _SPLIT:
            deep -= _SPLIT
        elif wide > micro[1]:
            wide -= micro[1]
        else:
            break
    return (high, wide, deep), _needed(op, npu, micro, (high, wide, deep))


def _needed(op: TensorOp, npu: Npu, micro: Block, block: Block) -> Block:
    """The inputs of a block, each channel's own."""
    unit, reach = _unit(op, npu, micro, block[2]), _reach(op)
    high, wide = ((n - 1) * step + r for n, step, r in zip(block[:2], op.stride, reach, strict=True))
    return up(high, unit[0]), up(wide, unit[1]), up(block[2], unit[2])


def _largest(
    op: TensorOp,
    npu: Npu,
    micro: Block,
    deep: int,
    extents: tuple[int, int],
    most: tuple[int, int],
    sums: int,
    room_in: int,
) -> Block | None:
    """The largest block of so many channels whose sums and inputs fit; None if none does."""
    grain = micro[0] * micro[1] * _SPLIT
    whole = math.prod(up(n, u) for n, u in zip(op.input[1:], _unit(op, npu, micro, deep), strict=True))
    room = sums
    while room >= grain:
        high, wide = _by_aspect(extents[0] / extents[1], room // deep, micro)
        high, wide = min(high, most[0]), min(wide, most[1])
        both = high * wide
        if wide < extents[1]:
            wide = _tile(extents[1], micro[1], wide)
            high = max(both // wide // micro[0] * micro[0], micro[0])
        fit = sums / (high * wide * deep)
        fit_in = room_in / min(math.prod(_needed(op, npu, micro, (high, wide, deep))), whole)
        if fit >= 1 and fit_in >= 1:
            return high, wide, deep
        if fit_in < 1 < fit:
            room = min(room, high * wide * deep)
        smaller = int(room // grain * min(fit, fit_in)) * grain
        room = smaller if smaller < room else room - grain
    return None


def _by_aspect(aspect: float, area: int, micro: Block) -> tuple[int, int]:
    """Height and width of this proportion, in whole micro-blocks."""
    wide = math.sqrt(area / aspect)
    high = wide * aspect
    if high < 1:
        wide, high = wide * high, 1.0
    elif wide < 1:
        high, wide = high * wide, 1.0
    return max(int(high), micro[0]) // micro[0] * micro[0], max(int(wide), micro[1]) // micro[1] * micro[1]


def _tile(extent: int, step: int, tile: int) -> int:
    """Of tiles up to this one, the largest that leaves the fullest last tile."""
    if extent % tile == 0:
        return tile
    even = max(up(extent // (extent // tile + 1), step), step)
    first = max(even - 2 * step, (even + 1) // 2, step)
    return max(range(tile, first - 1, -step), key=lambda t: (extent % t or t, t), default=tile)
