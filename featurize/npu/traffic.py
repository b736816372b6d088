"""What one operation moves to and from each memory, and how long that takes."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from .blocks import plan
from .cost import Place, in_bursts, input_elements, passes, read_run, stored, write_run
from .devices import Block, Memory, Npu, Shape, TensorOp, up


@dataclass(frozen=True)
class Weights:
    """Constants of an operation as they are stored."""

    weight_bytes: int
    scale_bytes: int
    home: Memory
    buffer: Memory | None = None
    """Where they are copied before they are used."""
    ahead_bytes: int = 0
    """Of them, what is copied while the operation before runs."""

    @property
    def bytes(self) -> int:
        return self.weight_bytes + self.scale_bytes


@dataclass(frozen=True)
class Stream:
    """A tensor that is read or written as a whole."""

    shape: Shape
    bits: int
    place: Place

    @property
    def bytes(self) -> float:
        return math.prod(stored(self.shape, self.place)) * self.bits / 8


@dataclass(frozen=True)
class Access:
    """What an operation moves: bytes with bursts counted in full, and how long the slowest memory takes."""

    cycles: float
    tensor_bytes: float
    """To and from where tensors lie that are not cached."""
    cache_bytes: float
    constant_bytes: float


class _Ledger:
    """Bytes by memory, and by the channel of a memory that they go through (a rate of `Memory`)."""

    def __init__(self) -> None:
        self.channels: dict[tuple[Memory, str], float] = defaultdict(float)
        self.totals: dict[Memory, float] = defaultdict(float)

    def add(self, memory: Memory, channel: str, size: float) -> None:
        self.channels[memory, channel] += size
        self.totals[memory] += size

    def cycles(self, npu: Npu) -> float:
        """The longest of all memories, on the larger NPU also of all channels."""
        longest = max((size / memory.bytes_per_cycle for memory, size in self.totals.items()), default=0.0)
        if not npu.shared:
            longest = max(longest, *(size / getattr(where, rate) for (where, rate), size in self.channels.items()))
        return float(int(longest))


def access(
    op: TensorOp,
    npu: Npu,
    source: Place,
    target: Place | None,
    weights: Weights | None = None,
    second: Place | None = None,
    streams: tuple[Stream, ...] = (),
    last: Stream | None = None,
) -> Access:
    """What is moved. `target`: None where what is chained takes it; `second`: of the second input, None for a number
    that stands in the command; `streams`: what chained operations read, `last`: what the last of them writes."""
    block, input_block = _blocks(op, npu)
    moved = _Ledger()

    def read(size: float, shape: Shape, bits: int, place: Place, channel: str) -> None:
        moved.add(place.memory, channel, in_bursts(size, read_run(shape, bits, input_block, place), place))

    def write(stream: Stream) -> None:
        run = write_run(stream.shape, stream.bits, block, stream.place)
        moved.add(stream.place.memory, "write", in_bursts(stream.bytes, run, stream.place))

    size = input_elements(op, npu, source.bricks) * op.input_bits / 8
    read(size, op.input, op.input_bits, source, "stream" if op.kind in ("elements", "resize") else "read")
    if second is not None and op.second is not None:
        spread = npu.shared and op.kind == "elements"  # read for each output, by that estimate
        whole = stored(op.output, source) if spread else stored(op.second, second)
        channel = "stream" if op.kind != "sum" else "read"
        read(math.prod(whole) * op.input_bits / 8, op.second, op.input_bits, second, channel)
    if op.kind == "matmul":
        moved.totals[source.memory] += 2 * size  # products, written and read again, counted as bytes
    if target is not None:
        write(Stream(op.output, op.output_bits, target))
    for stream in streams:
        read(stream.bytes, stream.shape, stream.bits, stream.place, "stream")
    if last is not None:
        write(last)
    tensors = 0.0 if npu.shared else moved.totals[npu.tensors]
    constants = moved.totals[npu.constants] if npu.shared else 0.0
    if weights is not None:
        constants += _add_weights(moved, weights, passes(op, npu))
    return Access(moved.cycles(npu), tensors, moved.totals[npu.cache], constants)


def _add_weights(moved: _Ledger, weights: Weights, fetches: int) -> float:
    """Count weights that are read so often; bytes of them that leave where they are stored."""
    used, scales = weights.weight_bytes * fetches, weights.scale_bytes * fetches
    moved.add(weights.home, "scales", scales)
    if weights.buffer is None:
        moved.add(weights.home, "weights", used)
        return float(used + scales)
    copied = max(weights.bytes - weights.ahead_bytes, 0)
    moved.add(weights.home, "copied", copied)
    moved.add(weights.buffer, "write", copied)
    moved.add(weights.buffer, "weights", used)
    return float(weights.bytes)


def _blocks(op: TensorOp, npu: Npu) -> tuple[Block, Block]:
    """What is written and read at a time."""
    if op.kind == "transpose":
        deep = up(op.input[3], 8)
        wide = op.input[2] if op.input[3] * op.input_bits == 64 else 1  # rows of 8 bytes follow each other
        return (1, wide, deep), (1, wide, min(deep, 32))
    if op.kind == "matmul":
        return (1, 1, 8), (1, 1, min(up(op.input[3], 8), 32))
    cut = plan(op, npu)
    return cut.block, cut.input_block
