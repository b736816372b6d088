"""Trees read from a library decide exactly as the library does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irgauge.models import trees

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
ensemble = pytest.importorskip("sklearn.ensemble")


def numbers(seed: int = 0, n: int = 400, n_features: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Counts, zeros, huge sizes and fractions, as features are; a target that depends on several of them."""
    rng = np.random.default_rng(seed)
    X = np.floor(np.exp(rng.normal(1, 3, (n, n_features)))).astype(np.float32)
    X[:, 1] = rng.random(n)
    X[:, 2] *= rng.random(n) < 0.3
    X[:, 3] = rng.normal(size=n) * 1e6
    X[:, 4] = X[:, 4] * np.float32(2**24)
    y = np.log1p(X[:, 0]) + 3 * X[:, 1] * (X[:, 2] > 0) + np.log1p(np.abs(X[:, 3])) / 5 + rng.normal(0, 0.1, n)
    return X, y


def with_hits(X: np.ndarray, forest: trees.Forest, seed: int = 1) -> np.ndarray:
    """Rows whose values sit on thresholds, one float32 step beside them, at 0, at the extremes."""
    rng = np.random.default_rng(seed)
    out = X[rng.integers(0, len(X), 600)].copy()
    inner = np.flatnonzero(forest.left != np.arange(forest.n_nodes))
    for row in out:
        for node in rng.choice(inner, 6):
            t = forest.threshold[node]
            row[forest.feature[node]] = rng.choice(
                [
                    t,
                    *(np.nextafter(np.clip(t, -3e38, 3e38), np.float32(s)) for s in (-np.inf, np.inf)),
                    np.float32(0),
                    np.float32(3e38),
                ]
            )
    return out


def fit_xgboost(X: np.ndarray, y: np.ndarray, **params: Any) -> Any:
    settings = {"max_depth": 5, "eta": 0.2, "nthread": 1, "tree_method": "hist", **params}
    return xgboost.train(settings, xgboost.DMatrix(X, y, nthread=1), 40)


def fit_lightgbm(X: np.ndarray, y: np.ndarray, **params: Any) -> Any:
    settings = {"objective": "l2", "num_leaves": 20, "min_data_in_leaf": 4, "verbose": -1, "num_threads": 1, **params}
    return lightgbm.train(settings, lightgbm.Dataset(X, y), 40)


def with_missing(X: np.ndarray, seed: int = 2) -> np.ndarray:
    out = X.copy()
    out[np.random.default_rng(seed).random(X.shape) < 0.15] = np.nan
    return out


@pytest.mark.parametrize("missing", [False, True])
def test_xgboost_reaches_the_same_leaves(missing: bool) -> None:
    X, y = numbers()
    booster = fit_xgboost(with_missing(X) if missing else X, y)
    boosted = trees.from_xgboost(booster)
    rows = with_hits(X, boosted.forest)
    rows = np.concatenate([rows, with_missing(rows)])
    theirs = booster.predict(xgboost.DMatrix(rows, nthread=1), output_margin=True)
    ours = boosted.base + boosted.forest.predict(rows)
    # XGBoost adds up in float32: equal to a few of its rounding steps, and a different leaf is far further off.
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5)
    contributions = booster.predict(xgboost.DMatrix(rows[:1], nthread=1), iteration_range=(0, 1), output_margin=True)
    first = boosted.base + boosted.forest.part(0, 1).predict(rows[:1])
    np.testing.assert_allclose(first, contributions, rtol=0, atol=1e-6)


def test_xgboost_leaf_values_sum_exactly_in_float32() -> None:
    X, y = numbers(3)
    booster = fit_xgboost(X, y)
    boosted = trees.from_xgboost(booster)
    rows = with_hits(X, boosted.forest)
    ends = boosted.forest.leaves(rows)
    total = np.full(len(rows), boosted.base, np.float32)
    for tree in range(boosted.forest.n_trees):
        total += boosted.forest.value[ends[tree]].astype(np.float32)
    sums = booster.predict(xgboost.DMatrix(rows, nthread=1), output_margin=True)
    assert np.abs(total - sums).max() <= 4e-6  # base_score is added first or last, by release


def test_xgboost_logistic_base_score_is_a_margin() -> None:
    X, y = numbers()
    booster = fit_xgboost(X, (y > np.quantile(y, 0.8)).astype(float), objective="binary:logistic", base_score=0.2)
    boosted = trees.from_xgboost(booster)
    margin = booster.predict(xgboost.DMatrix(X, nthread=1), output_margin=True)
    np.testing.assert_allclose(boosted.base + boosted.forest.predict(X), margin, rtol=0, atol=2e-5)


