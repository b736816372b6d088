"""StableHLO, MHLO and CHLO operations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..affine import Linear, constant, integer, variable
from ..program import Op
from .nest import (
    FREE,
    Implied,
    Sketch,
    Window,
    body_classes,
    contracted,
    convolved,
    element_of,
    elementwise,
    initial,
    ints,
    ints_of,
    joined,
    known,
    moved,
    normalized,
    padded,
    property_of,
    reduced,
    shape_of,
    sorted_along,
    times,
    transform,
    transposed,
)

if TYPE_CHECKING:
    from ..function_view import FunctionView

ELEMENTWISE: dict[str, tuple[str, ...]] = {
    # name -> classes of one element
    **dict.fromkeys(("add", "subtract", "sub"), ("fadd",)),
    **dict.fromkeys(("multiply", "mul", "square"), ("fmul",)),
    **dict.fromkeys(("divide", "div", "remainder", "reciprocal"), ("fdiv",)),
    **dict.fromkeys(("maximum", "minimum"), ("fminmax",)),
    "clamp": ("fminmax", "fminmax"),
    **dict.fromkeys(
        ("abs", "negate", "sign", "floor", "ceil", "round_nearest_afz", "round_nearest_even", "conj"), ("fcheap",)
    ),
    **dict.fromkeys(("sqrt", "rsqrt"), ("fsqrt",)),
    **dict.fromkeys(
        (
            "exponential",
            "exponential_minus_one",
            "log",
            "log_plus_one",
            "logistic",
            "tanh",
            "sine",
            "cosine",
            "tan",
            "power",
            "pow",
            "atan2",
            "cbrt",
            "erf",
            "erf_inv",
            "erfc",
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cosh",
            "sinh",
            "digamma",
            "lgamma",
            "polygamma",
            "zeta",
            "bessel_i1e",
            "next_after",
            "sin",
            "cos",
            "asin_acos_kernel",
        ),
        ("fmath",),
    ),
    **dict.fromkeys(("compare", "is_finite", "is_inf", "is_neg_inf", "is_pos_inf"), ("fcmp",)),
    "select": ("select",),
    **dict.fromkeys(
        (
            "and",
            "or",
            "xor",
            "not",
            "shift_left",
            "shift_right_arithmetic",
            "shift_right_logical",
            "popcnt",
            "count_leading_zeros",
        ),
        ("ibit",),
    ),
    **dict.fromkeys(("convert", "bitcast_convert", "reduce_precision"), ("cast",)),
    **dict.fromkeys(("real", "imag", "complex"), ("vecmove",)),
    "uniform_quantize": ("fmul", "fadd", "cast"),
    "uniform_dequantize": ("cast", "fadd", "fmul"),
    "iota": (),
    "constant_like": (),
}
_FREE = frozenset(
    (
        "reshape", "dynamic_reshape", "tuple", "get_tuple_element", "optimization_barrier", "get_dimension_size",
        "set_dimension_size", "create_token", "after_all", "partition_id", "replica_id", "bitcast", "copy_start",
    )
)  # fmt: skip
_RANDOM = ("imul", "iadd", "ibit", "cast", "fmul", "fadd")
_PAIR = re.compile(r"\[([\d,\s]*)\]\s*x\s*\[([\d,\s]*)\]")
_LAYOUT = re.compile(r"\[([^\]]*)\]\s*x\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]")
_SPAN = re.compile(r"\[\s*(-?\d+\s*:[^\]]*)\]")

Rule = Callable[["FunctionView", Op], Implied | None]


def implied(view: FunctionView, op: Op) -> Implied | None:
    """What an operation of these dialects stands for; None where it is not understood."""
    short = op.name.partition(".")[2]
    rule = _RULES.get(short)
    if rule is not None:
        return rule(view, op) if op.operands or short in ("dynamic_iota", "rng") else None
    if short in _FREE:
        return FREE
    base = short.removeprefix("broadcast_")
    classes = ELEMENTWISE.get(short, ELEMENTWISE.get(base))
    if classes is None or not op.results:
        return None
    return elementwise(view, op.operands, op.results[0], classes)


def _numbers(text: str) -> list[int]:
    return [integer(s) for s in re.findall(r"-?\d+", text)]


def _dot_dims(view: FunctionView, op: Op) -> list[list[int]]:
    """(lhs batching, rhs batching, lhs contracting, rhs contracting)."""
    whole = property_of(view, op, "dot_dimension_numbers", "ragged_dot_dimension_numbers")
    if whole:
        keys = [f"{s}_{k}_dimensions" for k in ("batching", "contracting") for s in ("lhs", "rhs")]
        return [_numbers(m.group(1)) if (m := re.search(rf"{k}\s*=\s*\[([\d,\s]*)\]", whole)) else [] for k in keys]
    out = []
    for key in ("batching_dims", "contracting_dims"):
        pair = _PAIR.match(property_of(view, op, key))
        out += [_numbers(g) for g in pair.groups()] if pair else [[], []]
    return out


def _dot_general(view: FunctionView, op: Op) -> Implied | None:
    lhs, rhs, out = op.operands[0], op.operands[1], op.results[0]
    a, b = shape_of(view, lhs), shape_of(view, rhs)
    if a is None or b is None:
        return None
    lhs_batch, rhs_batch, lhs_contract, rhs_contract = _dot_dims(view, op)
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    left, right = [""] * len(a), [""] * len(b)
    shared = []
    for i, j in zip(lhs_batch, rhs_batch, strict=True):
        left[i] = right[j] = next(letters)
        shared.append(left[i])
    for i, j in zip(lhs_contract, rhs_contract, strict=True):
        left[i] = right[j] = next(letters)
    own = []
    for side in (left, right):
        for i, letter in enumerate(side):
            if not letter:
                side[i] = next(letters)
                own.append(side[i])
    return contracted(view, (lhs, "".join(left)), (rhs, "".join(right)), (out, "".join([*shared, *own])))


def _dot(view: FunctionView, op: Op) -> Implied | None:
    lhs, rhs = (shape_of(view, v) for v in op.operands[:2])
    if lhs is None or rhs is None:
        return None
    left = "k" if len(lhs) == 1 else "mk"
    right = "k" if len(rhs) == 1 else "kn"
    out = ("m" if len(lhs) == 2 else "") + ("n" if len(rhs) == 2 else "")
    return contracted(view, (op.operands[0], left), (op.operands[1], right), (op.results[0], out))


def _einsum(view: FunctionView, op: Op) -> Implied | None:
    config = re.search(r'"([a-zA-Z]*),([a-zA-Z]*)->([a-zA-Z]*)"', view.text_of(op))
    if config is None or len(op.operands) != 2:
        return None
    left, right, out = config.groups()
    return contracted(view, (op.operands[0], left), (op.operands[1], right), (op.results[0], out))


def _dimension_numbers(view: FunctionView, op: Op) -> list[tuple[int, int, list[int]]] | None:
    """(batch or output feature, feature or input feature, spatial dims) of input, kernel and output, by dimension."""
    whole = property_of(view, op, "dimension_numbers", "dim_numbers")
    layout = _LAYOUT.search(whole or view.text_of(op))
    if layout:
        out = []
        for group, (first, second) in zip(layout.groups(), (("b", "f"), ("o", "i"), ("b", "f")), strict=True):
            parts = [p.strip() for p in group.split(",")]
            n = len(parts) - 2
            out.append((parts.index(first), parts.index(second), [parts.index(str(d)) for d in range(n)]))
        return out
    out = []
    for name, first, second in (
        ("input", "batch", "feature"),
        ("kernel", "output_feature", "input_feature"),
        ("output", "batch", "feature"),
    ):
        numbers = []
        for part in (f"{name}_{first}_dimension", f"{name}_{second}_dimension", f"{name}_spatial_dimensions"):
            found = re.search(rf"\b{part}\s*=\s*(\[[\d,\s]*\]|dense<[^>]*>|\d+)", whole)
            if found is None:
                return None
            numbers.append(_numbers(found.group(1)))
        out.append((numbers[0][0], numbers[1][0], numbers[2]))
    return out


def _convolution(view: FunctionView, op: Op) -> Implied | None:
    dims = _dimension_numbers(view, op)
    kernel = shape_of(view, op.operands[1])
    if dims is None or kernel is None:
        return None
    image, weight, out = dims
    n = len(image[2])
    strides = ints_of(view, op, "window_strides", "stride", n=n) or [1] * n
    pads = ints_of(view, op, "padding", "pad", n=2 * n) or [0] * (2 * n)
    holes = ints_of(view, op, "lhs_dilation", "lhs_dilate", n=n) or [1] * n
    dilations = ints_of(view, op, "rhs_dilation", "rhs_dilate", n=n) or [1] * n
    windows = []
    for axis in range(n):
        extent = kernel[weight[2][axis]]
        low = pads[2 * axis] if len(pads) == 2 * n else 0
        if holes[axis] > 1 and extent is not None:  # written from the input's side: what the window hangs over
            low = (extent - 1) * dilations[axis] - low
        windows.append(Window(extent, strides[axis], dilations[axis], low, holes[axis]))
    groups, batches = (ints_of(view, op, k) or [1] for k in ("feature_group_count", "batch_group_count"))
    return convolved(
        view,
        (op.operands[0], image[0], image[1], image[2]),
        (op.operands[1], weight[1], weight[0], weight[2]),
        (op.results[0], out[0], out[1], out[2]),
        windows,
        groups[0],
        batch_groups=batches[0],
    )


def _reduce(view: FunctionView, op: Op) -> Implied | None:
    n = len(op.results)
    inputs = [v for v in op.operands if shape_of(view, v)][:n]
    if not inputs:
        return None
    dims = ints_of(view, op, "dimensions")
    applied = re.search(r"\bapplies\s+([\w.]+)", view.text_of(op))
    if applied:
        classes: list[str] = list(ELEMENTWISE.get(applied.group(1).partition(".")[2], ("fadd",)))
    else:
        classes = _body(view, op)
    return reduced(view, inputs, op.results, dims, classes, region=0 if len(classes) > 1 else None)


def _body(view: FunctionView, op: Op) -> list[str]:
    """Classes of the operations of the first region, as names say: the nest turns them into the element's."""
    out: list[str] = []
    for region in op.regions[:1]:
        for block in region.blocks:
            for inner in block.ops:
                short = inner.name.partition(".")[2]
                if short not in ("return", "constant"):
                    out += ELEMENTWISE.get(short, ("fadd",))
    return out


