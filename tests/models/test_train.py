"""A table becomes an artifact: plain, complete, and the same with one process or two."""

from __future__ import annotations

import json

import numpy as np
import pytest

from irgauge.errors import IrgaugeError
from irgauge.models.artifact import checksum
from irgauge.models.candidates import Settings
from irgauge.models.track_model import TrackModel
from irgauge.models.train import Table, matrix, table_of, train_track


def test_one_process_and_two_train_the_same_artifact(table: Table, quick: Settings) -> None:
    steps: list[tuple[int, int]] = []
    one = train_track(table, n_jobs=1, settings=quick, progress=lambda done, total, what: steps.append((done, total)))
    two = train_track(table, n_jobs=2, settings=quick)
    assert checksum(one) == checksum(two)
    assert steps == [(i + 1, 6) for i in range(6)]


def test_another_target_does_not_change_the_others(table: Table, quick: Settings) -> None:
    from dataclasses import replace

    column = "x86-64-v3/latency_ns"
    alone = train_track(replace(table, y={column: table.y[column]}), n_jobs=1, settings=quick)
    together = train_track(table, n_jobs=1, settings=quick)
    models = [TrackModel.from_plain(a["tracks"]["kernel"]) for a in (alone, together)]
    (a,), b = (m.targets for m in models)
    last = next(t for t in b if t.column == column)
    np.testing.assert_array_equal(
        a.predict(table.X, models[0].columns).value, last.predict(table.X, models[0].columns).value
    )


def test_manifest_says_what_was_trained(table: Table, quick: Settings) -> None:
    manifest = train_track(table, n_jobs=1, settings=quick)["manifest"]
    json.dumps(manifest)
    facts = manifest["tracks"]["kernel"]["training"]
    assert (facts["rows"], facts["programs"], len(facts["families"]), facts["seed"]) == (300, 60, 12, 0)
    assert facts["rows_per_target"]["x86-64-v3/latency_ns"] == 300 - 18
    assert manifest["targets"]["x86-64-v3/latency_ns"]["unit"] == "ns"
    assert {"numpy", "lightgbm"} <= set(manifest["libraries"])


def test_features_are_put_in_order_by_name() -> None:
    X = matrix([{"b": 2.0, "a": 1.0, "elsewhere": 9.0}, {"a": 3.0}], ("a", "b"))
    assert X.tolist() == [[1, 2], [3, 0]]


def test_unknown_ops_are_counted_in_a_row() -> None:
    X = matrix(
        [{"ops.my.op": 2.0, "ops.unknown": 0.0, "ops.your.op": 1.0, "ops.arith.addf": 4.0}],
        ("ops.arith.addf", "ops.unknown"),
    )
    assert X.tolist() == [[4, 3]]


def test_infinite_feature_is_refused() -> None:
    with pytest.raises(IrgaugeError, match="'a' of row 1"):
        matrix([{"a": 1.0}, {"a": 1e300}], ("a",))


def test_programs_become_a_table_with_the_same_columns_for_another_set() -> None:
    import pandas as pd

    text = """func.func @kernel(%a: memref<{n}xf32>) {{
  affine.for %i = 0 to {n} {{
    %x = affine.load %a[%i] : memref<{n}xf32>
    %y = arith.{op} %x, %x : f32
    affine.store %y, %a[%i] : memref<{n}xf32>
  }}
  return
}}
"""
    frame = pd.DataFrame(
        {
            "id": [f"r{n}" for n in range(8, 20)],
            "program_id": "p",
            "family": "f",
            "mlir": [text.format(n=n, op="addf") for n in range(8, 20)],
            "x86-64-v3/spills": 0.0,
        }
    )
    table = table_of(frame, n_jobs=1)
    assert len(table.X) == 12
    assert list(table.y) == ["x86-64-v3/spills"]
    other = table_of(
        frame.head(1).assign(mlir=[text.format(n=8, op="mulf")], function=["kernel"]), like=table, n_jobs=1
    )
    assert other.names == table.names
    assert other.X[0, table.names.index("ops.unknown")] == 1
    with pytest.raises(IrgaugeError, match="no function 'nope'"):
        table_of(frame.head(1).assign(function=["nope"]), n_jobs=1)
    with pytest.raises(IrgaugeError, match="lacks column 'family'"):
        table_of(frame.drop(columns="family"))


def test_a_table_without_labels_cannot_be_trained(table: Table) -> None:
    from dataclasses import replace

    with pytest.raises(IrgaugeError, match="no label for any target"):
        train_track(replace(table, y={}))
