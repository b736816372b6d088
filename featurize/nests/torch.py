"""Torch operations (`torch.aten.*` on `!torch.vtensor`). What gives a view of its operand moves nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..affine import constant
from ..op_classes import TENSOR_VIEWS
from ..program import Op
from .control import integer, integers
from .nest import (
    FREE,
    Implied,
    Sketch,
    Window,
    broadcast,
    contracted,
    convolved,
    element_of,
    elementwise,
    is_integer,
    joined,
    known,
    moved,
    normalized,
    padded,
    pooled,
    reduced,
    shape_of,
    softmax,
    sorted_along,
)
from .stablehlo import indexed, normalized_by

if TYPE_CHECKING:
    from ..function_view import FunctionView

Rule = Callable[["FunctionView", Op], Implied | None]

ELEMENTWISE: dict[str, tuple[str, ...]] = {
    # base name (without overload and trailing `_`) -> classes of one element
    **dict.fromkeys(("add", "sub", "rsub"), ("fadd",)),
    **dict.fromkeys(("mul", "square"), ("fmul",)),
    **dict.fromkeys(("div", "reciprocal", "floor_divide", "remainder", "fmod"), ("fdiv",)),
    **dict.fromkeys(("addcmul",), ("fmul", "fmul", "fadd")),
    **dict.fromkeys(("addcdiv",), ("fdiv", "fmul", "fadd")),
    **dict.fromkeys(("lerp",), ("fadd", "fmul", "fadd")),
    **dict.fromkeys(("sqrt", "rsqrt"), ("fsqrt",)),
    **dict.fromkeys(
        (
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "tanh",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "atan2",
            "sinh",
            "cosh",
            "asinh",
            "acosh",
            "atanh",
            "pow",
            "erf",
            "erfc",
            "erfinv",
            "sigmoid",
            "softplus",
            "log_sigmoid",
            "mish",
            "digamma",
        ),
        ("fmath",),
    ),
    "silu": ("fmath", "fmul"),
    "gelu": ("fmath", "fadd", "fmul", "fmul", "fmul"),
    "elu": ("fmath", "fadd", "fmul", "select"),
    **dict.fromkeys(("relu", "maximum", "minimum", "fmax", "fmin", "clamp_min", "clamp_max"), ("fminmax",)),
    **dict.fromkeys(("clamp", "relu6", "hardtanh"), ("fminmax", "fminmax")),
    "hardsigmoid": ("fadd", "fminmax", "fminmax", "fmul"),
    "hardswish": ("fadd", "fminmax", "fminmax", "fmul", "fmul"),
    "leaky_relu": ("fcmp", "fmul", "select"),
    "prelu": ("fcmp", "fmul", "select"),
    "threshold": ("fcmp", "select"),
    **dict.fromkeys(("abs", "neg", "sign", "sgn", "floor", "ceil", "round", "trunc", "frac", "copysign"), ("fcheap",)),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite"), ("fcmp",)),
    **dict.fromkeys(("where", "masked_fill", "triu", "tril"), ("select",)),
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
            "bitwise_left_shift",
            "bitwise_right_shift",
            "__and__",
            "__or__",
            "__lshift__",
        ),
        ("ibit",),
    ),
    **dict.fromkeys(("to", "_to_copy", "type_as"), ("cast",)),
    **dict.fromkeys(
        (
            "clone",
            "contiguous",
            "copy",
            "repeat",
            "tile",
            "flip",
            "roll",
            "repeat_interleave",
            "zeros",
            "ones",
            "full",
            "zeros_like",
            "ones_like",
            "full_like",
            "fill",
            "zero",
            "new_zeros",
            "new_ones",
            "new_full",
            "arange",
            "linspace",
            "eye",
            "new_empty_strided_copy",
        ),
        (),
    ),
    **dict.fromkeys(
        ("rand", "randn", "rand_like", "randn_like", "randint", "bernoulli", "uniform", "normal"),
        ("imul", "iadd", "ibit", "cast", "fmul", "fadd"),
    ),
    "dropout": (),
}
_FREE = frozenset(
    (
        "size", "size.int", "dim", "len.t", "append.t", "__getitem__.t", "_set_item.t", "slice.t",
        "empty.memory_format",
        "numel", "item", "Int.Tensor", "Float.Tensor", "Bool.Tensor", "ScalarImplicit", "FloatImplicit", "IntImplicit",
        "sym_size.int", "sym_constrain_range", "scalar_tensor",
    )
)  # fmt: skip
_REDUCTIONS: dict[str, tuple[str, ...]] = {
    "sum": ("fadd",),
    "mean": ("fadd",),
    "prod": ("fmul",),
    "amax": ("fminmax",),
    "amin": ("fminmax",),
    "max": ("fminmax",),
    "min": ("fminmax",),
    "any": ("ibit",),
    "all": ("ibit",),
    "argmax": ("fcmp", "select"),
    "argmin": ("fcmp", "select"),
    "logsumexp": ("fmath", "fadd"),
    "linalg_vector_norm": ("fmul", "fadd"),
    "norm": ("fmul", "fadd"),
}


_FINISH = {"mean": ("fdiv",), "logsumexp": ("fmath",), "linalg_vector_norm": ("fsqrt",), "norm": ("fsqrt",)}
"""What is left to do with each result of a reduction."""


def implied(view: FunctionView, op: Op) -> Implied | None:
    """What a Torch operation stands for; None where it is not understood."""
    if op.name.startswith(("torch.constant.", "torch.vtensor.literal", "torch.tensor.literal")):
        return Implied(cls="const")
    if op.name.startswith("torch.prim."):
        return None if op.regions else FREE
    if op.name == "torch.prims.convert_element_type":
        return elementwise(view, op.operands[:1], op.results[0], ("cast",))
    if op.name in TENSOR_VIEWS:
        return FREE
    if not op.name.startswith("torch.aten."):
        return None
    name = op.name[len("torch.aten.") :]
    if name in _FREE:
        return FREE
    if not op.results:
        return None
    base = name.partition(".")[0]
    if base not in ELEMENTWISE and base not in _RULES and base not in _REDUCTIONS:
        base = base.rstrip("_")
    out = view.type_of(op.results[0])
    if out.kind != "tensor":  # arithmetic on !torch.int and !torch.float
        return Implied(cls="index")
    rule = _RULES.get(base)
    if rule is not None:
        return rule(view, op)
    if base in _REDUCTIONS:
        return _reduction(view, op, base)
    classes = ELEMENTWISE.get(base)
    if classes is None:
        return None
    inputs = [v for v in op.operands if view.type_of(v).kind == "tensor"]
    if base in ("full_like", "zeros_like", "ones_like", "fill", "zero", "rand_like", "randn_like", "new_zeros",
                "new_ones", "new_full"):  # fmt: skip
        inputs = []
    if base in ("add", "sub", "rsub") and len(op.operands) > 2 and integer(view, op.operands[2]) not in (None, 1):
        classes = ("fmul", *classes)
    if base in ("repeat", "tile", "flip", "roll", "repeat_interleave"):
        return _copied(view, op)
    return elementwise(view, inputs, op.results[0], classes)


def _copied(view: FunctionView, op: Op) -> Implied | None:
    """One load and one store for each element of the result, in the operand's order as far as it goes."""
    shape, own = shape_of(view, op.results[0]), shape_of(view, op.operands[0])
    if shape is None or own is None:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    index = loops[len(loops) - len(own) :] if len(own) <= len(loops) else loops
    return moved(view, op.operands[0], op.results[0], index, sketch)


