"""Operations of the core dialects on whole tensors and memrefs: arith, math, tensor, bufferization, memref.copy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..affine import Linear, constant, integer
from ..attribute_text import is_generic, static_list
from ..op_classes import TENSOR_VIEWS, op_class
from ..program import Op
from .linalg import packed
from .nest import FREE, Implied, Sketch, element_of, elementwise, joined, padded, property_of, shape_of, times

if TYPE_CHECKING:
    from ..function_view import FunctionView


def implied_arith(view: FunctionView, op: Op) -> Implied | None:
    """An arith or math operation on a tensor: element-wise. None on scalars and vectors."""
    if not op.results or view.type_of(op.results[0]).kind != "tensor" or op.name == "arith.constant":
        return None
    element = element_of(view, op.operands[0]) if op.operands else ""
    cls = op_class(op.name, element_of(view, op.results[0]) if op.name != "arith.select" else element)
    found = elementwise(view, op.operands, op.results[0], ())
    if found is None or not found.nests:
        return None
    nest = found.nests[0]
    return Implied((type(nest)(nest.extents, nest.iterators, nest.accesses, (cls,), element),))


def implied_copy(view: FunctionView, op: Op) -> Implied | None:
    """`memref.copy` as a loop nest over the source's shape."""
    if len(op.operands) != 2:
        return None
    shape = shape_of(view, op.operands[0])
    if shape is None:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    sketch.load(op.operands[0], loops)
    sketch.store(op.operands[1], loops)
    return Implied((sketch.done(element=element_of(view, op.operands[0])),), "")


def implied(view: FunctionView, op: Op) -> Implied | None:
    """Operations of the `tensor` dialect that move data; the others keep the class of their name."""
    short = op.name.partition(".")[2]
    if op.name in TENSOR_VIEWS or short in ("dim", "rank"):
        return FREE
    if short == "empty":
        return Implied(cls="")
    if short in ("pack", "unpack"):
        return packed(view, op, short)
    if short == "splat" or short == "from_elements":
        return elementwise(view, (), op.results[0], ()) if op.results else None
    if short == "generate":
        return elementwise(view, (), op.results[0], (), region=0) if op.results else None
    if short == "concat":
        axis = re.search(r"\bdim\s*(?:=\s*|\(\s*)(\d+)", view.text_of(op))
        return joined(view, op.operands, op.results[0], int(axis.group(1)) if axis else 0)
    if short == "pad":
        return _pad(view, op)
    if short in ("insert_slice", "parallel_insert_slice"):
        return _insert(view, op)
    if short == "gather":
        return _gathered(view, op)
    return None


def _numbers(text: str) -> list[int]:
    return [integer(s) for s in re.findall(r"(?<![%\w])-?\d+", text)]


def _pad(view: FunctionView, op: Op) -> Implied | None:
    """The region only says the value: it runs for each padded position, and is not counted."""
    low = re.search(r"\blow\s*\[([^\]]*)\]", view.text_of(op))
    entries = low.group(1).split(",") if low else property_of(view, op, "static_low").partition(":")[2].split(",")
    starts = [integer(e) if re.fullmatch(r"\s*\d+\s*>?\s*", e) else 0 for e in (x.strip(" >") for x in entries)]
    return padded(view, op.operands[0], op.results[0], starts)


def offsets_of(
    view: FunctionView, op: Op, rank: int, first: int
) -> tuple[list[Linear], list[int | None], list[Linear]]:
    """(offsets, sizes, strides) of a slice operation whose dynamic ones are operands from `first` on."""
    text = view.text_of(op)
    dynamic = iter(op.operands[first:])
    rows: list[list[int | None]] = []
    if is_generic(text.lstrip()):
        rows = [static_list(property_of(view, op, k)) for k in ("static_offsets", "static_sizes", "static_strides")]
    else:
        for group in re.findall(r"\[([^\]]*)\]", text)[:3]:
            parts = [p.strip() for p in group.split(",")] if group.strip() else []
            rows.append([None if p.startswith("%") else integer(p) for p in parts])
    if len(rows) != 3 or any(len(r) != rank for r in rows):
        raise ValueError("unreadable slice")
    resolved = [[view.linear(next(dynamic)) if e is None else constant(e) for e in row] for row in rows]
    return resolved[0], rows[1], resolved[2]


def _insert(view: FunctionView, op: Op) -> Implied | None:
    """The source copied into its place in the destination, which stays where it is."""
    source, dest = op.operands[:2]
    shape, wide = shape_of(view, source), shape_of(view, dest)
    if shape is None or wide is None:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    try:
        offsets, sizes, strides = offsets_of(view, op, len(wide), 2)
    except (ValueError, StopIteration):
        return None
    dropped = len(wide) - len(shape)
    index: list[Linear] = []
    at = 0
    for d in range(len(offsets)):
        if dropped and sizes[d] == 1 and not (at < len(shape) and shape[at] == 1 and len(wide) - d == len(shape) - at):
            dropped -= 1
            index.append(constant(0))
        elif at < len(loops):
            step = strides[d].const if not strides[d].terms else 1
            index.append(loops[at].scaled(step))
            at += 1
    if at != len(loops) or len(index) != len(wide):
        return None
    sketch.load(source, loops)
    sketch.store(dest, index, start=offsets)
    tied = ((op.results[0], dest),) if op.results else ()
    return Implied((sketch.done(element=element_of(view, dest)),), tied=tied)


def _gathered(view: FunctionView, op: Op) -> Implied | None:
    shape, own = shape_of(view, op.results[0]), shape_of(view, op.operands[0])
    if shape is None or own is None or times(*shape) == 0:
        return None
    sketch = Sketch()
    loops = sketch.over(shape)
    index = loops[len(loops) - len(own) :] if len(loops) >= len(own) else [constant(0)] * len(own)
    sketch.load(op.operands[0], index, irregular=True)
    sketch.store(op.results[0], loops)
    return Implied((sketch.done(element=element_of(view, op.results[0])),))


__all__ = ["implied", "implied_arith", "implied_copy"]
