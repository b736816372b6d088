"""How far a figure would move with other programs: bootstrap over programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def error_interval(
    metric: str, y: Floats, predicted: Floats, programs: Sequence[str], *, draws: int = 400, seed: int = 0
) -> tuple[float, float]:
    """5 % and 95 % quantile of an error figure when programs are drawn with repetition, each with all its variants.

    Parameters
    ----------
    metric : "mape", "mean_factor", "rmse_pct" or "rmse"
    y, predicted : shape (n_rows,), in the target's unit
    programs : `program_id` of each row

    Returns
    -------
    NaN twice where fewer than two programs have what the figure needs, or a draw has nothing to divide by.

    Raises
    ------
    ValueError
        Another metric.

    References
    ----------
    Field, Welsh: "Bootstrapping clustered data", JRSS B 2007.
    """
    if metric not in ("mape", "mean_factor", "rmse_pct", "rmse"):
        raise ValueError(f"no bootstrap for {metric!r}")
    counted = y > 0 if metric == "mape" else np.ones(len(y), bool)
    y, predicted = y[counted], predicted[counted]
    names = np.asarray(programs, dtype=str)[counted]
    distinct, program = np.unique(names, return_inverse=True)
    if len(distinct) < 2:
        return float("nan"), float("nan")
    if metric == "mape":
        error = np.abs(predicted - y) / y
    elif metric == "mean_factor":
        error = np.abs(np.log1p(predicted) - np.log1p(y))
    else:
        error = (predicted - y) ** 2

    def per_program(values: Floats) -> Floats:
        return np.asarray(np.bincount(program.ravel(), weights=values, minlength=len(distinct)), np.float64)

    weights = np.random.default_rng([seed, 3]).multinomial(
        len(distinct), np.full(len(distinct), 1 / len(distinct)), draws
    )
    n = weights @ per_program(np.ones(len(y)))
    figure = (weights @ per_program(error)) / n
    if metric == "mean_factor":
        figure = np.exp(figure)
    elif metric != "mape":
        figure = np.sqrt(figure)
    if metric == "rmse_pct":
        mean = (weights @ per_program(y)) / n
        if np.any(mean <= 0):
            return float("nan"), float("nan")
        figure = figure / mean
    low, high = np.quantile(figure, (0.05, 0.95))
    return float(low), float(high)
