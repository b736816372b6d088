"""Trees of any library as one set of flat arrays, and their evaluation in NumPy.

XGBoost, LightGBM and scikit-learn's HistGradientBoosting keep trees in different forms and compare differently
(`<` on float32, `<=` on float64). Features are float32 here, so each comparison is rewritten, without changing any
outcome, to one form: go left when `x <= threshold`, with `threshold` in float32. What is evaluated, explained and
stored is always this form; a fitted library object never leaves the function that fitted it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

_SMALLEST_NORMAL = np.float32(np.finfo(np.float32).tiny)
_MAX_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees one after the other in flat arrays; every array but `roots` has one entry per node.

    A node's children stand side by side (`left`, `left + 1`) and behind it, so a walk always moves forward and ends.
    A leaf points to itself, compares with +inf and so stays where it is, however often it is visited.
    """

    feature: Int32
    """Column that the node compares; 0 in leaves."""
    threshold: Float32
    """The walk goes left when `x <= threshold`; +inf in leaves."""
    left: Int32
    """Left child; the right one is `left + 1`. The node itself in leaves."""
    nan_left: Bools
    """Where a missing value goes; True in leaves."""
    value: Float64
    """What a leaf adds to the prediction, in the learned space; 0 in inner nodes."""
    cover: Float32
    """Training weight that reached the node, > 0 (needed to explain)."""
    roots: Int32
    """Shape (n_trees,), ascending: first node of each tree."""

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @cached_property
    def depth(self) -> int:
        """Most comparisons on any path from a root to a leaf."""
        return int(self.levels().max(initial=0))

    def levels(self) -> Int64:
        """Comparisons between each node and its root: shape (n_nodes,)."""
        level = np.zeros(self.n_nodes, np.int64)
        inner = np.flatnonzero(self.left != np.arange(self.n_nodes))
        while True:  # children stand behind their parents: one pass per level settles one more level
            below = level[inner] + 1
            if np.array_equal(level[self.left[inner]], below):
                return level
            level[self.left[inner]] = below
            level[self.left[inner] + 1] = below

    def leaves(self, X: Float32) -> Int32:
        """Node in which each row ends, per tree: shape (n_trees, n_rows).

        Parameters
        ----------
        X : float32 array of shape (n_rows, n_features); NaN is a missing value.
        """
        n_rows = len(X)
        at = np.repeat(self.roots[:, None], n_rows, axis=1)
        columns = np.arange(n_rows)[None, :]
        any_nan = bool(np.isnan(X).any())
        for _ in range(self.depth):
            x = X[columns, self.feature[at]]
            right = x > self.threshold[at]
            if any_nan:
                right |= np.isnan(x) & ~self.nan_left[at]
            at = self.left[at] + right
        return at

    def predict(self, X: Float32) -> Float64:
        """Sum over the trees, added in their order: shape (n_rows,), in the learned space."""
        out = np.zeros(len(X))
        depth_rows = max(1, _MAX_CELLS // max(1, self.n_trees))
        for start in range(0, len(X), depth_rows):
            ends = self.leaves(X[start : start + depth_rows])
            part = out[start : start + depth_rows]
            for tree in range(self.n_trees):
                part += self.value[ends[tree]]
        return out

    def scaled(self, factor: float) -> Forest:
        """The same trees with each leaf multiplied by `factor`."""
        return Forest(
            self.feature, self.threshold, self.left, self.nan_left, self.value * factor, self.cover, self.roots
        )

    def rounded(self, bits: int) -> Forest:
        """The same trees with each leaf rounded to so many significant bits."""
        mantissa, exponent = np.frexp(self.value)
        value = np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)
        return Forest(self.feature, self.threshold, self.left, self.nan_left, value, self.cover, self.roots)

    def features_used(self) -> Int32:
        """Sorted columns that some inner node compares."""
        inner = self.left != np.arange(self.n_nodes)
        return np.unique(self.feature[inner]).astype(np.int32)

    def renumbered(self, columns: Int32) -> Forest:
        """Trees fitted on `X[:, columns]`, made to read `X` itself."""
        return Forest(
            columns[self.feature].astype(np.int32) if len(columns) else self.feature,
            self.threshold,
            self.left,
            self.nan_left,
            self.value,
            self.cover,
            self.roots,
        )

    def part(self, first_tree: int, last_tree: int) -> Forest:
        """Trees `first_tree` up to, not including, `last_tree`."""
        ends = np.append(self.roots, self.n_nodes)
        a, b = int(ends[first_tree]), int(ends[last_tree])
        return Forest(
            self.feature[a:b],
            self.threshold[a:b],
            (self.left[a:b] - a).astype(np.int32),
            self.nan_left[a:b],
            self.value[a:b],
            self.cover[a:b],
            (self.roots[first_tree:last_tree] - a).astype(np.int32),
        )

    def check(self, n_features: int) -> None:
        """Make sure that a walk stays inside the arrays and ends.

        Raises
        ------
        ValueError
            Lengths differ, an index is out of range, a child does not stand behind its parent, or a number is not
            finite.
        """
        n = self.n_nodes
        for name in ("threshold", "left", "nan_left", "value", "cover"):
            if getattr(self, name).shape != (n,):
                raise ValueError(f"trees: {name!r} has shape {getattr(self, name).shape}, expected ({n},)")
        if self.roots.ndim != 1 or (
            self.n_trees and (self.roots[0] != 0 or np.any(np.diff(self.roots) <= 0) or self.roots[-1] >= n)
        ):
            raise ValueError("trees: roots are not ascending node numbers")
        if n and not self.n_trees:
            raise ValueError("trees: nodes without a root")
        if n == 0:
            return
        if self.feature.min() < 0 or self.feature.max() >= max(n_features, 1):
            raise ValueError(f"trees: a node compares a column outside 0..{n_features - 1}")
        here = np.arange(n, dtype=np.int32)
        starts = np.append(self.roots, n)
        ends = np.repeat(starts[1:], np.diff(starts))
        leaf = self.left == here
        if np.any(self.left < here) or not np.all((self.left + 1 < ends) | leaf):
            raise ValueError("trees: a child does not stand behind its parent in the same tree")
        if not np.array_equal(self.threshold == np.inf, leaf) or not np.array_equal(np.isfinite(self.threshold), ~leaf):
            raise ValueError("trees: a threshold is not what its node needs")
        if not np.all(self.nan_left | ~leaf):
            raise ValueError("trees: a missing value would leave a leaf")
        if not np.all(np.isfinite(self.value)) or not np.all(self.cover > 0) or not np.all(np.isfinite(self.cover)):
            raise ValueError("trees: a leaf value or cover is not a usable number")


