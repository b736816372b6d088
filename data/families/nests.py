"""Random affine nests: thirteen families by structure, each program drawn from its own seed.

A family draws the structure (loops, arrays, subscripts, statements, element types) and the sizes. Sizes are log-uniform
over the innermost iterations executed, and are scaled down until operands and work fit the limits below.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from .affine_text import Array, Index, Kernel, Value
from .base import PROGRAMS_PER_FAMILY, Family, Source
from .nest_draw import (
    FLOAT_FLAVOURS,
    INT_FLAVOURS,
    Draw,
    add,
    binary,
    fresh_arrays,
    larger,
    mix,
    mul,
    over,
    reads,
    scalar_index,
    smaller,
    sub,
    unary,
    weighted_mean,
)

__all__ = ["FAMILIES", "families", "nest"]

MAX_OPERAND_BYTES = 8 << 20
MAX_EXECUTED_OPS = 1.2e8
ORIGIN = "nests"


def elementwise(d: Draw) -> None:
    """Maps over 1 to 4 loops with broadcasts, strides and offsets, one to three results."""
    n = d.rng.choices((1, 2, 3, 4), (3, 4, 2, 1))[0]
    inputs = fresh_arrays(d, d.rng.choices((1, 2, 3, 4, 6), (2, 4, 3, 2, 1))[0])
    outputs = fresh_arrays(d, d.rng.choices((1, 2, 3), (5, 2, 1))[0])
    extra = d.rng.choice((0, 1, 2, 4, 8, 16))
    plain, with_index, in_place = d.rng.choice((0.3, 0.6, 0.9)), d.chance(0.15), d.chance(0.2)

    def body(indices: list[Index]) -> None:
        values = reads(d, inputs, indices, plain=plain)
        if with_index:
            values.append(d.k.index_value(d.rng.choice(indices), d.element))
        for output in outputs:
            some = d.rng.sample(values, d.rng.randint(1, len(values)))
            result = mix(d, some, extra)
            if in_place:
                result = weighted_mean(d, [result, d.k.load(output, *indices)])
            d.k.store(result, output, *indices)

    over(d, d.trips(n), body)


def reduction(d: Draw) -> None:
    """Sums, extrema, norms, counts and moments over some of the loops, through memory or iter_args."""
    k = d.k
    n_out, n_red = d.rng.choice(((0, 1), (0, 2), (1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (0, 3)))
    trips = d.trips(n_out + n_red)
    inputs = fresh_arrays(d, d.rng.choice((1, 1, 2, 2, 3)))
    extra = d.rng.choice((0, 0, 1, 3, 6))
    kinds = [
        d.rng.choice(("sum", "sum", "sum", "max", "min", "square", "count", "absolute"))
        for _ in range(d.rng.choice((1, 1, 2, 4)))
    ]
    outputs = fresh_arrays(d, len(kinds))
    plain = d.rng.choice((0.4, 0.8))
    zero = k.constant(0, d.element)

    def step(kind: str, old: Value, value: Value) -> Value:
        match kind:
            case "max":
                return larger(d, old, value)
            case "min":
                return smaller(d, old, value)
            case "square":
                return add(d, old, mul(d, value, value))
            case "count":
                above = k.compare("ogt" if value.is_float else "sgt", value, d.constant())
                return k.select(above, add(d, old, k.constant(1, d.element)), old)
            case "absolute" if value.is_float:
                return add(d, old, k.op("math.absf", value))
            case _:
                return add(d, old, value)

    def value_at(indices: Sequence[Index]) -> Value:
        return mix(d, reads(d, inputs, indices, plain=plain), extra)

    if d.chance(0.5):  # carried in registers
        order = list(range(n_out + n_red))

        def fold(at: int, indices: list[Index], carried: Sequence[Value]) -> Sequence[Value]:
            if at == len(trips):
                value = value_at([indices[i] for i in order])
                return [step(kind, old, value) for kind, old in zip(kinds, carried, strict=True)]
            return k.fold(0, trips[at], carried, lambda index, args: fold(at + 1, [*indices, index], args))

        if d.chance(0.4):
            d.rng.shuffle(order)

        def outer(indices: list[Index]) -> None:
            results = fold(n_out, indices, [zero] * len(kinds))
            for result, output in zip(results, outputs, strict=True):
                k.store(result, output, *(indices or [scalar_index()]))

        over(d, trips[:n_out], outer)
        return
    order = list(range(n_out + n_red))
    d.rng.shuffle(order)
    kept = sorted(order[:n_out])
    if d.chance(0.6):  # set first

        def clear(at: list[Index]) -> None:
            for output in outputs:
                k.store(zero, output, *(at or [scalar_index()]))

        over(d, [trips[i] for i in kept], clear)

    def update(indices: list[Index]) -> None:
        value = value_at(indices)
        at = [indices[i] for i in kept] or [scalar_index()]
        for kind, output in zip(kinds, outputs, strict=True):
            k.store(step(kind, k.load(output, *at), value), output, *at)

    over(d, trips, update)


def matmul_like(d: Draw) -> None:
    """Contractions of two or three arrays: batches, transposes, any loop order, convolutions, epilogues."""
    k = d.k
    n_batch = d.rng.choices((0, 1), (4, 1))[0]
    n_a, n_b, n_red = d.rng.choice(((1, 1, 1), (1, 1, 1), (1, 0, 1), (2, 1, 1), (1, 1, 2), (1, 0, 2), (1, 2, 1)))
    batch, free_a, free_b = range(n_batch), range(n_batch, n_batch + n_a), range(n_batch + n_a, n_batch + n_a + n_b)
    n = n_batch + n_a + n_b + n_red
    red = range(n - n_red, n)
    trips = d.trips(n)
    convolve = d.chance(0.25)
    if convolve:
        for at in red:
            trips[at] = d.rng.choice((2, 3, 3, 5, 7))
        dilation, stride = d.rng.choice((1, 1, 1, 2)), d.rng.choice((1, 1, 2))
    a_dims, b_dims, c_dims = [*batch, *free_a, *red], [*batch, *free_b, *red], [*batch, *free_a, *free_b]
    for dims in (a_dims, b_dims, c_dims):
        if d.chance(0.45):
            d.rng.shuffle(dims)
    a, b, c = fresh_arrays(d, 3)
    third = d.k.array(d.element) if d.chance(0.2) else None
    third_dims = d.rng.sample(range(n), d.rng.randint(1, min(2, n)))
    if d.chance(0.08) and not convolve and len(a_dims) == len(b_dims):
        b = a
    alpha = d.constant() if d.chance(0.3) else None

    def product(indices: Sequence[Index]) -> Value:
        at = [indices[i] for i in a_dims]
        if convolve:
            window = [indices[i] * dilation for i in red]
            at = [*(indices[i] for i in a_dims if i not in red)]
            for i, inner in enumerate(window):
                at[(i + n_batch) % len(at)] = at[(i + n_batch) % len(at)] * stride + inner
        values = [k.load(a, *at), k.load(b, *(indices[i] for i in b_dims))]
        value = mul(d, *values)
        if third is not None:
            value = mul(d, value, k.load(third, *(indices[i] for i in third_dims)))
        return mul(d, value, alpha) if alpha is not None else value

    def c_at(indices: Sequence[Index]) -> list[Index]:
        return [indices[i] for i in c_dims]

    zero = k.constant(0, d.element)
    outer_trips = trips[: n - n_red]
    if d.chance(0.35):  # reduction innermost, in a register

        def dot(indices: list[Index]) -> None:
            def fold(at: int, inner: list[Index], args: Sequence[Value]) -> Sequence[Value]:
                if at == n:
                    return [add(d, args[0], product([*indices, *inner]))]
                return k.fold(0, trips[at], args, lambda index, carried: fold(at + 1, [*inner, index], carried))

            [result] = fold(n - n_red, [], [zero])
            if d.chance(0.3):
                result = add(d, result, k.load(c, *c_at(indices)))
            k.store(result, c, *c_at(indices))

        over(d, outer_trips, dot)
    else:
        style = d.rng.choice(("accumulate", "zeroed", "scaled", "inside"))
        order = list(range(n))
        if style == "inside":  # set inside the free loops: an imperfect nest

            def rows(indices: list[Index]) -> None:
                k.store(zero, c, *c_at(indices))
                inner_order = list(red)

                def step(inner: list[Index]) -> None:
                    k.store(add(d, k.load(c, *c_at(indices)), product([*indices, *inner])), c, *c_at(indices))

                over(d, [trips[i] for i in inner_order], step)

            over(d, outer_trips, rows)
        else:
            if style != "accumulate":

                def prepare(indices: list[Index]) -> None:
                    at = c_at(indices)
                    k.store(zero if style == "zeroed" else mul(d, k.load(c, *at), k.constant(1, d.element)), c, *at)

                over(d, outer_trips, prepare)
            d.rng.shuffle(order)

            def step(indices: list[Index]) -> None:
                placed = [indices[order.index(i)] for i in range(n)]
                k.store(add(d, k.load(c, *c_at(placed)), product(placed)), c, *c_at(placed))

            over(d, [trips[i] for i in order], step)
    if d.chance(0.25):  # bias and activation
        bias, result_array = d.k.array(d.element), d.k.array(d.element)
        kept = d.rng.randrange(n - n_red)

        def epilogue(indices: list[Index]) -> None:
            value = add(d, k.load(c, *c_at(indices)), k.load(bias, indices[kept]))
            value = larger(d, value, zero) if d.chance(0.6) else mix(d, [value], 2)
            k.store(value, result_array, *c_at(indices))

        over(d, outer_trips, epilogue)


def stencil(d: Draw) -> None:
    """Neighbourhoods in 1 to 3 dimensions: star, box, random; between arrays, in place, over time."""
    k = d.k
    n = d.rng.choices((1, 2, 3), (2, 4, 2))[0]
    radius = d.rng.choice((1, 1, 1, 2, 3)) if n < 3 else d.rng.choice((1, 1, 2))
    shape = d.rng.choice(("star", "star", "box", "random", "cross", "forward"))
    boxes = [[o] for o in range(-radius, radius + 1)]
    for _ in range(n - 1):
        boxes = [[*point, o] for point in boxes for o in range(-radius, radius + 1)]
    if shape in ("star", "cross"):
        points = [p for p in boxes if sum(o != 0 for o in p) <= 1]
    elif shape == "forward":
        points = [p for p in boxes if min(p) >= 0] or boxes
    else:
        points = boxes
    limit = {"random": d.rng.randint(2, 9), "cross": 2 * n}.get(shape, 27)
    points = d.rng.sample(points, min(len(points), limit)) if len(points) > limit or shape == "random" else points
    steps = d.rng.choice((1, 1, 1, 2, 4, 10, 20))
    trips = d.trips(n, max(30.0, d.volume() / steps))
    fields = fresh_arrays(d, d.rng.choice((1, 1, 1, 2)))
    target = d.k.array(d.element)
    coefficients = d.k.array(d.element) if d.chance(0.2) else None
    style = (
        d.rng.choice(("out", "out", "pingpong", "in place"))
        if steps > 1
        else d.rng.choice(("out", "out", "out", "in place"))
    )
    clamp, nonlinear = d.chance(0.15), style == "out" and d.chance(0.25)

    def sweep(source: Sequence[Array], result: Array) -> None:
        def body(at: list[Index]) -> None:
            values = []
            for number, point in enumerate(points):
                loaded = k.load(source[number % len(source)], *(i + o for i, o in zip(at, point, strict=True)))
                if coefficients is not None:
                    loaded = mul(
                        d,
                        loaded,
                        k.load(
                            coefficients, *([*at, scalar_index() + number] if d.element[0] == "f" and n < 3 else at)
                        ),
                    )
                values.append(loaded)
            value = mix(d, values, 2) if nonlinear else weighted_mean(d, values)
            if clamp:
                value = smaller(d, larger(d, value, k.constant(0, d.element)), k.constant(100, d.element))
            k.store(value, result, *at)

        over(d, trips, body, low=radius)

    def once() -> None:
        match style:
            case "in place":
                sweep(fields[:1], fields[0])
            case "pingpong":
                sweep(fields[:1], target)
                sweep([target], fields[0])
            case _:
                sweep(fields, target)

    if steps == 1:
        once()
        return
    with k.loop(0, steps):
        once()
        if style == "out":  # copy back

            def back(at: list[Index]) -> None:
                k.store(k.load(target, *at), fields[0], *at)

            over(d, trips, back, low=radius)


def transpose(d: Draw) -> None:
    """Permuted, strided, packed, mirrored and rotated copies, alone or with a little arithmetic."""
    k = d.k
    n = d.rng.choices((2, 3, 4), (4, 3, 2))[0]
    trips = d.trips(n, d.volume(high=2e6))
    source, target = fresh_arrays(d, 2)
    order = list(range(n))
    while order == sorted(order):
        d.rng.shuffle(order)
    style = d.rng.choice(("copy", "copy", "arithmetic", "add", "pack", "mirror", "strided", "pair", "merge"))
    other = d.k.array(d.element) if style in ("add", "pair") else None
    block, loops = d.rng.choice((2, 4, 8)), list(range(n))
    if d.chance(0.4):
        d.rng.shuffle(loops)

    def body(drawn: list[Index]) -> None:
        at = [drawn[loops.index(i)] for i in range(n)]
        moved = [at[i] for i in order]
        match style:
            case "pack":  # into blocks of the last dimension
                k.store(k.load(source, *at), target, *moved[:-1], moved[-1] // block, moved[-1] % block)
            case "mirror":
                flip = d.rng.randrange(n)
                moved[flip] = moved[flip].mirrored()
                k.store(k.load(source, *at), target, *moved)
            case "strided":
                stretch = d.rng.randrange(n)
                at = [index * block if i == stretch else index for i, index in enumerate(at)]
                k.store(k.load(source, *at), target, *moved)
            case "merge":  # two dimensions into one
                width = trips[order[-1]]
                k.store(k.load(source, *at), target, *moved[:-2], moved[-2] * width + moved[-1])
            case "arithmetic":
                k.store(mix(d, [k.load(source, *at)], d.rng.randint(1, 6)), target, *moved)
            case "add":
                assert other is not None
                k.store(mix(d, [k.load(source, *at), k.load(other, *moved)], 1), target, *moved)
            case "pair":
                assert other is not None
                value = k.load(source, *at)
                k.store(value, target, *moved)
                k.store(unary(d, value, "scale"), other, *at)
            case _:
                k.store(k.load(source, *at), target, *moved)

    over(d, [trips[i] for i in loops], body)


def imperfect(d: Draw) -> None:
    """Statements and loops mixed at every level: initialise, reduce, normalise, and free random trees."""
    k = d.k
    style = d.rng.choices(("normalise", "softmax", "tree"), (1, 1, 10))[0]
    if style in ("normalise", "softmax") and d.element.startswith("f"):
        rows, columns = d.trips(2, d.volume(high=2e6), smallest=4)
        source, target = fresh_arrays(d, 2)
        one, zero = k.constant(1, d.element), k.constant(0, d.element)
        gain = d.k.array(d.element) if d.chance(0.5) else None
        by_column = d.chance(0.3)

        def at(row: Index, column: Index) -> tuple[Index, Index]:
            return (column, row) if by_column else (row, column)

        with k.loop(0, rows) as row:
            if style == "softmax":

                def peak(j: Index, args: list[Value]) -> list[Value]:
                    return [larger(d, args[0], k.load(source, *at(row, j)))]

                def total(j: Index, args: list[Value]) -> list[Value]:
                    power = k.op("math.exp", sub(d, k.load(source, *at(row, j)), top))
                    k.store(power, target, *at(row, j))
                    return [add(d, args[0], power)]

                [top] = k.fold(0, columns, [zero], peak)
                [whole] = k.fold(0, columns, [zero], total)
                factor = k.op("arith.divf", one, whole)
                with k.loop(0, columns) as j:
                    k.store(mul(d, k.load(target, *at(row, j)), factor), target, *at(row, j))
                return

            def moments(j: Index, args: list[Value]) -> list[Value]:
                value = k.load(source, *at(row, j))
                return [add(d, args[0], value), add(d, args[1], mul(d, value, value))]

            sums = k.fold(0, columns, [zero, zero], moments)
            share = k.constant(1 / columns, d.element)
            mean = mul(d, sums[0], share)
            variance = sub(d, mul(d, sums[1], share), mul(d, mean, mean))
            spread = k.op("math.sqrt", add(d, k.op("math.absf", variance), k.constant(1e-3, d.element)))
            with k.loop(0, columns) as j:
                value = k.op("arith.divf", sub(d, k.load(source, *at(row, j)), mean), spread)
                if gain is not None:
                    value = mul(d, value, k.load(gain, j))
                k.store(value, target, *at(row, j))
        return

    levels = d.rng.choice((2, 2, 3, 3, 4))
    trips = d.trips(levels, d.volume(high=4e6))
    written: list[tuple[Array, int]] = []  # array, how many outer loop variables index it
    inputs = fresh_arrays(d, d.rng.randint(1, 4))

    def statement(indices: list[Index]) -> None:
        values = []
        for array in d.rng.sample(inputs, d.rng.randint(1, len(inputs))):
            rank = len(array.extents) or d.rng.randint(1, len(indices))
            if rank <= len(indices):
                values.append(k.load(array, *d.rng.sample(indices, rank)))
        usable = [(array, rank) for array, rank in written if rank <= len(indices)]
        if usable and d.chance(0.6):
            array, rank = d.rng.choice(usable)
            values.append(k.load(array, *indices[:rank]))
        if not values:
            values = [d.constant()]
        if usable and d.chance(0.4):  # accumulate
            array, rank = d.rng.choice(usable)
            k.store(add(d, k.load(array, *indices[:rank]), mix(d, values, 1)), array, *indices[:rank])
            return
        made, rank = d.k.array(d.element), d.rng.randint(max(1, len(indices) - 1), len(indices))
        k.store(mix(d, values, d.rng.randint(0, 4)), made, *indices[:rank])
        written.append((made, rank))

    def level(at: int, indices: list[Index]) -> None:
        with k.loop(0, trips[at]) as index:
            inside = [*indices, index]
            if at == levels - 1:
                for _ in range(d.rng.choice((1, 1, 2, 3))):
                    statement(inside)
                return
            if d.chance(0.75):
                statement(inside)
            for _ in range(d.rng.choices((1, 2, 3), (4, 3, 1))[0]):
                level(at + 1, inside)
                if d.chance(0.4):
                    statement(inside)

    level(0, [])


def conditional(d: Draw) -> None:
    """affine.if on loop variables, scf.if on data, compare and select, nested and with else."""
    k = d.k
    n = d.rng.choices((1, 2, 3), (2, 4, 2))[0]
    trips = d.trips(n, d.volume(high=4e6), smallest=6)
    inputs, output = fresh_arrays(d, d.rng.choice((1, 2, 3))), d.k.array(d.element)
    style = d.rng.choice(("index", "index", "data", "data", "select", "both", "store", "ladder"))
    extra = d.rng.choice((0, 2, 4, 8))

    def index_condition(at: list[Index]) -> tuple[Index, bool]:
        i = d.rng.choice(at)
        middle = d.rng.randint(i.low + 1, max(i.low + 1, i.high - 1))
        match d.rng.choice(("above", "below", "diagonal", "mod", "sum")):
            case "below":
                return i * -1 + middle, False
            case "diagonal" if len(at) > 1:
                other = d.rng.choice([one for one in at if one is not i])
                return i - other, d.chance(0.2)
            case "mod":
                return i % d.rng.choice((2, 3, 4)), True
            case "sum" if len(at) > 1:
                return at[0] + at[-1] - (at[0].high + at[-1].high) // 2, False
            case _:
                return i - middle, False

    def data_condition(values: Sequence[Value]) -> Value:
        a = d.rng.choice(values)
        b = d.rng.choice(values) if len(values) > 1 and d.chance(0.5) else d.constant(0.4, 1.4)
        return k.compare(d.rng.choice(("olt", "ogt")) if a.is_float else d.rng.choice(("slt", "sgt")), a, b)

    def branch(values: Sequence[Value], depth: int, at: list[Index]) -> Value:
        def then() -> list[Value]:
            if depth > 0 and d.chance(0.6):
                return [branch(values, depth - 1, at)]
            return [mix(d, values, extra)]

        def otherwise() -> list[Value]:
            return [mix(d, values[:1], max(1, extra // 2))]

        by_index = style in ("index", "ladder") or (style == "both" and d.chance(0.5))
        if by_index:
            condition, equal = index_condition(at)
            return k.when(condition, then, otherwise, equal=equal)[0]
        return k.when_data(data_condition(values), then, otherwise)[0]

    def body(at: list[Index]) -> None:
        values = reads(d, inputs, at, plain=0.8)
        if style == "select":
            for _ in range(d.rng.randint(1, 4)):
                values.append(k.select(data_condition(values), mix(d, values, 1), d.rng.choice(values)))
            k.store(mix(d, values, extra), output, *at)
        elif style == "store":  # nothing returned, a store on one side or on both

            def write(extra_ops: int) -> list[Value]:
                k.store(mix(d, values, extra_ops), output, *at)
                return []

            other = (lambda: write(1)) if d.chance(0.5) else None
            if d.chance(0.5):
                condition, equal = index_condition(at)
                k.when(condition, lambda: write(extra), other, equal=equal)
            else:
                k.when_data(data_condition(values), lambda: write(extra), other)
        else:
            depth = {"ladder": 3, "both": 2}.get(style, d.rng.choice((0, 0, 1)))
            k.store(branch(values, depth, at), output, *at)

    over(d, trips, body)


def triangular(d: Draw) -> None:
    """Bounds that depend on outer loops: triangles, bands, trapezoids, solves and factorisations."""
    k = d.k
    style = d.rng.choice(("solve", "product", "syrk", "pairs", "band", "lu", "map", "map", "tetra", "trapezoid"))
    upper = d.chance(0.5)
    cubic = style in ("product", "syrk", "lu", "tetra")
    volume = d.volume(high=4e6)
    n = d.size((volume * (6 if cubic else 2)) ** (1 / 3 if cubic else 1 / 2), 5)
    m = d.size(max(2.0, min(n * 1.5, volume / n)), 4)
    a, b, c = fresh_arrays(d, 3)

    def bounds(i: Index) -> tuple[int | Index, int | Index]:
        return (i, n) if upper else (0, i + 1)

    match style:
        case "solve":  # x[i] = mean of b[i] and the earlier x weighted: every element waits for the ones before
            with k.loop(0, n) as i:
                k.store(k.load(b, i), c, i)
                with k.loop(0, i) as j:
                    scaled = mul(
                        d,
                        mul(d, k.load(a, i, j), k.load(c, j)),
                        k.constant(1 / n if d.element[0] == "f" else 1, d.element),
                    )
                    k.store(sub(d, k.load(c, i), scaled), c, i)
                if d.chance(0.5) and d.element[0] == "f":
                    k.store(k.op("arith.divf", k.load(c, i), add(d, k.load(a, i, i), k.constant(1, d.element))), c, i)
        case "product":
            with k.loop(0, n) as i, k.loop(0, m) as j:
                if d.chance(0.5):
                    low, high = bounds(i)
                    with k.loop(low, high) as p:
                        k.store(add(d, k.load(c, i, j), mul(d, k.load(a, i, p), k.load(b, p, j))), c, i, j)
                else:
                    low, high = bounds(i)
                    [total] = k.fold(
                        low,
                        high,
                        [k.constant(0, d.element)],
                        lambda p, args: [add(d, args[0], mul(d, k.load(a, p, i), k.load(b, p, j)))],
                    )
                    k.store(total, c, i, j)
        case "syrk":
            with k.loop(0, n) as i:
                low, high = bounds(i)
                with k.loop(low, high) as j:
                    if d.chance(0.5):
                        k.store(mix(d, [k.load(b, i, j)], 1), c, i, j)
                    with k.loop(0, m) as p:
                        terms = mul(d, k.load(a, i, p), k.load(a, j, p))
                        if d.chance(0.3):
                            terms = add(d, terms, mul(d, k.load(b, j, i), k.load(a, i, p)))
                        k.store(add(d, k.load(c, i, j), terms), c, i, j)
        case "pairs":  # i < j, both ends updated or one
            symmetric = d.chance(0.4)
            with k.loop(0, n) as i, k.loop(i + 1, n) as j:
                gap = mix(d, [sub(d, k.load(a, i), k.load(a, j)), sub(d, k.load(b, i), k.load(b, j))], 3)
                k.store(add(d, k.load(c, i), gap), c, i)
                if symmetric:
                    k.store(sub(d, k.load(c, j), gap), c, j)
        case "band":
            width = d.size(max(2.0, min(n / 3, volume / n / 2)))
            with k.loop(0, n) as i, k.loop([0, i - width], [n, i + width + 1]) as j:
                element = k.load(a, i, (j - i + width).within(0, 2 * width)) if d.chance(0.5) else k.load(a, i, j)
                k.store(add(d, k.load(c, i), mul(d, element, k.load(b, j))), c, i)
        case "lu":  # damped, so that repeated runs stay finite
            damp = k.constant(1 / n if d.element[0] == "f" else 1, d.element)
            with k.loop(0, n) as p:
                with k.loop(p + 1, n) as i:
                    k.store(mul(d, k.load(b, i, p), damp), c, i, p)
                with k.loop(p + 1, n) as i, k.loop(p + 1, n) as j:
                    update = mul(d, k.load(c, i, p), k.load(b, p, j))
                    k.store(sub(d, k.load(a, i, j), update), a, i, j)
        case "tetra":
            with k.loop(0, n) as i, k.loop(0, i + 1) as j, k.loop(0, j + 1) if d.chance(0.5) else k.loop(j, i + 1) as p:
                k.store(add(d, k.load(c, i, j), mix(d, [k.load(a, i, p), k.load(b, p, j)], 1)), c, i, j)
        case "trapezoid":
            with k.loop(0, m) as t, k.loop(t, t + n) as i:
                k.store(weighted_mean(d, [k.load(a, i), k.load(b, t, (i - t).within(0, n - 1))]), a, i)
        case _:
            with k.loop(0, n) as i:
                low, high = bounds(i)
                with k.loop(low, high) as j:
                    values = [k.load(a, *((i, j) if d.chance(0.7) else (j, i))), k.load(b, j)]
                    k.store(mix(d, values, d.rng.randint(0, 6)), c, *((i, j) if d.chance(0.7) else (j, i)))


def multi(d: Draw) -> None:
    """Two to five nests in a row that feed each other or read the same arrays: what fusion is for."""
    k = d.k
    n = d.rng.choices((1, 2, 3), (2, 4, 1))[0]
    stages = d.rng.choice((2, 2, 3, 3, 4, 5))
    local, same, halo = d.chance(0.35), d.chance(0.7), d.chance(0.3)
    trips = d.trips(n, max(40.0, d.volume(high=4e6) / stages), smallest=12 if halo else 2)
    pool = fresh_arrays(d, d.rng.choice((1, 2, 3)))
    in_memory: list[Array] = []
    lost = (
        0  # a stage that reads neighbours covers less than the one before: no buffer is read where nothing was written
    )

    for stage in range(stages):
        last = stage == stages - 1
        target = d.k.local(d.element) if local and not last else d.k.array(d.element)
        sources = d.rng.sample(pool, d.rng.randint(1, min(3, len(pool))))
        if stage and in_memory and d.chance(0.8):
            sources = [in_memory[-1], *(one for one in sources if one is not in_memory[-1])][:3]
        reduce_last = n > 1 and not local and d.chance(0.2) and not last
        shrink = d.rng.randint(1, 2) if halo else 0
        lost += shrink
        own = [trip - lost for trip in trips]

        def body(
            at: list[Index], sources: Sequence[Array] = sources, target: Array = target, shrink: int = shrink
        ) -> None:
            values = []
            for array in sources:
                rank = len(array.extents) or n
                index = list(at[:rank])
                if not (same or local) and rank > 1 and d.chance(0.3):
                    index.reverse()
                if rank > len(at):
                    index = [at[i % len(at)] for i in range(rank)]
                values.append(k.load(array, *index))
                if shrink and rank <= len(at):
                    values.append(k.load(array, *index[:-1], index[-1] + d.rng.randint(1, shrink)))
            k.store(mix(d, values, d.rng.randint(0, 4)), target, *at)

        if reduce_last:
            over(d, own[:-1], lambda at, target=target: k.store(k.constant(0, d.element), target, *at))  # type: ignore[misc]

            def total(at: list[Index], sources: Sequence[Array] = sources, target: Array = target) -> None:
                value = mix(d, [k.load(array, *at[: len(array.extents) or n]) for array in sources], 1)
                k.store(add(d, k.load(target, *at[:-1]), value), target, *at[:-1])

            over(d, own, total)
        else:
            over(d, own, body)
        pool.append(target)
        in_memory.append(target)


_HUNGRY_INTEGER = ("butterfly", "all pairs", "late use", "accumulators", "rounds", "rounds")
_HUNGRY_FLOAT = (
    *("micro product", "block product", "polynomials", "butterfly", "all pairs"),
    *("filter", "late use", "accumulators", "solve", "window"),
)


def register_hungry(d: Draw) -> None:
    """Long straight bodies with many values alive: unrolled products, butterflies, filters, hash rounds."""
    k, rng = d.k, d.rng
    integer = not d.element.startswith("f")
    styles = _HUNGRY_INTEGER if integer else _HUNGRY_FLOAT
    style = rng.choice(styles)
    zero = k.constant(0, d.element)
    volume = d.volume(low=100, high=2e5)

    def items(body: Callable[[Index], None]) -> None:
        with k.loop(0, d.size(volume)) as i:
            body(i)

    def at_row(array: Array, i: Index, j: int) -> Value:
        return k.load(array, i, scalar_index() + j) if not soa else k.load(array, scalar_index() + j, i)

    def set_row(value: Value, array: Array, i: Index, j: int) -> None:
        k.store(value, array, *((i, scalar_index() + j) if not soa else (scalar_index() + j, i)))

    soa = d.chance(0.5)
    match style:
        case "micro product":  # rows x columns accumulators over a depth loop
            rows, columns = rng.choice(((2, 4), (4, 4), (4, 8), (6, 4), (6, 8), (8, 8), (3, 5), (5, 5), (4, 12)))
            depth = d.size(max(4.0, min(volume / 8, 400)))
            tiles = d.trips(2, max(1.0, volume / depth / 2), smallest=1)
            a, b, c = fresh_arrays(d, 3)

            def micro(at: list[Index]) -> None:
                def step(p: Index, args: list[Value]) -> list[Value]:
                    left = [k.load(a, *((at[0] * rows + r, p) if soa else (p, at[0] * rows + r))) for r in range(rows)]
                    right = [k.load(b, p, at[1] * columns + s) for s in range(columns)]
                    return [
                        add(d, args[r * columns + s], mul(d, left[r], right[s]))
                        for r in range(rows)
                        for s in range(columns)
                    ]

                results = k.fold(0, depth, [zero] * (rows * columns), step)
                for number, result in enumerate(results):
                    k.store(result, c, at[0] * rows + number // columns, at[1] * columns + number % columns)

            over(d, tiles, micro)
        case "block product":  # small matrices, whole in registers
            size = rng.choice((2, 3, 3, 4, 4, 5, 6))
            a, b, c = fresh_arrays(d, 3)

            def block(i: Index) -> None:
                left = [[at_row(a, i, r * size + s) for s in range(size)] for r in range(size)]
                right = [[at_row(b, i, r * size + s) for s in range(size)] for r in range(size)]
                for r in range(size):
                    for s in range(size):
                        total = mul(d, left[r][0], right[0][s])
                        for p in range(1, size):
                            total = add(d, total, mul(d, left[r][p], right[p][s]))
                        set_row(total, c, i, r * size + s)

            items(block)
        case "polynomials":  # coefficients loaded once, alive through the loop
            count, degree = rng.choice((1, 2, 3, 4)), rng.choice((5, 8, 12, 16))
            coefficients, x, y = fresh_arrays(d, 3)
            loaded = [
                [k.load(coefficients, scalar_index() + p, scalar_index() + q) for q in range(degree + 1)]
                for p in range(count)
            ]
            estrin = d.chance(0.4)

            def evaluate(i: Index) -> None:
                value = k.load(x, i)
                for p, row in enumerate(loaded):
                    terms = list(row)
                    power = value
                    while estrin and len(terms) > 1:  # pairs in parallel
                        pairs = [add(d, terms[q], mul(d, terms[q + 1], power)) for q in range(0, len(terms) - 1, 2)]
                        terms = pairs + terms[len(pairs) * 2 :]
                        power = mul(d, power, power)
                    result = terms[-1]
                    for term in reversed(terms[:-1]):
                        result = add(d, mul(d, result, value), term)
                    set_row(result, y, i, p)

            items(evaluate)
        case "butterfly":  # Walsh-Hadamard or twiddled
            width = rng.choice((8, 8, 16, 16, 32))
            a, c = fresh_arrays(d, 2)
            twiddle = d.chance(0.5)

            def transform(i: Index) -> None:
                values = [at_row(a, i, j) for j in range(width)]
                half = 1
                while half < width:
                    for start in range(0, width, 2 * half):
                        for j in range(start, start + half):
                            other = (
                                mul(d, values[j + half], d.constant(0.3, 0.95))
                                if twiddle and j % 2
                                else values[j + half]
                            )
                            values[j], values[j + half] = add(d, values[j], other), sub(d, values[j], other)
                    half *= 2
                for j in range(width):
                    set_row(values[j], c, i, j)

            items(transform)
        case "all pairs":
            width = rng.choice((5, 6, 8, 10, 12))
            a, c = fresh_arrays(d, 2)
            kind = rng.choice(("mul", "max", "sub", "add"))

            def pairs(i: Index) -> None:
                values = [at_row(a, i, j) for j in range(width)]
                totals: list[Value | None] = [None] * width
                for p in range(width):
                    for q in range(p + 1, width):
                        term = binary(d, values[p], values[q], kind)
                        for end in {p, q} if d.chance(0.7) else {p}:
                            old = totals[end]
                            totals[end] = term if old is None else add(d, old, term)
                for j, result in enumerate(totals):
                    set_row(result if result is not None else values[j], c, i, j)

            items(pairs)
        case "filter":  # taps and the sliding window both carried in registers
            taps = rng.choice((8, 12, 16, 20, 24))
            weights, x, y = fresh_arrays(d, 3)
            loaded_taps = [k.load(weights, scalar_index() + t) for t in range(taps)]
            first = [k.load(x, scalar_index() + t) for t in range(taps - 1)]

            def slide(i: Index, window: list[Value]) -> list[Value]:
                newest = k.load(x, i + (taps - 1))
                values = [*window, newest]
                total = mul(d, values[0], loaded_taps[0])
                for value, tap in zip(values[1:], loaded_taps[1:], strict=True):
                    total = add(d, total, mul(d, value, tap))
                k.store(total, y, i)
                return values[1:]

            k.fold(0, d.size(volume), first, slide)
        case "late use":  # everything is needed again at the end, in reverse
            width = rng.choice((8, 12, 16, 20, 24, 32))
            a, c = fresh_arrays(d, 2)

            def later(i: Index) -> None:
                values = [at_row(a, i, j) for j in range(width)]
                running = values[0]
                partial_sums = [running]
                for value in values[1:]:
                    running = add(d, running, mul(d, value, d.constant()))
                    partial_sums.append(running)
                for j, (value, total) in enumerate(zip(reversed(values), partial_sums, strict=True)):
                    set_row(mix(d, [value, total, running], 0), c, i, j)

            items(later)
        case "accumulators":
            count = rng.choice((6, 8, 12, 16, 20, 24))
            a, b, c = fresh_arrays(d, 3)
            inner = d.size(max(8.0, min(volume / 4, 2000)))
            outer = d.size(max(1.0, volume / inner / 4), 1)
            how = [rng.choice(("add", "add", "max", "min", "sub")) for _ in range(count)]

            with k.loop(0, outer) as row:

                def gather(p: Index, args: list[Value]) -> list[Value]:
                    shared = [k.load(b, p), k.load(b, p + 1)]
                    results = []
                    for j, old in enumerate(args):
                        term = mul(d, shared[j % 2], k.load(a, p, row + j))
                        results.append(binary(d, old, term, how[j]))
                    return results

                for j, result in enumerate(k.fold(0, inner, [zero] * count, gather)):
                    k.store(result, c, row, scalar_index() + j)
        case "solve":  # elimination of a small dominant system, unrolled
            size = rng.choice((3, 3, 4, 4, 5, 6))
            a, b, c = fresh_arrays(d, 3)
            shift = k.constant(2.0 * size, d.element)

            def eliminate(i: Index) -> None:
                matrix = [[at_row(a, i, r * size + s) for s in range(size)] for r in range(size)]
                right = [at_row(b, i, r) for r in range(size)]
                for r in range(size):
                    matrix[r][r] = add(d, matrix[r][r], shift)
                for p in range(size):
                    inverse = k.op("arith.divf", k.constant(1, d.element), matrix[p][p])
                    for r in range(p + 1, size):
                        factor = mul(d, matrix[r][p], inverse)
                        for s in range(p + 1, size):
                            matrix[r][s] = sub(d, matrix[r][s], mul(d, factor, matrix[p][s]))
                        right[r] = sub(d, right[r], mul(d, factor, right[p]))
                for p in reversed(range(size)):
                    total = right[p]
                    for s in range(p + 1, size):
                        total = sub(d, total, mul(d, matrix[p][s], right[s]))
                    right[p] = k.op("arith.divf", total, matrix[p][p])
                    set_row(right[p], c, i, p)

            items(eliminate)
        case "window":  # a box of neighbours, several filters over the same loads
            side, count = rng.choice((3, 4, 5)), rng.choice((1, 2, 3))
            a, c = fresh_arrays(d, 2)
            kernels = [[d.constant(-1.0, 1.0) for _ in range(side * side)] for _ in range(count)]

            def filters(at: list[Index]) -> None:
                box = [k.load(a, at[0] + r, at[1] + s) for r in range(side) for s in range(side)]
                for number, weights_of_one in enumerate(kernels):
                    total = mul(d, box[0], weights_of_one[0])
                    for value, weight in zip(box[1:], weights_of_one[1:], strict=True):
                        total = add(d, total, mul(d, value, weight))
                    k.store(total, c, scalar_index() + number, *at)

            over(d, d.trips(2, volume), filters)
        case _:  # rounds: add, rotate, xor over a wide state
            width, rounds = rng.choice((8, 12, 16, 16, 20)), rng.choice((1, 2, 3))
            a, c = fresh_arrays(d, 2)
            bits = 64 if d.element == "i64" else 32
            turns = [rng.randint(1, bits - 1) for _ in range(4)]

            def hash_rounds(i: Index) -> None:
                state = [at_row(a, i, j) for j in range(width)]
                for number in range(rounds):
                    for j in range(width):
                        p, q = (j + 1 + number) % width, (j + width // 2) % width
                        state[j] = add(d, state[j], state[p])
                        mixed = k.op("arith.xori", state[q], state[j])
                        turn = turns[j % 4]
                        left = k.op("arith.shli", mixed, k.constant(turn, d.element))
                        right = k.op("arith.shrui", mixed, k.constant(bits - turn, d.element))
                        state[q] = k.op("arith.ori", left, right)
                for j in range(width):
                    set_row(state[j], c, i, j)

            items(hash_rounds)


def recurrence(d: Draw) -> None:
    """Scans, filters and tables where an iteration waits for the one before."""
    k, rng = d.k, d.rng
    integer = not d.element.startswith("f")
    style = rng.choice(
        ("scan", "scan", "filter", "table", "table", "path", "carry", "rows", "generator" if integer else "logistic")
    )
    zero = k.constant(0, d.element)
    a, c = fresh_arrays(d, 2)
    keep = d.constant(0.3, 0.9)

    def damped(old: Value, new: Value) -> Value:
        """keep * old + new: bounded for keep < 1; a plain sum on integers."""
        return add(d, mul(d, old, keep), new) if not integer else add(d, old, new)

    match style:
        case "scan":  # along one axis, in a register or through memory
            rows, columns = d.trips(2, d.volume(high=2e6))
            through_memory, by_column, back = d.chance(0.5), d.chance(0.4), d.chance(0.2)
            combine = rng.choice(("sum", "max", "damped"))

            def step(old: Value, new: Value) -> Value:
                return (
                    damped(old, new)
                    if combine == "damped"
                    else add(d, old, new)
                    if combine == "sum"
                    else larger(d, old, new)
                )

            with k.loop(0, rows) as i:
                if through_memory:
                    with k.loop(1, columns) as j:
                        here, before = (j.mirrored(), j.mirrored() + 1) if back else (j, j - 1)
                        cell, earlier = ((here, i), (before, i)) if by_column else ((i, here), (i, before))
                        k.store(step(k.load(c, *earlier), k.load(a, *cell)), c, *cell)
                else:

                    def carry(j: Index, args: list[Value]) -> list[Value]:
                        cell = (j, i) if by_column else (i, j)
                        result = step(args[0], k.load(a, *cell))
                        k.store(result, c, *cell)
                        return [result]

                    k.fold(0, columns, [zero], carry)
        case "filter":  # order 1 to 4, feedback carried
            order, taps = rng.randint(1, 4), rng.randint(1, 4)
            rows, columns = d.trips(2, d.volume(high=2e6))
            feedback = [d.constant(0.05, 0.9 / order) for _ in range(order)]
            forward = [d.constant() for _ in range(taps)]
            with k.loop(0, rows) as i:

                def slide(j: Index, args: list[Value]) -> list[Value]:
                    total = mul(d, k.load(a, i, j), forward[0])
                    for t in range(1, taps):
                        total = add(d, total, mul(d, k.load(a, i, j + t), forward[t]))
                    for value, weight in zip(args, feedback, strict=True):
                        total = add(d, total, mul(d, value, weight))
                    k.store(total, c, i, j)
                    return [total, *args[:-1]]

                k.fold(0, columns, [zero] * order, slide)
        case "table" | "path":  # cells from their neighbours above and to the left
            rows, columns = d.trips(2, d.volume(high=2e6), smallest=4)
            offsets = rng.sample([(-1, 0), (0, -1), (-1, -1), (-1, 1), (-2, 0), (0, -2)], rng.randint(2, 4))
            best = rng.choice((larger, smaller))
            with k.loop(2, rows + 2) as i, k.loop(2, columns + 2) as j:
                values = [k.load(c, i + x, j + y) for x, y in offsets]
                cost = k.load(a, i, j)
                if style == "path":
                    result = values[0]
                    for value in values[1:]:
                        result = best(d, result, value)
                    result = smaller(d, add(d, result, cost), k.constant(1000, d.element))
                else:
                    result = weighted_mean(d, [*values, cost])
                k.store(result, c, i, j)
        case "carry":  # several values pass round
            count, columns = rng.randint(2, 6), d.size(d.volume(high=1e6))

            def turn(j: Index, args: list[Value]) -> list[Value]:
                value = k.load(a, j)
                results = [damped(args[(p + 1) % count], value if p == 0 else args[p - 1]) for p in range(count)]
                results = [smaller(d, result, k.constant(1000, d.element)) for result in results]
                k.store(results[0], c, j)
                return results

            k.fold(0, columns, [d.constant() for _ in range(count)], turn)
        case "rows":  # each row from the one before: parallel inside, serial outside
            rows, columns = d.trips(2, d.volume(high=2e6), smallest=4)
            with k.loop(1, rows) as i, k.loop(1, columns + 1) as j:
                values = [k.load(c, i - 1, j + o) for o in rng.sample((-1, 0, 1), rng.randint(1, 3))]
                k.store(weighted_mean(d, [*values, k.load(a, i, j)]), c, i, j)
        case "generator":  # linear congruence and xorshift streams
            streams, length = d.trips(2, d.volume(high=1e6))
            factor, offset = k.constant(1664525, d.element), k.constant(1013904223, d.element)
            with k.loop(0, streams) as i:

                def draw(j: Index, args: list[Value]) -> list[Value]:
                    value = add(d, mul(d, args[0], factor), offset)
                    for op, bits in (("arith.shli", 13), ("arith.shrui", 17), ("arith.shli", 5))[: rng.randint(0, 3)]:
                        value = k.op("arith.xori", value, k.op(op, value, k.constant(bits, d.element)))
                    k.store(value, c, i, j)
                    return [value]

                k.fold(0, length, [k.load(a, i)], draw)
        case _:  # logistic: x <- r x (1 - x), one orbit an item
            orbits, length = d.trips(2, d.volume(high=2e6))
            one, rate = k.constant(1, d.element), d.constant(2.5, 3.9)
            with k.loop(0, orbits) as i:
                start = k.op("arith.divf", one, add(d, k.op("math.absf", k.load(a, i)), k.constant(1.5, d.element)))
                body: Callable[[Index, list[Value]], list[Value]] = lambda _, args: [  # noqa: E731
                    mul(d, mul(d, rate, args[0]), sub(d, one, args[0]))
                ]
                k.store(k.fold(0, length, [start], body)[0], c, i)


def modular(d: Draw) -> None:
    """Blocks by hand: stepped loops, floordiv and mod subscripts, pooling, up- and downsampling, unfolding."""
    k, rng = d.k, d.rng
    style = rng.choice(("tiled", "tiled", "pool", "upsample", "unfold", "interleave", "wrap", "stepped"))
    a, c = fresh_arrays(d, 2)
    block = rng.choice((2, 3, 4, 8))
    match style:
        case "tiled":  # a nest that was tiled by hand, sizes divisible
            n, size = rng.choice((2, 2, 3)), rng.choice((4, 8, 16, 32))
            counts = d.trips(n, max(4.0, d.volume(high=4e6) / size**n), smallest=1)
            inner_order = list(range(n))
            rng.shuffle(inner_order)
            b = d.k.array(d.element)

            def tile(corner: list[Index]) -> None:
                def point(drawn: list[Index]) -> None:
                    at = [corner[i] + drawn[inner_order.index(i)] for i in range(n)]
                    values = [k.load(a, *at), k.load(b, *reversed(at))]
                    k.store(mix(d, values, rng.randint(0, 3)), c, *at)

                over(d, [size] * n, point)

            def corners(level: int, starts: list[Index]) -> None:
                if level == n:
                    tile(starts)
                    return
                with k.loop(0, counts[level] * size, size) as start:
                    # The last start is a multiple of the step, so the point loops end exactly at the array's end.
                    corners(level + 1, [*starts, Index(start.text, 0, (counts[level] - 1) * size)])

            corners(0, [])
        case "pool":
            trips = d.trips(2, max(20.0, d.volume(high=4e6) / block**2))
            kind, channels = rng.choice(("max", "mean")), rng.choice((0, 0, 1))
            depth = d.size(rng.choice((3, 8, 16))) if channels else 1
            stride = rng.choice((block, max(1, block - 1)))

            def window(at: list[Index]) -> None:
                lead, out = at[:channels], at[channels:]

                def inner(args: Value, r: Index, s: Index) -> Value:
                    value = k.load(a, *lead, out[0] * stride + r, out[1] * stride + s)
                    return larger(d, args, value) if kind == "max" else add(d, args, value)

                [result] = k.fold(
                    0, block, [k.constant(0, d.element)],
                    lambda r, args: k.fold(0, block, args, lambda s, more: [inner(more[0], r, s)]),
                )  # fmt: skip
                if kind == "mean":
                    result = unary(d, result, "scale")
                k.store(result, c, *lead, *out)

            over(d, [depth, *trips] if channels else trips, window)
        case "upsample":
            trips = d.trips(2, d.volume(high=4e6))

            def near(at: list[Index]) -> None:
                values = [k.load(a, at[0] // block, at[1] // block)]
                if d.chance(0.5):
                    values.append(k.load(a, at[0] // block + 1, at[1] // block))
                k.store(weighted_mean(d, values), c, *at)

            over(d, trips, near)
        case "unfold":  # windows side by side
            rows, columns = d.trips(2, max(20.0, d.volume(high=2e6) / block**2))
            over(
                d,
                [rows, columns, block, block],
                lambda at: k.store(
                    k.load(a, at[0] + at[2], at[1] + at[3]), c, at[0] * columns + at[1], at[2] * block + at[3]
                ),
            )
        case "interleave":
            trips = d.trips(2, max(20.0, d.volume(high=4e6) / block))

            def weave(at: list[Index]) -> None:
                for lane in range(block):
                    value = k.load(a, at[0], at[1] * block + lane)
                    k.store(mix(d, [value], rng.randint(0, 2)), c, scalar_index() + lane, *at)

            over(d, trips, weave)
        case "wrap":
            trips = d.trips(rng.choice((1, 2)), d.volume(high=4e6))
            b, period = d.k.array(d.element), rng.choice((3, 5, 7, 8, 16, 64))

            def periodic(at: list[Index]) -> None:
                values = [k.load(a, *at), k.load(b, at[-1] % period)]
                if d.chance(0.4):
                    values.append(k.load(b, (at[0] + 1) % period))
                k.store(mix(d, values, rng.randint(0, 3)), c, *at)

            over(d, trips, periodic)
        case _:  # red-black and other steps
            trips = d.trips(2, max(40.0, d.volume(high=4e6)), smallest=6)
            step = rng.choice((2, 2, 3))
            for phase in range(rng.choice((1, step))):
                with k.loop(1, trips[0] + 1) as i, k.loop(1 + phase, trips[1] + 1 + phase, step) as j:
                    values = [k.load(a, i, j - 1), k.load(a, i, j + 1), k.load(a, i - 1, j), k.load(a, i + 1, j)]
                    k.store(weighted_mean(d, rng.sample(values, rng.randint(2, 4))), a if d.chance(0.7) else c, i, j)
            if not c.extents:
                k.store(k.load(a, scalar_index(), scalar_index()), c, scalar_index())


def convert(d: Draw) -> None:
    """Element types that differ: widening sums, quantised products, masks, scaling to and from integers."""
    k, rng = d.k, d.rng
    style = rng.choice(
        ("wide sum", "quantised", "dequantise", "quantise", "mask", "iota", "wide product", "narrow", "bits")
    )
    n = rng.choice((1, 2, 2, 3))
    trips = d.trips(n, d.volume(high=4e6))
    small = rng.choice(("i8", "i8", "i16"))

    def single(read: Callable[[list[Index]], Value], target: Array) -> None:
        over(d, trips, lambda at: k.store(read(at), target, *at))

    match style:
        case "wide sum":  # f32 summed in f64, i8 or i16 in i32
            from_type, to_type, cast = rng.choice(
                (("f32", "f64", "arith.extf"), (small, "i32", "arith.extsi"), ("i32", "i64", "arith.extsi"))
            )
            a, b, c = k.array(from_type), k.array(from_type), k.array(to_type)
            rows, columns = d.trips(2, d.volume(high=4e6))
            two = d.chance(0.5)
            with k.loop(0, rows) as i:

                def step(j: Index, args: list[Value]) -> list[Value]:
                    value = k.cast(cast, k.load(a, i, j), to_type)
                    if two:
                        value = mul(d, value, k.cast(cast, k.load(b, j), to_type))
                    return [add(d, args[0], value)]

                if not two:
                    k.load(b, i)
                k.store(k.fold(0, columns, [k.constant(0, to_type)], step)[0], c, i)
        case "quantised":  # integer product of small types, 32-bit sums
            m, p, q = d.trips(3, d.volume(high=4e6))
            a, b, c = k.array(small), k.array(small), k.array("i32")
            order = [0, 1, 2]
            rng.shuffle(order)
            sizes, zero_point = (m, p, q), k.constant(rng.randint(1, 9), "i32")
            shifted = d.chance(0.5)

            def product(drawn: list[Index]) -> None:
                i, j, r = (drawn[order.index(axis)] for axis in range(3))
                left = k.cast("arith.extsi", k.load(a, i, r), "i32")
                if shifted:
                    left = sub(d, left, zero_point)
                right = k.cast("arith.extsi", k.load(b, r, j), "i32")
                k.store(add(d, k.load(c, i, j), mul(d, left, right)), c, i, j)

            over(d, [sizes[axis] for axis in order], product)
        case "dequantise":
            a, scales, c = k.array(rng.choice((small, "i32"))), k.array("f32"), k.array("f32")

            def scaled(at: list[Index]) -> Value:
                value = k.cast("arith.sitofp", k.load(a, *at), "f32")
                return mul(d, value, k.load(scales, at[-1] if d.chance(0.5) else at[0]))

            single(scaled, c)
        case "quantise":  # scale, clamp, to integer
            real = rng.choice(("f32", "f64"))
            a, c = k.array(real), k.array(rng.choice((small, "i32")))

            def rounded(at: list[Index]) -> Value:
                value = mul(d, k.load(a, *at), k.constant(rng.choice((8.0, 25.5, 31.75)), real))
                value = smaller(d, larger(d, value, k.constant(-127, real)), k.constant(127, real))
                whole = k.cast("arith.fptosi", value, "i32")
                return whole if c.element == "i32" else k.cast("arith.trunci", whole, c.element)

            single(rounded, c)
        case "mask":  # small integers decide between reals
            real = d.element if d.element.startswith("f") else "f32"
            mask, a, b, c = k.array(rng.choice(("i8", "i32"))), k.array(real), k.array(real), k.array(real)
            count = rng.randint(0, 6)

            def chosen(at: list[Index]) -> Value:
                test = k.compare(
                    rng.choice(("sgt", "ne", "slt")), k.load(mask, *at), k.constant(rng.randint(0, 1), mask.element)
                )
                left, right = k.load(a, *at), k.load(b, *at)
                return k.select(test, mix(d, [left, right], count, "mixed"), right)

            single(chosen, c)
        case "iota":  # from loop variables
            c = k.array(d.element)
            single(lambda at: mix(d, [k.index_value(one, d.element) for one in at], rng.randint(1, 6)), c)
        case "wide product":  # computed in f64, kept in f32
            a, b, c = k.array("f32"), k.array("f32"), k.array("f32")

            def wide(at: list[Index]) -> Value:
                values = [k.cast("arith.extf", k.load(one, *at), "f64") for one in (a, b)]
                return k.cast("arith.truncf", mix(d, values, rng.randint(1, 6), "mixed"), "f32")

            single(wide, c)
        case "narrow":  # 64-bit to small with saturation
            a, c = k.array(rng.choice(("i32", "i64"))), k.array(small)

            def saturated(at: list[Index]) -> Value:
                value = smaller(d, larger(d, k.load(a, *at), k.constant(-128, a.element)), k.constant(127, a.element))
                return k.cast("arith.trunci", value, small)

            single(saturated, c)
        case _:  # bits counted and packed
            integer = rng.choice(("i32", "i64"))
            a, b, c = k.array(integer), k.array(integer), k.array(integer)

            def counted(at: list[Index]) -> Value:
                value = k.op("arith.xori", k.load(a, *at), k.load(b, at[-1]))
                return mix(d, [k.op(rng.choice(("math.ctpop", "math.ctlz", "math.cttz")), value), value], 1, "bits")

            single(counted, c)


KINDS: dict[str, Callable[[Draw], None]] = {
    "nest_elementwise": elementwise,
    "nest_reduction": reduction,
    "nest_matmul_like": matmul_like,
    "nest_stencil": stencil,
    "nest_transpose": transpose,
    "nest_imperfect": imperfect,
    "nest_conditional": conditional,
    "nest_triangular": triangular,
    "nest_multi": multi,
    "nest_register_hungry": register_hungry,
    "nest_recurrence": recurrence,
    "nest_modular": modular,
    "nest_convert": convert,
}
"""Family -> what draws one program."""


def nest(family: str, seed: int) -> Source:
    """The program of one family and seed; the same ones give the same text."""
    for attempt in range(40):
        rng = random.Random(f"{family}/{seed}")
        element = rng.choices(("f32", "f64", "i32", "i64"), (45, 35, 14, 6))[0]
        flavour = rng.choice(FLOAT_FLAVOURS if element.startswith("f") else INT_FLAVOURS)
        kernel = Kernel()
        KINDS[family](Draw(rng, kernel, 0.6**attempt, element, flavour))
        if kernel.operand_bytes <= MAX_OPERAND_BYTES and kernel.executed_ops <= MAX_EXECUTED_OPS:
            return Source(f"{ORIGIN}/{family}/{seed}", family, ORIGIN, kernel.finish())
    raise AssertionError(f"{family}/{seed} never fits the limits")


def _sources(family: str, count: int) -> Iterator[Source]:
    for seed in range(count):
        yield nest(family, seed)


def families(count: int = PROGRAMS_PER_FAMILY) -> tuple[Family, ...]:
    """All families, `count` programs each."""
    return tuple(Family(name, ORIGIN, partial(_sources, name, count)) for name in KINDS)


FAMILIES = families()
