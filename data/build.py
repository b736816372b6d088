"""Builds a dataset: generate variants, drop duplicates, label, write. Every step resumes where it was stopped."""

from __future__ import annotations

import math
import multiprocessing
import os
import platform
import signal
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..errors import IrgaugeError, LabelError, UsageError
from .card import write_card
from .dedup import few_alike
from .families import Source
from .label.kernel import Signature, label_latencies, only_signature, runnable_assemblies
from .label.labels import Labels
from .label.latency import Latency, latency_core
from .real import real_functions
from .stopping import Stop, stopping
from .store import Log, Variant, open_log, take_over, text_hash, write_dataset
from .tracks import KERNEL, TRACKS, Generated, Track

if TYPE_CHECKING:
    import pandas as pd

_Item = TypeVar("_Item")
_T = TypeVar("_T")

BATCH = 24
"""Programs that are compiled, linked, counted and timed together; a kill loses one such batch a process."""

ROUND_SOURCES = 96
"""Sources that are generated, labelled and timed before the next ones, so that a stopped run has whole records."""


@dataclass(frozen=True)
class Failure:
    """Why one program has no label."""

    reason: str
    detail: str


@dataclass(frozen=True)
class Built:
    """What a run made."""

    frame: pd.DataFrame
    """The dataset as written."""
    left: tuple[str, ...]
    """What still waits, a phrase each; empty when the dataset is complete."""


def build_dataset(
    track: Track,
    log_path: Path,
    output: Path,
    *,
    names: Sequence[str] | None = None,
    limit: int | None = None,
    n_jobs: int = 1,
    dask: str | None = None,
    latency: bool = True,
    processor: str = "same",
    minutes: float | None = None,
    batch: int = BATCH,
) -> Built:
    """Bring a track's dataset as far as it goes and write it with its card.

    Where there is no log yet and `output` is there, its records by today's tools are taken over first. SIGTERM, SIGINT
    and the time limit end the run after what is in flight, with the dataset written.

    Parameters
    ----------
    names : families; all by default
    limit : at most so many sources of each family
    dask : address of a Dask scheduler whose workers do the exact labels
    latency : False leaves latencies that are missing for later; no matter where the track has none
    processor : what to do where latencies of another processor are there: "same" leaves the missing ones waiting, "any"
        measures them here, "redo" measures all again here
    minutes : end after so many minutes
    batch : programs that are compiled, linked, counted and timed together; no label depends on it

    Raises
    ------
    UsageError
        No such family.
    """
    unknown = set(names or ()) - set(track.families)
    if unknown:
        raise UsageError(f"unknown family {sorted(unknown)[0]!r}. Known: {', '.join(track.families)}")
    fresh = not log_path.exists()
    with open_log(log_path, track.name) as log, stopping(minutes) as stop, _workers(n_jobs, dask):
        if fresh and output.is_file():
            _say(f"{output}: {take_over(log, output, track.versions()):,} records taken over")
        latency = latency and track.timed
        timed = latency and _may_time(log, track, processor)
        sources = _sources(log, track, names or list(track.families), limit)
        waiting = _unfinished(log, sources)
        rounds = [waiting[at : at + ROUND_SOURCES] for at in range(0, len(waiting), ROUND_SOURCES)]
        for number, part in enumerate([[], *rounds]):  # the first one finishes what a stopped run has left
            if stop.reached:
                break
            generate(log, track, part, n_jobs=n_jobs, stop=stop)
            label_waiting(log, track, n_jobs=n_jobs, stop=stop, batch=batch)
            if timed:
                time_waiting(log, track, stop=stop, batch=batch)
            if rounds:
                _say(f"round {number} of {len(rounds)}: {log.counts()['exact']:,} programs labelled")
        if latency:
            drop_wrong_results(log)
        frame = write_dataset(log, output)
        write_card(frame, log.failures(), output.with_suffix(".md"), track)
        return Built(frame, _left(log, track, len(_unfinished(log, sources)), latency))


