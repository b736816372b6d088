"""Labels of TOSA networks by the real tools: what Vela's own command line says, whatever the company."""

from __future__ import annotations

import csv
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from irgauge.data.families.tosa_text import Net, Tensor
from irgauge.data.label import vela
from irgauge.data.label.elided import fill_elided
from irgauge.data.label.labels import Labels
from irgauge.data.label.npu import DEVICES, label_network, label_networks, npu_versions
from irgauge.data.label.vela import Job, environment, estimate, serialize
from irgauge.data.targets import ETHOS_U55, ETHOS_U85, columns_beside, targets_of
from irgauge.errors import LabelError


def _network(write: Callable[[Net, Tensor], Tensor], *shape: int, element: str = "i8", seed: int = 0) -> str:
    n = Net(random.Random(seed), element)
    return n.finish(write(n, n.input(*(shape or (1, 24, 20, 16)))))


CONVOLUTION = _network(lambda n, x: n.conv2d(x, 24, act="relu"))
RESIDUAL = _network(lambda n, x: n.add(x, n.conv2d(n.depthwise(x, 3, act="relu"), 16, 1)))
WIDE = _network(lambda n, x: n.max_pool(n.conv2d(x, 40, 5)), element="i16")
BILINEAR = _network(lambda n, x: n.upsample(x, 2, "BILINEAR"))
INVALID = CONVOLUTION.replace("stride = array<i64: 1, 1>", "stride = array<i64: 7, 1>")
REFUSED = _network(lambda n, x: n.op("exp", [x], x.shape, "f32"), 1, 4, 4, 8, element="f32")


def test_every_target_of_both_devices_is_there() -> None:
    values = label_network(CONVOLUTION).values
    assert set(values) == {t.column for t in targets_of("npu")} | set(columns_beside("npu"))
    for target in targets_of("npu"):
        assert 0 <= values[target.column] <= target.upper
        assert not target.whole or float(values[target.column]).is_integer()
    assert values[f"{ETHOS_U85}/cpu_operators"] == 0


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
@pytest.mark.parametrize("text", [CONVOLUTION, WIDE], ids=["i8", "i16"])
def test_the_labels_are_what_velas_command_line_says(text: str, device, tmp_path: Path) -> None:
    serialize(fill_elided(text), tmp_path / "any_name.tosa")
    command = [str(Path(environment().python).with_name("vela")), str(tmp_path / "any_name.tosa")]
    command += ["--accelerator-config", device.name, "--output-dir", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)  # without our options: those are Vela's defaults
    (file,) = tmp_path.glob("*_summary_*.csv")
    (row,) = csv.DictReader(file.read_text().splitlines())
    values = label_network(text).values
    assert values[f"{device.name}/cycles"] == float(row["cycles_total"])
    assert values[f"{device.name}/sram_bytes"] == float(row["sram_memory_used"]) * 1024
    assert values[f"{device.name}/weights_encoded_bytes"] == float(row["total_npu_encoded_weights"])
    macs = values[f"{device.name}/mac_utilization"] * values[f"{device.name}/cycles"] * device.macs_per_cycle
    assert macs == pytest.approx(float(row["nn_macs"]), rel=1e-12)
    memory = "dram" if device.name == ETHOS_U85 else "flash"
    column = "dram" if device.name == ETHOS_U85 else "off_chip_flash"
    assert values[f"{device.name}/{memory}_traffic_bytes"] == float(row[f"{column}_total_bytes"])
    assert values[f"{device.name}/{memory}_bytes"] == float(row[f"{column}_memory_used"]) * 1024


def test_a_convolution_does_the_work_its_sizes_say() -> None:
    values = label_network(CONVOLUTION).values
    macs = values[f"{ETHOS_U55}/mac_utilization"] * values[f"{ETHOS_U55}/cycles"] * 128
    assert macs == pytest.approx(24 * 20 * 24 * 9 * 16)


def test_labels_depend_on_nothing_but_the_network() -> None:
    texts = [CONVOLUTION, RESIDUAL, WIDE, BILINEAR]
    alone = [label_network(text) for text in texts]
    assert label_networks(texts) == alone
    assert label_networks([INVALID, *texts[::-1], CONVOLUTION])[1:-1] == alone[::-1]


def test_what_one_device_refuses_has_the_labels_of_the_other() -> None:
    labels = label_network(BILINEAR)
    assert labels.failed[ETHOS_U55][0] == "not-on-npu-Resize"
    assert {column.partition("/")[0] for column in labels.values} == {ETHOS_U85}


def test_failures_stand_in_their_place_with_a_reason() -> None:
    wrong, good, refused, nonsense = label_networks([INVALID, CONVOLUTION, REFUSED, "module { nonsense }"])
    assert isinstance(good, Labels)
    assert isinstance(wrong, LabelError)
    assert wrong.reason == "tosa-opt-error"
    assert "stride" in wrong.detail
    assert isinstance(refused, LabelError)
    assert refused.reason == "not-valid-Exp"
    assert isinstance(nonsense, LabelError)
    assert nonsense.reason == "tosa-opt-error"
    with pytest.raises(LabelError, match="tosa-opt-error"):
        label_network(INVALID)


def test_a_network_that_takes_too_long_or_too_much_memory_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serialize(fill_elided(CONVOLUTION), tmp_path / "small.tosa")
    heavy = _network(lambda n, x: n.conv2d(n.conv2d(x, 1024, 3), 512, 3), 1, 12, 12, 256)
    serialize(fill_elided(heavy), tmp_path / "heavy.tosa")
    options = DEVICES[0].options

    def of(folder: str, *names: str) -> list[object]:
        return estimate([Job(tmp_path / name, options, tmp_path / folder / str(at)) for at, name in enumerate(names)])

    names = ("small.tosa", "heavy.tosa", "small.tosa", "missing.tosa")
    good, fine, again, missing = of("a", *names)
    assert not isinstance(fine, LabelError)
    assert isinstance(missing, LabelError)
    assert missing.reason == "vela-error"
    monkeypatch.setattr(vela, "CPU_S", 1)
    short = of("b", *names)
    assert isinstance(short[1], LabelError)
    assert short[1].reason == "vela-timeout"
    assert short[0] == short[2] == good == again


def test_records_say_which_tools_and_numbers_made_them() -> None:
    assert set(npu_versions()) == {"tosa-tools", "ethos-u-vela", "elided-numbers"}
    assert npu_versions()["ethos-u-vela"] == "5.2.0"
