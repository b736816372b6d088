"""The reader's regular expressions cannot backtrack: every unbounded repetition in them is possessive."""

from __future__ import annotations

import importlib
import re

import pytest

MODULES = ["aliases", "canonical", "generic_form", "implied_bodies", "lexer", "op_syntax", "options", "reader", "types"]


def patterns_of(module: str) -> dict[str, re.Pattern[str]]:
    """The compiled patterns of a module by name, those behind bound methods (`match`, `split`, ...) included."""
    found = {}
    for name, value in vars(importlib.import_module(f"irgauge.featurize.{module}")).items():
        owner = getattr(value, "__self__", value)
        if isinstance(owner, re.Pattern):
            found[name] = owner
    return found


def backtracking(pattern: re.Pattern[str]) -> list[str]:
    """Repetitions without a bound that can give back what they took, and bounded ones inside others."""
    parser = re._parser  # type: ignore[attr-defined]
    bad = []
    stack = [(parser.parse(pattern.pattern, pattern.flags), False)]
    while stack:
        item, repeated = stack.pop()
        if isinstance(item, parser.SubPattern):
            stack.extend((inner, repeated) for inner in item.data)
        elif isinstance(item, tuple) and str(item[0]) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, body = item[1]
            unbounded = most == parser.MAXREPEAT
            if str(item[0]) != "POSSESSIVE_REPEAT" and (unbounded or (repeated and most > 1)):
                bad.append(f"{item[0]} of {body}")
            stack.append((body, repeated or unbounded))
        elif isinstance(item, tuple | list):
            stack.extend((inner, repeated) for inner in item)
    return bad


@pytest.mark.parametrize("module", MODULES)
def test_unbounded_repetitions_are_possessive(module: str) -> None:
    assert {name: bad for name, pattern in patterns_of(module).items() if (bad := backtracking(pattern))} == {}


def test_modules_have_their_patterns() -> None:
    assert sum(len(patterns_of(module)) for module in MODULES) > 40


@pytest.mark.parametrize(
    ("pattern", "count"), [("a*b", 1), ("a*+b", 0), ("(?:a+)*+b", 1), ("(?:a{0,3}b)*+", 1), ("x?", 0)]
)
def test_backtracking_is_seen(pattern: str, count: int) -> None:
    assert len(backtracking(re.compile(pattern))) == count
