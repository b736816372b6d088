"""Linalg operations at the shapes of real networks, lowered to affine loops.

Each family draws a layer from `linalg_shapes`, scales it to a volume of work, writes it with linalg named operations
and generics on memrefs, and lowers all its programs in one run of `mlir-opt`; only the programs of
`linalg_named_ops` stay as they are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

from . import linalg_shapes as shapes
from .affine_text import Array, Value
from .base import PROGRAMS_PER_FAMILY, Family, Source
from .linalg_shapes import fit
from .linalg_text import LinalgKernel, to_affine
from .nest_draw import FLOAT_FLAVOURS, INT_FLAVOURS, Draw, mix
from .transformer_text import ACTIVATIONS

__all__ = ["FAMILIES", "KINDS", "families", "kernel_text"]

ORIGIN = "linalg"
MAX_OPERAND_BYTES = 8 << 20
MAX_EXECUTED_OPS = 1.0e8

CHEAP = ("relu", "relu6", "leaky-relu", "hard-swish", "squared-relu", "softsign")
"""Activations without a call of the mathematical library."""

BOUNDED = ("relu", "relu6", "leaky-relu", "softsign")
"""Those that keep large 16-bit numbers finite."""

CONTRACTED = (
    ("f32", "f32", "f32", 40),
    ("f64", "f64", "f64", 18),
    ("f16", "f16", "f32", 8),
    ("bf16", "bf16", "f32", 9),
    ("f16", "f16", "f16", 2),
    ("f32", "f32", "f64", 3),
    ("i8", "i8", "i32", 10),
    ("i16", "i16", "i32", 4),
    ("i32", "i32", "i32", 5),
    ("i64", "i64", "i64", 2),
)
"""Element types of the two factors and the sum, with weights."""


def _types(d: Draw) -> tuple[str, str, str]:
    *names, weights = zip(*CONTRACTED, strict=True)
    return d.rng.choices(list(zip(*names, strict=True)), weights)[0]


def _volume(d: Draw, share: float = 1.0) -> float:
    low, high = shapes.VOLUMES
    return max(64.0, math.exp(d.rng.uniform(math.log(low), math.log(high * share))) * d.scale)


def _matrix(d: Draw, k: LinalgKernel, element: str, rows: int, columns: int) -> Array:
    """A matrix argument: mostly dense, sometimes part of a larger one, or stored by columns."""
    style = d.rng.random()
    if style < 0.8 or min(rows, columns) < 2:
        return k.shaped(element, rows, columns)
    slack = d.rng.choice((1, 3, 8, 16))
    if style < 0.92:
        return k.strided(element, rows, columns, pitch=columns + slack)
    return k.strided(element, rows, columns, pitch=rows + d.rng.choice((0, slack)), transposed=True)


def _start(d: Draw, k: LinalgKernel, output: Array) -> None:
    """Set the result to zero first, or add to what is there; 16-bit sums always start at zero, lest they overflow."""
    if output.element == "f16" or d.chance(0.6):
        k.fill(0, output)
        k.cleared.add(output.name)


def _epilogue(d: Draw, k: LinalgKernel, result: Array, *, chance: float = 1.0) -> None:
    """What follows a layer: bias, activation, residual, batch norm, scaling, in one operation or one after the other.

    In place, unless the layer adds to what the last call left: that would grow with every call.
    """
    if not d.chance(chance):
        return
    element, shape = result.element, result.extents
    target = result if result.name in k.cleared else k.shaped(element, *shape)
    steps = d.rng.sample(("bias", "activation", "residual", "norm", "scale", "clamp"), d.rng.choice((1, 2, 2, 3)))
    kind = d.rng.choice(ACTIVATIONS if math.prod(shape) < 3e5 and d.chance(0.5) else CHEAP)
    if element == "f16":
        kind = d.rng.choice(BOUNDED)
    bodies: list[tuple[list[Array], Callable[[list[Value]], Value]]] = []
    for step in steps:
        match step:
            case "bias":
                bodies.append(([k.shaped(element, shape[-1])], lambda v: k.add(v[0], v[1])))
            case "residual":
                bodies.append(([k.shaped(element, *shape)], lambda v: k.add(v[0], v[1])))
            case "norm":
                scale, shift = k.shaped(element, shape[-1]), k.shaped(element, shape[-1])
                bodies.append(([scale, shift], lambda v: k.add(k.mul(v[0], v[1]), v[2])))
            case "scale":
                bodies.append(([], lambda v: k.mul(v[0], k.constant(0.125 if v[0].is_float else 3, element))))
            case "clamp":
                bodies.append(([], lambda v: k.clamp(v[0], -127, 127)))
            case _ if result.element.startswith("f"):
                bodies.append(([], lambda v: k.activation(kind, v[0])))
            case _:
                bodies.append(([], lambda v: k.larger(v[0], k.constant(0, element))))
    if d.chance(0.5):  # one after the other
        source = result
        for extra, body in bodies:
            k.elementwise(shape, [source, *extra], target, body)
            source = target
        return
    inputs = [result, *(array for extra, _ in bodies for array in extra)]

    def all_of_them(values: list[Value]) -> Value:
        value, at = values[0], 1
        for extra, body in bodies:
            value = body([value, *values[at : at + len(extra)]])
            at += len(extra)
        return value

    k.elementwise(shape, inputs, target, all_of_them)


# --- contractions -----------------------------------------------------------------------------------------------------


def matmul(d: Draw, k: LinalgKernel) -> None:
    """Matrix products of dense layers: plain, transposed, batch-reduced, through matmul, contract or a generic."""
    gemm = d.rng.choice(shapes.GEMMS)
    a_type, b_type, c_type = _types(d)
    form = d.rng.choice(("matmul", "matmul", "matmul", "transposed", "transposed", "contract", "generic", "reduce"))
    sizes = {"m": gemm.m, "n": gemm.n, "k": gemm.k}
    if form == "reduce":
        sizes["b"] = d.rng.choice((2, 3, 4, 8))
        sizes["k"] = max(4, sizes["k"] // sizes["b"])
    made = fit(d.rng, sizes, _volume(d))
    m, n, depth = made["m"], made["n"], made["k"]
    volume = float(math.prod(made.values()))
    if form == "reduce":
        a, b = k.shaped(a_type, made["b"], m, depth), k.shaped(b_type, made["b"], depth, n)
        c = k.shaped(c_type, m, n)
        _start(d, k, c)
        k.named("batch_reduce_matmul", [a, b], [c], volume=volume)
        _epilogue(d, k, c, chance=0.2)
        return
    flip_a, flip_b = (d.chance(0.5), d.chance(0.6)) if form != "matmul" else (False, False)
    a = _matrix(d, k, a_type, *((depth, m) if flip_a else (m, depth)))
    b = _matrix(d, k, b_type, *((n, depth) if flip_b else (depth, n)))
    c = _matrix(d, k, c_type, m, n)
    _start(d, k, c)
    a_at, b_at = ("d2, d0" if flip_a else "d0, d2"), ("d1, d2" if flip_b else "d2, d1")
    maps = ", ".join(f"affine_map<(d0, d1, d2) -> ({at})>" for at in (a_at, b_at, "d0, d1"))
    if form == "generic":
        order = d.rng.sample(range(3), 3)  # loops in another order
        sized = (m, n, depth)

        def renamed(at: str) -> str:
            return ", ".join(f"d{order.index(int(name[1:]))}" for name in at.split(", "))

        k.generic(
            [sized[at] for at in order],
            [order.index(2)],
            [(a, renamed(a_at)), (b, renamed(b_at))],
            [(c, renamed("d0, d1"))],
            lambda read, old: [k.add(old[0], k.mul(k.widen(read[0], c_type), k.widen(read[1], c_type)))],
        )
    elif form == "matmul":
        k.named("matmul", [a, b], [c], volume=volume)
    else:
        op = "contract" if form == "contract" else "matmul"
        k.named(op, [a, b], [c], volume=volume, before=f" indexing_maps = [{maps}]")
    _epilogue(d, k, c, chance=0.15)


def batch_matmul(d: Draw, k: LinalgKernel) -> None:
    """Batched products of attention layers: scores and weighted values, heads in front or in the middle."""
    layer = d.rng.choice(shapes.ATTENTION)
    a_type, b_type, c_type = _types(d)
    made = fit(d.rng, {"h": layer.heads, "q": layer.queries, "t": layer.keys, "w": layer.width}, _volume(d))
    h, q, t, w = (made[name] for name in "hqtw")
    volume = float(math.prod(made.values()))
    scores = d.chance(0.5)
    m, n, depth = (q, t, w) if scores else (q, w, t)
    form = d.rng.choice(("named", "named", "transposed", "heads-inside", "shared-keys"))
    c = k.shaped(c_type, *((m, h, n) if form == "heads-inside" else (h, m, n)))
    _start(d, k, c)

    def product(read: list[Value], old: list[Value]) -> list[Value]:
        return [k.add(old[0], k.mul(k.widen(read[0], c_type), k.widen(read[1], c_type)))]

    if form == "named":
        a, b = k.shaped(a_type, h, m, depth), k.shaped(b_type, h, depth, n)
        k.named("batch_matmul", [a, b], [c], volume=volume)
    elif form == "transposed":
        a, b = k.shaped(a_type, h, m, depth), k.shaped(b_type, h, n, depth)
        ats = ("d0, d1, d3", "d0, d2, d3", "d0, d1, d2")
        maps = ", ".join(f"affine_map<(d0, d1, d2, d3) -> ({at})>" for at in ats)
        k.named("batch_matmul", [a, b], [c], volume=volume, before=f" indexing_maps = [{maps}]")
    elif form == "heads-inside":
        a, b = k.shaped(a_type, m, h, depth), k.shaped(b_type, n, h, depth)
        k.generic((m, h, n, depth), (3,), [(a, "d0, d1, d3"), (b, "d2, d1, d3")], [(c, "d0, d1, d2")], product)
    else:  # multi-query: one matrix of keys for all heads
        a, b = k.shaped(a_type, h, m, depth), k.shaped(b_type, depth, n)
        k.generic((h, m, n, depth), (3,), [(a, "d0, d1, d3"), (b, "d3, d2")], [(c, "d0, d1, d2")], product)
    _epilogue(d, k, c, chance=0.15)


def matvec(d: Draw, k: LinalgKernel) -> None:
    """Products with one vector, as decoding a single token makes them: matvec, vecmat, dot, batched."""
    gemm = d.rng.choice(shapes.GEMMS)
    a_type, b_type, c_type = _types(d)
    op = d.rng.choice(("matvec", "matvec", "vecmat", "vecmat", "dot", "batch_matvec", "batch_vecmat"))
    if op == "dot":
        n = fit(d.rng, {"n": gemm.k * gemm.n}, min(_volume(d), 1e6))["n"]
        a, b, c = k.shaped(a_type, n), k.shaped(b_type, n), k.shaped(c_type)
        _start(d, k, c)
        return k.named("dot", [a, b], [c], volume=n)
    sizes = {"n": gemm.n, "k": gemm.k}
    if op.startswith("batch"):
        sizes["b"] = d.rng.choice((2, 4, 8, 12, 16))
    made = fit(d.rng, sizes, min(_volume(d), 1.5e6))
    n, depth = made["n"], made["k"]
    batch = (made["b"],) if "b" in made else ()
    c = k.shaped(c_type, *batch, n)
    _start(d, k, c)
    volume = float(math.prod(made.values()))
    if op.endswith("matvec"):
        matrix = k.shaped(a_type, *batch, n, depth) if batch else _matrix(d, k, a_type, n, depth)
        k.named(op, [matrix, k.shaped(b_type, *batch, depth)], [c], volume=volume)
    else:
        vector = k.shaped(a_type, *batch, depth)
        matrix = k.shaped(b_type, *batch, depth, n) if batch else _matrix(d, k, b_type, depth, n)
        k.named(op, [vector, matrix], [c], volume=volume)
    return _epilogue(d, k, c, chance=0.3)


def packed_matmul(d: Draw, k: LinalgKernel) -> None:
    """Products of matrices packed in tiles (mmt4d), sometimes with the packing and unpacking around them."""
    gemm = d.rng.choice(shapes.GEMMS)
    a_type, b_type, c_type = _types(d)
    m0, n0, k0 = d.rng.choice(
        (
            (1, 8, 1),
            (4, 4, 1),
            (8, 8, 1),
            (6, 16, 1),
            (4, 16, 2),
            (8, 8, 4),
            (2, 4, 8),
            (1, 16, 4),
            (16, 16, 1),
            (3, 5, 2),
        )
    )
    made = fit(d.rng, {"m": gemm.m, "n": gemm.n, "k": gemm.k}, _volume(d))
    m, n, depth = -(-made["m"] // m0), -(-made["n"] // n0), -(-made["k"] // k0)
    volume = float(m * n * depth * m0 * n0 * k0)
    batch = (d.rng.choice((2, 3)),) if volume < 1e6 and d.chance(0.25) else ()
    a, b = k.shaped(a_type, *batch, m, depth, m0, k0), k.shaped(b_type, *batch, n, depth, n0, k0)
    c = k.shaped(c_type, *batch, m, n, m0, n0)
    if not batch and d.chance(0.35):  # pack the left side first
        rows = k.shaped(a_type, m * m0, depth * k0)
        k.generic(
            (m, depth, m0, k0),
            (),
            [(rows, f"d0 * {m0} + d2, d1 * {k0} + d3")],
            [(a, "d0, d1, d2, d3")],
            lambda read, old: read,
        )
    _start(d, k, c)
    if d.chance(0.75):
        k.named("batch_mmt4d" if batch else "mmt4d", [a, b], [c], volume=volume * math.prod(batch))
    else:
        front = "".join(f"d{at}, " for at in range(len(batch)))
        i = [f"d{len(batch) + at}" for at in range(6)]
        k.generic(
            [*batch, m, n, depth, m0, n0, k0],
            [len(batch) + 2, len(batch) + 5],
            [(a, f"{front}{i[0]}, {i[2]}, {i[3]}, {i[5]}"), (b, f"{front}{i[1]}, {i[2]}, {i[4]}, {i[5]}")],
            [(c, f"{front}{i[0]}, {i[1]}, {i[3]}, {i[4]}")],
            lambda read, old: [k.add(old[0], k.mul(k.widen(read[0], c_type), k.widen(read[1], c_type)))],
        )
    if not batch and d.chance(0.35):
        plain = k.shaped(c_type, m * m0, n * n0)
        k.generic(
            (m, n, m0, n0),
            (),
            [(c, "d0, d1, d2, d3")],
            [(plain, f"d0 * {m0} + d2, d1 * {n0} + d3")],
            lambda read, old: [read[0] if c_type == "f16" else k.add(read[0], old[0])],
        )


EINSUMS = (
    ("bilinear", "bij", (("bi", "ijk"), "bjk")),
    ("trilinear", "bo", (("bi", "bj", "oij"), "bo")),
    ("mttkrp", "ir", (("ijk", "jr", "kr"), "ir")),
    ("tensor-train", "aijb", (("aib", "bjc"), "aijc")),
    ("tucker", "rst", (("ijk", "ir"), "rjk")),
    ("outer", "ij", (("i", "j"), "ij")),
    ("batched-outer", "bij", (("bi", "bj"), "bij")),
    ("pairwise-dot", "bij", (("bif", "bjf"), "bij")),
    ("weighted-gram", "ij", (("ki", "kj", "k"), "ij")),
    ("trace-product", "b", (("bij", "bji"), "b")),
    ("capsule", "bij", (("bjd", "ijde"), "bie")),
    ("mixture", "bo", (("be", "eoi", "bi"), "bo")),
    ("hadamard-sum", "i", (("ij", "ij"), "i")),
    ("low-rank", "bo", (("bi", "ir", "ro"), "bo")),
    ("relative-position", "bhqk", (("bhqd", "qkd"), "bhqk")),
    ("separable", "bc", (("bhw", "hc", "wc"), "bc")),
)
"""Tensor contractions of models beyond dense layers: name, and (factors, result) as an einsum would have them."""


def einsum(d: Draw, k: LinalgKernel) -> None:
    """Tensor contractions of two or three factors (bilinear forms, factorization machines, tensor decompositions)."""
    _, _, (factors, result) = d.rng.choice(EINSUMS)
    element = d.rng.choices(("f32", "f64", "i32", "i64"), (60, 28, 8, 4))[0]
    letters = sorted(set("".join(factors)) | set(result))
    base = {letter: d.rng.choice((5, 10, 13, 16, 26, 27, 32, 49, 64, 96, 100, 128)) for letter in letters}
    if len(letters) < 3:
        base = {letter: size * 40 for letter, size in base.items()}
    sizes = fit(d.rng, base, _volume(d))
    order = list(letters)
    if d.chance(0.6):
        d.rng.shuffle(order)

    def at(part: str) -> str:
        return ", ".join(f"d{order.index(letter)}" for letter in part)

    inputs = [k.shaped(element, *(sizes[letter] for letter in part)) for part in factors]
    output = k.shaped(element, *(sizes[letter] for letter in result))
    _start(d, k, output)
    alpha = d.constant(element=element) if d.chance(0.25) else None

    def body(read: list[Value], old: list[Value]) -> list[Value]:
        product = read[0]
        for value in read[1:]:
            product = k.mul(product, value)
        return [k.add(old[0], k.mul(product, alpha) if alpha else product)]

    k.generic(
        [sizes[letter] for letter in order],
        [order.index(letter) for letter in letters if letter not in result],
        [(array, at(part)) for array, part in zip(inputs, factors, strict=True)],
        [(output, at(result))],
        body,
    )
    _epilogue(d, k, output, chance=0.15)


# --- convolutions -----------------------------------------------------------------------------------------------------


def _window(size: int, kernel: int, stride: int, dilation: int) -> int:
    """Input positions that `size` outputs of a convolution read."""
    return (size - 1) * stride + (kernel - 1) * dilation + 1


def _conv_attributes(stride: int, dilation: int, rank: int) -> str:
    def dense(value: int) -> str:
        return f"dense<{value}> : tensor<{rank}xi64>"

    return f" {{dilations = {dense(dilation)}, strides = {dense(stride)}}}"


def _scaled_conv(d: Draw, layer: shapes.Convolution, share: float = 1.0) -> dict[str, int]:
    taps = min(layer.kernel, 8) if layer.height > 1 else layer.kernel
    sizes = {"h": layer.height, "w": layer.width, "c": layer.channels // layer.groups, "f": layer.filters}
    made = fit(d.rng, sizes, _volume(d, share) / (taps * taps))
    return made | {"taps": taps, "stride": min(layer.stride, taps) if layer.stride > 2 else layer.stride}


def _padded(d: Draw, k: LinalgKernel, element: str, layout: str, n: int, h: int, w: int, c: int) -> Array:
    """The input of a convolution, sometimes copied into a buffer with a border of zeros first."""
    shape = {"nhwc": (n, h, w, c), "nchw": (n, c, h, w)}[layout]
    if min(h, w) < 3 or not d.chance(0.25):
        return k.shaped(element, *shape)
    border = k.shaped(element, *shape, local=True)
    inner = k.shaped(element, *((n, h - 2, w - 2, c) if layout == "nhwc" else (n, c, h - 2, w - 2)))
    k.fill(0, border)
    at = "d0, d1 + 1, d2 + 1, d3" if layout == "nhwc" else "d0, d1, d2 + 1, d3 + 1"
    k.generic(inner.extents, (), [(inner, "d0, d1, d2, d3")], [(border, at)], lambda read, old: read)
    return border


CONV_LAYOUTS = (
    ("conv_2d_nhwc_hwcf", "nhwc", "hwcf"),
    ("conv_2d_nhwc_fhwc", "nhwc", "fhwc"),
    ("conv_2d_nchw_fchw", "nchw", "fchw"),
)


def _convolve(
    d: Draw, k: LinalgKernel, op: str, source: Array, weights: Array, result: Array, *, stride: int, dilation: int
) -> None:
    """A two-dimensional convolution of CONV_LAYOUTS."""
    filters = weights.extents[op.rsplit("_", 1)[1].index("f")]
    volume = math.prod(result.extents) * math.prod(weights.extents) / filters
    k.named(op, [source, weights], [result], volume=volume, before=_conv_attributes(stride, dilation, 2))


def conv_2d(d: Draw, k: LinalgKernel) -> None:
    """Convolutions of ResNet, U-Net, VGG, DeepLab, ViT's patches: three layouts, strides, dilations, borders."""
    layer = d.rng.choice([one for one in shapes.CONVOLUTIONS if one.groups == 1])
    a_type, b_type, c_type = _types(d)
    made = _scaled_conv(d, layer)
    h, w, c, f, taps, stride = (made[name] for name in ("h", "w", "c", "f", "taps", "stride"))
    dilation = min(layer.dilation, 3)
    n = d.rng.choice((1, 1, 1, 2)) if h * w < 400 else 1
    high, wide = _window(h, taps, stride, dilation), _window(w, taps, stride, dilation)
    if d.chance(0.08):  # the bare form: one plane
        source, weights, result = k.shaped(c_type, high, wide), k.shaped(c_type, taps, taps), k.shaped(c_type, h, w)
        if stride == dilation == 1:
            _start(d, k, result)
            k.named("conv_2d", [source, weights], [result], volume=h * w * taps * taps)
            return _epilogue(d, k, result, chance=0.3)
    op, layout, order = d.rng.choice(CONV_LAYOUTS)
    source = _padded(d, k, a_type, layout, n, high, wide, c)
    sizes = {"h": taps, "w": taps, "c": c, "f": f}
    weights = k.shaped(b_type, *(sizes[letter] for letter in order))
    result = k.shaped(c_type, *((n, h, w, f) if layout == "nhwc" else (n, f, h, w)))
    _start(d, k, result)
    _convolve(d, k, op, source, weights, result, stride=stride, dilation=dilation)
    return _epilogue(d, k, result, chance=0.15 if layout == "nhwc" else 0.0)


