"""Trip counts and strides that constants, maps and views decide, each against what the loops really do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize.function_view import FunctionView

View = Callable[[str], FunctionView]

CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c10 = arith.constant 10 : index
  %i7 = arith.constant 7 : i32
"""


def kernel(body: str, arguments: str = "%A: memref<64x32xf32>, %x: f32, %n: index") -> str:
    return f"func.func @kernel({arguments}) {{{CONSTANTS}{body}\n  return\n}}"


BOUNDS = {
    "constants": ("%e = arith.constant 12 : index", 6),
    "sum and product": ("%s = arith.addi %c10, %c2 : index\n%e = arith.muli %s, %c2 : index", 12),
    "difference": ("%e = arith.subi %c10, %c3 : index", 4),
    "quotient and remainder": (
        "%q = arith.divui %c10, %c3 : index\n%r = arith.remui %c10, %c3 : index\n%e = arith.addi %q, %r : index",
        2,
    ),
    "ceiling": ("%e = arith.ceildivsi %c10, %c3 : index", 2),
    "shift": ("%e = arith.shli %c3, %c2 : index", 6),
    "minimum": ("%e = arith.minsi %c10, %c3 : index", 2),
    "cast": ("%w = arith.addi %i7, %i7 : i32\n%e = arith.index_cast %w : i32 to index", 7),
    "widened": ("%w = arith.extsi %i7 : i32 to i64\n%e = arith.index_cast %w : i64 to index", 4),
    "extent of a memref": ("%e = memref.dim %A, %c1 : memref<64x32xf32>", 16),
    "affine.apply": ("%e = affine.apply affine_map<(d0)[s0] -> (d0 * 2 + s0)>(%c10)[%c2]", 11),
    "composed affine.apply": (
        "%t = affine.apply affine_map<(d0) -> (d0 floordiv 3)>(%c10)\n"
        "%e = affine.apply affine_map<(d0) -> (d0 + 4)>(%t)",
        4,
    ),
    "affine.min": ("%e = affine.min affine_map<(d0) -> (d0, 6)>(%c10)", 3),
    "affine.max": ("%e = affine.max affine_map<(d0) -> (d0, 16)>(%c10)", 8),
    "index dialect": ("%a = index.constant 5\n%e = index.mul %a, %c2", 5),
    "delinearized": (
        "%p:2 = affine.delinearize_index %c10 into (5, 4) : index, index\n%e = arith.addi %p#0, %p#1 : index",
        2,
    ),
    "linearized": ("%e = affine.linearize_index [%c2, %c3] by (5, 4) : index", 6),
    "linearized, disjoint": ("%e = affine.linearize_index disjoint [%c2, %c3] by (4) : index", 6),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bound_of_an_scf_loop(view: View, name: str, mlir_opt: Callable[..., str]) -> None:
    made, trips = BOUNDS[name]
    text = kernel(f"{made}\n  scf.for %i = %c0 to %e step %c2 {{ memref.store %x, %A[%i, %i] : memref<64x32xf32> }}")
    for form in (text, mlir_opt(text, "--mlir-print-op-generic")):
        loop = view(form).loops[0]
        assert (loop.trip, loop.unknown, loop.constant_trip) == (trips, False, True)


WHILE = """  %r = scf.while (%k = %START) : (index) -> index {
    %c = arith.cmpi RELATION, %k, %LIMIT : index
    scf.condition(%c) %k : index
  } do {
  ^bb0(%k: index):
    memref.store %x, %A[%c0, %c0] : memref<64x32xf32>
    %next = arith.addi %k, %c2 : index
    scf.yield %next : index
  }"""


@pytest.mark.parametrize(
    ("start", "relation", "limit", "trips"),
    [("c0", "slt", "c10", 5), ("c1", "sle", "c10", 5), ("c3", "ult", "c10", 4), ("c0", "ne", "c10", 5)],
)
def test_scf_while_with_a_counter(
    view: View, start: str, relation: str, limit: str, trips: int, mlir_opt: Callable[..., str]
) -> None:
    text = kernel(WHILE.replace("START", start).replace("RELATION", relation).replace("LIMIT", limit))
    for form in (text, mlir_opt(text, "--mlir-print-op-generic")):
        found = view(form)
        assert (found.loops[0].trip, found.loops[0].unknown) == (trips, False)
        assert found.accesses[0].weight == trips


@pytest.mark.parametrize(
    ("old", "new"), [("%LIMIT", "%n"), ("%START)", "%n)"), ("%k, %c2", "%k, %n"), ("RELATION", "eq")]
)
def test_scf_while_without_one_is_unknown(view: View, old: str, new: str) -> None:
    text = WHILE.replace(old, new).replace("START", "c0").replace("RELATION", "slt").replace("LIMIT", "c10")
    assert view(kernel(text)).loops[0].unknown


def strides(found: FunctionView) -> list[tuple[int, int]]:
    """(constant part of the address, stride in its loop) of each access."""
    return [(a.address.const, a.stride) for a in found.accesses]


ROW = "memref<64x32xf32>"
ACCESSES = {
    "row": ("memref.store %x, %A[%c2, %i] : ROW", [(64, 1)]),
    "column": ("memref.store %x, %A[%i, %c2] : ROW", [(2, 32)]),
    "diagonal": ("memref.store %x, %A[%i, %i] : ROW", [(0, 33)]),
    "scaled map": (
        "%j = affine.apply affine_map<(d0) -> (d0 * 3 + 1)>(%i)\nmemref.store %x, %A[%c0, %j] : ROW",
        [(1, 3)],
    ),
    "composed maps": (
        "%j = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)\n"
        "%k = affine.apply affine_map<(d0) -> (d0 * 3 + 1)>(%j)\nmemref.store %x, %A[%c0, %k] : ROW",
        [(1, 6)],
    ),
    "static subview": (
        "%v = memref.subview %A[2, 4] [8, 8] [1, 2] : ROW to "
        "memref<8x8xf32, strided<[32, 2], offset: 68>>\n"
        "memref.store %x, %v[%c1, %i] : memref<8x8xf32, strided<[32, 2], offset: 68>>",
        [(100, 2)],
    ),
    "subview at the loop variable": (
        "%v = memref.subview %A[%i, 0] [1, 32] [1, 1] : ROW to "
        "memref<1x32xf32, strided<[32, 1], offset: ?>>\n"
        "memref.store %x, %v[%c0, %c3] : memref<1x32xf32, strided<[32, 1], offset: ?>>",
        [(3, 32)],
    ),
    "rank-reducing subview": (
        "%v = memref.subview %A[%i, 0] [1, 32] [1, 1] : ROW to "
        "memref<32xf32, strided<[1], offset: ?>>\n"
        "memref.store %x, %v[%c3] : memref<32xf32, strided<[1], offset: ?>>",
        [(3, 32)],
    ),
    "subview of a subview": (
        "%v = memref.subview %A[2, 0] [16, 32] [2, 1] : ROW to "
        "memref<16x32xf32, strided<[64, 1], offset: 64>>\n"
        "%w = memref.subview %v[1, 4] [8, 8] [1, 1] : memref<16x32xf32, strided<[64, 1], offset: 64>> to "
        "memref<8x8xf32, strided<[64, 1], offset: 132>>\n"
        "memref.store %x, %w[%i, %c0] : memref<8x8xf32, strided<[64, 1], offset: 132>>",
        [(132, 64)],
    ),
    "collapsed": (
        "%v = memref.collapse_shape %A [[0, 1]] : ROW into memref<2048xf32>\n"
        "memref.store %x, %v[%i] : memref<2048xf32>",
        [(0, 1)],
    ),
    "expanded": (
        "%v = memref.expand_shape %A [[0, 1], [2]] output_shape [8, 8, 32] : ROW into memref<8x8x32xf32>\n"
        "memref.store %x, %v[%i, %c1, %c0] : memref<8x8x32xf32>",
        [(32, 256)],
    ),
    "reinterpreted": (
        "%v = memref.reinterpret_cast %A to offset: [4], sizes: [16, 16], strides: [64, 2] : ROW to "
        "memref<16x16xf32, strided<[64, 2], offset: 4>>\n"
        "memref.store %x, %v[%i, %c1] : memref<16x16xf32, strided<[64, 2], offset: 4>>",
        [(6, 64)],
    ),
    "transposed": (
        "%v = memref.transpose %A (d0, d1) -> (d1, d0) : ROW to memref<32x64xf32, strided<[1, 32]>>\n"
        "memref.store %x, %v[%i, %c1] : memref<32x64xf32, strided<[1, 32]>>",
        [(32, 1)],
    ),
    "delinearized": (
        "%p:2 = affine.delinearize_index %i into (4, 3) : index, index\nmemref.store %x, %A[%c0, %p#1] : ROW",
        [(0, 1)],
    ),
    "linearized": (
        "%j = affine.linearize_index [%i, %c1] by (64, 3) : index\nmemref.store %x, %A[%c0, %j] : ROW",
        [(1, 3)],
    ),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_strides_through_maps_and_views(view: View, name: str, mlir_opt: Callable[..., str]) -> None:
    body, expected = ACCESSES[name]
    body = body.replace("ROW", ROW)
    text = kernel(f"  scf.for %i = %c0 to %c3 step %c1 {{\n{body}\n}}")
    for form in (text, mlir_opt(text, "--mlir-print-op-generic")):
        found = view(form)
        assert strides(found) == expected
        assert {a.root for a in found.accesses} == {found.arguments[0]}
        assert all(a.known for a in found.accesses)


def test_dynamic_offset_leaves_the_stride_known(view: View) -> None:
    found = view(
        kernel(
            "  %v = memref.subview %A[%n, 0] [8, 32] [1, 1] : memref<64x32xf32> to "
            "memref<8x32xf32, strided<[32, 1], offset: ?>>\n"
            "  scf.for %i = %c0 to %c3 step %c1 {\n"
            "  memref.store %x, %v[%c0, %i] : memref<8x32xf32, strided<[32, 1], offset: ?>> }"
        )
    )
    assert found.accesses[0].stride == 1
    assert found.accesses[0].root == found.arguments[0]


def test_triangular_bounds_through_scf(view: View) -> None:
    found = view(
        kernel(
            "  scf.for %i = %c0 to %c10 step %c1 {\n  %e = arith.addi %i, %c1 : index\n"
            "  scf.for %j = %c0 to %e step %c1 { memref.store %x, %A[%i, %j] : memref<64x32xf32> } }"
        )
    )
    assert found.loops[1].execs == 55
    assert (found.loops[1].trip, found.loops[1].max_trip, found.loops[1].constant_trip) == (5.5, 10, False)
