"""Feature group `ops`: how many operations of each name, dialect and class the function holds, as written."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from .attribute_text import is_generic
from .function_view import FunctionView
from .op_classes import CLASSES, FLOAT_CLASSES, INT_CLASSES

FEATURES: dict[str, tuple[str, str]] = {
    "ops.total": ("operations as written; module ops and terminators without operands are left out", "count"),
    "ops.distinct": ("different operation names", "count"),
    "ops.unknown": ("operations whose name the schema does not know (0 until a fitted Featurizer looks)", "count"),
    "ops.float": ("floating-point arithmetic operations", "count"),
    "ops.int": ("integer arithmetic operations, address arithmetic apart", "count"),
    "ops.vector": ("operations with a vector result, or that store a vector", "count"),
    "ops.vector_bits_max": ("bits of the widest vector value", "bits"),
    "ops.float_constants": ("different floating-point constants", "count"),
    "ops.blocks": ("basic blocks with at least one operation", "count"),
    "ops.block_max": ("operations of the largest basic block", "count"),
    **{
        f"ops.class/{c}": (f"operations of class {c} (see op_classes), implied ones of linalg included", "count")
        for c in CLASSES
    },
}

_UNSAFE = re.compile(r"[^A-Za-z0-9_.]")


@lru_cache(maxsize=16384)
def safe_name(name: str) -> str:
    """An op name as it stands in a feature name: anything but letters, digits, `_` and `.` becomes `_`."""
    return _UNSAFE.sub("_", name)


_CLASS_FEATURES = [(c, f"ops.class/{c}") for c in CLASSES]


def ops(view: FunctionView) -> dict[str, float]:
    """The fixed features above, `ops.<dialect.op>` for each op name and `ops.dialect/<dialect>` for each dialect."""
    names: Counter[str] = Counter([n.name for n in view.nodes if not n.virtual])
    classes = Counter([n.cls for n in view.nodes])
    dialects: dict[str, int] = {}
    for name, count in names.items():
        dialect = name.partition(".")[0]
        dialects[dialect] = dialects.get(dialect, 0) + count
    widest = 0
    vectors = 0
    constants: set[str] = set()
    for node in view.nodes:
        if node.lanes > 1 and node.op is not None:
            vectors += 1
            value = node.results[0] if node.results else node.operands[0]
            info = view.type_of(value)
            if info.kind == "vector":
                widest = max(widest, node.lanes * info.element_bits)
        if node.cls == "const" and node.op is not None and node.element[:1] in ("f", "b"):
            constants.add(constant_text(view.text_of(node.op)))
    sizes = [len(stream) for stream in view.block_streams if stream]
    out = {
        "ops.total": float(sum(names.values())),
        "ops.distinct": float(len(names)),
        "ops.unknown": 0.0,
        "ops.float": float(sum([classes.get(c, 0) for c in FLOAT_CLASSES])),
        "ops.int": float(sum([classes.get(c, 0) for c in INT_CLASSES])),
        "ops.vector": float(vectors),
        "ops.vector_bits_max": float(widest),
        "ops.float_constants": float(len(constants)),
        "ops.blocks": float(len(sizes)),
        "ops.block_max": float(max(sizes, default=0)),
    }
    for c, feature in _CLASS_FEATURES:
        out[feature] = float(classes.get(c, 0))
    for name, count in names.items():
        out["ops." + safe_name(name)] = float(count)
    for dialect, count in dialects.items():
        out[f"ops.dialect/{safe_name(dialect)}"] = float(count)
    return out


def constant_text(text: str) -> str:
    """The value of a constant in either syntax: ` 1.5 : f32`, `() <{value = 1.5 : f32}> …` -> "1.5 : f32"."""
    text = " ".join(text.split())
    if is_generic(text):
        match = re.search(r"value\s*=\s*(.*?)\s*\}>", text, re.S)
        return match.group(1) if match else text
    return text
