"""Golden vectors: each program's numbers can be derived by hand, and the comment in its file does so.

`python tests/featurize/test_golden.py` rewrites the JSON files; read the difference before you commit it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irgauge.featurize import features_of

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS = sorted(GOLDEN.glob("*.mlir"))
# What a person can count: everything but logarithms, estimates of a compiler or a cache, and live ranges.
GROUPS = ("ops.", "ngram", "chain/", "loops.", "tensors.", "work.", "access.", "options.")
LEFT_OUT = ("_log", "work.cycles", "work.instructions", "work.latency", "work.vectorizable", "work.innermost",
            "access.lines", "access.level", "access.fits", "loops.hot", "loops.unrolled", "loops.kept")  # fmt: skip


def countable(features: dict[str, float]) -> dict[str, float]:
    """The features of one function that a golden file states: countable by hand and not zero."""
    return {
        name: value
        for name, value in sorted(features.items())
        if value and name.startswith(GROUPS) and not any(part in name for part in LEFT_OUT)
    }


def vectors(path: Path) -> dict[str, dict[str, float]]:
    return {name: countable(features) for name, features in features_of(path.read_text()).items()}


def test_there_are_golden_programs() -> None:
    assert len(PROGRAMS) >= 8


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_features_are_as_derived_by_hand(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text())
    assert vectors(path) == {f: pytest.approx(v, rel=1e-9) for f, v in expected.items()}


if __name__ == "__main__":
    for program in PROGRAMS:
        program.with_suffix(".json").write_text(json.dumps(vectors(program), indent=1) + "\n")
