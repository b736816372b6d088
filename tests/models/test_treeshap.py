"""SHAP values equal those of the boosting libraries, and add up."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from irgauge.models import trees
from irgauge.models.treeshap import leaf_paths, shap_values

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")


def data(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.floor(np.exp(rng.normal(1, 1.5, (n, 7)))).astype(np.float32)
    return X, np.log1p(X[:, 0]) * (X[:, 1] > 3) + X[:, 2] / 10 + rng.normal(0, 0.1, n)


def test_equal_to_lightgbms_own_contributions() -> None:
    X, y = data()
    booster = lightgbm.train(
        {"objective": "l2", "num_leaves": 31, "min_data_in_leaf": 3, "verbose": -1, "num_threads": 1},
        lightgbm.Dataset(X, y),
        30,
    )
    boosted = trees.from_lightgbm(booster)
    paths = leaf_paths(boosted.forest)
    theirs = booster.predict(X[:40], pred_contrib=True, num_threads=1)
    ours = np.array([shap_values(paths, x, 7) for x in X[:40]])
    np.testing.assert_allclose(ours, theirs[:, :-1], atol=1e-9)
    np.testing.assert_allclose(boosted.base + paths.expected, theirs[0, -1], atol=1e-9)


def test_equal_to_xgboosts_own_contributions() -> None:
    X, y = data()
    booster = xgboost.train({"max_depth": 6, "nthread": 1}, xgboost.DMatrix(X, y, nthread=1), 30)
    boosted = trees.from_xgboost(booster)
    paths = leaf_paths(boosted.forest)
    theirs = booster.predict(xgboost.DMatrix(X[:40], nthread=1), pred_contribs=True)
    ours = np.array([shap_values(paths, x, 7) for x in X[:40]])
    np.testing.assert_allclose(ours, theirs[:, :-1], atol=1e-4)
    np.testing.assert_allclose(boosted.base + paths.expected, theirs[0, -1], atol=1e-4)


def test_base_and_contributions_add_up_to_the_prediction() -> None:
    X, y = data()
    forest = trees.from_xgboost(
        xgboost.train({"max_depth": 8, "nthread": 1}, xgboost.DMatrix(X, y, nthread=1), 20)
    ).forest
    paths = leaf_paths(forest)
    total = np.array([paths.expected + shap_values(paths, x, 7).sum() for x in X])
    assert np.max(np.abs(total - forest.predict(X))) < 1e-10


def test_equal_to_the_definition_over_all_subsets() -> None:
    """One tree that compares column 0 twice; Shapley's formula summed by brute force."""
    forest = trees.Forest(
        feature=np.array([0, 1, 0, 0, 0, 0, 0], np.int32),
        threshold=np.array([2, 5, 7, np.inf, np.inf, np.inf, np.inf], np.float32),
        left=np.array([1, 3, 5, 3, 4, 5, 6], np.int32),
        nan_left=np.ones(7, bool),
        value=np.array([0, 0, 0, 1.0, -2.0, 5.0, 11.0]),
        cover=np.array([100, 60, 40, 25, 35, 10, 30], np.float32),
        roots=np.array([0], np.int32),
    )
    forest.check(2)

    def expected(x: np.ndarray, known: tuple[int, ...], node: int = 0) -> float:
        left = int(forest.left[node])
        if left == node:
            return float(forest.value[node])
        if int(forest.feature[node]) in known:
            return expected(x, known, left + int(x[forest.feature[node]] > forest.threshold[node]))
        cover = forest.cover[left : left + 2].astype(float)
        weights = cover / cover.sum()
        return float(weights[0] * expected(x, known, left) + weights[1] * expected(x, known, left + 1))

    paths = leaf_paths(forest)
    for x in np.array([[1, 4], [1, 6], [3, 4], [8, 9]], np.float32):
        by_hand = np.zeros(2)
        for i in range(2):
            for size in range(2):
                for known in combinations([j for j in range(2) if j != i], size):
                    weight = factorial(size) * factorial(1 - size) / factorial(2)
                    by_hand[i] += weight * (expected(x, (*known, i)) - expected(x, known))
        np.testing.assert_allclose(shap_values(paths, x, 2), by_hand, atol=1e-12)


def test_trees_of_one_leaf_give_no_contribution() -> None:
    one = trees.Forest(
        np.zeros(1, np.int32),
        np.full(1, np.inf, np.float32),
        np.zeros(1, np.int32),
        np.ones(1, bool),
        np.array([3.0]),
        np.ones(1, np.float32),
        np.zeros(1, np.int32),
    )
    paths = leaf_paths(trees.concatenate([one, one]))
    assert paths.expected == 6.0
    assert shap_values(paths, np.zeros(4, np.float32), 4).tolist() == [0, 0, 0, 0]
