"""Feature group `work`: how often each kind of operation runs in one call, what moves, and what that should cost.

The functions that it calls are counted with it (see `calls`).
"""

from __future__ import annotations

import math

from .calls import Totals, with_calls
from .function_view import FunctionView
from .inner_loops import bodies
from .op_classes import CLASSES, FLOAT_CLASSES, INT_CLASSES, THROUGHPUT

_COUNTED = (
    "flops",
    "float_ops",
    "float_ops_f32",
    "float_ops_f64",
    "int_ops",
    "loads",
    "stores",
    "load_bytes",
    "store_bytes",
    "bytes",
    "executions",
    "loop_iterations",
    "instructions",
    "divs",
    "math_calls",
    "cycles",
    "index_ops",
)
FEATURES: dict[str, tuple[str, str]] = {
    "work.executions": (
        "operations executed in one call: iteration volume × operations, constants and yields apart",
        "count",
    ),
    "work.flops": ("floating-point operations on elements executed; a fused multiply-add counts 2", "flop"),
    "work.float_ops": ("floating-point element operations executed; a fused multiply-add counts 1", "count"),
    "work.float_ops_f32": ("of those, on elements of 32 bits or fewer", "count"),
    "work.float_ops_f64": ("of those, on 64-bit elements", "count"),
    "work.int_ops": ("integer element operations executed, address arithmetic apart", "count"),
    "work.index_ops": ("address computations executed", "count"),
    "work.loads": ("elements loaded", "count"),
    "work.stores": ("elements stored", "count"),
    "work.load_bytes": ("bytes loaded", "bytes"),
    "work.store_bytes": ("bytes stored", "bytes"),
    "work.bytes": ("bytes loaded and stored", "bytes"),
    "work.divs": ("floating-point and integer divisions, remainders and square roots executed", "count"),
    "work.math_calls": ("math library calls executed, element-wise", "count"),
    "work.loop_iterations": ("sum over loops of how often the body runs", "count"),
    "work.instructions": (
        "estimated instructions executed: vectorizable innermost loops divided by their vector width",
        "count",
    ),
    "work.cycles": (
        "estimated cycles without cache misses: throughput or carried latency, whichever is larger",
        "cycles",
    ),
    **{f"work.{n}_log": (f"log1p of work.{n}", "log count") for n in _COUNTED},
    "work.intensity": ("flops over bytes moved between core and memory system (0 where nothing moves)", "flop/byte"),
    "work.intensity_footprint": ("flops over distinct bytes touched, at most 1e6", "flop/byte"),
    "work.unknown_trip": ("1 where a loop's trip count is unknown", "flag"),
    "work.cycles_per_op": ("estimated cycles over executions", "cycles"),
    "work.innermost_share": ("share of the executions that happen in innermost loops", "share"),
    "work.vectorizable_share": (
        "share of the floating-point operations in loops that should vectorize, or already on vectors",
        "share",
    ),
    "work.latency_bound_share": ("share of the estimated cycles in loops bound by a carried dependence", "share"),
    "work.f64_share": ("share of the floating-point element operations on 64-bit elements", "share"),
    "work.chain_cycles_log": ("log1p of cycles if each innermost iteration waited for its longest chain", "log cycles"),
    "work.calls_unknown": ("calls executed whose callee the program does not hold: they count as a call only", "count"),
    **{
        f"work.share/{c}": (f"share of the executions of class {c}", "share")
        for c in CLASSES
        if c not in ("const", "yield")
    },
}


