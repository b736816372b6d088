"""Schedules: the transformations that turn one program into a ranking task: passes of `mlir-opt`, and a few rewrites.

A schedule never changes what a program computes. MLIR's passes alone do not promise that, so each step is drawn for the
text it will be applied to, and checked there (running variants against their sources found every point of this list):

* `affine-loop-tile` tiles in-place stencils although their dependences forbid it: tiling, and what is built from it
  here (interchange), is only used where `dependences.bands_are_permutable`.
* `affine-loop-unroll-jam` checks nothing: only used where `affine-parallelize` proves the outermost loop parallel.
* `affine-loop-unroll` mixes up carried values that a loop yields without having changed them, and, of two and more,
  those that reach the remainder of a loop: see `_unrolls_rightly`.
* `affine-super-vectorize` takes subscripts like `2 * i` and `i floordiv 2` for contiguous, stores past the end of a
  loop that does not cover its array, and dies of tiles with `min` bounds: see `_lanes_that_fit`.
* `affine-loop-fusion` may put an accumulation into a fresh buffer and lose the array's first value, drop iterations
  that only an argument shows (fdtd-2d), cut a recurrence into slices (deriche), and write before an earlier nest has
  read (doitgen): see `_fusion_is_sound` and `dependences.later_nests_only_read`. Not used with `maximal` (durbin).
* `affine-loop-coalescing` forgets what the loops carry, and makes invalid maps of triangles: not used there.
* `affine-data-copy-generate` reads stale copies where one inner loop writes what a later one reads, and writes back
  elements of a buffer that were never set, and forgets accesses outside loops: see `_copies_are_complete`.
* `affine-loop-unroll` with `cleanup-unroll` unrolls whole loops of thousands of iterations: not used.

Steps that leave the text as it is are left out of a schedule's name and passes.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..errors import LabelError
from .dependences import (
    bands_are_permutable,
    has_opaque_accesses,
    later_nests_only_read,
    nests_are_perfect,
    yields_its_own_arguments,
)
from .label.optimizer import optimize
from .rewrites import (
    REWRITES,
    TRANSFORMS,
    accesses_are_apart,
    fissioned,
    loop_lines,
    transformed,
    without_transform,
)

__all__ = ["IDENTITY", "Outline", "Schedule", "Variant", "apply", "outline", "schedules_for", "variants_for"]

WHOLE = 1 << 20
"""A tile size larger than any trip count: the loop is not split."""

MAX_TEXT_BYTES = 150_000
"""A variant with more text than this (a large full unroll) is refused: `LabelError("schedule-too-large")`."""

MAX_COPIES = 64
"""Full unrolling may make at most so many copies of a body, over all loops around it."""


@dataclass(frozen=True)
class Schedule:
    """A named list of passes."""

    name: str
    """Says what is done and with which parameters, e.g. "tile-32x8+unroll-4"; stored in each record."""
    passes: tuple[str, ...]
    """Elements of a `func.func(...)` pass pipeline in order, e.g. ("affine-loop-tile{tile-sizes=32,8}",).

    One that starts with "@" is a rewrite of `data.rewrites`, with its parameters: "@select", "@unroll{2,4}" (the third
    loop, by four).
    """


IDENTITY = Schedule("identity", ())


@dataclass(frozen=True)
class Variant:
    """One program after one schedule."""

    schedule: Schedule
    mlir: str
    """What `apply` returned."""


@dataclass(frozen=True)
class Outline:
    """What the choice of schedules needs to know of a program."""

    max_depth: int
    """Deepest nest of `affine.for` loops; 0 without loops."""
    nests: int
    """Outermost `affine.for` loops of the function."""
    innermost_trips: tuple[int | None, ...]
    """Trip count of each loop that holds no other loop, in text order; None where a bound is not a constant."""
    carried: bool
    """Some loop has `iter_args`."""
    element_bits: int
    """Width of the narrowest element type among all memrefs, 64 without any."""


_TOKEN = re.compile(r"affine\.for\b[^\n]*\{|[{}]")
_CONSTANT_BOUNDS = re.compile(r"=\s*(-?\d+)\s+to\s+(-?\d+)(?:\s+step\s+(\d+))?")
_TILE_BOUNDS = re.compile(r"affine_map<\(d0\) -> \(d0\)>\((%\w+)\) to affine_map<\(d0\) -> \(d0 \+ (\d+)\)>\((%\w+)\)")
_ELEMENT = re.compile(r"memref<[^<>]*?x?([bfi]f?\d+|index)\b")


def outline(mlir: str) -> Outline:
    """The loop structure of a program printed with one operation a line."""
    is_loop: list[bool] = []  # one entry per open brace
    has_inner: list[bool] = []  # one entry per open loop
    trips: list[int | None] = []  # one entry per open loop
    innermost: list[int | None] = []
    nests = max_depth = 0
    carried = False
    for token in _TOKEN.findall(mlir):
        if token.startswith("affine.for"):
            carried |= "iter_args" in token
            nests += not has_inner
            if has_inner:
                has_inner[-1] = True
            has_inner.append(False)
            trips.append(_trip_count(token))
            max_depth = max(max_depth, len(has_inner))
            is_loop.append(True)
        elif token == "{":
            is_loop.append(False)
        elif is_loop.pop():
            trip = trips.pop()
            if not has_inner.pop():
                innermost.append(trip)
    widths = [64 if element == "index" else int(element.lstrip("bfi")) for element in _ELEMENT.findall(mlir)]
    return Outline(max_depth, nests, tuple(innermost), carried, min(widths, default=64))


def _trip_count(header: str) -> int | None:
    """Iterations of a loop with constant bounds or with those of a full tile, None of any other."""
    tile = _TILE_BOUNDS.search(header)
    if tile is not None:
        return int(tile[2]) if tile[1] == tile[3] and " step " not in header else None
    bounds = _CONSTANT_BOUNDS.search(header)
    if bounds is None:
        return None
    low, high, step = int(bounds[1]), int(bounds[2]), int(bounds[3] or 1)
    return max(0, -(-(high - low) // step))


# --- running mlir-opt -------------------------------------------------------------------------------------------------


def apply(mlir_text: str, schedule: Schedule) -> str:
    """The program after a schedule, as `mlir-opt` prints it (no aliases, so each function stands for itself).

    Raises
    ------
    LabelError
        reason "schedule-timeout", "schedule-crash" (mlir-opt died of a signal), "schedule-error" (it refused the
        program, or a pass failed; `detail` is its first error line) or "schedule-too-large".
    ToolMissingError
        mlir-opt is not installed.
    """
    text = mlir_text
    waiting: list[str] = []
    for one in schedule.passes:
        if not one.startswith("@"):
            waiting.append(one)
            continue
        if waiting:
            text = _optimized(text, f"func.func({','.join(waiting)})")
            waiting = []
        text = _rewritten(text, one)
    pipeline = f"func.func({','.join(waiting)})" if waiting else ""
    text = _optimized(text, pipeline)
    if len(text) > MAX_TEXT_BYTES:
        raise LabelError("schedule-too-large", f"{schedule.name}: {len(text)} bytes of MLIR")
    return text


@lru_cache(maxsize=64)  # the schedules of one program begin alike, and ask the same questions about it
def _optimized(text: str, pipeline: str) -> str:
    return optimize(text, f"builtin.module({pipeline})" if pipeline else "", step="schedule")


def _rewritten(text: str, step: str) -> str:
    name, _, inside = step[1:].rstrip("}").partition("{")
    numbers = [int(number) for number in inside.split(",")] if inside else []
    if name in TRANSFORMS:
        script = transformed(text, name, *numbers)
        return without_transform(_optimized(script, "transform-interpreter"))
    if name == "fission":
        return fissioned(text, *numbers)
    return REWRITES[name](text)


# --- what must hold before a step, and after --------------------------------------------------------------------------

_LOOP = re.compile(r"affine\.for (%\S+) = (.+?) to (.+?)(?: step (\d+))?(?: iter_args\(.*)? \{$", re.M)
_ACCESS = re.compile(r"affine\.(load|store) [^\n]*?(%\S+?)\[([^\]]*)\] : memref<([^>,]*)")
_NOT_UNIT = re.compile(r"\*|floordiv|ceildiv|mod|-\s*%")


def _outermost_is_parallel(mlir: str) -> bool:
    """Whether no iteration of the first outermost loop depends on another, so that unroll-and-jam keeps the meaning."""
    text = apply(mlir, Schedule("parallelize", ("affine-parallelize{max-nested=1}",)))
    first = re.search(r"affine\.(for|parallel)\b", text)
    return first is not None and first[1] == "parallel"


def _lanes_that_fit(mlir: str) -> list[int]:
    """Vector widths with which `affine-super-vectorize` keeps the meaning of this program; [] for none.

    Asked of every loop, since the pass chooses: constant bounds, or those of a full tile; every subscript without
    multiples (of -1 too), quotients or remainders; a trip count the width divides, unless the loop ends where its
    stores' arrays end (the lanes beyond are masked there).
    """
    accesses = [
        (kind, subscripts.split(", "), shape.split("x")) for kind, _, subscripts, shape in _ACCESS.findall(mlir)
    ]
    if any(_NOT_UNIT.search(subscript) for _, subscripts, _ in accesses for subscript in subscripts):
        return []
    if mlir.count("affine.for") != len(_LOOP.findall(mlir)):
        return []
    lanes = [4, 8, 16]
    for variable, low, high, step in _LOOP.findall(mlir):
        tile = _TILE_BOUNDS.fullmatch(f"{low} to {high}")
        if tile is not None and tile[1] == tile[3] and not step:
            lanes = [n for n in lanes if int(tile[2]) % n == 0]
            continue
        if not (low.lstrip("-").isdigit() and high.isdigit()):
            return []
        if step:
            if any(variable in re.findall(r"%\w+", part) for _, subscripts, _ in accesses for part in subscripts):
                return []
            continue
        for kind, subscripts, shape in accesses:
            if kind != "store" or not any(variable in re.findall(r"%\w+", part) for part in subscripts):
                continue
            if any(part == variable and size == high for part, size in zip(subscripts, shape, strict=False)):
                continue
            lanes = [n for n in lanes if (int(high) - int(low)) % n == 0]
    return lanes


_POINT_LOOP = re.compile(  # the loop inside a tile, as the tiler and as normalization leave it
    r"affine_map<\(d0\) -> \(d0\)>\(%\w+\) to (?:min )?affine_map<\(d0\) -> \(d0 \+ \d+(?:, \d+)?\)>\(%\w+\)"
    r"|0 to min affine_map<\(d0\) -> \(\d+, d0 \* -\d+ \+ \d+\)>\(%\w+\)"
)


def _copies_are_complete(mlir: str) -> bool:
    """Whether `affine-data-copy-generate` finds dense rectangles only: what it copies back has all been written."""
    if re.search(r"^    (?:%\S+ = )?affine\.(?:load|store)", mlir, re.M):  # outside every loop: left out of the copies
        return False
    if not nests_are_perfect(mlir) or re.search(r"\b(?:affine|scf)\.if\b", mlir):
        return False
    accesses = _ACCESS.findall(mlir)
    if any(kind == "store" and re.search(r"floordiv|ceildiv|mod", subscripts) for kind, _, subscripts, _ in accesses):
        return False
    used = {name for _, _, subscripts, _ in accesses for name in re.findall(r"%\w+", subscripts)}
    loops = _LOOP.findall(mlir)
    if mlir.count("affine.for") != len(loops):
        return False
    for variable, low, high, step in loops:
        if _trip_count(f"= {low} to {high}") is None and not _POINT_LOOP.fullmatch(f"{low} to {high}"):
            return False
        if step and variable in used:
            return False
    # In a sum like %i * 32 + %j, one variable moves by single elements.
    stored = [part for kind, _, subscripts, _ in accesses if kind == "store" for part in subscripts.split(", ")]
    return all("*" not in part or re.search(r"(?:^|[+-] )-?%\w+(?! \*)(?!\w)", part) for part in stored)


def _unrolls_rightly(mlir: str, factor: int) -> bool:
    """Whether `affine-loop-unroll` by a factor, or fully for 0, keeps the carried values of this program apart."""
    if yields_its_own_arguments(mlir):
        return False
    for header in re.findall(r"affine\.for[^\n]*iter_args[^\n]*", mlir):
        trip = _trip_count(header)
        if header.count(" = ") > 2 and (trip is None or not factor or trip % factor):
            return False
    return True


def _executions(mlir: str) -> tuple[dict[str, int], list[int]] | None:
    """Stores executed per argument, and iterations of the loops that carry values; None if a bound is no constant."""
    stores: dict[str, int] = {}
    carried: list[int] = []
    around: list[int] = []  # one entry per open brace
    for line in mlir.splitlines():
        text = line.strip()
        if text.startswith("}") and around:
            around.pop()
        if text.startswith("affine.store") and (target := re.search(r"(%arg\d+)\[", text)):
            stores[target[1]] = stores.get(target[1], 0) + math.prod(around)
        if text.endswith("{"):
            trip = _trip_count(text) if "affine.for" in text else 1
            if trip is None:
                return None
            around.append(trip)
            if "iter_args" in text:
                carried.append(math.prod(around))
    return stores, sorted(carried)


def _fusion_is_sound(before: str, after: str) -> bool:
    """Whether a fusion left arguments as many stores, recurrences their iterations, and buffers their first value."""
    if before == after:
        return True
    executed = _executions(before)
    return executed is not None and executed == _executions(after) and _buffers_are_written_first(before, after)


def _buffers_are_written_first(before: str, after: str) -> bool:
    """Whether every buffer that a pass brought in is stored to before it is loaded from, in the order of the text."""
    known = before.count("memref.alloc")
    for buffer in re.findall(r"(%\S+) = memref\.alloc", after) if after.count("memref.alloc") > known else ():
        first = re.search(rf"affine\.(load|store) [^\n]*?{re.escape(buffer)}\[", after)
        if first is not None and first[1] == "load":
            return False
    return True


# --- moves: one step each, drawn for the text it will be applied to ---------------------------------------------------
# `affine-loop-normalize` with promotion removes the one-iteration loops that tiling by 1 or by WHOLE leaves behind.

CLEAN = ("affine-loop-normalize{promote-single-iter=1}", "canonicalize")


def _none_needed(before: str, after: str) -> bool:
    return True


@dataclass(frozen=True)
class _Move:
    """A kind of step."""

    draw: Callable[[random.Random, str], Schedule | None]
    """A step with parameters for this text; None where it has nothing to do or may not be done."""
    sound: Callable[[str, str], bool] = _none_needed
    """(text before, text after) -> whether the pass kept the meaning, where that shows only afterwards."""
    kind: str = ""
    """What it belongs to, e.g. "tile"; plans are tried kind by kind, by their first move."""


def _step(name: str, *passes: str) -> Schedule:
    return Schedule(name, passes)


def _may_tile(mlir: str) -> bool:
    return "affine.for" in mlir and bands_are_permutable(mlir)


def _sized(sizes: Sequence[int]) -> tuple[str, str]:
    """("32xall", the pass): per-loop tile sizes as they stand in a name, and as a pass."""
    mark = "x".join("all" if size == WHOLE else str(size) for size in sizes)
    return mark, f"affine-loop-tile{{tile-sizes={','.join(map(str, sizes))}}}"


def _tile(rng: random.Random, mlir: str) -> Schedule | None:
    """One size, or one per loop with some loops left whole; at least one is split."""
    if not _may_tile(mlir):
        return None
    depth = outline(mlir).max_depth
    choices = (4, 8, 16, 32, 64, 128)
    if depth == 1 or rng.random() < 0.35:
        size = rng.choice(choices)
        return _step(f"tile-{size}", f"affine-loop-tile{{tile-size={size}}}")
    sizes = [rng.choice(choices) if rng.random() < 0.75 else WHOLE for _ in range(depth)]
    if all(size == WHOLE for size in sizes):
        sizes[rng.randrange(depth)] = rng.choice(choices)
    mark, tiling = _sized(sizes)
    return _step(f"tile-{mark}", tiling, *(CLEAN if WHOLE in sizes or rng.random() < 0.3 else ()))


def _tile_exactly(rng: random.Random, mlir: str) -> Schedule | None:
    """A size that divides every constant trip count: full tiles only, which later steps can vectorize or unroll."""
    if not _may_tile(mlir):
        return None
    trips = [_trip_count(line) for line in re.findall(r"affine\.for[^\n]*", mlir)]
    sizes = [size for size in (4, 8, 16, 32, 64) if all(trip is None or trip % size == 0 for trip in trips)]
    if not sizes:
        return None
    size = rng.choice(sizes)
    return _step(f"tile-{size}", f"affine-loop-tile{{tile-size={size}}}")


def _tile_separate(rng: random.Random, mlir: str) -> Schedule | None:
    """Full tiles apart from partial ones."""
    if not _may_tile(mlir):
        return None
    size = rng.choice((4, 8, 16, 32))
    return _step(f"tile-{size}-separate", f"affine-loop-tile{{tile-size={size} separate=1}}")


def _tile_for_cache(rng: random.Random, mlir: str) -> Schedule | None:
    """Sizes from the pass's own footprint model."""
    if not _may_tile(mlir):
        return None
    kib = rng.choice((8, 16, 32, 256))
    return _step(f"tile-cache-{kib}KiB", f"affine-loop-tile{{cache-size={kib}}}")


