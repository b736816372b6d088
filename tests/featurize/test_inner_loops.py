"""What LLVM's vectorizer accepts and refuses: the features say what its remarks say."""

from __future__ import annotations

import subprocess

import pytest

from irgauge.data.label.llvm import CPUS, TRIPLES, to_llvm_dialect
from irgauge.data.label.tools import run, tool
from irgauge.data.targets import X86
from irgauge.featurize import features_of


def _vectorized(text: str) -> bool:
    """Whether LLVM vectorizes a loop of this module."""
    ir = run([tool("mlir-translate"), "--mlir-to-llvmir"], step="translate", stdin=to_llvm_dialect(text))
    command = [tool("opt"), "-O3", f"-mtriple={TRIPLES[X86]}", f"-mcpu={CPUS[X86]}", "-disable-output"]
    done = subprocess.run(
        [*command, "-pass-remarks=loop-vectorize"], input=ir, capture_output=True, text=True, check=True
    )
    return "vectorized loop" in done.stderr


def _hot(body: str, arguments: str) -> dict[str, float]:
    """Features of the hottest kernel, by name; LLVM must vectorize it just where they say so."""
    text = f"func.func @kernel({arguments}) {{\n{body}\n  return\n}}"
    features = features_of(text)["kernel"]
    assert (features["codegen.hot.vector_width"] > 1) == _vectorized(text)
    return {k.removeprefix("codegen.hot."): v for k, v in features.items() if k.startswith("codegen.hot.")}


def _carried(update: str, type: str = "i32", setup: str = "") -> dict[str, float]:
    """A loop over 1,000 elements `%x` whose carried value `%s` becomes `%t`."""
    return _hot(
        f"""
  {setup}
  %c1 = arith.constant 1 : i32
  %z = arith.constant 0 : i32
  %r = affine.for %i = 0 to 1000 iter_args(%s = %z) -> ({type}) {{
    %x = affine.load %a[%i] : memref<1000xi32>
    {update}
    affine.yield %t : {type}
  }}
  affine.store %r, %b[0] : memref<1000xi32>""",
        "%a: memref<1000xi32>, %b: memref<1000xi32>",
    )


@pytest.mark.parametrize(
    ("update", "vectorized"),
    [
        ("%t = arith.addi %s, %x : i32", True),
        ("%u = arith.addi %s, %x : i32\n%t = arith.addi %u, %c1 : i32", True),
        ("%t = arith.maxsi %s, %x : i32", True),
        ("%c = arith.cmpi slt, %x, %s : i32\n%t = arith.select %c, %x, %s : i32", True),
        ("%t = arith.addi %s, %c1 : i32\naffine.store %t, %b[%i] : memref<1000xi32>", True),  # an induction
        ("%t = arith.addi %s, %x : i32\naffine.store %t, %b[%i] : memref<1000xi32>", False),  # a prefix sum
        ("%t = arith.shrui %s, %c1 : i32\naffine.store %t, %b[%i] : memref<1000xi32>", False),  # a shift register
        ("%u = arith.muli %s, %x : i32\n%t = arith.addi %u, %x : i32", False),  # Horner
        ("%c = arith.cmpi slt, %x, %z : i32\n%t = arith.select %c, %x, %s : i32", False),  # the last that was negative
    ],
)
def test_which_carried_values_vectorize(update: str, vectorized: bool) -> None:
    found = _carried(update)
    assert (found["vector_width"] > 1) == vectorized
    assert found["carried_other"] == (not vectorized)


def test_a_row_that_is_looked_up_outside_vectorizes() -> None:
    row = """
  affine.for %i = 0 to 100 {
    %n = affine.load %b[%i] : memref<1000xindex>
    affine.for %j = 0 to 640 {
      %x = memref.load %a[INDEX] : memref<1000x640xf32>
      affine.store %x, %c[%i, %j] : memref<100x640xf32>
    }
  }"""
    arguments = "%a: memref<1000x640xf32>, %b: memref<1000xindex>, %c: memref<100x640xf32>"
    assert _hot(row.replace("INDEX", "%n, %j"), arguments)["vector_width"] == 8
    assert _hot(row.replace("INDEX", "%n, %n"), arguments)["zero"] == 1


