from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgauge.featurize import features_of, read
from irgauge.featurize.featurizer import functions_of
from irgauge.featurize.function_view import UNKNOWN_TRIP, FunctionView

View = Callable[[str], FunctionView]


def nest(bounds: list[tuple[str, str, int]], body: str = "") -> str:
    """`affine.for` loops %i0, %i1, … with (lower, upper, step) as written."""
    text = "func.func @kernel(%A: memref<4096xf32>, %x: f32, %n: index) {\n"
    for k, (lower, upper, step) in enumerate(bounds):
        text += f"affine.for %i{k} = {lower} to {upper} step {step} {{\n"
    text += (body or "affine.store %x, %A[0] : memref<4096xf32>") + "\n" + "}" * len(bounds) + "\nreturn\n}"
    return text


@st.composite
def nests(draw: st.DrawFn) -> tuple[list[tuple[str, str, int]], list[Callable[..., range]]]:
    """Loops whose bounds depend on outer ones, with the same ranges as Python sees them."""
    texts: list[tuple[str, str, int]] = []
    ranges: list[Callable[..., range]] = []
    for k in range(draw(st.integers(1, 4))):
        step = draw(st.integers(1, 3))
        n = draw(st.integers(1, 12))
        if k == 0 or draw(st.booleans()):
            texts.append(("0", str(n), step))
            ranges.append(lambda *ivs, n=n, step=step: range(0, n, step))
            continue
        o = draw(st.integers(0, k - 1))
        kind = draw(st.sampled_from(["below", "above", "tile"]))
        if kind == "below":
            texts.append(("0", f"affine_map<(d0) -> (d0)>(%i{o})", step))
            ranges.append(lambda *ivs, o=o, step=step: range(0, ivs[o], step))
        elif kind == "above":
            texts.append((f"affine_map<(d0) -> (d0 + 1)>(%i{o})", str(n), step))
            ranges.append(lambda *ivs, o=o, n=n, step=step: range(ivs[o] + 1, n, step))
        else:
            texts.append((f"affine_map<(d0) -> (d0)>(%i{o})", f"min affine_map<(d0) -> (d0 + 4, {n})>(%i{o})", step))
            ranges.append(lambda *ivs, o=o, n=n, step=step: range(ivs[o], min(ivs[o] + 4, n), step))
    return texts, ranges


def runs(ranges: list[Callable[..., range]]) -> list[int]:
    """How often each body runs, by running the loops."""
    counts = [0] * len(ranges)

    def go(k: int, ivs: tuple[int, ...]) -> None:
        if k < len(ranges):
            for iv in ranges[k](*ivs):
                counts[k] += 1
                go(k + 1, (*ivs, iv))

    go(0, ())
    return counts


@settings(max_examples=150, deadline=None)
@given(case=nests())
def test_bodies_run_as_often_as_the_loops_say(
    case: tuple[list[tuple[str, str, int]], list[Callable[..., range]]],
) -> None:
    texts, ranges = case
    program = read(nest(texts))
    found = FunctionView(program, functions_of(program)[0][1])
    expected = runs(ranges)
    if len(texts) < 4:  # few enough outer iterations to count each
        assert [loop.execs for loop in found.loops] == pytest.approx(expected, abs=1e-6)
    else:
        assert [loop.execs for loop in found.loops[:3]] == pytest.approx(expected[:3], abs=1e-6)


def test_large_triangle_is_sampled_closely(view: View) -> None:
    n = 4000
    found = view(
        nest([("0", str(n), 1), ("0", "affine_map<(d0) -> (d0)>(%i0)", 1), ("0", "affine_map<(d0) -> (d0)>(%i1)", 1)])
    )
    assert found.loops[1].execs == pytest.approx(n * (n - 1) / 2, rel=1e-3)
    assert found.loops[2].execs == pytest.approx(n * (n - 1) * (n - 2) / 6, rel=1e-2)
    assert found.loops[2].max_trip == pytest.approx(n, abs=2)


def test_same_outer_loop_in_two_bounds_is_not_averaged_apart(view: View) -> None:
    # the body runs sum of i * i, not (sum of i) * (mean of i)
    triangle = "affine_map<(d0) -> (d0)>(%i0)"
    found = view(nest([("0", "10", 1), ("0", triangle, 1), ("0", triangle, 1)]))
    assert found.loops[2].execs == pytest.approx(sum(i * i for i in range(10)))


def test_unknown_bound_counts_as_the_documented_default(view: View) -> None:
    found = view(nest([("0", "%n", 1)]))
    assert found.loops[0].unknown
    assert found.loops[0].execs == UNKNOWN_TRIP


def test_unknown_start_with_known_length_is_known(view: View) -> None:
    found = view(nest([("affine_map<()[s0] -> (s0)>()[%n]", "affine_map<()[s0] -> (s0 + 7)>()[%n]", 1)]))
    assert not found.loops[0].unknown
    assert found.loops[0].execs == 7


