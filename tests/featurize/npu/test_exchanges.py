"""Exchanges of dimensions, carried out on numbers, are the transpose that was asked for."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from irgauge.featurize.npu.devices import U55, U85, Npu, permuted_back
from irgauge.featurize.npu.exchanges import exchanges, permuted_forward


def _moved(shape: tuple[int, ...], order: tuple[int, ...], npu: Npu) -> list[int]:
    """Numbers from 0 on, of that shape, after all exchanges."""
    values = np.arange(math.prod(shape))
    for read, name in exchanges(shape, order, npu):
        values = values.reshape(read).transpose(["NHWC".index(letter) for letter in name or "NHWC"]).ravel()
    return [int(n) for n in values]


def _wanted(shape: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    return [int(n) for n in np.arange(math.prod(shape)).reshape(shape).transpose(order).ravel()]


@pytest.mark.parametrize("npu", [U55, U85])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (1, 3, 4, 5), (1, 2, 1, 6), (7, 1, 2, 3), (1, 1, 3, 4, 2)])
def test_exchanges_in_turn_are_the_transpose(shape: tuple[int, ...], npu: Npu) -> None:
    for order in itertools.permutations(range(len(shape))):
        assert _moved(shape, order, npu) == _wanted(shape, order), order


@pytest.mark.parametrize("npu", [U55, U85])
def test_four_dimensions_whose_inner_two_change_places_take_five(npu: Npu) -> None:
    """Heads of a transformer with a batch."""
    shape, order = (2, 5, 3, 4, 1), (0, 2, 1, 3, 4)
    assert len(exchanges(shape, order, npu)) == 5
    assert _moved(shape, order, npu) == _wanted(shape, order)


def test_the_smaller_npu_turns_in_two() -> None:
    assert len(exchanges((1, 3, 4, 5), (0, 2, 3, 1), U85)) == 1
    assert len(exchanges((1, 3, 4, 5), (0, 2, 3, 1), U55)) == 2


def test_back_undoes_forward() -> None:
    for order in ("NHWC", "NWHC", "NHCW", "NWCH", "NCHW", "NCWH"):
        assert permuted_back(permuted_forward((1, 3, 4, 5), order), order) == (1, 3, 4, 5)
