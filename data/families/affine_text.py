"""Writes one affine kernel as MLIR text; every access is inside its array by construction.

Index expressions carry the interval of values they take, and each array grows to hold every index used on it, so a
generator never has to compute shapes. The writer also counts the operations the kernel will execute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Array", "Index", "Kernel", "Value", "applied"]

BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "i1": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
"""Element type -> bits one element takes in memory."""


_FLOAT = re.compile(r"(?:vector<[\dx\[\]]*x)?b?f\d+\b")


def is_float_type(text: str) -> bool:
    """Whether a scalar or vector type has floating-point elements.

    >>> [is_float_type(one) for one in ("bf16", "vector<4x8xf32>", "i8", "vector<8xi1>")]
    [True, True, False, False]
    """
    return _FLOAT.match(text) is not None


@dataclass(frozen=True)
class Index:
    """An affine expression of loop variables with the interval it stays in."""

    text: str
    """Printed form, e.g. "%i0 * 2 + 1"; safe to add to, in parentheses where it is multiplied or divided."""
    low: int
    high: int
    """Smallest and largest value, both reached or not."""

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, Index):
            return Index(f"{self.text} + {other.text}", self.low + other.low, self.high + other.high)
        if other == 0:
            return self
        sign, size = ("-", -other) if other < 0 else ("+", other)
        return Index(f"{self.text} {sign} {size}", self.low + other, self.high + other)

    def __sub__(self, other: Index | int) -> Index:
        return self + (other * -1 if isinstance(other, Index) else -other)

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        low, high = sorted((self.low * factor, self.high * factor))
        return Index(f"{self._grouped()} * {factor}", low, high)

    def __floordiv__(self, divisor: int) -> Index:
        return Index(f"{self._grouped()} floordiv {divisor}", self.low // divisor, self.high // divisor)

    def __mod__(self, divisor: int) -> Index:
        same = self.low >= 0 and self.high < divisor
        return Index(f"{self._grouped()} mod {divisor}", *((self.low, self.high) if same else (0, divisor - 1)))

    def _grouped(self) -> str:
        return f"({self.text})" if " " in self.text else self.text

    def within(self, low: int, high: int) -> Index:
        """The same expression, known to stay in a narrower interval than its terms' intervals tell."""
        return Index(self.text, low, high)

    def mirrored(self) -> Index:
        """Runs backwards over the same interval."""
        return self * -1 + (self.low + self.high)


@dataclass(frozen=True)
class Value:
    """An SSA value."""

    name: str
    type: str

    @property
    def is_float(self) -> bool:
        return is_float_type(self.type)


@dataclass(eq=False)
class Array:
    """A function argument or local buffer whose shape grows with the accesses made to it."""

    name: str
    element: str
    local: bool
    extents: list[int] = field(default_factory=list)

    def fit(self, indices: Sequence[Index]) -> None:
        """Make room for an access."""
        assert all(index.low >= 0 for index in indices), (self.name, indices)
        if not self.extents:
            self.extents = [index.high + 1 for index in indices]
        assert len(self.extents) == len(indices), (self.name, indices)
        self.extents = [max(extent, index.high + 1) for extent, index in zip(self.extents, indices, strict=True)]

    @property
    def type(self) -> str:
        return f"memref<{''.join(f'{extent}x' for extent in self.extents)}{self.element}>"

    @property
    def bytes(self) -> int:
        size = BITS[self.element] // 8
        for extent in self.extents:
            size *= extent
        return size


Bound = int | Index


