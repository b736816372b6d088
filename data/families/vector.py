"""Kernels written with vectors from the start, as hand-tuned libraries and vectorizing compilers leave them.

Each family draws widths (4 to 16 lanes), element types, register tiles, tails, and the form of loops and accesses.
Register tiles reach from one accumulator to more than x86-64-v3 has registers, so that the large ones spill.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from . import linalg_shapes as shapes
from .affine_text import Array, Index, Value
from .base import PROGRAMS_PER_FAMILY, Family, Source
from .linalg_shapes import fit
from .nest_draw import FLOAT_FLAVOURS, INT_FLAVOURS, mix
from .vector_text import VectorDraw, VectorKernel, vector

__all__ = ["FAMILIES", "KINDS", "families", "program"]

ORIGIN = "vector"
MAX_OPERAND_BYTES = 8 << 20
MAX_EXECUTED_OPS = 6.0e7

WIDTHS = {
    "f64": (4, 4, 8),
    "f32": (4, 8, 8, 16),
    "i64": (4, 8),
    "i32": (4, 8, 8, 16),
    "i16": (8, 16),
    "i8": (8, 16),
    "f16": (8, 16),
}
"""Lanes drawn for each element type."""

ZERO = Index("0", 0, 0)


def _volume(d: VectorDraw, share: float = 1.0) -> float:
    """Scalar elements of work."""
    return max(256.0, math.exp(d.rng.uniform(math.log(1200), math.log(1e8 * share))) * d.scale)


def _width(d: VectorDraw, element: str | None = None) -> int:
    return d.rng.choice(WIDTHS[element or d.element])


def _tail(d: VectorDraw) -> str:
    return d.rng.choice(("masked", "split", "scalar", "scalar"))


def _extent(d: VectorDraw, about: float, width: int) -> int:
    """A size: a multiple of the width, or awkward."""
    n = max(width, round(about))
    return -(-n // width) * width if d.chance(0.45) else n + d.rng.randrange(1, width)


def elementwise(d: VectorDraw, k: VectorKernel) -> None:
    """Maps over vectors: axpy, scale, polynomials, selections, mixed expressions; one or two dimensions, any tail."""
    w, tail = _width(d), _tail(d)
    rows = d.rng.choice((1, 1, 1, 3, 16, 49))
    n = _extent(d, _volume(d, 0.03) / rows, w)
    n_in, n_out = d.rng.choice((1, 2, 2, 3, 4)), d.rng.choice((1, 1, 1, 2))
    inputs = [k.shaped(d.element, rows, n) for _ in range(n_in)]
    outputs = [k.shaped(d.element, rows, n) for _ in range(n_out)]
    kind = d.rng.choice(("axpy", "mix", "mix", "mix", "polynomial", "bias"))
    extra, seed, degree = d.rng.choice((0, 1, 3, 6, 10)), d.rng.getrandbits(30), d.rng.randint(2, 12)
    unroll = d.rng.choice((1, 1, 2, 4)) if n % w == 0 else 1
    bias = k.shaped(d.element, rows)

    def compute(values: list[Value]) -> Value:
        if kind == "axpy":
            return k.multiply_add(values[0], k.like(3, values[0]), values[-1])
        if kind == "polynomial":
            x = values[0]
            total = k.like(1, x)
            for power in range(degree):
                total = k.multiply_add(total, x, k.like(0.5 + power / 8 if x.is_float else power + 1, x))
            return total
        return mix(d, values, extra)

    def body(r: Index, i: Index, width: int, part: bool) -> None:
        for output in outputs:
            state = d.rng.getstate()
            d.rng.seed(seed)  # the scalar tail computes what the vectors do
            values = [k.read(array, r, i, width=width, partial=part) for array in inputs]
            if kind == "bias":
                shift = k.load(bias, r)
                values.append(k.spread(shift, *([width] if width else [])))
            k.write(compute(values), output, r, i, partial=part)
            d.rng.setstate(state)

    def row(r: Index) -> None:
        if unroll > 1 and n % (w * unroll) == 0:
            with k.loop(0, n, step=w * unroll) as i:
                for at in range(unroll):
                    body(r, i + at * w, w, False)
        else:
            k.lanes(n, w, tail, lambda i, width, part: body(r, i, width, part))

    if rows == 1:
        row(ZERO)
    else:
        with k.loop(0, rows) as r:
            row(r)


def reduction(d: VectorDraw, k: VectorKernel) -> None:
    """Dot products, sums, norms, extrema and distances with 1 to 16 accumulators, in lanes and across them."""
    w = _width(d)
    lanes = d.rng.choice((1, 1, 2, 4, 4, 8, 12, 16))
    rows = d.rng.choice((1, 1, 1, 5, 16, 64))
    step = w * lanes
    n = max(step, round(_volume(d, 0.05) / rows))
    n = -(-n // step) * step if d.chance(0.5) else n
    kind = d.rng.choice(("dot", "dot", "sum", "squares", "max", "min", "distance", "absolute"))
    combining = kind if kind in ("max", "min") else "add"
    a, b = k.shaped(d.element, rows, n), k.shaped(d.element, n)
    out = k.shaped(d.element, rows)
    real, any_order = d.element.startswith("f"), d.chance(0.7)
    start = {"max": -1e30 if real else -100, "min": 1e30 if real else 100}.get(kind, 0)

    def term(r: Index, i: Index, width: int, old: Value) -> Value:
        value = k.read(a, r, i, width=width)
        match kind:
            case "dot":
                return k.multiply_add(value, k.read(b, i, width=width), old)
            case "squares":
                return k.multiply_add(value, value, old)
            case "distance":
                away = k.sub(value, k.read(b, i, width=width))
                return k.multiply_add(away, away, old)
            case "absolute" if real:
                return k.add(old, k.op("math.absf", value))
            case _:
                return k.combine(combining, old, value)

    def row(r: Index) -> None:
        whole = n // step * step
        first = k.constant(start, vector(d.element, w))
        parts = k.fold(
            0,
            whole,
            [first] * lanes,
            lambda i, old: [term(r, i + at * w, w, one) for at, one in enumerate(old)],
            step=step,
        )
        while len(parts) > 1:
            parts = [k.combine(combining, parts[0], parts[1]), *parts[2:]]
        if whole + w <= n:
            parts = k.fold(whole, n // w * w, parts, lambda i, old: [term(r, i, w, old[0])], step=w)
        total = k.reduced(parts[0], combining, any_order=any_order)
        if n % w:
            (total,) = k.fold(n // w * w, n, [total], lambda i, old: [term(r, i, 0, old[0])])
        k.store(total, out, r)

    if rows == 1:
        row(ZERO)
    else:
        with k.loop(0, rows) as r:
            row(r)


def gemv(d: VectorDraw, k: VectorKernel) -> None:
    """Matrix by vector: several rows at once, by columns (axpy), transposed, rank-one updates, batched."""
    w = _width(d)
    gemm = d.rng.choice(shapes.GEMMS)
    made = fit(d.rng, {"n": gemm.n, "k": gemm.k}, min(_volume(d, 0.2), 2e6))
    block = d.rng.choice((1, 2, 4, 4, 6, 8, 12, 20))
    m, n = max(block, made["n"] // block * block), max(w, made["k"] // w * w)
    form = d.rng.choice(("rows", "rows", "rows", "columns", "columns", "update"))
    a, x, y = k.array(d.element), k.array(d.element), k.array(d.element)
    any_order = d.chance(0.7)
    if form == "rows":
        with k.loop(0, m, step=block) as i:
            zero = k.constant(0, vector(d.element, w))

            def step(j: Index, old: list[Value], i: Index = i) -> list[Value]:
                right = k.read(x, j, width=w)
                return [k.multiply_add(k.read(a, i + r, j, width=w), right, one) for r, one in enumerate(old)]

            totals = k.fold(0, n, [zero] * block, step, step=w)
            for r, total in enumerate(totals):
                k.store(k.reduced(total, "add", any_order=any_order), y, i + r)
        return
    # columns: block columns of A at a time, each scaled by its x, added to y
    with k.loop(0, m, step=block) as i:
        factors = [k.spread(k.load(x, i + r), w) for r in range(block)]
        with k.loop(0, n, step=w) as j:
            if form == "columns":
                total = k.read(y, j, width=w)
                for r, factor in enumerate(factors):
                    total = k.multiply_add(k.read(a, i + r, j, width=w), factor, total)
                k.write(total, y, j)
            else:
                right = k.read(y, j, width=w)
                small = k.like(0.001 if right.is_float else 1, right)
                right = k.mul(right, small)
                for r, factor in enumerate(factors):
                    k.write(k.multiply_add(factor, right, k.read(a, i + r, j, width=w)), a, i + r, j)


TILES = (
    (1, 1),
    (2, 1),
    (4, 1),
    (6, 1),
    (8, 1),
    (2, 2),
    (4, 2),
    (6, 2),
    (8, 2),
    (3, 3),
    (4, 3),
    (3, 4),
    (4, 4),
    (6, 4),
    (8, 3),
    (12, 2),
    (14, 1),
    (5, 5),
)
"""Register tiles of GEMM: rows, and vectors in a row; more than 15 accumulators do not fit x86-64-v3's registers."""


