"""What the benchmarks measured beside us, as rows of finished cells: the literature's models, and the ablation.

`make bench-literature` and `make bench-ablation` write benchmarks/results/*.json; a report shows what is there for its
track. The figures are of the data and the day that the files state, which the page repeats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .figures import FIGURES, better
from .numbers import shown
from .summary import OURS, Summary, TargetSummary
from .tables import MODEL_LABELS, Cell, Row

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
TRACK = "kernel"
"""The track that the benchmarks are about."""
TARGETS = (
    "x86-64-v3/latency_ns",
    "x86-64-v3/instructions_executed",
    "x86-64-v3/static_instructions",
    "x86-64-v3/gpr_used",
    "x86-64-v3/vec_used",
    "x86-64-v3/l1d_misses",
    "x86-64-v3/vector_utilization",
)
RANKED = TARGETS[:2]
"""Targets whose order within a program's variants is compared too."""
_MOST = 9.99


def results_of(name: str, track: str, folder: Path = RESULTS) -> Mapping[str, Any] | None:
    """The content of one result file; None where there is none, or for another track."""
    path = folder / f"{name}.json"
    if track != TRACK or not path.is_file():
        return None
    content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def columns_of(summary: Summary) -> list[tuple[TargetSummary, str]]:
    """Target and figure of each column: the median error where the mean is made by a few small labels."""
    by_column = {target.column: target for target in summary.targets}
    columns = [by_column[c] for c in TARGETS if c in by_column]
    wanted = [(t, "mdape" if t.error_metric in ("mape", "mean_factor") else t.error_metric) for t in columns]
    return wanted + [(by_column[c], "kendall") for c in RANKED if c in by_column]


def literature_rows(summary: Summary, split: str) -> tuple[Row, ...]:
    """One row a model: ours, our baselines, then the literature's, on one split."""
    columns = columns_of(summary)
    ours = [OURS, *(m for m in MODEL_LABELS if m != OURS)]
    figures = [(MODEL_LABELS[m], [t.figure(split, m, metric) for t, metric in columns]) for m in ours]
    for name, model in (summary.literature or {}).get("models", {}).items():
        by_target = model["scores"].get(split, {})
        figures.append((name, [by_target.get(t.column, {}).get(metric, np.nan) for t, metric in columns]))
    present = [(label, values) for label, values in figures if np.isfinite(values).any()]
    return _rows(present, [metric for _, metric in columns], ours=MODEL_LABELS[OURS])


def literature_costs(summary: Summary) -> list[tuple[str, float, float, float, float]]:
    """Of each of the literature's models: name, seconds of training on the split random, microseconds of a query
    prepared and from text, bytes."""
    found = []
    for name, model in (summary.literature or {}).get("models", {}).items():
        facts = model["facts"]
        seconds = facts["training"].get("random", {}).get("seconds", float("nan"))
        found.append((name, seconds, facts["prepared_us"], facts["from_text_us"], facts["bytes"]))
    return found


def ablation_columns(summary: Summary) -> list[tuple[str, str, str]]:
    """(split, target column, figure) of each column."""
    ablation = summary.ablation or {}
    named = {t.column: metric for t, metric in columns_of(summary) if metric != "kendall"}
    first: Mapping[str, Any] = next(iter(ablation.get("variants", {}).values()), {})
    return [(split, column, named[column]) for split, by in first.items() for column in by if column in named]


def ablation_rows(summary: Summary) -> tuple[Row, ...]:
    """One row a variant; the first is everything together."""
    columns = ablation_columns(summary)
    variants = (summary.ablation or {}).get("variants", {})
    figures = [
        (name, [by[split][column][metric] for split, column, metric in columns]) for name, by in variants.items()
    ]
    return _rows(figures, [metric for _, _, metric in columns], ours="all")


def _rows(figures: Sequence[tuple[str, Sequence[float]]], metrics: Sequence[str], *, ours: str) -> tuple[Row, ...]:
    """Cells with the best of each column marked, where they are not all the same."""
    cells: list[list[Cell]] = [[] for _ in figures]
    for at, metric in enumerate(metrics):
        values = [row[at] for _, row in figures]
        for cell, value in zip(cells, values, strict=True):
            best = any(better(metric, value, v) for v in values) and not any(better(metric, v, value) for v in values)
            cell.append(Cell(shown(value, FIGURES[metric].form, most=_MOST), best, FIGURES[metric].meaning))
    return tuple(Row(name, name == ours, tuple(row)) for (name, _), row in zip(figures, cells, strict=True))
