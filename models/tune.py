"""Search for a target's recipe: candidate, margin and hyper-parameters, by Optuna under a time budget.

Rows: the training rows of the split "random", about 6,000 of them for the search, whole programs, and all for the last
word: what is best on a few is not always best on many. The rows judged there have no say. The splits "program" and
"family" judge every program once, some of these among them: what they could gain from it is a handful of numbers for
each target, not a fitted tree, and `docs/tuning.md` says how much that is.

The score is how much larger the errors are than those of the defaults (geometric mean) on the first fold each of
unseen rows, of unseen programs and of unseen families, which are the three ways in which models are judged. An error
is what `learn` compares: mean absolute error in log space, RMSE in plain space; as there, dropping the analytical
estimate must be worth it. The number of rounds and the most leaves are not searched, they decide size and time; nor is
HistGradientBoosting, which grows trees like LightGBM's in two to three times the time. Same rows, seed and number of
trials give the same recipe; under a time budget the number of trials depends on the machine, so the result is
committed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from ..data.splits import group_folds, random_split
from ..data.targets import Target
from ..files import write_whole
from .analytical import name_for, needed_columns
from .artifact import library_versions
from .candidates import Settings
from .learn import MARGIN_IS_WORTH, TargetTask, some_groups
from .recipes import Recipe, settings_of
from .train import Progress, Table, run_all, shared

_ROWS = 6000
_WORTH = 0.01
"""A recipe that gains less over the defaults is left out: so much two fits differ by chance."""


@dataclass(frozen=True)
class Tuned:
    """What a search found for one target."""

    recipe: Recipe
    errors: Mapping[str, float]
    """Of the recipe, on unseen rows ("random"), programs and families."""
    default_errors: Mapping[str, float]
    """Of the default settings with LightGBM and the margin, on the same rows."""
    trials: int

    @property
    def score(self) -> float:
        """Errors relative to the defaults', lower is better."""
        return _relative(self.errors, self.default_errors)

    def to_plain(self) -> dict[str, Any]:
        """As `tuned/<track>.json` holds it."""
        errors = {
            name: {split: round(error, 5) for split, error in of.items()}
            for name, of in (("errors", self.errors), ("default_errors", self.default_errors))
        }
        return {**asdict(self.recipe), **errors, "score": round(self.score, 5), "trials": self.trials}


def _relative(errors: Mapping[str, float], default_errors: Mapping[str, float]) -> float:
    """Geometric mean of the ratios."""
    ratios = [max(error, 1e-12) / max(default_errors[split], 1e-12) for split, error in errors.items()]
    return float(np.exp(np.mean(np.log(ratios))))


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
    seconds : for each target; the trial that runs then is finished, and what it found compared once more
    trials : end after so many, if that is sooner
    """
    rows = random_split(len(table.X), seed).train_index
    used = settings or settings_of(table.track)
    with shared(table.rows(rows), n_jobs) as mapped:
        tasks = [(mapped, target, seconds, trials, seed, used) for target in table.targets()]
        found = run_all(_tune_one, tasks, n_jobs, progress, lambda _, target, *__: f"tuning {target.name}")
    return {target.column: tuned for (_, target, *_), tuned in zip(tasks, found, strict=True) if tuned is not None}


def write_tuned(path: Path, found: Mapping[str, Tuned], about: Mapping[str, Any], settings: Settings) -> None:
    """Write what was found for the targets of a track with these settings; the file appears whole or not at all."""
    defaults = asdict(Settings())
    plain = {
        "settings": {name: value for name, value in asdict(settings).items() if value != defaults[name]},
        "about": {**about, "libraries": library_versions(("optuna", "lightgbm", "xgboost-cpu", "scikit-learn"))},
        "targets": {column: tuned.to_plain() for column, tuned in found.items()},
    }
    write_whole(path, json.dumps(plain, indent=1, sort_keys=True) + "\n")


class _Judge:
    """One target on some rows: errors of recipes on a fold each of unseen rows, programs and families."""

    def __init__(self, table: Table, target: Target, rows: np.ndarray, seed: int, settings: Settings) -> None:
        groups = {
            "random": [str(row) for row in rows],
            "program": [table.program_id[i] for i in rows],
            "family": [table.family[i] for i in rows],
        }
        self.unseen = {split: group_folds(of, settings.folds, seed) == 0 for split, of in groups.items()}
        columns = needed_columns(table.names, [name_for(target)])
        y = table.y[target.column][rows]
        self.task = TargetTask(target, table.X, y, table.names, columns, seed, settings, rows=rows)
        self.defaults = Recipe("lightgbm", True, {})
        self.default_errors = self.errors(self.defaults)

    def errors(self, recipe: Recipe) -> dict[str, float]:
        used, margin = replace(self.task.settings, **recipe.settings), self.task.margin_of(recipe)
        found = {}
        for split, outer in self.unseen.items():
            part = self.task.fit_part(recipe.candidate, margin, ~outer, used, key=split)
            found[split] = self.task.loss(part, margin, outer)
        return found

    def cost(self, recipe: Recipe, errors: Mapping[str, float]) -> float:
        """Errors relative to the defaults'; more where the analytical estimate is dropped."""
        drops_estimate = len(self.task.margins) > 1 and not recipe.margin
        return _relative(errors, self.default_errors) * (MARGIN_IS_WORTH if drops_estimate else 1.0)

    def tuned(self, recipe: Recipe, trials: int) -> Tuned:
        """This recipe, or the defaults where it is not worth it."""
        errors = self.default_errors if recipe == self.defaults else self.errors(recipe)
        if self.cost(recipe, errors) >= 1 - _WORTH:
            recipe, errors = self.defaults, self.default_errors
        return Tuned(recipe, errors, self.default_errors, trials)


