"""Dynamic programming: alignments, knapsacks, intervals, hidden Markov models, warping, shortest paths."""

from __future__ import annotations

from collections.abc import Sequence

from .affine_text import Index
from .drawn import Drawn, Kind, families_of
from .scf_text import Num

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "dp"


def _largest(values: Sequence[Num]) -> Num:
    result = values[0]
    for value in values[1:]:
        result = result.max(value)
    return result


def _least(values: Sequence[Num]) -> Num:
    result = values[0]
    for value in values[1:]:
        result = result.min(value)
    return result


def dp_alignment(d: Drawn) -> None:
    """Longest common subsequence and substring, edit distance, Needleman-Wunsch, Smith-Waterman, affine gaps, bands."""
    k = d.k
    style = d.pick("style", ("lcs", "edit", "global", "local", "gaps", "substring", "transposed"))
    cell = d.pick("cell", ("i32", "i32", "i16", "f32", "i64"))
    letters = d.pick("letters", ("i8", "i32"))
    order = d.pick("order", ("full", "full", "rolling", "diagonal", "band"))
    if style in ("gaps", "transposed"):
        order = "full"
    n, m = d.sides(2, d.work / 8, smallest=4, skew=0.5)
    if order == "diagonal":
        m = n
    a, b = k.array(letters, n), k.array(letters, m)
    match, mismatch, gap = d.whole("match", 1, 3), d.whole("mismatch", -3, -1), d.whole("gap", -2, -1)
    zero, one = k.constant(0, cell), k.constant(1, cell)
    scores = k.array(cell, 4, 4) if d.chance("scores", 0.25) and style in ("global", "local") else None

    def substitution(i: Index | Num, j: Index | Num) -> Num:
        x, y = k.load(a, i), k.load(b, j)
        if scores is not None:
            places = [(one & 3).to("index") for one in (x, y)]
            return k.load(scores, *places)
        same = x.test("eq", y)
        if style in ("edit", "transposed"):
            return k.choose(same, zero, one)
        return k.choose(same, k.constant(match, cell), k.constant(mismatch, cell))

    def best(i: Index | Num, j: Index | Num, corner: Num, above: Num, left: Num) -> Num:
        match style:
            case "lcs":
                same = k.load(a, i).test("eq", k.load(b, j))
                if branch:
                    return k.if_else(same, lambda: [corner + 1], lambda: [above.max(left)])[0]
                return k.choose(same, corner + 1, above.max(left))
            case "substring":
                return k.choose(k.load(a, i).test("eq", k.load(b, j)), corner + 1, zero)
            case "edit" | "transposed":
                return _least([corner + substitution(i, j), above + 1, left + 1])
            case "local":
                return _largest([corner + substitution(i, j), above + gap, left + gap, zero])
            case _:
                return _largest([corner + substitution(i, j), above + gap, left + gap])
        raise AssertionError

    branch = d.chance("branch", 0.3)
    step = {"lcs": 0, "substring": 0, "local": 0, "edit": 1, "transposed": 1}.get(style, gap)

    if order == "rolling":  # one row, the corner carried along
        row = k.array(cell, m + 1)
        with k.loop(0, m + 1) as j:
            k.store(k.number(j, cell) * step, row, j)
        with k.loop(0, n) as i:
            first = k.load(row, 0)
            k.store(first + step, row, 0)

            def along(j: Index, carried: list[Num], i: Index = i) -> list[Num]:
                corner, left = carried
                above = k.load(row, j + 1)
                value = best(i, j, corner, above, left)
                k.store(value, row, j + 1)
                return [above, value]

            k.fold(0, m, [first, first + step], along)
        return
    table = k.array(cell, n + 1, m + 1)
    with k.loop(0, n + 1) as i:
        k.store(k.number(i, cell) * step, table, i, 0)
    with k.loop(0, m + 1) as j:
        k.store(k.number(j, cell) * step, table, 0, j)
    if order == "diagonal":
        # Cells of one diagonal do not depend on each other.
        with k.loop(2, n + m + 1) as s, k.loop([1, s - m], [s, n + 1]) as row_index:
            i = row_index.within(1, n)
            j = (s - i).within(1, m)
            corner, above, left = k.load(table, i - 1, j - 1), k.load(table, i - 1, j), k.load(table, i, j - 1)
            k.store(best(i - 1, j - 1, corner, above, left), table, i, j)
        return
    if order == "band":
        width = d.pick("width", (4, 16, 50))
        with k.loop(1, n + 1) as i, k.loop([1, i - width], [m + 1, i + width]) as column:
            j = column.within(1, m)
            corner, above, left = k.load(table, i - 1, j - 1), k.load(table, i - 1, j), k.load(table, i, j - 1)
            k.store(best(i - 1, j - 1, corner, above, left), table, i, j)
        return
    if style == "gaps":
        right, down = k.array(cell, n + 1, m + 1), k.array(cell, n + 1, m + 1)
        opening, extending = gap - 2, gap
        with k.loop(1, n + 1) as i, k.loop(1, m + 1) as j:
            e = (k.load(right, i, j - 1) + extending).max(k.load(table, i, j - 1) + opening).max(-9999)
            f = (k.load(down, i - 1, j) + extending).max(k.load(table, i - 1, j) + opening).max(-9999)
            k.store(e, right, i, j)
            k.store(f, down, i, j)
            k.store(_largest([k.load(table, i - 1, j - 1) + substitution(i - 1, j - 1), e, f, zero]), table, i, j)
        return
    top = k.array(cell, 1) if style in ("local", "substring") else None
    with k.loop(1, n + 1) as i, k.loop(1, m + 1) as j:
        corner, above, left = k.load(table, i - 1, j - 1), k.load(table, i - 1, j), k.load(table, i, j - 1)
        value = best(i - 1, j - 1, corner, above, left)
        k.store(value, table, i, j)
        if top is not None:
            k.store(k.load(top, 0).max(value), top, 0)
    if style == "transposed":  # two neighbours exchanged, in a second pass
        with k.loop(2, n + 1) as i, k.loop(2, m + 1) as j:
            crossed = k.load(a, i - 1).test("eq", k.load(b, j - 2)) & k.load(a, i - 2).test("eq", k.load(b, j - 1))
            swapped = k.load(table, i - 2, j - 2) + 1
            k.store(k.choose(crossed, k.load(table, i, j).min(swapped), k.load(table, i, j)), table, i, j)