def empty_forest() -> Forest:
    """No tree at all: predicts 0."""
    i, f = np.zeros(0, np.int32), np.zeros(0, np.float32)
    return Forest(i, f, i, np.zeros(0, np.bool_), np.zeros(0), f, i)


def concatenate(forests: Sequence[Forest]) -> Forest:
    """All trees of several forests in one, in order."""
    if not forests:
        return empty_forest()
    starts = np.cumsum([0, *(f.n_nodes for f in forests)])[:-1]
    return Forest(
        np.concatenate([f.feature for f in forests]).astype(np.int32),
        np.concatenate([f.threshold for f in forests]).astype(np.float32),
        np.concatenate([f.left + start for f, start in zip(forests, starts, strict=True)]).astype(np.int32),
        np.concatenate([f.nan_left for f in forests]).astype(np.bool_),
        np.concatenate([f.value for f in forests]).astype(np.float64),
        np.concatenate([f.cover for f in forests]).astype(np.float32),
        np.concatenate([f.roots + start for f, start in zip(forests, starts, strict=True)]).astype(np.int32),
    )


def _at_most(threshold: Float64) -> Float32:
    """float32 `t` such that `x <= t` equals `x <= threshold` for every float32 `x`: rounded towards -inf."""
    rounded = np.clip(threshold, -np.finfo(np.float32).max, np.finfo(np.float32).max).astype(np.float32)
    return np.where(rounded.astype(np.float64) > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded).astype(
        np.float32
    )