def test_a_few_iterations_with_checks_stay_scalar() -> None:
    nest = """
  affine.for %i = 0 to 1000 {
    affine.for %j = 0 to TRIP {
      %x = affine.load %a[%i, %j] : memref<1000x40xf32>
      %y0 = math.sqrt %x : f32
      %y1 = arith.divf %y0, %x : f32
      %y2 = arith.mulf %y1, %y1 : f32
      %y3 = arith.addf %y2, %y0 : f32
      %y4 = arith.mulf %y3, %y3 : f32
      %y5 = arith.addf %y4, %y1 : f32
      %y6 = arith.mulf %y5, %y5 : f32
      %y7 = arith.addf %y6, %y2 : f32
      %y8 = arith.mulf %y7, %y7 : f32
      %y9 = arith.addf %y8, %y3 : f32
      %ya = arith.mulf %y9, %y9 : f32
      %yb = arith.addf %ya, %y4 : f32
      %yc = arith.mulf %yb, %yb : f32
      %yd = arith.addf %yc, %y5 : f32
      %ye = arith.mulf %yd, %yd : f32
      %yf = arith.addf %ye, %y6 : f32
      %yg = arith.mulf %yf, %yf : f32
      %yh = arith.addf %yg, %y7 : f32
      affine.store %yh, %b[%i, %j] : memref<1000x40xf32>
    }
  }"""
    arguments = "%a: memref<1000x40xf32>, %b: memref<1000x40xf32>"
    assert _hot(nest.replace("TRIP", "15"), arguments)["vector_width"] == 1
    assert _hot(nest.replace("TRIP", "16"), arguments)["vector_width"] == 8


def test_two_accumulators_in_memory_may_be_the_same() -> None:
    one = """
  affine.for %i = 0 to 1000 {
    %x = affine.load %a[%i] : memref<1000xi32>
    %s = affine.load %b[0] : memref<1xi32>
    %t = arith.addi %s, %x : i32
    affine.store %t, %b[0] : memref<1xi32>MORE
  }"""
    more = (
        "\n%u = affine.load %c[0] : memref<1xi32>\n%v = arith.addi %u, %x : i32\naffine.store %v, %c[0] : memref<1xi32>"
    )
    arguments = "%a: memref<1000xi32>, %b: memref<1xi32>, %c: memref<1xi32>"
    assert _hot(one.replace("MORE", ""), arguments)["vector_width"] == 8
    assert _hot(one.replace("MORE", more), arguments)["vector_width"] == 1


def test_a_store_beside_loads_of_the_same_row_that_stand_still_is_a_conflict() -> None:
    text = """
  affine.for %i = 1 to 100 {
    affine.for %j = 0 to 1000 {
      %x = affine.load %a[%i ROW, 3] : memref<100x1000xf32>
      %y = affine.load %b[%j] : memref<1000xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %a[%i, %j] : memref<100x1000xf32>
    }
  }"""
    arguments = "%a: memref<100x1000xf32>, %b: memref<1000xf32>"
    assert _hot(text.replace("ROW", "- 1"), arguments)["vector_width"] == 8
    assert _hot(text.replace(" ROW", ""), arguments)["vector_width"] == 1


def test_a_check_that_fails_each_time_leaves_the_scalar_loop() -> None:
    """Floyd and Warshall: vectorized with a check, but column k of row i is always within the row that is stored."""
    text = """
  affine.for %k = 0 to 52 {
    affine.for %i = 0 to 52 {
      affine.for %j = 0 to 52 {
        %0 = affine.load %a[%i, %j] : memref<52x52xi32>
        %1 = affine.load %a[%i, %k] : memref<52x52xi32>
        %2 = affine.load %a[%k, %j] : memref<52x52xi32>
        %3 = arith.addi %1, %2 : i32
        %4 = arith.minsi %0, %3 : i32
        affine.store %4, %a[%i, %j] : memref<52x52xi32>
      }
    }
  }"""
    found = _hot(text, "%a: memref<52x52xi32>")
    assert (found["check_fails"], found["conflicts"]) == (1, 0)


