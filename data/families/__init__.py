"""Program generators, by name."""

from __future__ import annotations

from . import linalg, nests, polybench, transformer, vector
from .base import Family, Source

__all__ = ["FAMILIES", "Family", "Source"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        *polybench.FAMILIES,
        *nests.FAMILIES,
        *linalg.FAMILIES,
        *transformer.FAMILIES,
        *vector.FAMILIES,
    )
}
"""Every family, PolyBench's kernels first; building the dictionary generates nothing."""
