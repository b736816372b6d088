"""Loads and stores as linear forms of loop variables, followed through subviews and casts to the memref behind."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from .affine import AffineError, InlineMap, Linear, Term, constant, dot, make_term, parse_inline, variable
from .attribute_text import closing, is_generic, mixed_list, property_text, static_list
from .nodes import Access, Node, product
from .op_classes import TENSOR_VIEWS
from .op_syntax import Form
from .program import Op
from .values import MEMREF_POSITION, Values

_STORES = frozenset(
    (
        "affine.store",
        "affine.vector_store",
        "memref.store",
        "memref.atomic_rmw",
        "tensor.insert",
        "vector.store",
        "vector.transfer_write",
        "vector.maskedstore",
        "vector.scatter",
        "vector.compressstore",
    )
)
_MAPPED = frozenset(("affine.load", "affine.store", "affine.vector_load", "affine.vector_store"))
"""Accesses whose subscripts are written as an affine map."""
ACCESSES: dict[str, tuple[bool, int, bool]] = {
    name: (name in _STORES, position, name in _MAPPED) for name, position in MEMREF_POSITION.items()
}
"""Name -> (is a store, operand position of the memref, subscripts written as an affine map)."""
_ALIASES = TENSOR_VIEWS | frozenset(
    (
        "memref.subview",
        "memref.cast",
        "memref.reinterpret_cast",
        "memref.expand_shape",
        "memref.collapse_shape",
        "memref.view",
        "memref.memory_space_cast",
        "memref.transpose",
    )
)


def access_of(values: Values, op: Op, node: Node, spec: tuple[bool, int, bool]) -> Access:
    """The access that an operation of `ACCESSES` makes."""
    is_store, position, mapped = spec
    operands = op.operands
    memref = operands[position]
    access = Access(node, memref, is_store, node.loop, node.execs)
    if mapped:
        indices = _subscripts(values, op, position)
    else:
        linear = values.linear
        shape = values.type_of(memref).shape
        indices = [linear(v) for v in operands[position + 1 : position + 1 + len(shape)]] if shape else []
    if node.lanes != 1 or op.name.startswith("vector."):
        value = (operands[0] if position else operands[-1]) if is_store else (op.results[0] if op.results else memref)
        moved = values.type_of(value)
        if moved.kind == "vector" and moved.shape:
            access.lanes = max(1, product(moved.shape))
        if op.name.startswith("vector.transfer"):
            _transfer(values, op, access)
    place(values, access, memref, indices)
    return access


def _transfer(values: Values, op: Op, access: Access) -> None:
    """Broadcast dimensions of a transfer touch one element; one that is not in bounds for certain is masked."""
    text = values.text_of(op)
    in_bounds = property_text(text, "in_bounds")
    moved = op.operands[0] if access.is_store or not op.results else op.results[0]
    shape = values.type_of(moved).shape or ()
    access.masked = bool(shape) and ("false" in in_bounds or not in_bounds)
    written = property_text(text, "permutation_map")
    if not written:
        return
    try:
        results = values.map_of(written).results
    except AffineError:
        return
    if len(shape) == len(results):
        kept = [d for d, r in zip(shape, results, strict=True) if r.terms]
        access.broadcast = len(kept) < len(results)
        access.lanes = max(1, product(kept))


# ---- subscripts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SubscriptPlan:
    """Subscripts of every operation of one form whose subscript values are all different."""

    n_values: int
    """Subscript values; 0 results where the subscripts are not linear."""
    results: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] | None
    """(constant, ((position among the subscript values, factor), ...)) of each subscript; None: not linear."""


def _plan(text: str) -> SubscriptPlan | None:
    """The plan of the form that `text` has; None where a value occurs twice, so that others of the form may differ."""
    start = text.index("[")
    inline = parse_inline(text[start + 1 : text.index("]", start)])
    if len(set(inline.uses)) < len(inline.uses):
        return None
    position = [inline.uses.index(name) for name in inline.names]
    results = []
    for result in inline.results:
        pairs = []
        for v, factor in result.terms.items():
            if isinstance(v, Term):
                return SubscriptPlan(len(inline.uses), None)
            assert isinstance(v, int)  # parsed maps use positions
            pairs.append((position[v], factor))
        results.append((result.const, tuple(pairs)))
    return SubscriptPlan(len(inline.uses), tuple(results))


def _subscripts(values: Values, op: Op, position: int) -> list[Linear]:
    """Subscripts of an affine access; [] where they cannot be read."""
    operands = op.operands
    form: Form | None = op.form
    linear = values.linear
    try:
        if form is not None:
            plan: SubscriptPlan | None = form.facts
            if plan is None:
                plan = form.facts = _plan(op.text)
            if plan is not None and plan.results is not None and plan.n_values == len(operands) - position - 1:
                first = position + 1
                indices = []
                for const, pairs in plan.results:
                    if len(pairs) == 1 and pairs[0][1] == 1:
                        one = linear(operands[first + pairs[0][0]])
                        indices.append(Linear(one.const + const, one.terms) if const else one)
                    else:
                        total = constant(const)
                        for at, factor in pairs:
                            total = total + linear(operands[first + at]).scaled(factor)
                        indices.append(total)
                return indices
        text = values.text_of(op)
        forms = [linear(v) for v in operands[position + 1 :]]
        if is_generic(text):
            return [r.substitute(forms) for r in values.map_of(property_text(text, "map")).results]
        start = text.index("[")
        inline = parse_inline(text[start + 1 : text.index("]", start)])
        in_order = forms if inline.uses == inline.names else by_name(inline, forms)
        return [r.substitute(in_order) for r in inline.results]
    except (AffineError, IndexError, ValueError, TypeError):
        return []


def by_name(inline: InlineMap, operands: list[Linear]) -> list[Linear]:
    """The operands, listed as the text mentions them, in the order of `inline.names`."""
    mentions = inline.uses if len(operands) == len(inline.uses) else inline.written
    value = dict(zip(mentions, operands, strict=True))
    return [value[name] for name in inline.names]


# ---- place in memory --------------------------------------------------------------------------------------------


def place(values: Values, access: Access, memref: int, indices: list[Linear]) -> None:
    """Set element size, root and address: a linear form, followed through subviews and casts to the root."""
    buffer = values.buffers.get(memref)
    if buffer is None:
        buffer = values.buffers[memref] = _buffer(values, memref)
    access.bits = buffer.bits
    root = memref
    offset = None
    if buffer.alias:
        root, indices, offset = _to_root(values, memref, indices)
        buffer = values.buffers.get(root)
        if buffer is None:
            buffer = values.buffers[root] = _buffer(values, root)
    shape = buffer.shape
    access.root = root
    access.extent = buffer.extent
    access.shape, access.strides = shape, buffer.strides
    if len(indices) == len(shape):
        access.indices = indices
        access.address = address = dot(indices, buffer.strides)
    else:
        if not indices:
            access.shape, access.strides, _ = values.layout(memref)
        access.address = address = offset or constant(0)
    terms = address.terms
    loops = values.loop_of_iv
    if not terms.keys() <= loops.keys():
        access.linear = address.is_linear()
        access.known = not access.linear and address.variables() <= loops.keys()
    groups = values.access_groups
    access.group = groups.setdefault((root, address.part), len(groups))
    loop = access.loop
    if loop is not None:
        access.stride = terms.get(loop.iv, 0) * loop.step if access.linear else access.stride_in(loop)


def outlive(values: Values, access: Access) -> bool:
    """Make the counters of loops that have ended unknown in an address; whether there was one."""
    loops = values.loop_of_iv
    ended: dict[Hashable, Linear] = {
        v: variable(("after", v)) for v in access.address.variables() if v in loops and loops[v].last
    }
    if ended:
        access.indices = [index.substitute(ended) for index in access.indices]
        access.address = access.address.substitute(ended)
        access.linear = access.address.is_linear()
        access.known = False
    return bool(ended)


def group(values: Values, accesses: list[Access]) -> None:
    """Number the groups of accesses again."""
    groups = values.access_groups
    groups.clear()
    for access in accesses:
        access.group = groups.setdefault((access.root, access.address.part), len(groups))


@dataclass(frozen=True)
class Buffer:
    """What accesses of one memref or tensor value have in common."""

    alias: bool
    """A view of another value's memory."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    extent: int
    """Elements."""
    bits: int
    """Of one element."""


