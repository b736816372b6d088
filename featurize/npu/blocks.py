"""Which blocks an operation is cut into: of those whose inputs and sums fit, the one that fetches least."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .devices import Block, Npu, TensorOp, permuted_back, up

Ints = npt.NDArray[np.int64]
SUBKERNEL = 8
"""A window is walked in parts of at most 8 x 8."""
_SPLIT = 16
"""Blocks of more channels than that have a multiple of it."""
_BANK_BYTES = 1024
_BANKS = 20
"""Of the shared memory, for two blocks of inputs and two of sums; two more hold what is written."""
_OUTPUT_BUFFER_BYTES = 2048
_CHAIN_BRICKS = 16
"""Bricks of 16 bytes that the buffer of a second input holds."""


@dataclass(frozen=True)
class Plan:
    """How an operation is cut."""

    block: Block
    input_block: Block
    micro: Block
    """Outputs made at a time."""
    part_kernel: bool
    """A window's elements are taken four at a time with few channels, rather than many channels of one."""


@functools.lru_cache(maxsize=8192)
def plan(op: TensorOp, npu: Npu) -> Plan:
    """The blocks of one operation."""
    part_kernel = op.kind == "conv" and _prefers_part_kernel(op, npu)
    micro = _micro_block(op, npu, part_kernel)
    if npu.shared:
        block, input_block = _by_fetches(op, npu, micro, _channels_at_once(op, npu, micro, part_kernel))
    elif op.kind == "elements":
        block = input_block = _by_buffers(op, npu, micro)
    elif op.kind == "resize":
        block = input_block = _of_resize(op, micro)
    elif op.kind in ("depthwise", "pool", "sum"):
        channels = _channels_at_once(op, npu, micro, part_kernel) if op.kind == "sum" else 0
        block, input_block = _by_area(op, npu, micro, channels)
    else:
        block, input_block = _by_fetches(op, npu, micro, _channels_at_once(op, npu, micro, part_kernel))
    high, wide, deep = (n or least for n, least in zip(block, micro, strict=True))  # what fits nothing: the least
    return Plan((high, wide, deep), input_block, micro, part_kernel)


def _prefers_part_kernel(op: TensorOp, npu: Npu) -> bool:
    """Whichever way leaves less of the array idle."""
    depth, elements = op.input[3], op.window[0] * op.window[1]
    if npu.shared:
        at_once, step = (4, 32) if op.input_bits == 8 else (2, 16)
        part = depth / up(depth, 8) * (elements / up(elements, at_once))
        return depth <= 8 or part >= depth / up(depth, step)
    rounded = elements // 5 * 5 + max(elements % 5, 2)
    return depth / up(depth, 16) * elements / rounded >= depth / up(depth, 64)


def _micro_block(op: TensorOp, npu: Npu, part_kernel: bool) -> Block:
    """The one with the least waste of those that can do the operation."""
    candidates = npu.micro_blocks
    if len(candidates) > 1 and op.kind not in ("elements", "resize"):
        pointwise = op.kind in ("conv", "product") and op.window == (1, 1) and not part_kernel
        if op.kind in ("depthwise", "pool", "copy") and op.input_bits != 16:
            candidates = candidates[:1]
        elif not (pointwise and op.input_bits == 16):
            candidates = candidates[1:]
    _, *extents = permuted_back(op.output, op.permuted)
    return min(candidates, key=lambda u: math.prod(up(n, step) for n, step in zip(extents, u, strict=True)))


def _channels_at_once(op: TensorOp, npu: Npu, micro: Block, part_kernel: bool) -> int:
    """Input channels of a block, where they are not the output's."""
    if npu.shared:
        most = 16 if op.input_bits == 16 or part_kernel else 32
        return up(min(op.input[3], most), 4 if op.input_bits == 16 else 8)
    fewer = micro[2] == 16 and op.kind != "product"
    return 16 if part_kernel else 32 if fewer or op.input_bits == 32 else 64


def _sum_bytes(op: TensorOp, npu: Npu) -> int:
    """Of one sum."""
    if op.input_bits == 16 and op.wide_sums and op.kind not in ("pool", "copy"):
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


def _units(op: TensorOp, npu: Npu, micro: Block, depths: Ints) -> tuple[Ints, Ints, Ints]:
    """`_unit` of each depth."""
    different, which = np.unique(depths, return_inverse=True)
    table = np.array([_unit(op, npu, micro, int(depth)) for depth in different], np.int64)[which]
    return table[:, 0], table[:, 1], table[:, 2]


