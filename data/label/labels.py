"""What a labeller finds out about one program, whatever the track."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Reason = tuple[str, str]
"""A short name to count by, and the detail."""


@dataclass(frozen=True)
class Labels:
    """Everything that comes out the same when it is labelled again."""

    values: Mapping[str, float]
    """Column, e.g. "x86-64-v3/spills" -> value. A column that could not be had is missing."""
    failed: Mapping[str, Reason] = field(default_factory=dict)
    """Device -> why it has no values."""
    assembly: str | None = None
    """What latencies are measured from later, where the track has them."""
    skipped: Reason | None = None
    """Why the executed targets are missing; None if they are there, or the track has none."""