def _tile_twice(rng: random.Random, mlir: str) -> Schedule | None:
    """A cache level and a register level."""
    if not _may_tile(mlir):
        return None
    depth = outline(mlir).max_depth
    outer, inner = rng.choice((16, 32, 64, 128)), rng.choice((2, 4, 8))
    inner_sizes = [inner if rng.random() < 0.6 else WHOLE for _ in range(depth)]
    inner_sizes[rng.randrange(depth)] = inner
    mark, _ = _sized(inner_sizes)
    _, tiling = _sized([WHOLE] * depth + inner_sizes)
    return _step(f"tile-{outer}.{mark}", f"affine-loop-tile{{tile-size={outer}}}", *CLEAN, tiling, *CLEAN)


def _interchange(rng: random.Random, mlir: str) -> Schedule | None:
    """Moves some loops inwards, past the others, which keep their order.

    Upstream has no interchange pass, but the tiler is one: tile size 1 makes the tile loop the whole loop and the point
    loop one iteration, WHOLE does the opposite, so the WHOLE loops end inside the others.
    """
    if not _may_tile(mlir):
        return None
    depth = outline(mlir).max_depth
    if depth < 2:
        return None
    inward = [False] * depth
    while all(inward) or not any(inward) or inward == sorted(inward):  # sorted: already innermost, nothing would move
        inward = [rng.random() < 0.5 for _ in range(depth)]
    order = [i for i in range(depth) if not inward[i]] + [i for i in range(depth) if inward[i]]
    _, tiling = _sized([WHOLE if moved else 1 for moved in inward])
    return _step(f"interchange-{'.'.join(map(str, order))}", tiling, *CLEAN)


