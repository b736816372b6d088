"""The drawing of a function's loops: what each line says, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from irgauge.featurize.loop_tree import ASCII, MOST_DEPTH, draw, value_name
from irgauge.featurize.reader import read

from .conftest import view_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "matmul.mlir"


def _draw(text: str, **options: object) -> str:
    return "\n".join(draw(view_of(text), **options))


def _function(body: str, arguments: str = "%A: memref<64x8xf32>, %x: f32") -> str:
    return f"func.func @f({arguments}) {{\n{body}\nreturn\n}}"


def test_matrix_product() -> None:
    assert (
        _draw(EXAMPLE.read_text())
        == """\
└─ affine.for %i: 96 iterations
   └─ affine.for %j: 112 iterations, 10,752 in all
      └─ affine.for %k: 128 iterations, 1,376,256 in all, reduces in memory
            2 flop, 3 loads, 1 store
            load  %A  f32  strides i 128, j 0, k 1
            load  %B  f32  strides i 0, j 1, k 112
            load  %C  f32  strides i 112, j 1, k 0
            store %C  f32  strides i 112, j 1, k 0"""
    )


def test_loops_beside_each_other_and_work_around_them() -> None:
    text = _function("""
        %y = math.exp %x : f32
        affine.for %i = 0 to 64 step 4 {
          affine.for %j = 0 to 8 {
            affine.store %y, %A[%i, %j] : memref<64x8xf32>
          }
          affine.store %x, %A[%i, 0] : memref<64x8xf32>
        }
        affine.for %i = 0 to 1 {
          func.call @g() : () -> ()
        }""")
    assert (
        _draw(text, glyphs=ASCII)
        == """\
outside loops: 1 flop
|- affine.for %i: 16 iterations, step 4
|  |  1 store
|  |  store %A  f32  strides i 32
|  `- affine.for %j: 8 iterations, 128 in all, should vectorize to 8 lanes
|        1 store
|        store %A  f32  strides i 32, j 1
`- affine.for %i: 1 iteration
      1 func.call"""
    )


def test_trip_counts_that_vary_and_that_nobody_knows() -> None:
    text = _function(
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        affine.for %i = 0 to 10 {
          affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
            affine.store %x, %A[%i, %j] : memref<64x8xf32>
          }
        }
        scf.for %k = %c0 to %n step %c1 {
          scf.for %l = %c0 to %c1 step %c1 {
            memref.store %x, %A[%k, %l] : memref<64x8xf32>
          }
        }""",
        "%A: memref<64x8xf32>, %x: f32, %n: index",
    )
    drawn = _draw(text)
    assert "affine.for %j: ~4.5 iterations, at most 9, 45 in all" in drawn
    assert "scf.for %k: ? iterations\n" in drawn
    assert "scf.for %l: 1 iteration, ~16 in all" in drawn


def test_parallel_reduction_and_carried_values() -> None:
    text = _function("""
        affine.parallel (%i, %j) = (0, 0) to (64, 8) {
          affine.store %x, %A[%i, %j] : memref<64x8xf32>
        }
        %s = affine.for %k = 0 to 8 iter_args(%a = %x) -> f32 {
          %v = affine.load %A[0, %k] : memref<64x8xf32>
          %b = arith.addf %a, %v : f32
          affine.yield %b : f32
        }""")
    drawn = _draw(text)
    assert "affine.parallel %i: 64 iterations, parallel\n" in drawn
    assert "affine.parallel %j: 8 iterations, 512 in all, parallel" in drawn
    assert "affine.for %k: 8 iterations, carries 1 value" in drawn
    linalg = """func.func @f(%A: tensor<4x6xf32>, %B: tensor<6x5xf32>, %C: tensor<4x5xf32>) -> tensor<4x5xf32> {
        %r = linalg.matmul ins(%A, %B : tensor<4x6xf32>, tensor<6x5xf32>) outs(%C : tensor<4x5xf32>) -> tensor<4x5xf32>
        return %r : tensor<4x5xf32> }"""
    drawn = _draw(linalg)
    assert "linalg.matmul d0: 4 iterations, parallel\n" in drawn
    assert "linalg.matmul d2: 6 iterations, 120 in all, reduction\n" in drawn
    assert "load  %B  f32  strides d0 0, d1 1, d2 5" in drawn


def test_accesses_alike_are_one_line_and_rare_ones_say_how_rare() -> None:
    text = _function("""
        affine.for %i = 0 to 8 {
          %a = affine.load %A[%i, 0] : memref<64x8xf32>
          %b = affine.load %A[%i, 1] : memref<64x8xf32>
          affine.if affine_set<(d0) : (d0 - 6 >= 0)>(%i) {
            affine.store %b, %A[%i, 2] : memref<64x8xf32>
          }
          %j = func.call @g() : () -> index
          %c = memref.load %A[%i, %j] : memref<64x8xf32>
        }""")
    drawn = _draw(text)
    assert "load  %A  f32  strides i 8 ×2\n" in drawn
    assert "store %A  f32  strides i 8, in 25 % of the iterations" in drawn
    assert "load  %A  f32  address not known" in drawn
    assert "3 loads, 1 store, 1 affine.if, 1 func.call" in drawn


def test_vectors_and_strides_with_mod() -> None:
    text = _function("""
        affine.for %i = 0 to 64 {
          %v = affine.vector_load %A[%i, 0] : memref<64x8xf32>, vector<8xf32>
          affine.store %x, %A[%i mod 4, 0] : memref<64x8xf32>
        }""")
    drawn = _draw(text)
    assert "load  %A  8 x f32  strides i 8" in drawn
    assert "store %A  f32  strides ~i 8" in drawn