def test_library_calls_are_counted() -> None:
    text = """
  affine.for %i = 0 to 1000 {
    %x = affine.load %a[%i] : memref<1000xTYPE>
    %y = OP : TYPE
    affine.store %y, %a[%i] : memref<1000xTYPE>
  }"""

    def found(op: str, type: str) -> dict[str, float]:
        return _hot(text.replace("OP", op).replace("TYPE", type), f"%a: memref<1000x{type}>")

    assert found("math.exp %x", "f32")["library_calls"] == 1
    assert found("math.tanh %x", "f32")["size"] > 2 * found("math.exp %x", "f32")["size"]
    assert found("arith.addf %x, %x", "bf16")["library_calls"] == 1  # the rounding
    assert found("arith.addf %x, %x", "bf16")["vector_width"] == 1
    assert found("arith.addf %x, %x", "f16")["vector_width"] > 1
    assert found("math.sqrt %x", "f32")["library_calls"] == 0


@pytest.mark.parametrize("stores", [1, 4])
@pytest.mark.parametrize("pitch", [1, 3, 20])
def test_scattered_stores_cost_more_than_they_save(pitch: int, stores: int) -> None:
    if stores > pitch > 1:
        return
    body = "".join(f"  affine.store %x, %a[%i, {k % pitch}] : memref<1000x{pitch}xf32>\n" for k in range(stores))
    text = f"affine.for %i = 0 to 1000 {{\n  %x = affine.load %b[%i] : memref<1000xf32>\n{body}}}"
    _hot(text, f"%a: memref<1000x{pitch}xf32>, %b: memref<1000xf32>")


@pytest.mark.parametrize(
    ("operation", "element"),
    [("divsi %c, %x", "i32"), ("divsi %x, %c", "i32"), ("muli %x, %x", "i64"), ("divsi %c, %x", "i64")],
)
def test_divisions_by_a_constant_vectorize(operation: str, element: str) -> None:
    text = f"""
  %c = arith.constant 7 : {element}
  affine.for %i = 0 to 1000 {{
    %x = affine.load %a[%i] : memref<1000x{element}>
    %y = arith.{operation} : {element}
    affine.store %y, %b[%i] : memref<1000x{element}>
  }}"""
    _hot(text, f"%a: memref<1000x{element}>, %b: memref<1000x{element}>")


@pytest.mark.parametrize("pitch", [16, 17])
def test_loads_of_a_row_are_counted_once_a_copy(pitch: int) -> None:
    text = f"""
  affine.for %i = 0 to 1000 {{
    %s0 = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 16 iter_args(%s = %s0) -> (f32) {{
      %x = affine.load %a[%i, %k] : memref<1000x{pitch}xf32>
      %t = arith.addf %s, %x : f32
      affine.yield %t : f32
    }}
    affine.store %r, %b[%i] : memref<1000xf32>
  }}"""
    found = _hot(text, f"%a: memref<1000x{pitch}xf32>, %b: memref<1000xf32>")
    assert (found["merged"], found["strided"], found["load_run"]) == (1, 1, 16)


def test_stores_beside_one_another_make_a_run() -> None:
    text = "affine.for %i = 0 to 100 {\n" + "".join(
        f"  %x{k} = affine.load %a[%i, {k}] : memref<100x8xf32>\n"
        f"  affine.store %x{k}, %b[%i, {k}] : memref<100x8xf32>\n"
        for k in (0, 1, 2, 5)
    )
    found = _hot(text + "}", "%a: memref<100x8xf32>, %b: memref<100x8xf32>")
    assert (found["store_run"], found["load_run"]) == (3, 3)


def test_a_contraction_of_vectors_is_many_instructions() -> None:
    text = """
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  affine.for %i = 0 to 1000 {
    %x = vector.transfer_read %a[%c0, %c0], %z : memref<6x4xf32>, vector<6x4xf32>
    %y = vector.transfer_read %a[%c0, %c0], %z : memref<6x4xf32>, vector<4x4xf32>
    %s = vector.transfer_read %a[%c0, %c0], %z : memref<6x4xf32>, vector<6x4xf32>
    %t = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %x, %y, %s : vector<6x4xf32>, vector<4x4xf32> into vector<6x4xf32>
    vector.transfer_write %t, %a[%c0, %c0] : vector<6x4xf32>, memref<6x4xf32>
  }"""
    assert _hot(text, "%a: memref<6x4xf32>")["size"] > 6 * 4 * 2 * 4