def build_real(
    log_path: Path,
    output: Path,
    corpus: Path,
    *,
    n_jobs: int = 1,
    dask: str | None = None,
    latency: bool = True,
    processor: str = "same",
    minutes: float | None = None,
    batch: int = BATCH,
) -> Built:
    """Label the corpus's functions and write the real test set, without its texts; arguments as in `build_dataset`.

    Raises
    ------
    IrgaugeError
        There is no corpus at that path.
    """
    functions = {f.id: f for f in real_functions(corpus)}
    with open_log(log_path) as log, stopping(minutes) as stop, _workers(n_jobs, dask):
        for f in functions.values():
            source = Source(f"{f.path}#{f.chunk}", f.repository, "corpus", f.mlir)
            log.add_variants(source, [Variant(f.id, source, "as found")], [])
        waiting = [(id, functions[id]) for id, _ in log.waiting_for_exact(KERNEL.versions()) if id in functions]
        _label(log, KERNEL, [(id, f.mlir, f.signature) for id, f in waiting], n_jobs, stop, batch)
        if latency and _may_time(log, KERNEL, processor):
            time_waiting(log, KERNEL, stop=stop, batch=batch)
        return Built(write_dataset(log, output, with_text=False), _left(log, KERNEL, 0, latency))


def _left(log: Log, track: Track, sources: int, latency: bool) -> tuple[str, ...]:
    versions = track.versions()
    exact = len(log.waiting_for_exact(versions))
    timed = len(log.waiting_for_latency(versions)) if latency else 0
    counts = ((sources, "sources to generate"), (exact, "programs without exact labels"), (timed, "without a latency"))
    return tuple(f"{n:,} {what}" for n, what in counts if n)


def _sources(log: Log, track: Track, names: Sequence[str], limit: int | None) -> list[Source]:
    """The families' sources without near-duplicates, which the log gets as failures."""
    written = (source for name in names for source in islice(track.families[name].sources(), limit))
    sources, dropped = few_alike(written, track.most_alike)
    for source, like in dropped:
        log.add_failure(source.program_id, "source", "near-duplicate", f"of {like}")
    return sources


def _unfinished(log: Log, sources: Sequence[Source]) -> list[Source]:
    """Sources whose variants are not in the log, mixed in a fixed order: what a stopped run has is a fair sample."""
    finished = log.finished_sources()
    waiting = [source for source in sources if finished.get(source.program_id) != text_hash(source.mlir)]
    return sorted(waiting, key=lambda source: zlib.crc32(source.program_id.encode()))


def generate(log: Log, track: Track, sources: Sequence[Source], *, n_jobs: int, stop: Stop) -> None:
    """Write every variant of these sources to the log."""
    for source, made in in_parallel(partial(_varied, track.name), sources, n_jobs, "variants", stop):
        log.add_variants(source, made.variants, made.failures)


def _varied(track: str, source: Source) -> tuple[Source, Generated]:
    return source, TRACKS[track].vary(source)


def label_waiting(log: Log, track: Track, *, n_jobs: int, stop: Stop, batch: int) -> None:
    """Add exact labels to every program that has none by the tools as they are now; in parallel."""
    waiting = [(id, mlir, None) for id, mlir in log.waiting_for_exact(track.versions())]
    _label(log, track, waiting, n_jobs, stop, batch)


_Waiting = tuple[str, str, Signature | None]
"""Id, module, and the function to label (None: its only one)."""


def _label(log: Log, track: Track, waiting: Sequence[_Waiting], n_jobs: int, stop: Stop, batch: int) -> None:
    versions = track.versions()
    batches = [waiting[at : at + batch] for at in range(0, len(waiting), batch)]
    work = partial(exact_or_failures, track.name)
    for results in in_parallel(work, batches, n_jobs, f"exact labels, {batch} each", stop):
        log.add_exact({id: found for id, found in results if isinstance(found, Labels)}, versions)
        for id, found in results:
            if isinstance(found, Failure):
                log.add_failure(id, "exact", found.reason, found.detail)


def exact_or_failures(track: str, batch: Sequence[_Waiting]) -> list[tuple[str, Labels | Failure]]:
    """One bad program never ends a run: what is wrong with it becomes a `Failure`."""
    labelled = TRACKS[track].label([(mlir, signature) for _, mlir, signature in batch])
    return [
        (id, found if isinstance(found, Labels) else _failure(found))
        for (id, _, _), found in zip(batch, labelled, strict=True)
    ]


