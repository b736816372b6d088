from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize.function_view import FunctionView
from irgauge.featurize.liveness import liveness

View = Callable[[str], FunctionView]


def sum_of(n: int, order: str) -> str:
    """Loads `n` values and adds them up: all loads first ("wide") or each just before its use ("narrow")."""
    loads = [f"%a{i} = affine.load %A[{i}] : memref<64xf32>" for i in range(n)]
    adds = [f"%s{i} = arith.addf {'%a0' if i == 1 else f'%s{i - 1}'}, %a{i} : f32" for i in range(1, n)]
    lines = (
        loads + adds
        if order == "wide"
        else [loads[0], *(x for pair in zip(loads[1:], adds, strict=True) for x in pair)]
    )
    return "func.func @f(%A: memref<64xf32>) -> f32 {\n" + "\n".join(lines) + f"\nreturn %s{n - 1} : f32 }}"


@pytest.mark.parametrize("n", [4, 20])
def test_values_live_at_once(view: View, n: int) -> None:
    assert liveness(view(sum_of(n, "wide")))["liveness.max_live_float"] == n
    assert liveness(view(sum_of(n, "narrow")))["liveness.max_live_float"] == 2
    assert liveness(view(sum_of(n, "wide")))["liveness.over_16"] == max(0, n - 16)


def test_chain_and_parallelism(view: View) -> None:
    found = liveness(view(sum_of(5, "narrow")))
    assert found["liveness.chain_max"] == 5  # one load, four additions
    assert found["liveness.chain_latency_max"] == 5 + 4 * 4
    assert found["liveness.ilp"] == pytest.approx((5 + 4 + 1) / 5)


def test_value_used_in_a_loop_lives_to_its_end(view: View) -> None:
    text = """func.func @f(%A: memref<64xf32>, %x: f32) {{
  affine.for %i = 0 to 64 {{
    {first}
    %a = affine.load %A[%i] : memref<64xf32>
    %b = arith.addf %a, %a : f32
    affine.store %b, %A[%i] : memref<64xf32>
  }}
  return }}"""
    unused = liveness(view(text.format(first="")))
    used = liveness(view(text.format(first="affine.store %x, %A[0] : memref<64xf32>")))
    assert used["liveness.max_live_float"] == unused["liveness.max_live_float"] + 1
    assert used["liveness.hot_live_in"] == 1


def test_why_a_loop_stays_scalar(view: View) -> None:
    def of(body: str) -> dict[str, float]:
        head = "func.func @f(%A: memref<99xf32>, %B: memref<99x99xf32>, %x: f32) {"
        return liveness(view(f"{head} affine.for %i = 1 to 98 {{\n{body} }}\nreturn }}"))

    load, store = "%a = affine.load %A[%i] : memref<99xf32>\n", "affine.store %b, %A[{}] : memref<99xf32>"
    add, exp = "%b = arith.addf %a, %x : f32\n", "%b = math.exp %a : f32\n"
    assert of(load + add + store.format("%i"))["liveness.vectorizable"] == 1
    assert of(load + add + store.format("0"))["liveness.blocked_store"] == 1
    assert of(load + exp + store.format("%i"))["liveness.blocked_call"] == 1
    assert of(load + add + store.format("%i + 1"))["liveness.blocked_recurrence"] == 1
    column = "%a = affine.load %B[%i, 0] : memref<99x99xf32>\n"
    assert of(column + add + store.format("%i"))["liveness.blocked_stride"] == 1
    assert of(load + add + store.format("%i - 1"))["liveness.vectorizable"] == 1  # reads before it is written


def test_neighbouring_stores(view: View) -> None:
    stores = "\n".join(f"affine.store %x, %A[{i}] : memref<64xf32>" for i in (0, 1, 7, 9))
    found = liveness(view(f"func.func @f(%A: memref<64xf32>, %x: f32) {{ {stores}\nreturn }}"))
    assert found["liveness.slp_stores"] == 2
