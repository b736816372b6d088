"""From a `Summary` to one HTML file that needs nothing else: no script, no network, everything inline.

All text goes through Jinja's autoescaping; nothing is marked safe.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ToolMissingError
from ..featurize.describe import GROUPS
from ..files import write_whole
from . import benchmark_tables, numbers, plots, tables
from .figures import FIGURES
from .summary import OURS, ShapSummary, Summary, TargetSummary

TEMPLATES = Path(__file__).with_name("templates")


def render(summary: Summary) -> str:
    """The report as HTML text.

    Raises
    ------
    ToolMissingError
        Jinja is not installed.
    """
    try:
        import jinja2
    except ImportError:
        raise ToolMissingError("the report needs jinja2. Install irgauge[report].") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _filters()
    seen: set[str] = set()
    return environment.get_template("report.html.j2").render(
        s=summary,
        OURS=OURS,
        FIGURES=FIGURES,
        tables=tables,
        beside=benchmark_tables,
        plots=plots,
        groups=[g for g in (*GROUPS, "other") if any(g in p.groups for t in summary.targets for p in t.shap)],
        heat_steps=tables.HEAT_STEPS,
        is_log=is_log,
        effect=effect,
        first_time=lambda id: not (id in seen or seen.add(id)),  # type: ignore[func-returns-value]
        target_of={w.id: t.name for t in reversed(summary.targets) for w in t.worst},
    )


def _filters() -> Mapping[str, Callable[..., Any]]:
    return {
        "percent": numbers.percent,
        "points": numbers.points,
        "two": numbers.two,
        "compact": numbers.compact,
        "quantity": numbers.quantity,
        "factor": numbers.factor,
        "grouped": numbers.grouped,
        "milliseconds": numbers.milliseconds,
        "shown": numbers.shown,
        "finite": lambda value: bool(np.isfinite(value)),
        "direction": direction,
    }


def is_log(target: TargetSummary) -> bool:
    """Whether a target's plot has logarithmic axes: where it is learned in log space."""
    return any(part.part == "value" and part.space == "log" for part in target.shap)


def effect(part: ShapSummary, size: float, unit: str) -> str:
    """A mean |SHAP value| in words: a factor in log space, else in the unit or in log-odds."""
    if part.space == "log":
        return numbers.factor(float(np.exp(size)))
    return "±" + numbers.compact(size, 3) + (f" {unit}" if part.space == "plain" and unit else "")


def direction(correlation: float) -> str:
    """What a higher value of a feature does to the prediction."""
    if not np.isfinite(correlation) or abs(correlation) < 0.3:
        return "mixed"
    return "raises" if correlation > 0 else "lowers"


def write_report(summary: Summary, path: str | os.PathLike[str]) -> Path:
    """Render and write; the file appears whole or not at all.

    Raises
    ------
    IrgaugeError
        The file cannot be written.
    """
    target = Path(path)
    write_whole(target, render(summary))
    return target