def _below(threshold: Float32) -> Float32:
    """float32 `t` such that `x <= t` equals `x < threshold` for every float32 `x` that is not subnormal.

    Subnormals (below 1.2e-38) are left out because processors in flush-to-zero mode see them as 0; no feature is that
    small.
    """
    t = np.nextafter(threshold, np.float32(-np.inf)).astype(np.float32)
    subnormal = (np.abs(t) < _SMALLEST_NORMAL) & (t != 0)
    return np.where(subnormal, np.where(t < 0, -_SMALLEST_NORMAL, np.float32(0)), t).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _RawTree:
    """One tree in its library's own numbering; a leaf has `left == -1`."""

    feature: NDArray[Any]
    threshold: Float32
    left: NDArray[Any]
    right: NDArray[Any]
    nan_left: Bools
    value: Float64
    cover: NDArray[Any]


def _flatten(tree: _RawTree) -> Forest:
    """Renumber one tree so that siblings stand side by side, level by level."""
    order = [0]
    left: list[int] = []
    for node in order:  # grows while it is walked
        if tree.left[node] < 0:
            left.append(len(left))
            continue
        left.append(len(order))
        order += [int(tree.left[node]), int(tree.right[node])]
    at = np.array(order)
    leaf = tree.left[at] < 0
    return Forest(
        np.where(leaf, 0, tree.feature[at]).astype(np.int32),
        np.where(leaf, np.float32(np.inf), tree.threshold[at]).astype(np.float32),
        np.array(left, np.int32),
        np.where(leaf, True, tree.nan_left[at]).astype(np.bool_),
        np.where(leaf, tree.value[at], 0.0).astype(np.float64),
        np.maximum(tree.cover[at], 1e-12).astype(np.float32),
        np.zeros(1, np.int32),
    )


@dataclass(frozen=True, eq=False)
class Boosted:
    """What a boosting library learned: `base + forest.predict(X)`."""

    base: float
    forest: Forest


def from_xgboost(booster: Any) -> Boosted:
    """Read a fitted `xgboost.Booster` (numeric splits, one output) through its public JSON form.

    Raises
    ------
    ValueError
        It is not a plain tree booster with one output.
    """
    learner = json.loads(bytes(booster.save_raw(raw_format="json")))["learner"]
    model = learner["gradient_booster"].get("model")
    if model is None or learner["gradient_booster"]["name"] != "gbtree":
        raise ValueError("only XGBoost's gbtree booster can be read")
    # Before 3.1 a plain number, since then a list with one entry: "5E-1", "[5E-1]".
    base = float(learner["learner_model_param"]["base_score"].strip("[]"))
    if learner["objective"]["name"] in ("binary:logistic", "reg:logistic"):
        base = float(np.log(base) - np.log1p(-base))
    forests = []
    for tree in model["trees"]:
        if tree["tree_param"].get("size_leaf_vector", "1") not in ("0", "1") or any(tree.get("split_type", [])):
            raise ValueError("only XGBoost trees with numeric splits and one output can be read")
        conditions = np.array(tree["split_conditions"], np.float32)
        forests.append(
            _flatten(
                _RawTree(
                    np.array(tree["split_indices"], np.int64),
                    _below(conditions),
                    np.array(tree["left_children"], np.int64),
                    np.array(tree["right_children"], np.int64),
                    np.array(tree["default_left"], np.bool_),
                    conditions.astype(np.float64),
                    np.array(tree["sum_hessian"], np.float64),
                )
            )
        )
    return Boosted(base, concatenate(forests))


