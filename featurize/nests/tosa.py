"""TOSA operations. Integer ones count integer work: an int8 convolution is integer multiplications and additions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..affine import constant
from ..program import Op
from .nest import (
    FREE,
    Implied,
    Sketch,
    Window,
    contracted,
    convolved,
    element_of,
    elementwise,
    initial,
    ints_of,
    joined,
    moved,
    padded,
    pooled,
    property_of,
    reduced,
    shape_of,
    times,
    transform,
    transposed,
)
from .stablehlo import indexed

if TYPE_CHECKING:
    from ..function_view import FunctionView

RESCALE = ("iadd", "imul", "iadd", "ibit", "iadd", "cast")
"""One rescaled element: less the input zero point, times the multiplier, rounded, shifted, plus the output zero point,
saturated to the narrow type."""
ELEMENTWISE: dict[str, tuple[str, ...]] = {
    # name -> classes of one element
    **dict.fromkeys(("add", "sub"), ("fadd",)),
    "mul": ("fmul",),
    "intdiv": ("idiv",),
    "reciprocal": ("fdiv",),
    "rsqrt": ("fsqrt",),
    **dict.fromkeys(("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "pow"), ("fmath",)),
    **dict.fromkeys(("maximum", "minimum"), ("fminmax",)),
    "clamp": ("fminmax", "fminmax"),
    **dict.fromkeys(("abs", "negate", "ceil", "floor"), ("fcheap",)),
    **dict.fromkeys(("equal", "greater", "greater_equal"), ("fcmp",)),
    "select": ("select",),
    **dict.fromkeys(
        (
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "bitwise_not",
            "logical_and",
            "logical_or",
            "logical_xor",
            "logical_not",
            "logical_left_shift",
            "logical_right_shift",
            "arithmetic_right_shift",
            "clz",
        ),
        ("ibit",),
    ),
    **dict.fromkeys(("cast", "cast_to_block_scaled", "cast_from_block_scaled"), ("cast",)),
    "apply_scale": ("imul", "iadd", "ibit"),
}
_FREE = frozenset(("reshape", "identity", "const_shape", "dim", "add_shape", "mul_shape", "mod_shape", "concat_shape"))
_REDUCTIONS = {
    "reduce_sum": "fadd",
    "reduce_product": "fmul",
    "reduce_max": "fminmax",
    "reduce_min": "fminmax",
    "reduce_all": "ibit",
    "reduce_any": "ibit",
}
_SCALARS_AFTER = {"mul": 2, "negate": 1, "rescale": 1, "clamp": 1, "cast": 1, "abs": 1}
"""Operands beyond this many are shifts, zero points and tables of scales, not operands of each element."""


def implied(view: FunctionView, op: Op) -> Implied | None:
    """What a TOSA operation stands for; None where it is not understood."""
    short = op.name.partition(".")[2]
    if short in _FREE:
        return FREE
    if not op.operands or not op.results:
        return None
    rule = _RULES.get(short)
    if rule is not None:
        return rule(view, op)
    reduction = _REDUCTIONS.get(short)
    if reduction:
        axis = ints_of(view, op, "axis") or [0]
        return reduced(view, op.operands[:1], op.results, axis, (reduction,), keep=True)
    classes = ELEMENTWISE.get(short)
    if classes is None:
        return None
    inputs = op.operands[: _SCALARS_AFTER.get(short, len(op.operands))]
    return elementwise(view, inputs, op.results[0], classes)


def _windows(view: FunctionView, op: Op, extents: list[int | None], low: tuple[int, ...]) -> list[Window]:
    """Padding is (before, after) for each spatial dimension; `low` are the places of the first ones in `pad`."""
    n = len(extents)
    strides = ints_of(view, op, "stride") or [1] * n
    dilations = ints_of(view, op, "dilation") or [1] * n
    pads = ints_of(view, op, "pad") or [0] * (2 * n)
    return [
        Window(e, strides[i] if i < len(strides) else 1, dilations[i] if i < len(dilations) else 1,
               pads[low[i]] if low[i] < len(pads) else 0)
        for i, e in enumerate(extents)
    ]  # fmt: skip


def _bias(op: Op) -> int | None:
    return op.operands[2] if len(op.operands) > 2 else None


def _conv(n: int) -> Callable[[FunctionView, Op], Implied | None]:
    """conv2d and conv3d: input [N, space…, IC], weight [OC, window…, IC]."""

    def rule(view: FunctionView, op: Op) -> Implied | None:
        weight = shape_of(view, op.operands[1])
        if weight is None or len(weight) != n + 2:
            return None
        space = list(range(1, n + 1))
        windows = _windows(view, op, [weight[d] for d in space], tuple(range(0, 2 * n, 2)))
        image, kernel, out = ((v, 0, n + 1, space) for v in (op.operands[0], op.operands[1], op.results[0]))
        return convolved(view, image, (kernel[0], n + 1, 0, space), out, windows, bias=_bias(op))

    return rule


def _depthwise(view: FunctionView, op: Op) -> Implied | None:
    """Input [N, H, W, C], weight [KH, KW, C, M], output [N, H, W, C · M]: flops = 2 · N · OH · OW · C · M · KH · KW."""
    weight, shape = shape_of(view, op.operands[1]), shape_of(view, op.results[0])
    if weight is None or shape is None or len(weight) != 4 or len(shape) != 4:
        return None
    windows = _windows(view, op, list(weight[:2]), (0, 2))
    sketch = Sketch()
    batch, y, x, channel, multiple = sketch.over((*shape[:3], weight[2], weight[3]))
    taps = [sketch.loop(w.extent, "reduction") for w in windows]
    places = [
        i.scaled(w.stride) + k.scaled(w.dilation) + constant(-w.low)
        for i, k, w in zip((y, x), taps, windows, strict=True)
    ]
    out = (batch, y, x, channel.scaled(weight[3] or 1) + multiple)
    sketch.load(op.operands[0], (batch, *places, channel))
    sketch.load(op.operands[1], (*taps, channel, multiple))
    sketch.update(op.results[0], out)
    nest = sketch.done("fmul", "fadd", element=element_of(view, op.results[0]))
    return Implied((*initial(view, _bias(op), op.results[0], 3), nest))


def _transpose_conv(view: FunctionView, op: Op) -> Implied | None:
    """Each input element adds to a window of the output: flops = 2 · N · IH · IW · IC · OC · KH · KW."""
    weight = shape_of(view, op.operands[1])
    if weight is None or len(weight) != 4:
        return None
    strides = ints_of(view, op, "stride") or [1, 1]
    pads = ints_of(view, op, "out_pad") or [0, 0, 0, 0]
    windows = [Window(weight[1 + i], low=-pads[2 * i], holes=strides[i]) for i in range(2)]
    space = [1, 2]
    image, kernel, out = (op.operands[0], 0, 3, space), (op.operands[1], 3, 0, space), (op.results[0], 0, 3, space)
    return convolved(view, image, kernel, out, windows, bias=_bias(op), scatter=True)


def _matmul(view: FunctionView, op: Op) -> Implied | None:
    right = "bnk" if "matmul_t" in op.name else "bkn"
    return contracted(view, (op.operands[0], "bmk"), (op.operands[1], right), (op.results[0], "bmn"))


def _fully_connected(view: FunctionView, op: Op) -> Implied | None:
    return contracted(view, (op.operands[0], "mk"), (op.operands[1], "nk"), (op.results[0], "mn"), _bias(op))


def _pool(view: FunctionView, op: Op) -> Implied | None:
    kernel: list[int | None] = list(ints_of(view, op, "kernel"))
    if len(kernel) != 2:
        return None
    mean = "avg" in op.name
    windows = _windows(view, op, kernel, (0, 2))
    return pooled(view, op.operands[0], op.results[0], (1, 2), windows, "fadd" if mean else "fminmax", mean)


def _argmax(view: FunctionView, op: Op) -> Implied | None:
    return reduced(view, op.operands[:1], op.results, ints_of(view, op, "axis") or [0], ("fcmp", "select"))


def _concat(view: FunctionView, op: Op) -> Implied | None:
    return joined(view, op.operands, op.results[0], (ints_of(view, op, "axis") or [0])[0])


def _pad(view: FunctionView, op: Op) -> Implied | None:
    from .control import integers

    pads = integers(view, op.operands[1]) if len(op.operands) > 1 else []
    return padded(view, op.operands[0], op.results[0], pads[::2])


def _transpose(view: FunctionView, op: Op) -> Implied | None:
    from .control import integers

    order = ints_of(view, op, "perms") or (integers(view, op.operands[1]) if len(op.operands) > 1 else [])
    return transposed(view, op.operands[0], op.results[0], order)


def _reverse(view: FunctionView, op: Op) -> Implied | None:
    shape = shape_of(view, op.results[0])
    if shape is None:
        return None
    axis = ints_of(view, op, "axis")
    sketch = Sketch()
    index = [constant((shape[d] or 1) - 1) - i if d in axis else i for d, i in enumerate(sketch.over(shape))]
    return moved(view, op.operands[0], op.results[0], index, sketch)


def _slice(view: FunctionView, op: Op) -> Implied | None:
    from .control import integers

    shape = shape_of(view, op.results[0])
    if shape is None:
        return None
    starts = ints_of(view, op, "start") or (integers(view, op.operands[1]) if len(op.operands) > 1 else [])
    starts = starts if len(starts) == len(shape) else [0] * len(shape)
    sketch = Sketch()
    index = [i + constant(starts[d]) for d, i in enumerate(sketch.over(shape))]
    return moved(view, op.operands[0], op.results[0], index, sketch)


def _tile(view: FunctionView, op: Op) -> Implied | None:
    """The input once for each copy: loads = stores = elements of the output."""
    own, shape = shape_of(view, op.operands[0]), shape_of(view, op.results[0])
    if own is None or shape is None or len(own) != len(shape):
        return None
    sketch = Sketch()
    copies = [sketch.loop(None if a is None or b is None else b // a) for a, b in zip(own, shape, strict=True)]
    loops = sketch.over(own)
    sketch.load(op.operands[0], loops)
    sketch.store(op.results[0], [c.scaled(own[d] or 1) + i for d, (c, i) in enumerate(zip(copies, loops, strict=True))])
    return Implied((sketch.done(element=element_of(view, op.results[0])),))


def _resize(view: FunctionView, op: Op) -> Implied | None:
    """Nearest: one load for each output. Bilinear: four loads, four multiplications and three additions."""
    shape, own = shape_of(view, op.results[0]), shape_of(view, op.operands[0])
    if shape is None or own is None or len(shape) != 4 or len(own) != 4:
        return None
    bilinear = "BILINEAR" in property_of(view, op, "mode")
    sketch = Sketch()
    batch, y, x, channel = sketch.over(shape)
    for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1))[: 4 if bilinear else 1]:
        sketch.load(op.operands[0], (batch, y + constant(dy), x + constant(dx), channel), irregular=True)
    sketch.store(op.results[0], (batch, y, x, channel))
    compute = ("fmul",) * 4 + ("fadd",) * 3 if bilinear else ()
    return Implied((sketch.done(*compute, element=element_of(view, op.results[0])),))


def _gather(view: FunctionView, op: Op) -> Implied | None:
    """values [N, K, C], indices [N, W] -> [N, W, C]: each index once, each gathered element once."""
    shape = shape_of(view, op.results[0])
    if shape is None or len(shape) != 3:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    sketch.load(op.operands[0], loops, irregular=True)
    sketch.store(op.results[0], loops)
    first = indexed(view, op.operands[1])
    return Implied((*(first.nests if first else ()), sketch.done(element=element_of(view, op.results[0]))))


def _scatter(view: FunctionView, op: Op) -> Implied | None:
    """values_in [N, K, C], indices [N, W], input [N, W, C]: each index and input once, in place."""
    shape = shape_of(view, op.operands[2]) if len(op.operands) > 2 else None
    if shape is None or len(shape) != 3:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    sketch.load(op.operands[2], loops)
    sketch.store(op.results[0], loops, irregular=True)
    first = indexed(view, op.operands[1])
    return Implied(
        (*(first.nests if first else ()), sketch.done(element=element_of(view, op.results[0]))),
        tied=((op.results[0], op.operands[0]),),
    )


def _table(view: FunctionView, op: Op) -> Implied | None:
    """One look-up for each element."""
    shape = shape_of(view, op.results[0])
    if shape is None:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    sketch.load(op.operands[0], loops)
    sketch.load(op.operands[1], loops[-1:], irregular=True)
    sketch.store(op.results[0], loops)
    return Implied((sketch.done(element=element_of(view, op.results[0])),))


def _rescale(view: FunctionView, op: Op) -> Implied | None:
    return elementwise(view, op.operands[:1], op.results[0], RESCALE)


def _fft(view: FunctionView, op: Op) -> Implied | None:
    """Over the last two dimensions of the input."""
    shape = shape_of(view, op.operands[0])
    if shape is None or len(shape) != 3:
        return None
    return transform(view, op.operands[0], op.results[0], times(*shape[1:]), shape[:1])


_RULES: dict[str, Callable[[FunctionView, Op], Implied | None]] = {
    "conv2d": _conv(2),
    "conv3d": _conv(3),
    "depthwise_conv2d": _depthwise,
    "transpose_conv2d": _transpose_conv,
    **dict.fromkeys(("matmul", "matmul_t", "matmul_t_block_scaled"), _matmul),
    "fully_connected": _fully_connected,
    **dict.fromkeys(("avg_pool2d", "max_pool2d"), _pool),
    "argmax": _argmax,
    "concat": _concat,
    "pad": _pad,
    "transpose": _transpose,
    "reverse": _reverse,
    "slice": _slice,
    "tile": _tile,
    "resize": _resize,
    "gather": _gather,
    "scatter": _scatter,
    "table": _table,
    "rescale": _rescale,
    **dict.fromkeys(("fft2d", "rfft2d"), _fft),
}
