"""The values of a function: types, layouts, and index arithmetic as linear forms over loop variables."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import TYPE_CHECKING

from .affine import AffineError, AffineMap, Linear, constant, integer, make_term, parse_map, variable
from .aliases import TooLongError
from .attribute_text import closing, is_generic, property_text, strip_comments
from .index_bases import delinearized, linearized
from .nodes import UNKNOWN_TRIP, Loop
from .program import Op, Program
from .types import TypeInfo, parse_type

if TYPE_CHECKING:
    from .accesses import Buffer

_TYPELESS_RESULT = {
    "arith.cmpf": "i1",
    "arith.cmpi": "i1",
    "affine.apply": "index",
    "affine.min": "index",
    "affine.max": "index",
    "memref.dim": "index",
    "tensor.dim": "index",
    "linalg.index": "index",
}
ATTR_REF = r"(?:affine_(?:map|set)<.*?\)\s*>(?!=)|#[\w$.-]+)"
APPLIED = re.compile(rf"\s*({ATTR_REF})", re.S)
"""A map or set at the start of an operation's text."""
_INTEGER = re.compile(r"\s*+(-?\d++|true|false)\s*+(?::|\Z)")
_FOLD_TERM = {
    "minsi": "min",
    "minui": "min",
    "maxsi": "max",
    "maxui": "max",
    "mins": "min",
    "maxs": "max",
    "divsi": "floordiv",
    "divui": "floordiv",
    "floordivsi": "floordiv",
    "ceildivsi": "ceildiv",
    "ceildivui": "ceildiv",
    "remsi": "mod",
    "remui": "mod",
    "divs": "floordiv",
    "divu": "floordiv",
    "rems": "mod",
    "remu": "mod",
}
MEMREF_POSITION: dict[str, int] = {
    "affine.load": 0,
    "affine.store": 1,
    "affine.vector_load": 0,
    "affine.vector_store": 1,
    "memref.load": 0,
    "memref.store": 1,
    "vector.load": 0,
    "vector.store": 1,
    "vector.transfer_read": 0,
    "vector.transfer_write": 1,
    "vector.maskedload": 0,
    "vector.maskedstore": 0,
    "vector.gather": 0,
    "vector.scatter": 0,
    "vector.expandload": 0,
    "vector.compressstore": 0,
    "memref.atomic_rmw": 1,
    "tensor.extract": 0,
    "tensor.insert": 1,
}
"""Which operand of an access is the memref."""
_FOLDABLE = {
    "arith.constant",
    "index.constant",
    "affine.apply",
    "affine.min",
    "affine.max",
    "affine.delinearize_index",
    "affine.linearize_index",
    "arith.index_cast",
    "arith.index_castui",
    "arith.extsi",
    "arith.extui",
    "arith.trunci",
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.shli",
    "memref.dim",
    "tensor.dim",
    "index.add",
    "index.sub",
    "index.mul",
    "index.casts",
    "index.castu",
    *(f"arith.{n}" for n in _FOLD_TERM),
    *(f"index.{n}" for n in ("mins", "maxs", "divs", "divu", "rems", "remu")),
}


