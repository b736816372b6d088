"""A function that calls others counts what it calls, times how often the call runs."""

from __future__ import annotations

import math

import pytest

from irgauge.featurize import features_of, main_features, read
from irgauge.featurize.calls import MOST
from irgauge.featurize.featurizer import function_features, functions_of

LEAF = """func.func private @leaf(%A: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %a = affine.load %A[%i] : memref<8xf32>
    %b = arith.mulf %a, %a : f32
    affine.store %b, %A[%i] : memref<8xf32>
  }
  return
}
"""
COUNTED = ("flops", "loads", "stores", "bytes", "loop_iterations", "executions")


def work(features: dict[str, float]) -> dict[str, float]:
    return {n: features[f"work.{n}"] for n in COUNTED}


CALLS = {
    "custom": "func.call @leaf(%A) : (memref<8xf32>) -> ()",
    "bare": "call @leaf(%A) : (memref<8xf32>) -> ()",
    "generic": '"func.call"(%A) <{callee = @leaf}> : (memref<8xf32>) -> ()',
    "quoted": 'func.call @"leaf"(%A) : (memref<8xf32>) -> ()',
}


@pytest.mark.parametrize("form", CALLS)
def test_a_call_in_loops_counts_as_often_as_it_runs(form: str) -> None:
    found = features_of(f"""{LEAF}func.func @main(%A: memref<8xf32>) {{
  affine.for %i = 0 to 5 {{ affine.for %j = 0 to 3 {{
    {CALLS[form]}
  }} }}
  return
}}""")
    leaf, main = work(found["leaf"]), work(found["main"])
    assert leaf == {"flops": 8, "loads": 8, "stores": 8, "bytes": 64, "loop_iterations": 8, "executions": 1 + 3 * 8}
    assert main == {
        **{n: 15 * leaf[n] for n in ("flops", "loads", "stores", "bytes")},
        "loop_iterations": 5 + 15 + 15 * 8,
        "executions": 1 + 5 + 15 + 15 * 25,  # two loops, the calls, what they do
    }
    assert sum(v for k, v in found["main"].items() if k.startswith("work.share/")) == pytest.approx(1)
    assert found["main"]["work.calls_unknown"] == 0
    assert found["main"]["work.flops_log"] == math.log1p(120)


def test_order_of_functions_does_not_matter() -> None:
    main = f"func.func @main(%A: memref<8xf32>) {{ {CALLS['bare']} return }}\n"
    assert features_of(LEAF + main)["main"] == features_of(main + LEAF)["main"]


def test_main_of_a_graph_counts_its_private_functions() -> None:
    text = """module {
  func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = call @square(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = call @square(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
  func.func private @square(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}"""
    assert main_features(text)["work.flops"] == 2 * 2 * 4 * 4 * 4


@pytest.mark.parametrize(
    "call",
    [
        'stablehlo.composite "my.op" %x {decomposition = @impl, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>',
        '"stablehlo.composite"(%x) <{name = "my.op", decomposition = @impl, version = 1 : i32}> : '
        "(tensor<4xf32>) -> tensor<4xf32>",
    ],
)
def test_a_composite_counts_its_decomposition(call: str) -> None:
    found = features_of(f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = {call}
  return %0 : tensor<4xf32> }}
func.func private @impl(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32> }}""")
    assert found["main"]["work.flops"] == 4


def test_triton_and_llvm_calls() -> None:
    triton = features_of("""tt.func @f(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = tt.call @g(%x) : (tensor<64xf32>) -> tensor<64xf32>
  tt.return %0 : tensor<64xf32> }
tt.func private @g(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = arith.addf %x, %x : tensor<64xf32>
  tt.return %0 : tensor<64xf32> }""")
    assert triton["f"]["work.flops"] == 64
    llvm = features_of("""llvm.func @f(%x: f32) -> f32 {
  %0 = llvm.call @g(%x) : (f32) -> f32
  llvm.return %0 : f32 }
