from __future__ import annotations

from collections.abc import Callable

from irgauge.featurize import features_of
from irgauge.featurize.function_view import FunctionView
from irgauge.featurize.tensors import tensors


def test_sizes_of_arguments_results_and_values_inside(view: Callable[[str], FunctionView]) -> None:
    found = tensors(
        view("""func.func @f(%a: tensor<4x8xf16>, %n: index, %b: memref<3x?xi1>) -> tensor<4x8xf16> {
  %e = tensor.empty() : tensor<4x8xf16>
  %m = memref.alloc() : memref<16xf64>
  %v = memref.subview %m[0] [8] [2] : memref<16xf64> to memref<8xf64, strided<[2]>>
  memref.dealloc %m : memref<16xf64>
  return %e : tensor<4x8xf16> }""")
    )
    assert (found["tensors.args"], found["tensors.shaped_args"], found["tensors.scalar_args"]) == (3, 2, 1)
    assert found["tensors.bytes_in"] == 64 + 3 * 16 / 8  # one bit an element; the dynamic extent counts as 16
    assert found["tensors.bytes_out"] == 64
    assert found["tensors.bytes_inside"] == 64 + 128
    assert found["tensors.dynamic_dims"] == 1
    assert found["tensors.strided"] == 1
    assert (found["tensors.element_bits_min"], found["tensors.element_bits_max"]) == (1, 64)
    assert (found["tensors.args/f16"], found["tensors.args/i1"]) == (1, 1)


def test_rows_that_share_cache_sets(view: Callable[[str], FunctionView]) -> None:
    found = tensors(view("func.func @f(%a: memref<4x1024xf32>, %b: memref<4x1000xf32>) { return }"))
    assert found["tensors.row_bytes_power"] == 1


def test_unranked_is_counted_not_guessed(view: Callable[[str], FunctionView]) -> None:
    found = tensors(view("func.func @f(%a: memref<*xf32>) { return }"))
    assert found["tensors.unranked"] == 1
    assert found["tensors.rank_max"] == 0


def test_views_and_results_in_place_are_no_buffers_of_their_own() -> None:
    found = features_of("""func.func @f(%x: tensor<4x8xf32>, %c: f32) {
  %v = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%c : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %r = linalg.exp ins(%v : tensor<32xf32>) outs(%z : tensor<32xf32>) -> tensor<32xf32>
  return }""")["f"]
    assert found["tensors.bytes_inside"] == 128
    assert found["ops.vector"] == 0
