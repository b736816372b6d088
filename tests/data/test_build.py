from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from irgauge.data.build import build_kernel, drop_wrong_results
from irgauge.data.families import FAMILIES
from irgauge.data.families.base import Source
from irgauge.data.label.kernel import ExactLabels
from irgauge.data.label.latency import Latency
from irgauge.data.store import Variant, open_log, read_dataset
from irgauge.data.targets import targets_of
from irgauge.errors import IrgaugeError, UsageError

NAMES = ["atax", "nest_stencil"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """A small dataset, labelled by the real tools from end to end."""
    folder = tmp_path_factory.mktemp("dataset")
    build_kernel(folder / "log.sqlite", folder / "kernel.parquet", names=NAMES, limit=1, n_jobs=2)
    return folder, read_dataset(folder / "kernel.parquet")


def test_every_target_of_every_record_is_there(built: tuple[Path, pd.DataFrame]) -> None:
    _, frame = built
    assert len(frame) >= 4
    ran = frame[frame["skipped"] == ""]
    assert len(ran) >= 4
    for target in targets_of("kernel"):
        assert ran[target.column].notna().all()
        assert (ran[target.column] >= 0).all()
        assert (ran[target.column] <= target.upper).all()


def test_records_are_unique_and_grouped(built: tuple[Path, pd.DataFrame]) -> None:
    _, frame = built
    assert frame["id"].is_unique
    assert set(frame["family"]) == set(NAMES)
    assert frame["program_id"].nunique() == len(NAMES)
    assert "identity" in set(frame["schedule"])


def test_latencies_keep_their_repeats(built: tuple[Path, pd.DataFrame]) -> None:
    _, frame = built
    ran = frame[frame["skipped"] == ""]
    assert (ran["latency_repeats_ns"].map(len) >= 7).all()
    medians = ran["latency_repeats_ns"].map(lambda repeats: sorted(repeats)[len(repeats) // 2])
    assert (medians == ran["x86-64-v3/latency_ns"]).all()
    assert (ran["reference_before_ns"] > 0).all()


def test_the_card_names_families_and_tools(built: tuple[Path, pd.DataFrame]) -> None:
    folder, frame = built
    card = (folder / "kernel.md").read_text()
    assert all(f"| {name} |" in card for name in NAMES)
    assert all(version in card for version in frame["version_llvm"])


def test_building_again_labels_nothing_twice(built: tuple[Path, pd.DataFrame]) -> None:
    folder, frame = built
    again = build_kernel(folder / "log.sqlite", folder / "again.parquet", names=NAMES, limit=1, n_jobs=1)
    pd.testing.assert_frame_equal(read_dataset(folder / "again.parquet"), frame)  # latencies too: nothing was measured
    assert len(again) == len(frame)


def test_a_killed_build_goes_on_where_it_was(built: tuple[Path, pd.DataFrame], tmp_path: Path) -> None:
    """Killed as soon as something is labelled, twice; the exact labels come out as without."""
    log = tmp_path / "log.sqlite"
    command = [sys.executable, "-m", "irgauge", "dataset", "build", "kernel", "--log", str(log), "--no-latency"]
    command += [
        "--output",
        str(tmp_path / "kernel.parquet"),
        "--families",
        ",".join(NAMES),
        "--limit",
        "1",
        "--jobs",
        "2",
    ]
    seen = 0
    for _ in range(2):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        while process.poll() is None and _labelled(log) <= seen:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert _labelled(log) > seen
        seen = _labelled(log)
    subprocess.run(command, check=True, capture_output=True)
    exact = ["id", "program_id", *(t.column for t in targets_of("kernel") if t.exact)]
    _, frame = built
    pd.testing.assert_frame_equal(read_dataset(tmp_path / "kernel.parquet")[exact], frame[exact])


def _labelled(path: Path) -> int:
    if not path.is_file():
        return 0
    with open_log(path) as log:
        return log.counts()["exact"]


def test_an_unknown_family_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown family 'no_such'.*gemm"):
        build_kernel(tmp_path / "log.sqlite", tmp_path / "kernel.parquet", names=["no_such"])


def test_a_file_that_is_no_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").write_text("not a database, and long enough to be looked at as one" * 20)
    with pytest.raises(IrgaugeError, match=r"log\.sqlite: not a labelling log"):
        build_kernel(tmp_path / "log.sqlite", tmp_path / "kernel.parquet", names=["gemm"], limit=1)


def test_the_same_sources_come_in_the_same_order() -> None:
    for name in NAMES:
        first = [source for source, _ in zip(FAMILIES[name].sources(), range(3), strict=False)]
        second = [source for source, _ in zip(FAMILIES[name].sources(), range(3), strict=False)]
        assert first == second


def _timed(result_sum: float) -> Latency:
    return Latency((5.0, 7.0, 6.0), 10, 1.0, 1.0, result_sum, 100.0, 1)


def test_a_variant_that_computes_something_else_is_left_out(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log:
        source = Source("p", "f", "o", "memref<4xf64>")
        variants = [("a", "identity", 50.0), ("b", "tile", 50.0 + 1e-8), ("c", "fuse", 50.001)]
        log.add_variants("p", [Variant(id, source, schedule) for id, schedule, _ in variants], [])
        for id, _, result_sum in variants:
            log.add_exact(id, ExactLabels({"x86-64-v3/spills": 0.0}, "asm", None), {"llvm": "1"})
            log.add_latency(id, _timed(result_sum), "machine")
        drop_wrong_results(log)
        assert [row["id"] for row in log.rows()] == ["a", "b"]
        assert log.failures() == [("result", "differs", 1)]


def test_results_that_overflow_are_not_judged(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log:
        source = Source("p", "f", "o", "memref<4xf32>")
        log.add_variants("p", [Variant("a", source, "identity"), Variant("b", source, "tile")], [])
        for id in "ab":
            log.add_exact(id, ExactLabels({}, "asm", None), {"llvm": "1"})
            log.add_latency(id, Latency((5.0, 7.0, 6.0), 10, 1.0, 1.0, math.nan, math.inf, 1), "machine")
        drop_wrong_results(log)
        assert [row["id"] for row in log.rows()] == ["a", "b"]