llvm.func @g(%x: f32) -> f32 {
  %0 = llvm.fadd %x, %x : f32
  llvm.return %0 : f32 }""")
    assert llvm["f"]["work.flops"] == 1


def test_a_callee_that_is_not_there_is_counted_as_unknown() -> None:
    found = features_of("""func.func private @outside(f32) -> f32
func.func @main(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%v = %x) -> f32 {
    %0 = func.call @outside(%v) : (f32) -> f32
    scf.yield %0 : f32
  }
  return %r : f32
}""")
    assert found["main"]["work.calls_unknown"] == 6
    assert found["main"]["work.share/call"] == 6 / 7


def test_a_cycle_counts_once_for_each_of_its_functions() -> None:
    found = features_of("""func.func @even(%x: f32) -> f32 {
  %a = arith.addf %x, %x : f32
  %0 = call @odd(%a) : (f32) -> f32
  %1 = call @leaf(%0) : (f32) -> f32
  return %1 : f32 }
func.func @odd(%x: f32) -> f32 {
  %a = arith.mulf %x, %x : f32
  %b = arith.mulf %a, %x : f32
  %0 = call @even(%b) : (f32) -> f32
  return %0 : f32 }
func.func @leaf(%x: f32) -> f32 {
  %a = arith.divf %x, %x : f32
  return %a : f32 }
func.func @itself(%x: f32) -> f32 {
  %a = arith.addf %x, %x : f32
  %0 = call @itself(%a) : (f32) -> f32
  %1 = call @even(%0) : (f32) -> f32
  return %1 : f32 }""")
    assert found["even"]["work.flops"] == found["odd"]["work.flops"] == 1 + 2 + 1
    assert found["itself"]["work.flops"] == 1 + 4
    assert found["even"]["work.unknown_trip"] == 1  # how deep it goes is not in the text
    assert found["leaf"]["work.unknown_trip"] == 0


def test_names_are_looked_up_in_the_nearest_module() -> None:
    found = features_of("""module {
  func.func @f(%x: f32) -> f32 { %0 = arith.addf %x, %x : f32
    return %0 : f32 }
  module @inner {
    func.func @g(%x: f32) -> f32 { %0 = call @f(%x) : (f32) -> f32
      return %0 : f32 }
    func.func @f(%x: f32) -> f32 { %0 = arith.addf %x, %x : f32
      %1 = arith.addf %0, %x : f32
      %2 = arith.addf %1, %x : f32
      return %2 : f32 }
  }
  func.func @h(%x: f32) -> f32 { %0 = "my.call"(%x) {callee = @inner::@f} : (f32) -> f32
    return %0 : f32 }
}""")
    assert found["g"]["work.flops"] == 3
    assert found["h"]["work.flops"] == 3


def test_a_long_chain_of_calls_needs_no_recursion() -> None:
    n = 2000
    text = "\n".join(
        f"func.func @f{i}(%x: f32) -> f32 {{ %0 = call @f{i + 1}(%x) : (f32) -> f32\nreturn %0 : f32 }}"
        for i in range(n)
    )
    text += f"\nfunc.func @f{n}(%x: f32) -> f32 {{ %0 = arith.addf %x, %x : f32\nreturn %0 : f32 }}"
    program = read(text)
    features = function_features(program, functions_of(program)[0][1])
    assert features["work.flops"] == 1
    assert features["work.executions"] == n + 1


def test_totals_stay_finite() -> None:
    text = "\n".join(
        f"func.func @f{i}(%x: f32) -> f32 {{ %0 = call @f{i + 1}(%x) : (f32) -> f32\n"
        f"%1 = call @f{i + 1}(%0) : (f32) -> f32\nreturn %1 : f32 }}"
        for i in range(100)
    )
    text += "\nfunc.func @f100(%x: f32) -> f32 { %0 = arith.addf %x, %x : f32\nreturn %0 : f32 }"
    found = features_of(text)
    assert found["f80"]["work.flops"] == 2**20
    assert found["f0"]["work.flops"] == MOST
    assert all(math.isfinite(v) for v in found["f0"].values())
