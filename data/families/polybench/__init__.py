"""The 30 kernels of PolyBench/C 4.2 in affine MLIR.

Each kernel is a template beside this file, `gemm.mlir` for "gemm": a function over static memrefs whose sizes and
element type are placeholders. Scalar parameters (alpha, beta, time steps) are constants inside the kernel, as
PolyBench sets them. Arrays a kernel needs as scratch are arguments, as in PolyBench.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from string import Template

from ..base import Family, Source
from .sizes import DIMENSIONS, ELEMENT_TYPES, SIZES

ORIGIN = "polybench"

_ALIAS = re.compile(r"^!(\w+) = (.*)\n", re.MULTILINE)


def render(template: str, dimensions: dict[str, int], element_type: str) -> str:
    """Fill a kernel template.

    Parameters
    ----------
    template : text with `$T` for the element type, `$N` for the dimension N and `$N_1` for N - 1. Types named by
        `!A = ...` lines at the top are written out, so that a source reads like what `mlir-opt` prints.
    dimensions : value of each dimension, e.g. {"NI": 8, "NJ": 9, "NK": 10}
    element_type : "f32", "f64", "i32" or "i64"

    >>> render("!A = memref<${N}x${T}>\\naffine.load %A[$N_1] : !A", {"N": 8}, "f32")
    'affine.load %A[7] : memref<8xf32>'
    """
    names: dict[str, int | str] = {"T": element_type}
    for name, size in dimensions.items():
        names |= {name: size, f"{name}_1": size - 1}
    text = Template(template).substitute(names)
    aliases = dict(_ALIAS.findall(text))
    return re.sub(r"!(\w+)", lambda match: aliases[match[1]], _ALIAS.sub("", text))


def source(kernel: str, size_name: str, element_type: str) -> Source:
    """One kernel at one size and element type, e.g. ("gemm", "small", "f32").

    Raises
    ------
    KeyError
        PolyBench has no such kernel, or the kernel no such size.
    """
    dimensions = dict(zip(DIMENSIONS[kernel], SIZES[kernel][size_name], strict=True))
    template = files(__package__).joinpath(f"{kernel}.mlir").read_text(encoding="utf-8")
    return Source(
        program_id=f"{ORIGIN}/{kernel}/{element_type}/{size_name}",
        family=kernel,
        origin=ORIGIN,
        mlir=render(template, dimensions, element_type),
    )


def _sources(kernel: str) -> Iterator[Source]:
    for element_type in ELEMENT_TYPES[kernel]:
        for size_name in SIZES[kernel]:
            yield source(kernel, size_name, element_type)


FAMILIES: tuple[Family, ...] = tuple(Family(kernel, ORIGIN, partial(_sources, kernel)) for kernel in DIMENSIONS)
"""One family per kernel, in the order of PolyBench's own list."""

__all__ = ["FAMILIES", "ORIGIN", "render", "source"]