def _jam(rng: random.Random, mlir: str) -> Schedule | None:
    if outline(mlir).max_depth < 2 or yields_its_own_arguments(mlir) or not _outermost_is_parallel(mlir):
        return None
    factor = rng.choice((2, 2, 4, 4, 8))
    return _step(f"jam-{factor}", f"affine-loop-unroll-jam{{unroll-jam-factor={factor}}}")


def _unroll(rng: random.Random, mlir: str) -> Schedule | None:
    factor = rng.choice((2, 4, 4, 8))
    if not _unrolls_rightly(mlir, factor) or mlir.count("\n") * factor > 5 * MAX_UNROLLED_LINES:
        return None
    return _step(f"unroll-{factor}", f"affine-loop-unroll{{unroll-factor={factor}}}")


def _unroll_full(rng: random.Random, mlir: str) -> Schedule | None:
    """All loops up to some trip count. The threshold needs the factor -1 beside it, or the factor is 4."""
    if not _unrolls_rightly(mlir, 0):
        return None
    trips = {trip for trip in outline(mlir).innermost_trips if trip is not None and trip > 1}
    fitting = sorted(limit for limit in trips if _copies(mlir, limit) <= MAX_COPIES)
    if not fitting:
        return None
    limit = rng.choice(fitting)
    return _step(f"unroll-full-{limit}", f"affine-loop-unroll{{unroll-factor=-1 unroll-full-threshold={limit}}}")


