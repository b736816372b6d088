from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from irgauge.cli import main
from irgauge.data.build import build_dataset, drop_wrong_results, machine_name
from irgauge.data.families import FAMILIES
from irgauge.data.families.base import Source
from irgauge.data.label import kernel as label_kernel
from irgauge.data.label.labels import Labels
from irgauge.data.label.latency import Latency
from irgauge.data.label.tools import tool_versions
from irgauge.data.store import Variant, open_log, read_dataset, take_over, write_dataset
from irgauge.data.targets import targets_of
from irgauge.data.tracks import KERNEL
from irgauge.data.verify import verify
from irgauge.errors import IrgaugeError, UsageError

NAMES = ["atax", "nest_stencil"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """A small dataset, labelled by the real tools from end to end."""
    folder = tmp_path_factory.mktemp("dataset")
    build_dataset(KERNEL, folder / "log.sqlite", folder / "kernel.parquet", names=NAMES, limit=1, n_jobs=2)
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
    assert "](kernel.svg)" in card
    assert "0 were found beyond that" in card


def test_building_again_labels_nothing_twice(built: tuple[Path, pd.DataFrame]) -> None:
    folder, frame = built
    again = build_dataset(KERNEL, folder / "log.sqlite", folder / "again.parquet", names=NAMES, limit=1, n_jobs=1).frame
    pd.testing.assert_frame_equal(read_dataset(folder / "again.parquet"), frame)  # latencies too: nothing was measured
    assert len(again) == len(frame)


EXACT = ["id", "program_id", "schedule", *(t.column for t in targets_of("kernel") if t.exact)]


def _command(folder: Path, *more: str) -> list[str]:
    log, output = str(folder / "log.sqlite"), str(folder / "kernel.parquet")
    command = [sys.executable, "-m", "irgauge", "dataset", "build", "kernel", "--log", log, "--output", output]
    return [
        *command,
        "--no-latency",
        "--families",
        ",".join(NAMES),
        "--limit",
        "1",
        "--jobs",
        "2",
        "--batch",
        "2",
        *more,
    ]


def _start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def test_a_build_killed_at_any_moment_goes_on_where_it_was(built: tuple[Path, pd.DataFrame], tmp_path: Path) -> None:
    """Killed four times: at random moments of its start, and as soon as something more is labelled."""
    log = tmp_path / "log.sqlite"
    rng = random.Random(0)
    moments = [rng.uniform(0.2, 1.5), None, rng.uniform(0.2, 1.5), None]
    for moment in moments:
        seen = _labelled(log)
        process = _start(_command(tmp_path))
        begun = time.monotonic()
        while process.poll() is None and (
            time.monotonic() < begun + moment if moment is not None else _labelled(log) <= seen
        ):
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert _labelled(log) >= seen
    assert _labelled(log) > 0
    subprocess.run(_command(tmp_path), check=True, capture_output=True)
    _, frame = built
    pd.testing.assert_frame_equal(read_dataset(tmp_path / "kernel.parquet")[EXACT], frame[EXACT])


def test_a_build_that_is_told_to_end_writes_what_it_has(tmp_path: Path) -> None:
    process = _start(_command(tmp_path, "--jobs", "1"))
    while process.poll() is None and _labelled(tmp_path / "log.sqlite") == 0:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    frame = read_dataset(tmp_path / "kernel.parquet")
    assert f"{len(frame)} records" in out
    assert 0 < len(frame) == _labelled(tmp_path / "log.sqlite")
    assert "programs without exact labels" in err
    assert "left to do" in err
    assert (tmp_path / "kernel.md").is_file()


def test_the_time_limit_ends_a_build(built: tuple[Path, pd.DataFrame], tmp_path: Path) -> None:
    folder, frame = built
    shutil.copy(folder / "kernel.parquet", tmp_path / "kernel.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_kernel, "to_assemblies", _no_work)
        found = build_dataset(
            KERNEL, tmp_path / "log.sqlite", tmp_path / "kernel.parquet", names=[*NAMES, "lu"], limit=1, minutes=0
        )
    assert found.left == ("1 sources to generate",)
    assert len(found.frame) == len(frame)


def test_another_machine_labels_nothing_again(built: tuple[Path, pd.DataFrame], tmp_path: Path) -> None:
    """There is no log, only the dataset: nothing is compiled, and the same dataset comes out."""
    folder, frame = built
    shutil.copy(folder / "kernel.parquet", tmp_path / "kernel.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_kernel, "to_assemblies", _no_work)
        found = build_dataset(KERNEL, tmp_path / "log.sqlite", tmp_path / "kernel.parquet", names=NAMES, limit=1)
    assert found.left == ()
    pd.testing.assert_frame_equal(read_dataset(tmp_path / "kernel.parquet"), frame)


def test_a_latency_that_a_dataset_lacks_is_measured_from_its_text(
    built: tuple[Path, pd.DataFrame], tmp_path: Path
) -> None:
    folder, frame = built
    log_path, output = tmp_path / "log.sqlite", tmp_path / "kernel.parquet"
    shutil.copy(folder / "kernel.parquet", output)
    with open_log(log_path) as log:
        take_over(log, output, tool_versions())
        log.drop_latencies(set(frame["machine"]))
        write_dataset(log, output)
    log_path.unlink()
    found = build_dataset(KERNEL, log_path, output, names=NAMES, limit=1).frame
    assert found["x86-64-v3/latency_ns"].notna().all()
    results = found["result_sum"].to_numpy() / frame["result_sum"].to_numpy()
    assert results == pytest.approx(1, abs=1e-12)


def test_latencies_of_two_processors_are_not_mixed_unasked(
    built: tuple[Path, pd.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = built
    settings: dict[str, Any] = {"names": NAMES[:1], "limit": 1}
    log_path, output = tmp_path / "log.sqlite", tmp_path / "kernel.parquet"
    shutil.copy(folder / "log.sqlite", log_path)
    db = sqlite3.connect(log_path)
    with db:
        db.execute("UPDATE latency SET machine = 'Another CPU, 2 cores, Linux 1'")
        db.execute("DELETE FROM latency WHERE id = (SELECT max(id) FROM latency)")
    db.close()
    left = build_dataset(KERNEL, log_path, output, **settings).left
    assert left == ("1 without a latency",)
    assert "another processor (Another CPU; this is " in capsys.readouterr().err
    assert build_dataset(KERNEL, log_path, output, processor="any", **settings).left == ()
    machines = build_dataset(KERNEL, log_path, output, processor="redo", **settings).frame["machine"]
    assert set(machines) == {machine_name()}


def test_a_dask_cluster_gives_the_same_labels(built: tuple[Path, pd.DataFrame], tmp_path: Path) -> None:
    """A real scheduler and a real worker, in processes of their own."""
    distributed = pytest.importorskip("distributed")
    _, frame = built
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        found = build_dataset(
            KERNEL,
            tmp_path / "log.sqlite",
            tmp_path / "kernel.parquet",
            names=NAMES[:1],
            limit=1,
            n_jobs=2,
            dask=cluster.scheduler_address,
            latency=False,
        )
    assert found.left == ()
    expected = frame[frame["family"] == NAMES[0]][EXACT].reset_index(drop=True)
    pd.testing.assert_frame_equal(read_dataset(tmp_path / "kernel.parquet")[EXACT], expected)


def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(IrgaugeError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        build_dataset(
            KERNEL, tmp_path / "log.sqlite", tmp_path / "k.parquet", names=NAMES[:1], dask="tcp://127.0.0.1:9"
        )


def test_labelling_a_sample_again_gives_the_same(
    built: tuple[Path, pd.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, frame = built
    found = verify(frame, sample=5, seed=3)
    assert (found.n_records, found.differences) == (5, ())
    assert len(found.latency_changes) == 5
    assert all(-0.9 < change < 9 for change in found.latency_changes)
    assert verify(frame.assign(machine="another, 2 cores"), sample=2).latency_changes == ()
    assert found.n_values == 5 * len([t for t in targets_of("kernel") if t.exact])
    wrong = frame.copy()
    column = "x86-64-v3/l1d_misses"
    wrong[column] += 1
    wrong.to_parquet(tmp_path / "wrong.parquet")
    (tmp_path / "wrong.md").write_text((folder / "kernel.md").read_text())
    arguments = ["dataset", "verify", "--dataset", str(tmp_path / "wrong.parquet"), "--sample", "2", "--jobs", "1"]
    assert main([*arguments, "--format", "json"]) == 1
    out, err = capsys.readouterr()
    assert [difference["what"] for difference in json.loads(out)] == [column] * 2
    assert "2 differ" in err
    card = (tmp_path / "wrong.md").read_text()
    assert "2 records drawn at random were labelled again" in card
    assert "Not checked since" not in card
    assert "## Near-duplicates" in card
    with pytest.raises(UsageError, match="labelled with llvm 1, and "):
        verify(frame.assign(version_llvm="1"), sample=5)


def _no_work(*_: object) -> None:
    raise AssertionError("labelled again")


def _labelled(path: Path) -> int:
    if not path.is_file():
        return 0
    with open_log(path) as log:
        return log.counts()["exact"]


def test_an_unknown_family_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown family 'no_such'.*gemm"):
        build_dataset(KERNEL, tmp_path / "log.sqlite", tmp_path / "kernel.parquet", names=["no_such"])


def test_a_file_that_is_no_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").write_text("not a database, and long enough to be looked at as one" * 20)
    with pytest.raises(IrgaugeError, match=r"log\.sqlite: not a labelling log"):
        build_dataset(KERNEL, tmp_path / "log.sqlite", tmp_path / "kernel.parquet", names=["gemm"], limit=1)


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
        log.add_variants(source, [Variant(id, source, schedule) for id, schedule, _ in variants], [])
        for id, _, result_sum in variants:
            log.add_exact({id: Labels({"x86-64-v3/spills": 0.0})}, {"llvm": "1"})
            log.add_latencies({id: _timed(result_sum)}, "machine", {"llvm": "1"})
        drop_wrong_results(log)
        assert [row["id"] for row in log.rows()] == ["a", "b"]
        assert log.failures() == [("result", "differs", 1)]


def test_results_that_overflow_are_not_judged(tmp_path: Path) -> None:
    with open_log(tmp_path / "log.sqlite") as log:
        source = Source("p", "f", "o", "memref<4xf32>")
        log.add_variants(source, [Variant("a", source, "identity"), Variant("b", source, "tile")], [])
        for id in "ab":
            log.add_exact({id: Labels({})}, {"llvm": "1"})
            overflown = Latency((5.0, 7.0, 6.0), 10, 1.0, 1.0, math.nan, math.inf, 1)
            log.add_latencies({id: overflown}, "machine", {"llvm": "1"})
        drop_wrong_results(log)
        assert [row["id"] for row in log.rows()] == ["a", "b"]
