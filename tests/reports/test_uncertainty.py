"""The bootstrap draws programs, not rows."""

from __future__ import annotations

import numpy as np
import pytest

from irgauge.models.metrics import rmse, rmse_pct
from irgauge.reports.figures import mean_factor
from irgauge.reports.uncertainty import error_interval


def rows(n_programs: int, variants: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Errors that all variants of a program share."""
    rng = np.random.default_rng(seed)
    y = rng.uniform(10, 100, n_programs * variants)
    off = np.repeat(np.exp(rng.normal(0, 0.3, n_programs)), variants)
    return y, y * off, [f"p{i // variants}" for i in range(n_programs * variants)]


@pytest.mark.parametrize(
    ("metric", "figure"),
    [
        ("mape", lambda y, p: float(np.mean(np.abs(p - y) / y))),
        ("rmse", rmse),
        ("rmse_pct", rmse_pct),
        ("mean_factor", mean_factor),
    ],
)
def test_interval_holds_the_figure(metric: str, figure: object) -> None:
    y, predicted, programs = rows(40, 5)
    low, high = error_interval(metric, y, predicted, programs)
    assert low < figure(y, predicted) < high  # type: ignore[operator]
    assert high / low < 2


def test_variants_of_a_program_do_not_count_as_independent() -> None:
    y, predicted, programs = rows(40, 10)
    by_program = error_interval("mape", y, predicted, programs)
    by_row = error_interval("mape", y, predicted, [str(i) for i in range(len(y))])
    assert by_program[1] - by_program[0] > 2 * (by_row[1] - by_row[0])


def test_one_program_says_nothing() -> None:
    assert np.isnan(error_interval("mape", np.ones(3), np.ones(3), ["a"] * 3)).all()


def test_zero_labels_have_no_relative_error() -> None:
    y, predicted, programs = rows(20, 2)
    spoiled = np.append(y, 0.0), np.append(predicted, 1e9), [*programs, "zero"]
    assert error_interval("mape", *spoiled) == error_interval("mape", y, predicted, programs)


def test_unknown_metric() -> None:
    with pytest.raises(ValueError, match="'kendall'"):
        error_interval("kendall", np.ones(2), np.ones(2), ["a", "b"])
