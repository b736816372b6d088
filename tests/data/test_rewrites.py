"""Text rewrites: what each one turns a program into, and what it leaves alone."""

from __future__ import annotations

import re

from irgauge.data.rewrites import (
    accesses_are_apart,
    associated,
    branched,
    fissioned,
    loop_lines,
    on_stack,
    raised,
    selected,
    transformed,
    without_transform,
)

NEST = """module {
  func.func @kernel(%arg0: memref<64xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    scf.for %arg1 = %c0 to %c64 step %c1 {
      %0 = arith.addi %arg1, %c1 : index
      %1 = arith.muli %arg1, %0 : index
      scf.for %arg2 = %c0 to %1 step %c1 {
        %2 = memref.load %arg0[%arg2] : memref<64xf32>
        memref.store %2, %arg0[%0] : memref<64xf32>
      }
    }
    return
  }
}
"""


def _in_function(*body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body)
    return f"module {{\n  func.func @kernel(%arg0: memref<64xf32>) {{\n{lines}\n    return\n  }}\n}}\n"


def test_loops_are_found_with_their_last_lines() -> None:
    lines = NEST.splitlines()
    assert [(lines[a].split()[1], lines[b].strip()) for a, b in loop_lines(NEST)] == [("%arg1", "}"), ("%arg2", "}")]
    (outer, outer_end), (inner, inner_end) = loop_lines(NEST)
    assert outer < inner < inner_end < outer_end


def test_a_transform_script_comes_and_goes() -> None:
    with_script = transformed(NEST, "unroll", 1, 4)
    assert "factor = 4" in with_script
    assert with_script.count("irgauge.chosen") == 2
    assert without_transform(with_script) == NEST


def test_loops_with_constant_bounds_are_raised() -> None:
    text = raised(NEST)
    assert "affine.for %arg1 = 0 to 64 {" in text
    assert "%0 = affine.apply affine_map<(d0) -> (d0 + 1)>(%arg1)" in text
    assert "%1 = arith.muli %arg1, %0" in text  # a product of variables is not affine
    assert "scf.for %arg2 = %c0 to %1 step %c1" in text


def test_a_raised_loop_yields_by_affine_and_a_branch_inside_does_not() -> None:
    text = raised(
        _in_function(
            "%0 = scf.for %arg1 = %c0 to %c64 step %c2 iter_args(%arg2 = %cst) -> (f32) {",
            "  %1 = scf.if %true -> (f32) {",
            "    scf.yield %arg2 : f32",
            "  } else {",
            "    scf.yield %cst : f32",
            "  }",
            "  scf.yield %1 : f32",
            "}",
        )
    )
    assert "affine.for %arg1 = 0 to 64 step 2 iter_args(%arg2 = %cst) -> (f32) {" in text
    assert re.findall(r"(\w+)\.yield (\S+)", text) == [("scf", "%arg2"), ("scf", "%cst"), ("affine", "%1")]


def test_small_outer_buffers_move_to_the_stack() -> None:
    text = _in_function(
        "%alloc = memref.alloc() : memref<16xf64>",
        "%alloc_0 = memref.alloc() : memref<100000xf64>",
        "scf.for %arg1 = %c0 to %c64 step %c1 {",
        "  %alloc_1 = memref.alloc() : memref<4xf64>",
        "  memref.dealloc %alloc_1 : memref<4xf64>",
        "}",
        "memref.dealloc %alloc : memref<16xf64>",
        "memref.dealloc %alloc_0 : memref<100000xf64>",
    )
    moved = on_stack(text)
    assert "%alloc = memref.alloca() : memref<16xf64>" in moved
    assert moved.count("memref.alloca") == 1
    assert re.findall(r"dealloc (%\w+)", moved) == ["%alloc_1", "%alloc_0"]


def test_branches_that_only_compute_become_selects() -> None:
    text = _in_function(
        "%0:2 = scf.if %true -> (f32, f32) {",
        "  %2 = arith.addf %a, %b : f32",
        "  scf.yield %2, %a : f32, f32",
        "} else {",
        "  %2 = arith.mulf %a, %b : f32",
        "  scf.yield %b, %2 : f32, f32",
        "}",
        "%1 = arith.addf %0#0, %0#1 : f32",
    )
    assert selected(text) == _in_function(
        "%s1_0_0 = arith.addf %a, %b : f32",
        "%s1_1_0 = arith.mulf %a, %b : f32",
        "%r1_0 = arith.select %true, %s1_0_0, %b : f32",
        "%r1_1 = arith.select %true, %a, %s1_1_0 : f32",
        "%1 = arith.addf %r1_0, %r1_1 : f32",
    )


def test_branches_that_divide_or_load_stay() -> None:
    for line in ("%2 = arith.divsi %a, %b : i32", "%2 = memref.load %m[%i] : memref<4xi32>"):
        text = _in_function(
            "%0 = scf.if %true -> (i32) {", f"  {line}", "  scf.yield %2 : i32", "} else {", "  scf.yield %b : i32", "}"
        )
        assert selected(text) == text


def test_selects_become_branches() -> None:
    text = branched(
        _in_function("%1 = arith.select %c, %a, %b : f32", "%2 = arith.select %m, %v, %w : vector<4xi1>, vector<4xf32>")
    )
    assert text.count("scf.if %c -> (f32)") == 1
    assert "arith.select %m, %v, %w" in text


TWO_RESULTS = _in_function(
    "affine.for %arg1 = 0 to 64 {",
    "  %0 = affine.load %arg0[%arg1] : memref<64xf32>",
    "  affine.store %0, %A[%arg1] : memref<64xf32>",
    "  affine.store %0, %B[%arg1] : memref<64xf32>",
    "}",
)


def test_a_loop_is_split_by_what_it_stores() -> None:
    text = fissioned(TWO_RESULTS, 0)
    assert len(loop_lines(text)) == 2
    assert re.findall(r"store %0, (%\w)", text) == ["%A", "%B"]
    assert accesses_are_apart(text, 0)
    one = TWO_RESULTS.replace("%B[", "%A[")
    assert fissioned(one, 0) == one


def test_split_loops_that_meet_are_found() -> None:
    for text in (TWO_RESULTS.replace("load %arg0", "load %B"), TWO_RESULTS.replace("load %arg0", "load %A")):
        assert not accesses_are_apart(fissioned(text, 0), 0)


def test_only_carried_sums_may_be_reassociated() -> None:
    text = associated(
        _in_function(
            "%0:3 = affine.for %arg1 = 0 to 64 iter_args(%arg2 = %c, %arg3 = %c, %arg4 = %c) -> (f32, f32, f32) {",
            "  %1 = affine.load %arg0[%arg1] : memref<64xf32>",
            "  %2 = arith.addf %1, %1 : f32",
            "  %3 = arith.addf %arg2, %2 : f32",
            "  %4 = arith.addf %arg3, %1 : f32",
            "  %5 = arith.mulf %arg3, %4 : f32",
            "  %6 = arith.mulf %arg4, %1 : f32",
            "  affine.yield %3, %4, %6 : f32, f32, f32",
            "}",
        )
    )
    assert re.findall(r"(%\d) = arith\.\w+ \S+ \S+ fastmath<reassoc>", text) == ["%3"]
