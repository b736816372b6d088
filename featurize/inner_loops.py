"""What the loops that do the work look like to a compiler: size, streams, recurrences, vectorization, bounds.

A `Body` is the code of one innermost loop, or of the whole function where it has no loop. The figures follow what
LLVM's loop vectorizer looks at, on an x86-64 core with 256-bit vectors; they are features for a model, no simulation.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .affine import Term
from .function_view import FunctionView
from .nodes import Access, Loop, Node
from .op_classes import FLOAT_CLASSES, LATENCY, THROUGHPUT

VECTOR_BITS = 256
FULL_UNROLL_LIMIT = 300
"""LLVM's full unroll threshold at -O3, in instructions of the unrolled body."""
MATH_INSTRUCTIONS = 40
"""Instructions of one call of a math library function."""
STRIDED_COST = 10
"""What LLVM adds to the cost of a vector load that is not contiguous, for its addresses."""
_FORWARDING = 5.0
"""Cycles from a store to a load of the same address."""
_FREE = frozenset(("const", "yield", "loop"))
_SIZED = FLOAT_CLASSES | {"load", "store"}
_REASSOCIATES = re.compile(r"fastmath\s*(?:=\s*#arith\.fastmath\s*)?<[^>]*\b(?:reassoc|fast)\b")