def _copies(mlir: str, limit: int) -> int:
    """The most copies of one operation when every loop of at most `limit` iterations is unrolled."""
    most = 1
    around: list[int] = []  # one entry per open brace
    for token in _TOKEN.findall(mlir):
        if token == "}":
            around.pop()
            continue
        trip = _trip_count(token) if token.startswith("affine.for") else None
        around.append(trip if trip is not None and trip <= limit else 1)
        most = max(most, math.prod(around))
    return most


def _fuse(rng: random.Random, mlir: str) -> Schedule | None:
    found = outline(mlir)
    if found.nests < 2 and len(found.innermost_trips) < 2:
        return None
    if has_opaque_accesses(mlir) or not later_nests_only_read(mlir):
        return None
    mode = rng.choice(("greedy", "greedy", "producer", "sibling"))
    return _step(f"fuse-{mode}", f"affine-loop-fusion{{mode={mode}}}")


def _vectorize(rng: random.Random, mlir: str) -> Schedule | None:
    found = outline(mlir)
    wanted = (4, 4, 8) if found.element_bits > 32 else (4, 8, 8, 16)
    lanes = [n for n in wanted if n in _lanes_that_fit(mlir)]
    if not lanes:
        return None
    width = rng.choice(lanes)
    reductions = " vectorize-reductions=1" if found.carried else ""
    vectorizing = f"affine-super-vectorize{{virtual-vector-size={width}{reductions}}}"
    if rng.random() < 0.5:
        return _step(f"vectorize-{width}.tidy", vectorizing, "canonicalize", "cse")
    return _step(f"vectorize-{width}", vectorizing)


