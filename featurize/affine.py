"""Affine expressions, maps and integer sets: parsed once, then composed, evaluated and compared as linear forms.

An expression is `const + sum(coefficient * variable)`. A variable is any hashable: in a parsed map the position of a
dim (dims first, then symbols), in a function the id of an SSA value. What is not linear (`floordiv`, `ceildiv`, `mod`,
`min`, `max`, a product of variables) is a `Term`: a variable that knows how to evaluate itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

_TOKEN = re.compile(r"\s*(%[\w$.#-]+|[A-Za-z_][\w]*|\d+|->|>=|<=|==|[-+*(),:\[\]<>])")


class AffineError(ValueError):
    """The text is not an affine expression, map or set."""


LARGEST = 2**63
"""Numbers beyond it are no index values; the analyses treat them as unknown."""


def integer(digits: str) -> int:
    """A number as written. AffineError beyond 64 bits."""
    value = int(digits) if len(digits) <= 20 else LARGEST + 1
    if abs(value) > LARGEST:
        raise AffineError(f"number over 64 bits: {digits[:24]}")
    return value


class Linear:
    """`const + sum(terms[v] * v)` over integers; treat as immutable."""

    __slots__ = ("_part", "const", "terms")

    def __init__(self, const: int, terms: dict[Hashable, int]) -> None:
        self.const = const
        self.terms = terms
        self._part: frozenset[tuple[Hashable, int]] | None = None

    @property
    def part(self) -> frozenset[tuple[Hashable, int]]:
        """The terms without the constant: equal for expressions that differ in the constant alone."""
        if self._part is None:
            self._part = frozenset(self.terms.items())
        return self._part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.const == other.const and self.terms == other.terms

    def __hash__(self) -> int:
        return hash((self.const, self.part))

    def __repr__(self) -> str:
        return " + ".join([*(f"{c}*{v!r}" for v, c in self.terms.items()), str(self.const)])

    def __add__(self, other: Linear) -> Linear:
        if not other.terms:
            return Linear(self.const + other.const, self.terms)
        terms = dict(self.terms)
        for v, c in other.terms.items():
            total = terms.get(v, 0) + c
            if total:
                terms[v] = total
            else:
                terms.pop(v, None)
        return Linear(self.const + other.const, terms)

    def scaled(self, factor: int) -> Linear:
        """This expression times an integer."""
        if factor == 1:
            return self
        if factor == 0:
            return Linear(0, {})
        return Linear(self.const * factor, {v: c * factor for v, c in self.terms.items()})

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scaled(-1)

    def substitute(self, values: Mapping[Hashable, Linear] | list[Linear]) -> Linear:
        """Replace each variable by an expression: from a dict (what it lacks stays), or a list by position."""
        if len(self.terms) == 1 and not self.const and isinstance(values, list):  # a bare subscript
            ((only, coefficient),) = self.terms.items()
            if coefficient == 1 and isinstance(only, int):
                return values[only]
        out = Linear(self.const, {})
        for v, c in self.terms.items():
            if isinstance(v, Term):
                out = out + make_term(v.kind, [a.substitute(values) for a in v.args]).scaled(c)
            elif isinstance(values, list):
                assert isinstance(v, int)  # parsed maps use positions
                out = out + values[v].scaled(c)
            else:
                new = values.get(v)
                out = out + (Linear(0, {v: c}) if new is None else new.scaled(c))
        return out

    def evaluate(self, env: Mapping[Hashable, Any]) -> Any:
        """The value where `env` gives each variable an int or an ndarray of one shape; KeyError where it does not."""
        total: Any = self.const
        for v, c in self.terms.items():
            total = total + c * (v.evaluate(env) if isinstance(v, Term) else env[v])
        return total

    def variables(self) -> set[Hashable]:
        """All variables, those inside nonlinear terms too."""
        if self.is_linear():
            return set(self.terms)
        out: set[Hashable] = set()
        stack = [self]
        while stack:
            for v in stack.pop().terms:
                if isinstance(v, Term):
                    stack.extend(v.args)
                else:
                    out.add(v)
        return out

    def fits(self) -> bool:
        """Whether all its numbers have 64 bits."""
        return abs(self.const) <= LARGEST and all(abs(c) <= LARGEST for c in self.terms.values())

    def is_linear(self) -> bool:
        """Whether no nonlinear term occurs."""
        for v in self.terms:  # noqa: SIM110  # a generator costs more than the loop
            if type(v) is Term:
                return False
        return True


class Term:
    """A nonlinear function of linear expressions: kind in `floordiv ceildiv mod mul min max`."""

    __slots__ = ("_hash", "args", "kind")

    def __init__(self, kind: str, args: tuple[Linear, ...]) -> None:
        self.kind = kind
        self.args = args
        self._hash = hash((kind, args))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Term)
            and self._hash == other._hash
            and self.kind == other.kind
            and self.args == other.args
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{self.kind}{self.args!r}"

    def evaluate(self, env: Mapping[Hashable, Any]) -> Any:
        """See `Linear.evaluate`; a division by zero gives 0."""
        return _EVALUATE[self.kind]([a.evaluate(env) for a in self.args])


def _floordiv(args: list[Any]) -> Any:
    a, b = args
    if isinstance(b, np.ndarray) or isinstance(a, np.ndarray):
        return np.floor_divide(a, np.where(np.equal(b, 0), 1, b)) * np.not_equal(b, 0)
    return a // b if b else 0


def _ceildiv(args: list[Any]) -> Any:
    a, b = args
    return -_floordiv([-a, b])


def _mod(args: list[Any]) -> Any:
    a, b = args
    return a - b * _floordiv([a, b])


def _fold(array_op: Any, scalar_op: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def run(args: list[Any]) -> Any:
        return reduce(array_op, args) if any(isinstance(a, np.ndarray) for a in args) else scalar_op(args)

    return run


_EVALUATE: dict[str, Callable[[list[Any]], Any]] = {
    "floordiv": _floordiv,
    "ceildiv": _ceildiv,
    "mod": _mod,
    "mul": lambda args: args[0] * args[1],
    "min": _fold(np.minimum, min),
    "max": _fold(np.maximum, max),
}


def constant(value: int) -> Linear:
    """The expression that is `value`."""
    return Linear(value, {})


def variable(v: Hashable) -> Linear:
    """The expression that is the variable `v`."""
    return Linear(0, {v: 1})


def dot(expressions: Sequence[Linear], factors: Sequence[int]) -> Linear:
    """The sum of expressions times integers, up to the shorter of the two."""
    const = 0
    terms: dict[Hashable, int] = {}
    for expression, factor in zip(expressions, factors, strict=False):
        const += expression.const * factor
        for v, c in expression.terms.items():
            total = terms.get(v, 0) + c * factor
            if total:
                terms[v] = total
            else:
                terms.pop(v, None)
    return Linear(const, terms)


def make_term(kind: str, args: list[Linear]) -> Linear:
    """A nonlinear function of expressions, folded to a linear one where that is exact."""
    if all(not a.terms for a in args):
        return Linear(int(_EVALUATE[kind]([a.const for a in args])), {})
    a, b = args[0], args[-1]
    if kind == "mul":
        if not b.terms:
            return a.scaled(b.const)
        if not a.terms:
            return b.scaled(a.const)
    elif kind in ("min", "max"):
        distinct = list(dict.fromkeys(args))
        if len(distinct) == 1:
            return distinct[0]
        args = distinct
    elif not b.terms and b.const > 0:
        c = b.const
        if all(coefficient % c == 0 for coefficient in a.terms.values()):
            if kind == "mod":
                return Linear(a.const % c, {})
            rounded = a.const // c if kind == "floordiv" else -((-a.const) // c)
            return Linear(rounded, {v: k // c for v, k in a.terms.items()})
    return Linear(0, {Term(kind, tuple(args)): 1})


@dataclass(frozen=True)
class AffineMap:
    """`(dims)[symbols] -> (results)`."""

    n_dims: int
    n_symbols: int
    results: tuple[Linear, ...]
    """Variables are positions: dim i is i, symbol j is n_dims + j."""


@dataclass(frozen=True)
class IntegerSet:
    """`(dims)[symbols] : (constraints)`."""

    n_dims: int
    n_symbols: int
    constraints: tuple[tuple[Linear, bool], ...]
    """(expression, equality): expression == 0 where equality, else expression >= 0."""


@dataclass(frozen=True)
class InlineMap:
    """Subscripts or bounds written over SSA names, as in `[%i + 1, symbol(%n)]`."""

    results: tuple[Linear, ...]
    """Variables are positions in `names`."""
    names: tuple[str, ...]
    """SSA names, dims in order of appearance, then symbols: the operand order of the generic form."""
    uses: tuple[str, ...]
    """SSA names, each time one is written, in the order of the text."""

    @property
    def written(self) -> tuple[str, ...]:
        """SSA names in order of appearance, each once: the order in which the reader lists the operands."""
        return tuple(dict.fromkeys(self.uses))


class _Parser:
    """Recursive descent over one short text; nesting depth is bounded by its parentheses (limit 100)."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise AffineError(f"unexpected {text[at : at + 10]!r} in affine text {text[:80]!r}")
            self.tokens.append(match.group(1))
            at = match.end()
        self.tokens.append("")
        self.at = 0
        self.depth = 0
        self.names: dict[str, Linear] = {}
        self.inline: dict[str, bool] | None = None
        self.uses: list[str] = []

    def peek(self) -> str:
        return self.tokens[self.at]

    def accept(self, token: str) -> bool:
        if self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise AffineError(f"expected {token!r}, found {self.peek()!r}")

    def expression(self) -> Linear:
        self.depth += 1
        if self.depth > 100:
            raise AffineError("affine expression nested too deeply")
        left = self.product()
        while self.peek() in ("+", "-"):
            sign = self.tokens[self.at]
            self.at += 1
            right = self.product()
            left = left + right if sign == "+" else left - right
        self.depth -= 1
        if not left.fits():
            raise AffineError("number over 64 bits")
        return left

    def product(self) -> Linear:
        left = self.atom()
        while self.peek() in ("*", "floordiv", "ceildiv", "mod"):
            kind = self.tokens[self.at]
            self.at += 1
            right = self.atom()
            left = make_term("mul" if kind == "*" else kind, [left, right])
        return left

    def atom(self) -> Linear:
        token = self.peek()
        self.at += 1
        if token.isdigit():
            return Linear(integer(token), {})
        if token == "-":
            return self.atom().scaled(-1)
        if token == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if self.inline is not None:
            symbol = token == "symbol" and self.accept("(")
            name = self.peek() if symbol else token
            if symbol:
                self.at += 1
                self.expect(")")
            if name.startswith("%"):
                self.inline.setdefault(name, symbol)
                self.uses.append(name)
                return Linear(0, {name: 1})
        elif token in self.names:
            return self.names[token]
        raise AffineError(f"unexpected {token!r} in an affine expression")

    def name_list(self, close: str, first: int) -> int:
        count = 0
        while not self.accept(close):
            if not self.peek().isidentifier():
                raise AffineError(f"expected a dimension or symbol, found {self.peek()!r}")
            self.names[self.peek()] = Linear(0, {first + count: 1})
            self.at += 1
            count += 1
            if self.accept(":"):  # a range or type note, as in `(d0 : index)`
                while self.peek() not in (",", close, ""):
                    self.at += 1
            if self.accept(",") == (self.peek() == close):
                raise AffineError(f"expected ',' or {close!r}, found {self.peek()!r}")
        return count

    def header(self) -> tuple[int, int]:
        self.expect("(")
        n_dims = self.name_list(")", 0)
        n_symbols = self.name_list("]", n_dims) if self.accept("[") else 0
        return n_dims, n_symbols

    def expressions(self) -> tuple[Linear, ...]:
        out: list[Linear] = []
        while self.peek() not in (")", ""):
            out.append(self.expression())
            if not self.accept(","):
                break
        return tuple(out)


