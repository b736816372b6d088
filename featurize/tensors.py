"""Feature group `tensors`: what the function takes, gives and holds: ranks, elements, bytes, element types."""

from __future__ import annotations

import math

from .function_view import FunctionView
from .nodes import UNKNOWN_TRIP, product
from .op_classes import TENSOR_VIEWS
from .types import TypeInfo

_ELEMENTS = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "i1", "index", "other")
FEATURES: dict[str, tuple[str, str]] = {
    "tensors.args": ("function arguments", "count"),
    "tensors.shaped_args": ("memref, tensor and vector arguments", "count"),
    "tensors.scalar_args": ("other arguments", "count"),
    "tensors.bytes_in": ("bytes of all memref and tensor arguments; dynamic extents count as 16", "bytes"),
    "tensors.bytes_in_log": ("log1p of tensors.bytes_in", "log bytes"),
    "tensors.bytes_in_max_log": ("log1p of the largest argument's bytes", "log bytes"),
    "tensors.bytes_in_min_log": ("log1p of the smallest shaped argument's bytes", "log bytes"),
    "tensors.bytes_out": ("bytes of all results of the function", "bytes"),
    "tensors.bytes_out_log": ("log1p of tensors.bytes_out", "log bytes"),
    "tensors.bytes_inside": (
        "bytes of all memrefs and tensors made inside, views and results written in place apart",
        "bytes",
    ),
    "tensors.bytes_inside_log": ("log1p of tensors.bytes_inside", "log bytes"),
    "tensors.elements_max": ("elements of the largest memref or tensor", "count"),
    "tensors.elements_max_log": ("log1p of tensors.elements_max", "log count"),
    "tensors.rank_max": ("largest rank", "count"),
    "tensors.rank_mean": ("mean rank of the shaped arguments", "count"),
    "tensors.inner_extent_max": ("largest innermost extent of a shaped argument", "count"),
    "tensors.inner_extent_min": ("smallest innermost extent of a shaped argument", "count"),
    "tensors.row_bytes_power": (
        "shaped arguments whose row is a multiple of 4096 bytes (rows fall into the same cache sets)",
        "count",
    ),
    "tensors.dynamic_dims": ("dynamic extents of arguments, results and values made inside", "count"),
    "tensors.unranked": ("unranked memrefs and tensors", "count"),
    "tensors.strided": ("memrefs and views with a layout that is not contiguous", "count"),
    "tensors.allocs": ("allocations", "count"),
    "tensors.element_bits_max": ("widest element", "bits"),
    "tensors.element_bits_min": ("narrowest element", "bits"),
    **{f"tensors.args/{e}": (f"shaped arguments with {e} elements", "count") for e in _ELEMENTS},
}


def tensors(view: FunctionView) -> dict[str, float]:
    """All features of `FEATURES`."""
    out = dict.fromkeys(FEATURES, 0.0)
    arguments = [view.type_of(v) for v in view.arguments]
    shaped = [t for t in arguments if t.kind in ("memref", "tensor", "vector")]
    inside = []
    for node in view.nodes:
        for v in node.results:
            t = view.type_of(v)
            new = node.name not in TENSOR_VIEWS and v not in view.tied
            if (t.kind == "tensor" and new) or (
                t.kind == "memref" and (node.cls == "alloc" or not _is_view(node.name))
            ):
                inside.append(t)
                if node.cls == "alloc":
                    out["tensors.allocs"] += 1
    last = [n for n in view.nodes if n.name.endswith(".return")]
    results = [view.type_of(v) for v in last[-1].operands] if last else []
    out["tensors.args"] = float(len(arguments))
    out["tensors.shaped_args"] = float(len(shaped))
    out["tensors.scalar_args"] = float(len(arguments) - len(shaped))
    sizes = [_bytes(t) for t in shaped]
    bytes_in, bytes_out, made = sum(sizes), sum(_bytes(t) for t in results), sum(_bytes(t) for t in inside)
    out["tensors.bytes_in"], out["tensors.bytes_in_log"] = bytes_in, math.log1p(bytes_in)
    out["tensors.bytes_out"], out["tensors.bytes_out_log"] = bytes_out, math.log1p(bytes_out)
    out["tensors.bytes_inside"], out["tensors.bytes_inside_log"] = made, math.log1p(made)
    if sizes:
        out["tensors.bytes_in_max_log"] = math.log1p(max(sizes))
        out["tensors.bytes_in_min_log"] = math.log1p(min(sizes))
    everything = [*shaped, *inside]
    largest = max((_elements(t) for t in everything), default=0.0)
    out["tensors.elements_max"], out["tensors.elements_max_log"] = largest, math.log1p(largest)
    out["tensors.rank_max"] = float(max((len(t.shape) for t in everything if t.shape is not None), default=0))
    ranks = [len(t.shape) for t in shaped if t.shape is not None]
    out["tensors.rank_mean"] = sum(ranks) / len(ranks) if ranks else 0.0
    inner = [t.shape[-1] if t.shape[-1] is not None else UNKNOWN_TRIP for t in shaped if t.shape]
    if inner:
        out["tensors.inner_extent_max"] = float(max(inner))
        out["tensors.inner_extent_min"] = float(min(inner))
    for t in shaped:
        if t.shape and len(t.shape) > 1 and t.shape[-1] and (t.shape[-1] * t.element_bits // 8) % 4096 == 0:
            out["tensors.row_bytes_power"] += 1
        out[f"tensors.args/{t.element if t.element in _ELEMENTS else 'other'}"] += 1
    out["tensors.dynamic_dims"] = float(
        sum(t.shape.count(None) for t in [*shaped, *results, *inside] if t.shape is not None)
    )
    out["tensors.unranked"] = float(sum(t.shape is None and t.kind in ("memref", "tensor") for t in [*shaped, *inside]))
    views = [view.type_of(v) for node in view.nodes if _is_view(node.name) for v in node.results]
    out["tensors.strided"] = float(sum(_is_strided(t) for t in [*shaped, *inside, *views]))
    bits = [t.element_bits for t in everything if t.element_bits]
    if bits:
        out["tensors.element_bits_max"], out["tensors.element_bits_min"] = float(max(bits)), float(min(bits))
    return out


def _is_view(name: str) -> bool:
    """Whether an operation gives another view of memory that exists."""
    return name.startswith("memref.") and name not in ("memref.alloc", "memref.alloca", "memref.get_global")


def _elements(t: TypeInfo) -> float:
    if t.shape is None:
        return float(UNKNOWN_TRIP) if t.kind in ("memref", "tensor") else 0.0
    return float(product(t.shape))


def _bytes(t: TypeInfo) -> float:
    if t.kind not in ("memref", "tensor", "vector"):
        return math.ceil(t.element_bits / 8)
    return _elements(t) * (t.element_bits or 32) / 8


def _is_strided(t: TypeInfo) -> bool:
    if t.kind != "memref" or t.shape is None or t.strides is None or None in t.shape:
        return False
    expected = 1
    for size, stride in zip(reversed(t.shape), reversed(t.strides), strict=True):
        if stride != expected:
            return True
        expected *= size or 1
    return False