def conv_grouped(d: Draw, k: LinalgKernel) -> None:
    """Grouped convolutions of ResNeXt, ShuffleNet, AlexNet: four layouts."""
    layer = d.rng.choice([one for one in shapes.CONVOLUTIONS if one.groups > 1])
    a_type, b_type, c_type = _types(d)
    groups = min(layer.groups, d.rng.choice((2, 3, 4, 8, 32)))
    sizes = {
        "h": layer.height,
        "w": layer.width,
        "c": layer.channels // layer.groups,
        "f": layer.filters // layer.groups,
    }
    made = fit(d.rng, sizes, _volume(d) / (groups * layer.kernel**2))
    h, w, c, f = (max(1, made[name]) for name in "hwcf")
    taps, stride = layer.kernel, d.rng.choice((1, 1, 2))
    high, wide = _window(h, taps, stride, 1), _window(w, taps, stride, 1)
    op, in_order, weight_order, out_order = d.rng.choice(
        (
            ("conv_2d_ngchw_fgchw", "gchw", "fgchw", "gfhw"),
            ("conv_2d_ngchw_gfchw", "gchw", "gfchw", "gfhw"),
            ("conv_2d_nhwgc_gfhwc", "hwgc", "gfhwc", "hwgf"),
        )
    )
    inside = {"g": groups, "c": c, "h": high, "w": wide}
    weight = {"g": groups, "c": c, "h": taps, "w": taps, "f": f}
    outside = {"g": groups, "f": f, "h": h, "w": w}
    source = k.shaped(a_type, 1, *(inside[letter] for letter in in_order))
    weights = k.shaped(b_type, *(weight[letter] for letter in weight_order))
    result = k.shaped(c_type, 1, *(outside[letter] for letter in out_order))
    _start(d, k, result)
    volume = groups * f * h * w * c * taps * taps
    k.named(op, [source, weights], [result], volume=volume, before=_conv_attributes(stride, 1, 2))
    _epilogue(d, k, result, chance=0.15 if out_order == "hwgf" else 0)


