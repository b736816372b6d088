from __future__ import annotations

from pathlib import Path

import pytest

from irgauge.data.families.base import Source
from irgauge.data.label.kernel import ExactLabels
from irgauge.data.label.latency import Latency
from irgauge.data.store import Variant, open_log, read_dataset, write_dataset
from irgauge.errors import IrgaugeError

VERSIONS = {"llvm": "1", "valgrind": "2", "gcc": "3"}


def _variant(id: str) -> Variant:
    return Variant(id, Source("p", "f", "o", f"text {id}"), "identity")


def test_a_program_found_twice_is_kept_once(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log:
        assert log.add_variants("p", [_variant("a"), _variant("b")], []) == 2
        assert log.add_variants("q", [_variant("b"), _variant("c")], [("tile", "mlir-opt-crash", "SIGABRT")]) == 1
        assert log.finished_sources() == {"p", "q"}
        assert [id for id, _ in log.waiting_for_exact(VERSIONS)] == ["a", "b", "c"]
        assert log.failures() == [("schedule", "mlir-opt-crash", 1)]


def test_what_is_labelled_or_failed_waits_no_more(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log:
        log.add_variants("p", [_variant("a"), _variant("b"), _variant("c")], [])
        log.add_exact("a", ExactLabels({"x86-64-v3/spills": 3.0}, "asm", None), VERSIONS)
        log.add_exact("b", ExactLabels({"x86-64-v3/spills": 0.0}, "asm", ("too-long", "one call takes 1 s")), VERSIONS)
        log.add_failure("c", "exact", "llc-timeout", "no answer")
        assert log.waiting_for_exact(VERSIONS) == []
        assert [id for id, _ in log.waiting_for_exact(VERSIONS | {"llvm": "2"})] == ["a", "b"]
        assert log.waiting_for_latency() == [("a", "asm")]
        log.add_latency("a", Latency((5.0, 7.0, 6.0), 10, 1.0, 1.0, 4.0, 8.0, 2), "machine")
        assert log.waiting_for_latency() == []
    with open_log(tmp_path / "log.sqlite") as log:  # nothing of it lived in memory only
        rows = {row["id"]: row for row in log.rows()}
    assert set(rows) == {"a", "b"}
    assert rows["a"]["x86-64-v3/latency_ns"] == 6.0
    assert rows["a"]["latency_attempts"] == 2
    assert rows["b"]["skipped"] == "too-long"
    assert rows["b"]["x86-64-v3/latency_ns"] != rows["b"]["x86-64-v3/latency_ns"]


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
