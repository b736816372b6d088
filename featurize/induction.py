"""Loops that a test ends: which value counts their iterations, from where, in what steps, and to where.

The same for `scf.while` and for loops of a control-flow graph: values go round (`Carried`), and a comparison of one
that moves by a constant with one that stays decides whether to go on.
"""

from __future__ import annotations

from dataclasses import dataclass

from .affine import Linear, constant
from .conditions import predicate_of
from .loop_bounds import split_max, split_min
from .nodes import UNKNOWN_TRIP
from .program import Op
from .values import Values

EARLY_TRIP = float(UNKNOWN_TRIP)
"""Most iterations that a loop is taken to run whose test has a condition besides those on its counter: with a bound of
n, `min(n / 2, EARLY_TRIP)`. Of n / 2, n / 4, sqrt n, and n / 2 limited to 16, 32, 64 or 128, this one comes nearest to
the instructions that the dataset's programs with such loops execute (ten programs)."""
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "ne": "ne"}
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne"}
_MOST_TESTS = 16
"""Most conditions of one test that are looked at."""


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
    """The comparisons that end it, and the operations that make the counter's next value."""
    early: bool
    """There are other conditions to go on: the bounds give the most iterations."""


def countable(values: Values, carried: list[Carried], condition: int, *, stays: bool, after: bool) -> Countable | None:
    """How often a loop runs that goes on while a value `condition` is `stays`; None where the text does not tell.

    `after`: the test ends an iteration, so that the body runs once more than the test holds; else it begins one.
    """
    of_argument = {c.argument: c for c in carried}
    tests, early = _comparisons(values, condition, stays)
    counter: Carried | None = None
    lowers: list[Linear] = []
    uppers: list[Linear] = []
    own: list[Op] = []
    for test in tests:
        relation = predicate_of(values, test)
        if not stays:
            relation = _NEGATED.get(relation, "")
        difference = values.linear(test.operands[0]) - values.linear(test.operands[1])
        moving = of_argument.keys() & difference.variables()
        c = of_argument[moving.pop()] if len(moving) == 1 else None
        factor = difference.terms.get(c.argument, 0) if c is not None else 0
        if c is None or factor not in (1, -1) or counter not in (None, c):
            early = True
            continue
        bound = Linear(difference.const, {v: k for v, k in difference.terms.items() if v != c.argument}).scaled(-factor)
        if factor < 0:
            relation = _MIRRORED.get(relation, "")
        found = _bounds(values.linear(c.starts[0]), c.step, relation, bound, after) if len(set(c.starts)) == 1 else None
        if found is None:
            early = True
            continue
        counter = c
        lowers += found[0]
        uppers += found[1]
        own.append(test)
    if counter is None:
        return None
    own += [op for op in map(values.program.value_defs.__getitem__, counter.made) if isinstance(op, Op)]
    return Countable(
        counter.argument, list(dict.fromkeys(lowers)), list(dict.fromkeys(uppers)), abs(counter.step), own, early
    )


def _comparisons(values: Values, condition: int, stays: bool) -> tuple[list[Op], bool]:
    """Comparisons that must all hold (none, where it is not to stay), and whether there are other conditions."""
    found: list[Op] = []
    other = False
    waiting = [condition]
    for value in waiting:  # grows
        op = values.program.value_defs[value]
        if isinstance(op, Op) and op.name == "arith.cmpi" and len(op.operands) == 2:
            found.append(op)
        elif isinstance(op, Op) and op.name == ("arith.andi" if stays else "arith.ori") and len(waiting) < _MOST_TESTS:
            waiting += op.operands
        else:
            other = True
    return found, other


def _bounds(
    start: Linear, step: int, relation: str, bound: Linear, after: bool
) -> tuple[list[Linear], list[Linear]] | None:
    """(lower bounds, upper bounds) of a counter that goes on while counter <relation> bound."""
    if relation == "ne":
        relation = "lt" if step > 0 else "gt"
    more = (abs(step) if after else 0) + (relation in ("le", "ge"))
    if relation in ("lt", "le") and step > 0:
        shift = constant(more)
        lowers, uppers = split_max(start), [u + shift for u in split_min(bound)]
    elif relation in ("gt", "ge") and step < 0:
        # start, start - 1, … down to bound + 1: as many as from there up to start
        shift = constant(1 - more)
        lowers, uppers = [lo + shift for lo in split_max(bound)], [u + constant(1) for u in split_min(start)]
    else:
        return None
    if after and all(not x.terms for x in (*lowers, *uppers)):
        at_least = min(u.const for u in uppers), max(lo.const for lo in lowers)
        if at_least[0] <= at_least[1]:
            lowers = [constant(at_least[1])]
            uppers = [constant(at_least[1] + 1)]
    return lowers, uppers
