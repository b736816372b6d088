"""The geometry of the report's plots: axes, dots and bars in pixels, drawn by the template as inline SVG.

Values in, coordinates and path texts out; no HTML. y grows downwards, as in SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .numbers import compact
from .summary import Labels, Points, ShapFeature

Floats = NDArray[np.float64]

_ZERO_LANE = 16.0
"""Width in pixels of the lane for zeros beside a logarithmic axis."""
_MARGIN = 5.0
_DENSITY = (1, 3, 9, 27)
"""Dots are drawn in four strengths: cells with at least this many."""

_MANY = 3000
"""Records in a panel beyond which the raster is coarser: the page stays a few megabytes."""


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    """Pixels from the axis' origin."""
    label: str


@dataclass(frozen=True)
class Axis:
    """A straight or logarithmic axis of `size` pixels."""

    low: float
    high: float
    """Range in the target's unit, low < high; > 0 where `log`."""
    log: bool
    zeros: bool
    """Logarithmic, with a lane for zeros before `low`."""
    size: float

    @property
    def start(self) -> float:
        """Pixel of `low`."""
        return _MARGIN + (_ZERO_LANE if self.zeros else 0.0)

    def place(self, values: Floats) -> Floats:
        """Pixels of values; those beyond the range are held at its ends, and 0 goes to its lane."""
        span = self.size - _MARGIN - self.start
        clipped = np.clip(values, self.low, self.high)
        if not self.log:
            share = (clipped - self.low) / (self.high - self.low)
        else:
            share = np.log(clipped / self.low) / np.log(self.high / self.low)
        at = self.start + span * share
        return np.asarray(np.where(values <= 0, _MARGIN, at) if self.zeros else at, np.float64)

    def ticks(self, most: int = 6) -> tuple[Tick, ...]:
        """At powers of ten, or at round values; at most about `most`."""
        values = _decades(self.low, self.high, most) if self.log else round_values(self.low, self.high, most)
        ticks = [Tick(float(p), _short(v)) for v, p in zip(values, self.place(np.array(values)), strict=True)]
        return (*([Tick(_MARGIN, "0")] if self.zeros else []), *ticks)


def _short(value: float) -> str:
    """A round number for an axis: "0.01", "10", "1k", "100k", "1M"."""
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:g}{letter}"
    return f"{value:g}".replace("-", "−")


def _decades(low: float, high: float, most: int) -> list[float]:
    first, last = int(np.ceil(np.log10(low) - 1e-9)), int(np.floor(np.log10(high) + 1e-9))
    step = max(1, int(np.ceil((last - first + 1) / most)))
    found = [10.0**k for k in range(first, last + 1, step)]
    if len(found) >= 2:
        return found
    return [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5) if low <= m * 10.0**k <= high]


