"""What the benchmarks wrote is shown beside ours, and only where it is of the same track."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from irgauge.reports import benchmark_tables
from irgauge.reports.render import render
from irgauge.reports.summary import OURS, Summary

LATENCY = "x86-64-v3/latency_ns"
LITERATURE = {
    "about": {"date": "2026-01-02", "machine": "a machine", "minutes_per_fit": 3},
    "models": {
        "lstm/ops": {
            "facts": {"training": {"random": {"seconds": 61}}, "prepared_us": 410, "from_text_us": 950, "bytes": 52000},
            "scores": {"random": {LATENCY: {"mdape": 0.0001, "kendall": 0.25}}},
        }
    },
}
ABLATION = {
    "about": {"date": "2026-01-02", "machine": "a machine", "family_folds": 2},
    "variants": {
        "all": {"random": {LATENCY: {"mdape": 0.125}}},
        "without loops": {"random": {LATENCY: {"mdape": 0.375}}},
    },
}


@pytest.fixture
def beside(summary: Summary) -> Summary:
    return replace(summary, literature=LITERATURE, ablation=ABLATION)


def test_ours_stands_first_and_the_best_of_a_column_is_marked(beside: Summary) -> None:
    rows = benchmark_tables.literature_rows(beside, "random")
    assert rows[0].ours
    assert rows[0].model == "irgauge"
    assert rows[-1].model == "lstm/ops"
    column = [t.column for t, _ in benchmark_tables.columns_of(beside)].index(LATENCY)
    assert rows[-1].cells[column].best
    assert not rows[0].cells[column].best
    assert rows[0].cells[column].text != rows[-1].cells[column].text
    gpr = [t.name for t, _ in benchmark_tables.columns_of(beside)].index("gpr_used")
    assert rows[-1].cells[gpr].text == "–"  # it has no figure there


def test_a_split_that_a_model_was_not_judged_on_leaves_it_out(beside: Summary) -> None:
    assert "lstm/ops" not in [row.model for row in benchmark_tables.literature_rows(beside, "program")]


def test_variants_are_compared_with_everything_together(beside: Summary) -> None:
    everything, without = benchmark_tables.ablation_rows(beside)
    assert everything.ours
    assert everything.cells[0].best
    assert not without.cells[0].best
    assert everything.cells[0].text.startswith("12.5")


def test_the_page_shows_both_with_their_dates(beside: Summary) -> None:
    page = render(beside)
    assert len(re.findall("2026-01-02, a machine", page)) == 2
    assert "lstm/ops" in page
    assert "without loops" in page
    without = render(replace(beside, literature=None, ablation=None))
    assert "lstm/ops" not in without
    assert 'id="ablation"' not in without


def test_results_are_read_for_their_track_only(tmp_path: Path) -> None:
    (tmp_path / "ablation.json").write_text(json.dumps(ABLATION))
    assert benchmark_tables.results_of("ablation", "kernel", tmp_path) == ABLATION
    assert benchmark_tables.results_of("ablation", "npu", tmp_path) is None
    assert benchmark_tables.results_of("literature", "kernel", tmp_path) is None


def test_figures_of_ours_are_those_of_the_evaluation(beside: Summary) -> None:
    target, metric = benchmark_tables.columns_of(beside)[0]
    assert (target.column, metric) == (LATENCY, "mdape")
    assert target.figure("random", OURS, metric) > 0
