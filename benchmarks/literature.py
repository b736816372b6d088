"""The models of the literature on our records and our splits, judged as ours are.

    pip install -e '.[bench]'; python benchmarks/literature.py [--minutes M] [--quick]

Bag of words with fully connected layers, Conv1D, LSTM and a small Transformer, each over two kinds of tokens, learn all
targets at once; AutoTVM's trees learn to order the variants of a program. docs/literature.md says how they are trained
and what came out. One thread. Each fit leaves a file in build/literature and is not done again while it is there
(`make clean` forgets them, another dataset, budget or seed has its own); at the end the complete splits are scored.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import irgauge
from irgauge.benchmarks.literature_data import Data, load_data
from irgauge.benchmarks.literature_networks import NETWORKS
from irgauge.benchmarks.literature_rivals import NetworkRival, Outcome, RankingRival, Rival, Single
from irgauge.benchmarks.literature_tokens import KINDS
from irgauge.benchmarks.predict import median_us
from irgauge.data.build import machine_name
from irgauge.data.splits import Split, splits_of
from irgauge.files import replacing, write_whole
from irgauge.models.metrics import Judged, score

ROOT = Path(__file__).resolve().parent.parent
SPLITS = ("random", "family", "program")
METRICS = (
    "n", "rmse_pct", "rmse", "mape", "mdape", "within10", "exact", "spearman", "kendall", "regret1", "regret1_median",
    "regret5", "f1_nonzero",
)  # fmt: skip
RANK_METRICS = ("n", "spearman", "kendall", "regret1", "regret1_median", "regret5")
HEADLINES = (
    "x86-64-v3/latency_ns", "x86-64-v3/instructions_executed", "x86-64-v3/static_instructions", "x86-64-v3/gpr_used",
    "x86-64-v3/vec_used", "x86-64-v3/spills", "x86-64-v3/l1d_misses",
)  # fmt: skip
_QUICK_EVERY, _QUICK_MINUTES = 120, 0.003
_QUERIES = 50
_LAST = ("transformer/shapes", "transformer/ops")
"""What is slowest to learn; done after all others, one after the other."""


def rivals_of(minutes: float, seed: int) -> list[Rival]:
    """All models, those that see shapes first."""
    networks = [NetworkRival(m, kind, 60 * minutes, seed) for kind in reversed(KINDS) for m in NETWORKS]
    return [*networks, RankingRival(seed)]


def plan(rivals: Sequence[Rival], folds: Sequence[Split]) -> list[tuple[Rival, Split]]:
    """Fits in order: split by split, those of `_LAST` at the end."""
    fits = [(rival, fold) for fold in folds for rival in rivals]
    return sorted(fits, key=lambda fit: _LAST.index(fit[0].name) if fit[0].name in _LAST else -1)


def outcome_path(folder: Path, rival: Rival, split: Split) -> Path:
    return folder / f"{rival.name}-{split.name}.npz".replace("/", "-")


def write_outcome(path: Path, outcome: Outcome) -> None:
    """Whole or not at all."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, rows=outcome.rows, values=outcome.values, facts=np.array(json.dumps(outcome.facts)))


def read_outcome(path: Path) -> Outcome:
    with np.load(path) as stored:
        return Outcome(stored["rows"], stored["values"], json.loads(str(stored["facts"])))


