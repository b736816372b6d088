"""Trip counts that depend on a value of a known range: the middle of the range, by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize.function_view import UNKNOWN_TRIP, FunctionView

View = Callable[[str], FunctionView]

HEAD = """func.func @f(%A: memref<9999xf32>, %B: memref<99xi32>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c2897 = arith.constant 2897 : index
"""
GUESSES = {
    "start below 4, plus 1": (
        "%r = arith.remui %n, %c4 : index\n%s = arith.addi %r, %c1 : index",
        "%s",
        "%c2897",
        2894,
    ),
    "end below 8": ("%e = arith.remsi %n, %c8 : index", "%c0", "%e", 4),  # 0 … 7: 3.5, rounded to even
    "end under a mask": ("%e = arith.andi %n, %c7 : index", "%c0", "%e", 4),
    "start anywhere below the end": ("", "%n", "%c2897", 2897 / 2),
    "end anywhere": ("", "%c0", "%n", UNKNOWN_TRIP),
    "both anywhere": ("%e = arith.addi %n, %n : index", "%n", "%e", UNKNOWN_TRIP),
    "loaded end": (
        "%v = memref.load %B[%c0] : memref<99xi32>\n%e = arith.index_cast %v : i32 to index",
        "%c0",
        "%e",
        UNKNOWN_TRIP,
    ),
    "smaller of two, less one": (
        "%m = arith.minui %n, %c8 : index\n%e = arith.subi %m, %c1 : index",
        "%c0",
        "%e",
        7,
    ),
    "a quotient": ("%r = arith.remui %n, %c2897 : index\n%e = arith.divui %r, %c8 : index", "%c0", "%e", 181),
    "the rest of an unrolled loop": ("%e = arith.remui %n, %c8 : index\n%s = arith.subi %n, %e : index", "%s", "%n", 4),
}


@pytest.mark.parametrize("name", GUESSES)
def test_the_middle_of_what_is_known(view: View, name: str) -> None:
    made, start, end, trip = GUESSES[name]
    store = "memref.store %x, %A[%i] : memref<9999xf32>"
    found = view(f"{HEAD}{made}\nscf.for %i = {start} to {end} step %c1 {{ {store} }}\nreturn }}")
    loop = found.loops[0]
    assert loop.trip == trip
    assert loop.execs == trip
    assert loop.unknown
    assert not loop.constant_trip


def test_an_unrolled_loop_of_unknown_length_runs_as_long_as_before(view: View) -> None:
    # 16 iterations are taken: 16 less the rest of 4 (3.5, rounded to even), 12 in steps of 8 are 2 times 8
    found = view(f"""{HEAD}
  %r = arith.remui %n, %c8 : index
  %m = arith.subi %n, %r : index
  scf.for %i = %c0 to %m step %c8 {{ memref.store %x, %A[%i] : memref<9999xf32> }}
  scf.for %i = %m to %n step %c1 {{ memref.store %x, %A[%i] : memref<9999xf32> }}
  return }}""")
    assert [loop.trip for loop in found.loops] == [2, 4]
    assert all(loop.unknown for loop in found.loops)


def test_a_guess_follows_the_loops_around_it(view: View) -> None:
    # for i = 0 … 6: from (0 … 3, 2 in the middle) to i + 8, so i + 6 iterations: 9 on average
    found = view(f"""{HEAD}
  %r = arith.remui %n, %c4 : index
  scf.for %i = %c0 to %c7 step %c1 {{
    %e = arith.addi %i, %c8 : index
    scf.for %j = %r to %e step %c1 {{ memref.store %x, %A[%j] : memref<9999xf32> }}
  }}
  return }}""")
    assert found.loops[1].execs == 7 * 9
    assert found.loops[1].unknown
