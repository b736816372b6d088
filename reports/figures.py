"""The figures of a report: what each is called, how it reads, which way is better, and which fit a target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.targets import Target


@dataclass(frozen=True)
class Figure:
    """One metric of the evaluation."""

    name: str
    """As in the manifest."""
    label: str
    form: str
    """ "percent" (a share shown as %), "two" (two decimals), "factor", "unit" (in the target's unit), "count"."""
    lower_is_better: bool | None
    """None: neither (how many rows)."""
    meaning: str


_ALL = (
    Figure("n", "rows", "count", None, "rows judged"),
    Figure("mape", "MAPE", "percent", True, "mean absolute percentage error over the labels that are not 0"),
    Figure("mdape", "median APE", "percent", True, "median absolute percentage error over the labels that are not 0"),
    Figure("within10", "within 10 %", "percent", False, "share of predictions within ±10 % of the label"),
    Figure(
        "within_tenth", "within 0.1", "percent", False, "share of predictions of a share at most 0.1 from the label"
    ),
    Figure(
        "mean_factor",
        "mean factor",
        "factor",
        True,
        "geometric mean of the factor between 1 + prediction and 1 + label, whichever is larger on top; zeros included",
    ),
    Figure("rmse_pct", "RMSE/mean", "percent", True, "root mean squared error over the mean label"),
    Figure("rmse", "RMSE", "unit", True, "root mean squared error in the target's unit"),
    Figure("exact", "exact", "percent", False, "share of predictions that equal the label"),
    Figure("r2_log", "R² log", "two", False, "share of the variance of log(1 + label) that is predicted"),
    Figure("kendall", "Kendall τ", "two", False, "rank correlation within a program's variants, mean over programs"),
    Figure("spearman", "Spearman ρ", "two", False, "rank correlation within a program's variants, mean over programs"),
    Figure(
        "regret1",
        "regret @1",
        "percent",
        True,
        "loss from taking the variant predicted best instead of the best one, mean over programs",
    ),
    Figure("regret1_median", "median regret @1", "percent", True, "the same, median over programs"),
    Figure("regret5", "regret @5", "percent", True, "the same when the five predicted best are tried"),
    Figure("f1_nonzero", "F1 of > 0", "two", False, 'F1 of "not 0 at all"'),
    Figure("precision_nonzero", "precision", "two", False, 'precision of "not 0 at all"'),
    Figure("recall_nonzero", "recall", "two", False, 'recall of "not 0 at all"'),
    Figure("coverage90", "coverage", "percent", None, "share of labels inside the 95 % prediction interval"),
)
FIGURES: dict[str, Figure] = {figure.name: figure for figure in _ALL}

SMALL_COUNT = 64
"""Counts whose largest label is at most this (registers) are judged by RMSE/mean and exact hits."""
ZERO_HEAVY = 0.2
"""Targets with at least this share of zeros are judged by a factor that zeros have a part in, and by telling zero from
non-zero."""


def fitting_figures(target: Target, labels: NDArray[np.float64]) -> tuple[str, str]:
    """The error figure and the figure of good predictions that fit a target.

    Parameters
    ----------
    labels : the target's labels in the dataset, no NaN; may be empty
    """
    if target.kind == "share":
        return "rmse", "within_tenth"
    if target.whole and len(labels) and float(np.mean(labels == 0)) >= ZERO_HEAVY:
        return "mean_factor", "f1_nonzero"
    if target.kind == "count" and len(labels) and float(labels.max()) <= SMALL_COUNT:
        return "rmse_pct", "exact"
    return "mape", "within10"


def figures_of(error_metric: str, hit_metric: str, *, whole: bool) -> tuple[str, ...]:
    """Metrics of a target's full table, in order: its own two first, those that say nothing about it left out."""
    order = ["n", error_metric, hit_metric, "kendall", "regret1", "regret1_median", "regret5", "spearman"]
    order += (
        ["mape", "mdape", "within10", "mean_factor", "rmse_pct"]
        + (["exact"] if whole else [])
        + ["r2_log", "coverage90"]
    )
    if hit_metric == "f1_nonzero":
        order += ["precision_nonzero", "recall_nonzero"]
    return tuple(dict.fromkeys(order))


def mean_factor(y: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Geometric mean of (1 + larger) / (1 + smaller) of label and prediction, >= 1; NaN without rows."""
    return float(np.exp(np.mean(np.abs(np.log1p(predicted) - np.log1p(y))))) if len(y) else float("nan")


def better(metric: str, a: float, b: float) -> bool:
    """Whether `a` is the better figure; never where one is NaN or neither direction is better."""
    lower = FIGURES[metric].lower_is_better
    if lower is None or not (np.isfinite(a) and np.isfinite(b)):
        return False
    return a < b if lower else a > b
