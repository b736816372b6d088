"""Cycles of single operations, derived by hand."""

from __future__ import annotations

import pytest

from irgauge.featurize.npu.cost import Place, input_elements, macs, op_cycles, passes
from irgauge.featurize.npu.devices import U55, U85, Npu, TensorOp

CONV_16_BIT = TensorOp(
    "conv", (1, 24, 24, 128), (1, 24, 24, 128), (3, 3), input_bits=16, output_bits=16, wide_sums=True
)


def _cycles(op: TensorOp, npu: Npu) -> int:
    cached = Place(npu.cache, bricks=True)
    return op_cycles(op, npu, cached, cached, npu.cache)


def test_inputs_are_read_again_for_each_block_and_group_of_channels() -> None:
    """9 blocks of 8 x 8 x 16 outputs read 10 x 10 inputs of 128 channels for each of 8 groups of output channels."""
    assert passes(CONV_16_BIT, U85) == 9
    assert input_elements(CONV_16_BIT, U85, bricks=False) == 9 * 8 * 100 * 128


def test_macs_are_outputs_by_window_by_channels() -> None:
    assert macs(CONV_16_BIT, U85) == 24 * 24 * 128 * 9 * 128
    assert macs(TensorOp("depthwise", (1, 8, 8, 32), (1, 8, 8, 32), (3, 3)), U85) == 8 * 8 * 32 * 9
    assert macs(TensorOp("elements", (1, 8, 8, 32), (1, 8, 8, 32)), U85) == 0


def test_the_larger_npu_leaves_out_half_of_two_channels() -> None:
    few = TensorOp("conv", (1, 8, 8, 2), (1, 8, 8, 16), (3, 3))
    assert 2 * macs(few, U85) == macs(few, U55)


@pytest.mark.parametrize("npu", [U55, U85])
def test_a_large_convolution_keeps_the_multipliers_busy(npu: Npu) -> None:
    """Nothing but the ends is added to what all multipliers take; inputs of 16 bits take them twice."""
    op = TensorOp("conv", (1, 64, 64, 64), (1, 64, 64, 64))
    least = macs(op, npu) / npu.macs
    assert least <= _cycles(op, npu) < 1.15 * least
    wide = TensorOp("conv", op.input, op.output, input_bits=16, output_bits=16, wide_sums=True)
    assert 2 * least <= _cycles(wide, npu) < 2.3 * least


def test_a_window_of_nine_is_walked_in_steps_of_four() -> None:
    op = TensorOp("conv", (1, 64, 64, 64), (1, 64, 64, 64), (3, 3))
    least = macs(op, U85) / U85.macs
    assert least * 12 / 9 <= _cycles(op, U85) < 1.1 * least * 12 / 9


def test_three_channels_use_a_part_of_the_multipliers() -> None:
    few = TensorOp("conv", (1, 32, 32, 3), (1, 32, 32, 16), (3, 3))
    assert macs(few, U85) / _cycles(few, U85) < U85.macs / 2


@pytest.mark.parametrize("npu", [U55, U85])
@pytest.mark.parametrize("kind", ["conv", "depthwise", "pool", "copy", "sum", "product", "elements"])
def test_more_of_anything_takes_no_less(kind: str, npu: Npu) -> None:
    for bits in (8, 16, 32):
        for depth in (1, 9, 300):
            taken = []
            for height in (1, 7, 64):
                shape = (1, height, 5, depth)
                out = (1, height, 5, 1) if kind == "sum" else shape
                second = shape if kind in ("elements", "product") else None
                taken.append(_cycles(TensorOp(kind, shape, out, input_bits=bits, second=second), npu))
            assert 0 < taken[0] <= taken[1] <= taken[2]