def _copy(rng: random.Random, mlir: str) -> Schedule | None:
    """Local buffers; they stay in memory space 0, the only one this target has."""
    if has_opaque_accesses(mlir) or not _copies_are_complete(mlir):
        return None
    kib = rng.choice((4, 16, 32, 128))
    copying = f"affine-data-copy-generate{{fast-mem-space=0 fast-mem-capacity={kib}}}"
    return _step(f"copy-{kib}KiB", copying, "canonicalize")


def _coalesce(rng: random.Random, mlir: str) -> Schedule | None:
    found = outline(mlir)
    if found.max_depth < 2 or found.carried or None in map(_trip_count, re.findall(r"affine\.for[^\n]*", mlir)):
        return None
    return _step("coalesce", "affine-loop-coalescing", "canonicalize")


# --- moves for every text, scf and cf too ---------------------------------------------------------------------------

MAX_UNROLLED_LINES = 400
"""A loop is not unrolled to more lines than this."""


def _loops(mlir: str) -> list[tuple[int, str, int, bool]]:
    """(number, header, lines of the body, whether no loop is inside) of each affine and scf loop in text order."""
    lines, spans = mlir.splitlines(), loop_lines(mlir)
    return [
        (number, lines[start].strip(), end - start - 1, not any(start < other < end for other, _ in spans))
        for number, (start, end) in enumerate(spans)
    ]


def _unroll_one(rng: random.Random, mlir: str) -> Schedule | None:
    """Any one loop by the transform dialect: those of scf at every level, those of affine that hold others."""
    loops = [
        (number, size, innermost)
        for number, header, size, innermost in _loops(mlir)
        if ("scf.for" in header or (not innermost and "iter_args" not in header)) and size <= MAX_UNROLLED_LINES // 2
    ]
    if not loops:
        return None
    inner = [loop for loop in loops if loop[2]]
    number, size, innermost = rng.choice(inner if inner and rng.random() < 0.7 else loops)
    factors = [factor for factor in (2, 3, 4, 4, 8) if size * factor <= MAX_UNROLLED_LINES]
    factor = rng.choice(factors)
    return _step(
        f"unroll-{'inner' if innermost else 'outer'}{number}-{factor}", f"@unroll{{{number},{factor}}}", "canonicalize"
    )


