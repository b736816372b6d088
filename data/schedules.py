"""Schedules: the transformations that turn one program into a ranking task, each one a pipeline of `mlir-opt` passes.

A schedule never changes what a program computes (tests run variants against their source). Two things keep it so:

* Tiling checks dependences itself, and so does everything built from it here, interchange included.
* `affine-loop-unroll-jam` checks none: it is only offered for a program whose outermost loop `affine-parallelize`
  proves free of carried dependences, and only behind passes that keep that loop outermost.

A pass that finds nothing to do leaves the program as it is; such duplicates are dropped later, on canonical text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import LabelError
from .label.tools import run, tool

__all__ = ["IDENTITY", "Outline", "Schedule", "Variant", "apply", "outline", "schedules_for", "variants_for"]

WHOLE = 1 << 20
"""A tile size larger than any trip count: the loop is not split."""

MAX_TEXT_BYTES = 400_000
"""A variant with more text than this (a large full unroll) is refused: `LabelError("schedule-too-large")`."""

MAX_VOLUME_OF_FULL_UNROLL = 64
"""The largest number of copies of a body that full unrolling may make."""


@dataclass(frozen=True)
class Schedule:
    """A named list of passes."""

    name: str
    """Says what is done and with which parameters, e.g. "tile-32x8+unroll-4"; stored in each record."""
    passes: tuple[str, ...]
    """Elements of a `func.func(...)` pass pipeline in order, e.g. ("affine-loop-tile{tile-sizes=32,8}",)."""


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
    bounds = _CONSTANT_BOUNDS.search(header)
    if bounds is None:
        return None
    low, high, step = int(bounds[1]), int(bounds[2]), int(bounds[3] or 1)
    return max(0, -(-(high - low) // step))


# --- running mlir-opt -------------------------------------------------------------------------------------------------


def apply(mlir_text: str, schedule: Schedule, *, timeout_s: float = 20.0) -> str:
    """The program after a schedule, as `mlir-opt` prints it (no aliases, so each function stands for itself).

    Raises
    ------
    LabelError
        reason "schedule-timeout", "schedule-crash" (mlir-opt died of a signal), "schedule-error" (it refused the
        program, or a pass failed; `detail` is its first error line) or "schedule-too-large".
    ToolMissingError
        mlir-opt is not installed.
    """
    command = [tool("mlir-opt"), "--mlir-print-local-scope", "--mlir-disable-threading"]
    if schedule.passes:
        command.append(f"--pass-pipeline=builtin.module(func.func({','.join(schedule.passes)}))")
    text = run(command, step="schedule", stdin=mlir_text, timeout_s=timeout_s)
    if len(text) > MAX_TEXT_BYTES:
        raise LabelError("schedule-too-large", f"{schedule.name}: {len(text)} bytes of MLIR")
    return text


def _outermost_is_parallel(mlir: str) -> bool:
    """Whether no iteration of the first outermost loop depends on another, so that unroll-and-jam keeps the meaning."""
    text = apply(mlir, Schedule("parallelize", ("affine-parallelize{max-nested=1}",)))
    first = re.search(r"affine\.(for|parallel)\b", text)
    return first is not None and first[1] == "parallel"


# --- single steps -----------------------------------------------------------------------------------------------------
# `affine-loop-normalize` with promotion removes the one-iteration loops that tiling by 1 or by WHOLE leaves behind.

CLEAN = ("affine-loop-normalize{promote-single-iter=1}", "canonicalize")


def _step(name: str, *passes: str) -> Schedule:
    return Schedule(name, passes)


def _joined(*steps: Schedule) -> Schedule:
    return Schedule("+".join(step.name for step in steps), tuple(one for step in steps for one in step.passes))


def _tile(rng: random.Random, depth: int, choices: tuple[int, ...] = (4, 8, 16, 32, 64, 128)) -> Schedule:
    """Per-loop sizes, some loops left whole; at least one is split."""
    if depth == 1 or rng.random() < 0.35:
        size = rng.choice(choices)
        return _step(f"tile-{size}", f"affine-loop-tile{{tile-size={size}}}")
    sizes = [rng.choice(choices) if rng.random() < 0.75 else WHOLE for _ in range(depth)]
    if all(size == WHOLE for size in sizes):
        sizes[rng.randrange(depth)] = rng.choice(choices)
    name = "tile-" + "x".join("all" if size == WHOLE else str(size) for size in sizes)
    passes = (f"affine-loop-tile{{tile-sizes={','.join(map(str, sizes))}}}",)
    return Schedule(name, passes + CLEAN if WHOLE in sizes else passes)


def _tile_separate(rng: random.Random) -> Schedule:
    """Full tiles apart from partial ones."""
    size = rng.choice((4, 8, 16, 32))
    return _step(f"tile-{size}-separate", f"affine-loop-tile{{tile-size={size} separate=1}}")


def _tile_for_cache(rng: random.Random) -> Schedule:
    """Sizes from the pass's own footprint model."""
    kib = rng.choice((8, 16, 32, 256))
    return _step(f"tile-cache-{kib}KiB", f"affine-loop-tile{{cache-size={kib}}}")


