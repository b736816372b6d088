"""Judge the models on four splits, beside baselines on the same rows (design §9).

For each fold of a split everything is learned from the fold's training rows alone, the choice of candidate included.
The "real" split judges the model that was trained on all rows, on functions that nobody here wrote.

Baselines, each fitted on the same training rows and judged on the same test rows:

- `constant`: the median label.
- `op_count_ridge`: ridge on the operation counts (`ops.*`), labels in the same space as the model's.
- `roofline`: the analytical estimate times one fitted factor, where there is an estimate.
- `llvm_mca`: for latency: cycles per iteration of the hottest block by llvm-mca (a label, so it needs the compiled
  program) times the iterations of the hottest loop, times one fitted factor. The loop's iterations are those of the
  source; the factor absorbs the usual unrolling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.splits import SPLITS, Split, splits_of
from ..data.targets import Target
from . import analytical
from .artifact import plain_scores
from .candidates import Settings, fit_ridge
from .metrics import Judged, score
from .recipes import Recipe, recipes_of, settings_of
from .target_model import TargetModel
from .track_model import TrackModel
from .train import Progress, Table, run_all, shared, table_of
from .trees import Float64

if TYPE_CHECKING:
    import pandas as pd

BASELINES = ("constant", "op_count_ridge", "roofline", "llvm_mca")
_MCA_TARGET, _MCA_COLUMN = "latency_ns", "mca_cycles"
_MCA_ITERATIONS = "loops.volume_max"


@dataclass(frozen=True, eq=False)
class Pooled:
    """Test predictions of one target on one split, all folds together; arrays of shape (n_rows,)."""

    rows: np.ndarray[Any, np.dtype[np.int64]]
    """Rows of the dataset (of the real set for "real")."""
    y: Float64
    value: Float64
    low: Float64
    high: Float64
    ranked: Float64
    ok: np.ndarray[Any, np.dtype[np.bool_]]
    """False where the prediction's status is "outside"."""
    baselines: Mapping[str, Float64]
    """Predictions of the baselines that apply."""
    candidates: tuple[str, ...]
    """What was chosen, per fold: "mean+margin"."""


@dataclass(frozen=True)
class Worst:
    """A record whose prediction is far off."""

    row: int
    id: str
    program_id: str
    family: str
    y: float
    predicted: float
    factor: float
    """How many times too large or too small, >= 1: (1 + larger) / (1 + smaller)."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of the models and the baselines on every split."""

    track: str
    scores: Mapping[str, Mapping[str, Mapping[str, float]]]
    """split -> "device/target" -> metric -> figure."""
    baselines: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
    """baseline -> split -> "device/target" -> metric -> figure."""
    pooled: Mapping[str, Mapping[str, Pooled]]
    """split -> "device/target" -> predictions, for plots."""
    tables: Mapping[str, Table]
    """split -> the rows it judges."""

    def worst(self, split: str, column: str, n: int = 10) -> list[Worst]:
        """The rows predicted worst, by factor, at most one per program, worst first."""
        pooled, table = self.pooled[split][column], self.tables[split]
        larger, smaller = np.maximum(pooled.y, pooled.value), np.minimum(pooled.y, pooled.value)
        factor = (1 + larger) / (1 + smaller)
        found: list[Worst] = []
        programs: set[str] = set()
        for i in np.argsort(-factor, kind="stable"):
            row = int(pooled.rows[i])
            if table.program_id[row] in programs:
                continue
            programs.add(table.program_id[row])
            found.append(
                Worst(
                    row,
                    table.ids[row],
                    table.program_id[row],
                    table.family[row],
                    float(pooled.y[i]),
                    float(pooled.value[i]),
                    float(factor[i]),
                )
            )
            if len(found) == n:
                break
        return found

    def table_rows(self, metrics: Sequence[str] = ("n", "rmse_pct", "mape", "within10")) -> list[dict[str, Any]]:
        """Flat rows for a printed table: split, target, model ("irgauge" or a baseline) and the metrics asked for."""
        rows = []
        for split in self.scores:
            for column in self.scores[split]:
                models: list[tuple[str, Mapping[str, float]]] = [("irgauge", self.scores[split][column])]
                models += [(b, by[split][column]) for b, by in self.baselines.items() if column in by.get(split, {})]
                rows += [
                    {"split": split, "target": column, "model": m, **{k: s.get(k, float("nan")) for k in metrics}}
                    for m, s in models
                ]
        return rows

    def into_manifest(self, manifest: dict[str, Any]) -> None:
        """Write scores and baselines where design §7 puts them."""
        track = manifest["tracks"][self.track]
        track["scores"] = plain_scores(self.scores)
        track["baselines"] = plain_scores(self.baselines)


