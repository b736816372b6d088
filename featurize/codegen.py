"""What LLVM at -O3 makes of the loop nest: full, partial and run-time unrolling, vectorization, copies of inner loops.

The rules and thresholds are those of LLVM 22's unroller and loop vectorizer for x86-64-v3, checked against its remarks
on probe kernels: a loop of constant trip count T and cost c is unrolled fully where (c + 2) T <= 300, with up to 10
iterations a little beyond, whatever loops it holds; a loop that stays scalar is unrolled by the largest factor that
divides its trip count (a power of two up to 8 where that is not constant) and keeps the body within 50. A
floating-point reduction that may not be reordered, a store that does not move (an integer reduction apart) and a
recurrence closer than a vector stay scalar. The figures are features for a model, no more.
"""

from __future__ import annotations

import math

from .function_view import FunctionView
from .inner_loops import Body, bodies, instructions_of
from .nodes import Loop
from .op_classes import FLOAT_CLASSES, INT_CLASSES

FULL_UNROLL_LIMIT = 300
PARTIAL_LIMIT = 50
ACCESS_COST = 1.25
"""With what its address costs."""
LOOP_COST = 4.0
"""Counting, comparing and jumping, in each iteration that is not unrolled."""
MOST_ANALYZED = 10
_FREE = frozenset(("const", "yield", "loop"))

_KERNEL: dict[str, tuple[str, str]] = {
    "size": ("instructions of one iteration, unrolled inner loops included", "count"),
    "trip": ("average trip count", "iterations"),
    "constant": ("1 where the trip count is the same each time", "flag"),
    "execs_log": ("log1p of how often its body runs", "log count"),
    "entries_log": ("log1p of how often it is entered", "log count"),
    "unroll": ("copies of the body by partial or run-time unrolling", "count"),
    "unrolled_size": ("instructions of the unrolled or interleaved body", "count"),
    "rest": ("iterations left over by vector width, interleaving and unrolling", "iterations"),
    "vector_width": ("lanes it should be vectorized to, 1 for none", "lanes"),
    "interleave": ("interleaved vector copies", "count"),
    "unit": ("unit-stride accesses", "count"),
    "zero": ("accesses that do not move", "count"),
    "strided": ("accesses with a larger stride", "count"),
    "invariant_stores": ("stores that do not move", "count"),
    "roots": ("different memrefs", "count"),
    "groups": ("different addresses apart from a constant", "count"),
    "alias_pairs": ("(stored memref, other memref) pairs", "count"),
    "loads": ("loads of one iteration", "count"),
    "stores": ("stores of one iteration", "count"),
    "float_ops": ("floating-point operations of one iteration", "count"),
    "fdiv": ("divisions and square roots of one iteration", "count"),
    "fmath": ("math library calls of one iteration", "count"),
    "int_ops": ("integer operations of one iteration", "count"),
    "branches": ("conditionals of one iteration", "count"),
    "recurrences": ("load-store pairs where a later iteration reads what an earlier one wrote", "count"),
    "carried_float": ("floating-point values carried that may not be reordered", "count"),
    "carried_other": ("other values carried that are neither inductions nor reductions", "count"),
    "library_calls": ("calls of math and conversion functions in one iteration", "count"),
    "store_run": ("most elements next to one another that one iteration stores", "elements"),
    "load_run": ("most elements next to one another that one iteration loads", "elements"),
    "conflicts": ("pairs of accesses that meet, so that it stays scalar", "count"),
    "check_fails": ("1 where accesses meet that only a check at run time can tell apart", "flag"),
    "carried_latency": ("cycles each iteration waits for the one before", "cycles"),
    "chain": ("longest dependence chain of one iteration", "cycles"),
    "throughput": ("cycles of one iteration without dependences", "cycles"),
    "live": ("values live at once in one iteration, loads next to their first use", "values"),
    "invariants": ("values from outside that it uses, addresses apart", "values"),
    "registers": ("registers wanted for values: interleaved copies of the live ones, and the invariants", "registers"),
    "copies": ("times its loop stands in the code, by unrolled loops around it", "count"),
    "merged": ("1 where inner loops are unrolled into it", "flag"),
}
_BIG = (
    "size",
    "trip",
    "unroll",
    "vector_width",
    "interleave",
    "roots",
    "groups",
    "alias_pairs",
    "loads",
    "stores",
    "float_ops",
    "registers",
    "copies",
    "store_run",
    "load_run",
    "library_calls",
)
"""Described of the kernel with the largest body, too."""
FEATURES: dict[str, tuple[str, str]] = {
    "codegen.static_size": ("estimated instructions of the compiled function", "count"),
    "codegen.static_size_log": ("log1p of codegen.static_size", "log count"),
    "codegen.outer_log": ("log1p of the part outside innermost loops", "log count"),
    "codegen.remaining": ("loops left after full unrolling", "count"),
    "codegen.loop_copies": ("loops in the compiled code: those left, times the unrolled loops around each", "count"),
    "codegen.max_copies": ("most copies of one loop", "count"),
    "codegen.kernels": ("innermost loops left after full unrolling", "count"),
    "codegen.kernel_copies": ("the same, in copies", "count"),
    "codegen.vector_kernels": ("of those, vectorized", "count"),
    "codegen.alias_pairs": ("run-time alias checks, over all copies of vectorized loops", "count"),
    "codegen.unrolled_loops": ("loops unrolled fully", "count"),
    "codegen.biggest": ("instructions of the largest unrolled or interleaved body", "count"),
    "codegen.biggest_log": ("log1p of codegen.biggest", "log count"),
    "codegen.instructions": ("estimated instructions executed", "count"),
    "codegen.instructions_log": ("log1p of codegen.instructions", "log count"),
    "codegen.cycles": ("estimated cycles without cache misses", "cycles"),
    "codegen.cycles_log": ("log1p of the estimated cycles without cache misses", "log cycles"),
    "codegen.accesses": ("estimated load and store instructions executed", "count"),
    "codegen.accesses_log": ("log1p of the estimated load and store instructions executed", "log count"),
    "codegen.exits": ("how often loops that remain are left: branches hard to predict", "count"),
    "codegen.exits_log": ("log1p of how often loops that remain are left: branches hard to predict", "log count"),
    "codegen.vector_share": ("share of the executed floating-point element operations that run on vectors", "share"),
    "codegen.latency_bound_share": ("share of the estimated cycles in loops bound by a carried dependence", "share"),
    **{f"codegen.hot.{k}": (f"{m}; hottest kernel", u) for k, (m, u) in _KERNEL.items()},
    **{f"codegen.big.{k}": (f"{_KERNEL[k][0]}; kernel with the largest body", _KERNEL[k][1]) for k in _BIG},
}


