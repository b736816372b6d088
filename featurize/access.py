"""Feature group `access`: strides of each access in each loop, distinct data touched, and lines fetched through two caches."""

from __future__ import annotations

import math
from collections.abc import Hashable

from .function_view import Access, FunctionView, Loop
from .inner_loops import bodies, hot_body

LINE_BYTES = 64
L1_BYTES = 32 * 1024
LLC_BYTES = 1024 * 1024
_L1_SETS = 64
_L1_WAYS = 8
_KINDS = ("stride0", "unit", "small", "large")
LEVELS = 3
"""Footprints stated for the hottest innermost loop and the loops around it."""

FEATURES: dict[str, tuple[str, str]] = {
    "access.count": ("loads and stores, implied ones of linalg included", "count"),
    "access.loads": ("loads", "count"),
    "access.stores": ("stores", "count"),
    "access.roots": ("different memrefs accessed, subviews and casts followed", "count"),
    "access.roots_stored": ("of those, stored to", "count"),
    "access.roots_both": ("of those, loaded and stored", "count"),
    "access.groups": ("different addresses apart from a constant: (memref, linear part)", "count"),
    "access.distinct": ("different addresses: (memref, linear form)", "count"),
    "access.repeated": ("accesses whose address another access of the same block has", "count"),
    "access.unknown": ("accesses whose address is not a function of loop variables and constants", "count"),
    "access.nonlinear": ("accesses with mod, floordiv, min or max in the address", "count"),
    "access.stride0": ("accesses that do not move in their innermost loop", "count"),
    "access.unit": ("accesses that move by one element (or one vector) in their innermost loop", "count"),
    "access.small": ("accesses that move by at most 64 bytes in their innermost loop, unit apart", "count"),
    "access.large": ("accesses that move by more than 64 bytes in their innermost loop", "count"),
    **{f"access.{k}_share": (f"share of the executed accesses that are of kind access.{k}", "share") for k in _KINDS},
    "access.unit_stride_share": (
        "share of the executed accesses in loops that move by one element or not at all",
        "share",
    ),
    "access.negative": ("accesses that move backwards in their innermost loop", "count"),
    "access.outside": ("accesses outside all loops", "count"),
    "access.large_log": ("log1p of executions of accesses that move by more than 64 bytes", "log count"),
    **{
        f"access.outer_{k}_share": (f"as access.{k}_share, for the loop around the innermost one", "share")
        for k in _KINDS
    },
    "access.footprint_bytes": ("distinct bytes touched, all memrefs", "bytes"),
    "access.footprint_bytes_log": ("log1p of access.footprint_bytes", "log bytes"),
    "access.footprint_max_log": ("log1p of the distinct bytes of the memref touched most", "log bytes"),
    "access.footprint_stored_log": ("log1p of the distinct bytes of the memrefs stored to", "log bytes"),
    "access.reuse_log": ("log1p of bytes moved over distinct bytes", "log ratio"),
    "access.lines_cold": ("distinct cache lines touched", "lines"),
    "access.lines_l1": ("estimated lines fetched through a 32 KiB L1 after the arguments were written in order", "lines"),
    "access.lines_llc": ("estimated lines fetched through a 1 MiB last-level cache after the arguments were written in order", "lines"),
    "access.lines_cold_log": ("log1p of access.lines_cold", "log lines"),
    "access.lines_l1_log": ("log1p of access.lines_l1", "log lines"),
    "access.lines_l1_upper_log": ("log1p of the same with half the L1, so that borderline programs show", "log lines"),
    "access.lines_l1_store_log": ("log1p of the part of access.lines_l1 that stores cause", "log lines"),
    "access.lines_llc_log": ("log1p of access.lines_llc", "log lines"),
    "access.lines_l1_per_access": ("access.lines_l1 over executed accesses", "share"),
    "access.fits_l1": ("log2 of the footprint over 32 KiB, held within [-10, 20]", "log2 ratio"),
    "access.fits_llc": ("log2 of the footprint over 1 MiB, held within [-15, 15]", "log2 ratio"),
    "access.conflict_log": ("log1p of executions of accesses that walk a column whose rows share L1 sets", "log count"),
    **{
        f"access.level{i}_bytes_log": (
            f"log1p of the bytes touched by one run of loop {i}, counted outwards from the hottest innermost loop",
            "log bytes",
        )
        for i in range(LEVELS)
    },
    "access.streams": ("memory streams of the hottest innermost loop", "count"),
    "access.hot_roots": ("different memrefs in the hottest innermost loop", "count"),
    "access.hot_groups": ("different addresses apart from a constant in the hottest innermost loop", "count"),
    "access.hot_unit": ("unit-stride accesses in the hottest innermost loop", "count"),
    "access.hot_strided": ("accesses with a larger stride in the hottest innermost loop", "count"),
    "access.hot_invariant_loads": ("loads that do not move in the hottest innermost loop", "count"),
    "access.hot_invariant_stores": ("stores that do not move in the hottest innermost loop", "count"),
    "access.hot_alias_pairs": (
        "(stored memref, other memref) pairs to tell apart at run time in the hottest innermost loop",
        "count",
    ),
    "access.alias_pairs_max": ("most such pairs of any innermost loop", "count"),
    "access.reduction_memory": ("innermost loops' load-store pairs on one address that does not move", "count"),
    "access.reduction_memory_share": ("share of executions in innermost loops with such a pair", "share"),
    "access.recurrences": (
        "innermost loops' load-store pairs where a later iteration reads what an earlier one wrote",
        "count",
    ),
    "access.recurrence_share": ("share of executions in innermost loops with such a pair", "share"),
    "access.recurrence_distance": ("smallest distance of such a pair, 0 where none", "iterations"),
}


