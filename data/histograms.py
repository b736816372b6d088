"""Histograms of a dataset's labels as one SVG picture beside its card: a panel for each target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .targets import Target

if TYPE_CHECKING:
    import pandas as pd

BINS = 32
_COLUMNS, _WIDTH, _HEIGHT, _PLOT = 3, 300, 118, 64
_LEFT, _TOP = 12, 26
_LOG_FROM = 100.0
"""A largest value over this many times the least gets a logarithmic axis."""


@dataclass(frozen=True)
class Histogram:
    """How the values of one target are spread; zeros apart."""

    edges: NDArray[np.float64]
    """Of the bins, ascending, in the target's unit, shape (BINS + 1,)."""
    counts: NDArray[np.int64]
    """Shape (BINS,); zeros are not in it."""
    zeros: int
    log: bool


def histogram(values: NDArray[np.float64]) -> Histogram:
    """Bins between the least and the largest value that is not 0, equally wide or, for a long tail, in equal ratios."""
    some = values[values > 0]
    zeros = len(values) - len(some)
    if not len(some):
        return Histogram(np.linspace(0, 1, BINS + 1), np.zeros(BINS, np.int64), zeros, False)
    low, high = float(some.min()), float(some.max())
    log = high > _LOG_FROM * low
    if high == low:
        low, high = low / 2, high * 2
    edges = np.geomspace(low, high, BINS + 1) if log else np.linspace(low, high, BINS + 1)
    edges[0], edges[-1] = low, high  # rounding must not lose the ends
    return Histogram(edges, np.histogram(some, edges)[0], zeros, log)


def histograms_svg(frame: pd.DataFrame, targets: Sequence[Target]) -> str:
    """The picture: a self-contained SVG, a few kilobytes a target."""
    shown = [t for t in targets if t.column in frame and frame[t.column].notna().any()]
    rows = -(-len(shown) // _COLUMNS)
    panels = [
        _panel(target, frame[target.column].dropna().to_numpy(np.float64), number % _COLUMNS, number // _COLUMNS)
        for number, target in enumerate(shown)
    ]
    size = f'width="{_COLUMNS * _WIDTH}" height="{rows * _HEIGHT}" viewBox="0 0 {_COLUMNS * _WIDTH} {rows * _HEIGHT}"'
    style = (
        "text{font:11px system-ui,sans-serif;fill:#555}.t{font-weight:600;fill:#222}.b{fill:#3b76af}.z{fill:#c2803e}"
        "line{stroke:#999}rect.p{fill:#fff}"
    )
    background = f'<rect class="p" width="{_COLUMNS * _WIDTH}" height="{rows * _HEIGHT}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Histograms of the labels">'
        f"<style>{style}</style>{background}\n" + "\n".join(panels) + "\n</svg>\n"
    )


def _panel(target: Target, values: NDArray[np.float64], column: int, row: int) -> str:
    found = histogram(values)
    top = max(int(found.counts.max()), found.zeros, 1)
    step = (_WIDTH - 2 * _LEFT - 14) / BINS
    parts = [f'<text class="t" x="0" y="-10">{escape(target.column)}</text>']
    bars = [("z", 0.0, 8.0, found.zeros, f"zero: {found.zeros:,}")]
    bars += [
        ("b", 14 + step * k, step - 0.8, int(n), f"{found.edges[k]:.4g} to {found.edges[k + 1]:.4g}: {n:,}")
        for k, n in enumerate(found.counts)
    ]
    for kind, x, width, n, title in bars:
        if n:
            height = max(_PLOT * n / top, 0.8)
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{_PLOT - height:.1f}" width="{width:.1f}" height="{height:.1f}">'
                f"<title>{title}</title></rect>"
            )
    end = _WIDTH - 2 * _LEFT
    parts.append(f'<line x1="0" x2="{end}" y1="{_PLOT}" y2="{_PLOT}"/>')
    unit = f" {target.unit}" if target.unit else ""
    low, high = found.edges[0], found.edges[-1]
    scale = "log" if found.log else "linear"
    parts.append(f'<text x="0" y="{_PLOT + 14}">0 | {low:.4g}</text>')
    parts.append(f'<text x="{end}" y="{_PLOT + 14}" text-anchor="end">{high:.4g}{escape(unit)}, {scale}</text>')
    return f'<g transform="translate({_LEFT + column * _WIDTH},{_TOP + row * _HEIGHT})">{"".join(parts)}</g>'