def tuned(folder: Path, rival: Rival, data: Data, train: np.ndarray) -> dict[str, Any]:
    """The rival's configuration and the losses of those tried; from its file where there is one."""
    path = folder / f"{rival.name}-tuned.json".replace("/", "-")
    if not path.exists():
        write_whole(path, json.dumps(rival.tune(data, train)))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def run(folder: Path, data: Data, fits: Sequence[tuple[Rival, Split]], train: np.ndarray) -> None:
    """Do the fits that have no file yet; tune on `train`, the random split's training rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for rival, fold in fits:
        path = outcome_path(folder, rival, fold)
        if path.exists():
            continue
        outcome = rival.fit(data, fold, tuned(folder, rival, data, train)["chosen"])
        write_outcome(path, outcome)
        facts = ", ".join(f"{key} {value:,.4g}" for key, value in outcome.facts.items())
        print(f"{datetime.now(UTC):%H:%M:%S} {rival.name} {fold.name}: {facts}", flush=True)


def scores_of(data: Data, outcomes: Sequence[Outcome], ranks_only: bool) -> dict[str, dict[str, float]]:
    """Scores by target of the folds of one split together, as `irgauge.models.evaluate` has them."""
    rows = np.concatenate([o.rows for o in outcomes])
    values = np.concatenate([o.values for o in outcomes])
    found = {}
    for column, target in enumerate(data.targets):
        judged = np.isfinite(data.y[rows, column]) & np.isfinite(values[:, column])
        if not judged.any():
            continue
        y, raw = data.y[rows[judged], column], values[judged, column]
        finished = np.clip(raw, 0.0, target.upper)
        finished = np.round(finished) if target.whole else finished
        programs = [data.program_id[i] for i in rows[judged]]
        figures = score(Judged(y, finished, programs, target.lower_is_better, ranked=raw))
        kept = RANK_METRICS if ranks_only else METRICS
        found[target.column] = {m: _rounded(figures[m]) for m in kept if np.isfinite(figures[m])}
    return found


def _rounded(value: float) -> float:
    """Five significant digits."""
    return float(f"{value:.5g}")


def facts_of(folder: Path, rival: Rival, data: Data, by_split: Mapping[str, list[Outcome]], fold: Split) -> Any:
    """What a rival is and takes; single queries are the texts of the first test rows of `fold`."""
    choice = tuned(folder, rival, data, fold.train_index)
    single = rival.single(data, fold, choice["chosen"])
    texts = [data.texts[i] for i in fold.test_index[:_QUERIES]]
    prepared = [single.prepare(text) for text in texts]
    numbers = {
        "prepared_us": statistics.median(median_us(partial(single.answer, p), 5) for p in prepared),
        "from_text_us": statistics.median(median_us(partial(_ask, single, text), 5) for text in texts),
        "bytes": single.n_bytes,
        "truncated": rival.truncated(data),
    }
    training = {
        split: {key: _rounded(statistics.mean(o.facts[key] for o in outcomes)) for key in outcomes[0].facts}
        for split, outcomes in by_split.items()
    }
    return {**{k: _rounded(v) for k, v in numbers.items()}, "configuration": choice, "training": training}


def _ask(single: Single, text: str) -> object:
    return single.answer(single.prepare(text))


def results(folder: Path, data: Data, rivals: Sequence[Rival], folds: Sequence[Split]) -> dict[str, Any]:
    """Facts and scores of the rivals, of each split whose folds have all been judged."""
    models: dict[str, Any] = {}
    for rival in rivals:
        by_split: dict[str, list[Outcome]] = {}
        for name in SPLITS:
            paths = [outcome_path(folder, rival, f) for f in folds if f.name.partition("/")[0] == name]
            if all(path.exists() for path in paths):
                by_split[name] = [read_outcome(path) for path in paths]
        if by_split:
            models[rival.name] = {
                "facts": facts_of(folder, rival, data, by_split, folds[0]),
                "scores": {name: scores_of(data, o, rival.ranks_only) for name, o in by_split.items()},
            }
    return models


def ours() -> dict[str, Any]:
    """The scores that the bundled model and our baselines have on the same splits, as `irgauge evaluate` left them."""
    kernel = irgauge.load().manifest["tracks"]["kernel"]
    return {"irgauge": {"scores": kernel["scores"]}, **{b: {"scores": s} for b, s in kernel["baselines"].items()}}


def table(models: Mapping[str, Any], metrics: Sequence[str] = ("mape", "mdape", "rmse_pct", "kendall")) -> str:
    """Markdown: a table for each target of `HEADLINES`, a row for each model and the splits side by side."""
    lines: list[str] = []
    for column in HEADLINES:
        heads = [f"{split} {metric}" for split in SPLITS for metric in metrics]
        lines += ["", f"**{column}**", "", f"| model | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
        for name, model in models.items():
            if not any(column in by for by in model["scores"].values()):
                continue
            cells = [model["scores"].get(s, {}).get(column, {}).get(m) for s in SPLITS for m in metrics]
            lines.append(f"| {name} | {' | '.join('-' if c is None else f'{c:.3g}' for c in cells)} |")
    return "\n".join(lines[1:])


def facts_table(models: Mapping[str, Any]) -> str:
    """Markdown: what each model is and takes, a row each; epochs (rounds of trees) and seconds of the random split."""
    heads = "model", "chosen", "epochs", "seconds", "records cut", "KB", "µs from tokens", "µs from text"
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, model in models.items():
        facts = model["facts"]
        training = facts["training"].get("random", {})
        chosen = ", ".join(
            f"{key.replace('_', ' ')} {value:g}" for key, value in facts["configuration"]["chosen"].items()
        )
        epochs = training.get("epochs", training.get("rounds", float("nan")))
        cells = [f"{epochs:.0f}", f"{training.get('seconds', float('nan')):.0f}", f"{facts['truncated']:.1%}"]
        cells += [f"{facts['bytes'] / 1000:,.0f}", f"{facts['prepared_us']:,.0f}", f"{facts['from_text_us']:,.0f}"]
        lines.append(f"| {name} | {chosen} | {' | '.join(cells)} |")
    return "\n".join(lines)


def show(found: Mapping[str, Any], beside: Mapping[str, Any]) -> None:
    """Print the results, the scores of `beside` in the same tables."""
    models = dict(sorted(found["models"].items()))
    print(json.dumps(found["about"]), facts_table(models), table({**beside, **models}), sep="\n\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="processor time of each fit of a network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--quick", action="store_true", help="a few hundred rows in under a minute, to see that it runs"
    )
    parser.add_argument("--score", action="store_true", help="fit nothing, score what is there")
    parser.add_argument("--show", action="store_true", help="only print the tables of --output, our model beside them")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "literature.json")
    arguments = parser.parse_args()
    if arguments.show:
        show(json.loads(arguments.output.read_text()), ours())
        return
    torch.set_num_threads(1)
    minutes = _QUICK_MINUTES if arguments.quick else arguments.minutes
    output = ROOT / "build" / "literature" / "quick.json" if arguments.quick else arguments.output
    build = ROOT / "build" / "literature"
    every = _QUICK_EVERY if arguments.quick else 1
    data = load_data(ROOT / "data" / "sets" / "kernel.parquet", build, "kernel", every)
    folds = [fold for name in SPLITS for fold in splits_of(name, data.program_id, data.family, arguments.seed)]
    rivals = rivals_of(minutes, arguments.seed)
    folder = build / f"{data.sha256[:16]}-{minutes:g}min-seed{arguments.seed}"
    if not arguments.score:
        run(folder, data, plan(rivals, folds), folds[0].train_index)
    models = results(folder, data, rivals, folds)
    about = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine_name(),
        "versions": {
            "python": platform.python_version(),
            **{p: importlib.metadata.version(p) for p in ("torch", "numpy", "xgboost-cpu")},
        },
        "rows": len(data.texts),
        "ids_sha256": data.sha256,
        "minutes_per_fit": minutes,
        "seed": arguments.seed,
    }
    found = {"about": about, "models": models}
    write_whole(output, json.dumps(found, indent=1, sort_keys=True) + "\n")
    show(found, {} if arguments.quick else ours())


if __name__ == "__main__":
    main()