class Body:
    """One innermost loop and its figures, each for one iteration unless it says otherwise."""

    __slots__ = (
        "accesses",
        "already_vector",
        "branches",
        "carried_float",
        "carried_latency",
        "chain",
        "counts",
        "cycles",
        "distance",
        "element_bits",
        "execs",
        "executed_ops",
        "float_ops",
        "gathered",
        "gathered_stores",
        "groups",
        "invariant_loads",
        "invariant_stores",
        "invariants",
        "live",
        "loop",
        "memory_reductions",
        "merged",
        "nodes",
        "recurrences",
        "reducible_stores",
        "roots",
        "size",
        "store_pairs",
        "streams",
        "throughput",
        "trip",
        "unit",
        "unknown",
        "vector_gain",
        "vector_ops",
        "vector_width",
        "vectorizable",
        "zero",
    )

    def __init__(
        self,
        view: FunctionView,
        loop: Loop | None,
        nodes: list[Node] | None = None,
        weights: dict[int, float] | None = None,
    ) -> None:
        """`nodes` and `weights` (id of a loop -> copies of its body) where inner loops are unrolled into this one."""
        self.loop = loop
        if nodes is None:
            nodes = loop.nodes if loop is not None else [n for n in view.nodes if n.loop is None]
            nodes = [n for n in nodes if n.home is loop and not n.free]
        self.nodes: list[Node] = nodes
        self.execs = loop.execs if loop is not None else 1.0
        self.trip = loop.trip if loop is not None else 1.0
        self.merged = weights is not None
        counts: dict[str, float] = {}
        size = throughput = vector_ops = 0.0
        weight = 1.0
        widest = 0
        already_vector = False
        terms: set[Term] = set()
        accesses: list[Access] = []
        for node in nodes:
            cls = node.cls
            if weights is not None:
                weight = weights.get(id(node.home), 1.0)
            counts[cls] = counts.get(cls, 0.0) + weight
            access = node.access
            if access is not None:
                accesses.append(access)
            lanes = node.lanes
            if lanes > 1:
                already_vector = True
                if cls in FLOAT_CLASSES:
                    vector_ops += 1.0
            if cls in _FREE:
                continue
            size += weight
            if cls == "fmath":
                size += weight * (MATH_INSTRUCTIONS * lanes - 1)
            elif cls == "index" and node.results and view.folds(node.results[0]):
                size -= weight  # part of an address
                continue
            elif access is not None and not access.linear:
                for term in access.address.terms:
                    if isinstance(term, Term) and term not in terms:
                        terms.add(term)
                        size += weight * term_instructions(term)
            element = node.element
            if lanes > 1 and element:
                width = max(1, lanes * _bits(element) // VECTOR_BITS)
                size += weight * (width - 1)
                throughput += THROUGHPUT.get(cls, 0.5) * width * weight
            else:
                throughput += THROUGHPUT.get(cls, 0.5) * weight
            if element and cls in _SIZED:
                bits = _bits(element)
                if bits > widest:
                    widest = bits
        self.counts = counts
        self.size = size
        self.throughput = max(throughput * 0.5, size * 0.25)
        self.branches = counts.get("branch", 0.0)
        self.float_ops = sum([n for c, n in counts.items() if c in FLOAT_CLASSES])
        self.vector_ops = vector_ops
        self.already_vector = already_vector
        self.accesses = accesses
        self.element_bits = widest
        self._memory(view)
        self._chains(view)
        self._vectorization()
        self._live()
        width = self.vector_width
        self.cycles = max(self.throughput / self.vector_gain, self.carried_latency if width == 1 else 0.0)
        self.executed_ops = self.execs * size

    def weights_of(self, cls: str) -> float:
        """Operations of a class in one iteration."""
        return self.counts.get(cls, 0.0)

    def _memory(self, view: FunctionView) -> None:
        loop = self.loop
        self.unit = self.zero = self.gathered = self.gathered_stores = self.unknown = 0
        roots: set[int] = set()
        stored: set[int] = set()
        streams: set[object] = set()
        groups: set[object] = set()
        invariant_loads = invariant_stores = 0
        dense = self._dense(view)
        for access in self.accesses:
            roots.add(access.root)
            stride = 0 if loop is None else access.stride if access.loop is loop else access.stride_in(loop)
            if not access.known or not access.linear:
                self.unknown += 1
            if stride == 0:
                self.zero += 1
                if access.is_store:
                    invariant_stores += 1
                else:
                    invariant_loads += 1
            elif abs(stride) == 1 or abs(stride) == access.lanes or dense.get(id(access)):
                self.unit += 1
            else:
                self.gathered += 1
                self.gathered_stores += access.is_store
            if access.is_store:
                stored.add(access.root)
            groups.add(access.group)
            rest = access.address.part
            if loop is not None and loop.iv in access.address.terms:
                rest = rest - {(loop.iv, access.address.terms[loop.iv])}
            streams.add((access.root, rest, access.address.const if not stride else 0))
        self.roots = len(roots)
        self.groups = len(groups)
        self.streams = len(streams)
        self.invariant_loads = invariant_loads
        self.invariant_stores = invariant_stores
        self.store_pairs = len(stored) * (len(roots) - 1)

    def _dense(self, view: FunctionView) -> dict[int, bool]:
        """id(access) -> True for accesses that fill small strides: they vectorize by shuffles, wider ones do not."""
        loop = self.loop
        if loop is None:
            return {}
        families: dict[tuple[int, bool, int, frozenset[object]], list[Access]] = {}
        for access in self.accesses:
            stride = abs(access.stride if access.loop is loop else access.stride_in(loop))
            if (stride == 2 or (stride == 4 and access.bits == 64)) and access.lanes == 1:
                key = (access.root, access.is_store, stride, access.address.part)
                families.setdefault(key, []).append(access)
        out: dict[int, bool] = {}
        for (_, is_store, stride, _), members in families.items():
            seen = {a.address.const % stride for a in members}
            if len(seen) == stride or (not is_store and 2 * len(seen) >= stride):
                out.update(dict.fromkeys(map(id, members), True))
        return out

    def _live(self) -> None:
        """Values live at once in the body, and those from outside, addresses apart; a load sinks to its first use."""
        nodes = self.nodes
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        made: dict[int, tuple[int, Node]] = {}
        for at, node in enumerate(nodes):
            for v in node.operands:
                if v not in last:
                    first[v] = at
                last[v] = at
            for v in node.results:
                made[v] = (at, node)
        delta = [0] * (len(nodes) + 1)
        for v, (at, node) in made.items():
            end = last.get(v)
            if end is None or node.cls in ("index", "const", "loop", "alloc") or not node.element:
                continue
            if node.access is not None:
                at = first[v]
                if at == end:  # folds into its only use
                    continue
            delta[at] += 1
            delta[end] -= 1
        most = total = 0
        for d in delta:
            total += d
            if total > most:
                most = total
        self.live = float(most + len(self.loop.carried if self.loop is not None else ()))
        addressed: set[int] = set()
        for access in self.accesses:
            addressed.update(access.node.operands[access.is_store :])
        self.invariants = float(len(last.keys() - made.keys() - addressed))

    def _chains(self, view: FunctionView) -> None:
        """Longest chain of one iteration, and the cycles each iteration must wait for the one before."""
        loop = self.loop
        ready: dict[int, float] = {}
        longest = 0.0
        for node in self.nodes:
            done = 0.0
            for v in node.operands:
                if v in ready and ready[v] > done:
                    done = ready[v]
            done += LATENCY.get(node.cls, 0.0)
            for v in node.results:
                ready[v] = done
            if done > longest:
                longest = done
        self.chain = longest
        self.carried_latency = 0.0
        self.carried_float = 0
        self.memory_reductions = 0
        self.reducible_stores = 0
        self.recurrences = 0
        self.distance = 0.0
        if loop is None:
            return
        for arg, yielded in loop.carried[:32]:
            if yielded is None or yielded == arg:
                continue
            latency, reassociates, classes = self._path({arg}, yielded)
            if latency is None:
                continue
            if classes & FLOAT_CLASSES and not reassociates:
                self.carried_float += 1
            self.carried_latency = max(self.carried_latency, latency)
        by_root: dict[int, list[Access]] = {}
        for access in self.accesses:
            if not access.is_store:
                by_root.setdefault(access.root, []).append(access)
        pairs = 0
        for store in self.accesses:
            if not store.is_store:
                continue
            terms = store.address.terms
            for load in by_root.get(store.root, ()):
                pairs += 1
                if pairs > 256 or load.address.terms != terms:
                    continue
                stride = store.stride_in(loop)
                gap = store.address.const - load.address.const
                if stride == 0:
                    if gap != 0:
                        continue
                    steps = 1.0
                    self.memory_reductions += 1
                else:
                    if gap % stride or gap // stride <= 0:
                        continue
                    steps = float(gap // stride)
                    self.recurrences += 1
                    self.distance = steps if self.distance == 0 else min(self.distance, steps)
                if load.node.virtual or store.node.virtual:
                    path: float | None = (
                        sum(LATENCY.get(n.cls, 0.0) for n in self.nodes if n.virtual and n.cls == "fadd") or 4.0
                    )
                else:
                    path, reorders, classes = self._path(set(load.node.results), store.node.operands[0])
                    if stride == 0 and path is not None and (reorders or not classes & FLOAT_CLASSES):
                        self.reducible_stores += 1
                if path is not None:
                    self.carried_latency = max(self.carried_latency, (path + _FORWARDING) / steps)

    def _path(self, sources: set[int], target: int) -> tuple[float | None, bool, set[str]]:
        """(longest latency from a source value to the target value in the body, may it be reordered, its classes)."""
        if target in sources:
            return 0.0, False, set()
        reach: dict[int, float] = dict.fromkeys(sources, 0.0)
        classes: set[str] = set()
        reassociates = True
        for node in self.nodes:
            best = -1.0
            for v in node.operands:
                t = reach.get(v)
                if t is not None and t > best:
                    best = t
            if best < 0:
                continue
            done = best + LATENCY.get(node.cls, 0.0)
            classes.add(node.cls)
            if node.cls in FLOAT_CLASSES and node.op is not None and not _REASSOCIATES.search(node.op.text):
                reassociates = False
            for v in node.results:
                reach[v] = done
        return reach.get(target), reassociates, classes

    def _vectorization(self) -> None:
        counts = self.counts
        bits = self.element_bits or 64
        width = max(1, VECTOR_BITS // bits)
        if self.recurrences and self.distance < width:
            width = 1 << int(self.distance).bit_length() - 1
        by_lane = self.gathered + counts.get("idiv", 0.0)
        if bits == 64:
            by_lane += counts.get("imul", 0.0) * 0.5
        able = (
            self.loop is not None
            and not self.already_vector
            and not counts.get("call")
            and not counts.get("fmath")
            and not counts.get("sync")
            and not counts.get("alloc")
            and self.carried_float == 0
            and self.invariant_stores <= self.reducible_stores
            and width > 1
            and by_lane * width + (self.gathered - self.gathered_stores) * STRIDED_COST
            < (width - 1) * (self.size - by_lane)
            and self.unknown == 0
            and self.unit > 0
            and self.trip >= width
        )
        self.vectorizable = able
        self.vector_width = width if able else 1
        # in a vector loop a strided access or a division is one scalar operation and one lane move for each lane
        wide = self.size + by_lane * (2 * width - 1)
        self.vector_gain = max(1.0, width * self.size / wide) if able and wide else 1.0


def term_instructions(term: Term) -> float:
    """Instructions of a nonlinear part of an address: one for a power of two, a multiplication and shifts otherwise."""
    divisor = term.args[-1]
    if term.kind in ("floordiv", "ceildiv", "mod") and not divisor.terms:
        return 1.0 if divisor.const & (divisor.const - 1) == 0 else 4.0
    return float(len(term.args))


def bodies(view: FunctionView) -> list[Body]:
    """The innermost loops that run, or the straight-line function; computed once per view."""
    known: list[Body] | None = view.memo.get("bodies")
    if known is None:
        inner = view.innermost
        known = [Body(view, loop) for loop in inner] if inner else [Body(view, None)]
        view.memo["bodies"] = known
    return known


def hot_body(view: FunctionView) -> Body:
    """The body with the most estimated cycles; the first of equals."""
    known: Body | None = view.memo.get("hot_body")
    if known is None:
        known = view.memo["hot_body"] = max(bodies(view), key=lambda b: b.execs * max(b.cycles, 0.25))
    return known


def unrolled_sizes(view: FunctionView) -> tuple[dict[int, float], set[int]]:
    """Sizes once inner loops that LLVM would unroll fully are unrolled.

    Returns id(loop) -> instructions of its body (key 0 is the whole function), and the ids of the loops that disappear.
    """
    sizes: dict[int, float] = {}
    gone: set[int] = set()
    for loop in reversed(view.loops):
        own = float(len([n for n in loop.nodes if n.cls not in _FREE]))
        own += sum([_unrolled(child, sizes[id(child)], gone) for child in loop.children])
        sizes[id(loop)] = own
        if fully_unrolls(loop, own) and all(id(c) in gone for c in loop.children):
            gone.add(id(loop))
    top = float(len([n for n in view.nodes if n.loop is None and n.cls not in _FREE]))
    sizes[0] = top + sum(_unrolled(loop, sizes[id(loop)], gone) for loop in view.top_loops)
    return sizes, gone


def _unrolled(loop: Loop, size: float, gone: set[int]) -> float:
    return size * loop.trip if id(loop) in gone else size + 3


def fully_unrolls(loop: Loop, size: float) -> bool:
    """Whether a loop of this body size has a constant trip count small enough for full unrolling."""
    return loop.constant_trip and not loop.unknown and loop.trip * size <= FULL_UNROLL_LIMIT


@lru_cache(maxsize=1024)
def _bits(element: str) -> int:
    if element in ("f64", "i64", "index"):
        return 64
    if element in ("f32", "i32"):
        return 32
    digits = "".join(c for c in element if c.isdigit())
    return int(digits[:3]) if digits else 32


__all__ = ["FULL_UNROLL_LIMIT", "VECTOR_BITS", "Body", "bodies", "fully_unrolls", "hot_body", "unrolled_sizes"]
