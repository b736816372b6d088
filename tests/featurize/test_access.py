from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize.access import access
from irgauge.featurize.function_view import FunctionView

View = Callable[[str], FunctionView]


def copy(load: str, store: str, n: int = 64) -> str:
    return f"""func.func @f(%A: memref<{n}x{n}xf32>, %B: memref<{n}x{n}xf32>) {{
  affine.for %i = 0 to {n} {{ affine.for %j = 0 to {n} {{
    %a = affine.load %A[{load}] : memref<{n}x{n}xf32>
    affine.store %a, %B[{store}] : memref<{n}x{n}xf32>
  }} }}
  return }}"""


@pytest.mark.parametrize(
    ("load", "kind"),
    [("%i, %j", "unit"), ("%j, %i", "large"), ("%i, 0", "stride0"), ("%i, %j * 2", "small"), ("%i, -%j + 63", "unit")],
)
def test_kind_of_stride(view: View, load: str, kind: str) -> None:
    found = access(view(copy(load, "%i, 0")))
    assert {k: found[f"access.{k}"] for k in ("stride0", "unit", "small", "large")} == {
        k: float(k == kind) + float(k == "stride0") for k in ("stride0", "unit", "small", "large")
    }


def test_delinearized_subscripts_are_seen_through(view: View) -> None:
    found = access(
        view("""func.func @f(%A: memref<64x64xf32>, %x: f32) {
  affine.for %k = 0 to 4096 { affine.store %x, %A[%k floordiv 64, %k mod 64] : memref<64x64xf32> }
  return }""")
    )
    assert (found["access.unit"], found["access.nonlinear"]) == (1, 1)


def test_lanes_make_a_unit_stride(view: View) -> None:
    found = access(
        view("""func.func @f(%A: memref<64xf32>, %x: vector<4xf32>) {
  affine.for %k = 0 to 64 step 4 { affine.vector_store %x, %A[%k] : memref<64xf32>, vector<4xf32> }
  return }""")
    )
    assert found["access.unit"] == 1
    assert found["access.footprint_bytes"] == 256


def test_footprint_counts_overlapping_accesses_once(view: View) -> None:
    found = access(
        view("""func.func @f(%A: memref<100xf32>, %B: memref<100xf32>) {
  affine.for %i = 1 to 99 {
    %a = affine.load %A[%i - 1] : memref<100xf32>
    %b = affine.load %A[%i] : memref<100xf32>
    %c = affine.load %A[%i + 1] : memref<100xf32>
    %d = arith.addf %a, %b : f32
    %e = arith.addf %d, %c : f32
    affine.store %e, %B[%i] : memref<100xf32>
  }
  return }""")
    )
    assert found["access.footprint_bytes"] == (100 + 98) * 4
    assert (found["access.groups"], found["access.distinct"]) == (2, 4)


def test_recurrence_through_memory(view: View) -> None:
    found = access(
        view("""func.func @f(%A: memref<100xf32>, %x: f32) {
  affine.for %i = 3 to 99 {
    %a = affine.load %A[%i - 3] : memref<100xf32>
    %b = arith.addf %a, %x : f32
    affine.store %b, %A[%i] : memref<100xf32>
  }
  return }""")
    )
    assert (found["access.recurrences"], found["access.recurrence_distance"]) == (1, 3)
    assert found["access.reduction_memory"] == 0


def test_vector_transfers_that_are_masked_or_repeat_an_element(view: View) -> None:
    found = access(
        view("""func.func @f(%A: memref<8x64xf32>, %B: memref<8x64xf32>, %p: f32) {
  affine.for %i = 0 to 8 { affine.for %j = 0 to 64 step 8 {
    %a = vector.transfer_read %A[%i, %j], %p {in_bounds = [true]} : memref<8x64xf32>, vector<8xf32>
    %b = vector.transfer_read %A[%i, %i], %p {permutation_map = affine_map<(d0, d1) -> (0)>, in_bounds = [true]}
      : memref<8x64xf32>, vector<8xf32>
    %c = arith.addf %a, %b : vector<8xf32>
    vector.transfer_write %c, %B[%i, %j] : vector<8xf32>, memref<8x64xf32>
  } }
  return }""")
    )
    assert (found["access.masked"], found["access.broadcasts"]) == (1, 1)
    assert (found["access.unit"], found["access.stride0"]) == (2, 1)


def test_a_transfer_into_a_tensor_moves_its_vector(view: Callable[[str], FunctionView]) -> None:
    text = """func.func @f(%v: vector<4x4xf32>, %t: tensor<8x8xf32>, %i: index) -> tensor<8x8xf32> {
  %r = vector.transfer_write %v, %t[%i, %i] {in_bounds = [true, true]@MAP@} : vector<4x4xf32>, tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}"""
    written = ", permutation_map = affine_map<(d0, d1) -> (d0, d1)>"
    assert [view(text.replace("@MAP@", m)).accesses[0].lanes for m in ("", written)] == [16, 16]