def test_graphs_without_loops_name_their_operations() -> None:
    text = """func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
        %0 = "vendor.add"(%a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        %1 = "vendor.thing"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
        return %1 : tensor<4x4xf32> }"""
    drawn = _draw(text)
    assert "flop" in drawn
    assert drawn.endswith("1 vendor.add, 1 vendor.thing")


def test_operations_on_tensors_are_drawn_as_the_loops_they_imply() -> None:
    text = """func.func @f(%a: tensor<4x5xf32>) -> tensor<4x5xf32> {
        %0 = "stablehlo.add"(%a, %a) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
        return %0 : tensor<4x5xf32> }"""
    drawn = _draw(text)
    assert "stablehlo.add d0: 4 iterations, parallel" in drawn
    assert "1 flop, 2 loads, 1 store" in drawn


def test_branches_that_make_loops_are_drawn() -> None:
    text = """func.func @f(%c: i1) {
        cf.br ^a
      ^a:
        cf.cond_br %c, ^a, ^b
      ^b:
        return }"""
    assert "cf d0: ? iterations" in _draw(text)


def test_branches_that_make_no_loops_are_counted() -> None:
    text = """func.func @f(%c: i1) {
        cf.cond_br %c, ^a, ^b
      ^a:
        cf.br ^b
      ^b:
        cf.cond_br %c, ^a, ^e
      ^e:
        return }"""
    assert "loops made of branches: 1 (each ? iterations)" in _draw(text)


def test_a_function_of_nothing_says_so() -> None:
    assert _draw(_function("")) == "nothing but constants and terminators"


@pytest.mark.parametrize("depth", [MOST_DEPTH, MOST_DEPTH + 1, 10_000])
def test_deep_nests_are_cut_with_a_line(depth: int) -> None:
    loops = "".join(f"affine.for %i{k} = 0 to 2 {{\n" for k in range(depth))
    text = _function(f"{loops} affine.store %x, %A[0, %i{depth - 1}] : memref<64x8xf32>\n" + "}" * depth)
    for most in (None, 80):
        lines = _draw(text, most_lines=most).splitlines()
        drawn = [line for line in lines if "affine.for %i" in line]
        assert len(drawn) == MOST_DEPTH
        left = depth - MOST_DEPTH
        cut = [line.strip() for line in lines if "not drawn" in line]
        assert cut == ([f"└─ … {left:,} deeper loop{'s' * (left > 1)} not drawn"] if left else [])
        if not left:
            assert len(lines) == depth + 2


@pytest.mark.parametrize("loops", [39, 40, 41, 1000])
def test_wide_functions_are_cut_with_a_line(loops: int) -> None:
    text = _function("\n".join(f"affine.for %i{k} = 0 to 2 {{ func.call @g() : () -> () }}" for k in range(loops)))
    whole = _draw(text, most_lines=None).splitlines()
    assert len(whole) == 2 * loops
    lines = _draw(text, most_lines=80).splitlines()
    if len(whole) <= 80:
        assert lines == whole
    else:
        left = loops - sum("affine.for" in line for line in lines)
        assert lines[:-1] == whole[:79]
        assert lines[-1] == f"… {left:,} more loop{'s' * (left > 1)} not drawn (--all draws all)"


@pytest.mark.parametrize("form", ["custom", "generic"])
def test_values_are_called_as_in_the_text(form: str) -> None:
    custom = """func.func @f(%A: memref<4xf32>, %n: index) {
        %a:2 = "t.pair"() : () -> (index, memref<4xf32>)
        %b, %c = "t.two"() : () -> (memref<4xf32>, index)
        %d, %e:2, %f = "t.four"() : () -> (index, index, memref<4xf32>, index)
        return }"""
    generic = """"func.func"() <{sym_name = "f", function_type = (memref<4xf32>, index) -> ()}> ({
      ^bb0(%A: memref<4xf32>, %n: index):
        %a:2 = "t.pair"() : () -> (index, memref<4xf32>)
        %b, %c = "t.two"() : () -> (memref<4xf32>, index)
        %d, %e:2, %f = "t.four"() : () -> (index, index, memref<4xf32>, index)
        "func.return"() : () -> () }) : () -> ()"""
    program = read({"custom": custom, "generic": generic}[form])
    names = [value_name(program, value) for value in range(len(program.value_types))]
    results = ["%a#0", "%a#1", "%b", "%c", "%d", "%e#0", "%e#1", "%f"]
    assert sorted(names) == sorted([*results, *(["%A", "%n"] if form == "custom" else ["%arg0", "%arg1"])])
    for value, name in enumerate(names):
        if name in ("%A", "%arg0", "%a#1", "%b", "%e#1"):
            assert program.value_types[value] == "memref<4xf32>"


def test_generic_loops_are_named_by_their_depth() -> None:
    text = """func.func @f(%A: memref<4x4xf32>, %x: f32) {
        "affine.for"() <{lowerBoundMap = affine_map<() -> (0)>, upperBoundMap = affine_map<() -> (4)>, step = 1 : index,
            operandSegmentSizes = array<i32: 0, 0, 0>}> ({
          ^bb0(%i: index):
            "affine.store"(%x, %A, %i) <{map = affine_map<(d0) -> (d0, 1)>}> : (f32, memref<4x4xf32>, index) -> ()
            "affine.yield"() : () -> () }) : () -> ()
        return }"""
    drawn = _draw(text)
    assert "affine.for d0: 4 iterations" in drawn
    assert "store %A  f32  strides d0 4" in drawn
