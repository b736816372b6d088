"""What operations on whole tensors imply: the loop nests, accesses and arithmetic that they stand for.

`enter` is asked for each operation of a function. A table by dialect gives the rule; an operation without one counts
by the class of its name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..nodes import Loop, Node
from ..program import Op
from . import linalg, stablehlo, tensors, torch, tosa, triton
from .control import while_bounds, while_counted
from .nest import MISFITS, Implied, ImpliedNest, Touch
from .walk import expand

if TYPE_CHECKING:
    from ..function_view import FunctionView

Rule = Callable[["FunctionView", Op], Implied | None]

_DIALECTS: dict[str, Rule] = {
    "linalg": linalg.implied,
    **dict.fromkeys(("stablehlo", "mhlo", "chlo", "vhlo"), stablehlo.implied),
    "torch": torch.implied,
    "tosa": tosa.implied,
    "tensor": tensors.implied,
    **dict.fromkeys(("arith", "math"), tensors.implied_arith),
}
_NO_RULE = frozenset(("tensor.extract", "tensor.insert", "linalg.index", "tosa.const"))


def _rule_of(name: str) -> Rule | None:
    if name == "memref.copy":
        return tensors.implied_copy
    if name in _NO_RULE or name.endswith((".constant", ".return", ".yield")):
        return None
    return _DIALECTS.get(name.partition(".")[0])


@lru_cache(maxsize=4096)
def implies(name: str) -> bool:
    """Whether operations of this name may imply more than their class says. Scalar arithmetic does not."""
    rule = _rule_of(name)
    return name.startswith("tt.") or (rule is not None and rule is not tensors.implied_arith)


def _understood(rule: Rule, view: FunctionView, op: Op) -> Implied | None:
    """What the rule gives; None where the operation's attributes do not fit its shapes: it then counts as one."""
    try:
        return rule(view, op)
    except MISFITS:
        return None


def enter(view: FunctionView, op: Op, node: Node, stack: list[Any], parent: Loop | None, execs: float) -> None:
    """Add what an operation that is no loop and no branch implies, and put on the stack the regions that run."""
    name = op.name
    blocks = triton.is_block_function(view)
    if name.startswith("tt."):
        try:
            execs *= triton.enter(view, op, node, parent, execs)
        except MISFITS:
            node.lanes = 1
    else:
        rule = _rule_of(name)
        found = None
        if rule is not None and not (blocks and rule is tensors.implied_arith):
            found = _understood(rule, view, op)
        if found is not None:
            expand(view, op, node, found, stack, parent, execs)
            if found.nests:
                return
        elif node.cls in ("const", "call") and not blocks and op.results:
            if view.type_of(op.results[0]).kind == "tensor":
                node.lanes = 1  # not an operation on each element
        elif rule is linalg.implied and name != "linalg.generic":
            return  # the body is implied, and not written in every form
    if op.regions:
        view._push_regions(op, stack, parent, execs)


__all__ = ["Implied", "ImpliedNest", "Touch", "enter", "implies", "while_bounds", "while_counted"]
