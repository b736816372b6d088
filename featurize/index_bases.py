"""`affine.linearize_index` and `affine.delinearize_index` with constant bases as linear forms."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .affine import Linear, constant, make_term
from .attribute_text import is_generic, property_text, static_list

_BASIS = re.compile(r"\b(?:into|by)\s*\(([^)]*)\)")


def _basis(text: str) -> list[int]:
    """The basis. ValueError where it is not constant."""
    if is_generic(text):
        sizes = static_list(property_text(text, "static_basis"))
    else:
        written = _BASIS.search(text)
        parts = written.group(1).split(",") if written else []
        sizes = [None if "%" in p else int(p) for p in parts if p.strip()]
    if not sizes or None in sizes:
        raise ValueError("not a constant basis")
    return [s for s in sizes if s is not None]


def delinearized(text: str, index: Linear, position: int, n_results: int) -> Linear:
    """Result number `position`; the first one takes what is left. ValueError where the basis is not constant."""
    sizes = _basis(text)[-(n_results - 1) :] if n_results > 1 else []
    below = 1
    for size in sizes[position:]:
        below *= size
    whole = index if below == 1 else make_term("floordiv", [index, constant(below)])
    return whole if position == 0 else make_term("mod", [whole, constant(sizes[position - 1])])


def linearized(text: str, indices: Sequence[Linear]) -> Linear:
    """The sum of the indices times the products of the sizes after them. ValueError where these are not constant."""
    sizes = _basis(text)[-(len(indices) - 1) :] if len(indices) > 1 else []
    total = constant(0)
    step = 1
    for i in range(len(indices) - 1, -1, -1):
        total = total + indices[i].scaled(step)
        if i > 0:
            step *= sizes[i - 1]
    return total
