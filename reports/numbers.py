"""Numbers as people read them: the same digits and units everywhere in a report."""

from __future__ import annotations

import math

NONE = "–"
"""Shown where a figure does not exist."""
_GROUP = "\u202f"  # narrow no-break space
_PERCENT = "\u202f%"
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def grouped(value: int) -> str:
    """Whole number with its digits in threes: 1234567 -> "1 234 567" (narrow no-break spaces)."""
    return f"{value:,}".replace(",", _GROUP)


def percent(share: float, *, most: float = math.inf) -> str:
    """Share as a percentage: one decimal below 100 %, none above; ">999 %" beyond `most` = 9.99.

    >>> percent(0.1234), percent(1.2345), percent(12.5, most=9.99)
    ('12.3\\u202f%', '123\\u202f%', '>999\\u202f%')
    """
    if not math.isfinite(share):
        return NONE
    if share > most:
        return f">{100 * most:.0f}{_PERCENT}"
    points = 100 * share
    if abs(points) < 99.95:
        return f"{points:.1f}{_PERCENT}"
    return f"{compact(points, 3) if points >= 1e4 else round(points)}{_PERCENT}"


def points(share: float) -> str:
    """Share as whole percentage points; "<1" and ">99" where rounding would say none or all.

    >>> points(0.894), points(0.9999), points(1.0)
    ('89\\u202f%', '>99\\u202f%', '100\\u202f%')
    """
    if not math.isfinite(share):
        return NONE
    rounded = round(100 * share)
    text = "<1" if rounded == 0 and share > 0 else ">99" if rounded == 100 and share < 1 else str(rounded)
    return text + _PERCENT


def two(value: float) -> str:
    """Two decimals, a real minus sign."""
    return f"{value:.2f}".replace("-", "−") if math.isfinite(value) else NONE


def compact(value: float, digits: int = 4) -> str:
    """`digits` significant digits, with k, M, G, T from 100,000 on.

    >>> compact(3.14159), compact(1234567.0), compact(0.00012), compact(12)
    ('3.142', '1.235M', '0.00012', '12')
    """
    if not math.isfinite(value):
        return NONE
    sign, size = ("−" if value < 0 else ""), abs(value)
    suffix = ""
    if size >= 99_999.5:
        for scale, letter in _PREFIXES:
            if size >= scale * 0.9999995:
                size, suffix = size / scale, letter
                break
    text = f"{size:.{digits}g}"
    if "e" in text and "e-" not in text:
        text = f"{float(text):.0f}"
    return sign + text + suffix


def quantity(value: float, *, whole: bool) -> str:
    """A label or prediction: whole numbers up to 10 million in full, others to four digits."""
    if not math.isfinite(value):
        return NONE
    if whole and abs(value) < 1e7:
        return grouped(round(value)).replace("-", "−")
    return compact(value)


def milliseconds(seconds: float) -> str:
    """A time: "12.3 ms"."""
    return f"{compact(1000 * seconds, 3)} ms"


def factor(value: float) -> str:
    """A factor to two or three digits: "×1.23", "×45.6", "×789"; huge ones compact."""
    if not math.isfinite(value):
        return NONE
    if value < 9.995:
        return f"×{value:.2f}"
    return f"×{value:.1f}" if value < 99.95 else f"×{compact(value, 3)}"


def fixed(value: float) -> str:
    """A root mean squared error: three decimals below 1, three digits above.

    >>> fixed(0.2), fixed(3.14159), fixed(27.27)
    ('0.200', '3.14', '27.3')
    """
    if not math.isfinite(value):
        return NONE
    decimals = 3 if value < 0.9995 else 2 if value < 9.995 else 1
    return f"{value:.{decimals}f}" if value < 99.95 else compact(value, 3)


def shown(value: float, form: str, *, whole: bool = False, most: float = math.inf) -> str:
    """A figure in the form that `figures.Figure.form` names."""
    if form == "percent":
        return percent(value, most=most)
    if form == "two":
        return two(value)
    if form == "count":
        return grouped(round(value)) if math.isfinite(value) else NONE
    if form == "factor":
        return factor(value)
    if form == "unit":
        return fixed(value)
    raise ValueError(f"no such form: {form!r}")
