"""What kernels of networks need beyond plain affine text: indirect accesses, narrow storage types, activations."""

from __future__ import annotations

import math
import random

from .affine_text import Array, Index, Kernel, Value

__all__ = ["ACTIVATIONS", "NetKernel"]

ACTIVATIONS = (
    "relu",
    "relu6",
    "leaky-relu",
    "gelu-tanh",
    "gelu-erf",
    "quick-gelu",
    "silu",
    "sigmoid",
    "tanh",
    "hard-swish",
    "elu",
    "softplus",
    "squared-relu",
    "softsign",
)
"""Names `NetKernel.activation` takes; all but hard-swish, softsign and the relu ones call the mathematical library."""


class NetKernel(Kernel):
    """A kernel with the idioms of neural networks; computes in f32 or f64 what is stored in 16 bits."""

    def __init__(self, style: random.Random | None = None) -> None:
        """`style` draws what compilers differ in when they write the same arithmetic; None is the plainest form."""
        super().__init__()
        self._fused = style is not None and style.random() < 0.35
        self._extrema = style.choice(("num", "num", "imum", "select")) if style is not None else "num"
        self._powers_of_two = style is not None and style.random() < 0.2

    def shaped(self, element: str, *shape: int, local: bool = False) -> Array:
        """A new argument (or buffer) of at least this shape."""
        made = self.local(element) if local else self.array(element)
        made.extents = list(shape)
        return made

    # arithmetic that suits the type

    def add(self, a: Value, b: Value) -> Value:
        return self.op("arith.addf" if a.is_float else "arith.addi", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.op("arith.subf" if a.is_float else "arith.subi", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.op("arith.mulf" if a.is_float else "arith.muli", a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.op("arith.divf", a, b)

    def larger(self, a: Value, b: Value) -> Value:
        return self._extremum("max", "ogt", a, b)

    def smaller(self, a: Value, b: Value) -> Value:
        return self._extremum("min", "olt", a, b)

    def _extremum(self, name: str, predicate: str, a: Value, b: Value) -> Value:
        if not a.is_float:
            return self.op(f"arith.{name}si", a, b)
        if self._extrema == "select":
            return self.select(self.compare(predicate, a, b), a, b)
        return self.op(f"arith.{name}{self._extrema}f", a, b)

    def clamp(self, a: Value, low: float, high: float) -> Value:
        return self.smaller(self.larger(a, self.constant(low, a.type)), self.constant(high, a.type))

    def exp(self, x: Value) -> Value:
        """e to the power of x, or 2 to the power of x times log2(e)."""
        if self._powers_of_two:
            return self.op("math.exp2", self.mul(x, self.constant(math.log2(math.e), x.type)))
        return self.op("math.exp", x)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c."""
        if self._fused and a.is_float:
            return self.op("math.fma", a, b, c)
        return self.add(self.mul(a, b), c)

    def sigmoid(self, x: Value) -> Value:
        one = self.constant(1, x.type)
        return self.div(one, self.add(one, self.exp(self.op("arith.negf", x))))

    def activation(self, kind: str, x: Value) -> Value:
        """One of ACTIVATIONS on a floating-point value."""
        zero, one = self.constant(0, x.type), self.constant(1, x.type)
        match kind:
            case "relu":
                return self.larger(x, zero)
            case "relu6":
                return self.clamp(x, 0, 6)
            case "leaky-relu":
                return self.select(self.compare("ogt", x, zero), x, self.mul(x, self.constant(0.01, x.type)))
            case "gelu-tanh":
                cube = self.mul(self.mul(x, x), x)
                inner = self.add(x, self.mul(cube, self.constant(0.044715, x.type)))
                bend = self.op("math.tanh", self.mul(inner, self.constant(math.sqrt(2 / math.pi), x.type)))
                return self.mul(self.mul(x, self.constant(0.5, x.type)), self.add(bend, one))
            case "gelu-erf":
                bend = self.op("math.erf", self.mul(x, self.constant(math.sqrt(0.5), x.type)))
                return self.mul(self.mul(x, self.constant(0.5, x.type)), self.add(bend, one))
            case "quick-gelu":
                return self.mul(x, self.sigmoid(self.mul(x, self.constant(1.702, x.type))))
            case "silu":
                return self.mul(x, self.sigmoid(x))
            case "sigmoid":
                return self.sigmoid(x)
            case "tanh":
                return self.op("math.tanh", x)
            case "hard-swish":
                gate = self.clamp(self.add(x, self.constant(3, x.type)), 0, 6)
                return self.mul(self.mul(x, gate), self.constant(1 / 6, x.type))
            case "elu":
                below = self.sub(self.exp(self.smaller(x, zero)), one)
                return self.select(self.compare("ogt", x, zero), x, below)
            case "softplus":
                bend = self.op("math.log1p", self.exp(self.op("arith.negf", self.op("math.absf", x))))
                return self.add(self.larger(x, zero), bend)
            case "squared-relu":
                kept = self.larger(x, zero)
                return self.mul(kept, kept)
            case _:
                return self.div(x, self.add(one, self.op("math.absf", x)))

    # narrow types

    def widen(self, value: Value, to: str) -> Value:
        """A stored value in the type it is computed in."""
        if value.type == to:
            return value
        if to.startswith("f"):
            return self.cast("arith.extf" if value.is_float else "arith.sitofp", value, to)
        return self.cast("arith.extsi", value, to)

    def narrow(self, value: Value, to: str) -> Value:
        """A computed value in the type it is stored in.

        bf16 is rounded to even with integer arithmetic, as compilers do for processors that have no such conversion.
        """
        if value.type == to:
            return value
        if to == "bf16":
            bits = self.cast("arith.bitcast", self.narrow(value, "f32"), "i32")
            last = self.op(
                "arith.andi", self.op("arith.shrui", bits, self.constant(16, "i32")), self.constant(1, "i32")
            )
            rounded = self.op("arith.addi", bits, self.op("arith.addi", last, self.constant(0x7FFF, "i32")))
            upper = self.cast("arith.trunci", self.op("arith.shrui", rounded, self.constant(16, "i32")), "i16")
            return self.cast("arith.bitcast", upper, "bf16")
        if to.startswith("f"):
            return self.cast("arith.truncf", value, to)
        if value.is_float:
            value = self.cast("arith.fptosi", value, "i32")
        return value if to == "i32" else self.cast("arith.trunci", value, to)

    def load_as(self, to: str, array: Array, *indices: Index) -> Value:
        return self.widen(self.load(array, *indices), to)

    def store_as(self, value: Value, array: Array, *indices: Index) -> None:
        self.store(self.narrow(value, array.element), array, *indices)

    # indices made by the program

    def number(self, index: Index, element: str = "i32") -> Value:
        """A loop variable as an integer."""
        return self.index_value(index, element)

    def position(self, value: Value, extent: int) -> Index:
        """An integer the program keeps in [0, extent) as a subscript for `load_at` and `store_at`."""
        return Index(self.cast("arith.index_cast", value, "index").name, 0, extent - 1)

    def hashed(self, seed: int, *numbers: Value) -> Value:
        """A well-mixed i32 of i32 numbers: multiply, xor, shift."""
        mixed = self.constant(seed & 0x7FFFFFFF, "i32")
        for number in numbers:
            mixed = self.op("arith.xori", mixed, self.op("arith.muli", number, self.constant(-1640531535, "i32")))
            mixed = self.op("arith.xori", mixed, self.op("arith.shrui", mixed, self.constant(15, "i32")))
            mixed = self.op("arith.muli", mixed, self.constant(-2048144789, "i32"))
        return self.op("arith.xori", mixed, self.op("arith.shrui", mixed, self.constant(13, "i32")))

    def below(self, mixed: Value, extent: int) -> Value:
        """A hash reduced to [0, extent)."""
        return self.op("arith.remui", mixed, self.constant(extent, mixed.type))

    def load_at(self, array: Array, *indices: Index) -> Value:
        """`memref.load`: subscripts may be any index value."""
        array.fit(indices)
        names = ", ".join(self._plain(index) for index in indices)
        return self.emit(f"memref.load {array.name}[{names}] : <{array.name}>", array.element)

    def store_at(self, value: Value, array: Array, *indices: Index) -> None:
        """`memref.store`: subscripts may be any index value."""
        array.fit(indices)
        assert value.type == array.element, (value, array.element)
        names = ", ".join(self._plain(index) for index in indices)
        self.line(f"memref.store {value.name}, {array.name}[{names}] : <{array.name}>")
        self.executed()

    def _plain(self, index: Index) -> str:
        """The index as one SSA name."""
        if index.text.lstrip("-").isdigit():
            return self.constant(int(index.text), "index").name
        if " " not in index.text:
            return index.text
        return self.applied(index)

    def applied(self, index: Index) -> str:
        """An affine expression as one SSA name."""
        from .affine_text import _dim_operands, _dims

        return self.emit(f"affine.apply affine_map<{_dims(index.text)}>{_dim_operands(index.text)}", "index").name
