"""What the loops that do the work look like to a compiler: size, streams, recurrences, vectorization, bounds.

A `Body` is the code of one innermost loop, or of the whole function where it has no loop. The figures follow what
LLVM's loop vectorizer looks at, on an x86-64 core with 256-bit vectors; they are features for a model, no simulation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from functools import lru_cache

from .affine import Term, variable
from .function_view import FunctionView
from .nodes import Access, Loop, Node, product
from .op_classes import FLOAT_CLASSES, LATENCY, THROUGHPUT

VECTOR_BITS = 256
FULL_UNROLL_LIMIT = 300
"""LLVM's full unroll threshold at -O3, in instructions of the unrolled body."""
MATH_INSTRUCTIONS: dict[str, tuple[float, float]] = {
    # name -> instructions of one call for f32 and for f64, its loop's load and store included
    "exp": (35, 56), "exp2": (33, 46), "expm1": (35, 56), "log": (40, 56), "log2": (39, 58), "log10": (77, 93),
    "log1p": (41, 57), "tanh": (119, 117), "sin": (36, 79), "cos": (36, 82), "tan": (101, 95), "atan": (65, 70),
    "asin": (40, 64), "acos": (40, 67), "sinh": (127, 122), "cosh": (64, 70), "erf": (79, 92), "erfc": (80, 92),
    "cbrt": (130, 140), "powf": (71, 131), "atan2": (128, 137), "atanh": (71, 68), "acosh": (59, 60),
    "asinh": (114, 110),
}  # fmt: skip
"""Counted over 1,000 elements on x86-64 with glibc 2.36."""
_MATH = (60.0, 70.0)
"""Of a function that is not among these."""
_BF16_INSTRUCTIONS = 15
"""A bf16 operation is done in f32 and rounded by a call."""
_F16_CONVERSIONS = 3
"""Instructions that a scalar f16 operation adds: it is done in f32."""
_F16_SCALAR = {"fma": 84.0, "fsqrt": 5.0}
"""f16 operations that are not vectorized -> instructions; the others convert in vectors."""
_NEAR, _STRIDED, _SCATTERED = 1.0, 2.0, 3.25
"""Cost of one lane of a load at a small stride, of another load and of a store that are not contiguous."""
_MOST_NEAR = 8
"""Elements; loads at a smaller stride are loaded together and shuffled."""
_DIVISION = 20.0
"""Of one lane of an integer division that is not by a constant."""
_SCALAR_CALL, _VECTOR_CALL, _CALL_SIZE = 10.0, 11.5, 3.0
"""Of a call of a library function, of one for a lane, and its instructions here."""
_WIDE_MULTIPLICATION = 4.0
"""What a 64-bit integer multiplication adds in a vector."""
_LOOP = 2.0
"""Of counting and jumping."""
_FEW_ITERATIONS = 16
"""Loops with a smaller constant trip count are not vectorized where that needs checks at run time."""
_FORWARDING = 5.0
"""Cycles from a store to a load of the same address."""
_FREE = frozenset(("const", "yield", "loop"))
_SIZED = FLOAT_CLASSES | {"load", "store"}
_MEMORY = frozenset(("load", "store"))
_NARROW = 32
"""Bits that arithmetic and comparisons take at least, as C has it."""
_HALF = ("bf16", "f16")
_INDUCTION = (".addi", ".subi", ".add", ".sub")
_REDUCING = (
    *(".addi", ".muli", ".andi", ".ori", ".xori", ".maxsi", ".maxui", ".minsi", ".minui", ".addf", ".mulf"),
    *(".maximumf", ".minimumf", ".maxnumf", ".minnumf", ".subi", ".subf"),
)
_ELEMENTWISE_LOWERED = frozenset(("vector.contract", "vector.reduction", "vector.transpose", "vector.gather"))
"""Vector operations that become scalar ones: strict sums, moves of single elements."""
_REASSOCIATES = re.compile(r"fastmath\s*(?:=\s*#arith\.fastmath\s*)?<[^>]*\b(?:reassoc|fast)\b")


