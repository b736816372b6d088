"""Schedules change a program's text and never its meaning."""

from __future__ import annotations

import ctypes
import random
import re
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from irgauge.data import schedules
from irgauge.data.families import control, dp, image, registers, sorting, sparse
from irgauge.data.families.drawn import program
from irgauge.data.families.nests import KINDS, nest
from irgauge.data.label.llvm import to_assembly
from irgauge.data.label.tools import tool
from irgauge.data.schedules import IDENTITY, PLANS, Schedule, Variant, apply, outline, schedules_for, variants_for
from irgauge.errors import LabelError, ToolMissingError


def _has(*names: str) -> bool:
    try:
        return all(tool(name) for name in names)
    except ToolMissingError:
        return False


ALGORITHMS = (control, dp, image, registers, sorting, sparse)

needs_tools = pytest.mark.skipif(
    not _has("mlir-opt", "mlir-translate", "opt", "llc", "gcc"), reason="the labelling toolchain is not installed"
)

MATMUL = """
func.func @kernel(%A: memref<96x80xf32>, %B: memref<80x112xf32>, %C: memref<96x112xf32>) {
  affine.for %i = 0 to 96 {
    affine.for %j = 0 to 112 {
      affine.for %k = 0 to 80 {
        %a = affine.load %A[%i, %k] : memref<96x80xf32>
        %b = affine.load %B[%k, %j] : memref<80x112xf32>
        %c = affine.load %C[%i, %j] : memref<96x112xf32>
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %c, %m : f32
        affine.store %s, %C[%i, %j] : memref<96x112xf32>
      }
    }
  }
  return
}
"""

# Every iteration of %t needs the whole sweep before it.
SWEEPS = """
func.func @kernel(%A: memref<34x34xf64>) {
  %w = arith.constant 0.5 : f64
  affine.for %t = 0 to 8 {
    affine.for %i = 1 to 33 {
      affine.for %j = 1 to 33 {
        %a = affine.load %A[%i - 1, %j] : memref<34x34xf64>
        %b = affine.load %A[%i, %j + 1] : memref<34x34xf64>
        %s = arith.addf %a, %b : f64
        %m = arith.mulf %s, %w : f64
        affine.store %m, %A[%i, %j] : memref<34x34xf64>
      }
    }
  }
  return
}
"""


# The second row of a pair reads what the first has not written yet when the two rows are jammed together.
DIAGONAL = """
func.func @kernel(%A: memref<34x34xf64>) {
  affine.for %i = 1 to 33 {
    affine.for %j = 1 to 33 {
      %a = affine.load %A[%i - 1, %j + 1] : memref<34x34xf64>
      affine.store %a, %A[%i, %j] : memref<34x34xf64>
    }
  }
  return
}
"""

# The older of two carried values is passed on as it is.
FIBONACCI = """
func.func @kernel(%A: memref<64xi64>) {
  %one = arith.constant 1 : i64
  %r:2 = affine.for %i = 0 to 64 iter_args(%x = %one, %y = %one) -> (i64, i64) {
    %s = arith.addi %x, %y : i64
    affine.store %s, %A[%i] : memref<64xi64>
    affine.yield %s, %x : i64, i64
  }
  return
}
"""


def _map(subscript: str, trip: int = 64, size: int = 200) -> str:
    return f"""
func.func @kernel(%A: memref<{size}xf32>, %B: memref<64xf32>) {{
  affine.for %i = 0 to {trip} {{
    %a = affine.load %A[{subscript}] : memref<{size}xf32>
    affine.store %a, %B[%i] : memref<64xf32>
  }}
  return
}}
"""


# --- running a kernel -------------------------------------------------------------------------------------------------

NUMPY = {
    name: np.dtype(kind)
    for name, kind in zip(("f32", "f64", "i8", "i16", "i32", "i64", "index"), "fdbhiqq", strict=True)
}


def _operands(mlir: str) -> list[np.ndarray]:
    """Random values for each argument: reals in [0.5, 1.5), integers in [-9, 9]."""
    rng = np.random.default_rng(1)
    header = re.search(r"func\.func @kernel\((.*?)\) \{", mlir)
    assert header is not None
    values = []
    for inside in re.findall(r"memref<([^>]*)>", header[1]):
        *shape, element = inside.split("x", inside.count("x") - ("index" in inside))
        kind, size = NUMPY[element], [int(extent) for extent in shape]
        drawn = rng.uniform(0.5, 1.5, size) if element[0] == "f" else rng.integers(-9, 10, size)
        values.append(drawn.astype(kind))
    return values


