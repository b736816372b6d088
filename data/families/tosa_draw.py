"""How the families of networks draw a program: sizes, and limits on what they may add up to."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from .base import Family, Source
from .tosa_text import Net, Size, Tensor

__all__ = ["Block", "Draw", "Kind", "families_of", "network", "some_blocks"]

MAX_MACS = 1_500_000_000
MAX_WEIGHT_BYTES = 4 << 20
MAX_TENSOR_BYTES = 6 << 20
MAX_OPERATIONS = 400
SHARE_OF_16_BITS = 0.12

_T = TypeVar("_T")


@dataclass(frozen=True)
class Draw:
    """What a family draws from, and the network it writes."""

    rng: random.Random
    net: Net

    def pick(self, *options: _T) -> _T:
        return self.rng.choice(options)

    def size(self, *options: Size) -> Size:
        """One of these heights and widths."""
        return self.rng.choice(options)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def whole(self, low: int, high: int) -> int:
        """low <= n <= high."""
        return self.rng.randint(low, high)

    def log_whole(self, low: int, high: int) -> int:
        """low <= n <= high, small ones as often as large ones by ratio."""
        return round(low * math.exp(self.rng.random() * math.log(high / low)))

    def near(self, about: float, smallest: int = 1) -> int:
        """A number of channels: mostly a multiple of 8 or 16, sometimes what no vector unit likes."""
        style = self.rng.random()
        n = max(smallest, round(about))
        if style < 0.45 and n > 8:
            return 8 * round(n / 8)
        if style < 0.7 and n > 16:
            return 16 * round(n / 16)
        return n if style < 0.85 else max(smallest, n | 1)

    def channels(self, low: int = 4, high: int = 256) -> int:
        return self.near(self.log_whole(low, high))

    def resolution(self, low: int = 7, high: int = 96) -> tuple[int, int]:
        """Height and width: mostly alike and of the sizes that networks take, sometimes primes or oblong."""
        usual = [
            n for n in (7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128) if low <= n <= high
        ]
        height = self.rng.choice(usual) if usual and self.chance(0.6) else self.log_whole(low, high)
        if self.chance(0.7):
            return height, height
        return height, self.log_whole(low, high)

    def act(self) -> str | None:
        return self.pick("relu", "relu", "relu6", "relu6", None, "sigmoid")


Kind = Callable[[Draw], Sequence[Tensor]]
"""Writes one network and returns its outputs."""

Block = Callable[[Net, Tensor], Tensor]
"""A part of a network that another one follows."""


def some_blocks(d: Draw, shape: Sequence[int], blocks: Sequence[Block], whole: float = 0.4) -> Tensor:
    """The whole network, or a few of its blocks, which then take what they would be given in it."""
    first, last = 0, len(blocks)
    if not d.chance(whole):
        first = d.whole(0, last - 1)
        last = min(last, first + d.whole(1, 6))
    scratch = Net(random.Random(0), d.net.element)
    x = scratch.input(*shape)
    for block in blocks[:first]:
        x = block(scratch, x)
    x = d.net.input(*x.shape)
    for block in blocks[first:last]:
        x = block(d.net, x)
    return x


def network(origin: str, family: str, seed: int, kind: Kind) -> Source:
    """The network of one family and seed; the same ones give the same text. What is too large is drawn again."""
    for attempt in range(100):
        rng = random.Random(f"{family}/{seed}/{attempt}")
        element = "i16" if rng.random() < SHARE_OF_16_BITS else "i8"
        per_channel, symmetric, half_pixel = (rng.random() < share for share in (0.7, 0.4, 0.7))
        net = Net(rng, element, per_channel=per_channel, symmetric=symmetric, half_pixel=half_pixel)
        outputs = kind(Draw(rng, net))
        if (
            net.macs <= MAX_MACS
            and net.weight_bytes <= MAX_WEIGHT_BYTES
            and net.largest_bytes <= MAX_TENSOR_BYTES
            and 0 < net.operations <= MAX_OPERATIONS
        ):
            return Source(f"{origin}/{family}/{seed}", family, origin, net.finish(*outputs))
    raise AssertionError(f"{family}/{seed} never fits the limits")


def _sources(origin: str, family: str, kind: Kind, count: int) -> Iterator[Source]:
    for seed in range(count):
        yield network(origin, family, seed, kind)


def families_of(origin: str, kinds: Mapping[str, Kind], count: int) -> tuple[Family, ...]:
    """One family per entry, `count` networks each."""
    return tuple(Family(name, origin, partial(_sources, origin, name, kind, count)) for name, kind in kinds.items())