class Kernel:
    """One innermost loop that remains after full unrolling (or the whole function), loops unrolled into it included."""

    __slots__ = ("body", "copies", "loop", "size", "unroll", "vector_size", "vectors")

    def __init__(self, body: Body, copies: float) -> None:
        self.body = body
        self.loop = body.loop
        self.copies = copies
        """Times the loop stands in the code: the trip counts of the unrolled loops around it."""
        size = max(1.0, x86_size(body) - body.elsewhere)
        trip = body.trip
        constant = body.loop is not None and body.loop.constant_trip and not body.loop.unknown
        cost = max(1.0, size + 2)
        self.vectors = 1.0
        """Interleaved vector copies of the body where it is vectorized."""
        if body.loop is None:
            self.unroll = 1.0
            self.size = size
            self.vector_size = 0.0
            return
        if body.vector_width > 1:
            stores = max(1.0, body.weights_of("store"))
            loads = max(1.0, body.weights_of("load"))
            small = 20 / cost
            interleave = max(min(4.0, small), min(4.0, max(4 / stores, 4 / loads)) if cost < 40 else 1.0, 1.0)
            interleave = 4.0 if interleave >= 4 else 2.0 if interleave >= 2 else 1.0
            while interleave > 1 and trip < body.vector_width * interleave:
                interleave /= 2
            self.vectors = interleave
            self.unroll = _factor(cost, trip, constant)
            checks = 4.0 * min(body.store_pairs, 8) + (8 if body.store_pairs else 0)
            rest = constant and body.store_pairs == 0 and trip % (body.vector_width * interleave) == 0
            scalar = 0.0 if rest else size * self.unroll + 6
            by_lane = body.near_copies + body.gathered_copies + body.gathered_stores + body.library_calls
            self.vector_size = (size + by_lane * (2 * body.vector_width - 1)) * interleave + 3
            self.size = self.vector_size + checks + scalar + 8
        else:
            self.unroll = 1.0 if body.library_calls else _factor(cost, trip, constant)
            remainder = 0.0 if constant and self.unroll > 1 else (size + 8 if self.unroll > 1 else 0.0)
            self.vector_size = 0.0
            self.size = size * self.unroll + 3 + remainder

    @property
    def body_size(self) -> float:
        """Instructions of the unrolled or interleaved body."""
        return self.vector_size or max(1.0, x86_size(self.body) - self.body.elsewhere) * self.unroll


