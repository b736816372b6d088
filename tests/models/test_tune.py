"""A search ends, repeats itself, never does worse than the defaults on its own rows, and is used by training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from irgauge.data.targets import find_target
from irgauge.models.candidates import BOOSTERS, Settings
from irgauge.models.learn import MARGIN_IS_WORTH
from irgauge.models.recipes import Recipe, recipes_of, settings_of
from irgauge.models.train import Table, train_track
from irgauge.models.tune import _Judge, tune_track, write_tuned

LATENCY = "x86-64-v3/latency_ns"


def narrow(table: Table) -> Table:
    return replace(table, y={LATENCY: table.y[LATENCY], "x86-64-v3/spills": table.y["x86-64-v3/spills"]})


def test_a_search_repeats_itself_and_never_loses_to_the_defaults(table: Table, quick: Settings) -> None:
    once, again = (tune_track(narrow(table), seconds=600, trials=4, n_jobs=1, settings=quick) for _ in range(2))
    assert once == again
    for tuned in once.values():
        assert tuned.trials == 4
        assert tuned.score <= 1
        assert set(tuned.errors) == {"random", "program", "family"}
        assert tuned.recipe.candidate in BOOSTERS


def test_a_search_ends_at_its_time(table: Table, quick: Settings) -> None:
    found = tune_track(narrow(table), seconds=0, n_jobs=1, settings=quick)
    assert {tuned.trials for tuned in found.values()} == {1}


def test_dropping_the_estimate_must_be_worth_it(table: Table, quick: Settings) -> None:
    column, rows = LATENCY, np.flatnonzero(np.isfinite(table.y[LATENCY]))
    judge = _Judge(table, find_target(column), rows, 0, quick)
    with_it, without = Recipe("lightgbm", True, {}), Recipe("lightgbm", False, {})
    assert judge.cost(with_it, judge.default_errors) == pytest.approx(1)
    assert judge.cost(without, judge.default_errors) == pytest.approx(MARGIN_IS_WORTH)
    slightly_better = {split: 0.97 * error for split, error in judge.default_errors.items()}
    assert judge.cost(without, slightly_better) > 1 > judge.cost(with_it, slightly_better)


def test_a_recipe_that_is_not_worth_it_on_all_rows_is_left_out(table: Table, quick: Settings) -> None:
    rows = np.flatnonzero(np.isfinite(table.y[LATENCY]))
    judge = _Judge(table, find_target(LATENCY), rows, 0, replace(quick, rounds=5))
    worse = judge.tuned(Recipe("lightgbm", True, {"rounds": 4}), trials=3)
    assert (worse.recipe, worse.errors, worse.trials) == (judge.defaults, judge.default_errors, 3)
    better = judge.tuned(Recipe("lightgbm", True, {"rounds": 25}), trials=3)
    assert better.recipe.settings == {"rounds": 25}
    assert better.score < 0.99


def test_what_is_written_is_read_as_the_recipe(table: Table, quick: Settings, tmp_path: Path) -> None:
    found = tune_track(narrow(table), seconds=600, trials=3, n_jobs=1, settings=quick)
    settings = replace(Settings(), leaves=255)
    write_tuned(tmp_path / "kernel.json", found, {"track": "kernel"}, settings)
    assert settings_of("kernel", tmp_path) == settings
    assert settings_of("npu", tmp_path) == Settings()
    assert recipes_of("kernel", tmp_path) == {column: tuned.recipe for column, tuned in found.items()}
    assert recipes_of("npu", tmp_path) == {}
    assert "lightgbm" in json.loads((tmp_path / "kernel.json").read_text())["about"]["libraries"]


@pytest.mark.parametrize("candidate", ["xgboost", "roofline"])
def test_training_follows_a_recipe(table: Table, monkeypatch: pytest.MonkeyPatch, candidate: str) -> None:
    recipe = Recipe(candidate, True, {"rounds": 7, "min_rows_in_leaf": 9})
    monkeypatch.setattr("irgauge.models.train.recipes_of", lambda track: {LATENCY: recipe})
    artifact = train_track(replace(table, y={LATENCY: table.y[LATENCY]}), n_jobs=1)
    chosen = artifact["manifest"]["tracks"]["kernel"]["chosen"][LATENCY]
    assert chosen["candidate"] == candidate
    assert chosen["settings"] == {"rounds": 7, "min_rows_in_leaf": 9}
    first, last = artifact["tracks"]["kernel"]["targets"][0]["part"]["trees"]
    assert last - first == (7 if candidate == "xgboost" else 0)
    assert chosen["cv"] == {}
