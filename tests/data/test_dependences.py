"""Which nests may be tiled: the answers for small programs that were worked out by hand."""

from __future__ import annotations

import pytest

from irgauge.data.dependences import (
    bands_are_permutable,
    later_nests_only_read,
    nests_are_perfect,
    yields_its_own_arguments,
)


def _nest(*statements: str, depth: int = 2, bounds: str = "0 to 32") -> str:
    """A perfect nest over %i, %j, %k as mlir-opt prints it."""
    names = ["%i", "%j", "%k"][:depth]
    lines = ["module {", "  func.func @kernel() {"]
    for level, name in enumerate(names):
        lines.append("  " * (level + 2) + f"affine.for {name} = {bounds} {{")
    lines += ["  " * (depth + 2) + statement for statement in statements]
    lines += ["  " * (level + 2) + "}" for level in reversed(range(depth))]
    return "\n".join([*lines, "    return", "  }", "}"])


def _copy(source: str, target: str) -> tuple[str, str]:
    return f"%0 = affine.load %A[{source}] : memref<64x64xf32>", f"affine.store %0, %A[{target}] : memref<64x64xf32>"


def _sum(combine: str = "%2 = arith.addf %0, %1 : f32", at: str = "%i", store: str | None = None) -> tuple[str, ...]:
    return (
        f"%0 = affine.load %C[{at}] : memref<32xf32>",
        "%1 = affine.load %A[%i, %j] : memref<32x32xf32>",
        combine,
        f"affine.store %2, %C[{store or at}] : memref<32xf32>",
    )


@pytest.mark.parametrize(
    ("source", "target", "permutable"),
    [
        ("%i, %j", "%i, %j", True),  # in place, each element on its own
        ("%i, %j + 1", "%i, %j", True),  # one loop carries
        ("%i - 1, %j", "%i, %j", True),
        ("%i - 1, %j - 1", "%i, %j", True),  # both forwards
        ("%i - 1, %j + 1", "%i, %j", False),  # forwards and backwards
        ("%i + 2, %j - 1", "%i, %j", False),
        ("%j, %i", "%i, %j", False),  # no constant distance
        ("%i * 2, %j", "%i * 2 + 1, %j", True),  # even and odd rows never meet
        ("0, %j", "1, %j", True),
        ("%i floordiv 2, %j", "%i floordiv 2, %j", True),  # not understood, but then only %i carries
        ("%i floordiv 2, %j mod 2", "%i floordiv 2, %j mod 2", False),
    ],
)
def test_distances_in_place(source: str, target: str, permutable: bool) -> None:
    assert bands_are_permutable(_nest(*_copy(source, target))) is permutable


def test_arrays_that_are_only_read_or_only_written_once_do_not_matter() -> None:
    text = _nest("%0 = affine.load %A[%j] : memref<32xf32>", "affine.store %0, %B[%i, %j] : memref<32x32xf32>")
    assert bands_are_permutable(text)


def test_a_sweep_in_time_is_not_permutable_though_its_inner_loops_are_parallel() -> None:
    assert not bands_are_permutable(_nest(*_copy("%j - 1, %k", "%j, %k"), depth=3))


def test_one_loop_may_repeat_an_element_but_two_only_in_a_sum() -> None:
    last = ("%0 = affine.load %A[%i, %j] : memref<32x32xf32>", "affine.store %0, %B[%i] : memref<32xf32>")
    assert bands_are_permutable(_nest(*last))
    assert not bands_are_permutable(_nest(*last, depth=3))
    assert bands_are_permutable(_nest(*_sum(), depth=3))


