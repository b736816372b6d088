"""Builds a dataset: generate variants, drop duplicates, label, write. Every step resumes where it was stopped."""

from __future__ import annotations

import math
import os
import platform
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import IrgaugeError, LabelError, UsageError
from ..featurize.canonical import canonical_id
from .card import write_card
from .families import FAMILIES, Family, Source
from .label.kernel import ExactLabels, label_exact, label_function, label_latency
from .label.latency import Latency, latency_core
from .label.tools import tool_versions
from .real import RealFunction, real_functions
from .schedules import variants_for
from .store import Log, Variant, open_log, write_dataset

if TYPE_CHECKING:
    import pandas as pd

_T = TypeVar("_T")

VARIANTS_PER_SOURCE = 10
"""The identity and the schedules applied to each source."""


@dataclass(frozen=True)
class Failure:
    """Why one program has no label."""

    reason: str
    detail: str


def build_kernel(
    log_path: Path,
    output: Path,
    *,
    names: Sequence[str] | None = None,
    limit: int | None = None,
    n_jobs: int = 1,
    latency: bool = True,
) -> pd.DataFrame:
    """Bring the kernel dataset as far as it goes and write it with its card.

    Parameters
    ----------
    names : families; all by default
    limit : at most so many sources of each family
    latency : False leaves latencies that are missing for later

    Raises
    ------
    UsageError
        No such family.
    """
    unknown = set(names or ()) - set(FAMILIES)
    if unknown:
        raise UsageError(f"unknown family {sorted(unknown)[0]!r}. Known: {', '.join(FAMILIES)}")
    with open_log(log_path) as log:
        generate(log, [FAMILIES[name] for name in names or FAMILIES], limit=limit, n_jobs=n_jobs)
        label_waiting(log, n_jobs=n_jobs)
        if latency:
            time_waiting(log)
            drop_wrong_results(log)
        frame = write_dataset(log, output)
        write_card(frame, log.failures(), output.with_suffix(".md"))
    return frame


def build_real(log_path: Path, output: Path, corpus: Path, *, n_jobs: int = 1, latency: bool = True) -> pd.DataFrame:
    """Label the corpus's functions and write the real test set, without its texts.

    Raises
    ------
    IrgaugeError
        There is no corpus at that path.
    """
    functions = {f.id: f for f in real_functions(corpus)}
    with open_log(log_path) as log:
        for f in functions.values():
            source = Source(f"{f.path}#{f.chunk}", f.repository, "corpus", f.mlir)
            log.add_variants(f.id, [Variant(f.id, source, "as found")], [])
        waiting = [(id, functions[id]) for id, _ in log.waiting_for_exact(tool_versions()) if id in functions]
        _label(log, _real_or_failure, waiting, n_jobs)
        if latency:
            time_waiting(log)
        return write_dataset(log, output, with_text=False)


def generate(log: Log, families: Sequence[Family], *, limit: int | None = None, n_jobs: int) -> None:
    """Write every schedule of every source to the log; sources that are there already are left alone.

    Families come mixed, in a fixed order, so that what is there when a run is stopped is a fair sample.
    """
    finished = log.finished_sources()
    sources = [source for family in families for source in islice(family.sources(), limit)]
    waiting = [source for source in sources if source.program_id not in finished]
    waiting.sort(key=lambda source: zlib.crc32(source.program_id.encode()))
    for source, (variants, failures) in _parallel(
        variants_of, ((s,) for s in waiting), len(waiting), n_jobs, "schedules"
    ):
        log.add_variants(source, variants, failures)


def variants_of(source: Source) -> tuple[str, tuple[list[Variant], list[tuple[str, str, str]]]]:
    """All distinct variants of one source, and (schedule, reason, detail) of the schedules that did not apply."""
    failures: list[tuple[str, LabelError]] = []
    variants: dict[str, Variant] = {}
    seed = zlib.crc32(source.program_id.encode())
    for made in variants_for(source.mlir, seed, count=VARIANTS_PER_SOURCE, failures=failures):
        id = canonical_id(made.mlir)
        variants.setdefault(id, Variant(id, replace(source, mlir=made.mlir), made.schedule.name))
    reasons = [(schedule, error.reason, error.detail) for schedule, error in failures]
    return source.program_id, (list(variants.values()), reasons)