def _run(mlir: str, operands: Sequence[np.ndarray], folder: Path) -> list[np.ndarray]:
    name = f"kernel{zlib.crc32(mlir.encode())}"
    (folder / f"{name}.s").write_text(to_assembly(mlir))
    subprocess.run(["gcc", "-shared", f"{name}.s", "-o", f"{name}.so", "-lm"], cwd=folder, check=True)
    results = [operand.copy() for operand in operands]
    ctypes.CDLL(str(folder / f"{name}.so")).kernel(*[ctypes.c_void_p(one.ctypes.data) for one in results])
    return results


def _same(expected: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> bool:
    """Integers exactly; reals up to another order of the same sums."""
    for wanted, found in zip(expected, results, strict=True):
        if wanted.dtype.kind == "i":
            if not np.array_equal(wanted, found):
                return False
            continue
        tolerance = 2e-3 if wanted.dtype == np.float32 else 1e-8
        scale = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0))
        if not np.allclose(wanted, found, rtol=tolerance, atol=tolerance * scale / 50, equal_nan=True):
            return False
    return True


def _keeps_meaning(source: str, variant: str, folder: Path) -> bool:
    operands = _operands(source)
    return _same(_run(source, operands, folder), _run(variant, operands, folder))


def _drawn_with(source: str, *moves: str) -> list[Variant]:
    """The variants of all plans with one of these moves in them."""
    wanted = [getattr(schedules, move) for move in moves]
    plans = tuple(plan for plan in PLANS if any(move in plan for move in wanted))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedules, "PLANS", plans)
        patch.setattr(schedules, "FILLING_PLANS", ())
        return variants_for(source, 0, count=len(plans) + 1)[1:]


# --- meaning ----------------------------------------------------------------------------------------------------------


@needs_tools
def test_variants_compute_what_their_source_computes(tmp_path: Path) -> None:
    seed = 300
    for family in KINDS:
        source = min((nest(family, seed + i).mlir for i in range(4)), key=len)
        operands = _operands(source)
        variants = variants_for(source, seed, count=4)
        assert variants[0].schedule == IDENTITY
        expected = _run(variants[0].mlir, operands, tmp_path)
        for variant in variants[1:]:
            assert _same(expected, _run(variant.mlir, operands, tmp_path)), (family, variant.schedule)


@needs_tools
def test_unroll_and_jam_is_kept_from_loops_that_carry(tmp_path: Path) -> None:
    jam = Schedule("jam-2", ("affine-loop-unroll-jam{unroll-jam-factor=2}",))
    assert not _keeps_meaning(DIAGONAL, apply(DIAGONAL, jam), tmp_path)  # the pass itself does not look
    assert not any("jam" in variant.schedule.name for variant in _drawn_with(DIAGONAL, "JAM"))
    assert any("jam" in variant.schedule.name for variant in _drawn_with(MATMUL, "JAM"))


@needs_tools
def test_unrolling_is_kept_from_values_carried_on_unchanged(tmp_path: Path) -> None:
    unroll = Schedule("unroll-4", ("affine-loop-unroll{unroll-factor=4}",))
    assert not _keeps_meaning(FIBONACCI, apply(FIBONACCI, unroll), tmp_path)
    assert not any("unroll" in variant.schedule.name for variant in _drawn_with(FIBONACCI, "UNROLL", "UNROLL_FULL"))


@needs_tools
def test_unrolling_is_kept_from_remainders_with_two_carried_values(tmp_path: Path) -> None:
    two = FIBONACCI.replace("%s, %x : i64", "%s, %z : i64").replace(
        "affine.store %s", "%z = arith.maxsi %x, %y : i64\n    affine.store %s"
    )
    two = two.replace("  return", "  affine.store %r#0, %A[63] : memref<64xi64>\n  return")
    odd = two.replace("0 to 64", "0 to 61")
    unroll = Schedule("unroll-4", ("affine-loop-unroll{unroll-factor=4}",))
    assert not _keeps_meaning(odd, apply(odd, unroll), tmp_path)
    assert _keeps_meaning(two, apply(two, unroll), tmp_path)
    assert schedules._unrolls_rightly(two, 4)
    assert not schedules._unrolls_rightly(odd, 4)
    assert not schedules._unrolls_rightly(odd, 3)
    assert not schedules._unrolls_rightly(odd, 0)