class Values:
    """See the module. `FunctionView` adds the operations."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.loop_of_iv: dict[Hashable, Loop] = {}
        self._linear: dict[int, Linear] = {}
        self._layouts: dict[int, tuple[tuple[int, ...], tuple[int, ...], bool]] = {}
        self._types: dict[int, TypeInfo] = {}
        self._folds: dict[int, bool] = {}
        self.buffers: dict[int, Buffer] = {}
        self.tied: dict[int, int] = {}
        """Result of an operation that writes in place -> the operand that it writes to."""
        self.overwritten: set[int] = set()
        """Those operands."""
        self.access_groups: dict[tuple[int, frozenset[tuple[Hashable, int]]], int] = {}
        """(root of a memory access, address without its constant) -> number in order of appearance."""

    def type_of(self, value: int) -> TypeInfo:
        """The parsed type of a value; inferred from its definition where the text does not say."""
        info = self._types.get(value)
        if info is None:
            info = self._types[value] = parse_type(self.program.value_types[value] or self._infer_type(value))
        return info

    def _infer_type(self, value: int) -> str:
        defined = self.program.value_defs[value]
        if not isinstance(defined, Op):
            return "index" if value in self.loop_of_iv else ""
        fixed = _TYPELESS_RESULT.get(defined.name)
        if fixed is not None:
            return fixed
        memref = MEMREF_POSITION.get(defined.name)
        if memref is not None and len(defined.operands) > memref:
            return self.type_of(defined.operands[memref]).element
        return ""

    def text_of(self, op: Op) -> str:
        """The operation's text without comments."""
        text = op.text
        return strip_comments(text) if "//" in text else text

    def attribute(self, text: str) -> str:
        """An attribute as written, with a leading alias replaced."""
        if text.startswith("#"):
            aliases = self.program.aliases
            return aliases.get(text) or aliases.get(text[1:]) or text
        return text

    def expanded(self, text: str) -> str:
        """An attribute with all aliases in it replaced; as written where they stand for too much."""
        try:
            return self.program.aliases.expand(text)
        except TooLongError:
            return text

    def map_of(self, text: str) -> AffineMap:
        """Parse an `affine_map<...>` or an alias of one. Raises AffineError."""
        return parse_map(self.attribute(text))

    def linear(self, value: int) -> Linear:
        """An index value as a linear form over loop ivs; a value that cannot be followed is a variable of its own."""
        known = self._linear.get(value)
        if known is not None:
            return known
        chain = [value]  # iterative: definitions first
        while chain:
            current = chain[-1]
            if current in self._linear:
                chain.pop()
                continue
            node = self.program.value_defs[current]
            if not isinstance(node, Op) or node.name not in _FOLDABLE or current not in node.results:
                self._linear[current] = variable(current)
                continue
            waiting = [v for v in node.operands if v not in self._linear and v != current]
            if waiting and len(chain) < 10_000:
                chain.extend(waiting)
                continue
            folded = self._fold(node, current)
            self._linear[current] = folded if folded.fits() else variable(current)
        return self._linear[value]

    def folds(self, value: int) -> bool:
        """Whether an index value is a linear form of loop variables and constants, hence free as part of an address."""
        known = self._folds.get(value)
        if known is None:
            loops = self.loop_of_iv
            known = self._folds[value] = self.linear(value).terms.keys() <= loops.keys()
        return known

    def is_constant(self, value: int) -> bool:
        """Whether a value is defined by a constant."""
        op = self.program.value_defs[value]
        return isinstance(op, Op) and op.name.endswith("constant")

    def _fold(self, op: Op, value: int) -> Linear:
        name = op.name
        args = [self._linear.get(v) or variable(v) for v in op.operands]
        try:
            if name in ("arith.constant", "index.constant"):
                match = _INTEGER.match(_constant_value(self.text_of(op)))
                if match is None:
                    return variable(value)
                text = match.group(1)
                return constant(int(text == "true") if text in ("true", "false") else integer(text))
            if name in ("affine.apply", "affine.min", "affine.max"):
                results = self._apply(self.text_of(op), args)
                return results[0] if name == "affine.apply" else make_term(name[7:], results)
            if name == "affine.delinearize_index":
                return delinearized(self.text_of(op), args[0], list(op.results).index(value), len(op.results))
            if name == "affine.linearize_index":
                return linearized(self.text_of(op), args)
            if name.endswith(("index_cast", "index_castui", "casts", "castu", "extsi", "extui", "trunci")):
                return args[0]
            last = name.rpartition(".")[2]
            a, b = args[0], args[-1]
            if last in ("addi", "add"):
                return a + b
            if last in ("subi", "sub"):
                return a - b
            if last in ("muli", "mul"):
                return make_term("mul", [a, b])
            if last == "shli" and not b.terms and 0 <= b.const < 63:
                return a.scaled(1 << b.const)
            kind = _FOLD_TERM.get(last)
            if kind is not None:
                return make_term(kind, [a, b])
            if name in ("memref.dim", "tensor.dim") and not b.terms:
                shape = self.type_of(op.operands[0]).shape
                extent = shape[b.const] if shape is not None and 0 <= b.const < len(shape) else None
                if extent is not None:
                    return constant(extent)
        except (AffineError, IndexError, ValueError):
            pass
        return variable(value)

    def _apply(self, text: str, args: list[Linear]) -> list[Linear]:
        """The results of the first affine map in `text` on `args` (dims, then symbols)."""
        stripped = text.lstrip()
        match = None if is_generic(stripped) else APPLIED.match(stripped)
        mapped = self.map_of(match.group(1) if match else property_text(text, "map"))
        return [r.substitute(args) for r in mapped.results]

    def layout(self, memref: int) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
        """(extents, strides in elements, all static) of a memref or tensor; unknown extents count as UNKNOWN_TRIP."""
        known = self._layouts.get(memref)
        if known is None:
            known = self._layouts[memref] = self._layout(memref)
        return known

    def _layout(self, memref: int) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
        info = self.type_of(memref)
        if info.shape is None:
            return (), (), False
        shape = tuple(UNKNOWN_TRIP if d is None else d for d in info.shape)
        row_major = [1] * len(shape)
        for i in range(len(shape) - 2, -1, -1):
            row_major[i] = row_major[i + 1] * max(1, shape[i + 1])
        strides = tuple(row_major)
        if info.strides is not None and len(info.strides) == len(shape):
            strides = tuple(row_major[i] if s is None else s for i, s in enumerate(info.strides))
        return shape, strides, None not in info.shape


def _constant_value(text: str) -> str:
    """The value of a constant's text, in either syntax: ` {a = 1} 7 : index` -> " 7 : index"."""
    if is_generic(text):
        return property_text(text, "value")
    text = text.lstrip()
    return text[closing(text, 0) + 1 :] if text.startswith("{") else text
