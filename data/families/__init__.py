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
    tosa_graphs,
    tosa_layers,
    tosa_networks,
    transformer,
    vector,
)
from .base import Family, Source

__all__ = ["FAMILIES", "NETWORK_FAMILIES", "Family", "Source"]

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
"""Every family of kernels, PolyBench's first; building the dictionary generates nothing."""

NETWORK_FAMILIES: dict[str, Family] = {
    family.name: family for family in (*tosa_networks.FAMILIES, *tosa_layers.FAMILIES, *tosa_graphs.FAMILIES)
}
"""Every family of TOSA networks."""