def gemm_broadcast(d: VectorDraw, k: VectorKernel) -> None:
    """GEMM micro-kernels: accumulators kept over k, elements of A broadcast, packed or strided panels, unrolled k."""
    w = _width(d)
    rows, columns = d.rng.choice(TILES)
    gemm = d.rng.choice(shapes.GEMMS)
    made = fit(d.rng, {"m": gemm.m, "n": gemm.n, "k": gemm.k}, _volume(d))
    m, n, depth = -(-made["m"] // rows), -(-made["n"] // (columns * w)), made["k"]
    packed_a, packed_b, accumulate = d.chance(0.4), d.chance(0.4), d.chance(0.4)
    unroll = min(d.rng.choice((1, 1, 2, 4)), max(1, 36 // (rows * columns)))
    depth = max(unroll, depth // unroll * unroll)
    a, b, c = k.array(d.element), k.array(d.element), k.array(d.element)
    blocked = d.chance(0.25) and depth >= 32
    scaled = d.chance(0.2)

    def left(i: Index, r: int, p: Index) -> Value:
        value = k.load(a, i, p, Index(str(r), r, r)) if packed_a else k.load(a, i * rows + r, p)
        return k.spread(value, w)

    def right(p: Index, j: Index, s: int) -> Value:
        if packed_b:
            return k.read(b, j, p, Index(str(s * w), s * w, s * w), width=w)
        return k.read(b, p, j * (columns * w) + s * w, width=w)

    def at(i: Index, j: Index, r: int, s: int) -> tuple[Index, Index]:
        return i * rows + r, j * (columns * w) + s * w

    def tile(i: Index, j: Index, low: int, high: int, load: bool) -> None:
        zero = k.constant(0, vector(d.element, w))
        places = [(r, s) for r in range(rows) for s in range(columns)]
        starts = [k.read(c, *at(i, j, r, s), width=w) if load else zero for r, s in places]

        def step(p: Index, old: list[Value]) -> list[Value]:
            totals = list(old)
            for u in range(unroll):
                vectors = [right(p + u, j, s) for s in range(columns)]
                for r in range(rows):
                    one = left(i, r, p + u)
                    for s in range(columns):
                        totals[r * columns + s] = k.multiply_add(one, vectors[s], totals[r * columns + s])
            return totals

        for (r, s), total in zip(places, k.fold(low, high, starts, step, step=unroll), strict=True):
            if scaled:
                total = k.mul(total, k.like(0.5 if total.is_float else 3, total))
            k.write(total, c, *at(i, j, r, s))

    if blocked:  # k in two parts, the second adds to what the first left
        middle = depth // 2 // unroll * unroll
        for low, high in ((0, middle), (middle, depth)):
            with k.loop(0, m) as i, k.loop(0, n) as j:
                tile(i, j, low, high, low > 0 or accumulate)
    elif d.chance(0.5):
        with k.loop(0, m) as i, k.loop(0, n) as j:
            tile(i, j, 0, depth, accumulate)
    else:
        with k.loop(0, n) as j, k.loop(0, m) as i:
            tile(i, j, 0, depth, accumulate)


def gemm_contract(d: VectorDraw, k: VectorKernel) -> None:
    """GEMM by tiles with vector.contract or vector.outerproduct on two-dimensional vectors, transposed operands too."""
    element = d.rng.choices(("f32", "f64", "i32"), (60, 30, 10))[0]
    w = d.rng.choice((4, 8)) if element != "f64" else 4
    rows, inner = d.rng.choice((1, 2, 4, 4, 6, 8)), d.rng.choice((1, 2, 4, 4, 8))
    form = d.rng.choice(("contract", "contract", "contract-bt", "contract-at", "outer", "outer"))
    gemm = d.rng.choice(shapes.GEMMS)
    made = fit(d.rng, {"m": gemm.m, "n": gemm.n, "k": gemm.k}, _volume(d, 0.4))
    m, n = -(-made["m"] // rows), -(-made["n"] // w)
    if form == "outer":
        inner = 1
    depth = -(-made["k"] // inner)
    a, b, c = k.array(element), k.array(element), k.array(element)
    kind = vector(element, rows, w)
    in_order = d.chance(0.5)
    flip_a, flip_b = form == "contract-at", form == "contract-bt"
    ats = ("d2, d0" if flip_a else "d0, d2", "d1, d2" if flip_b else "d2, d1", "d0, d1")
    maps = ", ".join(f"affine_map<(d0, d1, d2) -> ({one})>" for one in ats)
    loops = 'iterator_types = ["parallel", "parallel", "reduction"]'
    traits = f"{{indexing_maps = [{maps}], {loops}, kind = #vector.kind<add>}}"

    def tile(i: Index, j: Index) -> None:
        start = k.read_tile(c, i * rows, j * w, shape=(rows, w)) if in_order else k.constant(0, kind)

        def step(p: Index, old: list[Value]) -> list[Value]:
            if form == "outer":  # a column of A, stored by columns, by a row of B
                left, right = k.read(a, p, i * rows, width=rows), k.read(b, p, j * w, width=w)
                k.executed(rows)
                text = f"vector.outerproduct {left.name}, {right.name}, {old[0].name} : {left.type}, {right.type}"
                return [k.emit(text, kind)]
            if flip_a:
                left = k.read_tile(a, p * inner, i * rows, shape=(inner, rows))
            else:
                left = k.read_tile(a, i * rows, p * inner, shape=(rows, inner))
            if flip_b:
                right = k.read_tile(b, j * w, p * inner, shape=(w, inner))
            else:
                right = k.read_tile(b, p * inner, j * w, shape=(inner, w))
            k.executed(rows * inner)
            operands = f"{left.name}, {right.name}, {old[0].name} : {left.type}, {right.type}"
            return [k.emit(f"vector.contract {traits} {operands} into {kind}", kind)]

        (total,) = k.fold(0, depth, [start], step)
        k.write_tile(total, c, i * rows, j * w)

    with k.loop(0, m) as i, k.loop(0, n) as j:
        tile(i, j)


def multi_reduction(d: VectorDraw, k: VectorKernel) -> None:
    """vector.multi_reduction over rows, columns or all of a tile: sums, extrema, products of two tiles."""
    element = d.rng.choices(("f32", "f64", "i32", "i16"), (55, 25, 12, 8))[0]
    w, rows = d.rng.choice((4, 8)) if element in ("f32", "i32") else 4, d.rng.choice((2, 4, 4, 8))
    volume = _volume(d, 0.1)
    m = max(1, round(math.sqrt(volume * d.rng.uniform(0.1, 10)) / rows))
    n = max(1, round(volume / (m * rows * w)))
    over_rows = d.chance(0.5)  # along dimension 0
    both = d.chance(0.25)
    kind = d.rng.choice(("add", "add", "max", "min"))
    real = is_real(element)
    name = {"add": "add", "max": "maxnumf" if real else "maxsi", "min": "minnumf" if real else "minsi"}[kind]
    start = {"add": 0, "max": -1e30 if real else -100, "min": 1e30 if real else 100}[kind]
    a, second, out = k.array(element), k.array(element), k.array(element)
    product, shift = d.chance(0.4), d.chance(0.3)
    dims, shape = ([0, 1], ()) if both else ([0], (w,)) if over_rows else ([1], (rows,))
    kind_out = vector(element, *shape)

    def step(i: Index, j: Index, old: Value) -> Value:
        value = k.read_tile(a, i * rows, j * w, shape=(rows, w))
        if product:
            value = k.mul(value, k.read_tile(second, i * rows, j * w, shape=(rows, w)))
        if shift:
            value = k.add(value, k.constant(2, value.type))
        k.executed(rows)
        text = f"vector.multi_reduction <{name}>, {value.name}, {old.name} {dims} : {value.type} to {kind_out}"
        return k.emit(text, kind_out)

    if both:
        with k.loop(0, m) as i:
            (total,) = k.fold(0, n, [k.constant(start, element)], lambda j, old: [step(i, j, old[0])])
            k.store(total, out, i)
    elif over_rows:
        with k.loop(0, n) as j:
            (total,) = k.fold(0, m, [k.constant(start, kind_out)], lambda i, old: [step(i, j, old[0])])
            k.write(total, out, j * w)
    else:
        with k.loop(0, m) as i:
            (total,) = k.fold(0, n, [k.constant(start, kind_out)], lambda j, old: [step(i, j, old[0])])
            k.write(total, out, i * rows)
    if not product:
        second.fit([ZERO, ZERO])


def is_real(element: str) -> bool:
    return element.startswith("f")


def transpose(d: VectorDraw, k: VectorKernel) -> None:
    """Transposes of 4x4 and 8x8 tiles by vector.transpose or shuffles, interleaving, reversals, channel orders."""
    element = d.rng.choice(("f32", "f32", "f64", "i32", "i16", "i8"))
    kind = d.rng.choice(
        (
            "tiles",
            "tiles",
            "tiles",
            "shuffled",
            "shuffled",
            "interleave",
            "deinterleave",
            "reverse",
            "channels",
            "rotate",
        )
    )
    volume = _volume(d, 0.08)
    if kind in ("tiles", "shuffled"):
        side = d.rng.choice((4, 4, 8)) if kind == "tiles" else d.rng.choice((4, 8))
        other = d.rng.choice((2, 4, 8)) if kind == "tiles" and d.chance(0.3) else side
        m = max(1, round(math.sqrt(volume * d.rng.uniform(0.2, 5)) / side))
        n = max(1, round(volume / (m * side * other)))
        a, b = k.array(element), k.array(element)
        add, permuted = d.chance(0.3), d.chance(0.2)

        def whole(i: Index, j: Index) -> None:
            if permuted:
                value = k.read_tile(a, i * side, j * other, shape=(other, side), transposed=True)
            else:
                value = k.read_tile(a, i * side, j * other, shape=(side, other))
                to = vector(element, other, side)
                value = k.emit(f"vector.transpose {value.name}, [1, 0] : {value.type} to {to}", to)
            if add:
                value = k.add(value, k.read_tile(b, j * other, i * side, shape=(other, side)))
            k.executed(side)
            k.write_tile(value, b, j * other, i * side)

        def shuffled(i: Index, j: Index) -> None:
            """A butterfly: rows at a distance are interleaved, log2 times."""
            rows = [k.read(a, i * side + r, j * side, width=side) for r in range(side)]
            half = side // 2
            low = [lane for at in range(half) for lane in (at, at + side)]
            high = [lane + half for lane in low]
            for _ in range(int(math.log2(side))):
                rows = [k.shuffle(rows[r], rows[r + half], lanes) for r in range(half) for lanes in (low, high)]
            for r, row in enumerate(rows):
                k.write(row, b, j * side + r, i * side)

        with k.loop(0, m) as i, k.loop(0, n) as j:
            (whole if kind == "tiles" else shuffled)(i, j)
        return
    w = _width(d, element)
    n = max(1, round(volume / (2 * w)))
    a, b, c = k.array(element), k.array(element), k.array(element)
    even, odd = list(range(0, 2 * w, 2)), list(range(1, 2 * w, 2))
    by_op, groups = d.chance(0.5), d.rng.choice((2, 4))
    with k.loop(0, n) as i:
        if kind == "interleave":
            left, right = k.read(a, i * w, width=w), k.read(b, i * w, width=w)
            if by_op:
                to = vector(element, 2 * w)
                both = k.emit(f"vector.interleave {left.name}, {right.name} : {left.type} -> {to}", to)
            else:
                both = k.shuffle(left, right, [lane for at in range(w) for lane in (at, at + w)])
            k.write(both, c, i * (2 * w))
        elif kind == "deinterleave":
            first, second = k.read(a, i * (2 * w), width=w), k.read(a, i * (2 * w) + w, width=w)
            k.write(k.shuffle(first, second, even), b, i * w)
            k.write(k.shuffle(first, second, odd), c, i * w)
        elif kind == "reverse":
            value = k.read(a, i * w, width=w)
            back = list(range(w))[::-1]
            k.write(k.shuffle(value, value, back), b, (i * -w) + (n - 1) * w)
        elif kind == "channels":  # RGBA to BGRA and the like
            value = k.read(a, i * w, width=w)
            order = [at // groups * groups + (at + 1) % groups for at in range(w)]
            k.write(k.add(k.shuffle(value, value, order), k.read(b, i * w, width=w)), b, i * w)
        else:
            value = k.read(a, i * w, width=w)
            shift = w // groups
            turned = k.shuffle(value, value, [(at + shift) % w for at in range(w)])
            k.write(k.larger(turned, value), b, i * w)
    for array in (a, b, c):
        if not array.extents:
            array.fit([ZERO])


def gather(d: VectorDraw, k: VectorKernel) -> None:
    """Gathers and scatters by computed indices, masked and not, lookup tables, compression of what passes a test."""
    element = d.rng.choice(("f32", "f32", "f64", "i32"))
    w = d.rng.choice((4, 8)) if element != "f64" else 4
    kind = d.rng.choice(
        ("gather", "gather", "masked", "masked", "table", "scatter", "compress", "two-level", "sparse-dot")
    )
    n = max(1, round(_volume(d, 0.03) / w)) * w
    size = d.rng.choice((64, 256, 1000, 4096, 65536, 300000))
    source, places, out = k.shaped(element, size), k.shaped("i32", n), k.shaped(element, n)
    seed = d.rng.getrandbits(20) | 1
    lanes = vector("i32", w)
    strided = d.chance(0.3)

    def position(i: Index) -> Value:
        """Indices in [0, size): from a small integer argument and the loop variable, hashed or at a stride."""
        value = k.read(places, i, width=w)
        base = k.spread(k.index_value(i, "i32"), w)
        step = k.emit(f"vector.step : {vector('index', w)}", vector("index", w))
        lane = k.add(base, k.cast("arith.index_cast", step, lanes))
        lane = k.add(k.mul(lane, k.constant(seed if not strided else 3, lanes)), value)
        return k.op("arith.remui", k.op("arith.andi", lane, k.constant(0x7FFFFFFF, lanes)), k.constant(size, lanes))

    def test(i: Index) -> Value:
        value = k.read(places, i, width=w)
        return k.compare(d.rng.choice(("sgt", "ne", "slt")), value, k.constant(d.rng.randint(1, 2), lanes))

    if kind == "sparse-dot":
        weights = k.shaped(element, n)
        zero = k.constant(0, vector(element, w))

        def step(i: Index, old: list[Value]) -> list[Value]:
            return [k.multiply_add(k.gather(source, position(i)), k.read(weights, i, width=w), old[0])]

        (total,) = k.fold(0, n, [zero], step, step=w)
        return k.store(k.reduced(total, "add"), out, ZERO)
    if kind == "compress":

        def packed(i: Index, old: list[Value]) -> list[Value]:
            mask = test(i)
            k.masked_write(k.read(out, i, width=w), results, Index(old[0].name, 0, n - 1), mask, compress=True)
            ones = k.select(mask, k.constant(1, lanes), k.constant(0, lanes))
            count = k.cast("arith.index_cast", k.reduced(ones, "add"), "index")
            return [k.op("arith.addi", old[0], count)]

        results, counts = k.shaped(element, n + w), k.shaped("i64", 1)
        (end,) = k.fold(0, n, [k.constant(0, "index")], packed, step=w)
        return k.store(k.cast("arith.index_cast", end, "i64"), counts, ZERO)
    with k.loop(0, n, step=w) as i:
        match kind:
            case "masked":
                value = k.gather(source, position(i), test(i))
                k.write(k.add(value, k.read(out, i, width=w)), out, i)
            case "scatter":
                k.scatter(k.read(out, i, width=w), source, position(i), test(i) if d.chance(0.5) else None)
            case "table":  # interpolate between two neighbours
                at = k.smaller(position(i), k.constant(size - 2, lanes))
                low, high = k.gather(source, at), k.gather(source, k.add(at, k.constant(1, lanes)))
                share = k.read(out, i, width=w)
                k.write(
                    k.multiply_add(k.sub(high, low), k.mul(share, k.like(0.5 if share.is_float else 1, share)), low),
                    out,
                    i,
                )
            case "two-level":
                first = k.shaped("i32", size) if len(k._arrays) < 4 else k._arrays[3]
                inner = k.gather(first, position(i))
                inner = k.op(
                    "arith.remui", k.op("arith.andi", inner, k.constant(0x7FFFFFFF, lanes)), k.constant(size, lanes)
                )
                k.write(k.gather(source, inner), out, i)
            case _:
                k.write(k.gather(source, position(i)), out, i)
    return None


def stencil(d: VectorDraw, k: VectorKernel) -> None:
    """Stencils in one to three dimensions: unaligned loads or shuffles of neighbours, rows carried in registers."""
    element = d.rng.choices(("f32", "f64"), (60, 40))[0]
    w = _width(d, element)
    rank, radius = d.rng.choice((1, 1, 2, 2, 2, 3)), d.rng.choice((1, 1, 1, 2, 3, 4))
    form = d.rng.choice(("loads", "loads", "shuffles", "box", "carried"))
    reach = 2 * radius + 1
    volume = _volume(d, 0.12) / reach
    outer = [max(1, round(volume ** (1 / (rank + 0.7)))) for _ in range(rank - 1)]
    n = max(1, round(volume / math.prod(outer) / w)) * w
    a, b = k.array(element), k.array(element)
    weights = [round(d.rng.uniform(0.1, 0.9), 3) for _ in range(reach)]
    total_weight = sum(weights) * rank
    kind = vector(element, w)
    coefficients = [k.constant(weight / total_weight, kind) for weight in weights]
    aligned = w >= radius

    def along(at: list[Index], i: Index) -> Value:
        """The sum along the last dimension."""
        lead = [one + radius for one in at]
        if form == "shuffles" and aligned:
            left, middle, right = (k.read(a, *lead, i + s * w, width=w) for s in range(3))
            values = []
            for t in range(-radius, radius + 1):
                if t == 0:
                    values.append(middle)
                elif t < 0:
                    values.append(k.shuffle(left, middle, [w + t + lane for lane in range(w)]))
                else:
                    values.append(k.shuffle(middle, right, [t + lane for lane in range(w)]))
        else:
            values = [k.read(a, *lead, i + t, width=w) for t in range(reach)]
        total = k.mul(values[0], coefficients[0])
        for value, coefficient in zip(values[1:], coefficients[1:], strict=True):
            total = k.multiply_add(value, coefficient, total)
        return total

    def point(at: list[Index], i: Index) -> None:
        total = along(at, i)
        offset = w if form == "shuffles" and aligned else radius
        if form == "box" and rank == 2:
            for t in range(reach):
                if t != radius:
                    for u in range(reach):
                        value = k.read(a, at[0] + t, i + u, width=w)
                        total = k.multiply_add(value, k.mul(coefficients[t], coefficients[u]), total)
        else:
            for dim in range(rank - 1):
                for t in range(reach):
                    if t != radius:
                        lead = [one + (t if which == dim else radius) for which, one in enumerate(at)]
                        total = k.multiply_add(k.read(a, *lead, i + offset, width=w), coefficients[t], total)
        k.write(total, b, *at, i)

    if form == "carried" and rank == 2:  # a column strip: the rows of the window move down in registers
        rows = outer[0]
        with k.loop(0, n, step=w) as i:
            starts = [k.read(a, Index(str(t), t, t), i, width=w) for t in range(reach - 1)]

            def down(y: Index, old: list[Value], i: Index = i) -> list[Value]:
                window = [*old, k.read(a, y + (reach - 1), i, width=w)]
                total = k.mul(window[0], coefficients[0])
                for value, coefficient in zip(window[1:], coefficients[1:], strict=True):
                    total = k.multiply_add(value, coefficient, total)
                k.write(total, b, y, i)
                return window[1:]

            k.fold(0, rows, starts, down)
        return

    def nest(at: list[Index]) -> None:
        if len(at) < rank - 1:
            with k.loop(0, outer[len(at)]) as index:
                nest([*at, index])
        else:
            with k.loop(0, n, step=w) as i:
                point(at, i)

    nest([])


def widening(d: VectorDraw, k: VectorKernel) -> None:
    """Narrow types in, wide sums or narrow results out: i8 dot products, f16 maps, saturation, blending."""
    kind = d.rng.choice(
        (
            "dot8",
            "dot8",
            "dot16",
            "difference",
            "half",
            "half",
            "saturate",
            "blend",
            "quantize",
            "dequantize",
            "average",
        )
    )
    narrow = {"dot16": "i16", "half": "f16"}.get(kind, "i8")
    w = d.rng.choice((8, 16))
    n = max(1, round(_volume(d, 0.08) / w)) * w
    a, b = k.shaped(narrow, n), k.shaped(narrow, n)
    lanes = d.rng.choice((1, 2, 4))
    n = -(-n // (w * lanes)) * w * lanes
    if kind in ("dot8", "dot16", "difference"):
        out = k.shaped("i32", 1)
        through16 = kind == "dot8" and d.chance(0.5)
        zero = k.constant(0, vector("i32", w))

        def step(i: Index, old: list[Value]) -> list[Value]:
            totals = []
            for at, one in enumerate(old):
                x, y = (k.read(array, i + at * w, width=w) for array in (a, b))
                middle = "i16" if through16 else "i32"
                x, y = k.converted(x, middle), k.converted(y, middle)
                value = k.op("math.absi", k.sub(x, y)) if kind == "difference" else k.mul(x, y)
                totals.append(k.add(one, k.converted(value, "i32")))
            return totals

        parts = k.fold(0, n, [zero] * lanes, step, step=w * lanes)
        while len(parts) > 1:
            parts = [k.add(parts[0], parts[1]), *parts[2:]]
        return k.store(k.reduced(parts[0], "add"), out, ZERO)
    extra, seed = d.rng.choice((1, 3, 6)), d.rng.getrandbits(30)
    wide = k.shaped({"quantize": "f32", "dequantize": "f32", "half": "f16"}.get(kind, "i8"), n)

    def body(i: Index) -> None:
        d.rng.seed(seed)
        match kind:
            case "half":
                values = [k.converted(k.read(array, i, width=w), "f32") for array in (a, b)]
                k.write(k.converted(mix(d, values, extra, "mixed"), "f16"), wide, i)
            case "quantize":
                value = k.read(wide, i, width=w)
                scaled = k.op("math.roundeven", k.mul(value, k.like(31.75, value)))
                k.write(k.converted(k.converted(k.clamp(scaled, -128, 127), "i32"), "i8"), a, i)
            case "dequantize":
                value = k.converted(k.converted(k.read(a, i, width=w), "i32"), "f32")
                k.write(k.mul(k.sub(value, k.like(3, value)), k.like(0.05, value)), wide, i)
            case "blend":  # (a * alpha + b * (256 - alpha)) >> 8
                x, y = (k.converted(k.read(array, i, width=w), "i16") for array in (a, b))
                alpha = 37 + extra
                total = k.add(k.mul(x, k.like(alpha, x)), k.mul(y, k.like(256 - alpha, y)))
                k.write(k.converted(k.op("arith.shrsi", total, k.like(8, total)), "i8"), wide, i)
            case "average":
                x, y = (k.converted(k.read(array, i, width=w), "i16") for array in (a, b))
                total = k.add(k.add(x, y), k.like(1, x))
                k.write(k.converted(k.op("arith.shrui", total, k.like(1, total)), "i8"), wide, i)
            case _:
                x, y = (k.converted(k.read(array, i, width=w), "i16") for array in (a, b))
                total = k.clamp(k.multiply_add(x, k.like(extra, x), y), -128, 127)
                k.write(k.converted(total, "i8"), wide, i)

    with k.loop(0, n, step=w * lanes) as i:
        for at in range(lanes):
            body(i + at * w)
    return None


def scan(d: VectorDraw, k: VectorKernel) -> None:
    """Prefix sums and running extrema: within a vector by shifts and shuffles, between vectors by a carried value."""
    w = _width(d)
    kind = d.rng.choice(("add", "add", "max", "min"))
    rows = d.rng.choice((1, 1, 4, 24))
    n = max(1, round(_volume(d, 0.03) / rows / w)) * w
    form = d.rng.choice(("shuffles", "shuffles", "blocked", "columns"))
    exclusive = d.chance(0.3) and kind == "add"
    decay = d.chance(0.3) and kind == "add" and is_real(d.element)
    a, b = k.array(d.element), k.array(d.element)
    neutral = {"add": 0, "max": -1e30 if is_real(d.element) else -100, "min": 1e30 if is_real(d.element) else 100}[kind]
    lanes = vector(d.element, w)

    def inside(value: Value) -> Value:
        """All prefixes of one vector."""
        empty, shift = k.constant(neutral, lanes), 1
        while shift < w:
            moved = k.shuffle(
                empty, value, [w - shift + lane if lane < shift else w + lane - shift for lane in range(w)]
            )
            value = k.combine(kind, value, moved)
            shift *= 2
        return value

    def row(r: Index) -> None:
        if form == "columns":  # down the rows, all columns of a vector at once
            with k.loop(0, n, step=w) as i:

                def down(y: Index, old: list[Value], i: Index = i) -> list[Value]:
                    total = k.combine(kind, old[0], k.read(a, r, y, i, width=w))
                    if decay:
                        total = k.mul(total, k.like(0.75, total))
                    k.write(total, b, r, y, i)
                    return [total]

                k.fold(0, 8, [k.constant(neutral, lanes)], down)
            return
        group = 2 if form == "blocked" and n % (2 * w) == 0 else 1

        def step(i: Index, old: list[Value]) -> list[Value]:
            carry = old[0]
            sums = [inside(k.read(a, r, ZERO, i + at * w, width=w)) for at in range(group)]
            for at, one in enumerate(sums):
                total = k.combine(kind, one, k.spread(carry, w))
                out = k.sub(total, k.read(a, r, ZERO, i + at * w, width=w)) if exclusive else total
                k.write(out, b, r, ZERO, i + at * w)
                carry = k.lane(total, w - 1)
            return [k.mul(carry, k.like(0.75, carry)) if decay else carry]

        k.fold(0, n, [k.constant(neutral, d.element)], step, step=w * group)

    if rows == 1:
        row(ZERO)
    else:
        with k.loop(0, rows) as r:
            row(r)


def filter_taps(d: VectorDraw, k: VectorKernel) -> None:
    """Filters with all taps and several outputs in registers: FIR, convolutions along rows, banks of filters."""
    w = _width(d)
    taps, outputs = d.rng.choice((2, 3, 5, 7, 8, 11, 16, 24)), d.rng.choice((1, 1, 2, 4, 6))
    outputs = min(outputs, 72 // taps)
    n = max(1, round(_volume(d, 0.15) / (taps * outputs * w))) * w
    form = d.rng.choice(("loads", "loads", "window", "bank", "symmetric"))
    a, h, b = k.array(d.element), k.array(d.element), k.array(d.element)
    small = 0.125 if is_real(d.element) else 1

    def weight(o: int, t: int) -> Value:
        return k.spread(k.load(h, Index(str(o), o, o), Index(str(t), t, t)), w)

    kept = [[weight(o, t) for t in range(taps)] for o in range(outputs if form in ("bank", "window") else 1)]
    if form == "window":  # outputs side by side share what they read
        with k.loop(0, n, step=w) as i:
            window = [k.read(a, i + t, width=w) for t in range(taps + outputs - 1)]
            for o in range(outputs):
                total = k.mul(window[o], kept[o][0])
                for t in range(1, taps):
                    total = k.multiply_add(window[o + t], kept[o][t], total)
                k.write(k.mul(total, k.like(small, total)), b, Index(str(o), o, o), i)
        return
    rows = len(kept)
    with k.loop(0, n, step=w) as i:
        totals = [k.constant(0, vector(d.element, w)) for _ in range(rows)]
        if form == "symmetric":
            for t in range(taps):
                pair = k.add(k.read(a, i + t, width=w), k.read(a, i + (2 * taps - 1 - t), width=w))
                totals[0] = k.multiply_add(pair, kept[0][t], totals[0])
        else:
            for t in range(taps):
                value = k.read(a, i + t, width=w)
                totals = [k.multiply_add(value, kept[o][t], total) for o, total in enumerate(totals)]
        for o, total in enumerate(totals):
            k.write(k.mul(total, k.like(small, total)), b, Index(str(o), o, o), i)


def complex_numbers(d: VectorDraw, k: VectorKernel) -> None:
    """Complex arithmetic and FFT butterflies: parts apart or interleaved, radix two, four and eight, twiddles."""
    element = d.rng.choices(("f32", "f64"), (65, 35))[0]
    w = d.rng.choice((4, 8)) if element == "f32" else 4
    kind = d.rng.choice(
        ("multiply", "interleaved", "radix2", "radix4", "radix4", "radix8", "magnitude", "dot", "rotate")
    )
    n = max(1, round(_volume(d, 0.05) / w)) * w
    arrays = [k.array(element) for _ in range(6)]
    ar, ai, br, bi, cr, ci = arrays

    def pair(real: Array, imaginary: Array, at: Sequence[Index]) -> tuple[Value, Value]:
        return k.read(real, *at, width=w), k.read(imaginary, *at, width=w)

    def times(x: tuple[Value, Value], y: tuple[Value, Value]) -> tuple[Value, Value]:
        return k.sub(k.mul(x[0], y[0]), k.mul(x[1], y[1])), k.multiply_add(x[0], y[1], k.mul(x[1], y[0]))

    def add(x: tuple[Value, Value], y: tuple[Value, Value]) -> tuple[Value, Value]:
        return k.add(x[0], y[0]), k.add(x[1], y[1])

    def sub(x: tuple[Value, Value], y: tuple[Value, Value]) -> tuple[Value, Value]:
        return k.sub(x[0], y[0]), k.sub(x[1], y[1])

    def put(x: tuple[Value, Value], at: Sequence[Index], factor: float = 1.0) -> None:
        scale = k.like(factor, x[0])
        for value, array in zip(x, (cr, ci), strict=True):
            k.write(k.mul(value, scale) if factor != 1 else value, array, *at)

    def butterflies(radix: int) -> None:
        """One stage over `radix` rows: a radix-`radix` transform of each column, then twiddles."""
        with k.loop(0, max(w, n // radix // w * w), step=w) as i:
            x = [pair(ar, ai, (Index(str(r), r, r), i)) for r in range(radix)]
            size = radix
            while size > 1:  # decimation in frequency
                half = size // 2
                made: list[tuple[Value, Value]] = list(x)
                for start in range(0, radix, size):
                    for at in range(half):
                        low, high = x[start + at], x[start + at + half]
                        away = sub(low, high)
                        made[start + at] = add(low, high)
                        angle = -2 * math.pi * at / size
                        if at:
                            turn = (
                                k.like(round(math.cos(angle), 9), away[0]),
                                k.like(round(math.sin(angle), 9), away[0]),
                            )
                            away = times(away, turn)
                        made[start + at + half] = away
                x, size = made, half
            for r, value in enumerate(x):
                row = Index(str(r), r, r)
                twiddle = pair(br, bi, (row, i))
                put(times(value, twiddle) if r else value, (row, i), 0.5 / radix)

    if kind.startswith("radix"):
        butterflies(int(kind[5:]))
    elif kind == "interleaved":  # (re, im) side by side
        even, odd = list(range(0, 2 * w, 2)), list(range(1, 2 * w, 2))
        mixed = [lane for at in range(w) for lane in (at, at + w)]
        with k.loop(0, n, step=w) as i:
            parts = []
            for array in (ar, br):
                low, high = k.read(array, i * 2, width=w), k.read(array, i * 2 + w, width=w)
                parts.append((k.shuffle(low, high, even), k.shuffle(low, high, odd)))
            real, imaginary = times(*parts)
            both = k.shuffle(real, imaginary, mixed)
            k.write(both, cr, i * 2)
    elif kind == "dot":
        zero = k.constant(0, vector(element, w))

        def step(i: Index, old: list[Value]) -> list[Value]:
            return list(add((old[0], old[1]), times(pair(ar, ai, [i]), pair(br, bi, [i]))))

        totals = k.fold(0, n, [zero, zero], step, step=w)
        out = k.array(element)
        for at, total in enumerate(totals):
            k.store(k.reduced(total, "add"), out, Index(str(at), at, at))
    else:
        with k.loop(0, n, step=w) as i:
            x = pair(ar, ai, [i])
            if kind == "magnitude":
                k.write(k.op("math.sqrt", k.multiply_add(x[0], x[0], k.mul(x[1], x[1]))), cr, i)
            elif kind == "rotate":
                turn = k.constant(0.8, x[0].type), k.constant(0.6, x[0].type)
                put(times(x, turn), [i])
            else:
                put(times(x, pair(br, bi, [i])), [i], 0.5)
    for array in arrays:
        if not array.extents:
            array.fit([ZERO])


def small_matrices(d: VectorDraw, k: VectorKernel) -> None:
    """Many small matrices: products by lanes or of structures of arrays, transforms of points, elimination."""
    element = d.rng.choices(("f32", "f64", "i32"), (60, 30, 10))[0]
    form = d.rng.choice(("lanes", "lanes", "arrays", "arrays", "points", "determinant"))
    side = d.rng.choice((2, 3, 4, 4, 5))
    a, b, c = k.array(element), k.array(element), k.array(element)
    small = 0.125 if is_real(element) else 1
    if form == "lanes":  # a row of a 4x4 matrix in a vector
        count = max(1, round(_volume(d, 0.2) / 64))
        shuffled = d.chance(0.5)
        with k.loop(0, count) as m:
            right = [k.read(b, m, Index(str(r), r, r), ZERO, width=4) for r in range(4)]
            for r in range(4):
                row = Index(str(r), r, r)
                total = k.constant(0, vector(element, 4))
                values = k.read(a, m, row, ZERO, width=4)
                for s in range(4):
                    one = k.shuffle(values, values, [s] * 4) if shuffled else k.spread(k.lane(values, s), 4)
                    total = k.multiply_add(one, right[s], total)
                k.write(k.mul(total, k.like(small, total)), c, m, row, ZERO)
        return
    w = _width(d, element)
    count = max(1, round(_volume(d, 0.3) / (side**3 * w))) * w
    places = [(r, s) for r in range(side) for s in range(side)]

    def at(r: int, s: int, i: Index) -> tuple[Index, Index, Index]:
        return Index(str(r), r, r), Index(str(s), s, s), i

    with k.loop(0, count, step=w) as i:
        if form == "arrays":  # the same element of several matrices in a vector
            first = {place: k.read(a, *at(*place, i), width=w) for place in places}
            second = {place: k.read(b, *at(*place, i), width=w) for place in places}
            for r, s in places:
                total = k.mul(first[r, 0], second[0, s])
                for t in range(1, side):
                    total = k.multiply_add(first[r, t], second[t, s], total)
                k.write(k.mul(total, k.like(small, total)), c, *at(r, s, i))
        elif form == "points":  # one matrix, many points
            x = [k.read(a, Index(str(s), s, s), i, width=w) for s in range(side)]
            for r in range(side):
                row = Index(str(r), r, r)
                total = k.spread(k.load(b, row, Index(str(side), side, side)), w)
                for s, value in enumerate(x):
                    total = k.multiply_add(k.spread(k.load(b, row, Index(str(s), s, s)), w), value, total)
                k.write(total, c, row, i)
        else:  # by elimination without division: cross products of rows
            rows = [[k.read(a, *at(r, s, i), width=w) for s in range(side)] for r in range(side)]
            for r in range(side - 1):
                for q in range(r + 1, side):
                    for s in range(side - 1, r, -1):
                        cross = k.sub(k.mul(rows[r][r], rows[q][s]), k.mul(rows[q][r], rows[r][s]))
                        rows[q][s] = k.mul(cross, k.like(small, cross))
            k.write(rows[-1][-1], c, i)
    if not b.extents:
        b.fit([ZERO])


KINDS: dict[str, Callable[[VectorDraw, VectorKernel], None]] = {
    "vector_elementwise": elementwise,
    "vector_reduction": reduction,
    "vector_gemv": gemv,
    "vector_gemm_broadcast": gemm_broadcast,
    "vector_gemm_contract": gemm_contract,
    "vector_multi_reduction": multi_reduction,
    "vector_transpose": transpose,
    "vector_gather": gather,
    "vector_stencil": stencil,
    "vector_widening": widening,
    "vector_scan": scan,
    "vector_filter": filter_taps,
    "vector_complex": complex_numbers,
    "vector_small_matrices": small_matrices,
}
"""Family -> what draws one program."""


def program(family: str, seed: int) -> Source:
    """The program of one family and seed; the same ones give the same text."""
    for attempt in range(40):
        rng = random.Random(f"{family}/{seed}")
        element = rng.choices(("f32", "f64", "i32", "i16", "i8"), (50, 28, 12, 6, 4))[0]
        flavour = rng.choice([f for f in (FLOAT_FLAVOURS if is_real(element) else INT_FLAVOURS) if f != "library"])
        kernel = VectorKernel(rng)
        KINDS[family](VectorDraw(rng, kernel, 0.6**attempt, element, flavour), kernel)
        if kernel.operand_bytes <= MAX_OPERAND_BYTES and kernel.executed_ops <= MAX_EXECUTED_OPS:
            return Source(f"{ORIGIN}/{family}/{seed}", family, ORIGIN, kernel.finish())
    raise AssertionError(f"{family}/{seed} never fits the limits")


def _sources(family: str, count: int) -> Iterator[Source]:
    for seed in range(count):
        yield program(family, seed)


def families(count: int = PROGRAMS_PER_FAMILY) -> tuple[Family, ...]:
    """All families, `count` programs each."""
    return tuple(Family(name, ORIGIN, partial(_sources, name, count)) for name in KINDS)


FAMILIES = families()
