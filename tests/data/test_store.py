from __future__ import annotations

import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from irgauge.data.families.base import Source
from irgauge.data.label.labels import Labels
from irgauge.data.label.latency import Latency
from irgauge.data.store import Variant, open_log, read_dataset, take_over, text_hash, write_dataset
from irgauge.errors import IrgaugeError

VERSIONS = {"llvm": "1", "valgrind": "2", "gcc": "3"}


def _source(program_id: str, text: str = "text") -> Source:
    return Source(program_id, "f", "o", text)


def _variant(id: str, program_id: str = "p") -> Variant:
    return Variant(id, Source(program_id, "f", "o", f"text {id}"), "identity")


def _timed(result_sum: float = 4.0) -> Latency:
    return Latency((5.0, 7.0, 6.0), 10, 1.0, 1.5, result_sum, 8.0, 2)


def test_a_program_found_twice_is_kept_once(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log:
        assert log.add_variants(_source("p"), [_variant("a"), _variant("b")], []) == 2
        assert (
            log.add_variants(_source("q"), [_variant("b"), _variant("c")], [("tile", "mlir-opt-crash", "SIGABRT")]) == 1
        )
        assert set(log.finished_sources()) == {"p", "q"}
        assert [id for id, _ in log.waiting_for_exact(VERSIONS)] == ["a", "b", "c"]
        assert log.failures() == [("schedule", "mlir-opt-crash", 1)]


def test_what_is_labelled_or_failed_waits_no_more(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log:
        log.add_variants(_source("p"), [_variant("a"), _variant("b"), _variant("c")], [])
        skipped = Labels({"x86-64-v3/spills": 0.0}, {}, "asm", ("too-long", "one call takes 1 s"))
        log.add_exact({"a": Labels({"x86-64-v3/spills": 3.0}, {}, "asm"), "b": skipped}, VERSIONS)
        log.add_failure("c", "exact", "llc-timeout", "no answer")
        assert log.waiting_for_exact(VERSIONS) == []
        assert [id for id, _ in log.waiting_for_exact(VERSIONS | {"llvm": "2"})] == ["a", "b"]
        assert log.waiting_for_latency(VERSIONS) == [("a", "text a", "asm")]
        log.add_latencies({"a": _timed()}, "machine", VERSIONS)
        assert log.waiting_for_latency(VERSIONS) == []
        log.add_exact({"a": Labels({}, {}, "asm 2")}, VERSIONS | {"llvm": "2"})
        assert log.waiting_for_latency(VERSIONS | {"llvm": "2"}) == [("a", "text a", "asm 2")]
        log.add_exact({"a": Labels({"x86-64-v3/spills": 3.0}, {}, "asm")}, VERSIONS)
    with open_log(tmp_path / "log.sqlite") as log:  # nothing of it lived in memory only
        rows = {row["id"]: row for row in log.rows()}
    assert set(rows) == {"a", "b"}
    assert rows["a"]["x86-64-v3/latency_ns"] == 6.0
    assert rows["a"]["latency_attempts"] == 2
    assert rows["b"]["skipped"] == "too-long"
    assert rows["b"]["x86-64-v3/latency_ns"] != rows["b"]["x86-64-v3/latency_ns"]


def test_what_is_missing_of_one_device_is_a_failure_of_that_device(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log:
        log.add_variants(_source("p"), [_variant("a")], [])
        log.add_exact({"a": Labels({}, {"neoverse-v2": ("llc-crash", "SIGABRT")})}, VERSIONS)
        assert log.failures() == [("neoverse-v2", "llc-crash", 1)]
        assert log.waiting_for_exact(VERSIONS) == []
        log.add_exact({"a": Labels({})}, VERSIONS)
        assert log.failures() == []


def test_a_source_whose_text_changed_is_made_anew(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log:
        log.add_variants(_source("p"), [_variant("a"), _variant("b")], [("tile", "mlir-opt-crash", "SIGABRT")])
        log.add_variants(_source("p10"), [_variant("x", "p10")], [("tile", "mlir-opt-crash", "SIGABRT")])
        log.add_exact({id: Labels({}) for id in "abx"}, VERSIONS)
        log.add_variants(_source("p", "another"), [_variant("b"), _variant("c")], [])
        assert [id for id, _ in log.waiting_for_exact(VERSIONS)] == ["b", "c"]
        assert {row["id"] for row in log.rows()} == {"x"}
        assert log.failures() == [("schedule", "mlir-opt-crash", 1)]


def test_a_new_log_goes_on_from_a_dataset(tmp_path: Path) -> None:
    """p is there in full, q has a program without labels, r failed in full; another tool's records do not count."""
    path = tmp_path / "kernel.parquet"
    with open_log(tmp_path / "first.sqlite") as log:
        log.add_variants(_source("p"), [_variant("a"), _variant("b"), _variant("wrong")], [("tile", "crash", "it did")])
        log.add_variants(_source("q"), [_variant("c", "q"), _variant("d", "q")], [])
        log.add_variants(_source("r"), [_variant("e", "r")], [])
        labels = Labels({"x86-64-v3/spills": 3.0, "x86-64-v3/mca_ipc": 1 / 3})
        log.add_exact(dict.fromkeys(("a", "b", "c", "wrong"), labels), VERSIONS)
        log.add_latencies({"a": _timed(), "wrong": _timed(5.0)}, "machine", VERSIONS)
        log.add_failure("wrong", "result", "differs", "tile")
        log.add_failure("e", "exact", "llc-timeout", "no answer")
        first = write_dataset(log, path)
        failures = log.failures()
    with open_log(tmp_path / "second.sqlite") as log:
        assert take_over(log, path, VERSIONS) == 3
        assert set(log.finished_sources()) == {"p", "r"}
        assert log.finished_sources()["p"] == text_hash("text")
        assert log.failures() == failures
        assert log.waiting_for_exact(VERSIONS) == []
        assert log.waiting_for_latency(VERSIONS) == [("b", "text b", None), ("c", "text c", None)]
        pd.testing.assert_frame_equal(write_dataset(log, tmp_path / "second.parquet"), first)
    with open_log(tmp_path / "third.sqlite") as log:
        assert take_over(log, path, VERSIONS | {"llvm": "2"}) == 0
        assert log.counts()["program"] == 0


def test_a_log_of_an_earlier_version_opens(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "log.sqlite")
    db.executescript(
        "CREATE TABLE source (program_id TEXT PRIMARY KEY); INSERT INTO source VALUES ('p');"
        "CREATE TABLE latency (id TEXT PRIMARY KEY, measured TEXT, machine TEXT);"
    )
    db.close()
    with open_log(tmp_path / "log.sqlite") as log:
        assert log.finished_sources() == {"p": ""}
        log.add_latencies({"a": _timed()}, "machine", VERSIONS)
        assert log.machines(VERSIONS) == {"machine": 1}


def test_an_empty_log_is_no_dataset(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log, pytest.raises(IrgaugeError, match="nothing is labelled yet"):
        write_dataset(log, tmp_path / "kernel.parquet")
    assert not (tmp_path / "kernel.parquet").exists()


def test_a_dataset_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IrgaugeError, match="no such dataset"):
        read_dataset(tmp_path / "missing.parquet")
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(IrgaugeError, match="not a Parquet file"):
        read_dataset(tmp_path / "text.parquet")
