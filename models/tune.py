"""Search for a target's recipe: candidate, margin and hyper-parameters, by Optuna under a time budget.

Rows: whole programs of the training rows of the split "random", so the rows judged there have no say. The splits
"program" and "family" judge every program once, some of these among them: what they could gain from it is a handful of
numbers for each target, not a fitted tree, and `docs/tuning.md` says how much that is.

The score is that of `learn`: mean absolute error in log space, RMSE in plain space, on folds of unseen families. The
number of rounds and the most leaves are not searched: they decide size and time. Same rows, seed and number of trials
give the same recipe; under a time budget the number of trials depends on the machine, so the result is committed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.splits import group_folds, random_split
from ..data.targets import Target
from .analytical import needed_columns
from .artifact import library_versions
from .candidates import BOOSTERS, Settings
from .export_c import write_whole
from .learn import TargetTask, some_groups
from .recipes import Recipe
from .train import Progress, Table, run_all, shared

if TYPE_CHECKING:
    import optuna

_ROWS = 6000
_FOLDS = 2
"""Of the settings' folds, so many are judged for a trial."""


@dataclass(frozen=True)
class Tuned:
    """What a search found for one target."""

    recipe: Recipe
    score: float
    """Of the recipe, lower is better."""
    default_score: float
    """Of the default settings with LightGBM and the margin, on the same rows."""
    trials: int

    def to_plain(self) -> dict[str, Any]:
        """As `tuned/<track>.json` holds it."""
        rounded = {"score": self.score, "default_score": self.default_score}
        return {**asdict(self.recipe), **{k: round(v, 5) for k, v in rounded.items()}, "trials": self.trials}


def tune_track(
    table: Table,
    *,
    seconds: float,
    trials: int | None = None,
    seed: int = 0,
    n_jobs: int = 2,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> dict[str, Tuned]:
    """Search for each target of a track that has enough labels; target column to what was found.

    Parameters
    ----------
    seconds : for each target; the trial that runs then is finished
    trials : end after so many, if that is sooner
    """
    rows = random_split(len(table.X), seed).train_index
    with shared(table.rows(rows), n_jobs) as mapped:
        tasks = [(mapped, target, seconds, trials, seed, settings or Settings()) for target in table.targets()]
        found = run_all(_tune_one, tasks, n_jobs, progress, lambda _, target, *__: f"tuning {target.name}")
    return {target.column: tuned for (_, target, *_), tuned in zip(tasks, found, strict=True) if tuned is not None}


def write_tuned(path: Path, found: Mapping[str, Tuned], about: Mapping[str, Any]) -> None:
    """Write what was found for the targets of a track; the file appears whole or not at all."""
    plain = {
        "about": {**about, "libraries": library_versions(("optuna", "lightgbm", "xgboost-cpu", "scikit-learn"))},
        "targets": {column: tuned.to_plain() for column, tuned in found.items()},
    }
    write_whole(path, (json.dumps(plain, indent=1, sort_keys=True) + "\n").encode())


def _tune_one(
    table: Table, target: Target, seconds: float, trials: int | None, seed: int, settings: Settings
) -> Tuned | None:
    import optuna

    y = table.y[target.column]
    rows = np.flatnonzero(np.isfinite(y))
    programs = np.array(table.program_id)[rows]
    rows = rows[some_groups(programs, _ROWS, seed)]
    families = [table.family[i] for i in rows]
    if len(set(families)) < 2 * settings.folds or np.all(y[rows] == y[rows][0]):
        return None
    folds = group_folds(families, settings.folds, seed)
    task = TargetTask(target, table.X[rows], y[rows], table.names, needed_columns(table.names), seed, settings)

    def score(recipe: Recipe) -> float:
        used = replace(settings, **recipe.settings)
        losses = []
        for fold in range(_FOLDS):
            part = task.fit_part(recipe.candidate, task.margin_of(recipe), folds != fold, used, key=f"fold {fold}")
            losses.append(task.loss(part, task.margin_of(recipe), folds == fold))
        return float(np.mean(losses))

    started = time.monotonic()
    best, default_score = FIRST[0], score(FIRST[0])
    best_score, done = default_score, 1
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    while (trials is None or done < trials) and time.monotonic() - started < seconds:
        if done < len(FIRST):
            recipe = FIRST[done]
            value = score(recipe)
        else:
            trial = study.ask()
            recipe = _propose(trial, has_margin=len(task.margins) > 1)
            value = score(recipe)
            study.tell(trial, value)
        done += 1
        if value < best_score:
            best, best_score = recipe, value
    return Tuned(best, best_score, default_score, done)


FIRST = (
    Recipe("lightgbm", True, {}),
    Recipe("lightgbm", True, {"objective": "l1"}),
    Recipe("lightgbm", True, {"objective": "l1", "min_rows_in_leaf": 20, "l2": 10.0}),
    Recipe("lightgbm", True, {"learning_rate": 0.08, "columns_per_tree": 0.4, "l2": 10.0}),
    Recipe("xgboost", True, {}),
    Recipe("xgboost", True, {"learning_rate": 0.08, "columns_per_tree": 0.4, "l2": 10.0}),
    Recipe("mean", True, {"rounds": 75, "learning_rate": 0.15}),
    Recipe("hist", True, {}),
    Recipe("lightgbm", False, {}),
)
"""Tried before the search, the defaults first; the mean of two boosters with half the trees each."""


def _propose(trial: optuna.Trial, *, has_margin: bool) -> Recipe:
    """What Optuna wants to see next."""
    candidate = trial.suggest_categorical("candidate", BOOSTERS)
    margin = not has_margin or trial.suggest_categorical("margin", [True, False])
    settings: dict[str, Any] = {
        "learning_rate": round(trial.suggest_float("learning_rate", 0.06, 0.2, log=True), 3),
        "min_rows_in_leaf": trial.suggest_int("min_rows_in_leaf", 2, 30, log=True),
        "columns_per_tree": round(trial.suggest_float("columns_per_tree", 0.2, 0.7), 2),
        "l2": round(trial.suggest_float("l2", 0.1, 30, log=True), 2),
    }
    if candidate == "lightgbm":
        settings["objective"] = trial.suggest_categorical("objective", ["auto", "l1", "l2"])
    return Recipe(candidate, margin, settings)