@pytest.mark.parametrize("missing", [False, True])
def test_lightgbm_is_equal_to_the_last_bit(missing: bool) -> None:
    X, y = numbers()
    booster = fit_lightgbm(with_missing(X) if missing else X, y)
    boosted = trees.from_lightgbm(booster)
    rows = with_hits(X, boosted.forest)
    rows = np.concatenate([rows, with_missing(rows)])
    np.testing.assert_array_equal(boosted.base + boosted.forest.predict(rows), booster.predict(rows, num_threads=1))


def test_lightgbm_tree_without_a_split() -> None:
    X = np.zeros((30, 2), np.float32)
    booster = fit_lightgbm(X, np.full(30, 2.5))
    boosted = trees.from_lightgbm(booster)
    boosted.forest.check(2)
    np.testing.assert_array_equal(boosted.base + boosted.forest.predict(X), booster.predict(X, num_threads=1))


def test_lightgbm_reads_only_the_first_iterations() -> None:
    X, y = numbers()
    booster = fit_lightgbm(X, y)
    boosted = trees.from_lightgbm(booster, num_iteration=7)
    assert boosted.forest.n_trees == 7
    np.testing.assert_array_equal(boosted.forest.predict(X), booster.predict(X, num_iteration=7, num_threads=1))


def test_lightgbm_categorical_split_is_refused() -> None:
    X, y = numbers()
    X[:, 0] = np.arange(len(X)) % 7
    y = y + 10 * np.isin(X[:, 0], (1, 4, 6))
    booster = lightgbm.train(
        {"objective": "l2", "verbose": -1, "num_threads": 1, "min_data_per_group": 1, "cat_smooth": 0.1},
        lightgbm.Dataset(X, y, categorical_feature=[0]),
        10,
    )
    with pytest.raises(ValueError, match="numeric splits"):
        trees.from_lightgbm(booster)


@pytest.mark.parametrize("missing", [False, True])
def test_hist_gradient_boosting_is_equal_to_the_last_bit(missing: bool) -> None:
    X, y = numbers()
    estimator = ensemble.HistGradientBoostingRegressor(max_iter=40, early_stopping=False)
    estimator.fit(with_missing(X) if missing else X, y)
    boosted = trees.from_hist_gradient_boosting(estimator)
    rows = with_hits(X, boosted.forest)
    rows = np.concatenate([rows, with_missing(rows)])
    np.testing.assert_allclose(
        boosted.base + boosted.forest.predict(rows), estimator.predict(rows), rtol=1e-14, atol=1e-13
    )


def test_concatenated_and_cut_forests_predict_as_before() -> None:
    X, y = numbers()
    a = trees.from_lightgbm(fit_lightgbm(X, y)).forest
    b = trees.from_xgboost(fit_xgboost(X, y)).forest
    both = trees.concatenate([a, trees.empty_forest(), b])
    both.check(X.shape[1])
    np.testing.assert_array_equal(both.part(0, a.n_trees).predict(X), a.predict(X))
    np.testing.assert_array_equal(both.part(a.n_trees, both.n_trees).predict(X), b.predict(X))


def test_one_row_equals_its_row_of_a_batch() -> None:
    X, y = numbers()
    forest = trees.from_lightgbm(fit_lightgbm(X, y)).forest
    batch = forest.predict(X)
    assert [forest.predict(X[i : i + 1])[0] for i in range(50)] == list(batch[:50])


def test_trees_on_selected_columns_read_the_full_row() -> None:
    X, y = numbers()
    columns = np.array([0, 2, 3], np.int32)
    forest = trees.from_lightgbm(fit_lightgbm(X[:, columns], y)).forest
    np.testing.assert_array_equal(forest.renumbered(columns).predict(X), forest.predict(X[:, columns]))


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("left", lambda a: np.where(np.arange(len(a)) == 0, 0 * a, a - 1), "child does not stand behind|threshold"),
        ("left", lambda a: a + 10_000, "child does not stand behind"),
        ("feature", lambda a: a + 100, "outside 0..8"),
        ("feature", lambda a: a - 100, "outside 0..8"),
        ("value", lambda a: a * np.nan, "not a usable number"),
        ("cover", lambda a: a * 0, "not a usable number"),
        ("threshold", lambda a: a[:-1], "has shape"),
        ("roots", lambda a: a[::-1].copy(), "ascending"),
        ("nan_left", lambda a: a & False, "would leave a leaf"),
    ],
)
def test_damaged_arrays_are_refused(field: str, change: Any, message: str) -> None:
    X, y = numbers()
    forest = trees.from_lightgbm(fit_lightgbm(X, y)).forest
    forest.check(9)
    arrays = {**forest.__dict__, field: change(getattr(forest, field))}
    arrays.pop("depth", None)
    with pytest.raises(ValueError, match=message):
        trees.Forest(**arrays).check(9)
