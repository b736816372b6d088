"""Wall time of one warm kernel call on one pinned core, with its repeats, spread and the core's own drift."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

from .tools import run

REPEATS = 9
MIN_REPEAT_NS = 1e6
SPREAD_LIMIT = 0.05
MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class Latency:
    """One kernel's time."""

    repeats_ns: tuple[float, ...]
    """Time of one call, each the mean over a repeat of at least 1 ms."""
    calls_per_repeat: int
    reference_before_ns: float
    """Time of the driver's fixed reference work just before; how fast the core ran."""
    reference_after_ns: float
    result_sum: float
    """Weighted sum of all operands after the first call; variants of one program agree in it up to rounding."""
    result_scale: float
    """The same sum of absolute values."""
    attempts: int
    """How often it was measured until the spread was small, at most `MAX_ATTEMPTS`; the calmest attempt is kept."""

    @property
    def median_ns(self) -> float:
        return statistics.median(self.repeats_ns)

    @property
    def spread(self) -> float:
        """Distance between the quartiles over the median."""
        low, _, high = statistics.quantiles(self.repeats_ns, n=4)
        return (high - low) / self.median_ns


def measure(folder: Path, core: int, *, timeout_s: float = 60.0) -> Latency:
    """Time `folder/kernel` on `core`, again while the repeats spread over 5 %, and keep the calmest attempt.

    Raises
    ------
    LabelError
        reason "latency-timeout", "latency-crash" or "latency-error".
    """
    best: Latency | None = None
    for attempt in range(1, MAX_ATTEMPTS + 1):
        latency = _measure_once(folder, core, attempt, timeout_s)
        if best is None or latency.spread < best.spread:
            best = latency
        if best.spread <= SPREAD_LIMIT:
            break
    assert best is not None
    return replace(best, attempts=attempt)


def _measure_once(folder: Path, core: int, attempt: int, timeout_s: float) -> Latency:
    pinned = ["taskset", "-c", str(core), "./kernel", "time", str(REPEATS), str(MIN_REPEAT_NS)]
    out = run(pinned, step="latency", cwd=folder, timeout_s=timeout_s)
    calls, before, after, result_sum, result_scale, *repeats = out.split()
    repeats_ns = tuple(map(float, repeats))
    return Latency(repeats_ns, int(calls), float(before), float(after), float(result_sum), float(result_scale), attempt)


def call_cpu_ns(folder: Path, *, timeout_s: float) -> float:
    """Processor time of one cold call, whatever else the machine does.

    Raises
    ------
    LabelError
        reason "run-timeout", "run-crash" or "run-error".
    """
    return float(run(["./kernel", "probe"], step="run", cwd=folder, timeout_s=timeout_s))


def latency_core() -> int:
    """The core that latencies are measured on: the last one this process may use."""
    return max(os.sched_getaffinity(0))
