"""Why a prediction is what it is: contributions of features that add up to it, in the target's unit. NumPy only.

SHAP values are exact in the learned space. For a target learned as a logarithm they are factors there; each is turned
into the unit by the one scale that keeps the sum right: (prediction − base) / (log prediction − log base). Order,
sign and proportions stay those of the learned space. What happens to the number afterwards (clipping to the target's
range, rounding of counts, a gate's decision) appears under its own name, so that base + contributions = prediction
always holds.

A gated target (spills) is explained as probability of not being 0 times the amount, which is a sum in log space too;
"gate decision" is the step from this expected value to the value given: 0 where the gate says no, the full amount
where it says yes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .target_model import Part
from .track_model import TrackModel
from .trees import Float32, Float64
from .treeshap import Paths, leaf_paths, shap_values

ESTIMATE = "analytical estimate"
GATE = "gate decision"
CLIPPED = "clipped to the target's range"
ROUNDED = "rounded to a whole number"
STEPS = (GATE, CLIPPED, ROUNDED)


@dataclass(frozen=True)
class Contribution:
    """What one feature adds to a prediction."""

    feature: str
    """Feature name, "analytical estimate", or one of `STEPS`."""
    value: float | None
    """The feature's value in this function; None for what is no feature. The estimate's in the target's unit."""
    amount: float
    """In the target's unit: positive raises the prediction."""


@dataclass(frozen=True)
class Explanation:
    """A prediction taken apart: `base + sum of amounts = value`, exactly up to rounding of float64."""

    target: str
    """ "device/name"."""
    unit: str
    base: float
    """What the model says of a typical program, in the unit."""
    value: float
    """The prediction."""
    contributions: tuple[Contribution, ...]
    """Largest first; features that add nothing are left out."""
    learned_in: str
    """ "log" or "plain": the space in which the SHAP values were computed."""

    def to_plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "target": self.target,
            "unit": self.unit,
            "learned_in": self.learned_in,
            "base": self.base,
            "prediction": self.value,
            "contributions": [asdict(c) for c in self.contributions],
        }


@dataclass(frozen=True)
class Driver:
    """What one feature adds to the difference between two predictions."""

    feature: str
    """As in `Contribution`."""
    before: float | None
    after: float | None
    """The feature's values; None for what is no feature."""
    amount: float
    """In the target's unit: positive makes the second prediction larger."""


@dataclass(frozen=True)
class Change:
    """How one target's prediction differs between two functions: `before + sum of amounts = after`."""

    target: str
    """ "device/name"."""
    unit: str
    before: float
    after: float
    drivers: tuple[Driver, ...]
    """Largest first; what adds nothing is left out."""

    def to_plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "target": self.target,
            "unit": self.unit,
            "before": self.before,
            "after": self.after,
            "drivers": [asdict(d) for d in self.drivers],
        }