def _tile_twice(rng: random.Random, depth: int) -> Schedule:
    """A cache level and a register level."""
    outer, inner = rng.choice((16, 32, 64, 128)), rng.choice((2, 4, 8))
    inner_sizes = [WHOLE] * depth + [inner if rng.random() < 0.6 else WHOLE for _ in range(depth)]
    inner_sizes[depth + rng.randrange(depth)] = inner
    mark = "x".join("all" if size == WHOLE else str(size) for size in inner_sizes[depth:])
    return _step(
        f"tile-{outer}+tile-{mark}",
        f"affine-loop-tile{{tile-size={outer}}}",
        *CLEAN,
        f"affine-loop-tile{{tile-sizes={','.join(map(str, inner_sizes))}}}",
        *CLEAN,
    )


def _interchange(rng: random.Random, depth: int) -> Schedule:
    """Moves some loops inwards, past the others, which keep their order.

    Upstream has no interchange pass, but the tiler is one: tile size 1 makes the tile loop the whole loop and the point
    loop one iteration, WHOLE does the opposite, so the WHOLE loops end inside the others. The tiler checks legality.
    """
    inward = [False] * depth
    while all(inward) or not any(inward) or inward == sorted(inward):  # sorted: already innermost, nothing would move
        inward = [rng.random() < 0.5 for _ in range(depth)]
    order = [i for i in range(depth) if not inward[i]] + [i for i in range(depth) if inward[i]]
    sizes = ",".join(str(WHOLE) if moved else "1" for moved in inward)
    return _step(f"interchange-{'.'.join(map(str, order))}", f"affine-loop-tile{{tile-sizes={sizes}}}", *CLEAN)


def _jam(rng: random.Random) -> Schedule:
    factor = rng.choice((2, 2, 4, 4, 8))
    return _step(f"jam-{factor}", f"affine-loop-unroll-jam{{unroll-jam-factor={factor}}}")


def _unroll(rng: random.Random) -> Schedule:
    factor = rng.choice((2, 4, 4, 8))
    if rng.random() < 0.2:
        return _step(f"unroll-{factor}-cleanup", f"affine-loop-unroll{{unroll-factor={factor} cleanup-unroll=1}}")
    return _step(f"unroll-{factor}", f"affine-loop-unroll{{unroll-factor={factor}}}")


def _unroll_full(limit: int) -> Schedule:
    return _step(f"unroll-full-{limit}", f"affine-loop-unroll{{unroll-full-threshold={limit}}}")


def _fuse(rng: random.Random) -> Schedule:
    mode = rng.choice(("greedy", "greedy", "producer", "sibling"))
    if rng.random() < 0.3:
        return _step(f"fuse-{mode}-maximal", f"affine-loop-fusion{{mode={mode} maximal=1}}")
    return _step(f"fuse-{mode}", f"affine-loop-fusion{{mode={mode}}}")


_SCALREP = _step("scalrep", "affine-scalrep")
_LICM = _step("licm", "affine-loop-invariant-code-motion")


def _vectorize(rng: random.Random, found: Outline) -> Schedule:
    lanes = rng.choice((4, 8)) if found.element_bits > 32 else rng.choice((4, 8, 8, 16))
    reductions = " vectorize-reductions=1" if found.carried else ""
    return _step(f"vectorize-{lanes}", f"affine-super-vectorize{{virtual-vector-size={lanes}{reductions}}}")


def _copy(rng: random.Random) -> Schedule:
    """Local buffers; they stay in memory space 0, the only one this target has."""
    kib = rng.choice((4, 16, 32, 128))
    return _step(
        f"copy-{kib}KiB", f"affine-data-copy-generate{{fast-mem-space=0 fast-mem-capacity={kib}}}", "canonicalize"
    )