class _Group:
    """Accesses of one loop to one memref with one linear part: they differ in constants only."""

    __slots__ = ("bits", "count", "first", "levels", "loads", "loop", "ranges", "root", "row", "stores", "weight")

    def __init__(self, access: Access) -> None:
        self.first = access
        self.root = access.root
        self.loop = access.loop
        self.bits = access.bits
        self.count = 0
        self.loads = self.stores = 0
        self.weight = 0.0
        self.ranges: list[list[int]] = [[i.const, i.const] for i in access.indices]
        self.row = access.shape[-1] if access.shape else 1
        self.levels: list[tuple[float, float]] = []
        """(lines, lines as the L1's sets see them) for each loop from the innermost outwards, then for the function."""

    def add(self, access: Access) -> None:
        self.count += 1
        self.weight += access.weight
        if access.is_store:
            self.stores += 1
        else:
            self.loads += 1
        for bounds, index in zip(self.ranges, access.indices, strict=False):
            if index.const < bounds[0]:
                bounds[0] = index.const
            elif index.const > bounds[1]:
                bounds[1] = index.const


def _groups(view: FunctionView) -> list[_Group]:
    found: dict[Hashable, _Group] = {}
    for access in view.accesses:
        key = (access.root, id(access.loop), *(frozenset(i.terms.items()) for i in access.indices)) if access.indices else (
            access.root, id(access.loop), frozenset(access.address.terms.items()))  # fmt: skip
        group = found.get(key)
        if group is None:
            group = found[key] = _Group(access)
        group.add(access)
    return list(found.values())


def _fill_levels(group: _Group) -> None:
    """Distinct lines of a group while the loops around it run, one loop more at each level."""
    access = group.first
    lanes = access.lanes
    bytes_ = group.bits / 8
    total_lines = max(1.0, access.extent * bytes_ / LINE_BYTES)
    if not access.indices:
        # no subscripts known: a scalar, or a view we cannot follow
        lines = total_lines if access.shape else 1.0
        loop = group.loop
        while loop is not None:
            group.levels.append((lines, lines))
            loop = loop.parent
        group.levels.append((lines, lines))
        return
    rank = len(access.indices)
    spans = [float(b[1] - b[0] + 1) for b in group.ranges]
    spans[-1] += lanes - 1
    points = [float(min(b[1] - b[0] + 1, group.count)) for b in group.ranges]
    terms: list[dict[Hashable, int]] = []
    for index in access.indices:
        if index.is_linear():
            terms.append(dict(index.terms))  # type: ignore[arg-type]
        else:
            terms.append(dict.fromkeys(index.variables(), 1))
    loop = group.loop
    group.levels.append(_lines(access, spans, points, bytes_, total_lines, lanes))
    while loop is not None:
        for d in range(rank):
            c = terms[d].get(loop.iv)
            if c:
                trips = max(1.0, loop.trip)
                spans[d] += abs(c) * loop.step * (trips - 1)
                points[d] *= trips
        group.levels.append(_lines(access, spans, points, bytes_, total_lines, lanes))
        loop = loop.parent
    del group.levels[0]
    if group.loop is None:
        group.levels.append(_lines(access, spans, points, bytes_, total_lines, lanes))
    else:
        group.levels.append(group.levels[-1])


