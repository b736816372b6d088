"""The labelling log (SQLite) and the datasets (Parquet) made from it.

Every result is committed to the log the moment it arrives, so a run that is killed loses only what was in flight.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import IrgaugeError
from .families.base import Source
from .label.kernel import ExactLabels
from .label.latency import Latency
from .targets import X86, targets_of

if TYPE_CHECKING:
    import pandas as pd

SETS = Path(__file__).with_name("sets")
"""The committed datasets, in a checkout."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS source (program_id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS program (
  id TEXT PRIMARY KEY, program_id TEXT, family TEXT, origin TEXT, schedule TEXT, mlir TEXT);
CREATE TABLE IF NOT EXISTS exact (
  id TEXT PRIMARY KEY, labels TEXT, assembly BLOB, skipped_reason TEXT, skipped_detail TEXT, versions TEXT);
CREATE TABLE IF NOT EXISTS latency (
  id TEXT PRIMARY KEY, measured TEXT, machine TEXT);
CREATE TABLE IF NOT EXISTS failure (
  id TEXT, stage TEXT, reason TEXT, detail TEXT, PRIMARY KEY (id, stage));
"""


@dataclass(frozen=True)
class Variant:
    """One program that waits to be labelled."""

    id: str
    """Hash of the canonical text."""
    source: Source
    """Where it comes from; `mlir` is the text after the schedule."""
    schedule: str


class Log:
    """The SQLite file behind one dataset. One process writes; any number read."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        try:
            self._db = sqlite3.connect(path, timeout=60)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise IrgaugeError(f"{path}: not a labelling log ({error}). Name another file with --log.") from None

    def close(self) -> None:
        self._db.close()

    def finished_sources(self) -> set[str]:
        """`program_id`s whose variants have all been generated."""
        return {row[0] for row in self._db.execute("SELECT program_id FROM source")}

    def add_variants(self, program_id: str, variants: list[Variant], failures: list[tuple[str, str, str]]) -> int:
        """Store all variants of one source at once; those whose id is known are dropped. Returns how many were new.

        `failures` holds (schedule, reason, detail) of schedules that did not apply.
        """
        with self._db:
            before = self._db.total_changes
            self._db.executemany(
                "INSERT OR IGNORE INTO program VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (v.id, v.source.program_id, v.source.family, v.source.origin, v.schedule, v.source.mlir)
                    for v in variants
                ],
            )
            new = self._db.total_changes - before
            self._db.executemany(
                "INSERT OR REPLACE INTO failure VALUES (?, 'schedule', ?, ?)",
                [(f"{program_id}:{schedule}", reason, detail) for schedule, reason, detail in failures],
            )
            self._db.execute("INSERT OR REPLACE INTO source VALUES (?)", (program_id,))
        return new

    def waiting_for_exact(self, versions: Mapping[str, str]) -> list[tuple[str, str]]:
        """(id, mlir) of programs without exact labels by these tool versions or a failure there.

        They come by id, so that a part is a fair sample.
        """
        return list(
            self._db.execute(
                "SELECT id, mlir FROM program WHERE id NOT IN (SELECT id FROM exact WHERE versions = ?)"
                " AND id NOT IN (SELECT id FROM failure WHERE stage = 'exact') ORDER BY id",
                (json.dumps(versions),),
            )
        )

    def add_exact(self, id: str, labels: ExactLabels, versions: Mapping[str, str]) -> None:
        reason, detail = labels.skipped or (None, None)
        with self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO exact VALUES (?, ?, ?, ?, ?, ?)",
                (
                    id,
                    json.dumps(labels.values),
                    zlib.compress(labels.assembly.encode(), 9),
                    reason,
                    detail,
                    json.dumps(versions),
                ),
            )

    def waiting_for_latency(self) -> list[tuple[str, str]]:
        """(id, assembly) of programs that ran and have no latency and no failure there."""
        rows = self._db.execute(
            "SELECT id, assembly FROM exact WHERE skipped_reason IS NULL AND id NOT IN (SELECT id FROM latency)"
            " AND id NOT IN (SELECT id FROM failure WHERE stage = 'latency') ORDER BY id"
        )
        return [(id, zlib.decompress(blob).decode()) for id, blob in rows]

    def add_latency(self, id: str, latency: Latency, machine: str) -> None:
        with self._db:
            self._db.execute(
                "INSERT OR REPLACE INTO latency VALUES (?, ?, ?)", (id, json.dumps(asdict(latency)), machine)
            )

    def add_failure(self, id: str, stage: str, reason: str, detail: str) -> None:
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO failure VALUES (?, ?, ?, ?)", (id, stage, reason, detail))

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""
        tables = ("source", "program", "exact", "latency", "failure")
        return {table: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}

    def failures(self) -> list[tuple[str, str, int]]:
        """(stage, reason, how many), most first; what compiled and did not run counts under stage "run"."""
        failed = self._db.execute("SELECT stage, reason, count(*) FROM failure GROUP BY stage, reason")
        skipped = self._db.execute(
            "SELECT 'run', skipped_reason, count(*) FROM exact WHERE skipped_reason IS NOT NULL GROUP BY skipped_reason"
        )
        return sorted([*failed, *skipped], key=lambda row: -row[2])

    def results(self) -> list[tuple[str, str, str, str, float, float]]:
        """(id, program_id, schedule, mlir, result_sum, result_scale) of what was timed and not found wrong."""
        query = (
            "SELECT p.id, p.program_id, p.schedule, p.mlir, l.measured FROM program p JOIN latency l ON l.id = p.id"
            " WHERE p.id NOT IN (SELECT id FROM failure WHERE stage = 'result')"
        )
        found = []
        for id, program_id, schedule, mlir, text in self._db.execute(query):
            measured = json.loads(text)
            found.append((id, program_id, schedule, mlir, measured["result_sum"], measured["result_scale"]))
        return found

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dict per labelled program, in the columns of the Parquet file; by origin, family, program, schedule."""
        columns = [target.column for target in targets_of("kernel")]
        query = (
            "SELECT p.id, p.program_id, p.family, p.origin, p.schedule, p.mlir, e.labels, e.skipped_reason, e.versions,"
            " l.measured, l.machine FROM program p JOIN exact e ON e.id = p.id LEFT JOIN latency l ON l.id = p.id"
            " WHERE p.id NOT IN (SELECT id FROM failure WHERE stage = 'result')"
            " ORDER BY p.origin, p.family, p.program_id, p.schedule, p.id"
        )
        for row in self._db.execute(query):
            (id, program_id, family, origin, schedule, mlir, labels, skipped, versions, measured, machine) = row
            record = {
                "id": id,
                "program_id": program_id,
                "family": family,
                "origin": origin,
                "schedule": schedule,
                "mlir": mlir,
            }
            values = json.loads(labels)
            record |= {column: values.get(column, float("nan")) for column in columns}
            record["skipped"] = skipped or ""
            latency = Latency(**json.loads(measured)) if measured else None
            if latency:
                record[f"{X86}/latency_ns"] = latency.median_ns
            record["latency_repeats_ns"] = list(latency.repeats_ns) if latency else []
            record["latency_spread"] = latency.spread if latency else float("nan")
            record["latency_calls_per_repeat"] = latency.calls_per_repeat if latency else 0
            record["latency_attempts"] = latency.attempts if latency else 0
            record["reference_before_ns"] = latency.reference_before_ns if latency else float("nan")
            record["reference_after_ns"] = latency.reference_after_ns if latency else float("nan")
            record["result_sum"] = latency.result_sum if latency else float("nan")
            record["result_scale"] = latency.result_scale if latency else float("nan")
            record["machine"] = machine or ""
            record |= {f"version_{tool}": version for tool, version in json.loads(versions).items()}
            yield record


def write_dataset(log: Log, path: Path, *, with_text: bool = True) -> pd.DataFrame:
    """Write all labelled programs of a log as zstd Parquet; to a temporary name first, then renamed."""
    import pandas as pd

    frame = pd.DataFrame(list(log.rows()))
    if frame.empty:
        raise IrgaugeError(f"{log.path}: nothing is labelled yet; `irgauge dataset status` shows what waits.")
    if not with_text:
        frame = frame.drop(columns="mlir")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    frame.to_parquet(partial, compression="zstd", compression_level=19, index=False)
    partial.replace(path)
    return frame


def read_dataset(path: Path | str | None = None, *, track: str = "kernel") -> pd.DataFrame:
    """Read a dataset: a path, or the committed one of a track.

    Raises
    ------
    IrgaugeError
        The file is missing, or is not one of our datasets.
    """
    import pandas as pd
    import pyarrow as pa

    where = Path(path) if path is not None else SETS / f"{track}.parquet"
    if not where.is_file():
        raise IrgaugeError(f"{where}: no such dataset. `irgauge dataset build {track}` makes one.")
    try:
        frame = pd.read_parquet(where)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise IrgaugeError(f"{where}: not a Parquet file that can be read ({str(error).splitlines()[0]})") from None
    missing = {"id", "program_id", "family"} - set(frame.columns)
    if missing:
        raise IrgaugeError(f"{where}: not a dataset of irgauge, columns are missing: {', '.join(sorted(missing))}")
    return frame


def open_log(path: Path) -> closing[Log]:
    """Open a log as a context that closes it."""
    return closing(Log(path))
