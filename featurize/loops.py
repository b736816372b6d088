"""Feature group `loops`: depth, trip counts, the shape of the nests, and sizes after small loops are unrolled."""

from __future__ import annotations

import math

from .function_view import FunctionView
from .inner_loops import bodies, hot_body, unrolled_sizes
from .nodes import Loop
from .op_classes import WHILE_LOOPS

LEVELS = 4
"""Loops described one by one: the hottest innermost loop (hot0) and the loops around it (hot1, hot2, hot3)."""
_LEVEL: dict[str, tuple[str, str]] = {
    "trip": ("average trip count", "iterations"),
    "execs_log": ("log1p of body executions", "log count"),
    "ops": ("operations directly in its body", "count"),
    "children": ("loops directly inside", "count"),
    "constant": ("1 where the trip count is the same each time", "flag"),
    "step": ("step", "count"),
    "rest4": ("trip count modulo 4", "count"),
    "rest8": ("trip count modulo 8", "count"),
    "rest32": ("trip count modulo 32", "count"),
    "unrolled_log": ("log1p of the instructions of its body once small constant inner loops are unrolled", "log count"),
}
FEATURES: dict[str, tuple[str, str]] = {
    "loops.count": ("loops; each dimension of a parallel loop or linalg op is one", "count"),
    "loops.max_depth": ("deepest nesting", "count"),
    "loops.top": ("outermost loops", "count"),
    "loops.innermost": ("loops without a loop inside", "count"),
    "loops.innermost_depth_mean": ("mean depth of the innermost loops, weighted by executions", "count"),
    "loops.max_trip": ("largest trip count", "iterations"),
    "loops.min_trip": ("smallest average trip count", "iterations"),
    "loops.innermost_trip_mean": ("mean trip count of the innermost loops, weighted by their entries", "iterations"),
    "loops.volume_max": ("largest number of executions of one loop body", "count"),
    "loops.volume_max_log": ("log1p of loops.volume_max", "log count"),
    "loops.innermost_entries": (
        "how often innermost loops are entered (each exit is a branch hard to predict)",
        "count",
    ),
    "loops.innermost_entries_log": ("log1p of loops.innermost_entries", "log count"),
    "loops.exits_log": ("log1p of loop entries over all loops", "log count"),
    "loops.perfect": ("1 where each loop with a loop inside holds nothing else", "flag"),
    "loops.imperfect": ("loops that hold a loop and other work, or several loops", "count"),
    "loops.unknown": (
        "loops whose trip count the text does not tell (taken as 16, or the middle of a known range)",
        "count",
    ),
    "loops.constant": ("loops with the same trip count each time", "count"),
    "loops.variable": ("loops whose trip count depends on outer loops", "count"),
    "loops.while": ("loops with a condition of their own: scf.while and those of graph dialects", "count"),
    "loops.parallel": ("loops marked parallel", "count"),
    "loops.reduction": ("reduction dimensions of linalg ops", "count"),
    "loops.carried": ("loop-carried values", "count"),
    "loops.carried_max": ("most loop-carried values of one loop", "count"),
    "loops.step_not_one": ("loops with a step other than 1", "count"),
    "loops.tile_like": ("loops whose start depends on an outer loop", "count"),
    "loops.branches": ("conditionals", "count"),
    "loops.branches_unknown": ("conditionals whose probability the text does not tell (taken as 1/2)", "count"),
    "loops.branch_entropy_log": (
        "log1p of executions times 4p(1-p) over conditionals: mispredictions to fear",
        "log count",
    ),
    "loops.back_edges": ("back edges of a control-flow graph in the function", "count"),
    "loops.unrolled_size": ("instructions of the function once small constant inner loops are unrolled", "count"),
    "loops.unrolled_size_log": ("log1p of loops.unrolled_size", "log count"),
    "loops.full_unroll": ("loops that LLVM would unroll fully (trip × body within 300 instructions)", "count"),
    "loops.kept": ("loops left after full unrolling", "count"),
    "loops.kept_innermost": ("innermost loops left after full unrolling", "count"),
    "loops.kept_size_max": ("largest body of those, in instructions", "count"),
    "loops.kept_size_sum": ("sum of their bodies, in instructions", "count"),
    "loops.remainder": ("innermost loops whose trip count is not a multiple of 8 or not constant", "count"),
    "loops.hot_share": ("share of the estimated cycles in the hottest innermost loop", "share"),
    **{
        f"loops.hot{i}.{k}": (
            f"{m}; loop {i} counted outwards from the hottest innermost loop (0 where there is none)",
            u,
        )
        for i in range(LEVELS)
        for k, (m, u) in _LEVEL.items()
    },
}