def _rank(view: FunctionView, value: int) -> int:
    return len(shape_of(view, value) or ())


def _tensor(view: FunctionView, op: Op, position: int) -> int | None:
    """The operand at a position, where it is a tensor and not `none`."""
    if position >= len(op.operands):
        return None
    value = op.operands[position]
    return value if view.type_of(value).kind == "tensor" else None


def _matmul(view: FunctionView, op: Op) -> Implied | None:
    """Vectors and batch dimensions as `torch.matmul` has them; covers mm, bmm, mv and dot."""
    return product(view, op.operands[0], op.operands[1], op.results[0])


def product(
    view: FunctionView, lhs: int, rhs: int, out: int, bias: int | None = None, *, turned: bool = False
) -> Implied | None:
    """lhs × rhs (`turned`: × rhs transposed) with batch dimensions before the last two."""
    a, b = shape_of(view, lhs), shape_of(view, rhs)
    if a is None or b is None or not a or not b:
        return None
    batches = "abcdefgh"
    n = max(len(a), len(b)) - 2
    if n > len(batches):
        return None
    shared = batches[: max(0, n)]
    left = "k" if len(a) == 1 else shared[n - (len(a) - 2) :] + "xk"
    matrix = "yk" if turned else "ky"
    right = "k" if len(b) == 1 else shared[n - (len(b) - 2) :] + matrix
    result = shared + ("x" if len(a) > 1 else "") + ("y" if len(b) > 1 else "")
    if _rank(view, out) != len(result):
        return None
    return contracted(view, (lhs, left), (rhs, right), (out, result), bias)