@needs_tools
@pytest.mark.parametrize(
    ("source", "why"),
    [
        (_map("%i * 2"), "stride 2"),
        (_map("%i floordiv 2"), "every element twice"),
        (_map("-%i + 63"), "backwards"),
        (_map("%i", trip=61), "a store past the loop"),
    ],
)
def test_vectorization_is_kept_from_what_the_pass_gets_wrong(source: str, why: str, tmp_path: Path) -> None:
    vectorize = Schedule("vectorize-8", ("affine-super-vectorize{virtual-vector-size=8}",))
    assert not _keeps_meaning(source, apply(source, vectorize), tmp_path), why
    assert not any("vectorize-8" in variant.schedule.name for variant in _drawn_with(source, "VECTORIZE"))


@needs_tools
def test_vectorization_masks_the_lanes_past_an_array(tmp_path: Path) -> None:
    source = _map("%i", trip=61).replace("memref<64xf32>", "memref<61xf32>")
    widths = [variant for variant in _drawn_with(source, "VECTORIZE") if "vectorize" in variant.schedule.name]
    assert widths
    assert all(_keeps_meaning(source, variant.mlir, tmp_path) for variant in widths)


@needs_tools
def test_fusion_that_loses_a_first_value_is_refused() -> None:
    source = """
func.func @kernel(%A: memref<32x16xf32>, %C: memref<32xf32>, %D: memref<32xf32>) {
  affine.for %i = 0 to 32 {
    affine.for %j = 0 to 16 {
      %a = affine.load %A[%i, %j] : memref<32x16xf32>
      %c = affine.load %C[%i] : memref<32xf32>
      %s = arith.addf %a, %c : f32
      affine.store %s, %C[%i] : memref<32xf32>
    }
  }
  return
}
"""
    buffered = source.replace("{\n  affine.for %i", "{\n  %B = memref.alloc() : memref<32xf32>\n  affine.for %i")
    buffered = buffered.replace("%C[%i]", "%B[%i]")
    assert not schedules._buffers_are_written_first(source, buffered)
    assert schedules._buffers_are_written_first(buffered, buffered)
    cleared = buffered.replace("    affine.for %j", "    affine.store %z, %B[%i] : memref<32xf32>\n    affine.for %j")
    assert schedules._buffers_are_written_first(source, cleared)


@needs_tools
@pytest.mark.parametrize(
    "source",
    [
        _map("%i").replace("0 to 64", "0 to 64 step 2"),
        _map("%i").replace("%B[%i]", "%B[%i * 2]").replace("0 to 64", "0 to 32"),
        _map("%i")
        .replace("    affine.store", "    affine.if affine_set<(d0) : (d0 - 9 >= 0)>(%i) {\n    affine.store")
        .replace("  }\n", "  }\n  }\n"),
    ],
    ids=["step", "stride", "condition"],
)
def test_copies_are_kept_from_arrays_with_gaps(source: str, tmp_path: Path) -> None:
    source = apply(source, IDENTITY)
    copy = Schedule("copy", ("affine-data-copy-generate{fast-mem-space=0}",))
    assert not _keeps_meaning(source, apply(source, copy), tmp_path)
    assert not schedules._copies_are_complete(source)
    assert not any("copy" in variant.schedule.name for variant in _drawn_with(source, "COPY"))


@needs_tools
def test_copies_of_tiles_keep_the_meaning(tmp_path: Path) -> None:
    tiled = apply(MATMUL, Schedule("tile", ("affine-loop-tile{tile-sizes=20,50,80}", *schedules.CLEAN)))
    assert schedules._copies_are_complete(tiled)
    copied = [variant.mlir for variant in _drawn_with(MATMUL, "COPY") if "copy" in variant.schedule.name]
    assert len(copied) >= 2
    assert all(_keeps_meaning(MATMUL, text, tmp_path) for text in copied[:3])


