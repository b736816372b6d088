"""From an evaluation, an artifact and a dataset to the values of a report. `render` makes HTML of them."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.splits import SPLITS
from ..data.targets import Target, targets_of
from ..models.evaluate import BASELINES, Evaluation, Pooled
from ..models.metrics import absolute_percentage_errors, rmse, rmse_pct
from ..models.target_model import TargetModel
from ..models.track_model import TrackModel
from .benchmark_tables import results_of
from .figures import fitting_figures, mean_factor
from .headline import headline_text
from .shap_summary import explain_target
from .summary import (
    OURS,
    Certainty,
    DatasetFacts,
    FamilyErrors,
    FamilyFacts,
    Labels,
    Points,
    ProgramText,
    ScoreRow,
    ShapSummary,
    SplitFacts,
    Summary,
    TargetSummary,
    VersionFacts,
    WorstProgram,
)
from .times import time_facts
from .uncertainty import error_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["git_revision", "headline_text", "summarize"]

Floats = NDArray[np.float64]

MEANINGS = {
    "random": "rows drawn at random; variants of one program stand on both sides, so this flatters every model",
    "program": "programs never seen, each with all its variants; other programs of its family were learned from",
    "family": "families never seen: five groups of families, each judged by a model that learned from the other four",
    "real": "functions that nobody here wrote, judged by the model trained on the whole dataset",
}
WORST_SPLITS = ("program", "real")
"""Splits whose worst programs are listed; the first that was judged, if neither was."""
_LIBRARY_NAMES = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "hist": "scikit-learn's HistGradientBoosting",
    "mean": "mean of LightGBM and XGBoost",
    "ridge": "ridge",
    "roofline": "the analytical estimate times a fitted factor",
    "constant": "a constant",
}


def summarize(
    evaluation: Evaluation,
    artifact: Mapping[str, Any],
    frame: pd.DataFrame,
    *,
    shap_rows: int = 150,
    shap_features: int = 12,
    n_worst: int = 10,
    text_characters: int = 6000,
    seed: int = 0,
    n_jobs: int = 2,
    revision: str | None = None,
) -> Summary:
    """Compute a report.

    Parameters
    ----------
    evaluation : of `evaluate_track`
    artifact : {"manifest": ..., "tracks": ...}, trained on `frame`; its models are the ones explained
    frame : the dataset: columns `id`, `program_id`, `family` and the targets'; `mlir`, `origin`, `schedule`,
        `machine`, `latency_spread` and `version_*` are used where they are
    shap_rows : SHAP values are averaged over this many rows, drawn from the test rows of the split "program"
    n_worst : how many programs to list per target and split
    text_characters : programs listed are quoted up to about this length
    revision : of the source; found by git where it is None

    Raises
    ------
    KeyError, ValueError
        The artifact has no model for the evaluation's track.
    """
    model = TrackModel.from_plain(artifact["tracks"][evaluation.track])
    by_column = {t.column: t for t in targets_of(evaluation.track)}
    shaps = _shap_summaries(evaluation, model, shap_rows, shap_features, seed, n_jobs)
    records = {str(id): row for row, id in enumerate(frame["id"])}
    summaries = []
    for index, target_model in enumerate(model.targets):
        target = by_column[target_model.column]
        if any(target.column in scores for scores in evaluation.scores.values()):
            summaries.append(
                _target(
                    evaluation, artifact["manifest"], frame, records, target, target_model, shaps[index], n_worst, seed
                )
            )
    summaries.sort(key=lambda t: t.kind != "time")  # stable: the registry's order otherwise
    judged = [s for s in SPLITS if s in evaluation.scores]
    return Summary(
        evaluation.track,
        tuple(_split_facts(evaluation, split) for split in judged),
        tuple(s for s in SPLITS if s not in judged),
        tuple(summaries),
        _family_errors(evaluation, summaries),
        _texts(frame, records, summaries, text_characters),
        _dataset_facts(frame, artifact["manifest"], evaluation.track),
        _version_facts(frame, artifact["manifest"], evaluation.track, git_revision() if revision is None else revision),
        time_facts(artifact, frame, evaluation.track),
        results_of("literature", evaluation.track),
        results_of("ablation", evaluation.track),
    )


def _target(
    evaluation: Evaluation,
    manifest: Mapping[str, Any],
    frame: pd.DataFrame,
    records: Mapping[str, int],
    target: Target,
    model: TargetModel,
    shap: tuple[ShapSummary, ...],
    n_worst: int,
    seed: int,
) -> TargetSummary:
    column = target.column
    chosen_columns = manifest["tracks"][evaluation.track]["chosen"]
    chosen = chosen_columns[column]
    y = frame[column].to_numpy(np.float64) if column in frame.columns else np.zeros(0)
    known = y[np.isfinite(y)]
    error_metric, hit_metric = fitting_figures(target, known)
    splits = [s for s in SPLITS if column in evaluation.scores.get(s, {})]
    pooled = {s: evaluation.pooled[s][column] for s in splits}
    listed = [s for s in WORST_SPLITS if s in splits] or splits[:1]
    shared = sum(t.name == target.name for t in targets_of(evaluation.track) if t.column in chosen_columns) > 1
    return TargetSummary(
        column,
        column if shared else target.name,  # where several devices have it
        target.unit,
        target.kind,
        target.how,
        target.tool,
        target.exact,
        target.lower_is_better,
        error_metric,
        hit_metric,
        _how_learned(chosen),
        str(chosen["candidate"]),
        tuple(row for s in splits for row in _score_rows(evaluation, s, target)),
        tuple(_certainty(evaluation, s, pooled[s], model, error_metric, column, seed) for s in splits),
        tuple(Points(s, p.y, p.value, p.ok) for s, p in pooled.items()),
        shap,
        tuple(w for s in listed for w in _worst(evaluation, s, column, frame, records, n_worst)),
        label_facts(y, whole=target.whole, log=model.space == "log") if len(known) else None,
    )


def _how_learned(chosen: Mapping[str, Any]) -> str:
    """The manifest's choice in words."""
    words = _LIBRARY_NAMES.get(chosen["candidate"], str(chosen["candidate"]))
    if chosen["space"] == "log":
        words += ", in log space"
    if chosen["margin"] and chosen["candidate"] != "roofline":
        words += ", as a correction to the analytical estimate"
    return words + ("; a classifier decides first whether it is 0" if chosen["two_part"] else "")