def round_values(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between low and high, at most `most` of them."""
    raw = (high - low) / max(1, most - 1)
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(float(m * power) for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    return [round(k * step, 12) for k in range(int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9)) + 1)]


def axis_for(y: Floats, predicted: Floats, *, log: bool, size: float) -> Axis:
    """One axis for labels and predictions: the labels' range and a little more, wider where predictions leave it, but
    by a factor of 30 (a third of the range) at most; what lies farther out is drawn at the edge."""
    if not log:
        top, bottom = float(np.max(y, initial=0.0)), min(0.0, float(np.min(y, initial=0.0)))
        reach = (top - bottom) / 3
        top = min(max(top, float(np.max(predicted, initial=0.0))), top + reach)
        return Axis(bottom, top if top > bottom else bottom + 1.0, False, False, size)
    both = np.concatenate([y, predicted])
    some = y[y > 0]
    if not len(some):
        some = both[both > 0] if (both > 0).any() else np.ones(1)
    low, high = float(some.min()), float(some.max())
    said = predicted[predicted > 0]
    if len(said):
        low, high = max(min(low, float(said.min())), low / 30), min(max(high, float(said.max())), high * 30)
    return Axis(low / 1.15, high * 1.15, True, bool((both <= 0).any()), size)


@dataclass(frozen=True)
class Dots:
    """Dots of one colour and strength."""

    path: str
    """SVG path of zero-length lines: drawn with round caps, each is a dot."""
    strength: int
    """0 to 3: how many records fall together."""
    ok: bool


def dots(x: Floats, y: Floats, ok: NDArray[np.bool_]) -> tuple[Dots, ...]:
    """Dots on a raster of half a pixel, of one where there are thousands; those that fall together are one, the
    stronger the more they are."""
    found = []
    step = 1 if len(x) <= _MANY else 2
    for status in (True, False):
        chosen = ok == status
        cells = step * np.round(np.stack([y[chosen], x[chosen]], axis=1) * 2 / step).astype(np.int64)
        if not len(cells):
            continue
        places, counts = np.unique(cells, axis=0, return_counts=True)
        strength = np.searchsorted(_DENSITY, counts, side="right") - 1
        for level in range(len(_DENSITY)):
            path = dot_path(places[strength == level][:, ::-1])
            if path:
                found.append(Dots(path, level, status))
    return tuple(found)


def dot_path(halves: NDArray[np.int64]) -> str:
    """Path text of dots given as (x, y) in half pixels, each relative to the one before."""
    parts = []
    before = np.zeros(2, np.int64)
    for place in halves:
        dx, dy = (place - before) / 2
        parts.append(f"m{dx:g} {dy:g}h0")
        before = place
    return "".join(parts).replace(" -", "-")


@dataclass(frozen=True)
class Panel:
    """Predicted against measured on one split."""

    split: str
    n: int
    size: float
    ticks: tuple[Tick, ...]
    """The same on both axes."""
    diagonal: str
    """Path of predicted = measured."""
    bands: tuple[str, ...]
    """Paths a factor 2 (for straight axes: none) above and below it."""
    zero_lane: float
    """Pixel where the lane of zeros ends; 0 without one."""
    dots: tuple[Dots, ...]


def panels(points: Sequence[Points], *, log: bool, size: float = 224.0) -> tuple[Panel, ...]:
    """One panel a split, all with the same axes."""
    if not points:
        return ()
    axis = axis_for(
        np.concatenate([p.y for p in points]), np.concatenate([p.predicted for p in points]), log=log, size=size
    )

    def line(scale: float) -> str:
        low, high = max(axis.low, axis.low / scale), min(axis.high, axis.high / scale)
        (x0, x1), (y0, y1) = axis.place(np.array([low, high])), axis.place(scale * np.array([low, high]))
        return f"M{x0:.1f} {size - y0:.1f}L{x1:.1f} {size - y1:.1f}"

    bands = (line(2.0), line(0.5)) if axis.log and axis.high / axis.low > 2 else ()
    return tuple(
        Panel(
            p.split,
            len(p.y),
            size,
            axis.ticks(),
            line(1.0),
            bands,
            _MARGIN + _ZERO_LANE / 2 + 2 if axis.zeros else 0.0,
            dots(axis.place(p.y), size - axis.place(p.predicted), p.ok),
        )
        for p in points
    )


@dataclass(frozen=True)
class Swarm:
    """One feature's SHAP values as a strip of dots."""

    dots: tuple[str, ...]
    """A path for each of `SHADES` bands of the feature's value, low to high; the middle one where it never varies."""


SHADES = 5
_SWARM_HALF = 8.0


@dataclass(frozen=True)
class SwarmAxis:
    """The common horizontal axis of a target's swarms."""

    reach: float
    """SHAP value at the right end; the left end is its negative."""
    width: float
    ticks: tuple[Tick, ...]

    def place(self, contributions: Floats) -> Floats:
        """Pixels; what is farther out is held at the edge."""
        share = np.clip(contributions / self.reach, -1, 1)
        return np.asarray(self.width / 2 + share * (self.width / 2 - _MARGIN), np.float64)


def swarm_axis(features: Sequence[ShapFeature], space: str, width: float = 330.0) -> SwarmAxis:
    """An axis that shows all but the outermost values of the features; in log space its labels are factors."""
    largest = [float(np.quantile(np.abs(f.contributions), 0.995)) for f in features if len(f.contributions)]
    reach = max([*largest, 1e-9]) * 1.05
    axis = SwarmAxis(reach, width, ())
    if space == "log":
        factors = next(
            (
                f
                for f in ((1.01, 1.02), (1.05, 1.1), (1.1, 1.2), (1.2, 1.5), (1.5, 2), (2, 4), (3, 10), (10, 100))
                if np.log(f[1]) >= reach * 0.55
            ),
            (30, 1000),
        )
        values = [-np.log(f) for f in reversed(factors)] + [0.0] + [float(np.log(f)) for f in factors]
        labels = [f"÷{f:g}" for f in reversed(factors)] + ["×1"] + [f"×{f:g}" for f in factors]
    else:
        values = round_values(-reach, reach, 5)
        labels = [("+" if v > 0 else "") + compact(v, 3) for v in values]
    shown = [(v, text) for v, text in zip(values, labels, strict=True) if abs(v) <= reach]
    at = axis.place(np.array([v for v, _ in shown]))
    return SwarmAxis(reach, width, tuple(Tick(float(p), text) for p, (_, text) in zip(at, shown, strict=True)))


def swarm(feature: ShapFeature, axis: SwarmAxis) -> Swarm:
    """Dots side by side where they would hide each other, in `SHADES` bands by rank of the feature's value."""
    x = np.round(axis.place(feature.contributions) * 2).astype(np.int64)
    order = np.lexsort((feature.values, x))
    y = np.zeros(len(x), np.int64)
    columns, starts = np.unique(x[order] // 4, return_index=True)
    del columns
    for start, end in pairwise([*starts, len(x)]):
        n = end - start
        step = min(3.0, 4 * _SWARM_HALF / max(1, n - 1))
        y[order[start:end]] = np.round((np.arange(n) - (n - 1) / 2) * step + 2 * (_SWARM_HALF + 2)).astype(np.int64)
    shade = shades(feature.values)
    return Swarm(tuple(dot_path(np.stack([x, y], axis=1)[shade == s]) for s in range(SHADES)))


def shades(values: Floats) -> NDArray[np.int64]:
    """Band of each value by its rank among the distinct values: 0 lowest, `SHADES` − 1 highest."""
    distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) < 2:
        return np.full(len(values), SHADES // 2)
    rank = np.cumsum(counts) - (counts + 1) / 2
    share = (rank - rank[0]) / (rank[-1] - rank[0])
    return np.asarray(np.minimum((share * SHADES).astype(np.int64), SHADES - 1)[inverse.ravel()], np.int64)


@dataclass(frozen=True)
class Bars:
    """A histogram."""

    width: float
    height: float
    path: str
    """All bars as one filled path."""
    zero_height: float
    """Height of the bar of zeros, 0 without one."""
    ticks: tuple[Tick, ...]


def histogram(labels: Labels, width: float = 200.0, height: float = 54.0) -> Bars:
    """Bars of a target's labels; a bar apart for zeros where the axis is logarithmic."""
    n_zeros = round(labels.zeros * labels.n) if labels.log_bins else 0
    axis = Axis(float(labels.edges[0]), float(labels.edges[-1]), labels.log_bins, n_zeros > 0, width)
    tallest = max(int(labels.counts.max(initial=1)), n_zeros, 1)
    x = axis.place(labels.edges)
    parts = []
    for left, right, count in zip(x[:-1], x[1:], labels.counts, strict=True):
        if count:
            tall = max(1.0, height * float(count) / tallest)
            parts.append(f"M{left:.1f} {height:g}v{-tall:.1f}H{max(right - 0.8, left + 0.8):.1f}v{tall:.1f}z")
    return Bars(width, height, "".join(parts), height * n_zeros / tallest, axis.ticks(4))
