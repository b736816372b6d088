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

from dataclasses import dataclass

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
        model, target = self.model, self.model.targets[index]
        X = x[None, :]
        outcome = target.predict(X, model.columns)
        value = float(outcome.value[0])
        paths = self._of(index, "part", target.part)
        amounts = _part_values(target.part, paths, x)
        base = target.part.base + paths.expected + target.margin_mean
        margin = float(target.margin(X, model.columns)[0])
        steps: dict[str, float] = {}
        if target.space == "plain":
            unit_base = base
            raw = base + float(amounts.sum())
            unit, estimate_amount = amounts, 0.0
            clipped = float(np.clip(raw, 0, target.upper))
            steps[CLIPPED] = clipped - raw
            steps[ROUNDED] = value - clipped
        else:
            log_base, log_raw, estimate_log = (
                base,
                base + float(amounts.sum()) + margin - target.margin_mean,
                margin - target.margin_mean,
            )
            if target.gate is not None:
                gate_paths = self._of(index, "gate", target.gate)
                odds = _part_values(target.gate, gate_paths, x)
                odds_base = target.gate.base + gate_paths.expected
                odds_raw = odds_base + float(odds.sum())
                scale = _slope(
                    odds_base, odds_raw, _log_sigmoid(odds_base), _log_sigmoid(odds_raw), 1 - _sigmoid(odds_base)
                )
                amounts = amounts + odds * scale
                log_base += _log_sigmoid(odds_base)
                log_raw += _log_sigmoid(odds_raw)
            unit_base, raw = float(np.exp(log_base)) - target.offset, float(np.exp(log_raw)) - target.offset
            scale = _slope(log_base, log_raw, unit_base, raw, float(np.exp(log_base)))
            unit, estimate_amount = amounts * scale, estimate_log * scale
            ready = raw
            if target.gate is not None:
                decided = float(np.exp(log_raw - _log_sigmoid(odds_raw))) - target.offset if odds_raw >= 0 else 0.0
                steps[GATE] = decided - ready
                ready = decided
            clipped = float(np.clip(ready, 0, target.upper))
            steps[CLIPPED] = clipped - ready
            steps[ROUNDED] = value - clipped
        contributions = [Contribution(model.names[i], float(x[i]), float(unit[i])) for i in np.flatnonzero(unit)]
        if estimate_amount != 0:
            contributions.append(Contribution(ESTIMATE, float(np.exp(margin)) - target.offset, estimate_amount))
        contributions += [Contribution(step, None, amount) for step, amount in steps.items() if amount != 0]
        contributions.sort(key=lambda c: (-abs(c.amount), c.feature))
        return Explanation(target.column, target.unit, unit_base, value, tuple(contributions), target.space)


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
