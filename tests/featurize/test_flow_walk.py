"""Loops made of branches are the loops that they were lowered from, by the real lowering; and those no `scf` has."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest

from irgauge.featurize import features_of
from irgauge.featurize.function_view import UNKNOWN_TRIP, FunctionView

View = Callable[[str], FunctionView]

SIGNATURE = "%A: memref<64x64xf32>, %B: memref<64x64xf32>, %C: memref<64x64xf32>, %x: f32, %n: index"
CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c30 = arith.constant 30 : index
  %c64 = arith.constant 64 : index
  %z = arith.constant 0.0 : f32
"""
M = "memref<64x64xf32>"
PROGRAMS = {
    "matmul": f"""scf.for %i = %c0 to %c64 step %c1 {{ scf.for %j = %c0 to %c64 step %c1 {{
  scf.for %k = %c0 to %c64 step %c1 {{
    %a = memref.load %A[%i, %k] : {M}
    %b = memref.load %B[%k, %j] : {M}
    %c = memref.load %C[%i, %j] : {M}
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    memref.store %s, %C[%i, %j] : {M} }} }} }}""",
    "triangle": f"""scf.for %i = %c0 to %c64 step %c1 {{ %e = arith.addi %i, %c1 : index
  scf.for %j = %c0 to %e step %c2 {{
    %a = memref.load %A[%i, %j] : {M}
    memref.store %a, %B[%j, %i] : {M} }} }}""",
    "tiles": f"""scf.for %i = %c0 to %c64 step %c30 {{ %f = arith.addi %i, %c30 : index
  %e = arith.minsi %f, %c64 : index
  scf.for %j = %i to %e step %c1 {{ scf.for %k = %c0 to %c8 step %c1 {{
    %a = memref.load %A[%j, %k] : {M}
    memref.store %a, %B[%j, %k] : {M} }} }} }}""",
    "sums": f"""scf.for %i = %c0 to %c64 step %c1 {{
  %r:2 = scf.for %j = %c0 to %c64 step %c1 iter_args(%s = %z, %p = %x) -> (f32, f32) {{
    %a = memref.load %A[%i, %j] : {M}
    %m = arith.mulf %a, %x : f32
    %t = arith.addf %s, %m : f32
    %q = arith.maximumf %p, %m : f32
    scf.yield %t, %q : f32, f32 }}
  %u = arith.addf %r#0, %r#1 : f32
  memref.store %u, %B[%c0, %i] : {M} }}""",
    "argument as bound": f"""scf.for %i = %c0 to %n step %c1 {{ scf.for %j = %c0 to %c30 step %c1 {{
    %a = memref.load %A[%i, %j] : {M}
    memref.store %a, %B[%i, %j] : {M} }} }}""",
    "conditions": f"""scf.for %i = %c0 to %c64 step %c1 {{
  %a = memref.load %A[%c0, %i] : {M}
  %l = arith.cmpi slt, %i, %c8 : index
  scf.if %l {{ memref.store %x, %B[%c0, %i] : {M} }}
  %g = arith.cmpf ogt, %a, %x : f32
  %v = scf.if %g -> f32 {{ %m = arith.mulf %a, %a : f32
    scf.yield %m : f32 }} else {{ %w = arith.addf %a, %x : f32
    scf.yield %w : f32 }}
  memref.store %v, %C[%c0, %i] : {M} }}""",
    "loop in a condition": f"""scf.for %i = %c0 to %c64 step %c1 {{
  %l = arith.cmpi slt, %i, %c8 : index
  scf.if %l {{ scf.for %j = %c0 to %c30 step %c1 {{ memref.store %x, %B[%i, %j] : {M} }} }} }}""",
    "while": f"""%r = scf.while (%k = %c0) : (index) -> index {{
    %g = arith.cmpi ult, %k, %c30 : index
    scf.condition(%g) %k : index
  }} do {{
  ^bb0(%k: index):
    memref.store %x, %A[%c0, %k] : {M}
    %w = arith.addi %k, %c2 : index
    scf.yield %w : index }}""",
    "while on data": f"""%r = scf.while (%v = %x) : (f32) -> f32 {{
    %g = arith.cmpf ogt, %v, %z : f32
    scf.condition(%g) %v : f32
  }} do {{
  ^bb0(%v: f32):
    %w = arith.subf %v, %x : f32
    memref.store %w, %A[%c0, %c0] : {M}
    scf.yield %w : f32 }}""",
    "two reasons to stop": f"""scf.for %i = %c0 to %c64 step %c1 {{
  %r = scf.while (%k = %i) : (index) -> index {{
    %a = memref.load %A[%c0, %k] : {M}
    %g = arith.cmpi ult, %k, %c64 : index
    %h = arith.cmpf ogt, %a, %x : f32
    %c = arith.andi %g, %h : i1
    scf.condition(%c) %k : index
  }} do {{
  ^bb0(%k: index):
    %w = arith.addi %k, %c2 : index
    scf.yield %w : index }}
  memref.store %x, %B[%r, %i] : {M} }}""",
}
# What counts operations as written differs, and so do registers: bounds are operands of `scf.for` only.
OTHER = (
    "loops.back_edges", "loops.while", "loops.hot0.ops", "invariants", "registers", "chain", "codegen.hot.live",
)  # fmt: skip
GROUPS = ("loops.", "work.", "access.", "codegen.")


