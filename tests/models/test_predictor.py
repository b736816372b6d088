"""From MLIR text to numbers: what a compiler calls."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irgauge.errors import ArtifactError, ReadError, UsageError
from irgauge.featurize.describe import GROUPS
from irgauge.featurize.schema import Schema
from irgauge.models.artifact import write_artifact
from irgauge.models.predictor import CostModel, load, model_from_plain
from irgauge.models.train import Table

from .conftest import nest


@pytest.fixture(scope="module")
def path(artifact: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "kernel.joblib"
    write_artifact(artifact, path)
    return path


@pytest.fixture(scope="module")
def model(path: Path) -> CostModel:
    return load(path)


def test_one_prediction_for_each_function_and_target(model: CostModel) -> None:
    text = nest(16, 16, name="first") + nest(64, 64, name="second")
    predictions = model.predict(text)
    assert [p.function for p in predictions] == ["first", "second"]
    estimate = predictions[1]["x86-64-v3", "latency_ns"]
    assert estimate.unit == "ns"
    assert estimate.low <= estimate.value <= estimate.high
    assert estimate.value > predictions[0]["latency_ns"].value
    assert predictions[0]["x86-64-v3/latency_ns"] == predictions[0]["latency_ns"]
    assert len(predictions[0]) == 5


def test_the_loaded_file_predicts_what_the_trained_model_predicts(
    model: CostModel, artifact: Mapping[str, Any], text_table: Table
) -> None:
    in_memory = model_from_plain(artifact)
    for text in (nest(16, 16), nest(128, 4, "addf", 9), nest(4, 4, "divf", 1)):
        assert [e.value for e in model.predict(text)[0]] == [e.value for e in in_memory.predict(text)[0]]
    batch = model.tracks["kernel"].predict(text_table.X)
    assert all(
        np.array_equal(a.value, b.value)
        for a, b in zip(batch, in_memory.tracks["kernel"].predict(text_table.X), strict=True)
    )


def test_text_bytes_and_programs_give_the_same(model: CostModel) -> None:
    from irgauge.featurize.reader import read

    text = nest(32, 8)
    expected = model.predict(text)[0]["latency_ns"]
    assert model.predict(text.encode())[0]["latency_ns"] == expected
    assert model.predict(read(text))[0]["latency_ns"] == expected


def test_names_and_comments_change_nothing(model: CostModel) -> None:
    text = nest(32, 8)
    other = "// a comment\n" + text.replace("%x", "%value").replace("%i", "%row")
    assert model.predict(text)[0].estimates == model.predict(other)[0].estimates


def test_programs_like_the_training_programs_are_ok(model: CostModel) -> None:
    prediction = model.predict(nest(16, 32, "mulf", 2))[0]
    assert {e.status for e in prediction} == {"ok"}
    assert prediction.warnings == ()


def test_unknown_ops_are_named(model: CostModel) -> None:
    prediction = model.predict(nest(16, 32, "divf"))[0]
    assert {e.status for e in prediction} == {"outside"}
    assert "arith.divf" in prediction["latency_ns"].outside
    assert prediction.warnings[0] == "ops never seen in training: arith.divf"


def test_features_beyond_their_range_are_named(model: CostModel) -> None:
    prediction = model.predict(nest(4096, 4096))[0]
    estimate = prediction["latency_ns"]
    assert estimate.status == "outside"
    assert all(name in model.tracks["kernel"].names for name in estimate.outside)
    assert "features outside their range" in prediction.warnings[0]
    assert estimate.value > model.predict(nest(128, 128))[0]["latency_ns"].value


def test_device_and_targets_narrow(model: CostModel) -> None:
    (p,) = model.predict(nest(), device="x86-64-v3", targets=["spills", "x86-64-v3/latency_ns", "spills"])
    assert [e.target for e in p] == ["spills", "latency_ns"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device": "z80"}, "unknown device 'z80'. Known: x86-64-v3"),
        ({"targets": ["speed"]}, "unknown target 'speed'. Known: x86-64-v3/static_instructions"),
    ],
)
def test_unknown_names_are_usage_errors_that_list_what_there_is(model: CostModel, arguments: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model.predict(nest(), **arguments)
    with pytest.raises(UsageError, match=r"no prediction for target 'speed'\. Known: "):
        model.predict(nest())[0]["speed"]


def test_what_is_not_mlir_is_a_read_error_with_its_place(model: CostModel) -> None:
    with pytest.raises(ReadError, match=r"^here\.mlir:1:\d+"):
        model.predict("this is not MLIR {", path="here.mlir")


def test_rank_puts_the_cheapest_first(model: CostModel) -> None:
    candidates = [nest(64, 64, more=9), nest(16, 16), nest(64, 64)]
    assert [r.position for r in model.rank(candidates, "latency_ns")] == [1, 2, 0]
    assert model.rank(candidates)[0].estimate == model.predict(candidates[1])[0]["latency_ns"]


def test_rank_turns_where_higher_is_better(model: CostModel) -> None:
    best = model.rank([nest(16, 4), nest(16, 64)], "vector_utilization")[0]
    assert best.position == 1


def test_rank_keeps_the_order_of_equal_candidates(model: CostModel) -> None:
    assert [r.position for r in model.rank([nest()] * 4)] == [0, 1, 2, 3]


def test_rank_needs_to_know_the_function(model: CostModel) -> None:
    two = nest(name="a") + nest(64, 64, name="b")
    with pytest.raises(UsageError, match="candidate 0: has 2 functions"):
        model.rank([two])
    assert model.rank([two, nest(128, 128, name="b")], function="b")[0].position == 0
    with pytest.raises(UsageError, match="no function 'c'"):
        model.predict_one(two, function="c")


def test_explain_adds_up_to_what_predict_says(model: CostModel) -> None:
    text = nest(32, 32, more=5)
    for target in ("latency_ns", "spills", "vec_used"):
        explanation = model.explain(text, target)["kernel"]
        assert explanation.value == model.predict(text)[0][target].value
        assert explanation.base + sum(c.amount for c in explanation.contributions) == pytest.approx(
            explanation.value, rel=1e-9
        )


def test_threads_get_the_same_numbers(path: Path) -> None:
    fresh = load(path)
    texts = [nest(2**i, 16, more=j) for i in range(2, 6) for j in (0, 5)]
    with ThreadPoolExecutor(8) as pool:
        threaded = list(pool.map(lambda t: fresh.predict(t)[0].estimates, texts * 4))
    assert threaded == [load(path).predict(t)[0].estimates for t in texts] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_the_same_numbers(model: CostModel) -> None:
    expected = repr(model.predict(nest())[0].estimates)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, repr(model.predict(nest())[0].estimates).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        assert file.read() == expected
    assert os.waitpid(child, 0)[1] == 0


def test_prediction_imports_no_training_library(path: Path) -> None:
    code = (
        "import sys; from irgauge.models.predictor import load; m = load(sys.argv[1]); t = sys.stdin.read();"
        "m.predict(t); m.rank([t]); m.explain(t, 'latency_ns');"
        "bad = {'sklearn', 'xgboost', 'lightgbm', 'pandas', 'shap', 'scipy', 'joblib'} & set(sys.modules);"
        "print(sorted(bad))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], input=nest(), text=True, capture_output=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_another_schema_is_refused_with_what_to_do(artifact: Mapping[str, Any]) -> None:
    plain = deepcopy(dict(artifact))
    plain["tracks"]["kernel"]["schema"]["version"] += 1
    with pytest.raises(
        ArtifactError, match=r"made for feature schema \d+; this version extracts \d+\. Run `make train`"
    ):
        model_from_plain(plain)


def test_features_that_are_no_longer_extracted_are_refused(artifact: Mapping[str, Any]) -> None:
    plain = deepcopy(dict(artifact))
    schema = plain["tracks"]["kernel"]["schema"]
    schema["names"][-1] = next(iter(GROUPS["accelerator"]))  # zero for every program, were it loaded
    schema["hash"] = Schema(tuple(schema["names"]), schema["version"]).hash
    with pytest.raises(ArtifactError, match="group 'accelerator', which are not extracted for track 'kernel'"):
        model_from_plain(plain)


def test_names_that_do_not_match_their_hash_are_refused(artifact: Mapping[str, Any]) -> None:
    plain = deepcopy(dict(artifact))
    names = plain["tracks"]["kernel"]["schema"]["names"]
    names[-1], names[-2] = names[-2], names[-1]
    with pytest.raises(ArtifactError, match="do not match its schema hash"):
        model_from_plain(plain)


def test_a_file_without_tracks_or_fields_is_refused() -> None:
    for plain in (
        {"manifest": {"targets": {}}, "tracks": {}},
        {"manifest": {}, "tracks": {"kernel": {}}},
        {"manifest": {"targets": {}}},
    ):
        with pytest.raises(ArtifactError):
            model_from_plain(plain)


def test_a_target_of_two_devices_needs_its_device(model: CostModel, monkeypatch: pytest.MonkeyPatch) -> None:
    track = next(iter(model.tracks.values()))
    first = next(i for i, t in enumerate(track.targets) if t.name == "spills")
    other = next(i for i, t in enumerate(track.targets) if t.name == "vec_used")
    renamed = [replace(t, column="neoverse-v2/spills") if i == other else t for i, t in enumerate(track.targets)]
    monkeypatch.setitem(model.tracks, track.track, replace(track, targets=tuple(renamed)))
    with pytest.raises(UsageError, match="several devices have target 'spills': neoverse-v2, x86-64-v3"):
        model.explain(nest(), "spills")
    assert model._wanted("x86-64-v3", ["spills"]) == {track.track: [first]}


def test_each_function_is_read_by_the_track_of_its_dialects(model: CostModel) -> None:
    kernel = next(iter(model.tracks.values()))
    column = kernel.targets[0].column
    renamed = replace(kernel.targets[0], column=f"ethos-u85-256/{column.partition('/')[2]}")
    both = CostModel(model.manifest, [kernel, replace(kernel, track="npu", targets=(renamed,))])
    net = """
    func.func @net(%a: tensor<1x8xi8>) -> tensor<1x8xi8> {
      %0 = tosa.abs %a : (tensor<1x8xi8>) -> tensor<1x8xi8>
      return %0 : tensor<1x8xi8>
    }"""
    text = f"module {{\n{net}{nest()}\n}}"
    found = {p.function: p for p in both.predict(text)}
    assert {p.track: [e.device for e in p][:1] for p in found.values()} == {
        "npu": ["ethos-u85-256"],
        "kernel": ["x86-64-v3"],
    }
    assert list(both.explain(text, renamed.column)) == ["net"]
    assert both.targets() == [*model.targets(), renamed.column]
    assert [len(p) for p in both.predict(net, device="x86-64-v3")] == [0]
    with pytest.raises(UsageError, match=r"is not one of track kernel"):
        both.explain(nest(), renamed.column)
    assert model.predict(net)[0].track == "kernel"  # no other track is loaded


def test_a_network_is_predicted_by_the_bundled_model_of_its_track() -> None:
    import pandas as pd

    from irgauge.data.store import SETS
    from irgauge.data.targets import targets_of

    frame = pd.read_parquet(SETS / "npu.parquet", columns=["family", "mlir", "ethos-u85-256/cycles"])
    network = frame[frame["family"] == "ds_cnn"].iloc[0]
    prediction = load().predict_one(network["mlir"])
    assert prediction.track == "npu"
    assert {f"{e.device}/{e.target}" for e in prediction} == {t.column for t in targets_of("npu")}
    cycles = next(e for e in prediction if (e.device, e.target) == ("ethos-u85-256", "cycles"))
    assert cycles.low < network["ethos-u85-256/cycles"] < cycles.high
