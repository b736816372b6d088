"""The npu dataset goes the same way as the kernel one: `test_build.py` has what both share."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from irgauge.cli import main
from irgauge.data import tracks
from irgauge.data.build import build_dataset
from irgauge.data.families.base import Source
from irgauge.data.label.kernel import ExactLabels
from irgauge.data.label.vela import environment
from irgauge.data.store import open_log, read_dataset
from irgauge.data.targets import ETHOS_U55, ETHOS_U85, NEOVERSE, columns_beside, targets_of
from irgauge.data.tracks import KERNEL, NPU, TRACKS
from irgauge.data.verify import verify
from irgauge.errors import LabelError, ReadError

NAMES = ["ds_cnn", "layer_conv2d", "layer_data_movement"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """A small dataset, labelled by the real tools from end to end."""
    folder = tmp_path_factory.mktemp("npu")
    found = build_dataset(NPU, folder / "log.sqlite", folder / "npu.parquet", names=NAMES, limit=4, n_jobs=2)
    assert found.left == ()
    return folder, read_dataset(folder / "npu.parquet")


def test_records_have_the_targets_of_their_devices(built: tuple[Path, pd.DataFrame]) -> None:
    folder, frame = built
    assert len(frame) == frame["program_id"].nunique() == 12
    assert set(frame["family"]) == set(NAMES)
    for target in targets_of("npu"):
        has = frame[target.column].notna()
        assert has.all() if target.device == ETHOS_U85 else has.any()
        assert frame[target.column][has].between(0, target.upper).all()
    assert (frame[list(columns_beside("npu"))].fillna(0) == 0).all(axis=None)
    assert "latency_repeats_ns" not in frame
    assert (frame["version_ethos-u-vela"] == environment().versions["ethos-u-vela"]).all()
    with open_log(folder / "log.sqlite", "npu") as log:
        refused = sum(n for stage, _, n in log.failures() if stage == ETHOS_U55)
    assert refused == frame[f"{ETHOS_U55}/cycles"].isna().sum() > 0


def test_texts_are_small_and_hold_no_weights(built: tuple[Path, pd.DataFrame]) -> None:
    _, frame = built
    assert frame["mlir"][frame["family"] == "ds_cnn"].str.contains("dense_resource<__elided__>").all()
    assert not frame["mlir"].str.contains('dense<"').any()


def test_the_card_says_what_was_made_and_what_failed(built: tuple[Path, pd.DataFrame]) -> None:
    folder, _ = built
    card = (folder / "npu.md").read_text()
    assert card.startswith("# The npu dataset")
    assert all(f"| {name} |" in card for name in NAMES)
    assert f"| {ETHOS_U55} | not-on-npu-" in card
    assert "Dedicated_Sram_384KB" in card
    assert f"| {ETHOS_U85}/mac_utilization |" in card
    assert "Latencies" not in card
    assert "Schedules" not in card
    assert (folder / "npu.svg").is_file()


def test_another_machine_goes_on_from_the_dataset(built: tuple[Path, pd.DataFrame], tmp_path: Path) -> None:
    folder, frame = built
    shutil.copy(folder / "npu.parquet", tmp_path / "npu.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracks, "label_networks", _no_work)
        found = build_dataset(NPU, tmp_path / "log.sqlite", tmp_path / "npu.parquet", names=NAMES, limit=4)
    assert found.left == ()
    pd.testing.assert_frame_equal(read_dataset(tmp_path / "npu.parquet"), frame)


def test_labelling_again_gives_the_same(
    built: tuple[Path, pd.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, frame = built
    found = verify(frame, sample=12, track=NPU)
    assert found.differences == ()
    assert found.n_values == 12 * len(targets_of("npu"))
    wrong = frame.assign(**{f"{ETHOS_U85}/cycles": frame[f"{ETHOS_U85}/cycles"] + 1})
    wrong.to_parquet(tmp_path / "wrong.parquet")
    arguments = ["--dataset", str(tmp_path / "wrong.parquet"), "--sample", "2", "--jobs", "1", "--format", "json"]
    assert main(["dataset", "verify", "npu", *arguments]) == 1
    assert {difference["what"] for difference in json.loads(capsys.readouterr().out)} == {f"{ETHOS_U85}/cycles"}


def test_status_shows_the_log_of_a_track(built: tuple[Path, pd.DataFrame], capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = built
    assert main(["dataset", "status", "npu", "--log", str(folder / "log.sqlite"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["exact"] == 12


def test_each_track_has_a_log_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dataset", "status", "npu"]) == 1
    assert "build/npu.sqlite: no labelling log there. `irgauge dataset build npu`" in capsys.readouterr().err


def test_a_network_file_is_labelled_by_its_dialect(
    built: tuple[Path, pd.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, frame = built
    record = frame[frame["family"] == "ds_cnn"].iloc[0]
    (tmp_path / "net.tosa.mlir").write_text(record["mlir"])
    assert main(["dataset", "label", str(tmp_path / "net.tosa.mlir"), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {f"{row['device']}/{row['target']}": row["value"] for row in rows} == {
        target.column: record[target.column] for target in targets_of("npu")
    }


def test_a_kernel_that_fails_has_its_error_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = "func.func @kernel() {\n  return\n}"
    incomplete = ExactLabels({"x": 1.0}, "asm", ("too-long", "it is"), ("llc-crash", "it did"))
    monkeypatch.setattr(tracks, "label_batch", lambda items: [incomplete, LabelError("llc-error", "no")][: len(items)])
    broken, labels, failed = KERNEL.label([("func.func @", None), (kernel, None), (kernel, None)])
    assert isinstance(broken, ReadError)
    assert isinstance(failed, LabelError)
    assert (labels.values, labels.assembly, labels.skipped) == ({"x": 1.0}, "asm", ("too-long", "it is"))
    assert labels.failed == {NEOVERSE: ("llc-crash", "it did")}


def test_a_network_is_its_only_variant() -> None:
    made = NPU.vary(Source("p", "f", "o", "func.func @main() {\n  return\n}"))
    assert [variant.schedule for variant in made.variants] == ["identity"]


def test_only_kernels_are_timed() -> None:
    assert {name: track.timed for name, track in TRACKS.items()} == {"kernel": True, "npu": False}


def _no_work(*_: object) -> None:
    raise AssertionError("labelled again")
