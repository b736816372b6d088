from __future__ import annotations

import re
from pathlib import Path

import pytest

from irgauge.featurize.describe import COMMAND, FIXED, GROUPS, describe, markdown
from irgauge.featurize.featurizer import features_of

PAGE = Path(__file__).parents[2] / "docs" / "features.md"


def test_page_is_in_step_with_the_code() -> None:
    assert PAGE.read_text() == markdown(), f"run: python -c '{COMMAND}' > docs/features.md"


def test_every_feature_has_a_meaning_and_a_unit() -> None:
    for group, features in GROUPS.items():
        for name, (meaning, unit) in features.items():
            assert re.fullmatch(r"[A-Za-z0-9_.>/]+", name), name
            assert meaning, name
            assert unit, name
            assert name.startswith((f"{group}.", "ngram.")), name


def test_learned_features_are_described_too() -> None:
    found = features_of((Path(__file__).parent / "golden" / "matmul.mlir").read_text())["kernel"]
    for name in found:
        meaning, unit = describe(name)
        assert meaning
        assert unit
    assert set(FIXED) <= set(found)
    with pytest.raises(KeyError):
        describe("nothing.like_this")
