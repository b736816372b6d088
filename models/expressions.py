"""The analytical estimates as expressions, so that exports translate the formulas themselves and never a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import analytical


@dataclass(frozen=True, eq=False)
class Expression:
    """A feature, a constant, or an operation on two expressions; arithmetic on it makes larger ones."""

    kind: str
    """ "column", "constant", "+", "*", "/" or "min"."""
    name: str = ""
    """Of the feature."""
    value: float = 0.0
    """Of the constant."""
    parts: tuple[Expression, ...] = ()

    def __add__(self, other: Expression | float) -> Expression:
        return Expression("+", parts=(self, _expression(other)))

    def __radd__(self, other: float) -> Expression:
        return Expression("+", parts=(_expression(other), self))

    def __mul__(self, other: Expression | float) -> Expression:
        return Expression("*", parts=(self, _expression(other)))

    def __rmul__(self, other: float) -> Expression:
        return Expression("*", parts=(_expression(other), self))

    def __truediv__(self, other: Expression | float) -> Expression:
        return Expression("/", parts=(self, _expression(other)))

    def __rtruediv__(self, other: float) -> Expression:
        return Expression("/", parts=(_expression(other), self))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.minimum and method == "__call__" and not options:
            return Expression("min", parts=tuple(_expression(i) for i in inputs))
        return NotImplemented


def _expression(value: Expression | float) -> Expression:
    return value if isinstance(value, Expression) else Expression("constant", value=float(value))


def estimate_expression(target: str) -> Expression:
    """The formula of a target's analytical estimate, over features that are >= 0."""
    made = analytical.formula(target)(lambda name: Expression("column", name))
    assert isinstance(made, Expression)
    return made