def loops(view: FunctionView) -> dict[str, float]:
    """All features of `FEATURES`."""
    nests = view.loops
    inner = [loop for loop in nests if not loop.children]
    sizes, gone = unrolled_sizes(view)
    out = dict.fromkeys(FEATURES, 0.0)
    out["loops.unrolled_size"] = sizes[0]
    out["loops.unrolled_size_log"] = math.log1p(sizes[0])
    out["loops.branches"] = float(view.branches)
    out["loops.branches_unknown"] = float(view.unknown_branches)
    out["loops.branch_entropy_log"] = math.log1p(view.branch_entropy)
    out["loops.back_edges"] = float(view.back_edges)
    out["loops.perfect"] = 1.0
    if not nests:
        return out
    kept = [loop for loop in nests if id(loop) not in gone]
    kept_inner = [loop for loop in kept if all(id(c) in gone for c in loop.children)]
    imperfect = 0
    for loop in nests:
        if loop.children:
            work = sum(
                1 for n in loop.nodes if n.cls not in ("const", "loop") and not (n.cls == "yield" and not n.operands)
            )
            imperfect += work > 0 or len(loop.children) > 1
    entries = sum(loop.entries for loop in inner)
    execs = sum(loop.execs for loop in inner)
    all_bodies = bodies(view)
    cycles = [b.execs * max(b.cycles, 0.25) for b in all_bodies]
    volume = max(loop.execs for loop in nests)
    out.update(
        {
            "loops.count": float(len(nests)),
            "loops.max_depth": float(max(loop.depth for loop in nests)),
            "loops.top": float(len(view.top_loops)),
            "loops.innermost": float(len(inner)),
            "loops.innermost_depth_mean": sum(loop.depth * loop.execs for loop in inner) / execs if execs else 0.0,
            "loops.max_trip": max(loop.max_trip for loop in nests),
            "loops.min_trip": min(loop.trip for loop in nests),
            "loops.innermost_trip_mean": execs / entries if entries else 0.0,
            "loops.volume_max": volume,
            "loops.volume_max_log": math.log1p(volume),
            "loops.innermost_entries": entries,
            "loops.innermost_entries_log": math.log1p(entries),
            "loops.exits_log": math.log1p(sum(loop.entries for loop in nests)),
            "loops.perfect": float(imperfect == 0),
            "loops.imperfect": float(imperfect),
            "loops.unknown": float(sum(loop.unknown for loop in nests)),
            "loops.constant": float(sum(loop.constant_trip and not loop.unknown for loop in nests)),
            "loops.variable": float(sum(not loop.constant_trip and not loop.unknown for loop in nests)),
            "loops.while": float(sum(loop.kind in WHILE_LOOPS for loop in nests)),
            "loops.parallel": float(sum(loop.parallel for loop in nests)),
            "loops.reduction": float(sum(loop.reduction for loop in nests)),
            "loops.carried": float(sum(len(loop.carried) for loop in nests)),
            "loops.carried_max": float(max(len(loop.carried) for loop in nests)),
            "loops.step_not_one": float(sum(loop.step != 1 for loop in nests)),
            "loops.tile_like": float(sum(any(lo.terms for lo in loop.lowers) for loop in nests)),
            "loops.full_unroll": float(len(nests) - len(kept)),
            "loops.kept": float(len(kept)),
            "loops.kept_innermost": float(len(kept_inner)),
            "loops.kept_size_max": max((sizes[id(loop)] for loop in kept_inner), default=sizes[0]),
            "loops.kept_size_sum": sum(sizes[id(loop)] for loop in kept_inner),
            "loops.remainder": float(sum(not loop.constant_trip or loop.trip % 8 != 0 for loop in inner)),
            "loops.hot_share": max(cycles) / sum(cycles) if sum(cycles) else 0.0,
        }
    )
    loop_: Loop | None = hot_body(view).loop
    for i in range(LEVELS):
        if loop_ is None:
            break
        name = f"loops.hot{i}."
        out[name + "trip"] = loop_.trip
        out[name + "execs_log"] = math.log1p(loop_.execs)
        out[name + "ops"] = float(sum(n.cls not in ("const", "loop") for n in loop_.nodes))
        out[name + "children"] = float(len(loop_.children))
        out[name + "constant"] = float(loop_.constant_trip)
        out[name + "step"] = float(loop_.step)
        out[name + "rest4"] = loop_.trip % 4
        out[name + "rest8"] = loop_.trip % 8
        out[name + "rest32"] = loop_.trip % 32
        out[name + "unrolled_log"] = math.log1p(sizes[id(loop_)])
        loop_ = loop_.parent
    return out
