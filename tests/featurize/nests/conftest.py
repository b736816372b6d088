"""Shared by the tests of implied nests: one operation in a function, and the work that it stands for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize import features_of

NAMES = ("flops", "int_ops", "loads", "stores", "bytes", "math_calls", "divs", "loop_iterations")


def work_of(text: str) -> dict[str, float]:
    """The main work totals of the function `f`, and `footprint`: its distinct bytes."""
    features = features_of(text)["f"]
    return {**{n: features[f"work.{n}"] for n in NAMES}, "footprint": features["access.footprint_bytes"]}


def function(body: str, arguments: str, results: str = "") -> str:
    """`body` as a function `@f` in custom syntax."""
    return f"func.func @f({arguments}){results} {{\n{body}\n}}"


@pytest.fixture(scope="session")
def work() -> Callable[[str], dict[str, float]]:
    return work_of
