"""What a prediction is judged by (design §9). All shares are in [0, 1]; `rmse_pct` and the relative errors too (0.05
is 5 %).

Rows without a label are left out by the caller. A figure that does not exist for the rows at hand (no non-zero label,
no program with two variants, a constant label) is NaN: nothing is filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

METRICS = (
    "n",
    "rmse_pct",
    "rmse",
    "mape",
    "mdape",
    "within10",
    "exact",
    "r2_log",
    "spearman",
    "kendall",
    "regret1",
    "regret1_median",
    "regret5",
    "coverage90",
    "zeros",
    "f1_nonzero",
    "precision_nonzero",
    "recall_nonzero",
)


@dataclass(frozen=True, eq=False)
class Judged:
    """Labels and predictions of one target on the same rows."""

    y: Floats
    """Labels, shape (n_rows,), >= 0, no NaN."""
    predicted: Floats
    """Predictions, in the label's unit."""
    programs: Sequence[str]
    """`program_id` of each row."""
    lower_is_better: bool = True
    low: Floats | None = None
    high: Floats | None = None
    """95 % interval, where the model gives one."""
    ranked: Floats | None = None
    """What variants are ordered by, where it differs from the prediction (which is rounded)."""


def rmse(y: Floats, predicted: Floats) -> float:
    """Root of the mean squared error, in the label's unit."""
    return float(np.sqrt(np.mean((predicted - y) ** 2))) if len(y) else float("nan")


def rmse_pct(y: Floats, predicted: Floats) -> float:
    """RMSE as a share of the mean label; NaN where that mean is 0."""
    mean = float(np.mean(y)) if len(y) else 0.0
    return rmse(y, predicted) / mean if mean > 0 else float("nan")


def absolute_percentage_errors(y: Floats, predicted: Floats) -> Floats:
    """|predicted − y| / y over the rows with y > 0; rows with y = 0 have none and are counted apart (`zeros`,
    `f1_nonzero`)."""
    some = y > 0
    return np.asarray(np.abs(predicted[some] - y[some]) / y[some], np.float64)


def within(y: Floats, predicted: Floats, share: float = 0.1) -> float:
    """Share of rows with |predicted − y| <= share · y. A label of 0 is met by 0 only."""
    return float(np.mean(np.abs(predicted - y) <= share * y * (1 + 1e-12))) if len(y) else float("nan")


def exact_share(y: Floats, predicted: Floats) -> float:
    """Share of rows whose prediction, rounded to a whole number, is the label; NaN where labels are not whole
    numbers."""
    if not len(y) or np.any(y != np.round(y)):
        return float("nan")
    return float(np.mean(np.round(predicted) == y))


def r2_log(y: Floats, predicted: Floats) -> float:
    """R² of log(1 + prediction) for log(1 + label); NaN for a constant label."""
    if not len(y):
        return float("nan")
    a, b = np.log1p(y), np.log1p(np.maximum(predicted, 0))
    spread = float(np.sum((a - a.mean()) ** 2))
    return 1 - float(np.sum((a - b) ** 2)) / spread if spread > 0 else float("nan")


def spearman(y: Floats, predicted: Floats) -> float:
    """Spearman's rank correlation (ties share their mean rank); 0 for a constant prediction, NaN for a constant
    label."""
    if len(y) < 2 or np.all(y == y[0]):
        return float("nan")
    if np.all(predicted == predicted[0]):
        return 0.0
    a, b = _mean_ranks(y), _mean_ranks(predicted)
    return float(np.corrcoef(a, b)[0, 1])


def _mean_ranks(values: Floats) -> Floats:
    ordered, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    del ordered
    return np.asarray((ends - (counts - 1) / 2)[inverse.ravel()], np.float64)


def kendall_tau(y: Floats, predicted: Floats) -> float:
    """Kendall's tau over the pairs whose labels differ: (agreeing − disagreeing) / pairs. A tie in the prediction
    counts 0.

    NaN where no two labels differ.
    """
    i, j = np.triu_indices(len(y), 1)
    differ = y[i] != y[j]
    if not differ.any():
        return float("nan")
    sign = np.sign(y[i] - y[j]) * np.sign(predicted[i] - predicted[j])
    return float(sign[differ].mean())


