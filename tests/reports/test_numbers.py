"""Numbers look the same everywhere."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgauge.reports import numbers

NARROW = "\u202f"


def test_examples_in_the_docstrings() -> None:
    assert doctest.testmod(numbers).failed == 0


@pytest.mark.parametrize(
    "function", [numbers.percent, numbers.points, numbers.two, numbers.compact, numbers.factor, numbers.fixed]
)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_does_not_exist_is_a_dash(function: object, value: float) -> None:
    assert function(value) == numbers.NONE  # type: ignore[operator]


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0.0"), (0.9994, "99.9"), (0.9996, "100"), (1.0, "100"), (2.344, "234"), (512.3, "51200")]
)
def test_percentages_keep_one_decimal_below_a_hundred(share: float, text: str) -> None:
    assert numbers.percent(share) == f"{text}{NARROW}%"


def test_nothing_is_rounded_to_all_or_none() -> None:
    assert numbers.points(0.999).startswith(">99")
    assert numbers.points(0.001).startswith("<1")
    assert numbers.points(0.0).startswith("0")


def test_whole_numbers_are_shown_in_full_up_to_ten_million() -> None:
    assert numbers.quantity(1234567.0, whole=True) == f"1{NARROW}234{NARROW}567"
    assert numbers.quantity(12345678.0, whole=True) == "12.35M"
    assert numbers.quantity(12.3456, whole=False) == "12.35"


@given(st.floats(1e-6, 1e15))
def test_compact_is_close_to_the_number(value: float) -> None:
    text = numbers.compact(value)
    scale = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1], 1.0)
    assert float(text.rstrip("kMGT")) * scale == pytest.approx(value, rel=6e-4)


def test_unknown_form() -> None:
    with pytest.raises(ValueError, match="'roman'"):
        numbers.shown(1.0, "roman")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "×1.00"),
        (9.99, "×9.99"),
        (9.996, "×10.0"),
        (45.67, "×45.7"),
        (99.96, "×100"),
        (1234.0, "×1230"),
        (2.5e6, "×2.5M"),
    ],
)
def test_factors_have_three_digits(value: float, text: str) -> None:
    assert numbers.factor(value) == text
