"""A summary says what the evaluation says, for every target and split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irgauge.data.splits import SPLITS
from irgauge.models.metrics import METRICS
from irgauge.reports.summarize import cut_text, git_revision, summarize
from irgauge.reports.summary import OURS, Summary


def test_every_target_and_split(judged, summary: Summary) -> None:  # type: ignore[no-untyped-def]
    assert tuple(s.name for s in summary.splits) == SPLITS
    one_device = {"latency_ns", "gpr_used", "vector_utilization"}
    assert {t.name for t in summary.targets} == one_device | {"x86-64-v3/spills", "neoverse-v2/spills"}
    assert summary.targets[0].name == "latency_ns"
    for target in summary.targets:
        assert {row.split for row in target.scores} == set(SPLITS)
        assert [c.split for c in target.certainty] == list(SPLITS)
        assert [p.split for p in target.points] == list(SPLITS)


def test_figures_are_those_of_the_evaluation(judged, summary: Summary) -> None:  # type: ignore[no-untyped-def]
    for target in summary.targets:
        for split in SPLITS:
            for metric in METRICS:
                ours = judged.evaluation.scores[split][target.column][metric]
                np.testing.assert_equal(target.figure(split, OURS, metric), ours)
                ridge = judged.evaluation.baselines["op_count_ridge"][split][target.column][metric]
                np.testing.assert_equal(target.figure(split, "op_count_ridge", metric), ridge)


def test_a_figure_that_does_not_exist_is_nan(summary: Summary) -> None:
    assert np.isnan(summary.targets[0].figure("program", "moon", "mape"))
    assert np.isnan(summary.targets[0].figure("moon", OURS, "mape"))


def test_worst_programs_have_their_text(judged, summary: Summary) -> None:  # type: ignore[no-untyped-def]
    texts = dict(zip(judged.frame["id"], judged.frame["mlir"], strict=True))
    for target in summary.targets:
        worst = [w for w in target.worst if w.split == "program"]
        assert len(worst) == min(10, len({w.program_id for w in worst}))
        assert [w.factor for w in worst] == sorted((w.factor for w in worst), reverse=True)
        for w in worst:
            assert w.low <= w.predicted <= w.high
            assert summary.texts[w.id].text == texts[w.id].rstrip("\n")
            assert w.schedule in ("identity", "unroll-2", "unroll-4")


def test_families_cover_all_rows(judged, summary: Summary) -> None:  # type: ignore[no-untyped-def]
    assert sum(f.n_rows for f in summary.families) == len(judged.frame)
    assert sum(f.n_rows for f in summary.dataset.families) == len(judged.frame)
    assert sum(f.n_programs for f in summary.dataset.families) == judged.frame["program_id"].nunique()
    assert dict(summary.dataset.schedules) == {"identity": 25, "unroll": 50}


def test_facts(summary: Summary) -> None:
    assert summary.versions.machines == ("test machine",)
    assert summary.versions.toolchain == {"llvm": "22.1.8"}
    assert summary.versions.seed == 0
    assert "numpy" in summary.versions.libraries
    assert summary.versions.revision == "abc123"
    assert summary.dataset.latency_spread_median == pytest.approx(0.01)


def test_a_split_that_was_not_judged_is_named(judged) -> None:  # type: ignore[no-untyped-def]
    from dataclasses import replace

    evaluation = judged.evaluation
    without = {
        name: {s: v for s, v in getattr(evaluation, name).items() if s != "real"}
        for name in ("scores", "pooled", "tables")
    }
    made = summarize(replace(evaluation, **without), judged.artifact, judged.frame, shap_rows=2, n_jobs=1, revision="")
    assert made.splits_missing == ("real",)
    assert "real" not in {s.name for s in made.splits}


def test_optional_columns_may_be_missing(judged) -> None:  # type: ignore[no-untyped-def]
    bare = judged.frame[["id", "program_id", "family"]]
    made = summarize(judged.evaluation, judged.artifact, bare, shap_rows=2, n_jobs=1, revision="")
    assert not made.texts
    assert all(t.labels is None for t in made.targets)


def test_long_texts_are_cut_at_a_line() -> None:
    text = "\n".join(["a" * 9] * 10) + "\n"
    cut = cut_text("x", text, 35)
    assert cut.text == "\n".join(["a" * 9] * 3)
    assert (cut.n_lines, cut.n_lines_left_out) == (10, 7)
    assert cut_text("x", "short\n", 35).n_lines_left_out == 0
    assert len(cut_text("x", "b" * 100, 35).text) < 40


def test_revision_outside_a_checkout_is_empty(tmp_path: Path) -> None:
    assert git_revision(tmp_path) == ""