class Codegen:
    """The function after unrolling: see the module."""

    def __init__(self, view: FunctionView) -> None:
        self.cost: dict[int, float] = {}
        """id(loop) -> cost of its body as the unroller sees it."""
        self.unrolled: dict[int, float] = {}
        """id(loop) -> copies of its body, for each loop that is unrolled fully."""
        own: dict[int, float] = {}
        forwarded = _forwarded(view)
        for node in view.nodes:
            if node.cls == "index" and node.results and view.folds(node.results[0]):
                continue
            if node.cls not in _FREE and not node.free and node.execs > 0 and node.index not in forwarded:
                key = id(node.home) if node.home is not None else 0
                cost = 1.0 if node.lanes == 1 or not node.element else instructions_of(view, node)
                own[key] = own.get(key, 0.0) + (cost if node.access is None else cost * ACCESS_COST)
        for loop, cost in address_costs(view):
            own[id(loop)] = own.get(id(loop), 0.0) + cost
        holds: dict[int, float] = {}  # loops left in the body, in copies
        for loop in reversed(view.loops):
            key = id(loop)
            cost = own.get(key, 0.0)
            for child in loop.children:
                copies = self.unrolled.get(id(child))
                if copies is None:
                    cost += self.cost[id(child)] + 3 + (0 if child.constant_trip else 2 * len(child.differences))
                else:
                    cost += self.cost[id(child)] * copies
            self.cost[key] = cost
            if loop.entries <= 0:  # behind a condition that never holds
                self.unrolled[key] = 0.0
                continue
            if loop.constant_trip and not loop.unknown and _unrolls(cost, loop.trip):
                self.unrolled[key] = loop.trip
        # the bounds of a loop that depend on unrolled loops alone are constant in each copy
        loop_of = view.loop_of_iv
        for loop in view.loops:
            if (
                id(loop) in self.unrolled
                or loop.constant_trip
                or loop.unknown
                or not _unrolls(self.cost[id(loop)], loop.max_trip)
            ):
                continue
            names = set().union(*(d.variables() for d in loop.differences))
            if all(v in loop_of and id(loop_of[v]) in self.unrolled for v in names):
                self.unrolled[id(loop)] = loop.trip
        for loop in reversed(view.loops):
            inside = 0.0
            for child in loop.children:
                copies = self.unrolled.get(id(child))
                inside += 1.0 if copies is None else holds[id(child)] * copies
            holds[id(loop)] = inside
        self.kernels: list[Kernel] = []
        self.outer_size = 0.0
        """Instructions outside the kernels, in all copies: straight-line code and the bodies of loops around loops."""
        self.max_copies = 1.0
        self._collect(view, own, holds)

    def _collect(self, view: FunctionView, own: dict[int, float], holds: dict[int, float]) -> None:
        copies: dict[int, float] = {0: 1.0}
        #: id(loop) -> remaining loop that its code lands in (None: the function), and copies of it there
        lands: dict[int, tuple[Loop | None, float]] = {}
        merged: dict[int, list[Loop]] = {}
        for loop in view.loops:
            parent = loop.parent
            key = id(loop)
            home, weight = (None, 1.0) if parent is None else lands[id(parent)]
            factor = self.unrolled.get(key)
            if factor is not None:
                lands[key] = (home, weight * factor)
                if home is not None:
                    merged.setdefault(id(home), []).append(loop)
                else:
                    merged.setdefault(0, []).append(loop)
                continue
            inherited = copies[id(home)] if home is not None else 1.0
            copies[key] = inherited * weight
            lands[key] = (loop, 1.0)
            self.max_copies = max(self.max_copies, copies[key])
        top = own.get(0, 0.0) + sum(own.get(id(x), 0.0) * lands[id(x)][1] for x in merged.get(0, ()))
        remaining = [x for x in view.loops if id(x) not in self.unrolled]
        self.outer_size = top
        for loop in remaining:
            key = id(loop)
            if holds[key]:
                here = own.get(key, 0.0) + sum(own.get(id(x), 0.0) * lands[id(x)][1] for x in merged.get(key, ()))
                self.outer_size += (here + 5) * copies[key]
                continue
            inner = merged.get(key)
            if inner is None:
                body = _literal(view, loop)
            else:
                weights = {id(x): lands[id(x)][1] for x in inner}
                ids = {key, *weights}
                nodes = [
                    n
                    for n in view.nodes[loop.first : loop.last]
                    if n.home is not None and id(n.home) in ids and not n.free
                ]
                body = Body(view, loop, nodes, weights)
            self.kernels.append(Kernel(body, copies[key]))
        if not remaining:
            nodes = [n for n in view.nodes if not n.free]
            weights = {id(x): lands[id(x)][1] for x in view.loops}
            self.kernels.append(Kernel(Body(view, None, nodes, weights), 1.0))
            self.outer_size = 0.0
        self.remaining = len(remaining)
        self.loop_copies = sum(copies[id(x)] for x in remaining)
        self.static_size = self.outer_size + sum(k.size * k.copies for k in self.kernels)


