"""Bytes of single operations, derived by hand."""

from __future__ import annotations

import pytest

from irgauge.featurize.npu.cost import Place
from irgauge.featurize.npu.devices import U85, TensorOp
from irgauge.featurize.npu.traffic import Weights, access

CONV = TensorOp("conv", (1, 24, 24, 128), (1, 24, 24, 128), (3, 3), input_bits=16, output_bits=16, wide_sums=True)
READ = 9 * 8 * 100 * 128 * 2
WRITTEN = 24 * 24 * 128 * 2
OUTSIDE, CACHED = Place(U85.tensors), Place(U85.cache, bricks=True)


def test_bursts_count_in_full() -> None:
    """Channels last, a block's rows are runs of 16 channels of 2 bytes: a quarter of a burst, read and written."""
    found = access(CONV, U85, OUTSIDE, OUTSIDE)
    assert found.tensor_bytes == 4 * READ + 4 * WRITTEN
    assert found.cache_bytes == 0
    assert found.cycles == pytest.approx(4 * READ / 3.2768, abs=1)  # what its requests under way let through


def test_bricks_in_the_cache_waste_nothing() -> None:
    found = access(CONV, U85, CACHED, CACHED)
    assert found.tensor_bytes == 0
    assert found.cache_bytes == READ + WRITTEN


def test_weights_are_read_for_each_block_where_they_lie() -> None:
    weights = Weights(150_000, 1280, U85.constants)
    assert access(CONV, U85, CACHED, CACHED, weights).constant_bytes == 9 * 151_280


def test_weights_that_are_copied_leave_their_place_once() -> None:
    plain = access(CONV, U85, CACHED, CACHED).cache_bytes
    weights = Weights(150_000, 1280, U85.constants, U85.cache, ahead_bytes=20_000)
    found = access(CONV, U85, CACHED, CACHED, weights)
    assert found.constant_bytes == 151_280
    assert found.cache_bytes == plain + (151_280 - 20_000) + 9 * 150_000
