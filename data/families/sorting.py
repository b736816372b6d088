"""Sorting, prefix scans, compaction, searching and hashing."""

from __future__ import annotations

from .affine_text import Array, Index
from .drawn import Drawn, Kind, families_of
from .scf_text import Num

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "sorting"


def _keys(d: Drawn) -> str:
    return d.pick("element", ("i32", "f32", "i64", "f64", "i16", "i8"), (5, 4, 2, 2, 1, 1))


def _shuffled(d: Drawn, n: int, element: str) -> Array:
    """An argument that the kernel fills with well-mixed keys, so that every call sorts the same ones."""
    k = d.k
    keys = k.array(element, n)
    if d.chance("given", 0.15):
        return keys
    salt = d.rng.randrange(1 << 16)
    seed = k.load(k.array("i32", 1), 0)  # unknown to a compiler, which would sort small arrays itself
    with k.loop(0, n) as i:
        mixed = k.hashed(k.number(i, "i32") + seed, salt)
        if element in ("f32", "f64"):
            k.store(mixed.to(element) * (1.0 / (1 << 31)), keys, i)
        else:
            k.store(
                (mixed >> d.pick("shift", (8, 16, 20)) if element in ("i32", "i64") else mixed).to(element), keys, i
            )
    return keys


def _swap(d: Drawn, a: Array, i: Index | Num, j: Index | Num, how: str, *, down: Num | None = None) -> None:
    """Put a[i] and a[j] in order: by branch, select, or min and max; the other way round where `down` holds."""
    k = d.k
    x, y = k.load(a, i), k.load(a, j)
    if down is not None:
        wrong = k.choose(down, x.test("lt", y).to("i8"), x.test("gt", y).to("i8")).test("ne", 0)
    elif how == "extrema":
        k.store(x.min(y), a, i)
        k.store(x.max(y), a, j)
        return
    else:
        wrong = x.test("gt", y)
    if how == "branch":

        def exchange() -> list[Num]:
            k.store(y, a, i)
            k.store(x, a, j)
            return []

        k.if_else(wrong, exchange)
        return
    k.store(k.choose(wrong, y, x), a, i)
    k.store(k.choose(wrong, x, y), a, j)


