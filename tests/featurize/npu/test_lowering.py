"""What an NPU runs for small networks: what is merged, copied, cut and chained. Each is what Vela 5.2 prints for it."""

from __future__ import annotations

import pytest

from irgauge.featurize.npu.devices import U55, U85, Npu

from .conftest import kinds, network, steps_of

BOTH = pytest.mark.parametrize("npu", [U55, U85], ids=["u55", "u85"])


@BOTH
def test_padding_rescaling_and_activation_are_done_with_a_convolution(npu: Npu) -> None:
    (step,) = steps_of(network(lambda n, x: n.conv2d(x, 24, act="relu")), npu)
    assert (step.op.kind, step.op.input, step.op.output) == ("conv", (1, 24, 20, 16), (1, 24, 20, 24))
    assert step.fused
    assert step.weights == 24 * 9 * 16


@BOTH
def test_of_a_padding_of_its_own_only_the_borders_are_copied(npu: Npu) -> None:
    text = network(lambda n, x: n.max_pool(n.pad(n.max_pool(x), (0, 3, 0, 0), (0, 2, 0, 0))))
    assert kinds(text, npu) == ["pool", "copy", "copy", "pool"]
    of_input = network(lambda n, x: n.max_pool(n.pad(x, (0, 3, 0, 0), (0, 2, 0, 0))))
    assert kinds(of_input, npu) == ["copy", "copy", "copy", "pool"]


@BOTH
def test_a_reshaped_input_that_others_read_too_is_copied(npu: Npu) -> None:
    there_and_back = network(
        lambda n, x: n.add(n.conv2d(x, 16, 1), n.reshape(n.reshape(x, (1, 480, 1, 16)), (1, 24, 20, 16)))
    )
    assert "copy" not in kinds(there_and_back, npu)
    text = network(lambda n, x: n.add(n.reshape(n.conv2d(x, 16, 1), (1, 480, 1, 16)), n.reshape(x, (1, 480, 1, 16))))
    assert kinds(text, npu).count("copy") == 1


@BOTH
def test_parts_are_written_where_they_are_joined(npu: Npu) -> None:
    text = network(lambda n, x: n.max_pool(n.concat([n.conv2d(x, 16, 1), n.conv2d(x, 8, 3)])))
    steps = steps_of(text, npu)
    assert [step.op.kind for step in steps] == ["conv", "conv", "pool"]
    assert steps[0].writes is steps[1].writes is steps[2].reads[0]
    assert steps[2].reads[0].shape == (1, 24, 20, 24)


@BOTH
def test_a_part_is_read_where_it_lies(npu: Npu) -> None:
    text = network(lambda n, x: n.conv2d(n.slice(n.max_pool(x), (0, 0, 0, 0), (1, 6, 10, 16)), 8, 1))
    pool, conv = steps_of(text, npu)
    assert conv.op.input == (1, 6, 10, 16)
    assert conv.reads[0] is pool.writes


def test_elements_are_chained_on_the_larger_npu_only() -> None:
    text = network(lambda n, x: n.mul(n.add(n.max_pool(x), n.avg_pool(x)), n.max_pool(x, 2, 2)))
    larger, smaller = steps_of(text, U85), steps_of(text, U55)
    assert any(step.chained for step in larger)
    assert not any(step.chained for step in smaller)
    assert len(larger) < len(smaller)


@BOTH
def test_a_dilation_of_more_than_two_is_cut_into_its_phases(npu: Npu) -> None:
    text = network(lambda n, x: n.conv2d(x, 8, 3, dilation=3))
    steps = steps_of(text, npu)
    assert len(steps) == 9
    assert len({step.weights_of for step in steps}) == 1
    assert {step.op.output[1:3] for step in steps} == {
        (24 - down, 20 - right) for down in range(3) for right in range(3)
    }


@BOTH
def test_a_depthwise_with_two_outputs_a_channel_is_two_and_seven_exchanges(npu: Npu) -> None:
    text = network(lambda n, x: n.depthwise(x, 3, multiplier=2))
    found = kinds(text, npu)
    assert found[:2] == ["depthwise", "depthwise"]
    assert found[2:] == (["transpose"] * 7 if npu is U55 else ["pool"] * 7)


def test_a_transposed_convolution_is_one_for_each_phase_on_the_larger_npu() -> None:
    text = network(lambda n, x: n.transpose_conv2d(x, 8, 4, 2))
    assert kinds(text, U55) == ["conv", "elements"]  # its rescaling is a product, element by element
    *found, rescaling = steps_of(text, U85)
    assert [step.op.window for step in found] == [(2, 2)] * 4
    assert rescaling.op.input_bits == 32


@BOTH
def test_a_transpose_that_moves_nothing_is_none(npu: Npu) -> None:
    text = network(lambda n, x: n.max_pool(n.transpose(n.conv2d(x, 8, 1), (0, 2, 1, 3)), 1, 1), 1, 24, 1, 16)
    assert kinds(text, npu) == ["conv", "pool"]


def test_a_sum_goes_over_channels() -> None:
    text = network(lambda n, x: n.mean(x, 1))
    steps = steps_of(text, U85)
    total = next(step for step in steps if step.op.kind == "sum")
    assert total.op.output[3] == 1
    assert total.op.input[3] == 24
