"""The plan beside Vela's own, operation by operation (--enable-debug-db) and over networks of the dataset."""

from __future__ import annotations

import csv
import io
import re
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irgauge.data.label.elided import fill_elided
from irgauge.data.label.npu import DEVICES, Device
from irgauge.data.label.vela import environment, serialize
from irgauge.data.store import SETS
from irgauge.data.targets import ETHOS_U85
from irgauge.featurize import main_features
from irgauge.featurize.npu.devices import U55, U85, Shape
from irgauge.featurize.npu.schedule import step_costs

from .conftest import network, steps_of

_TABLE = re.compile(r'<table name="([^"]+)">\s*<!\[CDATA\[\s*(.*?)\]\]>', re.DOTALL)
NETWORKS = {
    "chain": network(lambda n, x: n.conv2d(n.depthwise(n.conv2d(x, 24, act="relu"), 3, act="relu"), 40, 1)),
    "residual": network(lambda n, x: n.add(x, n.conv2d(n.conv2d(x, 32, 1, act="relu"), 16, 3))),
    "joined": network(lambda n, x: n.max_pool(n.concat([n.conv2d(x, 16, 1), n.conv2d(x, 16, 3), n.max_pool(x, 1, 1)]))),
    "dense": network(lambda n, x: n.dense(n.reshape(n.global_pool(n.conv2d(x, 48, 3, 2)), (1, 48)), 10)),
    "i16": network(lambda n, x: n.conv2d(n.max_pool(n.conv2d(x, 40, 5)), 24, 3), element="i16"),
    "dilated": network(lambda n, x: n.conv2d(x, 8, 3, dilation=3)),
    "padded": network(lambda n, x: n.max_pool(n.pad(n.max_pool(x), (0, 3, 0, 0), (0, 2, 0, 0)))),
    "padded_conv": network(lambda n, x: n.conv2d(n.pad(n.conv2d(x, 24), (0, 3, 0, 0), (0, 2, 0, 0)), 8, 3)),
    "padded_activation": network(
        lambda n, x: n.max_pool(n.pad(n.conv2d(x, 24, act="relu"), (0, 3, 1, 0), (0, 2, 0, 0)))
    ),
    "chained": network(lambda n, x: n.mul(n.add(n.max_pool(x), n.avg_pool(x)), n.max_pool(x, 2, 2))),
    "transposed": network(lambda n, x: n.transpose_conv2d(x, 8, 4, 2)),
    "sliced": network(lambda n, x: n.conv2d(n.slice(n.max_pool(x), (0, 0, 0, 0), (1, 6, 10, 16)), 8, 1)),
    "mean": network(lambda n, x: n.mean(x, 1)),
    "reshaped": network(
        lambda n, x: n.add(n.conv2d(x, 16, 1), n.reshape(n.reshape(x, (1, 480, 1, 16)), (1, 24, 20, 16)))
    ),
    "turned": network(lambda n, x: n.max_pool(n.transpose(n.conv2d(x, 8, 1), (0, 2, 1, 3)), 1, 1)),
    "attention": network(lambda n, x: n.softmax(n.matmul(x, n.transpose(x, (0, 2, 1)))), 1, 49, 24),
    "multiplied": network(lambda n, x: n.conv2d(n.depthwise(x, 3, multiplier=2), 8, 1)),
}

ALLOWED = {"joined": 0.1}
"""Where the plan is known to differ: in the last pooling."""


def _tables(text: str, device: Device, folder: Path) -> dict[str, list[dict[str, str]]]:
    serialize(fill_elided(text), folder / "network.tosa")
    command = [environment().python, "-m", "ethosu.vela", str(folder / "network.tosa"), "--output-dir", str(folder)]
    subprocess.run([*command, *device.options, "--enable-debug-db"], check=True, capture_output=True)
    (file,) = folder.glob("*_debug.xml")
    return {m[1]: list(csv.DictReader(io.StringIO(m[2]))) for m in _TABLE.finditer(file.read_text())}


def _shape(row: dict[str, str], name: str) -> Shape:
    part = "slice" if row[f"{name}_slice_c"] not in ("", "0") else "shape"
    n, h, w, c = (max(1, int(row[f"{name}_{part}_{axis}"] or 1)) for axis in "nhwc")
    return n, h, w, c


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
@pytest.mark.parametrize("name", NETWORKS)
def test_operations_and_their_cycles_are_velas(name: str, device: Device, tmp_path: Path) -> None:
    npu = U85 if device.name == ETHOS_U85 else U55
    tables = _tables(NETWORKS[name], device, tmp_path)
    chained = {row["id"] for row in tables.get("group", [])}
    shapes = {row["id"]: (_shape(row, "ifm"), _shape(row, "ofm")) for row in tables["perf_debug"]}
    theirs = [row for row in tables["perf"] if row["id"] not in chained]
    steps = steps_of(NETWORKS[name], npu)
    ours = Counter((step.op.input, step.op.output) for step in steps)
    assert ours == Counter(shapes[row["id"]] for row in theirs)
    total = sum(cost.cycles for cost in step_costs(steps, npu))
    assert total == pytest.approx(sum(int(row["op_cycles"]) for row in theirs), rel=ALLOWED.get(name, 0.06))


@pytest.mark.parametrize(("npu", "device"), [("u85", "ethos-u85-256"), ("u55", "ethos-u55-128")])
def test_networks_of_the_dataset_take_what_their_labels_say(npu: str, device: str) -> None:
    """Without learning: half of the networks within 1 %, nine of ten within 15 %."""
    columns = [f"{device}/cycles", f"{device}/mac_utilization", f"{device}/sram_bytes"]
    frame = pd.read_parquet(SETS / "npu.parquet", columns=["mlir", *columns])
    frame = frame[frame["mlir"].str.len() < 60_000].dropna().sample(80, random_state=0)
    features = [main_features(text, ["npu"]) for text in frame["mlir"]]
    for column, part in zip(columns, ("cycles", "utilization", "most_bytes"), strict=True):
        planned = np.array([f[f"npu.{npu}.{part}"] for f in features])
        error = np.abs(planned / np.maximum(frame[column], 1e-9) - 1)[frame[column] > 0]
        assert np.median(error) < (0.02 if part == "most_bytes" else 0.01), column
        if part != "most_bytes":
            assert np.quantile(error, 0.9) < 0.15, column