def _buffer(values: Values, memref: int) -> Buffer:
    defined = values.program.value_defs[memref]
    alias = isinstance(defined, Op) and (defined.name in _ALIASES or memref in values.tied) and bool(defined.operands)
    shape, strides, _ = values.layout(memref)
    return Buffer(alias, shape, strides, max(1, product(shape)), values.type_of(memref).element_bits or 32)


def _to_root(values: Values, memref: int, indices: list[Linear]) -> tuple[int, list[Linear], Linear | None]:
    """(root, subscripts there, offset) of subscripts of a view; no subscripts where its shape is another one."""
    offset = None
    current = memref
    defs = values.program.value_defs
    for _ in range(64):
        op = defs[current]
        if not isinstance(op, Op) or op.name not in _ALIASES or not op.operands:
            written = values.tied.get(current)
            if written is None:
                break
            current = written
            continue
        if op.name in ("memref.subview", "tensor.extract_slice"):
            moved = _through_subview(values, op, indices)
            if moved is None:
                break
            indices = moved
        elif op.name not in ("memref.cast", "tensor.cast"):
            shape, strides, _ = values.layout(current)
            if len(shape) == len(indices):
                here = dot(indices, strides)
                if op.name == "memref.reinterpret_cast":
                    here = here + constant(values.type_of(current).offset or 0)
                offset = here if offset is None else offset + here
            indices = []
        current = op.operands[0]
    return current, indices, offset


