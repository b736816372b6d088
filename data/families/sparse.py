"""Sparse and indirect: matrices in CSR, COO, ELL, DIA and blocks, graphs, gathers, scatters and buckets.

Index arrays are arguments that each kernel fills before it uses them, from hashes, so they are valid in every call.
"""

from __future__ import annotations

from dataclasses import dataclass

from .affine_text import Array, Index
from .drawn import Drawn, Kind, families_of
from .scf_text import Num

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "sparse"


def _real(d: Drawn) -> str:
    return d.pick("element", ("f32", "f64", "i32", "i64"), (4, 3, 1, 1))


@dataclass(frozen=True)
class _Pattern:
    """Compressed rows."""

    starts: Array
    columns: Array
    index: str
    rows: int
    nonzeros: float
    """About, over all rows."""


def _compressed(d: Drawn, rows: int, columns: int, per_row: int) -> _Pattern:
    """Fill `starts` and `columns`; rows have from one to twice as many entries as said, or all the same number."""
    k = d.k
    index = d.pick("index", ("i32", "i32", "index", "i64"))
    layout = d.pick("layout", ("random", "random", "banded", "local", "even"))
    salt = d.rng.randrange(1 << 16)
    most = 2 * per_row if layout == "random" else per_row
    starts, places = k.array(index, rows + 1), k.array(index, rows * most)
    k.store(k.constant(0, index), starts, 0)

    def length(r: Index, carried: list[Num]) -> list[Num]:
        entries = k.hashed(k.number(r, "i32"), salt) % most + 1 if layout == "random" else k.constant(per_row, "i32")
        now = carried[0] + entries.to(index)
        k.store(now, starts, r + 1)
        return [now]

    k.fold(0, rows, [k.constant(0, index)], length)
    with k.loop(0, rows) as r:
        low, high = k.load(starts, r).to("index"), k.load(starts, r + 1).to("index")
        with k.scf_loop(low, high, trips=per_row) as e:
            if layout in ("random", "even"):
                column = k.hashed(e.to("i32"), salt + 1) % columns
            elif layout == "banded":
                column = (k.number(r, "i32") + (e - low).to("i32")) % columns
            else:
                column = (k.number(r, "i32") + (k.hashed(e.to("i32"), salt) & 31)) % columns
            k.store(column.to(index), places, e)
    return _Pattern(starts, places, index, rows, rows * (per_row + 0.5))


def _span(d: Drawn, p: _Pattern, r: Index | Num) -> tuple[Num, Num]:
    return d.k.load(p.starts, r).to("index"), d.k.load(p.starts, r + 1).to("index")