def _reduce_window(view: FunctionView, op: Op) -> Implied | None:
    n = len(op.results)
    inputs = [v for v in op.operands if shape_of(view, v)][:n]
    if not inputs:
        return None
    shape = shape_of(view, op.results[0])
    if shape is None:
        return None
    rank = len(shape)
    sizes = ints_of(view, op, "window_dimensions", n=rank) or [1] * rank
    strides = ints_of(view, op, "window_strides", n=rank) or [1] * rank
    dilations = ints_of(view, op, "window_dilations", n=rank) or [1] * rank
    pads = ints_of(view, op, "padding", n=2 * rank) or [0] * (2 * rank)
    sketch = Sketch()
    loops = sketch.over(shape)
    taps = [sketch.loop(s, "reduction") if s != 1 else constant(0) for s in sizes]
    index = [i.scaled(strides[d]) + taps[d].scaled(dilations[d]) + constant(-pads[2 * d]) for d, i in enumerate(loops)]
    for value in inputs:
        sketch.load(value, index)
    for out in op.results:
        sketch.update(out, loops)
    return Implied((sketch.done(element=element_of(view, op.results[0]), region=0 if op.regions else None),))


def _select_and_scatter(view: FunctionView, op: Op) -> Implied | None:
    """One comparison for each position of each window, one scattered update for each window."""
    operand, source = op.operands[0], op.operands[1]
    shape = shape_of(view, source)
    if shape is None:
        return None
    rank = len(shape)
    sizes = ints_of(view, op, "window_dimensions", n=rank) or [1] * rank
    strides = ints_of(view, op, "window_strides", n=rank) or [1] * rank
    pads = ints_of(view, op, "padding", n=2 * rank) or [0] * (2 * rank)
    select = Sketch()
    loops = select.over(shape)
    taps = [select.loop(s, "reduction") if s != 1 else constant(0) for s in sizes]
    places = [i.scaled(strides[d]) + taps[d] + constant(-pads[2 * d]) for d, i in enumerate(loops)]
    select.load(operand, places)
    scatter = Sketch()
    at = scatter.over(shape)
    scatter.load(source, at)
    scatter.update(op.results[0], [i.scaled(strides[d]) for d, i in enumerate(at)], irregular=True)
    element = element_of(view, operand)
    return Implied(
        (
            select.done(*(_body(view, op) or ["fcmp"]), element=element),
            scatter.done(element=element, region=1 if len(op.regions) > 1 else None),
        )
    )