def dp_knapsack(d: Drawn) -> None:
    """0/1, unbounded and bounded knapsacks, subset sums, coin change, partitions, rod cutting."""
    k = d.k
    style = d.pick("style", ("zero-one", "unbounded", "table", "subset", "coins", "rods", "bounded", "two limits"))
    value_type = d.pick("values", ("i32", "i64", "f32", "f64"))
    items, capacity = d.sides(2, d.work / 8, smallest=4, skew=0.5)
    spread = max(2, min(capacity - 1, d.pick("spread", (4, 16, 64))))
    zero = k.constant(0, value_type)

    if style == "rods":
        n = max(4, round((d.work / 4) ** 0.5))
        price, best = k.array(value_type, n + 1), k.array(value_type, n + 1)
        k.store(zero, best, 0)
        with k.loop(1, n + 1) as length:

            def cut(i: Index, carried: list[Num], length: Index = length) -> list[Num]:
                rest = (length - i).within(0, n)
                return [carried[0].max(k.load(price, i) + k.load(best, rest))]

            [top] = k.fold(1, length + 1, [zero], cut)
            k.store(top, best, length)
        return
    weights = k.array("i32", items)

    def weight_of(i: Index | Num) -> Num:
        """1 .. spread."""
        mixed = k.hashed(k.load(weights, i) + k.number(i, "i32") * 7)
        return (mixed % spread + 1).to("index")

    if style in ("subset", "coins"):
        cell = d.pick("cell", ("i8", "i32")) if style == "subset" else d.pick("cell", ("i32", "i64"))
        table = k.array(cell, capacity + 1)
        with k.loop(0, capacity + 1) as c:
            k.store(k.constant(0, cell), table, c)
        k.store(k.constant(1, cell), table, 0)
        with k.loop(0, items) as i:
            w = weight_of(i)
            if style == "coins":
                with k.scf_loop(w, capacity + 1, trips=capacity - spread / 2) as c:
                    k.store(k.load(table, c) + k.load(table, c - w), table, c)
            else:
                with k.scf_loop(w, capacity + 1, trips=capacity - spread / 2) as c:  # downwards
                    place = 0 - c + w + capacity
                    k.store(k.load(table, place) | k.load(table, place - w), table, place)
        return
    values = k.array(value_type, items)
    if style == "table":
        table = k.array(value_type, items + 1, capacity + 1)
        with k.loop(0, capacity + 1) as c:
            k.store(zero, table, 0, c)
        branch = d.chance("branch", 0.5)
        with k.loop(0, items) as i:
            w, v = weight_of(i), k.load(values, i)
            with k.loop(0, capacity + 1) as c:
                without = k.load(table, i, c)
                room = k.index(c)
                fits = room.test("uge", w)
                if branch:
                    [result] = k.if_else(
                        fits, lambda i=i: [without.max(k.load(table, i, room - w) + v)], lambda: [without], share=0.8
                    )
                else:
                    place = k.choose(fits, room - w, k.index(0))
                    result = k.choose(fits, without.max(k.load(table, i, place) + v), without)
                k.store(result, table, i + 1, c)
        return
    if style == "two limits":
        capacity = max(6, round(capacity**0.5 * 2))
        spread = max(2, min(spread, capacity - 2))
        table = k.array(value_type, capacity + 1, capacity + 1)
        with k.loop(0, capacity + 1) as p, k.loop(0, capacity + 1) as q:
            k.store(zero, table, p, q)
        with k.loop(0, items) as i:
            w, v = weight_of(i), k.load(values, i)
            with k.scf_loop(w, capacity + 1, trips=capacity * 0.7) as p, k.scf_loop(1, capacity + 1) as q:
                x, y = 0 - p + w + capacity, 0 - q + (capacity + 1)
                k.store(k.load(table, x, y).max(k.load(table, x - w, y - 1) + v), table, x, y)
        return
    best = k.array(value_type, capacity + 1)
    with k.loop(0, capacity + 1) as c:
        k.store(zero, best, c)
    copies = d.pick("copies", (2, 3)) if style == "bounded" else 1
    with k.loop(0, items) as i:
        w, v = weight_of(i), k.load(values, i)

        def fill(w: Num = w, v: Num = v) -> None:
            with k.scf_loop(w, capacity + 1, trips=capacity - spread / 2) as c:
                place = c if style == "unbounded" else 0 - c + w + capacity
                k.store(k.load(best, place).max(k.load(best, place - w) + v), best, place)

        if copies == 1:
            fill()
        else:
            with k.scf_loop(0, copies):
                fill()