def evaluate_track(
    data: pd.DataFrame | Table,
    real: pd.DataFrame | Table | None = None,
    *,
    model: Mapping[str, Any] | TrackModel | None = None,
    splits: Sequence[str] = SPLITS,
    seed: int = 0,
    n_jobs: int = 2,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate on the splits named.

    Parameters
    ----------
    data : the dataset, as `train_track` takes it
    real : the real set, for the split "real"; left out of the evaluation without it
    model : what was trained on all of `data` (an artifact or a `TrackModel`); needed for "real" and trained here if
        not given

    Raises
    ------
    IrgaugeError
        As `table_of`.
    ValueError
        An unknown split, or too few rows or groups for one.
    """
    table = data if isinstance(data, Table) else table_of(data, n_jobs=n_jobs, progress=progress)
    targets = table.targets()
    recipes = recipes_of(table.track) if settings is None else {}
    used = settings or settings_of(table.track)
    folds: list[Split] = []
    for name in splits:
        if name != "real":
            folds += splits_of(name, table.program_id, table.family, seed)
    with shared(table, n_jobs) as mapped:
        tasks = [(mapped, fold, target, seed, used, recipes.get(target.column)) for fold in folds for target in targets]
        results = run_all(
            _judge, tasks, n_jobs, progress, lambda _, fold, target, *__: f"evaluating {fold.name} {target.name}"
        )
    parts: dict[str, dict[str, list[Pooled]]] = {}
    for (_, fold, target, *_rest), pooled in zip(tasks, results, strict=True):
        parts.setdefault(fold.name.split("/")[0], {}).setdefault(target.column, []).append(pooled)
    pooled_by = {split: {column: _pool(p) for column, p in by.items()} for split, by in parts.items()}
    tables = dict.fromkeys(pooled_by, table)
    if "real" in splits and real is not None:
        real_table = real if isinstance(real, Table) else table_of(real, like=table, n_jobs=n_jobs, progress=progress)
        pooled_by["real"] = _judge_real(table, real_table, _track_model(model, table, seed, n_jobs, settings, progress))
        tables["real"] = real_table
    return _scored(table.track, pooled_by, tables, targets)


def _track_model(
    model: Mapping[str, Any] | TrackModel | None,
    table: Table,
    seed: int,
    n_jobs: int,
    settings: Settings | None,
    progress: Progress | None,
) -> TrackModel:
    from .train import train_track

    if isinstance(model, TrackModel):
        return model
    plain = model or train_track(table, seed=seed, n_jobs=n_jobs, settings=settings, progress=progress)
    return TrackModel.from_plain(plain["tracks"][table.track])


def _judge(table: Table, split: Split, target: Target, seed: int, settings: Settings, recipe: Recipe | None) -> Pooled:
    """Learn from a fold's training rows, predict its test rows that have a label."""
    y = table.y[target.column]
    train, test = (index[np.isfinite(y[index])] for index in (split.train_index, split.test_index))
    if not len(train) or not len(test):
        return _nothing(())
    model = table.learn(target, train, seed=seed, settings=settings, recipe=recipe).model
    seen = table.X[train]
    low, high = seen.min(axis=0), seen.max(axis=0)
    return _predictions(table, train, table, test, target, model, low, high)


def _judge_real(table: Table, real: Table, model: TrackModel) -> dict[str, Pooled]:
    found = {}
    by_column = {t.column: t for t in table.targets()}
    for target_model in model.targets:
        target = by_column.get(target_model.column)
        if target is None or target.column not in real.y:
            continue
        train, test = (np.flatnonzero(np.isfinite(t.y[target.column])) for t in (table, real))
        if len(test):
            found[target.column] = _predictions(table, train, real, test, target, target_model, model.low, model.high)
    return found


def _predictions(
    table: Table,
    train: np.ndarray,
    judged: Table,
    test: np.ndarray,
    target: Target,
    model: TargetModel,
    low: Any,
    high: Any,
) -> Pooled:
    X = np.ascontiguousarray(judged.X[test])
    outcome = model.predict(X, analytical.needed_columns(judged.names, [model.estimate]))
    used = model.features_used()
    outside = ((low > X) | (high < X))[:, used].any(axis=1)
    unknown = judged.names.index("ops.unknown") if "ops.unknown" in judged.names else None
    if unknown is not None:
        outside |= X[:, unknown] > 0
    return Pooled(
        np.asarray(test, np.int64),
        judged.y[target.column][test],
        outcome.value,
        outcome.low,
        outcome.high,
        outcome.ranked,
        ~outside,
        baseline_predictions(table, train, judged, test, target, model),
        (model.candidate + ("+margin" if model.estimate else ""),),
    )


def baseline_predictions(
    table: Table, train: np.ndarray, judged: Table, test: np.ndarray, target: Target, model: TargetModel
) -> dict[str, Float64]:
    """Predictions of every baseline that applies to the target, for the test rows, in the target's unit and range."""
    y = table.y[target.column][train]

    def finished(raw: Float64) -> Float64:
        clipped = np.clip(raw, 0.0, target.upper)
        return np.asarray(np.round(clipped) if target.whole else clipped, np.float64)

    found = {"constant": finished(np.full(len(test), float(np.median(y))))}
    ops = np.array([i for i, name in enumerate(table.names) if name.startswith("ops.")], np.int64)
    if len(ops):
        ridge = fit_ridge(np.ascontiguousarray(table.X[np.ix_(train, ops)]), model.encode(y), 3.0)
        found["op_count_ridge"] = finished(
            model.decode(ridge.predict(np.ascontiguousarray(judged.X[np.ix_(test, ops)])))
        )
    if estimate := analytical.name_for(target):
        columns = analytical.needed_columns(table.names, [estimate])
        here = analytical.estimate(estimate, table.X[train], columns)
        there = analytical.estimate(estimate, judged.X[test], columns)
        found["roofline"] = finished(there * float(np.median(y / here)))
    mca = next((c for c in table.y if c == f"{target.device}/{_MCA_COLUMN}"), None)
    if target.name == _MCA_TARGET and mca is not None and mca in judged.y and _MCA_ITERATIONS in table.names:
        column = table.names.index(_MCA_ITERATIONS)
        here = table.y[mca][train] * np.maximum(table.X[train, column].astype(np.float64), 1)
        there = judged.y[mca][test] * np.maximum(judged.X[test, column].astype(np.float64), 1)
        known = np.isfinite(here) & (here > 0)
        if known.any() and np.isfinite(there).all():
            found["llvm_mca"] = finished(there * float(np.median(y[known] / here[known])))
    return found


def _nothing(candidates: tuple[str, ...]) -> Pooled:
    none = np.zeros(0)
    return Pooled(none.astype(np.int64), none, none, none, none, none, none.astype(bool), {}, candidates)


def _pool(parts: Sequence[Pooled]) -> Pooled:
    """All folds one after the other; a baseline that is missing in a fold with rows is left out."""
    filled = [p for p in parts if len(p.rows)]
    if not filled:
        return _nothing(())
    shared = [b for b in BASELINES if all(b in p.baselines for p in filled)]
    return Pooled(
        np.concatenate([p.rows for p in filled]),
        np.concatenate([p.y for p in filled]),
        np.concatenate([p.value for p in filled]),
        np.concatenate([p.low for p in filled]),
        np.concatenate([p.high for p in filled]),
        np.concatenate([p.ranked for p in filled]),
        np.concatenate([p.ok for p in filled]),
        {b: np.concatenate([p.baselines[b] for p in filled]) for b in shared},
        tuple(c for p in filled for c in p.candidates),
    )


def _scored(
    track: str, pooled_by: Mapping[str, Mapping[str, Pooled]], tables: Mapping[str, Table], targets: Sequence[Target]
) -> Evaluation:
    by_column = {t.column: t for t in targets}
    scores: dict[str, dict[str, dict[str, float]]] = {}
    baselines: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for split, by in pooled_by.items():
        for column, pooled in by.items():
            if not len(pooled.rows):
                continue
            programs = [tables[split].program_id[i] for i in pooled.rows]
            lower = by_column[column].lower_is_better
            judged = Judged(pooled.y, pooled.value, programs, lower, pooled.low, pooled.high, pooled.ranked)
            figures = score(judged)
            inside = (pooled.y >= pooled.low) & (pooled.y <= pooled.high)
            figures["ok"] = float(pooled.ok.mean())
            figures["coverage90_ok"] = float(inside[pooled.ok].mean()) if pooled.ok.any() else float("nan")
            scores.setdefault(split, {})[column] = figures
            for name, predicted in pooled.baselines.items():
                of = score(Judged(pooled.y, predicted, programs, lower))
                baselines.setdefault(name, {}).setdefault(split, {})[column] = of
    return Evaluation(track, scores, baselines, pooled_by, tables)
