"""The block that an operation is cut into is the one that Vela 5.2 prints (--verbose-schedule)."""

from __future__ import annotations

import pytest

from irgauge.featurize.npu.blocks import plan
from irgauge.featurize.npu.devices import U55, U85, Block, Npu, TensorOp

CONV_16_BIT = TensorOp(
    "conv", (1, 24, 24, 128), (1, 24, 24, 128), (3, 3), input_bits=16, output_bits=16, wide_sums=True
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
        (TensorOp("pool", (1, 32, 32, 64), (1, 16, 16, 64), (2, 2), (2, 2)), U85, (15, 16, 16)),
    ],
)
def test_blocks_are_those_of_vela(op: TensorOp, npu: Npu, block: Block) -> None:
    assert plan(op, npu).block == block


@pytest.mark.parametrize("npu", [U55, U85])
def test_a_block_fits_the_memories(npu: Npu) -> None:
    for depth in (1, 9, 64, 300):
        cut = plan(TensorOp("conv", (1, 60, 60, depth), (1, 60, 60, depth), (3, 3)), npu)
        outputs = cut.block[0] * cut.block[1] * cut.block[2]
        assert outputs * 4 * 2 <= npu.sum_bytes
        assert all(n % m == 0 for n, m in zip(cut.block, cut.micro, strict=True))


@pytest.mark.parametrize("npu", [U55, U85])
def test_what_fits_no_memory_has_the_least_block(npu: Npu) -> None:
    """Numbers of 64 bits that are spread: no NPU does it, and the plan of a broken network must not fail."""
    cut = plan(TensorOp("pool", (1, 1, 1, 1), (1, 20, 20, 16), input_bits=64, output_bits=16), npu)
    assert all(n >= least for n, least in zip(cut.block, cut.micro, strict=True))
