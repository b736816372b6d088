"""A form found through another one's numbers is what analysing the text itself gives."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgauge.featurize import op_syntax
from irgauge.featurize.op_syntax import Form, analyse, form_of
from irgauge.featurize.reader import read

DATASET = Path(op_syntax.__file__).parents[1] / "data" / "sets" / "kernel.parquet"
TEMPLATES = (
    ("affine.load", " %[% + {}, {}] : memref<{}x{}xvector<{}xf32>>"),
    ("affine.store", " %, %[%, % - {}] : memref<{}x{}xf64, strided<[{}, 1], offset: {}>>"),
    ("affine.for", " % = {} to {} step {} iter_args(% = %) -> (f32) {{"),
    ("affine.for", " % = affine_map<(d0) -> (d0 + {})>(%) to min affine_map<(d0)[s0] -> (d0 * {}, s0)>(%)[%] {{"),
    ("affine.for", " % = 0 to {} {{}}"),
    ("arith.constant", " {}.{}e-01 : f64"),
    ("arith.constant", " -{} : i32"),
    ("arith.constant", " {}"),
    ("arith.constant", " dense<{}.{}> : vector<{}xf32>"),
    ("func.func", " @kernel1(%: memref<{}x{}xf32>, %: i{}) -> (tensor<{}xi8>) {{"),
    ("vector.transfer_read", " %[%, %], % : memref<{}x{}xf32>, vector<{}xf32>"),
    ("memref.alloc", "() : memref<{}x{}xf32>"),
    ("affine.load", " %[%] : memref<{}xf99f>"),
    ("memref.alloc", "() : memref<{}x90000001xf32>"),
    ("arith.constant", " dense<0x{}F> : vector<{}xi8>"),
)


def facts(form: Form) -> dict[str, object]:
    return {name: getattr(form, name) for name in Form.__slots__ if name != "facts"}


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_syntax, "FORMS", {})
    monkeypatch.setattr(op_syntax, "_SHAPES", {})


@given(st.sampled_from(TEMPLATES), st.lists(st.integers(0, 10**9), min_size=6, max_size=6))
def test_numbers_change_nothing_but_themselves(template: tuple[str, str], numbers: list[int]) -> None:
    name, written = template
    text = written.format(*numbers)
    assert facts(form_of(name, text)) == facts(analyse(name, text))


def test_programs_of_other_sizes_are_not_analysed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def counted(name: str, template: str) -> Form:
        asked.append((name, template))
        return analyse(name, template)

    monkeypatch.setattr(op_syntax, "analyse", counted)
    for size in (64, 96, 1000):
        load = f"%x = affine.load %a[{size - 1}] : memref<{size}xf32>"
        read(f"func.func @f(%a: memref<{size}xf32>) {{\n  {load}\n  return\n}}")
    assert [name for name, _ in asked].count("affine.load") == 1
    assert [name for name, _ in asked].count("func.func") == 2  # its head, and with its region


def test_every_form_of_the_dataset_is_as_analysed(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[tuple[str, str], Form] = {}
    through_numbers = op_syntax._renumbered

    def kept(name: str, template: str) -> Form | None:
        form = through_numbers(name, template)
        if form is not None:
            found[name, template] = form
        return form

    monkeypatch.setattr(op_syntax, "_renumbered", kept)
    for text in pd.read_parquet(DATASET, columns=["mlir"]).mlir[::200]:
        read(text)
    assert len(found) > 1000
    for (name, template), form in found.items():
        assert facts(form) == facts(analyse(name, template)), (name, template)
