"""What to expect of values that the text does not tell, where it tells their range: the middle of it.

A remainder by C lies in [0, C), bits under a mask M in [0, M]. A minimum or maximum with a constant is taken as that
constant, as a loop's bounds are. A value loaded from memory or an argument may be anything; but a length that is
rounded down, `x - x mod C` as of an unrolled loop, is taken as `UNKNOWN_TRIP` before, as it would be without rounding.
"""

from __future__ import annotations

from collections.abc import Hashable

from .affine import LARGEST, Linear, Term, constant
from .nodes import UNKNOWN_TRIP
from .program import Op
from .values import Values


def expected(values: Values, form: Linear, known: set[Hashable]) -> Linear | None:
    """The form with each variable that is not `known` replaced by its expectation; None where one has none."""
    total = Linear(form.const, {})
    unknown: dict[Hashable, int] = {}
    rounded: list[Term] = []
    for v, c in form.terms.items():
        if v in known or (isinstance(v, Term) and Linear(0, {v: 1}).variables() <= known):
            total = total + Linear(0, {v: c})
            continue
        middle = _of_term(values, v, known) if isinstance(v, Term) else _of_value(values, v)
        if middle is None:
            unknown[v] = c
        else:
            total = total + constant(round(middle * c))
            if isinstance(v, Term) and v.kind == "mod" and c == -1:
                rounded.append(v)
    if unknown:
        if all(v.args[0].terms != unknown for v in rounded):
            return None
        total = total + constant(UNKNOWN_TRIP)
    return total if total.fits() else None


def _of_term(values: Values, term: Term, known: set[Hashable]) -> float | None:
    limits = [a.const for a in term.args if not a.terms]
    if term.kind in ("min", "max") and limits:
        return float(min(limits) if term.kind == "min" else max(limits))
    if term.kind == "mod" and limits and not term.args[1].terms:
        return max(0, term.args[1].const - 1) / 2
    if term.kind in ("floordiv", "ceildiv") and limits and not term.args[1].terms and term.args[1].const > 0:
        inside = expected(values, term.args[0], known)
        if inside is not None and not inside.terms:
            return inside.const / term.args[1].const
    return None


def _of_value(values: Values, value: Hashable) -> float | None:
    op = values.program.value_defs[value] if isinstance(value, int) else None
    if not isinstance(op, Op) or op.name != "arith.andi" or len(op.operands) != 2:
        return None
    masks = [m.const for m in map(values.linear, op.operands) if not m.terms and 0 <= m.const <= LARGEST]
    return min(masks) / 2 if masks else None
