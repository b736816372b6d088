"""Trip counts that a test of a counter decides, each against the loop run in Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgauge.featurize.function_view import FunctionView

from .conftest import view_of

View = Callable[[str], FunctionView]
HOLDS: dict[str, Callable[[int, int], bool]] = {
    "slt": int.__lt__, "sle": int.__le__, "sgt": int.__gt__, "sge": int.__ge__, "ne": int.__ne__,
}  # fmt: skip


def loop(
    start: int, step: int, relation: str, limit: int, *, stays: bool, swapped: bool, ahead: bool, bottom: bool
) -> str:
    """One loop; `ahead`: the next value is tested; `bottom`: after the body; `swapped`: the limit comes first."""
    tested = "%n" if ahead else "%i"
    test = f"%n = arith.addi %i, %step : index\n%t = arith.cmpi {relation}, " + (
        f"%limit, {tested} : index" if swapped else f"{tested}, %limit : index"
    )
    store = "memref.store %x, %A[%c0] : memref<8xf32>"
    go = "^head(%n : index)" if bottom else "^body"
    branch = f"cf.cond_br %t, {go}, ^end" if stays else f"cf.cond_br %t, ^end, {go}"
    if bottom:
        body = f"^head(%i: index):\n{store}\n{test}\n{branch}"
    else:
        body = f"^head(%i: index):\n{test}\n{branch}\n^body:\n{store}\ncf.br ^head(%n : index)"
    return f"""func.func @f(%A: memref<8xf32>, %x: f32) {{
  %c0 = arith.constant 0 : index
  %start = arith.constant {start} : index
  %step = arith.constant {step} : index
  %limit = arith.constant {limit} : index
  cf.br ^head(%start : index)
{body}
^end:
  return
}}"""


@settings(max_examples=300, deadline=None)
@given(
    start=st.integers(-5, 12),
    step=st.sampled_from([1, 2, 3, -1, -2, -3]),
    relation=st.sampled_from(sorted(HOLDS)),
    limit=st.integers(-5, 12),
    stays=st.booleans(),
    swapped=st.booleans(),
    ahead=st.booleans(),
    bottom=st.booleans(),
)
def test_known_trip_counts_are_those_of_the_loop(
    start: int, step: int, relation: str, limit: int, stays: bool, swapped: bool, ahead: bool, bottom: bool
) -> None:
    found = view_of(loop(start, step, relation, limit, stays=stays, swapped=swapped, ahead=ahead, bottom=bottom)).loops[
        0
    ]
    runs = 0
    counter = start
    while runs < 100:
        tested = counter + step if ahead else counter
        goes_on = HOLDS[relation](limit, tested) if swapped else HOLDS[relation](tested, limit)
        if bottom:
            runs += 1
        if goes_on is not stays:
            break
        runs += not bottom
        counter += step
    upwards = relation.startswith("sl") is (
        stays is not swapped
    )  # the counter has to grow for the test to end the loop
    if relation == "ne":
        if not stays:  # goes on while equal
            assert found.unknown
        elif runs < 100 and not found.unknown:
            assert found.trip == runs
    elif upwards is (step > 0):
        assert not found.unknown
        assert found.trip == runs
    else:
        assert found.unknown


COUNTED = [("slt", True), ("sle", True), ("sge", False), ("sgt", False)]


@pytest.mark.parametrize(("relation", "stays"), COUNTED)
@pytest.mark.parametrize("bottom", [False, True])
def test_the_usual_tests_are_known(relation: str, stays: bool, bottom: bool) -> None:
    found = view_of(loop(0, 2, relation, 9, stays=stays, swapped=False, ahead=bottom, bottom=bottom)).loops[0]
    assert (found.trip, found.unknown, found.constant_trip) == (5, False, True)


def scan(condition: str) -> str:
    return f"""func.func @f(%A: memref<99xi32>, %x: i32) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c90 = arith.constant 90 : index
  %r = scf.while (%k = %c0) : (index) -> index {{
    %a = arith.cmpi ult, %k, %c90 : index
    %b = arith.cmpi ule, %k, %c10 : index
    %v = memref.load %A[%k] : memref<99xi32>
    %d = arith.cmpi ne, %v, %x : i32
    {condition}
    scf.condition(%c) %k : index
  }} do {{
  ^bb0(%k: index):
    %next = arith.addi %k, %c1 : index
    scf.yield %next : index
  }}
  return
}}"""


@pytest.mark.parametrize(
    ("condition", "trip", "unknown"),
    [
        ("%c = arith.andi %a, %b : i1", 11, False),  # both tests are on the counter: the smaller bound
        ("%c = arith.andi %b, %d : i1", 5.5, True),  # half of the 11 that the bound allows
        ("%c = arith.andi %a, %d : i1", 16, True),  # half of 90 is more than 16
        ("%c = arith.ori %a, %d : i1", 16, True),  # no bound at all
    ],
)
def test_conditions_that_must_all_hold(view: View, condition: str, trip: float, unknown: bool) -> None:
    found = view(scan(condition)).loops[0]
    assert (found.trip, found.unknown) == (trip, unknown)


def test_counter_of_a_while_loop_is_its_variable(view: View) -> None:
    found = view(scan("%c = arith.andi %a, %b : i1"))
    assert found.accesses[0].stride == 1
    assert found.loops[0].carried == []


def test_a_value_carried_by_a_while_loop_stays_in_the_loop(view: View) -> None:
    found = view("""func.func @f(%A: memref<8xf32>, %x: f32, %z: f32) {
  %c0 = arith.constant 0 : index
  %r = scf.while (%v = %x) : (f32) -> f32 {
    %g = arith.cmpf ogt, %v, %z : f32
    scf.condition(%g) %v : f32
  } do {
  ^bb0(%v: f32):
    %w = arith.mulf %v, %x : f32
    memref.store %w, %A[%c0] : memref<8xf32>
    scf.yield %w : f32
  }
  return
}""")
    product = next(node for node in found.nodes if node.name == "arith.mulf")
    assert product.home is found.loops[0]