@needs_tools
def test_fusion_that_drops_iterations_is_refused(tmp_path: Path) -> None:
    """The last column of %A is written by the first nest alone; the fused nest has no iteration for it."""
    source = """
func.func @kernel(%A: memref<7x9xf32>, %B: memref<7x9xf32>) {
  affine.for %t = 0 to 2 {
    affine.for %i = 1 to 7 {
      affine.for %j = 0 to 9 {
        %a = affine.load %A[%i, %j] : memref<7x9xf32>
        %b = affine.load %B[%i, %j] : memref<7x9xf32>
        %c = affine.load %B[%i - 1, %j] : memref<7x9xf32>
        %d = arith.subf %b, %c : f32
        %e = arith.addf %a, %d : f32
        affine.store %e, %A[%i, %j] : memref<7x9xf32>
      }
    }
    affine.for %i = 0 to 6 {
      affine.for %j = 0 to 8 {
        %b = affine.load %B[%i, %j] : memref<7x9xf32>
        %a = affine.load %A[%i + 1, %j] : memref<7x9xf32>
        %c = affine.load %A[%i, %j] : memref<7x9xf32>
        %d = arith.subf %a, %c : f32
        %e = arith.subf %b, %d : f32
        affine.store %e, %B[%i, %j] : memref<7x9xf32>
      }
    }
  }
  return
}
"""
    before = apply(source, IDENTITY)
    after = apply(source, Schedule("fuse", ("affine-loop-fusion{mode=greedy}",)))
    assert not _keeps_meaning(before, after, tmp_path)
    assert not schedules._fusion_is_sound(before, after)
    assert schedules._fusion_is_sound(before, before)
    assert not any("fuse" in variant.schedule.name for variant in _drawn_with(source, "FUSE"))


@needs_tools
def test_coalescing_is_kept_from_loops_that_carry(tmp_path: Path) -> None:
    rows = FIBONACCI.replace("memref<64xi64>", "memref<8x64xi64>").replace("%A[%i]", "%A[%n, %i]")
    rows = rows.replace("  %r:2", "  affine.for %n = 0 to 8 {\n  %r:2").replace("  return", "  }\n  return")
    coalesce = Schedule("coalesce", ("affine-loop-coalescing",))
    assert not _keeps_meaning(rows, apply(rows, coalesce), tmp_path)
    assert not any("coalesce" in variant.schedule.name for variant in _drawn_with(rows, "COALESCE"))


# --- structure --------------------------------------------------------------------------------------------------------


def test_outline_of_nested_and_neighbouring_loops() -> None:
    found = outline(MATMUL)
    assert (found.max_depth, found.nests, found.innermost_trips, found.carried) == (3, 1, (80,), False)
    two = """
  affine.for %i = 0 to %n {
    %r = affine.for %j = 2 to 11 step 3 iter_args(%x = %z) -> (f64) {
      affine.yield %x : f64
    }
    affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%i) {
    }
  }
  affine.for %i = affine_map<(d0) -> (d0)>(%m) to 9 {
    affine.store %z, %A[%i] : memref<9xi16>
  }
"""
    found = outline(two)
    assert (found.max_depth, found.nests, found.innermost_trips, found.carried) == (2, 2, (3, None), True)
    assert found.element_bits == 16
    start, end = "affine_map<(d0) -> (d0)>(%a)", "affine_map<(d0) -> (d0 + 8)>(%a)"
    assert outline(f"affine.for %b = {start} to {end} {{\n}}").innermost_trips == (8,)


@needs_tools
def test_full_unrolling_is_full_and_bounded(tmp_path: Path) -> None:
    assert schedules._copies(MATMUL, 80) == 80
    assert schedules._copies(MATMUL, 112) == 96 * 112 * 80
    assert not any(
        "full" in variant.schedule.name and "tile" not in variant.schedule.name
        for variant in _drawn_with(MATMUL, "UNROLL_FULL")
    )
    small = MATMUL.replace("0 to 80", "0 to 7")
    full = [variant.mlir for variant in _drawn_with(small, "UNROLL_FULL") if "full-7" in variant.schedule.name]
    assert full
    assert all(text.count("affine.for") == 2 and text.count("arith.mulf") == 7 for text in full)
    assert _keeps_meaning(small, full[0], tmp_path)


@needs_tools
def test_interchange_is_the_tiler_with_sizes_one_and_whole(tmp_path: Path) -> None:
    moved = apply(MATMUL, Schedule("", (f"affine-loop-tile{{tile-sizes=1,{schedules.WHOLE},1}}", *schedules.CLEAN)))
    assert re.findall(r"affine\.for %\w+ = 0 to (\d+)", moved) == ["96", "80", "112"]
    assert _keeps_meaning(MATMUL, moved, tmp_path)