@pytest.mark.parametrize(
    ("statements", "is_sum"),
    [
        (_sum("%2 = arith.maxnumf %1, %0 : f32"), True),
        (_sum("%2 = arith.subf %0, %1 : f32"), True),
        (_sum("%2 = arith.subf %1, %0 : f32"), False),
        (_sum("%2 = math.fma %1, %1, %0 : f32"), True),
        (_sum("%2 = math.fma %0, %1, %1 : f32"), False),
        (_sum("%2 = arith.mulf %0, %0 : f32"), False),
        (_sum("%2 = arith.divf %0, %1 : f32"), False),
        (_sum(store="%i + 1"), False),
    ],
)
def test_which_updates_may_be_reordered(statements: tuple[str, ...], is_sum: bool) -> None:
    assert bands_are_permutable(_nest(*statements, depth=3)) is is_sum


def test_an_accumulator_that_is_also_used_elsewhere_is_no_sum() -> None:
    used = (*_sum()[:3], "%3 = arith.mulf %0, %1 : f32", _sum()[3])
    assert not bands_are_permutable(_nest(*used, depth=3))


def test_digits_of_a_number_never_meet() -> None:
    """%i * 32 + %j names each element once when %j stays below 32."""
    assert bands_are_permutable(_nest("affine.store %x, %A[%i * 32 + %j] : memref<1024xf32>"))
    assert not bands_are_permutable(_nest("affine.store %x, %A[%i * 31 + %j] : memref<1024xf32>"))
    assert not bands_are_permutable(_nest("affine.store %x, %A[%i + %j] : memref<64xf32>"))


def test_only_the_perfect_part_of_a_nest_counts() -> None:
    text = "\n".join(
        [
            "affine.for %i = 0 to 9 {",
            "  %0 = affine.load %A[0] : memref<9xf32>",
            "  affine.for %j = 0 to 9 {",
            "    affine.store %0, %A[%j] : memref<9xf32>",
            "  }",
            "}",
        ]
    )
    assert bands_are_permutable(text)  # a single loop: nothing to exchange
    assert not nests_are_perfect(text)
    assert nests_are_perfect(_nest(*_copy("%i, %j", "%i, %j")))


def test_opaque_memory_operations_are_not_permutable() -> None:
    assert not bands_are_permutable(_nest("%0 = memref.load %A[%i, %j] : memref<64x64xf32>"))


@pytest.mark.parametrize(
    ("yields", "own"), [("%s, %x", True), ("%y, %s", True), ("%s, %t", False), ("%s, %one", False)]
)
def test_values_passed_on_unchanged(yields: str, own: bool) -> None:
    text = "\n".join(
        [
            "%r:2 = affine.for %i = 0 to 8 iter_args(%x = %one, %y = %one) -> (i64, i64) {",
            "  affine.if affine_set<(d0) : (d0 >= 0)>(%i) {",
            "  }",
            f"  affine.yield {yields} : i64, i64",
            "}",
        ]
    )
    assert yields_its_own_arguments(text) is own


@pytest.mark.parametrize(
    ("first", "second", "only_reads"),
    [
        (_copy("%i, %j", "%i, %j"), ("%0 = affine.load %A[%j, %i + 1] : memref<64x64xf32>",), True),
        (("affine.store %z, %A[%i, %j] : memref<64x64xf32>",), _copy("%i, %j", "%i, %j"), True),  # clear, then update
        (("affine.store %z, %A[%j, %i] : memref<64x64xf32>",), _copy("%i, %j", "%i, %j"), False),
        (("%0 = affine.load %A[%i, %j + 1] : memref<64x64xf32>",), _copy("%i, %j", "%i, %j"), False),
        (("%0 = affine.load %B[%i, %j + 1] : memref<64x64xf32>",), _copy("%i, %j", "%i, %j"), True),
    ],
)
def test_what_a_later_nest_stores(first: tuple[str, ...], second: tuple[str, ...], only_reads: bool) -> None:
    text = _nest(*first) + "\n" + _nest(*second)
    assert later_nests_only_read(text) is only_reads


def test_what_a_later_nest_stores_inside_another_loop() -> None:
    pair = _nest("%0 = affine.load %A[%j, %i] : memref<64x64xf32>") + "\n" + _nest(*_copy("%i, %j", "%i, %j"))
    assert not later_nests_only_read("affine.for %t = 0 to 4 {\n" + pair + "\n}")
