"""The dataset's card: what it holds, how it was made, and where it is weak; computed from the records themselves."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from ..files import write_whole
from .histograms import BINS, histograms_svg
from .label.executable import MAX_OPERAND_BYTES
from .label.kernel import MAX_INSTRUCTIONS
from .label.latency import MAX_ATTEMPTS, MIN_REPEAT_NS, REPEATS, SPREAD_LIMIT
from .label.npu import DEVICES
from .targets import targets_of
from .tracks import Track

if TYPE_CHECKING:
    import pandas as pd

    from .verify import Verified

_AGREEMENT = "## Agreement of two labelling runs"


@dataclass(frozen=True)
class _Words:
    """What a card says that the records do not."""

    made: str
    """How the programs and the labels are made."""
    limits: tuple[str, ...]


_WORDS = {
    "kernel": _Words(
        "`make dataset` generates each family's programs, applies several schedules with `mlir-opt`, drops duplicates "
        "on canonical text, and labels what is left (`data/build.py`). All texts are our own; the targets are defined "
        "in `data/targets.py`.",
        (
            "One machine, one thread, one compiler version; operands are warm and hold small non-zero numbers.",
            f"Calls over {MAX_INSTRUCTIONS / 1e6:.0f} million instructions or operands over "
            f"{MAX_OPERAND_BYTES >> 20} MiB: static targets only.",
            "Caches are simulated with two levels (32 KiB, 1 MiB) and no prefetching; latencies are of the real "
            "machine.",
            "Floating-point semantics are strict: LLVM may not reorder reductions, so few of them are vectorized.",
            "A memref argument may alias another as far as LLVM knows; vectorized loops carry run-time checks.",
            "Random nests are our idea of what occurs; the split `real` says how far that carries.",
        ),
    ),
    "npu": _Words(
        "`make dataset-npu` generates each family's networks, drops duplicates on canonical text, and labels what is "
        "left: `tosa-opt` serializes the module and Vela compiles it for each device (`data/label/npu.py`). All texts "
        "are our own; the targets are defined in `data/targets.py`. Weights are elided in the texts; the labeller puts "
        "random numbers there, the same ones each time (`data/label/elided.py`).",
        (
            "Labels are Vela's estimates, not measurements on a device: cycles come from its performance model.",
            "One memory system a device: "
            + "; ".join(f"{d.name} with {d.system_config}, {d.memory_mode}" for d in DEVICES)
            + ".",
            "Vela compresses weights, so trained ones may take fewer bytes than the random ones here.",
            "From TOSA Vela places everything on the NPU or refuses the network: `cpu_operators` is 0 in every record, "
            "and what one device refuses has no labels of that device.",
            "Vela counts elementwise operations and pooling among the operations of the MAC array; so does "
            "`mac_utilization`.",
        ),
    ),
}


def write_card(frame: pd.DataFrame, failures: Sequence[tuple[str, str, int]], path: Path, track: Track) -> None:
    """Write `card_text` and its picture (.svg) beside the dataset; to a temporary name first, then renamed."""
    picture = path.with_suffix(".svg")
    write_whole(picture, histograms_svg(frame, targets_of(track.name)))
    write_whole(path, card_text(frame, failures, picture.name, track))


def write_agreement(verified: Verified, path: Path) -> None:
    """Enter in a card what labelling again has shown."""
    write_whole(path, with_agreement(path.read_text(), verified))


def card_text(frame: pd.DataFrame, failures: Sequence[tuple[str, str, int]], picture: str, track: Track) -> str:
    """The card of a track's dataset in Markdown.

    Parameters
    ----------
    frame : the dataset
    failures : (stage, reason, how many), as the labelling log counts them
    picture : file of the histograms, beside the card
    """
    versions = sorted(c for c in frame.columns if c.startswith("version_"))
    programs = frame["program_id"].nunique()
    words = _WORDS[track.name]
    lines = [
        f"# The {track.name} dataset",
        "",
        f"{len(frame):,} records of {programs:,} programs in {frame['family'].nunique()} families; "
        f"{len(frame) / programs:.1f} variants a program. Written and labelled by this project; Apache-2.0.",
        "",
        "## How it was made",
        "",
        *wrap(words.made, 120, break_long_words=False),
        "",
        *_table(
            ["tool", "version"], [[c.removeprefix("version_"), ", ".join(sorted(set(frame[c])))] for c in versions]
        ),
        "",
        "## Origins and families",
        "",
        *_families(frame),
        "",
        "## Labels",
        "",
        *_labels(frame, track),
        "",
        f"![Histograms of the labels]({picture})",
        "",
        f"{BINS} bins between the least and the largest value above 0; the bar on the left counts the zeros.",
        "",
        *(_measured(frame) if track.timed else []),
        *(_scheduled(frame) if len(frame) > programs else []),
        _AGREEMENT,
        "",
        f"Not checked since: `irgauge dataset verify {track.name} --sample 300` labels a sample again and writes the "
        "result here.",
        "",
        "## Near-duplicates",
        "",
        "Two programs of a family are near-duplicates if their canonical texts differ in sizes and constants only "
        f"(`data/dedup.py`). At most {track.most_alike} such programs are kept, before any schedule: "
        f"{sum(n for stage, _, n in failures if stage == 'source'):,} were found beyond that and left out. Exact "
        "duplicates (the same canonical text) are in the dataset once.",
        "",
        "## What failed",
        "",
        *_failures(failures),
        "",
        "## Known limits",
        "",
        *(f"- {limit}" for limit in words.limits),
        "",
    ]
    return "\n".join(lines)


def with_agreement(card: str, verified: Verified) -> str:
    """The card with what labelling again has shown."""
    before, _, rest = card.partition(f"{_AGREEMENT}\n")
    after = rest[rest.index("\n## ") :]
    exact = (
        f"{verified.n_records:,} records drawn at random were labelled again: of {verified.n_values:,} exact values "
    )
    exact += f"{len(verified.differences):,} differ." if verified.differences else "none differs."
    lines = [exact]
    if len(verified.latency_changes) > 1:
        low, median, high = (
            f"{q:+.1%}" for q in statistics.quantiles(verified.latency_changes, n=20, method="inclusive")[::9]
        )
        lines.append(
            f"The latencies of {len(verified.latency_changes):,} of them, measured again on such a processor, "
            f"changed by {median} in the median and by {low} to {high} between the 5th and the 95th percentile."
        )
    return f"{before}{_AGREEMENT}\n\n" + "\n".join(lines) + f"\n{after}"


def _scheduled(frame: pd.DataFrame) -> list[str]:
    return [
        "## Schedules",
        "",
        "A schedule's parts are joined by `+`; the number of records that have each:",
        "",
        *_schedules(frame),
        "",
    ]


def _measured(frame: pd.DataFrame) -> list[str]:
    return [
        "## Latencies",
        "",
        "; ".join(sorted(set(frame["machine"]) - {""})) + f". {REPEATS} repeats of at least "
        f"{MIN_REPEAT_NS / 1e6:g} ms; measured again, at most {MAX_ATTEMPTS} times, while the quartiles lie more than "
        f"{SPREAD_LIMIT:.0%} of the median apart, and the calmest attempt kept.",
        "",
        *_noise(frame),
        "",
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


def _failures(failures: Sequence[tuple[str, str, int]]) -> list[str]:
    rows = [[stage, reason, f"{n:,}"] for stage, reason, n in failures if stage != "source"]
    return _table(["stage", "reason", "programs"], rows) if rows else ["Nothing."]


def _families(frame: pd.DataFrame) -> list[str]:
    groups = frame.groupby(["origin", "family"], sort=True)
    rows = [[origin, family, f"{g['program_id'].nunique():,}", f"{len(g):,}"] for (origin, family), g in groups]
    return _table(["origin", "family", "programs", "records"], rows)


def _schedules(frame: pd.DataFrame) -> list[str]:
    parts = frame["schedule"].str.split("+").explode().str.extract(r"^([a-z]+)", expand=False)
    return _table(["part", "records"], [[part, f"{n:,}"] for part, n in parts.value_counts().items()])


def _labels(frame: pd.DataFrame, track: Track) -> list[str]:
    rows = []
    for target in targets_of(track.name):
        if target.column not in frame or frame[target.column].isna().all():
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
            ]
        )
    return _table(["target", "records", "zero", "least", "median", "largest"], rows)


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
