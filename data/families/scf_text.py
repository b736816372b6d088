"""Writes kernels of affine, scf, memref, cf and vector operations: the affine writer plus run-time indices and control.

Numbers are `Num`s, which combine with Python's operators and with plain numbers: `(a * 2 + b).max(0)`. Subscripts that
are loop variables of `affine.for` stay affine accesses, grown to fit; any other subscript makes it a `memref.load` or
`memref.store`, and then the array's shape is the caller's to give and to keep to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .affine_text import Array, Bound, Index, Kernel, Value, applied

__all__ = ["Num", "Program"]

_COSTS = {"exp": 30, "log": 30, "sin": 30, "cos": 30, "tanh": 60, "powf": 60, "sqrt": 4, "div": 4, "rem": 4}
"""Operation -> how many simple ones it takes about; used to size programs."""

_SIGNED = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}


@dataclass(frozen=True)
class Num(Value):
    """A scalar or vector that knows the kernel it is computed in."""

    k: Program = field(compare=False, repr=False)

    @property
    def element(self) -> str:
        return _element(self.type)

    @property
    def is_float(self) -> bool:
        return self.element[0] == "f" or self.element == "bf16"

    def _with(self, name: str, other: Num | float, flipped: bool = False) -> Num:
        right = self.k.lit(other, self.type)
        a, b = (right, self) if flipped else (self, right)
        return self.k.op(f"arith.{name}{'f' if self.is_float else 'i'}", a, b)

    def _int(self, name: str, other: Num | float) -> Num:
        return self.k.op(f"arith.{name}", self, self.k.lit(other, self.type))

    def __add__(self, other: Num | float) -> Num:
        return self._with("add", other)

    def __radd__(self, other: float) -> Num:
        return self._with("add", other)

    def __sub__(self, other: Num | float) -> Num:
        return self._with("sub", other)

    def __rsub__(self, other: float) -> Num:
        return self._with("sub", other, flipped=True)

    def __mul__(self, other: Num | float) -> Num:
        return self._with("mul", other)

    def __rmul__(self, other: float) -> Num:
        return self._with("mul", other)

    def __truediv__(self, other: Num | float) -> Num:
        return self._with("div", other) if self.is_float else self._int("divsi", other)

    def __rtruediv__(self, other: float) -> Num:
        return self._with("div", other, flipped=True)

    def __floordiv__(self, other: Num | float) -> Num:
        """Unsigned."""
        return self._int("divui", other)

    def __mod__(self, other: Num | float) -> Num:
        """Unsigned."""
        return self._int("remui", other)

    def __and__(self, other: Num | int) -> Num:
        return self._int("andi", other)

    def __or__(self, other: Num | int) -> Num:
        return self._int("ori", other)

    def __xor__(self, other: Num | int) -> Num:
        return self._int("xori", other)

    def __lshift__(self, other: Num | int) -> Num:
        return self._int("shli", other)

    def __rshift__(self, other: Num | int) -> Num:
        """Logical: zeros come in."""
        return self._int("shrui", other)

    def sar(self, other: Num | int) -> Num:
        """Arithmetic shift to the right."""
        return self._int("shrsi", other)

    def rotl(self, bits: int) -> Num:
        width = int(self.element[1:])
        return (self << bits) | (self >> (width - bits))

    def max(self, other: Num | float) -> Num:
        return self._with("maxnum", other) if self.is_float else self._int("maxsi", other)

    def min(self, other: Num | float) -> Num:
        return self._with("minnum", other) if self.is_float else self._int("minsi", other)

    def clamp(self, low: Num | float, high: Num | float) -> Num:
        return self.max(low).min(high)

    def sqrt(self) -> Num:
        return self.k.op("math.sqrt", self)

    def abs(self) -> Num:
        return self.k.op("math.absf", self) if self.is_float else self.max(0 - self)

    def fma(self, a: Num | float, b: Num | float) -> Num:
        """self * a + b in one operation."""
        return self.k.op("math.fma", self, self.k.lit(a, self.type), self.k.lit(b, self.type))

    def math(self, name: str) -> Num:
        """E.g. `x.math("exp")`."""
        return self.k.op(f"math.{name}", self)

    def test(self, predicate: str, other: Num | float) -> Num:
        """An i1; `predicate` is lt, le, gt, ge, eq or ne, signed and ordered, or one of MLIR's own."""
        known = "o" + predicate if self.is_float else _SIGNED.get(predicate, predicate)
        if self.is_float and predicate not in _SIGNED:
            known = predicate
        return self.k.compare(known, self, self.k.lit(other, self.type))

    def to(self, wanted: str) -> Num:
        """Converted; integers are signed, i1 is 0 or 1."""
        return self.k.convert(self, wanted)