def _addmm(view: FunctionView, op: Op) -> Implied | None:
    return product(view, op.operands[1], op.operands[2], op.results[0], op.operands[0])


def _linear(view: FunctionView, op: Op) -> Implied | None:
    return product(view, op.operands[0], op.operands[1], op.results[0], _tensor(view, op, 2), turned=True)


def _list(view: FunctionView, op: Op, position: int, n: int, default: int) -> list[int]:
    values = integers(view, op.operands[position]) if position < len(op.operands) else []
    if len(values) == 1:
        values = values * n
    return values if len(values) == n else [default] * n


def _convolution(view: FunctionView, op: Op) -> Implied | None:
    """convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) and conv1d-3d."""
    weight = shape_of(view, op.operands[1])
    if weight is None or len(weight) < 3:
        return None
    n = len(weight) - 2
    strides, pads, dilations = (_list(view, op, 3 + i, n, d) for i, d in enumerate((1, 0, 1)))
    general = "convolution" in op.name
    transposed = general and len(op.operands) > 6 and integer(view, op.operands[6]) == 1
    at = 8 if general else 6
    groups = (integer(view, op.operands[at]) if at < len(op.operands) else None) or 1
    space = list(range(2, n + 2))
    bias = _tensor(view, op, 2)
    image, out = (op.operands[0], 0, 1, space), (op.results[0], 0, 1, space)
    if transposed:  # weight [IC, OC / groups, window…]
        windows = [Window(weight[2 + i], 1, dilations[i], pads[i], strides[i]) for i in range(n)]
        return convolved(view, image, (op.operands[1], 0, 1, space), out, windows, bias=bias, scatter=True)
    windows = [Window(weight[2 + i], strides[i], dilations[i], pads[i]) for i in range(n)]
    return convolved(view, image, (op.operands[1], 1, 0, space), out, windows, groups, bias)


def _pool(view: FunctionView, op: Op) -> Implied | None:
    """max_pool(input, kernel, stride, padding, dilation, …), avg_pool(input, kernel, stride, padding, …)."""
    rank = _rank(view, op.operands[0])
    n = next((int(d) for d in "123" if f"pool{d}d" in op.name), 2)
    if rank < n + 1:
        return None
    kernel = _list(view, op, 1, n, 0)
    if not all(kernel):
        return None
    strides = _list(view, op, 2, n, 0)
    strides = strides if all(strides) else kernel
    pads = _list(view, op, 3, n, 0)
    mean = "avg" in op.name
    dilations = [1] * n if mean else _list(view, op, 4, n, 1)
    windows = [Window(kernel[i], strides[i], dilations[i], pads[i]) for i in range(n)]
    space = tuple(range(rank - n, rank))
    return pooled(view, op.operands[0], op.results[0], space, windows, "fadd" if mean else "fminmax", mean)


