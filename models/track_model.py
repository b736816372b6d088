"""All targets of one track behind one schema: what the artifact holds and what a prediction needs. NumPy only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import analytical
from .conformal import Intervals
from .packing import pack, unpack
from .target_model import LARGEST_LOG, ROLES, Outcome, TargetModel, part_from_plain, part_to_plain, parts_of
from .trees import Float32, Float64, Forest, concatenate
from .walk import Walk

_MOST_SELECTIONS = 16
"""Choices of targets whose trees are kept apart, for callers that ask for few again and again."""


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
        return analytical.needed_columns(self.names, [target.estimate for target in self.targets])

    @cached_property
    def used(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Shape (n_targets, n_features): whether a target's model reads a feature."""
        used = np.zeros((len(self.targets), len(self.names)), bool)
        for row, target in enumerate(self.targets):
            used[row, target.features_used()] = True
        return used

    @cached_property
    def _row(self) -> _Row:
        return _Row(self.targets, self.columns)

    @cached_property
    def _selections(self) -> dict[tuple[int, ...], _Row]:
        """`_Row` of the targets at some positions."""
        return {}

    def predict(self, X: Float32) -> tuple[Outcome, ...]:
        """Predict every target for a matrix, shape (n_rows, n_features); one `Outcome` per target in their order."""
        if len(X) == 1:
            return self.predict_row(X[0])
        return self._row.predict_rows(X, self.targets)

    def predict_row(self, x: Float32) -> tuple[Outcome, ...]:
        """Predict every target for one row, shape (n_features,): all trees are walked at once. Equal to `predict` bit
        for bit."""
        columns = np.array(self._row.predict(x))
        return tuple(Outcome(*columns[:, i : i + 1]) for i in range(len(self.targets)))

    def values_of_row(
        self, x: Float32, wanted: Sequence[int] | None = None
    ) -> tuple[list[float], list[float], list[float], list[float]]:
        """Value, low, high and ranked of every target for one row: `predict_row` as plain lists, sooner.

        `wanted`: only the targets at these positions, in this order; the trees of the others are not walked.
        """
        return self._row_of(wanted).predict(x)

    def _row_of(self, wanted: Sequence[int] | None) -> _Row:
        key = None if wanted is None else tuple(wanted)
        if key is None or key == tuple(range(len(self.targets))):
            return self._row
        row = self._selections.get(key)
        if row is None:
            if len(self._selections) >= _MOST_SELECTIONS:
                self._selections.clear()
            row = self._selections[key] = _Row([self.targets[i] for i in key], self.columns)
        return row

    def strange(self, x: Float32) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Shape (n_features,): which features of a row lie outside their range in training."""
        return np.asarray((x < self.low) | (x > self.high))

    def to_plain(self) -> dict[str, Any]:
        """Dicts, lists, numbers and arrays, all trees of the track in one set of arrays."""
        forests: list[Forest] = []
        plain_targets = []
        n_trees = 0
        for target in self.targets:
            parts: dict[str, dict[str, Any] | None] = dict.fromkeys(ROLES)
            for _, role, part in parts_of([target]):
                parts[role] = part_to_plain(part, n_trees)
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
                    **parts,
                    "intervals": {
                        "edges": target.intervals.edges,
                        "below": target.intervals.below,
                        "above": target.intervals.above,
                    },
                }
            )
        return {
            "track": self.track,
            "schema": {"version": int(self.schema_version), "hash": self.schema_hash, "names": list(self.names)},
            "targets": plain_targets,
            "low": self.low,
            "high": self.high,
            "trees": pack(concatenate(forests)),
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
        forest = unpack(plain["trees"])
        forest.check(len(names))
        low, high = np.asarray(plain["low"], np.float32), np.asarray(plain["high"], np.float32)
        if low.shape != (len(names),) or high.shape != (len(names),):
            raise ValueError("feature ranges do not match the feature names")
        targets = tuple(_target_from_plain(t, forest, len(names)) for t in plain["targets"])
        return cls(str(plain["track"]), int(schema["version"]), str(schema["hash"]), names, targets, low, high)


def _target_from_plain(plain: Mapping[str, Any], forest: Forest, n_features: int) -> TargetModel:
    intervals = Intervals(*(np.asarray(plain["intervals"][k], np.float64) for k in ("edges", "below", "above")))
    n_groups = len(intervals.edges) + 1
    if (
        intervals.below.shape != (n_groups,)
        or intervals.above.shape != (n_groups,)
        or np.any(np.diff(intervals.edges) < 0)
    ):
        raise ValueError("intervals do not fit together")
    gate, order = (None if plain[role] is None else part_from_plain(plain[role], forest) for role in ("gate", "order"))
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
        gate=gate,
        order=order,
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
    for _, _, part in parts_of([target]):
        linear = part.linear
        if linear is not None and (
            any(a.shape != linear.columns.shape for a in (linear.weight, linear.center, linear.low, linear.high))
            or np.any(linear.columns < 0)
            or np.any(linear.columns >= n_features)
        ):
            raise ValueError("a linear term does not fit the features")
    return target


class _Row:
    """What predicts one row: the steps of `TargetModel.predict`, taken for all targets at once, with the same results
    bit for bit."""

    def __init__(self, targets: Sequence[TargetModel], columns: Mapping[str, int]) -> None:
        self.columns = columns
        named = parts_of(targets)
        parts = [part for _, _, part in named]
        self.n_targets = len(targets)
        self.walk = Walk([part.forest for part in parts])
        self.base = np.array([part.base for part in parts])
        self.linear = [(i, part.linear) for i, part in enumerate(parts) if part.linear is not None]

        def places(role: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
            """Targets with this part, and where the part stands."""
            found = [(number, place) for place, (number, is_, _) in enumerate(named) if is_ == role]
            return np.array([n for n, _ in found], np.intp), np.array([p for _, p in found], np.intp)

        self.gated, self.gate_parts = places("gate")
        self.ordered, self.order_parts = places("order")
        with_margin = [i for i, t in enumerate(targets) if t.estimate]
        self.with_margin = np.array(with_margin, np.intp)
        self.estimates = [targets[i].estimate for i in with_margin]
        self.margin_offset = np.array([targets[i].offset for i in with_margin])
        self.log = np.array([t.space == "log" for t in targets], bool)
        self.offset = np.array([t.offset if t.space == "log" else 1.0 for t in targets])
        self.upper = np.array([t.upper for t in targets])
        self.whole = np.array([t.whole for t in targets], bool)
        self.gate_floor = self.whole[self.gated].astype(np.float64)
        self.edges = [t.intervals.edges.tolist() for t in targets]
        self.below = [t.intervals.below.tolist() for t in targets]
        self.above = [t.intervals.above.tolist() for t in targets]

    def decode(self, learned: Float64) -> Float64:
        raw = np.where(self.log, np.exp(np.minimum(learned, LARGEST_LOG)) - self.offset, learned)
        return np.asarray(np.minimum(np.maximum(raw, 0.0), self.upper), np.float64)

    def predict_rows(self, X: Float32, targets: Sequence[TargetModel]) -> tuple[Outcome, ...]:
        sums = self.base + self.walk.sums_of_rows(X)
        for number, linear in self.linear:
            sums[:, number] += linear.terms(X).sum(axis=1)
        gates = {i: sums[:, p] for i, p in zip(self.gated.tolist(), self.gate_parts.tolist(), strict=True)}
        orders = {i: sums[:, p] for i, p in zip(self.ordered.tolist(), self.order_parts.tolist(), strict=True)}
        return tuple(
            t.finish(sums[:, i] + t.margin(X, self.columns), gates.get(i), orders.get(i)) for i, t in enumerate(targets)
        )

    def predict(self, x: Float32) -> tuple[list[float], list[float], list[float], list[float]]:
        sums = self.base + self.walk.sums(x)
        for number, linear in self.linear:
            sums[number] += linear.terms(x[None, :]).sum(axis=1)[0]
        learned = sums[: self.n_targets]
        if len(self.with_margin):
            estimates = np.array(analytical.estimates_of_row(self.estimates, x, self.columns))
            learned[self.with_margin] += np.log(estimates + self.margin_offset)
        value = self.decode(learned)
        ranked = value.copy()
        if len(self.ordered):
            learned[self.ordered] += sums[self.order_parts]
            ranked = self.decode(learned)
        if len(self.gated):
            odds = sums[self.gate_parts]
            amount = value[self.gated]
            ranked[self.gated] /= 1 + np.exp(-np.minimum(np.maximum(odds, -60), 60))
            value[self.gated] = np.where(odds >= 0, np.maximum(amount, self.gate_floor), 0.0)
        value = np.where(self.whole, np.round(value), value)
        encoded = np.where(self.log, np.log(np.where(self.log, value + self.offset, 1.0)), value)
        groups = [bisect_left(edges, e) for edges, e in zip(self.edges, encoded.tolist(), strict=True)]
        low = self.decode(encoded + [b[g] for b, g in zip(self.below, groups, strict=True)])
        high = self.decode(encoded + [a[g] for a, g in zip(self.above, groups, strict=True)])
        low = np.minimum(np.where(self.whole, np.ceil(low - 1e-9 * low), low), value)
        high = np.maximum(np.where(self.whole, np.floor(high + 1e-9 * high), high), value)
        return value.tolist(), low.tolist(), high.tolist(), ranked.tolist()