class Explainer:
    """Explanations of one track's targets; what depends on the trees alone is computed once per target."""

    def __init__(self, model: TrackModel) -> None:
        self.model = model
        self._paths: dict[tuple[int, str], Paths] = {}

    def _of(self, index: int, which: str, part: Part) -> Paths:
        key = (index, which)
        if key not in self._paths:
            self._paths[key] = leaf_paths(part.forest)
        return self._paths[key]

    def learned(self, index: int, X: Float32) -> tuple[float, Float64]:
        """SHAP values in the learned space for a matrix, the margin left out: base and array of shape (n_rows,
        n_features).

        For gated targets they explain the amount, given that it is not 0.
        """
        target = self.model.targets[index]
        paths = self._of(index, "part", target.part)
        values = np.array([_part_values(target.part, paths, x) for x in X]).reshape(len(X), len(self.model.names))
        return target.part.base + paths.expected, values

    def explain(self, index: int, x: Float32) -> Explanation:
        """Explain one target's prediction for one row, shape (n_features,), float32 and finite."""
        target, taken = self.model.targets[index], self._take_apart(index, x)
        unit_base = taken.to_unit(taken.base)
        scale = _slope(taken.base, taken.raw, unit_base, taken.to_unit(taken.raw), taken.slope(taken.base))
        unit = taken.amounts * scale
        named = [(int(i), float(unit[i])) for i in np.flatnonzero(unit)]
        contributions = [Contribution(self.model.names[i], float(x[i]), amount) for i, amount in named]
        if taken.estimate * scale != 0:
            contributions.append(Contribution(ESTIMATE, taken.estimate_value, taken.estimate * scale))
        contributions += [Contribution(step, None, amount) for step, amount in taken.steps.items() if amount != 0]
        contributions.sort(key=lambda c: (-abs(c.amount), c.feature))
        return Explanation(target.column, target.unit, unit_base, taken.value, tuple(contributions), target.space)

    def compare(self, index: int, before: Float32, after: Float32) -> Change:
        """Explain the difference between the predictions of one target for two rows.

        SHAP values are subtracted in the learned space, where a feature that says the same in both rows cancels, and
        brought into the unit by one scale.
        """
        target = self.model.targets[index]
        old, new = self._take_apart(index, before), self._take_apart(index, after)
        scale = _slope(old.raw, new.raw, old.to_unit(old.raw), new.to_unit(new.raw), old.slope(old.raw))
        unit = (new.amounts - old.amounts) * scale
        drivers = [
            Driver(self.model.names[i], float(before[i]), float(after[i]), float(unit[i])) for i in np.flatnonzero(unit)
        ]
        if (new.estimate - old.estimate) * scale != 0:
            amount = (new.estimate - old.estimate) * scale
            drivers.append(Driver(ESTIMATE, old.estimate_value, new.estimate_value, amount))
        for step in STEPS:
            amount = new.steps.get(step, 0.0) - old.steps.get(step, 0.0)
            if amount != 0:
                drivers.append(Driver(step, None, None, amount))
        drivers.sort(key=lambda d: (-abs(d.amount), d.feature))
        return Change(target.column, target.unit, old.value, new.value, tuple(drivers))

    def _take_apart(self, index: int, x: Float32) -> _Taken:
        model, target = self.model, self.model.targets[index]
        X = x[None, :]
        value = float(target.predict(X, model.columns).value[0])
        paths = self._of(index, "part", target.part)
        amounts = _part_values(target.part, paths, x)
        base = target.part.base + paths.expected + target.margin_mean
        margin = float(target.margin(X, model.columns)[0])
        estimate = margin - target.margin_mean
        raw = base + float(amounts.sum()) + estimate
        steps: dict[str, float] = {}
        offset = target.offset if target.space == "log" else None
        taken = _Taken(base, raw, amounts, estimate, float(np.exp(margin)) - target.offset, steps, value, offset)
        ready = taken.to_unit(raw)
        if target.gate is not None:
            gate_paths = self._of(index, "gate", target.gate)
            odds = _part_values(target.gate, gate_paths, x)
            odds_base = target.gate.base + gate_paths.expected
            odds_raw = odds_base + float(odds.sum())
            scale = _slope(
                odds_base, odds_raw, _log_sigmoid(odds_base), _log_sigmoid(odds_raw), 1 - _sigmoid(odds_base)
            )
            decided = ready if odds_raw >= 0 else 0.0
            taken = replace(
                taken,
                base=base + _log_sigmoid(odds_base),
                raw=raw + _log_sigmoid(odds_raw),
                amounts=amounts + odds * scale,
            )
            steps[GATE] = decided - taken.to_unit(taken.raw)
            ready = decided
        clipped = float(np.clip(ready, 0, target.upper))
        steps[CLIPPED] = clipped - ready
        steps[ROUNDED] = value - clipped
        return taken


@dataclass(frozen=True, eq=False)
class _Taken:
    """One prediction taken apart in the learned space: `base + amounts + estimate = raw`; then, in the unit,
    `to_unit(raw) + steps = value`."""

    base: float
    raw: float
    amounts: Float64
    estimate: float
    """What the analytical estimate adds to its mean over the training rows."""
    estimate_value: float
    """The estimate in the unit."""
    steps: dict[str, float]
    value: float
    offset: float | None
    """None in plain space."""

    def to_unit(self, learned: float) -> float:
        return learned if self.offset is None else float(np.exp(learned)) - self.offset

    def slope(self, learned: float) -> float:
        """Derivative of `to_unit`."""
        return 1.0 if self.offset is None else float(np.exp(learned))


def _part_values(part: Part, paths: Paths, x: Float32) -> Float64:
    values = shap_values(paths, x, len(x))
    if part.linear is not None:
        values = values + np.bincount(part.linear.columns, weights=part.linear.terms(x[None, :])[0], minlength=len(x))
    return np.asarray(values, np.float64)


def _sigmoid(odds: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(odds, -700, 700))))


def _log_sigmoid(odds: float) -> float:
    return float(-np.logaddexp(0.0, -odds))


def _slope(x0: float, x1: float, y0: float, y1: float, derivative: float) -> float:
    """(y1 − y0) / (x1 − x0); the derivative at x0 where both are the same point."""
    return (y1 - y0) / (x1 - x0) if x1 != x0 else derivative
