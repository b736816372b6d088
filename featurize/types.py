"""MLIR types from their text: shape, element, bits, layout. Pure functions of the text, cached."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

UNKNOWN_SIZE = 16
"""Stands for a dynamic size where a number is needed."""


@dataclass(frozen=True)
class TypeInfo:
    """What a type's text says."""

    kind: str
    """"memref", "tensor", "vector", "scalar" (numbers, index, complex) or "other" (dialect types, functions)."""
    shape: tuple[int | None, ...] | None
    """Dimensions, None where dynamic, a scalable one as written; None as a whole: unranked, or not shaped."""
    element: str
    """Text of the element type; for a type that is not shaped, the type itself."""
    element_bits: int
    """Size of one element in bits, 0 where unknown. index counts 64, pointers 64, i1 counts 1."""
    strides: tuple[int | None, ...] | None
    """Of a memref, in elements, None where dynamic; None as a whole: not a strided layout, or not a memref."""
    offset: int | None
    """Of a memref, in elements; None where dynamic or unknown."""
    memory_space: str
    """Of a memref, as written ("" for the default one)."""
    scalable: bool
    """A vector with a scalable dimension."""

    @cached_property
    def registers(self) -> tuple[str, int]:
        """(class, how many) of the registers for a value: "scalar", "float", "vector" (of 256 bits), "" for none."""
        if self.kind == "vector":
            lanes = math.prod([size or UNKNOWN_SIZE for size in self.shape or ()])
            return "vector", max(1, -(-lanes * (self.element_bits or 32) // 256))
        if self.kind != "scalar":
            return "", 0
        return ("float", 1) if self.element[:1] in ("f", "b") else ("scalar", 1)

    @property
    def shaped(self) -> bool:
        """A memref, tensor or vector."""
        return self.kind in ("memref", "tensor", "vector")

    @property
    def elements(self) -> int | None:
        """Product of the dimensions, 1 for rank 0 and scalars; None where a size is unknown."""
        if self.shape is None:
            return None if self.shaped else 1
        product = 1
        for size in self.shape:
            if size is None:
                return None
            product *= size
        return product


_SHAPED = re.compile(r"(memref|tensor|vector)<", re.ASCII)
_DIMENSIONS = re.compile(r"(?:(?:\d++|\?|\[\d++\])\s*+x\s*+)*+", re.ASCII)
_DIMENSION = re.compile(r"(\[)?(\d++|\?)", re.ASCII)
_INTEGER = re.compile(r"[su]?i(\d++)", re.ASCII)
_FLOAT = re.compile(r"f(\d++)(?:E\d++M\d++\w*+)?+", re.ASCII)
_QUANTIZED = re.compile(r"!quant\.\w++<[A-Za-z_]*+(\d++)", re.ASCII)
_POINTER = re.compile(r"!(?:llvm|tt|spirv|ptr|cuda_tile|fir|emitc|cir)\.(?:ptr|ref)\b", re.ASCII)
_TORCH_TENSOR = re.compile(r"!torch\.v?tensor<(?:\[([^\]]*+)\]|\*)?+(?:,([^<>]++(?:<[^<>]*+>)?+))?+", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,30}", re.ASCII)
_STRIDED = re.compile(r"strided<\[([^\]]*+)\](?:\s*+,\s*+offset\s*+:\s*+(-?\d++|\?))?+\s*+>", re.ASCII)
_ALIAS = re.compile(r"#[A-Za-z_][\w$]*+", re.ASCII)
_SPACES = re.compile(r"\s++")


def normalized(text: str) -> str:
    """The type text with each run of white space as one space."""
    return _SPACES.sub(" ", text.strip())


@lru_cache(maxsize=65536)
def split_types(text: str) -> tuple[str, ...]:
    """Split at the commas outside all brackets: `"i32, tuple<i1, i8>"` -> `("i32", "tuple<i1, i8>")`; "" -> ()."""
    parts: list[str] = []
    depth = 0
    start = 0
    previous = ""
    in_string = False
    for position, char in enumerate(text):
        if char == '"':
            in_string = not in_string
        elif in_string:
            pass
        elif char in "<([{":
            depth += 1
        elif char in ")]}" or (char == ">" and previous != "-"):
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(normalized(text[start:position]))
            start = position + 1
        previous = char
    last = normalized(text[start:])
    if last or parts:
        parts.append(last)
    return tuple(parts)


_SCALAR = re.compile(
    r"[su]?i[0-9]++|index|none|b?f16|tf32|f(?:32|64|80|128)|f[468]E[0-9]++M[0-9]++[A-Z0-9]*+|token", re.ASCII
)
_BRACKETED = ("complex<", "tuple<")


def is_type(text: str) -> bool:
    """Can it be a type? Builtin ones are checked, of others only the first character."""
    if text[:1] in ("!", "(", "#"):
        return True
    if _SCALAR.fullmatch(text):
        return True
    match = _SHAPED.match(text)
    if match is None or text[-1] != ">":
        return text.startswith(_BRACKETED) and text[-1] == ">"
    body = text[match.end() : -1].lstrip()
    if body.startswith("*"):
        body = body[1:].lstrip()
        return body[:1] == "x" and is_element(body[1:])
    written = _DIMENSIONS.match(body)
    assert written
    return is_element(body[written.end() :])


def is_element(text: str) -> bool:
    """Can it be the element type of a shaped type, and what follows it?"""
    element = (split_types(text) or ("",))[0]
    if element.count("<") > _DEEPEST:
        return True
    return is_type(element) and element[:1] != "("


_DEEPEST = 50
"""Types in types beyond this depth have no size."""


def scalar_bits(text: str) -> int:
    """Bits of one value: numbers, index and pointers (64), complex, quantized (its storage), vectors; else 0."""
    match = _INTEGER.fullmatch(text)
    if match:
        return _integer(match[1]) or 0
    match = _FLOAT.fullmatch(text)
    if match:
        return _integer(match[1]) or 0
    if text == "index":
        return 64
    if text == "bf16":
        return 16
    if text == "tf32":
        return 32
    if text[-1:] == ">" and text.count("<") > _DEEPEST:
        return 0
    if text.startswith("complex<") and text[-1] == ">":
        return 2 * scalar_bits(text[8:-1].strip())
    if text.startswith(("vector<", "tensor<")) and text[-1] == ">":
        info = parse_type(text)
        return (info.elements or 0) * info.element_bits
    match = _QUANTIZED.match(text)
    if match:
        return _integer(match[1]) or 0
    return 64 if _POINTER.match(text) else 0


def _not_shaped(text: str) -> TypeInfo:
    bits = scalar_bits(text)
    kind = "other" if text[:1] in ("!", "(", "") or (bits == 0 and text != "index") else "scalar"
    return TypeInfo(kind, None, text, bits, None, None, "", False)


_MOST = 1 << 63
"""MLIR's sizes are signed 64-bit numbers; a larger one, or the sizes of a type with more elements, count as unknown."""


def _integer(text: str) -> int | None:
    text = text.strip()
    value = int(text) if _DECIMAL.fullmatch(text) else None
    return value if value is None or -_MOST <= value < _MOST else None


def _layout(
    shape: tuple[int | None, ...] | None, extra: list[str]
) -> tuple[tuple[int | None, ...] | None, int | None, str]:
    """Strides, offset and memory space of a memref from what follows its element type."""
    space = ""
    mapped = False
    for part in extra:
        match = _STRIDED.fullmatch(part)
        if match:
            strides = tuple(_integer(size) for size in match[1].split(",")) if match[1].strip() else ()
            offset = _integer(match[2]) if match[2] else 0
            if shape is not None and len(strides) != len(shape):
                return None, None, space
            return strides, offset, next((p for p in extra if p is not part), "")
        if part.startswith("affine_map<") or _ALIAS.fullmatch(part):
            mapped = True
        else:
            space = part
    if shape is None or mapped:
        return None, None, space
    strides_up: list[int | None] = []
    step: int | None = 1
    for size in reversed(shape):
        strides_up.append(step)
        step = None if step is None or size is None else step * size
    return tuple(reversed(strides_up)), 0, space


def _torch_tensor(text: str) -> TypeInfo | None:
    match = _TORCH_TENSOR.match(text)
    if not match:
        return None
    shape = None
    if match[1] is not None:
        sizes = [size.strip() for size in match[1].split(",") if size.strip()]
        shape = tuple(_integer(size) if size[0] != "-" else None for size in sizes)
    element = (match[2] or "").strip()
    return TypeInfo("tensor", shape, element, scalar_bits(element), None, None, "", False)


@lru_cache(maxsize=65536)
def parse_type(text: str) -> TypeInfo:
    """Shape, element and layout of a type; aliases in it must already be expanded.

    `memref<8x?xf32, strided<[?, 1]>, 3>` -> kind memref, shape (8, None), strides (None, 1), memory space "3".
    Torch's `!torch.vtensor<[2,3],f32>` reads as a tensor; every other dialect type has kind "other".
    """
    match = _SHAPED.match(text)
    if not match or not text.endswith(">"):
        if text.startswith("!torch."):
            return _torch_tensor(text) or _not_shaped(text)
        return _not_shaped(text)
    kind = match[1]
    body = text[match.end() : -1].strip()
    shape: tuple[int | None, ...] | None
    scalable = False
    if body.startswith("*"):
        shape = None
        body = body[1:].lstrip()[1:]
    else:
        written = _DIMENSIONS.match(body)
        assert written
        sizes = []
        for bracket, size in _DIMENSION.findall(written[0]):
            scalable = scalable or bool(bracket)
            sizes.append(_integer(size))
        shape = tuple(sizes)
        if math.prod(size for size in sizes if size is not None) >= _MOST:
            shape = (None,) * len(sizes)
        body = body[written.end() :]
    parts = list(split_types(body))
    element = parts[0] if parts else ""
    bits = scalar_bits(element)
    if kind != "memref":
        return TypeInfo(kind, shape, element, bits, None, None, "", scalable)
    strides, offset, space = _layout(shape, parts[1:])
    return TypeInfo(kind, shape, element, bits, strides, offset, space, scalable)


def with_element(text: str, element: str) -> str:
    """The type with another element and no layout: (`vector<4x8xf32>`, `i1`) -> `vector<4x8xi1>`; a scalar -> `i1`."""
    match = _SHAPED.match(text)
    if not match:
        return element
    body = text[match.end() :].lstrip()
    if body.startswith("*"):
        return f"{match[1]}<*x{element}>"
    written = _DIMENSIONS.match(body)
    assert written
    encoding = ""
    if match[1] == "tensor":
        encoding = "".join(f", {part}" for part in split_types(body[written.end() : -1])[1:])
    return f"{match[1]}<{written[0]}{element}{encoding}>"
