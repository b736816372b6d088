"""Every candidate learns, repeats itself, and is read without loss."""

from __future__ import annotations

import numpy as np
import pytest

from irgauge.models.candidates import (
    CANDIDATES,
    Settings,
    fit_candidate,
    fit_gate,
    fit_order,
    fit_ridge,
    screen_columns,
)
from irgauge.models.metrics import Judged, kendall_tau, within_programs
from irgauge.models.target_model import Part

QUICK = Settings().quick()


def data(n: int = 300, n_features: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.floor(np.exp(rng.normal(2, 1.5, (n, n_features)))).astype(np.float32)
    return X, np.log1p(X[:, 0].astype(float)) + 0.5 * (X[:, 3] > 8)


def same(a: Part, b: Part) -> bool:
    return a.base == b.base and all(
        np.array_equal(getattr(a.forest, f), getattr(b.forest, f))
        for f in ("feature", "threshold", "left", "value", "roots")
    )


@pytest.mark.parametrize("name", CANDIDATES)
def test_same_data_and_seed_give_the_same_model(name: str) -> None:
    X, z = data()
    assert same(fit_candidate(name, X, z, 7, QUICK), fit_candidate(name, X, z, 7, QUICK))


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "hist", "mean", "ridge"])
def test_learners_beat_the_constant(name: str) -> None:
    X, z = data()
    error = np.abs(fit_candidate(name, X, z, 0, QUICK).predict(X) - z).mean()
    assert error < 0.4 * np.abs(z - np.median(z)).mean()


def test_mean_is_the_mean_of_both() -> None:
    X, z = data()
    both = [fit_candidate(b, X, z, 0, QUICK).predict(X) for b in ("lightgbm", "xgboost")]
    np.testing.assert_allclose(fit_candidate("mean", X, z, 0, QUICK).predict(X), (both[0] + both[1]) / 2, atol=1e-9)


def test_ridge_is_the_closed_form_of_scikit_learn() -> None:
    from sklearn.linear_model import Ridge

    X, z = data()
    squashed = np.log1p(X.astype(float))
    Z = (squashed - squashed.mean(axis=0)) / squashed.std(axis=0)
    theirs = Ridge(alpha=3.0 * len(z) / 100).fit(Z, z).predict(Z)
    np.testing.assert_allclose(fit_ridge(X, z, 3.0).predict(X), theirs, atol=1e-9)


def test_ridge_does_not_run_away_beyond_its_training_range() -> None:
    X, z = data()
    part = fit_ridge(X, z, 3.0)
    beyond = np.full((1, X.shape[1]), 1e30, np.float32)
    assert part.predict(beyond)[0] == part.predict(np.full((1, X.shape[1]), X.max(), np.float32) * 10)[0]


def test_screening_keeps_what_matters_and_drops_constants() -> None:
    X, z = data(n_features=40)
    X[:, 5] = 3
    kept = screen_columns(X, z, 0, Settings(screened_columns=4))
    assert len(kept) <= 4
    assert {0, 3} <= set(kept)
    assert 5 not in screen_columns(X, z, 0, Settings(screened_columns=100))


def test_gate_tells_zero_from_not_zero() -> None:
    X, _ = data()
    nonzero = X[:, 2] > 9
    odds = fit_gate(X, nonzero, 0, QUICK).predict(X)
    assert ((odds >= 0) == nonzero).mean() > 0.97


def test_gate_with_one_class_is_a_constant() -> None:
    X, _ = data()
    part = fit_gate(X, np.zeros(len(X), bool), 0, QUICK)
    assert part.forest.n_trees == 0
    assert part.base < -5


def test_a_constant_label_needs_no_trees() -> None:
    X, z = data()
    part = fit_candidate("lightgbm", X, np.full(len(z), 2.0), 0, QUICK)
    assert part.forest.n_trees == 0
    assert part.predict(X[:2]).tolist() == [2, 2]


def test_unknown_candidate_and_no_rows_are_errors() -> None:
    X, z = data()
    with pytest.raises(ValueError, match="unknown candidate 'forest'"):
        fit_candidate("forest", X, z, 0, QUICK)
    with pytest.raises(ValueError, match="0 rows"):
        fit_candidate("ridge", X[:0], z[:0], 0, QUICK)


def test_robust_lightgbm_is_not_pulled_by_wild_rows() -> None:
    X, z = data()
    wild = z.copy()
    wild[::10] += 5
    calm = np.ones(len(z), bool)
    calm[::10] = False
    errors = [
        np.abs(
            fit_candidate("lightgbm", X, wild, 0, Settings(min_rows_in_leaf=20), robust=robust).predict(X)[calm]
            - z[calm]
        ).mean()
        for robust in (True, False)
    ]
    assert errors[0] < 0.75 * errors[1]


def test_order_is_learned_from_order_alone() -> None:
    """Sizes of programs differ a thousandfold and say nothing; within a program one column decides."""
    rng = np.random.default_rng(2)
    n = 1200
    programs = np.repeat(np.arange(n // 6), 6)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    z = rng.uniform(0, 20, n // 6)[programs] + 0.01 * X[:, 2]
    settings = Settings()
    order = fit_order(X, z, programs, 0, settings)
    assert same(order, fit_order(X, z, programs, 0, settings))
    moved = order.predict(X)
    assert within_programs(Judged(z, moved, programs.astype(str).tolist()), kendall_tau) > 0.8
    assert np.abs(moved).max() < 5 * settings.order_weight  # it decides between near ones, not between any two


def test_leaves_are_rounded_far_below_what_they_are_sure_of() -> None:
    X, z = data()
    part = fit_candidate("lightgbm", X, z, 0, QUICK)
    mantissa = np.ldexp(np.frexp(part.forest.value)[0], 11)
    np.testing.assert_array_equal(mantissa, np.round(mantissa))
    single = part.forest.value.astype(np.float32)
    np.testing.assert_array_equal(single, part.forest.value)