def dp_intervals(d: Drawn) -> None:
    """Matrix chains, optimal search trees, RNA folding, palindromes, triangulations, context-free parsing."""
    k = d.k
    style = d.pick("style", ("chain", "tree", "folding", "palindrome", "triangulation", "parsing", "merging"))
    element = d.pick("element", ("i32", "i64", "f32", "f64")) if style not in ("palindrome", "parsing") else "i32"
    by_length = d.chance("by_length", 0.5)
    n = max(5, d.size(d.work ** (1 / 2) if style == "palindrome" else (d.work * 1.2) ** (1 / 3), 5))
    n = min(n, 1000 if style == "palindrome" else 250)  # columns are walked: caches miss beyond
    far = k.constant(1e9 if element[0] == "f" else 1 << 29, element)
    zero = k.constant(0, element)
    if style == "parsing":
        symbols, n = d.pick("symbols", (4, 8, 16)), max(4, round((d.work / 4) ** (1 / 3)))
        table, rules = k.array("i32", n, n), k.array("i32", symbols, 2)
        with k.loop(2, n + 1) as length, k.loop(0, length * -1 + (n + 1)) as i:
            start = i.within(0, n - 1)
            end = (i + length - 1).within(0, n - 1)

            def split(m: Index, carried: list[Num], start: Index = start, end: Index = end, i: Index = i) -> list[Num]:
                left = k.load(table, start, (i + m).within(0, n - 1))
                right = k.load(table, (i + m + 1).within(0, n - 1), end)
                found = carried[0]
                for rule in range(min(symbols, 4)):
                    hit = (left & k.load(rules, rule, 0)).test("ne", 0) & (right & k.load(rules, rule, 1)).test("ne", 0)
                    found = k.choose(hit, found | (1 << rule), found)
                return [found]

            [result] = k.fold(0, length - 1, [k.constant(0, "i32")], split)
            k.store(result, table, start, end)
        return
    table = k.array(element, n + 1, n + 1)
    sizes = k.array(element, n + 2)
    letters = k.array("i32", n + 1)
    if style == "tree" or style == "merging":
        sums = k.local(element, n + 2)

        def running(i: Index, carried: list[Num]) -> list[Num]:
            now = carried[0] + k.load(sizes, i)
            k.store(now, sums, i + 1)
            return [now]

        k.store(zero, sums, 0)
        k.fold(0, n + 1, [zero], running)
    with k.loop(0, n + 1) as i, k.loop(0, n + 1) as j:
        k.store(zero, table, i, j)

    def cell(i: Index, j: Index) -> None:
        """i < j, both in 0 .. n."""
        if style == "palindrome":
            same = k.load(letters, i).test("eq", k.load(letters, j))
            inner = k.load(table, i + 1, (j - 1).within(0, n))
            k.store(
                k.choose(same, inner + 2, k.load(table, i + 1, j).max(k.load(table, i, (j - 1).within(0, n)))),
                table,
                i,
                j,
            )
            return

        def split(m: Index, carried: list[Num]) -> list[Num]:
            at = m.within(0, n)
            match style:
                case "folding":
                    value = k.load(table, i, at) + k.load(table, (at + 1).within(0, n), j)
                    return [carried[0].max(value)]
                case "tree" | "merging":
                    cost = k.load(table, i, at) + k.load(table, (at + 1).within(0, n), j)
                case "triangulation":
                    cost = (
                        k.load(table, i, at)
                        + k.load(table, at, j)
                        + k.load(sizes, i)
                        + k.load(sizes, at) * k.load(sizes, j)
                    )
                case _:
                    cost = k.load(table, i, at) + k.load(table, (at + 1).within(0, n), j)
                    cost = cost + k.load(sizes, i) * k.load(sizes, at + 1) * k.load(sizes, j + 1)
            return [carried[0].min(cost)]

        if style == "folding":
            pair = (k.load(letters, i) + k.load(letters, j)).test("eq", 3)
            inner = k.load(table, i + 1, (j - 1).within(0, n))
            start = k.choose(pair, inner + 1, inner)
            [result] = k.fold(i, j, [start], split)
        elif style == "triangulation":
            [result] = k.fold(i + 1, j, [far], split)
            result = k.choose(result.test("ge", far), zero, result)
        else:
            [result] = k.fold(i, j, [far], split)
        if style in ("tree", "merging"):
            result = result + k.load(sums, j + 1) - k.load(sums, i)
        k.store(result, table, i, j)

    if by_length:
        with k.loop(1, n + 1) as length, k.loop(0, length * -1 + (n + 1)) as i:
            cell(i.within(0, n - 1), (i + length).within(1, n))
    else:
        with k.loop(0, n) as back:
            i = back * -1 + (n - 1)
            with k.loop(i + 1, n + 1) as j:
                cell(i.within(0, n - 1), j.within(1, n))