def _programs(programs: Sequence[str]) -> Iterator[NDArray[np.int64]]:
    """Rows of each program that has at least two variants."""
    names, inverse = np.unique(np.asarray(programs, dtype=str), return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    bounds = np.searchsorted(inverse.ravel()[order], np.arange(len(names) + 1))
    for start, end in pairwise(bounds):
        if end - start >= 2:
            yield order[start:end]


def within_programs(
    judged: Judged, figure: Callable[[Floats, Floats], float], average: Callable[[Floats], Any] = np.mean
) -> float:
    """Average of a figure over the programs with two variants or more where it exists; NaN where it exists for none."""
    ranked = judged.predicted if judged.ranked is None else judged.ranked
    values = [figure(judged.y[rows], ranked[rows]) for rows in _programs(judged.programs)]
    known = [v for v in values if np.isfinite(v)]
    return float(average(np.array(known))) if known else float("nan")


def regret(y: Floats, predicted: Floats, k: int, *, lower_is_better: bool = True) -> float:
    """What is lost by measuring only the `k` variants predicted best and taking the best of them: relative to the
    best of all.

    Lower is better: best of the k over best of all, minus 1. Higher is better: 1 minus that quotient. Among equal
    predictions the expected loss under a random order counts for k = 1; for k > 1 the worst order counts. NaN with
    fewer than two variants, with as few variants as k or fewer (nothing could be lost), or where the best label is 0
    (no relative loss exists).
    """
    if len(y) < 2 or len(y) <= k:
        return float("nan")
    sign = 1.0 if lower_is_better else -1.0
    best = float((sign * y).min() * sign)
    if best <= 0:
        return float("nan")
    score = sign * predicted
    if k == 1:
        chosen = float(np.mean(y[score == score.min()]))
    else:
        picked = np.lexsort((-sign * y, score))[:k]  # among equals the worst label first
        chosen = float((sign * y[picked]).min() * sign)
    return chosen / best - 1 if lower_is_better else 1 - chosen / best


def coverage(y: Floats, low: Floats, high: Floats) -> float:
    """Share of labels inside [low, high], a relative 1e-9 of rounding forgiven."""
    slack = 1e-9 * np.abs(y)
    return float(np.mean((y >= low - slack) & (y <= high + slack))) if len(y) else float("nan")


def nonzero_scores(y: Floats, predicted: Floats) -> tuple[float, float, float]:
    """Precision, recall and F1 of "not zero at all" ("spills at all"); a prediction counts as not zero from 0.5 on.

    NaN where the labels have no zero or nothing but zeros: the question does not arise.
    """
    actual, said = y > 0, predicted >= 0.5
    if not len(y) or actual.all() or not actual.any():
        return float("nan"), float("nan"), float("nan")
    hit = float(np.sum(actual & said))
    precision = hit / float(said.sum()) if said.any() else 0.0
    recall = hit / float(actual.sum())
    return precision, recall, 2 * precision * recall / (precision + recall) if hit else 0.0


def score(judged: Judged) -> dict[str, float]:
    """Every figure of `METRICS` by name.

    Raises
    ------
    ValueError
        Shapes differ, or a label or prediction is not finite.
    """
    y, predicted = np.asarray(judged.y, np.float64), np.asarray(judged.predicted, np.float64)
    if y.shape != predicted.shape or y.ndim != 1 or len(judged.programs) != len(y):
        raise ValueError(
            f"labels {y.shape}, predictions {predicted.shape} and {len(judged.programs)} program ids do not match"
        )
    if not (np.isfinite(y).all() and np.isfinite(predicted).all()):
        raise ValueError("a label or prediction is not finite")
    relative = absolute_percentage_errors(y, predicted)
    precision, recall, f1 = nonzero_scores(y, predicted)
    lower = judged.lower_is_better

    def top1(labels: Floats, predictions: Floats) -> float:
        return regret(labels, predictions, 1, lower_is_better=lower)

    return {
        "n": float(len(y)),
        "rmse_pct": rmse_pct(y, predicted),
        "rmse": rmse(y, predicted),
        "mape": float(relative.mean()) if len(relative) else float("nan"),
        "mdape": float(np.median(relative)) if len(relative) else float("nan"),
        "within10": within(y, predicted),
        "exact": exact_share(y, predicted),
        "r2_log": r2_log(y, predicted),
        "spearman": within_programs(judged, spearman),
        "kendall": within_programs(judged, kendall_tau),
        "regret1": within_programs(judged, top1),
        "regret1_median": within_programs(judged, top1, np.median),
        "regret5": within_programs(judged, lambda a, b: regret(a, b, 5, lower_is_better=lower)),
        "coverage90": coverage(y, judged.low, judged.high)
        if judged.low is not None and judged.high is not None
        else float("nan"),
        "zeros": float(np.mean(y == 0)) if len(y) else float("nan"),
        "f1_nonzero": f1,
        "precision_nonzero": precision,
        "recall_nonzero": recall,
    }
