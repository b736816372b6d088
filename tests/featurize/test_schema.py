from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from irgauge.errors import SchemaError
from irgauge.featurize import Featurizer, features_of
from irgauge.featurize.describe import FIXED, GROUPS
from irgauge.featurize.schema import SCHEMA_VERSION, Schema, is_op_name

GOLDEN = [p.read_text() for p in sorted((Path(__file__).parent / "golden").glob("*.mlir"))]


def test_hash_depends_on_names_order_and_version() -> None:
    schema = Schema(("a.b", "c.d"))
    assert schema.hash == Schema(("a.b", "c.d")).hash
    later = Schema(("a.b", "c.d"), SCHEMA_VERSION + 1)
    assert len({schema.hash, Schema(("c.d", "a.b")).hash, later.hash, Schema(("a.b",)).hash}) == 4


def test_vector_is_in_schema_order_whatever_the_order_of_the_dict() -> None:
    schema = Schema(("x.one", "x.two", "x.three"))
    values = {"x.three": 3.0, "x.one": 1.0, "x.other": 9.0}
    assert schema.vector(values).tolist() == schema.vector(dict(reversed(values.items()))).tolist() == [1, 0, 3]


def test_what_is_not_zero_is_the_vector_without_its_zeros() -> None:
    schema = Schema((*FIXED, "ops.arith.addf", "ops.func.return"))
    for features in (
        *(f for text in GOLDEN for f in features_of(text).values()),
        {"ops.unknown": 3.0, "work.flops": 0},
    ):
        vector = schema.vector(features)
        assert schema.nonzero(features) == {int(i): vector[i] for i in np.flatnonzero(vector)}
        assert list(schema.nonzero(features)) == np.flatnonzero(vector).tolist()


def test_unknown_op_is_counted() -> None:
    schema = Schema((*FIXED, "ops.arith.addf", "ops.func.return"))
    features = features_of(
        "func.func @f(%x: f32) -> f32 { %a = arith.addf %x, %x : f32\n %b = arith.mulf %a, %x : f32\n return %b : f32 }"
    )["f"]
    assert schema.unseen_ops(features) == {"arith.mulf": 1}
    assert dict(zip(schema.names, schema.vector(features), strict=True))["ops.unknown"] == 1


def test_other_schema_is_refused() -> None:
    schema = Schema(("a.b",))
    schema.check(schema.version, schema.hash)
    with pytest.raises(SchemaError, match="Train again"):
        schema.check(schema.version, "0" * 16)


def test_fixed_names_are_unique_and_no_op_names() -> None:
    assert len(set(FIXED)) == len(FIXED) == sum(map(len, GROUPS.values()))
    assert not any(is_op_name(name) for name in FIXED)


def test_every_function_has_every_fixed_feature_and_each_is_finite() -> None:
    for text in [*GOLDEN, "func.func @f() { return }", '"foreign.op"() : () -> ()']:
        for features in features_of(text).values():
            assert set(FIXED) <= set(features)
            assert np.isfinite(list(features.values())).all()


def test_both_boosters_take_every_name() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    pandas = pytest.importorskip("pandas")
    xgboost = pytest.importorskip("xgboost")
    table = Featurizer(min_df=1).set_output(transform="pandas").fit_transform(GOLDEN)
    assert isinstance(table, pandas.DataFrame)
    assert all(re.fullmatch(r"[A-Za-z0-9_.>/]+", name) for name in table.columns)
    y = np.arange(len(GOLDEN), dtype=float)
    first = xgboost.XGBRegressor(n_estimators=2, n_jobs=1).fit(table, y)
    second = lightgbm.LGBMRegressor(n_estimators=2, n_jobs=1, min_child_samples=1, verbose=-1).fit(table, y)
    assert list(first.feature_names_in_) == list(second.feature_name_) == list(table.columns)
