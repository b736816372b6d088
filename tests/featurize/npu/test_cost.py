"""Blocks, bytes and cycles of single operations, derived by hand or as Vela 5.2 prints them (--verbose-schedule)."""

from __future__ import annotations

import math

import pytest

from irgauge.featurize.npu import U55, U85, Npu, TensorOp, cost, passes
from irgauge.featurize.npu.blocks import plan

CONV_16_BIT = TensorOp(
    "conv", (1, 24, 24, 128), (1, 24, 24, 128), (3, 3), input_bits=16, output_bits=16, weight_bytes=151488
)


@pytest.mark.parametrize(
    ("op", "npu", "block"),
    [
        (CONV_16_BIT, U85, (8, 8, 16)),
        (CONV_16_BIT, U55, (6, 12, 16)),
        (TensorOp("conv", (1, 80, 80, 11), (1, 80, 80, 176), (3, 1)), U85, (16, 4, 32)),
        (TensorOp("conv", (1, 7, 53, 192), (1, 1, 23, 168), (7, 9), (1, 2)), U85, (1, 24, 64)),
        (TensorOp("conv", (1, 7, 53, 192), (1, 1, 23, 168), (7, 9), (1, 2)), U55, (1, 10, 96)),
        (TensorOp("conv", (1, 33, 33, 18), (1, 11, 11, 176), (3, 3), (3, 3)), U55, (2, 12, 32)),
        (TensorOp("depthwise", (1, 26, 26, 32), (1, 26, 26, 32)), U85, (11, 10, 32)),
        (TensorOp("depthwise", (1, 32, 32, 48), (1, 16, 32, 48), (9, 1), (2, 1)), U85, (15, 16, 16)),
        (TensorOp("depthwise", (1, 71, 31, 71), (1, 67, 27, 71), (5, 5), input_bits=16), U85, (17, 4, 16)),
        (TensorOp("pool", (1, 32, 32, 64), (1, 16, 16, 64), (2, 2), (2, 2)), U85, (15, 16, 16)),
    ],
)
def test_blocks_are_those_of_vela(op: TensorOp, npu: Npu, block: tuple[int, int, int]) -> None:
    assert plan(op, npu).block == block


def test_bytes_of_a_convolution_count_bursts_in_full() -> None:
    """9 blocks of 8 x 8 x 16 outputs read 10 x 10 inputs of 128 channels for each of 8 groups of output channels, in
    runs of 16 channels of 2 bytes, a quarter of a burst; what is written goes in runs of 32 bytes too."""
    assert passes(CONV_16_BIT, U85) == 9
    found = cost(CONV_16_BIT, U85)
    read = 9 * 8 * 100 * 128 * 2 * 4
    written = 24 * 24 * 128 * 2 * 4
    assert found.tensor_bytes == read + written
    assert found.constant_bytes == 9 * (151488 + 10 * 128)
    assert found.cycles == pytest.approx(read / 3.2768)  # a channel's requests under way bound it; Vela says 2,250,000
    assert found.macs == 24 * 24 * 128 * 9 * 128


def test_array_cycles_follow_the_micro_block() -> None:
    """2 x 2 x 8 or 1 x 4 x 8 outputs and 8 input channels a cycle, 16-bit inputs in two."""
    op = TensorOp("conv", (1, 16, 16, 64), (1, 16, 16, 64), (1, 1), input_cached=True, output_cached=True)
    assert cost(op, U85).array == 16 * 16 * 64 * 64 / 256
    assert cost(CONV_16_BIT, U85).array >= 2 * 24 * 24 * 128 * 9 * 128 / 256


def test_three_channels_use_a_part_of_the_array() -> None:
    few = TensorOp("conv", (1, 32, 32, 3), (1, 32, 32, 16), (3, 3))
    assert cost(few, U85).macs / cost(few, U85).array < 128


@pytest.mark.parametrize("npu", [U55, U85])
@pytest.mark.parametrize("kind", ["conv", "depthwise", "pool", "sum", "product", "elements"])
def test_every_size_has_a_finite_cost(kind: str, npu: Npu) -> None:
    for height in (1, 7, 64):
        for depth in (1, 9, 300):
            for bits in (8, 16, 32):
                shape = (1, height, 5, depth)
                out = (1, height, 5, 1) if kind == "sum" else shape
                weights = depth if kind in ("conv", "depthwise") else 0
                found = cost(TensorOp(kind, shape, out, (3, 3), input_bits=bits, weight_bytes=weights), npu)
                assert math.isfinite(found.cycles)
                assert found.cycles >= found.compute > 0


@pytest.mark.parametrize("npu", [U55, U85])
def test_more_work_takes_no_less(npu: Npu) -> None:
    sizes = [cost(TensorOp("conv", (1, n, n, 32), (1, n, n, 32), (3, 3)), npu).cycles for n in (8, 16, 32, 64)]
    assert sizes == sorted(sizes)
