"""Golden vectors: each program's numbers can be derived by hand, and the comment in its file does so.

A line `//= <feature> = <arithmetic>` states how a number comes about (`//= @f <feature> = …` where there are several
functions); a test evaluates it. `python tests/featurize/test_golden.py` rewrites the JSON files; read the difference
before you commit it.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from pathlib import Path

import pytest

from irgauge.featurize import features_of

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS = sorted(GOLDEN.glob("*.mlir"))
# What a person can count: everything but logarithms, estimates of a compiler or a cache, and live ranges.
GROUPS = ("ops.", "ngram", "chain/", "loops.", "tensors.", "work.", "access.", "options.")
LEFT_OUT = ("_log", "work.cycles", "work.instructions", "work.latency", "work.vectorizable", "work.innermost",
            "access.lines", "access.level", "access.fits", "loops.hot", "loops.unrolled", "loops.kept")  # fmt: skip
STATED = re.compile(r"^//= (?:@(\w+) )?(\S+) = (.*)$", re.M)
ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def countable(features: dict[str, float]) -> dict[str, float]:
    """The features of one function that a golden file states: countable by hand and not zero."""
    return {
        name: value
        for name, value in sorted(features.items())
        if value and name.startswith(GROUPS) and not any(part in name for part in LEFT_OUT)
    }


def vectors(path: Path) -> dict[str, dict[str, float]]:
    return {name: countable(features) for name, features in features_of(path.read_text()).items()}


def value(expression: ast.expr) -> float:
    """A number, or sums and products of numbers."""
    if isinstance(expression, ast.BinOp):
        return ARITHMETIC[type(expression.op)](value(expression.left), value(expression.right))
    assert isinstance(expression, ast.Constant)
    return expression.value


def test_there_are_golden_programs() -> None:
    assert len(PROGRAMS) >= 25


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_features_are_as_derived_by_hand(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text())
    assert vectors(path) == {f: pytest.approx(v, rel=1e-9) for f, v in expected.items()}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_each_number_is_what_its_explanation_says(path: Path) -> None:
    found = json.loads(path.with_suffix(".json").read_text())
    stated = STATED.findall(path.read_text())
    assert len(stated) >= 5, "say how the numbers come about"
    for function, name, arithmetic in stated:
        features = found[function] if function else next(iter(found.values()))
        assert function or len(found) == 1
        derived = value(ast.parse(arithmetic, mode="eval").body)
        assert features.get(name, 0.0) == pytest.approx(derived, rel=1e-9), (function, name, arithmetic)


if __name__ == "__main__":
    for program in PROGRAMS:
        program.with_suffix(".json").write_text(json.dumps(vectors(program), indent=1) + "\n")
