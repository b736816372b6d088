"""The fast road ends in the same leaves as the plain one, and adds up in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irgauge.models import walk as walk_module
from irgauge.models.trees import Forest, concatenate, empty_forest
from irgauge.models.walk import Walk, ordered_code

N_FEATURES = 12


def random_tree(rng: np.random.Generator, n_inner: int) -> Forest:
    """A tree grown at random leaves, so that shapes from balanced to a chain occur; thresholds often equal."""
    feature, threshold, left = [0], [np.inf], [0]
    for _ in range(n_inner):
        leaves = [i for i, child in enumerate(left) if child == i]
        at = int(rng.choice(leaves)) if rng.random() < 0.5 else leaves[-1]
        feature[at], threshold[at], left[at] = int(rng.integers(N_FEATURES)), float(rng.integers(-4, 5)), len(left)
        for _ in range(2):
            feature.append(0)
            threshold.append(np.inf)
            left.append(len(left))
    n = len(left)
    leaf = np.array(left) == np.arange(n)
    return Forest(
        np.array(feature, np.int32),
        np.array(threshold, np.float32),
        np.array(left, np.int32),
        leaf | (rng.random(n) < 0.5),
        np.where(leaf, rng.normal(size=n), 0.0),
        np.ones(n, np.float32),
        np.zeros(1, np.int32),
    )


@pytest.fixture(scope="module")
def forests() -> list[Forest]:
    rng = np.random.default_rng(0)
    sizes = [(17, 12), (1, 0), (40, 30), (5, 3), (8, 60)]
    made = [concatenate([random_tree(rng, int(rng.integers(most + 1))) for _ in range(n)]) for n, most in sizes]
    return [*made, empty_forest()]


def rows(n: int, *, missing: bool = False) -> np.ndarray[Any, Any]:
    """Values on, beside and between the thresholds, both zeros, subnormals, the extremes and infinities."""
    rng = np.random.default_rng(n)
    near = np.arange(-5, 6, dtype=np.float32)
    values = np.concatenate(
        [
            near,
            np.nextafter(near, np.float32(np.inf)),
            np.nextafter(near, np.float32(-np.inf)),
            np.array([0.0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38, np.inf, -np.inf], np.float32),
        ]
    )
    X = rng.choice(values, (n, N_FEATURES)).astype(np.float32)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


def plain(forests: list[Forest], X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.array([forest.predict(X) for forest in forests]).T


@pytest.mark.parametrize("missing", [False, True])
def test_one_row_equals_the_plain_walk(forests: list[Forest], missing: bool) -> None:
    X = rows(300, missing=missing)
    walk = Walk(forests)
    np.testing.assert_array_equal([walk.sums(x) for x in X], plain(forests, X))


@pytest.mark.parametrize("n", [0, 1, 2, 8, 9, 255, 256, 257, 700])
def test_many_rows_equal_the_plain_walk(forests: list[Forest], n: int) -> None:
    X = rows(n)
    np.testing.assert_array_equal(Walk(forests).sums_of_rows(X), plain(forests, X).reshape(n, len(forests)))


def test_rows_with_missing_values_stand_among_the_others(forests: list[Forest]) -> None:
    X = rows(200, missing=True)
    X[::3] = rows(200)[::3]
    np.testing.assert_array_equal(Walk(forests).sums_of_rows(X), plain(forests, X))


@pytest.mark.parametrize("nodes", [1, 7, 100])
def test_the_groups_that_are_folded_together_change_nothing(
    forests: list[Forest], monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    monkeypatch.setattr(walk_module, "_GROUP_NODES", nodes)
    X = rows(50)
    np.testing.assert_array_equal(Walk(forests).sums_of_rows(X), plain(forests, X))


def test_trees_with_more_than_256_leaves() -> None:
    rng = np.random.default_rng(3)
    forests = [concatenate([random_tree(rng, 400), random_tree(rng, 300)])]
    X = rows(60)
    np.testing.assert_array_equal(Walk(forests).sums_of_rows(X), plain(forests, X))


@pytest.mark.parametrize("bits", [11, 53])
def test_leaves_that_fit_into_float32_are_held_so_and_added_in_float64(forests: list[Forest], bits: int) -> None:
    rounded = [forest.rounded(bits) for forest in forests]
    walk = Walk(rounded)
    assert walk.value.dtype == (np.float32 if bits == 11 else np.float64)
    X = rows(40)
    np.testing.assert_array_equal([walk.sums(x) for x in X], plain(rounded, X))


def test_what_does_not_fit_into_a_word_is_walked_plainly(
    forests: list[Forest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_module, "_CHILD_BITS", 4)
    walk = Walk(forests)
    assert not walk.packs
    X = rows(20)
    np.testing.assert_array_equal([walk.sums(x) for x in X], plain(forests, X))


def test_no_tree_at_all() -> None:
    walk = Walk([empty_forest(), empty_forest()])
    np.testing.assert_array_equal(walk.sums(rows(1)[0]), np.zeros(2))
    np.testing.assert_array_equal(walk.sums_of_rows(rows(30)), np.zeros((30, 2)))


def test_codes_are_in_the_order_of_the_floats() -> None:
    x = np.unique(rows(50))
    codes = ordered_code(x).astype(np.int64)
    np.testing.assert_array_equal(codes[:, None] < codes[None, :], x[:, None] < x[None, :])
    assert ordered_code(np.array([-0.0, 0.0], np.float32)).tolist() == [2**31, 2**31]