def _unrolls(cost: float, trip: float) -> bool:
    """Whether a loop is unrolled fully; up to 10 iterations LLVM looks at what that saves, and allows more."""
    if (cost + 2) * trip <= FULL_UNROLL_LIMIT:
        return True
    return trip <= MOST_ANALYZED and cost * trip <= FULL_UNROLL_LIMIT * min(4.0, 1 + LOOP_COST / max(1.0, cost))


def _forwarded(view: FunctionView) -> set[int]:
    """Loads of an address that their innermost loop does not move and stores to: what it stored is still at hand,
    unless the loop stores to another memref too, which may be the same."""
    stored: dict[Loop, set[tuple[int, int, int]]] = {}
    roots: dict[Loop, set[int]] = {}
    for access in view.accesses:
        if access.is_store and access.loop is not None:
            roots.setdefault(access.loop, set()).add(access.root)
            if not access.stride:
                stored.setdefault(access.loop, set()).add((access.root, access.group, access.address.const))
    alone = {loop: found for loop, found in stored.items() if len(roots[loop]) == 1}
    return {
        a.node.index
        for a in view.accesses
        if not a.is_store and a.loop in alone and (a.root, a.group, a.address.const) in alone[a.loop]
    }


def _literal(view: FunctionView, loop: Loop) -> Body:
    for body in bodies(view):
        if body.loop is loop:
            return body
    return Body(view, loop)


def address_costs(view: FunctionView) -> list[tuple[Loop, float]]:
    """(loop, instructions) for the part of each address that an outer loop moves, once for each memref."""
    out: list[tuple[Loop, float]] = []
    seen: set[tuple[Loop, int]] = set()
    for access in view.accesses:
        loop = access.node.home
        if loop is None or access.node.free:
            continue
        terms = access.address.terms
        parent = loop.parent
        while parent is not None:
            if parent.iv in terms:
                key = (parent, access.root)
                if key not in seen:
                    seen.add(key)
                    out.append((parent, 1.0))
            parent = parent.parent
    return out