@needs_tools
def test_tiling_is_kept_from_stencils_in_place(tmp_path: Path) -> None:
    tile = Schedule("tile-4", ("affine-loop-tile{tile-size=4}",))
    assert not _keeps_meaning(SWEEPS, apply(SWEEPS, tile), tmp_path)  # the pass's own check lets it through
    names = [variant.schedule.name for variant in _drawn_with(SWEEPS, "TILE", "INTERCHANGE", "TILE_TWICE", "UNROLL")]
    assert len(names) > 3
    assert not any("tile" in name or "interchange" in name for name in names)


@needs_tools
def test_variants_differ_and_their_schedules_make_them_again() -> None:
    variants = variants_for(MATMUL, 5, count=9)
    assert len(variants) == 9
    assert len({variant.mlir for variant in variants}) == 9
    assert len({variant.schedule.name for variant in variants}) == 9
    for variant in variants[::3]:
        assert apply(variants[0].mlir, variant.schedule) == variant.mlir
    assert variants_for(MATMUL, 5, count=9) == variants
    assert schedules_for(MATMUL, 5, count=9) == [variant.schedule for variant in variants]
    assert schedules_for(MATMUL, 6, count=9) != [variant.schedule for variant in variants]


@needs_tools
def test_each_text_stands_for_itself() -> None:
    assert not any(re.search(r"^#", variant.mlir, re.M) for variant in variants_for(SWEEPS, 0, count=12))


@needs_tools
def test_a_program_without_loops_has_only_itself() -> None:
    assert [one.name for one in schedules_for("func.func @kernel() {\n  return\n}\n")] == ["identity"]


@needs_tools
def test_failures_carry_a_reason() -> None:
    with pytest.raises(LabelError, match=r"schedule-error: .*no-such-pass"):
        apply(MATMUL, Schedule("none", ("no-such-pass",)))
    with pytest.raises(LabelError, match=r"schedule-error: .*expected"):
        apply("func.func @kernel(", IDENTITY)
    with pytest.raises(LabelError, match=r"schedule-too-large: all: \d+ bytes of MLIR"):
        apply(
            MATMUL,
            Schedule(
                "all",
                (
                    "affine-loop-unroll{unroll-factor=-1}",
                    "affine-loop-unroll{unroll-factor=16}",
                    "affine-loop-unroll{unroll-factor=8}",
                ),
            ),
        )


@needs_tools
def test_a_failing_step_is_reported_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = schedules._Move(lambda rng, mlir: Schedule("broken", ("no-such-pass",)))
    monkeypatch.setattr(schedules, "PLANS", ((schedules.UNROLL, broken), (schedules.UNROLL,)))
    monkeypatch.setattr(schedules, "FILLING_PLANS", ())
    failures: list[tuple[str, LabelError]] = []
    variants = variants_for(MATMUL, 0, failures=failures)
    assert len(variants) == 2
    assert [(name.split("+")[-1], error.reason) for name, error in failures] == [("broken", "schedule-error")]


# --- scf and cf -------------------------------------------------------------------------------------------------------

BUCKETS = """
func.func @kernel(%A: memref<61xf32>, %B: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 61 : index
  %half = arith.constant 0.5 : f32
  %S = memref.alloc() : memref<16xf32>
  scf.for %i = %c0 to %n step %c1 {
    %m = arith.constant 15 : index
    %at = arith.andi %i, %m : index
    %a = memref.load %A[%i] : memref<61xf32>
    %old = memref.load %B[%at] : memref<16xf32>
    %more = arith.addf %old, %a : f32
    %large = arith.cmpf ogt, %more, %half : f32
    %new = scf.if %large -> (f32) {
      %h = arith.mulf %more, %half : f32
      scf.yield %h : f32
    } else {
      scf.yield %more : f32
    }
    memref.store %new, %B[%at] : memref<16xf32>
    memref.store %a, %S[%at] : memref<16xf32>
  }
  memref.dealloc %S : memref<16xf32>
  return
}
"""


@needs_tools
def test_programs_without_affine_loops_have_variants_too(tmp_path: Path) -> None:
    variants = variants_for(BUCKETS, 0, count=12)
    assert len(variants) >= 7
    operands = _operands(BUCKETS)
    expected = _run(BUCKETS, operands, tmp_path)
    for variant in variants[1:]:
        assert _same(expected, _run(variant.mlir, operands, tmp_path)), variant.schedule
        assert apply(variants[0].mlir, variant.schedule) == variant.mlir


