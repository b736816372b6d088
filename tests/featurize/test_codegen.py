"""What LLVM 22.1.8 said of probe kernels: `opt -O3 -mcpu=x86-64-v3 -pass-remarks='loop-unroll|loop-vectorize'`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize.codegen import codegen, codegen_model
from irgauge.featurize.function_view import FunctionView

View = Callable[[str], FunctionView]


def product(i: int, j: int, k: int) -> str:
    return f"""func.func @f(%A: memref<{i}x{k}xf32>, %B: memref<{k}x{j}xf32>, %C: memref<{i}x{j}xf32>) {{
  affine.for %i = 0 to {i} {{ affine.for %j = 0 to {j} {{ affine.for %k = 0 to {k} {{
    %a = affine.load %A[%i, %k] : memref<{i}x{k}xf32>
    %b = affine.load %B[%k, %j] : memref<{k}x{j}xf32>
    %c = affine.load %C[%i, %j] : memref<{i}x{j}xf32>
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    affine.store %s, %C[%i, %j] : memref<{i}x{j}xf32>
  }} }} }}
  return }}"""


@pytest.mark.parametrize(("k", "gone"), [(4, True), (16, True), (32, True), (40, False), (80, False)])
def test_inner_loop_is_unrolled_fully_up_to_the_threshold(view: View, k: int, gone: bool) -> None:
    found = view(product(200, 200, k))
    assert (id(found.loops[2]) in codegen_model(found).unrolled) == gone


@pytest.mark.parametrize(("k", "factor"), [(40, 5), (48, 6), (56, 4), (64, 4), (80, 5)])
def test_scalar_loop_is_unrolled_by_what_divides_it(view: View, k: int, factor: int) -> None:
    assert codegen_model(view(product(200, 200, k))).kernels[0].unroll == factor


@pytest.mark.parametrize("i", [2, 8])
def test_outer_loop_that_is_unrolled_copies_the_loops_in_it(view: View, i: int) -> None:
    found = codegen(view(product(i, 200, 200)))
    assert found["codegen.max_copies"] == i
    assert found["codegen.kernel_copies"] == i


def test_loop_around_an_unrolled_reduction_is_vectorized(view: View) -> None:
    reduced, kept = codegen(view(product(200, 200, 8))), codegen(view(product(200, 200, 80)))
    assert (reduced["codegen.hot.vector_width"], reduced["codegen.hot.merged"], reduced["codegen.vector_share"]) == (
        8,
        1,
        1,
    )
    assert (kept["codegen.hot.vector_width"], kept["codegen.hot.invariant_stores"], kept["codegen.vector_share"]) == (
        1,
        1,
        0,
    )


def test_what_does_not_change_moves_out_of_the_loop(view: View) -> None:
    text = """func.func @f(%A: memref<500xf32>, %x: f32, %y: f32) {
  affine.for %i = 0 to 500 {
    %p = arith.mulf %x, %y : f32
    %q = arith.divf %p, %y : f32
    affine.store %q, %A[%i] : memref<500xf32>
  }
  return }"""
    assert codegen(view(text))["codegen.hot.size"] == 1


def test_tiny_buffer_lives_in_registers(view: View) -> None:
    text = """func.func @f(%A: memref<500xf32>) {
  affine.for %i = 0 to 500 {
    %m = memref.alloc() : memref<1xf32>
    %a = affine.load %A[%i] : memref<500xf32>
    affine.store %a, %m[0] : memref<1xf32>
    %b = affine.load %m[0] : memref<1xf32>
    affine.store %b, %A[%i] : memref<500xf32>
    memref.dealloc %m : memref<1xf32>
  }
  return }"""
    found = codegen(view(text))
    assert (found["codegen.hot.loads"], found["codegen.hot.stores"], found["codegen.hot.vector_width"]) == (1, 1, 8)


def test_function_that_unrolls_away_is_straight_line_code(view: View) -> None:
    found = codegen(view(product(2, 2, 2)))
    assert found["codegen.remaining"] == 0
    assert found["codegen.hot.copies"] == 1
    assert found["codegen.static_size"] == pytest.approx(8 * 5, abs=12)
