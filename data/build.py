"""Builds a dataset: generate variants, drop duplicates, label, write. Every step resumes where it was stopped."""

from __future__ import annotations

import os
import platform
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import IrgaugeError, LabelError
from ..featurize.canonical import canonical_id
from .families.base import Family, Source
from .label.kernel import ExactLabels, label_exact, label_latency
from .label.latency import Latency, latency_core
from .label.tools import tool_versions
from .schedules import apply, schedules_for
from .store import Log, Variant


@dataclass(frozen=True)
class Failure:
    """Why one program has no label."""

    reason: str
    detail: str


def generate(log: Log, families: Sequence[Family], *, n_jobs: int) -> None:
    """Write every schedule of every source to the log; sources that are there already are left alone."""
    finished = log.finished_sources()
    waiting = [s for family in families for s in family.sources() if s.program_id not in finished]
    for source, (variants, failures) in _parallel(variants_of, ((s,) for s in waiting), len(waiting), n_jobs, "schedules"):
        log.add_variants(source, variants, failures)


def variants_of(source: Source) -> tuple[str, tuple[list[Variant], list[tuple[str, str, str]]]]:
    """All distinct variants of one source, and (schedule, reason, detail) of the schedules that did not apply."""
    variants: dict[str, Variant] = {}
    failures: list[tuple[str, str, str]] = []
    for schedule in schedules_for(source.mlir, seed=zlib.crc32(source.program_id.encode())):
        try:
            text = apply(source.mlir, schedule)
        except LabelError as error:
            failures.append((schedule.name, error.reason, error.detail))
            continue
        id = canonical_id(text)
        variants.setdefault(id, Variant(id, replace(source, mlir=text), schedule.name))
    return source.program_id, (list(variants.values()), failures)


def label_waiting(log: Log, *, n_jobs: int) -> None:
    """Add exact labels to every program that has none; in parallel."""
    waiting = log.waiting_for_exact()
    versions = tool_versions()
    for id, result in _parallel(_exact_or_failure, waiting, len(waiting), n_jobs, "exact labels"):
        if isinstance(result, Failure):
            log.add_failure(id, "exact", result.reason, result.detail)
        else:
            log.add_exact(id, result, versions)


def _exact_or_failure(id: str, mlir: str) -> tuple[str, ExactLabels | Failure]:
    try:
        return id, label_exact(mlir)
    except LabelError as error:
        return id, Failure(error.reason, error.detail)
    except IrgaugeError as error:
        return id, Failure(type(error).__name__, str(error))


def time_waiting(log: Log) -> None:
    """Add a latency to every program that ran; one after the other, on one pinned core that nothing else should use."""
    waiting = log.waiting_for_latency()
    core, machine = latency_core(), machine_name()
    for id, result in _parallel(_latency_or_failure, ((id, asm, core) for id, asm in waiting), len(waiting), 1, "latencies"):
        if isinstance(result, Failure):
            log.add_failure(id, "latency", result.reason, result.detail)
        else:
            log.add_latency(id, result, machine)


def _latency_or_failure(id: str, assembly: str, core: int) -> tuple[str, Latency | Failure]:
    try:
        return id, label_latency(assembly, core)
    except LabelError as error:
        return id, Failure(error.reason, error.detail)


def machine_name() -> str:
    """Processor and kernel, as they stand in each measured record."""
    model = next((line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def _parallel(
    work: Callable[..., tuple[str, Any]], arguments: Iterable[tuple[Any, ...]], total: int, n_jobs: int, what: str
) -> Iterator[tuple[str, Any]]:
    """Results in the order they arrive, behind a progress bar."""
    from joblib import Parallel, delayed
    from tqdm import tqdm

    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(work)(*a) for a in arguments)
    yield from tqdm(results, total=total, desc=what, unit="program", disable=None, smoothing=0.02)