def conv_1d_3d(d: Draw, k: LinalgKernel) -> None:
    """Convolutions over time (Whisper, WaveNet) and over volumes (3-D U-Net, video networks)."""
    a_type, b_type, c_type = _types(d)
    if d.chance(0.55):
        length, c, f, taps = d.rng.choice(
            (
                (3000, 80, 384, 3),
                (1500, 384, 384, 3),
                (16000, 1, 512, 10),
                (7999, 512, 512, 3),
                (4096, 64, 64, 2),
                (999, 40, 256, 5),
            )
        )
        made = fit(d.rng, {"l": length, "c": c, "f": f}, _volume(d) / taps)
        length, c, f = made["l"], made["c"], made["f"]
        stride, dilation = d.rng.choice(((1, 1), (1, 1), (2, 1), (1, 2), (1, 4), (5, 1)))
        long = _window(length, taps, stride, dilation)
        if d.chance(0.15):
            source, weights, result = (
                k.shaped(c_type, length + taps - 1),
                k.shaped(c_type, taps),
                k.shaped(c_type, length),
            )
            _start(d, k, result)
            k.named("conv_1d", [source, weights], [result], volume=length * taps)
            return _epilogue(d, k, result, chance=0.3)
        last = d.chance(0.5)
        source = k.shaped(a_type, 1, *((long, c) if last else (c, long)))
        weights = k.shaped(b_type, *((taps, c, f) if last else (f, c, taps)))
        result = k.shaped(c_type, 1, *((length, f) if last else (f, length)))
        _start(d, k, result)
        op = "conv_1d_nwc_wcf" if last else "conv_1d_ncw_fcw"
        attributes = _conv_attributes(stride, dilation, 1)
        k.named(op, [source, weights], [result], volume=length * c * f * taps, before=attributes)
        return _epilogue(d, k, result, chance=0.2 if last else 0)
    depth, h, w, c, f = d.rng.choice(
        ((16, 112, 112, 3, 64), (8, 56, 56, 64, 64), (64, 64, 64, 32, 32), (4, 28, 28, 128, 256))
    )
    taps = d.rng.choice((1, 2, 3, 3))
    made = fit(d.rng, {"d": depth, "h": h, "w": w, "c": c, "f": f}, _volume(d) / taps**3)
    depth, h, w, c, f = (made[name] for name in "dhwcf")
    stride, dilation = d.rng.choice(((1, 1), (1, 1), (2, 1), (1, 2)))
    inside = [_window(size, taps, stride, dilation) for size in (depth, h, w)]
    if d.chance(0.15):
        source, weights = (
            k.shaped(c_type, depth + taps - 1, h + taps - 1, w + taps - 1),
            k.shaped(c_type, taps, taps, taps),
        )
        result = k.shaped(c_type, depth, h, w)
        _start(d, k, result)
        return k.named("conv_3d", [source, weights], [result], volume=depth * h * w * taps**3)
    last = d.chance(0.5)
    source = k.shaped(a_type, 1, *((*inside, c) if last else (c, *inside)))
    weights = k.shaped(b_type, *((taps, taps, taps, c, f) if last else (f, c, taps, taps, taps)))
    result = k.shaped(c_type, 1, *((depth, h, w, f) if last else (f, depth, h, w)))
    _start(d, k, result)
    op = "conv_3d_ndhwc_dhwcf" if last else "conv_3d_ncdhw_fcdhw"
    volume = depth * h * w * c * f * taps**3
    k.named(op, [source, weights], [result], volume=volume, before=_conv_attributes(stride, dilation, 3))
    return _epilogue(d, k, result, chance=0.1 if last else 0)


