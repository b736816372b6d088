from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize.function_view import FunctionView
from irgauge.featurize.op_classes import CLASSES, LATENCY, THROUGHPUT, is_bare_terminator, op_class
from irgauge.featurize.ops import constant_text, ops, safe_name

View = Callable[[str], FunctionView]


def test_counts_add_up(view: View) -> None:
    found = ops(
        view("""func.func @kernel(%A: memref<8xf32>, %i: index) {
  %c = arith.constant 1.0 : f32
  %d = arith.constant 2.0 : f32
  %j = arith.addi %i, %i : index
  %a = memref.load %A[%j] : memref<8xf32>
  %r = arith.addf %a, %c : f32
  %s = arith.subf %r, %c : f32
  %t = "vendor.fancy"(%s, %d) : (f32, f32) -> f32
  memref.store %t, %A[%i] : memref<8xf32>
  return
}""")
    )
    names = {k: v for k, v in found.items() if k.startswith("ops.") and "." in k[4:] and "/" not in k}
    assert sum(names.values()) == found["ops.total"] == 8
    assert found["ops.distinct"] == len(names) == 7
    assert sum(v for k, v in found.items() if k.startswith("ops.dialect/")) == 8
    assert sum(v for k, v in found.items() if k.startswith("ops.class/")) == 8
    assert found["ops.float_constants"] == 2
    assert found["ops.class/index"] == 1
    assert found["ops.class/other"] == found["ops.vendor.fancy"] == 1


@pytest.mark.parametrize(
    ("name", "element", "expected"),
    [
        ("arith.addf", "f32", "fadd"),
        ("arith.addi", "i32", "iadd"),
        ("arith.addi", "index", "index"),
        ("math.exp", "f32", "fmath"),
        ("math.unheard_of", "f64", "fmath"),
        ("stablehlo.add", "f32", "fadd"),
        ("stablehlo.add", "i32", "iadd"),
        ("vendor.sub.multiply", "f16", "fmul"),
        ("vendor.quux", "f32", "other"),
        ("scf.for", "", "loop"),
    ],
)
def test_class_of_an_operation(name: str, element: str, expected: str) -> None:
    assert op_class(name, element) == expected


def test_costs_are_of_known_classes() -> None:
    assert set(LATENCY) <= set(CLASSES)
    assert set(THROUGHPUT) <= set(CLASSES)


def test_bare_terminators() -> None:
    assert all(is_bare_terminator(n) for n in ("affine.yield", "func.return", "scf.reduce", "omp.terminator"))
    assert not any(is_bare_terminator(n) for n in ("linalg.reduce", "gpu.barrier", "memref.load"))


def test_names_are_made_safe_for_every_library() -> None:
    assert safe_name('dia-lect.op[1]:"x"') == "dia_lect.op_1___x_"


def test_constant_is_the_same_in_both_syntaxes() -> None:
    assert constant_text(" 1.5 : f32") == constant_text("() <{value = 1.5 : f32}> : () -> f32") == "1.5 : f32"
