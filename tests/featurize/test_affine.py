from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgauge.featurize.affine import (
    AffineError,
    Linear,
    constant,
    make_term,
    parse_inline,
    parse_map,
    parse_set,
    variable,
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """Affine text over d0, d1, s0; every product, division and remainder has a positive constant on its right."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["d0", "d1", "s0", "0", "3", "17"]))
    left = draw(expressions(depth - 1))
    kind = draw(st.sampled_from(["+", "-", "*", "mod", "floordiv", "ceildiv"]))
    right = draw(expressions(depth - 1)) if kind in "+-" else str(draw(st.integers(1, 9)))
    return f"({left} {kind} {right})"


def by_python(text: str, d0: int, d1: int, s0: int) -> int:
    """The value by Python's own operators."""
    names = {"d0": d0, "d1": d1, "s0": s0, "ceil": lambda a, b: -(-a // b)}
    while "ceildiv" in text:  # innermost (a ceildiv b) first
        at = text.index("ceildiv")
        depth, start = 0, at
        while depth < 1:
            start -= 1
            depth += {"(": 1, ")": -1}.get(text[start], 0)
        end = text.index(")", at)
        text = f"{text[:start]}ceil({text[start + 1 : at].strip()}, {text[at + 7 : end]}){text[end + 1 :]}"
    return int(eval(text.replace("mod", "%").replace("floordiv", "//"), names))


@settings(deadline=None)
@given(text=expressions(), d0=st.integers(-50, 50), d1=st.integers(-50, 50), s0=st.integers(-50, 50))
def test_value_is_that_of_the_written_expression(text: str, d0: int, d1: int, s0: int) -> None:
    mapped = parse_map(f"affine_map<(d0, d1)[s0] -> ({text})>")
    expected = by_python(text, d0, d1, s0)
    assert mapped.results[0].evaluate({0: d0, 1: d1, 2: s0}) == expected
    arrays = {0: np.array([d0, 0]), 1: np.array([d1, 0]), 2: np.array([s0, 0])}
    assert np.broadcast_to(mapped.results[0].evaluate(arrays), 2)[0] == expected


@settings(deadline=None)
@given(text=expressions(), x=st.integers(-20, 20), y=st.integers(-20, 20))
def test_substitute_then_evaluate_is_evaluate_of_the_substituted(text: str, x: int, y: int) -> None:
    inner = [variable("x").scaled(2) + constant(1), variable("x") - variable("y"), variable("y").scaled(-3)]
    composed = parse_map(f"(d0, d1)[s0] -> ({text})").results[0].substitute(inner)
    env = {"x": x, "y": y}
    direct = (
        parse_map(f"(d0, d1)[s0] -> ({text})").results[0].evaluate({i: e.evaluate(env) for i, e in enumerate(inner)})
    )
    assert composed.evaluate(env) == direct


def test_divisible_terms_stay_linear() -> None:
    assert parse_map("(d0) -> ((d0 * 8 + 5) floordiv 4)").results[0] == Linear(1, {0: 2})
    assert parse_map("(d0) -> ((d0 * 8 + 5) mod 4)").results[0] == constant(1)


def test_order_of_terms_does_not_matter() -> None:
    a, b = parse_map("(d0, d1) -> (d0 + d1 * 2, d1 * 2 + d0)").results
    assert a == b
    assert (a.const, a.part) == (b.const, b.part)
    assert hash(a) == hash(b)


def test_min_of_equal_expressions_is_one_expression() -> None:
    assert make_term("min", [variable("i"), variable("i")]) == variable("i")


def test_set_turns_less_or_equal_around() -> None:
    parsed = parse_set("affine_set<(d0)[s0] : (d0 <= s0, d0 - 3 == 0)>")
    assert parsed.constraints == ((Linear(0, {0: -1, 1: 1}), False), (Linear(-3, {0: 1}), True))


def test_inline_names_come_in_the_order_of_the_generic_form() -> None:
    parsed = parse_inline("symbol(%n) + %i, %j + %i * 2")
    assert parsed.names == ("%i", "%j", "%n")
    assert parsed.uses == ("%n", "%i", "%j", "%i")
    assert parsed.results == (Linear(0, {0: 1, 2: 1}), Linear(0, {0: 2, 1: 1}))


@pytest.mark.parametrize(
    "text", ["(d0) -> (d1)", "(d0) -> (d0", "(d0 -> d0)", "affine_map<(d0) -> (d0)", "(d0) -> ($)"]
)
def test_what_is_no_map_is_an_error(text: str) -> None:
    with pytest.raises(AffineError):
        parse_map(text)


def test_deep_parentheses_are_an_error_not_a_crash() -> None:
    with pytest.raises(AffineError, match="deep"):
        parse_map(f"(d0) -> ({'(' * 5000}d0{')' * 5000})")
