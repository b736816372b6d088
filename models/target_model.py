"""The learned model of one target: how features become a value with an interval, and nothing else. NumPy only.

Learned space. Quantities that span orders of magnitude are learned as log(y + offset), as a correction to the
analytical estimate where there is one: prediction = exp(margin + base + trees) − offset with margin = log(estimate +
offset). The others are learned as they are.

Two parts. A target that is often 0 (spills) has a gate beside its regressor: a classifier for "not zero". Where the
gate's log-odds are negative the value is 0, elsewhere it is the regressor's, which was fitted on the non-zero rows.

Order. Variants of one program often differ by less than a prediction is off. A target that variants are ordered by may
have a third function, learned from nothing but their order: it moves what they are ranked by, never the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import analytical
from .conformal import Intervals
from .trees import Float32, Float64, Forest, Int32, empty_forest

ROLES = ("part", "gate", "order")
LARGEST_LOG = 69.0
"""Predictions end at exp(69) = 1e30."""


@dataclass(frozen=True, eq=False)
class Linear:
    """Ridge on squashed features: sum over columns of weight · (sign(x)·log(1 + |x|) − center)."""

    columns: Int32
    weight: Float64
    center: Float64
    """All of shape (n_columns,)."""
    low: Float64
    high: Float64
    """Range of each squashed feature in training; beyond it the feature is held at the end, so that no line runs
    away."""

    def terms(self, X: Float32) -> Float64:
        """What each column adds: shape (n_rows, n_columns)."""
        # Row by row in memory, so that the sum over a row is the same for one row and for many.
        x = np.ascontiguousarray(X[:, self.columns], np.float64)
        return np.asarray(self.weight * (np.clip(squash(x), self.low, self.high) - self.center), np.float64)


def squash(x: Float64) -> Float64:
    """sign(x) · log(1 + |x|): linear near 0, logarithmic far from it."""
    return np.asarray(np.sign(x) * np.log1p(np.abs(x)), np.float64)


@dataclass(frozen=True, eq=False)
class Part:
    """One fitted function of the features: `base + trees + linear`."""

    base: float
    forest: Forest
    linear: Linear | None = None

    def predict(self, X: Float32) -> Float64:
        """Shape (n_rows,), in the learned space; log-odds for a gate."""
        out = self.base + self.forest.predict(X)
        if self.linear is not None:
            out = out + self.linear.terms(X).sum(axis=1)
        return np.asarray(out, np.float64)

    def features_used(self) -> Int32:
        """Sorted columns that the function reads."""
        linear = self.linear.columns if self.linear is not None else np.zeros(0, np.int32)
        return np.unique(np.concatenate([self.forest.features_used(), linear])).astype(np.int32)


def constant(value: float) -> Part:
    """The same for every row."""
    return Part(value, empty_forest())


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions of one target for some rows, all arrays of shape (n_rows,)."""

    value: Float64
    """In the target's unit, in its range, whole where the target is."""
    low: Float64
    high: Float64
    """95 % interval; contains the value."""
    ranked: Float64
    """For ordering variants: the value before rounding, for gated targets times the probability of not being 0, and
    moved by what was learned about order alone."""


