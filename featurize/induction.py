"""Loops that a test ends: which value counts their iterations, from where, in what steps, and to where.

The same for `scf.while` and for loops of a control-flow graph: values go round (`Carried`), and a comparison of one that
moves by a constant with one that stays decides whether to go on.
"""

from __future__ import annotations

from dataclasses import dataclass

from .affine import Linear, constant
from .conditions import predicate_of
from .loop_bounds import split_max, split_min
from .program import Op
from .values import Values

_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "ne": "ne"}
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne"}


@dataclass(frozen=True)
class Carried:
    """A value that goes round a loop."""

    argument: int
    """Its value id in an iteration."""
    starts: tuple[int, ...]
    """What it is in the first iteration, for each way in."""
    made: tuple[int, ...]
    """What it is in the next iteration, for each way back."""
    following: tuple[Linear, ...]
    """Those in terms of this iteration's values."""

    @property
    def step(self) -> int:
        """By how much it moves in each iteration; 0 where that is no constant."""
        steps = {(f.const if f.terms == {self.argument: 1} else 0) for f in self.following}
        return steps.pop() if len(steps) == 1 else 0


@dataclass(frozen=True)
class Countable:
    """A loop as lower bounds, upper bounds and a positive step; counted upwards where its counter goes down."""

    counter: int
    lowers: list[Linear]
    uppers: list[Linear]
    step: int
    own: list[Op]
    """The comparison that ends it, and the operations that make the counter's next value."""
    early: bool
    """The comparison is one of several conditions that must all hold: the bounds give the most iterations."""


def countable(
    values: Values, carried: list[Carried], condition: int, *, stays: bool, after: bool
) -> Countable | None:
    """How often a loop runs that goes on while a value `condition` is `stays`; None where the text does not tell.

    `after`: the test ends an iteration, so that the body runs once more than the test holds; else it begins one.
    """
    of_argument = {c.argument: c for c in carried}
    defs = values.program.value_defs
    for test, early in _comparisons(values, condition, stays):
        relation = predicate_of(values, test)
        if not stays:
            relation = _NEGATED.get(relation, "")
        for own, limit, kind in ((0, 1, relation), (1, 0, _MIRRORED.get(relation, ""))):
            tested = values.linear(test.operands[own])
            bound = values.linear(test.operands[limit])
            c = of_argument.get(next(iter(tested.terms))) if len(tested.terms) == 1 else None  # type: ignore[arg-type]
            if c is None or tested.terms[c.argument] != 1 or len(set(c.starts)) != 1 or not c.step:
                continue
            found = _bounds(values.linear(c.starts[0]), c.step, kind, tested.const, bound, after)
            if found is not None and of_argument.keys().isdisjoint(bound.variables()):
                steps = [d for d in (defs[v] for v in c.made) if isinstance(d, Op)]
                return Countable(c.argument, *found, abs(c.step), [test, *steps], early)
    return None


def _comparisons(values: Values, condition: int, stays: bool) -> list[tuple[Op, bool]]:
    """Comparisons that decide a condition: itself, or those whose conjunction it is (each then one of several)."""
    found: list[tuple[Op, bool]] = []
    waiting = [(condition, False)]
    while waiting and len(found) < 8:
        value, early = waiting.pop()
        op = values.program.value_defs[value]
        if not isinstance(op, Op) or len(op.operands) != 2:
            continue
        if op.name == "arith.cmpi":
            found.append((op, early))
        elif op.name == ("arith.andi" if stays else "arith.ori"):
            waiting += [(v, True) for v in reversed(op.operands)]
    return found


def _bounds(
    start: Linear, step: int, relation: str, ahead: int, bound: Linear, after: bool
) -> tuple[list[Linear], list[Linear]] | None:
    """(lower bounds, upper bounds) of a counter that goes on while counter + ahead <relation> bound."""
    if relation == "ne":
        relation = "lt" if step > 0 else "gt"
    more = (abs(step) if after else 0) + (relation in ("le", "ge"))
    if relation in ("lt", "le") and step > 0:
        shift = constant(more - ahead)
        lowers, uppers = split_max(start), [u + shift for u in split_min(bound)]
    elif relation in ("gt", "ge") and step < 0:
        # start, start - 1, … down to bound - ahead + 1: as many as from there up to start
        shift = constant(1 - more - ahead)
        lowers, uppers = [lo + shift for lo in split_max(bound)], [u + constant(1) for u in split_min(start)]
    else:
        return None
    if after and all(not x.terms for x in (*lowers, *uppers)):
        at_least = min(u.const for u in uppers), max(lo.const for lo in lowers)
        if at_least[0] <= at_least[1]:
            lowers = [constant(at_least[1])]
            uppers = [constant(at_least[1] + 1)]
    return lowers, uppers
