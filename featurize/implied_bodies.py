"""Bodies that the text of an operation leaves out and the generic print shows: named linalg, `stablehlo.reduce`.

The reader does not add them to a program; `inspect` counts them.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class BodyOp(NamedTuple):
    """An operation in a body."""

    name: str
    operands: int
    results: int


APPLYING = frozenset(["stablehlo.reduce", "mhlo.reduce"])
"""Reductions whose body may be written as the name of its one operation."""

_YIELD = BodyOp("linalg.yield", 1, 0)
_COPIES = frozenset(["linalg.fill", "linalg.copy", "linalg.transpose", "linalg.broadcast"])
_CONTRACTIONS = ("matmul", "matvec", "vecmat", "linalg.dot", "mmt4d", "conv_", "linalg.contract")
_UNARY = {
    **{name: f"math.{name}" for name in ("exp", "log", "ceil", "floor", "round", "sqrt", "rsqrt", "tanh", "erf")},
    "abs": "math.absf", "negf": "arith.negf",
}  # fmt: skip
_BINARY = {
    "add": ("arith.addf", "arith.addi"), "sub": ("arith.subf", "arith.subi"), "mul": ("arith.mulf", "arith.muli"),
    "div": ("arith.divf", "arith.divsi"), "div_unsigned": ("arith.divf", "arith.divui"),
    "max": ("arith.maximumf", "arith.maxsi"), "min": ("arith.minimumf", "arith.minsi"),
    "max_unsigned": ("arith.maximumf", "arith.maxui"), "min_unsigned": ("arith.minimumf", "arith.minui"),
    "max_signed": ("arith.maximumf", "arith.maxsi"), "min_signed": ("arith.minimumf", "arith.minsi"),
    "sum": ("arith.addf", "arith.addi"), "powf": ("math.powf", "math.powf"),
}  # fmt: skip
_RANDOM = (
    *[BodyOp("arith.constant", 0, 1)] * 6, *[BodyOp("linalg.index", 0, 1)] * 2, *[BodyOp("arith.index_cast", 1, 1)] * 2,
    *[BodyOp("arith.trunci", 1, 1)] * 4, *[BodyOp("arith.addi", 2, 1)] * 4, *[BodyOp("arith.muli", 2, 1)] * 2,
    *[BodyOp("arith.sitofp", 1, 1)] * 2, *[BodyOp("arith.mulf", 2, 1)] * 2, *[BodyOp("arith.addf", 2, 1)] * 2,
    BodyOp("arith.subf", 2, 1),
)  # fmt: skip
_POOLING = re.compile(r"linalg\.pooling_\w+?_(sum|max_unsigned|min_unsigned|max|min)$", re.ASCII)
_INTEGER = re.compile(r"[su]?i([0-9]{1,9})|index", re.ASCII)
_FLOAT = re.compile(r"[bt]?f([0-9]{1,3})", re.ASCII)
_SHORT = re.compile(r"\s*\{\s*([A-Za-z_]\w*\.[\w.]+)\s*(?:\{[^{}]*\}\s*)?\}", re.ASCII)
_APPLIES = re.compile(r"\bapplies\s+([A-Za-z_]\w*\.[\w.]+)", re.ASCII)
_KIND = re.compile(r"kind\s*=\s*#linalg\.elementwise_kind<(\w+)>", re.ASCII)


def _bits(element: str) -> int:
    match = _INTEGER.fullmatch(element) or _FLOAT.match(element)
    return int(match[1] or 64) if match else 0


def _cast(source: str, target: str, unsigned: bool) -> list[BodyOp]:
    """What turns one element type into another; nothing where they are the same."""
    if source == target:
        return []
    from_integer, to_integer = bool(_INTEGER.fullmatch(source)), bool(_INTEGER.fullmatch(target))
    sign = "u" if unsigned else "s"
    if from_integer and to_integer:
        name = f"arith.ext{sign}i" if _bits(source) < _bits(target) else "arith.trunci"
    elif from_integer:
        name = f"arith.{sign}itofp"
    elif to_integer:
        name = f"arith.fpto{sign}i"
    else:
        name = "arith.extf" if _bits(source) < _bits(target) else "arith.truncf"
    return [BodyOp(name, 1, 1)]


def implied_body(name: str, elements: list[str], text: str) -> tuple[BodyOp, ...] | None:
    """The operations in the body of a named linalg operation, or of a reduction that `applies` one operation.

    None where it has none, or it is not known.

    `elements` are the element types of its operands, the outputs last; `text` is the operation as written.
    """
    if name in APPLYING:
        inner = _APPLIES.search(text)
        return (BodyOp(inner[1], 2, 1), BodyOp(f"{name.partition('.')[0]}.return", 1, 0)) if inner else None
    if not name.startswith("linalg.") or not elements:
        return None
    short = name[len("linalg.") :]
    output = elements[-1]
    integer = bool(_INTEGER.fullmatch(output))
    unsigned = "cast_unsigned" in text or short.endswith("_unsigned")
    if name in ("linalg.map", "linalg.reduce"):  # the short form `linalg.map { arith.addf } ins(...)`
        inner = _SHORT.match(text)
        operands = 2 if name == "linalg.reduce" else len(elements) - 1
        return (BodyOp(inner[1], operands, 1), _YIELD) if inner else None
    if short == "fill_rng_2d":
        return (*_RANDOM, *_cast("f64", output, unsigned), _YIELD)
    if name in _COPIES:
        return (*_cast(elements[0], output, unsigned), _YIELD)
    kind = _KIND.search(text) if short == "elementwise" else None
    if kind:
        short = kind[1]
    pooling = _POOLING.match(name)
    if pooling:
        return (*_cast(elements[0], output, unsigned), BodyOp(_BINARY[pooling[1]][integer], 2, 1), _YIELD)
    if short in _UNARY and len(elements) == 2:
        return (*_cast(elements[0], output, unsigned), BodyOp(_UNARY[short], 1, 1), _YIELD)
    if short in _BINARY and len(elements) == 3:
        casts = [op for element in elements[:2] for op in _cast(element, output, unsigned)]
        return (*casts, BodyOp(_BINARY[short][integer], 2, 1), _YIELD)
    if short == "select" and len(elements) == 4:
        return (BodyOp("arith.select", 3, 1), _YIELD)
    if not any(part in name for part in _CONTRACTIONS):
        return None
    product = [BodyOp(_BINARY["mul"][integer], 2, 1), BodyOp(_BINARY["add"][integer], 2, 1), _YIELD]
    if len(elements) == 5:  # quantized: a zero point is taken from each input
        points = [
            op for element in elements[:2] for op in (*_cast(element, output, unsigned), BodyOp("arith.subi", 2, 1))
        ]
        return (*points, *product)
    return (*(op for element in elements[:2] for op in _cast(element, output, unsigned)), *product)