def _transpose(view: FunctionView, op: Op) -> Implied | None:
    return transposed(view, op.operands[0], op.results[0], ints_of(view, op, "permutation", "dims"))


def _broadcast_in_dim(view: FunctionView, op: Op) -> Implied | None:
    out = op.results[0]
    shape, own = shape_of(view, out), shape_of(view, op.operands[0])
    if shape is None or own is None:
        return None
    dims = ints_of(view, op, "broadcast_dimensions", "dims")
    if len(dims) != len(own):
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    index = [constant(0) if extent == 1 else loops[d] for d, extent in zip(dims, own, strict=True)]
    return moved(view, op.operands[0], out, index, sketch)


def _broadcast(view: FunctionView, op: Op) -> Implied | None:
    return elementwise(view, op.operands[:1], op.results[0], ())


def _slice(view: FunctionView, op: Op) -> Implied | None:
    out = op.results[0]
    shape = shape_of(view, out)
    if shape is None:
        return None
    rank = len(shape)
    starts, steps = ints_of(view, op, "start_indices", n=rank), ints_of(view, op, "strides", n=rank)
    if not starts and (span := _SPAN.search(view.text_of(op))):
        parts = [p.split(":") for p in span.group(1).split(",")]
        starts = [integer(p[0]) for p in parts]
        steps = [integer(p[2]) if len(p) > 2 else 1 for p in parts]
    starts, steps = starts or [0] * rank, steps or [1] * rank
    sketch = Sketch()
    index = [i.scaled(steps[d]) + constant(starts[d]) for d, i in enumerate(sketch.over(shape))]
    return moved(view, op.operands[0], out, index, sketch)


