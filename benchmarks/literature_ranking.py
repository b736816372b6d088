"""AutoTVM's cost model (arXiv 1805.08166): boosted trees that order the variants of a program, from loop features.

XGBoost with the objective `rank:pairwise`, a group for each program. What comes out is an order without a unit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RANKING_CONFIGURATIONS: tuple[Mapping[str, float], ...] = (
    {"max_depth": 3, "eta": 0.3, "gamma": 1e-4},
    {"max_depth": 6, "eta": 0.1},
    {"max_depth": 8, "eta": 0.05},
)
"""The first is AutoTVM's own."""
_MOST_ROUNDS, _PATIENCE = 400, 30


@dataclass(frozen=True, eq=False)
class Ranking:
    """A fitted order of variants."""

    booster: Any
    """Higher is better."""
    rounds: int
    loss: float
    """1 - NDCG on the validation rows."""
    seconds: float

    def predict(self, X: NDArray[np.float32]) -> Floats:
        """A number for each row, lower for what is predicted better among variants of a program."""
        return -np.asarray(self.booster.inplace_predict(X, iteration_range=(0, self.rounds)), np.float64)


def relevances(y: Floats, programs: Sequence[str]) -> NDArray[np.int64]:
    """How many different labels of the same program are worse (higher) than each row's."""
    out = np.zeros(len(y), np.int64)
    names, inverse = np.unique(np.asarray(programs, dtype=str), return_inverse=True)
    for group in range(len(names)):
        rows = np.flatnonzero(inverse == group)
        out[rows] = np.unique(-y[rows], return_inverse=True)[1].ravel()
    return out


def fit_ranking(
    X: NDArray[np.float32],
    y: Floats,
    programs: Sequence[str],
    held_out: NDArray[np.bool_],
    configuration: Mapping[str, float],
    seed: int,
) -> Ranking:
    """Learn from the rows that are not held out, stop where those held out are ordered no better.

    `y`: labels, lower is better, no NaN; `programs`: `program_id` of each row.
    """
    import xgboost

    def matrix(rows: NDArray[np.bool_]) -> Any:
        index = np.flatnonzero(rows)
        here = [programs[i] for i in index.tolist()]
        group = np.unique(here, return_inverse=True)[1].ravel()
        order = np.argsort(group, kind="stable")
        relevance = relevances(y[index], here)
        return xgboost.DMatrix(X[index][order], relevance[order], qid=group[order], nthread=1)

    start = time.process_time()
    parameters = {"objective": "rank:pairwise", "eval_metric": "ndcg", "nthread": 1, "seed": seed, **configuration}
    booster = xgboost.train(
        parameters,
        matrix(~held_out),
        _MOST_ROUNDS,
        evals=[(matrix(held_out), "valid")],
        early_stopping_rounds=_PATIENCE,
        verbose_eval=False,
    )
    rounds = int(booster.best_iteration) + 1
    return Ranking(booster, rounds, 1 - float(booster.best_score), time.process_time() - start)
