"""What each part of the design is worth: each feature group left out, n-grams along text or along values, the
analytical estimate corrected or not, and the objectives.

    pip install -e '.[train]'; python benchmarks/ablation.py [--jobs N] [--targets A,B] [--splits random,family]

Every variant learns the same targets from the same rows with the same settings (LightGBM, those of the track,
the estimate corrected), and is judged on the same rows: those of the split "random" and of the first two of the five
folds of "family", pooled. What is left out, the trees cannot read; the analytical estimate still can. Each finished fit
is one line of build/ablation.jsonl, so that a run with the same data and settings goes on where it stopped;
benchmarks/results/ablation.json is written when all are there. docs/ablation.md says what it shows.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from irgauge.data.build import machine_name
from irgauge.data.splits import Split, splits_of
from irgauge.data.store import read_dataset
from irgauge.data.targets import TRACK_GROUPS, find_target
from irgauge.featurize.describe import GROUPS
from irgauge.files import write_whole
from irgauge.models import analytical
from irgauge.models.artifact import library_versions
from irgauge.models.learn import TargetTask, no_intervals
from irgauge.models.metrics import Judged, score
from irgauge.models.recipes import Recipe, settings_of
from irgauge.models.train import Table, data_hash, run_all, shared, table_of

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "build" / "ablation.jsonl"
RESULT = ROOT / "benchmarks" / "results" / "ablation.json"
TRACK = "kernel"
TARGETS = "latency_ns,instructions_executed,static_instructions,gpr_used"
FAMILY_FOLDS = 2
METRICS = ("n", "mape", "mdape", "rmse_pct", "within10", "exact", "kendall", "regret1_median")


@dataclass(frozen=True)
class Variant:
    """One way to learn."""

    name: str
    without: str = ""
    """Features that the trees cannot read: a group, "textual n-grams", "def-use n-grams", "all n-grams", or
    "hand-crafted" (all but the names of operations and their n-grams)."""
    margin: bool = True
    objective: str = "auto"


GROUP_NAMES = [group for group in TRACK_GROUPS[TRACK] if group not in ("ngrams", "options")]
VARIANTS = (
    Variant("all"),
    *(Variant(f"without {group}", group) for group in GROUP_NAMES),
    *(Variant(f"without {n}", n) for n in ("textual n-grams", "def-use n-grams", "all n-grams", "hand-crafted")),
    Variant("estimate not corrected", margin=False),
    *(Variant(f"objective {name}", objective=name) for name in ("l1", "l2")),
)


def hidden(without: str, names: Sequence[str]) -> np.ndarray:
    """Which features a variant does not read: mask of shape (n_features,)."""
    fixed = {name: group for group, features in GROUPS.items() for name in features}

    def kind(name: str) -> str:
        return fixed.get(name, "ops" if name.startswith("ops.") else name.split("/")[0].split(".")[0])

    kinds = {
        "textual n-grams": {"ngram"},
        "def-use n-grams": {"chain"},
        "all n-grams": {"ngram", "chain", "ngrams"},
        "hand-crafted": set(GROUPS) - {"ops", "ngrams"},
    }.get(without, {without})
    if without == "hand-crafted":
        return np.array([kind(name) in kinds or name in GROUPS["ops"] for name in names])
    return np.array([kind(name) in kinds for name in names])


def judge(table: Table, variant: Variant, split: Split, column: str, seed: int) -> dict[str, list[float]]:
    """Learn from the split's training rows; the test rows with a label, and what is predicted for them."""
    y = table.y[column]
    train, test = (index[np.isfinite(y[index])] for index in (split.train_index, split.test_index))
    columns = analytical.needed_columns(table.names, [analytical.name_for(find_target(column))])
    settings = replace(settings_of(TRACK), objective=variant.objective)
    readable = ~hidden(variant.without, table.names)
    task = TargetTask(
        find_target(column), table.X, y[train], table.names, columns, seed, settings, rows=train, readable=readable
    )
    margin = task.margin_of(Recipe("lightgbm", variant.margin, {}))
    parts = task.fit("lightgbm", margin, np.ones(len(train), bool))
    model = task.model(margin, "lightgbm", parts, None, no_intervals())
    outcome = model.predict(np.ascontiguousarray(table.X[test]), columns)
    return {"rows": test.tolist(), "value": outcome.value.tolist(), "ranked": outcome.ranked.tolist()}


