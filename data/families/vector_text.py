"""Writes kernels in the vector dialect: accesses in several forms, masks, reductions, affine or scf loops."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .affine_text import Array, Bound, Index, Value, is_float_type
from .nest_draw import Draw
from .transformer_text import NetKernel

__all__ = ["VectorDraw", "VectorKernel", "vector"]

_VECTOR = re.compile(r"vector<((?:\d+x)+)(\w+)>")


def vector(element: str, *shape: int) -> str:
    """A vector type, or the element itself without a shape.

    >>> vector("f32", 4, 8), vector("f32")
    ('vector<4x8xf32>', 'f32')
    """
    return f"vector<{''.join(f'{n}x' for n in shape)}{element}>" if shape else element


def _shape(text: str) -> tuple[int, ...]:
    found = _VECTOR.fullmatch(text)
    return tuple(int(size) for size in found[1].split("x")[:-1]) if found else ()


def _element(text: str) -> str:
    found = _VECTOR.fullmatch(text)
    return found[2] if found else text


@dataclass(frozen=True)
class VectorDraw(Draw):
    """Draws constants of vector types too."""

    def constant(self, low: float = 0.25, high: float = 1.75, element: str | None = None) -> Value:
        element = element or self.element
        if is_float_type(element):
            return self.k.constant(round(self.rng.uniform(low, high), 4), element)
        return self.k.constant(self.rng.randint(1, 15), element)


class VectorKernel(NetKernel):
    """A kernel of vector operations.

    Its loops are `affine.for` with affine accesses or, with `scf`, `scf.for` with the subscripts computed by arith.
    Contiguous vectors are read as `access` says: "affine" (affine.vector_load), "load" (vector.load) or "transfer".
    """

    def __init__(self, style: random.Random) -> None:
        super().__init__(style)
        self.scf = style.random() < 0.4
        self.access = style.choice(("load", "transfer") if self.scf else ("affine", "load", "transfer"))

    # types

    def like(self, value: float, model: Value) -> Value:
        """A constant of the model's type."""
        return self.constant(value, model.type)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        made = super().compare(predicate, a, b)
        return Value(made.name, vector("i1", *_shape(a.type)))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        if condition.type == "i1":
            return super().select(condition, a, b)
        return self.emit(f"arith.select {condition.name}, {a.name}, {b.name} : {condition.type}, {a.type}", a.type)

    def spread(self, value: Value, *shape: int) -> Value:
        """A scalar, or a vector as rows, in every place; a scalar shape leaves it alone."""
        if not shape:
            return value
        to = vector(_element(value.type), *shape)
        return self.emit(f"vector.broadcast {value.name} : {value.type} to {to}", to)

    def converted(self, value: Value, element: str) -> Value:
        """Each element widened or narrowed, signed."""
        source = _element(value.type)
        if source == element:
            return value
        to = vector(element, *_shape(value.type))
        real_from, real_to = is_float_type(source), is_float_type(element)
        wider = int(element.lstrip("bfi")) > int(source.lstrip("bfi"))
        if real_from and real_to:
            return self.cast("arith.extf" if wider else "arith.truncf", value, to)
        if real_to:
            return self.cast("arith.sitofp", value, to)
        if real_from:
            return self.cast("arith.fptosi", value, to)
        return self.cast("arith.extsi" if wider else "arith.trunci", value, to)

    # contiguous accesses

    def read(self, array: Array, *indices: Index, width: int, partial: bool = False) -> Value:
        """`width` elements along the last dimension, a scalar for width 0.

        `partial`: some may lie behind the array's end, and read as zero; the array's shape is set before.
        """
        if width == 0:
            return self.load(array, *indices)
        kind = vector(array.element, width)
        if partial:
            names = ", ".join(self._plain(index) for index in indices)
            zero = self.constant(0, array.element).name
            return self.emit(f"vector.transfer_read {array.name}[{names}], {zero} : {array.type}, {kind}", kind)
        array.fit([*indices[:-1], indices[-1] + (width - 1)])
        if self.access == "affine" and not self.scf:
            subscripts = ", ".join(index.text for index in indices)
            return self._sized(f"affine.vector_load {array.name}[{subscripts}]", array, kind)
        names = ", ".join(self._plain(index) for index in indices)
        if self.access == "transfer":
            zero = self.constant(0, array.element).name
            return self._sized(
                f"vector.transfer_read {array.name}[{names}], {zero} {{in_bounds = [true]}}", array, kind
            )
        return self._sized(f"vector.load {array.name}[{names}]", array, kind)

    def write(self, value: Value, array: Array, *indices: Index, partial: bool = False) -> None:
        """Store a vector along the last dimension, or a scalar; `partial` as for `read`."""
        shape = _shape(value.type)
        if not shape:
            return self.store(value, array, *indices)
        self.executed()
        if partial:
            names = ", ".join(self._plain(index) for index in indices)
            return self.line(f"vector.transfer_write {value.name}, {array.name}[{names}] : {value.type}, {array.type}")
        array.fit([*indices[:-1], indices[-1] + (shape[0] - 1)])
        if self.access == "affine" and not self.scf:
            subscripts = ", ".join(index.text for index in indices)
            return self._sized_line(f"affine.vector_store {value.name}, {array.name}[{subscripts}]", array, value.type)
        names = ", ".join(self._plain(index) for index in indices)
        if self.access == "transfer":
            head = f"vector.transfer_write {value.name}, {array.name}[{names}] {{in_bounds = [true]}}"
            return self._sized_line(head, array, value.type, first=value.type)
        return self._sized_line(f"vector.store {value.name}, {array.name}[{names}]", array, value.type)

    def read_tile(self, array: Array, *indices: Index, shape: tuple[int, int], transposed: bool = False) -> Value:
        """A tile of the last two dimensions, inside the array; with `transposed`, its rows become columns."""
        kind = vector(array.element, *shape)
        reach = shape[::-1] if transposed else shape
        array.fit([*indices[:-2], *(index + (n - 1) for index, n in zip(indices[-2:], reach, strict=True))])
        names = ", ".join(self._plain(index) for index in indices)
        zero = self.constant(0, array.element).name
        turned = ""
        if transposed:
            dims = [f"d{at}" for at in range(len(indices))]
            turned = f", permutation_map = affine_map<({', '.join(dims)}) -> ({dims[-1]}, {dims[-2]})>"
        head = f"vector.transfer_read {array.name}[{names}], {zero} {{in_bounds = [true, true]{turned}}}"
        return self._sized(head, array, kind)

    def write_tile(self, value: Value, array: Array, *indices: Index) -> None:
        """Store a two-dimensional vector, inside the array."""
        shape = _shape(value.type)
        array.fit([*indices[:-2], *(index + (n - 1) for index, n in zip(indices[-2:], shape, strict=True))])
        names = ", ".join(self._plain(index) for index in indices)
        head = f"vector.transfer_write {value.name}, {array.name}[{names}] {{in_bounds = [true, true]}}"
        self.executed(shape[0])
        self._sized_line(head, array, value.type, first=value.type)

    def _sized(self, head: str, array: Array, kind: str) -> Value:
        """An operation that names the type of an array whose shape may still grow."""
        name = self.fresh()
        self._late.append((len(self._lines), array, kind, None))
        self.line(f"{name} = {head}")
        self.executed()
        return Value(name, kind)

    def _sized_line(self, head: str, array: Array, kind: str, first: str | None = None) -> None:
        self._late.append((len(self._lines), array, kind, first))
        self.line(head)

    @property
    def _late(self) -> list[tuple[int, Array, str, str | None]]:
        """Lines whose types are written at the end: (line, array, vector type, what stands before the array's type)."""
        found: list[tuple[int, Array, str, str | None]] = self.__dict__.setdefault("_late_lines", [])
        return found

    def finish(self) -> str:
        for at, array, kind, first in self._late:
            self._lines[at] += f" : {first}, {array.type}" if first else f" : {array.type}, {kind}"
        self._late.clear()
        return super().finish()

    # masks, gathers

    def mask(self, count: Value, width: int) -> Value:
        """The first `count` (an index) of `width` lanes."""
        return self.emit(f"vector.create_mask {count.name} : {vector('i1', width)}", vector("i1", width))

    def masked_write(self, value: Value, array: Array, index: Index, mask: Value, *, compress: bool = False) -> None:
        """Store open lanes only, each in its place or side by side."""
        op = "vector.compressstore" if compress else "vector.maskedstore"
        head = f"{op} {array.name}[{self._plain(index)}], {mask.name}, {value.name}"
        self.line(f"{head} : {array.type}, {mask.type}, {value.type}")
        self.executed()

    def gather(self, array: Array, places: Value, mask: Value | None = None) -> Value:
        """Elements of a one-dimensional array of known shape."""
        lanes = _shape(places.type)
        kind = vector(array.element, *lanes)
        mask = mask or self.constant_mask(*lanes)
        base, rest = self.constant(0, "index").name, self.constant(0, kind).name
        head = f"vector.gather {array.name}[{base}] [{places.name}], {mask.name}, {rest}"
        self.executed(lanes[0])
        return self.emit(f"{head} : {array.type}, {places.type}, {mask.type}, {kind} into {kind}", kind)

    def scatter(self, value: Value, array: Array, places: Value, mask: Value | None = None) -> None:
        """Store to a one-dimensional array of known shape."""
        lanes = _shape(places.type)
        mask = mask or self.constant_mask(*lanes)
        head = (
            f"vector.scatter {array.name}[{self.constant(0, 'index').name}] [{places.name}], {mask.name}, {value.name}"
        )
        self.line(f"{head} : {array.type}, {places.type}, {mask.type}, {value.type}")
        self.executed(lanes[0])

    def constant_mask(self, *shape: int) -> Value:
        """All lanes open."""
        kind = vector("i1", *shape)
        return self.emit(f"vector.constant_mask [{', '.join(map(str, shape))}] : {kind}", kind)

    # across lanes

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        kind = vector(_element(a.type), len(lanes))
        return self.emit(f"vector.shuffle {a.name}, {b.name} {list(lanes)} : {a.type}, {b.type}", kind)

    def lane(self, value: Value, at: int) -> Value:
        return self.emit(
            f"vector.extract {value.name}[{at}] : {_element(value.type)} from {value.type}", _element(value.type)
        )

    def row(self, value: Value, at: int) -> Value:
        kind = vector(_element(value.type), *_shape(value.type)[1:])
        return self.emit(f"vector.extract {value.name}[{at}] : {kind} from {value.type}", kind)

    def reduced(self, value: Value, kind: str, *, any_order: bool = True) -> Value:
        """All lanes in one by "add", "max", "min" or "mul"; floating-point sums in order unless any will do."""
        if not _shape(value.type):
            return value
        real = value.is_float
        name = {"max": "maxnumf" if real else "maxsi", "min": "minnumf" if real else "minsi"}.get(kind, kind)
        flags = " fastmath<reassoc>" if real and any_order else ""
        element = _element(value.type)
        return self.emit(f"vector.reduction <{name}>, {value.name}{flags} : {value.type} into {element}", element)

    def combine(self, kind: str, a: Value, b: Value) -> Value:
        match kind:
            case "max":
                return self.larger(a, b)
            case "min":
                return self.smaller(a, b)
            case "mul":
                return self.mul(a, b)
            case _:
                return self.add(a, b)

    # loops over vectors

    def lanes(
        self, n: int, width: int, tail: str, body: Callable[[Index, int, bool], None], *, arrays: Sequence[Array] = ()
    ) -> None:
        """Call `body(first index, width or 0 for a scalar, partial)` over n elements.

        `tail`: "masked" (every vector may be partial), "split" (a last partial vector), "scalar" (a last scalar loop).
        `arrays` end with dimension n wherever a vector may be partial.
        """
        whole = n // width * width
        if tail == "masked" and whole < n:
            with self.loop(0, n, step=width) as i:
                body(i, width, True)
            return
        if whole:
            with self.loop(0, whole, step=width) as i:
                body(i, width, False)
        if whole < n:
            if tail == "scalar":
                with self.loop(whole, n) as i:
                    body(i, 0, False)
            else:
                body(Index(str(whole), whole, n - 1), width, True)

    # scf form

    def load(self, array: Array, *indices: Index) -> Value:
        return self.load_at(array, *indices) if self.scf else super().load(array, *indices)

    def store(self, value: Value, array: Array, *indices: Index) -> None:
        if self.scf:
            self.store_at(value, array, *indices)
        else:
            super().store(value, array, *indices)

    def index_value(self, index: Index, element: str) -> Value:
        if not self.scf:
            return super().index_value(index, element)
        name = Value(self._plain(index), "index")
        if is_float_type(element):
            return self.cast("arith.sitofp", self.cast("arith.index_cast", name, "i32"), element)
        return self.cast("arith.index_cast", name, element)

    def _header(
        self, low: Bound | Sequence[Bound], high: Bound | Sequence[Bound], step: int
    ) -> tuple[Index, str, float]:
        index, header, trip = super()._header(low, high, step)
        if isinstance(low, int) and isinstance(high, int) and high > low:  # the last multiple of the step
            index = index.within(low, low + (high - 1 - low) // step * step)
        if not self.scf:
            return index, header, trip
        assert isinstance(low, int | Index)
        assert isinstance(high, int | Index)
        ends = [self._plain(b if isinstance(b, Index) else Index(str(b), b, b)) for b in (low, high)]
        by = self.constant(step, "index").name
        return index, f"scf.for {index.text} = {ends[0]} to {ends[1]} step {by}", trip

    def _yield(self, terminator: str, values: Sequence[Value]) -> None:
        super()._yield("scf.yield" if self.scf and terminator == "affine.yield" else terminator, values)

    def applied(self, index: Index) -> str:
        if not self.scf:
            return super().applied(index)
        text = re.sub(r"%(\w+)", r"\1", index.text).replace("floordiv", "//").replace("mod", "%")
        return self._evaluated(ast.parse(text, mode="eval").body)

    def _evaluated(self, node: ast.expr) -> str:
        """An index expression as arith operations; its value is never negative."""
        match node:
            case ast.Name(id=name):
                return f"%{name}"
            case ast.Constant(value=int(value)):
                return self.constant(value, "index").name
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return self.constant(-value, "index").name
            case ast.BinOp(left=left, op=op, right=right):
                names = {ast.Add: "addi", ast.Sub: "subi", ast.Mult: "muli", ast.FloorDiv: "divui", ast.Mod: "remui"}
                a, b = self._evaluated(left), self._evaluated(right)
                return self.emit(f"arith.{names[type(op)]} {a}, {b} : index", "index").name
            case _:
                raise AssertionError(ast.dump(node))