def _adaptive_pool(view: FunctionView, op: Op) -> Implied | None:
    """Windows of input / output positions, rounded up."""
    own, shape = shape_of(view, op.operands[0]), shape_of(view, op.results[0])
    if own is None or shape is None or len(own) != len(shape):
        return None
    n = next((int(d) for d in "123" if f"pool{d}d" in op.name), 2)
    space = tuple(range(len(own) - n, len(own)))
    windows = []
    for d in space:
        a, b = own[d], shape[d]
        size = None if a is None or not b else -(-a // b)
        windows.append(Window(size, size or 1))
    mean = "avg" in op.name
    return pooled(view, op.operands[0], op.results[0], space, windows, "fadd" if mean else "fminmax", mean)


def _softmax(view: FunctionView, op: Op) -> Implied | None:
    dim = integer(view, op.operands[1]) if len(op.operands) > 1 else None
    return softmax(view, op.operands[0], op.results[0], -1 if dim is None else dim, log="log_softmax" in op.name)


def _attention(view: FunctionView, op: Op) -> Implied | None:
    """softmax(q · kᵀ · scale) · v: 2 B L S E for the scores, L S for the scale, 5 L S for the softmax, 2 B L S Ev."""
    query, key, value = op.operands[:3]
    q, k, v = (shape_of(view, x) for x in (query, key, value))
    if q is None or k is None or v is None or not len(q) == len(k) == len(v) or len(q) < 2:
        return None
    element = element_of(view, op.results[0])
    scores = (*q[:-2], q[-2], k[-2])
    first = Sketch()
    batch = first.over(q[:-2])
    i, j, e = first.loop(q[-2]), first.loop(k[-2]), first.loop(known(q[-1], k[-1]), "reduction")
    grouped = [b if q[d] == k[d] or k[d] is None else constant(0) for d, b in enumerate(batch)]
    first.load(query, (*batch, i, e))
    first.load(key, (*grouped, j, e))
    first.update(-1, (*batch, i, j))
    nests = [first.done("fmul", "fadd", element=element)]
    scale = Sketch()
    scale.update(-1, scale.over(scores))
    nests.append(scale.done("fmul", element=element))
    mask = _tensor(view, op, 3)
    if mask is not None:
        add = Sketch()
        loops = add.over(scores)
        own = shape_of(view, mask) or ()
        add.load(mask, broadcast(loops, own))
        add.update(-1, loops)
        nests.append(add.done("select" if is_integer(element_of(view, mask)) else "fadd", element=element))
    for kind, classes, row_read, row_update in (
        ("reduction", ("fminmax",), False, -2),
        ("parallel", ("fadd", "fmath"), True, 0),
        ("reduction", ("fadd",), False, -3),
        ("parallel", ("fdiv",), True, 0),
    ):
        step = Sketch()
        rows = step.over(scores[:-1])
        column = step.loop(scores[-1], kind)
        step.load(-1, (*rows, column))
        if row_read:
            step.load(-2 if "fmath" in classes else -3, rows)
            step.store(-1, (*rows, column))
        else:
            step.update(row_update, rows)
        nests.append(step.done(*classes, element=element))
    last = Sketch()
    batch = last.over(q[:-2])
    i, e, j = last.loop(q[-2]), last.loop(v[-1]), last.loop(k[-2], "reduction")
    grouped = [b if q[d] == v[d] or v[d] is None else constant(0) for d, b in enumerate(batch)]
    last.load(-1, (*batch, i, j))
    last.load(value, (*grouped, j, e))
    last.update(op.results[0], (*batch, i, e))
    nests.append(last.done("fmul", "fadd", element=element))
    return Implied(tuple(nests), scratch=((scores, element), (scores[:-1], element), (scores[:-1], element)))


def _layer_norm(view: FunctionView, op: Op) -> Implied | None:
    """layer_norm(input, normalized_shape, weight, bias, eps, …)."""
    n = len(integers(view, op.operands[1])) or 1
    parameters = [v for i in (2, 3) if (v := _tensor(view, op, i)) is not None]
    return normalized(view, op.operands[0], op.results[0], range(-n, 0), parameters)


def _group_norm(view: FunctionView, op: Op) -> Implied | None:
    """As a layer norm over everything but the batch; the groups only move where the means go."""
    return normalized(view, op.operands[0], op.results[0], range(1, _rank(view, op.operands[0])), [])


def _batch_norm(view: FunctionView, op: Op) -> Implied | None:
    """batch_norm(input, weight, bias, running_mean, running_var, training, …) with the running statistics."""
    if len(op.operands) < 5:
        return None
    weight, bias, mean, variance = (_tensor(view, op, i) for i in (1, 2, 3, 4))
    return normalized_by(view, op.operands[0], op.results[0], 1, mean, variance, weight, bias)


def _reduction(view: FunctionView, op: Op, base: str) -> Implied | None:
    own = shape_of(view, op.operands[0])
    shape = shape_of(view, op.results[0])
    if own is None or shape is None:
        return None
    if base in ("max", "min") and len(op.operands) > 1 and view.type_of(op.operands[1]).kind == "tensor":
        return elementwise(view, op.operands[:2], op.results[0], ("fminmax",))
    at = 2 if base in ("linalg_vector_norm", "norm") else 1
    dims: Sequence[int] = ()
    if at < len(op.operands):
        dims = integers(view, op.operands[at])
        one = integer(view, op.operands[at]) if not dims else None
        dims = [one] if one is not None and base != "sum" else dims
    if not dims or (len(op.operands) == 2 and not dims):
        dims = range(len(own))
    found = reduced(
        view, op.operands[:1], op.results[:1], dims, _REDUCTIONS[base], keep=len(shape) == len(own) and bool(shape)
    )
    finish = _FINISH.get(base)
    if found is None or finish is None:
        return found
    last = Sketch()
    last.update(op.results[0], last.over(shape))
    return Implied((*found.nests, last.done(*finish, element=element_of(view, op.results[0]))))


def _variance(view: FunctionView, op: Op) -> Implied | None:
    """var, std, var_mean: mean (n), squared differences (3 n)."""
    own = shape_of(view, op.operands[0])
    if own is None:
        return None
    dims = (integers(view, op.operands[1]) if len(op.operands) > 1 else []) or range(len(own))
    keep = _rank(view, op.results[0]) == len(own)
    mean = reduced(view, op.operands[:1], op.results[-1:], dims, ("fadd",), keep=keep)
    spread = reduced(view, op.operands[:1], op.results[:1], dims, ("fadd", "fmul", "fadd"), keep=keep)
    return None if mean is None or spread is None else Implied((*mean.nests, *spread.nests))


def _cat(view: FunctionView, op: Op) -> Implied | None:
    made = view.program.value_defs[op.operands[0]]
    parts = made.operands if isinstance(made, Op) and made.name.endswith("ListConstruct") else ()
    dim = integer(view, op.operands[1]) if len(op.operands) > 1 else 0
    rank = _rank(view, op.results[0])
    if not parts or not rank or dim is None:
        return None
    if "stack" in op.name:
        return elementwise(view, (), op.results[0], ()) if not parts else _stacked(view, op, list(parts), dim % rank)
    return joined(view, parts, op.results[0], dim % rank)


def _stacked(view: FunctionView, op: Op, parts: list[int], dim: int) -> Implied | None:
    nests = []
    for k, part in enumerate(parts):
        shape = shape_of(view, part)
        if shape is None:
            return None
        sketch = Sketch()
        loops = sketch.over(shape)
        sketch.load(part, loops)
        sketch.store(op.results[0], [*loops[:dim], constant(k), *loops[dim:]])
        nests.append(sketch.done(element=element_of(view, op.results[0])))
    return Implied(tuple(nests))


def _embedding(view: FunctionView, op: Op) -> Implied | None:
    return _looked_up(view, op, op.operands[0], op.operands[1])


def _index_select(view: FunctionView, op: Op) -> Implied | None:
    return _looked_up(view, op, op.operands[0], op.operands[2])


def _looked_up(view: FunctionView, op: Op, table: int, indices: int) -> Implied | None:
    """Each index once, each element of the result loaded and stored once."""
    shape, own = shape_of(view, op.results[0]), shape_of(view, table)
    if shape is None or own is None:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    index = loops[len(loops) - len(own) :] if len(own) <= len(loops) else loops
    sketch.load(table, index, irregular=True)
    sketch.store(op.results[0], loops)
    first = indexed(view, indices)
    return Implied((*(first.nests if first else ()), sketch.done(element=element_of(view, op.results[0]))))


def _index(view: FunctionView, op: Op) -> Implied | None:
    """index.Tensor(input, list of index tensors)."""
    made = view.program.value_defs[op.operands[1]]
    if not isinstance(made, Op):
        return None
    indices = next((v for v in made.operands if view.type_of(v).kind == "tensor"), None)
    return None if indices is None else _looked_up(view, op, op.operands[0], indices)


def _scattered(view: FunctionView, op: Op) -> Implied | None:
    """scatter, scatter_add, index_put, index_add, …: each index and source element once, in place."""
    tensors = [v for v in op.operands[1:] if view.type_of(v).kind == "tensor"]
    if not tensors:
        return None
    source, indices = tensors[-1], tensors[0] if len(tensors) > 1 else None
    shape, own = shape_of(view, source), shape_of(view, op.results[0])
    if shape is None or own is None:
        return None
    adds = "add" in op.name or "reduce" in op.name
    sketch = Sketch()
    loops = sketch.over(shape)
    sketch.load(source, loops)
    index = loops[-len(own) :] if len(loops) >= len(own) else [*[constant(0)] * (len(own) - len(loops)), *loops]
    if adds:
        sketch.load(op.results[0], index, irregular=True)
    sketch.store(op.results[0], index, irregular=True)
    first = indexed(view, indices) if indices is not None else None
    nest = sketch.done(*(("fadd",) if adds else ()), element=element_of(view, op.results[0]))
    return Implied((*(first.nests if first else ()), nest), tied=((op.results[0], op.operands[0]),))


def _pad(view: FunctionView, op: Op) -> Implied | None:
    """Pads are (before, after) from the last dimension on."""
    rank = _rank(view, op.results[0])
    pads = integers(view, op.operands[1]) if len(op.operands) > 1 else []
    low = [0] * rank
    for i, before in enumerate(pads[::2]):
        if i < rank:
            low[rank - 1 - i] = before
    return padded(view, op.operands[0], op.results[0], low)


def _sort(view: FunctionView, op: Op) -> Implied | None:
    at = 2 if "topk" in op.name else 1
    dim = integer(view, op.operands[at]) if at < len(op.operands) else -1
    target = op.operands[:1] if "topk" in op.name else op.results[:1]
    return sorted_along(view, op.operands[:1], target, -1 if dim is None else dim, None)


def _cumulative(view: FunctionView, op: Op) -> Implied | None:
    classes = ("fmul",) if "prod" in op.name else ("fadd",)
    return elementwise(view, op.operands[:1], op.results[0], classes)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot"), _matmul),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _addmm),
    "linear": _linear,
    **dict.fromkeys(("convolution", "_convolution", "conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(
        ("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices"),
        _pool,
    ),
    **dict.fromkeys(
        (
            "adaptive_avg_pool1d",
            "adaptive_avg_pool2d",
            "adaptive_avg_pool3d",
            "adaptive_max_pool2d",
            "_adaptive_avg_pool2d",
        ),
        _adaptive_pool,
    ),
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), _softmax),
    **dict.fromkeys(
        (
            "scaled_dot_product_attention",
            "_scaled_dot_product_flash_attention_for_cpu",
            "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_efficient_attention",
        ),
        _attention,
    ),
    **dict.fromkeys(("layer_norm", "native_layer_norm"), _layer_norm),
    **dict.fromkeys(("group_norm", "native_group_norm", "instance_norm"), _group_norm),
    **dict.fromkeys(("batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training"), _batch_norm),
    **dict.fromkeys(("var", "std", "var_mean", "std_mean"), _variance),
    **dict.fromkeys(("cat", "stack"), _cat),
    "embedding": _embedding,
    **dict.fromkeys(("index_select", "gather"), _index_select),
    **dict.fromkeys(("index",), _index),
    **dict.fromkeys(
        (
            "scatter",
            "scatter_add",
            "scatter_reduce",
            "index_put",
            "_index_put_impl",
            "index_add",
            "slice_scatter",
            "select_scatter",
        ),
        _scattered,
    ),
    **dict.fromkeys(("constant_pad_nd", "pad", "reflection_pad2d", "replication_pad2d"), _pad),
    **dict.fromkeys(("sort", "topk", "argsort"), _sort),
    **dict.fromkeys(("cumsum", "cumprod"), _cumulative),
}
