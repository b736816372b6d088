"""What a variant hides is what its name says, and a hidden feature has no say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from irgauge.benchmarks import ablation
from irgauge.benchmarks.ablation import GROUP_NAMES, VARIANTS, Variant, hidden, judge
from irgauge.data.splits import Split
from irgauge.models.candidates import Settings
from irgauge.models.train import Table

NAMES = (
    "ops.total", "ops.arith.addf", "ops.dialect/arith", "ngram.edges", "ngram/a>b", "chain/a>b", "loops.count",
    "work.loads", "codegen.cycles", "options.args/divisible", "tensors.rank_max",
)  # fmt: skip


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        ("", ()),
        ("ops", ("ops.total", "ops.arith.addf", "ops.dialect/arith")),
        ("loops", ("loops.count",)),
        ("textual n-grams", ("ngram/a>b",)),
        ("def-use n-grams", ("chain/a>b",)),
        ("all n-grams", ("ngram.edges", "ngram/a>b", "chain/a>b")),
        (
            "hand-crafted",
            ("ops.total", "loops.count", "work.loads", "codegen.cycles", "options.args/divisible", "tensors.rank_max"),
        ),
    ],
)
def test_what_is_hidden(without: str, expected: tuple[str, ...]) -> None:
    assert [name for name, off in zip(NAMES, hidden(without, NAMES), strict=True) if off] == list(expected)


def test_every_group_of_the_track_is_left_out_once() -> None:
    names = [variant.name for variant in VARIANTS]
    assert len(names) == len(set(names))
    assert {f"without {group}" for group in GROUP_NAMES} <= set(names)


def test_a_hidden_group_has_no_say(table: Table) -> None:
    """Shuffled among the judged rows, what is hidden changes nothing; what is not does."""
    rows = np.arange(len(table.X))
    split = Split("random", rows[: 3 * len(rows) // 4], rows[3 * len(rows) // 4 :])
    column = "x86-64-v3/vec_used"
    mixed = table.X.copy()
    ops = [i for i, n in enumerate(table.names) if n.startswith("ops.")]
    mixed[np.ix_(split.test_index, ops)] = np.flip(mixed[np.ix_(split.test_index, ops)], axis=0) + 3
    other = replace(table, X=mixed)
    for without, same in (("ops", True), ("", False)):
        variant = Variant("v", without)
        a, b = (judge(t, variant, split, column, 0)["value"] for t in (table, other))
        assert (a == b) is same


def test_fits_of_another_run_are_taken_up_only_where_they_would_be_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablation, "LOG", tmp_path / "log")
    now = ablation._learned_from("data", 0)
    (tmp_path / "log").write_text(json.dumps({"learned_from": now, "key": "a", "fit": {"value": [1.0]}}) + "\n")
    assert ablation._finished(now) == {"a": {"value": [1.0]}}
    others = [ablation._learned_from("other data", 0), ablation._learned_from("data", 1)]
    monkeypatch.setattr(ablation, "settings_of", lambda track: Settings(depth=3))
    others.append(ablation._learned_from("data", 0))
    assert len({now, *others}) == 4
    assert [ablation._finished(other) for other in others] == [{}, {}, {}]