def _through_subview(values: Values, op: Op, indices: list[Linear]) -> list[Linear] | None:
    """Subscripts of a subview's result as subscripts of its source; None where that cannot be told."""
    text = values.text_of(op)
    operands = [values.linear(v) for v in op.operands[1:]]
    try:
        if is_generic(text):
            lists = [static_list(property_text(text, k)) for k in ("static_offsets", "static_sizes", "static_strides")]
        else:
            lists = []
            at = 0
            for _ in range(3):
                start = text.index("[", at)
                at = closing(text, start)
                lists.append(mixed_list(text[start + 1 : at]))
    except (ValueError, IndexError):
        return None
    resolved: list[list[Linear]] = []
    used = 0
    for entries in lists:
        row = []
        for entry in entries:
            if entry is None:
                if used >= len(operands):
                    return None
                row.append(operands[used])
                used += 1
            else:
                row.append(constant(entry))
        resolved.append(row)
    offsets, sizes, strides = resolved
    result_shape: Sequence[int | None] | None = values.type_of(op.results[0]).shape if op.results else None
    if result_shape is None or len(indices) != len(result_shape) or not len(offsets) == len(sizes) == len(strides):
        return None
    out = []
    at = 0
    dropped = len(offsets) - len(indices)
    for i, offset in enumerate(offsets):
        unit = not sizes[i].terms and sizes[i].const == 1
        keep = at < len(indices) and not (
            dropped and unit and not (result_shape[at] == 1 and len(offsets) - i == len(indices) - at)
        )
        if keep:
            out.append(offset + make_term("mul", [indices[at], strides[i]]))
            at += 1
        else:
            dropped -= 1
            out.append(offset)
    return out if at == len(indices) else None
