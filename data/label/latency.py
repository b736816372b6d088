"""Wall time of one warm kernel call on one pinned core, with its repeats, spread and the core's own drift."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import LabelError
from .executable import Program
from .tools import ended_by, run

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


def measure(program: Program, numbers: Sequence[int], core: int, *, cpu_s: int = 60) -> dict[int, Latency | LabelError]:
    """Time some kernels of a program on `core`, each in a process of its own.

    Those whose repeats spread over 5 % are timed again after the others, and the calmest attempt is kept. A kernel that
    fails gets a `LabelError` in its place: reason "latency-timeout", "latency-crash" or "latency-error".

    Raises
    ------
    LabelError
        The program as a whole could not be run.
    """
    results: dict[int, Latency | LabelError] = {}
    waiting = list(numbers)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        for number, measured in _measure_once(program, waiting, core, cpu_s).items():
            best = results.get(number)
            if isinstance(best, Latency) and (isinstance(measured, LabelError) or best.spread <= measured.spread):
                measured = best
            results[number] = replace(measured, attempts=attempt) if isinstance(measured, Latency) else measured
        waiting = [n for n in waiting if isinstance(r := results[n], Latency) and r.spread > SPREAD_LIMIT]
        if not waiting:
            break
    return results


def _measure_once(program: Program, numbers: Sequence[int], core: int, cpu_s: int) -> dict[int, Latency | LabelError]:
    command = ["taskset", "-c", str(core), "./kernels", "time", str(cpu_s), str(REPEATS), str(MIN_REPEAT_NS)]
    out = run(
        [*command, *map(str, numbers)],
        step="latency",
        cwd=program.folder,
        timeout_s=60 + 2 * cpu_s * len(numbers),
        memory_bytes=None,
    )
    results: dict[int, Latency | LabelError] = {}
    for line in out.splitlines():
        number, *words = line.split()
        if words[0] == "failed":
            results[int(number)] = ended_by("latency", int(words[1]), "the calls did not end well")
            continue
        calls, before, after, result_sum, result_scale, *repeats = words
        repeats_ns = tuple(map(float, repeats))
        results[int(number)] = Latency(
            repeats_ns, int(calls), float(before), float(after), float(result_sum), float(result_scale), 1
        )
    return results


def latency_core() -> int:
    """The core that latencies are measured on: the last one this process may use."""
    return max(os.sched_getaffinity(0))