def _key(variant: Variant, split: Split, column: str) -> str:
    return f"{variant.name}|{split.name}|{column}"


def _learned_from(digest: str, seed: int) -> str:
    """What else decides a fit: the data, the track's settings, the seed and the library's release."""
    decides = [digest, asdict(settings_of(TRACK)), seed, library_versions(("lightgbm",))]
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def _finished(learned_from: str) -> dict[str, dict[str, list[float]]]:
    """Fits of an earlier run that would be the same now."""
    if not LOG.is_file():
        return {}
    lines = [json.loads(line) for line in LOG.read_text().splitlines() if line.endswith("}")]
    return {line["key"]: line["fit"] for line in lines if line.get("learned_from") == learned_from}


def scores(
    table: Table, fits: Mapping[str, Mapping[str, Sequence[float]]], folds: Sequence[Split], columns: Sequence[str]
) -> dict[str, Any]:
    """variant -> split -> target -> metric -> figure; folds of a split pooled."""
    found: dict[str, Any] = {}
    for variant in VARIANTS:
        for split in dict.fromkeys(fold.name.split("/")[0] for fold in folds):
            for column in columns:
                parts = [fits[_key(variant, f, column)] for f in folds if f.name.split("/")[0] == split]
                rows = np.concatenate([np.asarray(p["rows"], np.int64) for p in parts])
                value, ranked = (np.concatenate([np.asarray(p[k]) for p in parts]) for k in ("value", "ranked"))
                programs = [table.program_id[i] for i in rows]
                lower = find_target(column).lower_is_better
                figures = score(Judged(table.y[column][rows], value, programs, lower, ranked=ranked))
                kept = {k: float(f"{figures[k]:.5g}") for k in METRICS if np.isfinite(figures[k])}
                found.setdefault(variant.name, {}).setdefault(split, {})[column] = kept
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--splits", default="random,family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, help="only so many records, to see that it runs; writes nothing")
    arguments = parser.parse_args()
    frame = read_dataset(None, track=TRACK)
    if arguments.rows:
        frame = frame.sample(arguments.rows, random_state=0).reset_index(drop=True)
    table = table_of(frame, track=TRACK, n_jobs=arguments.jobs)
    digest = data_hash(table)
    columns = [find_target(name).column for name in arguments.targets.split(",")]
    folds = [
        fold
        for name in arguments.splits.split(",")
        for fold in splits_of(name, table.program_id, table.family, arguments.seed)[:FAMILY_FOLDS]
    ]
    learned_from = _learned_from(digest, arguments.seed)
    fits = {} if arguments.rows else _finished(learned_from)
    wanted = [(v, f, c) for c in columns for f in folds for v in VARIANTS if _key(v, f, c) not in fits]
    LOG.parent.mkdir(exist_ok=True)
    with shared(table, arguments.jobs) as mapped:
        for start in range(0, len(wanted), 2 * arguments.jobs):
            part = wanted[start : start + 2 * arguments.jobs]
            results = run_all(judge, [(mapped, *w, arguments.seed) for w in part], arguments.jobs, None, str)
            new = {_key(*w): fit for w, fit in zip(part, results, strict=True)}
            fits |= new
            if not arguments.rows:
                with LOG.open("a") as log:
                    lines = ({"learned_from": learned_from, "key": key, "fit": fit} for key, fit in new.items())
                    log.writelines(json.dumps(line) + "\n" for line in lines)
            print(f"{start + len(part)} of {len(wanted)}", flush=True)
    found = scores(table, fits, folds, columns)
    about = {
        "machine": machine_name(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "libraries": library_versions(("irgauge", "numpy", "lightgbm")),
        "data_sha256": digest,
        "seed": arguments.seed,
        "family_folds": FAMILY_FOLDS,
    }
    for name, by_split in found.items():
        cells = [f"{s} {c.split('/')[1]} {m['mdape']:.3f}" for s, by in by_split.items() for c, m in by.items()]
        print(f"{name:28}", *cells)
    if not arguments.rows:
        write_whole(RESULT, json.dumps({"about": about, "variants": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