def dp_hidden(d: Drawn) -> None:
    """Hidden Markov models and chains: Viterbi, forward, backward, max-product on trellises, beam tracking, CTC."""
    k = d.k
    style = d.pick("style", ("viterbi", "viterbi", "forward", "backward", "trellis", "ctc"))
    element = (
        d.pick("element", ("f32", "f64", "i32"), (3, 2, 1))
        if style in ("viterbi", "trellis")
        else d.pick("element", ("f32", "f64"))
    )
    states = d.size(d.pick("states", (4, 8, 13, 24, 48)), 2)
    steps = max(3, round(d.work / 6 / states / (1 if style in ("ctc", "trellis") else states)))
    steps = min(steps, 200_000 // states)
    score, observed = k.array(element, steps, states), k.array(element, steps, states)
    moves = k.array(element, states, states)
    with_path = d.chance("path", 0.6) and style == "viterbi"
    back = k.array("i32", steps, states) if with_path else None
    low = k.constant(-1e9 if element[0] == "f" else -(1 << 28), element)
    zero, izero = k.constant(0, element), k.constant(0, "i32")
    if style == "ctc":
        with k.loop(1, steps) as t, k.loop(2, states) as s:
            stay, one, two = k.load(score, t - 1, s), k.load(score, t - 1, s - 1), k.load(score, t - 1, s - 2)
            skip = k.choose(k.load(observed, 0, s).test("ne", k.load(observed, 0, s - 2)), two, zero)
            k.store((stay + one + skip) * k.load(observed, t, s) * 0.3, score, t, s)
        return
    if style == "trellis":  # two predecessors per state, as in convolutional codes
        states = d.power(states, 4)
        score = k.array(element, steps, states)
        observed = k.array(element, steps, states)
        with k.loop(1, steps) as t, k.loop(0, states // 2) as s:
            a, b = k.load(score, t - 1, s), k.load(score, t - 1, s + states // 2)
            for bit in (0, 1):
                cost = k.load(observed, t, s * 2 + bit)
                k.store((a + cost).min(b - cost) if bit else (a - cost).min(b + cost), score, t, s * 2 + bit)
        return
    with k.loop(0, states) as s:
        k.store(k.load(observed, 0, s), score, 0, s)
    with k.loop(1, steps) as t:
        now = t * -1 + (steps - 1) if style == "backward" else t
        before = (now + 1 if style == "backward" else now - 1).within(0, steps - 1)
        with k.loop(0, states) as s:
            if style == "viterbi":

                def better(p: Index, carried: list[Num], s: Index = s) -> list[Num]:
                    value = k.load(score, before, p) + k.load(moves, p, s)
                    if back is None:
                        return [carried[0].max(value)]
                    larger = value.test("gt", carried[0])
                    return [k.choose(larger, value, carried[0]), k.choose(larger, k.number(p, "i32"), carried[1])]

                found = k.fold(0, states, [low, izero] if with_path else [low], better)
                k.store(found[0] + k.load(observed, now, s), score, now, s)
                if back is not None:
                    k.store(found[1], back, now, s)
            else:

                def sum_(p: Index, carried: list[Num], s: Index = s) -> list[Num]:
                    return [carried[0] + k.load(score, before, p) * k.load(moves, p, s)]

                [total] = k.fold(0, states, [zero], sum_)
                k.store(total * k.load(observed, now, s) * (0.8 / states), score, now, s)
    if back is not None:  # the path, last state first
        path = k.array("i32", steps)
        start = k.index(0)
        with_state = start

        def trace(t: Index, carried: list[Num]) -> list[Num]:
            at = t * -1 + (steps - 1)
            k.store(carried[0].to("i32"), path, at)
            return [k.load(back, at, carried[0]).to("index")]

        k.fold(0, steps - 1, [with_state], trace)


def dp_warping(d: Drawn) -> None:
    """Dynamic time warping: full, banded, with slopes, soft minimum, several channels; Frechet."""
    k = d.k
    style = d.pick("style", ("full", "full", "band", "derivative", "soft", "channels", "frechet", "slope", "rolling"))
    element = (
        d.pick("element", ("f32", "f64", "i32"), (3, 2, 1))
        if style in ("full", "band", "rolling")
        else d.pick("element", ("f32", "f64"))
    )
    channels = d.pick("n_channels", (2, 3, 8)) if style == "channels" else 1
    cost = {"soft": 120, "channels": 6 + 4 * channels}.get(style, 8)
    n, m = d.sides(2, d.work / cost, smallest=5, skew=0.6)
    measure = d.pick("measure", ("absolute", "square"))
    a, b = (k.array(element, size + 2, *([channels] if channels > 1 else [])) for size in (n, m))
    far = k.constant(1e6, element)

    def distance(i: Index, j: Index) -> Num:
        if channels > 1:
            zero = k.constant(0, element)

            def one(c: Index, carried: list[Num]) -> list[Num]:
                gap = k.load(a, i, c) - k.load(b, j, c)
                return [carried[0] + gap * gap]

            return k.fold(0, channels, [zero], one)[0]
        if style == "derivative":
            gap = k.load(a, i + 1) - k.load(a, i) - k.load(b, j + 1) + k.load(b, j)
        else:
            gap = k.load(a, i) - k.load(b, j)
        return gap * gap if measure == "square" else gap.abs()

    if style == "rolling":
        row = k.array(element, m + 1)
        with k.loop(0, m + 1) as j:
            k.store(far, row, j)
        k.store(k.constant(0, element), row, 0)
        with k.loop(0, n) as i:
            corner = k.load(row, 0)
            k.store(far, row, 0)

            def along(j: Index, carried: list[Num], i: Index = i) -> list[Num]:
                above = k.load(row, j + 1)
                value = _least([carried[0], carried[1], above]) + distance(i, j)
                k.store(value, row, j + 1)
                return [above, value]

            k.fold(0, m, [corner, far], along)
        return
    table = k.array(element, n + 2, m + 2)
    with k.loop(0, n + 2) as i, k.loop(0, m + 2) as j:
        k.store(far, table, i, j)
    k.store(k.constant(0, element), table, 0, 0)
    k.store(k.constant(0, element), table, 1, 1)

    def cell(i: Index, j: Index) -> None:
        corner, above, left = k.load(table, i - 1, j - 1), k.load(table, i - 1, j), k.load(table, i, j - 1)
        step = distance(i - 1, j - 1)
        match style:
            case "soft":
                low = _least([corner, above, left])
                total = None
                for value in (corner, above, left):
                    part = ((low - value).max(-30)).math("exp")
                    total = part if total is None else total + part
                assert total is not None
                k.store(low - total.math("log") + step, table, i, j)
            case "frechet":
                k.store(_least([corner, above, left]).max(step), table, i, j)
            case "slope":
                steep = k.load(table, i - 2, j - 1) + step
                flat = k.load(table, i - 1, j - 2) + step
                k.store(_least([corner, steep, flat]) + step, table, i, j)
            case _:
                k.store(_least([corner, above, left]) + step, table, i, j)

    low = 2 if style == "slope" else 1
    if style == "band":
        width = d.pick("width", (3, 10, 40))
        with k.loop(1, n + 1) as i, k.loop([1, i - width], [m + 1, i + width + 1]) as j:
            cell(i, j.within(1, m))
        return
    with k.loop(low, n + 1) as i, k.loop(low, m + 1) as j:
        cell(i, j)


def dp_paths(d: Drawn) -> None:
    """All pairs (min-plus, max-min, reachability, blocked), min-plus powers, Bellman-Ford, grid paths, seams."""
    k = d.k
    style = d.pick("style", ("pairs", "pairs", "reach", "wide", "power", "bellman", "grid", "seam", "count", "blocked"))
    element = {"reach": "i32", "count": "i64"}.get(style) or d.pick(
        "element", ("f32", "f64", "i32", "i64"), (3, 2, 2, 1)
    )
    far = k.constant(1e9 if element[0] == "f" else 1 << 29, element)
    if style in ("grid", "seam", "count"):
        n, m = d.sides(2, d.work / 6, smallest=4, skew=0.5)
        price, best = k.array(element, n, m + 2), k.array(element, n, m + 2)
        with k.loop(0, n) as i, k.loop(0, m + 2) as j:
            k.store(far if style != "count" else k.constant(1, element), best, i, j)
        with k.loop(0, m) as j:
            k.store(k.load(price, 0, j + 1), best, 0, j + 1)
        with k.loop(1, n) as i, k.loop(1, m + 1) as j:
            cost, above, left = k.load(price, i, j), k.load(best, i - 1, j), k.load(best, i, j - 1)
            if style == "count":
                open_ = (cost & 3).test("ne", 0)
                k.store(k.choose(open_, above + left, k.constant(0, element)), best, i, j)
            elif style == "seam":
                k.store(_least([k.load(best, i - 1, j - 1), above, k.load(best, i - 1, j + 1)]) + cost, best, i, j)
            else:
                k.store(above.min(left) + cost, best, i, j)
        return
    if style == "bellman":
        n = max(4, round((d.work / 8) ** 0.5))
        rounds = d.pick("rounds", (2, 4, 8))
        n = max(4, round(n / rounds**0.5))
        edges, dist = k.array(element, n, n), k.array(element, n)
        with k.loop(0, rounds), k.loop(0, n) as v:
            if d.forced.get("carried", n % 2 == 0):
                [best] = k.fold(
                    0, n, [k.load(dist, v)], lambda u, c, v=v: [c[0].min(k.load(dist, u) + k.load(edges, u, v))]
                )
                k.store(best, dist, v)
            else:
                with k.loop(0, n) as u:
                    k.store(k.load(dist, v).min(k.load(dist, u) + k.load(edges, u, v)), dist, v)
        return
    n = max(4, d.size((d.work / 5) ** (1 / 3), 4))
    if style == "blocked":
        block = d.pick("block", (4, 8, 16))
        n = block * max(1, round(n / block))
    dist = k.array(element, n, n)
    if style == "power":
        other, result = k.array(element, n, n), k.array(element, n, n)
        with k.loop(0, n) as i, k.loop(0, n) as j:
            [best] = k.fold(0, n, [far], lambda m, c, i=i, j=j: [c[0].min(k.load(dist, i, m) + k.load(other, m, j))])
            k.store(best, result, i, j)
        return
    after = k.array("i32", n, n) if d.chance("next", 0.3) and style == "pairs" else None
    branch = d.chance("branch", 0.3) and style == "pairs"

    def relax(i: Index, j: Index, m: Index) -> None:
        direct, first, second = k.load(dist, i, j), k.load(dist, i, m), k.load(dist, m, j)
        match style:
            case "reach":
                k.store(direct | (first & second), dist, i, j)
            case "wide":
                k.store(direct.max(first.min(second)), dist, i, j)
            case _:
                through = first + second
                shorter = through.test("lt", direct)
                if after is not None:
                    k.store(k.choose(shorter, k.load(after, i, m), k.load(after, i, j)), after, i, j)
                if branch:
                    k.if_else(shorter, lambda: k.store(through, dist, i, j) or [], share=0.2)
                else:
                    k.store(direct.min(through), dist, i, j)

    if style == "blocked":
        blocks = n // block
        with (
            k.loop(0, blocks) as mb,
            k.loop(0, blocks) as ib,
            k.loop(0, blocks) as jb,
            k.loop(0, block) as m,
            k.loop(0, block) as i,
            k.loop(0, block) as j,
        ):
            relax(ib * block + i, jb * block + j, mb * block + m)
        return
    with k.loop(0, n) as m, k.loop(0, n) as i, k.loop(0, n) as j:
        relax(i, j, m)


KINDS: dict[str, Kind] = {
    "dp_alignment": dp_alignment,
    "dp_knapsack": dp_knapsack,
    "dp_intervals": dp_intervals,
    "dp_hidden": dp_hidden,
    "dp_warping": dp_warping,
    "dp_paths": dp_paths,
}
FAMILIES = families_of(ORIGIN, KINDS)