def _factor(cost: float, trip: float, constant: bool) -> float:
    """Copies of a scalar body: partial unrolling of a constant trip count, else a power of two at run time."""
    if constant:
        most = int((PARTIAL_LIMIT - 2) // cost)
        for factor in range(min(most, int(trip)), 1, -1):
            if trip % factor == 0:
                return float(factor)
    factor = 8
    while factor > 1 and cost * factor + 2 > PARTIAL_LIMIT:
        factor //= 2
    return float(factor)


def x86_size(body: Body) -> float:
    """Instructions of one copy of a body: loads that one operation uses fold into it."""
    arithmetic = body.float_ops - body.weights_of("fma")
    folded = min(body.weights_of("load") * 0.5, arithmetic * 0.5)
    return max(1.0, body.size - folded)


def codegen_model(view: FunctionView) -> Codegen:
    """The view's code generation estimate, computed once."""
    known: Codegen | None = view.memo.get("codegen_model")
    if known is None:
        known = view.memo["codegen_model"] = Codegen(view)
    return known


def codegen(view: FunctionView) -> dict[str, float]:
    """All features of `FEATURES`."""
    out = dict.fromkeys(FEATURES, 0.0)
    code = codegen_model(view)
    kernels = code.kernels
    instructions = cycles = accesses = vector = floats = bound = 0.0
    inside: set[int] = set()
    costs = []
    for k in kernels:
        b = k.body
        gain = b.vector_gain
        width = float(b.vector_width) if gain > 1 else 1.0
        per_iteration = x86_size(b) / gain + 2.5 / max(1.0, k.unroll * k.vectors) / width
        own_cycles = b.execs * max(b.throughput / gain, b.carried_latency if width == 1 else 0.0, 0.25)
        instructions += b.execs * per_iteration
        cycles += own_cycles
        costs.append(own_cycles)
        accesses += b.execs * (b.weights_of("load") + b.weights_of("store")) / width
        floats += b.execs * b.float_ops
        if b.already_vector:
            vector += b.execs * b.vector_ops
        elif width > 1:
            vector += b.execs * b.float_ops
        elif b.carried_latency > b.throughput:
            bound += own_cycles
        inside.update(id(n) for n in b.nodes)
    for node in view.nodes:
        if id(node) in inside or node.cls in _FREE or node.free:
            continue
        if node.cls == "index" and node.results and view.folds(node.results[0]):
            continue
        execs = node.execs
        if node.home is not node.loop:  # moved out
            execs = min(execs, node.home.execs if node.home is not None else 1.0)
        instructions += execs
        cycles += execs * 0.4
        if node.access is not None:
            accesses += execs
        if node.cls in FLOAT_CLASSES:
            floats += execs
    remaining = [x for x in view.loops if id(x) not in code.unrolled]
    exits = sum(x.entries for x in remaining)
    instructions += 3 * sum(x.entries for x in remaining)
    out.update(
        {
            "codegen.static_size": code.static_size,
            "codegen.static_size_log": math.log1p(code.static_size),
            "codegen.outer_log": math.log1p(code.outer_size),
            "codegen.remaining": float(code.remaining),
            "codegen.loop_copies": code.loop_copies,
            "codegen.max_copies": code.max_copies,
            "codegen.kernels": float(len(kernels)),
            "codegen.kernel_copies": sum(k.copies for k in kernels),
            "codegen.vector_kernels": sum(k.copies for k in kernels if k.body.vector_width > 1),
            "codegen.alias_pairs": sum(k.copies * k.body.store_pairs for k in kernels if k.body.vector_width > 1),
            "codegen.unrolled_loops": float(len(code.unrolled)),
            "codegen.instructions": instructions,
            "codegen.instructions_log": math.log1p(instructions),
            "codegen.cycles": cycles,
            "codegen.cycles_log": math.log1p(cycles),
            "codegen.accesses": accesses,
            "codegen.accesses_log": math.log1p(accesses),
            "codegen.exits": exits,
            "codegen.exits_log": math.log1p(exits),
            "codegen.vector_share": vector / floats if floats else 0.0,
            "codegen.latency_bound_share": bound / cycles if cycles else 0.0,
        }
    )
    if kernels:
        hot = kernels[costs.index(max(costs))]
        big = max(kernels, key=lambda k: k.body_size)
        out["codegen.biggest"] = big.body_size
        out["codegen.biggest_log"] = math.log1p(big.body_size)
        described = _describe(hot)
        for name, value in described.items():
            out["codegen.hot." + name] = value
        if big is not hot:
            described = _describe(big)
        for name in _BIG:
            out["codegen.big." + name] = described[name]
    return out


def _describe(k: Kernel) -> dict[str, float]:
    b = k.body
    loop = k.loop
    step = b.vector_width * k.vectors * k.unroll
    return {
        "size": b.size,
        "trip": b.trip,
        "constant": float(loop is not None and loop.constant_trip and not loop.unknown),
        "execs_log": math.log1p(b.execs),
        "entries_log": math.log1p(loop.entries if loop is not None else 1.0),
        "unroll": k.unroll,
        "unrolled_size": k.body_size,
        "rest": b.trip % step if step > 1 else 0.0,
        "vector_width": float(b.vector_width),
        "interleave": k.vectors,
        "unit": float(b.unit),
        "zero": float(b.zero),
        "strided": float(b.gathered),
        "invariant_stores": float(b.invariant_stores),
        "roots": float(b.roots),
        "groups": float(b.groups),
        "alias_pairs": float(b.store_pairs),
        "loads": b.weights_of("load"),
        "stores": b.weights_of("store"),
        "float_ops": b.float_ops,
        "fdiv": b.weights_of("fdiv") + b.weights_of("fsqrt"),
        "fmath": b.weights_of("fmath"),
        "int_ops": sum([n for c, n in b.counts.items() if c in INT_CLASSES]),
        "branches": b.branches,
        "recurrences": float(b.recurrences),
        "carried_float": float(b.carried_float),
        "carried_other": float(b.carried_other),
        "library_calls": b.library_calls,
        "store_run": b.run(stores=True),
        "load_run": b.run(stores=False),
        "conflicts": float(b.conflicts),
        "check_fails": float(b.meets),
        "carried_latency": b.carried_latency,
        "chain": b.chain,
        "throughput": b.throughput,
        "live": b.live,
        "invariants": b.invariants,
        "registers": b.live * k.vectors + b.invariants,
        "copies": k.copies,
        "merged": float(b.merged),
    }
