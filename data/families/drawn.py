"""How the algorithm families draw a program: named choices, sizes near a wanted amount of work, limits.

A family is a function that writes one program. It is called again with more or less work, and the same random numbers,
until the operations executed are near what the seed asks for: log-uniform between the limits here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from .base import PROGRAMS_PER_FAMILY, Family, Source
from .scf_text import Program

__all__ = ["MAX_OPERAND_BYTES", "Drawn", "Kind", "families_of", "program"]

MIN_OPS, MAX_OPS = 1500.0, 8e7
MAX_OPERAND_BYTES = 8 << 20
MAX_TEXT_BYTES = 30_000

_T = TypeVar("_T")


@dataclass(frozen=True)
class Drawn:
    """What a family draws from."""

    rng: random.Random
    k: Program
    work: float
    """Executions of the innermost statements that are wanted, about."""
    forced: Mapping[str, Any]
    """Choices made by the caller, by name; tests ask for the program whose meaning they know."""

    def pick(self, name: str, options: Sequence[_T], weights: Sequence[float] | None = None) -> _T:
        """One of the options; the same random numbers are used up whether it is forced or not."""
        drawn = self.rng.choices(options, weights)[0]
        found: _T = self.forced.get(name, drawn)
        return found

    def chance(self, name: str, share: float) -> bool:
        return self.pick(name, (True, False), (share, 1 - share))

    def whole(self, name: str, low: int, high: int) -> int:
        """low <= n <= high."""
        drawn = self.rng.randint(low, high)
        found: int = self.forced.get(name, drawn)
        return found

    def real(self, low: float, high: float) -> float:
        return round(self.rng.uniform(low, high), 4)

    def sides(self, n: int, work: float | None = None, *, smallest: int = 2, skew: float = 0.35) -> list[int]:
        """`n` sizes whose product is near the work; `skew` 1 makes them alike."""
        work = self.work if work is None else work
        weights = [self.rng.uniform(skew, 1.0) for _ in range(n)]
        drawn = [self.size(max(1.0, work) ** (weight / sum(weights)), smallest) for weight in weights]
        found: list[int] = self.forced.get("sides", drawn)
        return found

    def size(self, about: float, smallest: int = 2) -> int:
        """Near a number: that, a power of two, a multiple of eight, or odd."""
        style = self.rng.random()
        n = max(smallest, round(about))
        if style < 0.3:
            return n
        if style < 0.55:
            return self.power(n, smallest)
        if style < 0.8:
            return max(smallest, 8 * round(n / 8)) if n >= 12 else n
        return max(smallest, n | 1)

    @staticmethod
    def power(about: float, smallest: int = 2) -> int:
        """The nearest power of two."""
        n = 1 << max(0, round(math.log2(max(1.0, about))))
        while n < smallest:
            n *= 2
        return n


Kind = Callable[[Drawn], None]


def program(origin: str, family: str, seed: int, kind: Kind, forced: Mapping[str, Any] | None = None) -> Source:
    """The program of one family and seed; the same ones give the same text."""
    forced = forced or {}
    share = random.Random(f"{family}/{seed}/size").random()
    wanted = MIN_OPS * (MAX_OPS / MIN_OPS) ** share
    work = float(forced.get("work", wanted / 12))
    redrawn = 0
    best: tuple[float, str] | None = None
    for _ in range(16):
        k = Program()
        kind(Drawn(random.Random(f"{family}/{seed}/{redrawn}"), k, work, forced))
        text = k.finish()
        if len(text) > MAX_TEXT_BYTES:  # another structure
            redrawn += 1
            continue
        if k.operand_bytes > MAX_OPERAND_BYTES or k.executed_ops > MAX_OPS * 1.5:
            work *= 0.4
            wanted = min(wanted, k.executed_ops * 0.4)
            continue
        distance = abs(math.log(max(1.0, k.executed_ops) / wanted))
        if best is None or distance < best[0]:
            best = (distance, text)
        if distance < 0.5 or "work" in forced or work <= 1.0:
            break
        work = max(1.0, work * min(30.0, max(1 / 30, wanted / max(1.0, k.executed_ops))))
    if best is None:
        raise AssertionError(f"{family}/{seed} never fits the limits")
    return Source(f"{origin}/{family}/{seed}", family, origin, best[1])


def _sources(origin: str, family: str, kind: Kind, count: int) -> Iterator[Source]:
    for seed in range(count):
        yield program(origin, family, seed, kind)


def families_of(origin: str, kinds: Mapping[str, Kind], count: int = PROGRAMS_PER_FAMILY) -> tuple[Family, ...]:
    """One family per entry, `count` programs each."""
    return tuple(Family(name, origin, partial(_sources, origin, name, kind, count)) for name, kind in kinds.items())
