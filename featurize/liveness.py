"""Feature group `liveness`: values live at once, dependence chains, parallelism, in the order of the program."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, chain
from operator import add, mul

from .function_view import FunctionView
from .inner_loops import bodies, hot_body
from .nodes import Loop, Node
from .op_classes import LATENCY

FEATURES: dict[str, tuple[str, str]] = {
    "liveness.max_live": ("most values live at once, memrefs apart", "values"),
    "liveness.max_live_scalar": ("most integer and index values live at once", "values"),
    "liveness.max_live_float": ("most floating-point scalars live at once", "values"),
    "liveness.max_live_vector": ("most 256-bit registers that live vector values fill", "registers"),
    "liveness.mean_live": ("mean number of values live, weighted by executions", "values"),
    "liveness.innermost_live": ("most values live at once inside an innermost loop", "values"),
    "liveness.innermost_live_float": (
        "most floating-point values and vector registers live at once inside an innermost loop",
        "values",
    ),
    "liveness.hot_live": ("most values live at once inside the hottest innermost loop", "values"),
    "liveness.hot_live_float": (
        "most floating-point values and vector registers live inside the hottest innermost loop",
        "values",
    ),
    "liveness.sunk_live_float": (
        "most floating-point values and vector registers live at once with each load next to its first use",
        "values",
    ),
    "liveness.sunk_innermost_live_float": ("the same inside an innermost loop", "values"),
    "liveness.hot_live_in": (
        "values from outside that the hottest innermost loop uses, memrefs and constants apart",
        "values",
    ),
    "liveness.live_in_max": ("most such values of any loop", "values"),
    "liveness.over_16": ("registers wanted beyond 16, floating point and vectors", "registers"),
    "liveness.address_registers": (
        "estimated address registers of the hottest innermost loop: streams, loop counters, bases",
        "registers",
    ),
    "liveness.carried_float": ("floating-point values carried by loops", "values"),
    "liveness.constants_in_loops": ("different floating-point constants used inside loops", "count"),
    "liveness.chain_max": ("longest dependence chain of one block, in operations", "count"),
    "liveness.chain_latency_max": ("longest dependence chain of one block, in cycles", "cycles"),
    "liveness.hot_chain_latency": ("longest dependence chain of the hottest innermost loop, in cycles", "cycles"),
    "liveness.hot_carried_latency": (
        "cycles each iteration of the hottest innermost loop waits for the one before",
        "cycles",
    ),
    "liveness.carried_latency_max": ("largest such wait of any innermost loop", "cycles"),
    "liveness.hot_throughput": (
        "estimated cycles of one iteration of the hottest innermost loop without dependences",
        "cycles",
    ),
    "liveness.hot_size": ("operations of the hottest innermost loop", "count"),
    "liveness.hot_vector_width": ("lanes that the hottest innermost loop should be vectorized to, 1 for none", "lanes"),
    "liveness.hot_float_ops": ("floating-point operations of the hottest innermost loop", "count"),
    "liveness.hot_loads": ("loads of the hottest innermost loop", "count"),
    "liveness.hot_stores": ("stores of the hottest innermost loop", "count"),
    "liveness.hot_fmath": ("math library calls of the hottest innermost loop", "count"),
    "liveness.hot_fdiv": ("divisions and square roots of the hottest innermost loop", "count"),
    "liveness.hot_index": ("address computations of the hottest innermost loop", "count"),
    "liveness.hot_branches": ("conditionals of the hottest innermost loop", "count"),
    "liveness.hot_selects": ("selects and comparisons of the hottest innermost loop", "count"),
    "liveness.vectorizable": ("innermost loops that should vectorize", "count"),
    "liveness.blocked_reduction": ("innermost loops kept scalar by a floating-point value that they carry", "count"),
    "liveness.blocked_store": ("innermost loops kept scalar by a store that does not move", "count"),
    "liveness.blocked_stride": ("innermost loops with accesses that move by more than one element", "count"),
    "liveness.blocked_call": ("innermost loops with calls or math library calls", "count"),
    "liveness.blocked_recurrence": ("innermost loops with a recurrence closer than a vector", "count"),
    "liveness.ilp": ("operations over longest chain, of the largest block", "ratio"),
    "liveness.hot_ilp": ("latency-weighted operations over longest chain of the hottest innermost loop", "ratio"),
    "liveness.uses_max": ("most uses of one value", "count"),
    "liveness.distance_max": ("largest distance from a definition to its last use", "operations"),
    "liveness.distance_mean": ("mean distance from a definition to its last use", "operations"),
    "liveness.slp_stores": ("stores in a block next to another store's address in the same block", "count"),
}


def liveness(view: FunctionView) -> dict[str, float]:
    """All features of `FEATURES`."""
    out = dict.fromkeys(FEATURES, 0.0)
    nodes = view.nodes
    n = len(nodes)
    all_bodies = bodies(view)
    hot = hot_body(view)
    if n:
        _pressure(view, out, hot.loop)
        _blocks(view, out)
    counts = Counter(hot.counts)
    out["liveness.hot_chain_latency"] = hot.chain
    out["liveness.hot_carried_latency"] = hot.carried_latency
    out["liveness.carried_latency_max"] = max(b.carried_latency for b in all_bodies)
    out["liveness.hot_throughput"] = hot.throughput
    out["liveness.hot_size"] = float(hot.size)
    out["liveness.hot_vector_width"] = float(hot.vector_width)
    out["liveness.hot_float_ops"] = float(hot.float_ops)
    out["liveness.hot_loads"] = float(counts["load"])
    out["liveness.hot_stores"] = float(counts["store"])
    out["liveness.hot_fmath"] = float(counts["fmath"])
    out["liveness.hot_fdiv"] = float(counts["fdiv"] + counts["fsqrt"])
    out["liveness.hot_index"] = float(counts["index"])
    out["liveness.hot_branches"] = float(hot.branches)
    out["liveness.hot_selects"] = float(counts["select"] + counts["fcmp"] + counts["icmp"])
    total_latency = sum([LATENCY.get(x.cls, 0.0) for x in hot.nodes])
    out["liveness.hot_ilp"] = total_latency / hot.chain if hot.chain else 0.0
    depth = hot.loop.depth if hot.loop is not None else 0
    out["liveness.address_registers"] = float(hot.groups + depth + hot.roots)
    for b in all_bodies:
        if b.loop is None:
            continue
        out["liveness.vectorizable"] += b.vectorizable
        out["liveness.blocked_reduction"] += b.carried_float > 0
        out["liveness.blocked_store"] += b.invariant_stores > 0
        out["liveness.blocked_stride"] += b.gathered > 0
        out["liveness.blocked_call"] += bool(b.counts.get("call") or b.counts.get("fmath"))
        out["liveness.blocked_recurrence"] += b.recurrences > 0 and b.distance < 8
    return out


def _pressure(view: FunctionView, out: dict[str, float], hot: Loop | None) -> None:
    """Live ranges in program order; a value used in a loop and made outside of it lives to the loop's end."""
    nodes = view.nodes
    n = len(nodes)
    start_of: dict[int, int] = {}
    home_of: dict[int, Loop | None] = {}
    loaded: set[int] = set()
    constants: set[int] = set()
    float_constants: set[int] = set()
    for node in nodes:
        for v in node.results:
            start_of[v] = node.index + 1
            home_of[v] = node.loop
            if node.cls == "load":
                loaded.add(v)
            elif node.cls == "const":
                constants.add(v)
                if node.element[:1] in ("f", "b"):
                    float_constants.add(v)
    for v in view.arguments:
        start_of[v] = 0
        home_of[v] = None
    end_of: dict[int, int] = {}
    for loop in view.loops:
        own = [arg for arg, _ in loop.carried]
        if isinstance(loop.iv, int):
            own.append(loop.iv)
        for v in own:
            start_of[v] = loop.first
            home_of[v] = loop
            end_of[v] = loop.last
    first_use: dict[int, int] = {}
    used_inside: set[int] = set()
    live_in: dict[Loop | None, set[int]] = {}
    for node in nodes:
        at = node.index + 1
        here = node.loop
        for v in node.operands:
            home = home_of.get(v, here)
            end = at
            if home is here:
                if v not in start_of:
                    continue
            else:
                if here in live_in and v in live_in[here]:
                    continue  # lives to the same end
                used_inside.add(v)
                outer = here
                while outer is not None and outer is not home:
                    if outer.last > end:
                        end = outer.last
                    if outer in live_in:
                        live_in[outer].add(v)
                    else:
                        live_in[outer] = {v}
                    outer = outer.parent
            known = end_of.get(v)
            if known is None:
                first_use[v] = at
                end_of[v] = end
            elif end > known:
                end_of[v] = end
    uses = Counter(chain.from_iterable([node.operands for node in nodes]))
    constants_used = used_inside & float_constants
    sunk = [0] * (n + 2)
    deltas = {k: [0] * (n + 2) for k in ("scalar", "float", "vector")}
    distances = []
    for v, end in end_of.items():
        kind, amount = view.type_of(v).registers
        if not kind or (v in constants and v not in constants_used):
            continue
        start = start_of[v]
        delta = deltas[kind]
        delta[start] += amount
        delta[end] -= amount
        distances.append(end - start)
        if kind != "scalar":
            begin = max(start, first_use[v]) if v in loaded else start
            if begin == end and uses[v] == 1:  # folds into its only use
                continue
            sunk[begin] += amount
            sunk[end] -= amount
    carried_float = 0
    for loop in view.loops:
        carried_float += sum(view.type_of(a).registers[0] in ("float", "vector") for a, _ in loop.carried)
    curves = {k: list(accumulate(d)) for k, d in deltas.items()}
    scalar, floats, vectors = curves["scalar"], curves["float"], curves["vector"]
    registers = list(map(add, floats, vectors))
    both = list(map(add, scalar, registers))
    sunk_curve = list(accumulate(sunk))
    out["liveness.sunk_live_float"] = float(max(sunk_curve))
    out["liveness.max_live"] = float(max(both))
    out["liveness.max_live_scalar"] = float(max(scalar))
    out["liveness.max_live_float"] = float(max(floats))
    out["liveness.max_live_vector"] = float(max(vectors))
    execs = [node.execs for node in nodes]
    weight = sum(execs)
    out["liveness.mean_live"] = sum(map(mul, execs, both)) / weight if weight else 0.0
    for loop in view.loops:
        if not loop.children and loop.last > loop.first:
            most = max(both[loop.first : loop.last + 1])
            sunk_inside = float(max(sunk_curve[loop.first : loop.last + 1]))
            out["liveness.sunk_innermost_live_float"] = max(out["liveness.sunk_innermost_live_float"], sunk_inside)
            inside_float = max(registers[loop.first : loop.last + 1])
            out["liveness.innermost_live"] = max(out["liveness.innermost_live"], float(most))
            out["liveness.innermost_live_float"] = max(out["liveness.innermost_live_float"], float(inside_float))
            if loop is hot:
                out["liveness.hot_live"], out["liveness.hot_live_float"] = float(most), float(inside_float)
    if hot is None:
        out["liveness.hot_live"], out["liveness.hot_live_float"] = float(max(both)), float(max(registers))
    countable = {v for v in used_inside if v not in constants and view.type_of(v).registers[0]}
    counted = {key: len(values & countable) for key, values in live_in.items()}
    out["liveness.live_in_max"] = float(max(counted.values(), default=0))
    out["liveness.hot_live_in"] = float(counted.get(hot, 0)) if hot is not None else 0.0
    out["liveness.over_16"] = max(0.0, float(max(registers)) - 16.0)
    out["liveness.carried_float"] = float(carried_float)
    out["liveness.constants_in_loops"] = float(len(constants_used))
    out["liveness.uses_max"] = float(max(uses.values(), default=0))
    out["liveness.distance_max"] = float(max(distances, default=0))
    out["liveness.distance_mean"] = sum(distances) / len(distances) if distances else 0.0


