"""Transposes as the exchanges of height, width and channels that an NPU has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .devices import Npu, Shape
from .graph import Node, four

_ORDERS: dict[tuple[int, ...], str] = {
    (0, 1, 2): "NHWC",
    (1, 0, 2): "NWHC",
    (0, 2, 1): "NHCW",
    (1, 2, 0): "NWCH",
    (2, 0, 1): "NCHW",
    (2, 1, 0): "NCWH",
}


def permuted_forward(shape: Shape, order: str) -> Shape:
    """The shape with its dimensions exchanged."""
    sizes = dict(zip("NHWC", shape, strict=True))
    high, wide, deep = (sizes[letter] for letter in (order or "NHWC")[1:])
    return 1, high, wide, deep


def swaps_last(node: Node) -> bool:
    order = node.permutation
    return len(order) >= 2 and order == (*range(len(order) - 2), len(order) - 1, len(order) - 2)


def exchanges(shape: Sequence[int], permutation: Sequence[int], npu: Npu) -> list[tuple[Shape, str]]:
    """A permutation as exchanges of height, width and channels: each with the shape that it reads.

    Of more than four dimensions, or where the batch moves, those of one element are left out and those that stay beside
    each other are one. Four that exchange the inner two take five exchanges.
    """
    rank = len(permutation)
    if rank < 4 or (rank == 4 and permutation[0] == 0):
        missing = 4 - rank
        inner = tuple(p + missing - 1 for p in permutation) if rank < 4 else tuple(p - 1 for p in permutation[1:])
        name = _ORDERS[(*range(missing - 1), *inner)]
        return _native(four(shape), name, npu) if shape[0] == 1 or rank < 4 else [(four(shape), name)]
    kept = [p for p in permutation if shape[p] != 1]
    groups: list[list[int]] = []
    for p in kept:
        between = range(groups[-1][-1] + 1, p) if groups else range(0)
        if groups and p > groups[-1][-1] and all(shape[d] == 1 for d in between):
            groups[-1].append(p)
        else:
            groups.append([p])
    ranked = sorted(range(len(groups)), key=lambda g: groups[g][0])
    sizes = [math.prod(shape[d] for d in groups[g]) for g in ranked]
    place = {g: n for n, g in enumerate(ranked)}
    order = tuple(place[g] for g in range(len(groups)))
    if len(sizes) == 4 and order == (0, 2, 1, 3):
        a, b, c, d = sizes
        return [
            ((1, a, b, c * d), "NWHC"),
            ((1, a * b, c, d), "NHCW"),
            ((1, b, a * d, c), "NCWH"),
            ((1, a * c, d, b), "NHCW"),
            ((1, c, a, b * d), "NWHC"),
        ]
    if len(sizes) > 3:
        return [((1, sizes[0], sizes[1], math.prod(sizes[2:])), "NWHC")]
    if len(sizes) <= 1:
        return [(four(shape), "")]
    if len(sizes) == 2:
        return [(four(sizes), "NHCW")] if order == (1, 0) else [(four(shape), "")]
    return _native(four(sizes), _ORDERS[order], npu)


def _native(shape: Shape, order: str, npu: Npu) -> list[tuple[Shape, str]]:
    """In one exchange, or on the smaller NPU in two of those that it has."""
    if order == "NHWC":
        return [(shape, "")]
    if npu.shared and order in ("NWCH", "NCHW"):
        first = "NWHC" if order == "NWCH" else "NHCW"
        return [(shape, first), (permuted_forward(shape, first), "NHCW" if first == "NWHC" else "NWHC")]
    return [(shape, order)]