def _score_rows(evaluation: Evaluation, split: str, target: Target) -> list[ScoreRow]:
    """Ours, then the baselines; the figures of the evaluation and those of ours that it lacks."""
    column = target.column
    pooled = evaluation.pooled[split][column]
    rows = []
    for model in (OURS, *BASELINES):
        by = evaluation.scores if model == OURS else evaluation.baselines.get(model, {})
        if column not in by.get(split, {}):
            continue
        figures = dict(by[split][column])
        predicted = pooled.value if model == OURS else pooled.baselines[model]
        figures["mean_factor"] = mean_factor(pooled.y, predicted)
        if target.kind == "share":
            figures["within_tenth"] = float(np.mean(np.abs(predicted - pooled.y) <= 0.1))
        rows.append(ScoreRow(split, model, figures))
    return rows


def _certainty(
    evaluation: Evaluation, split: str, pooled: Pooled, model: TargetModel, metric: str, column: str, seed: int
) -> Certainty:
    programs = [evaluation.tables[split].program_id[i] for i in pooled.rows]
    low, high = error_interval(metric, pooled.y, pooled.value, programs, seed=seed)
    figures = evaluation.scores[split][column]
    factor = model.space == "log"
    if factor:
        width = float(np.median((pooled.high + model.offset) / (pooled.low + model.offset)))
    else:
        width = float(np.median(pooled.high - pooled.low))
    return Certainty(
        split,
        len(pooled.rows),
        len(set(programs)),
        low,
        high,
        figures["coverage90"],
        figures.get("coverage90_ok", float("nan")),
        float(pooled.ok.mean()),
        width,
        factor,
    )