def _lines(
    access: Access, spans: list[float], points: list[float], bytes_: float, total_lines: float, lanes: int
) -> tuple[float, float]:
    shape, strides = access.shape, access.strides
    rows = 1.0
    for d in range(len(spans) - 1):
        rows *= min(spans[d], points[d], max(1.0, shape[d]))
    inner_stride = max(1, strides[-1])
    inner_span = min(spans[-1], max(1.0, shape[-1]))
    inner_points = min(points[-1] * lanes, inner_span)
    row_lines = min(inner_points, (inner_span - 1) * inner_stride * bytes_ / LINE_BYTES + 1)
    if len(spans) > 1 and rows > 1:
        row_bytes = strides[-2] * bytes_
        if row_bytes < LINE_BYTES:  # several rows share a line
            row_lines = max(row_lines * row_bytes / LINE_BYTES, row_bytes / LINE_BYTES)
        elif inner_span >= shape[-1]:  # whole rows follow one another
            row_lines = min(row_lines, row_bytes / LINE_BYTES)
    lines = min(max(1.0, rows * row_lines), total_lines if total_lines >= 1 else 1.0)
    seen = lines
    if rows > 1 and len(spans) > 1:
        row_bytes_whole = int(strides[-2] * bytes_)
        if row_bytes_whole >= LINE_BYTES and row_bytes_whole % LINE_BYTES == 0:
            step = row_bytes_whole // LINE_BYTES
            sets = min(float(_L1_SETS), (_L1_SETS / math.gcd(step, _L1_SETS)) * max(1.0, row_lines))
            if rows * row_lines > sets * _L1_WAYS:
                seen = lines * _L1_SETS / sets
    return lines, seen


class CacheModel:
    """Lines fetched, by a reuse model over the loop nest: what one run of a loop touches stays if it fits."""

    def __init__(self, view: FunctionView) -> None:
        self.groups = _groups(view)
        self.view = view
        self.limits: dict[int, float] = {}
        self.root_lines: dict[int, float] = {}
        for group in self.groups:
            _fill_levels(group)
            a = group.first
            self.limits[group.root] = max(
                self.limits.get(group.root, 0.0), max(1.0, a.extent * a.bits / 8 / LINE_BYTES)
            )
        # bytes touched by one run of each loop (key 0: the function), in lines; per root at most its extent
        sums: dict[int, dict[int, float]] = {}
        seen: dict[int, dict[int, float]] = {}
        for group in self.groups:
            loop: Loop | None = group.loop
            for lines, in_sets in group.levels:
                key = id(loop) if loop is not None else 0
                per_root = sums.setdefault(key, {})
                per_root[group.root] = per_root.get(group.root, 0.0) + lines
                per_set = seen.setdefault(key, {})
                per_set[group.root] = per_set.get(group.root, 0.0) + in_sets
                if loop is None:
                    break
                loop = loop.parent
        self.run_lines = {key: sum(min(v, self.limits[r]) for r, v in per.items()) for key, per in sums.items()}
        self.run_lines_sets = {
            key: sum(min(v, max(self.limits[r], self.limits[r] * v / max(sums[key][r], 1.0))) for r, v in per.items())
            for key, per in seen.items()
        }
        self.root_lines = {r: min(v, self.limits[r]) for r, v in sums.get(0, {}).items()}

    def _not_resident(self, capacity_bytes: float) -> dict[int, float]:
        """Share of each memref argument that a cache does not hold after all arguments were written in order."""
        out: dict[int, float] = {}
        room = capacity_bytes
        for argument in reversed(self.view.arguments):
            info = self.view.type_of(argument)
            if info.kind not in ("memref", "tensor"):
                continue
            shape = self.view.layout(argument)[0]
            size = max(1.0, math.prod(shape) * (info.element_bits or 32) / 8)
            kept = max(0.0, min(room, size))
            out[argument] = 1.0 - kept / size
            room -= size
        return out

    def fetched(self, capacity_bytes: float, *, sets: bool) -> tuple[float, float]:
        """(lines fetched in one call, the part whose group stores)."""
        capacity = capacity_bytes / LINE_BYTES
        run = self.run_lines_sets if sets else self.run_lines
        stored = {g.root for g in self.groups if g.stores}
        if run.get(0, 0.0) <= capacity:
            away = self._not_resident(capacity_bytes)
            missed = {r: v * away.get(r, 1.0) for r, v in self.root_lines.items()}
            return sum(missed.values()), sum(v for r, v in missed.items() if r in stored)
        total = stores = 0.0
        cold: dict[int, float] = {}
        cold_stores: set[int] = set()
        # groups of one loop and root overlap: at most the root's extent for each run
        merged: dict[tuple[int, int], list[float]] = {}
        for group in self.groups:
            loop: Loop | None = group.loop
            level = 0
            while loop is not None and run[id(loop)] <= capacity:
                loop = loop.parent
                level += 1
            lines = group.levels[min(level, len(group.levels) - 1)][0]
            if loop is None:
                cold[group.root] = cold.get(group.root, 0.0) + lines
                if group.stores:
                    cold_stores.add(group.root)
                continue
            entry = merged.setdefault((id(loop), group.root), [0.0, 0.0, max(loop.entries, 0.0)])
            entry[0] += lines
            if group.stores:
                entry[1] += lines
        for (_, root), (lines, store_lines, entries) in merged.items():
            scale = min(1.0, self.limits[root] / lines) if lines else 1.0
            # a direct-mapped view of a thrashing nest never loads less than once an access allows
            total += lines * scale * max(entries, 1.0)
            stores += store_lines * scale * max(entries, 1.0)
        for root, lines in cold.items():
            part = min(lines, self.limits[root])
            total += part
            if root in cold_stores:
                stores += part
        accesses = sum(g.weight for g in self.groups)
        return min(total, max(accesses, 1.0)), min(stores, max(accesses, 1.0))


