"""Evaluation learns from training rows only and puts the baselines beside the model."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from irgauge.models.candidates import Settings
from irgauge.models.evaluate import Evaluation, evaluate_track
from irgauge.models.metrics import METRICS
from irgauge.models.train import Table, train_track

LATENCY = "x86-64-v3/latency_ns"


def only_latency(table: Table) -> Table:
    return replace(table, y={c: table.y[c] for c in (LATENCY, "x86-64-v3/mca_cycles")})


@pytest.fixture(scope="module")
def evaluation(table: Table, quick: Settings) -> Evaluation:
    real = table.rows(np.arange(0, 300, 5))
    return evaluate_track(only_latency(table), real, n_jobs=1, settings=quick)


def test_four_splits_with_every_metric(evaluation: Evaluation) -> None:
    assert set(evaluation.scores) == {"random", "program", "family", "real"}
    for split in evaluation.scores:
        assert set(METRICS) <= set(evaluation.scores[split][LATENCY])
        assert evaluation.scores[split][LATENCY]["mape"] < 0.5


def test_family_split_judges_every_labelled_row_once(evaluation: Evaluation, table: Table) -> None:
    rows = evaluation.pooled["family"][LATENCY].rows
    assert sorted(rows) == list(np.flatnonzero(np.isfinite(table.y[LATENCY])))


def test_baselines_are_judged_on_the_same_rows(evaluation: Evaluation) -> None:
    assert set(evaluation.baselines) == {"constant", "op_count_ridge", "roofline", "llvm_mca"}
    for by_split in evaluation.baselines.values():
        for split in by_split:
            assert by_split[split][LATENCY]["n"] == evaluation.scores[split][LATENCY]["n"]
    assert evaluation.baselines["constant"]["program"][LATENCY]["mape"] > evaluation.scores["program"][LATENCY]["mape"]


def test_test_labels_are_never_learned_from(table: Table, quick: Settings) -> None:
    """Spoiling the labels of the judged programs must not change a single prediction for them."""
    one = only_latency(table)
    clean = evaluate_track(one, splits=["program"], n_jobs=1, settings=quick).pooled["program"]
    spoiled_y = dict(one.y)
    for column, pooled in clean.items():
        spoiled_y[column] = one.y[column].copy()
        spoiled_y[column][pooled.rows] *= 1000
    spoiled = evaluate_track(replace(one, y=spoiled_y), splits=["program"], n_jobs=1, settings=quick).pooled["program"]
    for column, pooled in clean.items():
        np.testing.assert_array_equal(pooled.value, spoiled[column].value)
        np.testing.assert_array_equal(pooled.low, spoiled[column].low)


def test_scores_go_where_the_design_puts_them(evaluation: Evaluation, table: Table, quick: Settings) -> None:
    manifest = train_track(only_latency(table), n_jobs=1, settings=quick)["manifest"]
    evaluation.into_manifest(manifest)
    track = json.loads(json.dumps(manifest))["tracks"]["kernel"]
    assert track["scores"]["family"][LATENCY]["rmse_pct"] > 0
    assert track["baselines"]["roofline"]["random"][LATENCY]["n"] > 0


def test_worst_programs_come_first_and_once(evaluation: Evaluation) -> None:
    worst = evaluation.worst("family", LATENCY, 10)
    assert [w.factor for w in worst] == sorted((w.factor for w in worst), reverse=True)
    assert len({w.program_id for w in worst}) == 10
    assert worst[0].factor >= 1


def test_rows_for_a_table(evaluation: Evaluation) -> None:
    rows = evaluation.table_rows()
    assert {r["model"] for r in rows} == {"irgauge", "constant", "op_count_ridge", "roofline", "llvm_mca"}
    assert all({"split", "target", "n", "mape"} <= set(r) for r in rows)


def test_real_is_left_out_without_a_real_set(table: Table, quick: Settings) -> None:
    assert set(evaluate_track(only_latency(table), splits=["random", "real"], n_jobs=1, settings=quick).scores) == {
        "random"
    }


def test_unknown_split(table: Table) -> None:
    with pytest.raises(ValueError, match="'moon'"):
        evaluate_track(table, splits=["moon"])
