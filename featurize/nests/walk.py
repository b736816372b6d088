"""Implied nests in a `FunctionView`: their loops, accesses and arithmetic, as if they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..accesses import place
from ..affine import Linear, constant, dot, variable
from ..nodes import UNKNOWN_TRIP, Access, Loop, Node, product
from ..program import Op
from ..types import parse_type
from .nest import Implied, ImpliedNest, Touch

if TYPE_CHECKING:
    from ..function_view import FunctionView


def expand(
    view: FunctionView, op: Op, node: Node, implied: Implied, stack: list[Any], parent: Loop | None, execs: float
) -> None:
    """Add what `op` implies after its node; a region that runs in the last nest is put on the walk's stack."""
    if implied.cls:
        node.cls = implied.cls
    node.lanes = implied.lanes
    in_place: dict[int, int] = {}
    for result, operand in implied.tied:
        kind = view.type_of(operand).kind
        if kind != "tensor":
            continue
        if operand in view.overwritten:  # taken by another operation: a copy of its own
            in_place[operand] = result
        else:
            view.overwritten.add(operand)
            view.tied[result] = view.tied.get(operand, operand)
    scratch = {-1 - k: _scratch(view) for k in range(len(implied.scratch))}
    for nest in implied.nests:
        loop, inner, ivs = _loops(view, node, nest, parent, execs)
        block = view._open_block()
        for touch in nest.accesses:
            if not touch.is_store:
                _touch(view, node, touch, ivs, loop, inner, block, implied, scratch, in_place)
        for cls in nest.compute:
            virtual(view, loop, inner, block, cls, nest.element)
        for touch in nest.accesses:
            if touch.is_store:
                _touch(view, node, touch, ivs, loop, inner, block, implied, scratch, in_place)
        own = loop if loop is not parent else None
        if nest.region is None or nest.region >= len(op.regions):
            if own is not None:
                view._close(own)
            continue
        first = True
        for body in reversed(op.regions[nest.region].blocks):
            stack.append((iter(body.ops), loop, inner, view._open_block(), own if first else None))
            first = False
        if first and own is not None:
            view._close(own)


def _loops(
    view: FunctionView, node: Node, nest: ImpliedNest, parent: Loop | None, execs: float
) -> tuple[Loop | None, float, list[Linear]]:
    loop, inner = parent, execs
    ivs: list[Linear] = []
    for extent, iterator in zip(nest.extents, nest.iterators, strict=True):
        iv = view._new_iv()
        ivs.append(variable(iv))
        loop = view._new_loop("linalg", loop, iv, node)
        loop.parallel = iterator == "parallel"
        loop.reduction = iterator == "reduction"
        loop.first = len(view.nodes)
        view._trip_counts.count(loop, [constant(0)], [] if extent is None else [constant(extent)], inner)
        inner = loop.execs
    return loop, inner, ivs


def virtual(view: FunctionView, loop: Loop | None, execs: float, block: int, cls: str, element: str) -> Node:
    """An implied operation."""
    node = Node(len(view.nodes), "", None, loop, execs, block)
    node.cls = cls
    node.element = element
    view.nodes.append(node)
    if loop is not None:
        loop.nodes.append(node)
    return node


def settle(view: FunctionView, access: Access, address: Linear) -> None:
    """Set the address of an access whose root is no memref or tensor of the program, and what follows from it."""
    access.address = address
    access.linear = address.is_linear()
    access.known = address.variables() <= view.loop_of_iv.keys()
    access.group = view.access_groups.setdefault((access.root, address.part), len(view.access_groups))
    if access.loop is not None:
        access.stride = access.stride_in(access.loop)


def _scratch(view: FunctionView) -> int:
    """A root of its own: no value has a negative number."""
    view._synthetic += 1
    return -view._synthetic


def _touch(
    view: FunctionView,
    owner: Node,
    touch: Touch,
    ivs: list[Linear],
    loop: Loop | None,
    execs: float,
    block: int,
    implied: Implied,
    scratch: dict[int, int],
    in_place: dict[int, int],
) -> None:
    indices = [i.substitute(ivs) for i in touch.indices]
    if touch.start:
        indices = [i + start for i, start in zip(indices, touch.start, strict=True)]
    value = touch.value
    if value >= 0:
        value = in_place.get(value, value)
        info = view.type_of(value)
        element, bits = info.element, info.element_bits or 32
    else:
        shape, element = implied.scratch[-1 - value]
        bits = parse_type(element).element_bits or 32
    node = virtual(view, loop, execs, block, "store" if touch.is_store else "load", element)
    access = Access(node, value, touch.is_store, loop, execs)
    access.bits = bits
    if value >= 0:
        place(view, access, value, indices)
    else:
        access.root = scratch[value]
        access.shape = tuple(UNKNOWN_TRIP if e is None else e for e in shape)
        access.extent = max(1, product(access.shape))
        strides = [1] * len(shape)
        for d in range(len(shape) - 2, -1, -1):
            strides[d] = strides[d + 1] * max(1, access.shape[d + 1])
        access.strides = tuple(strides)
        access.indices = indices
        settle(view, access, dot(indices, strides))
    if touch.irregular:
        access.known = False
    node.access = access
    view.accesses.append(access)
