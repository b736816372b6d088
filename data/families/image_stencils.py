"""Stencils and grid solvers: stars and boxes, skewed and tiled in time, red-black relaxation, multi-grid, physics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import product

from .affine_text import Array, Index
from .drawn import Drawn, Kind, families_of
from .image import ORIGIN
from .scf_text import Num

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]


def _nest(d: Drawn, bounds: Sequence[tuple[int, int]], body: Callable[[list[Index]], None]) -> None:
    with ExitStack() as stack:
        body([stack.enter_context(d.k.loop(low, high)) for low, high in bounds])


def _element(d: Drawn) -> str:
    return d.pick("element", ("f32", "f64"), (3, 2))


def _mean(values: Sequence[Num], weights: Sequence[float]) -> Num:
    """Weighted by shares that sum to one."""
    whole = sum(weights)
    total = values[0] * (weights[0] / whole)
    for value, weight in zip(values[1:], weights[1:], strict=True):
        total = total + value * (weight / whole)
    return total


def stencil_shapes(d: Drawn) -> None:
    """Stars, boxes and diamonds of radius 1 to 4 in 2 and 3 dimensions, constant or stored weights, several sweeps."""
    k, element = d.k, _element(d)
    n = d.pick("rank", (2, 2, 3))
    radius = d.pick("radius", (1, 2, 3, 4))
    shape = d.pick("shape", ("star", "star", "box", "diamond", "upwind"))
    if shape in ("box", "diamond"):
        radius = min(radius, 3 if n == 2 else 1)
    points = list(product(range(-radius, radius + 1), repeat=n))
    if shape == "star":
        points = [p for p in points if sum(o != 0 for o in p) <= 1]
    elif shape == "diamond":
        points = [p for p in points if sum(map(abs, p)) <= radius]
    elif shape == "upwind":
        points = [p for p in points if sum(o != 0 for o in p) <= 1 and sum(p) <= 0]
    sweeps = d.pick("sweeps", (1, 1, 2, 6))
    sizes = [s + 2 * radius + 1 for s in d.sides(n, d.work / len(points) / sweeps)]
    a, b = k.array(element, *sizes), k.array(element, *sizes)
    style = d.pick("weights", ("constant", "factored", "stored", "field"))
    stored = k.array(element, len(points)) if style == "stored" else a
    fields = k.array(element, *sizes) if style == "field" else a
    by_ring = [1.0 / (1 + sum(map(abs, p))) for p in points]

    def sweep(read: Array, write: Array) -> None:
        def at(i: list[Index]) -> None:
            values = [k.load(read, *(x + o for x, o in zip(i, p, strict=True))) for p in points]
            if style == "factored":  # one product per ring
                rings: dict[int, Num] = {}
                for p, value in zip(points, values, strict=True):
                    ring = sum(map(abs, p))
                    rings[ring] = rings[ring] + value if ring in rings else value
                counts = [sum(sum(map(abs, p)) == ring for p in points) for ring in rings]
                total = sum(c / (1 + ring) for ring, c in zip(rings, counts, strict=True))
                result = None
                for ring, value in rings.items():
                    part = value * (1 / (1 + ring) / total)
                    result = part if result is None else result + part
                assert result is not None
            elif style == "stored":
                values = [v * k.load(stored, m) for m, v in enumerate(values)]
                result = _mean(values, [1.0] * len(values)) * 0.6
            else:
                result = _mean(values, by_ring)
            if style == "field":
                result = values[0] + (result - values[0]) * (k.load(fields, *i) * 0.5)
            k.store(result, write, *i)

        _nest(d, [(radius, s - radius) for s in sizes], at)

    if sweeps == 1:
        sweep(a, b)
        return
    with k.loop(0, sweeps // 2):
        sweep(a, b)
        sweep(b, a)


def stencil_skewed(d: Drawn) -> None:
    """Jacobi and Gauss-Seidel sweeps skewed against time, plain or tiled in time and space."""
    k, element = d.k, _element(d)
    rank = d.pick("rank", (1, 1, 2))
    in_place = d.chance("in_place", 0.5)
    tiled = d.chance("tiled", 0.7)
    steps = d.pick("steps", (4, 8, 16, 32))
    wide = d.pick("radius", (1, 1, 2)) if rank == 1 else 1
    sizes = [s + 2 * wide + 2 for s in d.sides(rank, d.work / (4 * steps))]
    block_t, block = d.pick("block_t", (2, 4, 8)), d.pick("block", (16, 32, 64, 128))
    shape = [*([] if in_place else [2]), *sizes]
    a = k.array(element, *shape)
    offsets = [(o,) for o in range(-wide, wide + 1)] if rank == 1 else [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]
    weights = [1.0 / (1 + sum(map(abs, p))) for p in offsets]

    def update(t: Index, skewed: list[Index], inner: list[Index]) -> None:
        places = []
        for index, size in zip(skewed, sizes, strict=False):
            places.append((index - t * wide).within(wide, size - 1 - wide))
        places += inner
        values = []
        for p in offsets:
            at = [
                (place + o).within(0, size - 1) if o else place for place, o, size in zip(places, p, sizes, strict=True)
            ]
            values.append(k.load(a, *at) if in_place else k.load(a, t % 2, *at))
        value = _mean(values, weights)
        k.store(value, a, *(places if in_place else [(t + 1) % 2, *places]))

    def over_inner(t: Index, skewed: list[Index]) -> None:
        if rank == 1:
            update(t, skewed, [])
            return
        with k.loop(1, sizes[1] - 1) as x:
            update(t, skewed, [x])

    n = sizes[0]
    if not tiled:
        with k.loop(0, steps) as t, k.loop(t * wide + wide, t * wide + (n - wide)) as j:
            over_inner(t, [j])
        return
    with (
        k.loop(0, -(-steps // block_t)) as tt,
        k.loop(0, -(-(n + steps * wide) // block)) as jj,
        k.loop(tt * block_t, [tt * block_t + block_t, steps]) as t,
    ):
        low: list[Index | int] = [jj * block, t * wide + wide]
        high: list[Index | int] = [jj * block + block, t * wide + (n - wide)]
        with k.loop(low, high) as j:
            over_inner(t, [j])


def stencil_red_black(d: Drawn) -> None:
    """Red-black Gauss-Seidel and SOR in 2 and 3 dimensions: by stride, condition or split arrays."""
    k, element = d.k, _element(d)
    style = d.pick("style", ("stride", "stride", "condition", "split", "step"))
    rank = d.pick("rank", (2, 2, 3))
    rank = 2 if style in ("split", "step") else rank
    steps = d.pick("steps", (1, 2, 5, 10))
    sizes = [2 * max(2, s // 2) + 2 for s in d.sides(rank, d.work / (4 * steps))]
    omega = d.real(0.6, 1.0)
    u, f = k.array(element, *sizes), k.array(element, *sizes)
    offsets = [p for p in product((-1, 0, 1), repeat=rank) if sum(map(abs, p)) == 1]
    with_source = d.chance("source", 0.7)

    def relax(at: list[Index]) -> None:
        values = [k.load(u, *((i + o) if o else i for i, o in zip(at, p, strict=True))) for p in offsets]
        value = _mean(values, [1.0] * len(values)) * 0.9
        if with_source:
            value = value + k.load(f, *at) * 0.1
        old = k.load(u, *at)
        k.store(old + (value - old) * omega, u, *at)

    def sweep(colour: int) -> None:
        outer = [(1, s - 1) for s in sizes[:-1]]

        def row(at: list[Index]) -> None:
            parity = at[0] + colour
            for one in at[1:]:
                parity = parity + one
            if style == "condition":
                with k.loop(1, sizes[-1] - 1) as x:
                    k.when((parity + x + 1) % 2, lambda: relax([*at, x]) or [], equal=True)
                return
            with k.loop(0, (sizes[-1] - 2) // 2) as half:
                relax([*at, half * 2 + parity % 2 + 1])

        if style == "step":  # odd and even rows apart, loops of step 2
            for first in (1, 2):
                with k.loop(first, sizes[0] - 1, 2) as y, k.loop(1 + (first + colour) % 2, sizes[1] - 1, 2) as x:
                    relax([y, x])
            return
        _nest(d, outer, row)

    if style == "split":  # each colour in its own array: rows of half the length
        half = sizes[1] // 2
        red, black = k.array(element, sizes[0], half + 2), k.array(element, sizes[0], half + 2)
        with k.loop(0, steps):
            for one, other in ((red, black), (black, red)):
                with k.loop(1, sizes[0] - 1) as y, k.loop(1, half + 1) as x:
                    shift = (y + int(one is red)) % 2
                    values = [k.load(other, y - 1, x), k.load(other, y + 1, x), k.load(other, y, x)]
                    values.append(k.load(other, y, x + shift * 2 - 1))
                    value = _mean(values, [1.0] * 4) * 0.9
                    old = k.load(one, y, x)
                    k.store(old + (value - old) * omega, one, y, x)
        return
    if steps == 1:
        sweep(0)
        sweep(1)
    else:
        with k.loop(0, steps):
            sweep(0)
            sweep(1)
    if d.chance("residual", 0.3):
        norm = k.array(element, 1)
        k.store(k.constant(0, element), norm, 0)

        def squares(at: list[Index]) -> None:
            values = [k.load(u, *((i + o) if o else i for i, o in zip(at, p, strict=True))) for p in offsets]
            gap = _mean(values, [1.0] * len(values)) - k.load(u, *at)
            k.store(k.load(norm, 0) + gap * gap, norm, 0)

        _nest(d, [(1, s - 1) for s in sizes], squares)


def stencil_multigrid(d: Drawn) -> None:
    """Restriction, prolongation, smoothing and V-cycles of two to four levels, in 1 to 3 dimensions."""
    k, element = d.k, _element(d)
    style = d.pick("style", ("restrict", "prolong", "two grids", "v-cycle", "v-cycle", "full weighting"))
    rank = d.pick("rank", (1, 2, 2, 3)) if style != "full weighting" else 2
    levels = d.pick("levels", (2, 3, 4)) if style == "v-cycle" else 2
    levels = min(levels, 4 if rank == 1 else 3 if rank == 2 else 2)
    unit = 1 << (levels - 1)
    sizes = [
        unit * max(1, round(s / unit)) for s in d.sides(rank, d.work / {"v-cycle": 24, "two grids": 20}.get(style, 4))
    ]
    sizes = [max(2 * unit, s) for s in sizes]

    def grid(level: int, *, local: bool = False) -> Array:
        shape = [(s >> level) + 2 for s in sizes]
        return (k.local if local else k.array)(element, *shape)

    def inside(level: int) -> list[tuple[int, int]]:
        return [(1, (s >> level) + 1) for s in sizes]

    offsets = [p for p in product((-1, 0, 1), repeat=rank) if sum(map(abs, p)) == 1]
    corners = list(product((0, 1), repeat=rank))

    def smooth(u: Array, f: Array, level: int, spare: Array) -> None:
        def at(i: list[Index]) -> None:
            values = [k.load(u, *((x + o) if o else x for x, o in zip(i, p, strict=True))) for p in offsets]
            k.store(_mean(values, [1.0] * len(values)) * 0.8 + k.load(f, *i) * 0.1, spare, *i)

        _nest(d, inside(level), at)
        _nest(d, inside(level), lambda i: k.store(k.load(spare, *i), u, *i))

    def residual(u: Array, f: Array, r: Array, level: int) -> None:
        def at(i: list[Index]) -> None:
            values = [k.load(u, *((x + o) if o else x for x, o in zip(i, p, strict=True))) for p in offsets]
            k.store(k.load(f, *i) * 0.1 + _mean(values, [1.0] * len(values)) - k.load(u, *i), r, *i)

        _nest(d, inside(level), at)

    def restrict(fine: Array, coarse: Array, level: int) -> None:
        def at(i: list[Index]) -> None:
            if style == "full weighting":
                values, weights = [], []
                for p in product((-1, 0, 1), repeat=rank):
                    values.append(k.load(fine, *(x * 2 + (o - 1) for x, o in zip(i, p, strict=True))))
                    weights.append(1.0 / (1 << sum(map(abs, p))))
            else:
                values = [k.load(fine, *(x * 2 + (o - 1) for x, o in zip(i, p, strict=True))) for p in corners]
                weights = [1.0] * len(values)
            k.store(_mean(values, weights), coarse, *i)

        _nest(d, inside(level + 1), at)

    def prolong(coarse: Array, fine: Array, level: int, *, onto: bool) -> None:
        def at(i: list[Index]) -> None:
            here = k.load(coarse, *i)
            for p in corners:
                beside = [
                    k.load(coarse, *((x + (2 * o - 1)) if m == axis else x for m, x in enumerate(i)))
                    for axis, o in enumerate(p)
                ]
                value = _mean([here, *beside], [2.0] + [0.5] * rank)
                place = [x * 2 + (o - 1) for x, o in zip(i, p, strict=True)]
                if onto:
                    value = (k.load(fine, *place) + value) * 0.5
                k.store(value, fine, *place)

        _nest(d, inside(level + 1), at)

    if style in ("restrict", "full weighting"):
        restrict(grid(0), grid(1), 0)
        return
    if style == "prolong":
        prolong(grid(1), grid(0), 0, onto=d.chance("onto", 0.5))
        return
    us = [grid(level, local=level > 0 and d.chance("local", 0.3)) for level in range(levels)]
    fs = [grid(level) for level in range(levels)]
    rs = [grid(level) for level in range(levels)]
    zero = k.constant(0, element)
    local_fill = [u for u in us if u.local]
    for u in local_fill:
        level = us.index(u)
        _nest(d, [(0, (s >> level) + 2) for s in sizes], lambda i, u=u: k.store(zero, u, *i))
    pre = d.pick("pre", (1, 1, 2)) if rank < 3 else 1
    for level in range(levels - 1):
        for _ in range(pre):
            smooth(us[level], fs[level], level, rs[level])
        residual(us[level], fs[level], rs[level], level)
        restrict(rs[level], fs[level + 1], level)
        _nest(d, inside(level + 1), lambda i, level=level: k.store(zero, us[level + 1], *i))
    for _ in range(2 * pre):
        smooth(us[-1], fs[-1], levels - 1, rs[-1])
    for level in reversed(range(levels - 1)):
        prolong(us[level + 1], us[level], level, onto=True)
        smooth(us[level], fs[level], level, rs[level])


def stencil_physics(d: Drawn) -> None:
    """Waves, FDTD, reaction-diffusion, shallow water, advection, lattice Boltzmann, cellular automata."""
    k = d.k
    style = d.pick("style", ("wave", "fdtd", "gray-scott", "advection", "lattice", "life", "elastic", "shallow"))
    element = d.pick("element", ("i8", "i32"), (1, 1)) if style == "life" else _element(d)
    steps = d.pick("steps", (1, 2, 4, 10))
    cost = {"lattice": 60, "gray-scott": 16, "shallow": 24, "elastic": 20}.get(style, 8)
    sizes = [s + 4 for s in d.sides(2, d.work / (cost * steps), skew=0.6)]
    inside = [(2, s - 2) for s in sizes]

    def field() -> Array:
        return k.array(element, *sizes)

    def laplace(a: Array, y: Index, x: Index) -> Num:
        return (
            k.load(a, y - 1, x) + k.load(a, y + 1, x) + k.load(a, y, x - 1) + k.load(a, y, x + 1) - k.load(a, y, x) * 4
        )

    def repeated(body: Callable[[], None]) -> None:
        if steps == 1:
            body()
            return
        with k.loop(0, steps):
            body()

    match style:
        case "wave":
            old, now, speed, new = field(), field(), field(), field()
            fourth = d.chance("fourth_order", 0.5)

            def leap(i: list[Index]) -> None:
                y, x = i
                if fourth:
                    near = laplace(now, y, x)
                    far = k.load(now, y - 2, x) + k.load(now, y + 2, x) + k.load(now, y, x - 2) + k.load(now, y, x + 2)
                    bend = near * (16 / 12) - (far - k.load(now, y, x) * 4) * (1 / 12)
                else:
                    bend = laplace(now, y, x)
                value = k.load(now, y, x) * 1.9 - k.load(old, y, x) * 0.9 + bend * k.load(speed, y, x) * 0.05
                k.store(value * 0.95, new, y, x)

            def wave() -> None:
                _nest(d, inside, leap)
                _nest(d, inside, lambda i: k.store(k.load(now, *i), old, *i))
                _nest(d, inside, lambda i: k.store(k.load(new, *i), now, *i))

            repeated(wave)
        case "fdtd":
            ex, ey, hz = field(), field(), field()

            def fields() -> None:
                def step_x(i: list[Index]) -> None:
                    y, x = i
                    k.store(k.load(ex, y, x) * 0.98 - (k.load(hz, y, x) - k.load(hz, y - 1, x)) * 0.4, ex, y, x)

                def step_y(i: list[Index]) -> None:
                    y, x = i
                    k.store(k.load(ey, y, x) * 0.98 + (k.load(hz, y, x) - k.load(hz, y, x - 1)) * 0.4, ey, y, x)

                def step_h(i: list[Index]) -> None:
                    y, x = i
                    curl = k.load(ex, y + 1, x) - k.load(ex, y, x) - k.load(ey, y, x + 1) + k.load(ey, y, x)
                    k.store(k.load(hz, y, x) * 0.98 - curl * 0.3, hz, y, x)

                for step in (step_x, step_y, step_h):
                    _nest(d, inside, step)

            repeated(fields)
        case "gray-scott":
            u, v, nu, nv = field(), field(), field(), field()
            feed, kill = d.real(0.02, 0.06), d.real(0.04, 0.07)

            def react() -> None:
                def at(i: list[Index]) -> None:
                    a, b = k.load(u, *i), k.load(v, *i)
                    rate = a * b * b
                    k.store((a + laplace(u, *i) * 0.16 - rate + (1.0 - a) * feed).clamp(0, 1), nu, *i)
                    k.store((b + laplace(v, *i) * 0.08 + rate - b * (feed + kill)).clamp(0, 1), nv, *i)

                def back(i: list[Index]) -> None:
                    k.store(k.load(nu, *i), u, *i)
                    k.store(k.load(nv, *i), v, *i)

                _nest(d, inside, at)
                _nest(d, inside, back)

            repeated(react)
        case "advection":
            q, vx, vy, new = field(), field(), field(), field()

            def move(i: list[Index]) -> None:
                y, x = i
                here, a, b = k.load(q, y, x), k.load(vx, y, x) - 1.0, k.load(vy, y, x) - 1.0
                dx = k.choose(a.test("gt", 0), here - k.load(q, y, x - 1), k.load(q, y, x + 1) - here)
                dy = k.choose(b.test("gt", 0), here - k.load(q, y - 1, x), k.load(q, y + 1, x) - here)
                k.store(here - (a * dx + b * dy) * 0.4, new, y, x)

            def advect() -> None:
                _nest(d, inside, move)
                _nest(d, inside, lambda i: k.store(k.load(new, *i), q, *i))

            repeated(advect)
        case "lattice":
            directions = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)]
            weights = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4
            f, g = k.array(element, 9, *sizes), k.array(element, 9, *sizes)

            def collide() -> None:
                def at(i: list[Index]) -> None:
                    y, x = i
                    values = [k.load(f, m, y - a, x - b) for m, (a, b) in enumerate(directions)]
                    density = values[0]
                    for value in values[1:]:
                        density = density + value
                    share = 1.0 / density
                    uy = (values[1] - values[2] + values[5] - values[6] + values[7] - values[8]) * share
                    ux = (values[3] - values[4] + values[5] - values[6] - values[7] + values[8]) * share
                    square = (ux * ux + uy * uy) * -1.5 + 1.0
                    for m, (a, b) in enumerate(directions):
                        along = uy * a + ux * b
                        level = density * weights[m] * (along * 3.0 + along * along * 4.5 + square)
                        k.store(values[m] + (level - values[m]) * 0.7, g, m, y, x)

                _nest(d, inside, at)
                if steps > 1:
                    _nest(d, [(0, 9), *inside], lambda i: k.store(k.load(g, *i), f, *i))

            repeated(collide)
        case "life":
            a, b = field(), field()

            def generation(read: Array, write: Array) -> None:
                def at(i: list[Index]) -> None:
                    y, x = i
                    spots = [p for p in product((-1, 0, 1), repeat=2) if p != (0, 0)]
                    alive = [k.load(read, y + dy, x + dx) & 1 for dy, dx in spots]
                    count = alive[0]
                    for one in alive[1:]:
                        count = count + one
                    lives = ((k.load(read, y, x) & 1) | count).test("eq", 3)
                    k.store(lives.to(element), write, y, x)

                _nest(d, inside, at)

            def life() -> None:
                generation(a, b)
                generation(b, a)

            repeated(life)
        case "elastic":
            s, u, v = [field() for _ in range(3)], field(), field()

            def stress(i: list[Index]) -> None:
                y, x = i
                ux, vy = k.load(u, y, x + 1) - k.load(u, y, x), k.load(v, y + 1, x) - k.load(v, y, x)
                k.store(k.load(s[0], y, x) * 0.95 + ux * 0.3 + vy * 0.1, s[0], y, x)
                k.store(k.load(s[1], y, x) * 0.95 + ux * 0.1 + vy * 0.3, s[1], y, x)
                shear = k.load(u, y + 1, x) - k.load(u, y, x) + k.load(v, y, x + 1) - k.load(v, y, x)
                k.store(k.load(s[2], y, x) * 0.95 + shear * 0.1, s[2], y, x)

            def velocity(i: list[Index]) -> None:
                y, x = i
                push = k.load(s[0], y, x) - k.load(s[0], y, x - 1) + k.load(s[2], y, x) - k.load(s[2], y - 1, x)
                k.store(k.load(u, y, x) * 0.95 + push * 0.2, u, y, x)
                push = k.load(s[1], y, x) - k.load(s[1], y - 1, x) + k.load(s[2], y, x) - k.load(s[2], y, x - 1)
                k.store(k.load(v, y, x) * 0.95 + push * 0.2, v, y, x)

            def elastic() -> None:
                _nest(d, inside, stress)
                _nest(d, inside, velocity)

            repeated(elastic)
        case _:
            h, hu, hv = field(), field(), field()
            new = [field() for _ in range(3)]

            def flux(y: Index, x: Index, down: bool) -> list[Num]:
                a, b, c = k.load(h, y, x), k.load(hu, y, x), k.load(hv, y, x)
                speed = (c if down else b) / (a + 0.1)
                push = a * a * 0.5
                return [c if down else b, b * speed + (0.0 if down else push), c * speed + (push if down else 0.0)]

            def shallow(i: list[Index]) -> None:
                y, x = i
                east, west = flux(y, x + 1, False), flux(y, x - 1, False)
                south, north = flux(y + 1, x, True), flux(y - 1, x, True)
                for m, read in enumerate((h, hu, hv)):
                    around = (
                        k.load(read, y, x - 1)
                        + k.load(read, y, x + 1)
                        + k.load(read, y - 1, x)
                        + k.load(read, y + 1, x)
                    )
                    change = (east[m] - west[m] + south[m] - north[m]) * 0.05
                    k.store((around * 0.25 - change).clamp(-2, 2), new[m], y, x)

            def water() -> None:
                _nest(d, inside, shallow)
                for read, write in zip(new, (h, hu, hv), strict=True):
                    _nest(d, inside, lambda i, read=read, write=write: k.store(k.load(read, *i), write, *i))

            repeated(water)


KINDS: dict[str, Kind] = {
    "stencil_shapes": stencil_shapes,
    "stencil_skewed": stencil_skewed,
    "stencil_red_black": stencil_red_black,
    "stencil_multigrid": stencil_multigrid,
    "stencil_physics": stencil_physics,
}
FAMILIES = families_of(ORIGIN, KINDS)
