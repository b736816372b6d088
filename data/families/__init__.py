"""Program generators, by name."""

from __future__ import annotations

from . import nests, polybench
from .base import Family, Source

__all__ = ["FAMILIES", "Family", "Source"]

FAMILIES: dict[str, Family] = {family.name: family for family in (*polybench.FAMILIES, *nests.FAMILIES)}
"""Every family, PolyBench's kernels first; building the dictionary generates nothing."""