class Body:
    """One innermost loop and its figures, each for one iteration unless it says otherwise."""

    __slots__ = (
        "accesses",
        "already_vector",
        "branches",
        "carried_float",
        "carried_latency",
        "carried_other",
        "chain",
        "conflicts",
        "counts",
        "cycles",
        "distance",
        "divided",
        "element_bits",
        "elsewhere",
        "execs",
        "executed_ops",
        "float_ops",
        "gathered",
        "gathered_copies",
        "gathered_stores",
        "groups",
        "invariant_loads",
        "invariant_stores",
        "invariants",
        "library_calls",
        "live",
        "loop",
        "meets",
        "memory_reductions",
        "merged",
        "near_copies",
        "nodes",
        "packed",
        "recurrences",
        "reducible_stores",
        "roots",
        "rounded",
        "size",
        "store_pairs",
        "stored",
        "streams",
        "throughput",
        "trip",
        "unit",
        "unknown",
        "vector_gain",
        "vector_ops",
        "vector_width",
        "vectorizable",
        "weights",
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
        size = throughput = vector_ops = library_calls = elsewhere = converted = divided = packed = 0.0
        rounded = False
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
            element = node.element
            if cls == "fmath" or element in _HALF:
                more, calls = _by_element(node)
                size += weight * more
                throughput += weight * more * 0.3
                library_calls += weight * calls
                if element == "f16" and cls in _ROUNDED and not calls:
                    converted += weight
                rounded = rounded or (element == "bf16" and calls > 0)
                if calls:
                    elsewhere += weight * (more - 3 * calls)
            elif cls == "idiv" and not (node.operands and view.is_constant(node.operands[-1])):
                divided += weight
            if cls == "index" and node.results and view.folds(node.results[0]):
                size -= weight  # part of an address
                continue
            if access is not None and not access.linear:
                for term in access.address.terms:
                    if isinstance(term, Term) and term not in terms:
                        terms.add(term)
                        size += weight * term_instructions(term)
            if lanes > 1 and element:
                width = instructions_of(view, node)
                size += weight * (width - 1)
                throughput += THROUGHPUT.get(cls, 0.5) * width * weight
            else:
                throughput += THROUGHPUT.get(cls, 0.5) * weight
            if element:
                bits = _bits(element)
                if cls in _SIZED and bits > widest:
                    widest = bits
                packed += weight * (bits if cls in _MEMORY else bits if bits > _NARROW else _NARROW)
        self.counts = counts
        self.size = size
        self.throughput = max(throughput * 0.5, size * 0.25)
        self.branches = counts.get("branch", 0.0)
        self.float_ops = sum([n for c, n in counts.items() if c in FLOAT_CLASSES])
        self.vector_ops = vector_ops
        self.library_calls = library_calls
        self.packed = packed
        """Bits of the operands of all operations."""
        self.divided = divided
        self.rounded = rounded
        """Whether a bf16 result is rounded, which LLVM does not vectorize."""
        self.elsewhere = elsewhere
        """Instructions of `size` that are executed in what is called."""
        self.already_vector = already_vector
        self.accesses = accesses
        self.weights = weights or {}
        self.element_bits = widest
        self._memory(view)
        self._chains(view)
        self._vectorization()
        if not self.vectorizable:
            self.size += converted * _F16_CONVERSIONS
        self._live()
        gain = self.vector_gain
        self.cycles = max(self.throughput / gain, self.carried_latency if gain == 1 else 0.0)
        self.executed_ops = self.execs * size

    def run(self, stores: bool) -> float:
        """The most elements next to one another that the stores (or the loads) of one iteration touch."""
        offsets: dict[tuple[int, frozenset[tuple[Hashable, int]]], set[int]] = {}
        for access in self.accesses:
            if access.is_store == stores and access.lanes == 1 and access.linear:
                offsets.setdefault((access.root, access.address.part), set()).add(access.address.const)
        trips = {loop.iv: loop.trip for loop in self.unrolled}
        best = 1.0 if offsets else 0.0
        for (_, part), found in offsets.items():
            run = longest = 1
            for offset in sorted(found):
                run = run + 1 if offset - 1 in found else 1
                longest = max(longest, run)
            length = float(longest)
            for name, step in sorted(part, key=lambda item: abs(item[1])):
                if name in trips and abs(step) == length:
                    length *= trips[name]
            best = max(best, length)
        return best

    @property
    def unrolled(self) -> list[Loop]:
        """Loops that are unrolled into this one."""
        found: dict[int, Loop] = {}
        for access in self.accesses if self.merged else ():
            at = access.loop
            while at is not None and at is not self.loop:
                found[id(at)] = at
                at = at.parent
        return list(found.values())

    def weights_of(self, cls: str) -> float:
        """Operations of a class in one iteration."""
        return self.counts.get(cls, 0.0)

    def _memory(self, view: FunctionView) -> None:
        loop = self.loop
        self.unit = self.zero = self.gathered = self.unknown = 0
        self.near_copies = self.gathered_copies = self.gathered_stores = 0.0
        roots: set[int] = set()
        stored: set[int] = set()
        streams: set[object] = set()
        groups: set[object] = set()
        invariant_loads = invariant_stores = 0
        dense = self._dense(view)
        for access in self.accesses:
            roots.add(access.root)
            stride = 0 if loop is None else access.stride if access.loop is loop else access.stride_in(loop)
            if (not access.known or not access.linear) and _is_irregular(view, access, loop):
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
                copies = self.weights.get(id(access.node.home), 1.0)
                if access.is_store:
                    self.gathered_stores += copies
                elif abs(stride) <= _MOST_NEAR:
                    self.near_copies += copies
                else:
                    self.gathered_copies += copies
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
        self.stored = len(stored)
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
        self.carried_other = 0
        self.memory_reductions = 0
        self.reducible_stores = 0
        self.recurrences = 0
        self.conflicts = 0
        self.meets = False
        """Whether accesses meet so that a check at run time fails."""
        self.distance = 0.0
        if loop is None:
            return
        uses: tuple[dict[int, list[Node]], set[int]] | None = None
        for arg, yielded in loop.carried[:32]:
            if yielded is None or yielded == arg:
                continue
            latency, reassociates, classes = self._path({arg}, yielded)
            if latency is None:
                continue
            if classes & FLOAT_CLASSES and not reassociates:
                self.carried_float += 1
            else:
                uses = uses or _uses(self.nodes)
                self.carried_other += not self._reduces(arg, yielded, *uses)
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
            stride = store.stride_in(loop)
            for load in by_root.get(store.root, ()):
                pairs += 1
                if pairs > 256:
                    break
                if load.address.terms != terms:
                    if load.stride_in(loop) != stride:
                        meets, seen = _overlap(view, load, store, loop)
                        self.conflicts += meets and seen
                        self.meets = self.meets or meets
                    continue
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

    def _reduces(self, arg: int, yielded: int, users: dict[int, list[Node]], made: set[int]) -> bool:
        """Whether a carried value is an induction or a reduction: by one operation, and of no use before the end.

        `users`, `made`: of `_uses`.
        """
        for node in users.get(arg, ()):
            if node.results and node.results[0] == yielded and node.name.endswith(_INDUCTION):
                rest = [v for v in node.operands if v != arg]
                if len(rest) == 1 and rest[0] not in made:
                    return True
        if users.get(yielded):
            return False
        value, name = arg, ""
        for _ in range(len(self.nodes)):
            if value == yielded:
                return True
            using = users.get(value, ())
            selects = [n for n in using if n.cls == "select"]
            if len(using) == 2 and len(selects) == 1 and {n.cls for n in using} & {"icmp", "fcmp"}:
                using = selects  # a minimum, written out
            elif len(using) != 1 or not using[0].name.endswith(_REDUCING):
                return False
            node = using[0]
            if not node.results or (name and node.name != name):
                return False
            value, name = node.results[0], node.name
        return False

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
        """Costs as LLVM sets them against one another: of one iteration, and of one lane of a vector iteration."""
        counts = self.counts
        bits = self.element_bits or 64
        width = max(1, VECTOR_BITS // bits)
        if self.recurrences and self.distance < width:
            width = 1 << int(self.distance).bit_length() - 1
        calls = self.library_calls
        apart = self.near_copies + self.gathered_copies + self.gathered_stores + self.divided + _CALL_SIZE * calls
        own = self.size - self.elsewhere
        together = max(0.0, own - apart)
        if bits == 64:
            together += counts.get("imul", 0.0) * _WIDE_MULTIPLICATION
        # each operation takes as many vectors as its own elements fill, which may be wider than those in memory
        per_vector = max(together / width, self.packed / VECTOR_BITS * together / own if own else 0.0)
        lane = per_vector + _NEAR * self.near_copies + _STRIDED * self.gathered_copies
        lane += _SCATTERED * self.gathered_stores + _DIVISION * self.divided + _VECTOR_CALL * calls
        able = (
            self.loop is not None
            and not self.already_vector
            and not counts.get("call")
            and not self.rounded
            and not counts.get("sync")
            and not counts.get("alloc")
            and self.carried_float == 0
            and self.carried_other == 0
            and (not self.invariant_stores or (self.invariant_stores <= self.reducible_stores and self.stored == 1))
            and width > 1
            and lane < own + _LOOP + (_SCALAR_CALL - _CALL_SIZE) * calls
            and self.unknown == 0
            and self.unit + self.gathered > 0
            and self.trip >= width
            and not self.conflicts
            and not (self.loop.constant_trip and self.trip < _FEW_ITERATIONS and self.store_pairs)
        )
        self.vectorizable = able
        self.vector_width = width if able else 1
        executed = lane - (_VECTOR_CALL - _CALL_SIZE - 2) * calls + self.elsewhere
        self.vector_gain = max(1.0, self.size / executed) if able and executed and not self.meets else 1.0


def _uses(nodes: list[Node]) -> tuple[dict[int, list[Node]], set[int]]:
    """Value -> the operations that use it, in order, terminators apart; and the values that some operation makes."""
    users: dict[int, list[Node]] = {}
    made: set[int] = set()
    for node in nodes:
        made.update(node.results)
        if node.cls != "yield":
            for v in set(node.operands):
                users.setdefault(v, []).append(node)
    return users, made


def _by_element(node: Node) -> tuple[float, float]:
    """Instructions beyond one, and library calls, of a math function or of an operation on 16-bit floats."""
    lanes, element, cls = node.lanes, node.element, node.cls
    if cls == "fmath":
        f32, f64 = MATH_INSTRUCTIONS.get(node.name.rpartition(".")[2], _MATH)
        cost = f64 if element == "f64" else f32
        if element == "bf16":
            cost += _BF16_INSTRUCTIONS
        return lanes * cost - 1, float(lanes)
    if element == "bf16" and (cls in _ROUNDED or (cls == "cast" and node.name.endswith("f"))):
        return float(lanes * _BF16_INSTRUCTIONS), float(lanes)
    if element == "f16" and cls in _F16_SCALAR:
        return lanes * _F16_SCALAR[cls], float(lanes)
    return 0.0, 0.0


_ROUNDED = FLOAT_CLASSES - {"fcheap", "fcmp", "select"}


def instructions_of(view: FunctionView, node: Node) -> float:
    """Instructions that an operation on a vector becomes: one a 256-bit part, or several an element."""
    if node.name not in _ELEMENTWISE_LOWERED:
        return max(1.0, node.lanes * _bits(node.element) // VECTOR_BITS)
    if node.name == "vector.gather":
        return 3.0 * node.lanes
    if node.name == "vector.transpose":
        return 2.0 * node.lanes
    shape = view.type_of(node.operands[0]).shape or ()
    elements = float(product(shape))
    if node.name == "vector.contract":
        other = float(product(view.type_of(node.operands[1]).shape or ()))
        points = math.sqrt(elements * other * node.lanes)  # each loop stands in two of the three
        depth = max(1.0, points / node.lanes)
        each = 2 * depth + 2 if node.element[:1] != "i" else 2 * math.log2(depth + 1) + 4
        return node.lanes * each
    depth = max(1.0, elements / node.lanes)
    return node.lanes * (2 * depth if node.element[:1] != "i" else 2 * math.log2(depth + 1) + 1)


def _overlap(view: FunctionView, one: Access, other: Access, loop: Loop) -> tuple[bool, bool]:
    """Whether what two accesses of one memref touch while `loop` runs meets each time, whatever the loops around it do;
    and whether that is seen when it is compiled: they are a constant apart but for what the loop adds."""
    if not (one.linear and other.linear):
        return False, False
    spans: list[tuple[float, float]] = []
    apart: dict[Hashable, int] = {}
    for access, sign in ((one, 1), (other, -1)):
        low = high = float(access.address.const)
        for name, c in access.address.terms.items():
            at = view.loop_of_iv.get(name)
            if at is None:
                return False, False
            if _within(at, loop):
                span = c * at.step * max(0.0, at.max_trip - 1)
                low, high = low + c * at.low + min(0.0, span), high + c * at.low + max(0.0, span)
            else:
                apart[name] = apart.get(name, 0) + sign * c
        spans.append((low, high))
    least = most = 0.0
    for name, c in apart.items():
        at = view.loop_of_iv[name]
        least, most = least + min(c * at.low, c * at.high), most + max(c * at.low, c * at.high)
    (low, high), (start, end) = spans
    return low + most <= end and high + least >= start, not any(apart.values())


def _within(at: Loop | None, loop: Loop) -> bool:
    while at is not None and at is not loop:
        at = at.parent
    return at is loop


def _is_irregular(view: FunctionView, access: Access, loop: Loop | None) -> bool:
    """Whether an address moves in a loop in a way that is not known; what is fixed while it runs is only a base."""
    variables = access.address.variables()
    if loop is None or (not access.known and variables <= view.loop_of_iv.keys()):
        return True
    for part in access.address.terms:
        names = variable(part).variables() if isinstance(part, Term) else () if part in view.loop_of_iv else (part,)
        if any(_moves(view, name, loop) for name in names):
            return True
    return False


def _moves(view: FunctionView, name: Hashable, loop: Loop) -> bool:
    """Whether a loop variable or a value changes while a loop runs."""
    at = view.loop_of_iv.get(name)
    if at is None:
        node = view.defining.get(name) if isinstance(name, int) else None
        if node is None:
            return name not in view.arguments and not _carried_outside(name, loop)
        at = node.home
    return _within(at, loop)


def _carried_outside(name: Hashable, loop: Loop) -> bool:
    outer = loop.parent
    while outer is not None:
        if any(name == arg for arg, _ in outer.carried):
            return True
        outer = outer.parent
    return False


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


__all__ = [
    "FULL_UNROLL_LIMIT",
    "VECTOR_BITS",
    "Body",
    "bodies",
    "fully_unrolls",
    "hot_body",
    "instructions_of",
    "unrolled_sizes",
]