def _failure(error: IrgaugeError) -> Failure:
    if isinstance(error, LabelError):
        return Failure(error.reason, error.detail)
    return Failure(type(error).__name__, str(error))


def time_waiting(log: Log, track: Track, *, stop: Stop, batch: int) -> None:
    """Add a latency to every program that ran; one after the other, on one pinned core that nothing else should use."""
    from tqdm import tqdm

    versions, core, machine = track.versions(), latency_core(), machine_name()
    waiting = log.waiting_for_latency(versions)
    bar = tqdm(total=len(waiting), desc="latencies", unit="program", disable=None, leave=False, smoothing=0.02)
    with bar:
        for at in range(0, len(waiting), batch):
            if stop.reached:
                return
            part = waiting[at : at + batch]
            measured = _latencies_or_failures(part, core)
            log.add_latencies({id: found for id, found in measured if isinstance(found, Latency)}, machine, versions)
            for id, found in measured:
                if isinstance(found, Failure):
                    log.add_failure(id, "latency", found.reason, found.detail)
            bar.update(len(part))


def _latencies_or_failures(
    part: Sequence[tuple[str, str, str | None]], core: int
) -> list[tuple[str, Latency | Failure]]:
    """Latencies of programs by (id, module, assembly); what was taken over from a dataset is compiled again."""
    assemblies: dict[str, str] = {id: assembly for id, _, assembly in part if assembly is not None}
    results: dict[str, Latency | Failure] = {}
    missing = [(id, mlir) for id, mlir, assembly in part if assembly is None]
    compiled = runnable_assemblies([(mlir, only_signature(mlir)) for _, mlir in missing])
    for (id, _), assembly in zip(missing, compiled, strict=True):
        if isinstance(assembly, LabelError):
            results[id] = _failure(assembly)
        else:
            assemblies[id] = assembly
    for id, found in zip(assemblies, label_latencies(list(assemblies.values()), core), strict=True):
        results[id] = _failure(found) if isinstance(found, LabelError) else found
    return list(results.items())


def _may_time(log: Log, track: Track, processor: str) -> bool:
    """Whether latencies may be measured here: those of two processors do not belong into one dataset unasked."""
    here = processor_of(machine_name())
    others = {m: n for m, n in log.machines(track.versions()).items() if processor_of(m) != here}
    if not others or processor == "any":
        return True
    if processor == "redo":
        log.drop_latencies(list(others))
        return True
    names = ", ".join(sorted({processor_of(m) for m in others}))
    _say(
        f"no latencies measured: {sum(others.values()):,} are of another processor ({names}; this is {here}). "
        "Go on there, or give --processor redo to measure all here, or --processor any to mix them."
    )
    return False


def processor_of(machine: str) -> str:
    """The processor's name in what `machine_name` says."""
    return machine.partition(",")[0]


def _say(text: str) -> None:
    print(f"irgauge: {text}", file=sys.stderr)


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


@contextmanager
def _workers(n_jobs: int, dask: str | None) -> Iterator[None]:
    """Where joblib runs: processes of this machine, or the workers of a Dask cluster."""
    if dask is None:
        yield
        return
    from distributed import Client
    from joblib import parallel_config

    try:
        client = Client(dask, timeout=5)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise IrgaugeError(f"no Dask scheduler answers at {dask} ({error}). Start one with `dask scheduler`.") from None
    with client, parallel_config(backend="dask"):
        yield


def in_parallel(
    work: Callable[[_Item], _T], items: Sequence[_Item], n_jobs: int, what: str, stop: Stop
) -> Iterator[_T]:
    """Results in the order they arrive, behind a progress bar; once `stop` is reached, nothing new is begun."""
    from joblib import Parallel, delayed
    from tqdm import tqdm

    if not items:
        return
    tasks = (delayed(_undisturbed)(work, item) for item in takewhile(lambda _: not stop.reached, items))
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)
    yield from tqdm(results, total=len(items), desc=what, disable=None, leave=False, smoothing=0.02)


def _undisturbed(work: Callable[[_Item], _T], item: _Item) -> _T:
    """`work(item)` in a worker that leaves a Ctrl-C at the terminal to the process that waits for it."""
    in_worker = multiprocessing.current_process().name != "MainProcess"
    if in_worker and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return work(item)