def _worst(
    evaluation: Evaluation, split: str, column: str, frame: pd.DataFrame, records: Mapping[str, int], n: int
) -> list[WorstProgram]:
    pooled = evaluation.pooled[split][column]
    position = {int(row): i for i, row in enumerate(pooled.rows)}
    found = []
    for worst in evaluation.worst(split, column, n):
        record = records.get(worst.id)
        at = position[worst.row]

        def text_of(name: str, record: int | None = record) -> str:
            return str(frame[name].iloc[record]) if record is not None and name in frame.columns else ""

        found.append(
            WorstProgram(
                split,
                worst.id,
                worst.program_id,
                worst.family,
                text_of("origin"),
                text_of("schedule"),
                worst.y,
                worst.predicted,
                float(pooled.low[at]),
                float(pooled.high[at]),
                worst.factor,
                bool(pooled.ok[at]),
            )
        )
    return found


def _texts(
    frame: pd.DataFrame, records: Mapping[str, int], targets: Sequence[TargetSummary], limit: int
) -> dict[str, ProgramText]:
    if "mlir" not in frame.columns:
        return {}
    wanted = dict.fromkeys(w.id for t in targets for w in t.worst if w.id in records)
    return {id: cut_text(id, str(frame["mlir"].iloc[records[id]]), limit) for id in wanted}


def cut_text(id: str, text: str, limit: int) -> ProgramText:
    """The first whole lines of a text, up to about `limit` characters; a single line beyond that is cut."""
    lines = text.rstrip("\n").split("\n")
    shown: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if shown and size > limit:
            break
        shown.append(line if len(line) <= limit else line[:limit] + " …")
    return ProgramText(id, "\n".join(shown), len(lines), len(lines) - len(shown))


def _shap_summaries(
    evaluation: Evaluation, model: TrackModel, n_rows: int, n_features: int, seed: int, n_jobs: int
) -> list[tuple[ShapSummary, ...]]:
    """Of each target of the model, over rows drawn from those that the split "program" judges."""
    from joblib import Parallel, delayed

    split = next((s for s in ("program", "random", "family", "real") if s in evaluation.pooled), None)
    if split is None:
        return [() for _ in model.targets]
    table = evaluation.tables[split]
    sharing = [p.rows for p in evaluation.pooled[split].values() if len(p.rows)]
    rows = np.unique(np.concatenate(sharing)) if sharing else np.zeros(0, np.int64)
    if len(rows) > n_rows:
        rows = np.sort(np.random.default_rng([seed, 4]).choice(rows, n_rows, replace=False))
    X = np.ascontiguousarray(table.X[rows], np.float32)
    lean = replace(model, targets=())  # each process gets the one target that it explains
    tasks = [delayed(explain_target)(replace(lean, targets=(target,)), 0, X, n_features) for target in model.targets]
    return list(Parallel(n_jobs=n_jobs)(tasks))


def _split_facts(evaluation: Evaluation, split: str) -> SplitFacts:
    table = evaluation.tables[split]
    rows = np.unique(np.concatenate([p.rows for p in evaluation.pooled[split].values()]))
    return SplitFacts(
        split,
        MEANINGS[split],
        len(rows),
        len({table.program_id[i] for i in rows}),
        len({table.family[i] for i in rows}),
    )


def _mape(y: Floats, predicted: Floats) -> float:
    errors = absolute_percentage_errors(y, predicted)
    return float(errors.mean()) if len(errors) else float("nan")


_ERRORS: Mapping[str, Callable[[Floats, Floats], float]] = {
    "mape": _mape,
    "mean_factor": mean_factor,
    "rmse_pct": rmse_pct,
    "rmse": rmse,
}


def _family_errors(evaluation: Evaluation, targets: Sequence[TargetSummary]) -> tuple[FamilyErrors, ...]:
    if "family" not in evaluation.pooled:
        return ()
    family = np.array(evaluation.tables["family"].family)
    judged = evaluation.pooled["family"]
    rows = np.unique(np.concatenate([p.rows for p in judged.values()]))
    found = []
    for name in sorted(set(family[rows])):
        errors = {}
        for target in targets:
            if target.column in judged:
                pooled = judged[target.column]
                mine = family[pooled.rows] == name
                errors[target.column] = _ERRORS[target.error_metric](pooled.y[mine], pooled.value[mine])
        found.append(FamilyErrors(str(name), int(np.sum(family[rows] == name)), errors))
    return tuple(found)


