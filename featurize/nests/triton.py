"""Triton operations: blocks of elements in registers, so lanes instead of loops; what is counted is one program.

`tt.load` and `tt.store` move as many elements as their block has. Addresses are followed from the pointer argument
through `tt.addptr` and loop-carried pointers; program ids and arguments do not move in one program.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..affine import Linear, constant, make_term, variable
from ..nodes import Access, Loop, Node
from ..program import Block, Op
from ..types import parse_type
from .nest import class_for, element_of, ints_of, is_integer, property_of, shape_of
from .walk import settle, virtual

if TYPE_CHECKING:
    from ..function_view import FunctionView

CLASSES: dict[str, str] = {
    # name -> class; elementwise ones work on each lane
    **dict.fromkeys(
        (
            "tt.make_range", "tt.splat", "tt.unsplat", "tt.expand_dims", "tt.broadcast", "tt.reshape", "tt.view",
            "tt.addptr", "tt.advance", "tt.get_program_id", "tt.get_num_programs", "tt.ptr_to_int", "tt.int_to_ptr",
            "tt.bitcast", "tt.make_tensor_ptr", "tt.make_tensor_descriptor", "tt.reinterpret_tensor_descriptor",
        ),
        "index",
    ),
    **dict.fromkeys(
        ("tt.trans", "tt.join", "tt.cat", "tt.split", "tt.gather", "tt.histogram", "ttg.convert_layout"), "vecmove"
    ),
    "tt.fp_to_fp": "cast",
    "tt.precise_sqrt": "fsqrt",
    "tt.precise_divf": "fdiv",
    "tt.clampf": "fminmax",
    "tt.mulhiui": "imul",
    "tt.extern_elementwise": "fmath",
    **dict.fromkeys(("tt.reduce", "tt.scan"), "vreduce"),
    **dict.fromkeys(("tt.load", "tt.descriptor_load", "tt.descriptor_gather"), "load"),
    **dict.fromkeys(
        ("tt.store", "tt.descriptor_store", "tt.descriptor_scatter", "tt.descriptor_reduce", "tt.atomic_rmw",
         "tt.atomic_cas"), "store",
    ),
    **dict.fromkeys(("tt.reduce.return", "tt.scan.return"), "yield"),
    **dict.fromkeys(("tt.dot", "tt.dot_scaled"), "fma"),
}  # fmt: skip
_ACCESSES: dict[str, tuple[bool, int | None, int]] = {
    # name -> (is a store, operand with the block or None for the result, operands of an access that is not masked)
    "tt.load": (False, None, 1),
    "tt.store": (True, 1, 2),
    "tt.descriptor_load": (False, None, 99),
    "tt.descriptor_gather": (False, None, 99),
    "tt.descriptor_store": (True, 1, 99),
    "tt.descriptor_scatter": (True, -1, 99),
    "tt.descriptor_reduce": (True, 1, 99),
    "tt.atomic_rmw": (True, 1, 2),
    "tt.atomic_cas": (True, 2, 3),
}
_FORWARD = frozenset(
    ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.bitcast", "tt.reshape", "tt.view", "tt.unsplat",
     "tt.make_tensor_ptr", "tt.make_tensor_descriptor", "tt.advance", "ttg.convert_layout")
)  # fmt: skip
_WIDE = frozenset(("tt.reduce", "tt.scan"))


def is_block_function(view: FunctionView) -> bool:
    """Whether tensors of this function are blocks in registers."""
    return view.function.name.startswith(("tt.", "ttg."))


def enter(view: FunctionView, op: Op, node: Node, loop: Loop | None, execs: float) -> float:
    """Set what one `tt` operation is; gives how often its regions run each time it does."""
    name = op.name
    cls = CLASSES.get(name)
    if cls is None:
        return 1.0
    node.cls = cls
    if cls in ("index", "yield"):
        node.lanes = 1
    elif name in ("tt.dot", "tt.dot_scaled"):
        _dot(view, op, node, loop, execs)
    elif name in _ACCESSES:
        _access(view, op, node, loop, execs)
    elif name in _WIDE:
        return _combinations(view, op, node)
    else:
        node.cls = class_for(cls, node.element)
    return 1.0


def _elements(view: FunctionView, value: int) -> int:
    return math.prod(e or 1 for e in shape_of(view, value) or ())


def _dot(view: FunctionView, op: Op, node: Node, loop: Loop | None, execs: float) -> None:
    """M × N × K multiply-adds, K from the left operand; on integers a multiplication and an addition each."""
    left = shape_of(view, op.operands[0])
    node.lanes = _elements(view, op.results[0]) * ((left[-1] or 1) if left else 1)
    if is_integer(node.element):
        node.cls = "imul"
        virtual(view, loop, execs, node.block, "iadd", node.element).lanes = node.lanes


def _combinations(view: FunctionView, op: Op, node: Node) -> float:
    """n - 1 combinations for each result of a reduction over n elements: there is no initial value."""
    before = _elements(view, op.operands[0]) if op.operands else 1
    rows = _elements(view, op.results[0]) if op.results else 1
    if op.name == "tt.scan":
        shape = shape_of(view, op.operands[0]) if op.operands else None
        axis = ints_of(view, op, "axis")
        extent = shape[axis[0]] if shape and axis and -len(shape) <= axis[0] < len(shape) else None
        rows = before // (extent or before or 1)
    node.lanes = before
    return float(max(0, before - rows))


def _access(view: FunctionView, op: Op, node: Node, loop: Loop | None, execs: float) -> None:
    is_store, position, unmasked = _ACCESSES[op.name]
    if not op.operands or (position is None and not op.results):
        return
    block = op.results[0] if position is None else op.operands[position]
    info = view.type_of(block)
    root, offset = _pointer(view, op.operands[0])
    access = Access(node, root, is_store, loop, execs)
    access.lanes = node.lanes = max(1, _elements(view, block))
    access.bits = info.element_bits or _pointee_bits(view, op.operands[0])
    node.element = info.element
    access.masked = len(op.operands) > unmasked or "boundaryCheck" in _checked(view, op)
    access.extent = max(1, int(min(access.lanes * max(1.0, execs), 1e15)))
    access.shape, access.strides = (access.extent,), (1,)
    access.indices = [] if offset is None else [offset]
    settle(view, access, variable(("pointer", op.operands[0])) if offset is None else offset)
    node.access = access
    view.accesses.append(access)


def _checked(view: FunctionView, op: Op) -> str:
    found = property_of(view, op, "boundaryCheck")
    return "boundaryCheck" if any(c.isdigit() for c in found.partition(":")[2]) else ""


def _pointee_bits(view: FunctionView, pointer: int) -> int:
    element = element_of(view, pointer)
    inside = element.partition("<")[2].rstrip(">").partition(",")[0]
    return parse_type(inside).element_bits or 32


def _pointer(view: FunctionView, value: int) -> tuple[int, Linear | None]:
    """(pointer argument, offset in elements over loop variables; None where it is not known)."""
    offset: Linear | None = constant(0)
    for _ in range(256):
        made = view.program.value_defs[value]
        if isinstance(made, Block):
            carried = _carried(view, made, value)
            if carried is None:
                return value, offset
            value, step = carried
            offset = None if offset is None or step is None else offset + step
        elif made.name == "tt.addptr" and len(made.operands) == 2:
            moved = _offset(view, made.operands[1])
            offset = None if offset is None or moved is None else offset + moved
            value = made.operands[0]
        elif made.name in _FORWARD and made.operands:
            if made.name in ("tt.make_tensor_ptr", "tt.make_tensor_descriptor", "tt.advance"):
                offset = None
            value = made.operands[0]
        else:
            return value, offset
    return value, None


def _carried(view: FunctionView, block: Block, value: int) -> tuple[int, Linear | None] | None:
    """(initial value, how far the pointer moved) of an argument of an `scf.for`; None for any other argument."""
    owner = block.parent.parent
    if owner.name != "scf.for" or value not in block.args[1:]:
        return None
    k = block.args.index(value) - 1
    if 3 + k >= len(owner.operands) or not block.ops or k >= len(block.ops[-1].operands):
        return None
    start = owner.operands[3 + k]
    after = block.ops[-1].operands[k]
    loop = view.loop_of_iv.get(block.args[0])
    if after == value:
        return start, constant(0)
    made = view.program.value_defs[after]
    if not isinstance(made, Op) or made.name != "tt.addptr" or made.operands[0] != value or loop is None:
        return start, None
    moved = _offset(view, made.operands[1])
    if moved is None or moved.terms or moved.const % loop.step:
        return start, None
    begin = loop.lowers[0] if loop.lowers and not loop.lowers[0].terms else constant(0)
    factor = moved.const // loop.step
    return start, variable(loop.iv).scaled(factor) + constant(-begin.const * factor)


def _offset(view: FunctionView, value: int) -> Linear | None:
    """An offset (of the first lane) over loop variables: what does not change in the program is 0."""
    done: dict[int, Linear | None] = {}
    chain = [value]
    while chain:
        current = chain[-1]
        if current in done:
            chain.pop()
            continue
        made = view.program.value_defs[current]
        waiting = [v for v in made.operands if v not in done] if isinstance(made, Op) and made.name in _COMPUTED else []
        if waiting and len(chain) < 10_000:
            chain.extend(waiting)
            continue
        done[current] = _evaluated(view, made, current, done)
        chain.pop()
    return done[value]


_COMPUTED = _FORWARD | {"arith.addi", "arith.subi", "arith.muli", "arith.extsi", "arith.extui", "arith.trunci",
                        "arith.index_cast"}  # fmt: skip


def _evaluated(view: FunctionView, made: Op | Block, value: int, done: dict[int, Linear | None]) -> Linear | None:
    if isinstance(made, Op):
        if made.name == "tt.make_range" or made.name.startswith(("tt.get_program_id", "tt.get_num_programs")):
            return constant(0)
        if made.name in _FORWARD or made.name in ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"):
            return done.get(made.operands[0])
        if made.name in ("arith.addi", "arith.subi", "arith.muli"):
            a, b = (done.get(v) for v in made.operands[:2])
            if a is None or b is None:
                return None
            if made.name == "arith.muli":
                product = make_term("mul", [a, b])
                return product if product.is_linear() else None
            return a + b if made.name == "arith.addi" else a - b
        if made.name == "arith.constant":
            from .control import integers

            shaped = shape_of(view, value)
            if shaped:
                found = set(integers(view, value))
                return constant(found.pop()) if len(found) == 1 else None
            return view.linear(value)
    if value in view.loop_of_iv:
        return variable(value)
    # an argument, or a value made before the loops: it stays the same, unless it scales a loop variable
    node = view.defining.get(value)
    return _Fixed if value in view.arguments or (node is not None and node.loop is None) else None


_Fixed = constant(0)


__all__ = ["CLASSES", "enter", "is_block_function"]
