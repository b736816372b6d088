"""Lines that a cache would fetch, from the loop nest alone: what a run of a loop touches stays for the next if it fits.

Accesses of one loop to one memref whose addresses differ in constants only form a group. For each loop around a group
the model knows how many distinct lines one run of that loop touches. A group fetches its lines anew on each run of the
innermost loop whose data, all groups together, does not fit. Lines of a column walk whose rows share cache sets weigh
more; that columns of two memrefs meet in the same sets now and then is not seen. A buffer that is allocated inside a
loop and never freed is new memory each time.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

from .function_view import FunctionView
from .nodes import Access, Loop, product
from .trip_counts import ancestors

LINE_BYTES = 64
L1_BYTES = 32 * 1024
LLC_BYTES = 1024 * 1024
SETS = 64
WAYS = 8
_FITS, _SPILLS = 0.95, 1.1
"""A run that fills less than the first share of a cache stays, one that fills more than the second does not."""

Lines = tuple[float, float]
"""(distinct lines, the same weighted by how unevenly they fall into the L1's sets)."""


class RefGroup:
    """Accesses of one loop to one memref with one linear part."""

    __slots__ = (
        "chain", "count", "elements", "first", "largest", "levels", "loop", "parts", "ranges", "root", "stores",
        "weight",
    )  # fmt: skip

    def __init__(self, access: Access, parts: tuple[object, ...]) -> None:
        self.first = access
        self.parts = parts
        """What the subscripts have in common."""
        self.root = access.root
        self.loop = access.loop
        self.count = 0
        self.stores = 0
        self.weight = 0.0
        self.elements = 1.0
        """Distinct elements in one call."""
        self.ranges = [[i.const, i.const] for i in access.indices]
        self.chain: list[Loop | None] = [*reversed(ancestors(access.loop)), None]
        """The loops around it from the innermost outwards, then None for the function."""
        self.levels: list[Lines] = []
        """Lines of one run of each loop of `chain`, at average trip counts."""
        self.largest: list[Lines] = []
        """The same at the largest trip counts."""

    def add(self, access: Access) -> None:
        """Take in one more access."""
        self.count += 1
        self.weight += access.weight
        self.stores += access.is_store
        for bounds, index in zip(self.ranges, access.indices, strict=False):
            if index.const < bounds[0]:
                bounds[0] = index.const
            elif index.const > bounds[1]:
                bounds[1] = index.const


def ref_groups(view: FunctionView) -> list[RefGroup]:
    """The groups of a function, in order of first appearance."""
    found: dict[Hashable, RefGroup] = {}
    for access in view.accesses:
        if access.node.free:
            continue
        parts = tuple([i.part for i in access.indices]) or (access.address.part,)
        key = (access.root, access.loop, parts)
        group = found.get(key)
        if group is None:
            group = found[key] = RefGroup(access, parts)
        group.add(access)
    return list(found.values())


class CacheModel:
    """See the module."""

    def __init__(self, view: FunctionView) -> None:
        self.view = view
        self.groups = ref_groups(view)
        self.variable = any(loop.max_trip > loop.trip * 1.02 for loop in view.loops)
        self._homes: dict[int, Loop | None] = {}
        self._freed = {v for n in view.nodes if n.name == "memref.dealloc" for v in n.operands}
        alike: dict[Hashable, RefGroup] = {}
        for group in self.groups:
            a = group.first
            walk = (group.loop, group.parts, str(group.ranges), group.count, self._home(group.root))
            key = (walk, a.lanes, a.bits, a.shape, a.strides, a.extent)
            twin = alike.get(key)
            if twin is not None:
                group.levels, group.largest, group.elements = twin.levels, twin.largest, twin.elements
                continue
            group.levels = self._levels(group, largest=False)
            group.largest = self._levels(group, largest=True) if self.variable else group.levels
            alike[key] = group
        self.limits: dict[int, float] = {}
        for group in self.groups:
            a = group.first
            whole = max(1.0, a.extent * a.bits / 8 / LINE_BYTES) * self._copies(group.root)
            self.limits[group.root] = max(self.limits.get(group.root, 0.0), whole)
        self.run, self.run_sets = self._runs(largest=False)
        self.run_largest, self.run_sets_largest = (
            self._runs(largest=True) if self.variable else (self.run, self.run_sets)
        )
        self.cold: dict[int, float] = {}
        """Distinct lines of each root in one call."""
        for group in self.groups:
            self.cold[group.root] = self.cold.get(group.root, 0.0) + group.levels[-1][0]
        self.cold = {r: min(v, self.limits[r]) for r, v in self.cold.items()}

    def _home(self, root: int) -> Loop | None:
        """The loop that allocates a root anew on each iteration and never frees it, if one does."""
        if root not in self._homes:
            maker = self.view.defining.get(root)
            leaks = maker is not None and maker.name == "memref.alloc" and root not in self._freed
            self._homes[root] = maker.loop if maker is not None and leaks else None
        return self._homes[root]

    def _copies(self, root: int) -> float:
        home = self._home(root)
        return 1.0 if home is None else max(1.0, home.execs)

    def _levels(self, group: RefGroup, *, largest: bool) -> list[Lines]:
        access = group.first
        bytes_ = access.bits / 8
        total = max(1.0, access.extent * bytes_ / LINE_BYTES)
        home = self._home(group.root)
        copies = 1.0
        out: list[Lines] = []
        loop = group.loop
        if not access.indices:  # a scalar, or a view that cannot be followed
            lines = total if access.shape else 1.0
            while loop is not None:
                if home is not None and loop.depth <= home.depth:
                    copies *= max(1.0, loop.trip)
                out.append((lines * copies, lines * copies))
                loop = loop.parent
            out.append((lines * copies, lines * copies))
            group.elements = float(access.extent)
            return out
        spans = [float(b[1] - b[0] + 1) for b in group.ranges]
        points = [float(min(b[1] - b[0] + 1, group.count)) for b in group.ranges]
        spans[-1] += access.lanes - 1
        points[-1] *= access.lanes
        terms = [i.terms if i.is_linear() else dict.fromkeys(i.variables(), 1) for i in access.indices]
        direct = {v for coefficients in terms for v in coefficients}
        derived: list[dict[Hashable, int]] = [{} for _ in terms]  # through the start of an inner loop, as a tile's
        moving: list[tuple[Loop, int, int]] = []  # variable inner loops: (loop, dimension, coefficient)
        visits = float(group.count)
        here = _lines(access, spans, points, bytes_, total, visits)
        while loop is not None:
            iv = loop.iv
            trips = max(1.0, loop.max_trip if largest else loop.trip)
            moved = False
            for d, coefficients in enumerate(terms if iv in direct else derived):
                c = coefficients.get(iv)
                if not c:
                    continue
                spans[d] += abs(c) * loop.step * (trips - 1)
                points[d] *= trips
                moved = True
                for lower in loop.lowers:
                    if lower.terms and lower.is_linear():
                        for v, k in lower.terms.items():
                            derived[d][v] = derived[d].get(v, 0) + c * k
                        break
                if not largest and loop.max_trip > trips:
                    moving.append((loop, d, c))
            if moved:
                visits *= trips
            if moving and iv not in direct:
                # a range that grows with this loop reaches its largest, and nothing else moves with it
                for entry in [m for m in moving if any(iv in x.terms for x in m[0].differences)]:
                    inner, d, c = entry
                    spans[d] += abs(c) * inner.step * (inner.max_trip - inner.trip)
                    points[d] *= inner.max_trip / max(inner.trip, 1.0)
                    visits *= inner.max_trip / max(inner.trip, 1.0)
                    moving.remove(entry)
                    moved = True
            if moved:
                here = _lines(access, spans, points, bytes_, total, visits)
            if home is not None and loop.depth <= home.depth:
                copies *= trips
            out.append((here[0] * copies, here[1] * copies))
            loop = loop.parent
        out.append((here[0] * copies, here[1] * copies))
        elements = 1.0
        for span, count, extent in zip(spans, points, access.shape, strict=False):
            elements *= max(1.0, min(span, count, extent))
        if not largest:
            group.elements = min(elements, visits * access.lanes)
        return out

    def _runs(self, *, largest: bool) -> tuple[dict[Loop | None, float], dict[Loop | None, float]]:
        """Loop -> lines of one run of it, None for the function; overlapping groups of one root at most its extent.

        Then the same, weighted by how unevenly the lines fall into sets.
        """
        sums: dict[Loop | None, dict[int, list[float]]] = {}
        for group in self.groups:
            root = group.root
            for loop, (lines, in_sets) in zip(group.chain, group.largest if largest else group.levels, strict=True):
                per_root = sums.get(loop)
                if per_root is None:
                    sums[loop] = {root: [lines, in_sets]}
                elif root in per_root:
                    entry = per_root[root]
                    entry[0] += lines
                    entry[1] += in_sets
                else:
                    per_root[root] = [lines, in_sets]
        plain: dict[Loop | None, float] = {}
        weighted: dict[Loop | None, float] = {}
        for key, per_root in sums.items():
            a = b = 0.0
            for root, (lines, in_sets) in per_root.items():
                limit = self.limits[root]
                a += lines if lines < limit else limit
                b += in_sets if in_sets < limit * SETS else limit * SETS
            plain[key] = a
            weighted[key] = b
        return plain, weighted

    def _overflow(self, key: Loop | None, capacity: float, *, sets: bool) -> float:
        """Probability that a run of a loop does not fit: a ramp at the capacity, mean over a variable loop's runs."""
        mean = (self.run_sets if sets else self.run).get(key, 0.0) / capacity
        most = (self.run_sets_largest if sets else self.run_largest).get(key, 0.0) / capacity
        if most <= _FITS:
            return 0.0
        if most <= mean * 1.02:
            return min(1.0, max(0.0, (mean - _FITS) / (_SPILLS - _FITS)))
        least = max(0.0, 2 * mean - most)
        total = 0.0
        for i in range(8):
            fill = least + (most - least) * (i + 0.5) / 8
            total += min(1.0, max(0.0, (fill - _FITS) / (_SPILLS - _FITS)))
        return total / 8

    def _absent(self, capacity_bytes: float) -> dict[int, float]:
        """Share of each memref argument that a cache lacks after all arguments were written in order."""
        out: dict[int, float] = {}
        room = capacity_bytes
        for argument in reversed(self.view.arguments):
            info = self.view.type_of(argument)
            if info.kind not in ("memref", "tensor"):
                continue
            size = max(1.0, product(self.view.layout(argument)[0]) * (info.element_bits or 32) / 8)
            out[argument] = 1.0 - max(0.0, min(room, size)) / size
            room -= size
        return out

    def fetched(self, capacity_bytes: float, *, sets: bool) -> tuple[float, float]:
        """(lines fetched in one call, the part by groups that store), arguments written in order before."""
        capacity = capacity_bytes / LINE_BYTES
        whole = (self.run_sets_largest if sets else self.run_largest).get(None, 0.0)
        if whole <= _FITS * capacity:  # nothing is fetched twice
            absent = self._absent(capacity_bytes)
            stored = {g.root for g in self.groups if g.stores}
            made = self.view.defining
            lines_of = {r: v * (1.0 if r in made else absent.get(r, 0.0)) for r, v in self.cold.items()}
            return sum(lines_of.values()), sum(v for r, v in lines_of.items() if r in stored)
        overflow: dict[Loop | None, float] = {}
        # (loop, root) -> [lines if it overflows there, those times probability, the part of groups that store, entries]
        parts: dict[tuple[Loop, int], list[float]] = {}
        last: dict[int, list[float]] = {}
        for group in self.groups:
            before = 0.0
            root = group.root
            for loop, (lines, _) in zip(group.chain, group.levels, strict=True):
                p = overflow.get(loop)
                if p is None:
                    p = overflow[loop] = self._overflow(loop, capacity, sets=sets)
                if loop is None:
                    if p < before:
                        p = before
                    entry = last.setdefault(root, [0.0, 0.0, 0.0, 0.0])
                    entry[0] += lines
                    entry[1] += lines * (p - before)
                    entry[2] += lines * (1 - p)
                    entry[3] += lines if group.stores else 0.0
                elif p > before:
                    part = parts.setdefault((loop, root), [0.0, 0.0, 0.0, max(loop.entries, 1.0)])
                    part[0] += lines
                    part[1] += lines * (p - before)
                    part[2] += lines * (p - before) if group.stores else 0.0
                    before = p
        total = stores = 0.0
        for (_, root), (lines, likely, storing, entries) in parts.items():
            scale = min(1.0, self.limits[root] / lines) * entries if lines else 0.0
            total += likely * scale
            stores += storing * scale
        absent = self._absent(capacity_bytes)
        for root, (lines, away, there, storing) in last.items():
            if not lines:
                continue
            new = root in self.view.defining
            share = (away + there * (1.0 if new else absent.get(root, 0.0))) / lines
            fetched = min(lines, self.limits[root]) * share
            total += fetched
            stores += fetched * storing / lines
        most = sum([g.weight * (1 + g.first.bytes / LINE_BYTES) for g in self.groups])
        return min(total, max(most, 1.0)), min(stores, max(most, 1.0))


def _lines(
    access: Access, spans: list[float], points: list[float], bytes_: float, total: float, visits: float
) -> Lines:
    """Lines of a box: its reach and the number of subscripts in each dimension, and the number of accesses."""
    most = visits * (1 + access.bytes / LINE_BYTES)
    if most < total:
        total = most
    shape, strides = access.shape, access.strides
    last = len(spans) - 1
    rows = 1.0
    for d in range(last):
        distinct = spans[d] if spans[d] < points[d] else points[d]
        if distinct > shape[d]:
            distinct = shape[d]
        if distinct > 1:
            rows *= distinct
    extent = shape[last]
    span = spans[last]
    if span > extent:
        span = extent if extent > 1 else 1.0
    stride = strides[last]
    row_lines = (span - 1) * (stride if stride > 1 else 1) * bytes_ / LINE_BYTES + 1
    if span < row_lines:
        row_lines = span
    if points[last] < row_lines:
        row_lines = points[last]
    if rows <= 1:
        lines = row_lines if row_lines > 1 else 1.0
        if lines > total:
            lines = total
        return lines, lines
    row_bytes = strides[-2] * bytes_
    if row_bytes < LINE_BYTES:  # several rows share a line
        row_lines *= row_bytes / LINE_BYTES
    elif span >= extent and row_bytes < row_lines * LINE_BYTES:  # whole rows follow one another
        row_lines = row_bytes / LINE_BYTES
    lines = rows * row_lines
    if lines < 1:
        lines = 1.0
    if lines > total:
        lines = total
    if row_bytes >= LINE_BYTES and row_bytes % LINE_BYTES == 0:
        covered = SETS / math.gcd(int(row_bytes) // LINE_BYTES, SETS)
        if row_lines > 1:
            covered *= row_lines
        if covered < SETS and rows * row_lines > covered * WAYS:
            return lines, lines * SETS / covered
    return lines, lines


def cache_model(view: FunctionView) -> CacheModel:
    """The view's cache model, computed once."""
    known: CacheModel | None = view.memo.get("cache_model")
    if known is None:
        known = view.memo["cache_model"] = CacheModel(view)
    return known