def _reverse(view: FunctionView, op: Op) -> Implied | None:
    out = op.results[0]
    shape = shape_of(view, out)
    if shape is None:
        return None
    dims = ints_of(view, op, "dimensions", "dims", "axis")
    sketch = Sketch()
    index = [constant((shape[d] or 1) - 1) - i if d in dims else i for d, i in enumerate(sketch.over(shape))]
    return moved(view, op.operands[0], out, index, sketch)


def _concatenate(view: FunctionView, op: Op) -> Implied | None:
    return joined(view, op.operands, op.results[0], (ints_of(view, op, "dimension", "dim", "axis") or [0])[0])


def _pad(view: FunctionView, op: Op) -> Implied | None:
    low = ints_of(view, op, "edge_padding_low", "low")
    inside = [i + 1 for i in ints_of(view, op, "interior_padding", "interior")]
    return padded(view, op.operands[0], op.results[0], low, inside)


def start_of(view: FunctionView, value: int) -> Linear:
    """A scalar tensor as a subscript: a number where it is a constant, else a variable of its own."""
    from .control import integer

    number = integer(view, value)
    return variable(value) if number is None else constant(number)


def _dynamic_slice(view: FunctionView, op: Op) -> Implied | None:
    out = op.results[0]
    shape = shape_of(view, out)
    starts = op.operands[1:]
    if shape is None:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    known_starts = [start_of(view, s) for s in starts] if len(starts) == len(shape) else []
    sketch.load(op.operands[0], loops, irregular=not known_starts, start=known_starts)
    sketch.store(out, loops)
    return Implied((sketch.done(element=element_of(view, out)),))


def _dynamic_update_slice(view: FunctionView, op: Op) -> Implied | None:
    """In place: what is not updated does not move."""
    operand, update, out = op.operands[0], op.operands[1], op.results[0]
    shape = shape_of(view, update)
    if shape is None:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    sketch.load(update, loops)
    starts = op.operands[2:]
    sketch.store(out, loops, start=[start_of(view, s) for s in starts] if len(starts) == len(loops) else ())
    return Implied((sketch.done(element=element_of(view, out)),), tied=((out, operand),))


def indexed(view: FunctionView, indices: int) -> Implied | None:
    """The loads of a tensor of indices, each once."""
    shape = shape_of(view, indices)
    if not shape:
        return Implied()
    sketch = Sketch()
    sketch.load(indices, sketch.over(shape))
    return Implied((sketch.done(element=element_of(view, indices)),))


def _numbered(view: FunctionView, op: Op, key: str, text: str) -> list[int]:
    found = re.search(rf"\b{key}\s*=\s*\[([\d,\s]*)\]", text)
    return _numbers(found.group(1)) if found else []


