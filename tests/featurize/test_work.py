from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from irgauge.featurize.function_view import FunctionView
from irgauge.featurize.work import work

View = Callable[[str], FunctionView]


def test_shares_add_up_and_logs_agree(view: View) -> None:
    found = work(
        view("""func.func @kernel(%A: memref<32xf64>) {
  affine.for %i = 0 to 32 {
    %a = affine.load %A[%i] : memref<32xf64>
    %b = math.sqrt %a : f64
    %e = math.exp %b : f64
    %c = arith.divf %e, %a : f64
    affine.store %c, %A[%i] : memref<32xf64>
  }
  return }""")
    )
    assert sum(v for k, v in found.items() if k.startswith("work.share/")) == pytest.approx(1)
    assert found["work.divs"] == 64
    assert found["work.math_calls"] == 32
    assert found["work.f64_share"] == 1
    for name, value in found.items():
        if name + "_log" in found:
            assert found[name + "_log"] == math.log1p(value)


def test_lanes_count_as_element_operations(view: View) -> None:
    found = work(
        view("""func.func @kernel(%a: vector<8xf32>, %b: f32) -> vector<8xf32> {
  %c = vector.broadcast %b : f32 to vector<8xf32>
  %d = vector.fma %a, %c, %a : vector<8xf32>
  %e = math.exp %d : vector<8xf32>
  return %e : vector<8xf32> }""")
    )
    assert (found["work.float_ops"], found["work.flops"], found["work.math_calls"]) == (16, 24, 8)
    assert found["work.vectorizable_share"] == 1


def test_empty_function_has_no_work(view: View) -> None:
    found = work(view("func.func @kernel() { return }"))
    assert {v for k, v in found.items()} == {0.0}


def test_bound_by_a_carried_sum(view: View) -> None:
    body = "%a = affine.load %A[%i] : memref<512xf32>\n%t = arith.addf %s, %a {} : f32\naffine.yield %t : f32"
    text = f"""func.func @kernel(%A: memref<512xf32>, %z: f32) -> f32 {{
  %r = affine.for %i = 0 to 512 iter_args(%s = %z) -> (f32) {{ {body} }}
  return %r : f32 }}"""
    serial = work(view(text.replace("{} ", "")))
    free = work(view(text.replace("{} ", "fastmath<reassoc> ")))
    assert serial["work.latency_bound_share"] == pytest.approx(1, abs=0.01)
    assert serial["work.cycles"] == pytest.approx(512 * 4, rel=0.05)
    assert free["work.vectorizable_share"] == 1
    assert free["work.cycles"] < serial["work.cycles"] / 4
