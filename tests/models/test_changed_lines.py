"""What a difference is made of: features that add up to it, and the lines that they are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from irgauge.errors import UsageError
from irgauge.featurize.featurizer import functions_of
from irgauge.featurize.reader import read
from irgauge.models import changed_lines
from irgauge.models.changed_lines import ChangedOps, changed_ops
from irgauge.models.explain import Change, Driver
from irgauge.models.predictor import CostModel, model_from_plain

from .conftest import nest

PAIRS = [
    (nest(16, 16), nest(64, 16)),
    (nest(32, 32), nest(32, 32, more=9)),
    (nest(32, 32, more=9), nest(32, 32)),
    (nest(8, 8), nest(4096, 4096, "divf", 5)),
    (nest(), nest()),
]


@pytest.fixture(scope="module")
def model(artifact: Mapping[str, Any]) -> CostModel:
    return model_from_plain(artifact)


def compare(before: str, after: str) -> ChangedOps:
    programs = [read(text) for text in (before, after)]
    return changed_ops(*((p, functions_of(p)[0][1]) for p in programs))


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    found = compare(before, after)
    return [op.name for op in found.before], [op.name for op in found.after]


@pytest.mark.parametrize("pair", range(len(PAIRS)))
def test_drivers_add_up_to_the_difference(model: CostModel, pair: int) -> None:
    before, after = PAIRS[pair]
    (difference,) = model.diff(before, after)
    assert len(difference.changes) == 5
    for change in difference.changes:
        assert change.before == model.predict(before)[0][change.target].value
        assert change.after == model.predict(after)[0][change.target].value
        total = change.before + sum(d.amount for d in change.drivers)
        largest = max([abs(d.amount) for d in change.drivers] + [abs(change.after), 1.0])
        assert abs(total - change.after) <= 1e-9 * largest


def test_equal_programs_differ_in_nothing(model: CostModel) -> None:
    (difference,) = model.diff(nest(), "// same\n" + nest().replace("%x", "%value"))
    assert all(change.drivers == () for change in difference.changes)
    assert difference.lines == ((),) * 5


def test_shares_of_lines_and_what_stays_add_up(model: CostModel) -> None:
    before, after = nest(32, 32), nest(32, 32, more=9)
    (difference,) = model.diff(before, after, targets=["latency_ns"])
    (change,), (lines,) = difference.changes, difference.lines
    assert [(line.side, line.line) for line in sorted(lines, key=lambda n: n.line)] == [
        ("after", n) for n in range(7, 16)
    ]
    ops = compare(before, after).after
    stays = sum(d.amount for d in change.drivers if not any(changed_lines._is_about(d.feature, op) for op in ops))
    assert stays != 0
    total = stays + sum(line.amount for line in lines)
    assert total == pytest.approx(change.after - change.before, rel=1e-9)


def test_renamed_and_reformatted_operations_have_not_changed() -> None:
    assert changed(nest(), nest().replace("%x", "%value").replace("  ", " ")) == ([], [])


def test_added_removed_and_replaced_operations_have_changed() -> None:
    assert changed(nest(), nest(more=2)) == ([], ["arith.addf"] * 2)
    assert changed(nest(more=2), nest()) == (["arith.addf"] * 2, [])
    assert changed(nest(), nest(op="divf")) == (["arith.mulf"], ["arith.divf"])
    before, after = changed(nest(16, 32), nest(64, 32))
    assert before == after
    assert "affine.for" in before


def test_interchanged_loops_have_changed() -> None:
    other = nest(16, 32).replace("%i = 0 to 16", "%i = 0 to 99").replace("%j = 0 to 32", "%j = 0 to 16")
    assert changed(nest(16, 32), other.replace("0 to 99", "0 to 32")) == (["affine.for"], ["affine.for"])


def test_long_functions_are_compared_without_aligning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_lines, "_MOST_ALIGNED", 3)
    assert changed(nest(), nest(more=2)) == ([], ["arith.addf"] * 2)
    assert changed(nest(), nest(op="divf")) == (["arith.mulf"], ["arith.divf"])


@pytest.mark.parametrize(
    ("feature", "lines"),
    [
        ("chain/arith.divf>affine.store", [("after", 6), ("after", 7), ("before", 7)]),
        ("ops.arith.divf", [("after", 6)]),
        ("ops.arith.mulf", [("before", 6)]),
        ("work.float_ops", [("after", 6), ("before", 6)]),
        ("loops.count", [("after", 3), ("before", 3)]),
        ("access.stores", [("after", 4), ("after", 5), ("after", 7), ("before", 4), ("before", 5), ("before", 7)]),
        ("rounded to a whole number", []),
    ],
)
def test_a_feature_is_about_its_operations(feature: str, lines: list[tuple[str, int]]) -> None:
    before, after = nest(16, 32), nest(16, 64, op="divf")
    shares = compare(before, after).shares(Change("d/t", "ns", 0, 6, (Driver(feature, 0, 1, 6.0),)))
    assert sorted((s.side, s.line) for s in shares) == lines
    assert sum(s.amount for s in shares) == pytest.approx(6.0 if lines else 0.0)
    for share in shares:
        assert (before, after)[share.side == "after"].split("\n")[share.line - 1].strip() == share.text


def test_functions_are_paired_by_name(model: CostModel) -> None:
    two = nest(8, 8, name="a") + nest(64, 64, name="b")
    found = model.diff(two, nest(16, 8, name="a") + nest(64, 64, name="b") + nest(name="c"))
    assert [d.function for d in found] == ["a", "b"]
    assert all(c.drivers == () for c in found[1].changes)
    assert [d.function for d in model.diff(nest(name="old"), nest(name="new"))] == ["new"]
    with pytest.raises(UsageError, match="have no function in common: a, b; c"):
        model.diff(two, nest(name="c"))