@pytest.mark.parametrize("tidied", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lowering_to_branches_changes_no_feature(name: str, tidied: bool, mlir_opt: Callable[..., str]) -> None:
    # with canonicalization, loops are entered by the branches of others
    more = ["--canonicalize"] if tidied and name != "two reasons to stop" else []
    text = mlir_opt(f"func.func @f({SIGNATURE}) {{{CONSTANTS}{PROGRAMS[name]}\n  return\n}}", *more)
    before = features_of(text)["f"]
    lowered = mlir_opt(text, "--convert-scf-to-cf", *more)
    assert "scf." not in lowered
    after = features_of(lowered)["f"]
    assert features_of(mlir_opt(lowered, "--mlir-print-op-generic"))["f"] == after
    compared = [n for n in before if n.startswith(GROUPS) and not any(part in n for part in OTHER)]
    assert len(compared) > 250
    assert {n: after[n] for n in compared} == {n: pytest.approx(before[n], rel=1e-9, abs=1e-9) for n in compared}
    assert after["loops.back_edges"] == before["loops.count"]


HEAD = f"func.func @f(%p: i1, {SIGNATURE}) {{{CONSTANTS}"
STORE = f"memref.store %x, %A[%c0, %c0] : {M}"


def test_second_way_out_halves_the_count_and_makes_it_unknown(view: View) -> None:
    # the loop is left from the header or from the middle; either way 8 times, once for each iteration around it
    found = view(f"""{HEAD} cf.br ^outer(%c0 : index)
^outer(%i: index):
  %t = arith.cmpi slt, %i, %c8 : index
  cf.cond_br %t, ^entry, ^end
^entry:
  cf.br ^inner(%c0 : index)
^inner(%j: index):
  %u = arith.cmpi slt, %j, %c30 : index
  cf.cond_br %u, ^middle, ^done
^middle:
  {STORE}
  cf.cond_br %p, ^broken, ^latch
^broken:
  {STORE}
  cf.br ^done
^latch:
  %k = arith.addi %j, %c1 : index
  cf.br ^inner(%k : index)
^done:
  {STORE}
  %m = arith.addi %i, %c1 : index
  cf.br ^outer(%m : index)
^end:
  return
}}""")
    outer, inner = found.loops
    assert (outer.trip, outer.unknown) == (8, False)
    assert (inner.trip, inner.max_trip, inner.unknown, inner.execs) == (15, 30, True, 120)
    assert inner.parent is outer
    assert [a.weight for a in found.accesses] == [120, 4, 8]
    assert found.branches == 1


def test_branch_out_of_two_loops(view: View) -> None:
    # 4 exits: the inner test leads on in the outer loop, the other leaves both
    found = view(f"""{HEAD} cf.br ^outer(%c0 : index)
^outer(%i: index):
  %t = arith.cmpi slt, %i, %c8 : index
  cf.cond_br %t, ^inner(%c0 : index), ^end
^inner(%j: index):
  {STORE}
  %k = arith.addi %j, %c1 : index
  cf.cond_br %p, ^end, ^more
^more:
  %u = arith.cmpi slt, %k, %c30 : index
  cf.cond_br %u, ^inner(%k : index), ^done
^done:
  {STORE}
  %m = arith.addi %i, %c1 : index
  cf.br ^outer(%m : index)
^end:
  {STORE}
  return
}}""")
    outer, inner = found.loops
    assert (outer.trip, outer.unknown, inner.trip, inner.unknown) == (4, True, 15, True)
    assert [a.weight for a in found.accesses] == [60, 4, 1]


def test_blocks_that_nothing_reaches_never_run(view: View) -> None:
    found = view(f"""{HEAD} cf.br ^head
^head:
  cf.cond_br %p, ^head, ^end
^lost:
  {STORE}
  cf.br ^head
^end:
  return
}}""")
    assert [a.weight for a in found.accesses] == [0]
    assert len(found.loops) == 1


def test_ways_through_a_loop_share_its_iterations(view: View) -> None:
    # i < 8 holds in 8 of 64 iterations; the text does not tell %p; each case of a switch counts alike
    found = view(f"""{HEAD} %w = arith.constant 3 : i32
  cf.br ^head(%c0 : index)
^head(%i: index):
  %t = arith.cmpi slt, %i, %c64 : index
  cf.cond_br %t, ^body, ^end
^body:
  %l = arith.cmpi slt, %i, %c8 : index
  cf.cond_br %l, ^first, ^second
^first:
  {STORE}
  cf.br ^third
^second:
  {STORE}
  cf.cond_br %p, ^third, ^fourth
^third:
  {STORE}
  cf.br ^fourth
^fourth:
  cf.switch %w : i32, [default: ^latch, 1: ^five, 2: ^six, 3: ^latch]
^five:
  {STORE}
  cf.br ^latch
^six:
  {STORE}
  cf.br ^latch
^latch:
  {STORE}
  %n1 = arith.addi %i, %c1 : index
  cf.br ^head(%n1 : index)
^end:
  return
}}""")
    assert [a.weight for a in found.accesses] == [8, 56, 8 + 28, 16, 16, 64]
    assert (found.branches, found.unknown_branches) == (3, 2)


def test_functions_without_cycles_keep_each_block_once(view: View) -> None:
    found = view(f"{HEAD} cf.cond_br %p, ^a, ^b\n^a:\n  {STORE}\n  cf.br ^b\n^b:\n  {STORE}\n  return\n}}")
    assert [a.weight for a in found.accesses] == [1, 1]


def test_text_order_of_blocks_does_not_matter() -> None:
    blocks = {
        "head(%i: index)": "%t = arith.cmpi slt, %i, %c8 : index\ncf.cond_br %t, ^body, ^end",
        "body": f"{STORE}\n%k = arith.addi %i, %c1 : index\ncf.br ^head(%k : index)",
        "end": "return",
    }
    orders = [["head(%i: index)", "body", "end"], ["end", "body", "head(%i: index)"]]
    first, second = (
        features_of(f"{HEAD} cf.br ^head(%c0 : index)\n" + "\n".join(f"^{b}:\n{blocks[b]}" for b in order) + "\n}")["f"]
        for order in orders
    )
    assert first == second


def deep(n: int, test: str) -> str:
    """`n` loops in each other, each with a store and an exit to the way back of the one around it."""
    text = f"{HEAD} cf.br ^h0(%c0 : index)\n"
    for k in range(n):
        inner = f"^h{k + 1}(%c0 : index)" if k + 1 < n else f"^l{k}"
        outer = f"^l{k - 1}" if k else "^end"
        text += f"^h{k}(%i{k}: index):\n{STORE}\n%t{k} = {test.format(f'%i{k}')}\ncf.cond_br %t{k}, {inner}, {outer}\n"
    for k in reversed(range(n)):
        text += f"^l{k}:\n%n{k} = arith.addi %i{k}, %c1 : index\ncf.cond_br %p, ^h{k}(%n{k} : index), ^end\n"
    return text + "^end:\nreturn\n}"


@pytest.mark.parametrize("test", ["arith.cmpi slt, {}, %c8 : index", "arith.cmpi eq, {}, %c8 : index"])
def test_thousands_of_nested_loops(view: View, test: str) -> None:
    start = time.process_time()
    found = view(deep(3000, test))
    assert len(found.loops) == 3000
    assert found.loops[-1].depth == 3000
    assert all(math.isfinite(loop.execs) for loop in found.loops)
    assert time.process_time() - start < 10


def test_ten_thousand_blocks(view: View) -> None:
    n = 10_000
    text = f"{HEAD} cf.br ^b0\n" + "".join(f"^b{k}:\n{STORE}\ncf.cond_br %p, ^b{k}, ^b{k + 1}\n" for k in range(n))
    start = time.process_time()
    found = view(text + f"^b{n}:\nreturn\n}}")
    assert len(found.loops) == n
    assert {a.weight for a in found.accesses} == {UNKNOWN_TRIP}
    assert time.process_time() - start < 10


def test_what_a_counter_is_after_its_loop_is_not_known(view: View) -> None:
    found = view(f"""{HEAD} cf.br ^head(%c0 : index)
^head(%i: index):
  %t = arith.cmpi slt, %i, %c8 : index
  cf.cond_br %t, ^body, ^end
^body:
  memref.store %x, %A[%c0, %i] : {M}
  %k = arith.addi %i, %c1 : index
  cf.br ^head(%k : index)
^end:
  memref.store %x, %A[%c0, %i] : {M}
  return
}}""")
    assert [(a.known, a.stride) for a in found.accesses] == [(True, 1), (False, 0)]
    assert found.accesses[0].group != found.accesses[1].group


def test_a_value_that_ways_through_a_loop_choose_keeps_its_uses_inside(view: View) -> None:
    found = view(f"""{HEAD} cf.br ^head(%c0 : index)
^head(%i: index):
  %t = arith.cmpi slt, %i, %c8 : index
  cf.cond_br %t, ^body, ^end
^body:
  cf.cond_br %p, ^join(%x : f32), ^join(%z : f32)
^join(%v: f32):
  %w = arith.mulf %v, %x : f32
  memref.store %w, %A[%c0, %i] : {M}
  %k = arith.addi %i, %c1 : index
  cf.br ^head(%k : index)
^end:
  return
}}""")
    product = next(node for node in found.nodes if node.name == "arith.mulf")
    assert product.home is found.loops[0]