@dataclass(frozen=True, eq=False)
class TargetModel:
    """Everything needed to predict one target from a feature row."""

    column: str
    """ "device/name"."""
    unit: str
    whole: bool
    """Only whole numbers occur."""
    upper: float
    """Largest value that can occur; inf where there is none. The smallest is 0 for every target."""
    space: str
    """ "log" or "plain"."""
    offset: float
    """Added before the logarithm, in the target's unit; 0 in plain space."""
    estimate: str
    """Name of the analytical estimate used as margin, "" for none."""
    margin_mean: float
    """Mean margin over the training rows: the estimate's share in the base of an explanation."""
    candidate: str
    """What was chosen: "lightgbm", "xgboost", "hist", "mean", "ridge", "roofline", "constant"."""
    part: Part
    gate: Part | None
    order: Part | None
    """Added in the learned space (margin included) to what variants are ordered by."""
    intervals: Intervals

    @property
    def device(self) -> str:
        return self.column.split("/", 1)[0]

    @property
    def name(self) -> str:
        return self.column.split("/", 1)[1]

    def encode(self, y: Float64) -> Float64:
        """Unit to learned space (margin not taken off)."""
        return np.log(np.maximum(y, 0) + self.offset) if self.space == "log" else np.asarray(y, np.float64)

    def decode(self, learned: Float64) -> Float64:
        """Learned space (margin included) to unit, clipped to the target's range."""
        raw = np.exp(np.minimum(learned, LARGEST_LOG)) - self.offset if self.space == "log" else learned
        return np.asarray(np.clip(raw, 0.0, self.upper), np.float64)

    def margin(self, X: Float32, columns: Mapping[str, int]) -> Float64:
        """What the analytical estimate contributes in the learned space: shape (n_rows,)."""
        if not self.estimate:
            return np.zeros(len(X))
        return np.asarray(np.log(analytical.estimate(self.estimate, X, columns) + self.offset), np.float64)

    def predict(self, X: Float32, columns: Mapping[str, int]) -> Outcome:
        """Predict from a feature matrix.

        Parameters
        ----------
        X : float32 array of shape (n_rows, n_features), finite, columns in the schema's order
        columns : of `analytical.needed_columns`
        """
        gate, order = (part.predict(X) if part is not None else None for part in (self.gate, self.order))
        return self.finish(self.part.predict(X) + self.margin(X, columns), gate, order)

    def finish(self, learned: Float64, gate: Float64 | None, order: Float64 | None) -> Outcome:
        """From the sums of the parts (margin included) to values: the last step of every prediction."""
        value = self.decode(learned)
        ranked = value if order is None else self.decode(learned + order)
        if gate is not None:
            value = np.where(gate >= 0, np.maximum(value, 1.0 if self.whole else 0.0), 0.0)
            ranked = ranked / (1 + np.exp(-np.clip(gate, -60, 60)))
        if self.whole:
            value = np.round(value)
        # Around the value that is given, as the intervals were calibrated: half a register matters.
        below, above = self.intervals.bounds(self.encode(value))
        low, high = self.decode(below), self.decode(above)
        if self.whole:
            low, high = np.ceil(low - 1e-9 * np.abs(low)), np.floor(high + 1e-9 * np.abs(high))
        return Outcome(value, np.minimum(low, value), np.maximum(high, value), ranked)

    def edges_of_values(self) -> Float64:
        """The edges of the intervals' groups for comparing whole values instead of encoded ones: `value > edge` here
        is `encode(value) > edge` there. Whole predictions often lie on an edge, where the last bit of a logarithm
        would decide."""
        edges = []
        for edge in self.intervals.edges.tolist():
            value = float(np.floor(np.exp(edge) - self.offset if self.space == "log" else edge))
            if value < 2**53:
                while self._encoded(value + 1) <= edge:
                    value += 1
                while value >= 0 and self._encoded(value) > edge:
                    value -= 1
            edges.append(value)
        return np.array(edges, np.float64)

    def _encoded(self, value: float) -> float:
        return float(self.encode(np.array([value]))[0])

    def features_used(self) -> Int32:
        """Sorted columns that the trees and lines behind the value read."""
        parts = [self.part.features_used()] + ([self.gate.features_used()] if self.gate is not None else [])
        return np.unique(np.concatenate(parts)).astype(np.int32)


def parts_of(targets: Sequence[TargetModel]) -> list[tuple[int, str, Part]]:
    """All functions of some targets with the number of the target and their role: "part" of each, then "gate" and
    "order" of those that have one."""
    found = [(number, role, getattr(target, role)) for role in ROLES for number, target in enumerate(targets)]
    return [(number, role, part) for number, role, part in found if part is not None]


def part_to_plain(part: Part, first_tree: int) -> dict[str, Any]:
    """Numbers, lists and arrays; the trees themselves are stored once per track, from `first_tree` on."""
    linear = part.linear
    return {
        "base": float(part.base),
        "trees": [int(first_tree), int(first_tree + part.forest.n_trees)],
        "linear": None
        if linear is None
        else {
            "columns": linear.columns,
            "weight": linear.weight,
            "center": linear.center,
            "low": linear.low,
            "high": linear.high,
        },
    }


def part_from_plain(plain: Mapping[str, Any], forest: Forest) -> Part:
    """Inverse of `part_to_plain`; KeyError, TypeError or ValueError when a field is missing or wrong."""
    first, last = (int(i) for i in plain["trees"])
    if not 0 <= first <= last <= forest.n_trees:
        raise ValueError(f"trees {first}..{last} of {forest.n_trees}")
    linear = plain["linear"]
    return Part(
        float(plain["base"]),
        forest.part(first, last) if last > first else empty_forest(),
        None
        if linear is None
        else Linear(
            np.asarray(linear["columns"], np.int32),
            *(np.asarray(linear[name], np.float64) for name in ("weight", "center", "low", "high")),
        ),
    )
