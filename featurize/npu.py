"""How an NPU runs one operation on tensors: the blocks it is cut into, the cycles, the bytes that are moved.

Follows the rules by which Arm's compiler Vela plans and costs for Ethos-U (its documentation and published sources,
`regor/architecture`): of the output blocks whose input and sums fit the NPU's memories the one that fetches least;
a block takes what its products take, or its outputs, or its commands; a memory answers in bursts, of which a block
with few channels uses a part; the operation takes the longest of its cycles and those of each memory.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_SUBKERNEL = 8
"""A window is walked in parts of at most 8 x 8."""
_SPLIT = 16
"""Blocks of more channels than that have a multiple of it."""


@dataclass(frozen=True)
class Memory:
    """What lies at one port of the NPU."""

    bytes_per_cycle: float
    burst: int
    """Bytes."""
    read_latency: int
    write_latency: int
    read: float
    """Bytes a cycle that tensors are read at: latency and requests under way bound it."""
    write: float
    weights: float
    scales: float
    copied: float
    """To another memory."""


@dataclass(frozen=True)
class Npu:
    """One configuration."""

    macs: int
    micro_blocks: tuple[tuple[int, int, int], ...]
    """Outputs (height, width, channels) that are made at a time; the first ones are for the depthwise and the 1 x 1."""
    largest_block: tuple[int, int, int]
    input_bytes: int
    """For two input blocks."""
    sum_bytes: int
    """For two blocks of sums."""
    shared: bool
    """Both share one memory of 1 KiB banks, and the array takes 32 input channels at a time, not 64."""
    output_cycles: float
    """Per element."""
    tensors: Memory
    """Where tensors lie that do not fit in the cache."""
    cache: Memory
    constants: Memory


def _dram() -> Memory:
    def channel(buffered: float) -> float:  # requests under way: at most 80 % of 64
        return min(12.0, 128 * min(buffered / 8, 51.2) / 500 * 0.8)

    return Memory(
        12.0, 128, 500, 250, channel(128), min(12.0, 128 * 25.6 / 250 * 0.8), channel(128), channel(16), channel(104)
    )


def _sram() -> Memory:
    def channel(buffered: float) -> float:
        return min(32.0, 64 * min(buffered / 4, 12.8) / 32 * 0.8)

    return Memory(32.0, 64, 32, 32, channel(128), channel(1e9), channel(128), channel(16), channel(104))


_U55_SRAM = Memory(8.0, 32, 32, 32, 8.0, 8.0, 8.0, 8.0, 8.0)
_U55_FLASH = Memory(1.0, 128, 64, 64, 1.0, 1.0, 1.0, 1.0, 1.0)

U85 = Npu(
    256, ((1, 2, 16), (1, 4, 8), (2, 2, 8)), (128, 128, 1024), 16384, 16384, False, 0.25, _dram(), _sram(), _dram()
)
"""Ethos-U85 with 256 multipliers; tensors and constants in DRAM, a cache of 384 KiB."""
U55 = Npu(128, ((1, 2, 8),), (32, 64, 128), 0, 0, True, 0.5, _U55_SRAM, _U55_SRAM, _U55_FLASH)
"""Ethos-U55 with 128 multipliers; tensors in SRAM, constants in flash."""


@dataclass(frozen=True)
class TensorOp:
    """One operation as far as its cost depends on it. Shapes are (batch, height, width, channels)."""

    kind: str
    """"conv", "depthwise", "pool", "sum" (over channels), "product" (of two tensors) or "elements"."""
    input: tuple[int, int, int, int]
    output: tuple[int, int, int, int]
    window: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    input_bits: int = 8
    output_bits: int = 8
    weight_bytes: int = 0
    inputs: int = 1
    """Tensors that are read."""
    element_cycles: float = 0.0
    """What one output takes; 0: what it usually takes."""
    input_cached: bool = False
    output_cached: bool = False
    input_bricks: bool = False
    """Stored in bricks of 16 channels, as tensors between two operations are; others, channels last."""
    output_bricks: bool = False
    weights_cached: bool = False


@dataclass(frozen=True)
class Cost:
    """What operations take."""

    cycles: float
    compute: float
    """Cycles if memory were never waited for."""
    array: float
    """Cycles of the multipliers alone."""
    tensor_bytes: float
    """To and from where tensors lie that are not cached, bursts counted in full."""
    cache_bytes: float
    constant_bytes: float
    macs: float
    """Multiply-accumulates as Vela counts them: those of poolings too."""

    def times(self, number: int) -> Cost:
        return self if number == 1 else Cost(*(number * value for value in self._values()))

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(self._values(), other._values(), strict=True)))

    def _values(self) -> tuple[float, ...]:
        return (
            self.cycles,
            self.compute,
            self.array,
            self.tensor_bytes,
            self.cache_bytes,
            self.constant_bytes,
            self.macs,
        )


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _micro_block(op: TensorOp, npu: Npu, part_kernel: bool) -> tuple[int, int, int]:
    """The one with the least waste."""
    candidates = npu.micro_blocks
    if len(candidates) > 1:
        wide = op.kind in ("depthwise", "pool") and op.input_bits <= 8
        one = op.kind in ("conv", "product") and op.input_bits == 16 and op.window == (1, 1) and not part_kernel
        candidates = candidates[:1] if wide else candidates if one or op.kind == "elements" else candidates[1:]
    _, height, width, depth = op.output
    return min(candidates, key=lambda u: _up(height, u[0]) * _up(width, u[1]) * _up(depth, u[2]))


def _is_part_kernel(op: TensorOp, npu: Npu) -> bool:
    """Whether a window's elements are taken four at a time, with few channels, rather than many channels of one."""
    if op.kind != "conv":
        return False
    depth, elements = op.input[3], op.window[0] * op.window[1]
    if npu.shared:
        if depth <= 8:
            return True
        at_once, step = (4, 32) if op.input_bits == 8 else (2, 16)
        return depth / _up(depth, 8) * elements / _up(elements, at_once) >= depth / _up(depth, step)
    rounded = elements // 5 * 5 + max(elements % 5, 2)
    return depth / _up(depth, 16) * elements / rounded >= depth / _up(depth, 64)


