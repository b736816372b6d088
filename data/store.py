"""The labelling log (SQLite) and the datasets (Parquet) made from it.

Every result is committed to the log the moment it arrives, so a run that is killed loses only what was in flight. A
dataset also says which sources it has in full and what failed, so that a new log can go on from it on another machine.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import IrgaugeError
from ..files import replacing
from .families.base import Source
from .label.labels import Labels
from .label.latency import Latency
from .targets import X86, columns_beside, targets_of

if TYPE_CHECKING:
    import pandas as pd

_STATE = b"irgauge.state"
"""Key in the Parquet file's metadata: zlib-compressed JSON of `Log.state`."""

SETS = Path(__file__).with_name("sets")
"""The committed datasets, in a checkout."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS source (program_id TEXT PRIMARY KEY, text_hash TEXT);
CREATE TABLE IF NOT EXISTS program (
  id TEXT PRIMARY KEY, program_id TEXT, family TEXT, origin TEXT, schedule TEXT, mlir TEXT);
CREATE TABLE IF NOT EXISTS exact (
  id TEXT PRIMARY KEY, labels TEXT, assembly BLOB, skipped_reason TEXT, skipped_detail TEXT, versions TEXT,
  at REAL);
CREATE TABLE IF NOT EXISTS latency (
  id TEXT PRIMARY KEY, measured TEXT, machine TEXT, versions TEXT, at REAL);
CREATE TABLE IF NOT EXISTS failure (
  id TEXT, stage TEXT, reason TEXT, detail TEXT, PRIMARY KEY (id, stage));
"""
_ADDED = (
    ("source", "text_hash TEXT"),
    ("exact", "at REAL"),
    ("latency", "versions TEXT"),
    ("latency", "at REAL"),
)
"""Columns that logs of an earlier version lack."""


@dataclass(frozen=True)
class Variant:
    """One program that waits to be labelled."""

    id: str
    """Hash of the canonical text."""
    source: Source
    """Where it comes from; `mlir` is the text after the schedule."""
    schedule: str