def _gather(view: FunctionView, op: Op) -> Implied | None:
    """Each index once, each gathered element once; the dims that are not in `offset_dims` walk the indices."""
    operand, indices, out = op.operands[0], op.operands[1], op.results[0]
    shape, table = shape_of(view, out), shape_of(view, operand)
    if shape is None or table is None:
        return None
    text = property_of(view, op, "dimension_numbers") or view.text_of(op)
    offsets = _numbered(view, op, "offset_dims", text)
    collapsed = _numbered(view, op, "collapsed_slice_dims", text) + _numbered(view, op, "operand_batching_dims", text)
    sketch = Sketch()
    loops = sketch.over(shape)
    inside = iter([loops[d] for d in offsets])
    chosen = [loops[d] for d in range(len(shape)) if d not in offsets]
    index: list[Linear] = []
    for d in range(len(table)):
        if d in collapsed:
            index.append(chosen[-1] if chosen else constant(0))
        else:
            index.append(next(inside, constant(0)))
    sketch.load(operand, index, irregular=True)
    sketch.store(out, loops)
    first = indexed(view, indices)
    return Implied((*(first.nests if first else ()), sketch.done(element=element_of(view, out))))


def _scatter(view: FunctionView, op: Op) -> Implied | None:
    """Each index and update once, and one combination for each update; the rest of the operand stays in place."""
    n = len(op.results)
    operands, indices, updates = op.operands[:n], op.operands[n], op.operands[n + 1 :]
    shape, table = shape_of(view, updates[0]) if updates else None, shape_of(view, operands[0])
    if shape is None or table is None:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    index = loops[-len(table) :] if len(loops) >= len(table) else [*[constant(0)] * (len(table) - len(loops)), *loops]
    for update in updates:
        sketch.load(update, loops)
    for out in op.results:
        sketch.update(out, index, irregular=True)
    first = indexed(view, indices)
    region = 0 if op.regions else None
    return Implied(
        (*(first.nests if first else ()), sketch.done(element=element_of(view, operands[0]), region=region)),
        tied=tuple(zip(op.results, operands, strict=True)),
    )


def _sort(view: FunctionView, op: Op) -> Implied | None:
    dim = (ints_of(view, op, "dimension") or [-1])[0]
    return sorted_along(view, op.operands, op.results, dim, 0 if op.regions else None)


def _top_k(view: FunctionView, op: Op) -> Implied | None:
    return sorted_along(view, op.operands[:1], op.operands[:1], -1, None)


def _rng(view: FunctionView, op: Op) -> Implied | None:
    return elementwise(view, (), op.results[-1], _RANDOM)


def _fill(view: FunctionView, op: Op) -> Implied | None:
    return elementwise(view, (), op.results[0], ())


def _fft(view: FunctionView, op: Op) -> Implied | None:
    lengths = ints_of(view, op, "fft_length", "length")
    shape = shape_of(view, op.results[0])
    if shape is None or not lengths:
        return None
    return transform(view, op.operands[0], op.results[0], times(*lengths), shape[: len(shape) - len(lengths)])


