"""Constants of graph dialects, and loops whose trip count such constants decide."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ..affine import Linear, constant
from ..induction import Carried, Countable, countable
from ..program import Block, Op
from .nest import MISFITS, ints, property_of

if TYPE_CHECKING:
    from ..function_view import FunctionView

Bounds = tuple[list[Linear], list[Linear], int]
_PASSED = ("convert", "reshape", "index_cast", "index_castui", "extsi", "extui", "trunci", "cast", "from_elements")
"""Operations that hand a scalar on."""


def integers(view: FunctionView, value: int) -> list[int]:
    """The integers of a constant tensor, shape or list; [] where it is not constant or too large to be written."""
    op = view.program.value_defs[value]
    if not isinstance(op, Op):
        return []
    short = op.name.rpartition(".")[2]
    if short == "ListConstruct":
        found = [integer(view, v) for v in op.operands]
        return [i for i in found if i is not None] if None not in found else []
    if short not in ("constant", "const", "const_shape"):
        return []
    text = property_of(view, op, "values", "value") or view.text_of(op)
    at = text.find("dense<")
    if at < 0:
        return []
    size = view.type_of(value).elements
    if op.name == "tosa.const_shape":
        size = len(ints(text[at:]))
    return ints(text[at:], size if size is not None and size <= 64 else None)


def integer(view: FunctionView, value: int) -> int | None:
    """The number a scalar constant is, followed through conversions; None where it is not constant."""
    for _ in range(64):
        op = view.program.value_defs[value]
        if not isinstance(op, Op):
            return None
        short = op.name.rpartition(".")[2]
        if short in _PASSED and len(op.operands) == 1:
            value = op.operands[0]
            continue
        if op.name == "torch.constant.bool":
            return int("true" in view.text_of(op))
        if op.name == "torch.constant.int":
            found = ints(property_of(view, op, "value") or view.text_of(op))
            return found[0] if found else None
        if op.name in ("arith.constant", "index.constant"):
            form = view.linear(value)
            if not form.terms:
                return form.const
        found = integers(view, value)
        return found[0] if len(found) == 1 else None
    return None


def while_bounds(view: FunctionView, op: Op) -> list[Bounds]:
    """One dimension: 0 to the number of iterations where a counter, its step and its limit are constants."""
    try:
        n = _loop_count(view, op) if op.name == "torch.prim.Loop" else _while_count(view, op)
    except MISFITS:
        n = None
    return [([], [], 1)] if n is None else [([constant(0)], [constant(n)], 1)]


def while_counted(view: FunctionView, op: Op) -> Countable | None:
    """An `scf.while` that a comparison of a counter ends."""
    test, body = _block(op, 0), _block(op, 1)
    if test is None or body is None or not test.ops or not body.ops:
        return None
    condition, last = test.ops[-1], body.ops[-1]
    if condition.name != "scf.condition" or len(last.operands) != len(test.args) or not condition.operands:
        return None
    handed = condition.operands[1:]
    passed: dict[Hashable, Linear] = {a: view.linear(v) for a, v in zip(body.args, handed, strict=False)}
    carried = [
        Carried(argument, (start,), (following,), (view.linear(following).substitute(passed),))
        for argument, start, following in zip(test.args, op.operands, last.operands, strict=False)
    ]
    return countable(view, carried, condition.operands[0], stays=True, after=len(body.ops) == 1)


def _loop_count(view: FunctionView, op: Op) -> int | None:
    """`torch.prim.Loop %most, %condition`: the count, where the condition stays true."""
    last = op.regions[0].blocks[0].ops[-1] if op.regions and op.regions[0].blocks else None
    if last is None or not last.operands or len(op.operands) < 2:
        return None
    if integer(view, op.operands[1]) != 1 or integer(view, last.operands[0]) != 1:
        return None
    n = integer(view, op.operands[0])
    return None if n is None else max(0, n)


def _block(op: Op, region: int) -> Block | None:
    return op.regions[region].blocks[0] if len(op.regions) > region and op.regions[region].blocks else None


def _while_count(view: FunctionView, op: Op) -> int | None:
    """A counter compared with a limit before each iteration, and stepped in it."""
    test, body = _block(op, 0), _block(op, 1)
    if test is None or body is None or not test.ops or not body.ops:
        return None
    last, end = test.ops[-1], body.ops[-1]
    decided = view.program.value_defs[last.operands[0]] if last.operands else None
    if not isinstance(decided, Op) or len(decided.operands) != 2:
        return None
    relation = _relation(view, decided)
    forwarded = list(last.operands[1:]) if op.name == "scf.while" else list(test.args)

    def known(value: int) -> tuple[int | None, int | None]:
        """(position of the counter that it is, number that it is): one of them, or neither."""
        if value in test.args:
            k = test.args.index(value)
            kept = k < len(body.args) and k < len(end.operands) and end.operands[k] == body.args[k]
            same = op.name != "scf.while" or (k < len(forwarded) and forwarded[k] == test.args[k])
            if kept and same and k < len(op.operands):
                return None, integer(view, op.operands[k])
            return k, None
        return None, integer(view, value)

    (counter, left), (other, right) = (known(v) for v in decided.operands)
    limit = right
    if counter is None and other is not None:
        counter, limit, relation = other, left, _MIRRORED.get(relation, relation)
    if counter is None or limit is None or counter >= len(op.operands):
        return None
    start = integer(view, op.operands[counter])
    if start is None or counter >= len(end.operands):
        return None
    before = test.args[counter]
    inside = body.args[forwarded.index(before)] if before in forwarded and len(body.args) == len(forwarded) else None
    step = _step(view, end.operands[counter], inside)
    if not step:
        return None
    distance = {"lt": limit - start, "le": limit - start + 1, "gt": start - limit, "ge": start - limit + 1}
    if relation in distance:
        along = step if relation in ("lt", "le") else -step
        return max(0, -(-distance[relation] // along)) if along > 0 else None
    if relation == "ne" and (limit - start) % step == 0 and (limit - start) // step >= 0:
        return (limit - start) // step
    return None


_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_NAMED = {"greater": "gt", "greater_equal": "ge"}
_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")


def _relation(view: FunctionView, op: Op) -> str:
    short = op.name.rpartition(".")[2]
    if short in _NAMED:
        return _NAMED[short]
    text = view.text_of(op)
    if short == "cmpi":
        written = property_of(view, op, "predicate")
        number = ints(written) if written else []
        return _PREDICATES[number[0]] if number else text.split(",", 1)[0].strip().lstrip("su")
    if short == "compare":
        written = property_of(view, op, "comparison_direction") or text
        for word in ("LT", "LE", "GT", "GE", "NE"):
            if word in written.replace(">", " ").replace(",", " ").split():
                return word.lower()
    return ""


def _step(view: FunctionView, value: int, counter: int | None) -> int | None:
    """c where `value` is `counter + c`."""
    op = view.program.value_defs[value]
    if counter is None or not isinstance(op, Op) or len(op.operands) < 2:
        return None
    short = op.name.rpartition(".")[2]
    a, b = op.operands[:2]
    if short in ("add", "addi"):
        return integer(view, b) if a == counter else integer(view, a) if b == counter else None
    if short in ("subtract", "subi", "sub") and a == counter:
        c = integer(view, b)
        return None if c is None else -c
    return None


__all__ = ["integer", "integers", "while_bounds", "while_counted"]