@lru_cache(maxsize=4096)
def parse_map(text: str) -> AffineMap:
    """Parse `affine_map<(d0)[s0] -> (d0 + s0)>` or its inside. Raises AffineError."""
    parser = _Parser(_inside(text, "affine_map"))
    n_dims, n_symbols = parser.header()
    parser.expect("->")
    parser.expect("(")
    results = parser.expressions()
    parser.expect(")")
    parser.expect("")
    return AffineMap(n_dims, n_symbols, results)


@lru_cache(maxsize=1024)
def parse_set(text: str) -> IntegerSet:
    """Parse `affine_set<(d0)[s0] : (d0 - 1 >= 0, s0 - d0 == 0)>` or its inside. Raises AffineError."""
    parser = _Parser(_inside(text, "affine_set"))
    n_dims, n_symbols = parser.header()
    parser.expect(":")
    parser.expect("(")
    constraints: list[tuple[Linear, bool]] = []
    while not parser.accept(")"):
        left = parser.expression()
        relation = parser.peek()
        parser.at += 1
        right = parser.expression()
        if relation not in (">=", "<=", "=="):
            raise AffineError(f"unexpected relation {relation!r}")
        constraints.append((right - left if relation == "<=" else left - right, relation == "=="))
        parser.accept(",")
    parser.expect("")
    return IntegerSet(n_dims, n_symbols, tuple(constraints))


@lru_cache(maxsize=8192)
def parse_inline(text: str) -> InlineMap:
    """Parse the inside of `[%i + 1, %j]`: comma-separated expressions over SSA names. Raises AffineError."""
    parser = _Parser(text)
    parser.inline = {}
    results = parser.expressions()
    parser.expect("")
    names = [n for n, symbol in parser.inline.items() if not symbol] + [
        n for n, symbol in parser.inline.items() if symbol
    ]
    position = {name: i for i, name in enumerate(names)}
    renamed = tuple(r.substitute({n: variable(i) for n, i in position.items()}) for r in results)
    return InlineMap(renamed, tuple(names), tuple(parser.uses))


def _inside(text: str, keyword: str) -> str:
    text = text.strip()
    if text.startswith(keyword):
        text = text[len(keyword) :].strip()
        if not (text.startswith("<") and text.endswith(">")):
            raise AffineError(f"{keyword} without <...>")
        text = text[1:-1]
    return text
