"""Program generators, by name."""

from __future__ import annotations

from . import (
    control,
    dp,
    image,
    image_stencils,
    linalg,
    nests,
    numeric,
    polybench,
    registers,
    sorting,
    sparse,
    transformer,
    vector,
)
from .base import Family, Source

__all__ = ["FAMILIES", "Family", "Source"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        *polybench.FAMILIES,
        *nests.FAMILIES,
        *image.FAMILIES,
        *image_stencils.FAMILIES,
        *dp.FAMILIES,
        *sorting.FAMILIES,
        *sparse.FAMILIES,
        *numeric.FAMILIES,
        *control.FAMILIES,
        *registers.FAMILIES,
        *linalg.FAMILIES,
        *transformer.FAMILIES,
        *vector.FAMILIES,
    )
}
"""Every family, PolyBench's kernels first; building the dictionary generates nothing."""
