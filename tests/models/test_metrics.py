"""Figures mean what their docstrings say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from irgauge.models import metrics
from irgauge.models.metrics import Judged, score

labels = arrays(np.float64, st.integers(2, 30), elements=st.floats(0, 1e9, width=32))


def judged(y: list[float], predicted: list[float], programs: str | None = None, **more: object) -> Judged:
    return Judged(np.array(y, float), np.array(predicted, float), list(programs or "p" * len(y)), **more)  # type: ignore[arg-type]


@settings(deadline=None)
@given(labels)
def test_a_perfect_prediction_has_no_error(y: np.ndarray) -> None:
    s = score(Judged(y, y.copy(), ["p"] * len(y), low=y, high=y))
    assert s["rmse"] == 0
    assert s["within10"] == 1
    assert s["coverage90"] == 1
    for name, best in (("mape", 0), ("regret1", 0), ("regret5", 0), ("kendall", 1), ("exact", 1)):
        assert math.isnan(s[name]) or s[name] == pytest.approx(best, abs=1e-12)


@settings(deadline=None)
@given(labels, st.integers(0, 1000))
def test_figures_stay_in_their_ranges(y: np.ndarray, seed: int) -> None:
    predicted = np.random.default_rng(seed).permutation(y)
    s = score(Judged(y, predicted, [str(i % 3) for i in range(len(y))], low=predicted, high=predicted))
    for name in ("within10", "coverage90", "zeros", "exact", "f1_nonzero", "precision_nonzero", "recall_nonzero"):
        assert math.isnan(s[name]) or 0 <= s[name] <= 1
    for name in ("spearman", "kendall"):
        assert math.isnan(s[name]) or -1 - 1e-9 <= s[name] <= 1 + 1e-9
    for name in ("rmse", "mape", "mdape", "regret1", "regret5"):
        assert math.isnan(s[name]) or s[name] >= -1e-12
    assert not s["regret5"] > s["regret1"] + 1e-9 or len(set(predicted)) < len(predicted)


@settings(deadline=None)
@given(labels, st.integers(0, 100))
def test_ranks_do_not_care_about_scale(y: np.ndarray, seed: int) -> None:
    predicted = np.random.default_rng(seed).permutation(np.arange(1.0, len(y) + 1))
    one, other = score(Judged(y, predicted, ["p"] * len(y))), score(Judged(y, predicted**3, ["p"] * len(y)))
    for name in ("spearman", "kendall", "regret1", "regret5"):
        np.testing.assert_allclose(one[name], other[name], atol=1e-9)


def test_relative_errors_leave_zero_labels_out() -> None:
    s = score(judged([0, 10, 100], [5, 11, 50]))
    assert s["mape"] == pytest.approx((0.1 + 0.5) / 2)
    assert s["mdape"] == pytest.approx(0.3)
    assert s["zeros"] == pytest.approx(1 / 3)
    assert s["within10"] == pytest.approx(1 / 3)


def test_rmse_pct_is_a_share_of_the_mean() -> None:
    assert score(judged([8, 12], [9, 11]))["rmse_pct"] == pytest.approx(0.1)


def test_exact_rounds_predictions_and_needs_whole_labels() -> None:
    assert score(judged([3, 4], [3.4, 4.6]))["exact"] == 0.5
    assert math.isnan(score(judged([3.5, 4], [3.5, 4]))["exact"])


def test_spearman_shares_ranks_between_ties() -> None:
    from scipy.stats import spearmanr

    y, predicted = np.array([1, 2, 2, 5, 9.0]), np.array([3, 1, 4, 4, 8.0])
    assert metrics.spearman(y, predicted) == pytest.approx(spearmanr(y, predicted).statistic)


def test_kendall_is_the_mean_over_programs_with_variants() -> None:
    s = score(judged([1, 2, 3, 1, 2, 7], [1, 2, 3, 2, 1, 7], "aaabbc"))
    assert s["kendall"] == pytest.approx((1 - 1) / 2)


def test_kendall_counts_a_predicted_tie_as_undecided() -> None:
    assert metrics.kendall_tau(np.array([1.0, 2, 3]), np.array([1.0, 1, 2])) == pytest.approx(2 / 3)


def test_regret_of_the_first_pick() -> None:
    assert score(judged([10, 15, 30], [2, 1, 3]))["regret1"] == pytest.approx(0.5)
    assert score(judged([10, 15, 30], [2, 9, 1], lower_is_better=False))["regret1"] == pytest.approx(0.5)


def test_equal_predictions_are_drawn_at_random() -> None:
    assert metrics.regret(np.array([10.0, 20]), np.array([1.0, 1]), 1) == pytest.approx(0.5)
    assert metrics.regret(np.array([10.0, 20, 30]), np.array([1.0, 1, 1]), 2) == pytest.approx(1.0)


def test_regret5_measures_five() -> None:
    y = [10, 20, 30, 40, 50, 60, 70.0]
    assert score(judged(y, [9, 1, 2, 3, 4, 5, 6]))["regret5"] == pytest.approx(1.0)
    assert score(judged(y, [5, 1, 2, 3, 4, 9, 9]))["regret5"] == 0


def test_five_variants_leave_nothing_to_lose() -> None:
    assert math.isnan(metrics.regret(np.arange(1.0, 6), np.arange(1.0, 6), 5))


def test_a_free_best_variant_has_no_relative_regret() -> None:
    assert math.isnan(metrics.regret(np.array([0.0, 4]), np.array([2.0, 1]), 1))


def test_spills_at_all() -> None:
    assert metrics.nonzero_scores(np.array([0, 0, 2, 9, 1.0]), np.array([0, 3, 2, 8, 0.2])) == pytest.approx(
        (2 / 3, 2 / 3, 2 / 3)
    )
    assert all(math.isnan(v) for v in metrics.nonzero_scores(np.ones(3), np.ones(3)))


def test_coverage_counts_the_bounds_in() -> None:
    assert metrics.coverage(np.array([1.0, 2, 3]), np.array([1.0, 2.5, 0]), np.array([2.0, 3, 3])) == pytest.approx(
        2 / 3
    )


def test_shapes_and_nan_are_refused() -> None:
    with pytest.raises(ValueError, match="do not match"):
        score(Judged(np.ones(3), np.ones(2), list("abc")))
    with pytest.raises(ValueError, match="not finite"):
        score(judged([1, float("nan")], [1, 2]))


def test_one_program_with_far_variants_moves_the_mean_and_not_the_median() -> None:
    y = np.array([1.0, 2, 1, 1.1, 1, 500])
    predicted = np.array([2.0, 1, 2, 1, 2, 1])
    found = score(Judged(y, predicted, ["a", "a", "b", "b", "c", "c"]))
    assert found["regret1"] == pytest.approx((1 + 0.1 + 499) / 3)
    assert found["regret1_median"] == pytest.approx(1)
