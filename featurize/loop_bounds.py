"""Bounds and steps of loop operations as linear forms, in custom and generic syntax."""

from __future__ import annotations

import re

from .accesses import by_name
from .affine import AffineError, Linear, Term, constant, integer, parse_inline
from .attribute_text import is_generic, mixed_list, property_text, split_top, static_list, top_level_groups
from .program import Op
from .values import ATTR_REF, Values

_BOUND = re.compile(rf"\s*(max|min)?\s*(?:(-?\d+)|(%[\w$.#-]+)|({ATTR_REF})\s*\(([^)]*)\)\s*(?:\[([^\]]*)\])?)", re.S)
_STEP = re.compile(r"\s*step\s+(\d+)")
_INT = re.compile(r"-?\d+")

Dimension = tuple[list[Linear], list[Linear], int]
"""Lower bounds (the largest counts), upper bounds (the smallest counts, none: unknown), step."""
_UNKNOWN: Dimension = ([], [], 1)


def bounds_of(values: Values, op: Op, args: list[int]) -> list[Dimension]:
    """The dimensions of a loop operation, `args` being its body's arguments; no upper bounds where unknown."""
    try:
        if op.name == "affine.for":
            return [_affine_for(values, op)]
        if op.name == "scf.for":
            lower, upper, step = (values.linear(v) for v in op.operands[:3])
            return [_scf_dim(lower, upper, step)]
        if op.name == "scf.parallel":
            n = max(1, len(args))
            lin = [values.linear(v) for v in op.operands[: 3 * n]]
            return [_scf_dim(lin[i], lin[n + i], lin[2 * n + i]) for i in range(n)]
        if op.name == "affine.parallel":
            return _affine_parallel(values, op)
        if op.name == "scf.forall":
            return _forall(values, op)
    except (AffineError, IndexError, ValueError):
        n = len(args) if op.name in ("scf.parallel", "affine.parallel", "scf.forall") else 1
        return [_UNKNOWN] * max(1, n)
    return [_UNKNOWN]


def _affine_for(values: Values, op: Op) -> Dimension:
    text = values.text_of(op)
    operands = [values.linear(v) for v in op.operands]
    if is_generic(text):
        lower_map = values.map_of(property_text(text, "lowerBoundMap"))
        upper_map = values.map_of(property_text(text, "upperBoundMap"))
        step = integer((_INT.search(property_text(text, "step")) or _INT.search("1")).group())  # type: ignore[union-attr]
        n = lower_map.n_dims + lower_map.n_symbols
        lowers = [r.substitute(operands[:n]) for r in lower_map.results]
        uppers = [r.substitute(operands[n:]) for r in upper_map.results]
        return lowers, uppers, step
    form = op.form
    written = form.facts if form is not None else None
    if written is None:
        written = _written_bounds(text)
        if form is not None:
            form.facts = written
    lower, upper, step = written
    lowers, used = _bound(values, lower, operands)
    uppers, _ = _bound(values, upper, operands[used:])
    return lowers, uppers, step


def _written_bounds(text: str) -> tuple[int | str, int | str, int]:
    """Lower and upper bound of a custom `affine.for`, each a constant, "" for a value, or a map; and the step."""
    lower, at = _written_bound(text, text.index("=") + 1)
    upper, at = _written_bound(text, text.index("to", at) + 2)
    match = _STEP.match(text, at)
    return lower, upper, integer(match.group(1)) if match else 1


def _written_bound(text: str, at: int) -> tuple[int | str, int]:
    match = _BOUND.match(text, at)
    if match is None:
        raise AffineError("unreadable loop bound")
    if match.group(2):
        return integer(match.group(2)), match.end()
    return "" if match.group(3) else match.group(4), match.end()


def _bound(values: Values, written: int | str, operands: list[Linear]) -> tuple[list[Linear], int]:
    """One bound: its expressions, and how many operands it uses."""
    if isinstance(written, int):
        return [constant(written)], 0
    if not written:
        return [operands[0]], 1
    mapped = values.map_of(written)
    n = mapped.n_dims + mapped.n_symbols
    return [r.substitute(operands[:n]) for r in mapped.results], n


