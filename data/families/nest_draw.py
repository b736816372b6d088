"""What the random families draw with: sizes, expressions, loops and subscripts.

Values stay away from denormals and from slow paths of libm: divisors are kept from zero, and `weighted_mean` is for
what is written in place.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .affine_text import Array, Index, Kernel, Value

MIN_VOLUME, MAX_VOLUME = 300.0, 2e7
"""Innermost iterations executed."""


@dataclass(frozen=True)
class Draw:
    """What a family draws from: its random numbers, the kernel it writes, and how far sizes are scaled down."""

    rng: random.Random
    k: Kernel
    scale: float
    element: str
    """Main element type of the program."""
    flavour: str
    """Which operations its expressions prefer, a key of FLAVOURS."""

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def volume(self, low: float = MIN_VOLUME, high: float = MAX_VOLUME) -> float:
        """Log-uniform count of innermost iterations."""
        drawn = math.exp(self.rng.uniform(math.log(low), math.log(high)))
        return max(16.0, drawn * self.scale)

    def trips(self, n: int, volume: float | None = None, *, smallest: int = 2) -> list[int]:
        """`n` trip counts whose product is near a volume: any number, primes, powers of two, multiples of eight."""
        volume = self.volume() if volume is None else volume
        weights = [self.rng.uniform(0.35, 1.0) for _ in range(n)]
        total = sum(weights)
        return [self.size(volume ** (weight / total), smallest) for weight in weights]

    def size(self, about: float, smallest: int = 2) -> int:
        n = max(smallest, round(about))
        style = self.rng.random()
        if style < 0.3:
            return n
        if style < 0.55:
            return max(smallest, 1 << max(1, round(math.log2(n))))
        if style < 0.75:
            return _prime_at_least(n)
        return max(smallest, 8 * round(n / 8)) if n >= 12 else n

    def constant(self, low: float = 0.25, high: float = 1.75, element: str | None = None) -> Value:
        element = element or self.element
        if element.startswith("f"):
            return self.k.constant(round(self.rng.uniform(low, high), 4), element)
        return self.k.constant(self.rng.randint(1, 15), element)


def _prime_at_least(n: int) -> int:
    while n < 2 or any(n % d == 0 for d in range(2, math.isqrt(n) + 1)):
        n += 1
    return n


# --- expressions ------------------------------------------------------------------------------------------------------

FLAVOURS: dict[str, dict[str, float]] = {
    "linear": {"add": 5, "sub": 3, "scale": 3},
    "products": {"mul": 5, "add": 3, "sub": 2, "fma": 2},
    "ordered": {"max": 3, "min": 3, "add": 2, "sub": 2, "abs": 1, "choose": 2},
    "divisions": {"div": 3, "add": 3, "mul": 3, "sub": 2},
    "roots": {"sqrt": 2, "square": 2, "add": 3, "sub": 2, "mul": 1},
    "library": {"exp": 1, "tanh": 0.4, "log": 0.5, "add": 3, "mul": 3, "div": 0.5},
    "mixed": {
        "add": 4,
        "sub": 3,
        "mul": 4,
        "fma": 1,
        "max": 1,
        "min": 1,
        "abs": 0.5,
        "div": 0.4,
        "sqrt": 0.4,
        "choose": 1,
    },
    "bits": {"and": 3, "or": 2, "xor": 4, "shift": 3, "add": 2},
}
"""Flavour -> weight of each operation; on integers the floating-point ones fall back to near kin."""

FLOAT_FLAVOURS = ("linear", "products", "products", "mixed", "mixed", "ordered", "divisions", "roots", "library")
INT_FLAVOURS = ("linear", "products", "mixed", "ordered", "bits", "bits", "divisions")


def binary(d: Draw, a: Value, b: Value, kind: str) -> Value:
    """Two values into one; kinds with one operand are applied to the sum."""
    k = d.k
    if a.is_float:
        match kind:
            case "add":
                return k.op("arith.addf", a, b)
            case "sub":
                return k.op("arith.subf", a, b)
            case "mul":
                return k.op("arith.mulf", a, b)
            case "fma":
                return k.op("math.fma", a, b, d.constant(element=a.type))
            case "max":
                return k.op(d.rng.choice(("arith.maximumf", "arith.maxnumf")), a, b)
            case "min":
                return k.op(d.rng.choice(("arith.minimumf", "arith.minnumf")), a, b)
            case "div":
                return k.op("arith.divf", a, k.op("arith.addf", k.op("arith.mulf", b, b), k.constant(1, a.type)))
            case "choose":
                return k.select(k.compare(d.rng.choice(("olt", "ogt", "ole", "oge")), a, b), a, unary(d, b, "scale"))
            case _:
                return unary(d, k.op("arith.addf", a, b), kind)
    match kind:
        case "sub" | "fma":
            return k.op("arith.subi", a, b)
        case "mul" | "square" | "exp" | "tanh":
            return k.op("arith.muli", a, b)
        case "max":
            return k.op("arith.maxsi", a, b)
        case "min":
            return k.op("arith.minsi", a, b)
        case "and":
            return k.op("arith.andi", a, b)
        case "or":
            return k.op("arith.ori", a, b)
        case "xor" | "sqrt" | "log":
            return k.op("arith.xori", a, b)
        case "div":
            # 1 to 15: never zero, and never the overflow of the smallest integer by -1.
            divisor = k.op("arith.ori", k.op("arith.andi", b, k.constant(15, b.type)), k.constant(1, b.type))
            return k.op(d.rng.choice(("arith.divsi", "arith.remsi")), a, divisor)
        case "choose":
            return k.select(k.compare(d.rng.choice(("slt", "sgt", "sle", "ne")), a, b), a, unary(d, b, "scale"))
        case "shift" | "scale" | "abs":
            return unary(d, k.op("arith.addi", a, b), kind)
        case _:
            return k.op("arith.addi", a, b)


def unary(d: Draw, a: Value, kind: str) -> Value:
    """One value, perhaps with a constant."""
    k = d.k
    if a.is_float:
        match kind:
            case "abs":
                return k.op("math.absf", a)
            case "sqrt":
                return k.op("math.sqrt", k.op("arith.addf", k.op("math.absf", a), d.constant(element=a.type)))
            case "square":
                return k.op("arith.mulf", a, a)
            case "exp":  # of at most 1, so that neither overflow nor a slow path is met
                return k.op("math.exp", k.op("arith.minnumf", k.op("math.absf", a), k.constant(1, a.type)))
            case "tanh":
                return k.op("math.tanh", a)
            case "log":
                return k.op("math.log", k.op("arith.addf", k.op("math.absf", a), k.constant(1, a.type)))
            case "div":
                return k.op(
                    "arith.divf",
                    d.constant(element=a.type),
                    k.op("arith.addf", k.op("math.absf", a), k.constant(1, a.type)),
                )
            case "add":
                return k.op("arith.addf", a, d.constant(element=a.type))
            case "sub":
                return k.op("arith.subf", d.constant(element=a.type), a)
            case "max" | "min" | "choose":
                return k.op("arith.maxnumf" if kind == "max" else "arith.minnumf", a, d.constant(element=a.type))
            case "fma":
                return k.op("math.fma", a, d.constant(element=a.type), d.constant(element=a.type))
            case _:
                return k.op("arith.mulf", a, d.constant(element=a.type))
    match kind:
        case "shift":
            return k.op(
                d.rng.choice(("arith.shli", "arith.shrsi", "arith.shrui")), a, k.constant(d.rng.randint(1, 7), a.type)
            )
        case "max" | "abs":
            return k.op("arith.maxsi", a, d.constant(element=a.type))
        case "min":
            return k.op("arith.minsi", a, d.constant(element=a.type))
        case "and" | "or" | "xor":
            return k.op(f"arith.{kind}i", a, d.constant(element=a.type))
        case "div":
            return k.op(
                d.rng.choice(("arith.divsi", "arith.remsi")), a, k.constant(d.rng.choice((3, 5, 7, 10, 16)), a.type)
            )
        case "add" | "sub":
            return k.op(f"arith.{kind}i", a, d.constant(element=a.type))
        case _:
            return k.op("arith.muli", a, d.constant(element=a.type))


def mix(d: Draw, values: Sequence[Value], extra: int = 0, flavour: str | None = None) -> Value:
    """One value of all the given ones (of one type): a random tree or chain, with `extra` operations on constants."""
    weights = FLAVOURS[flavour or d.flavour]
    kinds, shares = list(weights), list(weights.values())
    pool = list(values)
    chained = d.chance(0.5)
    d.rng.shuffle(pool)
    while len(pool) > 1 or extra > 0:
        kind = d.rng.choices(kinds, shares)[0]
        if len(pool) == 1 or (extra > 0 and d.chance(0.4)):
            at = 0 if chained else d.rng.randrange(len(pool))
            pool[at] = unary(d, pool[at], kind)
            extra -= 1
        else:
            a, b = pool.pop(0), pool.pop(0 if chained else d.rng.randrange(len(pool)))
            pool.insert(0 if chained else len(pool), binary(d, a, b, kind))
            if extra > 0 and not chained and d.chance(0.25):  # used twice: a graph, not a tree
                pool.append(d.rng.choice((a, b)))
                extra -= 1
    return pool[0]


def weighted_mean(d: Draw, values: Sequence[Value]) -> Value:
    """Weights that sum to one for floats, so updates in place neither vanish nor blow up; a mix for integers."""
    if not values[0].is_float:
        return mix(d, values)
    k, element = d.k, values[0].type
    if d.chance(0.5):  # one weight for all
        total = values[0]
        for value in values[1:]:
            total = k.op("arith.addf", total, value)
        return k.op("arith.mulf", total, k.constant(1 / len(values), element))
    weights = [d.rng.uniform(0.2, 1.0) for _ in values]
    terms = [k.op("arith.mulf", v, k.constant(w / sum(weights), element)) for v, w in zip(values, weights, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = k.op("arith.addf", total, term)
    return total


def add(d: Draw, a: Value, b: Value) -> Value:
    return d.k.op("arith.addf" if a.is_float else "arith.addi", a, b)


def sub(d: Draw, a: Value, b: Value) -> Value:
    return d.k.op("arith.subf" if a.is_float else "arith.subi", a, b)


def mul(d: Draw, a: Value, b: Value) -> Value:
    return d.k.op("arith.mulf" if a.is_float else "arith.muli", a, b)


def larger(d: Draw, a: Value, b: Value) -> Value:
    return d.k.op("arith.maxnumf" if a.is_float else "arith.maxsi", a, b)


def smaller(d: Draw, a: Value, b: Value) -> Value:
    return d.k.op("arith.minnumf" if a.is_float else "arith.minsi", a, b)


# --- loops and subscripts ---------------------------------------------------------------------------------------------


def over(d: Draw, trips: Sequence[int], body: Callable[[list[Index]], None], *, low: int = 0) -> None:
    """A perfect nest of loops low <= i < low + trip around `body`."""

    def level(at: int, indices: list[Index]) -> None:
        if at == len(trips):
            body(indices)
            return
        with d.k.loop(low, low + trips[at]) as index:
            level(at + 1, [*indices, index])

    level(0, [])


def scalar_index() -> Index:
    return Index("0", 0, 0)


def subscripts(d: Draw, indices: Sequence[Index], *, plain: float = 0.5) -> list[Index]:
    """How an array is read: as it is, permuted, broadcast, strided, shifted, backwards, or wrapped."""
    chosen = list(indices)
    if d.chance(plain):
        return chosen
    style = d.rng.choice(("permute", "drop", "drop", "stride", "shift", "mirror", "wrap", "skew"))
    at = d.rng.randrange(len(chosen))
    match style:
        case "permute":
            d.rng.shuffle(chosen)
        case "drop" if len(chosen) > 1:
            chosen.pop(at)
        case "stride":
            chosen[at] = chosen[at] * d.rng.choice((2, 2, 3, 4)) + d.rng.choice((0, 0, 1))
        case "mirror":
            chosen[at] = chosen[at].mirrored()
        case "wrap":
            chosen[at] = chosen[at] % d.rng.choice((3, 4, 7, 8, 16))
        case "skew" if len(chosen) > 1:
            other = d.rng.choice([i for i in range(len(chosen)) if i != at])
            chosen[at] = chosen[at] + chosen[other]
        case _:
            chosen[at] = chosen[at] + d.rng.randint(1, 3)
    return chosen


def reads(d: Draw, arrays: Sequence[Array], indices: Sequence[Index], *, plain: float = 0.5) -> list[Value]:
    """One load from each array, whose rank is that of its first access."""
    values = []
    for array in arrays:
        at = subscripts(d, indices, plain=plain)
        if array.extents and len(at) != len(array.extents):
            at = [indices[i % len(indices)] for i in range(len(array.extents))]
        values.append(d.k.load(array, *at))
    return values


def fresh_arrays(d: Draw, n: int) -> list[Array]:
    return [d.k.array(d.element) for _ in range(n)]