def cache_model(view: FunctionView) -> CacheModel:
    """The view's cache model, computed once."""
    known: CacheModel | None = view.memo.get("cache_model")
    if known is None:
        known = view.memo["cache_model"] = CacheModel(view)
    return known


def access(view: FunctionView) -> dict[str, float]:
    """All features of `FEATURES`."""
    out = dict.fromkeys(FEATURES, 0.0)
    kinds = dict.fromkeys(_KINDS, 0.0)
    outer = dict.fromkeys(_KINDS, 0.0)
    distinct: dict[Hashable, int] = {}
    repeated = 0
    weight = outer_weight = conflict = large = 0.0
    for a in view.accesses:
        weight += a.weight
        if not a.known:
            out["access.unknown"] += 1
        if not a.address.is_linear():
            out["access.nonlinear"] += 1
        key = (a.root, a.address.key, a.node.block)
        if key in distinct:
            repeated += 1
        distinct[key] = 1
        loop = a.loop
        if loop is None:
            out["access.outside"] += 1
            continue
        stride = view.stride(a, loop)
        kind = _kind(stride, a)
        out[f"access.{kind}"] += 1
        kinds[kind] += a.weight
        if stride < 0:
            out["access.negative"] += 1
        if kind == "large":
            large += a.weight
            step = abs(stride) * a.bits // 8
            if step % LINE_BYTES == 0:
                sets = _L1_SETS // math.gcd(step // LINE_BYTES, _L1_SETS)
                if loop.trip > sets * _L1_WAYS:
                    conflict += a.weight
        if loop.parent is not None:
            outer[_kind(view.stride(a, loop.parent), a)] += a.weight
            outer_weight += a.weight
    roots = {a.root for a in view.accesses}
    stored = {a.root for a in view.accesses if a.is_store}
    loaded = {a.root for a in view.accesses if not a.is_store}
    model = cache_model(view)
    bytes_of = {r: lines * LINE_BYTES for r, lines in model.root_lines.items()}
    exact = _footprints(view, model)
    footprint = sum(exact.values())
    lines_l1, lines_l1_stores = model.fetched(L1_BYTES, sets=True)
    lines_upper, _ = model.fetched(L1_BYTES / 2, sets=True)
    lines_llc, _ = model.fetched(LLC_BYTES, sets=False)
    cold = sum(model.root_lines.values())
    moved = sum(a.weight * a.bytes for a in view.accesses)
    out.update(
        {
            "access.count": float(len(view.accesses)),
            "access.loads": float(sum(not a.is_store for a in view.accesses)),
            "access.stores": float(sum(a.is_store for a in view.accesses)),
            "access.roots": float(len(roots)),
            "access.roots_stored": float(len(stored)),
            "access.roots_both": float(len(stored & loaded)),
            "access.groups": float(len({(a.root, frozenset(a.address.terms.items())) for a in view.accesses})),
            "access.distinct": float(len({(a.root, a.address.key) for a in view.accesses})),
            "access.repeated": float(repeated),
            "access.large_log": math.log1p(large),
            "access.footprint_bytes": footprint,
            "access.footprint_bytes_log": math.log1p(footprint),
            "access.footprint_max_log": math.log1p(max(exact.values(), default=0.0)),
            "access.footprint_stored_log": math.log1p(sum(v for r, v in exact.items() if r in stored)),
            "access.reuse_log": math.log1p(moved / footprint) if footprint else 0.0,
            "access.lines_cold": cold,
            "access.lines_l1": lines_l1,
            "access.lines_llc": lines_llc,
            "access.lines_cold_log": math.log1p(cold),
            "access.lines_l1_log": math.log1p(lines_l1),
            "access.lines_l1_upper_log": math.log1p(lines_upper),
            "access.lines_l1_store_log": math.log1p(lines_l1_stores),
            "access.lines_llc_log": math.log1p(lines_llc),
            "access.lines_l1_per_access": lines_l1 / weight if weight else 0.0,
            "access.conflict_log": math.log1p(conflict),
        }
    )
    del bytes_of
    if footprint:
        out["access.fits_l1"] = max(-10.0, min(20.0, math.log2(footprint / L1_BYTES)))
        out["access.fits_llc"] = max(-15.0, min(15.0, math.log2(footprint / LLC_BYTES)))
    else:
        out["access.fits_l1"], out["access.fits_llc"] = -10.0, -15.0
    inside = sum(kinds.values())
    if inside:
        for k in _KINDS:
            out[f"access.{k}_share"] = kinds[k] / inside
        out["access.unit_stride_share"] = (kinds["unit"] + kinds["stride0"]) / inside
    if outer_weight:
        for k in _KINDS:
            out[f"access.outer_{k}_share"] = outer[k] / outer_weight
    all_bodies = bodies(view)
    execs = sum(b.executed_ops for b in all_bodies)
    hot = hot_body(view)
    out["access.streams"] = float(hot.streams)
    out["access.hot_roots"] = float(hot.roots)
    out["access.hot_groups"] = float(hot.groups)
    out["access.hot_unit"] = float(hot.unit)
    out["access.hot_strided"] = float(hot.gathered)
    out["access.hot_invariant_loads"] = float(hot.invariant_loads)
    out["access.hot_invariant_stores"] = float(hot.invariant_stores)
    out["access.hot_alias_pairs"] = float(hot.store_pairs)
    out["access.alias_pairs_max"] = float(max(b.store_pairs for b in all_bodies))
    out["access.reduction_memory"] = float(sum(b.memory_reductions for b in all_bodies))
    out["access.recurrences"] = float(sum(b.recurrences for b in all_bodies))
    distances = [b.distance for b in all_bodies if b.distance]
    out["access.recurrence_distance"] = min(distances, default=0.0)
    if execs:
        out["access.reduction_memory_share"] = sum(b.executed_ops for b in all_bodies if b.memory_reductions) / execs
        out["access.recurrence_share"] = sum(b.executed_ops for b in all_bodies if b.recurrences) / execs
    loop_: Loop | None = hot.loop
    for i in range(LEVELS):
        if loop_ is None:
            break
        out[f"access.level{i}_bytes_log"] = math.log1p(model.run_lines.get(id(loop_), 0.0) * LINE_BYTES)
        loop_ = loop_.parent
    return out


def _footprints(view: FunctionView, model: CacheModel) -> dict[int, float]:
    """Distinct bytes of each root: exact for whole walks of a memref, else by lines, never more than the memref holds."""
    out = {}
    for group in model.groups:
        whole = group.first.extent * group.bits / 8
        out[group.root] = min(whole, model.root_lines.get(group.root, 0.0) * LINE_BYTES)
    return out


def _kind(stride: int, a: Access) -> str:
    if stride == 0:
        return "stride0"
    if abs(stride) == 1 or abs(stride) == a.lanes:
        return "unit"
    return "small" if abs(stride) * a.bits / 8 <= LINE_BYTES else "large"