def _cholesky(view: FunctionView, op: Op) -> Implied | None:
    """n³/3 flops for each matrix, as n × n × n/6 multiply-adds."""
    return _solver(view, op, op.operands[0], lambda n: None if n is None else max(1, n // 6))


def _triangular_solve(view: FunctionView, op: Op) -> Implied | None:
    """n² m flops for each matrix, as n × m × n/2 multiply-adds."""
    a, b = shape_of(view, op.operands[0]), shape_of(view, op.operands[1])
    if a is None or b is None or len(a) < 2:
        return None
    sketch = Sketch()
    loops = sketch.over(b)
    inner = sketch.loop(None if a[-1] is None else max(1, a[-1] // 2), "reduction")
    sketch.load(op.operands[0], [*loops[: len(a) - 2], loops[-2], inner])
    sketch.update(op.results[0], loops)
    return Implied((sketch.done("fmul", "fadd", element=element_of(view, op.results[0])),))


def _solver(view: FunctionView, op: Op, source: int, depth: Callable[[int | None], int | None]) -> Implied | None:
    shape = shape_of(view, source)
    if shape is None or len(shape) < 2:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    inner = sketch.loop(depth(shape[-1]), "reduction")
    sketch.load(source, [*loops[:-1], inner])
    sketch.update(op.results[0], loops)
    return Implied((sketch.done("fmul", "fadd", element=element_of(view, op.results[0])),))


def _batch_norm(view: FunctionView, op: Op) -> Implied | None:
    """Inference: (x - mean) · (scale · rsqrt(var + eps)) + offset: 3 flops an element and 3 a channel."""
    channel = (ints_of(view, op, "feature_index") or [1])[0]
    if len(op.operands) == 5:
        source, scale, offset, mean, variance = op.operands
        return normalized_by(view, source, op.results[0], channel, mean, variance, scale, offset)
    return None


def _batch_norm_training(view: FunctionView, op: Op) -> Implied | None:
    """Mean and variance over everything but the channel, then as a layer norm: 8 flops an element."""
    channel = (ints_of(view, op, "feature_index") or [1])[0]
    rank = len(shape_of(view, op.operands[0]) or ())
    return normalized(
        view, op.operands[0], op.results[0], [d for d in range(rank) if d != channel], op.operands[1:3], channel
    )


def _batch_norm_grad(view: FunctionView, op: Op) -> Implied | None:
    """Two sums over the batch (1 and 3 flops an element), then 5 flops for each element of the gradient."""
    channel = (ints_of(view, op, "feature_index") or [1])[0]
    source, gradient, out = op.operands[0], op.operands[4], op.results[0]
    shape = shape_of(view, source)
    if shape is None or not 0 <= channel < len(shape):
        return None
    dims = [d for d in range(len(shape)) if d != channel]
    offset = reduced(view, (gradient,), op.results[2:3], dims, ("fadd",))
    scale = reduced(view, (source, gradient), op.results[1:2], dims, ("fadd", "fmul", "fadd"))
    whole = elementwise(view, (source, gradient), out, ("fadd", "fmul", "fadd", "fadd", "fmul"))
    parts = [p for p in (offset, scale, whole) if p is not None]
    return Implied(tuple(n for p in parts for n in p.nests)) if len(parts) == 3 else None


def normalized_by(
    view: FunctionView,
    source: int,
    out: int,
    channel: int,
    mean: int | None,
    variance: int | None,
    scale: int | None,
    offset: int | None,
) -> Implied | None:
    """Batch norm with given statistics: 3 flops for each channel (eps, rsqrt, scale), 3 for each element."""
    shape = shape_of(view, out)
    if shape is None or not 0 <= channel < len(shape):
        return None
    element = element_of(view, out)
    per_channel = Sketch()
    c = per_channel.loop(shape[channel])
    for value in (variance, scale):
        if value is not None and shape_of(view, value):
            per_channel.load(value, (c,))
    per_channel.store(-1, (c,))
    sketch = Sketch()
    loops = sketch.over(shape)
    sketch.load(source, loops)
    for value in (mean, offset):
        if value is not None and shape_of(view, value):
            sketch.load(value, (loops[channel],))
    sketch.load(-1, (loops[channel],))
    sketch.store(out, loops)
    return Implied(
        (
            per_channel.done("fadd", "fsqrt", "fmul", element=element),
            sketch.done("fadd", "fmul", "fadd", element=element),
        ),
        scratch=(((shape[channel],), element),),
    )


def _collective(view: FunctionView, op: Op) -> Implied | None:
    """Moves its operand to its result, with the body's arithmetic where it reduces."""
    classes = body_classes(view, op)
    return elementwise(view, op.operands[:1], op.results[0], classes[:1])


def _map(view: FunctionView, op: Op) -> Implied | None:
    return elementwise(view, op.operands, op.results[0], (), region=0 if op.regions else None)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("dot_general", "ragged_dot"), _dot_general),
    "dot": _dot,
    "einsum": _einsum,
    **dict.fromkeys(("convolution", "dynamic_conv"), _convolution),
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "transpose": _transpose,
    **dict.fromkeys(("broadcast_in_dim", "dynamic_broadcast_in_dim"), _broadcast_in_dim),
    "broadcast": _broadcast,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    **dict.fromkeys(("pad", "dynamic_pad"), _pad),
    **dict.fromkeys(("dynamic_slice", "real_dynamic_slice"), _dynamic_slice),
    "dynamic_update_slice": _dynamic_update_slice,
    **dict.fromkeys(("gather", "dynamic_gather"), _gather),
    "scatter": _scatter,
    "sort": _sort,
    "top_k": _top_k,
    **dict.fromkeys(("rng", "rng_bit_generator"), _rng),
    "dynamic_iota": _fill,
    "fft": _fft,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "batch_norm_inference": _batch_norm,
    "batch_norm_training": _batch_norm_training,
    "batch_norm_grad": _batch_norm_grad,
    "map": _map,
    **dict.fromkeys(
        ("all_reduce", "all_gather", "all_to_all", "collective_permute", "collective_broadcast", "reduce_scatter"),
        _collective,
    ),
}

__all__ = ["ELEMENTWISE", "implied", "indexed", "initial", "ints", "known", "normalized_by"]