def _element(kind: str) -> str:
    """The element type of a vector type, or the type itself."""
    return kind.rpartition("x")[2].rstrip(">") if kind.startswith("vector") else kind


def _bits(element: str) -> int:
    return 64 if element == "index" else int(element.lstrip("bfi"))


class Program(Kernel):
    """One `func.func @kernel` with run-time subscripts, scf and cf control flow, and vectors."""

    def num(self, value: Value) -> Num:
        return value if isinstance(value, Num) else Num(value.name, value.type, self)

    def nums(self, values: Sequence[Value]) -> list[Num]:
        return [self.num(value) for value in values]

    # values

    def array(self, element: str, *shape: int) -> Array:
        """A new argument; without a shape, it grows with the affine accesses made to it."""
        made = super().array(element)
        made.extents = list(shape)
        return made

    def local(self, element: str, *shape: int) -> Array:
        made = super().local(element)
        made.extents = list(shape)
        return made

    def constant(self, value: float, element: str) -> Num:
        scalar = _element(element)
        if scalar[0] == "f" or scalar == "bf16":
            text = f"{float(value):.9e}"
        else:
            text = str(int(value) if scalar == "index" else _wrapped(int(value), _bits(scalar)))
        if element != scalar:
            text = f"dense<{text}>"
        name = self._constants.setdefault((text, element), f"%c{len(self._constants)}")
        return Num(name, element, self)

    def lit(self, value: Value | float, like: str) -> Num:
        """A plain number as a constant of a type; values pass through."""
        return self.num(value) if isinstance(value, Value) else self.constant(value, like)

    def emit(self, text: str, result_type: str) -> Num:
        name = text.split(" ", 1)[0].rpartition(".")[2]
        self.executed(_COSTS.get(name, next((c for op, c in _COSTS.items() if name.startswith(op)), 1)) - 1)
        return self.num(super().emit(text, result_type))

    def op(self, name: str, *operands: Value) -> Num:
        return self.num(super().op(name, *operands))

    def compare(self, predicate: str, a: Value, b: Value) -> Num:
        op = "arith.cmpf" if self.num(a).is_float else "arith.cmpi"
        kind = a.type.replace(self.num(a).element, "i1") if a.type.startswith("vector") else "i1"
        return self.emit(f"{op} {predicate}, {a.name}, {b.name} : {a.type}", kind)

    def choose(self, condition: Value, a: Num | float, b: Num | float) -> Num:
        """`arith.select`; one side may be a plain number."""
        like = next(side.type for side in (a, b) if isinstance(side, Value))
        return self.num(self.select(condition, self.lit(a, like), self.lit(b, like)))

    def convert(self, value: Num, wanted: str) -> Num:
        have, want = value.element, _element(wanted)
        if have == want:
            return value
        from_float, to_float = value.is_float, want[0] == "f" or want == "bf16"
        if "index" in (have, want) and (from_float or to_float):
            middle = "i64"
            return self.convert(self.convert(value, middle), wanted)
        if have == "i1" and want == "index":
            return self.num(self.cast("arith.index_castui", value, wanted))
        if "index" in (have, want):
            name = "arith.index_cast"
        elif from_float and to_float:
            name = "arith.extf" if _bits(have) < _bits(want) else "arith.truncf"
        elif from_float:
            name = "arith.fptosi"
        elif to_float:
            name = "arith.uitofp" if have == "i1" else "arith.sitofp"
        elif _bits(have) < _bits(want):
            name = "arith.extui" if have == "i1" else "arith.extsi"
        else:
            name = "arith.trunci"
        return self.num(self.cast(name, value, wanted))

    def index(self, value: Index | Num | int) -> Num:
        """A subscript as a value of type index."""
        if isinstance(value, Num):
            return value
        if isinstance(value, int):
            return self.constant(value, "index")
        if " " not in value.text and value.text.startswith("%"):
            return Num(value.text, "index", self)
        if not value.text.startswith(("%", "(")):
            return self.constant(int(value.text), "index")
        return self.emit(applied(value), "index")

    def number(self, value: Index | Num | int, element: str) -> Num:
        """A loop variable as a number."""
        found = self.index(value)
        return found if element == "index" else self.convert(found, element)

    def hashed(self, value: Num, salt: int = 0) -> Num:
        """31 well-mixed bits of an i32, never negative."""
        x = (value + salt) * 0x9E3779B1
        x = (x ^ (x >> 15)) * 0x85EBCA77
        return (x ^ (x >> 13)) & 0x7FFFFFFF

    # memory

    def load(self, array: Array, *indices: Index | Num | int) -> Num:
        affine = _affine(indices)
        if affine is not None:
            return self.num(super().load(array, *affine))
        places = self._places(array, indices)
        return self.emit(f"memref.load {array.name}[{places}] : <{array.name}>", array.element)

    def store(self, value: Value, array: Array, *indices: Index | Num | int) -> None:
        affine = _affine(indices)
        if affine is not None:
            super().store(value, array, *affine)
            return
        assert value.type == array.element, (value, array.element)
        places = self._places(array, indices)
        self.line(f"memref.store {value.name}, {array.name}[{places}] : <{array.name}>")
        self.executed()

    def _places(self, array: Array, indices: Sequence[Index | Num | int]) -> str:
        assert len(array.extents) == len(indices), (array.name, indices)
        for at, one in enumerate(indices):
            high = one.high if isinstance(one, Index) else one if isinstance(one, int) else 0
            array.extents[at] = max(array.extents[at], high + 1)
        return ", ".join(self.index(one).name for one in indices)

    def vector_load(self, array: Array, lanes: int, *indices: Index) -> Num:
        """`affine.vector_load` of elements that lie side by side."""
        array.fit([*indices[:-1], indices[-1] + (lanes - 1)])
        places = ", ".join(index.text for index in indices)
        kind = f"vector<{lanes}x{array.element}>"
        name = self.fresh()
        self.line(f"{name} = affine.vector_load {array.name}[{places}] : <{array.name}>, {kind}")
        self.executed()
        return Num(name, kind, self)

    def vector_store(self, value: Num, array: Array, *indices: Index) -> None:
        lanes = int(value.type.split("<")[1].split("x")[0])
        array.fit([*indices[:-1], indices[-1] + (lanes - 1)])
        places = ", ".join(index.text for index in indices)
        self.line(f"affine.vector_store {value.name}, {array.name}[{places}] : <{array.name}>, {value.type}")
        self.executed()

    def broadcast(self, value: Num, lanes: int) -> Num:
        kind = f"vector<{lanes}x{value.type}>"
        return self.emit(f"vector.broadcast {value.name} : {value.type} to {kind}", kind)

    def reduce(self, value: Num, kind: str) -> Num:
        """All lanes into one: add, mul, minnumf, maxsi, xor ..."""
        return self.emit(f"vector.reduction <{kind}>, {value.name} : {value.type} into {value.element}", value.element)

    # control flow

    def fold(  # type: ignore[override]  # every value here is a Num
        self,
        low: Bound | Sequence[Bound],
        high: Bound | Sequence[Bound],
        inits: Sequence[Value],
        body: Callable[[Index, list[Num]], Sequence[Value]],
        step: int = 1,
    ) -> list[Num]:
        return self.nums(super().fold(low, high, inits, lambda i, carried: body(i, self.nums(carried)), step))

    @contextmanager
    def scf_loop(
        self, low: Num | Index | int, high: Num | Index | int, step: Num | int = 1, *, trips: float | None = None
    ) -> Iterator[Num]:
        """`scf.for`; `trips` is how often it runs, needed where a bound is not a plain number."""
        name, header = self._scf_header(low, high, step)
        self.line(f"{header} {{")
        with self._inside(self._scf_trips(low, high, step, trips)):
            yield Num(name, "index", self)
        self.line("}")

    def scf_fold(
        self,
        low: Num | Index | int,
        high: Num | Index | int,
        inits: Sequence[Value],
        body: Callable[[Num, list[Num]], Sequence[Value]],
        step: Num | int = 1,
        *,
        trips: float | None = None,
    ) -> list[Num]:
        """`scf.for` with iter_args."""
        name, header = self._scf_header(low, high, step)
        result = self.fresh()
        carried = [Num(self.fresh(), init.type, self) for init in inits]
        pairs = ", ".join(f"{arg.name} = {init.name}" for arg, init in zip(carried, inits, strict=True))
        types = ", ".join(init.type for init in inits)
        count = f":{len(inits)}" if len(inits) > 1 else ""
        self.line(f"{result}{count} = {header} iter_args({pairs}) -> ({types}) {{")
        with self._inside(self._scf_trips(low, high, step, trips)):
            self._yield("scf.yield", body(Num(name, "index", self), carried))
        self.line("}")
        return self.nums(self._results(result, inits))

    def _scf_header(self, low: Num | Index | int, high: Num | Index | int, step: Num | int) -> tuple[str, str]:
        bounds = [self.index(one).name for one in (low, high, step)]
        name = f"%i{self._names}"
        self._names += 1
        return name, f"scf.for {name} = {bounds[0]} to {bounds[1]} step {bounds[2]}"

    @staticmethod
    def _scf_trips(low: object, high: object, step: object, trips: float | None) -> float:
        if trips is None:
            assert isinstance(low, int), "trips= is needed"
            assert isinstance(high, int), "trips= is needed"
            assert isinstance(step, int), "trips= is needed"
            trips = (high - low) / step
        return max(1.0, trips)

    def loop_while(
        self,
        inits: Sequence[Value],
        condition: Callable[[list[Num]], Num],
        body: Callable[[list[Num]], Sequence[Value]],
        *,
        trips: float,
    ) -> list[Num]:
        """`scf.while` that carries the same values through both regions; returns the last ones."""
        result = self.fresh()
        before = [Num(self.fresh(), init.type, self) for init in inits]
        after = [Num(self.fresh(), init.type, self) for init in inits]
        types = ", ".join(init.type for init in inits)
        pairs = ", ".join(f"{arg.name} = {init.name}" for arg, init in zip(before, inits, strict=True))
        count = f":{len(inits)}" if len(inits) > 1 else ""
        self.line(f"{result}{count} = scf.while ({pairs}) : ({types}) -> ({types}) {{")
        with self._inside(max(1.0, trips)):
            test = condition(before)
            self.line(f"scf.condition({test.name}) {', '.join(arg.name for arg in before)} : {types}")
            self._indent -= 1
            self.line("} do {")
            arguments = ", ".join(f"{arg.name}: {arg.type}" for arg in after)
            self.line(f"^bb0({arguments}):")
            self._indent += 1
            self._yield("scf.yield", body(after))
        self.line("}")
        return self.nums(self._results(result, inits))

    def if_else(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]] | None = None,
        *,
        share: float = 0.5,
    ) -> list[Num]:
        """`scf.if`; both sides give values of the same types, or none."""
        return self.nums(self.when_data(condition, then, otherwise, share=share))

    def switch(self, on: Num, cases: Sequence[Callable[[], Sequence[Value]]]) -> list[Num]:
        """`scf.index_switch` on 0, 1, ...; the last case is the default one."""
        at = len(self._lines)
        self.line("")
        results: Sequence[Value] = ()
        for number, case in enumerate(cases):
            self.line(f"case {number} {{" if number < len(cases) - 1 else "default {")
            with self._inside(1 / len(cases)):
                results = case()
                self._yield("scf.yield", results)
                if not results:
                    self.line("scf.yield")
            self.line("}")
        name = self.fresh()
        types = ", ".join(value.type for value in results)
        count = f":{len(results)}" if len(results) > 1 else ""
        prefix, arrow = (f"{name}{count} = ", f" -> {types}") if results else ("", "")
        self._lines[at] = "  " * self._indent + f"{prefix}scf.index_switch {on.name}{arrow}"
        return self.nums(self._results(name, results))

    # blocks of a function's body; only outside every loop

    def block(self, label: str, *types: str, trips: float = 1.0) -> list[Num]:
        """Start a block; what follows until the next one is executed `trips` times."""
        arguments = [Num(self.fresh(), kind, self) for kind in types]
        inside = f"({', '.join(f'{one.name}: {one.type}' for one in arguments)})" if arguments else ""
        self._lines.append(f"  ^{label}{inside}:")
        self._trips = [max(1.0, trips)]
        return arguments

    def branch(self, label: str, *values: Value) -> None:
        self.line(f"cf.br {_target(label, values)}")
        self.executed()

    def branch_if(
        self, condition: Value, label: str, values: Sequence[Value], otherwise: str, others: Sequence[Value]
    ) -> None:
        self.line(f"cf.cond_br {condition.name}, {_target(label, values)}, {_target(otherwise, others)}")
        self.executed()


def _target(label: str, values: Sequence[Value]) -> str:
    if not values:
        return f"^{label}"
    return f"^{label}({', '.join(v.name for v in values)} : {', '.join(v.type for v in values)})"


def _affine(indices: Sequence[Index | Num | int]) -> list[Index] | None:
    """The subscripts of an affine access, or None."""
    if any(isinstance(one, Num) for one in indices):
        return None
    return [Index(str(one), one, one) if isinstance(one, int) else one for one in indices if not isinstance(one, Num)]


def _wrapped(value: int, bits: int) -> int:
    """The same bits as a signed integer."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