def sparse_vector(d: Drawn) -> None:
    """Matrix-vector products in CSR, COO, ELL, DIA, block and hybrid form, with scaling and several right sides."""
    k, element = d.k, _real(d)
    style = d.pick("style", ("csr", "csr", "coo", "ell", "ell columns", "dia", "blocks", "sell", "unrolled"))
    per_row = d.pick("per_row", (2, 4, 7, 16, 40))
    rows = max(4, d.size(d.work / per_row / {"csr": 14, "unrolled": 14, "dia": 5}.get(style, 9), 4))
    columns = max(4, round(rows * d.pick("aspect", (0.3, 1, 1, 3))))
    x, y = k.array(element, columns), k.array(element, rows)
    scaled = d.chance("scaled", 0.3)
    zero = k.constant(0, element)
    salt = d.rng.randrange(1 << 16)

    def finish(total: Num, r: Index | Num) -> None:
        if scaled:
            half = total * 0.5 if total.is_float else total.sar(1)
            total = half + (k.load(y, r) * 0.5 if total.is_float else k.load(y, r).sar(1))
        k.store(total, y, r)

    if style in ("csr", "unrolled"):
        p = _compressed(d, rows, columns, per_row)
        values = k.array(element, p.columns.extents[0])
        width = 2 if style == "unrolled" else 1

        def term(e: Num) -> Num:
            return k.load(values, e) * k.load(x, k.load(p.columns, e).to("index"))

        with k.loop(0, rows) as r:
            low, high = _span(d, p, r)
            if width == 2:
                even = low + (((high - low) >> 1) << 1)

                def two(e: Num, c: list[Num]) -> list[Num]:
                    return [c[0] + term(e), c[1] + term(e + 1)]

                a, b = k.scf_fold(low, even, [zero, zero], two, 2, trips=per_row / 2)
                [total] = k.scf_fold(even, high, [a + b], lambda e, c: [c[0] + term(e)], trips=1)
            else:
                [total] = k.scf_fold(low, high, [zero], lambda e, c: [c[0] + term(e)], trips=per_row)
            finish(total, r)
        return
    if style == "coo":
        entries = rows * per_row
        row, column, values = k.array("i32", entries), k.array("i32", entries), k.array(element, entries)
        ordered = d.chance("ordered", 0.6)
        with k.loop(0, entries) as e:
            place = k.number(e, "i32")
            k.store(place // per_row if ordered else k.hashed(place, salt) % rows, row, e)
            k.store(k.hashed(place, salt + 9) % columns, column, e)
        with k.loop(0, rows) as r:
            k.store(zero, y, r)
        with k.loop(0, entries) as e:
            product = k.load(values, e) * k.load(x, k.load(column, e).to("index"))
            target = k.load(row, e).to("index")
            k.store(k.load(y, target) + product, y, target)
        return
    if style == "dia":
        diagonals = d.pick("diagonals", (3, 5, 9, 17))
        rows = max(4, rows * per_row // diagonals)
        values = k.array(element, diagonals, rows)
        x, y = k.array(element, rows + 4 * diagonals), k.array(element, rows)
        offsets = sorted(d.rng.sample(range(4 * diagonals), diagonals))
        if d.chance("diagonal_outer", 0.5):
            for m, offset in enumerate(offsets):
                with k.loop(0, rows) as r:
                    before = k.load(y, r) if m else zero
                    k.store(before + k.load(values, m, r) * k.load(x, r + offset), y, r)
        else:
            with k.loop(0, rows) as r:
                total = zero
                for m, offset in enumerate(offsets):
                    total = total + k.load(values, m, r) * k.load(x, r + offset)
                finish(total, r)
        return
    if style == "blocks":
        size = d.pick("block", (2, 3, 4))
        rows, columns = max(2, rows // size), max(2, columns // size)
        p = _compressed(d, rows, columns, max(1, per_row // size))
        values = k.array(element, p.columns.extents[0], size, size)
        x, y = k.array(element, columns, size), k.array(element, rows, size)
        with k.loop(0, rows) as r:
            low, high = _span(d, p, r)

            def block(e: Num, carried: list[Num]) -> list[Num]:
                column = k.load(p.columns, e).to("index")
                right = [k.load(x, column, k.index(j)) for j in range(size)]
                sums = []
                for i, total in enumerate(carried):
                    for j, value in enumerate(right):
                        total = total + k.load(values, e, k.index(i), k.index(j)) * value
                    sums.append(total)
                return sums

            sums = k.scf_fold(low, high, [zero] * size, block, trips=max(1, per_row // size))
            for i, total in enumerate(sums):
                k.store(total, y, r, i)
        return
    # ELL: every row has the same number of entries, stored by row or by column; SELL in slices of rows.
    by_column = style != "ell"
    slice_ = d.pick("slice", (4, 8)) if style == "sell" else 1
    rows = max(slice_, rows // slice_ * slice_)
    shape = (rows // slice_, per_row, slice_) if style == "sell" else (per_row, rows) if by_column else (rows, per_row)
    column, values = k.array("i32", *shape), k.array(element, *shape)
    y = k.array(element, rows)

    def spot(r: Index, e: Index, lane: Index | None) -> tuple[Index, ...]:
        if lane is not None:
            return r, e, lane
        return (e, r) if by_column else (r, e)

    if style == "sell":
        with k.loop(0, rows // slice_) as s, k.loop(0, per_row) as e, k.loop(0, slice_) as lane:
            mixed = k.hashed(k.number(s * (per_row * slice_) + e * slice_ + lane, "i32"), salt)
            k.store(mixed % columns, column, s, e, lane)
        with k.loop(0, rows // slice_) as s, k.loop(0, slice_) as lane:

            def entry(e: Index, carried: list[Num], s: Index = s, lane: Index = lane) -> list[Num]:
                at = spot(s, e, lane)
                return [carried[0] + k.load(values, *at) * k.load(x, k.load(column, *at).to("index"))]

            [total] = k.fold(0, per_row, [zero], entry)
            k.store(total, y, s * slice_ + lane)
        return
    with k.loop(0, rows) as r, k.loop(0, per_row) as e:
        mixed = k.hashed(k.number(r * per_row + e, "i32"), salt)
        k.store(mixed % columns, column, *spot(r, e, None))
    if by_column and d.chance("entry_outer", 0.5):
        with k.loop(0, rows) as r:
            k.store(zero, y, r)
        with k.loop(0, per_row) as e, k.loop(0, rows) as r:
            at = spot(r, e, None)
            product = k.load(values, *at) * k.load(x, k.load(column, *at).to("index"))
            k.store(k.load(y, r) + product, y, r)
        return
    with k.loop(0, rows) as r:

        def one(e: Index, carried: list[Num], r: Index = r) -> list[Num]:
            at = spot(r, e, None)
            return [carried[0] + k.load(values, *at) * k.load(x, k.load(column, *at).to("index"))]

        [total] = k.fold(0, per_row, [zero], one)
        finish(total, r)


def sparse_matrix(d: Drawn) -> None:
    """Sparse times dense, sampled dense-dense products, attention over neighbours, sparse rows times sparse rows."""
    k, element = d.k, _real(d)
    style = d.pick("style", ("rows", "rows", "register", "sampled", "sampled", "softmax", "product", "add", "scale"))
    if style == "softmax":
        element = d.pick("reals", ("f32", "f64"))
    per_row = d.pick("per_row", (2, 4, 8, 20))
    wide = d.size(d.pick("wide", (3, 8, 16, 33, 64)), 2)
    rows = max(4, d.size(d.work / per_row / {"add": 12, "scale": 14, "product": 14 * per_row}.get(style, 3 * wide), 4))
    columns = max(4, round(rows * d.pick("aspect", (0.3, 1, 2))))
    p = _compressed(d, rows, columns, per_row)
    entries = p.columns.extents[0]
    values = k.array(element, entries)
    zero = k.constant(0, element)
    if style in ("rows", "register"):
        dense, result = k.array(element, columns, wide), k.array(element, rows, wide)
        with k.loop(0, rows) as r:
            low, high = _span(d, p, r)
            if style == "register":  # one result at a time
                with k.loop(0, wide) as j:

                    def entry(e: Num, c: list[Num], j: Index = j) -> list[Num]:
                        return [c[0] + k.load(values, e) * k.load(dense, k.load(p.columns, e).to("index"), j)]

                    [total] = k.scf_fold(low, high, [zero], entry, trips=per_row)
                    k.store(total, result, r, j)
            else:
                with k.loop(0, wide) as j:
                    k.store(zero, result, r, j)
                with k.scf_loop(low, high, trips=per_row) as e:
                    column, value = k.load(p.columns, e).to("index"), k.load(values, e)
                    with k.scf_loop(0, wide) as j:
                        k.store(k.load(result, k.index(r), j) + value * k.load(dense, column, j), result, k.index(r), j)
        return
    if style in ("sampled", "softmax"):
        left, right = k.array(element, rows, wide), k.array(element, columns, wide)
        result = k.array(element, entries)
        with k.loop(0, rows) as r:
            low, high = _span(d, p, r)
            row = k.index(r)

            def dot(e: Num, row: Num = row) -> Num:
                column = k.load(p.columns, e).to("index")
                return k.scf_fold(
                    0, wide, [zero], lambda j, c: [c[0] + k.load(left, row, j) * k.load(right, column, j)]
                )[0]

            if style == "sampled":
                with k.scf_loop(low, high, trips=per_row) as e:
                    k.store(dot(e) * k.load(values, e), result, e)
            else:

                def score(e: Num, c: list[Num]) -> list[Num]:
                    value = dot(e) * (1.0 / wide)
                    k.store(value, result, e)
                    return [c[0].max(value)]

                [top] = k.scf_fold(low, high, [k.constant(-1e6, element)], score, trips=per_row)

                def power(e: Num, c: list[Num]) -> list[Num]:
                    value = (k.load(result, e) - top).math("exp")
                    k.store(value, result, e)
                    return [c[0] + value]

                [total] = k.scf_fold(low, high, [zero], power, trips=per_row)
                share = 1.0 / total
                with k.scf_loop(low, high, trips=per_row) as e:
                    k.store(k.load(result, e) * share, result, e)
        return
    if style == "product":  # row by row into a dense accumulator
        columns = min(columns, rows)
        dense = k.array(element, rows, 1 << 5)
        with k.loop(0, rows) as r, k.loop(0, 32) as j:
            k.store(zero, dense, r, j)
        with k.loop(0, rows) as r:
            low, high = _span(d, p, r)
            row = k.index(r)
            with k.scf_loop(low, high, trips=per_row) as e:
                middle = k.load(p.columns, e).to("index").min(rows - 1)
                value = k.load(values, e)
                first, last = k.load(p.starts, middle).to("index"), k.load(p.starts, middle + 1).to("index")
                with k.scf_loop(first, last, trips=per_row) as f:
                    bucket = k.load(p.columns, f).to("index") & 31
                    k.store(k.load(dense, row, bucket) + value * k.load(values, f), dense, row, bucket)
        return
    if style == "add":  # dense plus sparse
        dense = k.array(element, rows, min(columns, 64))
        with k.loop(0, rows) as r:
            low, high = _span(d, p, r)
            with k.scf_loop(low, high, trips=per_row) as e:
                column = k.load(p.columns, e).to("index") % min(columns, 64)
                old = k.load(dense, k.index(r), column)
                mixed = (old + k.load(values, e)) * 0.5 if old.is_float else old + k.load(values, e)
                k.store(mixed, dense, k.index(r), column)
        return
    left, right = k.array(element, rows), k.array(element, columns)
    result = k.array(element, entries)
    with k.loop(0, rows) as r:
        low, high = _span(d, p, r)
        scale = k.load(left, r)
        with k.scf_loop(low, high, trips=per_row) as e:
            k.store(k.load(values, e) * scale * k.load(right, k.load(p.columns, e).to("index")), result, e)


def sparse_transposed(d: Drawn) -> None:
    """Transposed products by scatter, CSR to CSC, COO to CSR, column sums, triangular solves, Gauss-Seidel."""
    k, element = d.k, _real(d)
    style = d.pick(
        "style", ("scatter", "convert", "convert", "coo", "column sums", "solve", "relax", "dense to sparse")
    )
    if style in ("solve", "relax"):
        element = d.pick("reals", ("f32", "f64"))
    per_row = d.pick("per_row", (2, 4, 9, 24))
    rows = max(4, d.size(d.work / per_row / 18, 4))
    columns = max(4, round(rows * d.pick("aspect", (0.3, 1, 1, 2))))
    zero, izero = k.constant(0, element), k.constant(0, "i32")
    if style == "dense to sparse":
        rows, columns = d.sides(2, d.work / 8, smallest=4)
        dense, values = k.array(element, rows, columns), k.array(element, rows * columns)
        places, starts = k.array("i32", rows * columns), k.array("i32", rows + 1)
        level = k.constant(1, element)

        def row(r: Index, carried: list[Num]) -> list[Num]:
            k.store(carried[0].to("i32"), starts, r)

            def entry(c: Index, count: list[Num]) -> list[Num]:
                value = k.load(dense, r, c)

                def keep() -> list[Num]:
                    k.store(value, values, count[0])
                    k.store(k.number(c, "i32"), places, count[0])
                    return [count[0] + 1]

                return k.if_else(value.test("gt", level), keep, lambda: [count[0]])

            return k.fold(0, columns, carried, entry)

        [total] = k.fold(0, rows, [k.index(0)], row)
        k.store(total.to("i32"), starts, rows)
        return
    if style == "coo":
        entries = rows * per_row
        row_of, column_of = k.array("i32", entries), k.array("i32", entries)
        values, salt = k.array(element, entries), d.rng.randrange(1 << 16)
        starts, columns_out, values_out = k.array("i32", rows + 2), k.array("i32", entries), k.array(element, entries)
        with k.loop(0, entries) as e:
            k.store(k.hashed(k.number(e, "i32"), salt) % rows, row_of, e)
            k.store(k.hashed(k.number(e, "i32"), salt + 3) % columns, column_of, e)
        with k.loop(0, rows + 2) as r:
            k.store(izero, starts, r)
        with k.loop(0, entries) as e:
            place = (k.load(row_of, e) + 2).to("index")
            k.store(k.load(starts, place) + 1, starts, place)
        with k.loop(1, rows + 2) as r:
            k.store(k.load(starts, r) + k.load(starts, r - 1), starts, r)
        with k.loop(0, entries) as e:
            place = (k.load(row_of, e) + 1).to("index")
            target = k.load(starts, place)
            k.store(target + 1, starts, place)
            k.store(k.load(column_of, e), columns_out, target.to("index"))
            k.store(k.load(values, e), values_out, target.to("index"))
        return
    if style in ("solve", "relax"):
        columns = rows
    p = _compressed(d, rows, columns, per_row)
    entries = p.columns.extents[0]
    values = k.array(element, entries)
    match style:
        case "scatter" | "column sums":
            x, y = k.array(element, rows), k.array(element, columns)
            with k.loop(0, columns) as c:
                k.store(zero, y, c)
            with k.loop(0, rows) as r:
                low, high = _span(d, p, r)
                factor = k.load(x, r)
                with k.scf_loop(low, high, trips=per_row) as e:
                    target = k.load(p.columns, e).to("index")
                    value = k.load(values, e) * factor if style == "scatter" else k.load(values, e)
                    k.store(k.load(y, target) + value, y, target)
        case "convert":
            starts, rows_out, values_out = (
                k.array("i32", columns + 2),
                k.array("i32", entries),
                k.array(element, entries),
            )
            with k.loop(0, columns + 2) as c:
                k.store(izero, starts, c)
            with k.loop(0, rows) as r:
                low, high = _span(d, p, r)
                with k.scf_loop(low, high, trips=per_row) as e:
                    place = k.load(p.columns, e).to("index") + 2
                    k.store(k.load(starts, place) + 1, starts, place)
            with k.loop(1, columns + 2) as c:
                k.store(k.load(starts, c) + k.load(starts, c - 1), starts, c)
            with k.loop(0, rows) as r:
                low, high = _span(d, p, r)
                with k.scf_loop(low, high, trips=per_row) as e:
                    place = k.load(p.columns, e).to("index") + 1
                    target = k.load(starts, place)
                    k.store(target + 1, starts, place)
                    k.store(k.number(r, "i32"), rows_out, target.to("index"))
                    k.store(k.load(values, e), values_out, target.to("index"))
        case _:  # x[r] = (b[r] - sum of earlier ones, or of all) * weight
            x, b = k.array(element, rows), k.array(element, rows)
            with k.loop(0, rows) as r:
                low, high = _span(d, p, r)
                here = k.index(r)

                def part(e: Num, c: list[Num], here: Num = here) -> list[Num]:
                    column = k.load(p.columns, e).to("index")
                    product = k.load(values, e) * k.load(x, column)
                    if style == "solve":
                        product = k.choose(column.test("ult", here), product, 0)
                    return [c[0] + product]

                [total] = k.scf_fold(low, high, [zero], part, trips=per_row)
                k.store((k.load(b, r) - total * (0.3 / per_row)) * 0.8, x, r)


def sparse_graph(d: Drawn) -> None:
    """Breadth-first levels, PageRank steps, label propagation, degrees, components, triangles, shortest paths."""
    k = d.k
    style = d.pick(
        "style", ("bfs", "pagerank", "push rank", "labels", "relax", "triangles", "components", "colour", "msg")
    )
    per_row = d.pick("per_row", (2, 4, 8, 16))
    rounds = d.pick("rounds", (1, 2, 4)) if style in ("bfs", "pagerank", "labels", "relax", "components") else 1
    extra = per_row if style == "triangles" else 1
    nodes = max(4, d.size(d.work / per_row / (10 + 7 * rounds * extra), 4))
    element = d.pick("element", ("f32", "f64"))
    p = _compressed(d, nodes, nodes, per_row)
    zero, izero = k.constant(0, element), k.constant(0, "i32")

    def over(r: Index) -> tuple[Num, Num]:
        return _span(d, p, r)

    match style:
        case "bfs":
            level = k.array("i32", nodes)
            with k.loop(0, nodes) as r:
                k.store(k.constant(-1, "i32"), level, r)
            k.store(izero, level, 0)
            with k.loop(0, rounds) as now:
                depth = k.number(now, "i32")
                with k.loop(0, nodes) as r:

                    def expand(r: Index = r, depth: Num = depth) -> list[Num]:
                        low, high = over(r)
                        with k.scf_loop(low, high, trips=per_row) as e:
                            target = k.load(p.columns, e).to("index")
                            fresh = k.load(level, target).test("lt", 0)
                            k.if_else(fresh, lambda: k.store(depth + 1, level, target) or [])
                        return []

                    k.if_else(k.load(level, r).test("eq", depth), expand, share=0.3)
        case "pagerank":
            rank, new = k.array(element, nodes), k.array(element, nodes)
            with k.loop(0, rounds):
                with k.loop(0, nodes) as r:
                    low, high = over(r)

                    def take(e: Num, c: list[Num]) -> list[Num]:
                        source = k.load(p.columns, e).to("index")
                        return [c[0] + k.load(rank, source)]

                    [total] = k.scf_fold(low, high, [zero], take, trips=per_row)
                    k.store(total * (0.85 / per_row / 2) + 0.15, new, r)
                with k.loop(0, nodes) as r:
                    k.store(k.load(new, r), rank, r)
        case "push rank":
            rank, new = k.array(element, nodes), k.array(element, nodes)
            with k.loop(0, nodes) as r:
                k.store(k.constant(0.15, element), new, r)
            with k.loop(0, nodes) as r:
                low, high = over(r)
                share = k.load(rank, r) / (high - low).to(element) * 0.85
                with k.scf_loop(low, high, trips=per_row) as e:
                    target = k.load(p.columns, e).to("index")
                    k.store(k.load(new, target) + share, new, target)
        case "relax":
            weight, dist = k.array(element, p.columns.extents[0]), k.array(element, nodes)
            with k.loop(0, rounds), k.loop(0, nodes) as r:
                low, high = over(r)
                mine = k.load(dist, r)
                with k.scf_loop(low, high, trips=per_row) as e:
                    target = k.load(p.columns, e).to("index")
                    through, old = mine + k.load(weight, e), k.load(dist, target)
                    if per_row > 4:
                        k.store(old.min(through), dist, target)
                    else:
                        k.if_else(through.test("lt", old), lambda: k.store(through, dist, target) or [])
        case "triangles":  # by merging sorted-or-not lists, all pairs
            count = k.array("i32", nodes)
            with k.loop(0, nodes) as r:
                low, high = over(r)

                def pair(e: Num, c: list[Num], low: Num = low, high: Num = high) -> list[Num]:
                    middle = k.load(p.columns, e).to("index")
                    first, last = k.load(p.starts, middle).to("index"), k.load(p.starts, middle + 1).to("index")
                    wanted = k.load(p.columns, low)

                    def same(f: Num, inner: list[Num]) -> list[Num]:
                        return [inner[0] + k.load(p.columns, f).test("eq", wanted).to("i32")]

                    return k.scf_fold(first, last, c, same, trips=per_row)

                [total] = k.scf_fold(low, high, [izero], pair, trips=per_row)
                k.store(total, count, r)
        case "colour":  # smallest colour no neighbour has, up to 31
            colour = k.array("i32", nodes)
            with k.loop(0, nodes) as r:
                low, high = over(r)

                def used(e: Num, c: list[Num]) -> list[Num]:
                    other = k.load(colour, k.load(p.columns, e).to("index")) & 31
                    return [c[0] | (k.constant(1, "i32") << other)]

                [mask] = k.scf_fold(low, high, [izero], used, trips=per_row)
                k.store((mask ^ -1).math("cttz") & 31, colour, r)
        case "msg":  # messages with features, as in graph networks
            wide = d.pick("wide", (4, 8, 16))
            features, result = k.array(element, nodes, wide), k.array(element, nodes, wide)
            combine = d.pick("combine", ("sum", "max", "mean"))
            with k.loop(0, nodes) as r, k.loop(0, wide) as j:
                low, high = over(r)

                def message(e: Num, c: list[Num], j: Index = j) -> list[Num]:
                    value = k.load(features, k.load(p.columns, e).to("index"), j)
                    return [c[0].max(value) if combine == "max" else c[0] + value]

                [total] = k.scf_fold(low, high, [zero], message, trips=per_row)
                if combine == "mean":
                    total = total / (high - low).to(element)
                k.store(total, result, r, j)
        case _:
            label = k.array("i32", nodes)
            largest = style == "labels"
            with k.loop(0, nodes) as r:
                k.store(k.number(r, "i32"), label, r)
            with k.loop(0, rounds), k.loop(0, nodes) as r:
                low, high = over(r)

                def best(e: Num, c: list[Num]) -> list[Num]:
                    other = k.load(label, k.load(p.columns, e).to("index"))
                    return [c[0].max(other) if largest else c[0].min(other)]

                [found] = k.scf_fold(low, high, [k.load(label, r)], best, trips=per_row)
                k.store(found, label, r)


def sparse_indirect(d: Drawn) -> None:
    """Gathers, scatters, scatter-adds, embedding bags, permutations, indirection chains, look-ups in two dimensions."""
    k, element = d.k, _real(d)
    style = d.pick(
        "style", ("gather", "gather", "scatter", "add", "bag", "permute", "chain", "rows", "table", "masked")
    )
    index = d.pick("index", ("i32", "i64", "index"))
    wide = d.pick("wide", (4, 8, 16, 31)) if style in ("bag", "rows") else 1
    n = max(8, d.size(d.work / (wide * 3 + 10), 8))
    table_size = max(4, round(n * d.pick("ratio", (0.05, 0.5, 1, 4))))
    place, salt = k.array(index, n), d.rng.randrange(1 << 16)
    local = d.chance("local_places", 0.3)
    with k.loop(0, n) as i:
        at = k.number(i, "i32")
        mixed = (at + (k.hashed(at, salt) & 15)) % table_size if local else k.hashed(at, salt) % table_size
        k.store(mixed.to(index), place, i)

    def where(i: Index | Num) -> Num:
        return k.load(place, i).to("index")

    match style:
        case "gather" | "masked":
            table, out, other = k.array(element, table_size), k.array(element, n), k.array(element, n)
            count = d.pick("extra", (0, 1, 3))
            with k.loop(0, n) as i:
                value = k.load(table, where(i))
                for m in range(count):
                    value = value + k.load(other, i) * (m + 1)
                if style == "masked":
                    value = k.choose(k.load(other, i).test("gt", 1), value, 0)
                k.store(value, out, i)
        case "scatter" | "add":
            values, out = k.array(element, n), k.array(element, table_size)
            if style == "add":
                with k.loop(0, table_size) as t:
                    k.store(k.constant(0, element), out, t)
            with k.loop(0, n) as i:
                target = where(i)
                value = k.load(values, i)
                k.store(k.load(out, target) + value if style == "add" else value, out, target)
        case "bag":
            bag = d.pick("bag", (2, 4, 10))
            table, out = k.array(element, table_size, wide), k.array(element, max(1, n // bag), wide)
            zero = k.constant(0, element)
            combine = d.pick("combine", ("sum", "max"))
            with k.loop(0, n // bag) as b, k.loop(0, wide) as j:

                def look(m: Index, c: list[Num], b: Index = b, j: Index = j) -> list[Num]:
                    value = k.load(table, where(b * bag + m), j)
                    return [c[0] + value if combine == "sum" else c[0].max(value)]

                [total] = k.fold(0, bag, [zero], look)
                k.store(total, out, b, j)
        case "rows":
            table, out = k.array(element, table_size, wide), k.array(element, n, wide)
            add_to = d.chance("add_to", 0.4)
            with k.loop(0, n) as i:
                row = where(i)
                with k.loop(0, wide) as j:
                    if add_to:
                        old, new = k.load(table, row, j), k.load(out, i, j)
                        k.store((old + new) * 0.5 if old.is_float else old + new, table, row, j)
                    else:
                        k.store(k.load(table, row, j), out, i, j)
        case "permute":
            n = d.power(n, 8)
            source, target = k.array(element, n), k.array(element, n)
            step = d.rng.randrange(n // 2) * 2 + 1
            with k.loop(0, n) as i:
                moved = (k.number(i, "i32") * step + salt) & (n - 1)
                k.store(k.load(source, i), target, moved.to("index"))
        case "chain":  # each place says where the next one is
            out = k.array("i64", 1)

            def follow(i: Index, c: list[Num]) -> list[Num]:
                found = k.load(place, c[0]).to("index") % n
                return [found, c[1] + found.to("i64")]

            _, total = k.fold(0, n, [k.index(0), k.constant(0, "i64")], follow)
            k.store(total, out, 0)
        case _:  # two subscripts
            side = max(4, round(table_size**0.5))
            table, out = k.array(element, side, side), k.array(element, n)
            with k.loop(0, n) as i:
                at = where(i)
                k.store(k.load(table, at % side, (at // 7) % side), out, i)


def sparse_buckets(d: Drawn) -> None:
    """Histograms with private copies, bucketizing by borders, statistics per group, sketches, majority."""
    k = d.k
    style = d.pick("style", ("private", "borders", "uniform", "groups", "moments", "sketch", "two-level", "heavy"))
    element = d.pick("element", ("f32", "f64")) if style in ("borders", "uniform", "moments", "groups") else "i32"
    bins = d.pick("bins", (4, 8, 16, 32, 64, 256))
    n = max(8, d.size(d.work / {"borders": 4 + bins if bins <= 16 else 40, "sketch": 30}.get(style, 12), 8))
    data, counts = k.array(element, n), k.array("i32", bins)
    izero, salt = k.constant(0, "i32"), d.rng.randrange(1 << 16)

    def key(i: Index | Num) -> Num:
        if element == "i32":
            return (k.hashed(k.load(data, i) + k.number(i, "i32"), salt) & (bins - 1)).to("index")
        return ((k.load(data, i) - 0.5) * bins).to("i32").clamp(0, bins - 1).to("index")

    def clear() -> None:
        with k.loop(0, bins) as b:
            k.store(izero, counts, b)

    match style:
        case "private":  # interleaved copies, summed in the end
            copies = d.pick("copies", (2, 4, 8))
            private = k.local("i32", copies, bins)
            with k.loop(0, copies) as c, k.loop(0, bins) as b:
                k.store(izero, private, c, b)
            n = max(copies, n // copies * copies)
            with k.loop(0, n // copies) as i:
                for c in range(copies):
                    place = key(i * copies + c)
                    k.store(k.load(private, k.index(c), place) + 1, private, k.index(c), place)
            with k.loop(0, bins) as b:
                [total] = k.fold(0, copies, [izero], lambda c, t, b=b: [t[0] + k.load(private, c, b)])
                k.store(total, counts, b)
        case "borders":
            borders, out = k.array(element, bins), k.array("i32", n)
            with k.loop(0, bins) as b:
                k.store(k.number(b, element) * (1.0 / bins) + 0.5, borders, b)
            with k.loop(0, n) as i:
                value = k.load(data, i)
                if bins <= 16:
                    [place] = k.fold(
                        0, bins, [izero], lambda b, c, v=value: [c[0] + k.load(borders, b).test("le", v).to("i32")]
                    )
                else:
                    base, step = k.index(0), bins // 2
                    while step:
                        base = k.choose(k.load(borders, base + step).test("le", value), base + step, base)
                        step //= 2
                    place = base.to("i32")
                k.store(place, out, i)
        case "groups" | "moments":
            sums, squares = k.array(element, bins), k.array(element, bins)
            zero = k.constant(0, element)
            clear()
            with k.loop(0, bins) as b:
                k.store(zero, sums, b)
                k.store(zero, squares, b)
            with k.loop(0, n) as i:
                place, value = key(i), k.load(data, i)
                k.store(k.load(counts, place) + 1, counts, place)
                k.store(k.load(sums, place) + value, sums, place)
                extra = value * value if style == "moments" else k.load(squares, place).max(value)
                k.store(k.load(squares, place) + extra if style == "moments" else extra, squares, place)
            with k.loop(0, bins) as b:
                count = k.load(counts, b).to(element).max(1)
                mean = k.load(sums, b) / count
                k.store(mean, sums, b)
                if style == "moments":
                    k.store(k.load(squares, b) / count - mean * mean, squares, b)
        case "sketch":  # count-min
            depth = d.pick("depth", (2, 3, 4))
            table = k.array("i32", depth, bins)
            with k.loop(0, depth) as c, k.loop(0, bins) as b:
                k.store(izero, table, c, b)
            with k.loop(0, n) as i:
                value = k.load(data, i) + (k.number(i, "i32") & 255)
                for c in range(depth):
                    place = (k.hashed(value, salt + 101 * c) & (bins - 1)).to("index")
                    k.store(k.load(table, k.index(c), place) + 1, table, k.index(c), place)
        case "two-level":
            fine = k.array("i32", bins, 16)
            with k.loop(0, bins) as b, k.loop(0, 16) as f:
                k.store(izero, fine, b, f)
            with k.loop(0, n) as i:
                mixed = k.hashed(k.number(i, "i32"), salt)
                place, low = (mixed & (bins - 1)).to("index"), ((mixed >> 20) & 15).to("index")
                k.store(k.load(fine, place, low) + 1, fine, place, low)
            with k.loop(0, bins) as b:
                [total] = k.fold(0, 16, [izero], lambda f, c, b=b: [c[0] + k.load(fine, b, f)])
                k.store(total, counts, b)
        case "heavy":  # majority vote, then its count

            def vote(i: Index, c: list[Num]) -> list[Num]:
                value = k.load(data, i)
                same, none = value.test("eq", c[0]), c[1].test("eq", 0)
                leader = k.choose(none, value, c[0])
                count = k.choose(none, 1, k.choose(same, c[1] + 1, c[1] - 1))
                return [leader, count]

            leader, _ = k.fold(0, n, [izero, izero], vote)
            [total] = k.fold(0, n, [izero], lambda i, c: [c[0] + k.load(data, i).test("eq", leader).to("i32")])
            k.store(total, counts, 0)
        case _:
            clear()
            with k.loop(0, n) as i:
                place = key(i)
                k.store(k.load(counts, place) + 1, counts, place)


KINDS: dict[str, Kind] = {
    "sparse_vector": sparse_vector,
    "sparse_matrix": sparse_matrix,
    "sparse_transposed": sparse_transposed,
    "sparse_graph": sparse_graph,
    "sparse_indirect": sparse_indirect,
    "sparse_buckets": sparse_buckets,
}
FAMILIES = families_of(ORIGIN, KINDS)
