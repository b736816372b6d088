"""The best of each group is marked, and only it."""

from __future__ import annotations

import numpy as np

from irgauge.reports import tables
from irgauge.reports.figures import FIGURES
from irgauge.reports.summary import OURS, FamilyErrors, Summary


def test_best_is_marked_where_models_differ(summary: Summary) -> None:
    for block in tables.headline_blocks(summary):
        target = block.target
        at = 0
        for split in summary.splits:
            for metric in tables.headline_metrics(target):
                values = [target.figure(split.name, m, metric) for m in target.models()]
                known = [v for v in values if np.isfinite(v)]
                sign = 1 if FIGURES[metric].lower_is_better else -1
                expected = [
                    bool(len(set(known)) > 1 and np.isfinite(v) and sign * v == min(sign * k for k in known))
                    for v in values
                ]
                assert [row.cells[at].best for row in block.rows] == expected
                at += 1
        assert all(len(row.cells) == at for row in block.rows)


def test_every_baseline_stands_beside_ours(summary: Summary) -> None:
    models = {row.model for block in tables.headline_blocks(summary) for row in block.rows}
    assert {"irgauge", "constant", "op-count ridge", "roofline"} <= models
    assert all(block.rows[0].ours for block in tables.headline_blocks(summary))


def test_full_table_has_every_split_and_metric(summary: Summary) -> None:
    for target in summary.targets:
        blocks = tables.full_table(target)
        assert [b.split for b in blocks] == [s.name for s in summary.splits]
        width = len(tables.target_metrics(target))
        assert all(len(row.cells) == width for b in blocks for row in b.rows)


def test_wins_and_losses_add_up(summary: Summary) -> None:
    for won in tables.wins(summary):
        assert won.n_best + len(won.lost) == won.n_targets == len(summary.targets)
        for target in summary.targets:
            _, best = tables.best_baseline(target, won.split, target.error_metric)
            lost = best < target.figure(won.split, OURS, target.error_metric)
            assert lost == any(text.startswith(f"{target.name} to ") for text in won.lost)


def test_families_are_shaded_against_the_median_one(summary: Summary) -> None:
    target = summary.targets[0]
    families = [FamilyErrors(f"f{i}", 1, {target.column: e}) for i, e in enumerate((0.04, 0.1, 0.3, float("nan")))]
    rows = tables.heat_rows(families, [target])
    assert [r.cells[0].level for r in rows] == [0, 2, 4, -1]
    assert rows[3].cells[0].text == "–"


def test_factors_are_shaded_by_their_distance_from_one(summary: Summary) -> None:
    target = next(t for t in summary.targets if t.error_metric == "mean_factor")
    families = [FamilyErrors(f"f{i}", 1, {target.column: e}) for i, e in enumerate((1.01, 1.1, 1.3))]
    assert [r.cells[0].level for r in tables.heat_rows(families, [target])] == [0, 2, 4]


def test_shades_of_shares() -> None:
    assert [tables.share_level(s) for s in (0.0, 0.1, 0.2, 0.4, 0.9)] == [0, 1, 2, 3, 4]