def label_facts(y: Floats, *, whole: bool, log: bool, n_bins: int = 24) -> Labels:
    """Count, range and histogram of a target's labels, NaN for a missing one.

    With `log`, bins are equally wide in the logarithm and zeros are counted apart. Bins of whole numbers in a small
    range hold one number each.
    """
    known = y[np.isfinite(y)]
    log = log and bool(np.any(known > 0))
    some = known[known > 0] if log else known
    if log:
        low, high = float(some.min()), float(some.max())
        edges = np.geomspace(low / 1.0001, high * 1.0001, n_bins + 1) if high > low else np.array([low / 2, low * 2])
    elif whole and len(some) and np.ptp(some) < 2 * n_bins:
        edges = np.arange(some.min() - 0.5, some.max() + 1)
    else:
        low, high = (float(some.min()), float(some.max())) if len(some) else (0.0, 1.0)
        edges = np.linspace(low, high if high > low else low + 1, n_bins + 1)
    counts, _ = np.histogram(some, edges)
    return Labels(
        len(known),
        len(y) - len(known),
        float(np.mean(known == 0)),
        float(known.min()),
        float(np.median(known)),
        float(known.mean()),
        float(known.max()),
        np.asarray(edges, np.float64),
        counts.astype(np.int64),
        log,
    )


def _dataset_facts(frame: pd.DataFrame, manifest: Mapping[str, Any], track: str) -> DatasetFacts:
    families = frame["family"].astype(str)
    origins = frame["origin"].astype(str) if "origin" in frame.columns else families.map(lambda _: "")
    keys = list(zip(origins, families, strict=True))
    rows = Counter(keys)
    programs = Counter(key for key, _ in {(k, p) for k, p in zip(keys, frame["program_id"], strict=True)})
    steps: Counter[str] = Counter()
    for schedule in frame["schedule"] if "schedule" in frame.columns else ():
        steps.update({word[0] for part in str(schedule).split("+") if (word := re.match("[a-z]+", part))})
    spread = frame["latency_spread"].to_numpy(np.float64) if "latency_spread" in frame.columns else np.zeros(0)
    spread = spread[np.isfinite(spread)]
    return DatasetFacts(
        len(frame),
        int(frame["program_id"].nunique()),
        str(manifest["tracks"][track]["training"].get("data_sha256", "")),
        tuple(FamilyFacts(o, f, rows[o, f], programs[o, f]) for o, f in sorted(rows)),
        tuple(sorted(steps.items(), key=lambda item: (-item[1], item[0]))),
        float(np.median(spread)) if len(spread) else float("nan"),
        float(np.quantile(spread, 0.95)) if len(spread) else float("nan"),
    )


def _version_facts(frame: pd.DataFrame, manifest: Mapping[str, Any], track: str, revision: str) -> VersionFacts:
    toolchain = {}
    for column in frame.columns:
        if str(column).startswith("version_"):
            toolchain[str(column).removeprefix("version_")] = ", ".join(sorted(set(frame[column].dropna().astype(str))))
    machines = sorted({m for m in frame["machine"].astype(str) if m}) if "machine" in frame.columns else []
    facts = manifest["tracks"][track]
    seed = facts["training"].get("seed")
    return VersionFacts(
        dict(manifest.get("libraries", {})),
        toolchain,
        tuple(machines),
        f"{facts['schema']['version']}/{facts['schema']['hash']}",
        int(facts["schema"]["n_features"]),
        None if seed is None else int(seed),
        {str(k): str(v) for k, v in facts["training"].get("settings", {}).items()},
        revision,
    )


def git_revision(folder: Path | None = None) -> str:
    """Short revision of the checkout that holds a folder (this package's by default), with "+" where files that git
    knows were changed; "" outside a checkout or without git."""
    where = str(folder or Path(__file__).resolve().parent)

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", where, *arguments], capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    revision = git("rev-parse", "--short=12", "HEAD")
    if not revision or git("ls-files", "--error-unmatch", "." if folder is not None else Path(__file__).name) is None:
        return ""
    return revision + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
