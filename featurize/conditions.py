"""How often the condition of a branch holds."""

from __future__ import annotations

import re
from collections.abc import Hashable

import numpy as np

from .affine import AffineError, Linear, constant, parse_set
from .attribute_text import is_generic, property_text
from .nodes import Loop
from .program import Op
from .trip_counts import TripCounts, ancestors, component
from .values import APPLIED, Values

_INT = re.compile(r"-?\d+")
_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")


def probability(values: Values, trip_counts: TripCounts, op: Op, loop: Loop | None) -> float | None:
    """Share of the iterations in which the first region runs; None where the text does not tell."""
    try:
        if op.name == "affine.if":
            text = values.text_of(op)
            match = None if is_generic(text) else APPLIED.match(text)
            condition = parse_set(values.attribute(match.group(1) if match else property_text(text, "condition")))
            operands = [values.linear(v) for v in op.operands]
            constraints = [(c.substitute(operands), eq) for c, eq in condition.constraints]
        elif op.name in ("scf.if", "cf.cond_br") and op.operands:
            constraints = _comparison(values, op.operands[0])
        else:
            return None
    except (AffineError, IndexError, ValueError):
        return None
    wanted: set[Hashable] = set().union(*(c.variables() for c, _ in constraints)) if constraints else set()
    if not constraints:
        return None
    outer = ancestors(loop)
    if not wanted <= {a.iv for a in outer}:
        return None
    env, weights = trip_counts.domain(component(outer, wanted))
    holds = np.ones(len(weights), dtype=bool)
    for expression, equality in constraints:
        value = expression.evaluate(env)
        holds &= (value == 0) if equality else (value >= 0)
    total = float(weights.sum())
    return float((weights * holds).sum() / total) if total > 0 else 0.0


def _comparison(values: Values, value: int) -> list[tuple[Linear, bool]]:
    """`arith.cmpi` on index values as constraints; empty where it is something else."""
    op = values.program.value_defs[value]
    if not isinstance(op, Op) or op.name != "arith.cmpi" or len(op.operands) != 2:
        return []
    a, b = (values.linear(v) for v in op.operands)
    one = constant(1)
    return {
        "eq": [(a - b, True)],
        "lt": [(b - a - one, False)],
        "le": [(b - a, False)],
        "gt": [(a - b - one, False)],
        "ge": [(a - b, False)],
    }.get(predicate_of(values, op), [])


def predicate_of(values: Values, op: Op) -> str:
    """The relation of an `arith.cmpi`, its sign left out: eq, ne, lt, le, gt or ge; "" where it cannot be read."""
    text = values.text_of(op).lstrip()
    if is_generic(text):
        match = _INT.search(property_text(text, "predicate"))
        number = int(match.group()) if match else -1
        return _PREDICATES[number] if 0 <= number < len(_PREDICATES) else ""
    written = text.split(",", 1)[0].strip()
    return written if written in ("eq", "ne") else written[1:] if written[:1] in ("s", "u") else ""
