"""Image processing: filters, gradients, rank filters, resampling, histograms, colour, integral images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .affine_text import Array, Index
from .drawn import Drawn, Kind, families_of
from .scf_text import Num

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "image"

Place = Index | Num


def _picture(d: Drawn, work: float | None = None) -> tuple[int, int]:
    rows, columns = d.sides(2, work, smallest=6, skew=0.6)
    return rows, columns


def _pixel_types(d: Drawn) -> tuple[str, str]:
    """Stored and computed type."""
    return d.pick(
        "pixels",
        (("f32", "f32"), ("f64", "f64"), ("i8", "i32"), ("i16", "i32"), ("i32", "i32"), ("f16", "f32")),
        (6, 3, 3, 2, 1, 1),
    )


def _over(d: Drawn, rows: int, columns: int, body: Callable[[Place, Place], None], *, margin: int = 0) -> None:
    """Two loops, affine or scf."""
    k = d.k
    if d.pick("loops", ("affine", "scf"), (3, 1)) == "affine":
        with k.loop(margin, rows - margin) as y, k.loop(margin, columns - margin) as x:
            body(y, x)
        return
    with k.scf_loop(margin, rows - margin) as row, k.scf_loop(margin, columns - margin) as column:
        body(row, column)


def _total(values: Sequence[Num], *, tree: bool = False) -> Num:
    """The sum, one after the other or in pairs."""
    left = list(values)
    while len(left) > 1:
        if tree:
            left = [a + b for a, b in zip(left[::2], left[1::2], strict=False)] + left[len(left) // 2 * 2 :]
        else:
            left[:2] = [left[0] + left[1]]
    return left[0]


def _clamped(k_index: Num, offset: int, size: int) -> Num:
    """Index plus offset, kept in the picture."""
    return (k_index + offset).clamp(0, size - 1)


def img_filter(d: Drawn) -> None:
    """Weighted windows (box, Gaussian, sharpen, emboss, any): unrolled, in loops, separable, with clamped borders."""
    k = d.k
    stored, wide = _pixel_types(d)
    radius = d.pick("radius", (1, 1, 1, 2, 2, 3, 4))
    style = d.pick("style", ("unrolled", "loops", "separable", "clamped", "kernel", "channels"))
    radius = min(radius, {"unrolled": 3, "clamped": 2}.get(style, 4))
    window = d.pick("window", ("box", "gaussian", "sharpen", "random"))
    side = 2 * radius + 1
    rows, columns = _picture(d, d.work / (side if style == "separable" else side * side))
    rows, columns = max(rows, side + 1), max(columns, side + 1)
    source, target = k.array(stored, rows, columns), k.array(stored, rows, columns)
    integer = wide[0] == "i"

    def weight(dy: int, dx: int) -> float:
        match window:
            case "box":
                return 1.0
            case "gaussian":
                return math.exp(-(dy * dy + dx * dx) / (0.5 * radius * radius + 0.5))
            case "sharpen":
                return 2.0 * side * side if dy == dx == 0 else -1.0
            case _:
                return 0.1 + ((dy * 7 + dx * 13 + 40) % 11) / 11
        raise AssertionError

    spots = [(dy, dx) for dy in range(-radius, radius + 1) for dx in range(-radius, radius + 1)]
    whole = sum(weight(dy, dx) for dy, dx in spots)
    shift = 8

    def scaled(dy: int, dx: int, value: Num, total: float) -> Num:
        part = weight(dy, dx) / total
        return value * (round(part * (1 << shift)) if integer else part)

    def finished(value: Num) -> Num:
        value = value.sar(shift) if integer else value
        return (value.clamp(0, 127) if stored == "i8" else value).to(stored)

    if style in ("unrolled", "clamped"):
        clamped, tree = style == "clamped", d.chance("tree", 0.4)

        def at(y: Place, x: Place) -> None:
            values = []
            for dy, dx in spots:
                if clamped:
                    place: tuple[Place, Place] = (_clamped(k.index(y), dy, rows), _clamped(k.index(x), dx, columns))
                else:
                    place = (y + dy, x + dx)
                values.append(scaled(dy, dx, k.load(source, *place).to(wide), whole))
            k.store(finished(_total(values, tree=tree)), target, y, x)

        _over(d, rows, columns, at, margin=0 if clamped else radius)
        return
    if style == "separable":
        middle, mid_type = k.local(wide, rows, columns), wide
        line = sum(weight(0, o) for o in range(-radius, radius + 1)) if window != "sharpen" else 1.0
        for number, (read, write) in enumerate(((source, middle), (middle, target))):
            with k.loop(0, rows) as y, k.loop(radius, columns - radius) as x:
                values = []
                for o in range(-radius, radius + 1):
                    place = (y, x + o)
                    values.append(scaled(0, o, k.load(read, *place).to(wide), line))
                value = _total(values)
                k.store(finished(value) if number else value.to(mid_type), write, y, x)
            if number == 0 and d.chance("vertical", 0.7):  # the second pass runs down the columns
                with k.loop(radius, rows - radius) as y, k.loop(0, columns) as x:
                    values = [scaled(0, o, k.load(middle, y + o, x), line) for o in range(-radius, radius + 1)]
                    k.store(finished(_total(values)), target, y, x)
                return
        return
    channels = d.pick("n_channels", (3, 4)) if style == "channels" else 1
    coefficients = k.array(wide, side, side)
    if style == "channels":
        source, target = k.array(stored), k.array(stored)
        rows, columns = max(side + 1, rows // 2), max(side + 1, columns // 2)
    zero = k.constant(0, wide)
    scale = 1.0 / (side * side)
    last = d.chance("channels_last", 0.5)
    with k.loop(radius, rows - radius) as y, k.loop(radius, columns - radius) as x, k.loop(0, channels) as c:

        def place_of(row: Index, column: Index, c: Index = c) -> tuple[Index, ...]:
            if channels == 1:
                return row, column
            return (row, column, c) if last else (c, row, column)

        def down(i: Index, outer: list[Num], y: Index = y, x: Index = x) -> list[Num]:
            def across_(j: Index, inner: list[Num]) -> list[Num]:
                value = k.load(source, *place_of(y + i - radius, x + j - radius)).to(wide)
                return [inner[0] + value * k.load(coefficients, i, j)]

            return list(k.fold(0, side, outer, across_))

        [result] = k.fold(0, side, [zero], down)
        k.store((result.sar(2) if integer else result * scale).to(stored), target, *place_of(y, x))


def img_gradient(d: Drawn) -> None:
    """Sobel, Scharr, Prewitt, Roberts, Laplacian: magnitude, direction, threshold, thinned edges."""
    k = d.k
    stored, wide = d.pick("pixels", (("f32", "f32"), ("f64", "f64"), ("i8", "i32"), ("i16", "i32")), (4, 2, 3, 1))
    rows, columns = _picture(d, d.work / 10)
    source, target = k.array(stored, rows, columns), k.array(wide, rows, columns)
    operator = d.pick("operator", ("sobel", "scharr", "prewitt", "roberts", "laplace", "laplace8"))
    measure = d.pick("measure", ("absolute", "squared", "root", "largest"))
    after = d.pick("after", ("none", "threshold", "clamp", "thin", "direction"))
    side, middle = {"sobel": (1, 2), "scharr": (3, 10), "prewitt": (1, 1)}.get(operator, (1, 1))

    def at(y: Place, x: Place) -> None:
        def pixel(dy: int, dx: int) -> Num:
            return k.load(source, y + dy, x + dx).to(wide)

        if operator.startswith("laplace"):
            others = [(-1, 0), (1, 0), (0, -1), (0, 1)]
            others += [(-1, -1), (-1, 1), (1, -1), (1, 1)] if operator == "laplace8" else []
            gx = _total([pixel(dy, dx) for dy, dx in others]) - pixel(0, 0) * len(others)
            gy = None
        elif operator == "roberts":
            gx, gy = pixel(0, 0) - pixel(1, 1), pixel(0, 1) - pixel(1, 0)
        else:
            a, b, c = (pixel(-1, o) for o in (-1, 0, 1))
            e, f = pixel(0, -1), pixel(0, 1)
            g, h, i = (pixel(1, o) for o in (-1, 0, 1))
            gx = (c - a) * side + (f - e) * middle + (i - g) * side
            gy = (g - a) * side + (h - b) * middle + (i - c) * side
        if gy is None:
            size = gx.abs()
        elif measure == "absolute":
            size = gx.abs() + gy.abs()
        elif measure == "largest":
            size = gx.abs().max(gy.abs())
        else:
            size = gx * gx + gy * gy
            if measure == "root":
                size = (size.sqrt() if size.is_float else size.to("f32").sqrt()).to(wide)
        if after == "threshold":
            size = k.choose(size.test("gt", 1), size, 0)
        elif after == "clamp":
            size = size.clamp(0, 2)
        elif after == "direction" and gy is not None:
            size = k.choose(gx.abs().test("gt", gy.abs()), size, 0 - size)
        k.store(size, target, y, x)

    _over(d, rows, columns, at, margin=1)
    if after == "thin":
        edges = k.array("i8", rows, columns)
        with k.loop(1, rows - 1) as y, k.loop(1, columns - 1) as x:
            centre = k.load(target, y, x)
            row = centre.test("ge", k.load(target, y, x - 1).max(k.load(target, y, x + 1)))
            column = centre.test("ge", k.load(target, y - 1, x).max(k.load(target, y + 1, x)))
            k.store((row.to("i8") | column.to("i8")), edges, y, x)


def _exchange(values: list[Num], a: int, b: int) -> None:
    values[a], values[b] = values[a].min(values[b]), values[a].max(values[b])


_MEDIAN_OF_9 = (
    (1, 2), (4, 5), (7, 8), (0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8), (0, 3), (5, 8), (4, 7), (3, 6), (1, 4),
    (2, 5), (4, 7), (4, 2), (6, 4), (4, 2),
)  # fmt: skip
"""Exchanges that leave the median of nine in place 4 (Paeth's network)."""


def img_rank(d: Drawn) -> None:
    """Erosion, dilation, opening, closing, top hat, medians by exchange networks, rank-weighted means."""
    k = d.k
    stored = d.pick("element", ("f32", "f64", "i8", "i16", "i32"), (4, 2, 3, 2, 2))
    style = d.pick("style", ("median", "cross median", "erode", "dilate", "open", "gradient", "midrange", "majority"))
    radius = 1 if "median" in style else d.pick("radius", (1, 1, 2, 3))
    shape = d.pick("shape", ("box", "cross", "disc", "line"))
    spots = [(dy, dx) for dy in range(-radius, radius + 1) for dx in range(-radius, radius + 1)]
    if shape == "cross":
        spots = [s for s in spots if 0 in s]
    elif shape == "disc":
        spots = [(dy, dx) for dy, dx in spots if dy * dy + dx * dx <= radius * radius + 1]
    elif shape == "line":
        spots = [(dy, dx) for dy, dx in spots if dy == 0]
    rows, columns = _picture(d, d.work / (20 if "median" in style else len(spots)))
    rows, columns = max(rows, 4 * radius + 2), max(columns, 4 * radius + 2)
    source, target = k.array(stored, rows, columns), k.array(stored, rows, columns)

    def window(read: Array, y: Place, x: Place, these: Sequence[tuple[int, int]]) -> list[Num]:
        return [k.load(read, y + dy, x + dx) for dy, dx in these]

    def least(values: list[Num], largest: bool) -> Num:
        result = values[0]
        for value in values[1:]:
            result = result.max(value) if largest else result.min(value)
        return result

    def at(y: Place, x: Place) -> None:
        match style:
            case "median":
                values = window(source, y, x, [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)])
                for a, b in _MEDIAN_OF_9:
                    _exchange(values, a, b)
                result = values[4]
            case "cross median":
                values = window(source, y, x, [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)])
                for a, b in ((0, 1), (3, 4), (0, 3), (1, 4), (1, 2), (2, 3), (1, 2)):
                    _exchange(values, a, b)
                result = values[2]
            case "gradient":
                values = window(source, y, x, spots)
                result = least(values, True) - least(values, False)
            case "midrange":
                values = window(source, y, x, spots)
                result = least(values, True) + least(values, False)
            case "majority":
                centre = k.load(source, y, x)
                votes = [value.test("ge", centre).to("i32") for value in window(source, y, x, spots)]
                result = k.choose(
                    _total(votes).test("gt", len(spots) // 2), centre, least(window(source, y, x, spots), True)
                )
            case _:
                result = least(window(source, y, x, spots), style == "dilate")
        k.store(result, target, y, x)

    _over(d, rows, columns, at, margin=radius)
    if style == "open":
        opened, hat = k.array(stored, rows, columns), d.chance("top_hat", 0.5)
        with k.loop(2 * radius, rows - 2 * radius) as y, k.loop(2 * radius, columns - 2 * radius) as x:
            value = least(window(target, y, x, spots), True)
            k.store(k.load(source, y, x) - value if hat else value, opened, y, x)


def img_adaptive(d: Drawn) -> None:
    """Bilateral-like weights by difference, unsharp masks, local contrast, Perona-Malik diffusion, guided filters."""
    k = d.k
    element = d.pick("element", ("f32", "f64"), (2, 1))
    style = d.pick("style", ("bilateral", "rational", "unsharp", "contrast", "diffusion", "guided"))
    radius = d.pick("radius", (1, 1, 2, 3)) if style != "diffusion" else 1
    side = 2 * radius + 1
    steps = d.pick("steps", (1, 2, 5)) if style == "diffusion" else 1
    rows, columns = _picture(d, d.work / (side * side * 3 * steps))
    rows, columns = max(rows, side + 2), max(columns, side + 2)
    source, target = k.array(element, rows, columns), k.array(element, rows, columns)
    guide = k.array(element, rows, columns) if style == "guided" else source
    amount, sigma = d.real(0.3, 1.5), d.real(0.5, 4.0)
    one, zero = k.constant(1, element), k.constant(0, element)
    unrolled = radius == 1 and d.chance("unrolled", 0.6)

    def over_window(
        y: Index, x: Index, inits: list[Num], step: Callable[[Index, Index, list[Num]], list[Num]]
    ) -> list[Num]:
        if unrolled:
            for dy in range(-radius, radius + 1):
                for dx in range(-radius, radius + 1):
                    inits = step(y + dy, x + dx, inits)
            return inits

        def down(i: Index, outer: list[Num]) -> list[Num]:
            return k.fold(0, side, outer, lambda j, inner: step(y + i - radius, x + j - radius, inner))

        return k.fold(0, side, inits, down)

    def once(read: Array, write: Array) -> None:
        with k.loop(radius, rows - radius) as y, k.loop(radius, columns - radius) as x:
            centre = k.load(read, y, x)
            if style in ("bilateral", "rational", "guided"):
                level = k.load(guide, y, x)

                def weigh(row: Index, column: Index, carried: list[Num]) -> list[Num]:
                    value = k.load(read, row, column)
                    away = k.load(guide, row, column) - level
                    distance = away * away * sigma
                    w = (0 - distance).math("exp") if style == "bilateral" else one / (distance + 1)
                    return [carried[0] + w * value, carried[1] + w]

                total, weights = over_window(y, x, [zero, zero], weigh)
                result = total / weights
            elif style == "diffusion":
                flows = []
                for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                    slope = k.load(read, y + dy, x + dx) - centre
                    flows.append(slope / (slope * slope * sigma + 1))
                result = centre + _total(flows) * 0.2
            else:

                def moments(row: Index, column: Index, carried: list[Num]) -> list[Num]:
                    value = k.load(read, row, column)
                    if style == "unsharp":
                        return [carried[0] + value]
                    return [carried[0] + value, carried[1] + value * value]

                sums = over_window(y, x, [zero] if style == "unsharp" else [zero, zero], moments)
                mean = sums[0] * (1 / side**2)
                if style == "unsharp":
                    result = (centre + (centre - mean) * amount).clamp(0, 4)
                else:
                    spread = (sums[1] * (1 / side**2) - mean * mean).abs()
                    result = (centre - mean) / (spread + 0.01).sqrt()
            k.store(result, write, y, x)

    if steps == 1:
        once(source, target)
    else:
        with k.loop(0, steps):
            once(source, target)
            once(target, source)


def img_resample(d: Drawn) -> None:
    """Resizing (nearest, bilinear, area, bicubic), affine and wavy warps, rotation, flow, pyramids."""
    k = d.k
    element = d.pick("element", ("f32", "f64", "i32"), (4, 2, 1))
    real = element if element != "i32" else "f32"
    style = d.pick("style", ("nearest", "bilinear", "bilinear", "affine", "wave", "flow", "area", "bicubic", "pyramid"))
    rows, columns = _picture(d, d.work / {"bicubic": 40, "nearest": 4, "area": 6, "pyramid": 6}.get(style, 18))
    if style in ("area", "pyramid"):
        factor = d.pick("factor", (2, 2, 3, 4))
        source, target = k.array(element), k.array(element)
        with k.loop(0, rows // factor + 1) as y, k.loop(0, columns // factor + 1) as x:
            spots = [(i, j) for i in range(factor) for j in range(factor)]
            total = _total(
                [k.load(source, y * factor + i, x * factor + j) for i, j in spots], tree=d.chance("tree", 0.5)
            )
            k.store(total * (1 / factor**2) if element != "i32" else total // factor**2, target, y, x)
        if style == "pyramid":  # and back up
            big = k.array(element)
            with k.loop(0, rows // factor) as y, k.loop(0, columns // factor) as x:
                here, right, below = k.load(target, y, x), k.load(target, y, x + 1), k.load(target, y + 1, x)
                for i in range(factor):
                    for j in range(factor):
                        value = (
                            here
                            if element == "i32"
                            else here + (right - here) * (j / factor) + (below - here) * (i / factor)
                        )
                        k.store(value, big, y * factor + i, x * factor + j)
        return
    height, width = max(4, round(rows * d.pick("scale", (0.4, 0.7, 1.0, 1.6)))), max(4, columns)
    source, target = k.array(element, height, width), k.array(element, rows, columns)
    flow_y = k.array(real, rows, columns) if style == "flow" else None
    turn = d.real(0.05, 0.9)
    a, b = math.cos(turn) * height / rows, math.sin(turn)

    def at(row: Place, column: Place) -> None:
        y, x = k.index(row), k.index(column)
        if style == "nearest" and d.forced.get("integer", True):
            k.store(k.load(source, y * height // rows, x * width // columns), target, row, column)
            return
        fy, fx = k.number(y, real), k.number(x, real)
        match style:
            case "affine":
                sy, sx = fy * a + fx * b, fx * a - fy * b + 1.0
            case "wave":
                sy, sx = fy + (fx * 0.1).math("sin") * 2.0, fx * (width / columns)
            case "flow":
                assert flow_y is not None
                move = k.load(flow_y, row, column)
                sy, sx = fy + move * 3.0, fx - move * 2.0
            case _:
                sy, sx = fy * (height / rows), fx * (width / columns)
        sy, sx = sy.clamp(0, height - 1), sx.clamp(0, width - 1)
        iy, ix = sy.to("i32"), sx.to("i32")
        ty, tx = sy - iy.to(real), sx - ix.to(real)

        def pixel(dy: int, dx: int) -> Num:
            found = k.load(
                source, (iy + dy).clamp(0, height - 1).to("index"), (ix + dx).clamp(0, width - 1).to("index")
            )
            return found.to(real)

        if style == "bicubic":

            def cubic(p: list[Num], t: Num) -> Num:
                c1 = p[2] - p[0]
                c2 = p[0] * 2 - p[1] * 5 + p[2] * 4 - p[3]
                c3 = (p[1] - p[2]) * 3 + p[3] - p[0]
                return p[1] + t * 0.5 * (c1 + t * (c2 + t * c3))

            lines = [cubic([pixel(dy, dx) for dx in (-1, 0, 1, 2)], tx) for dy in (-1, 0, 1, 2)]
            value = cubic(lines, ty)
        else:
            top = pixel(0, 0) + tx * (pixel(0, 1) - pixel(0, 0))
            bottom = pixel(1, 0) + tx * (pixel(1, 1) - pixel(1, 0))
            value = top + ty * (bottom - top)
        k.store(value.to(element), target, row, column)

    _over(d, rows, columns, at)


def img_histogram(d: Drawn) -> None:
    """Histograms (one, several, weighted), equalization, look-up tables, Otsu's threshold, tone curves."""
    k = d.k
    element = d.pick("element", ("i8", "i32", "f32", "f64"), (2, 3, 3, 1))
    style = d.pick("style", ("histogram", "equalize", "lookup", "otsu", "weighted", "joint", "tone"))
    bins = d.pick("bins", (16, 64, 128, 256))
    rows, columns = _picture(d, d.work / {"equalize": 10, "joint": 8}.get(style, 6))
    source = k.array(element, rows, columns)
    counts = k.array("i32", bins)
    zero = k.constant(0, "i32")

    def bin_of(y: Place, x: Place, read: Array) -> Num:
        value = k.load(read, y, x)
        if value.is_float:
            return ((value - 0.5) * (bins - 1)).to("i32").clamp(0, bins - 1).to("index")
        spread = k.number(x, "i32") if element == "i32" else k.number(y, "i32")
        return ((value.to("i32") * (bins // 4) + (spread & (bins // 4 - 1))) & (bins - 1)).to("index")

    if style == "tone":
        result = k.array("f32" if element[0] == "i" else element, rows, columns)
        curve = d.pick("curve", ("gamma", "rational", "log", "stretch"))

        def tone(y: Place, x: Place) -> None:
            value = k.load(source, y, x).to(result.element)
            match curve:
                case "gamma":
                    value = k.emit(
                        f"math.powf {value.name}, {k.constant(0.45, value.type).name} : {value.type}", value.type
                    )
                case "rational":
                    value = value * (value * 0.5 + 1.0) / (value + 1.0)
                case "log":
                    value = (value + 1.0).math("log") * 1.4
                case _:
                    value = ((value - 0.6) * 1.3).clamp(0, 1)
            k.store(value, result, y, x)

        _over(d, rows, columns, tone)
        return
    if style == "lookup":
        table, result = k.array("f32", bins), k.array("f32", rows, columns)
        _over(d, rows, columns, lambda y, x: k.store(k.load(table, bin_of(y, x, source)), result, y, x))
        return
    joint = style == "joint"
    other = k.array(element, rows, columns) if joint else source
    if joint:
        bins = 16
        counts = k.array("i32", 256)
    total_bins = 256 if joint else bins
    weights = k.array("f32", total_bins) if style == "weighted" else None
    with k.loop(0, total_bins) as b:
        k.store(zero, counts, b)

    def count(y: Place, x: Place) -> None:
        place = bin_of(y, x, source)
        if joint:
            place = place * 16 + bin_of(y, x, other)
        if weights is not None:
            k.store(k.load(weights, place) * 0.5 + 1.0, weights, place)
        k.store(k.load(counts, place) + 1, counts, place)

    _over(d, rows, columns, count)
    if style == "equalize":
        table, result = k.local("f32", bins), k.array("f32", rows, columns)

        def running(b: Index, carried: list[Num]) -> list[Num]:
            now = carried[0] + k.load(counts, b)
            k.store(now.to("f32") * (1.0 / (rows * columns)), table, b)
            return [now]

        k.fold(0, bins, [zero], running)
        _over(d, rows, columns, lambda y, x: k.store(k.load(table, bin_of(y, x, source)), result, y, x))
    if style == "otsu":
        best = k.array("f32", 2)
        fzero = k.constant(0, "f32")

        def moment(b: Index, carried: list[Num]) -> list[Num]:
            return [carried[0] + k.load(counts, b).to("f32") * k.number(b, "f32")]

        [whole] = k.fold(0, bins, [fzero], moment)

        def split(b: Index, carried: list[Num]) -> list[Num]:
            top, at, weight, mean = carried
            here = k.load(counts, b).to("f32")
            weight, mean = weight + here, mean + here * k.number(b, "f32")
            rest = 0 - weight + (rows * columns + 1e-3)
            gap = mean / (weight + 1e-3) - (whole - mean) / (rest + 1e-3)
            score = weight * rest * gap * gap
            better = score.test("gt", top)
            return [k.choose(better, score, top), k.choose(better, k.number(b, "f32"), at), weight, mean]

        found = k.fold(0, bins, [fzero] * 4, split)
        k.store(found[0], best, 0)
        k.store(found[1], best, 1)


def img_colour(d: Drawn) -> None:
    """RGB to grey, YUV, HSV-like and back, planar and interleaved; blending, Bayer demosaicing, thresholds."""
    k = d.k
    stored, wide = d.pick("pixels", (("f32", "f32"), ("f64", "f64"), ("i8", "i32"), ("f16", "f32")), (5, 2, 3, 1))
    style = d.pick("style", ("grey", "yuv", "hue", "blend", "demosaic", "threshold", "matrix", "subsample"))
    rows, columns = _picture(d, d.work / {"demosaic": 30, "matrix": 20, "yuv": 16, "hue": 16}.get(style, 8))
    planar = d.chance("planar", 0.5)
    integer = wide == "i32"

    def pixel(read: Array, y: Place, x: Place, c: int) -> Num:
        return (k.load(read, c, y, x) if planar else k.load(read, y, x, c)).to(wide)

    def put(value: Num, write: Array, y: Place, x: Place, c: int) -> None:
        k.store(value.to(stored), write, *((c, y, x) if planar else (y, x, c)))

    def image(channels: int) -> Array:
        return k.array(stored, *((channels, rows, columns) if planar else (rows, columns, channels)))

    def weighed(values: Sequence[Num], weights: Sequence[float]) -> Num:
        if integer:
            return _total([v * round(w * 256) for v, w in zip(values, weights, strict=True)]).sar(8)
        return _total([v * w for v, w in zip(values, weights, strict=True)])

    if style == "demosaic":
        rows, columns = rows & ~1, columns & ~1
        raw, result = k.array(stored, rows + 2, columns + 2), k.array(stored, 3, rows + 2, columns + 2)
        half, quarter = (1, 2) if integer else (0.5, 0.25)

        def mean(values: list[Num]) -> Num:
            total = _total(values)
            share = half if len(values) == 2 else quarter
            return total.sar(int(share)) if integer else total * share

        with k.loop(0, rows // 2) as by, k.loop(0, columns // 2) as bx:
            for dy in (0, 1):
                for dx in (0, 1):
                    y, x = by * 2 + (1 + dy), bx * 2 + (1 + dx)

                    def raw_at(i: int, j: int, y: Index = y, x: Index = x) -> Num:
                        return k.load(raw, y + i, x + j).to(wide)

                    centre = raw_at(0, 0)
                    cross = mean([raw_at(-1, 0), raw_at(1, 0), raw_at(0, -1), raw_at(0, 1)])
                    corner = mean([raw_at(-1, -1), raw_at(1, 1), raw_at(1, -1), raw_at(-1, 1)])
                    across = mean([raw_at(0, -1), raw_at(0, 1)])
                    down = mean([raw_at(-1, 0), raw_at(1, 0)])
                    colours = {(0, 0): (centre, cross, corner), (0, 1): (across, centre, down)}
                    colours |= {(1, 0): (down, centre, across), (1, 1): (corner, cross, centre)}
                    for c, value in enumerate(colours[dy, dx]):
                        k.store(value.to(stored), result, c, y, x)
        return
    source = image(3)
    if style in ("grey", "threshold"):
        result = k.array(stored, rows, columns)
        level = d.real(0.7, 1.2)

        def grey(y: Place, x: Place) -> None:
            value = weighed([pixel(source, y, x, c) for c in range(3)], (0.299, 0.587, 0.114))
            if style == "threshold":
                value = k.choose(value.test("gt", 1 if integer else level), value, 0)
            k.store(value.to(stored), result, y, x)

        _over(d, rows, columns, grey)
        return
    if style == "subsample":
        rows, columns = rows & ~1, columns & ~1
        chroma = k.array(stored, rows // 2, columns // 2)
        with k.loop(0, rows // 2) as y, k.loop(0, columns // 2) as x:
            sums = [_total([pixel(source, y * 2 + i, x * 2 + j, c) for i in (0, 1) for j in (0, 1)]) for c in range(3)]
            k.store(weighed(sums, (-0.04, -0.08, 0.125)).to(stored), chroma, y, x)
        return
    result = image(3)
    second = image(4) if style == "blend" else source
    rows_of = {"yuv": ((0.299, 0.587, 0.114), (-0.147, -0.289, 0.436), (0.615, -0.515, -0.1))}
    turned = rows_of.get(style, tuple(tuple(d.real(-0.5, 0.9) for _ in range(3)) for _ in range(3)))

    def convert(y: Place, x: Place) -> None:
        values = [pixel(source, y, x, c) for c in range(3)]
        if style == "blend":
            alpha = pixel(second, y, x, 3)
            for c in range(3):
                over = pixel(second, y, x, c)
                mixed = (
                    values[c] + (over - values[c]) * alpha.sar(1)
                    if integer
                    else values[c] + (over - values[c]) * (alpha * 0.5)
                )
                put(mixed, result, y, x, c)
            return
        if style == "hue":
            high = values[0].max(values[1]).max(values[2])
            low = values[0].min(values[1]).min(values[2])
            gap = high - low
            safe = k.choose(gap.test("eq", 0), 1, gap)
            red, green = high.test("eq", values[0]), high.test("eq", values[1])
            six = [
                (values[1] - values[2]) / safe,
                (values[2] - values[0]) / safe + 2,
                (values[0] - values[1]) / safe + 4,
            ]
            hue = k.choose(red, six[0], k.choose(green, six[1], six[2]))
            for c, value in enumerate((hue, gap, high)):
                put(value, result, y, x, c)
            return
        for c in range(3):
            put(weighed(values, turned[c]), result, y, x, c)

    _over(d, rows, columns, convert)


def img_integral(d: Drawn) -> None:
    """Summed-area tables in one or two passes, boxes and variances from them, running-sum box filters."""
    k = d.k
    stored, wide = d.pick("pixels", (("f32", "f64"), ("f64", "f64"), ("i8", "i32"), ("i32", "i64"), ("f32", "f32")))
    style = d.pick("style", ("one pass", "two passes", "box", "variance", "running", "columns"))
    radius = d.pick("radius", (1, 2, 4, 7))
    rows, columns = _picture(d, d.work / {"box": 12, "variance": 24}.get(style, 6))
    rows, columns = max(rows, 2 * radius + 3), max(columns, 2 * radius + 3)
    source, table = k.array(stored, rows, columns), k.array(wide, rows + 1, columns + 1)
    zero = k.constant(0, wide)
    scale = 1.0 / (2 * radius + 1) ** 2

    def mean(value: Num) -> Num:
        return value * scale if value.is_float else value / (2 * radius + 1) ** 2

    def summed(write: Array, squares: bool) -> None:
        with k.loop(0, rows) as y:

            def along(x: Index, carried: list[Num], y: Index = y) -> list[Num]:
                value = k.load(source, y, x).to(wide)
                now = carried[0] + (value * value if squares else value)
                above = k.load(write, y, x + 1) if style != "two passes" else zero
                k.store(now + above if style != "two passes" else now, write, y + 1, x + 1)
                return [now]

            k.fold(0, columns, [zero], along)

    def clear(write: Array) -> None:
        with k.loop(0, columns + 1) as x:
            k.store(zero, write, 0, x)
        with k.loop(0, rows + 1) as y:
            k.store(zero, write, y, 0)

    if style in ("running", "columns"):
        result = k.array(wide, rows, columns)
        outer, inner = (rows, columns) if style == "running" else (columns, rows)
        with k.loop(0, outer) as y:

            def at(i: Index, y: Index = y) -> Num:
                return k.load(source, *((y, i) if style == "running" else (i, y))).to(wide)

            [first] = k.fold(0, 2 * radius + 1, [zero], lambda i, c: [c[0] + at(i)])

            def slide(i: Index, carried: list[Num], y: Index = y) -> list[Num]:
                k.store(mean(carried[0]), result, *((y, i) if style == "running" else (i, y)))
                return [carried[0] + at(i + radius + 1) - at(i - radius)]

            k.fold(radius, inner - radius - 1, [first], slide)
        return
    clear(table)
    summed(table, False)
    if style == "two passes":
        with k.loop(1, columns + 1) as x:

            def down(y: Index, carried: list[Num], x: Index = x) -> list[Num]:
                now = carried[0] + k.load(table, y, x)
                k.store(now, table, y, x)
                return [now]

            k.fold(1, rows + 1, [zero], down)
    if style in ("box", "variance"):
        squares = k.array(wide, rows + 1, columns + 1) if style == "variance" else table
        if style == "variance":
            clear(squares)
            summed(squares, True)
        result = k.array(wide, rows, columns)

        def box(read: Array, y: Index, x: Index) -> Num:
            low, high = -radius, radius + 1
            corners = [k.load(read, y + a, x + b) for a, b in ((high, high), (low, low), (low, high), (high, low))]
            return mean(corners[0] + corners[1] - corners[2] - corners[3])

        with k.loop(radius, rows - radius) as y, k.loop(radius, columns - radius) as x:
            value = box(table, y, x)
            if style == "variance":
                value = box(squares, y, x) - value * value
            k.store(value, result, y, x)


KINDS: dict[str, Kind] = {
    "img_filter": img_filter,
    "img_gradient": img_gradient,
    "img_rank": img_rank,
    "img_adaptive": img_adaptive,
    "img_resample": img_resample,
    "img_histogram": img_histogram,
    "img_colour": img_colour,
    "img_integral": img_integral,
}
FAMILIES = families_of(ORIGIN, KINDS)
