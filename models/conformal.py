"""Prediction intervals that hold without assumptions on the errors: split conformal, by group.

The errors come from cross-validation grouped by family, so each is the error on a program of a family that the model
had not seen: what a caller's program is. They are taken in the learned space (log for quantities that grow), where an
error means a factor, and apart for small, middle and large predictions, because small programs are predicted with other
errors than large ones. The lower and the upper side get the same share.

The promise is 95 % over families drawn like the training families; it is calibrated a point higher, since which
families happen to be held out moves the share held by about a point. Of programs of known families more are inside.

What was tried to make them narrower (latency and three more targets, two splits by family, at the same share held):
widths that follow a learned size of the error are 4 to 20 % narrower for three of them and wider for one; not worth a
second model. Also tried: flags from how many training rows share a row's leaves. Of the rest a point more are inside,
for one more row flagged in ten.

References
----------
Romano, Patterson, Candès: "Conformalized Quantile Regression", NeurIPS 2019 (two-sided, finite-sample rank).
Vovk: "Conditional validity of inductive conformal predictors", ACML 2012 (by group).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .trees import Float64

COVERAGE = 0.96
_MIN_GROUP = 80
_MAX_GROUPS = 6


@dataclass(frozen=True, eq=False)
class Intervals:
    """How far below and above a prediction the label may lie, by size of the prediction; all in the learned space."""

    edges: Float64
    """Shape (n_groups - 1,), ascending: a prediction up to and including `edges[i]` is in group i."""
    below: Float64
    """Shape (n_groups,), <= 0: add to the prediction for the lower bound."""
    above: Float64
    """Shape (n_groups,), >= 0: add for the upper bound."""

    def bounds(self, predicted: Float64) -> tuple[Float64, Float64]:
        """Lower and upper bound of each prediction, in the learned space."""
        group = np.searchsorted(self.edges, predicted, side="left")
        return predicted + self.below[group], predicted + self.above[group]


def _rank(errors: Float64, share: float) -> float:
    """The error that at least `share` of new ones stay under: rank ceil((n + 1) · share) of n, the largest where that
    exceeds n."""
    n = len(errors)
    return float(np.sort(errors)[min(n, int(np.ceil((n + 1) * share - 1e-9))) - 1])


def calibrate(predicted: Float64, actual: Float64, coverage: float = COVERAGE) -> Intervals:
    """Learn the intervals from out-of-fold predictions.

    Parameters
    ----------
    predicted, actual : arrays of shape (n_rows,), in the learned space

    Raises
    ------
    ValueError
        No row, or shapes differ.
    """
    if predicted.shape != actual.shape or not len(predicted):
        raise ValueError(
            f"intervals need as many predictions as labels and at least one, got {predicted.shape} and {actual.shape}"
        )
    n_groups = int(np.clip(len(predicted) // _MIN_GROUP, 1, _MAX_GROUPS))
    # Many equal predictions (zeros) can make edges meet: such a group is dropped, its rows belong to the group below.
    edges = np.unique(np.quantile(predicted, np.arange(1, n_groups) / n_groups, method="inverted_cdf"))
    edges = edges[edges < predicted.max()]
    group = np.searchsorted(edges, predicted, side="left")
    errors = actual - predicted
    tail = (1 - coverage) / 2
    below = [min(0.0, -_rank(-errors[group == g], 1 - tail)) for g in range(len(edges) + 1)]
    above = [max(0.0, _rank(errors[group == g], 1 - tail)) for g in range(len(edges) + 1)]
    return Intervals(np.asarray(edges, np.float64), np.array(below), np.array(above))
