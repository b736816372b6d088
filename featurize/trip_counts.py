"""Trip counts of loops whose bounds depend on loops around them, averaged over the iterations of those."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .affine import Linear, Term, constant
from .nodes import UNKNOWN_TRIP, Loop

POINT_BUDGET = 2048
"""Most outer iterations looked at one by one when bounds or conditions depend on them."""
MOST_EXECUTIONS = 1e30
"""Executions are counted up to here, so that sums and products of them stay finite."""
_FEW = 48
"""Up to so many iterations a loop over integers is faster than arrays."""

FloatArray = npt.NDArray[np.float64]
Env = dict[Hashable, Any]


class TripCounts:
    """Counts the iterations of one function's loops, and remembers the iteration domains it looked at."""

    def __init__(self, loop_of_iv: dict[Hashable, Loop], expected: Callable[[Linear, set[Hashable]], Linear | None]):
        self.loop_of_iv = loop_of_iv
        self._expected = expected
        """Replaces what is in no set of loop variables by its expectation; None where that is not known."""
        self._domains: dict[tuple[int, ...], tuple[Env, FloatArray]] = {}

    def count(
        self, loop: Loop, lowers: list[Linear], uppers: list[Linear], entries: float, *, early: float = 0.0
    ) -> None:
        """Set trip count, executions and range of a loop that is entered `entries` times; no `uppers`: unknown.

        `early`: the loop may be left before its bound; it is taken to run half as often, at most `early` times.
        """
        loop.entries = entries
        try:
            self._count(loop, lowers, uppers, entries)
        except OverflowError:  # bounds beyond all floats
            loop.low = loop.high = 0.0
            self._count(loop, [], [], entries)
        if early and loop.differences:
            self._guess(loop, min(loop.trip / 2, early))

    def _guess(self, loop: Loop, trip: float) -> None:
        """Take a loop to run so often, once where it would be less, and for unknown."""
        loop.unknown = True
        loop.constant_trip = False
        loop.trip = max(trip, min(loop.trip, 1.0))
        loop.execs = min(loop.entries * loop.trip, MOST_EXECUTIONS)

    def _count(self, loop: Loop, lowers: list[Linear], uppers: list[Linear], entries: float) -> None:
        loop.lowers = lowers
        if len(lowers) == len(uppers) == 1 and not lowers[0].terms and not uppers[0].terms:
            low = lowers[0].const
            difference = uppers[0].const - low
            loop.differences = [constant(difference)]
            trip = float(max(0, -(-difference // loop.step)))
            loop.trip = loop.max_trip = trip
            loop.constant_trip = True
            loop.execs = min(entries * trip, MOST_EXECUTIONS)
            loop.low = float(low)
            loop.high = loop.low + max(0.0, trip - 1) * loop.step
            return
        if not uppers:
            self._unknown(loop, entries)
            return
        outer = ancestors(loop.parent)
        ivs = {a.iv for a in outer}
        differences = [u - lo for lo in lowers for u in uppers]
        known = [d for d in differences if d.variables() <= ivs]
        share = 0.0
        if not known:
            known = [d for d in (self._expected(d, ivs) for d in differences) if d is not None]
            share = 1.0
        if not known:  # a start that may be anywhere below a known end
            known = [u for u in uppers if u.variables() <= ivs]
            share = 0.5
        loop.differences = known
        if not known:
            self._unknown(loop, entries)
            return
        if all(not d.terms for d in known):
            loop.trip = loop.max_trip = float(max(0, -(-min(d.const for d in known) // loop.step)))
            loop.constant_trip = len(known) == len(differences)
        else:
            self._average(loop, component(outer, set().union(*(d.variables() for d in known))))
        loop.execs = min(entries * loop.trip, MOST_EXECUTIONS)
        loop.low, loop.high = self._range(loop)
        if share and loop.trip > 0:
            self._guess(loop, loop.trip * share)
        elif share:
            loop.differences = []
            self._unknown(loop, entries)

    def _unknown(self, loop: Loop, entries: float) -> None:
        loop.unknown = True
        loop.trip = loop.max_trip = float(UNKNOWN_TRIP)
        loop.constant_trip = False
        loop.execs = min(entries * UNKNOWN_TRIP, MOST_EXECUTIONS)
        loop.low, loop.high = self._range(loop)

    def _average(self, loop: Loop, group: tuple[Loop, ...]) -> None:
        """Set the mean and the largest trip count over the iterations of the loops in `group`."""
        known = loop.differences
        first = group[0]
        if len(group) == 1 and first.constant_trip and first.trip <= POINT_BUDGET and not first.lowers[0].terms:
            iv = first.iv
            lines = tuple([(d.const, d.terms.get(iv, 0)) for d in known if not any(type(v) is Term for v in d.terms)])
            if len(lines) == len(known):
                counts = _along_one_loop(int(first.trip), first.lowers[0].const, first.step, loop.step, lines)
                loop.trip, loop.max_trip, loop.constant_trip = counts
                return
        env, weights = self.domain(group)
        trips = _trips(loop, env, len(weights))
        total = float(weights.sum())
        loop.trip = float((weights * trips).sum() / total) if total > 0 else 0.0
        loop.max_trip = float(trips.max()) if len(trips) else 0.0
        if total > len(weights) + 0.5:  # sampled: the largest count may lie between the points
            most = min(self._largest(d) for d in known)
            if math.isfinite(most):
                loop.max_trip = max(loop.max_trip, -(-most // loop.step))
        loop.constant_trip = bool(len(trips)) and float(trips.min()) == loop.max_trip

    def domain(self, loops: tuple[Loop, ...]) -> tuple[Env, FloatArray]:
        """Iterations of a chain of loops as points: iv -> values (one per point), and the weight of each point."""
        key = tuple([id(loop) for loop in loops])
        known = self._domains.get(key)
        if known is not None:
            return known
        if not loops:
            return {}, np.ones(1)
        env, weights = self.domain(loops[:-1])
        loop = loops[-1]
        n = len(weights)
        if n > POINT_BUDGET // 2 and n > 64:
            keep = np.arange(0, n, max(2, (8 * n) // POINT_BUDGET))
            factor = float(weights.sum()) / max(float(weights[keep].sum()), 1e-300)
            env = {v: a[keep] for v, a in env.items()}
            weights = weights[keep] * factor
            n = len(weights)
        trips = _trips(loop, env, n)
        lower = _lower(loop, env, n)
        total = float(trips.sum())
        if total <= POINT_BUDGET:
            counts = trips.astype(np.int64)
            origin = np.repeat(np.arange(n), counts)
            starts = np.repeat(np.cumsum(counts) - counts, counts)
            position = np.arange(int(counts.sum())) - starts
            new_weights = weights[origin]
        else:
            per_point = max(1, POINT_BUDGET // max(n, 1))
            counts = np.minimum(trips, per_point).astype(np.int64)
            origin = np.repeat(np.arange(n), counts)
            starts = np.repeat(np.cumsum(counts) - counts, counts)
            stratum = np.arange(int(counts.sum())) - starts
            share = trips[origin] / counts[origin]
            position = np.floor((stratum + 0.5) * share)
            new_weights = weights[origin] * share
        new_env: Env = {v: a[origin] for v, a in env.items()}
        new_env[loop.iv] = lower[origin] + loop.step * position
        self._domains[key] = (new_env, new_weights)
        return new_env, new_weights

    def _largest(self, expression: Linear) -> float:
        """An upper bound over the ranges of the loop variables; inf where the expression is not linear in them."""
        total = float(expression.const)
        for v, c in expression.terms.items():
            loop = self.loop_of_iv.get(v)
            if loop is None:
                return math.inf
            total += c * (loop.high if c > 0 else loop.low)
        return total

    def _range(self, loop: Loop) -> tuple[float, float]:
        """(least, largest) value of a loop's variable."""
        low = high = -math.inf
        for lower in loop.lowers:
            most = self._largest(lower)
            least = -self._largest(lower.scaled(-1))
            if most < math.inf and most > high:
                high = most
            if least > -math.inf and least > low:
                low = least
        if low == -math.inf:
            low = 0.0
        if high == -math.inf:
            high = low
        return low, high + max(0.0, loop.max_trip - 1) * loop.step


def ancestors(loop: Loop | None) -> list[Loop]:
    """A loop and those around it, outermost first."""
    out = []
    while loop is not None:
        out.append(loop)
        loop = loop.parent
    out.reverse()
    return out


def component(outer: list[Loop], wanted: set[Hashable]) -> tuple[Loop, ...]:
    """The loops whose iterations decide: those named, those in their bounds, variable loops tied to them."""
    chosen = set(wanted)
    tied = [
        (a, set().union(*(d.variables() for d in a.differences)), set().union(*(lo.variables() for lo in a.lowers)))
        for a in outer
        if any(lo.terms for lo in a.lowers) or any(d.terms for d in a.differences) or not a.constant_trip
    ]
    before = -1
    while tied and len(chosen) != before:
        before = len(chosen)
        for a, bounds, _ in tied:
            if a.iv in chosen:
                chosen |= bounds
            elif not a.constant_trip and not bounds.isdisjoint(chosen):
                chosen.add(a.iv)
        # a loop whose start depends on another is needed with it even when its count is constant
        for a, _, start in tied:
            if a.iv in chosen:
                chosen |= start
    return tuple([a for a in outer if a.iv in chosen])


@lru_cache(maxsize=4096)
def _along_one_loop(
    points: int, low: int, outer_step: int, step: int, lines: tuple[tuple[int, int], ...]
) -> tuple[float, float, bool]:
    """(mean, largest, all equal) of max(0, ceil(min over lines of (const + factor x) / step)), x = low, low + …"""
    if points <= 0:
        return 0.0, 0.0, False
    if points <= _FEW:
        last = low + points * outer_step
        counts = [
            max(0, -(-min([const + factor * x for const, factor in lines]) // step))
            for x in range(low, last, outer_step)
        ]
        return sum(counts) / points, float(max(counts)), min(counts) == max(counts)
    x = np.arange(points) * float(outer_step) + low
    const, factor = lines[0]
    length = x * factor + const
    for const, factor in lines[1:]:
        length = np.minimum(length, x * factor + const)
    trips = np.maximum(np.ceil(length / step), 0.0)
    most = float(trips.max())
    return float(trips.sum()) / points, most, float(trips.min()) == most


def _trips(loop: Loop, env: Env, n: int) -> FloatArray:
    if not loop.differences:
        return np.full(n, float(UNKNOWN_TRIP))
    length = np.full(n, np.inf)
    for difference in loop.differences:
        try:
            length = np.minimum(length, difference.evaluate(env))
        except KeyError:
            continue
    length = np.where(np.isfinite(length), length, UNKNOWN_TRIP * loop.step)
    return np.maximum(0.0, np.ceil(length / loop.step))


def _lower(loop: Loop, env: Env, n: int) -> FloatArray:
    lower = np.full(n, -np.inf)
    for expression in loop.lowers:
        try:
            lower = np.maximum(lower, expression.evaluate(env))
        except KeyError:
            continue
    return np.where(np.isfinite(lower), lower, 0.0)
