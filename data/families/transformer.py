"""Kernels of transformers, recommenders and training steps: written as loops, the way a compiler leaves them fused.

Each family draws a layer from `linalg_shapes`, scales it to a volume of work, and writes it with the choices that real
implementations differ in: passes over the data, where sums are carried, storage type, masks, layouts, fusions.
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
from .nest_draw import Draw
from .transformer_text import ACTIVATIONS, NetKernel

__all__ = ["FAMILIES", "KINDS", "families", "program"]

ORIGIN = "transformer"
MAX_OPERAND_BYTES = 8 << 20
MAX_EXECUTED_OPS = 1.0e8


def _volume(d: Draw, share: float = 1.0) -> float:
    low, high = shapes.VOLUMES
    return max(64.0, math.exp(d.rng.uniform(math.log(low), math.log(high * share))) * d.scale)


def _real(d: Draw) -> str:
    """The type computed in."""
    return d.rng.choices(("f32", "f64"), (82, 18))[0]


def _stored(d: Draw, real: str) -> str:
    """The type activations are stored in."""
    return d.rng.choices((real, "f16", "bf16"), (66, 17, 17))[0] if real == "f32" else real


def _total(
    d: Draw, k: NetKernel, trip: int | Index, starts: Sequence[Value], step: Callable[[Index, list[Value]], list[Value]]
) -> list[Value]:
    """Values carried over a loop in registers; with several partial results side by side where that is drawn."""
    if isinstance(trip, int) and trip >= 8 and len(starts) == 1 and d.chance(0.2):
        lanes = d.rng.choice((2, 4))
        whole = trip // lanes * lanes

        def several(index: Index, old: list[Value]) -> list[Value]:
            return [step(index + lane, [old[lane]])[0] for lane in range(lanes)]

        zero = k.constant(0, starts[0].type)
        parts = k.fold(0, whole, [starts[0], *[zero] * (lanes - 1)], several, step=lanes)
        while len(parts) > 1:
            parts = [k.add(parts[0], parts[1]), *parts[2:]]
        if whole == trip:
            return parts
        return k.fold(whole, trip, parts, step)
    return k.fold(0, trip, starts, step)


def _tokens(d: Draw, volume: float) -> tuple[int, int]:
    row = d.rng.choice(shapes.TOKENS)
    made = fit(d.rng, {"t": row.tokens, "w": row.width}, volume)
    return made["t"], made["w"]


# --- normalizations ---------------------------------------------------------------------------------------------------


def softmax(d: Draw, k: NetKernel) -> None:
    """Softmax and log-softmax of rows: two or three passes or online, causal, biased, scaled, in place or not."""
    real = _real(d)
    stored = _stored(d, real)
    layer = d.rng.choice(shapes.ATTENTION)
    made = fit(d.rng, {"h": layer.heads, "q": layer.queries, "t": layer.keys}, _volume(d, 0.04))
    heads, rows, width = made["h"], made["q"], made["t"]
    causal = rows > 1 and d.chance(0.3)
    if causal:
        width = rows
    online, log, in_place = d.chance(0.35), d.chance(0.2), d.chance(0.3)
    x = k.array(stored)
    y = x if in_place else k.array(stored)
    bias = k.array(real) if d.chance(0.3) else None
    scale = k.constant(round(1 / math.sqrt(layer.width), 6), real) if d.chance(0.5) else None
    buffer = k.local(real) if not online and not log and d.chance(0.5) else None
    lowest, zero = k.constant(-1e30, real), k.constant(0, real)

    def row(h: Index, i: Index) -> None:
        length: int | Index = (i + 1).within(1, width) if causal else width

        def score(j: Index) -> Value:
            value = k.load_as(real, x, h, i, j)
            if scale is not None:
                value = k.mul(value, scale)
            return k.add(value, k.load(bias, i, j)) if bias is not None else value

        if online:

            def both(j: Index, old: list[Value]) -> list[Value]:
                value = score(j)
                top = k.larger(old[0], value)
                kept = k.mul(old[1], k.exp(k.sub(old[0], top)))
                return [top, k.add(kept, k.exp(k.sub(value, top)))]

            top, total = k.fold(0, length, [lowest, zero], both)
        else:
            (top,) = k.fold(0, length, [lowest], lambda j, old: [k.larger(old[0], score(j))])

            def raised(j: Index, old: list[Value]) -> list[Value]:
                value = k.exp(k.sub(score(j), top))
                if buffer is not None:
                    k.store(value, buffer, j)
                return [k.add(old[0], value)]

            (total,) = k.fold(0, length, [zero], raised)
        shift = k.add(top, k.op("math.log", total)) if log else top
        factor = k.div(k.constant(1, real), total)
        with k.loop(0, length) as j:
            if log:
                value = k.sub(score(j), shift)
            elif buffer is not None:
                value = k.mul(k.load(buffer, j), factor)
            else:
                value = k.mul(k.exp(k.sub(score(j), shift)), factor)
            k.store_as(value, y, h, i, j)
        if causal and not in_place:
            with k.loop((i + 1).within(1, width), width) as j:
                k.store_as(zero, y, h, i, j)

    with k.loop(0, heads) as h, k.loop(0, rows) as i:
        row(h, i)


def layer_norm(d: Draw, k: NetKernel) -> None:
    """Layer and group norms: two passes, one pass of sums, Welford; with residual, scale and shift, or the gradient."""
    real = _real(d)
    stored = _stored(d, real)
    rows, width = _tokens(d, _volume(d, 0.12))
    x, y = k.array(stored), k.array(stored)
    residual = k.array(stored) if d.chance(0.4) else None
    summed = k.array(stored) if residual is not None and d.chance(0.5) else None
    scaled, shifted = d.chance(0.8), d.chance(0.7)
    gamma, beta = k.array(real), k.array(real)
    method = d.rng.choice(("two-pass", "two-pass", "sums", "welford", "gradient"))
    share, zero, epsilon = k.constant(1 / width, real), k.constant(0, real), k.constant(1e-5, real)

    def source(i: Index, j: Index) -> Value:
        value = k.load_as(real, x, i, j)
        return k.add(value, k.load_as(real, residual, i, j)) if residual is not None else value

    upstream = k.array(stored) if method == "gradient" else None
    with k.loop(0, rows) as i:
        if method == "sums" or method == "gradient":

            def sums(j: Index, old: list[Value]) -> list[Value]:
                value = source(i, j)
                return [k.add(old[0], value), k.add(old[1], k.mul(value, value))]

            first, second = k.fold(0, width, [zero, zero], sums)
            mean = k.mul(first, share)
            variance = k.larger(k.sub(k.mul(second, share), k.mul(mean, mean)), zero)
        elif method == "welford":

            def step(j: Index, old: list[Value]) -> list[Value]:
                value, count = source(i, j), k.index_value(j + 1, real)
                away = k.sub(value, old[0])
                mean = k.add(old[0], k.div(away, count))
                return [mean, k.add(old[1], k.mul(away, k.sub(value, mean)))]

            mean, moment = k.fold(0, width, [zero, zero], step)
            variance = k.mul(moment, share)
        else:
            (first,) = _total(d, k, width, [zero], lambda j, old: [k.add(old[0], source(i, j))])
            mean = k.mul(first, share)

            def away_squared(j: Index, old: list[Value]) -> list[Value]:
                away = k.sub(source(i, j), mean)
                return [k.multiply_add(away, away, old[0])]

            (second,) = _total(d, k, width, [zero], away_squared)
            variance = k.mul(second, share)
        inverse = k.op("math.rsqrt", k.add(variance, epsilon))
        if upstream is not None:
            gradient_sums(k, real, i, width, upstream, source, gamma, mean, inverse, share, y)
        else:
            with k.loop(0, width) as j:
                value = source(i, j)
                if summed is not None:
                    k.store_as(value, summed, i, j)
                value = k.mul(k.sub(value, mean), inverse)
                if scaled:
                    value = k.mul(value, k.load(gamma, j))
                if shifted:
                    value = k.add(value, k.load(beta, j))
                k.store_as(value, y, i, j)
    for unused in (gamma, beta):
        unused.fit([Index("0", 0, width - 1)])


def gradient_sums(
    k: NetKernel,
    real: str,
    i: Index,
    width: int,
    upstream: Array,
    source: Callable[[Index, Index], Value],
    gamma: Array,
    mean: Value,
    inverse: Value,
    share: Value,
    out: Array,
) -> None:
    """The gradient of one row of a layer norm by its input."""
    zero = k.constant(0, real)

    def parts(j: Index) -> tuple[Value, Value]:
        return k.mul(k.load_as(real, upstream, i, j), k.load(gamma, j)), k.mul(k.sub(source(i, j), mean), inverse)

    def both(j: Index, old: list[Value]) -> list[Value]:
        weighted, normal = parts(j)
        return [k.add(old[0], weighted), k.add(old[1], k.mul(weighted, normal))]

    first, second = (k.mul(total, share) for total in k.fold(0, width, [zero, zero], both))
    with k.loop(0, width) as j:
        weighted, normal = parts(j)
        k.store_as(k.mul(k.sub(k.sub(weighted, first), k.mul(normal, second)), inverse), out, i, j)


def rms_norm(d: Draw, k: NetKernel) -> None:
    """RMS norm of LLaMA and T5: with residual, quantized to i8, per head, or followed by a product."""
    real = _real(d)
    stored = _stored(d, real)
    rows, width = _tokens(d, _volume(d, 0.12))
    heads = d.rng.choice((1, 1, 4, 8)) if width >= 32 else 1
    width = max(4, width // heads)
    x, weight = k.array(stored), k.array(real)
    residual = k.array(stored) if d.chance(0.4) else None
    tail = d.rng.choice(("plain", "plain", "quantize", "project", "one-plus", "memory"))
    share, zero, epsilon = k.constant(1 / width, real), k.constant(0, real), k.constant(1e-6, real)
    y, scales, matrix = (
        k.array("i8" if tail == "quantize" else stored),
        k.array(real) if tail == "quantize" else None,
        k.array(stored) if tail == "project" else None,
    )
    factors = k.local(real) if tail == "memory" else None
    kept = k.local(real)
    outputs = max(1, min(16, width // 8))

    def source(i: Index, h: Index, j: Index) -> Value:
        value = k.load_as(real, x, i, h, j)
        return k.add(value, k.load_as(real, residual, i, h, j)) if residual is not None else value

    def factor(i: Index, h: Index) -> Value:
        def square(j: Index, old: list[Value]) -> list[Value]:
            value = source(i, h, j)
            return [k.multiply_add(value, value, old[0])]

        (squares,) = _total(d, k, width, [zero], square)
        return k.op("math.rsqrt", k.add(k.mul(squares, share), epsilon))

    def scaled(i: Index, h: Index, j: Index, by: Value) -> Value:
        weight_j = k.load(weight, j)
        if tail == "one-plus":
            weight_j = k.add(weight_j, k.constant(1, real))
        return k.mul(k.mul(source(i, h, j), by), weight_j)

    if factors is not None:  # all factors first
        with k.loop(0, rows) as i, k.loop(0, heads) as h:
            k.store(factor(i, h), factors, i, h)
        with k.loop(0, rows) as i, k.loop(0, heads) as h, k.loop(0, width) as j:
            k.store_as(scaled(i, h, j, k.load(factors, i, h)), y, i, h, j)
    else:
        with k.loop(0, rows) as i, k.loop(0, heads) as h:
            by = factor(i, h)
            if scales is not None:

                def largest(j: Index, old: list[Value]) -> list[Value]:
                    value = scaled(i, h, j, by)
                    k.store(value, kept, j)
                    return [k.larger(old[0], k.op("math.absf", value))]

                (top,) = k.fold(0, width, [k.constant(1e-6, real)], largest)
                k.store(k.mul(top, k.constant(1 / 127, real)), scales, i, h)
                step = k.div(k.constant(127, real), top)
                with k.loop(0, width) as j:
                    k.store_as(k.op("math.roundeven", k.mul(k.load(kept, j), step)), y, i, h, j)
            elif matrix is not None:
                with k.loop(0, width) as j:
                    k.store(scaled(i, h, j, by), kept, j)
                with k.loop(0, outputs) as o:

                    def product(j: Index, old: list[Value], o: Index = o) -> list[Value]:
                        return [k.multiply_add(k.load(kept, j), k.load_as(real, matrix, o, j), old[0])]

                    (out,) = _total(d, k, width, [zero], product)
                    k.store_as(out, y, i, h, o)
            else:
                with k.loop(0, width) as j:
                    k.store_as(scaled(i, h, j, by), y, i, h, j)
    kept.fit([Index("0", 0, width - 1)])


# --- attention --------------------------------------------------------------------------------------------------------


def _attention(d: Draw, volume: float) -> tuple[int, int, int, int, int]:
    """(heads, queries, keys, width, heads that share keys)."""
    layer = d.rng.choice(shapes.ATTENTION)
    made = fit(d.rng, {"h": layer.heads, "q": layer.queries, "t": layer.keys, "w": layer.width}, volume)
    return made["h"], made["q"], made["t"], made["w"], max(1, layer.heads // layer.kv_heads)


def attention_scores(d: Draw, k: NetKernel) -> None:
    """Scores of attention: products of queries and keys with ALiBi, relative bias, windows, causal masks, caps."""
    real = _real(d)
    stored = _stored(d, real)
    h, q, t, w, group = _attention(d, _volume(d, 0.8))
    mask = d.rng.choice(("none", "none", "causal", "window", "padding", "alibi", "relative", "cap"))
    if mask in ("causal", "window") and q < 2:
        mask = "alibi"
    if mask in ("causal", "window"):
        t = q
    reach = max(2, t // 3)
    scale, zero, far = k.constant(round(1 / math.sqrt(w), 6), real), k.constant(0, real), k.constant(-1e4, real)
    queries, keys, out = k.array(stored), k.array(stored), k.array(real)
    extra = k.array("i8" if mask == "padding" else real)
    tokens_first, transposed, carried = d.chance(0.4), d.chance(0.35), d.chance(0.6)

    def query(hh: Index, i: Index, c: Index) -> Value:
        return k.load_as(real, queries, *((i, hh, c) if tokens_first else (hh, i, c)))

    def key(hh: Index, j: Index, c: Index) -> Value:
        shared = hh // group if group > 1 else hh
        places = (shared, c, j) if transposed else (j, shared, c) if tokens_first else (shared, j, c)
        return k.load_as(real, keys, *places)

    def finished(total: Value, hh: Index, i: Index, j: Index) -> Value:
        total = k.mul(total, scale)
        match mask:
            case "alibi":
                slope = k.load(extra, hh)
                return k.sub(total, k.mul(slope, k.index_value((i - j) if q > 1 else (j * -1 + t), real)))
            case "relative":
                return k.add(total, k.load(extra, hh, i - j + (t - 1)))
            case "padding":
                keep = k.compare("ne", k.load(extra, j), k.constant(0, "i8"))
                return k.select(keep, total, far)
            case "cap":
                cap = k.constant(30, real)
                return k.mul(k.op("math.tanh", k.mul(total, k.constant(1 / 30, real))), cap)
            case _:
                return total

    if not carried:  # through memory, in nests of their own
        with k.loop(0, h) as hh, k.loop(0, q) as i, k.loop(0, t) as j:
            k.store(zero, out, hh, i, j)
        with k.loop(0, h) as hh, k.loop(0, q) as i, k.loop(0, t) as j, k.loop(0, w) as c:
            term = k.mul(query(hh, i, c), key(hh, j, c))
            k.store(k.add(k.load(out, hh, i, j), term), out, hh, i, j)
        with k.loop(0, h) as hh, k.loop(0, q) as i, k.loop(0, t) as j:
            k.store(finished(k.load(out, hh, i, j), hh, i, j), out, hh, i, j)
        return
    with k.loop(0, h) as hh, k.loop(0, q) as i:
        low: int | list[int | Index] = [0, (i - reach).within(-reach, q)] if mask == "window" else 0
        high: int | Index = (i + 1).within(1, q) if mask in ("causal", "window") else t
        with k.loop(low, high) as j:
            at = j.within(0, t - 1)

            def product(c: Index, old: list[Value], at: Index = at) -> list[Value]:
                return [k.multiply_add(query(hh, i, c), key(hh, at, c), old[0])]

            (total,) = _total(d, k, w, [zero], product)
            k.store(finished(total, hh, i, at), out, hh, i, at)
        if mask == "causal":
            with k.loop((i + 1).within(1, t), t) as j:
                k.store(far, out, hh, i, j)


def attention_head(d: Draw, k: NetKernel) -> None:
    """Whole attention heads: scores, softmax, weighted values; in nests, a row at a time, online, or linear."""
    real = _real(d)
    stored = _stored(d, real)
    h, q, t, w, group = _attention(d, _volume(d, 0.25) / 2)
    scale, zero, one = k.constant(round(1 / math.sqrt(w), 6), real), k.constant(0, real), k.constant(1, real)
    lowest = k.constant(-1e30, real)
    queries, keys, values, out = k.array(stored), k.array(stored), k.array(stored), k.array(stored)
    form = d.rng.choice(("nests", "rows", "rows", "online", "online", "linear"))
    causal = form == "rows" and q > 1 and d.chance(0.4)
    t = q if causal else t
    shares = group if d.chance(0.5) else 1

    def shared(hh: Index) -> Index:
        return hh // shares if shares > 1 else hh

    def score(hh: Index, i: Index, j: Index) -> Value:
        def product(c: Index, old: list[Value]) -> list[Value]:
            left, right = k.load_as(real, queries, hh, i, c), k.load_as(real, keys, shared(hh), j, c)
            return [k.multiply_add(left, right, old[0])]

        (total,) = _total(d, k, w, [zero], product)
        return k.mul(total, scale)

    if form == "nests":
        scores, totals, sums = k.local(real), k.local(real), k.local(real)
        with k.loop(0, h) as hh, k.loop(0, q) as i, k.loop(0, t) as j:
            k.store(score(hh, i, j), scores, hh, i, j)
        with k.loop(0, h) as hh, k.loop(0, q) as i:
            (top,) = k.fold(0, t, [lowest], lambda j, old: [k.larger(old[0], k.load(scores, hh, i, j))])

            def raised(j: Index, old: list[Value]) -> list[Value]:
                value = k.exp(k.sub(k.load(scores, hh, i, j), top))
                k.store(value, scores, hh, i, j)
                return [k.add(old[0], value)]

            (total,) = k.fold(0, t, [zero], raised)
            k.store(k.div(one, total), totals, hh, i)
        with k.loop(0, h) as hh, k.loop(0, q) as i, k.loop(0, w) as c:
            k.store(zero, sums, hh, i, c)
        with k.loop(0, h) as hh, k.loop(0, q) as i, k.loop(0, t) as j, k.loop(0, w) as c:
            term = k.mul(k.load(scores, hh, i, j), k.load_as(real, values, shared(hh), j, c))
            k.store(k.add(k.load(sums, hh, i, c), term), sums, hh, i, c)
        with k.loop(0, h) as hh, k.loop(0, q) as i, k.loop(0, w) as c:
            k.store_as(k.mul(k.load(sums, hh, i, c), k.load(totals, hh, i)), out, hh, i, c)
        return
    if form == "linear":  # kernelized: a state of width by width instead of scores
        state, norm = k.local(real), k.local(real)
        wide = min(w, 32)
        with k.loop(0, h) as hh:
            with k.loop(0, wide) as a:
                k.store(zero, norm, a)
                with k.loop(0, wide) as b:
                    k.store(zero, state, a, b)
            with k.loop(0, t) as j, k.loop(0, wide) as a:
                feature = k.add(k.activation("elu", k.load_as(real, keys, hh, j, a)), one)
                k.store(k.add(k.load(norm, a), feature), norm, a)
                with k.loop(0, wide) as b:
                    term = k.mul(feature, k.load_as(real, values, hh, j, b))
                    k.store(k.add(k.load(state, a, b), term), state, a, b)
            with k.loop(0, q) as i, k.loop(0, wide) as b:

                def mixed(a: Index, old: list[Value], i: Index = i, b: Index = b) -> list[Value]:
                    feature = k.add(k.activation("elu", k.load_as(real, queries, hh, i, a)), one)
                    above = k.multiply_add(feature, k.load(state, a, b), old[0])
                    return [above, k.multiply_add(feature, k.load(norm, a), old[1])]

                above, below = k.fold(0, wide, [zero, k.constant(1e-6, real)], mixed)
                k.store_as(k.div(above, below), out, hh, i, b)
        return
    row, sums = k.local(real), k.local(real)
    with k.loop(0, h) as hh, k.loop(0, q) as i:
        if form == "rows":
            length: int | Index = (i + 1).within(1, t) if causal else t

            def kept(j: Index, old: list[Value]) -> list[Value]:
                value = score(hh, i, j)
                k.store(value, row, j)
                return [k.larger(old[0], value)]

            (top,) = k.fold(0, length, [lowest], kept)

            def weight(j: Index, old: list[Value]) -> list[Value]:
                value = k.exp(k.sub(k.load(row, j), top))
                k.store(value, row, j)
                return [k.add(old[0], value)]

            (total,) = k.fold(0, length, [zero], weight)
            factor = k.div(one, total)
            with k.loop(0, w) as c:
                k.store(zero, sums, c)
            with k.loop(0, length) as j:
                share = k.mul(k.load(row, j), factor)
                with k.loop(0, w) as c:
                    term = k.mul(share, k.load_as(real, values, shared(hh), j, c))
                    k.store(k.add(k.load(sums, c), term), sums, c)
            with k.loop(0, w) as c:
                k.store_as(k.load(sums, c), out, hh, i, c)
        else:
            with k.loop(0, w) as c:
                k.store(zero, sums, c)

            def block(j: Index, old: list[Value]) -> list[Value]:
                value = score(hh, i, j)
                top = k.larger(old[0], value)
                correction, share = k.exp(k.sub(old[0], top)), k.exp(k.sub(value, top))
                with k.loop(0, w) as c:
                    term = k.mul(share, k.load_as(real, values, shared(hh), j, c))
                    k.store(k.multiply_add(k.load(sums, c), correction, term), sums, c)
                return [top, k.multiply_add(old[1], correction, share)]

            _, total = k.fold(0, t, [lowest, zero], block)
            factor = k.div(one, total)
            with k.loop(0, w) as c:
                k.store_as(k.mul(k.load(sums, c), factor), out, hh, i, c)


def rope(d: Draw, k: NetKernel) -> None:
    """Rotary position embeddings: interleaved or by halves, from tables or sines, partial, on one or two tensors."""
    real = _real(d)
    stored = _stored(d, real)
    layer = d.rng.choice(shapes.ATTENTION)
    from_tables = d.chance(0.65)
    volume = _volume(d, 0.12 if from_tables else 0.02)
    made = fit(d.rng, {"h": layer.heads, "q": layer.keys, "w": layer.width}, volume)
    heads, tokens, half = made["h"], made["q"], max(2, made["w"] // 2)
    rotated = half if d.chance(0.7) else max(1, half // 2)
    interleaved, in_place, tokens_first = d.chance(0.5), not from_tables and d.chance(0.5), d.chance(0.5)
    tensors = [k.array(stored) for _ in range(d.rng.choice((1, 2)))]
    results = tensors if in_place else [k.array(stored) for _ in tensors]
    cosines, sines = k.array(real), k.array(real)
    base = math.log(d.rng.choice((10000.0, 500000.0)))
    order = d.rng.sample(range(2), 2)

    def angle(i: Index, j: Index) -> tuple[Value, Value]:
        if from_tables:
            return k.load(cosines, i, j), k.load(sines, i, j)
        power = k.mul(k.index_value(j, real), k.constant(round(-base / half, 9), real))
        turn = k.mul(k.index_value(i, real), k.exp(power))
        return k.op("math.cos", turn), k.op("math.sin", turn)

    def body(h: Index, i: Index, j: Index, cosine: Value, sine: Value) -> None:
        lead = (i, h) if tokens_first else (h, i)
        first, second = (j * 2, j * 2 + 1) if interleaved else (j, j + half)
        for source, target in zip(tensors, results, strict=True):
            a, b = k.load_as(real, source, *lead, first), k.load_as(real, source, *lead, second)
            k.store_as(k.sub(k.mul(a, cosine), k.mul(b, sine)), target, *lead, first)
            k.store_as(k.add(k.mul(a, sine), k.mul(b, cosine)), target, *lead, second)

    if not from_tables and d.chance(0.6):  # one angle for all heads
        with k.loop(0, tokens) as i, k.loop(0, rotated) as j:
            cosine, sine = angle(i, j)
            with k.loop(0, heads) as h:
                body(h, i, j, cosine, sine)
    else:
        sizes = (heads, tokens)
        with k.loop(0, sizes[order[0]]) as a, k.loop(0, sizes[order[1]]) as b, k.loop(0, rotated) as j:
            h, i = (a, b) if order[0] == 0 else (b, a)
            body(h, i, j, *angle(i, j))
    if rotated < half and interleaved and not in_place:  # the rest passes through
        for source, target in zip(tensors, results, strict=True):
            with k.loop(0, heads) as h, k.loop(0, tokens) as i, k.loop(2 * rotated, 2 * half) as j:
                lead = (i, h) if tokens_first else (h, i)
                k.store_as(k.load_as(real, source, *lead, j), target, *lead, j)
    for table in (cosines, sines):
        if not from_tables:
            table.fit([Index("0", 0, 0), Index("0", 0, 0)])


# --- layers -----------------------------------------------------------------------------------------------------------


def gated_mlp(d: Draw, k: NetKernel) -> None:
    """The MLP of a transformer: GELU, SiLU, gated (SwiGLU, GeGLU), whole or only its middle, by tokens or single."""
    real = _real(d)
    stored = _stored(d, real)
    row = d.rng.choice(shapes.TOKENS)
    kind = d.rng.choice(("middle", "middle", "gated-middle", "up", "gated-up", "whole", "gated-whole"))
    activation = d.rng.choice([one for one in ACTIVATIONS if one != "softsign"])
    zero = k.constant(0, real)
    gated = kind.startswith("gated")
    if kind.endswith("middle"):  # between two matrix products
        made = fit(d.rng, {"t": row.tokens, "f": row.hidden}, _volume(d, 0.03))
        t, f = made["t"], made["f"]
        x, y = k.array(stored), k.array(stored)
        bias = k.array(real) if d.chance(0.5) else None
        side_by_side = d.chance(0.5)  # gate and value in one tensor
        gate = x if side_by_side else k.array(stored)
        with k.loop(0, t) as i, k.loop(0, f) as j:
            value = k.load_as(real, x, i, j)
            if bias is not None:
                value = k.add(value, k.load(bias, j))
            value = k.activation(activation, value)
            if gated:
                value = k.mul(value, k.load_as(real, gate, i, j + f if side_by_side else j))
            k.store_as(value, y, i, j)
        if not gated and not side_by_side:
            gate.fit([Index("0", 0, 0), Index("0", 0, 0)])
        return
    made = fit(d.rng, {"t": row.tokens, "w": row.width, "f": row.hidden}, _volume(d, 0.5) / (3 if gated else 2))
    t, w, f = made["t"], made["w"], made["f"]
    x, up, y = k.array(stored), k.array(stored), k.array(stored)
    second = k.array(stored) if gated else None
    down = k.array(stored) if kind.endswith("whole") else None
    middle = k.local(real)
    transposed, one_loop = d.chance(0.6), second is not None and d.chance(0.5)

    def at(matrix: Array, c: Index, j: Index) -> Value:
        return k.load_as(real, matrix, *((j, c) if transposed else (c, j)))

    with k.loop(0, t) as i, k.loop(0, f) as j:
        if one_loop:

            def both(c: Index, old: list[Value]) -> list[Value]:
                assert second is not None
                value = k.load_as(real, x, i, c)
                return [k.multiply_add(value, at(up, c, j), old[0]), k.multiply_add(value, at(second, c, j), old[1])]

            value, opened = k.fold(0, w, [zero, zero], both)
        else:

            def single(matrix: Array) -> Value:
                def product(c: Index, old: list[Value]) -> list[Value]:
                    return [k.multiply_add(k.load_as(real, x, i, c), at(matrix, c, j), old[0])]

                return _total(d, k, w, [zero], product)[0]

            value = single(up)
            opened = single(second) if second is not None else value
        small = k.constant(1 / w, real)
        value = k.mul(value, small)
        result = (
            k.mul(k.activation(activation, k.mul(opened, small)), value) if gated else k.activation(activation, value)
        )
        if down is None:
            k.store_as(result, y, i, j)
        else:
            k.store(result, middle, i, j)
    if down is None:
        middle.fit([Index("0", 0, 0), Index("0", 0, 0)])
        return
    with k.loop(0, t) as i, k.loop(0, w) as c:

        def back(j: Index, old: list[Value]) -> list[Value]:
            return [k.multiply_add(k.load(middle, i, j), k.load_as(real, down, c, j), old[0])]

        (total,) = _total(d, k, f, [zero], back)
        k.store_as(k.mul(total, k.constant(1 / f, real)), y, i, c)


def embedding_bag(d: Draw, k: NetKernel) -> None:
    """Embedding lookups: sums, means, maxima, weighted bags, quantized tables, gradients back into the table."""
    real = _real(d)
    layer = d.rng.choice(shapes.EMBEDDINGS)
    volume = _volume(d, 0.15)
    made = fit(d.rng, {"b": layer.bags, "p": layer.per_bag, "w": layer.width}, volume)
    bags, per_bag, width = made["b"], made["p"], made["w"]
    rows = max(8, min(layer.rows, int(6e6 / 4 / width), int(volume)))
    quantized = d.chance(0.2)
    stored = "i8" if quantized else _stored(d, real)
    kind = d.rng.choice(("sum", "sum", "mean", "max", "weighted", "gradient", "gather", "positions"))
    table, ids, y = k.array(stored), k.array("i32"), k.array(real)
    weights, scales = (k.array(real) if kind == "weighted" else None), (k.array(real) if quantized else None)
    zero, seed = k.constant(0, real), d.rng.getrandbits(30)
    table.fit([Index("0", 0, rows - 1), Index("0", 0, width - 1)])
    stored_ids = k.local("i32") if d.chance(0.4) else None
    inner_bag = d.chance(0.5)

    def draw(b: Index, p: Index) -> Value:
        mixed = k.hashed(seed, k.number(b * per_bag + p), k.load(ids, b, p))
        if d.chance(0.3) and kind != "gradient":  # skewed, as popular items are
            mixed = k.op("arith.andi", mixed, k.hashed(seed + 1, mixed))
        return k.below(mixed, rows)

    if stored_ids is not None:  # hashed in a nest of their own
        with k.loop(0, bags) as b, k.loop(0, per_bag) as p:
            k.store(draw(b, p), stored_ids, b, p)

    def id_of(b: Index, p: Index) -> Index:
        return k.position(k.load(stored_ids, b, p) if stored_ids is not None else draw(b, p), rows)

    def element(row: Index, c: Index) -> Value:
        value = k.widen(k.load_at(table, row, c), real)
        return k.mul(value, k.load_at(scales, row)) if scales is not None else value

    if scales is not None:
        scales.fit([Index("0", 0, rows - 1)])
    if kind in ("gather", "positions"):
        positions = k.array(real)
        with k.loop(0, bags) as b, k.loop(0, per_bag) as p:
            row = id_of(b, p)
            with k.loop(0, width) as c:
                value = element(row, c)
                if kind == "positions":
                    value = k.add(value, k.load(positions, b, c))
                k.store(value, y, b, p, c)
        if kind == "gather":
            positions.fit([Index("0", 0, 0), Index("0", 0, 0)])
        return
    if kind == "gradient" and not quantized and stored == real:
        rate = k.constant(0.01, real)
        with k.loop(0, bags) as b, k.loop(0, per_bag) as p:
            row = id_of(b, p)
            with k.loop(0, width) as c:
                old = k.load_at(table, row, c)
                pull = k.sub(k.load(y, b, c), old)
                k.store_at(k.multiply_add(pull, rate, old), table, row, c)
        return
    share = k.constant(1 / per_bag, real)

    def combine(old: Value, value: Value, b: Index, p: Index) -> Value:
        if kind == "max":
            return k.larger(old, value)
        if weights is not None:
            return k.multiply_add(value, k.load(weights, b, p), old)
        return k.add(old, k.mul(value, share) if kind == "mean" else value)

    if inner_bag and stored_ids is not None:  # one column at a time, carried
        with k.loop(0, bags) as b, k.loop(0, width) as c:
            (total,) = k.fold(0, per_bag, [zero], lambda p, old: [combine(old[0], element(id_of(b, p), c), b, p)])
            k.store(total, y, b, c)
        return
    with k.loop(0, bags) as b:
        with k.loop(0, width) as c:
            k.store(zero, y, b, c)
        with k.loop(0, per_bag) as p:
            row = id_of(b, p)
            with k.loop(0, width) as c:
                k.store(combine(k.load(y, b, c), element(row, c), b, p), y, b, c)


def kv_cache(d: Draw, k: NetKernel) -> None:
    """Keys and values into a cache: appended, in a ring, in pages, quantized to i8, transposed; and read back."""
    real = "f32"
    stored = _stored(d, real)
    layer = d.rng.choice(shapes.ATTENTION)
    made = fit(d.rng, {"h": layer.kv_heads, "t": layer.keys, "w": layer.width}, _volume(d, 0.1), free=("h", "t", "w"))
    h, t, w = made["h"], made["t"], made["w"]
    kind = d.rng.choice(
        ("append", "ring", "pages", "quantize", "quantize", "transposed", "gather-pages", "evict", "dequantize")
    )
    if stored == "bf16" and "quantize" not in kind:
        stored = "i16"  # only moved
    new = max(1, t // d.rng.choice((1, 2, 4)))
    sources = [k.array(stored) for _ in range(d.rng.choice((1, 2)))]
    page = d.rng.choice((8, 16, 32))
    tokens_first, seed = d.chance(0.5), d.rng.getrandbits(30)

    def lead(i: Index, hh: Index) -> tuple[Index, Index]:
        return (i, hh) if tokens_first else (hh, i)

    for source in sources:
        match kind:
            case "append":
                cache, start = k.array(stored), t - new
                with k.loop(0, new) as i, k.loop(0, h) as hh, k.loop(0, w) as c:
                    k.store(k.load(source, i, hh, c), cache, *lead(i + start, hh), c)
            case "ring":
                cache, start = k.array(stored), d.rng.randint(1, t)
                with k.loop(0, new) as i, k.loop(0, h) as hh, k.loop(0, w) as c:
                    k.store(k.load(source, i, hh, c), cache, *lead((i + start) % t, hh), c)
            case "pages":
                cache, table = k.array(stored), k.array("i32")
                pages = -(-t // page) + 1
                cache.fit(
                    [Index("0", 0, pages - 1), Index("0", 0, page - 1), Index("0", 0, h - 1), Index("0", 0, w - 1)]
                )
                with k.loop(0, t) as i:
                    number = k.below(k.hashed(seed, k.number(i // page), k.load(table, i // page)), pages)
                    slot = k.position(number, pages)
                    with k.loop(0, h) as hh, k.loop(0, w) as c:
                        k.store_at(k.load(source, i, hh, c), cache, slot, i % page, hh, c)
            case "gather-pages":
                cache, table = k.array(stored), k.array("i32")
                pages = -(-t // page) + 1
                cache.fit(
                    [Index("0", 0, pages - 1), Index("0", 0, page - 1), Index("0", 0, h - 1), Index("0", 0, w - 1)]
                )
                with k.loop(0, t) as i:
                    number = k.below(k.hashed(seed, k.number(i // page), k.load(table, i // page)), pages)
                    slot = k.position(number, pages)
                    with k.loop(0, h) as hh, k.loop(0, w) as c:
                        k.store(k.load_at(cache, slot, i % page, hh, c), source, hh, i, c)
            case "quantize":
                cache, scales = k.array("i8"), k.array(real)
                tiny, most = k.constant(1e-8, real), k.constant(127, real)
                with k.loop(0, new) as i, k.loop(0, h) as hh:

                    def largest(c: Index, old: list[Value], source: Array = source) -> list[Value]:
                        return [k.larger(old[0], k.op("math.absf", k.load_as(real, source, i, hh, c)))]

                    (top,) = k.fold(0, w, [tiny], largest)
                    k.store(k.div(top, most), scales, *lead(i, hh))
                    step = k.div(most, top)
                    with k.loop(0, w) as c:
                        scaled = k.op("math.roundeven", k.mul(k.load_as(real, source, i, hh, c), step))
                        k.store_as(scaled, cache, *lead(i, hh), c)
            case "dequantize":
                cache, scales = k.array("i8"), k.array(real)
                with k.loop(0, t) as i, k.loop(0, h) as hh:
                    step = k.load(scales, *lead(i, hh))
                    with k.loop(0, w) as c:
                        k.store_as(k.mul(k.load_as(real, cache, *lead(i, hh), c), step), source, i, hh, c)
            case "transposed":
                cache = k.array(stored)
                with k.loop(0, new) as i, k.loop(0, h) as hh, k.loop(0, w) as c:
                    k.store(k.load(source, i, hh, c), cache, hh, c, i + (t - new))
            case _:  # drop the oldest: shift all tokens, then append
                cache, drop = k.array(stored), max(1, t // 8)
                with k.loop(0, t) as i, k.loop(0, h) as hh, k.loop(0, w) as c:
                    k.store(k.load(cache, i + drop, hh, c), cache, i, hh, c)
                with k.loop(0, drop) as i, k.loop(0, h) as hh, k.loop(0, w) as c:
                    k.store(k.load(source, i, hh, c), cache, i + t, hh, c)


def quantized_matmul(d: Draw, k: NetKernel) -> None:
    """Products of quantized matrices: i8 with requantization, zero points, groups of i4 weights, dynamic scales."""
    gemm = d.rng.choice(shapes.GEMMS)
    kind = d.rng.choice(
        ("requantize", "requantize", "zero-points", "int4", "int4", "weight-only", "dynamic", "accumulate", "pairs")
    )
    made = fit(d.rng, {"m": gemm.m, "n": gemm.n, "k": gemm.k}, _volume(d, 0.5))
    m, n, depth = made["m"], made["n"], made["k"]
    real = "f32"
    zero, none = k.constant(0, "i32"), k.constant(0, real)
    a, b = k.array(real if kind in ("int4", "weight-only") else "i8"), k.array("i8")
    scales = k.array(real)
    by_column = d.chance(0.6)

    def b_at(p: Index, j: Index) -> Value:
        return k.load(b, *((j, p) if by_column else (p, j)))

    def requantized(total: Value, j: Index, shift: int) -> Value:
        if shift:  # fixed point
            factor = k.cast("arith.extsi", k.load(multipliers, j), "i64")
            wide = k.mul(k.cast("arith.extsi", total, "i64"), factor)
            rounded = k.add(wide, k.constant(1 << (shift - 1), "i64"))
            return k.cast("arith.trunci", k.op("arith.shrsi", rounded, k.constant(shift, "i64")), "i32")
        scaled = k.mul(k.cast("arith.sitofp", total, real), k.mul(k.load(scales, j), k.constant(0.01, real)))
        return k.cast("arith.fptosi", k.clamp(k.op("math.roundeven", scaled), -128, 127), "i32")

    multipliers = k.array("i32")
    shift = d.rng.choice((0, 0, 8, 12))
    if kind in ("int4", "weight-only"):
        group = d.rng.choice((8, 16, 32, 64))
        packed = kind == "int4"
        half = max(1, depth // 2)
        y = k.array(real)
        with k.loop(0, m) as i, k.loop(0, n) as j:
            if packed:

                def nibbles(p: Index, old: list[Value]) -> list[Value]:
                    both = k.cast("arith.extsi", b_at(p, j), "i32")
                    low = k.sub(k.op("arith.andi", both, k.constant(15, "i32")), k.constant(8, "i32"))
                    high = k.op("arith.shrsi", both, k.constant(4, "i32"))
                    scale = k.load(scales, j, (p * 2) // group)
                    first = k.mul(k.cast("arith.sitofp", low, real), k.load(a, i, p * 2))
                    second = k.mul(k.cast("arith.sitofp", high, real), k.load(a, i, p * 2 + 1))
                    return [k.multiply_add(k.add(first, second), scale, old[0])]

                (total,) = k.fold(0, half, [none], nibbles)
            else:

                def weight(p: Index, old: list[Value]) -> list[Value]:
                    return [k.multiply_add(k.widen(b_at(p, j), real), k.load(a, i, p), old[0])]

                (total,) = _total(d, k, depth, [none], weight)
                total = k.mul(total, k.load(scales, j, Index("0", 0, 0)))
            k.store(total, y, i, j)
        multipliers.fit([Index("0", 0, 0)])
        return
    y = k.array("i32" if kind == "accumulate" else real if kind == "dynamic" else "i8")
    if kind == "accumulate":  # through memory, so that loops may change places
        with k.loop(0, m) as i, k.loop(0, n) as j:
            k.store(zero, y, i, j)
        with k.loop(0, m) as i, k.loop(0, n) as j, k.loop(0, depth) as p:
            term = k.mul(k.load_as("i32", a, i, p), k.widen(b_at(p, j), "i32"))
            k.store(k.add(k.load(y, i, j), term), y, i, j)
        with k.loop(0, m) as i, k.loop(0, n) as j:
            k.store(requantized(k.load(y, i, j), j, shift), y, i, j)
    else:
        zero_a, zero_b = k.constant(d.rng.randint(-10, 10), "i32"), k.constant(d.rng.randint(-10, 10), "i32")
        offsets = k.array("i32")
        with k.loop(0, m) as i:
            tops = k.load(scales, Index("0", 0, 0)) if kind == "dynamic" else None
            with k.loop(0, n) as j:

                def product(p: Index, old: list[Value], i: Index = i, j: Index = j) -> list[Value]:
                    left, right = k.load_as("i32", a, i, p), k.widen(b_at(p, j), "i32")
                    if kind == "zero-points":
                        left, right = k.sub(left, zero_a), k.sub(right, zero_b)
                    return [k.multiply_add(left, right, old[0])]

                if kind == "pairs":  # two products in 16 bits before they are widened, as pmaddubsw does

                    def pair(p: Index, old: list[Value], i: Index = i, j: Index = j) -> list[Value]:
                        terms = [
                            k.mul(k.load_as("i16", a, i, p * 2 + s), k.widen(b_at(p * 2 + s, j), "i16")) for s in (0, 1)
                        ]
                        return [k.add(old[0], k.cast("arith.extsi", k.add(*terms), "i32"))]

                    (total,) = k.fold(0, max(1, depth // 2), [zero], pair)
                else:
                    (total,) = _total(d, k, depth, [zero], product)
                total = k.add(total, k.load(offsets, j))
                if tops is not None:
                    k.store(k.mul(k.cast("arith.sitofp", total, real), k.mul(tops, k.load(scales, j))), y, i, j)
                else:
                    k.store_as(k.clamp(requantized(total, j, shift), -128, 127), y, i, j)
    for unused in (multipliers, scales):
        unused.fit([Index("0", 0, n - 1)])


def half_matmul(d: Draw, k: NetKernel) -> None:
    """Products of f16 and bf16 matrices summed in f32: one row or many, fused scales, biases and activations."""
    gemm = d.rng.choice(shapes.GEMMS)
    half = d.rng.choice(("f16", "bf16"))
    other = half if d.chance(0.5) else "f32"
    made = fit(d.rng, {"m": gemm.m, "n": gemm.n, "k": gemm.k}, _volume(d, 0.6))
    m, n, depth = made["m"], made["n"], made["k"]
    a, b, y = k.array(other), k.array(half), k.array(half if d.chance(0.5) else "f32")
    bias = k.array(d.rng.choice((half, "f32"))) if d.chance(0.5) else None
    zero, small = k.constant(0, "f32"), k.constant(1 / depth, "f32")
    flip_b, order = d.chance(0.6), d.rng.choice(("dot", "dot", "rows", "memory", "blocked"))
    activation = d.rng.choice((None, None, "relu", "silu", "gelu-tanh", "hard-swish"))

    def b_at(p: Index, j: Index) -> Value:
        return k.load_as("f32", b, *((j, p) if flip_b else (p, j)))

    def out(total: Value, i: Index, j: Index) -> None:
        total = k.mul(total, small)
        if bias is not None:
            total = k.add(total, k.load_as("f32", bias, j))
        k.store_as(k.activation(activation, total) if activation else total, y, i, j)

    if order == "dot":
        with k.loop(0, m) as i, k.loop(0, n) as j:

            def product(p: Index, old: list[Value]) -> list[Value]:
                return [k.multiply_add(k.load_as("f32", a, i, p), b_at(p, j), old[0])]

            (total,) = _total(d, k, depth, [zero], product)
            out(total, i, j)
        return
    if order == "blocked":  # a register tile of 2 by 2 or 4 by 2
        rows, columns = d.rng.choice(((2, 2), (4, 2), (2, 4)))
        m, n = max(1, m // rows), max(1, n // columns)
        with k.loop(0, m) as i, k.loop(0, n) as j:

            def tile(p: Index, old: list[Value]) -> list[Value]:
                left = [k.load_as("f32", a, i * rows + r, p) for r in range(rows)]
                right = [b_at(p, j * columns + c) for c in range(columns)]
                products = [(x, w) for x in left for w in right]
                return [k.multiply_add(x, w, one) for (x, w), one in zip(products, old, strict=True)]

            totals = k.fold(0, depth, [zero] * (rows * columns), tile)
            for at, total in enumerate(totals):
                out(total, i * rows + at // columns, j * columns + at % columns)
        return
    sums = k.local("f32")
    if order == "rows":
        with k.loop(0, m) as i:
            with k.loop(0, n) as j:
                k.store(zero, sums, j)
            with k.loop(0, depth) as p:
                left = k.load_as("f32", a, i, p)
                with k.loop(0, n) as j:
                    k.store(k.multiply_add(left, b_at(p, j), k.load(sums, j)), sums, j)
            with k.loop(0, n) as j:
                out(k.load(sums, j), i, j)
        return
    with k.loop(0, m) as i, k.loop(0, n) as j:
        k.store(zero, sums, i, j)
    with k.loop(0, m) as i, k.loop(0, n) as j, k.loop(0, depth) as p:
        term = k.mul(k.load_as("f32", a, i, p), b_at(p, j))
        k.store(k.add(k.load(sums, i, j), term), sums, i, j)
    with k.loop(0, m) as i, k.loop(0, n) as j:
        out(k.load(sums, i, j), i, j)


# --- gates, losses, training ------------------------------------------------------------------------------------------


def top_k_gate(d: Draw, k: NetKernel) -> None:
    """Mixture-of-experts gates and samplers: the k largest of each row, their softmax, counts and dispatch."""
    real = _real(d)
    experts = d.rng.choice((4, 8, 8, 16, 32, 60, 64, 128, 255))
    kind = d.rng.choice(("top1", "top2", "top2", "select", "select", "sigmoid", "argmax"))
    top = d.rng.choice((2, 3, 4, 6, 8)) if kind == "select" else 2
    tokens = max(1, int(_volume(d, 0.06) / (experts * (top if kind == "select" else 1))))
    tokens = min(tokens, int(4e6 / experts))
    logits, chosen, weights = k.array(real), k.array("i32"), k.array(real)
    counts, bias = (k.array("i32") if d.chance(0.5) else None), (k.array(real) if d.chance(0.4) else None)
    lowest, nowhere, one = k.constant(-1e30, real), k.constant(0, "i32"), k.constant(1, real)

    def logit(i: Index, e: Index) -> Value:
        value = k.load(logits, i, e)
        if kind == "sigmoid":
            value = k.sigmoid(value)
        return k.add(value, k.load(bias, e)) if bias is not None else value

    if counts is not None:
        with k.loop(0, experts) as e:
            k.store(nowhere, counts, e)

    def counted(expert: Value) -> None:
        if counts is not None:
            place = k.position(expert, experts)
            k.store_at(k.add(k.load_at(counts, place), k.constant(1, "i32")), counts, place)

    used = k.local("i8") if kind == "select" else None
    with k.loop(0, tokens) as i:
        if kind in ("top1", "argmax"):

            def larger(e: Index, old: list[Value]) -> list[Value]:
                value = logit(i, e)
                better = k.compare("ogt", value, old[0])
                return [k.select(better, value, old[0]), k.select(better, k.number(e), old[1])]

            best, where = k.fold(0, experts, [lowest, nowhere], larger)
            k.store(where, chosen, i, Index("0", 0, 0))
            if kind == "top1":
                (total,) = k.fold(
                    0,
                    experts,
                    [k.constant(0, real)],
                    lambda e, old: [k.add(old[0], k.exp(k.sub(logit(i, e), best)))],
                )
                best = k.div(one, total)
            k.store(best, weights, i, Index("0", 0, 0))
            counted(where)
        elif kind in ("top2", "sigmoid"):

            def two(e: Index, old: list[Value]) -> list[Value]:
                value, number = logit(i, e), k.number(e)
                above, between = k.compare("ogt", value, old[0]), k.compare("ogt", value, old[2])
                second = k.select(above, old[0], k.select(between, value, old[2]))
                second_at = k.select(above, old[1], k.select(between, number, old[3]))
                return [k.select(above, value, old[0]), k.select(above, number, old[1]), second, second_at]

            first, first_at, second, second_at = k.fold(0, experts, [lowest, nowhere, lowest, nowhere], two)
            share = k.div(one, k.add(one, k.exp(k.sub(second, first))))
            for at, (value, number) in enumerate(((share, first_at), (k.sub(one, share), second_at))):
                k.store(value, weights, i, Index(str(at), at, at))
                k.store(number, chosen, i, Index(str(at), at, at))
                counted(number)
        else:
            assert used is not None
            taken = used
            with k.loop(0, experts) as e:
                k.store(k.constant(0, "i8"), taken, e)
            with k.loop(0, min(top, experts)) as r:

                def next_best(e: Index, old: list[Value]) -> list[Value]:
                    open_one = k.compare("eq", k.load(taken, e), k.constant(0, "i8"))
                    value = k.select(open_one, logit(i, e), lowest)
                    better = k.compare("ogt", value, old[0])
                    return [k.select(better, value, old[0]), k.select(better, k.number(e), old[1])]

                best, where = k.fold(0, experts, [lowest, nowhere], next_best)
                k.store_at(k.constant(1, "i8"), taken, k.position(where, experts))
                k.store(best, weights, i, r)
                k.store(where, chosen, i, r)
                counted(where)


def cross_entropy(d: Draw, k: NetKernel) -> None:
    """Losses: cross-entropy with label smoothing, its gradient, focal, binary, mean squares, KL, accuracy."""
    real = _real(d)
    stored = _stored(d, real)
    tokens, classes = d.rng.choice(
        ((64, 50257), (128, 30522), (32, 1000), (256, 10), (16, 32000), (12544, 21), (196, 2))
    )
    kind = d.rng.choice(
        ("entropy", "entropy", "gradient", "gradient", "smooth", "focal", "binary", "squares", "kl", "accuracy")
    )
    made = fit(d.rng, {"t": tokens, "c": classes}, _volume(d, 0.03))
    t, c = made["t"], max(2, made["c"])
    logits, labels, out = k.array(stored), k.array("i32"), k.array(real)
    zero, one, lowest, seed = k.constant(0, real), k.constant(1, real), k.constant(-1e30, real), d.rng.getrandbits(30)
    if kind in ("binary", "squares", "kl"):
        targets, share = k.array(stored), k.constant(1 / (t * c), real)

        def loss(i: Index, j: Index) -> Value:
            x, y = k.load_as(real, logits, i, j), k.load_as(real, targets, i, j)
            if kind == "squares":
                return k.mul(k.sub(x, y), k.sub(x, y))
            if kind == "kl":
                return k.mul(y, k.sub(k.op("math.log", y), x))
            return k.sub(k.activation("softplus", x), k.mul(x, k.mul(y, k.constant(0.5, real))))

        if d.chance(0.5):
            with k.loop(0, t) as i:
                (total,) = _total(d, k, c, [zero], lambda j, old: [k.add(old[0], loss(i, j))])
                k.store(k.mul(total, share), out, i)
        else:
            (total,) = k.fold(
                0, t, [zero], lambda i, old: k.fold(0, c, old, lambda j, inner: [k.add(inner[0], loss(i, j))])
            )
            k.store(k.mul(total, share), out, Index("0", 0, 0))
        return labels.fit([Index("0", 0, 0)])
    if kind == "accuracy":
        _accuracy(k, real, t, c, logits, labels, seed)
        return out.fit([Index("0", 0, 0)])
    gradient = k.array(stored) if kind == "gradient" else None
    share = k.constant(1 / t, real)
    logits.fit([Index("0", 0, t - 1), Index("0", 0, c - 1)])
    with k.loop(0, t) as i:
        label = k.below(k.hashed(seed, k.number(i), k.load(labels, i)), c)
        (top,) = k.fold(0, c, [lowest], lambda j, old: [k.larger(old[0], k.load_as(real, logits, i, j))])
        (total,) = k.fold(
            0, c, [zero], lambda j, old: [k.add(old[0], k.exp(k.sub(k.load_as(real, logits, i, j), top)))]
        )
        whole = k.add(top, k.op("math.log", total))
        right = k.widen(k.load_at(logits, i, k.position(label, c)), real)
        value = k.sub(whole, right)
        if kind == "smooth":
            (mean,) = k.fold(0, c, [zero], lambda j, old: [k.add(old[0], k.load_as(real, logits, i, j))])
            spread = k.sub(whole, k.mul(mean, k.constant(1 / c, real)))
            value = k.add(k.mul(value, k.constant(0.9, real)), k.mul(spread, k.constant(0.1, real)))
        elif kind == "focal":
            miss = k.sub(one, k.exp(k.op("arith.negf", value)))
            value = k.mul(k.mul(miss, miss), value)
        k.store(value, out, i)
        if gradient is not None:
            with k.loop(0, c) as j:
                probability = k.exp(k.sub(k.load_as(real, logits, i, j), whole))
                is_label = k.compare("eq", k.number(j), label)
                k.store_as(k.mul(k.sub(probability, k.select(is_label, one, zero)), share), gradient, i, j)
    return None


def _accuracy(k: NetKernel, real: str, t: int, c: int, logits: Array, labels: Array, seed: int) -> None:
    """1 for each row whose largest logit is that of its label."""
    hits = k.array("i32")
    with k.loop(0, t) as i:
        label = k.below(k.hashed(seed, k.number(i), k.load(labels, i)), c)

        def best(j: Index, old: list[Value]) -> list[Value]:
            value = k.load_as(real, logits, i, j)
            better = k.compare("ogt", value, old[0])
            return [k.select(better, value, old[0]), k.select(better, k.number(j), old[1])]

        _, where = k.fold(0, c, [k.constant(-1e30, real), k.constant(0, "i32")], best)
        k.store(k.cast("arith.extui", k.compare("eq", where, label), "i32"), hits, i)


OPTIMIZERS = (
    "sgd",
    "momentum",
    "nesterov",
    "adam",
    "adamw",
    "adagrad",
    "rmsprop",
    "lion",
    "adamax",
    "lamb",
    "ema",
    "clip",
)


def optimizer(d: Draw, k: NetKernel) -> None:
    """One step of SGD, momentum, Adam, AdamW, Adagrad, RMSProp, Lion, LAMB, averaged weights, clipping by norm."""
    real = _real(d)
    kind = d.rng.choice(OPTIMIZERS)
    gemm = d.rng.choice(shapes.GEMMS)
    made = fit(d.rng, {"n": gemm.n, "k": gemm.k}, min(_volume(d, 0.08), 4e5 if real == "f32" else 2e5))
    flat, n_tensors = d.chance(0.5), d.rng.choice((1, 1, 1, 2, 3))
    sizes = [made["n"] * made["k"]] if flat else [made["n"], made["k"]]
    sizes = [max(1, sizes[0] // n_tensors), *sizes[1:]]
    narrow = d.rng.choice((None, None, "f16", "bf16")) if real == "f32" else None
    decay = d.chance(0.5)

    def number(value: float) -> Value:
        return k.constant(value, real)

    rate, b1, b2 = number(1e-3), number(0.9), number(0.999)

    def over_all(body: Callable[[list[Index]], None]) -> None:
        if flat:
            with k.loop(0, sizes[0]) as i:
                body([i])
        else:
            with k.loop(0, sizes[0]) as i, k.loop(0, sizes[1]) as j:
                body([i, j])

    for _ in range(n_tensors):
        weights, gradients = k.array(real), k.array(narrow or real)
        first, second = k.array(real), k.array(real)
        copy = k.array(narrow) if narrow else None
        norm = number(1)
        if kind in ("lamb", "clip"):  # the norm first

            def square(at: list[Index], old: Value, gradients: Array = gradients) -> Value:
                g = k.load_as(real, gradients, *at)
                return k.multiply_add(g, g, old)

            zero = number(0)
            if flat:
                (total,) = _total(d, k, sizes[0], [zero], lambda i, old: [square([i], old[0])])
            else:
                (total,) = k.fold(
                    0,
                    sizes[0],
                    [zero],
                    lambda i, old: k.fold(0, sizes[1], old, lambda j, inner: [square([i, j], inner[0])]),
                )
            norm = k.div(number(1), k.larger(k.op("math.sqrt", total), number(1)))

        def step(
            at: list[Index],
            weights: Array = weights,
            gradients: Array = gradients,
            first: Array = first,
            second: Array = second,
            copy: Array | None = copy,
            norm: Value = norm,
        ) -> None:
            w, g = k.load(weights, *at), k.load_as(real, gradients, *at)
            if decay and kind != "ema":
                g = k.add(g, k.mul(w, number(0.01)))
            match kind:
                case "sgd":
                    w = k.sub(w, k.mul(g, rate))
                case "clip":
                    w = k.sub(w, k.mul(k.mul(g, norm), rate))
                case "ema":
                    w = k.add(k.mul(w, b2), k.mul(g, number(0.001)))
                case "momentum" | "nesterov":
                    v = k.add(k.mul(k.load(first, *at), b1), g)
                    k.store(v, first, *at)
                    w = k.sub(w, k.mul(k.add(g, k.mul(v, b1)) if kind == "nesterov" else v, rate))
                case "adagrad":
                    v = k.add(k.load(second, *at), k.mul(g, g))
                    k.store(v, second, *at)
                    w = k.sub(w, k.div(k.mul(g, rate), k.add(k.op("math.sqrt", v), number(1e-8))))
                case "rmsprop":
                    v = k.add(k.mul(k.load(second, *at), b2), k.mul(k.mul(g, g), number(0.001)))
                    k.store(v, second, *at)
                    w = k.sub(w, k.mul(k.mul(g, k.op("math.rsqrt", k.add(v, number(1e-8)))), rate))
                case "lion":
                    m = k.load(first, *at)
                    direction = k.add(k.mul(m, b1), k.mul(g, number(0.1)))
                    w = k.sub(w, k.mul(k.op("math.copysign", rate, direction), number(1)))
                    k.store(k.add(k.mul(m, number(0.99)), k.mul(g, number(0.01))), first, *at)
                case _:
                    m = k.add(k.mul(k.load(first, *at), b1), k.mul(g, number(0.1)))
                    k.store(m, first, *at)
                    old = k.load(second, *at)
                    if kind == "adamax":
                        v = k.larger(k.mul(old, b2), k.op("math.absf", g))
                        root = v
                    else:
                        v = k.add(k.mul(old, b2), k.mul(k.mul(g, g), number(0.001)))
                        root = k.op("math.sqrt", k.mul(v, number(1.25)))
                    k.store(v, second, *at)
                    change = k.div(k.mul(m, number(1.1)), k.add(root, number(1e-8)))
                    if kind == "adamw":
                        change = k.add(change, k.mul(w, number(0.01)))
                    w = k.sub(w, k.mul(k.mul(change, norm) if kind == "lamb" else change, rate))
            k.store(w, weights, *at)
            if copy is not None:
                k.store_as(w, copy, *at)

        over_all(step)
        for unused in (first, second):
            if not unused.extents:
                unused.fit([Index("0", 0, 0)])


def dropout(d: Draw, k: NetKernel) -> None:
    """Dropout by hashing: masks as bytes or bits, with residual, its gradient, stochastic rounding, noise."""
    real = _real(d)
    stored = _stored(d, real)
    rows, width = _tokens(d, _volume(d, 0.08))
    kind = d.rng.choice(("apply", "apply", "mask", "bits", "residual", "gradient", "rounding", "noise", "rows"))
    keep, by_row = d.rng.choice((0.9, 0.8, 0.5)), d.chance(0.5)
    x, y, seed, rounds = k.array(stored), k.array(stored), d.rng.getrandbits(30), d.rng.choice((1, 1, 2))
    limit, zero, factor = k.constant(int(keep * (1 << 24)), "i32"), k.constant(0, real), k.constant(1 / keep, real)
    masks = k.array("i32" if kind == "bits" else "i8")
    residual = k.array(stored) if kind == "residual" else None

    def draw(*numbers: Value) -> Value:
        mixed = k.hashed(seed, *numbers)
        for extra in range(1, rounds):
            mixed = k.hashed(seed + extra, mixed)
        return k.op("arith.shrui", mixed, k.constant(8, "i32"))

    if kind == "bits":  # 32 decisions in a word
        with k.loop(0, rows) as i, k.loop(0, -(-width // 32)) as j:
            (word,) = k.fold(
                0,
                32,
                [k.constant(0, "i32")],
                lambda b, old: [
                    k.op(
                        "arith.ori",
                        k.op("arith.shli", old[0], k.constant(1, "i32")),
                        k.cast("arith.extui", k.compare("ult", draw(k.number(i), k.number(j * 32 + b)), limit), "i32"),
                    )
                ],
            )
            k.store(word, masks, i, j)
        with k.loop(0, rows) as i, k.loop(0, width) as j:
            word = k.load(masks, i, j // 32)
            bit = k.op("arith.andi", k.op("arith.shrui", word, k.number(j % 32)), k.constant(1, "i32"))
            kept = k.compare("ne", bit, k.constant(0, "i32"))
            k.store_as(k.select(kept, k.mul(k.load_as(real, x, i, j), factor), zero), y, i, j)
        return
    with k.loop(0, rows) as i:
        row_kept = k.compare("ult", draw(k.number(i)), limit) if kind == "rows" else None
        with k.loop(0, width) as j:
            value = k.load_as(real, x, i, j)
            if kind == "gradient":  # from a stored mask
                kept = k.compare("ne", k.load(masks, i, j), k.constant(0, "i8"))
            elif row_kept is not None:
                kept = row_kept
            else:
                number = draw(k.number(i), k.number(j)) if by_row else draw(k.number(i * width + j))
                kept = k.compare("ult", number, limit)
            if kind in ("noise", "rounding"):
                unit = k.mul(k.cast("arith.sitofp", number, real), k.constant(1 / (1 << 24), real))
                if kind == "noise":
                    k.store_as(k.add(value, k.mul(k.sub(unit, k.constant(0.5, real)), k.constant(0.1, real))), y, i, j)
                else:  # to i8, up or down by chance
                    k.store_as(k.op("math.floor", k.add(k.mul(value, k.constant(31, real)), unit)), masks, i, j)
            else:
                dropped = k.select(kept, k.mul(value, factor), zero)
                if residual is not None:
                    dropped = k.add(dropped, k.load_as(real, residual, i, j))
                k.store_as(dropped, y, i, j)
                if kind == "mask":
                    k.store(k.cast("arith.extui", kept, "i8"), masks, i, j)
    for array in (masks, y):
        if not array.extents:
            array.fit([Index("0", 0, 0)])


KINDS: dict[str, Callable[[Draw, NetKernel], None]] = {
    "transformer_softmax": softmax,
    "transformer_layer_norm": layer_norm,
    "transformer_rms_norm": rms_norm,
    "transformer_attention_scores": attention_scores,
    "transformer_attention_head": attention_head,
    "transformer_rope": rope,
    "transformer_gated_mlp": gated_mlp,
    "transformer_embedding_bag": embedding_bag,
    "transformer_kv_cache": kv_cache,
    "transformer_quantized_matmul": quantized_matmul,
    "transformer_half_matmul": half_matmul,
    "transformer_top_k_gate": top_k_gate,
    "transformer_cross_entropy": cross_entropy,
    "transformer_optimizer": optimizer,
    "transformer_dropout": dropout,
}
"""Family -> what draws one program."""


def program(family: str, seed: int) -> Source:
    """The program of one family and seed; the same ones give the same text."""
    for attempt in range(40):
        rng = random.Random(f"{family}/{seed}")
        kernel = NetKernel(rng)
        KINDS[family](Draw(rng, kernel, 0.6**attempt, "f32", "mixed"), kernel)
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
