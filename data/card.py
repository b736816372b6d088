"""The dataset's card: what it holds, how it was made, and where it is weak; computed from the records themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .label.executable import MAX_OPERAND_BYTES
from .label.kernel import MAX_INSTRUCTIONS
from .label.latency import MAX_ATTEMPTS, MIN_REPEAT_NS, REPEATS, SPREAD_LIMIT
from .targets import targets_of

if TYPE_CHECKING:
    import pandas as pd

_BARS = "▁▂▃▄▅▆▇█"
_BINS = 24


def write_card(frame: pd.DataFrame, failures: Sequence[tuple[str, str, int]], path: Path) -> None:
    """Write `card_text` beside the dataset; to a temporary name first, then renamed."""
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(card_text(frame, failures))
    partial.replace(path)


def card_text(frame: pd.DataFrame, failures: Sequence[tuple[str, str, int]]) -> str:
    """The card of the kernel dataset in Markdown.

    Parameters
    ----------
    frame : the dataset
    failures : (stage, reason, how many), as the labelling log counts them
    """
    versions = sorted(c for c in frame.columns if c.startswith("version_"))
    programs = frame["program_id"].nunique()
    lines = [
        "# The kernel dataset",
        "",
        f"{len(frame):,} records of {programs:,} programs in {frame['family'].nunique()} families; "
        f"{len(frame) / programs:.1f} variants a program. Written and labelled by this project; Apache-2.0.",
        "",
        "## How it was made",
        "",
        "`make dataset` generates each family's programs, applies several schedules with `mlir-opt`, drops",
        "duplicates on canonical text, and labels what is left (`data/build.py`). All texts are our own; the targets",
        "are defined in `data/targets.py`.",
        "",
        *_table(
            ["tool", "version"], [[c.removeprefix("version_"), ", ".join(sorted(set(frame[c])))] for c in versions]
        ),
        "",
        "Latencies: " + "; ".join(sorted(set(frame["machine"]) - {""})) + f". {REPEATS} repeats of at least "
        f"{MIN_REPEAT_NS / 1e6:g} ms; measured again, at most {MAX_ATTEMPTS} times, while the quartiles lie more than "
        f"{SPREAD_LIMIT:.0%} of the median apart, and the calmest attempt kept.",
        "",
        "## Origins and families",
        "",
        *_families(frame),
        "",
        "## Schedules",
        "",
        "A schedule's parts are joined by `+`; the number of records that have each:",
        "",
        *_schedules(frame),
        "",
        "## Labels",
        "",
        "Histograms: 24 bins between the least and the largest value, in log scale where the largest is over 1,000.",
        "",
        *_labels(frame),
        "",
        "## Noise of the latencies",
        "",
        *_noise(frame),
        "",
        "## What failed",
        "",
        *(
            _table(["stage", "reason", "programs"], [[s, r, f"{n:,}"] for s, r, n in failures])
            if failures
            else ["Nothing."]
        ),
        "",
        "## Known limits",
        "",
        "- One machine, one thread, one compiler version; operands are warm and hold small non-zero numbers.",
        f"- Calls over {MAX_INSTRUCTIONS / 1e6:.0f} million instructions or operands over "
        f"{MAX_OPERAND_BYTES >> 20} MiB: static targets only.",
        "- Caches are simulated with two levels (32 KiB, 1 MiB) and no prefetching; latencies are of the real machine.",
        "- Floating-point semantics are strict: LLVM may not reorder reductions, so few of them are vectorized.",
        "- A memref argument may alias another as far as LLVM knows; vectorized loops carry run-time checks.",
        "- Random nests are our idea of what occurs; the split `real` says how far that carries.",
        "",
    ]
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


def _families(frame: pd.DataFrame) -> list[str]:
    groups = frame.groupby(["origin", "family"], sort=True)
    rows = [[origin, family, f"{g['program_id'].nunique():,}", f"{len(g):,}"] for (origin, family), g in groups]
    return _table(["origin", "family", "programs", "records"], rows)


def _schedules(frame: pd.DataFrame) -> list[str]:
    parts = frame["schedule"].str.split("+").explode().str.extract(r"^([a-z]+)", expand=False)
    return _table(["part", "records"], [[part, f"{n:,}"] for part, n in parts.value_counts().items()])


def _labels(frame: pd.DataFrame) -> list[str]:
    rows = []
    for target in targets_of("kernel"):
        if target.column not in frame:
            continue
        values = frame[target.column].dropna()
        low, median, high = (f"{values.quantile(q):,.4g}" for q in (0, 0.5, 1))
        rows.append(
            [
                target.column,
                f"{len(values):,}",
                f"{(values == 0).mean():.0%}",
                low,
                median,
                high,
                f"`{histogram(values)}`",
            ]
        )
    return _table(["target", "records", "zero", "least", "median", "largest", "histogram"], rows)


def histogram(values: pd.Series) -> str:
    """A line of bars, one a bin, between the least and the largest value."""
    import numpy as np

    numbers = values.to_numpy(float)
    if len(numbers) == 0:
        return ""
    scaled = np.log1p(numbers) if numbers.max() > 1000 else numbers
    counts, _ = np.histogram(scaled, bins=_BINS)
    top = counts.max()
    return "".join(" " if n == 0 else _BARS[int((len(_BARS) - 1) * n / top)] for n in counts)


def _noise(frame: pd.DataFrame) -> list[str]:
    measured = frame[frame["latency_attempts"] > 0]
    if measured.empty:
        return ["No latency is measured yet."]
    spread, drift = measured["latency_spread"], measured["reference_after_ns"] / measured["reference_before_ns"] - 1
    reference = measured["reference_before_ns"]
    rows = [
        ["spread of the repeats, median", f"{spread.median():.2%}"],
        ["spread of the repeats, 95th percentile", f"{spread.quantile(0.95):.2%}"],
        [
            f"records that stayed over {SPREAD_LIMIT:.0%} in {MAX_ATTEMPTS} attempts",
            f"{(spread > SPREAD_LIMIT).sum():,}",
        ],
        ["drift of the reference kernel within a record, 95th percentile", f"{drift.abs().quantile(0.95):.2%}"],
        [
            "reference kernel over all records, 5th to 95th percentile",
            f"{reference.quantile(0.05):,.0f} – {reference.quantile(0.95):,.0f} ns",
        ],
    ]
    return _table(["", ""], rows)