def from_lightgbm(booster: Any, *, num_iteration: int | None = None) -> Boosted:
    """Read a fitted `lightgbm.Booster` (numeric splits, constant leaves, one output) through its public text form.

    Raises
    ------
    ValueError
        It has categorical splits, linear leaves or several outputs.
    """
    text: str = booster.model_to_string(num_iteration=num_iteration)
    head, *sections = text.split("\nTree=")
    if "num_tree_per_iteration=1" not in head.splitlines():
        raise ValueError("only LightGBM models with one output can be read")
    forests = []
    for section in sections:
        fields = dict(line.split("=", 1) for line in section.split("\n\n")[0].splitlines()[1:] if "=" in line)
        if fields.get("num_cat", "0") != "0" or fields.get("is_linear", "0") != "0":
            raise ValueError("only LightGBM trees with numeric splits and constant leaves can be read")
        forests.append(_lightgbm_tree(fields))
    return Boosted(0.0, concatenate(forests))


def _lightgbm_tree(fields: dict[str, str]) -> Forest:
    """One "Tree=" section: inner nodes 0..n-2, leaves written as -(leaf + 1)."""

    def numbers(name: str) -> Float64:
        return np.array(fields.get(name, "").split(), np.float64)

    n_inner = int(fields["num_leaves"]) - 1
    leaf_value, leaf_count = numbers("leaf_value"), numbers("leaf_count")
    if n_inner == 0:
        one = np.zeros(1, np.int64)
        return _flatten(_RawTree(one, one.astype(np.float32), one - 1, one - 1, one == 0, leaf_value[:1], np.ones(1)))
    n_leaves = n_inner + 1
    children = [
        np.where(c < 0, n_inner - c - 1, c).astype(np.int64) for c in (numbers("left_child"), numbers("right_child"))
    ]
    threshold, decision = numbers("threshold"), numbers("decision_type").astype(np.int64)
    missing_type = (decision >> 2) & 3
    # Without missing values in training (type 0) LightGBM reads NaN as 0; with them (type 2) it has a default side.
    nan_left = np.where(missing_type == 0, threshold >= 0, (decision & 2) != 0)
    pad = np.zeros(n_leaves)
    return _flatten(
        _RawTree(
            np.concatenate([numbers("split_feature"), pad]).astype(np.int64),
            np.concatenate([_at_most(threshold), pad]).astype(np.float32),
            np.concatenate([children[0], pad.astype(np.int64) - 1]),
            np.concatenate([children[1], pad.astype(np.int64) - 1]),
            np.concatenate([nan_left, pad == 0]),
            np.concatenate([np.zeros(n_inner), leaf_value]),
            np.concatenate([numbers("internal_count"), leaf_count]),
        )
    )


def from_hist_gradient_boosting(estimator: Any) -> Boosted:
    """Read a fitted scikit-learn `HistGradientBoostingRegressor` or a binary classifier.

    scikit-learn has no public form of these trees, so its private node table is read; `candidates` compares the
    result with the estimator's own predictions after each fit and refuses the estimator where a release should have
    changed the table.

    Raises
    ------
    ValueError
        It has categorical splits or several outputs.
    """
    forests = []
    for stage in estimator._predictors:
        if len(stage) != 1:
            raise ValueError("only HistGradientBoosting models with one output can be read")
        nodes = stage[0].nodes
        if nodes["is_categorical"].any():
            raise ValueError("only HistGradientBoosting trees with numeric splits can be read")
        leaf = nodes["is_leaf"].astype(bool)
        forests.append(
            _flatten(
                _RawTree(
                    nodes["feature_idx"].astype(np.int64),
                    _at_most(nodes["num_threshold"].astype(np.float64)),
                    np.where(leaf, -1, nodes["left"].astype(np.int64)),
                    np.where(leaf, -1, nodes["right"].astype(np.int64)),
                    nodes["missing_go_to_left"].astype(bool),
                    nodes["value"].astype(np.float64),
                    nodes["count"].astype(np.float64),
                )
            )
        )
    return Boosted(float(np.ravel(estimator._baseline_prediction)[0]), concatenate(forests))
