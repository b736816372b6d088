from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from irgauge.errors import ReadError, SchemaError
from irgauge.featurize import Featurizer, features_of, main_features, read

GOLDEN = [p.read_text() for p in sorted((Path(__file__).parent / "golden").glob("*.mlir"))]
TWO = """func.func @small(%A: memref<4xf32>, %x: f32) { affine.store %x, %A[0] : memref<4xf32> return }
func.func private @declared(f32)
func.func @kernel(%A: memref<4xf32>, %x: f32) { affine.for %i = 0 to 4 { affine.store %x, %A[%i] : memref<4xf32> } return }"""  # noqa: E501


def test_each_function_with_a_body_has_features() -> None:
    found = features_of(TWO)
    assert list(found) == ["small", "kernel"]
    assert main_features(TWO) == found["kernel"]


def test_functions_in_another_order_have_the_same_features() -> None:
    lines = TWO.splitlines()
    assert features_of("\n".join(reversed(lines))) == features_of(TWO)


def test_two_functions_of_one_name_are_told_apart() -> None:
    text = "module { func.func @f() { return } }\nmodule { func.func @f() { return } }"
    assert list(features_of(text)) == ["f", "f#1"]


def test_columns_are_fixed_first_then_sorted() -> None:
    fitted = Featurizer(min_df=1).fit(GOLDEN)
    names = list(fitted.get_feature_names_out())
    learned = names[names.index("codegen.big.copies") :]
    assert [n for n in learned if n.startswith("chain/")] == sorted(n for n in learned if n.startswith("chain/"))
    assert Featurizer(min_df=1).fit(GOLDEN[::-1]).schema_ == fitted.schema_


def test_rare_and_surplus_names_are_left_out() -> None:
    everything = Featurizer(min_df=1, max_vocabulary=None).fit(GOLDEN)
    frequent = Featurizer(min_df=3, max_vocabulary=None).fit(GOLDEN)
    few = Featurizer(min_df=1, max_vocabulary=5).fit(GOLDEN)
    fixed = set(Featurizer(min_df=1, max_vocabulary=0).fit(GOLDEN).schema_.names)
    assert fixed < set(frequent.schema_.names) < set(everything.schema_.names)
    assert len(few.schema_.names) == len(fixed) + 5


def test_programs_texts_and_dicts_give_the_same_rows() -> None:
    fitted = Featurizer(min_df=1).fit(GOLDEN)
    expected = fitted.transform(GOLDEN)
    np.testing.assert_array_equal(fitted.transform([read(t) for t in GOLDEN]), expected)
    np.testing.assert_array_equal(fitted.transform([main_features(t) for t in GOLDEN]), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(GOLDEN), expected)


def test_parallel_extraction_gives_the_same_rows() -> None:
    many = GOLDEN * 8
    serial = Featurizer(min_df=2).fit_transform(many)
    np.testing.assert_array_equal(Featurizer(min_df=2, n_jobs=2).fit_transform(many), serial)


def test_unseen_operations_are_named() -> None:
    fitted = Featurizer(min_df=1).fit(GOLDEN)
    text = 'func.func @f() { "vendor.a"() : () -> ()\n"vendor.b"() : () -> ()\n"vendor.a"() : () -> ()\nreturn }'
    assert fitted.unseen_ops(text) == {"vendor.a": 2, "vendor.b": 1}
    row = dict(zip(fitted.get_feature_names_out(), fitted.transform([text])[0], strict=True))
    assert row["ops.unknown"] == 3


def test_scikit_learn_clones_and_pipes_it() -> None:
    base = pytest.importorskip("sklearn.base")
    linear = pytest.importorskip("sklearn.linear_model")
    pipeline = pytest.importorskip("sklearn.pipeline")
    copy = base.clone(Featurizer(min_df=3, n_jobs=1))
    assert copy.get_params() == {"min_df": 3, "max_vocabulary": 1500, "n_jobs": 1}
    pipe = pipeline.make_pipeline(copy, linear.Ridge())
    assert pipe.fit(GOLDEN, np.arange(len(GOLDEN))).predict(GOLDEN).shape == (len(GOLDEN),)
    assert base.clone(pipe).set_params(featurizer__min_df=1).get_params()["featurizer__min_df"] == 1


def test_use_before_fit_and_bad_arguments_are_errors() -> None:
    with pytest.raises(SchemaError, match="not fitted"):
        Featurizer().transform(GOLDEN)
    with pytest.raises(ValueError, match="at least 1"):
        Featurizer(min_df=0).fit(GOLDEN)
    with pytest.raises(ValueError, match="wrap it in a list"):
        Featurizer().fit(GOLDEN[0])
    with pytest.raises(ValueError, match="no parameter 'depth'"):
        Featurizer().set_params(depth=2)
    with pytest.raises(ReadError):
        Featurizer(min_df=1).fit(["func.func @f( {"])


def test_import_needs_no_learning_library() -> None:
    heavy = ("sklearn", "pandas", "xgboost", "lightgbm", "shap")
    code = f"import sys, irgauge.featurize; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