def depthwise_conv(d: Draw, k: LinalgKernel) -> None:
    """Depthwise convolutions of MobileNet, EfficientNet, ConvNeXt, Conformer: one to three dimensions."""
    layer = d.rng.choice(shapes.DEPTHWISE)
    a_type, b_type, c_type = _types(d)
    taps = layer.kernel
    rank = 1 if layer.height == 1 else d.rng.choices((1, 2, 3), (2, 8, 1))[0]
    extent = [layer.width] * rank
    multiplier = d.rng.choice((2, 3)) if d.chance(0.15) else 1
    sizes = {"c": layer.channels} | {str(at): size for at, size in enumerate(extent)}
    made = fit(d.rng, sizes, _volume(d) / (taps**rank * multiplier))
    c = made["c"]
    out = [made[str(at)] for at in range(rank)]
    stride, dilation = layer.stride, d.rng.choice((1, 1, 1, 2))
    inside = [_window(size, taps, stride, dilation) for size in out]
    spatial = {1: "w", 2: "hw", 3: "dhw"}[rank]
    channels_first = multiplier == 1 and d.chance(0.4)
    n = d.rng.choice((1, 1, 2))
    if channels_first:
        op = f"depthwise_conv_{rank}d_nc{spatial}_c{spatial}"
        source, weights, result = (
            k.shaped(a_type, n, c, *inside),
            k.shaped(b_type, c, *[taps] * rank),
            k.shaped(c_type, n, c, *out),
        )
    else:
        many = multiplier > 1
        op = f"depthwise_conv_{rank}d_n{spatial}c_{spatial}c{'m' if many else ''}"
        tail = [multiplier] if many else []
        source, weights, result = (
            k.shaped(a_type, n, *inside, c),
            k.shaped(b_type, *[taps] * rank, c, *tail),
            k.shaped(c_type, n, *out, c, *tail),
        )
    _start(d, k, result)
    volume = math.prod(result.extents) * taps**rank
    k.named(op, [source, weights], [result], volume=volume, before=_conv_attributes(stride, dilation, rank))
    _epilogue(d, k, result, chance=0.0 if channels_first or multiplier > 1 else 0.25)


