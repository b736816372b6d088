"""Feature group `access`: strides of each access in each loop, distinct data, lines fetched through two caches."""

from __future__ import annotations

import math

from .cache import L1_BYTES, LINE_BYTES, LLC_BYTES, SETS, WAYS, CacheModel, cache_model
from .function_view import FunctionView
from .inner_loops import bodies, hot_body
from .nodes import Access, Loop

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
    "access.masked": ("vector transfers that are not in bounds for certain: they are masked", "count"),
    "access.broadcasts": ("vector transfers that repeat elements", "count"),
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
    "access.lines_l1": (
        "estimated lines fetched through a 32 KiB L1 after the arguments were written in order",
        "lines",
    ),
    "access.lines_llc": (
        "estimated lines fetched through a 1 MiB last-level cache after the arguments were written in order",
        "lines",
    ),
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


def access(view: FunctionView) -> dict[str, float]:
    """All features of `FEATURES`."""
    out = dict.fromkeys(FEATURES, 0.0)
    accesses = view.accesses
    counts = dict.fromkeys(_KINDS, 0)
    kinds = dict.fromkeys(_KINDS, 0.0)
    outer = dict.fromkeys(_KINDS, 0.0)
    seen: set[tuple[int, int, int]] = set()
    unknown = masked = broadcasts = nonlinear = outside = negative = n_stores = 0
    weight = outer_weight = conflict = large = moved = 0.0
    loaded: set[int] = set()
    stored: set[int] = set()
    for a in accesses:
        own = a.weight
        weight += own
        moved += own * a.bytes
        seen.add((a.group, a.address.const, a.node.block))
        if a.is_store:
            n_stores += 1
            stored.add(a.root)
        else:
            loaded.add(a.root)
        unknown += not a.known
        masked += a.masked
        broadcasts += a.broadcast
        nonlinear += not a.linear
        loop = a.loop
        if loop is None:
            outside += 1
            continue
        stride = a.stride
        kind = _kind(stride, a)
        counts[kind] += 1
        kinds[kind] += own
        if stride < 0:
            negative += 1
        if kind == "large":
            large += own
            step = abs(stride) * a.bits // 8
            if step % LINE_BYTES == 0:
                sets = SETS // math.gcd(step // LINE_BYTES, SETS)
                if loop.trip > sets * WAYS:
                    conflict += own
        parent = loop.parent
        if parent is not None:
            outer[_kind(a.stride_in(parent), a)] += own
            outer_weight += own
    model = cache_model(view)
    exact = _footprints(model)
    footprint = sum(exact.values())
    lines_l1, lines_l1_stores = model.fetched(L1_BYTES, sets=True)
    lines_upper, _ = model.fetched(L1_BYTES / 2, sets=True)
    lines_llc, _ = model.fetched(LLC_BYTES, sets=False)
    cold = sum(model.cold.values())
    out.update(
        {
            "access.count": float(len(accesses)),
            "access.loads": float(len(accesses) - n_stores),
            "access.stores": float(n_stores),
            "access.roots": float(len(stored | loaded)),
            "access.roots_stored": float(len(stored)),
            "access.roots_both": float(len(stored & loaded)),
            "access.groups": float(len(view.access_groups)),
            "access.distinct": float(len({(group, const) for group, const, _ in seen})),
            "access.repeated": float(len(accesses) - len(seen)),
            "access.unknown": float(unknown),
            "access.nonlinear": float(nonlinear),
            "access.stride0": float(counts["stride0"]),
            "access.unit": float(counts["unit"]),
            "access.small": float(counts["small"]),
            "access.large": float(counts["large"]),
            "access.masked": float(masked),
            "access.broadcasts": float(broadcasts),
            "access.negative": float(negative),
            "access.outside": float(outside),
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
        out[f"access.level{i}_bytes_log"] = math.log1p(model.run.get(loop_, 0.0) * LINE_BYTES)
        loop_ = loop_.parent
    return out


def _footprints(model: CacheModel) -> dict[int, float]:
    """Distinct bytes of each root: the elements of its groups, together at most what it holds."""
    out: dict[int, float] = {}
    whole: dict[int, float] = {}
    for group in model.groups:
        bytes_ = group.first.bits / 8
        out[group.root] = out.get(group.root, 0.0) + group.elements * bytes_
        whole[group.root] = max(whole.get(group.root, 0.0), group.first.extent * bytes_)
    return {root: min(touched, whole[root]) for root, touched in out.items()}


def _kind(stride: int, a: Access) -> str:
    if stride == 0:
        return "stride0"
    if abs(stride) == 1 or abs(stride) == a.lanes:
        return "unit"
    return "small" if abs(stride) * a.bits <= 8 * LINE_BYTES else "large"
