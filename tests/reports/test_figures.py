"""Each target is judged by figures that fit it."""

from __future__ import annotations

import numpy as np
import pytest

from irgauge.data.targets import find_target
from irgauge.models.metrics import METRICS
from irgauge.reports.figures import FIGURES, better, figures_of, fitting_figures, mean_factor


@pytest.mark.parametrize(
    ("target", "labels", "expected"),
    [
        ("latency_ns", [10.0, 1e6], ("mape", "within10")),
        ("instructions_executed", [10.0, 1e6], ("mape", "within10")),
        ("gpr_used", [3.0, 15.0], ("rmse_pct", "exact")),
        ("spills", [0.0, 0.0, 100.0], ("mean_factor", "f1_nonzero")),
        ("spills", [0.0, 0.0, 3.0], ("mean_factor", "f1_nonzero")),
        ("vector_utilization", [0.0, 1.0], ("rmse", "within_tenth")),
        ("mca_ipc", [0.5, 4.0], ("mape", "within10")),
    ],
)
def test_figures_fit_the_kind(target: str, labels: list[float], expected: tuple[str, str]) -> None:
    assert fitting_figures(find_target(target), np.array(labels)) == expected


def test_every_figure_of_the_evaluation_has_a_name() -> None:
    assert set(METRICS) - {"zeros"} <= set(FIGURES)


def test_full_table_starts_with_the_targets_own_figures() -> None:
    names = figures_of("rmse", "within_tenth", whole=False)
    assert names[:3] == ("n", "rmse", "within_tenth")
    assert "exact" not in names
    assert len(set(names)) == len(names)


def test_better_knows_the_direction() -> None:
    assert better("mape", 0.1, 0.2)
    assert better("kendall", 0.9, 0.2)
    assert not better("mape", float("nan"), 0.2)
    assert not better("n", 1, 2)


def test_mean_factor_counts_zeros_and_both_directions() -> None:
    y, predicted = np.array([0.0, 3.0, 1.0]), np.array([0.0, 0.0, 3.0])
    assert mean_factor(y, predicted) == pytest.approx((1 * 4 * 2) ** (1 / 3))