def pooling(d: Draw, k: LinalgKernel) -> None:
    """Maximum, minimum and mean pooling over one to three dimensions, global pooling included."""
    layer = d.rng.choice(shapes.POOLING)
    element = d.rng.choices(("f32", "f64", "i8", "i32", "f16", "i16"), (50, 15, 12, 10, 6, 4))[0]
    real = element.startswith("f")
    rank, first = d.rng.choices(((2, False), (2, True), (1, False), (1, True), (3, False)), (6, 3, 2, 1, 2))[0]
    kinds = ["max", "sum"] if first else ["max", "max", "sum", "min"]
    if not real and not first and rank < 3:
        kinds += ["max_unsigned", "min_unsigned"]
    kind = d.rng.choice(kinds)
    taps, stride = layer.kernel, layer.stride
    sizes = {"c": layer.channels, "h": layer.height, "w": layer.width}
    made = fit(d.rng, sizes, _volume(d) / taps**rank)
    c, out = made["c"], ([made["h"], made["w"]] if rank == 2 else [made["w"]] * rank)
    if rank == 3:
        out[0] = max(1, out[0] // 2)
    inside = [_window(size, taps, stride, 1) for size in out]
    spatial = {1: "w", 2: "hw", 3: "dhw"}[rank]
    op = f"pooling_nc{spatial}_{kind}" if first else f"pooling_n{spatial}c_{kind}"
    source = k.shaped(element, 1, *((c, *inside) if first else (*inside, c)))
    window = k.shaped(element, *[taps] * rank)
    result = k.shaped(element, 1, *((c, *out) if first else (*out, c)))
    k.fill(0 if kind == "sum" or not real else -1e4 if kind == "max" else 1e4, result)
    k.cleared.add(result.name)
    attributes = _conv_attributes(stride, 1, rank)
    k.named(op, [source, window], [result], volume=math.prod(result.extents) * taps**rank, before=attributes)
    if kind == "sum" and real and d.chance(0.8):
        share = k.constant(1 / taps**rank, element)
        k.elementwise(result.extents, [result], result, lambda v: k.mul(v[0], share))
    elif d.chance(0.2):
        _epilogue(d, k, result)


def quantized(d: Draw, k: LinalgKernel) -> None:
    """Quantized layers: products and convolutions of i8 with zero points, and the rescaling back to i8."""
    kind = d.rng.choice(("matmul", "matmul", "batch", "conv", "conv", "depthwise"))
    zero_a, zero_b = k.constant(d.rng.randint(-20, 20), "i32"), k.constant(d.rng.randint(-8, 8), "i32")
    narrow = d.rng.choice(("i8", "i8", "i8", "i16"))
    if kind in ("matmul", "batch"):
        gemm = d.rng.choice(shapes.GEMMS)
        made = fit(d.rng, {"m": gemm.m, "n": gemm.n, "k": gemm.k}, _volume(d))
        m, n, depth = made["m"], made["n"], made["k"]
        batch = [d.rng.choice((2, 3, 4))] if kind == "batch" else []
        a, b = k.shaped(narrow, *batch, m, depth), k.shaped(narrow, *batch, depth, n)
        result = k.shaped("i32", *batch, m, n)
        _start(d, k, result)
        volume = m * n * depth * math.prod(batch)
        k.named(f"quantized_{'batch_' if batch else ''}matmul", [a, b, zero_a, zero_b], [result], volume=volume)
    else:
        table = shapes.DEPTHWISE if kind == "depthwise" else [one for one in shapes.CONVOLUTIONS if one.groups == 1]
        layer = d.rng.choice([one for one in table if one.height > 1])
        made = _scaled_conv(d, layer)
        h, w, c, f, taps, stride = (made[name] for name in ("h", "w", "c", "f", "taps", "stride"))
        high, wide = _window(h, taps, stride, 1), _window(w, taps, stride, 1)
        source = k.shaped(narrow, 1, high, wide, c)
        if kind == "depthwise":
            op, weights, result = (
                "depthwise_conv_2d_nhwc_hwc_q",
                k.shaped(narrow, taps, taps, c),
                k.shaped("i32", 1, h, w, c),
            )
        elif d.chance(0.5):
            op, weights, result = "conv_2d_nhwc_hwcf_q", k.shaped(narrow, taps, taps, c, f), k.shaped("i32", 1, h, w, f)
        else:
            op, weights, result = "conv_2d_nhwc_fhwc_q", k.shaped(narrow, f, taps, taps, c), k.shaped("i32", 1, h, w, f)
        _start(d, k, result)
        volume = math.prod(result.extents) * taps * taps * (1 if kind == "depthwise" else c)
        attributes = _conv_attributes(stride, 1, 2)
        k.named(op, [source, weights, zero_a, zero_b], [result], volume=volume, before=attributes)
    if not d.chance(0.6):
        return
    channels = k.shaped("i32", result.extents[-1])
    out = k.shaped("i8", *result.extents)
    by_shift, shift = d.chance(0.5), d.rng.randint(4, 12)

    def rescaled(values: list[Value]) -> Value:
        total = k.add(values[0], values[1])
        if by_shift:
            factor = k.constant(d.rng.randint(90, 127), "i32")
            total = k.op(
                "arith.shrsi",
                k.add(k.mul(total, factor), k.constant(1 << (shift - 1), "i32")),
                k.constant(shift, "i32"),
            )
        else:
            real = k.mul(k.cast("arith.sitofp", total, "f32"), k.constant(round(d.rng.uniform(0.001, 0.1), 5), "f32"))
            total = k.cast("arith.fptosi", k.clamp(k.op("math.roundeven", real), -128, 127), "i32")
        return k.cast("arith.trunci", k.clamp(total, -128, 127), "i8")

    k.elementwise(result.extents, [result, channels], out, rescaled)


# --- maps, reductions, layouts ----------------------------------------------------------------------------------------

UNARY = ("exp", "log", "abs", "ceil", "floor", "negf", "reciprocal", "round", "sqrt", "rsqrt", "square", "tanh", "erf")
BINARY = ("add", "sub", "mul", "max", "min", "div", "powf")
LIBRARY = frozenset(("exp", "log", "tanh", "erf", "powf"))
"""Named operations that call the mathematical library, for which fewer elements are drawn."""


def elementwise(d: Draw, k: LinalgKernel) -> None:
    """Named elementwise operations, alone and in chains through buffers, over feature maps and token matrices."""
    element = d.rng.choices(("f32", "f64", "f16", "i32", "i8", "i64", "i16"), (48, 22, 6, 10, 5, 5, 4))[0]
    real = element.startswith("f")
    length = d.rng.choices((1, 2, 3, 4, 6), (3, 4, 3, 2, 1))[0] if element != "f16" else 1
    names = [
        d.rng.choice(
            (*UNARY, *BINARY, *BINARY, "select") if real else ("add", "sub", "mul", "max", "min", "div", "copy")
        )
        for _ in range(length)
    ]
    heavy = any(name in LIBRARY for name in names)
    volume = _volume(d, 0.02 if heavy else 0.15) / length
    if d.chance(0.5):
        place = d.rng.choice(shapes.FEATURE_MAPS)
        sizes = fit(d.rng, {"h": place.height, "w": place.width, "c": place.channels}, volume)
        shape = [sizes["h"], sizes["w"], sizes["c"]] if d.chance(0.5) else [sizes["c"], sizes["h"], sizes["w"]]
        if d.chance(0.3):
            shape = [1, *shape]
    else:
        row = d.rng.choice(shapes.TOKENS)
        sizes = fit(d.rng, {"t": row.tokens, "w": row.width}, volume)
        shape = [sizes["t"], sizes["w"]] if d.chance(0.75) else [sizes["t"] * sizes["w"]]
    total = math.prod(shape)
    current = k.shaped(element, *shape)
    for at, name in enumerate(names):
        reuse = real is False and d.chance(0.3)
        target = current if reuse else k.shaped(element, *shape, local=at + 1 < length and d.chance(0.6))
        if name in UNARY:
            if name in ("log", "sqrt", "rsqrt", "reciprocal"):  # of |x| + 1
                k.elementwise(
                    shape, [current], target, lambda v: k.add(k.op("math.absf", v[0]), k.constant(1, element))
                )
                current = target
            elif name == "exp":
                k.elementwise(shape, [current], target, lambda v: k.clamp(v[0], -4, 1))
                current = target
            k.named(name, [current], [target], volume=total)
        elif name == "select":
            # linalg.select wants a memref of i1, which mlir-opt does not lower to LLVM.
            mask, other = k.shaped("i8", *shape), k.shaped(element, *shape)

            def chosen(v: list[Value]) -> Value:
                return k.select(k.compare("sgt", v[2], k.constant(1, "i8")), v[0], v[1])

            k.elementwise(shape, [current, other, mask], target, chosen)
        elif name == "copy":
            k.named(name, [current], [target], volume=total)
        elif name == "div" and not real:
            k.elementwise(
                shape,
                [current, k.shaped(element, *shape)],
                target,
                lambda v: k.op(
                    "arith.divsi",
                    v[0],
                    k.op("arith.ori", k.op("arith.andi", v[1], k.constant(7, element)), k.constant(1, element)),
                ),
            )
        elif name == "powf":
            base = k.shaped(element, *shape, local=True)
            k.named("abs", [current], [base], volume=total)
            k.named(name, [base, k.shaped(element, *shape)], [target], volume=total)
        else:
            k.named(name, [current, k.shaped(element, *shape)], [target], volume=total)
        current = target


def generic_map(d: Draw, k: LinalgKernel) -> None:
    """Generics with several inputs and results, broadcasts, transposed inputs and bodies of many operations."""
    rank = d.rng.choices((1, 2, 3, 4), (1, 4, 4, 2))[0]
    base = [d.rng.choice((3, 7, 16, 33, 49, 64, 77, 128, 197, 224, 320, 768)) for _ in range(rank)]
    sizes = fit(d.rng, {str(at): size for at, size in enumerate(base)}, _volume(d, 0.08))
    shape = [sizes[str(at)] for at in range(rank)]
    dims = list(range(rank))
    inputs = []
    for _ in range(d.rng.choice((1, 2, 3, 4, 5))):
        chosen = list(dims)
        style = d.rng.random()
        if style < 0.2:
            d.rng.shuffle(chosen)
        elif style < 0.45:
            chosen = sorted(d.rng.sample(dims, d.rng.randint(1, rank)))
        subscripts = [f"d{at}" for at in chosen]
        extents = [shape[at] for at in chosen]
        if d.chance(0.15):  # shifted or strided
            at = d.rng.randrange(len(chosen))
            factor, shift = d.rng.choice(((1, 1), (1, 3), (2, 0), (2, 1), (3, 2)))
            subscripts[at] += f" * {factor} + {shift}"
            extents[at] = (extents[at] - 1) * factor + shift + 1
        inputs.append((k.shaped(d.element, *extents), ", ".join(subscripts)))
    outputs = []
    for _ in range(d.rng.choices((1, 2, 3), (6, 2, 1))[0]):
        chosen = d.rng.sample(dims, rank) if d.chance(0.2) else dims
        outputs.append((k.shaped(d.element, *(shape[at] for at in chosen)), ", ".join(f"d{at}" for at in chosen)))
    extra, with_index = d.rng.choice((0, 1, 2, 4, 8, 14)), d.chance(0.2)

    def body(read: list[Value], old: list[Value]) -> list[Value]:
        values = list(read)
        if with_index:
            values.append(k.iteration(d.rng.randrange(rank), d.element))
        return [mix(d, d.rng.sample(values, d.rng.randint(1, len(values))), extra) for _ in old]

    k.generic(shape, (), inputs, outputs, body)
    if d.chance(0.35):
        k.generic(
            shape, (), [(outputs[0][0], outputs[0][1])], [outputs[0]], lambda read, old: [mix(d, read, 1 + extra // 2)]
        )


def reduce(d: Draw, k: LinalgKernel) -> None:
    """`linalg.reduce` and reducing generics: sums, extrema, moments, positions of the largest, over any dimensions."""
    element = d.rng.choices(("f32", "f64", "f16", "i32", "i8", "i64"), (48, 24, 5, 12, 6, 5))[0]
    real = element.startswith("f")
    if d.chance(0.5):
        place = d.rng.choice(shapes.FEATURE_MAPS)
        named = {"a": place.channels, "b": place.height, "c": place.width}
    else:
        row = d.rng.choice(shapes.TOKENS)
        named = {"a": row.tokens, "b": row.width}
    sizes = fit(d.rng, named, _volume(d, 0.2))
    shape = list(sizes.values())
    d.rng.shuffle(shape)
    rank = len(shape)
    over = sorted(d.rng.sample(range(rank), d.rng.randint(1, rank)))
    kept = [at for at in range(rank) if at not in over]
    out_shape = [shape[at] for at in kept]
    source = k.shaped(element, *shape)
    at_out = ", ".join(f"d{at}" for at in kept)
    at_in = ", ".join(f"d{at}" for at in range(rank))
    kind = d.rng.choice(("sum", "max", "min", "named", "named", "moments", "argmax", "norm", "range", "product"))
    if kind == "named":
        target = k.shaped(element, *out_shape)
        op = d.rng.choice(("addf", "maximumf", "minimumf") if real else ("addi", "maxsi", "minsi", "xori", "ori"))
        _start(d, k, target)
        dimensions = ", ".join(map(str, over))
        before, after = f" {{ arith.{op} }}", f" dimensions = [{dimensions}]"
        return k.named("reduce", [source], [target], volume=math.prod(shape), before=before, after=after)
    results = 2 if kind in ("moments", "range", "argmax") else 1
    targets = [k.shaped("i32" if kind == "argmax" and at else element, *out_shape) for at in range(results)]
    start = (
        {"max": -1e4, "argmax": -1e4, "min": 1e4, "product": 1}.get(kind, 0)
        if real
        else (1 if kind == "product" else 0)
    )
    for target in targets:
        k.fill(start, target)

    def body(read: list[Value], old: list[Value]) -> list[Value]:
        value = read[0]
        match kind:
            case "max":
                return [k.larger(old[0], value)]
            case "min":
                return [k.smaller(old[0], value)]
            case "moments":
                return [k.add(old[0], value), k.add(old[1], k.mul(value, value))]
            case "range":
                return [k.larger(old[0], value), k.smaller(old[1], value)]
            case "norm":
                return [k.add(old[0], k.op("math.absf", value) if real else k.mul(value, value))]
            case "product":
                return [k.mul(old[0], value if not real else k.smaller(value, k.constant(1, element)))]
            case "argmax":
                better = k.compare("ogt" if real else "sgt", value, old[0])
                return [k.select(better, value, old[0]), k.select(better, k.iteration(over[-1], "i32"), old[1])]
            case _:
                return [k.add(old[0], value)]

    return k.generic(shape, over, [(source, at_in)], [(target, at_out) for target in targets], body)


def layout(d: Draw, k: LinalgKernel) -> None:
    """Data movement: transposes, broadcasts, packing, im2col, padding, concatenation, pixel shuffle, upsampling."""
    element = d.rng.choice(("f32", "f32", "f32", "f64", "f16", "i8", "i16", "i32", "i64"))
    place = d.rng.choice(shapes.FEATURE_MAPS)
    sizes = fit(d.rng, {"c": place.channels, "h": place.height, "w": place.width}, _volume(d, 0.12))
    c, h, w = sizes["c"], sizes["h"], sizes["w"]
    total = float(c * h * w)
    kind = d.rng.choice(
        (
            "transpose",
            "transpose",
            "broadcast",
            "pack",
            "im2col",
            "pad",
            "concat",
            "shuffle",
            "upsample",
            "heads",
            "crop",
            "chain",
        )
    )

    def moved(read: list[Value], old: list[Value]) -> list[Value]:
        return read

    def through(shape: Sequence[int], read_at: str, write_at: str, source: Array, target: Array) -> None:
        k.generic(shape, (), [(source, read_at)], [(target, write_at)], moved)

    match kind:
        case "transpose":
            shape = d.rng.choice(([c, h, w], [h, w, c], [h * w, c], [2, c, h, w]))
            order = list(range(len(shape)))
            while order == sorted(order):
                d.rng.shuffle(order)
            source, target = k.shaped(element, *shape), k.shaped(element, *(shape[at] for at in order))
            k.named("transpose", [source], [target], volume=math.prod(shape), after=f" permutation = {order}")
        case "broadcast":
            added = d.rng.choice(([0], [1], [2], [0, 1], [1, 2], [0, 2]))
            source, target = (
                k.shaped(element, *((c, h, w)[at] for at in range(3) if at not in added)),
                k.shaped(element, c, h, w),
            )
            k.named("broadcast", [source], [target], volume=total, after=f" dimensions = {added}")
        case "pack":  # NCHW to NCHWc, and rows to tiles
            tile = d.rng.choice((4, 8, 16))
            blocks = max(1, c // tile)
            plain, packed = k.shaped(element, blocks * tile, h, w), k.shaped(element, blocks, h, w, tile)
            if d.chance(0.5):
                through((blocks, h, w, tile), f"d0 * {tile} + d3, d1, d2", "d0, d1, d2, d3", plain, packed)
            else:
                through((blocks, tile, h, w), f"d0 * {tile} + d1, d2, d3", "d0, d2, d3, d1", plain, packed)
        case "im2col":
            taps, stride = d.rng.choice(((3, 1), (3, 2), (5, 1), (2, 2), (7, 2)))
            channels = max(1, c // taps**2)
            source = k.shaped(element, _window(h, taps, stride, 1), _window(w, taps, stride, 1), channels)
            target = k.shaped(element, h, w, taps, taps, channels)
            at = f"d0 * {stride} + d2, d1 * {stride} + d3, d4"
            through((h, w, taps, taps, channels), at, "d0, d1, d2, d3, d4", source, target)
        case "pad":
            border = d.rng.choice((1, 1, 2, 3))
            source, target = k.shaped(element, c, h, w), k.shaped(element, c, h + 2 * border, w + 2 * border)
            k.fill(0, target)
            through((c, h, w), "d0, d1, d2", f"d0, d1 + {border}, d2 + {border}", source, target)
        case "concat":
            target, start = k.shaped(element, h, w, 2 * c + 1), 1  # behind one that was there, like a class token
            for _ in range(2):
                through((h, w, c), "d0, d1, d2", f"d0, d1, d2 + {start}", k.shaped(element, h, w, c), target)
                start += c
        case "shuffle":  # pixel shuffle, or channel shuffle
            r = d.rng.choice((2, 2, 3))
            channels = max(1, c // (r * r))
            source = k.shaped(element, channels, r, r, h, w)
            target = k.shaped(element, channels, h * r, w * r)
            through((channels, h, r, w, r), "d0, d2, d4, d1, d3", f"d0, d1 * {r} + d2, d3 * {r} + d4", source, target)
        case "upsample":  # each element to a patch, weighted as transposed convolutions do
            r = d.rng.choice((2, 2, 4))
            source, target = k.shaped(element, c, h, w), k.shaped(element, c, h * r, w * r)
            weights = k.shaped(element, r, r)
            k.generic(
                (c, h, r, w, r),
                (),
                [(source, "d0, d1, d3"), (weights, "d2, d4")],
                [(target, f"d0, d1 * {r} + d2, d3 * {r} + d4")],
                lambda read, old: [k.mul(read[0], read[1])],
            )
        case "heads":  # split the width in heads and bring them to the front
            heads = d.rng.choice((2, 4, 8, 12))
            width = max(1, c // heads)
            source, target = k.shaped(element, h * w, heads * width), k.shaped(element, heads, h * w, width)
            through((heads, h * w, width), f"d1, d0 * {width} + d2", "d0, d1, d2", source, target)
        case "crop":
            top, left = d.rng.randint(1, 5), d.rng.randint(1, 5)
            source, target = k.shaped(element, c, h + 2 * top, w + left), k.shaped(element, c, h, w)
            through((h, c, w), f"d1, d0 + {top}, d2 + {left}", "d1, d0, d2", source, target)
        case _:  # there and back through a buffer
            source, between, target = (
                k.shaped(element, c, h, w),
                k.shaped(element, h, w, c, local=True),
                k.shaped(element, w, h, c),
            )
            through((h, w, c), "d2, d0, d1", "d0, d1, d2", source, between)
            through((w, h, c), "d1, d0, d2", "d0, d1, d2", between, target)


# --- blocks of several operations -------------------------------------------------------------------------------------


def matmul_epilogue(d: Draw, k: LinalgKernel) -> None:
    """A dense layer with what follows it: bias, activation, residual, scaling, clamping."""
    gemm = d.rng.choice(shapes.GEMMS)
    a_type, b_type, c_type = _types(d)
    made = fit(d.rng, {"m": gemm.m, "n": gemm.n, "k": gemm.k}, _volume(d, 0.8))
    a, b = k.shaped(a_type, made["m"], made["k"]), k.shaped(b_type, made["k"], made["n"])
    c = k.shaped(c_type, made["m"], made["n"])
    k.cleared.add(c.name)
    if d.chance(0.5):
        k.fill(0, c)
    else:  # start with the bias
        bias = k.shaped(c_type, made["n"])
        k.elementwise(c.extents, [bias], c, lambda v: v[0])
    k.named("matmul", [a, b], [c], volume=float(math.prod(made.values())))
    _epilogue(d, k, c)
    if d.chance(0.3):
        _epilogue(d, k, c)


def conv_block(d: Draw, k: LinalgKernel) -> None:
    """Convolutions with batch norm and activation: single, basic, bottleneck, inverted, separable, with shortcut."""
    element = d.rng.choices(("f32", "f64"), (75, 25))[0]
    layer = d.rng.choice([one for one in shapes.CONVOLUTIONS if one.groups == 1 and one.kernel <= 5])
    kind = d.rng.choice(("single", "single", "single", "basic", "bottleneck", "inverted", "separable", "shortcut"))
    made = _scaled_conv(d, layer, 0.5 if kind == "single" else 0.25)
    h, w, c, f, taps = (made[name] for name in ("h", "w", "c", "f", "taps"))
    activation = d.rng.choice(CHEAP)

    def conv(source: Array, filters: int, size: int, rows: int, columns: int, *, activated: bool = True) -> Array:
        """One layer on a source with the border it needs."""
        weights = k.shaped(element, size, size, source.extents[3], filters)
        result = k.shaped(element, 1, rows, columns, filters, local=d.chance(0.5))
        k.fill(0, result)
        _convolve(d, k, "conv_2d_nhwc_hwcf", source, weights, result, stride=1, dilation=1)
        normalize(result, activated)
        return result

    def normalize(result: Array, activated: bool) -> None:
        scale, shift = k.shaped(element, result.extents[3]), k.shaped(element, result.extents[3])
        small = k.constant(0.01, element)

        def body(v: list[Value]) -> Value:
            value = k.add(k.mul(k.mul(v[0], small), v[1]), v[2])
            return k.activation(activation, value) if activated else value

        k.elementwise(result.extents, [result, scale, shift], result, body)

    def deep(source: Array, size: int, rows: int, columns: int) -> Array:
        weights = k.shaped(element, size, size, source.extents[3])
        result = k.shaped(element, 1, rows, columns, source.extents[3])
        k.fill(0, result)
        volume = math.prod(result.extents) * size * size
        k.named(
            "depthwise_conv_2d_nhwc_hwc", [source, weights], [result], volume=volume, before=_conv_attributes(1, 1, 2)
        )
        normalize(result, True)
        return result

    edge = taps - 1
    match kind:
        case "single":
            result = conv(k.shaped(element, 1, h + edge, w + edge, c), f, taps, h, w)
        case "basic":
            first = conv(k.shaped(element, 1, h + 4, w + 4, c), c, 3, h + 2, w + 2)
            result = conv(first, c, 3, h, w, activated=False)
        case "bottleneck":
            inner = max(1, c // 4)
            first = conv(k.shaped(element, 1, h + 2, w + 2, c), inner, 1, h + 2, w + 2)
            result = conv(conv(first, inner, 3, h, w), c, 1, h, w, activated=False)
        case "inverted":
            wide = min(c, 24) * d.rng.choice((3, 6))
            first = conv(k.shaped(element, 1, h + 2, w + 2, min(c, 24)), wide, 1, h + 2, w + 2)
            result = conv(deep(first, 3, h, w), min(c, 24), 1, h, w, activated=False)
        case "separable":
            result = conv(deep(k.shaped(element, 1, h + edge, w + edge, c), taps, h, w), f, 1, h, w)
        case _:
            source = k.shaped(element, 1, h, w, c)
            result, other = conv(source, f, 1, h, w, activated=False), conv(source, f, 1, h, w, activated=False)
            k.named("add", [result, other], [result], volume=math.prod(result.extents))
    if kind in ("basic", "bottleneck", "inverted") or d.chance(0.25):
        residual = k.shaped(element, *result.extents)
        target = k.shaped(element, *result.extents)
        k.elementwise(result.extents, [result, residual], target, lambda v: k.activation("relu", k.add(v[0], v[1])))


def normalization(d: Draw, k: LinalgKernel) -> None:
    """Softmax and the batch, layer, group, instance and RMS norms as chains of reductions and maps through buffers."""
    element = d.rng.choices(("f32", "f64"), (75, 25))[0]
    kind = d.rng.choice(("softmax", "softmax", "layer", "batch", "group", "instance", "rms", "l2", "log-softmax"))
    if kind in ("softmax", "log-softmax", "layer", "rms", "l2"):
        row = d.rng.choice(shapes.TOKENS)
        sizes = fit(d.rng, {"t": row.tokens, "w": row.width}, _volume(d, 0.02 if "softmax" in kind else 0.1))
        shape, over = [sizes["t"], sizes["w"]], [1]
        if d.chance(0.2):
            shape, over = shape[::-1], [0]
    else:
        place = d.rng.choice(shapes.FEATURE_MAPS)
        sizes = fit(d.rng, {"c": place.channels, "h": place.height, "w": place.width}, _volume(d, 0.08))
        c, h, w = sizes["c"], sizes["h"], sizes["w"]
        groups = next((g for g in (32, 16, 8, 4, 2) if c % g == 0 and g < c), 1)
        shape, over = {
            "batch": ([h, w, c], [0, 1]),
            "instance": ([c, h, w], [1, 2]),
            "group": ([groups, c // groups, h, w], [1, 2, 3]),
        }[kind]
    rank = len(shape)
    kept = [at for at in range(rank) if at not in over]
    small = [shape[at] for at in kept]
    source = k.shaped(element, *shape)
    at_in, at_out = ", ".join(f"d{at}" for at in range(rank)), ", ".join(f"d{at}" for at in kept)
    share = k.constant(1 / math.prod(shape[at] for at in over), element)

    def reduced(arrays: Sequence[Array], first: float, body: Callable[[list[Value], Value], Value]) -> Array:
        target = k.shaped(element, *small, local=d.chance(0.7))
        k.fill(first, target)
        inputs = [(array, at_in if len(array.extents) == rank else at_out) for array in arrays]
        k.generic(shape, over, inputs, [(target, at_out)], lambda read, old: [body(read, old[0])])
        return target

    def mapped(arrays: Sequence[Array], body: Callable[[list[Value]], Value], *, local: bool = False) -> Array:
        target = k.shaped(element, *shape, local=local)
        inputs = [(array, at_in if len(array.extents) == rank else at_out) for array in arrays]
        k.generic(shape, (), inputs, [(target, at_in)], lambda read, old: [body(read)])
        return target

    if "softmax" in kind:
        top = reduced([source], -1e4, lambda v, old: k.larger(old, v[0]))
        if kind == "softmax":
            raised = mapped([source, top], lambda v: k.exp(k.sub(v[0], v[1])), local=d.chance(0.5))
            total = reduced([raised], 0, lambda v, old: k.add(old, v[0]))
            mapped([raised, total], lambda v: k.div(v[0], v[1]))
        else:
            total = reduced([source, top], 0, lambda v, old: k.add(old, k.exp(k.sub(v[0], v[1]))))
            mapped([source, top, total], lambda v: k.sub(k.sub(v[0], v[1]), k.op("math.log", v[2])))
        return
    epsilon = k.constant(1e-5, element)
    if kind in ("rms", "l2"):
        squares = reduced([source], 0, lambda v, old: k.add(old, k.mul(v[0], v[0])))
        factor = share if kind == "rms" else k.constant(1, element)
        mapped([source, squares], lambda v: k.mul(v[0], k.op("math.rsqrt", k.add(k.mul(v[1], factor), epsilon))))
        return
    mean = reduced([source], 0, lambda v, old: k.add(old, k.mul(v[0], share)))

    def deviation(v: list[Value], old: Value) -> Value:
        away = k.sub(v[0], v[1])
        return k.add(old, k.mul(away, k.mul(away, share)))

    variance = reduced([source, mean], 0, deviation)
    affine = d.chance(0.6)
    tail = [k.shaped(element, *small), k.shaped(element, *small)] if affine else []

    def normal(v: list[Value]) -> Value:
        value = k.mul(k.sub(v[0], v[1]), k.op("math.rsqrt", k.add(v[2], epsilon)))
        return k.add(k.mul(value, v[3]), v[4]) if affine else value

    mapped([source, mean, variance, *tail], normal)


def network_block(d: Draw, k: LinalgKernel) -> None:
    """Several layers: MLP towers, attention out of named operations, feature interaction, LSTM gates, MLP-Mixer."""
    element = d.rng.choices(("f32", "f64"), (78, 22))[0]
    kind = d.rng.choice(("tower", "tower", "tower", "attention", "attention", "interaction", "gates", "mixer"))
    if kind == "tower":
        tower = d.rng.choice(shapes.TOWERS)
        n = min(len(tower.widths), d.rng.choice((3, 3, 4, 6)))
        begin = d.rng.randint(0, len(tower.widths) - n)
        widths = tower.widths[begin : begin + n]
        budget = _volume(d, 0.7)
        full = tower.batch * sum(a * b for a, b in pairwise(widths))
        factor = min(1.0, (budget / full) ** (1 / 3))
        batch = max(1, round(tower.batch * factor))
        widths = tuple(max(1, round(size * factor)) if size > 8 else size for size in widths)
        current = k.shaped(element, batch, widths[0])
        activation = d.rng.choice((*CHEAP, "sigmoid", "tanh", "gelu-tanh"))
        for before, after in pairwise(widths):
            weights, bias = k.shaped(element, before, after), k.shaped(element, after)
            result = k.shaped(element, batch, after, local=d.chance(0.5))
            k.fill(0, result)
            k.named("matmul", [current, weights], [result], volume=batch * before * after)
            small = k.constant(1 / before, element)

            def biased(v: list[Value], small: Value = small) -> Value:
                return k.activation(activation, k.add(k.mul(v[0], small), v[1]))

            k.elementwise(result.extents, [result, bias], result, biased)
            current = result
        k.named("copy", [current], [k.shaped(element, *current.extents)], volume=math.prod(current.extents))
    elif kind == "attention":
        layer = d.rng.choice(shapes.ATTENTION)
        made = fit(d.rng, {"h": layer.heads, "q": layer.queries, "t": layer.keys, "w": layer.width}, _volume(d, 0.25))
        h, q, t, w = (made[name] for name in "hqtw")
        a, b, values = k.shaped(element, h, q, w), k.shaped(element, h, w, t), k.shaped(element, h, t, w)
        scores, out = k.shaped(element, h, q, t, local=d.chance(0.5)), k.shaped(element, h, q, w)
        k.fill(0, scores)
        k.named("batch_matmul", [a, b], [scores], volume=h * q * t * w)
        scale = k.constant(1 / math.sqrt(w), element)
        total = k.shaped(element, h, q, local=True)
        k.fill(0, total)

        def weight(read: list[Value], old: list[Value]) -> list[Value]:
            raised = k.exp(k.clamp(k.mul(read[0], scale), -30, 30))
            return [raised, k.add(old[1], raised)]

        k.generic((h, q, t), (2,), [(scores, "d0, d1, d2")], [(scores, "d0, d1, d2"), (total, "d0, d1")], weight)
        k.generic(
            (h, q, t), (), [(total, "d0, d1")], [(scores, "d0, d1, d2")], lambda read, old: [k.div(old[0], read[0])]
        )
        k.fill(0, out)
        k.named("batch_matmul", [scores, values], [out], volume=h * q * t * w)
    elif kind == "interaction":  # DLRM: dot products of all pairs of embeddings
        made = fit(d.rng, {"b": 128, "f": 27, "g": 27, "w": 64}, _volume(d, 0.8))
        b_, f, w = made["b"], made["f"], made["w"]
        features, pairs = k.shaped(element, b_, f, w), k.shaped(element, b_, f, f)
        k.fill(0, pairs)
        k.generic(
            (b_, f, f, w),
            (3,),
            [(features, "d0, d1, d3"), (features, "d0, d2, d3")],
            [(pairs, "d0, d1, d2")],
            lambda read, old: [k.add(old[0], k.mul(read[0], read[1]))],
        )
        below, flat = k.shaped(element, f, f), k.shaped(element, b_, f, f)
        k.generic(
            (b_, f, f),
            (),
            [(pairs, "d0, d1, d2"), (below, "d1, d2")],
            [(flat, "d0, d1, d2")],
            lambda read, old: [k.mul(read[0], read[1])],
        )
    elif kind == "gates":  # LSTM or GRU cell
        made = fit(d.rng, {"b": 16, "g": 4, "h": 512, "x": 512}, _volume(d, 0.5), free=("b", "h", "x"))
        b_, h, x = made["b"], made["h"], made["x"]
        gates = k.shaped(element, 4, b_, h)
        k.fill(0, gates)
        for width in (x, h):
            values, weights = k.shaped(element, b_, width), k.shaped(element, 4, width, h)
            k.generic(
                (4, b_, h, width),
                (3,),
                [(values, "d1, d3"), (weights, "d0, d3, d2")],
                [(gates, "d0, d1, d2")],
                lambda read, old: [k.add(old[0], k.mul(read[0], read[1]))],
            )
        small = k.constant(1 / (x + h), element)
        cell, hidden = k.shaped(element, b_, h), k.shaped(element, b_, h)
        parts = [(k.shaped(element, b_, h), "d0, d1") for _ in range(4)]
        for at, (part, _) in enumerate(parts):
            gate = [(gates, f"{at}, d0, d1")]
            k.generic((b_, h), (), gate, [(part, "d0, d1")], lambda read, old: [k.mul(read[0], small)])

        def update(read: list[Value], old: list[Value]) -> list[Value]:
            kept = k.add(k.mul(k.sigmoid(read[0]), old[0]), k.mul(k.sigmoid(read[1]), k.op("math.tanh", read[2])))
            return [kept, k.mul(k.sigmoid(read[3]), k.op("math.tanh", kept))]

        k.generic((b_, h), (), parts, [(cell, "d0, d1"), (hidden, "d0, d1")], update)
    else:  # MLP-Mixer: a product over tokens, then one over channels
        made = fit(d.rng, {"t": 196, "u": 384, "c": 512}, _volume(d, 0.4))
        t, u, c = made["t"], made["u"], made["c"]
        source, mixing = k.shaped(element, t, c), k.shaped(element, u, t)
        mixed, last, out = k.shaped(element, u, c), k.shaped(element, c, c), k.shaped(element, u, c)
        k.fill(0, mixed)
        k.cleared.add(mixed.name)
        k.named("matmul", [mixing, source], [mixed], volume=t * u * c)
        _epilogue(d, k, mixed)
        k.fill(0, out)
        k.named("matmul", [mixed, last], [out], volume=u * c * c)


KINDS: dict[str, Callable[[Draw, LinalgKernel], None]] = {
    "linalg_matmul": matmul,
    "linalg_batch_matmul": batch_matmul,
    "linalg_matvec": matvec,
    "linalg_packed_matmul": packed_matmul,
    "linalg_einsum": einsum,
    "linalg_conv_2d": conv_2d,
    "linalg_conv_grouped": conv_grouped,
    "linalg_conv_1d_3d": conv_1d_3d,
    "linalg_depthwise_conv": depthwise_conv,
    "linalg_pooling": pooling,
    "linalg_quantized": quantized,
    "linalg_elementwise": elementwise,
    "linalg_generic_map": generic_map,
    "linalg_reduce": reduce,
    "linalg_layout": layout,
    "linalg_matmul_epilogue": matmul_epilogue,
    "linalg_conv_block": conv_block,
    "linalg_normalization": normalization,
    "linalg_network_block": network_block,
}
"""Family -> what draws one program."""

NAMED_OPS = "linalg_named_ops"
"""The family whose programs stay linalg operations, as a compiler sees them before lowering; of every kind in turn."""


def kernel_text(family: str, seed: int, kind: str | None = None) -> str:
    """The program of one family and seed before it is lowered; drawn as `kind` does, which is the family by default."""
    for attempt in range(40):
        rng = random.Random(f"{family}/{seed}")
        element = rng.choices(("f32", "f64", "i32", "i64"), (55, 30, 10, 5))[0]
        flavour = rng.choice(FLOAT_FLAVOURS if element.startswith("f") else INT_FLAVOURS)
        kernel = LinalgKernel(rng)
        KINDS[kind or family](Draw(rng, kernel, 0.6**attempt, element, flavour), kernel)
        if kernel.operand_bytes <= MAX_OPERAND_BYTES and kernel.executed_ops <= MAX_EXECUTED_OPS:
            return kernel.finish()
    raise AssertionError(f"{family}/{seed} never fits the limits")


def _sources(family: str, count: int) -> Iterator[Source]:
    if family == NAMED_OPS:
        kinds = list(KINDS)
        texts = tuple(kernel_text(family, seed, kinds[seed % len(kinds)]) for seed in range(count))
    else:
        texts = to_affine(tuple(kernel_text(family, seed) for seed in range(count)))
    for seed, text in enumerate(texts):
        yield Source(f"{ORIGIN}/{family}/{seed}", family, ORIGIN, text)


def families(count: int = PROGRAMS_PER_FAMILY) -> tuple[Family, ...]:
    """All families, `count` programs each."""
    return tuple(Family(name, ORIGIN, partial(_sources, name, count)) for name in (*KINDS, NAMED_OPS))


FAMILIES = families()
