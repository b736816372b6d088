"""Numerical kernels: transforms, particles, random numbers, hashes, polynomials, iterations, equations, integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .affine_text import Array, Index
from .drawn import Drawn, Kind, families_of
from .scf_text import Num

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "numeric"


def _real(d: Drawn) -> str:
    return d.pick("element", ("f32", "f64"), (3, 2))


def _sum(values: Sequence[Num]) -> Num:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def num_fourier(d: Drawn) -> None:
    """Fast Fourier passes of radix 2 and 4 with stored twiddles, bit reversal, unrolled ones, Hadamard, Haar."""
    k, element = d.k, _real(d)
    style = d.pick("style", ("radix2", "radix2", "radix4", "reverse", "unrolled", "hadamard", "dft", "stage", "haar"))
    n = d.power(d.work / {"radix2": 60, "radix4": 40, "hadamard": 30}.get(style, 12), 16)
    if style == "dft":
        n = max(6, d.size((d.work / 5) ** 0.5, 6))
        re, im = k.array(element, n), k.array(element, n)
        table, out_re, out_im = k.array(element, n, 2), k.array(element, n), k.array(element, n)
        zero = k.constant(0, element)
        with k.scf_loop(0, n) as u:

            def term(t: Num, c: list[Num], u: Num = u) -> list[Num]:
                place = (u * t) % n
                cos, sin = k.load(table, place, k.index(0)), k.load(table, place, k.index(1))
                a, b = k.load(re, t), k.load(im, t)
                return [c[0] + a * cos + b * sin, c[1] + b * cos - a * sin]

            a, b = k.scf_fold(0, n, [zero, zero], term)
            k.store(a, out_re, u)
            k.store(b, out_im, u)
        return
    batch = d.pick("batch", (1, 1, 8)) if style in ("haar", "hadamard") else 1
    if style == "unrolled":  # many small transforms, each in registers
        size = d.pick("points", (4, 8))
        rows = max(2, d.size(d.work / (size * 5), 2))
        re, im = k.array(element, rows, size), k.array(element, rows, size)
        last = d.chance("by_row", 0.6)
        if not last:
            re, im = k.array(element, size, rows), k.array(element, size, rows)
        with k.loop(0, rows) as r:
            xs = [
                (k.load(re, *((r, m) if last else (m, r))), k.load(im, *((r, m) if last else (m, r))))
                for m in range(size)
            ]
            for m, (a, b) in enumerate(_small_fft(xs)):
                k.store(a * (1 / size), re, *((r, m) if last else (m, r)))
                k.store(b * (1 / size), im, *((r, m) if last else (m, r)))
        return
    re, im = k.array(element, n), k.array(element, n)
    logs = n.bit_length() - 1
    if style == "reverse":
        how = d.pick("how", ("shifts", "loop", "table"))
        out_re, out_im = k.array(element, n), k.array(element, n)
        with k.loop(0, n) as i:
            x = k.number(i, "i32")
            if how == "loop":
                [y, _] = k.fold(0, logs, [k.constant(0, "i32"), x], lambda _, c: [(c[0] << 1) | (c[1] & 1), c[1] >> 1])
            else:
                for mask, shift in ((0x55555555, 1), (0x33333333, 2), (0x0F0F0F0F, 4), (0x00FF00FF, 8)):
                    x = ((x >> shift) & mask) | ((x & mask) << shift)
                y = x.rotl(16) >> (32 - logs)
            place = y.to("index")
            k.store(k.load(re, i), out_re, place)
            k.store(k.load(im, i), out_im, place)
        return
    if style in ("haar", "hadamard"):
        a = k.array(element, batch, n)
        other = k.array(element, batch, n) if style == "haar" else a
        width = n if style == "haar" else 1
        with k.loop(0, batch) as r:
            if style == "haar":
                while width > 1 and width > n >> 8:
                    width //= 2
                    with k.loop(0, width) as i:
                        x, y = k.load(a, r, i * 2), k.load(a, r, i * 2 + 1)
                        k.store((x + y) * 0.5, other, r, i)
                        k.store((x - y) * 0.5, other, r, i + width)
                    with k.loop(0, 2 * width) as i:
                        k.store(k.load(other, r, i), a, r, i)
            else:
                while width < n:
                    with k.loop(0, n // (2 * width)) as block, k.loop(0, width) as o:
                        i = block * (2 * width) + o
                        x, y = k.load(a, r, i), k.load(a, r, i + width)
                        k.store((x + y) * 0.5, a, r, i)
                        k.store((x - y) * 0.5, a, r, i + width)
                    width *= 2
        return
    twiddle_re, twiddle_im = k.array(element, n), k.array(element, n)
    with k.loop(0, n) as i:  # cosine-like weights of norm below one keep repeated calls bounded
        x = k.number(i, element) * (1.0 / n)
        k.store(1.0 - x * x * 0.5, twiddle_re, i)
        k.store(x * 0.5, twiddle_im, i)
    step = 4 if style == "radix4" else 2
    width, stages = 1, 0
    most = 1 if style == "stage" else 20
    while width * step <= n and stages < most:
        stride = n // (width * step)
        with k.loop(0, stride) as block, k.loop(0, width) as o:
            base = block * (width * step) + o
            xs = []
            for m in range(step):
                a, b = k.load(re, base + m * width), k.load(im, base + m * width)
                if m:
                    place = o * (stride * m)
                    w, v = k.load(twiddle_re, place), k.load(twiddle_im, place)
                    a, b = a * w - b * v, a * v + b * w
                xs.append((a, b))
            if step == 2:
                ys = [(xs[0][0] + xs[1][0], xs[0][1] + xs[1][1]), (xs[0][0] - xs[1][0], xs[0][1] - xs[1][1])]
            else:
                ys = _small_fft(xs)
            for m, (a, b) in enumerate(ys):
                k.store(a * (1 / step), re, base + m * width)
                k.store(b * (1 / step), im, base + m * width)
        width *= step
        stages += 1


def _small_fft(xs: list[tuple[Num, Num]]) -> list[tuple[Num, Num]]:
    """A transform of 2, 4 or 8 points, straight-line."""
    n = len(xs)
    if n == 1:
        return xs
    even, odd = _small_fft(xs[::2]), _small_fft(xs[1::2])
    first, second = [], []
    for m, ((a, b), (c, e)) in enumerate(zip(even, odd, strict=True)):
        cos, sin = math.cos(2 * math.pi * m / n), math.sin(2 * math.pi * m / n)
        if m == 0:
            x, y = c, e
        elif 4 * m == n:
            x, y = e, 0 - c
        else:
            x, y = c * cos + e * sin, e * cos - c * sin
        first.append((a + x, b + y))
        second.append((a - x, b - y))
    return first + second


def num_particles(d: Drawn) -> None:
    """Gravity, Lennard-Jones with cut-off, Coulomb, cell lists, distances, radial histograms, springs, boids."""
    k, element = d.k, _real(d)
    style = d.pick(
        "style", ("gravity", "gravity", "lennard", "coulomb", "pairs", "histogram", "springs", "cells", "triple")
    )
    packed = d.chance("packed", 0.4)
    if style == "springs":
        n = max(6, d.size(d.work / 30, 6))
    elif style == "cells":
        n = max(4, round(d.work / 200))
    else:
        n = max(6, d.size((d.work / 14) ** (0.5 if style != "triple" else 0.4), 6))
    dims = d.pick("dims", (2, 3, 3))
    position = [k.array(element, n, dims)] if packed else [k.array(element, n) for _ in range(dims)]
    force = k.array(element, n, dims)
    zero = k.constant(0, element)
    soft = d.real(0.01, 0.3)

    def where(i: Index | Num) -> list[Num]:
        axes = [k.index(c) if isinstance(i, Num) else c for c in range(dims)]
        return [k.load(position[0], i, axes[c]) if packed else k.load(position[c], i) for c in range(dims)]

    def apart(i: list[Num], j: list[Num]) -> tuple[list[Num], Num]:
        gaps = [b - a for a, b in zip(i, j, strict=True)]
        return gaps, _sum([g * g for g in gaps])

    if style == "springs":
        velocity = k.array(element, n, dims)
        with k.loop(1, n - 1) as i:
            here, left, right = where(i), where(i - 1), where(i + 1)
            for c in range(dims):
                pull = left[c] + right[c] - here[c] * 2
                k.store(k.load(velocity, i, c) * 0.9 + pull * 0.2, force, i, c)
        return
    if style == "cells":  # a few neighbours each, close by
        with k.loop(0, n) as i:
            here = where(i)

            def near(m: Index, c: list[Num], i: Index = i, here: list[Num] = here) -> list[Num]:
                j = (k.number(i + m, "i32") % n).to("index")
                gaps, square = apart(here, where(j))
                inside = square.test("lt", 0.5)

                def push() -> list[Num]:
                    weight = 1.0 / (square + soft)
                    return [t + g * weight for t, g in zip(c, gaps, strict=True)]

                return k.if_else(inside, push, lambda: c, share=0.6)

            for c, total in enumerate(k.fold(1, 17, [zero] * dims, near)):
                k.store(total, force, i, c)
        return
    if style == "histogram":
        bins = d.pick("bins", (16, 64))
        counts = k.array("i32", bins)
        with k.loop(0, bins) as b:
            k.store(k.constant(0, "i32"), counts, b)
        with k.loop(0, n) as i, k.loop(i + 1, n) as j:
            _, square = apart(where(i), where(j.within(0, n - 1)))
            place = (square.sqrt() * (bins / 1.8)).to("i32").clamp(0, bins - 1).to("index")
            k.store(k.load(counts, place) + 1, counts, place)
        return
    if style == "pairs":
        out = k.array(element, n, n)
        rooted = d.chance("rooted", 0.6)
        with k.loop(0, n) as i, k.loop(0, n) as j:
            _, square = apart(where(i), where(j))
            k.store(square.sqrt() if rooted else square, out, i, j)
        return
    mass = k.array(element, n)
    if style == "triple":  # three-body angles, short
        n = max(4, round((d.work / 20) ** (1 / 3)))
        with k.loop(0, n) as i, k.loop(0, n) as j, k.loop(0, n) as m:
            here = where(i)
            first, a = apart(here, where(j))
            second, b = apart(here, where(m))
            dot = _sum([x * y for x, y in zip(first, second, strict=True)])
            cosine = dot / (a * b + soft).sqrt()
            k.store(k.load(force, i, 0) * 0.5 + cosine * 0.5, force, i, 0)
        return
    half = d.chance("newton", 0.25)  # each pair once, both updated

    def strength(square: Num, i: Index, j: Index) -> Num:
        match style:
            case "lennard":
                inverse = 1.0 / (square + soft)
                six = inverse * inverse * inverse
                value = (six * six - six * 0.5) * inverse * 0.01
                return k.choose(square.test("lt", 0.7), value, 0)
            case "coulomb":
                return k.load(mass, i) * k.load(mass, j) / ((square + soft) * (square + soft).sqrt())
            case _:
                root = 1.0 / (square + soft).sqrt()
                return k.load(mass, j) * root * root * root

    if half:
        with k.loop(0, n) as i:
            for c in range(dims):
                k.store(zero, force, i, c)
        with k.loop(0, n) as i, k.loop(i + 1, n) as later:
            j = later.within(0, n - 1)
            gaps, square = apart(where(i), where(j))
            weight = strength(square, i, j)
            for c, gap in enumerate(gaps):
                push = gap * weight
                k.store(k.load(force, i, c) + push, force, i, c)
                k.store(k.load(force, j, c) - push, force, j, c)
        return
    branch = style == "lennard" and d.chance("branch", 0.5)
    with k.loop(0, n) as i:
        here = where(i)

        def attract(j: Index, carried: list[Num], i: Index = i, here: list[Num] = here) -> list[Num]:
            gaps, square = apart(here, where(j))

            def added() -> list[Num]:
                weight = strength(square, i, j)
                return [t + g * weight for t, g in zip(carried, gaps, strict=True)]

            return k.if_else(square.test("lt", 0.7), added, lambda: carried) if branch else added()

        for c, total in enumerate(k.fold(0, n, [zero] * dims, attract)):
            k.store(total, force, i, c)


def _uniform(bits: Num, element: str) -> Num:
    """[0, 1) from 31 bits."""
    return bits.to(element) * (1.0 / (1 << 31))


def num_monte_carlo(d: Drawn) -> None:
    """Pi, integrals, option prices, walks, Ising sweeps, percolation, rejection, bootstrap; integer hashing."""
    k, element = d.k, _real(d)
    style = d.pick(
        "style", ("pi", "integral", "option", "walk", "ising", "percolation", "rejection", "bootstrap", "paths")
    )
    generator = d.pick("generator", ("hash", "xorshift", "lcg"))
    out = k.array(element, 8)
    zero, one = k.constant(0, element), k.constant(1, element)
    n = max(8, round(d.work / {"option": 120, "paths": 260, "ising": 16, "percolation": 12}.get(style, 25)))
    salt = d.rng.randrange(1, 1 << 16)

    def advance(state: Num) -> Num:
        match generator:
            case "xorshift":
                state = state ^ (state << 13)
                state = state ^ (state >> 17)
                return state ^ (state << 5)
            case "lcg":
                return state * 1664525 + 1013904223
            case _:  # a counter, mixed when it is used
                return state + 0x61C88647

    def real(state: Num) -> Num:
        state = k.hashed(state, 77) << 1 if generator == "hash" else state
        return ((state >> 1) & 0x7FFFFFFF).to(element) * (1.0 / (1 << 31))

    seed = k.constant(salt * 2 + 1, "i32")
    match style:
        case "pi" | "integral" | "rejection":

            def draw(_: Index, c: list[Num]) -> list[Num]:
                state = advance(c[0])
                x = real(state)
                state = advance(state)
                y = real(state)
                if style == "pi":
                    return [state, c[1] + (x * x + y * y).test("lt", 1).to(element)]
                if style == "integral":
                    return [state, c[1] + (x * y + 0.25).sqrt() / (x + 1.0)]
                accepted = y.test("lt", (x * (1.0 - x)) * 4.0)
                [total] = k.if_else(accepted, lambda: [c[1] + x], lambda: [c[1]])
                return [state, total]

            _, total = k.fold(0, n, [seed, zero], draw)
            k.store(total * (1.0 / n), out, 0)
        case "option" | "paths":
            steps = d.pick("steps", (4, 16)) if style == "paths" else 1
            n = max(4, n // steps * 2)

            def price(_: Index, c: list[Num]) -> list[Num]:
                state = c[0]
                value = one

                def step(state: Num, value: Num) -> tuple[Num, Num]:
                    normal = None
                    for _ in range(4):  # a sum of uniforms for a normal number
                        state = advance(state)
                        normal = real(state) if normal is None else normal + real(state)
                    assert normal is not None
                    return state, value * ((normal - 2.0) * 0.2).math("exp")

                if steps == 1:
                    state, value = step(state, value)
                else:

                    def inner(_: Index, carried: list[Num]) -> list[Num]:
                        s, v = step(carried[0], carried[1])
                        return [s, v, carried[2] + v]

                    state, value, total = k.fold(0, steps, [state, value, zero], inner)
                    value = total * (1.0 / steps)
                return [state, c[1] + (value - 1.0).max(0)]

            _, total = k.fold(0, n, [seed, zero], price)
            k.store(total * (1.0 / n), out, 0)
        case "walk":
            walkers = max(2, round(n**0.5))
            place = k.array("i32", walkers, 2)
            with k.loop(0, walkers) as w:
                start = k.hashed(k.number(w, "i32"), salt)

                def move(_: Index, c: list[Num]) -> list[Num]:
                    state = advance(c[0])
                    turn = (state >> 9) & 3
                    dx = k.choose((turn & 1).test("eq", 0), (turn & 2) - 1, 0)
                    dy = k.choose((turn & 1).test("eq", 0), 0, (turn & 2) - 1)
                    return [state, c[1] + dx, c[2] + dy]

                izero = k.constant(0, "i32")
                _, x, y = k.fold(0, max(2, n // walkers), [start | 1, izero, izero], move)
                k.store(x, place, w, 0)
                k.store(y, place, w, 1)
        case "ising":
            side = max(6, round(n**0.5))
            spins, levels = k.array("i32", side + 2, side + 2), k.array("f32", 16)
            with k.loop(0, side + 2) as y, k.loop(0, side + 2) as x:
                k.store((k.hashed(k.number(y * (side + 2) + x, "i32"), salt) & 2) - 1, spins, y, x)
            checker = d.chance("checker", 0.5)
            for colour in (0, 1) if checker else (0,):
                step = 2 if checker else 1
                with k.loop(1, side + 1) as y, k.loop(0, side // step) as half:
                    x = half * 2 + (y + colour) % 2 + 1 if checker else half + 1
                    here = k.load(spins, y, x)
                    around = (
                        k.load(spins, y - 1, x)
                        + k.load(spins, y + 1, x)
                        + k.load(spins, y, x - 1)
                        + k.load(spins, y, x + 1)
                    )
                    energy = here * around
                    chance = k.load(levels, ((energy + 4) & 15).to("index")) - 0.5
                    lucky = _uniform(k.hashed(k.number(y * side + x, "i32"), 5), "f32").test("lt", chance)
                    flip = energy.test("le", 0) | lucky
                    k.store(k.choose(flip, 0 - here, here), spins, y, x)
        case "percolation":
            side = max(6, round(n**0.5))
            wet = k.array("i8", side, side + 2)
            with k.loop(0, side) as y, k.loop(0, side + 2) as x:
                k.store(k.constant(1, "i8"), wet, y, x)
            with k.loop(1, side) as y, k.loop(1, side + 1) as x:
                open_ = (k.hashed(k.number(y * side + x, "i32"), salt) & 1023).test("lt", 640).to("i8")
                above = k.load(wet, y - 1, x - 1) | k.load(wet, y - 1, x) | k.load(wet, y - 1, x + 1)
                k.store(above & open_, wet, y, x)
        case _:  # bootstrap
            size = max(8, d.size(n**0.6, 8))
            data, means = k.array(element, size), k.array(element, max(1, n // size))
            with k.loop(0, max(1, n // size)) as b:
                start = k.hashed(k.number(b, "i32"), salt)

                def sample(_: Index, c: list[Num]) -> list[Num]:
                    state = advance(c[0])
                    place = ((state >> 4) % size).to("index")
                    return [state, c[1] + k.load(data, place)]

                _, total = k.fold(0, size, [start | 1, zero], sample)
                k.store(total * (1.0 / size), means, b)


def num_hashes(d: Drawn) -> None:
    """LFSRs, xorshift, murmur, CRC by bit and by table, Adler, Fletcher, FNV, rolling hashes, splitmix."""
    k = d.k
    style = d.pick(
        "style",
        (
            "lfsr",
            "xorshift",
            "murmur",
            "crc bits",
            "crc table",
            "adler",
            "fletcher",
            "fnv",
            "rolling",
            "splitmix",
            "xxhash",
        ),
    )
    word = d.pick("word", ("i32", "i64")) if style in ("xorshift", "fnv", "lfsr") else "i32"
    lanes = d.pick("lanes", (1, 1, 2, 4)) if style in ("fnv", "murmur", "xxhash") else 1
    n = max(16, d.size(d.work / {"crc bits": 45, "adler": 14, "murmur": 16, "splitmix": 14}.get(style, 8), 16))
    out = k.array(word if style != "splitmix" else "i64", 8)
    data = k.array("i8" if style.startswith("crc") or style in ("adler", "fnv") else "i32", n)
    zero = k.constant(0, "i32")

    def byte(i: Index | Num) -> Num:
        return k.load(data, i).to(word) & 255

    match style:
        case "lfsr":
            taps = d.pick("taps", (0xB400, 0xD008, 0x80200003, 0xA3000000))
            store = k.array(word, n)

            def shift(i: Index, c: list[Num]) -> list[Num]:
                state = (c[0] >> 1) ^ ((0 - (c[0] & 1)) & taps)
                k.store(state, store, i)
                return [state]

            k.store(k.fold(0, n, [k.constant(0xACE1, word)], shift)[0], out, 0)
        case "xorshift":
            store, kept = k.array(word, n), d.chance("kept", 0.5)
            a, b, c_ = d.pick("shifts", ((13, 17, 5), (6, 21, 7), (13, 7, 17)))

            def step(i: Index, c: list[Num]) -> list[Num]:
                x = c[0] ^ (c[0] << a)
                x = x ^ (x >> b)
                x = x ^ (x << c_)
                if kept:
                    k.store(x * 0x2545F491, store, i)
                return [x]

            k.store(k.fold(0, n, [k.constant(2463534242, word)], step)[0], out, 0)
        case "murmur" | "xxhash":

            def mixed(h: Num, value: Num) -> Num:
                if style == "murmur":
                    value = (value * 0xCC9E2D51).rotl(15) * 0x1B873593
                    return (h ^ value).rotl(13) * 5 + 0xE6546B64
                return (h + value * 0x85EBCA77).rotl(13) * 0x9E3779B1

            n = n // lanes * lanes
            inits = [k.constant(lane * 7 + 1, "i32") for lane in range(lanes)]

            def block(i: Index, c: list[Num]) -> list[Num]:
                return [mixed(h, k.load(data, i * lanes + lane)) for lane, h in enumerate(c)]

            found = k.fold(0, n // lanes, inits, block)
            h = found[0]
            for other in found[1:]:
                h = mixed(h, other)
            h = (h ^ (h >> 16)) * 0x85EBCA6B
            h = (h ^ (h >> 13)) * 0xC2B2AE35
            k.store(h ^ (h >> 16), out, 0)
        case "crc bits":
            unrolled = d.chance("unrolled", 0.5)

            def one(i: Index, c: list[Num]) -> list[Num]:
                crc = c[0] ^ byte(i)

                def bit(value: Num) -> Num:
                    if d.forced.get("branch", unrolled):
                        return (value >> 1) ^ ((0 - (value & 1)) & 0xEDB88320)
                    return k.choose((value & 1).test("ne", 0), (value >> 1) ^ 0xEDB88320, value >> 1)

                if unrolled:
                    for _ in range(8):
                        crc = bit(crc)
                    return [crc]
                return k.fold(0, 8, [crc], lambda _, b: [bit(b[0])])

            k.store(k.fold(0, n, [k.constant(-1, "i32")], one)[0] ^ -1, out, 0)
        case "crc table":
            table = k.local("i32", 256)
            with k.loop(0, 256) as t:

                def bits(_: Index, c: list[Num]) -> list[Num]:
                    return [k.choose((c[0] & 1).test("ne", 0), (c[0] >> 1) ^ 0xEDB88320, c[0] >> 1)]

                k.store(k.fold(0, 8, [k.number(t, "i32")], bits)[0], table, t)

            def look(i: Index, c: list[Num]) -> list[Num]:
                place = ((c[0] ^ byte(i)) & 255).to("index")
                return [(c[0] >> 8) ^ k.load(table, place)]

            k.store(k.fold(0, n, [k.constant(-1, "i32")], look)[0] ^ -1, out, 0)
        case "adler" | "fletcher":
            modulus = 65521 if style == "adler" else 65535
            late = d.chance("late", 0.5)

            def sums(i: Index, c: list[Num]) -> list[Num]:
                a = c[0] + (byte(i) if style == "adler" else k.load(data, i) & 255)
                b = c[1] + a
                return [a, b] if late else [a % modulus, b % modulus]

            one_ = k.constant(1, "i32")
            if late:  # the remainder only once in a while
                length = 2048 if n > 2048 else n

                def chunk(p: Index, c: list[Num]) -> list[Num]:
                    a, b = k.fold(0, length, c, lambda i, inner: sums(p * length + i, inner))
                    return [a % modulus, b % modulus]

                a, b = k.fold(0, n // length, [one_, zero], chunk)
            else:
                a, b = k.fold(0, n, [one_, zero], sums)
            k.store((b << 16) | a, out, 0)
        case "fnv":
            prime, start = (16777619, 2166136261) if word == "i32" else (1099511628211, 0xCBF29CE484222325)
            n = n // lanes * lanes

            def fold_in(i: Index, c: list[Num]) -> list[Num]:
                return [(h ^ byte(i * lanes + lane)) * prime for lane, h in enumerate(c)]

            found = k.fold(0, n // lanes, [k.constant(start + lane, word) for lane in range(lanes)], fold_in)
            for lane, h in enumerate(found):
                k.store(h, out, lane)
        case "rolling":
            window, hits = d.pick("window", (8, 16, 48)), k.array("i32", 1)

            def first(i: Index, c: list[Num]) -> list[Num]:
                return [c[0] * 31 + k.load(data, i)]

            power = pow(31, window, 1 << 32)
            [start_] = k.fold(0, window, [zero], first)

            def roll(i: Index, c: list[Num]) -> list[Num]:
                h = c[0] * 31 + k.load(data, i) - k.load(data, i - window) * power
                return [h, c[1] + (h & 63).test("eq", 0).to("i32")]

            h, count = k.fold(window, n, [start_, zero], roll)
            k.store(h, out, 0)
            k.store(count, hits, 0)
        case _:  # splitmix
            store = k.array("i64", n)
            with k.loop(0, n) as i:
                z = (k.number(i, "i64") + 1) * 0x9E3779B97F4A7C15
                z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
                z = (z ^ (z >> 27)) * 0x94D049BB133111EB
                k.store(z ^ (z >> 31), store, i)


def num_polynomials(d: Drawn) -> None:
    """Horner, Estrin, Chebyshev (Clenshaw), Legendre, rational functions, products, splines, several points at once."""
    k, element = d.k, _real(d)
    style = d.pick(
        "style", ("horner", "estrin", "clenshaw", "legendre", "rational", "product", "spline", "loop", "derivative")
    )
    degree = d.pick("degree", (3, 5, 7, 8, 12, 15))
    fused = d.chance("fused", 0.4)
    if style in ("product", "loop", "derivative"):
        degree = d.pick("long", (8, 16, 40, 100)) if style != "product" else max(6, d.size((d.work / 4) ** 0.5, 6))
    n = max(4, d.size(d.work / (3 * degree), 4))
    x_in, y_out = k.array(element, n), k.array(element, n)
    stored = k.array(element, degree + 1)
    constant = d.chance("constant", 0.5)

    def coefficient(m: int) -> Num:
        return k.constant(round(1.0 / (m + 1) - 0.1 * (m % 3), 4), element) if constant else k.load(stored, m)

    def step(a: Num, b: Num, c: Num) -> Num:
        return a.fma(b, c) if fused else a * b + c

    if style == "product":
        a, b, c = k.array(element, degree), k.array(element, degree), k.array(element, 2 * degree)
        with k.loop(0, 2 * degree) as i:
            k.store(k.constant(0, element), c, i)
        with k.loop(0, degree) as i, k.loop(0, degree) as j:
            k.store(k.load(c, i + j) + k.load(a, i) * k.load(b, j), c, i + j)
        return
    zero, one = k.constant(0, element), k.constant(1, element)
    with k.loop(0, n) as i:
        x = k.load(x_in, i) - 1.0
        match style:
            case "horner":
                value = coefficient(degree)
                for m in reversed(range(degree)):
                    value = step(value, x, coefficient(m))
            case "estrin":
                terms = [coefficient(m) for m in range(degree + 1)]
                power = x
                while len(terms) > 1:
                    pairs = [step(b, power, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
                    terms = pairs + terms[len(pairs) * 2 :]
                    power = power * power
                value = terms[0]
            case "clenshaw":
                b1, b2 = zero, zero
                twice = x + x
                for m in reversed(range(1, degree + 1)):
                    b1, b2 = step(twice, b1, coefficient(m)) - b2, b1
                value = step(x, b1, coefficient(0)) - b2
            case "legendre":

                def grow(m: Index, c: list[Num], x: Num = x) -> list[Num]:
                    order = k.number(m, element)
                    new = ((order * 2 + 1) * x * c[1] - order * c[0]) / (order + 1)
                    return [c[1], new, c[2] + new * k.load(stored, m)]

                value = k.fold(1, degree, [one, x, zero], grow)[2]
            case "rational":
                top, bottom = coefficient(degree // 2), one
                for m in reversed(range(degree // 2)):
                    top = step(top, x, coefficient(m))
                for m in range(degree // 2):
                    bottom = step(bottom, x * 0.5, k.constant(1.5 + m, element))
                value = top / (bottom.abs() + 0.5)
            case "spline":
                pieces = d.pick("pieces", (8, 32, 128))
                table = k.array(element, pieces, 4)
                at = ((x + 0.5) * pieces).to("i32").clamp(0, pieces - 1)
                t = (x + 0.5) * pieces - at.to(element)
                row = at.to("index")
                value = k.load(table, row, k.index(3))
                for m in (2, 1, 0):
                    value = step(value, t, k.load(table, row, k.index(m)))
            case "derivative":

                def both(m: Index, c: list[Num], x: Num = x) -> list[Num]:
                    return [step(c[0], x, k.load(stored, m)), step(c[1], x, c[0])]

                value, slope = k.fold(0, degree + 1, [zero, zero], both)
                value = value - slope * 0.1
            case _:
                [value] = k.fold(0, degree + 1, [zero], lambda m, c, x=x: [step(c[0], x, k.load(stored, m))])
        k.store(value, y_out, i)


def num_iterations(d: Drawn) -> None:
    """Newton roots, inverse roots, Mandelbrot and Julia sets, logistic maps, bisection, continued fractions."""
    k, element = d.k, _real(d)
    style = d.pick(
        "style",
        ("newton", "root", "mandelbrot", "mandelbrot", "julia", "logistic", "bisect", "fraction", "mean", "kepler"),
    )
    most = d.pick("most", (8, 20, 50, 100, 256))
    cost = {
        "newton": 30,
        "root": 20,
        "bisect": 200,
        "mean": 30,
        "fraction": most * 4,
        "logistic": most * 4,
        "kepler": 400,
    }
    n = max(4, d.size(d.work / cost.get(style, most * 4), 4))
    one, zero = k.constant(1, element), k.constant(0, element)
    izero = k.constant(0, "i32")
    if style in ("mandelbrot", "julia"):
        rows = max(2, round(n**0.5))
        columns = max(2, n // rows)
        counts = k.array("i32", rows, columns)
        smooth = k.array(element, rows, columns) if d.chance("smooth", 0.3) else None
        burning = d.chance("burning", 0.2)
        how = d.pick("how", ("while", "fixed"), (3, 1))
        with k.loop(0, rows) as y, k.loop(0, columns) as x:
            px, py = k.number(x, element) * (3.0 / columns) - 2.0, k.number(y, element) * (2.0 / rows) - 1.0
            cx, cy = (k.constant(-0.7, element), k.constant(0.27, element)) if style == "julia" else (px, py)
            start = [px, py] if style == "julia" else [zero, zero]

            def onward(zx: Num, zy: Num, cx: Num = cx, cy: Num = cy) -> list[Num]:
                cross = zx * zy
                return [zx * zx - zy * zy + cx, (cross.abs() if burning else cross) * 2.0 + cy]

            if how == "while":

                def inside(c: list[Num]) -> Num:
                    return (c[0] * c[0] + c[1] * c[1]).test("lt", 4) & c[2].test("lt", most)

                zx, zy, count = k.loop_while(
                    [*start, izero], inside, lambda c: [*onward(c[0], c[1]), c[2] + 1], trips=most / 3
                )
            else:  # every point runs to the end, bounded

                def always(_: Index, c: list[Num]) -> list[Num]:
                    a, b = onward(c[0], c[1])
                    small = (a * a + b * b).test("lt", 4)
                    return [k.choose(small, a, c[0]), k.choose(small, b, c[1]), c[2] + small.to("i32")]

                zx, zy, count = k.fold(0, most, [*start, izero], always)
            k.store(count, counts, y, x)
            if smooth is not None:
                k.store(count.to(element) - (zx * zx + zy * zy).min(100), smooth, y, x)
        return
    a, out = k.array(element, n), k.array(element, n)
    with k.loop(0, n) as i:
        x = k.load(a, i)
        match style:
            case "newton":  # root of y^3 = x until the step is small
                tolerance = d.pick("tolerance", (1e-3, 1e-5))

                def far(c: list[Num]) -> Num:
                    return c[1].abs().test("gt", tolerance) & c[2].test("lt", 30)

                def improve(c: list[Num], x: Num = x) -> list[Num]:
                    square = c[0] * c[0]
                    move = (c[0] * square - x) / (square * 3.0)
                    return [c[0] - move, move, c[2] + 1]

                value, _, _ = k.loop_while([one, one, izero], far, improve, trips=4)
            case "root":
                steps = d.pick("steps", (2, 3, 5))
                value = 1.5 - x * 0.5
                for _ in range(steps):
                    value = value * (1.5 - x * 0.5 * value * value)
                value = value * x
            case "logistic":
                [value] = k.fold(0, most, [x * 0.5], lambda _, c: [c[0] * 3.7 * (1.0 - c[0]).max(0)])
            case "bisect":

                def halve(_: Index, c: list[Num], x: Num = x) -> list[Num]:
                    middle = (c[0] + c[1]) * 0.5
                    below = (middle * middle * middle + middle).test("lt", x)
                    return [k.choose(below, middle, c[0]), k.choose(below, c[1], middle)]

                value = k.fold(0, 24, [zero, one + 1], halve)[0]
            case "fraction":

                def level(m: Index, c: list[Num], x: Num = x) -> list[Num]:
                    return [x / (k.number(m, element) + 1.0 + c[0])]

                [value] = k.fold(0, most, [zero], level)
            case "kepler":
                [value] = k.fold(0, 10, [x], lambda _, c, x=x: [x + c[0].math("sin") * 0.3])
            case _:

                def apart(c: list[Num]) -> Num:
                    return (c[0] - c[1]).abs().test("gt", 1e-4) & c[2].test("lt", 20)

                def means(c: list[Num]) -> list[Num]:
                    return [(c[0] + c[1]) * 0.5, (c[0] * c[1]).sqrt(), c[2] + 1]

                value, _, _ = k.loop_while([x, one, izero], apart, means, trips=3)
        k.store(value, out, i)


def num_equations(d: Drawn) -> None:
    """Ordinary differential equations by Euler, midpoint, Runge-Kutta 4, Verlet, multistep, adaptive steps."""
    k, element = d.k, _real(d)
    system = d.pick("system", ("decay", "oscillator", "predator", "lorenz", "pendulum", "chain"))
    method = d.pick("method", ("euler", "midpoint", "rk4", "rk4", "verlet", "bashforth", "adaptive"))
    many = d.chance("many", 0.6)
    size = {
        "decay": 1,
        "oscillator": 2,
        "predator": 2,
        "lorenz": 3,
        "pendulum": 2,
        "chain": d.pick("chain", (4, 6, 8)),
    }[system]
    stages = {"euler": 1, "midpoint": 2, "rk4": 4, "adaptive": 3}.get(method, 1)
    total = max(2.0, d.work / (stages * size * (30 if system == "pendulum" else 5)))
    drawn = d.size(total ** (d.rng.uniform(0.3, 0.7) if many else 1.0))
    steps = max(2, int(d.forced.get("steps", drawn)))
    points = max(1, round(total / steps)) if many else 1
    state = k.array(element, points, size)
    out = k.array(element, points, size)
    h = d.pick("h", (0.001, 0.003, 0.01))
    rate = d.real(0.2, 1.2)

    def slope(y: Sequence[Num]) -> list[Num]:
        match system:
            case "decay":
                return [y[0] * -rate]
            case "oscillator":
                return [y[1], 0 - y[0] * rate - y[1] * 0.1]
            case "predator":
                return [y[0] * (1.0 - y[1]), y[1] * (y[0] - 1.0) * rate]
            case "lorenz":
                return [(y[1] - y[0]) * 10.0, y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - y[2] * 2.667]
            case "pendulum":
                return [y[1], 0 - y[0].math("sin") * rate - y[1] * 0.05]
            case _:
                ends = [y[0], *y, y[-1]]
                return [(ends[m] - ends[m + 1] * 2.0 + ends[m + 2]) * rate for m in range(size)]

    def plus(y: Sequence[Num], s: Sequence[Num], factor: float) -> list[Num]:
        return [a + b * factor for a, b in zip(y, s, strict=True)]

    def one(y: list[Num]) -> list[Num]:
        match method:
            case "midpoint":
                return plus(y, slope(plus(y, slope(y), h / 2)), h)
            case "rk4":
                k1 = slope(y)
                k2 = slope(plus(y, k1, h / 2))
                k3 = slope(plus(y, k2, h / 2))
                k4 = slope(plus(y, k3, h))
                return [
                    a + (p + q * 2.0 + r * 2.0 + s) * (h / 6) for a, p, q, r, s in zip(y, k1, k2, k3, k4, strict=True)
                ]
            case "verlet" if size >= 2:
                half = plus(y, slope(y), h / 2)
                return [half[0] + half[1] * h, *plus(half, slope(half), h / 2)[1:]]
            case _:
                return plus(y, slope(y), h)

    with k.loop(0, points) as p:
        start = [k.load(state, p, m) for m in range(size)]
        if method == "bashforth":

            def two(_: Index, c: list[Num]) -> list[Num]:
                y, old = c[:size], c[size:]
                new = slope(y)
                return [*[a + (n * 1.5 - o * 0.5) * h for a, n, o in zip(y, new, old, strict=True)], *new]

            result = k.fold(0, steps, [*start, *slope(start)], two)[:size]
        elif method == "adaptive":
            zero = k.constant(0, element)

            def before_end(c: list[Num]) -> Num:
                return c[-2].test("lt", steps * h) & c[-1].test("lt", 4 * steps)

            def try_step(c: list[Num]) -> list[Num]:
                y, size_, time = c[:size], c[size], c[size + 1]
                first = slope(y)
                middle = slope([a + b * (size_ * 0.5) for a, b in zip(y, first, strict=True)])
                gap = _sum([(a - b).abs() for a, b in zip(first, middle, strict=True)]) * size_
                good = gap.test("lt", 0.01)
                new = [k.choose(good, a + b * size_, a) for a, b in zip(y, middle, strict=True)]
                time = k.choose(good, time + size_, time)
                bigger, smaller = (size_ * 1.2).min(4 * h), (size_ * 0.5).max(h / 2)
                return [*new, k.choose(good, bigger, smaller), time, c[-1] + 1]

            inits = [*start, k.constant(h, element), zero, k.constant(0, "i32")]
            result = k.loop_while(inits, before_end, try_step, trips=steps)[:size]
        else:
            result = k.fold(0, steps, start, lambda _, c: one(c))
        for m, value in enumerate(result):
            k.store(value, out, p, m)


def num_banded(d: Drawn) -> None:
    """Tridiagonal solves by Thomas, by cyclic reduction, many at once; pentadiagonal; banded Cholesky."""
    k, element = d.k, _real(d)
    style = d.pick("style", ("thomas", "many", "many transposed", "reduction", "penta", "bands", "product", "jacobi"))
    zero = k.constant(0, element)
    n = max(6, d.size(d.work / 22, 6))
    if style in ("many", "many transposed"):
        n, batch = d.sides(2, d.work / 20, smallest=6)
        first = style == "many"

        def place(i: Index, b: Index) -> tuple[Index, ...]:
            return (b, i) if first else (i, b)

        shape = (batch, n) if first else (n, batch)
        lower, diagonal, upper, right = (k.array(element, *shape) for _ in range(4))
        c, x = k.array(element, *shape), k.array(element, *shape)

        def forward(i: Index, b: Index) -> None:
            a = k.load(lower, *place(i, b)) * 0.4
            scale = 1.0 / (k.load(diagonal, *place(i, b)) + 1.0 - a * k.load(c, *place(i - 1, b)))
            k.store(k.load(upper, *place(i, b)) * 0.4 * scale, c, *place(i, b))
            k.store((k.load(right, *place(i, b)) - a * k.load(x, *place(i - 1, b))) * scale, x, *place(i, b))

        def backward(i: Index, b: Index) -> None:
            k.store(k.load(x, *place(i, b)) - k.load(c, *place(i, b)) * k.load(x, *place(i + 1, b)), x, *place(i, b))

        def start(b: Index) -> None:
            origin = Index("0", 0, 0)
            k.store(k.load(upper, *place(origin, b)) * 0.2, c, *place(origin, b))
            k.store(k.load(right, *place(origin, b)) * 0.5, x, *place(origin, b))

        if d.chance("batch_outer", 0.5):
            with k.loop(0, batch) as b:
                start(b)
                with k.loop(1, n) as i:
                    forward(i, b)
                with k.loop(0, n - 1) as back:
                    backward(back * -1 + (n - 2), b)
        else:
            with k.loop(0, batch) as b:
                start(b)
            with k.loop(1, n) as i, k.loop(0, batch) as b:
                forward(i, b)
            with k.loop(0, n - 1) as back, k.loop(0, batch) as b:
                backward(back * -1 + (n - 2), b)
        return
    if style == "thomas":
        lower, diagonal, upper, right = (k.array(element, n) for _ in range(4))
        c, x = k.array(element, n), k.array(element, n)

        def eliminate(i: Index, carried: list[Num]) -> list[Num]:
            a = k.load(lower, i) * 0.4
            scale = 1.0 / (k.load(diagonal, i) + 1.0 - a * carried[0])
            new = [k.load(upper, i) * 0.4 * scale, (k.load(right, i) - a * carried[1]) * scale]
            k.store(new[0], c, i)
            k.store(new[1], x, i)
            return new

        _, last = k.fold(0, n, [zero, zero], eliminate)

        def substitute(back: Index, carried: list[Num]) -> list[Num]:
            i = back * -1 + (n - 2)
            value = k.load(x, i) - k.load(c, i) * carried[0]
            k.store(value, x, i)
            return [value]

        k.fold(0, n - 1, [last], substitute)
        return
    if style == "reduction":
        n = d.power(n / 2, 8)
        lower, diagonal, upper, right = (k.array(element, n + 1) for _ in range(4))
        stride = 1
        with k.loop(0, n + 1) as i:
            k.store(k.load(lower, i).clamp(0, 1) * 0.4, lower, i)
            k.store(k.load(upper, i).clamp(0, 1) * 0.4, upper, i)
            k.store(k.load(diagonal, i).clamp(0, 1) + 1.0, diagonal, i)
        while 4 * stride <= n:
            with k.loop(1, n // (2 * stride)) as p:
                i = p * (2 * stride)
                alpha = k.load(lower, i) / (k.load(diagonal, i - stride) + 0.5)
                gamma = k.load(upper, i) / (k.load(diagonal, i + stride) + 0.5)
                change = alpha * k.load(upper, i - stride) + gamma * k.load(lower, i + stride)
                k.store((k.load(diagonal, i) - change).max(0.5), diagonal, i)
                k.store(k.load(right, i) * 0.9 - alpha * k.load(right, i - stride) * 0.1, right, i)
                k.store((0 - alpha) * k.load(lower, i - stride), lower, i)
                k.store((0 - gamma) * k.load(upper, i + stride), upper, i)
            stride *= 2
        return
    if style == "penta":
        bands = k.array(element, 5, n)
        right, x, c1, c2 = (k.array(element, n) for _ in range(4))

        def five(i: Index, p: list[Num]) -> list[Num]:
            far, near = k.load(bands, 0, i) * 0.1, k.load(bands, 1, i) * 0.2
            low = near - far * p[2]
            scale = 1.0 / (k.load(bands, 2, i) + 1.0 - far * p[3] - low * p[0])
            first = (k.load(bands, 3, i) * 0.2 - low * p[1]) * scale
            second = k.load(bands, 4, i) * 0.1 * scale
            value = (k.load(right, i) - far * p[5] - low * p[4]) * scale
            for array, one in ((c1, first), (c2, second), (x, value)):
                k.store(one, array, i)
            return [first, second, p[0], p[1], value, p[4]]

        found = k.fold(0, n, [zero] * 6, five)
        k.fold(
            0, n - 2, [found[4], found[5]],
            lambda back, c: _backwards(d, c1, c2, x, back * -1 + (n - 3), c),
        )  # fmt: skip
        return
    if style in ("product", "jacobi"):
        width = d.pick("width", (1, 2, 4))
        n = max(2 * width + 2, d.size(d.work / (6 * width + 4), 6))
        bands, x, y = k.array(element, 2 * width + 1, n), k.array(element, n), k.array(element, n)
        with k.loop(width, n - width) as i:
            total = _sum([k.load(bands, m, i) * k.load(x, i + (m - width)) for m in range(2 * width + 1)])
            if style == "jacobi":
                total = k.load(x, i) * 0.5 + (1.0 - total * (0.3 / width)) / (k.load(bands, width, i) + 1.0)
            k.store(total, y, i)
        return
    width = d.pick("width", (2, 4, 8))  # banded factorization, lower part stored by diagonals
    n = max(width + 2, d.size(d.work / (4 * width * width), 6))
    a, low = k.array(element, n, width + 1), k.array(element, n, width + 1)
    with k.loop(0, n) as i, k.loop(0, width + 1) as w:
        k.store(zero, low, i, w)
    with k.loop(width, n) as i:
        with k.loop(0, width) as w:  # column i - width + w

            def dot(m: Index, c: list[Num], i: Index = i, w: Index = w) -> list[Num]:
                here = k.load(low, i, m)
                there = k.load(low, (i + w - width).within(0, n - 1), (m - w + width).within(0, width))
                return [c[0] + here * there]

            [total] = k.fold(0, w, [zero], dot)
            pivot = k.load(low, (i + w - width).within(0, n - 1), width)
            k.store((k.load(a, i, w) * 0.1 - total) / (pivot + 1.0), low, i, w)
        [square] = k.fold(0, width, [zero], lambda m, c, i=i: [c[0] + k.load(low, i, m) * k.load(low, i, m)])
        k.store((k.load(a, i, width) + 1.0 - square).abs().sqrt(), low, i, width)


def _backwards(d: Drawn, c1: Array, c2: Array, x: Array, i: Index, c: list[Num]) -> list[Num]:
    k = d.k
    value = k.load(x, i) - k.load(c1, i) * c[0] - k.load(c2, i) * c[1]
    k.store(value, x, i)
    return [value, c[0]]


def num_algebra(d: Drawn) -> None:
    """Jacobi rotations, conjugate-gradient steps, power iteration, Givens, Householder, LU with pivots, powers."""
    k, element = d.k, _real(d)
    style = d.pick(
        "style",
        ("jacobi", "gradient", "power", "givens", "pivot", "squares", "reflect", "chebyshev", "lanczos", "small"),
    )
    zero = k.constant(0, element)
    if style == "small":  # many 2x2, 3x3 or 4x4 products, determinants and inverses
        size = d.pick("small", (2, 3, 4))
        rows = max(2, d.size(d.work / (size**3 * 3), 2))
        what = d.pick("what", ("product", "determinant", "solve"))
        a, b, c = (k.array(element, rows, size, size) for _ in range(3))
        with k.loop(0, rows) as r:
            x = [[k.load(a, r, i, j) for j in range(size)] for i in range(size)]
            if what == "product":
                y = [[k.load(b, r, i, j) for j in range(size)] for i in range(size)]
                for i in range(size):
                    for j in range(size):
                        k.store(_sum([x[i][m] * y[m][j] for m in range(size)]), c, r, i, j)
            else:
                for m in range(size):  # elimination, diagonally heavy
                    x[m][m] = x[m][m] + 2.0 * size
                value = [k.load(b, r, 0, j) for j in range(size)]
                for p in range(size):
                    inverse = 1.0 / x[p][p]
                    for i in range(p + 1, size):
                        factor = x[i][p] * inverse
                        for j in range(p + 1, size):
                            x[i][j] = x[i][j] - factor * x[p][j]
                        value[i] = value[i] - factor * value[p]
                if what == "solve":
                    for p in reversed(range(size)):
                        for j in range(p + 1, size):
                            value[p] = value[p] - x[p][j] * value[j]
                        value[p] = value[p] / x[p][p]
                        k.store(value[p], c, r, 0, p)
                else:
                    product = x[0][0]
                    for p in range(1, size):
                        product = product * x[p][p]
                    k.store(product, c, r, 0, 0)
        return
    if style in ("gradient", "power", "chebyshev", "lanczos"):
        rounds = d.pick("rounds", (1, 2, 4))
        n = max(4, d.size((d.work / 3 / rounds) ** 0.5, 4))
        a = k.array(element, n, n)
        x, r, p, q = (k.array(element, n) for _ in range(4))

        def multiply(v: Array, out: Array) -> None:
            with k.loop(0, n) as i:
                [total] = k.fold(0, n, [zero], lambda j, c, i=i: [c[0] + k.load(a, i, j) * k.load(v, j)])
                k.store(total, out, i)

        def dot(u: Array, v: Array) -> Num:
            return k.fold(0, n, [zero], lambda i, c: [c[0] + k.load(u, i) * k.load(v, i)])[0]

        with k.loop(0, rounds):
            multiply(p, q)
            if style == "gradient":
                alpha = dot(r, r) / (dot(p, q).abs() + 1.0)
                with k.loop(0, n) as i:
                    k.store(k.load(x, i) * 0.9 + alpha * k.load(p, i) * 0.1, x, i)
                    k.store(k.load(r, i) * 0.9 - alpha * k.load(q, i) * 0.01, r, i)
                beta = (dot(r, r) / (dot(q, q) + 1.0)).min(1.0)
                with k.loop(0, n) as i:
                    k.store((k.load(r, i) + beta * k.load(p, i)) * 0.5, p, i)
            elif style == "chebyshev":
                with k.loop(0, n) as i:
                    new = k.load(q, i) * (1.0 / n) - k.load(r, i) * 0.5
                    k.store(k.load(p, i), r, i)
                    k.store(new, p, i)
            else:
                norm = 1.0 / (dot(q, q) + 1e-6).sqrt()
                with k.loop(0, n) as i:
                    k.store(k.load(q, i) * norm, p, i)
                if style == "lanczos":
                    along = dot(p, r)
                    with k.loop(0, n) as i:
                        k.store((k.load(p, i) - along * k.load(r, i) * 0.1) * 0.9, p, i)
        return
    n = max(4, d.size((d.work / {"squares": 3, "pivot": 2}.get(style, 4)) ** (1 / 3), 4))
    if style in ("jacobi", "givens") and n > 9:
        n = max(4, d.size((d.work / 14) ** 0.5, 4) if style == "givens" else n)
    a = k.array(element, n, n)
    if style == "squares":  # a matrix to the power of 2, 4, 8
        powers = d.pick("powers", (1, 2, 3))
        b = k.array(element, n, n)
        read, write = a, b
        for _ in range(powers):
            with k.loop(0, n) as i, k.loop(0, n) as j:
                [total] = k.fold(
                    0, n, [zero], lambda m, c, i=i, j=j, read=read: [c[0] + k.load(read, i, m) * k.load(read, m, j)]
                )
                k.store(total * (0.8 / n), write, i, j)
            read, write = write, read
        return
    if style == "pivot":
        work = k.array(element, n, n)
        with k.loop(0, n) as i, k.loop(0, n) as j:
            k.store(k.load(a, i, j), work, i, j)
        with k.loop(0, n - 1) as p:

            def largest(i: Index, c: list[Num], p: Index = p) -> list[Num]:
                value = k.load(work, i.within(0, n - 1), p).abs()
                bigger = value.test("gt", c[0])
                return [k.choose(bigger, value, c[0]), k.choose(bigger, k.index(i), c[1])]

            _, row = k.fold(p, n, [zero, k.index(p)], largest)
            with k.loop(0, n) as j:
                here, there = k.load(work, p, j), k.load(work, row, j)
                k.store(there, work, p, j)
                k.store(here, work, row, j)
            pivot = k.load(work, p, p)
            with k.loop(p + 1, n) as lower:
                i = lower.within(0, n - 1)
                factor = k.load(work, i, p) / (pivot + k.choose(pivot.test("ge", 0), k.constant(0.01, element), -0.01))
                k.store(factor, work, i, p)
                with k.loop(p + 1, n) as right:
                    j = right.within(0, n - 1)
                    k.store(k.load(work, i, j) - factor * k.load(work, p, j), work, i, j)
        return
    if style == "reflect":
        v, w = k.array(element, n), k.array(element, n)
        [square] = k.fold(0, n, [zero], lambda i, c: [c[0] + k.load(v, i) * k.load(v, i)])
        with k.loop(0, n), k.loop(0, n) as j:
            [total] = k.fold(0, n, [zero], lambda i, c, j=j: [c[0] + k.load(v, i) * k.load(a, i, j)])
            k.store(total * 2.0 / square, w, j)
            with k.loop(0, n) as i:
                k.store(k.load(a, i, j) - k.load(v, i) * k.load(w, j), a, i, j)
        return
    # rotations of rows (givens), and of rows and columns (jacobi)
    with k.loop(0, n - 1) as p, k.loop(p + 1, n) as later:
        q = later.within(0, n - 1)
        x, y = k.load(a, p, p), k.load(a, q, p)
        norm = 1.0 / (x * x + y * y + 1e-6).sqrt()
        c, s = x * norm, y * norm
        with k.loop(0, n) as j:
            u, v_ = k.load(a, p, j), k.load(a, q, j)
            k.store(c * u + s * v_, a, p, j)
            k.store(c * v_ - s * u, a, q, j)
        if style == "jacobi":
            with k.loop(0, n) as i:
                u, v_ = k.load(a, i, p), k.load(a, i, q)
                k.store(c * u + s * v_, a, i, p)
                k.store(c * v_ - s * u, a, i, q)


def num_integers(d: Drawn) -> None:
    """Big-integer sums and products by limbs, Montgomery and modular powers, sieves, binomials, Fibonacci, digits."""
    k = d.k
    style = d.pick(
        "style",
        ("add", "multiply", "multiply", "modular", "sieve", "binomial", "fibonacci", "digits", "shift", "gcd sums"),
    )
    zero64, one64 = k.constant(0, "i64"), k.constant(1, "i64")
    mask = 0xFFFFFFFF
    many = d.pick("many", (1, 8, 64))
    match style:
        case "add" | "shift":
            limbs = max(8, d.size(d.work / 8 / many, 8))
            a, b, c = (k.array("i32", many, limbs) for _ in range(3))
            bits = d.whole("bits", 1, 31)
            with k.loop(0, many) as r:

                def limb(i: Index, carry: list[Num], r: Index = r) -> list[Num]:
                    x, y = k.load(a, r, i).to("i64") & mask, k.load(b, r, i).to("i64") & mask
                    total = x + y + carry[0] if style == "add" else (x << bits) | carry[0]
                    k.store(total.to("i32"), c, r, i)
                    return [(total >> 32)]

                k.fold(0, limbs, [zero64], limb)
        case "multiply":
            limbs = max(4, d.size((d.work / 12 / many) ** 0.5, 4))
            a, b, c = k.array("i32", many, limbs), k.array("i32", many, limbs), k.array("i32", many, 2 * limbs)
            with k.loop(0, many) as r:
                with k.loop(0, 2 * limbs) as i:
                    k.store(k.constant(0, "i32"), c, r, i)
                with k.loop(0, limbs) as i:
                    factor = k.load(a, r, i).to("i64") & mask

                    def row(j: Index, carry: list[Num], r: Index = r, i: Index = i, factor: Num = factor) -> list[Num]:
                        total = (
                            factor * (k.load(b, r, j).to("i64") & mask)
                            + (k.load(c, r, i + j).to("i64") & mask)
                            + carry[0]
                        )
                        k.store(total.to("i32"), c, r, i + j)
                        return [total >> 32]

                    [carry] = k.fold(0, limbs, [zero64], row)
                    k.store(carry.to("i32"), c, r, i + limbs)
        case "modular":
            n = max(4, d.size(d.work / 150, 4))
            a, out = k.array("i64", n), k.array("i64", n)
            modulus = d.pick("modulus", (998244353, 1000003, 65537))
            exponent = d.whole("exponent", 100, 1 << 20)
            fixed = d.chance("fixed", 0.5)
            with k.loop(0, n) as i:
                base = (k.load(a, i) + k.number(i, "i64")) % modulus
                if fixed:

                    def bit(_: Index, c: list[Num]) -> list[Num]:
                        used = k.choose((c[2] & 1).test("ne", 0), c[0] * c[1] % modulus, c[0])
                        return [used, c[1] * c[1] % modulus, c[2] >> 1]

                    value = k.fold(0, exponent.bit_length(), [one64, base, k.constant(exponent, "i64")], bit)[0]
                else:

                    def step(c: list[Num]) -> list[Num]:
                        [used] = k.if_else((c[2] & 1).test("ne", 0), lambda: [c[0] * c[1] % modulus], lambda: [c[0]])
                        return [used, c[1] * c[1] % modulus, c[2] >> 1]

                    inits = [one64, base, k.constant(exponent, "i64") + k.load(a, i)]
                    value = k.loop_while(inits, lambda c: c[2].test("ne", 0), step, trips=exponent.bit_length())[0]
                k.store(value, out, i)
        case "sieve":
            n = max(32, d.size(d.work / 8, 32))
            flags, count = k.array("i8", n), k.array("i32", 1)
            with k.loop(0, n) as i:
                k.store(k.constant(1, "i8"), flags, i)
            root = max(3, int(n**0.5) + 1)
            with k.scf_loop(2, root) as p:

                def strike(p: Num = p) -> list[Num]:
                    with k.scf_loop(p * p, n, p, trips=n / max(3.0, root / 3)) as m:
                        k.store(k.constant(0, "i8"), flags, m)
                    return []

                k.if_else(k.load(flags, p).test("ne", 0), strike, share=0.3)
            [total] = k.fold(2, n, [k.constant(0, "i32")], lambda i, c: [c[0] + k.load(flags, i).to("i32")])
            k.store(total, count, 0)
        case "binomial":
            n = max(6, d.size((d.work / 3) ** 0.5, 6))
            table = k.array(d.pick("cell", ("i32", "i64")), n)
            one = k.constant(1, table.element)
            k.store(one, table, 0)
            with k.loop(1, n) as i:
                k.store(one, table, i)
                with k.loop(1, i) as j:
                    place = (i - j).within(1, n - 1)
                    k.store(k.load(table, place) + k.load(table, (place - 1).within(0, n - 1)), table, place)
        case "fibonacci":
            n = max(8, d.size(d.work / 6, 8))
            out = k.array("i64", n)
            modulus = d.pick("modulus", (0, 1000007))

            def grow(i: Index, c: list[Num]) -> list[Num]:
                new = c[0] + c[1]
                new = new % modulus if modulus else new
                k.store(new, out, i)
                return [c[1], new]

            k.fold(0, n, [zero64, one64], grow)
        case "digits":  # decimal digits, most of them by division by ten
            n = max(4, d.size(d.work / 80, 4))
            a, out = k.array("i32", n), k.array("i32", n)
            with k.loop(0, n) as i:
                value = k.hashed(k.load(a, i) + k.number(i, "i32"))

                def digit(c: list[Num]) -> list[Num]:
                    return [c[0] // 10, c[1] + c[0] % 10]

                inits = [value, k.constant(0, "i32")]
                k.store(k.loop_while(inits, lambda c: c[0].test("ne", 0), digit, trips=9)[1], out, i)
        case _:
            n = max(4, d.size((d.work / 60) ** 0.5, 4))
            out = k.array("i32", n)
            with k.scf_loop(0, n) as i:

                def row_(j: Num, c: list[Num], i: Num = i) -> list[Num]:
                    a, b = (i + 12).to("i32"), (j + 18).to("i32")
                    found = k.loop_while([a, b], lambda c: c[1].test("ne", 0), lambda c: [c[1], c[0] % c[1]], trips=5)
                    return [c[0] + found[0]]

                [total] = k.scf_fold(0, n, [k.constant(0, "i32")], row_)
                k.store(total, out, i)


def num_bits(d: Drawn) -> None:
    """Population counts, bit reversal, Gray and Morton codes, parity, bit matrices, Hamming distances, saturation."""
    k = d.k
    word = d.pick("word", ("i32", "i64", "i16"), (4, 3, 1))
    style = d.pick(
        "style",
        (
            "count",
            "swar",
            "reverse",
            "gray",
            "morton",
            "hamming",
            "parity",
            "transpose",
            "saturate",
            "lowest",
            "median",
            "pack",
        ),
    )
    n = max(
        8, d.size(d.work / {"reverse": 20, "morton": 28, "swar": 18, "hamming": 6, "transpose": 60}.get(style, 7), 8)
    )
    if style in ("morton", "reverse", "swar", "transpose"):
        word = "i32"
    a, b, out = k.array(word, n), k.array(word, n), k.array(word, n)
    width = int(word[1:])

    def value(i: Index) -> Num:
        return k.load(a, i) * 0x2F0B + k.number(i, word) if d.forced.get("mixed", True) else k.load(a, i)

    if style == "hamming":
        rows = max(2, round(n**0.5 / 2))
        words = d.pick("words", (1, 2, 8))
        x, y, result = k.array(word, rows, words), k.array(word, rows, words), k.array(word, rows, rows)
        with k.loop(0, rows) as i, k.loop(0, rows) as j:
            zero = k.constant(0, word)
            [total] = k.fold(
                0, words, [zero], lambda w, c, i=i, j=j: [c[0] + (k.load(x, i, w) ^ k.load(y, j, w)).math("ctpop")]
            )
            k.store(total, result, i, j)
        return
    if style == "transpose":  # 8 x 8 bit blocks
        rows = max(1, n // 8)
        x, y = k.array("i64", rows), k.array("i64", rows)
        with k.loop(0, rows) as i:
            v = k.load(x, i) * 0x0101040503070B0D
            for shift, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0)):
                t = (v ^ (v >> shift)) & mask
                v = v ^ t ^ (t << shift)
            k.store(v, y, i)
        return
    if style == "pack":
        rows, bits = max(1, n // 8), d.pick("bits", (1, 2, 4))
        per = 32 // bits
        x, y = k.array("i8", rows, per), k.array("i32", rows)
        with k.loop(0, rows) as i:
            zero = k.constant(0, "i32")
            if d.chance("unrolled", 0.4) and bits > 1:
                total = zero
                for m in range(per):
                    total = total | ((k.load(x, i, m).to("i32") & ((1 << bits) - 1)) << (m * bits))
            else:

                def put(m: Index, c: list[Num], i: Index = i) -> list[Num]:
                    return [(c[0] << bits) | (k.load(x, i, m).to("i32") & ((1 << bits) - 1))]

                [total] = k.fold(0, per, [zero], put)
            k.store(total, y, i)
        return
    with k.loop(0, n) as i:
        x = value(i)
        match style:
            case "count":
                result = x.math("ctpop") + (x ^ (x >> 1)).math("ctpop")
            case "swar":
                x = x - ((x >> 1) & 0x55555555)
                x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
                result = (((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24
            case "reverse":
                for mask, shift in ((0x55555555, 1), (0x33333333, 2), (0x0F0F0F0F, 4), (0x00FF00FF, 8)):
                    x = ((x >> shift) & mask) | ((x & mask) << shift)
                result = x.rotl(16)
            case "gray":
                y = x
                shift = 1
                while shift < width:
                    y = y ^ (y >> shift)
                    shift *= 2
                result = (x ^ (x >> 1)) + y
            case "morton":
                codes = []
                for v in (x, k.load(b, i)):
                    v = v & 0xFFFF
                    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
                        v = (v | (v << shift)) & mask
                    codes.append(v)
                result = codes[0] | (codes[1] << 1)
            case "parity":
                shift = width // 2
                while shift:
                    x = x ^ (x >> shift)
                    shift //= 2
                result = x & 1
            case "saturate":
                y = k.load(b, i)
                total = x + y
                over = ((x ^ total) & (y ^ total)).test("lt", 0)
                result = k.choose(over, (x.sar(width - 1)) ^ ((1 << (width - 1)) - 1), total)
            case "lowest":
                result = (x & (0 - x)) + x.math("cttz") + (x | 1).math("ctlz")
            case _:
                y, z = k.load(b, i), x >> 3
                result = (x & y) | (y & z) | (x & z)
        k.store(result, out, i)


def num_complex(d: Drawn) -> None:
    """Complex and quaternion products, divisions, magnitudes, rotations, matrices, filters, dot products."""
    k, element = d.k, _real(d)
    style = d.pick(
        "style",
        ("multiply", "divide", "magnitude", "matmul", "quaternion", "rotate", "filter", "dot", "horner", "phase"),
    )
    n = max(
        8, d.size(d.work / {"quaternion": 40, "divide": 20, "filter": 60, "horner": 60, "rotate": 40}.get(style, 12), 8)
    )
    split = d.chance("split", 0.5)

    def field(*shape: int) -> tuple[Array, ...]:
        return (k.array(element, *shape), k.array(element, *shape)) if split else (k.array(element, *shape, 2),)

    def get(f: tuple[Array, ...], *i: Index) -> tuple[Num, Num]:
        return (k.load(f[0], *i), k.load(f[1], *i)) if split else (k.load(f[0], *i, 0), k.load(f[0], *i, 1))

    def put(f: tuple[Array, ...], z: tuple[Num, Num], *i: Index) -> None:
        for part, value in enumerate(z):
            if split:
                k.store(value, f[part], *i)
            else:
                k.store(value, f[0], *i, part)

    fused = d.chance("fused", 0.3)

    def times(x: tuple[Num, Num], y: tuple[Num, Num]) -> tuple[Num, Num]:
        if fused:
            return x[0].fma(y[0], 0 - x[1] * y[1]), x[0].fma(y[1], x[1] * y[0])
        return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]

    zero = k.constant(0, element)
    match style:
        case "matmul":
            side = max(4, d.size((d.work / 9) ** (1 / 3), 4))
            a, b, c = field(side, side), field(side, side), field(side, side)
            with k.loop(0, side) as i, k.loop(0, side) as j:

                def term(m: Index, s: list[Num], i: Index = i, j: Index = j) -> list[Num]:
                    re, im = times(get(a, i, m), get(b, m, j))
                    return [s[0] + re, s[1] + im]

                re, im = k.fold(0, side, [zero, zero], term)
                put(c, (re, im), i, j)
        case "filter":
            taps = d.pick("taps", (4, 8, 16))
            a, b, c = field(n + taps), field(taps), field(n)
            with k.loop(0, n) as i:

                def tap(m: Index, s: list[Num], i: Index = i) -> list[Num]:
                    re, im = times(get(a, i + m), get(b, m))
                    return [s[0] + re, s[1] + im]

                re, im = k.fold(0, taps, [zero, zero], tap)
                put(c, (re, im), i)
        case "dot":
            a, b, out = field(n), field(n), k.array(element, 2)

            def part(i: Index, s: list[Num]) -> list[Num]:
                x, y = get(a, i), get(b, i)
                re, im = times(x, (y[0], 0 - y[1]))
                return [s[0] + re, s[1] + im]

            for m, total in enumerate(k.fold(0, n, [zero, zero], part)):
                k.store(total, out, m)
        case "quaternion":
            a, b, c = (k.array(element, n, 4) for _ in range(3))
            with k.loop(0, n) as i:
                w, x, y, z = (k.load(a, i, m) for m in range(4))
                p, q, r, s = (k.load(b, i, m) for m in range(4))
                product = (
                    w * p - x * q - y * r - z * s,
                    w * q + x * p + y * s - z * r,
                    w * r - x * s + y * p + z * q,
                    w * s + x * r - y * q + z * p,
                )
                if d.forced.get("unit", split):
                    norm = 1.0 / (_sum([v * v for v in product]) + 1e-6).sqrt()
                    product = tuple(v * norm for v in product)
                for m, value in enumerate(product):
                    k.store(value, c, i, m)
        case "horner":
            degree = d.pick("degree", (4, 8, 12))
            a, weights, c = field(n), field(degree + 1), field(n)
            with k.loop(0, n) as i:
                z = get(a, i)
                half = (z[0] * 0.5, z[1] * 0.5)
                value = get(weights, Index(str(degree), degree, degree))
                for m in reversed(range(degree)):
                    at = get(weights, Index(str(m), m, m))
                    product = times(value, half)
                    value = (product[0] + at[0], product[1] + at[1])
                put(c, value, i)
        case _:
            a, b, c = field(n), field(n), field(n)
            with k.loop(0, n) as i:
                x, y = get(a, i), get(b, i)
                match style:
                    case "divide":
                        share = 1.0 / (y[0] * y[0] + y[1] * y[1])
                        re, im = times(x, (y[0], 0 - y[1]))
                        result = (re * share, im * share)
                    case "magnitude":
                        result = ((x[0] * x[0] + x[1] * x[1]).sqrt(), x[0].abs() + x[1].abs())
                    case "rotate":
                        result = times(x, (y[0].math("cos"), y[0].math("sin")))
                    case "phase":
                        square = x[0] * x[0] + x[1] * x[1]
                        result = (x[1] / x[0] * (1.0 - square * 0.1), square)
                    case _:
                        result = times(x, y)
                put(c, result, i)


KINDS: dict[str, Kind] = {
    "num_fourier": num_fourier,
    "num_particles": num_particles,
    "num_monte_carlo": num_monte_carlo,
    "num_hashes": num_hashes,
    "num_polynomials": num_polynomials,
    "num_iterations": num_iterations,
    "num_equations": num_equations,
    "num_banded": num_banded,
    "num_algebra": num_algebra,
    "num_integers": num_integers,
    "num_bits": num_bits,
    "num_complex": num_complex,
}
FAMILIES = families_of(ORIGIN, KINDS)