@needs_tools
@pytest.mark.parametrize(
    ("family", "style"),
    [
        ("ctl_loops", "collatz"),
        ("ctl_machines", "table"),
        ("sort_exchange", "insertion"),
        ("sparse_vector", "csr"),
        ("reg_vectors", "outer"),
        ("dp_warping", "full"),
        ("img_colour", "hue"),
    ],
)
def test_variants_of_algorithms_compute_what_their_source_computes(family: str, style: str, tmp_path: Path) -> None:
    kind = next(module.KINDS[family] for module in ALGORITHMS if family in module.KINDS)
    source = program(
        "", family, 1, kind, {"style": style, "work": 400.0, "pixels": ("f32", "f32"), "index": "i32"}
    ).mlir
    operands = [abs(operand) & 3 if operand.dtype.kind == "i" else operand for operand in _operands(source)]
    variants = variants_for(source, 3, count=6)
    assert len(variants) >= 3
    expected = _run(variants[0].mlir, operands, tmp_path)
    for variant in variants[1:]:
        assert _same(expected, _run(variant.mlir, operands, tmp_path)), variant.schedule


@needs_tools
def test_filling_plans_stop_where_there_are_enough_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "PLANS", ((schedules.UNROLL,),))
    monkeypatch.setattr(schedules, "WANTED", 3)
    assert len(variants_for(BUCKETS, 0, count=10)) == 3


@needs_tools
def test_plans_take_turns_by_kind() -> None:
    ordered = schedules._by_turns(PLANS, random.Random(3))
    kinds = [plan[0].kind for plan in ordered]
    assert sorted(map(id, ordered)) == sorted(map(id, PLANS))
    assert len(set(kinds[: len(set(kinds))])) == len(set(kinds))


@needs_tools
def test_copies_are_kept_from_accesses_outside_the_loops(tmp_path: Path) -> None:
    source = apply(
        _map("%i - 1")
        .replace("0 to 64", "1 to 64")
        .replace(
            "  affine.for", "  %z = arith.constant 7.0 : f32\n  affine.store %z, %B[0] : memref<64xf32>\n  affine.for"
        )
        .replace("memref<200xf32>", "memref<64xf32>")
        .replace("%A[%i - 1]", "%B[%i - 1]"),
        IDENTITY,
    )
    assert not schedules._copies_are_complete(source)


@needs_tools
def test_sums_are_only_reassociated_where_rounding_decides_nothing() -> None:
    dot = """
func.func @kernel(%A: memref<64xf32>, %B: memref<1xf32>) {
  %z = arith.constant 0.0 : f32
  %s = affine.for %i = 0 to 64 iter_args(%c = %z) -> (f32) {
    %a = affine.load %A[%i] : memref<64xf32>
    %n = arith.addf %c, %a : f32
    affine.yield %n : f32
  }
  affine.store %s, %B[0] : memref<1xf32>
  return
}
"""
    drawn = _drawn_with(dot, "ASSOCIATE")
    assert any("fastmath<reassoc>" in variant.mlir for variant in drawn)
    decided = dot.replace("  affine.store", "  %t = arith.cmpf ogt, %s, %z : f32\n  affine.store")
    assert schedules._associate(random.Random(0), decided) is None


SHARED = """
func.func @kernel(%A: memref<64xf32>, %B: memref<64xf32>, %C: memref<64xf32>) {
  affine.for %i = 0 to 63 {
    %a = affine.load %A[%i] : memref<64xf32>
    %b = affine.load %B[%i + 1] : memref<64xf32>
    %s = arith.addf %a, %b : f32
    affine.store %s, %B[%i] : memref<64xf32>
    affine.store %a, %C[%i] : memref<64xf32>
  }
  return
}
"""


@needs_tools
def test_loops_are_split_where_the_halves_do_not_meet(tmp_path: Path) -> None:
    rng = random.Random(0)
    source = apply(SHARED, IDENTITY)
    step = schedules._fission(rng, source)
    assert step is not None
    assert apply(source, step).count("affine.for") == 2
    assert _keeps_meaning(source, apply(source, step), tmp_path)
    meeting = apply(SHARED.replace("load %A[", "load %C["), IDENTITY)
    assert schedules._fission(rng, meeting) is None
