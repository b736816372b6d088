"""Labels a random sample of a dataset again: exact labels must come out the same, bit for bit; latencies, closely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .build import BATCH, Failure, exact_or_failures, in_parallel, machine_name, processor_of
from .label.kernel import label_latencies
from .label.labels import Labels
from .label.latency import Latency, latency_core
from .stopping import Stop
from .targets import X86, Target, targets_of
from .tracks import KERNEL, Track

if TYPE_CHECKING:
    import pandas as pd

_LATENCY = f"{X86}/latency_ns"


@dataclass(frozen=True)
class Difference:
    """One value that did not come out as it stands in the dataset."""

    id: str
    program_id: str
    schedule: str
    what: str
    """A target's column, or "skipped" where one run has the executed targets and the other does not."""
    stored: str
    again: str


@dataclass(frozen=True)
class Verified:
    """What labelling again has shown."""

    n_records: int
    n_values: int
    differences: tuple[Difference, ...]
    latency_changes: tuple[float, ...]
    """Latency measured again over the stored one, less 1; of the records that were measured on this processor."""


def verify(
    frame: pd.DataFrame,
    *,
    sample: int,
    seed: int = 0,
    n_jobs: int = 1,
    track: Track = KERNEL,
    latency: bool = True,
) -> Verified:
    """Label a random sample of a dataset again and compare every exact target.

    Parameters
    ----------
    latency : measure latencies again too, where the track has them and the processor is the same

    Raises
    ------
    UsageError
        The dataset has no texts, or its records come from other tool versions than those installed.
    """
    if "mlir" not in frame:
        raise UsageError("this dataset has no texts, so nothing can be labelled again")
    for tool, version in track.versions().items():
        stored = set(frame.get(f"version_{tool}", ["unknown"]))
        if stored != {version}:
            raise UsageError(f"labelled with {tool} {', '.join(sorted(stored))}, and {version} is installed")
    records = frame.sample(min(sample, len(frame)), random_state=seed).to_dict("records")
    batches = [[(r["id"], r["mlir"], None) for r in records[at : at + BATCH]] for at in range(0, len(records), BATCH)]
    again: dict[str, Labels | Failure] = {}
    for results in in_parallel(partial(exact_or_failures, track.name), batches, n_jobs, "labelling again", Stop()):
        again |= dict(results)
    differences: list[Difference] = []
    n_values = 0
    for record in records:
        found = again[record["id"]]
        values = found.values if isinstance(found, Labels) else {}
        reason = (found.skipped or ("",))[0] if isinstance(found, Labels) else found.reason
        pairs = {t.column: (_shown(record, t.column), _shown(values, t.column)) for t in _exact(frame, track)}
        n_values += len(pairs)
        pairs["skipped"] = (str(record.get("skipped", "")), reason)
        differences += [
            Difference(record["id"], record["program_id"], record["schedule"], what, stored, now)
            for what, (stored, now) in pairs.items()
            if stored != now
        ]
    changes = _latency_changes(records, again) if latency and track.timed else ()
    return Verified(len(records), n_values, tuple(differences), changes)


def _latency_changes(records: Sequence[Mapping[str, Any]], again: Mapping[str, Labels | Failure]) -> tuple[float, ...]:
    here = processor_of(machine_name())
    stored: list[float] = []
    assemblies: list[str] = []
    for record in records:
        found = again[record["id"]]
        if processor_of(record["machine"]) == here and isinstance(found, Labels) and not found.skipped:
            stored.append(record[_LATENCY])
            assemblies.append(found.assembly or "")
    core = latency_core()
    measured = [
        found for at in range(0, len(assemblies), BATCH) for found in label_latencies(assemblies[at : at + BATCH], core)
    ]
    return tuple(m.median_ns / s - 1 for s, m in zip(stored, measured, strict=True) if isinstance(m, Latency))


def _exact(frame: pd.DataFrame, track: Track) -> list[Target]:
    return [t for t in targets_of(track.name) if t.exact and t.column in frame]


def _shown(values: Mapping[str, Any], column: str) -> str:
    """The number in full; "" where there is none."""
    value = values.get(column)
    return "" if value is None or value != value else repr(float(value))