def own_work(view: FunctionView) -> Totals:
    """What one call of the function does itself, by name; `class/<c>` are executions of a class."""
    by_class = dict.fromkeys(CLASSES, 0.0)
    flops = float_ops = narrow = wide = ints = index = divs = math_calls = 0.0
    for node in view.nodes:
        cls = node.cls
        execs = node.execs
        by_class[cls] += execs
        if cls in FLOAT_CLASSES:
            lanes = node.lanes
            amount = execs * lanes
            float_ops += amount
            flops += amount * (2 if cls == "fma" else 1)
            if node.element == "f64":
                wide += amount
            else:
                narrow += amount
            if cls == "fmath":
                math_calls += amount
            elif cls in ("fdiv", "fsqrt"):
                divs += amount
        elif cls in INT_CLASSES:
            ints += execs * node.lanes
            if cls == "idiv":
                divs += execs * node.lanes
        elif cls == "index":
            index += execs
    loads = stores = load_bytes = store_bytes = 0.0
    for access in view.accesses:
        if access.is_store:
            stores += access.weight * access.lanes
            store_bytes += access.weight * access.bytes
        else:
            loads += access.weight * access.lanes
            load_bytes += access.weight * access.bytes
    executions = sum(v for c, v in by_class.items() if c not in ("const", "yield"))
    all_bodies = bodies(view)
    inner_ops = sum(b.executed_ops for b in all_bodies)
    cycles = instructions = bound = chain = vector_flops = 0.0
    inside = {id(b.loop) for b in all_bodies}
    for body in all_bodies:
        overhead = 2.0 if body.loop is not None else 0.0
        body_cycles = body.execs * max(body.cycles, 0.25 * overhead)
        cycles += body_cycles
        chain += body.execs * body.chain
        instructions += body.execs * (body.size + overhead) / body.vector_width
        if body.loop is not None and body.vector_width == 1 and body.carried_latency > body.throughput:
            bound += body_cycles
        if body.vector_width > 1:
            vector_flops += body.execs * body.float_ops
    for node in view.nodes:
        if (node.loop is not None and id(node.loop) not in inside) or (node.loop is None and view.loops):
            if node.cls in ("const", "yield"):
                continue
            cycles += node.execs * THROUGHPUT.get(node.cls, 0.5) * 0.5
            instructions += node.execs
            chain += node.execs
    for node in view.nodes:
        if node.lanes > 1 and node.cls in FLOAT_CLASSES:
            vector_flops += node.execs * node.lanes
    return {
        "executions": executions,
        "flops": flops,
        "float_ops": float_ops,
        "float_ops_f32": narrow,
        "float_ops_f64": wide,
        "int_ops": ints,
        "index_ops": index,
        "loads": loads,
        "stores": stores,
        "load_bytes": load_bytes,
        "store_bytes": store_bytes,
        "bytes": load_bytes + store_bytes,
        "divs": divs,
        "math_calls": math_calls,
        "loop_iterations": sum(loop.execs for loop in view.loops),
        "instructions": instructions,
        "cycles": cycles,
        "inner_ops": inner_ops,
        "bound": bound,
        "chain": chain,
        "vector_flops": vector_flops,
        "footprint": sum(extents_bytes(view).values()),
        "unknown_trip": float(any(loop.unknown for loop in view.loops)),
        "calls_unknown": 0.0,
        **{f"class/{c}": v for c, v in by_class.items()},
    }


def work(view: FunctionView) -> dict[str, float]:
    """All features of `FEATURES`."""
    out = dict.fromkeys(FEATURES, 0.0)
    total = with_calls(view, own_work(view), own_work)
    for name in _COUNTED:
        out[f"work.{name}"] = total[name]
        out[f"work.{name}_log"] = math.log1p(total[name])
    flops, float_ops, executions, cycles = (total[k] for k in ("flops", "float_ops", "executions", "cycles"))
    out["work.intensity"] = flops / total["bytes"] if total["bytes"] else 0.0
    out["work.intensity_footprint"] = min(flops / total["footprint"], 1e6) if total["footprint"] else 0.0
    out["work.unknown_trip"] = total["unknown_trip"]
    out["work.cycles_per_op"] = cycles / executions if executions else 0.0
    out["work.innermost_share"] = min(1.0, total["inner_ops"] / executions) if executions else 0.0
    out["work.vectorizable_share"] = min(1.0, total["vector_flops"] / float_ops) if float_ops else 0.0
    out["work.latency_bound_share"] = total["bound"] / cycles if cycles else 0.0
    out["work.f64_share"] = total["float_ops_f64"] / float_ops if float_ops else 0.0
    out["work.chain_cycles_log"] = math.log1p(total["chain"])
    out["work.calls_unknown"] = total["calls_unknown"]
    if executions:
        for c in CLASSES:
            if c not in ("const", "yield"):
                out[f"work.share/{c}"] = total[f"class/{c}"] / executions
    return out


def extents_bytes(view: FunctionView) -> dict[int, float]:
    """Bytes of each memref or tensor that the function accesses, by root value."""
    return {a.root: a.extent * a.bits / 8 for a in view.accesses}