def sort_exchange(d: Drawn) -> None:
    """Bubble, odd-even, insertion, selection, shell, comb and gnome sort."""
    k, element = d.k, _keys(d)
    style = d.pick(
        "style", ("bubble", "early", "odd-even", "insertion", "selection", "shell", "comb", "cocktail", "rows")
    )
    how = d.pick("how", ("branch", "select", "extrema"))
    n = max(5, round((d.work / 4) ** (0.72 if style in ("shell", "comb") else 0.5)))
    if style == "rows":  # many short rows
        width = d.pick("width", (4, 8, 13, 16))
        rows = max(2, round(d.work / 3 / width**2))
        keys = k.array(element, rows, width)
        with k.loop(0, rows) as r, k.loop(0, width) as s, k.loop(0, s * -1 + (width - 1)) as i:
            at = i.within(0, width - 2)
            x, y = k.load(keys, r, at), k.load(keys, r, at + 1)
            k.store(x.min(y), keys, r, at)
            k.store(x.max(y), keys, r, at + 1)
        return
    keys = _shuffled(d, n, element)
    match style:
        case "bubble":
            with k.loop(0, n - 1) as s, k.loop(0, s * -1 + (n - 1)) as i:
                at = i.within(0, n - 2)
                _swap(d, keys, at, at + 1, how)
        case "cocktail":
            with k.loop(0, n // 2):
                with k.loop(0, n - 1) as i:
                    _swap(d, keys, i, i + 1, how)
                with k.loop(0, n - 1) as i:
                    back = i * -1 + (n - 2)
                    _swap(d, keys, back, back + 1, how)
        case "early":  # until nothing moved

            def sweep(carried: list[Num]) -> list[Num]:
                def step(i: Num, moved: list[Num]) -> list[Num]:
                    x, y = k.load(keys, i), k.load(keys, i + 1)
                    wrong = x.test("gt", y)
                    k.store(k.choose(wrong, y, x), keys, i)
                    k.store(k.choose(wrong, x, y), keys, i + 1)
                    return [moved[0] | wrong.to("i32")]

                [moved] = k.scf_fold(0, n - 1, [k.constant(0, "i32")], step)
                return [moved, carried[1] + 1]

            one = k.constant(1, "i32")
            zero = k.constant(0, "i32")

            def goes_on(carried: list[Num]) -> Num:
                return carried[0].test("ne", 0) & carried[1].test("lt", n)

            k.loop_while([one, zero], goes_on, sweep, trips=n * 0.8)
        case "odd-even":
            with k.loop(0, (n + 1) // 2):
                for first in (0, 1):
                    with k.loop(0, (n - first) // 2) as i:
                        _swap(d, keys, i * 2 + first, i * 2 + (first + 1), how)
        case "insertion":
            with k.scf_loop(1, n) as i:
                key = k.load(keys, i)

                def larger(carried: list[Num], key: Num = key) -> Num:
                    at = carried[0]
                    inside = at.test("sgt", 0)
                    before = k.choose(inside, at - 1, 0)
                    return inside & k.load(keys, before).test("gt", key)

                def move(carried: list[Num]) -> list[Num]:
                    before = carried[0] - 1
                    k.store(k.load(keys, before), keys, carried[0])
                    return [before]

                [place] = k.loop_while([i], larger, move, trips=n / 4)
                k.store(key, keys, place)
        case "selection":
            with k.loop(0, n - 1) as i:
                first = k.load(keys, i)

                def least(j: Index, carried: list[Num]) -> list[Num]:
                    value = k.load(keys, j.within(0, n - 1))
                    smaller = value.test("lt", carried[0])
                    return [k.choose(smaller, value, carried[0]), k.choose(smaller, k.index(j), carried[1])]

                low, place = k.fold(i + 1, n, [first, k.index(i)], least)
                k.store(first, keys, place)
                k.store(low, keys, i)
        case "shell":
            gap = 1
            while gap * 3 < n:
                gap = gap * 3 + 1
            while gap:
                with k.scf_loop(gap, n) as i:
                    key = k.load(keys, i)

                    def larger_by(carried: list[Num], key: Num = key, gap: int = gap) -> Num:
                        inside = carried[0].test("sge", gap)
                        before = k.choose(inside, carried[0] - gap, 0)
                        return inside & k.load(keys, before).test("gt", key)

                    def move_by(carried: list[Num], gap: int = gap) -> list[Num]:
                        before = carried[0] - gap
                        k.store(k.load(keys, before), keys, carried[0])
                        return [before]

                    [place] = k.loop_while([i], larger_by, move_by, trips=3)
                    k.store(key, keys, place)
                gap //= 3
        case _:  # comb
            gap = n
            while gap > 1:
                gap = max(1, gap * 10 // 13)
                with k.loop(0, n - gap) as i:
                    _swap(d, keys, i, i + gap, how)


def sort_network(d: Drawn) -> None:
    """Bitonic and odd-even merge networks: run-time strides, unrolled stages, small networks in registers."""
    k, element = d.k, _keys(d)
    style = d.pick("style", ("bitonic", "staged", "odd-even merge", "registers", "registers", "merge only"))
    how = d.pick("how", ("branch", "select"))
    if style == "registers":  # each row of a few values sorted without memory
        width = d.pick("width", (4, 8, 8, 16))
        rows = max(2, d.size(d.work / (width * 6)))
        keys = k.array(element, rows, width)
        by_column = d.chance("by_column", 0.5)
        if by_column:
            keys = k.array(element, width, rows)

        def place(r: Index, c: int) -> tuple[Index | int, ...]:
            return (c, r) if by_column else (r, c)

        with k.loop(0, rows) as r:
            values = [k.load(keys, *place(r, c)) for c in range(width)]
            size = 2
            while size <= width:
                stride = size // 2
                while stride:
                    for i in range(width):
                        j = i ^ stride
                        if j > i:
                            low, high = values[i].min(values[j]), values[i].max(values[j])
                            up = i & size == 0
                            values[i], values[j] = (low, high) if up else (high, low)
                    stride //= 2
                size *= 2
            for c, value in enumerate(values):
                k.store(value, keys, *place(r, c))
        return
    n = d.power(d.work / 40, 8)
    logs = n.bit_length() - 1
    keys = _shuffled(d, n, element)
    if style == "bitonic":  # strides are computed
        one = k.index(1)
        with k.scf_loop(1, logs + 1) as stage:
            size = one << stage
            with k.scf_loop(0, stage, trips=logs / 2) as back:
                stride = one << (stage - 1 - back)
                with k.scf_loop(0, n // 2) as p:
                    i = ((p & (0 - stride)) << 1) | (p & (stride - 1))
                    down = (i & size).test("ne", 0)
                    _swap(d, keys, i, i + stride, how, down=down)
        return
    if style == "staged":  # a loop per stage, each with its own stride
        for stage in range(1, min(logs, 6) + 1):
            for sub in reversed(range(stage)):
                stride = 1 << sub
                with k.loop(0, n // (2 * stride)) as block, k.loop(0, stride) as o:
                    i = block * (2 * stride) + o
                    down = (k.index(i) & (1 << stage)).test("ne", 0)
                    _swap(d, keys, i, i + stride, how, down=down)
        return
    if style == "merge only":  # merges sorted pairs of runs
        for sub in reversed(range(min(logs, 8))):
            stride = 1 << sub
            with k.loop(0, n // (2 * stride)) as block, k.loop(0, stride) as o:
                i = block * (2 * stride) + o
                _swap(d, keys, i, i + stride, "extrema")
        return
    size = 1
    rounds = 0
    while size < n and rounds < 24:
        stride = size
        while stride and rounds < 24:
            first = stride % size if size > 1 else 0
            with k.scf_loop(first, n - stride, 2 * stride) as base, k.scf_loop(0, stride) as o:
                i = base + o
                inside = (i // (2 * size)).test("eq", (i + stride) // (2 * size)) & (i + stride).test("ult", n)
                k.if_else(inside, lambda i=i, s=stride: _swap(d, keys, i, i + s, "extrema") or [], share=0.9)
            stride //= 2
            rounds += 1
        size *= 2


def sort_merge(d: Drawn) -> None:
    """Merges: bottom-up merge sort, merging two runs, merge ranks by binary search, counting inversions, k-way."""
    k, element = d.k, _keys(d)
    style = d.pick("style", ("bottom-up", "two runs", "ranks", "select merge", "quick", "heap"))
    n = d.power(d.work / 40, 16) if style in ("bottom-up", "select merge") else max(8, d.size(d.work / 25, 8))
    if style == "two runs":
        a, b, c = k.array(element, n), k.array(element, n), k.array(element, 2 * n)
        step = d.pick("growth", (1, 2, 3))
        for array, factor in ((a, step), (b, 2)):  # rising keys
            with k.loop(0, n) as i:
                rising = (
                    k.number(i, "i32") // max(1, n // 60) if element in ("i8", "i16") else k.number(i, "i32") * factor
                )
                k.store(rising.to(element), array, i)

        def merge(o: Num, carried: list[Num]) -> list[Num]:
            i, j = carried
            x, y = k.load(a, i.min(n - 1)), k.load(b, j.min(n - 1))
            left = (i.test("slt", n) & x.test("le", y)) | j.test("sge", n)
            if d.forced.get("branch", element in ("i32", "f64")):
                k.store(k.choose(left, x, y), c, o)
                return [k.choose(left, i + 1, i), k.choose(left, j, j + 1)]

            def take(value: Num, p: Num, q: Num) -> list[Num]:
                k.store(value, c, o)
                return [p, q]

            return k.if_else(left, lambda: take(x, i + 1, j), lambda: take(y, i, j + 1))

        k.scf_fold(0, 2 * n, [k.index(0), k.index(0)], merge)
        return
    keys = _shuffled(d, n, element)
    other = k.array(element, n)
    if style == "ranks":  # each key's place by counting
        n = max(8, round((d.work / 5) ** 0.5))
        keys = _shuffled(d, n, element)
        with k.loop(0, n) as i:
            key = k.load(keys, i)

            def smaller(j: Index, carried: list[Num], i: Index = i, key: Num = key) -> list[Num]:
                value = k.load(keys, j)
                before = value.test("lt", key) | (value.test("eq", key) & k.index(j).test("ult", k.index(i)))
                return [carried[0] + before.to("index")]

            [rank] = k.fold(0, n, [k.index(0)], smaller)
            k.store(key, other, rank.min(other.extents[0] - 1))
        return
    if style == "heap":
        last = n - 1

        def sift(start: Num, end: Num, trips: float) -> None:
            def goes(carried: list[Num]) -> Num:
                at, go = carried
                return go.test("ne", 0) & (at * 2 + 1).test("sle", end)

            def down(carried: list[Num]) -> list[Num]:
                at = carried[0]
                left = at * 2 + 1
                right = (left + 1).min(end)
                child = k.choose(k.load(keys, left).test("lt", k.load(keys, right)), right, left)
                x, y = k.load(keys, at), k.load(keys, child)
                wrong = x.test("lt", y)
                k.store(k.choose(wrong, y, x), keys, at)
                k.store(k.choose(wrong, x, y), keys, child)
                return [child, wrong.to("i32")]

            k.loop_while([start, k.constant(1, "i32")], goes, down, trips=trips)

        with k.scf_loop(0, n // 2) as back:
            sift(0 - back + (n // 2 - 1), k.index(last), 2)
        with k.scf_loop(0, last) as done:
            end = 0 - done + last
            top, low = k.load(keys, 0), k.load(keys, end)
            k.store(low, keys, 0)
            k.store(top, keys, end)
            sift(k.index(0), end - 1, max(1.0, n.bit_length() - 2))
        return
    if style == "quick":  # Lomuto partitions with an explicit stack
        stack = k.local("index", 128, 2)
        k.store(k.index(0), stack, k.index(0), k.index(0))
        k.store(k.index(n - 1), stack, k.index(0), k.index(1))

        def busy(carried: list[Num]) -> Num:
            return carried[0].test("sgt", 0)

        def part(carried: list[Num]) -> list[Num]:
            top = carried[0] - 1
            low, high = k.load(stack, top, k.index(0)), k.load(stack, top, k.index(1))
            middle = (low + high) >> 1
            pivot = k.load(keys, middle)
            k.store(k.load(keys, high), keys, middle)
            k.store(pivot, keys, high)

            def step(i: Num, place: list[Num]) -> list[Num]:
                x, y = k.load(keys, i), k.load(keys, place[0])
                small = x.test("lt", pivot)
                k.store(k.choose(small, y, x), keys, i)
                k.store(k.choose(small, x, y), keys, place[0])
                return [place[0] + small.to("index")]

            [place] = k.scf_fold(low, high, [low], step, trips=14)
            k.store(k.load(keys, place), keys, high)
            k.store(pivot, keys, place)

            def push(at: Num, a: Num, b: Num) -> Num:
                wanted = a.test("slt", b) & at.test("slt", 127)

                def put() -> list[Num]:
                    k.store(a, stack, at, k.index(0))
                    k.store(b, stack, at, k.index(1))
                    return [at + 1]

                return k.if_else(wanted, put, lambda: [at])[0]

            left_first = (place - low).test("sgt", high - place)
            a_low, a_high = k.choose(left_first, low, place + 1), k.choose(left_first, place - 1, high)
            b_low, b_high = k.choose(left_first, place + 1, low), k.choose(left_first, high, place - 1)
            return [push(push(top, a_low, a_high), b_low, b_high)]

        k.loop_while([k.index(1)], busy, part, trips=n * 0.6)
        return
    width = 1
    read, write = keys, other
    passes = 0
    while width < n and passes < 14:
        with k.scf_loop(0, n, 2 * width) as start:
            middle, end = start + width, start + 2 * width

            def merge_step(
                o: Num,
                carried: list[Num],
                read: Array = read,
                write: Array = write,
                middle: Num = middle,
                end: Num = end,
            ) -> list[Num]:
                i, j = carried
                x, y = k.load(read, i.min(n - 1)), k.load(read, j.min(n - 1))
                left = i.test("slt", middle) & (j.test("sge", end) | x.test("le", y))
                if style == "select merge":
                    k.store(k.choose(left, x, y), write, o)
                    taken = left.to("index")
                    return [i + taken, j + 1 - taken]

                def take(value: Num, p: Num, q: Num) -> list[Num]:
                    k.store(value, write, o)
                    return [p, q]

                return k.if_else(left, lambda: take(x, i + 1, j), lambda: take(y, i, j + 1))

            k.scf_fold(start, end, [start, middle], merge_step, trips=2 * width)
        read, write = write, read
        width *= 2
        passes += 1


def sort_radix(d: Drawn) -> None:
    """Counting sort, least-significant-digit radix passes, bucket sort, most-significant-bit partition, sort by key."""
    k = d.k
    style = d.pick("style", ("counting", "radix", "radix", "buckets", "pairs", "bits"))
    key = d.pick("key", ("i32", "i64", "i8"), (4, 2, 1)) if style != "counting" else d.pick("key", ("i32", "i8"))
    bits = d.pick("digit_bits", (1, 2, 4, 6, 8)) if style != "bits" else 1
    passes = d.pick("passes", (1, 2, 4)) if style in ("radix", "pairs", "bits") else 1
    n = max(8, d.size(d.work / (9 * passes + 6), 8))
    digits = 1 << bits
    keys, sorted_, starts = k.array(key, n), k.array(key, n), k.local("i32", digits + 1)
    extra = [k.array("f32", n), k.array("f32", n)] if style == "pairs" else []
    salt, zero = d.rng.randrange(1 << 16), k.constant(0, "i32")
    with k.loop(0, n) as i:
        k.store(k.hashed(k.number(i, "i32"), salt).to(key), keys, i)
    for number in range(passes):
        read, write = (keys, sorted_) if number % 2 == 0 else (sorted_, keys)
        shift = number * bits

        def digit(value: Num, shift: int = shift) -> Num:
            wide = value.to("i32") if key == "i8" else value
            return ((wide >> shift) & (digits - 1)).to("i32").to("index")

        with k.loop(0, digits + 1) as b:
            k.store(zero, starts, b)
        with k.loop(0, n) as i:
            place = digit(k.load(read, i)) + 1
            k.store(k.load(starts, place) + 1, starts, place)
        if d.forced.get("carried", bits > 2):

            def running(b: Index, carried: list[Num]) -> list[Num]:
                now = carried[0] + k.load(starts, b)
                k.store(now, starts, b)
                return [now]

            k.fold(0, digits + 1, [zero], running)
        else:
            with k.loop(1, digits + 1) as b:
                k.store(k.load(starts, b) + k.load(starts, b - 1), starts, b)
        if style == "buckets":  # and each bucket's largest
            tops = k.array(key, digits)
            with k.loop(0, digits) as b:
                k.store(k.constant(-100, key), tops, b)
        with k.loop(0, n) as i:
            value = k.load(read, i)
            bucket = digit(value)
            place = k.load(starts, bucket)
            k.store(place + 1, starts, bucket)
            k.store(value, write, place.to("index"))
            if extra:
                source, target = extra if number % 2 == 0 else extra[::-1]
                k.store(k.load(source, i), target, place.to("index"))
            if style == "buckets":
                k.store(k.load(tops, bucket).max(value), tops, bucket)


def scan_prefix(d: Drawn) -> None:
    """Prefix sums and extrema: in order, in blocks, Hillis-Steele, Blelloch, segmented, by rows and columns."""
    k = d.k
    style = d.pick("style", ("naive", "blocked", "hillis-steele", "blelloch", "segmented", "rows", "columns", "linear"))
    element = d.pick("element", ("f32", "f64", "i32", "i64", "i16"), (3, 2, 3, 2, 1))
    kind = d.pick("kind", ("add", "add", "max", "min")) if style not in ("linear", "segmented", "blelloch") else "add"
    exclusive = d.chance("exclusive", 0.3)
    zero = k.constant(0, element) if kind == "add" else k.constant(-99 if kind == "max" else 99, element)

    def joined(x: Num, y: Num) -> Num:
        return x + y if kind == "add" else x.max(y) if kind == "max" else x.min(y)

    n = max(8, d.size(d.work / {"hillis-steele": 30, "blelloch": 12, "blocked": 6}.get(style, 4), 8))
    match style:
        case "naive" | "segmented" | "linear":
            a, b = k.array(element, n), k.array(element, n)
            flags = k.array(d.pick("flags", ("i8", "i32")), n)

            def step(i: Index, carried: list[Num]) -> list[Num]:
                value = k.load(a, i)
                if style == "linear":  # x = decay * x + a[i]
                    now = carried[0] * 0.75 + value if value.is_float else carried[0] * 3 + value
                elif style == "segmented":
                    fresh = k.load(flags, i).test("eq", 0)
                    now = joined(k.choose(fresh, zero, carried[0]), value)
                else:
                    now = joined(carried[0], value)
                k.store(carried[0] if exclusive else now, b, i)
                return [now]

            if style == "naive" and d.chance("in_memory", 0.4):
                k.store(k.load(a, 0), b, 0)
                with k.loop(1, n) as i:
                    k.store(joined(k.load(b, i - 1), k.load(a, i)), b, i)
            else:
                k.fold(0, n, [zero], step)
        case "rows" | "columns":
            rows, columns = d.sides(2, d.work / 4, smallest=4)
            a, b = k.array(element, rows, columns), k.array(element, rows, columns)
            if style == "rows":
                with k.loop(0, rows) as r:

                    def along(c: Index, carried: list[Num], r: Index = r) -> list[Num]:
                        now = joined(carried[0], k.load(a, r, c))
                        k.store(carried[0] if exclusive else now, b, r, c)
                        return [now]

                    k.fold(0, columns, [zero], along)
            else:
                with k.loop(0, columns) as c:
                    k.store(k.load(a, 0, c), b, 0, c)
                with k.loop(1, rows) as r, k.loop(0, columns) as c:
                    k.store(joined(k.load(b, r - 1, c), k.load(a, r, c)), b, r, c)
        case "blocked":
            block = d.pick("block", (8, 16, 32, 64))
            blocks = max(2, n // block)
            a, b, sums = k.array(element, blocks, block), k.array(element, blocks, block), k.local(element, blocks)
            with k.loop(0, blocks) as p:

                def inside(i: Index, carried: list[Num], p: Index = p) -> list[Num]:
                    now = joined(carried[0], k.load(a, p, i))
                    k.store(now, b, p, i)
                    return [now]

                [total] = k.fold(0, block, [zero], inside)
                k.store(total, sums, p)

            def offsets(p: Index, carried: list[Num]) -> list[Num]:
                now = joined(carried[0], k.load(sums, p))
                k.store(carried[0], sums, p)
                return [now]

            k.fold(0, blocks, [zero], offsets)
            with k.loop(0, blocks) as p:
                before = k.load(sums, p)
                with k.loop(0, block) as i:
                    k.store(joined(k.load(b, p, i), before), b, p, i)
        case "hillis-steele":
            read, write = k.array(element, n), k.array(element, n)
            stride = 1
            while stride < n:
                with k.loop(0, min(stride, n)) as i:
                    k.store(k.load(read, i), write, i)
                with k.loop(stride, n) as i:
                    k.store(joined(k.load(read, i), k.load(read, i - stride)), write, i)
                read, write = write, read
                stride *= 2
                if element[0] == "f" and stride == 4:  # keep the numbers small over many calls
                    with k.loop(0, n) as i:
                        k.store(k.load(read, i) * 0.2, read, i)
        case _:  # blelloch
            n = d.power(n, 8)
            a = k.array(element, n)
            if element[0] == "f":
                with k.loop(0, n) as i:
                    k.store(k.load(a, i).clamp(0, 2) * 0.5, a, i)
            stride = 1
            while stride < n:
                with k.loop(0, n // (2 * stride)) as p:
                    right = p * (2 * stride) + (2 * stride - 1)
                    k.store(k.load(a, right) + k.load(a, right - stride), a, right)
                stride *= 2
            k.store(zero, a, n - 1)
            while stride > 1:
                stride //= 2
                with k.loop(0, n // (2 * stride)) as p:
                    right = p * (2 * stride) + (2 * stride - 1)
                    low, high = k.load(a, right - stride), k.load(a, right)
                    k.store(high, a, right - stride)
                    k.store(low + high, a, right)


def scan_compact(d: Drawn) -> None:
    """Filtering and partitioning: by branch, flag or scanned places; unique runs, arg-extrema, the largest few."""
    k = d.k
    style = d.pick(
        "style", ("branch", "flag", "scanned", "unique", "partition", "three ways", "argmax", "top", "nonzero")
    )
    element = d.pick("element", ("f32", "f64", "i32", "i64"))
    n = max(8, d.size(d.work / {"scanned": 10, "top": 30}.get(style, 6), 8))
    a, b, counts = k.array(element, n), k.array(element, n), k.array("i32", 4)
    level = k.constant(d.real(0.6, 1.4) if element[0] == "f" else d.whole("level", 0, 2), element)
    predicate = d.pick("predicate", ("gt", "lt", "ge", "ne"))

    def keeps(i: Index | Num) -> Num:
        return k.load(a, i).test(predicate, level)

    zero = k.index(0)
    match style:
        case "branch" | "nonzero":

            def step(i: Index, carried: list[Num]) -> list[Num]:
                value = k.load(a, i)

                def keep() -> list[Num]:
                    k.store(k.number(i, element) if style == "nonzero" else value, b, carried[0])
                    return [carried[0] + 1]

                return k.if_else(value.test(predicate, level), keep, lambda: [carried[0]])

            [total] = k.fold(0, n, [zero], step)
            k.store(total.to("i32"), counts, 0)
        case "flag":  # written always, advanced sometimes

            def always(i: Index, carried: list[Num]) -> list[Num]:
                k.store(k.load(a, i), b, carried[0])
                return [carried[0] + keeps(i).to("index")]

            [total] = k.fold(0, n, [zero], always)
            k.store(total.to("i32"), counts, 0)
        case "scanned":
            places = k.local("i32", n + 1)
            k.store(k.constant(0, "i32"), places, 0)

            def count(i: Index, carried: list[Num]) -> list[Num]:
                now = carried[0] + keeps(i).to("i32")
                k.store(now, places, i + 1)
                return [now]

            [total] = k.fold(0, n, [k.constant(0, "i32")], count)
            k.store(total, counts, 0)
            with k.loop(0, n) as i:
                here, after = k.load(places, i), k.load(places, i + 1)

                def put(i: Index = i, here: Num = here) -> list[Num]:
                    k.store(k.load(a, i), b, here.to("index"))
                    return []

                k.if_else(here.test("ne", after), put)
        case "unique":

            def runs(i: Index, carried: list[Num]) -> list[Num]:
                differs = k.load(a, i).test("ne", k.load(a, i - 1))

                def put() -> list[Num]:
                    k.store(k.load(a, i), b, carried[0])
                    return [carried[0] + 1]

                return k.if_else(differs, put, lambda: [carried[0]])

            [total] = k.fold(1, n, [zero], runs)
            k.store(total.to("i32"), counts, 0)
        case "partition":

            def split(i: Index, carried: list[Num]) -> list[Num]:
                low, high = carried
                left = keeps(i)
                k.store(k.load(a, i), b, k.choose(left, low, high))
                return [low + left.to("index"), high - (left ^ 1).to("index")]

            [total, _] = k.fold(0, n, [zero, k.index(n - 1)], split)
            k.store(total.to("i32"), counts, 0)
        case "three ways":

            def tally(i: Index, carried: list[Num]) -> list[Num]:
                value = k.load(a, i)
                return [
                    carried[0] + value.test("lt", level).to("i32"),
                    carried[1] + value.test("eq", level).to("i32"),
                    carried[2] + value.test("gt", level).to("i32"),
                ]

            for c, total in enumerate(k.fold(0, n, [k.constant(0, "i32")] * 3, tally)):
                k.store(total, counts, c)
        case "top":  # the largest few, kept in order in registers
            few = d.pick("few", (2, 4, 6))
            low = k.constant(-1e6 if element[0] == "f" else -9999, element)

            def insert(i: Index, carried: list[Num]) -> list[Num]:
                value, kept = k.load(a, i), []
                for old in carried:
                    kept.append(old.max(value))
                    value = old.min(value)
                return kept

            for c, value in enumerate(k.fold(0, n, [low] * few, insert)):
                k.store(value, b, c)
        case _:

            def better(i: Index, carried: list[Num]) -> list[Num]:
                value = k.load(a, i)
                larger = value.test("gt", carried[0])
                return [k.choose(larger, value, carried[0]), k.choose(larger, k.number(i, "i32"), carried[1])]

            value, place = k.fold(1, n, [k.load(a, 0), k.constant(0, "i32")], better)
            k.store(place, counts, 0)
            k.store(value, b, 0)


def search_tables(d: Drawn) -> None:
    """Binary, branchless, interpolated and galloping searches; hash tables; bloom filters; range sums."""
    k = d.k
    style = d.pick(
        "style", ("binary", "branchless", "levels", "gallop", "probe", "insert", "bloom", "intervals", "linear")
    )
    element = (
        d.pick("element", ("i32", "i64", "f32", "f64"))
        if style in ("binary", "branchless", "levels", "gallop", "linear")
        else "i32"
    )
    logs = d.pick("logs", (4, 6, 8, 10, 12, 14))
    size = 1 << logs
    if style == "linear":
        size, logs = d.pick("few", (5, 9, 16, 33)), 5
    queries = max(4, d.size(d.work / (8 + 5 * (logs if style not in ("probe", "insert", "bloom") else 3)), 4))
    salt = d.rng.randrange(1 << 16)
    while size > 16 * queries:
        size, logs = size // 2, logs - 1
    table, found = k.array(element, size), k.array("i32", queries)

    seed = k.load(k.array("i32", 1), 0)

    def query(q: Index | Num) -> Num:
        return k.hashed(k.number(q, "i32") + seed, salt)

    if style in ("probe", "insert"):
        mask, empty = size - 1, -1
        with k.loop(0, size) as i:
            k.store(k.constant(empty, "i32"), table, i)
        filled = size // 2

        def slot_of(key: Num) -> tuple[Num, Num]:
            start = k.hashed(key, 77) & mask

            def taken(carried: list[Num]) -> Num:
                here = k.load(table, carried[0].to("index"))
                return here.test("ne", empty) & here.test("ne", key) & carried[1].test("lt", size)

            def onward(carried: list[Num]) -> list[Num]:
                step = carried[1] + 1 if d.forced.get("quadratic", logs % 4 == 0) else k.constant(1, "i32")
                return [(carried[0] + step) & mask, carried[1] + 1]

            at, _ = k.loop_while([start, k.constant(0, "i32")], taken, onward, trips=1.5)
            return at, k.load(table, at.to("index"))

        with k.scf_loop(0, filled if style == "probe" else min(filled, queries)) as i:
            key = k.hashed(i.to("i32") + seed, salt) & 0xFFFFF
            at, _ = slot_of(key)
            k.store(key, table, at.to("index"))
        if style == "probe":
            with k.loop(0, queries) as q:
                key = k.hashed((k.number(q, "i32") & (size - 1)) + seed, salt) & 0xFFFFF
                _, here = slot_of(key)
                k.store(here.test("eq", key).to("i32"), found, q)
        return
    if style == "bloom":
        words, hashes = max(1, size // 32), d.pick("hashes", (2, 3, 4))
        bits = k.array("i32", words)
        with k.loop(0, queries // 2) as q:
            for h in range(hashes):
                bit = k.hashed(k.number(q, "i32") + seed, h * 7919) % (words * 32)
                word = (bit >> 5).to("index")
                k.store(k.load(bits, word) | (k.constant(1, "i32") << (bit & 31)), bits, word)
        with k.loop(0, queries) as q:
            present = k.constant(1, "i32")
            for h in range(hashes):
                bit = k.hashed(k.number(q, "i32") + seed, h * 7919) % (words * 32)
                present = present & (k.load(bits, (bit >> 5).to("index")) >> (bit & 31))
            k.store(present, found, q)
        return
    with k.loop(0, size) as i:  # rising keys
        k.store(k.number(i * 3 + 1, element), table, i)
    if style == "linear":
        with k.loop(0, queries) as q:
            wanted = (query(q) % (3 * size)).to(element)
            [place] = k.fold(
                0,
                size,
                [k.constant(0, "i32")],
                lambda i, c, w=wanted: [c[0] + k.load(table, i).test("lt", w).to("i32")],
            )
            k.store(place, found, q)
        return
    with k.loop(0, queries) as q:
        wanted = (query(q) % (3 * size)).to(element)
        if style == "intervals":
            low, high = query(q) % size, (query(q) >> 9) % size
            first, last = low.min(high).to("index"), low.max(high).to("index")
            place = k.load(table, last) - k.load(table, first)
        elif style == "branchless":

            def halve(level: Index, carried: list[Num], wanted: Num = wanted) -> list[Num]:
                base, step = carried
                step = step >> 1
                jump = k.load(table, base + step).test("le", wanted)
                return [k.choose(jump, base + step, base), step]

            [place, _] = k.fold(0, logs, [k.index(0), k.index(size)], halve)
        elif style == "levels":  # unrolled
            place = k.index(0)
            for level in reversed(range(logs)):
                jump = k.load(table, place + (1 << level)).test("le", wanted)
                place = k.choose(jump, place + (1 << level), place)
        elif style == "gallop":

            def far(carried: list[Num], wanted: Num = wanted) -> Num:
                return carried[0].test("ult", size) & k.load(table, carried[0].min(size - 1)).test("lt", wanted)

            [end] = k.loop_while([k.index(1)], far, lambda c: [c[0] << 1], trips=logs)
            start, end = end >> 1, end.min(size)
            place = _bisect(table, wanted, start, end, logs / 2)
        else:
            place = _bisect(table, wanted, k.index(0), k.index(size), logs)
        k.store(place.to("i32"), found, q)


def _bisect(table: Array, wanted: Num, low: Num, high: Num, trips: float) -> Num:
    """First place whose key is not below the wanted one."""
    writer = wanted.k

    def open_(carried: list[Num]) -> Num:
        return carried[0].test("ult", carried[1])

    def halve(carried: list[Num]) -> list[Num]:
        middle = (carried[0] + carried[1]) >> 1
        below = writer.load(table, middle).test("lt", wanted)
        return [writer.choose(below, middle + 1, carried[0]), writer.choose(below, carried[1], middle)]

    return writer.loop_while([low, high], open_, halve, trips=trips)[0]


KINDS: dict[str, Kind] = {
    "sort_exchange": sort_exchange,
    "sort_network": sort_network,
    "sort_merge": sort_merge,
    "sort_radix": sort_radix,
    "scan_prefix": scan_prefix,
    "scan_compact": scan_compact,
    "search_tables": search_tables,
}
FAMILIES = families_of(ORIGIN, KINDS)
