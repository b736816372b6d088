"""The NPUs, and what of an operation on tensors decides its cost on them."""

from __future__ import annotations

from dataclasses import dataclass

Block = tuple[int, int, int]
"""Height, width, channels."""
Shape = tuple[int, int, int, int]
"""Batch, height, width, channels."""


@dataclass(frozen=True)
class Memory:
    """What lies at one port of an NPU; rates in bytes a cycle."""

    bytes_per_cycle: float
    burst: int
    """Bytes."""
    read_latency: int
    """Cycles."""
    write_latency: int
    read: float
    """Of tensors: latency and the requests under way bound it, as the other rates."""
    stream: float
    """Of tensors that are read once, in order."""
    write: float
    weights: float
    scales: float
    copied: float
    """To another memory."""


@dataclass(frozen=True)
class Npu:
    """One configuration of an NPU with its memories."""

    macs: int
    micro_blocks: tuple[Block, ...]
    """Outputs that are made at a time; where there are several, the first is for the depthwise and the 1 x 1."""
    largest_block: Block
    input_bytes: int
    """Room for two input blocks."""
    sum_bytes: int
    """Room for two blocks of sums."""
    shared: bool
    """Inputs and sums share one memory of 1 KiB banks, all tensors lie in the cache, and nothing is chained."""
    tensors: Memory
    """Where tensors lie that are not in the cache."""
    cache: Memory
    cache_bytes: int
    """What of the cache tensors and weights may take."""
    constants: Memory


def _memory(rate: float, burst: int, read_latency: int, write_latency: int, reads: float, writes: float) -> Memory:
    """A memory that answers so many requests at a time; 80 % of them, and of what they could move, are of use."""

    def moved(latency: int, requests: float) -> float:
        return min(rate, burst * requests / latency * 0.8)

    def channel(buffered: int) -> float:  # words of 16 bytes
        return moved(read_latency, min(buffered / (burst // 16), reads * 0.8))

    write = moved(write_latency, writes * 0.8)
    tensors, scales, copied = channel(128), channel(16), channel(104)
    return Memory(rate, burst, read_latency, write_latency, tensors, copied, write, tensors, scales, copied)


_DRAM = _memory(12.0, 128, 500, 250, reads=64, writes=32)
_U55_SRAM = Memory(8.0, 32, 32, 32, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0)
_U55_FLASH = Memory(1.0, 128, 64, 64, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)

U85 = Npu(
    macs=256,
    micro_blocks=((1, 2, 16), (1, 4, 8), (2, 2, 8)),
    largest_block=(128, 128, 1024),
    input_bytes=16384,
    sum_bytes=16384,
    shared=False,
    tensors=_DRAM,
    cache=_memory(32.0, 64, 32, 32, reads=16, writes=16),
    cache_bytes=393216,
    constants=_DRAM,
)
"""Ethos-U85 with 256 multipliers, `Ethos_U85_SYS_DRAM_Mid` and `Dedicated_Sram_384KB`."""
U55 = Npu(
    macs=128,
    micro_blocks=((1, 2, 8),),
    largest_block=(32, 64, 128),
    input_bytes=0,
    sum_bytes=16384,
    shared=True,
    tensors=_U55_SRAM,
    cache=_U55_SRAM,
    cache_bytes=4 << 20,
    constants=_U55_FLASH,
)
"""Ethos-U55 with 128 multipliers, `Ethos_U55_High_End_Embedded` and `Shared_Sram`."""


@dataclass(frozen=True)
class TensorOp:
    """One operation as far as the blocks it is cut into and their cost depend on it."""

    kind: str
    """ "conv", "depthwise", "pool", "copy" (a pool of one element that moves a tensor), "sum" (over channels),
    "product" (of two tensors), "elements", "resize"; on the smaller NPU also "transpose" and "matmul"."""
    input: Shape
    output: Shape
    window: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    input_bits: int = 8
    output_bits: int = 8
    second: Shape | None = None
    """The second input."""
    wide_sums: bool = False
    """Sums of 16-bit inputs take more than 32 bits."""
    output_cycles: float = 0.25
    """What one output takes, with all that is chained."""
    permuted: str = ""
    """How the dimensions of the output are exchanged while it is written, e.g. "NWHC"."""
    permuted_bricks: bool = False
    """And whether it is written in bricks of 16 channels."""
    spread: bool = False
    """Zeros or copies are put between the inputs (a transposed convolution)."""

    @property
    def keeps_channels(self) -> bool:
        """Each output channel has its own input channel."""
        return self.kind in ("depthwise", "pool", "copy", "elements", "resize")

    def is_sparse(self, npu: Npu) -> bool:
        """Of four neighbours in depth two are zero, since there are only two: the larger NPU leaves them out."""
        return self.kind == "conv" and self.input[3] <= 2 and not npu.shared


def permuted_back(shape: Shape, order: str) -> Shape:
    """The shape before its dimensions were exchanged as in `TensorOp.permuted`."""
    if not order:
        return shape
    back = dict(zip(order, shape, strict=True))
    return back["N"], back["H"], back["W"], back["C"]


def up(value: int, step: int) -> int:
    """The next multiple."""
    return -(-value // step) * step
