"""Intervals cover what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from irgauge.models.conformal import COVERAGE, calibrate


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions whose error grows with their size and leans upwards."""
    rng = np.random.default_rng(seed)
    predicted = rng.uniform(0, 10, n)
    return predicted, predicted + (0.02 + predicted / 10) * (rng.exponential(1, n) - 0.3)


def test_as_many_new_rows_as_promised_are_inside_in_every_size_group() -> None:
    intervals = calibrate(*drawn(4000, 0))
    predicted, actual = drawn(20_000, 1)
    low, high = intervals.bounds(predicted)
    inside = (actual >= low) & (actual <= high)
    assert abs(inside.mean() - COVERAGE) < 0.01
    for start in (0, 5, 8):
        assert inside[(predicted >= start) & (predicted < start + 2)].mean() > 0.92


def test_small_and_large_predictions_get_different_widths() -> None:
    low, high = calibrate(*drawn(4000, 0)).bounds(np.array([0.5, 9.5]))
    assert (high - low)[1] > 3 * (high - low)[0]


def test_few_rows_use_their_largest_errors() -> None:
    intervals = calibrate(np.zeros(3), np.array([-1.0, 0, 2]))
    low, high = intervals.bounds(np.zeros(1))
    assert (low[0], high[0]) == (-1, 2)


def test_the_prediction_itself_is_always_inside() -> None:
    intervals = calibrate(np.zeros(300), np.linspace(1, 2, 300))
    low, high = intervals.bounds(np.zeros(1))
    assert low[0] <= 0 <= high[0]


def test_equal_predictions_share_one_group() -> None:
    predicted = np.r_[np.zeros(900), np.linspace(1, 2, 100)]
    intervals = calibrate(predicted, predicted)
    assert len(intervals.below) == len(intervals.edges) + 1
    assert np.isfinite(intervals.bounds(np.array([0.0, 1.5, 99]))[0]).all()


def test_no_rows_are_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        calibrate(np.zeros(0), np.zeros(0))