def _up(values: Ints, step: int | Ints) -> Ints:
    return -(-values // step) * step


def _by_fetches(op: TensorOp, npu: Npu, micro: Block, channels: int) -> tuple[Block, Block]:
    """Output and input block: the least bytes of inputs and weights are fetched for all blocks together."""
    least = _least_depth(npu, micro)
    most = npu.sum_bytes // 2 // _sum_bytes(op, npu)
    if op.kind == "elements":  # no sums are kept
        most = _BANKS // (1 if _has_scalar(op) else 2) * _BANK_BYTES // 2
    heights, widths, depths = _blocks(micro, npu.largest_block, most, least)
    _, high, wide, deep = permuted_back(op.output, op.permuted)
    extents = (high, wide, deep)
    ends = [up(min(n, most), step) for n, most, step in zip(extents, npu.largest_block, micro, strict=True)]
    last = max(ends[2], least)
    tried = (heights <= ends[0]) & (widths <= ends[1]) & (depths <= last) & (depths >= min(last, _SPLIT))
    tried &= (depths % _SPLIT == 0) | (depths >= deep)
    heights, widths, depths = heights[tried], widths[tried], depths[tried]
    reach, each = _reach(op), 2 if op.spread and npu.shared else 1
    more = each - 1 if op.kind == "pool" else 0
    in_depths = depths if op.keeps_channels else np.full_like(depths, channels)
    units = _units(op, npu, micro, in_depths)
    in_heights = _up(-(-((heights - 1) * op.stride[0] + reach[0] + more) // each), units[0])
    in_widths = _up(-(-((widths - 1) * op.stride[1] + reach[1] + more) // each), units[1])
    if op.keeps_channels and not npu.shared:
        in_depths = _up(in_depths, units[2])
    fits = _fits(op, npu, (heights, widths, depths), (in_heights, in_widths, in_depths), units[2])
    if not fits.any():
        fits[0] = True
    heights, widths, depths, in_heights, in_widths, in_depths = (
        values[fits] for values in (heights, widths, depths, in_heights, in_widths, in_depths)
    )
    larger = op.second if op.second is not None and math.prod(op.second) > math.prod(op.input) else op.input
    fetched: npt.NDArray[np.floating]
    if op.kind in ("product", "elements"):
        fetched = 1.0 / (heights * widths * depths)
    else:
        fetched = _fetched(op, extents, (heights, widths, depths), in_heights * in_widths, larger[3], npu.shared)
    holds_all = math.prod(larger) < in_heights * in_widths * in_depths * 2.0
    best = _cheapest(np.where(holds_all, fetched / 2, fetched), op, larger, (heights, widths), (in_heights, in_widths))
    return (
        (int(heights[best]), int(widths[best]), int(depths[best])),
        (int(in_heights[best]), int(in_widths[best]), int(depths[best]) if op.keeps_channels else channels),
    )


def _fetched(
    op: TensorOp, extents: Block, blocks: tuple[Ints, Ints, Ints], areas: Ints, channels: int, shared: bool
) -> npt.NDArray[np.float32]:
    """What is fetched for one output, in single precision, whose rounding tells apart blocks that fetch the same."""
    parts = math.prod(-(-((k - 1) * d + 1) // SUBKERNEL) for k, d in zip(op.window, op.dilation, strict=True))
    high, wide, deep = (np.float32(n) / m.astype(np.float32) for n, m in zip(extents, blocks, strict=True))
    inputs = (areas * (channels * parts)).astype(np.float32)
    fetched = inputs * wide * high if shared else inputs * (wide * high)
    if not op.keeps_channels:
        fetched = fetched * (-(-extents[2] // blocks[2])).astype(np.float32)
    if op.kind in ("conv", "depthwise"):
        times = -(-extents[0] // blocks[0]) * -(-extents[1] // blocks[1])
        weights = (op.window[0] * op.window[1] * channels * times).astype(np.float32)
        if not op.keeps_channels:
            weights = weights * (deep * blocks[2].astype(np.float32))
        fetched = fetched + weights
    return fetched / np.float32(math.prod(extents))


def _has_scalar(op: TensorOp) -> bool:
    """An input of one number of at most 16 bits stands in the command."""
    return op.input_bits <= 16 and (math.prod(op.input) == 1 or (op.second is not None and math.prod(op.second) == 1))


def _fits(op: TensorOp, npu: Npu, blocks: tuple[Ints, Ints, Ints], inputs: tuple[Ints, Ints, Ints], unit: Ints) -> Ints:
    """Whether two blocks of inputs and two of sums fit, of each."""
    in_heights, in_widths, in_depths = inputs
    bytes_in = op.input_bits // 8
    heights, widths, depths = blocks
    size = _sum_bytes(op, npu)
    if not npu.shared:
        held = _up(np.minimum(in_depths, op.input[3]) if not op.keeps_channels else in_depths, unit)
        sums = heights * widths * _up(depths, _SPLIT) * size * 2
        return (in_heights * in_widths * held * bytes_in * 2 <= npu.input_bytes) & (sums <= npu.sum_bytes)  # type: ignore[return-value]
    in_bytes = in_heights * in_widths * _up(in_depths * bytes_in, 8)
    in_banks = _up(-(-in_bytes // _BANK_BYTES) * 2, 4 if bytes_in < 4 else 8)
    if op.kind == "elements":
        return in_banks * (1 if _has_scalar(op) else 2) <= _BANKS  # type: ignore[return-value]
    sum_banks = -(-heights * widths * _up(depths, 8) * size // _BANK_BYTES) * 2
    return in_banks + _up(sum_banks, 12 if size == 5 else 8) <= _BANKS  # type: ignore[return-value]


def _cheapest(
    fetched: npt.NDArray[np.float64],
    op: TensorOp,
    shape: tuple[int, ...],
    block: tuple[Ints, Ints],
    inputs: tuple[Ints, Ints],
) -> int:
    """The first of the cheapest; of small ones that are as cheap, the last that covers most of the input."""
    best = int(np.argmin(fetched))
    if op.kind == "product":
        return int(np.flatnonzero(fetched == fetched[best])[-1])
    small = (block[0] <= 4) & (block[1] <= 4)
    ties = np.flatnonzero((fetched == fetched[best]) & small)
    ties = ties[ties > best]
    if not len(ties):
        return best
    cover = np.minimum(inputs[0][ties], shape[1]) * np.minimum(inputs[1][ties], shape[2])
    return int(ties[len(ties) - 1 - int(np.argmax(cover[::-1]))])


def _by_buffers(op: TensorOp, npu: Npu, micro: Block) -> Block:
    """Of an operation element by element: what the buffers of outputs and of a second input hold."""
    grain = _grain(op, micro)
    extents = permuted_back(op.output, op.permuted)
    shape = tuple(up(n, step) for n, step in zip(extents[1:], grain, strict=True))
    most = tuple(min(n, limit) for n, limit in zip(shape, npu.largest_block, strict=True))
    width_units = _OUTPUT_BUFFER_BYTES * 8 // op.input_bits // _SPLIT
    chain_units = _CHAIN_BRICKS * 8 // op.input_bits // micro[0]
    high = _granular(shape[0], grain[0], most[0])
    needed = max(_granular(shape[1], grain[1], min(width_units, most[1])), grain[1])
    wide = width_units
    deep, wide = _reapportioned(_SPLIT, most[2], wide, needed)
    if op.second is not None and math.prod(op.input) > 1 and math.prod(op.second) > 1:
        smaller = [a < c or b < c for a, b, c in zip(op.input[1:], op.second[1:], extents[1:], strict=True)]
        if smaller[2]:
            deep, wide = _granular(shape[2], _SPLIT, most[2]), chain_units
            if not (smaller[0] or smaller[1]):
                high, wide = _reapportioned(micro[0], most[0], wide, needed)
        elif smaller[0]:
            deep, wide = _reapportioned(_SPLIT, most[2], chain_units, needed)
    return up(high, grain[0]), up(wide, grain[1]), up(deep, grain[2])


def _grain(op: TensorOp, micro: Block) -> Block:
    """What a block is a multiple of: bricks that are written across take 16 of the dimension they are cut from."""
    rows = 16 if op.permuted_bricks and op.permuted[-1] == "H" else micro[0]
    columns = 16 if op.permuted_bricks and op.permuted[-1] == "W" else micro[1]
    return rows, columns, _SPLIT


def _of_resize(op: TensorOp, micro: Block) -> Block:
    """One row, as wide as the buffer of a second input holds what it is made from."""
    bricks = _CHAIN_BRICKS * 8 // op.input_bits
    wide = math.ceil((bricks - 2) * op.output[2] / op.input[2])
    return 1, max(wide // micro[1] * micro[1], 1), _SPLIT


def _granular(extent: int, grain: int, tile: int) -> int:
    tile = max(tile // grain * grain, grain)
    return tile if extent % tile == 0 else max(up(extent // (extent // tile + 1), grain), grain)


def _reapportioned(value: int, most: int, available: int, required: int) -> tuple[int, int]:
    """What can be given from one extent to another, in whole multiples."""
    excess = min(available // required, most // value)
    return (value * excess, available // excess) if excess >= 2 else (value, available)


def _by_area(op: TensorOp, npu: Npu, micro: Block, channels: int) -> tuple[Block, Block]:
    """Output and input block where each output channel has its own input channel, or all are added up `channels` at a
    time: the most of the output, in its proportions, with room to read a row of the next block."""
    grain = _grain(op, micro)
    area_grain = micro[0] * micro[1] * _SPLIT
    sums, room_in = npu.sum_bytes // _sum_bytes(op, npu), npu.input_bytes // (op.input_bits // 8)
    extents = permuted_back(op.output, op.permuted)[1:]
    height, width, depth = (up(n, step) for n, step in zip(extents, grain, strict=True))
    limits = permuted_back((1, *npu.largest_block), op.permuted)[1:]
    most = tuple(min(n, limit) for n, limit in zip((height, width, depth), limits, strict=True))
    pointwise = op.window == (1, 1)
    area = width * depth if pointwise else height * width
    best, best_metric = grain, math.inf
    for deep in range(_SPLIT, min(max(npu.macs, sums // area_grain), most[2]) + 1, _SPLIT):
        found = _largest(op, npu, micro, deep, (height, width), (most[0], most[1]), sums, room_in, channels)
        if found is None:
            break
        unit = _unit(op, npu, micro, channels or deep)[2]
        idle = (unit - (deep % unit or unit)) / unit
        cover = 1 + abs(1 - area / (found[1] * (found[2] if pointwise else found[0])))
        metric = cover * (1 + abs(1 - most[2] / deep) / 10) * (1 + idle / 10)
        if metric < best_metric:
            best, best_metric = found, metric
            if deep >= depth and found[1] >= width and found[0] >= height:
                best = (height, width, depth)
                break
    high, wide, deep = best
    forced = 0
    while wide < width or high < height or deep < depth:
        row = math.prod(_needed(op, npu, micro, (grain[0], wide, deep), channels))
        if room_in - math.prod(_needed(op, npu, micro, (high, wide, deep), channels)) >= row:
            break
        if (high != height or forced & 2) and high > grain[0]:
            high -= grain[0]
        elif (deep > wide or forced & 1) and deep > _unit(op, npu, micro, channels or deep)[2]:
            deep -= _SPLIT
        elif (wide != width or forced & 4) and wide > grain[1]:
            wide -= grain[1]
        elif forced != 7:
            forced = forced << 1 | 1
        elif deep > _SPLIT:
            deep = max(deep // 2, _SPLIT)
        else:
            break
    return (high, wide, deep), _needed(op, npu, micro, (high, wide, deep), channels)


def _needed(op: TensorOp, npu: Npu, micro: Block, block: Block, channels: int) -> Block:
    """The inputs of a block."""
    deep = channels or block[2]
    unit, reach = _unit(op, npu, micro, deep), _reach(op)
    high, wide = ((n - 1) * step + r for n, step, r in zip(block[:2], op.stride, reach, strict=True))
    return up(high, unit[0]), up(wide, unit[1]), up(deep, unit[2])


def _largest(
    op: TensorOp,
    npu: Npu,
    micro: Block,
    deep: int,
    extents: tuple[int, int],
    most: tuple[int, int],
    sums: int,
    room_in: int,
    channels: int,
) -> Block | None:
    """The largest block of so many channels whose sums and inputs fit; None if none does."""
    rows, columns, _ = _grain(op, micro)
    grain = micro[0] * micro[1] * _SPLIT
    whole = math.prod(up(n, u) for n, u in zip(op.input[1:], _unit(op, npu, micro, channels or deep), strict=True))
    room, before, retries = sums, -1, 25
    while True:
        high, wide = _by_aspect(extents[0] / extents[1], room // deep, (rows, columns))
        high, wide = min(high, most[0]), min(wide, most[1])
        both = high * wide
        if wide < extents[1]:
            wide = _tile(extents[1], columns, wide)
        high = max(both // wide // rows * rows, rows)
        made = high * wide * deep
        fit = sums / made
        fit_in = room_in / min(math.prod(_needed(op, npu, micro, (high, wide, deep), channels)), whole)
        if fit >= 1 and fit_in >= 1:
            return high, wide, deep
        if made == before:
            retries -= 1
            if retries <= 0:
                fit_in = 0.9
        before = made
        if fit_in < 1 < fit:
            room = min(room, made)
        smaller = int(room // grain * min(fit_in * fit_in, fit)) * grain
        if smaller == room:
            smaller = room - grain
        if smaller <= grain:
            return None
        room = smaller


def _by_aspect(aspect: float, area: int, grain: tuple[int, int]) -> tuple[int, int]:
    """Height and width of this proportion, in whole grains."""
    wide = math.sqrt(area / aspect)
    high = wide * aspect
    if high < 1:
        wide, high = wide * high, 1.0
    elif wide < 1:
        high, wide = high * wide, 1.0
    return max(int(high), grain[0]) // grain[0] * grain[0], max(int(wide), grain[1]) // grain[1] * grain[1]


def _tile(extent: int, step: int, tile: int) -> int:
    """Of tiles up to this one, the largest that leaves the fullest last tile."""
    if extent % tile == 0:
        return tile
    even = max(up(extent // (extent // tile + 1), step), step)
    first = max(even - 2 * step, (even + 1) // 2, step)
    return max(range(tile, first - 1, -step), key=lambda t: (extent % t or t, t), default=tile)