_COALESCE = _step("coalesce", "affine-loop-coalescing", "canonicalize")


# --- the choice -------------------------------------------------------------------------------------------------------


def schedules_for(source_mlir: str, seed: int = 0, *, count: int = 10) -> list[Schedule]:
    """The identity and up to `count - 1` other schedules that fit the program's structure, without equal names.

    The same text, seed and count give the same list; every kind of schedule that fits is tried before one repeats.
    Runs mlir-opt once, to prove unroll-and-jam legal.

    Raises
    ------
    LabelError, ToolMissingError
        As `apply`.
    """
    found = outline(source_mlir)
    if found.max_depth == 0:
        return [IDENTITY]
    rng = random.Random(f"{seed}/{source_mlir}")
    kinds = _kinds(rng, found, jam=_outermost_is_parallel(source_mlir))
    chosen = {IDENTITY.name: IDENTITY}
    for _ in range(3):
        order = kinds[:]
        rng.shuffle(order)
        for kind in order:
            if len(chosen) >= count:
                return list(chosen.values())
            schedule = kind()
            chosen.setdefault(schedule.name, schedule)
    return list(chosen.values())


def variants_for(
    source_mlir: str, seed: int = 0, *, count: int = 10, tries: int = 30, failures: list[LabelError] | None = None
) -> list[Variant]:
    """The identity and further variants with different texts, until there are `count` or `tries` schedules were run.

    A schedule that fails is left out, and its error appended to `failures` when given. 25 ms of mlir-opt each.

    Raises
    ------
    LabelError, ToolMissingError
        mlir-opt refuses the source itself, or is missing.
    """
    variants = {apply(source_mlir, IDENTITY): IDENTITY}
    for schedule in schedules_for(source_mlir, seed, count=tries)[1:]:
        if len(variants) >= count:
            break
        try:
            variants.setdefault(apply(source_mlir, schedule), schedule)
        except LabelError as error:
            if failures is not None:
                failures.append(error)
    return [Variant(schedule, text) for text, schedule in variants.items()]


def _kinds(rng: random.Random, found: Outline, *, jam: bool) -> list[Callable[[], Schedule]]:
    """One maker per kind of schedule that can change a program of this outline."""
    depth = found.max_depth
    deep = depth >= 2

    def small_full_unroll() -> Schedule:
        fitting = [trip for trip in found.innermost_trips if trip is not None and 1 < trip <= MAX_VOLUME_OF_FULL_UNROLL]
        return _unroll_full(max(fitting)) if fitting else _joined(_unroll(rng), _SCALREP)

    def tile() -> Schedule:
        return _tile(rng, depth)

    kinds: list[Callable[[], Schedule]] = [
        tile,
        lambda: _unroll(rng),
        lambda: _vectorize(rng, found),
        small_full_unroll,
        lambda: _joined(_vectorize(rng, found), _unroll(rng)),
        lambda: _joined(tile(), _unroll(rng)),
        lambda: _joined(tile(), _vectorize(rng, found)),
        lambda: _joined(_unroll(rng), _SCALREP, _LICM),
        lambda: _copy(rng),
        lambda: _SCALREP,
        lambda: _LICM,
    ]
    if deep:
        kinds += [
            lambda: _interchange(rng, depth),
            lambda: _tile_twice(rng, depth),
            lambda: rng.choice((_tile_separate, _tile_for_cache))(rng),
            lambda: _joined(_interchange(rng, depth), _unroll(rng)),
            lambda: _joined(_interchange(rng, depth), _vectorize(rng, found)),
            lambda: _joined(_interchange(rng, depth), tile()),
            lambda: _joined(tile(), _copy(rng)),
            lambda: _COALESCE,
            lambda: _joined(_COALESCE, _unroll(rng)),
        ]
    if deep and jam:
        kinds += [
            lambda: _jam(rng),
            lambda: _joined(_jam(rng), _SCALREP),
            lambda: _joined(_tile(rng, depth), _jam(rng), _SCALREP),
            lambda: _joined(_jam(rng), _unroll(rng), _SCALREP),
        ]
    if found.nests >= 2 or (deep and len(found.innermost_trips) >= 2):
        kinds += [
            lambda: _fuse(rng),
            lambda: _joined(_fuse(rng), _SCALREP),
            lambda: _joined(_fuse(rng), _vectorize(rng, found)),
            lambda: _joined(_fuse(rng), _unroll(rng)),
        ]
    return kinds