class Log:
    """The SQLite file behind one dataset of a track. One process writes; any number read."""

    def __init__(self, path: Path, track: str = "kernel") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._targets = targets_of(track)
        self._exact = [*(t.column for t in self._targets if t.exact), *columns_beside(track)]
        self._columns = [*(t.column for t in self._targets), *columns_beside(track)]
        self._timed = any(not target.exact for target in self._targets)
        try:
            self._db = sqlite3.connect(path, timeout=60)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
            for table, column in _ADDED:
                if column.split()[0] not in {row[1] for row in self._db.execute(f"PRAGMA table_info({table})")}:
                    self._db.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
        except sqlite3.DatabaseError as error:
            raise IrgaugeError(f"{path}: not a labelling log ({error}). Name another file with --log.") from None

    def close(self) -> None:
        self._db.close()

    def finished_sources(self) -> dict[str, str]:
        """`program_id` -> hash of the source's text, of sources whose variants have all been generated."""
        return dict(self._db.execute("SELECT program_id, coalesce(text_hash, '') FROM source"))

    def add_variants(self, source: Source, variants: list[Variant], failures: list[tuple[str, str, str]]) -> int:
        """Store all variants of one source at once; those whose id is known are dropped. Returns how many were new.

        `failures` holds (schedule, reason, detail) of schedules that did not apply. Variants that are there from
        another text of the same source leave the log, with their labels.
        """
        with self._db:
            known = self._db.execute(
                "SELECT text_hash FROM source WHERE program_id = ?", (source.program_id,)
            ).fetchone()
            if known is not None and known[0] != text_hash(source.mlir):
                self._forget(source.program_id)
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
                [(f"{source.program_id}:{schedule}", reason, detail) for schedule, reason, detail in failures],
            )
            self._db.execute(
                "INSERT OR REPLACE INTO source (program_id, text_hash) VALUES (?, ?)",
                (source.program_id, text_hash(source.mlir)),
            )
        return new

    def _forget(self, program_id: str) -> None:
        for table in ("exact", "latency", "failure"):
            self._db.execute(
                f"DELETE FROM {table} WHERE id IN (SELECT id FROM program WHERE program_id = ?)", (program_id,)
            )
        self._db.execute("DELETE FROM program WHERE program_id = ?", (program_id,))
        self._db.execute(
            "DELETE FROM failure WHERE stage = 'schedule' AND substr(id, 1, ?) = ?",
            (len(program_id) + 1, f"{program_id}:"),
        )

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

    def add_exact(self, labels: Mapping[str, Labels], versions: Mapping[str, str]) -> None:
        """Store the exact labels of some programs; what is missing of one device counts as a failure of that device."""
        now, by = time.time(), json.dumps(versions)
        devices = {target.device for target in self._targets}
        with self._db:
            for id, found in labels.items():
                reason, detail = found.skipped or (None, None)
                assembly = None if found.assembly is None else zlib.compress(found.assembly.encode())
                self._db.execute(
                    "INSERT OR REPLACE INTO exact (id, labels, assembly, skipped_reason, skipped_detail, versions, at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (id, json.dumps(dict(found.values)), assembly, reason, detail, by, now),
                )
                self._db.executemany("DELETE FROM failure WHERE id = ? AND stage = ?", [(id, d) for d in devices])
                self._db.executemany(
                    "INSERT OR REPLACE INTO failure VALUES (?, ?, ?, ?)",
                    [(id, device, *why) for device, why in found.failed.items()],
                )

    def waiting_for_latency(self, versions: Mapping[str, str]) -> list[tuple[str, str, str | None]]:
        """(id, mlir, assembly) of programs that ran and have no latency by these tools and no failure there.

        The assembly is None where the labels were taken over from a dataset.
        """
        rows = self._db.execute(
            "SELECT e.id, p.mlir, e.assembly FROM exact e JOIN program p ON p.id = e.id WHERE e.skipped_reason IS NULL"
            " AND e.versions = ?1 AND e.id NOT IN (SELECT id FROM latency WHERE versions = ?1)"
            " AND e.id NOT IN (SELECT id FROM failure WHERE stage = 'latency') ORDER BY e.id",
            (json.dumps(versions),),
        )
        return [(id, mlir, None if blob is None else zlib.decompress(blob).decode()) for id, mlir, blob in rows]

    def add_latencies(self, latencies: Mapping[str, Latency], machine: str, versions: Mapping[str, str]) -> None:
        now, by = time.time(), json.dumps(versions)
        with self._db:
            self._db.executemany(
                "INSERT OR REPLACE INTO latency (id, measured, machine, versions, at) VALUES (?, ?, ?, ?, ?)",
                [(id, json.dumps(asdict(latency)), machine, by, now) for id, latency in latencies.items()],
            )

    def drop_latencies(self, machines: Collection[str]) -> None:
        """Forget what was measured on these machines."""
        with self._db:
            self._db.executemany("DELETE FROM latency WHERE machine = ?", [(machine,) for machine in machines])

    def machines(self, versions: Mapping[str, str]) -> dict[str, int]:
        """Machine -> how many latencies by these tools were measured on it."""
        query = "SELECT machine, count(*) FROM latency WHERE versions = ? GROUP BY machine"
        return dict(self._db.execute(query, (json.dumps(versions),)))

    def add_failure(self, id: str, stage: str, reason: str, detail: str) -> None:
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO failure VALUES (?, ?, ?, ?)", (id, stage, reason, detail))

    def rates(self, within_s: float = 600.0) -> dict[str, float]:
        """Programs a second in each of the tables `exact` and `latency`, over the last minutes before its newest."""
        rates = {}
        for table in ("exact", "latency"):
            newest = self._db.execute(f"SELECT max(at) FROM {table}").fetchone()[0]
            if newest is None:
                continue
            n, oldest = self._db.execute(
                f"SELECT count(*), min(at) FROM {table} WHERE at > ?", (newest - within_s,)
            ).fetchone()
            if newest > oldest:
                rates[table] = n / (newest - oldest)
        return rates

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

    def state(self) -> dict[str, Any]:
        """What a dataset must say beside its records, so that another log can go on from it."""
        finished = self._db.execute(
            "SELECT program_id, text_hash FROM source WHERE program_id NOT IN (SELECT program_id FROM program"
            " WHERE id NOT IN (SELECT id FROM exact) AND id NOT IN (SELECT id FROM failure WHERE stage = 'exact'))"
        )
        return {
            "finished_sources": dict(finished),
            "failures": list(self._db.execute("SELECT id, stage, reason, detail FROM failure")),
        }

    def enter(self, frame: pd.DataFrame, state: Mapping[str, Any], versions: Mapping[str, str]) -> None:
        """Store the records of a dataset as if they had been labelled here; see `take_over`."""
        by = json.dumps(versions)
        with self._db:
            self._db.executemany(
                "INSERT OR IGNORE INTO source (program_id, text_hash) VALUES (?, ?)", state["finished_sources"].items()
            )
            self._db.executemany("INSERT OR IGNORE INTO failure VALUES (?, ?, ?, ?)", state["failures"])
            for row in frame.to_dict("records"):
                self._db.execute(
                    "INSERT OR IGNORE INTO program VALUES (?, ?, ?, ?, ?, ?)",
                    tuple(row[key] for key in ("id", "program_id", "family", "origin", "schedule", "mlir")),
                )
                values = {column: row[column] for column in self._exact if column in row}
                values = {column: value for column, value in values.items() if value == value}
                self._db.execute(
                    "INSERT OR IGNORE INTO exact (id, labels, skipped_reason, skipped_detail, versions)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (row["id"], json.dumps(values), row.get("skipped") or None, "", by),
                )
                if self._timed and len(row["latency_repeats_ns"]) > 0:
                    latency = Latency(
                        repeats_ns=tuple(float(ns) for ns in row["latency_repeats_ns"]),
                        calls_per_repeat=int(row["latency_calls_per_repeat"]),
                        reference_before_ns=row["reference_before_ns"],
                        reference_after_ns=row["reference_after_ns"],
                        result_sum=row["result_sum"],
                        result_scale=row["result_scale"],
                        attempts=int(row["latency_attempts"]),
                    )
                    self._db.execute(
                        "INSERT OR IGNORE INTO latency (id, measured, machine, versions) VALUES (?, ?, ?, ?)",
                        (row["id"], json.dumps(asdict(latency)), row["machine"], by),
                    )

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dict per labelled program, in the columns of the Parquet file; by origin, family, program, schedule."""
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
            record |= {column: values.get(column, float("nan")) for column in self._columns}
            if self._timed:
                record["skipped"] = skipped or ""
                record |= _latency_columns(Latency(**json.loads(measured)) if measured else None)
                record["machine"] = machine or ""
            record |= {f"version_{tool}": version for tool, version in json.loads(versions).items()}
            yield record


def _latency_columns(latency: Latency | None) -> dict[str, Any]:
    """The columns of what was measured; the same ones where nothing was."""
    return {
        f"{X86}/latency_ns": latency.median_ns if latency else float("nan"),
        "latency_repeats_ns": list(latency.repeats_ns) if latency else [],
        "latency_spread": latency.spread if latency else float("nan"),
        "latency_calls_per_repeat": latency.calls_per_repeat if latency else 0,
        "latency_attempts": latency.attempts if latency else 0,
        "reference_before_ns": latency.reference_before_ns if latency else float("nan"),
        "reference_after_ns": latency.reference_after_ns if latency else float("nan"),
        "result_sum": latency.result_sum if latency else float("nan"),
        "result_scale": latency.result_scale if latency else float("nan"),
    }


def text_hash(mlir: str) -> str:
    """Short hash by which a source is known to be unchanged."""
    return hashlib.sha256(mlir.encode()).hexdigest()[:12]


def write_dataset(log: Log, path: Path, *, with_text: bool = True) -> pd.DataFrame:
    """Write all labelled programs of a log as zstd Parquet; to a temporary name first, then renamed."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = pd.DataFrame(list(log.rows()))
    if frame.empty:
        raise IrgaugeError(f"{log.path}: nothing is labelled yet; `irgauge dataset status` shows what waits.")
    if not with_text:
        frame = frame.drop(columns="mlir")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    state = zlib.compress(json.dumps(log.state()).encode(), 9)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _STATE: state})
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=12)
    return frame


def take_over(log: Log, path: Path, versions: Mapping[str, str]) -> int:
    """Enter the records of a dataset that these tools made into a log; returns how many.

    Sources that it has in full count as finished. Records by other tools are left out: they are generated and labelled
    again.
    """
    import pyarrow.parquet as pq

    state = (pq.read_schema(path).metadata or {}).get(_STATE)
    frame = read_dataset(path)
    columns = {f"version_{tool}": version for tool, version in versions.items()}
    if state is None or not set(columns) <= set(frame.columns):
        return 0
    for column, version in columns.items():
        frame = frame[frame[column] == version]
    log.enter(frame, json.loads(zlib.decompress(state)), versions)
    return len(frame)


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


def open_log(path: Path, track: str = "kernel") -> closing[Log]:
    """Open a log as a context that closes it."""
    return closing(Log(path, track))