@functools.lru_cache(maxsize=64)
def _blocks(
    micro: tuple[int, int, int], largest: tuple[int, int, int], most: int, least: int
) -> tuple[npt.NDArray[np.int64], ...]:
    """All blocks of at most `most` outputs: heights, widths, depths, in the order in which Vela tries them."""
    depths = sorted({*range(least, _SPLIT + 1, micro[2]), *range(_SPLIT, largest[2] + 1, micro[2])})
    found = [
        (height, width, depth)
        for depth in depths
        for height in range(micro[0], min(largest[0], most // _up(depth, least)) + 1, micro[0])
        for width in range(micro[1], min(largest[1], most // (_up(depth, least) * height)) + 1, micro[1])
    ]
    table = np.array(found, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


@dataclass(frozen=True)
class _Plan:
    """How an operation is cut."""

    block: tuple[int, int, int]
    input_block: tuple[int, int, int]
    micro: tuple[int, int, int]
    part_kernel: bool


@functools.lru_cache(maxsize=4096)
def _plan(op: TensorOp, npu: Npu) -> _Plan:
    part_kernel = _is_part_kernel(op, npu)
    micro = _micro_block(op, npu, part_kernel)
    if op.kind in ("depthwise", "pool") and not npu.shared:
        return _plan_by_area(op, npu, micro)
    equal_depth = op.kind in ("depthwise", "pool", "elements")
    in_depth = op.input[3]
    if npu.shared:
        at_once = 16 if op.input_bits == 16 or part_kernel else 32
        block_depth = _up(min(in_depth, at_once), 4 if op.input_bits == 16 else 8)
    else:
        block_depth = 16 if part_kernel else 32 if micro[2] == 16 or op.input_bits == 32 else 64
    wide_sums = op.input_bits == 16 and op.kind != "pool"
    sum_bytes = (5 if npu.shared else 8) if wide_sums else 4
    _, out_height, out_width, out_depth = op.output
    most = (8192 if npu.shared else npu.sum_bytes // 2) // sum_bytes
    heights, widths, depths = _blocks(micro, npu.largest_block, most, micro[2] if npu.shared else _SPLIT)
    end = [_up(min(n, limit), u) for n, limit, u in zip(op.output[1:], npu.largest_block, micro, strict=True)]
    keep = (
        (heights <= max(end[0], micro[0]))
        & (widths <= max(end[1], micro[1]))
        & (depths <= max(end[2], micro[2] if npu.shared else _SPLIT))
    )
    keep &= depths >= min(max(end[2], micro[2] if npu.shared else _SPLIT), _SPLIT)
    keep &= (depths % _SPLIT == 0) | (depths >= out_depth)
    heights, widths, depths = heights[keep], widths[keep], depths[keep]
    reach = [min((k - 1) * d + 1, _SUBKERNEL) for k, d in zip(op.window, op.dilation, strict=True)]
    unit = _unit(micro, block_depth, op, npu)
    in_heights = -(-((heights - 1) * op.stride[0] + reach[0]) // unit[0]) * unit[0]
    in_widths = -(-((widths - 1) * op.stride[1] + reach[1]) // unit[1]) * unit[1]
    bytes_in = op.input_bits // 8
    in_depths = depths if equal_depth else np.full_like(depths, block_depth)
    if npu.shared:
        row = -(-in_depths * bytes_in // 8) * 8
        banks_in = -(--(-in_heights * in_widths * row // 1024) * 2 // 4) * 4
        granule = 12 if sum_bytes == 5 else 8
        banks_out = -(--(-heights * widths * (-(-depths // 8) * 8) * sum_bytes // 1024) * 2 // granule) * granule
        if op.kind == "elements":
            fits = banks_in * op.inputs <= 20
        else:
            fits = banks_in + banks_out <= 20
    elif op.kind == "elements":
        fits = np.ones(len(heights), bool)
    else:
        held = in_depths if equal_depth else np.full_like(depths, min(block_depth, in_depth))
        held = -(-held // unit[2]) * unit[2]
        fits = in_heights * in_widths * held * bytes_in * 2 <= npu.input_bytes
    if not fits.any():
        fits[0] = True
    heights, widths, depths = heights[fits], widths[fits], depths[fits]
    in_heights, in_widths, in_depths = in_heights[fits], in_widths[fits], in_depths[fits]
    repeats = math.prod(-(-((k - 1) * d + 1) // _SUBKERNEL) for k, d in zip(op.window, op.dilation, strict=True))
    passes = -(-out_height // heights) * -(-out_width // widths)
    fetched = in_heights * in_widths * float(in_depth * repeats) * (out_height / heights) * (out_width / widths)
    if not equal_depth:
        fetched *= -(-out_depth // depths)
    if op.kind in ("conv", "depthwise"):
        fetched += float(op.window[0] * op.window[1] * in_depth) * passes * (1 if equal_depth else out_depth)
    if op.kind in ("product", "elements"):
        fetched = 1.0 / (heights * widths * depths)
    whole = float(np.prod(op.input)) < in_heights * in_widths * in_depths * 2.0
    cost = np.where(whole, fetched / 2, fetched)
    best = int(np.argmin(cost))
    ties = np.flatnonzero((cost == cost[best]) & (heights <= 4) & (widths <= 4))
    if len(ties) > 1:
        cover = np.minimum(in_heights[ties], op.input[1]) * np.minimum(in_widths[ties], op.input[2])
        best = int(ties[len(ties) - 1 - int(np.argmax(cover[::-1]))])
    return _Plan(
        (int(heights[best]), int(widths[best]), int(depths[best])),
        (int(in_heights[best]), int(in_widths[best]), int(in_depths[best])),
        micro,
        part_kernel,
    )


def _tile(extent: int, granule: int, tile: int) -> int:
    """Of tiles up to this one, the largest that leaves the fullest last tile."""
    if extent % tile == 0:
        return tile
    even = max(_up(extent // (extent // tile + 1), granule), granule)
    first = max(even - 2 * granule, (even + 1) // 2, granule)
    return max(range(tile, first - 1, -granule), key=lambda t: (extent % t or t, t), default=tile)


def _plan_by_area(op: TensorOp, npu: Npu, micro: tuple[int, int, int]) -> _Plan:
    """Each output channel has its own input channel: the block covers the most of the output, in its proportions."""
    bytes_in = op.input_bits // 8
    sums = npu.sum_bytes // (8 if op.input_bits == 16 and op.kind != "pool" else 4)
    room_in = npu.input_bytes // bytes_in
    height, width, depth = (_up(n, g) for n, g in zip(op.output[1:], (*micro[:2], _SPLIT), strict=True))
    most = tuple(min(n, limit) for n, limit in zip((height, width, depth), npu.largest_block, strict=True))
    grain = micro[0] * micro[1] * _SPLIT
    pointwise = op.window == (1, 1)
    area = width * depth if pointwise else height * width
    reach = [min((k - 1) * d + 1, _SUBKERNEL) for k, d in zip(op.window, op.dilation, strict=True)]

    def needed(block: tuple[int, int, int]) -> tuple[int, int, int]:
        unit = _unit(micro, block[2], op, npu)
        high = _up((block[0] - 1) * op.stride[0] + reach[0], unit[0])
        return high, _up((block[1] - 1) * op.stride[1] + reach[1], unit[1]), _up(block[2], unit[2])

    best, best_metric = (micro[0], micro[1], _SPLIT), math.inf
    for deep in range(_SPLIT, min(max(npu.macs, sums // grain), most[2]) + 1, _SPLIT):
        unit = _unit(micro, deep, op, npu)
        whole = math.prod(_up(n, u) for n, u in zip(op.input[1:], unit, strict=True))
        room, found = sums, None
        while room >= grain:
            high, wide = _by_aspect(height / width, room // deep, micro)
            high, wide = min(high, most[0]), min(wide, most[1])
            both = high * wide
            if wide < width:
                wide = _tile(width, micro[1], wide)
                high = max(both // wide // micro[0] * micro[0], micro[0])
            fit = sums / (high * wide * deep)
            fit_in = room_in / min(math.prod(needed((high, wide, deep))), whole)
            if fit >= 1 and fit_in >= 1:
                found = (high, wide, deep)
                break
            if fit_in < 1 < fit:
                room = min(room, high * wide * deep)
            smaller = int(room // grain * min(fit, fit_in)) * grain
            room = smaller if smaller < room else room - grain
        if found is None:
            break
        used = deep % unit[2] or unit[2]
        waste = 1 + (unit[2] - used) / unit[2] / 10
        cover = 1 + abs(1 - area / (found[1] * (found[2] if pointwise else found[0])))
        metric = cover * (1 + abs(1 - most[2] / deep) / 10) * waste
        if metric < best_metric:
            best, best_metric = found, metric
            if deep >= depth and found[1] >= width and found[0] >= height:
                break
    high, wide, deep = best
    while wide < width or high < height or deep < depth:  # room to read a row of the next block
        if room_in - math.prod(needed((high, wide, deep))) >= math.prod(needed((micro[0], wide, deep))):
            break
        if high > micro[0]:
            high -= micro[0]
        elif deep > _SPLIT:
            deep -= _SPLIT
        elif wide > micro[1]:
            wide -= micro[1]
        else:
            break
    return _Plan((high, wide, deep), needed((high, wide, deep)), micro, False)


def _by_aspect(aspect: float, area: int, micro: tuple[int, int, int]) -> tuple[int, int]:
    """Height and width of this proportion, in whole micro-blocks."""
    wide = math.sqrt(area / aspect)
    high = wide * aspect
    if high < 1:
        wide, high = wide * high, 1.0
    elif wide < 1:
        high, wide = high * wide, 1.0
    return (
        max(int(high), micro[0]) // micro[0] * micro[0],
        max(int(wide), micro[1]) // micro[1] * micro[1],
    )


def passes(op: TensorOp, npu: Npu) -> int:
    """Blocks over the output's area: how often all weights are read."""
    block = _plan(op, npu).block
    return op.output[0] * -(-op.output[1] // block[0]) * -(-op.output[2] // block[1])


def _unit(micro: tuple[int, int, int], block_depth: int, op: TensorOp, npu: Npu) -> tuple[int, int, int]:
    """What an input block is rounded up to."""
    if npu.shared:
        return micro[0], micro[1], 8
    depth_bits = block_depth * op.input_bits
    step = 2 if depth_bits > 256 else 1 if depth_bits > 128 else 0
    height, width, bricks = ((2, 2, 1), (1, 2, 2), (1, 1, 4))[step]
    if micro == (1, 4, 8) and step == 0:
        height, width = 1, 4
    return height, width, bricks * 128 // op.input_bits


def _amplified(
    size: float, bits: int, block: tuple[int, int, int], depth: int, bricks: bool, read: bool, burst: int
) -> float:
    """Bytes with bursts counted in full: a block's run of bytes in a row may be shorter than a burst."""
    if bricks:
        run = 16 * bits * block[1]
    elif read:
        run = bits * block[1] * block[2] if depth * bits // 8 == block[2] else bits * block[2]
    elif block[2] <= 16 and depth * bits // 8 == block[2]:
        run = bits * block[1] * block[2]
    else:
        run = min(512, 16 * bits, block[2] * bits)
    return size * burst / max(min(burst, run // 8), 1)


def _array_cycles(op: TensorOp, plan: _Plan, npu: Npu) -> float:
    """Cycles of the multipliers for one output block."""
    height, width, depth = (min(a, b) for a, b in zip(plan.block, op.output[1:], strict=True))
    in_depth = min(plan.input_block[2], op.input[3])
    area = -(-height // plan.micro[0]) * -(-width // plan.micro[1])
    deep = -(-depth // plan.micro[2])
    weights = 32 * plan.micro[2] // 8
    total = 0.0
    for left in range(0, op.window[1], _SUBKERNEL):
        for top in range(0, op.window[0], _SUBKERNEL):
            elements = min(op.window[0] - top, _SUBKERNEL) * min(op.window[1] - left, _SUBKERNEL)
            times = 1
            if op.kind == "pool":
                steps, cycles = 1, max(4, elements) * area * deep * (op.input_bits // 2)
            elif op.kind == "depthwise":
                steps = -(-elements // 4)
                cycles = max(weights, 4 * area * (op.input_bits // 8)) * steps * deep
            elif plan.part_kernel:
                steps = -(-elements // (2 if op.input_bits == 16 else 4))
                times = -(-in_depth // 8)
                cycles = max(weights, 4 * area) * steps * deep * times
            elif npu.shared:
                steps, cycles = elements, max(weights, 4 * area) * elements * deep
            else:
                steps = elements
                cycles = max(weights, in_depth // 8 * area) * steps * deep * (op.input_bits // 8)
            if op.kind == "conv" and op.input[3] <= 2 and not npu.shared:
                cycles /= 2  # two of four neighbours are zero: the sparse mode takes two steps at once
            delay = 0
            if area == 1:
                delay = 2 * steps if deep == 1 else 2 * (steps - 1) * deep
            total += cycles + delay * times
    if op.kind in ("conv", "product", "sum"):
        total *= -(-op.input[3] // max(in_depth, 1))
    return total


@functools.lru_cache(maxsize=4096)
def cost(op: TensorOp, npu: Npu) -> Cost:
    """Cycles and bytes of one operation on its own."""
    plan = _plan(op, npu)
    source = npu.cache if op.input_cached else npu.tensors
    target = npu.cache if op.output_cached else npu.tensors
    elements_out = float(np.prod(op.output))
    stored = elements_out / op.output[3] * _up(op.output[3], 16 if op.output_bricks else 1)
    block = tuple(min(a, b) for a, b in zip(plan.block, op.output[1:], strict=True))
    batch = op.output[0]
    if op.kind == "elements":
        elements_in = float(np.prod(op.input)) * op.inputs
        read = _amplified(
            elements_in * op.input_bits / 8, op.input_bits, plan.block, op.input[3], op.input_bricks, True, source.burst
        )
        array, times = 0.0, elements_out / max(math.prod(plan.block), 1)
        compute = (op.element_cycles or npu.output_cycles) * elements_out
        fetches = 0
    else:
        counts = [-(-n // b) for n, b in zip(op.output[1:], block, strict=True)]
        in_depth = _up(op.input[3], 16 if op.input_bricks else 1)
        in_height, in_width = min(plan.input_block[0], op.input[1]), min(plan.input_block[1], op.input[2])
        parts = math.prod(-(-k // _SUBKERNEL) for k in op.window)
        passes = batch * counts[0] * counts[1]
        deep = 1 if op.kind in ("depthwise", "pool") else counts[2]
        elements_in = float(in_height * in_width * in_depth * parts * passes * deep)
        read = _amplified(
            elements_in * op.input_bits / 8,
            op.input_bits,
            plan.input_block,
            op.input[3],
            op.input_bricks,
            True,
            source.burst,
        )
        fetches = passes
        micro = plan.micro
        in_block = math.prod(-(-b // u) for b, u in zip(block, micro, strict=True))
        times = batch * math.prod(-(-n // u) for n, u in zip(op.output[1:], micro, strict=True)) / in_block
        array = _array_cycles(op, plan, npu)
        outputs = math.ceil(npu.output_cycles * math.prod(block))
        if op.weight_bytes:
            home = npu.cache if op.weights_cached else npu.constants
            outputs = max(outputs, 10 * block[2] * home.read_latency / 256)
        first = math.prod(min(a, b) for a, b in zip(plan.input_block, op.input[1:], strict=True)) * op.input_bits / 8
        last = math.prod(block) * op.output_bits / 8
        taken = (
            source.read_latency
            + _amplified(first, op.input_bits, plan.input_block, op.input[3], op.input_bricks, True, source.burst)
            / source.bytes_per_cycle
        )
        given = (
            target.write_latency
            + _amplified(last, op.output_bits, plan.block, op.output[3], op.output_bricks, False, target.burst)
            / target.bytes_per_cycle
        )
        waiting = taken + given if npu.shared else abs(given - taken) if times > 1 else 0.0
        command = (waiting + array + outputs) / 4
        compute = max(array, outputs, command) * times + min(max(array, command), max(outputs, command)) + taken + given
    written = _amplified(
        stored * op.output_bits / 8, op.output_bits, plan.block, op.output[3], op.output_bricks, False, target.burst
    )
    scale_bytes = 10.0 * op.output[3] if op.weight_bytes else 0.0
    weights, scales = op.weight_bytes * float(fetches), scale_bytes * fetches
    moved = {"tensors": 0.0, "cache": 0.0, "constants": 0.0}
    moved["cache" if op.input_cached else "tensors"] += read
    moved["cache" if op.output_cached else "tensors"] += written
    if op.weights_cached:
        moved["cache"] += weights + op.weight_bytes
        moved["constants"] += op.weight_bytes + scales
    else:
        moved["constants"] += weights + scales
    same = npu.tensors == npu.constants
    channels = [read / source.read, written / target.write, scales / npu.constants.scales]
    channels.append(weights / (npu.cache if op.weights_cached else npu.constants).weights)
    totals = [
        (moved["tensors"] + (moved["constants"] if same else 0.0)) / npu.tensors.bytes_per_cycle,
        moved["cache"] / npu.cache.bytes_per_cycle,
        moved["constants"] / npu.constants.bytes_per_cycle,
    ]
    cycles = max(compute, *channels, *totals)
    macs = 0.0 if op.kind == "elements" else elements_out * op.window[0] * op.window[1]
    if op.kind in ("conv", "product"):
        macs *= op.input[3] / (2 if op.input[3] <= 2 and op.kind == "conv" and not npu.shared else 1)
    elif op.kind == "sum":
        macs *= op.input[3]
    return Cost(cycles, compute, array * times, moved["tensors"], moved["cache"], moved["constants"], macs)