def label_waiting(log: Log, *, n_jobs: int) -> None:
    """Add exact labels to every program that has none by the tools as they are now; in parallel."""
    _label(log, _exact_or_failure, log.waiting_for_exact(tool_versions()), n_jobs)


def _label(
    log: Log,
    work: Callable[[str, Any], tuple[str, ExactLabels | Failure]],
    waiting: Sequence[tuple[str, Any]],
    n_jobs: int,
) -> None:
    versions = tool_versions()
    for id, result in _parallel(work, waiting, len(waiting), n_jobs, "exact labels"):
        if isinstance(result, Failure):
            log.add_failure(id, "exact", result.reason, result.detail)
        else:
            log.add_exact(id, result, versions)


def _exact_or_failure(id: str, mlir: str) -> tuple[str, ExactLabels | Failure]:
    return id, _or_failure(lambda: label_exact(mlir))


def _real_or_failure(id: str, function: RealFunction) -> tuple[str, ExactLabels | Failure]:
    return id, _or_failure(lambda: label_function(function.mlir, function.signature))


def _or_failure(work: Callable[[], _T]) -> _T | Failure:
    """One bad program never ends a run: what is wrong with it becomes a `Failure`."""
    try:
        return work()
    except LabelError as error:
        return Failure(error.reason, error.detail)
    except IrgaugeError as error:
        return Failure(type(error).__name__, str(error))


def time_waiting(log: Log) -> None:
    """Add a latency to every program that ran; one after the other, on one pinned core that nothing else should use."""
    waiting = log.waiting_for_latency()
    core, machine = latency_core(), machine_name()
    for id, result in _parallel(
        _latency_or_failure, ((id, asm, core) for id, asm in waiting), len(waiting), 1, "latencies"
    ):
        if isinstance(result, Failure):
            log.add_failure(id, "latency", result.reason, result.detail)
        else:
            log.add_latency(id, result, machine)


def _latency_or_failure(id: str, assembly: str, core: int) -> tuple[str, Latency | Failure]:
    return id, _or_failure(lambda: label_latency(assembly, core))


def drop_wrong_results(log: Log) -> None:
    """Record as failed each variant whose results differ from the untransformed program's by more than rounding.

    A schedule that changes what a program computes is a bug of the schedule or of `mlir-opt`; such a variant would be
    ranked against programs it cannot replace.
    """
    results = log.results()
    expected = {program: (total, scale) for _, program, schedule, _, total, scale in results if schedule == "identity"}
    for id, program_id, schedule, mlir, total, scale in results:
        if program_id in expected and not _agree((total, scale), expected[program_id], _tolerance(mlir)):
            log.add_failure(id, "result", "differs", f"{schedule}: {total!r} for {expected[program_id][0]!r}")


def _tolerance(mlir: str) -> float:
    """Relative difference that another order of the same sums may cause, by the narrowest element type."""
    return 2e-4 if "f32" in mlir or "f16" in mlir else 1e-9


def _agree(a: tuple[float, float], b: tuple[float, float], tolerance: float) -> bool:
    """Weighted sums agree relative to their scale; where either overflowed or is not a number, nothing can be said."""
    (total_a, scale_a), (total_b, scale_b) = a, b
    if not (math.isfinite(scale_a) and math.isfinite(scale_b)):
        return math.isfinite(scale_a) == math.isfinite(scale_b)
    return abs(total_a - total_b) <= tolerance * max(scale_a, scale_b)


def machine_name() -> str:
    """Processor and kernel, as they stand in each measured record."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine()
    )
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
