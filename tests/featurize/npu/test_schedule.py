"""The plan of the memories."""

from __future__ import annotations

import math

import pytest

from irgauge.featurize.npu.allocation import most_bytes
from irgauge.featurize.npu.devices import U55, U85, Npu
from irgauge.featurize.npu.schedule import step_costs

from .conftest import network, steps_of

BOTH = pytest.mark.parametrize("npu", [U55, U85], ids=["u55", "u85"])
CHAIN = network(lambda n, x: n.conv2d(n.conv2d(n.conv2d(x, 32), 32), 32))
LARGE = network(lambda n, x: n.conv2d(n.conv2d(n.conv2d(x, 32), 32), 32), 1, 160, 160, 16)


def test_tensors_between_operations_are_cached() -> None:
    first, second, last = steps_of(CHAIN, U85)
    assert not first.reads[0].cached
    assert first.writes.cached
    assert second.writes.cached
    assert not last.writes.cached
    assert [cost.tensor_bytes > 0 for cost in step_costs([first, second, last], U85)] == [True, False, True]


def test_what_does_not_fit_is_not_cached() -> None:
    assert not any(step.writes.cached for step in steps_of(LARGE, U85))


def test_the_smaller_npu_has_all_tensors_in_its_cache() -> None:
    steps = steps_of(LARGE, U55)
    assert all(tensor.cached for step in steps for tensor in (*step.reads, step.writes))
    assert not any(cost.tensor_bytes for cost in step_costs(steps, U55))


@BOTH
def test_weights_that_are_read_again_are_copied_ahead(npu: Npu) -> None:
    first, second, _ = steps_of(CHAIN, npu)
    assert second.buffered
    assert 0 < second.ahead_bytes <= second.buffer_bytes <= second.weight_bytes + second.scale_bytes
    assert first.ahead_bytes == 0  # nothing runs before


def test_most_bytes_are_two_tensors_and_the_weights() -> None:
    steps = steps_of(CHAIN, U85)
    tensor = 24 * 20 * 32
    buffers = [step.buffer_bytes for step in steps]
    assert 2 * tensor + min(buffers[1:]) <= most_bytes(steps, cached=True) <= 2 * tensor + sum(buffers)
    assert most_bytes(steps, cached=False) >= tensor


@BOTH
def test_cycles_are_the_slower_of_computing_and_memory(npu: Npu) -> None:
    for text in (CHAIN, LARGE):
        for cost in step_costs(steps_of(text, npu), npu):
            assert math.isfinite(cost.cycles)
            assert cost.cycles >= cost.compute > 0
