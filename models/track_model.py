"""All targets of one track behind one schema: what the artifact holds and what a prediction needs. NumPy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import analytical
from .conformal import Intervals
from .target_model import Outcome, Part, TargetModel, part_from_plain, part_to_plain
from .trees import Float32, Float64, Forest, concatenate


@dataclass(frozen=True, eq=False)
class TrackModel:
    """The models of all targets of a track, over the same columns."""

    track: str
    schema_version: int
    schema_hash: str
    names: tuple[str, ...]
    """Feature names in column order."""
    targets: tuple[TargetModel, ...]
    low: Float32
    high: Float32
    """Smallest and largest value of each feature in the training rows, shape (n_features,)."""

    @cached_property
    def columns(self) -> dict[str, int]:
        """Where the features of the analytical estimates stand."""
        return analytical.needed_columns(self.names)

    @cached_property
    def used(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Shape (n_targets, n_features): whether a target's model reads a feature."""
        used = np.zeros((len(self.targets), len(self.names)), bool)
        for row, target in enumerate(self.targets):
            used[row, target.features_used()] = True
        return used

    @cached_property
    def _walk(self) -> _Walk:
        return _Walk(self.targets)

    def predict(self, X: Float32) -> tuple[Outcome, ...]:
        """Predict every target for a matrix, shape (n_rows, n_features); one `Outcome` per target in their order."""
        if len(X) == 1:
            return self.predict_row(X[0])
        return tuple(target.predict(X, self.columns) for target in self.targets)

    def predict_row(self, x: Float32) -> tuple[Outcome, ...]:
        """Predict every target for one row, shape (n_features,): all trees are walked at once. Equal to `predict` bit
        for bit."""
        X = x[None, :]
        sums = self._walk.sums(x)
        outcomes = []
        for target, (part, gate) in zip(self.targets, self._walk.numbers, strict=True):
            learned = _finish_part(target.part, sums[part], X) + target.margin(X, self.columns)
            odds = None if gate is None or target.gate is None else _finish_part(target.gate, sums[gate], X)
            outcomes.append(target.finish(learned, odds))
        return tuple(outcomes)

    def strange(self, x: Float32) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Shape (n_features,): which features of a row lie outside their range in training."""
        return np.asarray((x < self.low) | (x > self.high))

    def to_plain(self) -> dict[str, Any]:
        """Dicts, lists, numbers and arrays, all trees of the track in one set of arrays."""
        forests: list[Forest] = []
        plain_targets = []
        n_trees = 0
        for target in self.targets:
            parts: list[dict[str, Any] | None] = []
            for part in (target.part, target.gate):
                parts.append(None if part is None else part_to_plain(part, n_trees))
                if part is not None:
                    forests.append(part.forest)
                    n_trees += part.forest.n_trees
            plain_targets.append(
                {
                    "column": target.column,
                    "unit": target.unit,
                    "whole": target.whole,
                    "upper": float(target.upper) if np.isfinite(target.upper) else None,
                    "space": target.space,
                    "offset": float(target.offset),
                    "estimate": target.estimate,
                    "margin_mean": float(target.margin_mean),
                    "candidate": target.candidate,
                    "part": parts[0],
                    "gate": parts[1],
                    "intervals": {
                        "edges": target.intervals.edges,
                        "below": target.intervals.below,
                        "above": target.intervals.above,
                    },
                }
            )
        forest = concatenate(forests)
        here = np.arange(forest.n_nodes)
        leaf = forest.left == here
        return {
            "track": self.track,
            "schema": {"version": int(self.schema_version), "hash": self.schema_hash, "names": list(self.names)},
            "targets": plain_targets,
            "low": self.low,
            "high": self.high,
            "trees": {
                "feature": forest.feature.astype(np.int16 if len(self.names) < 2**15 else np.int32),
                "threshold": forest.threshold,
                "step": (forest.left - here).astype(np.int32),  # small numbers pack better than positions
                "nan_left": forest.nan_left,
                "leaf_value": forest.value[leaf],
                "cover": forest.cover,
                "roots": forest.roots,
            },
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> TrackModel:
        """Inverse of `to_plain`, every index checked.

        Raises
        ------
        KeyError, TypeError, ValueError, IndexError
            A field is missing or is not what it should be.
        """
        schema = plain["schema"]
        names = tuple(str(name) for name in schema["names"])
        arrays = plain["trees"]
        step = np.asarray(arrays["step"], np.int64)
        value = np.zeros(len(step))
        value[step == 0] = np.asarray(arrays["leaf_value"], np.float64)
        forest = Forest(
            np.asarray(arrays["feature"], np.int32),
            np.asarray(arrays["threshold"], np.float32),
            (np.arange(len(step)) + step).astype(np.int32),
            np.asarray(arrays["nan_left"], np.bool_),
            value,
            np.asarray(arrays["cover"], np.float32),
            np.asarray(arrays["roots"], np.int32),
        )
        forest.check(len(names))
        low, high = np.asarray(plain["low"], np.float32), np.asarray(plain["high"], np.float32)
        if low.shape != (len(names),) or high.shape != (len(names),):
            raise ValueError("feature ranges do not match the feature names")
        targets = tuple(_target_from_plain(t, forest, len(names)) for t in plain["targets"])
        return cls(str(plain["track"]), int(schema["version"]), str(schema["hash"]), names, targets, low, high)


def _finish_part(part: Part, tree_sum: float, X: Float32) -> Float64:
    """`Part.predict` of one row whose trees have been summed already."""
    out = part.base + np.full(1, tree_sum)
    return out if part.linear is None else np.asarray(out + part.linear.terms(X).sum(axis=1), np.float64)


def _target_from_plain(plain: Mapping[str, Any], forest: Forest, n_features: int) -> TargetModel:
    intervals = Intervals(*(np.asarray(plain["intervals"][k], np.float64) for k in ("edges", "below", "above")))
    n_groups = len(intervals.edges) + 1
    if (
        intervals.below.shape != (n_groups,)
        or intervals.above.shape != (n_groups,)
        or np.any(np.diff(intervals.edges) < 0)
    ):
        raise ValueError("intervals do not fit together")
    gate = plain["gate"]
    target = TargetModel(
        column=str(plain["column"]),
        unit=str(plain["unit"]),
        whole=bool(plain["whole"]),
        upper=float("inf") if plain["upper"] is None else float(plain["upper"]),
        space=str(plain["space"]),
        offset=float(plain["offset"]),
        estimate=str(plain["estimate"]),
        margin_mean=float(plain["margin_mean"]),
        candidate=str(plain["candidate"]),
        part=part_from_plain(plain["part"], forest),
        gate=None if gate is None else part_from_plain(gate, forest),
        intervals=intervals,
    )
    if (
        "/" not in target.column
        or target.space not in ("log", "plain")
        or (target.space == "log" and not target.offset > 0)
    ):
        raise ValueError(f"target {target.column!r} has an unknown space")
    if target.estimate and not analytical.has_estimate(target.estimate):
        raise ValueError(f"unknown analytical estimate {target.estimate!r}")
    for part in (target.part, target.gate):
        linear = part.linear if part is not None else None
        if linear is not None and (
            any(a.shape != linear.columns.shape for a in (linear.weight, linear.center, linear.low, linear.high))
            or np.any(linear.columns < 0)
            or np.any(linear.columns >= n_features)
        ):
            raise ValueError("a linear term does not fit the features")
    return target


class _Walk:
    """All trees of all parts, deepest first, so that trees that have ended drop out of the walk."""

    def __init__(self, targets: Sequence[TargetModel]) -> None:
        parts: list[Part] = []
        self.numbers: list[tuple[int, int | None]] = []
        for target in targets:
            self.numbers.append((len(parts), None if target.gate is None else len(parts) + 1))
            parts += [target.part] if target.gate is None else [target.part, target.gate]
        forest = concatenate([p.forest for p in parts])
        self.n_parts = len(parts)
        self.part_of_tree = np.repeat(np.arange(self.n_parts), [p.forest.n_trees for p in parts])
        depths = _tree_depths(forest)
        self.order = np.argsort(-depths, kind="stable")
        self.roots = forest.roots[self.order].astype(np.intp)
        deepest = int(depths.max(initial=0))
        self.active = [int(np.sum(depths > level)) for level in range(deepest)]
        self.feature = forest.feature.astype(np.intp)
        self.threshold = forest.threshold
        self.left = forest.left.astype(np.intp)
        self.value = forest.value
        self.nan_left = forest.nan_left

    def sums(self, x: Float32) -> Float64:
        """Sum of each part's trees for one row, added in the order of the trees: shape (n_parts,)."""
        at = self.roots.copy()
        any_nan = bool(np.isnan(x).any())
        for n in self.active:
            here = at[:n]
            seen = x.take(self.feature.take(here))
            right = seen > self.threshold.take(here)
            if any_nan:
                right |= np.isnan(seen) & ~self.nan_left.take(here)
            at[:n] = self.left.take(here) + right
        ends = np.empty_like(at)
        ends[self.order] = at
        sums = np.bincount(self.part_of_tree, weights=self.value.take(ends), minlength=self.n_parts)
        return np.asarray(sums, np.float64)


def _tree_depths(forest: Forest) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Depth of each tree."""
    level = np.zeros(forest.n_nodes, np.int64)
    inner = np.flatnonzero(forest.left != np.arange(forest.n_nodes))
    while True:
        below = level[inner] + 1
        if np.array_equal(level[forest.left[inner]], below):
            break
        level[forest.left[inner]] = below
        level[forest.left[inner] + 1] = below
    return np.maximum.reduceat(level, forest.roots) if forest.n_trees else np.zeros(0, np.int64)