class Kernel:
    """Collects the body of one `func.func @kernel`."""

    def __init__(self) -> None:
        self.executed_ops = 0.0
        """Operations the kernel executes, loop control apart; an estimate where bounds are not rectangular."""
        self._arrays: list[Array] = []
        self._constants: dict[tuple[str, str], str] = {}
        self._lines: list[str] = []
        self._trips: list[float] = []
        self._indent = 2
        self._names = 0

    # arrays and constants

    def array(self, element: str) -> Array:
        """A new argument."""
        made = Array(f"%A{len(self._arrays)}", element, local=False)
        self._arrays.append(made)
        return made

    def local(self, element: str) -> Array:
        """A new buffer, allocated at the start of the function and freed at its end."""
        made = Array(f"%A{len(self._arrays)}", element, local=True)
        self._arrays.append(made)
        return made

    def constant(self, value: float, element: str) -> Value:
        """A constant, defined once at the top of the function."""
        text = f"{float(value):.9e}" if is_float_type(element) else str(int(value))
        if element.startswith("vector"):
            text = f"dense<{text}>"
        name = self._constants.setdefault((text, element), f"%c{len(self._constants)}")
        return Value(name, element)

    @property
    def operand_bytes(self) -> int:
        """Bytes of all arrays, arguments and buffers."""
        return sum(array.bytes for array in self._arrays)

    # statements

    def fresh(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def line(self, text: str) -> None:
        self._lines.append("  " * self._indent + text)

    def executed(self, ops: float = 1.0) -> None:
        times = 1.0
        for trip in self._trips:
            times *= trip
        self.executed_ops += ops * times

    def emit(self, text: str, result_type: str) -> Value:
        """One operation with one result, e.g. emit("arith.addf %a, %b : f32", "f32")."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        self.executed()
        return Value(name, result_type)

    def op(self, name: str, *operands: Value) -> Value:
        """An operation whose operands and result have one type."""
        return self.emit(f"{name} {', '.join(one.name for one in operands)} : {operands[0].type}", operands[0].type)

    def cast(self, name: str, operand: Value, to: str) -> Value:
        return self.emit(f"{name} {operand.name} : {operand.type} to {to}", to)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        op = "arith.cmpf" if a.is_float else "arith.cmpi"
        return self.emit(f"{op} {predicate}, {a.name}, {b.name} : {a.type}", "i1")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self.emit(f"arith.select {condition.name}, {a.name}, {b.name} : {a.type}", a.type)

    def index_value(self, index: Index, element: str) -> Value:
        """An index as a number of the element type."""
        place = self.emit(applied(index), "index")
        if not is_float_type(element):
            return self.cast("arith.index_cast", place, element)
        return self.cast("arith.sitofp", self.cast("arith.index_cast", place, "i32"), element)

    def load(self, array: Array, *indices: Index) -> Value:
        array.fit(indices)
        subscripts = ", ".join(index.text for index in indices)
        return self.emit(f"affine.load {array.name}[{subscripts}] : <{array.name}>", array.element)

    def store(self, value: Value, array: Array, *indices: Index) -> None:
        array.fit(indices)
        assert value.type == array.element, (value, array.element)
        subscripts = ", ".join(index.text for index in indices)
        self.line(f"affine.store {value.name}, {array.name}[{subscripts}] : <{array.name}>")
        self.executed()

    # control flow

    @contextmanager
    def loop(self, low: Bound | Sequence[Bound], high: Bound | Sequence[Bound], step: int = 1) -> Iterator[Index]:
        """`affine.for` over low <= i < high; several bounds mean their maximum (low) or minimum (high)."""
        index, header, trip = self._header(low, high, step)
        self.line(f"{header} {{")
        with self._inside(trip):
            yield index
        self.line("}")

    def fold(
        self,
        low: Bound | Sequence[Bound],
        high: Bound | Sequence[Bound],
        inits: Sequence[Value],
        body: Callable[[Index, list[Value]], Sequence[Value]],
        step: int = 1,
    ) -> list[Value]:
        """`affine.for` with iter_args; `body` gets the loop variable and the carried values, and returns the next."""
        index, header, trip = self._header(low, high, step)
        name = self.fresh()
        carried = [Value(self.fresh(), init.type) for init in inits]
        pairs = ", ".join(f"{arg.name} = {init.name}" for arg, init in zip(carried, inits, strict=True))
        types = ", ".join(init.type for init in inits)
        count = f":{len(inits)}" if len(inits) > 1 else ""
        self.line(f"{name}{count} = {header} iter_args({pairs}) -> ({types}) {{")
        with self._inside(trip):
            results = body(index, carried)
            self._yield("affine.yield", results)
        self.line("}")
        return self._results(name, inits)

    def when(
        self,
        condition: Index,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]] | None = None,
        *,
        equal: bool = False,
        share: float = 0.5,
    ) -> list[Value]:
        """`affine.if` on condition >= 0 (== 0 with `equal`); both sides return values of the same types, or nothing."""
        relation = "==" if equal else ">="
        head = f"affine.if affine_set<{_dims(condition.text, relation)}>{_dim_operands(condition.text)}"
        return self._branch(head, "affine.yield", then, otherwise, share)

    def when_data(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]] | None = None,
        *,
        share: float = 0.5,
    ) -> list[Value]:
        """`scf.if` on a value."""
        return self._branch(f"scf.if {condition.name}", "scf.yield", then, otherwise, share)

    def _branch(
        self,
        head: str,
        terminator: str,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]] | None,
        share: float,
    ) -> list[Value]:
        at = len(self._lines)
        self.line("")  # the header: result types are known once `then` has run
        with self._inside(share):
            results = then()
            self._yield(terminator, results)
        if otherwise is not None:
            self.line("} else {")
            with self._inside(1.0 - share):
                self._yield(terminator, otherwise())
        self.line("}")
        name = self.fresh()
        types = ", ".join(value.type for value in results)
        count = f":{len(results)}" if len(results) > 1 else ""
        prefix = f"{name}{count} = " if results else ""
        arrow = f" -> ({types})" if results and terminator == "scf.yield" else f" -> {_one_or_many(results)}"
        self._lines[at] = "  " * self._indent + f"{prefix}{head}{arrow if results else ''} {{"
        return self._results(name, results)

    def _header(
        self, low: Bound | Sequence[Bound], high: Bound | Sequence[Bound], step: int
    ) -> tuple[Index, str, float]:
        lows, highs = _as_list(low), _as_list(high)
        first = max(_low(bound) for bound in lows)
        last = min(_high(bound) for bound in highs) - 1
        mean_low = max((_low(bound) + _high(bound)) / 2 for bound in lows)
        mean_high = min((_low(bound) + _high(bound)) / 2 for bound in highs)
        name = f"%i{self._names}"
        self._names += 1
        bounds = f"{_bound(lows, 'max')} to {_bound(highs, 'min')}" + (f" step {step}" if step != 1 else "")
        # The interval is that of the bounds' extremes, so it holds even where some iterations never run.
        index = Index(name, min(first, max(last, first)), max(last, first))
        return index, f"affine.for {name} = {bounds}", max(1.0, (mean_high - mean_low) / step)

    @contextmanager
    def _inside(self, trip: float) -> Iterator[None]:
        self._trips.append(trip)
        self._indent += 1
        yield
        self._indent -= 1
        self._trips.pop()

    def _yield(self, terminator: str, values: Sequence[Value]) -> None:
        if values:
            names, types = ", ".join(v.name for v in values), ", ".join(v.type for v in values)
            self.line(f"{terminator} {names} : {types}")

    @staticmethod
    def _results(name: str, like: Sequence[Value]) -> list[Value]:
        if len(like) == 1:
            return [Value(name, like[0].type)]
        return [Value(f"{name}#{i}", one.type) for i, one in enumerate(like)]

    # the whole

    def finish(self) -> str:
        """The module."""
        types = {f"<{array.name}>": array.type for array in self._arrays}
        arguments = ", ".join(f"{array.name}: {array.type}" for array in self._arrays if not array.local)
        lines = [f"func.func @kernel({arguments}) {{"]
        lines += [f"    {name} = arith.constant {text} : {kind}" for (text, kind), name in self._constants.items()]
        lines += [f"    {array.name} = memref.alloc() : {array.type}" for array in self._arrays if array.local]
        lines += [re.sub(r"(?<= : )<%A\d+>", lambda match: types[match[0]], line) for line in self._lines]
        lines += [f"    memref.dealloc {array.name} : {array.type}" for array in self._arrays if array.local]
        lines += ["    return", "  }"]
        return "module {\n  " + "\n".join(lines) + "\n}\n"


def applied(index: Index) -> str:
    """The operation that computes an index."""
    return f"affine.apply affine_map<{_dims(index.text)}>{_dim_operands(index.text)}"


def _one_or_many(values: Sequence[Value]) -> str:
    types = ", ".join(value.type for value in values)
    return types if len(values) == 1 else f"({types})"


def _as_list(bound: Bound | Sequence[Bound]) -> list[Bound]:
    return [bound] if isinstance(bound, int | Index) else list(bound)


def _low(bound: Bound) -> int:
    return bound if isinstance(bound, int) else bound.low


def _high(bound: Bound) -> int:
    return bound if isinstance(bound, int) else bound.high


def _names_in(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip("()") for word in text.split() if word.strip("()").startswith("%")))


def _dim_operands(text: str) -> str:
    return f"({', '.join(_names_in(text))})"


def _renamed(text: str) -> tuple[str, str]:
    """("d0, d1", the text with d0, d1 for its loop variables)."""
    dims = {name: f"d{at}" for at, name in enumerate(_names_in(text))}
    words = [word.replace(word.strip("()"), dims.get(word.strip("()"), word.strip("()"))) for word in text.split()]
    return ", ".join(dims.values()), " ".join(words)


def _dims(text: str, relation: str | None = None) -> str:
    """The inside of an affine_map with its operands' list behind it, or of an affine_set with a relation to 0."""
    dims, body = _renamed(text)
    if relation is not None:
        return f"({dims}) : ({body} {relation} 0)"
    return f"({dims}) -> ({body})"


def _bound(bounds: Sequence[Bound], keyword: str) -> str:
    if len(bounds) == 1 and isinstance(bounds[0], int):
        return str(bounds[0])
    text = ", ".join(str(bound) if isinstance(bound, int) else bound.text for bound in bounds)
    dims, body = _renamed(text.replace(",", " ,"))
    body = body.replace(" ,", ",")
    prefix = f"{keyword} " if len(bounds) > 1 else ""
    return f"{prefix}affine_map<({dims}) -> ({body})>{_dim_operands(text.replace(',', ' ,'))}"
