from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize.function_view import FunctionView
from irgauge.featurize.loops import loops

View = Callable[[str], FunctionView]
HEAD = "func.func @kernel(%A: memref<64x64xf32>, %x: f32, %n: index) {\n"
STORE = "affine.store %x, %A[%i, %j] : memref<64x64xf32>"


def test_levels_are_counted_outwards_from_the_hottest_loop(view: View) -> None:
    found = loops(
        view(
            HEAD
            + f"""
  affine.for %i = 0 to 3 {{ affine.for %j = 0 to 5 {{ {STORE} }} }}
  affine.for %i = 0 to 40 step 2 {{ affine.for %j = 0 to 64 {{ {STORE} }} }}
  return }}"""
        )
    )
    assert (found["loops.hot0.trip"], found["loops.hot1.trip"], found["loops.hot2.trip"]) == (64, 20, 0)
    assert (found["loops.hot0.step"], found["loops.hot1.step"]) == (1, 2)
    assert found["loops.hot1.rest8"] == 4
    assert found["loops.top"] == 2
    assert found["loops.innermost"] == 2
    assert found["loops.hot_share"] == pytest.approx(1280 / 1295, rel=0.05)


def test_perfect_and_imperfect_nests(view: View) -> None:
    perfect = loops(view(HEAD + f"affine.for %i = 0 to 3 {{ affine.for %j = 0 to 5 {{ {STORE} }} }}\nreturn }}"))
    extra = "affine.store %x, %A[%i, 0] : memref<64x64xf32>"
    imperfect = loops(
        view(HEAD + f"affine.for %i = 0 to 3 {{ affine.for %j = 0 to 5 {{ {STORE} }}\n{extra} }}\nreturn }}")
    )
    assert (perfect["loops.perfect"], perfect["loops.imperfect"]) == (1, 0)
    assert (imperfect["loops.perfect"], imperfect["loops.imperfect"]) == (0, 1)


def test_parallel_loop_counts_each_dimension(view: View) -> None:
    found = loops(view(HEAD + f"affine.parallel (%i, %j) = (0, 1) to (8, 5) step (2, 1) {{ {STORE} }}\nreturn }}"))
    assert found["loops.count"] == found["loops.parallel"] == 2
    assert found["loops.max_depth"] == 2
    assert found["loops.volume_max"] == 4 * 4


def test_while_loop_is_unknown_and_finite(view: View) -> None:
    found = loops(
        view(
            HEAD
            + """
  %r = scf.while (%k = %n) : (index) -> index {
    %c = arith.cmpi slt, %k, %n : index
    scf.condition(%c) %k : index
  } do {
  ^bb0(%k: index):
    scf.yield %k : index
  }
  return }"""
        )
    )
    assert found["loops.while"] == found["loops.unknown"] == found["loops.carried"] == 1
    assert found["loops.max_trip"] == 16


def test_loop_of_branches_without_a_counter_is_unknown(view: View) -> None:
    found = loops(
        view("""func.func @kernel(%c: i1, %A: memref<8xf32>, %x: f32, %i: index) {
  cf.br ^head
^head:
  memref.store %x, %A[%i] : memref<8xf32>
  cf.cond_br %c, ^head, ^end
^end:
  return }""")
    )
    assert found["loops.back_edges"] == found["loops.count"] == found["loops.unknown"] == 1
    assert found["loops.volume_max"] == 16
    assert found["loops.branches"] == 0


def test_cycle_with_two_entries_has_back_edges_and_no_loops(view: View) -> None:
    found = view("""func.func @kernel(%c: i1, %A: memref<8xf32>, %x: f32, %i: index) {
  cf.cond_br %c, ^a, ^b
^a:
  memref.store %x, %A[%i] : memref<8xf32>
  cf.br ^b
^b:
  cf.cond_br %c, ^a, ^end
^end:
  return }""")
    assert loops(found)["loops.back_edges"] == 1
    assert loops(found)["loops.count"] == 0
    assert found.accesses[0].weight == 16


def test_function_without_loops(view: View) -> None:
    found = loops(view(HEAD + "return }"))
    assert found["loops.perfect"] == 1
    assert found["loops.count"] == found["loops.hot0.trip"] == 0