def _blocks(view: FunctionView, out: dict[str, float]) -> None:
    largest = 0
    for stream in view.block_streams:
        if not stream:
            continue
        count_of: dict[int, int] = {}
        latency_of: dict[int, float] = {}
        longest, longest_latency = 0, 0.0
        for node in stream:
            count, latency = 0, 0.0
            for v in node.operands:
                if v in count_of:
                    if count_of[v] > count:
                        count = count_of[v]
                    if latency_of[v] > latency:
                        latency = latency_of[v]
            cls = node.cls
            if cls != "const" and cls != "yield":
                count += 1
                latency += LATENCY.get(cls, 0.0)
            for v in node.results:
                count_of[v] = count
                latency_of[v] = latency
            if count > longest:
                longest = count
            if latency > longest_latency:
                longest_latency = latency
        out["liveness.chain_max"] = max(out["liveness.chain_max"], float(longest))
        out["liveness.chain_latency_max"] = max(out["liveness.chain_latency_max"], longest_latency)
        if len(stream) > largest:
            largest = len(stream)
            out["liveness.ilp"] = len(stream) / longest if longest else 0.0
        out["liveness.slp_stores"] += _adjacent_stores(stream)


def _adjacent_stores(stream: list[Node]) -> int:
    places: dict[int, set[int]] = {}
    for node in stream:
        a = node.access
        if a is not None and a.is_store and a.lanes == 1:
            places.setdefault(a.group, set()).add(a.address.const)
    return sum((c + 1 in consts) or (c - 1 in consts) for consts in places.values() for c in consts)