def _tune_one(
    table: Table, target: Target, seconds: float, trials: int | None, seed: int, settings: Settings
) -> Tuned | None:
    y = table.y[target.column]
    rows = np.flatnonzero(np.isfinite(y))
    few = rows[some_groups(np.array(table.program_id)[rows], _ROWS, seed)]
    if len({table.family[i] for i in few}) < 2 * settings.folds or np.all(y[few] == y[few][0]):
        return None
    started = time.monotonic()
    judge = _Judge(table, target, few, seed, settings)
    first = starting_points(settings.rounds)
    best, least, done = judge.defaults, 1.0, 1
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    while (trials is None or done < trials) and time.monotonic() - started < seconds:
        asked = study.ask() if done > len(first) else None
        recipe = first[done - 1] if asked is None else _propose(asked, has_margin=len(judge.task.margins) > 1)
        cost = judge.cost(recipe, judge.errors(recipe))
        if asked is not None:
            study.tell(asked, cost)
        done += 1
        if cost < least:
            best, least = recipe, cost
    return (judge if len(few) == len(rows) else _Judge(table, target, rows, seed, settings)).tuned(best, done)


def starting_points(rounds: int) -> tuple[Recipe, ...]:
    """Tried after the defaults and before the search; the mean of two boosters with half the trees each."""
    return (
        Recipe("lightgbm", True, {"objective": "l1"}),
        Recipe("lightgbm", True, {"objective": "l1", "min_rows_in_leaf": 20, "l2": 10.0}),
        Recipe("lightgbm", True, {"learning_rate": 0.13, "columns_per_tree": 0.4, "l2": 10.0}),
        Recipe("xgboost", True, {}),
        Recipe("xgboost", True, {"learning_rate": 0.13, "columns_per_tree": 0.4, "l2": 10.0}),
        Recipe("mean", True, {"rounds": (rounds + 1) // 2, "learning_rate": 0.25}),
        Recipe("lightgbm", False, {}),
    )


def _propose(trial: optuna.Trial, *, has_margin: bool) -> Recipe:
    """What Optuna wants to see next."""
    candidate = trial.suggest_categorical("candidate", ["lightgbm", "xgboost"])
    margin = not has_margin or trial.suggest_categorical("margin", [True, False])
    settings: dict[str, Any] = {
        "learning_rate": round(trial.suggest_float("learning_rate", 0.1, 0.3, log=True), 3),
        "min_rows_in_leaf": trial.suggest_int("min_rows_in_leaf", 2, 60, log=True),
        "columns_per_tree": round(trial.suggest_float("columns_per_tree", 0.2, 0.7), 2),
        "l2": round(trial.suggest_float("l2", 0.1, 30, log=True), 2),
    }
    if candidate == "lightgbm":
        settings["objective"] = trial.suggest_categorical("objective", ["auto", "l1", "l2"])
    return Recipe(candidate, margin, settings)
