"""The tracks that datasets are built for: where programs come from, how they are varied, and what labels them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import IrgaugeError, LabelError
from ..featurize.canonical import canonical_id
from .dedup import MOST_ALIKE
from .families import FAMILIES, NETWORK_FAMILIES, Family, Source
from .label.kernel import Signature, label_batch, only_signature
from .label.labels import Labels
from .label.npu import label_networks, npu_versions
from .label.tools import tool_versions
from .schedules import variants_for
from .store import Variant
from .targets import NEOVERSE, targets_of

VARIANTS_PER_SOURCE = 10
"""The identity and the schedules applied to each source of the kernel track."""

Item = tuple[str, Signature | None]
"""A module, and the function of it to label (None: its only one)."""


@dataclass(frozen=True)
class Generated:
    """The distinct variants of one source."""

    variants: list[Variant]
    failures: list[tuple[str, str, str]]
    """(schedule, reason, detail) of the schedules that did not apply."""


@dataclass(frozen=True)
class Track:
    """One level of MLIR with its toolchain."""

    name: str
    families: Mapping[str, Family]
    vary: Callable[[Source], Generated]
    label: Callable[[Sequence[Item]], list[Labels | IrgaugeError]]
    """Exact labels of many programs at a time; none depends on the others. What fails has its error in its place."""
    versions: Callable[[], Mapping[str, str]]
    """Of the tools, as they stand in each record."""
    most_alike: int
    """Sources of a family that may differ in sizes and constants only; see `dedup.py`."""

    @property
    def timed(self) -> bool:
        """Whether anything is measured, beside the exact labels."""
        return any(not target.exact for target in targets_of(self.name))


def _scheduled(source: Source) -> Generated:
    failures: list[tuple[str, LabelError]] = []
    variants: dict[str, Variant] = {}
    seed = zlib.crc32(source.program_id.encode())
    for made in variants_for(source.mlir, seed, count=VARIANTS_PER_SOURCE, failures=failures):
        id = canonical_id(made.mlir)
        variants.setdefault(id, Variant(id, replace(source, mlir=made.mlir), made.schedule.name))
    reasons = [(schedule, error.reason, error.detail) for schedule, error in failures]
    return Generated(list(variants.values()), reasons)


def _as_written(source: Source) -> Generated:
    return Generated([Variant(canonical_id(source.mlir), source, "identity")], [])


def _label_kernels(items: Sequence[Item]) -> list[Labels | IrgaugeError]:
    results: list[Labels | IrgaugeError | None] = [None] * len(items)
    ready: dict[int, tuple[str, Signature]] = {}
    for at, (mlir, signature) in enumerate(items):
        try:
            ready[at] = mlir, signature or only_signature(mlir)
        except IrgaugeError as error:
            results[at] = error
    for at, found in zip(ready, label_batch(list(ready.values())), strict=True):
        if isinstance(found, LabelError):
            results[at] = found
        else:
            failed = {NEOVERSE: found.incomplete} if found.incomplete else {}
            results[at] = Labels(found.values, failed, found.assembly, found.skipped)
    return [result for result in results if result is not None]


def _label_networks(items: Sequence[Item]) -> list[Labels | IrgaugeError]:
    return [*label_networks([mlir for mlir, _ in items])]


KERNEL = Track("kernel", FAMILIES, _scheduled, _label_kernels, tool_versions, MOST_ALIKE)
NPU = Track("npu", NETWORK_FAMILIES, _as_written, _label_networks, npu_versions, 60)
"""Sizes decide how full an NPU's MAC array is, and there are no schedules: many sizes of one structure are kept."""

TRACKS: Mapping[str, Track] = {track.name: track for track in (KERNEL, NPU)}