def _affine_parallel(values: Values, op: Op) -> list[Dimension]:
    text = values.text_of(op)
    operands = [values.linear(v) for v in op.operands]
    if is_generic(text):
        lower_map, upper_map = (values.map_of(property_text(text, k)) for k in ("lowerBoundsMap", "upperBoundsMap"))
        n = lower_map.n_dims + lower_map.n_symbols
        m = upper_map.n_dims + upper_map.n_symbols
        steps = [integer(s) for s in _INT.findall(property_text(text, "steps"))]
        lowers = _grouped(
            [r.substitute(operands[:n]) for r in lower_map.results],
            property_text(text, "lowerBoundsGroups"),
            len(steps),
        )
        uppers = _grouped(
            [r.substitute(operands[n : n + m]) for r in upper_map.results],
            property_text(text, "upperBoundsGroups"),
            len(steps),
        )
        return list(zip(lowers, uppers, steps, strict=True))
    parts = top_level_groups(text)
    if len(parts) < 3:
        raise AffineError("unreadable affine.parallel")
    lower_lists, used = _inline_bounds(values, parts[1], operands)
    upper_lists, _ = _inline_bounds(values, parts[2], operands[used:])
    rest = text[text.index("to") :] if "to" in text else ""
    step_match = re.search(r"\bstep\s*\(([^)]*)\)", rest)
    steps = [integer(s) for s in _INT.findall(step_match.group(1))] if step_match else [1] * len(lower_lists)
    return list(zip(lower_lists, upper_lists, steps, strict=True))


def _inline_bounds(values: Values, text: str, operands: list[Linear]) -> tuple[list[list[Linear]], int]:
    pieces = split_top(text)
    flat: list[str] = []
    sizes: list[int] = []
    for piece in pieces:
        piece = piece.strip()
        inner = re.match(r"(?:min|max)\s*\((.*)\)$", piece, re.S)
        members = split_top(inner.group(1)) if inner else [piece]
        flat += members
        sizes.append(len(members))
    mapped = parse_inline(", ".join(flat))
    order = mapped.names
    in_order = by_name(mapped, operands[: len(order)])
    results = [r.substitute(in_order) for r in mapped.results]
    out, at = [], 0
    for size in sizes:
        out.append(results[at : at + size])
        at += size
    return out, len(order)


def _forall(values: Values, op: Op) -> list[Dimension]:
    text = values.text_of(op)
    operands = [values.linear(v) for v in op.operands]
    if is_generic(text):
        lists = [static_list(property_text(text, k)) for k in ("staticLowerBound", "staticUpperBound", "staticStep")]
    else:
        parts = top_level_groups(text)
        if re.search(r"\)\s*in\s*\(", text):
            upper = mixed_list(parts[1])
            lists = [[0] * len(upper), upper, [1] * len(upper)]
        else:
            lists = [mixed_list(p) for p in parts[1:4]]
    at = 0
    resolved: list[list[Linear]] = []
    for entries in lists:
        row = []
        for entry in entries:
            if entry is None:
                row.append(operands[at])
                at += 1
            else:
                row.append(constant(entry))
        resolved.append(row)
    return [_scf_dim(lo, up, st) for lo, up, st in zip(*resolved, strict=True)]


def _scf_dim(lower: Linear, upper: Linear, step: Linear) -> Dimension:
    if step.terms or step.const <= 0:
        return [lower], [], 1
    return split_max(lower), split_min(upper), step.const


def split_min(bound: Linear) -> list[Linear]:
    """The bounds of which a bound is the least: itself, or the arguments of a minimum."""
    return _split(bound, "min")


def split_max(bound: Linear) -> list[Linear]:
    """The bounds of which a bound is the largest: itself, or the arguments of a maximum."""
    return _split(bound, "max")


def _split(bound: Linear, kind: str) -> list[Linear]:
    if len(bound.terms) == 1 and bound.const == 0:
        ((term, coefficient),) = bound.terms.items()
        if isinstance(term, Term) and term.kind == kind and coefficient == 1:
            return list(term.args)
    return [bound]


def _grouped(flat: list[Linear], groups: str, n: int) -> list[list[Linear]]:
    """Split the results of a bounds map into dims: `dense<[1, 2]> : tensor<2xi32>` or a splat `dense<1> : …`."""
    body = groups.split(":", 1)[0]
    sizes = [integer(s) for s in _INT.findall(body)] or [1]
    if len(sizes) == 1:
        sizes = sizes * n
    out, at = [], 0
    for size in sizes:
        out.append(flat[at : at + size])
        at += size
    return out