def test_scf_bounds_are_followed_through_arithmetic(view: View) -> None:
    found = view("""func.func @kernel(%A: memref<64xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  %end = arith.muli %c10, %c2 : index
  %last = affine.min affine_map<()[s0] -> (s0 + 4, 100)>()[%end]
  scf.for %i = %c0 to %last step %c2 {
    %j = arith.addi %i, %c2 : index
    memref.store %x, %A[%j] : memref<64xf32>
  }
  return
}""")
    assert found.loops[0].trip == 12
    assert found.accesses[0].address.const == 2
    assert found.accesses[0].stride == found.accesses[0].stride_in(found.loops[0]) == 2


@pytest.mark.parametrize(
    ("condition", "share"),
    [("d0 - d1 >= 0", 55 / 100), ("d0 - d1 == 0", 0.1), ("d0 mod 2 == 0", 0.5), ("d0 - 7 >= 0, d1 - 5 >= 0", 0.15)],
)
def test_share_of_iterations_that_take_a_branch(view: View, condition: str, share: float) -> None:
    body = f"affine.if affine_set<(d0, d1) : ({condition})>(%i0, %i1) {{ affine.store %x, %A[1] : memref<4096xf32> }}"
    found = view(nest([("0", "10", 1), ("0", "10", 1)], body))
    assert found.accesses[0].weight == pytest.approx(100 * share)
    assert found.unknown_branches == 0


def test_comparison_of_loop_variables_decides_scf_if(view: View) -> None:
    found = view("""func.func @kernel(%A: memref<8xf32>, %x: f32, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %less = arith.cmpi slt, %i, %c3 : index
    scf.if %less { memref.store %x, %A[%i] : memref<8xf32> }
    scf.if %p { memref.store %x, %A[%c0] : memref<8xf32> }
  }
  return
}""")
    assert [a.weight for a in found.accesses] == [3, 4]
    assert found.unknown_branches == 1


def test_view_of_a_view_leads_to_the_memref(view: View) -> None:
    found = view("""func.func @kernel(%A: memref<16x32xf32>, %x: f32) {
  %c1 = arith.constant 1 : index
  %v = memref.subview %A[2, 4] [8, 16] [1, 2] : memref<16x32xf32> to memref<8x16xf32, strided<[32, 2], offset: 68>>
  %row = memref.subview %v[3, 0] [1, 16] [1, 1]
    : memref<8x16xf32, strided<[32, 2], offset: 68>> to memref<16xf32, strided<[2], offset: 164>>
  memref.store %x, %row[%c1] : memref<16xf32, strided<[2], offset: 164>>
  return
}""")
    access = found.accesses[0]
    assert access.root == found.arguments[0]
    assert access.address.const == (2 + 3) * 32 + 4 + 2 * 1


def test_linalg_generic_is_the_nest_that_its_maps_say(view: View) -> None:
    found = view("""func.func @kernel(%A: memref<4x8xf32>, %B: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>],
                  iterator_types = ["reduction", "parallel"]} ins(%A : memref<4x8xf32>) outs(%B : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return
}""")
    assert [(loop.trip, loop.reduction) for loop in found.loops] == [(4, True), (8, False)]
    assert [(a.is_store, a.weight) for a in found.accesses] == [(False, 32), (False, 32), (True, 32)]
    assert [n.execs for n in found.nodes if n.name == "arith.addf"] == [32]


@pytest.mark.parametrize("extent", [0, 1])
def test_loops_that_never_or_once_run(view: View, extent: int) -> None:
    found = view(nest([("0", str(extent), 1), ("0", "5", 1)]))
    assert [loop.execs for loop in found.loops] == [extent, 5 * extent]


def test_two_thousand_nested_loops_need_no_recursion(view: View) -> None:
    depth = 2000
    found = view(nest([("0", "1", 1)] * depth))
    assert len(found.loops) == depth
    assert found.loops[-1].depth == depth


def test_access_to_a_memref_of_unknown_rank_is_counted_and_finite() -> None:
    text = """func.func @f(%p: !tt.ptr<f32>, %i: index) {
  %m = "vendor.to_memref"(%p) : (!tt.ptr<f32>) -> memref<*xf32>
  %v = "memref.load"(%m, %i) : (memref<*xf32>, index) -> f32
  return }"""
    features = features_of(text)["f"]
    assert features["access.count"] == features["tensors.unranked"] == 1
    assert all(math.isfinite(v) for v in features.values())


def test_body_of_a_generic_without_a_readable_nest_is_counted_as_written(view: View) -> None:
    found = view("""func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %s = arith.mulf %x, %x : f32
    linalg.yield %s : f32
  }
  return
}""")
    assert [node.name for node in found.nodes].count("arith.mulf") == 1
    assert not found.loops
