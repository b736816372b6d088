"""The tables of a report as rows of finished cells, for the page and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .figures import FIGURES, better, figures_of
from .numbers import shown
from .summary import OURS, FamilyErrors, Summary, TargetSummary

MODEL_LABELS: Mapping[str, str] = {
    OURS: "irgauge",
    "constant": "constant",
    "op_count_ridge": "op-count ridge",
    "roofline": "roofline",
    "llvm_mca": "llvm-mca",
}
_MOST = 9.99
"""Shares beyond this are ">999 %" in the headline table; the full tables say how much."""


@dataclass(frozen=True)
class Cell:
    """One number."""

    text: str
    best: bool
    """Whether no other model has a better one in this group, and some model a worse one."""
    title: str = ""
    """What it is, in full."""


@dataclass(frozen=True)
class Row:
    """One model's numbers."""

    model: str
    """What the reader sees: "op-count ridge"."""
    ours: bool
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class HeadlineBlock:
    """One target's rows in the headline table: for each split the error, the hits, Kendall's tau and the regret."""

    target: TargetSummary
    rows: tuple[Row, ...]


def headline_metrics(target: TargetSummary) -> tuple[str, str, str, str]:
    """The four figures of the headline table for a target."""
    return target.error_metric, target.hit_metric, "kendall", "regret1"


def headline_blocks(summary: Summary) -> tuple[HeadlineBlock, ...]:
    """All targets, each model that applies; cells by split, then figure."""
    blocks = []
    for target in summary.targets:
        rows = []
        for model in target.models():
            cells = [
                _cell(target, split.name, model, metric, most=_MOST)
                for split in summary.splits
                for metric in headline_metrics(target)
            ]
            rows.append(Row(MODEL_LABELS[model], model == OURS, tuple(cells)))
        blocks.append(HeadlineBlock(target, tuple(rows)))
    return tuple(blocks)


@dataclass(frozen=True)
class SplitBlock:
    """One split's rows in a target's full table."""

    split: str
    rows: tuple[Row, ...]


def target_metrics(target: TargetSummary) -> tuple[str, ...]:
    """Columns of a target's full table."""
    return figures_of(target.error_metric, target.hit_metric, whole=target.kind in ("count", "bytes"))


def full_table(target: TargetSummary) -> tuple[SplitBlock, ...]:
    """Every figure of every model, by split."""
    blocks = []
    for split in dict.fromkeys(row.split for row in target.scores):
        models = [row.model for row in target.scores if row.split == split]
        rows = [
            Row(MODEL_LABELS[m], m == OURS, tuple(_cell(target, split, m, metric) for metric in target_metrics(target)))
            for m in models
        ]
        blocks.append(SplitBlock(split, tuple(rows)))
    return tuple(blocks)


def _cell(target: TargetSummary, split: str, model: str, metric: str, *, most: float = float("inf")) -> Cell:
    figure = FIGURES[metric]
    value = target.figure(split, model, metric)
    others = [target.figure(split, m, metric) for m in target.models() if m != model]
    best = any(better(metric, value, o) for o in others) and not any(better(metric, o, value) for o in others)
    text = shown(value, figure.form, most=most)
    exact = shown(value, figure.form)
    title = f"{target.name}, {split}, {MODEL_LABELS[model]}: {figure.label} {exact}" if text != exact else ""
    return Cell(text, best, title)


@dataclass(frozen=True)
class Wins:
    """On how many targets our error figure is the smallest."""

    split: str
    n_best: int
    n_targets: int
    lost: tuple[str, ...]
    """"latency_ns to roofline", for the others."""


def wins(summary: Summary) -> tuple[Wins, ...]:
    """By split; a tie with a baseline counts as won."""
    found = []
    for split in summary.splits:
        lost, n = [], 0
        for target in summary.targets:
            ours = target.figure(split.name, OURS, target.error_metric)
            if not np.isfinite(ours):
                continue
            n += 1
            model, error = best_baseline(target, split.name, target.error_metric)
            if model and better(target.error_metric, error, ours):
                lost.append(f"{target.name} to {MODEL_LABELS[model]}")
        found.append(Wins(split.name, n - len(lost), n, tuple(lost)))
    return tuple(found)


def best_baseline(target: TargetSummary, split: str, metric: str) -> tuple[str, float]:
    """Name and figure of the baseline with the best figure; ("", NaN) where none has one."""
    name, best = "", float("nan")
    for model in target.models():
        value = target.figure(split, model, metric)
        if model != OURS and np.isfinite(value) and (not name or better(metric, value, best)):
            name, best = model, value
    return name, best


@dataclass(frozen=True)
class HeatCell:
    """One family's error figure on one target."""

    text: str
    level: int
    """0 far better than the target's median family ... 4 far worse; -1 without a figure."""


@dataclass(frozen=True)
class HeatRow:
    """One family's error figures."""

    family: str
    n_rows: int
    cells: tuple[HeatCell, ...]


def heat_rows(families: Sequence[FamilyErrors], targets: Sequence[TargetSummary]) -> tuple[HeatRow, ...]:
    """The families' errors, each compared with the target's median over the families."""
    columns = []
    for target in targets:
        values = np.array([f.errors.get(target.column, float("nan")) for f in families])
        form = FIGURES[target.error_metric].form
        sizes = values - 1 if form == "factor" else values
        known = sizes[np.isfinite(sizes)]
        middle = float(np.median(known)) if len(known) else 0.0
        levels = np.searchsorted(HEAT_STEPS, sizes / middle, side="right") if middle > 0 else np.full(len(values), 2)
        columns.append(
            [
                HeatCell(shown(float(value), form, most=_MOST), int(level) if np.isfinite(value) else -1)
                for value, level in zip(values, levels, strict=True)
            ]
        )
    return tuple(HeatRow(f.family, f.n_rows, tuple(column[i] for column in columns)) for i, f in enumerate(families))


HEAT_STEPS = (0.5, 0.8, 1.25, 2.0)
"""Quotients of a family's error to the median one at which the shade changes."""
SHARE_STEPS = (0.05, 0.15, 0.3, 0.5)
"""Shares of a feature group at which the shade changes."""


def share_level(share: float) -> int:
    """Shade of a feature group's share, 0 to 4."""
    return int(np.searchsorted(SHARE_STEPS, share, side="right"))
