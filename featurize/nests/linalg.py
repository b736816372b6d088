"""Linalg operations. `linalg.generic` states its nest; a named operation's follows from its name and shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..affine import AffineMap, Linear, constant, variable
from ..op_classes import op_class
from ..program import Op
from .nest import (
    MISFITS,
    Implied,
    ImpliedNest,
    Shape,
    Sketch,
    Touch,
    body_classes,
    class_for,
    element_of,
    ints,
    property_of,
    shape_of,
    softmax,
)

if TYPE_CHECKING:
    from ..function_view import FunctionView

_CONTRACTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    # name -> (subscripts of the operands over single-letter loops, loops in order; capitals are reductions)
    "matmul": (("mK", "Kn", "mn"), "mnK"),
    "matmul_transpose_a": (("Km", "Kn", "mn"), "mnK"),
    "matmul_transpose_b": (("mK", "nK", "mn"), "mnK"),
    "quantized_matmul": (("mK", "Kn", "", "", "mn"), "mnK"),
    "batch_matmul": (("bmK", "bKn", "bmn"), "bmnK"),
    "batch_matmul_transpose_a": (("bKm", "bKn", "bmn"), "bmnK"),
    "batch_matmul_transpose_b": (("bmK", "bnK", "bmn"), "bmnK"),
    "quantized_batch_matmul": (("bmK", "bKn", "", "", "bmn"), "bmnK"),
    "batch_reduce_matmul": (("BmK", "BKn", "mn"), "BmnK"),
    "matvec": (("mN", "N", "m"), "mN"),
    "vecmat": (("N", "Nm", "m"), "mN"),
    "batch_matvec": (("bmK", "bK", "bm"), "bmK"),
    "batch_vecmat": (("bK", "bKn", "bn"), "bnK"),
    "dot": (("M", "M", ""), "M"),
    "mmt4d": (("mKaC", "nKbC", "mnab"), "mnKabC"),
    "batch_mmt4d": (("pmKaC", "pnKbC", "pmnab"), "pmnKabC"),
}
_WINDOWED = re.compile(r"(depthwise_)?conv_(\d)d(?:_([a-z]+)_([a-z]+?))?(_q)?$|pooling_([a-z]+)_(sum|max|min)\w*$")
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
    "max_signed": "fminmax",
    "min_signed": "fminmax",
    "max_unsigned": "fminmax",
    "min_unsigned": "fminmax",
    "abs": "fcheap",
    "negf": "fcheap",
    "ceil": "fcheap",
    "floor": "fcheap",
    "round": "fcheap",
    "select": "select",
}
_COPIES = frozenset(("fill", "copy", "transpose", "broadcast"))
_RANDOM = ("imul", "iadd", "imul", "iadd", "iadd", "iadd", "cast", "fmul", "fadd")
_MUL_ADD = ("fmul", "fadd")
_OUTS = re.compile(r"\b(?:outs|init)\s*\(([^:)]*)[:)]", re.S)
_SEGMENTS = re.compile(r"operandSegmentSizes\s*=\s*array<i32:\s*([-\d,\s]*)>")
_INT = re.compile(r"-?\d+")
_MAP = re.compile(r"affine_map<.*?\)\s*>(?!=)|#[\w$.-]+", re.S)
_SHORT_BODY = re.compile(r"\s*\{\s*([A-Za-z_]\w*\.[\w.]+)\s*(?:\{[^{}]*\}\s*)?\}")
_KIND = re.compile(r"kind\s*=\s*#linalg(?:\.elementwise_kind<|<elementwise_kind\s+)(\w+)>")


def implied(view: FunctionView, op: Op) -> Implied | None:
    """The loop nest of a linalg op, or None where it is not understood (it then counts as one operation)."""
    short = op.name.partition(".")[2]
    if short in ("yield", "index"):
        return None
    text = view.text_of(op)
    operands = list(op.operands)
    if not operands:
        return None
    try:
        if short == "softmax":
            found = _softmax(view, op, text)
        elif short.startswith("winograd"):
            found = _winograd(view, op, short)
        elif short in ("pack", "unpack"):
            found = packed(view, op, short)
        else:
            nest = _nest_of(view, op, short, operands, text)
            found = None if nest is None else Implied((nest,), "")
    except MISFITS:
        return None
    if found is None:
        return None
    return Implied(found.nests, "", tied=found.tied or _tied(op, operands, text), scratch=found.scratch)


def _n_outs(text: str) -> int:
    segments = _SEGMENTS.search(text)
    if segments:
        return int(_INT.findall(segments.group(1))[-1])
    outs = _OUTS.search(text)
    return outs.group(1).count("%") if outs else 1


def _tied(op: Op, operands: list[int], text: str) -> tuple[tuple[int, int], ...]:
    outs = operands[len(operands) - _n_outs(text) :]
    return tuple(zip(op.results, outs, strict=False))


def _nest_of(view: FunctionView, op: Op, short: str, operands: list[int], text: str) -> ImpliedNest | None:
    n_ins = len(operands) - _n_outs(text)
    if n_ins < 0:
        return None
    maps_text = property_of(view, op, "indexing_maps")
    if maps_text:
        maps = [view.map_of(m) for m in _MAP.findall(maps_text)]
        return _from_maps(view, op, short, operands, n_ins, maps, property_of(view, op, "iterator_types"))
    return _named(view, op, short, operands, n_ins)


def _from_maps(
    view: FunctionView, op: Op, short: str, operands: list[int], n_ins: int, maps: list[AffineMap], iterators_text: str
) -> ImpliedNest | None:
    if len(maps) != len(operands):
        return None
    n_loops = maps[0].n_dims
    if any(m.n_dims != n_loops or m.n_symbols for m in maps):
        return None
    reduced = set(range(n_loops))
    for m in maps[n_ins:]:
        for r in m.results:
            reduced -= {v for v in r.variables() if isinstance(v, int)}
    kinds = re.findall(r"parallel|reduction|window", iterators_text)
    iterators = tuple("parallel" if k == "parallel" else "reduction" for k in kinds)
    if len(iterators) != n_loops:
        iterators = tuple("reduction" if i in reduced else "parallel" for i in range(n_loops))
    if short == "generic":
        block = op.regions[0].blocks[0] if op.regions and op.regions[0].blocks else None
        used: set[int] = set()
        if block is not None:
            stack = list(block.ops)
            while stack:
                inner = stack.pop()
                used.update(inner.operands)
                stack.extend(o for r in inner.regions for b in r.blocks for o in b.ops)
        read = [block is None or i >= len(block.args) or block.args[i] in used for i in range(len(operands))]
        return _nest(view, operands, n_ins, maps, iterators, (), read, region=0 if op.regions else None)
    read = [i < n_ins or "reduction" in iterators for i in range(len(operands))]
    return _nest(view, operands, n_ins, maps, iterators, _compute(view, op, short), read)


def _compute(view: FunctionView, op: Op, short: str) -> tuple[str, ...]:
    if short == "elementwise":
        kind = _KIND.search(view.text_of(op))
        number = _INT.match(property_of(view, op, "kind"))
        short = kind.group(1) if kind else _KINDS[int(number.group())] if number else "add"
    if short in _ELEMENTWISE:
        return (_ELEMENTWISE[short],)
    if short in _COPIES:
        return ()
    return _RANDOM if short == "fill_rng_2d" else _MUL_ADD


_KINDS = (
    "exp", "log", "abs", "ceil", "floor", "negf", "reciprocal", "round", "sqrt", "rsqrt", "square", "tanh", "erf",
    "add", "sub", "mul", "div", "div_unsigned", "max_signed", "min_signed", "max_unsigned", "min_unsigned", "powf",
    "select",
)  # fmt: skip
"""`linalg.elementwise` kinds by number, as an old generic print writes them."""


def _nest(
    view: FunctionView,
    operands: list[int],
    n_ins: int,
    maps: Sequence[AffineMap],
    iterators: tuple[str, ...],
    compute: tuple[str, ...],
    read: list[bool],
    *,
    region: int | None = None,
) -> ImpliedNest | None:
    extents: list[int | None] = [None] * len(iterators)
    loads, stores = [], []
    for i, (operand, m) in enumerate(zip(operands, maps, strict=True)):
        shape = shape_of(view, operand)
        if shape is None or len(shape) != len(m.results):
            continue
        for size, result in zip(shape, m.results, strict=True):
            if result.const == 0 and len(result.terms) == 1:
                ((v, c),) = result.terms.items()
                if c == 1 and isinstance(v, int) and v < len(extents) and extents[v] is None:
                    extents[v] = size
        if read[i]:
            loads.append(Touch(operand, m.results, False))
        if i >= n_ins:
            stores.append(Touch(operand, m.results, True))
    if not stores:
        return None
    element = element_of(view, stores[-1].value)
    classes = tuple(class_for(c, element) for c in compute)
    return ImpliedNest(tuple(extents), iterators, (*loads, *stores), classes, element, region)


def _letters(subscripts: Sequence[str], loops: str) -> list[AffineMap]:
    position = {letter: i for i, letter in enumerate(loops)}
    return [AffineMap(len(loops), 0, tuple(variable(position[x]) for x in s)) for s in subscripts]


def _named(view: FunctionView, op: Op, short: str, operands: list[int], n_ins: int) -> ImpliedNest | None:
    everything = [True] * len(operands)
    if short in _CONTRACTIONS:
        subscripts, loops = _CONTRACTIONS[short]
        if len(subscripts) != len(operands):
            return None
        iterators = tuple("reduction" if x.isupper() else "parallel" for x in loops)
        return _nest(view, operands, n_ins, _letters(subscripts, loops), iterators, _MUL_ADD, everything)
    windowed = _WINDOWED.match(short)
    if windowed:
        return _windowed(view, op, windowed, operands, n_ins)
    out_shape = shape_of(view, operands[-1])
    if out_shape is None:
        return None
    parallel = ("parallel",) * len(out_shape)
    read = [i < n_ins for i in range(len(operands))]
    if short == "transpose":
        order = ints(property_of(view, op, "permutation"))
        if len(order) != len(out_shape):
            return None
        where = {source: i for i, source in enumerate(order)}
        maps = [AffineMap(len(order), 0, tuple(variable(where[i]) for i in range(len(order)))), _identity(len(order))]
        return _nest(view, operands, 1, maps, parallel, (), read)
    if short == "broadcast":
        dims = set(ints(property_of(view, op, "dimensions")))
        kept = AffineMap(len(out_shape), 0, tuple(variable(i) for i in range(len(out_shape)) if i not in dims))
        return _nest(view, operands, 1, [kept, _identity(len(out_shape))], parallel, (), read)
    if short == "reduce":
        dims = set(ints(property_of(view, op, "dimensions")))
        wide = shape_of(view, operands[0])
        if wide is None:
            return None
        kept = AffineMap(len(wide), 0, tuple(variable(i) for i in range(len(wide)) if i not in dims))
        iterators = tuple("reduction" if i in dims else "parallel" for i in range(len(wide)))
        maps = [_identity(len(wide))] * n_ins + [kept] * (len(operands) - n_ins)
        compute, region = _body(view, op)
        return _nest(view, operands, n_ins, maps, iterators, compute, everything, region=region)
    # elementwise, fill, copy, map: every shaped operand of the output's rank is walked in order
    maps = []
    for operand in operands:
        shape = shape_of(view, operand)
        same = shape is not None and len(shape) == len(out_shape)
        maps.append(_identity(len(out_shape)) if same else AffineMap(len(out_shape), 0, (constant(0),)))
    if short == "map":
        compute, region = _body(view, op)
        return _nest(view, operands, n_ins, maps, parallel, compute, read, region=region)
    known = short in _ELEMENTWISE or short in _COPIES or short in ("elementwise", "fill_rng_2d")
    return _nest(view, operands, n_ins, maps, parallel, _compute(view, op, short) if known else ("fadd",), read)


def _body(view: FunctionView, op: Op) -> tuple[tuple[str, ...], int | None]:
    """(classes, None) of a body of one operation, which the short form leaves out; ((), 0) where it is walked."""
    classes = body_classes(view, op)
    if len(classes) > 1:
        return (), 0
    if classes:
        return (classes[0],), None
    short = _SHORT_BODY.match(view.text_of(op))
    if short is None:
        return (), None
    cls = op_class(short.group(1), element_of(view, op.operands[0]))
    return (cls,), None


def _windowed(view: FunctionView, op: Op, name: re.Match[str], operands: list[int], n_ins: int) -> ImpliedNest | None:
    """Convolutions and pooling; the letters of the name are the dimensions: n batch, d h w space, c channel, g group,
    f filter, m multiplier."""
    depthwise, n_spatial, image, kernel, _, pool, kind = name.groups()
    if pool:
        image, kernel = pool, "".join(x for x in pool if x in "dhw")
    elif image is None:
        image = kernel = "dhw"[3 - int(n_spatial) :]
    spatial = [x for x in image if x in "dhw"]
    if pool or depthwise:
        out = image + ("m" if "m" in kernel else "")
        rename = {x: x.upper() for x in spatial}
    else:
        out = image.replace("c", "f")
        rename = {x: x.upper() for x in (*spatial, "c")}
        image = image.replace("c", "C")
    kernel = "".join(rename.get(x, x) for x in kernel)
    loops = out + "".join(dict.fromkeys(x for x in kernel + image if x.isupper()))
    position = {letter: i for i, letter in enumerate(loops)}
    strides = ints(property_of(view, op, "strides"), len(spatial)) or [1] * len(spatial)
    dilations = ints(property_of(view, op, "dilations"), len(spatial)) or [1] * len(spatial)
    places: list[Linear] = []
    for x in image:
        term = variable(position[x])
        if x in spatial:
            axis = spatial.index(x)
            term = term.scaled(strides[axis]) + variable(position[x.upper()]).scaled(dilations[axis])
        places.append(term)
    scalars = [AffineMap(len(loops), 0, ())] * (n_ins - 2)
    if len(operands) != n_ins + 1 or n_ins < 2:
        return None
    maps = [AffineMap(len(loops), 0, tuple(places)), *_letters((kernel,), loops), *scalars, *_letters((out,), loops)]
    iterators = tuple("reduction" if x.isupper() else "parallel" for x in loops)
    compute = _MUL_ADD if not pool else ("fadd",) if kind == "sum" else ("fminmax",)
    read = [not (pool and i == 1) for i in range(len(operands))]
    return _nest(view, operands, n_ins, maps, iterators, compute, read)


def _identity(n: int) -> AffineMap:
    return AffineMap(n, 0, tuple(variable(i) for i in range(n)))


def _softmax(view: FunctionView, op: Op, text: str) -> Implied | None:
    written = re.search(r"\bdimension\s*(?:=\s*|\(\s*)(\d+)", text)
    dim = int(written.group(1)) if written else -1
    return softmax(view, op.operands[0], op.operands[-1], dim)


def _winograd(view: FunctionView, op: Op, short: str) -> Implied | None:
    """Each tile between two small constant matrices, L · tile · R: flops are those of the two products.

    A convolution of one row or column needs one product. The matrices stand in the code: they are not loaded.
    """
    source, out = op.operands[0], op.operands[-1]
    a, b = shape_of(view, source), shape_of(view, out)
    if a is None or b is None:
        return None
    rest: Shape
    if "filter" in short:  # F r r C -> alpha alpha C F
        before, after, rest = a[1:3], b[0:2], (a[0], a[3])
    elif "input" in short:  # N H W C -> alpha alpha tiles tiles N C
        before, after, rest = b[0:2], b[0:2], tuple(b[2:])
    else:  # alpha alpha tiles tiles N F -> N H W F
        before, rest = a[0:2], tuple(a[2:])
        after = tuple(None if e is None or t is None else e // t for e, t in zip(b[1:3], a[2:4], strict=True))
    space_in, space_out = (0, 1) if "output" in short else (1, 0)

    def tile(value: int, first: int, i: Linear, j: Linear) -> list[Linear]:
        index = [constant(0)] * len(shape_of(view, value) or ())
        index[first : first + 2] = i, j
        return index

    element = element_of(view, out)
    rows, columns = after[0] != 1, after[1] != 1
    nests = []
    if rows:
        left = Sketch()
        left.over(rest)
        i, j, k = left.loop(after[0]), left.loop(before[1]), left.loop(before[0], "reduction")
        left.load(source, tile(source, space_in, k, j))
        if columns:
            left.update(-1, (i, j))
        else:
            left.update(out, tile(out, space_out, i, j))
        nests.append(left.done(*_MUL_ADD, element=element))
    if columns:
        right = Sketch()
        right.over(rest)
        i, j, k = right.loop(after[0]), right.loop(after[1]), right.loop(before[1], "reduction")
        if rows:
            right.load(-1, (i, k))
        else:
            right.load(source, tile(source, space_in, i, k))
        right.update(out, tile(out, space_out, i, j))
        nests.append(right.done(*_MUL_ADD, element=element))
    return Implied(tuple(nests), scratch=(((after[0], before[1]), element),))


def packed(view: FunctionView, op: Op, short: str) -> Implied | None:
    """`pack` and `unpack`: every element of the packed side, padding included, is loaded and stored once."""
    source = op.operands[0]
    dest = next((v for v in op.operands[1:] if shape_of(view, v)), None)
    if dest is None:
        return None
    big, flat = (dest, source) if short == "pack" else (source, dest)
    shape, plain = shape_of(view, big), shape_of(view, flat)
    if shape is None or plain is None:
        return None
    n = len(plain)
    dims = ints(property_of(view, op, "inner_dims_pos"))
    order = ints(property_of(view, op, "outer_dims_perm")) or list(range(n))
    if len(shape) != n + len(dims) or len(order) != n:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    index = [loops[order.index(d)] for d in range(n)]
    for k, d in enumerate(dims):
        index[d] = index[d].scaled(shape[n + k] or UNKNOWN_TILE) + loops[n + k]
    places = {big: loops, flat: index}
    sketch.load(source, places[source])
    sketch.store(dest, places[dest])
    return Implied((sketch.done(element=element_of(view, dest)),), tied=tuple((r, dest) for r in op.results))


UNKNOWN_TILE = 16
"""An inner tile of a size that the text does not tell."""

__all__ = ["implied", "packed"]
