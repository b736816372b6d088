"""Whether a program's loops may be tiled and interchanged, and other facts that keep passes from changing results.

MLIR's own check in `affine-loop-tile` misses negative distances that are constant (it tiles in-place stencils wrongly)
and ranges that span zero, so the question is answered here, on the text `mlir-opt` prints: one operation a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = [
    "bands_are_permutable",
    "has_opaque_accesses",
    "later_nests_only_read",
    "nests_are_perfect",
    "yields_its_own_arguments",
]


@dataclass(frozen=True)
class _Access:
    """One affine.load or affine.store."""

    stores: bool
    memref: str
    subscripts: tuple[str, ...]
    value: str
    """The SSA name loaded or stored."""
    line: int
    block: int
    """Number of the block it stands in."""


@dataclass
class _Loop:
    """One affine.for with what it holds."""

    variable: str
    spread: int | None
    """Largest difference of two values of the variable; None where a bound is not a constant."""
    step: int
    loops: list[_Loop] = field(default_factory=list)
    others: int = 0
    """Operations directly in the body that are no affine.for, the yield apart."""
    accesses: list[_Access] = field(default_factory=list)
    """Of the whole body, inner loops included."""

    @property
    def band(self) -> list[str]:
        """Variables of the perfect nest that starts here, outermost first."""
        inner = self.loops[0].band if len(self.loops) == 1 and not self.others else []
        return [self.variable, *inner]


_FOR = re.compile(r"affine\.for (%\w+) = (.*?)(?: step (\d+))?(?: iter_args\(.*)? \{$")
_CONSTANT = re.compile(r"(-?\d+) to (-?\d+)$")
_ACCESS = re.compile(r"(?:(%\w+) = )?affine\.(load|store) (?:(%[\w#]+), )?(%\w+)\[([^\]]*)\]")
_OPAQUE = re.compile(
    r"\b(?:memref\.(?:load|store|copy|atomic_rmw)|vector\.\w+|func\.call|call |affine\.(?:parallel|vector_\w+))"
)
_TERM = re.compile(r"([+-]?)\s*(?:symbol\()?(%\w+|\d+)\)?(?: \* (-?\d+))?\s*")
_COMBINE = re.compile(
    r"= (?:arith\.(?:addf|mulf|addi|muli|maxsi|minsi|maxui|minui|maxnumf|minnumf|maximumf|minimumf|xori|andi|ori)"
    r"|(?P<left>arith\.sub[fi])|(?P<last>math\.fma)) (?P<operands>[^:]*?)(?: fastmath\S*)? :"
)


def bands_are_permutable(mlir: str) -> bool:
    """Whether in every outermost perfect nest all loops may change places, so that any tiling keeps the results.

    Yes where iterations that touch the same element, one of them writing, differ in one loop only, or in several by
    distances of one sign. Sums, products and extrema accumulated in memory may be reordered in any way: like the passes
    of every compiler that reassociates, this changes floating-point results by rounding only. Conservative: what is not
    understood counts as no.
    """
    lines = mlir.splitlines()
    if has_opaque_accesses(mlir):
        return False
    return all(_is_permutable(loop, lines) for loop in _outermost_loops(lines))


def has_opaque_accesses(mlir: str) -> bool:
    """Whether memory is accessed by operations whose subscripts are not affine, or not read here."""
    return _OPAQUE.search(mlir) is not None


def nests_are_perfect(mlir: str) -> bool:
    """Whether every outermost loop holds either statements or one loop, all the way down."""
    lines = mlir.splitlines()
    return all(not _without_band(loop) for loop in _outermost_loops(lines))


def _without_band(loop: _Loop) -> bool:
    """Whether loops remain inside the perfect nest that starts here."""
    if len(loop.loops) == 1 and not loop.others:
        return _without_band(loop.loops[0])
    return bool(loop.loops)


def later_nests_only_read(mlir: str) -> bool:
    """Whether of loops that stand one after the other, a later one stores nothing that an earlier one accesses.

    Stores to the same element in the same iteration, `C[i, j] = 0` and later `C[i, j] += x`, are allowed.
    `affine-loop-fusion` looks at what a later nest reads, but may move its writes before an earlier nest's reads.
    """
    roots = _outermost_loops(mlir.splitlines())
    groups = [roots]
    while groups:
        siblings = groups.pop()
        groups += [loop.loops for loop in siblings]
        for at, later in enumerate(siblings):
            stored = {access.memref for access in later.accesses if access.stores}
            for earlier in siblings[:at]:
                for memref in stored & {access.memref for access in earlier.accesses}:
                    places = _places(earlier, memref) | _places(later, memref)
                    if len(places) > 1 or None in places:
                        return False
    return True


def _places(loop: _Loop, memref: str) -> set[tuple[int, ...] | None]:
    """How a nest indexes an array: the depths of the loop variables that are its subscripts; None for any other way."""
    depths = _depths(loop, 0)
    places: set[tuple[int, ...] | None] = set()
    for access in loop.accesses:
        if access.memref == memref:
            plain = all(subscript in depths for subscript in access.subscripts)
            places.add(tuple(depths[subscript] for subscript in access.subscripts) if plain else None)
    return places


def _depths(loop: _Loop, depth: int) -> dict[str, int]:
    found = {loop.variable: depth}
    for inner in loop.loops:
        found |= _depths(inner, depth + 1)
    return found


def yields_its_own_arguments(mlir: str) -> bool:
    """Whether a loop passes one of its carried values on unchanged, or in another place.

    `affine-loop-unroll` then uses values of the wrong iteration.
    """
    carried: list[set[str]] = []  # one entry per open brace
    for line in mlir.splitlines():
        text = line.strip()
        if text.startswith("affine.yield") and carried:
            own = set().union(*carried[-1:])
            if own & set(re.findall(r"%[\w#]+", text)):
                return True
        if text.startswith("}") and carried:
            carried.pop()
        if text.endswith("{"):
            arguments = re.search(r"iter_args\(([^)]*)\)", text) if "affine.for" in text else None
            carried.append(set(re.findall(r"(%\w+) =", arguments[1])) if arguments else set())
    return False


def _outermost_loops(lines: Sequence[str]) -> list[_Loop]:
    roots: list[_Loop] = []
    loops: list[_Loop] = []
    opened: list[_Loop | None] = []  # one entry per open region, the loop where it is one's body
    blocks = [0]
    count = 0
    for number, line in enumerate(lines):
        text = line.strip()
        if text.startswith("}"):
            if opened.pop() is not None:
                loops.pop()
            blocks.pop()
        header = _FOR.search(text)
        if header:
            bounds, step = _CONSTANT.match(header[2]), int(header[3] or 1)
            trips = -(-(int(bounds[2]) - int(bounds[1])) // step) if bounds else 0
            made = _Loop(header[1], (max(trips, 1) - 1) * step if bounds else None, step)
            (loops[-1].loops if loops else roots).append(made)
            if loops and opened[-1] is None:
                loops[-1].others += 1  # inside an affine.if: no perfect nest
            loops.append(made)
        elif loops and text and not text.startswith(("}", "affine.yield")):
            loops[-1].others += 1
            access = _ACCESS.search(text)
            if access:
                result, kind, stored, memref, subscripts = access.groups()
                one = _Access(kind == "store", memref, _split(subscripts), stored or result, number, blocks[-1])
                for loop in loops:
                    loop.accesses.append(one)
        if text.endswith("{"):
            opened.append(loops[-1] if header else None)
            count += 1
            blocks.append(count)
    return roots


def _split(subscripts: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in subscripts.split(",")) if subscripts else ()


def _linear(subscript: str) -> dict[str, int] | None:
    """Coefficients by variable, the constant under ""; None where the subscript is not a sum of multiples."""
    coefficients: dict[str, int] = {}
    at = 0
    while at < len(subscript):
        term = _TERM.match(subscript, at)
        if term is None or term.end() == at or (at > 0 and not term[1]):
            return None
        factor = int(term[3] or 1) * (-1 if term[1] == "-" else 1)
        name, factor = (term[2], factor) if term[2].startswith("%") else ("", factor * int(term[2]))
        coefficients[name] = coefficients.get(name, 0) + factor
        at = term.end()
    return coefficients


def _is_permutable(loop: _Loop, lines: Sequence[str]) -> bool:
    band = loop.band
    if len(band) == 1:
        return True
    known = _by_variable(loop)
    by_memref: dict[str, list[_Access]] = {}
    for access in loop.accesses:
        by_memref.setdefault(access.memref, []).append(access)
    for accesses in by_memref.values():
        if not any(access.stores for access in accesses):
            continue
        reduction = _is_reduction(accesses, lines)
        for number, first in enumerate(accesses):
            for second in accesses[number:]:
                if (first.stores or second.stores) and not _keeps_order(first, second, band, known, reduction):
                    return False
    return True


def _by_variable(loop: _Loop) -> dict[str, _Loop]:
    found = {loop.variable: loop}
    for inner in loop.loops:
        found |= _by_variable(inner)
    return found


def _keeps_order(
    first: _Access, second: _Access, band: Sequence[str], known: Mapping[str, _Loop], reduction: bool
) -> bool:
    """Whether no permutation of the band can exchange two conflicting executions of these accesses."""
    fixed: dict[str, int] = {}
    if len(first.subscripts) != len(second.subscripts):
        return False
    for one, other in zip(first.subscripts, second.subscripts, strict=True):
        left, right = _linear(one), _linear(other)
        if left is None or right is None or not (set(left) | set(right)) <= set(known) | {""}:
            continue  # no constraint: anything may conflict
        distance = right.pop("", 0) - left.pop("", 0)
        if left != right:
            continue
        variables = [name for name, factor in left.items() if factor]
        if not variables and distance:
            return True  # different elements, always
        if len(variables) > 1 and not distance and _are_digits({name: left[name] for name in variables}, known):
            if all(fixed.get(name, 0) == 0 for name in variables if name in band):
                fixed |= {name: 0 for name in variables if name in band}
                continue
            return True
        if len(variables) != 1 or variables[0] not in band:
            continue
        [variable] = variables
        if distance % left[variable] or fixed.get(variable, distance // left[variable]) != distance // left[variable]:
            return True
        fixed[variable] = distance // left[variable]
    free = [variable for variable in band if variable not in fixed]
    if any(fixed.values()):
        return not free and (min(fixed.values()) >= 0 or max(fixed.values()) <= 0)
    return len(free) <= 1 or reduction


def _are_digits(factors: Mapping[str, int], known: Mapping[str, _Loop]) -> bool:
    """Whether a sum of multiples is the same twice only if every variable is, as with the digits of a number."""
    below = 0
    for name in sorted(factors, key=lambda name: abs(factors[name]) * known[name].step):
        spread = known[name].spread
        if spread is None or abs(factors[name]) * known[name].step <= below:
            return False
        below += abs(factors[name]) * spread
    return True


def _is_reduction(accesses: Sequence[_Access], lines: Sequence[str]) -> bool:
    """Whether an array is only used as `a[s] = a[s] + x` (or another operation whose order does not matter)."""
    if len(accesses) != 2:
        return False
    load, store = accesses
    if load.stores or not store.stores or load.subscripts != store.subscripts or load.block != store.block:
        return False
    between = lines[load.line + 1 : store.line + 1]
    uses = [line for line in between if re.search(rf"{re.escape(load.value)}\b", line)]
    if len(uses) != 1 or not uses[0].strip().startswith(f"{store.value} = "):
        return False
    combine = _COMBINE.search(uses[0])
    if combine is None:
        return False
    operands = [operand.strip() for operand in combine["operands"].split(",")]
    if operands.count(load.value) != 1:
        return False
    if combine["left"]:
        return operands[0] == load.value
    return not combine["last"] or operands[2] == load.value
