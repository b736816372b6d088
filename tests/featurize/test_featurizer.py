from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from irgauge.errors import ReadError, UsageError
from irgauge.featurize import features_of, main_features, read
from irgauge.featurize.describe import GROUPS
from irgauge.featurize.featurizer import GROUP_NAMES, features_or_error

MATMUL = (Path(__file__).parent / "golden" / "matmul.mlir").read_text()
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


def test_groups_add_up_to_all_features() -> None:
    whole = features_of(MATMUL)["kernel"]
    parts = {name: features_of(MATMUL, [name])["kernel"] for name in GROUP_NAMES}
    assert sum(map(len, parts.values())) == len(whole)
    assert {k: v for part in parts.values() for k, v in part.items()} == whole
    for name, part in parts.items():
        assert set(GROUPS[name]) <= set(part)
    assert features_of(MATMUL, ["work", "ops"])["kernel"] == parts["ops"] | parts["work"]
    with pytest.raises(UsageError, match=r"unknown feature group 'speed'. Known: ops, "):
        features_of(MATMUL, ["ops", "speed"])


def test_an_unreadable_program_says_which_one_it_is(tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text("func.func @f( {")
    for source, start in (
        ("func.func @f( {", "<program 7>:1:15: "),
        (tmp_path / "bad.mlir", f"{tmp_path / 'bad.mlir'}:1:15: "),
        (tmp_path / "none.mlir", f"{tmp_path / 'none.mlir'}: cannot be read: "),
        (None, "<program 7>: expected MLIR text, got None"),
        (float("nan"), "<program 7>: expected MLIR text, got nan"),
        ("examples/matmul.mlir", "<program 7>: 'examples' is not an operation here"),
    ):
        error = features_or_error(source, 7)
        assert isinstance(error, ReadError)
        assert str(error).startswith(start)
    assert "pathlib.Path" in str(error)
    assert features_or_error(read(MATMUL), 7) == main_features(MATMUL)


def test_import_needs_no_learning_library() -> None:
    heavy = ("sklearn", "pandas", "scipy", "xgboost", "lightgbm", "shap")
    code = f"import sys, irgauge.featurize; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_without_scikit_learn_all_but_the_transformer_works() -> None:
    code = f"""
import sys
sys.modules["sklearn"] = None
import irgauge
assert "Featurizer" in dir(irgauge)
assert irgauge.load().predict({MATMUL!r})
try:
    irgauge.Featurizer
except irgauge.ToolMissingError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "Featurizer needs scikit-learn. Install it with `pip install 'irgauge[train]'`."
