"""What every family of programs delivers: sources, each one MLIR module around one function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

PROGRAMS_PER_FAMILY = 25
"""What most families deliver; with their schedules, all of them together make a little over 30,000 programs."""


@dataclass(frozen=True)
class Source:
    """One program before any schedule is applied."""

    program_id: str
    """Shared by all variants, e.g. "polybench/gemm/f32/small"."""
    family: str
    """The algorithm it comes from, e.g. "gemm"."""
    origin: str
    """Which generator wrote it, e.g. "polybench"."""
    mlir: str
    """One module with exactly one public function: `@kernel` from static memrefs or scalars to nothing, or the network
    `@main` from tensors to tensors."""


@dataclass(frozen=True)
class Family:
    """A named generator of sources. The same arguments give the same sources in the same order."""

    name: str
    origin: str
    sources: Callable[[], Iterator[Source]]