def _unroll_all(rng: random.Random, mlir: str) -> Schedule | None:
    """Every innermost scf loop."""
    inner = [(n, size) for n, header, size, innermost in _loops(mlir) if innermost and "scf.for" in header]
    factor = rng.choice((2, 4, 8))
    inner = [(n, size) for n, size in inner if size * factor <= MAX_UNROLLED_LINES // 2]
    if len(inner) < 2 or sum(size for _, size in inner) * factor > 2 * MAX_UNROLLED_LINES:
        return None
    steps = [f"@unroll{{{n},{factor}}}" for n, _ in reversed(inner)]  # from the end: numbers before it stay
    return _step(f"unroll-scf-{factor}", *steps[:6], "canonicalize")


def _peel_first(rng: random.Random, mlir: str) -> Schedule | None:
    loops = [n for n, header, size, _ in _loops(mlir) if "scf.for" in header and size <= 150]
    if not loops:
        return None
    number = rng.choice(loops)
    return _step(f"peel-{number}", f"@peel{{{number},0}}", "canonicalize")


def _flatten(rng: random.Random, mlir: str) -> Schedule | None:
    """Two perfectly nested scf loops become one."""
    lines = mlir.splitlines()
    spans = loop_lines(mlir)
    found = [
        number
        for number, (start, end) in enumerate(spans)
        if (start + 1, end - 1) in spans
        and all("scf.for" in lines[s] and "iter_args" not in lines[s] for s in (start, start + 1))
        and not re.search(re.escape(re.findall(r"for (%\S+)", lines[start])[0]) + r"(?![\w])", lines[start + 1])
    ]
    if not found:
        return None
    number = rng.choice(found)
    return _step(f"flatten-{number}", f"@flatten{{{number},0}}", "canonicalize")


def _to_scf(rng: random.Random, mlir: str) -> Schedule | None:
    if "affine." not in mlir:
        return None
    return _step("scf", "lower-affine", *(("canonicalize", "cse") if rng.random() < 0.5 else ("canonicalize",)))


def _to_cf(rng: random.Random, mlir: str) -> Schedule | None:
    if "affine." not in mlir and "scf." not in mlir:
        return None
    lowering = ("lower-affine",) if "affine." in mlir else ()
    return _step("cf", *lowering, "convert-scf-to-cf", "canonicalize")


def _lift(rng: random.Random, mlir: str) -> Schedule | None:
    if "cf.cond_br" not in mlir:
        return None
    return _step("lift", "lift-cf-to-scf", "canonicalize")


def _raise(rng: random.Random, mlir: str) -> Schedule | None:
    if "scf.for" not in mlir:
        return None
    return _step("raise", "@raise", "affine-raise-from-memref", "canonicalize")


def _to_while(rng: random.Random, mlir: str) -> Schedule | None:
    if "scf.for" not in mlir:
        return None
    return _step("while", "scf-for-to-while")


def _select(rng: random.Random, mlir: str) -> Schedule | None:
    if "scf.if" not in mlir:
        return None
    return _step("select", "@select", "canonicalize")


def _branch(rng: random.Random, mlir: str) -> Schedule | None:
    if "arith.select" not in mlir:
        return None
    return _step("branch", "@branch", "control-flow-sink")


def _stack(rng: random.Random, mlir: str) -> Schedule | None:
    if "memref.alloc()" not in mlir:
        return None
    return _step("stack", "@stack")


_UNSTEADY = re.compile(r"arith\.cmpf|fptosi|fptoui|math\.(?:floor|ceil|round)|scf\.while|cf\.cond_br")


def _associate(rng: random.Random, mlir: str) -> Schedule | None:
    """Sums in any order; only where no rounding can decide anything."""
    if _UNSTEADY.search(mlir) or "arith.addf" not in mlir:
        return None
    return _step("associate", "@associate")


def _outermost(mlir: str) -> list[int]:
    """Numbers of the loops that stand directly in the function."""
    lines = mlir.splitlines()
    return [n for n, (start, _) in enumerate(loop_lines(mlir)) if re.match(r"    \S", lines[start])]


_UNSEEN_BY_FISSION = re.compile(r"vector\.|vector_|memref\.(?:copy|subview|reinterpret|cast|view|atomic|generic)|call ")


def _fission(rng: random.Random, mlir: str) -> Schedule | None:
    """One outermost loop as two, where neither stores what the other accesses."""
    if _UNSEEN_BY_FISSION.search(mlir):
        return None
    outermost = _outermost(mlir)
    found = [number for number in outermost if fissioned(mlir, number) != mlir]
    if not found:
        return None
    number = rng.choice(found)
    place = outermost.index(number)
    step = _step(f"fission-{place}", f"@fission{{{number}}}", "canonicalize")
    after = apply(mlir, step)
    tidied = apply(mlir, Schedule("", ("canonicalize",)))
    if len(_outermost(tidied)) != len(outermost) or len(_outermost(after)) != len(outermost) + 1:
        return None  # loops went away: which ones the halves are is not known
    return step if accesses_are_apart(after, place) else None


def _parallel_tile(rng: random.Random, mlir: str) -> Schedule | None:
    """What `affine-parallelize` proves parallel, tiled as scf.parallel; nests need not be affine throughout."""
    if outline(mlir).max_depth == 0 or "affine.vector_" in mlir:
        return None
    sizes = ",".join(str(rng.choice((2, 4, 8, 16, 32, 64))) for _ in range(2))
    return _step(
        f"parallel-{sizes.replace(',', 'x')}",
        "affine-parallelize{max-nested=2}",
        "lower-affine",
        f"scf-parallel-loop-tiling{{parallel-loop-tile-sizes={sizes}}}",
        "canonicalize",
        "scf-parallel-for-to-nested-fors",
        "canonicalize",
    )


def _narrow(rng: random.Random, mlir: str) -> Schedule | None:
    bits = rng.choice(("8,16,32", "32"))
    return _step(
        "narrow",
        "int-range-optimizations",
        f"arith-int-range-narrowing{{int-bitwidths-supported={bits}}}",
        "canonicalize",
    )


def _peel_last(rng: random.Random, mlir: str) -> Schedule | None:
    if not re.search(r"scf\.for .* step (?!%c1(?:_\d+)? )", mlir):
        return None
    return _step("peel-rest", "scf-for-loop-peeling", "scf-for-loop-canonicalization", "canonicalize")


TILE, TILE_EXACTLY, TILE_TWICE = (_Move(draw, kind="tile") for draw in (_tile, _tile_exactly, _tile_twice))
TILE_SEPARATE, TILE_FOR_CACHE = _Move(_tile_separate, kind="tile"), _Move(_tile_for_cache, kind="tile")
INTERCHANGE, JAM = _Move(_interchange, kind="interchange"), _Move(_jam, kind="jam")
UNROLL, UNROLL_FULL = _Move(_unroll, kind="unroll"), _Move(_unroll_full, kind="unroll")
FUSE, FISSION = _Move(_fuse, _fusion_is_sound, "fuse"), _Move(_fission, kind="fuse")
VECTORIZE, COPY = _Move(_vectorize, kind="vectorize"), _Move(_copy, kind="copy")
SCALREP = _Move(lambda rng, mlir: _step("scalrep", "affine-scalrep"), kind="memory")
LICM = _Move(lambda rng, mlir: _step("licm", "affine-loop-invariant-code-motion"), kind="memory")
HOIST = _Move(lambda rng, mlir: _step("hoist", "loop-invariant-code-motion"), kind="memory")
SINK = _Move(lambda rng, mlir: _step("sink", "control-flow-sink"), kind="memory")
CSE = _Move(lambda rng, mlir: _step("cse", "cse", "canonicalize"), kind="memory")
COALESCE, FLATTEN = _Move(_coalesce, kind="coalesce"), _Move(_flatten, kind="coalesce")
UNROLL_ONE, UNROLL_ALL = _Move(_unroll_one, kind="unroll-one"), _Move(_unroll_all, kind="unroll-one")
PEEL_FIRST, PEEL_LAST = _Move(_peel_first, kind="peel"), _Move(_peel_last, kind="peel")
TO_SCF, TO_CF, TO_WHILE, LIFT = (_Move(draw, kind="lower") for draw in (_to_scf, _to_cf, _to_while, _lift))
RAISE = _Move(_raise, kind="raise")
SELECT, BRANCH = _Move(_select, kind="branch"), _Move(_branch, kind="branch")
STACK, ASSOCIATE = _Move(_stack, kind="stack"), _Move(_associate, kind="associate")
PARALLEL_TILE, NARROW = _Move(_parallel_tile, kind="parallel"), _Move(_narrow, kind="narrow")

PLANS: tuple[tuple[_Move, ...], ...] = (
    (TILE,),
    (TILE_TWICE,),
    (TILE_SEPARATE,),
    (TILE_FOR_CACHE,),
    (TILE, UNROLL),
    (TILE_EXACTLY, VECTORIZE),
    (TILE_EXACTLY, UNROLL_FULL),
    (TILE, COPY),
    (TILE, JAM, SCALREP),
    (TILE, LICM, SCALREP),
    (INTERCHANGE,),
    (INTERCHANGE, UNROLL),
    (INTERCHANGE, VECTORIZE),
    (INTERCHANGE, TILE),
    (INTERCHANGE, JAM, SCALREP),
    (JAM,),
    (JAM, SCALREP),
    (JAM, UNROLL, SCALREP),
    (JAM, VECTORIZE),
    (UNROLL,),
    (UNROLL, SCALREP),
    (UNROLL, SCALREP, LICM),
    (UNROLL_FULL,),
    (UNROLL_FULL, SCALREP),
    (VECTORIZE,),
    (VECTORIZE, UNROLL),
    (FUSE,),
    (FUSE, SCALREP),
    (FUSE, VECTORIZE),
    (FUSE, UNROLL, SCALREP),
    (FUSE, TILE),
    (FISSION,),
    (FISSION, VECTORIZE),
    (FISSION, TILE),
    (FISSION, UNROLL),
    (SCALREP,),
    (LICM,),
    (SCALREP, LICM),
    (COPY,),
    (COPY, UNROLL),
    (COALESCE,),
    (COALESCE, UNROLL),
    (FLATTEN,),
    (FLATTEN, UNROLL_ONE),
    (UNROLL_ONE,),
    (UNROLL_ONE, SCALREP),
    (UNROLL_ONE, UNROLL_ONE),
    (UNROLL_ALL,),
    (UNROLL_ONE, SELECT),
    (TO_SCF, UNROLL_ONE),
    (TO_SCF, UNROLL_ALL),
    (TO_SCF, PEEL_FIRST, UNROLL_ONE),
    (LIFT, HOIST, UNROLL_ONE),
    (RAISE, UNROLL),
    (RAISE, VECTORIZE),
    (RAISE, INTERCHANGE),
    (RAISE, TILE),
    (RAISE, JAM),
    (RAISE, UNROLL_FULL, SCALREP),
    (SELECT,),
    (SELECT, UNROLL_ONE),
    (SELECT, VECTORIZE),
    (BRANCH,),
    (BRANCH, UNROLL_ONE),
    (STACK,),
    (STACK, UNROLL_ONE),
    (ASSOCIATE,),
    (ASSOCIATE, UNROLL),
    (ASSOCIATE, UNROLL_ONE),
    (PARALLEL_TILE,),
    (PARALLEL_TILE, UNROLL_ONE),
    (PEEL_FIRST,),
    (PEEL_LAST,),
)
"""The combinations that are tried, each a list of moves in order."""

FILLING_PLANS: tuple[tuple[_Move, ...], ...] = (
    (HOIST,),
    (NARROW,),
    (TO_SCF, HOIST),
    (TO_SCF, NARROW),
    (TO_SCF, TO_WHILE),
    (TO_WHILE,),
    (TO_CF,),
    (LIFT,),
    (RAISE, SCALREP),
    (CSE, HOIST, SINK),
    (BRANCH, HOIST),
    (STACK, HOIST),
    (LIFT, HOIST),
    (LIFT, SELECT, HOIST),
    (LIFT, NARROW),
    (LIFT, BRANCH),
    (LIFT, CSE, TO_CF),
)
"""Tried after the others, only while there are fewer variants than `WANTED`: code that LLVM often makes the same."""

WANTED = 7


# --- the choice -------------------------------------------------------------------------------------------------------


def schedules_for(source_mlir: str, seed: int = 0, *, count: int = 10) -> list[Schedule]:
    """The identity and up to `count - 1` other schedules, each of which gives another text; see `variants_for`."""
    return [variant.schedule for variant in variants_for(source_mlir, seed, count=count)]


def variants_for(
    source_mlir: str, seed: int = 0, *, count: int = 10, failures: list[tuple[str, LabelError]] | None = None
) -> list[Variant]:
    """The identity and up to `count - 1` variants with different texts; fewer where the plans give no more.

    The same text, seed and count give the same list. Each plan that fits the program is tried once, in random order;
    10 variants take about 0.7 s. A step that fails ends its plan, and (schedule, error) is appended to `failures`.

    Raises
    ------
    LabelError, ToolMissingError
        mlir-opt refuses the source itself, or is missing.
    """
    source = apply(source_mlir, IDENTITY)
    variants = [Variant(IDENTITY, source)]
    tidying = (("canonicalize",), CLEAN, ("canonicalize", "cse"))
    untouched = frozenset((source, *(apply(source, Schedule("tidy", passes)) for passes in tidying)))
    seen = set(untouched)
    rng = random.Random(f"{seed}/{source_mlir}")
    for plan in (*_by_turns(PLANS, rng), *_by_turns(FILLING_PLANS, rng)):
        if len(variants) >= (min(count, WANTED) if plan in FILLING_PLANS else count):
            break
        variant = _follow(plan, rng, source, untouched, failures)
        if variant is not None and variant.mlir not in seen:
            seen.add(variant.mlir)
            variants.append(variant)
    return variants


def _by_turns(plans: Sequence[tuple[_Move, ...]], rng: random.Random) -> list[tuple[_Move, ...]]:
    """All plans in random order, one of each kind before a second one of any."""
    by_kind: dict[str, list[tuple[_Move, ...]]] = {}
    for plan in rng.sample(list(plans), len(plans)):
        by_kind.setdefault(plan[0].kind, []).append(plan)
    ordered = []
    while by_kind:
        kinds = list(by_kind)
        rng.shuffle(kinds)
        for kind in kinds:
            ordered.append(by_kind[kind].pop())
            if not by_kind[kind]:
                del by_kind[kind]
    return ordered


def _follow(
    plan: Sequence[_Move],
    rng: random.Random,
    source: str,
    untouched: frozenset[str],
    failures: list[tuple[str, LabelError]] | None,
) -> Variant | None:
    """The program after those steps of a plan that change it; None where none does, or one is unsound.

    `untouched`: the texts of a program that was only tidied, which is not worth a step.
    """
    text = source
    names: list[str] = []
    passes: list[str] = []
    for move in plan:
        step = move.draw(rng, text)
        if step is None:
            break
        try:
            after = apply(text, step)
        except LabelError as error:
            if failures is not None:
                failures.append(("+".join([*names, step.name]), error))
            return None
        if not move.sound(text, after):
            return None
        if after == text or after in untouched:
            continue
        text = after
        names.append(step.name)
        passes += step.passes
    return Variant(Schedule("+".join(names), tuple(passes)), text) if names else None
