"""Code that needs more registers than there are: wide accumulators, long straight lines, many values alive."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from .affine_text import Array, Index
from .drawn import Drawn, Kind, families_of
from .scf_text import Num

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "registers"


def _number(d: Drawn) -> str:
    return d.pick("element", ("f32", "f64", "i32", "i64"), (4, 4, 2, 2))


def _halved(value: Num, by: float = 0.5) -> Num:
    return value * by if value.is_float else value.sar(1)


def reg_accumulators(d: Drawn) -> None:
    """Products and convolutions with a block of scalar accumulators carried around the inner loop."""
    k, element = d.k, _number(d)
    style = d.pick("style", ("product", "product", "outer", "convolution", "moments", "correlate"))
    rows, columns = d.pick("block", ((4, 4), (4, 6), (3, 8), (6, 6), (5, 5), (8, 4), (2, 12), (7, 7), (8, 8), (2, 24)))
    cells = rows * columns
    zero = k.constant(0, element)
    if style in ("product", "outer"):
        m, n, depth = d.sides(3, d.work / (3 * cells), smallest=2)
        turned, packed = d.chance("turned", 0.5), d.chance("packed", 0.4)
        a, b, c = k.array(element), k.array(element), k.array(element)
        with k.loop(0, m) as bi, k.loop(0, n) as bj:

            def left(p: Index, r: int) -> Num:
                if packed:
                    return k.load(a, bi, p, r)
                return k.load(a, p, bi * rows + r) if turned else k.load(a, bi * rows + r, p)

            def step(p: Index, sums: list[Num]) -> list[Num]:
                xs = [left(p, r) for r in range(rows)]
                ys = [k.load(b, bj, p, s) if packed else k.load(b, p, bj * columns + s) for s in range(columns)]
                if style == "outer" and element[0] == "f":
                    return [xs[i // columns].fma(ys[i % columns], total) for i, total in enumerate(sums)]
                return [total + xs[i // columns] * ys[i % columns] for i, total in enumerate(sums)]

            sums = k.fold(0, depth, [zero] * cells, step)
            for i, total in enumerate(sums):
                k.store(total, c, bi * rows + i // columns, bj * columns + i % columns)
        return
    if style in ("convolution", "correlate"):
        taps = d.pick("taps", (3, 5, 9))
        outer, depth = d.sides(2, d.work / (2 * cells * taps), smallest=2)
        data, weights, out = k.array(element), k.array(element, depth, taps, rows), k.array(element)
        with k.loop(0, outer) as o:

            def tap(c: Index, sums: list[Num]) -> list[Num]:
                sums = list(sums)
                line = [k.load(data, c, o * columns + x) for x in range(columns + taps - 1)]
                for t in range(taps):
                    for r in range(rows):
                        w = k.load(weights, c, t, r)
                        for x in range(columns):
                            sums[r * columns + x] = sums[r * columns + x] + w * line[x + t]
                return sums

            if cells * taps > 200:
                taps = 3
            sums = k.fold(0, depth, [zero] * cells, tap)
            for i, total in enumerate(sums):
                k.store(total, out, i // columns, o * columns + i % columns)
        return
    # Sums of products of all pairs of a few columns.
    width = d.pick("width", (5, 6, 7, 8, 9))
    n = max(4, d.size(d.work / width**2, 4))
    data, out = k.array(element, n, width), k.array(element, width, width)
    pairs = [(i, j) for i in range(width) for j in range(i + 1)]

    def gather(p: Index, sums: list[Num]) -> list[Num]:
        xs = [k.load(data, p, c) for c in range(width)]
        return [total + xs[i] * xs[j] for total, (i, j) in zip(sums, pairs, strict=True)]

    for total, (i, j) in zip(k.fold(0, n, [zero] * len(pairs), gather), pairs, strict=True):
        k.store(total, out, i, j)


def reg_straight(d: Drawn) -> None:
    """Long straight-line blocks: many loads, a random network in which values are used late, many stores."""
    k, element = d.k, _number(d)
    width = d.pick("width", (16, 20, 24, 32, 40, 48, 64))
    layers = d.pick("layers", (2, 3, 4, 6))
    if width * layers > 200:
        layers = 3
    n = max(2, d.size(d.work / (width * (layers * 2 + 2)), 2))
    transposed = d.chance("transposed", 0.5)
    network = d.pick("network", ("random", "random", "butterfly", "late", "ladder", "mixed"))
    shape = (width, n) if transposed else (n, width)
    a, b = k.array(element, *shape), k.array(element, *shape)
    weights = k.array(element, width) if d.chance("weights", 0.3) else None
    rng = d.rng
    loops = d.pick("loops", ("affine", "scf"), (3, 1))

    def place(i: Index | Num, m: int) -> tuple[Index | Num | int, ...]:
        return (m, i) if transposed else (i, m)

    def join(x: Num, y: Num) -> Num:
        kind = rng.randrange(7)
        if x.is_float:
            match kind:
                case 0 | 1:
                    return (x + y) * 0.5
                case 2:
                    return x * y * 0.6
                case 3:
                    return (x - y).abs() + 0.1
                case 4:
                    return x.max(y)
                case 5:
                    return x.fma(0.4, y * 0.6)
                case _:
                    return x.min(y * 1.1)
        match kind:
            case 0 | 1:
                return x + y
            case 2:
                return x * y
            case 3:
                return x ^ (y >> 3)
            case 4:
                return x.max(y)
            case 5:
                return x - (y << 1)
            case _:
                return x | (y & 255)

    def block(i: Index | Num) -> None:
        values = [k.load(a, *place(i, m)) for m in range(width)]
        if weights is not None:
            values = [v * k.load(weights, m) for m, v in enumerate(values)]
        first = list(values)
        for layer in range(layers):
            if network == "butterfly":
                stride = 1 << (layer % (width.bit_length() - 1))
                values = [join(values[m], values[(m ^ stride) % width]) for m in range(width)]
            elif network == "late":  # meets values from the start, in reverse
                values = [join(values[m], first[width - 1 - m]) for m in range(width)]
            elif network == "ladder":
                for m in range(1, width):
                    values[m] = join(values[m], values[m - 1])
                values.reverse()
            else:
                order = list(range(width))
                rng.shuffle(order)
                values = [join(values[m], values[order[m]]) for m in range(width)]
                if network == "mixed":
                    rng.shuffle(values)
        out = list(range(width))
        rng.shuffle(out)
        for m, value in zip(out, values, strict=True):
            k.store(value, b, *place(i, m))

    if loops == "affine":
        with k.loop(0, n) as i:
            block(i)
    else:
        with k.scf_loop(0, n) as j:
            block(j)


def reg_vectors(d: Drawn) -> None:
    """Blocks of vector accumulators: outer products, row sums, polynomials, stencils of vectors, wide reductions."""
    k = d.k
    element, lanes = d.pick(
        "vector", (("f32", 8), ("f32", 16), ("f64", 4), ("f64", 8), ("i32", 8), ("i32", 16), ("f32", 4))
    )
    style = d.pick("style", ("outer", "outer", "columns", "polynomial", "stencil", "network", "reduce"))
    rows, columns = d.pick(
        "block", ((4, 2), (6, 2), (8, 2), (4, 4), (5, 4), (6, 4), (12, 1), (16, 1), (24, 1), (3, 3), (8, 3))
    )
    cells = rows * columns
    zero = k.constant(0, f"vector<{lanes}x{element}>")

    def joined(x: Num, y: Num, z: Num) -> Num:
        return x.fma(y, z) if x.is_float and fused else x * y + z

    fused = d.chance("fused", 0.7)
    match style:
        case "outer":
            m, n, depth = d.sides(3, d.work / (2 * cells), smallest=2)
            packed = d.chance("packed", 0.5)
            a, b, c = k.array(element), k.array(element), k.array(element)
            with k.loop(0, m) as bi, k.loop(0, n) as bj:

                def step(p: Index, sums: list[Num]) -> list[Num]:
                    ys = [k.vector_load(b, lanes, p, bj * (columns * lanes) + s * lanes) for s in range(columns)]
                    xs = [k.load(a, bi, p, r) if packed else k.load(a, bi * rows + r, p) for r in range(rows)]
                    spread = [k.broadcast(x, lanes) for x in xs]
                    return [joined(spread[i // columns], ys[i % columns], total) for i, total in enumerate(sums)]

                for i, total in enumerate(k.fold(0, depth, [zero] * cells, step)):
                    k.vector_store(total, c, bi * rows + i // columns, bj * (columns * lanes) + (i % columns) * lanes)
        case "columns" | "reduce":
            n = max(4, d.size(d.work / (2 * cells), 4))
            a, out = k.array(element, n, cells * lanes), k.array(element, cells * lanes)
            extreme = d.chance("extreme", 0.3)

            def row(i: Index, sums: list[Num]) -> list[Num]:
                values = [k.vector_load(a, lanes, i, Index(str(m * lanes), m * lanes, m * lanes)) for m in range(cells)]
                return [s.max(v) if extreme else s + v for s, v in zip(sums, values, strict=True)]

            sums = k.fold(0, n, [zero] * cells, row)
            for m, total in enumerate(sums):
                if style == "reduce":
                    kind = ("maxnumf" if element[0] == "f" else "maxsi") if extreme else "add"
                    k.store(k.reduce(total, kind), out, m)
                else:
                    k.vector_store(total, out, Index(str(m * lanes), m * lanes, m * lanes))
        case "polynomial":
            degree = d.pick("degree", (6, 10, 16))
            cells = min(cells, 16)
            n = max(2, d.size(d.work / (2 * degree * cells), 2))
            x_in, out, weights = k.array(element), k.array(element), k.array(element, degree + 1)
            with k.loop(0, n) as i:
                xs = [k.vector_load(x_in, lanes, i * (cells * lanes) + m * lanes) for m in range(cells)]
                ys = [k.broadcast(k.load(weights, degree), lanes)] * cells
                for p in reversed(range(degree)):
                    w = k.broadcast(k.load(weights, p), lanes)
                    ys = [joined(y, _halved(x), w) for x, y in zip(xs, ys, strict=True)]
                for m, y in enumerate(ys):
                    k.vector_store(y, out, i * (cells * lanes) + m * lanes)
        case "stencil":
            taps = d.pick("taps", (3, 5, 7))
            high = min(rows, 8)
            n, width = d.sides(2, d.work / (2 * high * taps), smallest=2)
            a, b = k.array(element), k.array(element)
            weights = [
                k.constant(round(1 / (taps + abs(t)), 4) if element[0] == "f" else t + 1, f"vector<{lanes}x{element}>")
                for t in range(taps)
            ]
            with k.loop(0, n) as y, k.loop(0, width) as x:
                lines = [k.vector_load(a, lanes, y * high + r, x * lanes) for r in range(high + taps - 1)]
                for r in range(high):
                    total = lines[r] * weights[0]
                    for t in range(1, taps):
                        total = joined(lines[r + t], weights[t], total)
                    k.vector_store(total, b, y * high + r, x * lanes)
        case _:  # a network of exchanges between vectors
            width = min(32, max(8, cells))
            n = max(2, d.size(d.work / (width * 8), 2))
            a = k.array(element)
            with k.loop(0, n) as i:
                values = [k.vector_load(a, lanes, i * (width * lanes) + m * lanes) for m in range(width)]
                for _ in range(d.pick("layers", (2, 3, 4))):
                    order = list(range(width))
                    d.rng.shuffle(order)
                    values = [
                        values[m].min(values[o]) if m < o else values[m].max(values[o]) for m, o in enumerate(order)
                    ]
                for m, value in enumerate(values):
                    k.vector_store(value, a, i * (width * lanes) + m * lanes)


def reg_transforms(d: Drawn) -> None:
    """Small transforms kept in registers: 8x8 cosine, Fourier of 16, products, inverses, Winograd, Hadamard."""
    k = d.k
    element = d.pick("element", ("f32", "f64"), (1, 1))
    style = d.pick("style", ("cosine", "fourier", "product", "inverse", "winograd", "hadamard", "factor", "rows"))
    transposed = d.chance("transposed", 0.5)

    def batch(cost: float, size: int) -> tuple[int, Array, Array]:
        n = max(2, d.size(d.work / cost, 2))
        n = min(n, 400_000 // size)
        shape = (size, n) if transposed else (n, size)
        return n, k.array(element, *shape), k.array(element, *shape)

    def place(i: Index, m: int) -> tuple[Index | int, ...]:
        return (m, i) if transposed else (i, m)

    def cosine(xs: list[Num]) -> list[Num]:
        n = len(xs)
        half = n // 2
        if n == 1:
            return xs
        sums = [xs[m] + xs[n - 1 - m] for m in range(half)]
        gaps = [xs[m] - xs[n - 1 - m] for m in range(half)]
        even = cosine(sums)
        odd = []
        for u in range(half):
            total = None
            for m in range(half):
                part = gaps[m] * math.cos((2 * m + 1) * (2 * u + 1) * math.pi / (2 * n))
                total = part if total is None else total + part
            assert total is not None
            odd.append(total)
        return [value * 0.5 for pair in zip(even, odd, strict=True) for value in pair]

    match style:
        case "cosine" | "rows":
            size = d.pick("points", (8, 16)) if style == "rows" else 4
            if style == "rows":
                n, a, b = batch(size * 14, size)
                with k.loop(0, n) as i:
                    for m, value in enumerate(cosine([k.load(a, *place(i, m)) for m in range(size)])):
                        k.store(value, b, *place(i, m))
                return
            n, a, b = batch(320, 16)
            with k.loop(0, n) as i:
                grid = [[k.load(a, *place(i, 4 * r + c)) for c in range(4)] for r in range(4)]
                grid = [cosine(line) for line in grid]
                columns = [cosine([grid[r][c] for r in range(4)]) for c in range(4)]
                for r in range(4):
                    for c in range(4):
                        k.store(columns[c][r], b, *place(i, 4 * r + c))
        case "fourier":
            size = d.pick("points", (8, 16))
            n, a, b = batch(size * 16, 2 * size)
            with k.loop(0, n) as i:
                zs = [(k.load(a, *place(i, 2 * m)), k.load(a, *place(i, 2 * m + 1))) for m in range(size)]
                for m, (x, y) in enumerate(_fourier(zs)):
                    k.store(x, b, *place(i, 2 * m))
                    k.store(y, b, *place(i, 2 * m + 1))
        case "hadamard":
            size = d.pick("points", (16, 32, 64))
            n, a, b = batch(size * 7, size)
            with k.loop(0, n) as i:
                values = [k.load(a, *place(i, m)) for m in range(size)]
                width = 1
                while width < size:
                    values = [
                        values[m] + values[m ^ width] if not m & width else values[m ^ width] - values[m]
                        for m in range(size)
                    ]
                    width *= 2
                for m, value in enumerate(values):
                    k.store(value * (1 / size), b, *place(i, m))
        case "product":
            size = d.pick("side", (3, 4, 5, 6))
            n, a, b = batch(size**3 * 2, size * size)
            c = k.array(element, *((size * size, n) if transposed else (n, size * size)))
            with k.loop(0, n) as i:
                xs = [k.load(a, *place(i, m)) for m in range(size * size)]
                ys = [k.load(b, *place(i, m)) for m in range(size * size)]
                for r in range(size):
                    for s in range(size):
                        total = xs[r * size] * ys[s]
                        for m in range(1, size):
                            total = total + xs[r * size + m] * ys[m * size + s]
                        k.store(total, c, *place(i, r * size + s))
        case "inverse" | "factor":
            size = d.pick("side", (3, 4, 5)) if style == "inverse" else d.pick("large", (4, 5, 6))
            n, a, b = batch(size**3 * 3, size * size)
            with k.loop(0, n) as i:
                x = [[k.load(a, *place(i, r * size + c)) for c in range(size)] for r in range(size)]
                for r in range(size):
                    x[r][r] = x[r][r] + 2.0 * size
                if style == "factor":
                    for p in range(size):
                        inverse = 1.0 / x[p][p]
                        for r in range(p + 1, size):
                            x[r][p] = x[r][p] * inverse
                            for c in range(p + 1, size):
                                x[r][c] = x[r][c] - x[r][p] * x[p][c]
                else:  # Gauss-Jordan in place
                    for p in range(size):
                        inverse = 1.0 / x[p][p]
                        row = [x[p][c] * inverse if c != p else inverse for c in range(size)]
                        for r in range(size):
                            if r != p:
                                factor = x[r][p]
                                x[r] = [
                                    x[r][c] - factor * row[c] if c != p else 0 - factor * inverse for c in range(size)
                                ]
                        x[p] = row
                for r in range(size):
                    for c in range(size):
                        k.store(x[r][c], b, *place(i, r * size + c))
        case _:  # Winograd F(2x2, 3x3): input transform, product with a stored kernel, output transform
            n, a, b = batch(110, 16)
            weights = k.array(element, 16)
            with k.loop(0, n) as i:
                x = [[k.load(a, *place(i, 4 * r + c)) for c in range(4)] for r in range(4)]

                def line(v: Sequence[Num]) -> list[Num]:
                    return [v[0] - v[2], v[1] + v[2], v[2] - v[1], v[1] - v[3]]

                x = [line(row) for row in x]
                columns = [line([x[r][c] for r in range(4)]) for c in range(4)]
                y = [[columns[c][r] * k.load(weights, 4 * r + c) for c in range(4)] for r in range(4)]
                y = [[row[0] + row[1] + row[2], row[1] - row[2] - row[3]] for row in y]
                for c in range(2):
                    k.store(y[0][c] + y[1][c] + y[2][c], b, *place(i, c))
                    k.store(y[1][c] - y[2][c] - y[3][c], b, *place(i, 2 + c))


def _fourier(xs: list[tuple[Num, Num]]) -> list[tuple[Num, Num]]:
    n = len(xs)
    if n == 1:
        return xs
    even, odd = _fourier(xs[::2]), _fourier(xs[1::2])
    low, high = [], []
    for m, ((a, b), (c, s)) in enumerate(zip(even, odd, strict=True)):
        cos, sin = math.cos(2 * math.pi * m / n), math.sin(2 * math.pi * m / n)
        x, y = (c, s) if m == 0 else (c * cos + s * sin, s * cos - c * sin)
        low.append((a + x, b + y))
        high.append((a - x, b - y))
    return low + high


def reg_ciphers(d: Drawn) -> None:
    """Rounds of additions, rotations and exclusive ors on many words: like ChaCha, Salsa, SHA, Speck, Threefish."""
    k = d.k
    style = d.pick("style", ("chacha", "salsa", "sha", "speck", "threefish", "random", "keccak"))
    word = d.pick("word", ("i32", "i64"))
    size = {"chacha": 16, "salsa": 16, "sha": 24, "threefish": 16, "keccak": 25}.get(style) or d.pick(
        "words", (12, 16, 20, 28, 36)
    )
    rounds = d.pick("rounds", (2, 3, 4))
    bits = int(word[1:])
    cost = size * rounds * 5
    n = max(2, d.size(d.work / cost, 2))
    repeats = d.pick("repeats", (1, 1, 4, 10))
    n = max(2, n // repeats)
    data, key, out = k.array(word, n, size), k.array(word, size), k.array(word, n, size)
    feed = d.chance("feed", 0.6)

    def turn(s: list[Num], a: int, b: int, c: int, e: int) -> None:
        for amounts in ((16, 12), (8, 7)):
            s[a] = s[a] + s[b]
            s[e] = (s[e] ^ s[a]).rotl(amounts[0])
            s[c] = s[c] + s[e]
            s[b] = (s[b] ^ s[c]).rotl(amounts[1])

    def one_round(s: list[Num], r: int) -> list[Num]:
        s = list(s)
        match style:
            case "chacha":
                for c in range(4):
                    turn(s, c, 4 + c, 8 + c, 12 + c)
                for c in range(4):
                    turn(s, c, 4 + (c + 1) % 4, 8 + (c + 2) % 4, 12 + (c + 3) % 4)
            case "salsa":
                for c in range(4):
                    for step, amount in enumerate((7, 9, 13, 18)):
                        target = (4 * (step + 1) + 5 * c) % 16
                        first, second = (4 * step + 5 * c) % 16, (4 * (step - 1) + 5 * c) % 16
                        s[target] = s[target] ^ (s[first] + s[second]).rotl(amount)
            case "sha":
                words, state = s[8:], s[:8]
                for t in range(4):
                    a, b, c, e_, e, f, g, h = state
                    extra = (
                        h + (e.rotl(7) ^ e.rotl(21) ^ e.rotl(26)) + ((e & f) ^ ((e ^ -1) & g)) + words[(r * 4 + t) % 16]
                    )
                    other = (a.rotl(10) ^ a.rotl(19) ^ a.rotl(30)) + ((a & b) ^ (a & c) ^ (b & c))
                    state = [extra + other, a, b, c, e_ + extra, e, f, g]
                s = state + words
            case "threefish":
                for m in range(0, size, 2):
                    s[m] = s[m] + s[m + 1]
                    s[m + 1] = s[m + 1].rotl((m * 5 + 7 * r) % (bits - 1) + 1) ^ s[m]
                s = [s[(m * 7 + 3) % size] for m in range(size)]
            case "keccak":
                columns = [s[c] ^ s[c + 5] ^ s[c + 10] ^ s[c + 15] ^ s[c + 20] for c in range(5)]
                deltas = [columns[(c - 1) % 5] ^ columns[(c + 1) % 5].rotl(1) for c in range(5)]
                s = [value ^ deltas[m % 5] for m, value in enumerate(s)]
                moved = [s[(m * 7 + 11) % 25].rotl(m % (bits - 1) + 1) for m in range(25)]
                s = [
                    moved[m] ^ ((moved[m // 5 * 5 + (m + 1) % 5] ^ -1) & moved[m // 5 * 5 + (m + 2) % 5])
                    for m in range(25)
                ]
            case "speck":
                for m in range(0, size, 2):
                    s[m] = (s[m].rotl(bits - 8) + s[m + 1]) ^ (r + m)
                    s[m + 1] = s[m + 1].rotl(3) ^ s[m]
                s = s[1:] + s[:1]
            case _:
                for m in range(size):
                    o = (m * 5 + 2 * r + 1) % size
                    if o != m:
                        s[m] = (s[m] + s[o]).rotl((m * 3 + r) % (bits - 1) + 1) if m % 2 else s[m] ^ (s[o] * 5)
        return s

    with k.loop(0, n) as i:
        start = [k.load(data, i, m) + k.load(key, m) * (m * 2 + 1) for m in range(size)]
        if repeats == 1:
            state = start
            for r in range(rounds):
                state = one_round(state, r)
        else:

            def again(_: Index, s: list[Num]) -> list[Num]:
                return one_round(one_round(s, 0), 1) if rounds > 2 else one_round(s, 0)

            state = k.fold(0, repeats, start, again)
        for m, value in enumerate(state):
            k.store(value + start[m] if feed else value, out, i, m)


def reg_carried(d: Drawn) -> None:
    """Loops that carry many scalars: filters with long delays, coupled recurrences, statistics, generators, delays."""
    k = d.k
    style = d.pick("style", ("filter", "coupled", "statistics", "generators", "delay", "polyphase", "states"))
    element = (
        d.pick("element", ("f64", "f32", "i64", "i32"), (3, 3, 2, 1))
        if style not in ("generators",)
        else d.pick("word", ("i64", "i32"))
    )
    width = d.pick("width", (12, 16, 20, 24, 32, 40))
    n = max(8, d.size(d.work / (3 * width), 8))
    zero = k.constant(0, element)
    real = element[0] == "f"
    data, out = k.array(element, n), k.array(element, n)
    end = k.array(element, width)
    nested = d.chance("nested", 0.4)

    def repeated(inits: list[Num], step: Callable[[Index, list[Num]], list[Num]], trips: int) -> list[Num]:
        if not nested:
            return k.fold(0, trips, inits, step)
        inner = max(2, round(trips**0.5))
        return k.fold(
            0, max(1, trips // inner), inits, lambda o, c: k.fold(0, inner, c, lambda i, w: step(o * inner + i, w))
        )

    match style:
        case "filter" | "polyphase":  # taps stay in registers
            weights = [k.constant(round(1 / (m + 2), 4) if real else m + 1, element) for m in range(width)]

            def shift(i: Index, c: list[Num]) -> list[Num]:
                new = [k.load(data, i), *c[:-1]]
                total = new[0] * weights[0]
                for m in range(1, width):
                    total = total + new[m] * weights[m]
                    if style == "polyphase" and m % 4 == 3:
                        total = total.max(new[m])
                k.store(total, out, i)
                return new

            last = repeated([zero] * width, shift, n)
        case "coupled":

            def ring(i: Index, c: list[Num]) -> list[Num]:
                x = k.load(data, i)
                if real:
                    return [
                        c[m] * 0.6 + c[(m + 1) % width] * 0.2 + (c[(m + 5) % width] + x) * 0.1 for m in range(width)
                    ]
                return [(c[m] ^ (c[(m + 1) % width] >> 3)) + (c[(m + 5) % width] & x) for m in range(width)]

            last = repeated([k.constant(m + 1, element) for m in range(width)], ring, n)
        case "statistics":
            kinds = [m % 6 for m in range(width)]

            def collect(i: Index, c: list[Num]) -> list[Num]:
                x = k.load(data, i)
                power, new = x, []
                for m, (kind, old) in enumerate(zip(kinds, c, strict=True)):
                    mark = round(0.6 + 0.8 * m / width, 3) if real else m % 4
                    match kind:
                        case 0:
                            new.append(old + power)
                        case 1:
                            new.append(old.max(x - mark))
                        case 2:
                            new.append(old.min(x * (m + 1)))
                        case 3:
                            new.append(k.choose(x.test("gt", mark), old + 1, old))
                        case 4:
                            new.append(old + (x - mark).abs())
                        case _:
                            new.append(_halved(old + x) if real else old ^ x)
                    power = power * x if real and m % 3 == 2 else power
                return new

            last = repeated([zero] * width, collect, n)
        case "generators":

            def advance(i: Index, c: list[Num]) -> list[Num]:
                new, total = [], k.load(data, i)
                for m, x in enumerate(c):
                    x = x ^ (x << (13 if m % 2 else 5))
                    x = x ^ (x >> (7 + m % 5))
                    total = total + x
                    new.append(x)
                k.store(total, out, i)
                return new

            last = repeated([k.constant(0x9E3779B9 + 2 * m + 1, element) for m in range(width)], advance, n)
        case "delay":

            def line(i: Index, c: list[Num]) -> list[Num]:
                x = k.load(data, i)
                new = _halved(c[-1] + x) if real else (c[-1] + x) >> 1
                k.store(new - c[width // 2], out, i)
                return [
                    new,
                    *[_halved(a + b) if m % 3 == 0 else a for m, (a, b) in enumerate(pairwise(c))],
                ]

            last = repeated([zero] * width, line, n)
        case _:  # a small dense state-space system
            size = min(12, max(6, width // 3))
            rows = [
                [round(math.cos(i * 3 + j) / size, 4) if real else (i * 5 + j * 3) % 7 - 3 for j in range(size)]
                for i in range(size)
            ]

            def system(i: Index, c: list[Num]) -> list[Num]:
                x = k.load(data, i)
                new = []
                for row in rows:
                    total = x
                    for value, weight in zip(c, row, strict=True):
                        total = total + value * weight
                    new.append(total * 0.9 if real else total.sar(2))
                return new

            last = repeated([zero] * size, system, max(8, n // size))
    for m, value in enumerate(last):
        k.store(value, end, m)


def reg_windows(d: Drawn) -> None:
    """Unrolled neighbourhoods and sorting networks on many values: stencils, medians of 25, tiles of pixels."""
    k, element = d.k, _number(d)
    style = d.pick("style", ("sort", "tile", "tile", "median", "volume", "blocks"))
    rng = d.rng
    match style:
        case "sort":
            width = d.pick("width", (16, 24, 32))
            n = max(2, d.size(d.work / (width * 14), 2))
            transposed = d.chance("transposed", 0.6)
            a = k.array(element, *((width, n) if transposed else (n, width)))
            with k.loop(0, n) as i:
                values = [k.load(a, *((m, i) if transposed else (i, m))) for m in range(width)]
                p = 1
                while p < width:
                    stride = p
                    while stride >= 1:
                        for j in range(stride % p, width - stride, 2 * stride):
                            for m in range(min(stride, width - j - stride)):
                                x, y = j + m, j + m + stride
                                if x // (2 * p) == y // (2 * p):
                                    values[x], values[y] = values[x].min(values[y]), values[x].max(values[y])
                        stride //= 2
                    p *= 2
                for m, value in enumerate(values):
                    k.store(value, a, *((m, i) if transposed else (i, m)))
        case "median":
            side = d.pick("side", (4, 5))
            rows, columns = d.sides(2, d.work / (side**2 * 8), smallest=2)
            a, b = k.array(element), k.array(element)
            with k.loop(0, rows) as y, k.loop(0, columns) as x:
                values = [k.load(a, y + i, x + j) for i in range(side) for j in range(side)]
                kept = len(values) // 2 + 2  # forgetful selection
                window, rest = values[:kept], values[kept:]
                while True:
                    for m in range(len(window) - 1):
                        window[m], window[m + 1] = window[m].min(window[m + 1]), window[m].max(window[m + 1])
                    for m in reversed(range(1, len(window) - 1)):
                        window[m - 1], window[m] = window[m - 1].min(window[m]), window[m - 1].max(window[m])
                    window = window[1:-1]
                    if not rest:
                        break
                    window.append(rest.pop())
                    if len(window) < 3:
                        break
                k.store(window[len(window) // 2], b, y, x)
        case "tile" | "blocks":  # several results that share their neighbours
            high, wide = d.pick("tile", ((2, 4), (4, 4), (3, 5), (4, 6), (2, 8)))
            radius = d.pick("radius", (1, 1, 2))
            rows, columns = d.sides(2, d.work / (high * wide * (2 * radius + 1) ** 2 * 1.5), smallest=2)
            a, b = k.array(element), k.array(element)
            stored = k.array(element, (2 * radius + 1) ** 2) if d.chance("stored", 0.5) else None
            side = 2 * radius + 1
            spots = [(i, j) for i in range(side) for j in range(side)]
            if style == "blocks":
                spots = rng.sample(spots, max(4, len(spots) * 2 // 3))
            with k.loop(0, rows) as y, k.loop(0, columns) as x:
                near = {
                    (i, j): k.load(a, y * high + i, x * wide + j)
                    for i in range(high + side - 1)
                    for j in range(wide + side - 1)
                }
                weights = [
                    k.load(stored, m)
                    if stored is not None
                    else k.constant(round(rng.uniform(0.1, 0.9), 3) if element[0] == "f" else m + 1, element)
                    for m in range(len(spots))
                ]
                for i in range(high):
                    for j in range(wide):
                        total = None
                        for (p, q), w in zip(spots, weights, strict=True):
                            part = near[i + p, j + q] * w
                            total = part if total is None else total + part
                        assert total is not None
                        k.store(total, b, y * high + i, x * wide + j)
        case _:  # a 3 x 3 x 3 neighbourhood for several points at once
            count = d.pick("count", (2, 4))
            sizes = d.sides(3, d.work / (27 * count * 1.5), smallest=2)
            a, b = k.array(element), k.array(element)
            with k.loop(0, sizes[0]) as z, k.loop(0, sizes[1]) as y, k.loop(0, sizes[2]) as x:
                near = {
                    (p, q, r): k.load(a, z + p, y + q, x * count + r)
                    for p in range(3)
                    for q in range(3)
                    for r in range(count + 2)
                }
                for m in range(count):
                    total = None
                    for (p, q, r), value in near.items():
                        if 0 <= r - m <= 2:
                            w = round(1 / (4 + p + q + r - m), 4) if element[0] == "f" else p + q + 1
                            total = value * w if total is None else total + value * w
                    assert total is not None
                    k.store(total, b, z, y, x * count + m)


KINDS: dict[str, Kind] = {
    "reg_accumulators": reg_accumulators,
    "reg_straight": reg_straight,
    "reg_vectors": reg_vectors,
    "reg_transforms": reg_transforms,
    "reg_ciphers": reg_ciphers,
    "reg_carried": reg_carried,
    "reg_windows": reg_windows,
}
FAMILIES = families_of(ORIGIN, KINDS)
