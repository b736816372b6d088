"""Linalg operations as the loop nests they stand for: extents, iterators, accesses, arithmetic per iteration."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .affine import AffineError, AffineMap, Linear, constant, variable
from .program import Op

if TYPE_CHECKING:
    from .function_view import FunctionView


@dataclass(frozen=True)
class ImpliedNest:
    """One perfect loop nest."""

    extents: tuple[int | None, ...]
    """Iterations of each loop, outermost first; None where the shape does not say."""
    iterators: tuple[str, ...]
    """"parallel" or "reduction" for each loop."""
    accesses: tuple[tuple[int, tuple[Linear, ...], bool], ...]
    """(memref or tensor value, subscripts over loop positions, is a store), loads first."""
    compute: tuple[str, ...]
    """Classes of the operations of one iteration; empty where the region states them."""


_MUL_ADD = ("fmul", "fadd")
_CONTRACTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    # name -> (subscripts of lhs, rhs, out over single-letter loops, loops in order; capitals are reductions)
    "matmul": (("mK", "Kn", "mn"), "mnK"),
    "matmul_transpose_a": (("Km", "Kn", "mn"), "mnK"),
    "matmul_transpose_b": (("mK", "nK", "mn"), "mnK"),
    "quantized_matmul": (("mK", "Kn", "", "", "mn"), "mnK"),
    "batch_matmul": (("bmK", "bKn", "bmn"), "bmnK"),
    "batch_matmul_transpose_a": (("bKm", "bKn", "bmn"), "bmnK"),
    "batch_matmul_transpose_b": (("bmK", "bnK", "bmn"), "bmnK"),
    "batch_reduce_matmul": (("BmK", "BKn", "mn"), "BmnK"),
    "matvec": (("mN", "N", "m"), "mN"),
    "vecmat": (("N", "Nm", "m"), "mN"),
    "batch_matvec": (("bmK", "bK", "bm"), "bmK"),
    "batch_vecmat": (("bK", "bKn", "bn"), "bnK"),
    "dot": (("M", "M", ""), "M"),
    "mmt4d": (("mKac", "nKbc", "mnab"), "mnKabC"),
}
_CONVOLUTIONS: dict[str, tuple[str, str, str]] = {
    # name -> (input, filter, output); x y z are output positions, X Y Z the filter's, capitals are reductions
    "conv_1d": ("x", "X", "x"),
    "conv_2d": ("xy", "XY", "xy"),
    "conv_3d": ("xyz", "XYZ", "xyz"),
    "conv_1d_nwc_wcf": ("nxC", "XCf", "nxf"),
    "conv_1d_ncw_fcw": ("nCx", "fCX", "nfx"),
    "conv_2d_nhwc_hwcf": ("nxyC", "XYCf", "nxyf"),
    "conv_2d_nhwc_fhwc": ("nxyC", "fXYC", "nxyf"),
    "conv_2d_nchw_fchw": ("nCxy", "fCXY", "nfxy"),
    "conv_3d_ndhwc_dhwcf": ("nxyzC", "XYZCf", "nxyzf"),
    "depthwise_conv_1d_nwc_wc": ("nxc", "Xc", "nxc"),
    "depthwise_conv_2d_nhwc_hwc": ("nxyc", "XYc", "nxyc"),
    "depthwise_conv_2d_nchw_chw": ("ncxy", "cXY", "ncxy"),
    "depthwise_conv_2d_nhwc_hwcm": ("nxyc", "XYcm", "nxycm"),
    "pooling_nhwc_sum": ("nxyc", "XY", "nxyc"),
    "pooling_nhwc_max": ("nxyc", "XY", "nxyc"),
    "pooling_nhwc_min": ("nxyc", "XY", "nxyc"),
    "pooling_nchw_sum": ("ncxy", "XY", "ncxy"),
    "pooling_nchw_max": ("ncxy", "XY", "ncxy"),
    "pooling_ncw_sum": ("ncx", "X", "ncx"),
    "pooling_nwc_sum": ("nxc", "X", "nxc"),
}
_ELEMENTWISE = {
    "exp": "fmath",
    "log": "fmath",
    "tanh": "fmath",
    "erf": "fmath",
    "powf": "fmath",
    "sqrt": "fsqrt",
    "rsqrt": "fsqrt",
    "add": "fadd",
    "sub": "fadd",
    "mul": "fmul",
    "square": "fmul",
    "div": "fdiv",
    "div_unsigned": "fdiv",
    "reciprocal": "fdiv",
    "max": "fminmax",
    "min": "fminmax",
    "abs": "fcheap",
    "negf": "fcheap",
    "ceil": "fcheap",
    "floor": "fcheap",
    "round": "fcheap",
    "select": "select",
}
_OUTS = re.compile(r"\b(?:outs|init)\s*\(([^:)]*)[:)]", re.S)
_SEGMENTS = re.compile(r"operandSegmentSizes\s*=\s*array<i32:\s*([-\d,\s]*)>")
_INT = re.compile(r"-?\d+")
_MAP = re.compile(r"affine_map<.*?\)\s*>(?!=)|#[\w$.-]+", re.S)


def implied_nest(view: FunctionView, op: Op) -> ImpliedNest | None:
    """The loop nest of a linalg op, or None where it is not understood (it then counts as one operation)."""
    from .attribute_text import property_text

    text = view.text_of(op)
    short = op.name[len("linalg.") :]
    segments = _SEGMENTS.search(text)
    if segments:
        n_outs = int(_INT.findall(segments.group(1))[-1])
    else:
        outs = _OUTS.search(text)
        n_outs = outs.group(1).count("%") if outs else 1
    operands = list(op.operands)
    n_ins = len(operands) - n_outs
    if n_ins < 0 or not operands:
        return None
    try:
        maps_text = property_text(text, "indexing_maps")
        if maps_text:
            maps = [view.map_of(m) for m in _MAP.findall(view.attribute(maps_text))]
            return _from_maps(view, op, short, operands, n_ins, maps, property_text(text, "iterator_types"))
        return _named(view, op, short, operands, n_ins, text)
    except (AffineError, IndexError, ValueError):
        return None


def _from_maps(
    view: FunctionView, op: Op, short: str, operands: list[int], n_ins: int, maps: list[AffineMap], iterators_text: str
) -> ImpliedNest | None:
    if len(maps) != len(operands):
        return None
    n_loops = maps[0].n_dims
    reduced = set(range(n_loops))
    for m in maps[n_ins:]:
        for r in m.results:
            reduced -= {v for v in r.variables() if isinstance(v, int)}
    kinds = re.findall(r"parallel|reduction|window", iterators_text)
    iterators = tuple("parallel" if k == "parallel" else "reduction" for k in kinds)
    if len(iterators) != n_loops:
        iterators = tuple("reduction" if i in reduced else "parallel" for i in range(n_loops))
    if short == "generic":
        compute: tuple[str, ...] = ()
        block = op.regions[0].blocks[0] if op.regions and op.regions[0].blocks else None
        used: set[int] = set()
        if block is not None:
            stack = list(block.ops)
            while stack:
                inner = stack.pop()
                used.update(inner.operands)
                stack.extend(o for r in inner.regions for b in r.blocks for o in b.ops)
        read = [block is None or i >= len(block.args) or block.args[i] in used for i in range(len(operands))]
    else:
        compute = _compute(short)
        read = [i < n_ins or "reduction" in iterators for i in range(len(operands))]
    return _nest(view, operands, n_ins, maps, iterators, compute, read)


def _compute(short: str) -> tuple[str, ...]:
    if short in _ELEMENTWISE:
        return (_ELEMENTWISE[short],)
    if short.startswith("pooling"):
        return ("fadd",) if "sum" in short else ("fminmax",)
    if short in ("fill", "copy", "transpose", "broadcast", "fill_rng_2d"):
        return ()
    if short in ("reduce", "map", "elementwise"):
        return ("fadd",)
    return _MUL_ADD


def _nest(
    view: FunctionView,
    operands: list[int],
    n_ins: int,
    maps: list[AffineMap],
    iterators: tuple[str, ...],
    compute: tuple[str, ...],
    read: list[bool],
) -> ImpliedNest | None:
    extents: list[int | None] = [None] * len(iterators)
    loads, stores = [], []
    for i, (operand, m) in enumerate(zip(operands, maps, strict=True)):
        shape = view.type_of(operand).shape
        if shape is None or len(shape) != len(m.results):
            continue
        for size, result in zip(shape, m.results, strict=True):
            if result.const == 0 and len(result.terms) == 1:
                ((v, c),) = result.terms.items()
                if c == 1 and isinstance(v, int) and v < len(extents) and extents[v] is None:
                    extents[v] = size
        if read[i]:
            loads.append((operand, m.results, False))
        if i >= n_ins:
            stores.append((operand, m.results, True))
    if not stores:
        return None
    return ImpliedNest(tuple(extents), iterators, tuple(loads + stores), compute)


def _letters(subscripts: tuple[str, ...], loops: str) -> list[AffineMap]:
    position = {letter: i for i, letter in enumerate(loops)}
    return [
        AffineMap(len(loops), 0, tuple(variable(position[x if x in position else x.upper()]) for x in s))
        for s in subscripts
    ]


def _named(view: FunctionView, op: Op, short: str, operands: list[int], n_ins: int, text: str) -> ImpliedNest | None:
    from .attribute_text import property_text

    read = [i < n_ins for i in range(len(operands))]
    if short in _CONTRACTIONS:
        subscripts, loops = _CONTRACTIONS[short]
        if len(subscripts) != len(operands):
            return None
        iterators = tuple("reduction" if x.isupper() else "parallel" for x in loops)
        return _nest(view, operands, n_ins, _letters(subscripts, loops), iterators, _MUL_ADD, [True] * len(operands))
    if short in _CONVOLUTIONS:
        image, kernel, out = _CONVOLUTIONS[short]
        if len(operands) != 3:
            return None
        loops = out + "".join(dict.fromkeys(x for x in kernel + image if x.isupper() and x not in out))
        position = {letter: i for i, letter in enumerate(loops)}
        spatial = [x for x in "xyz" if x in out]
        strides = _window(property_text(text, "strides"), len(spatial))
        dilations = _window(property_text(text, "dilations"), len(spatial))
        results = []
        for x in image:
            term = variable(position[x])
            if x in spatial:
                axis = spatial.index(x)
                term = term.scaled(strides[axis]) + variable(position[x.upper()]).scaled(dilations[axis])
            results.append(term)
        maps = [AffineMap(len(loops), 0, tuple(results)), *_letters((kernel, out), loops)]
        iterators = tuple("reduction" if x.isupper() else "parallel" for x in loops)
        read = [True, not short.startswith("pooling"), True]
        return _nest(view, operands, n_ins, maps, iterators, _compute(short), read)
    out_shape = view.type_of(operands[-1]).shape
    if out_shape is None:
        return None
    if short == "transpose":
        order = [int(s) for s in _INT.findall(property_text(text, "permutation").rpartition(":")[2])]
        if len(order) != len(out_shape):
            return None
        where = {source: i for i, source in enumerate(order)}
        maps = [AffineMap(len(order), 0, tuple(variable(where[i]) for i in range(len(order)))), _identity(len(order))]
        return _nest(view, operands, 1, maps, ("parallel",) * len(order), (), read)
    if short in ("broadcast", "reduce"):
        dims = {int(s) for s in _INT.findall(property_text(text, "dimensions").rpartition(":")[2])}
        wide = view.type_of(operands[0 if short == "reduce" else -1]).shape
        if wide is None:
            return None
        kept = AffineMap(len(wide), 0, tuple(variable(i) for i in range(len(wide)) if i not in dims))
        full = _identity(len(wide))
        if short == "broadcast":
            return _nest(view, operands, 1, [kept, full], ("parallel",) * len(wide), (), read)
        iterators = tuple("reduction" if i in dims else "parallel" for i in range(len(wide)))
        return _nest(
            view,
            operands,
            n_ins,
            [full] * n_ins + [kept] * (len(operands) - n_ins),
            iterators,
            ("fadd",),
            [True] * len(operands),
        )
    # elementwise, fill, copy, map: every shaped operand of the output's rank is walked in order
    maps = []
    for operand in operands:
        shape = view.type_of(operand).shape
        maps.append(
            _identity(len(out_shape))
            if shape is not None and len(shape) == len(out_shape)
            else AffineMap(len(out_shape), 0, (constant(0),))
        )
    compute = (
        _compute(short)
        if short in _ELEMENTWISE or short in ("fill", "copy", "map", "elementwise", "fill_rng_2d")
        else ("fadd",)
    )
    return _nest(view, operands, n_ins, maps, ("parallel",) * len(out_shape), compute, read)


def _identity(n: int) -> AffineMap:
    return AffineMap(n, 0, tuple(variable(i) for i in range(n)))


def _window(text: str, n: int) -> list[int]:
    """`dense<[2, 2]> : vector<2xi64>`, a splat `dense<1> : …`, or "" -> a list of n ints (1 where absent)."""
    values = [int(s) for s in _INT.findall(text.partition(":")[0])]
    if not values:
        return [1] * n
    return values * n if len(values) == 1 else values[:n]


__all__ = ["ImpliedNest", "implied_nest"]
