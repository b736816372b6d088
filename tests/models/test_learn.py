"""One target is learned from its labelled training rows, and the choice is made on unseen programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from irgauge.data.targets import find_target
from irgauge.models.candidates import BOOSTERS, Settings, fit_candidate
from irgauge.models.learn import learn_target, useful_columns
from irgauge.models.recipes import Recipe
from irgauge.models.target_model import Part
from irgauge.models.train import Table
from irgauge.models.trees import Float32, Float64


def test_rows_without_a_label_have_no_say(table: Table, quick: Settings) -> None:
    target = find_target("latency_ns")
    labelled = np.flatnonzero(np.isfinite(table.y[target.column]))
    with_gaps = table.learn(target, seed=0, settings=quick).model
    without = table.rows(labelled).learn(target, seed=0, settings=quick).model
    columns = {n: i for i, n in enumerate(table.names)}
    np.testing.assert_array_equal(with_gaps.predict(table.X, columns).value, without.predict(table.X, columns).value)


def test_growing_targets_are_learned_in_log_space_and_bounded_ones_are_not(table: Table, quick: Settings) -> None:
    spaces = {
        name: table.learn(find_target(name), seed=0, settings=quick).model.space
        for name in ("latency_ns", "static_instructions", "vec_used", "vector_utilization", "mca_cycles")
    }
    assert spaces == {
        "latency_ns": "log",
        "static_instructions": "log",
        "vec_used": "plain",
        "vector_utilization": "plain",
        "mca_cycles": "plain",
    }


def test_zero_heavy_target_gets_two_parts(table: Table, quick: Settings) -> None:
    model = table.learn(find_target("spills"), seed=0, settings=quick).model
    assert model.gate is not None
    outcome = model.predict(table.X, {n: i for i, n in enumerate(table.names)})
    y = table.y["x86-64-v3/spills"]
    assert ((outcome.value > 0) == (y > 0)).mean() > 0.98
    assert (outcome.value >= 0).all()
    assert (outcome.value == np.round(outcome.value)).all()


def test_the_best_scored_candidate_is_chosen(table: Table, quick: Settings) -> None:
    learned = table.learn(find_target("latency_ns"), seed=0, settings=quick)
    best = min(learned.cv_scores, key=lambda k: learned.cv_scores[k])
    assert best == learned.model.candidate + ("+margin" if learned.model.estimate else "")
    assert {"ridge", "ridge+margin", "roofline+margin", "constant"} <= set(learned.cv_scores)
    assert len(learned.cv_scores) == 7  # the three of trees with the better margin
    only = table.learn(find_target("latency_ns"), seed=0, settings=quick, candidates=["ridge", "constant"]).model
    assert only.candidate == "ridge"


def test_a_part_of_the_rows_compares_boosters_only(table: Table, quick: Settings) -> None:
    """Ridge and the roofline need few rows, so on a part of them they look better than they are on all."""
    few = replace(quick, contest_rows=len(table.X) // 4)
    learned = table.learn(find_target("latency_ns"), seed=0, settings=few)
    assert {score.removesuffix("+margin") for score in learned.cv_scores} == set(BOOSTERS)
    half = table.learn(find_target("latency_ns"), seed=0, settings=replace(quick, contest_rows=len(table.X) // 2))
    assert "roofline+margin" in half.cv_scores  # nearly all rows: then all are taken


def test_a_program_far_larger_than_any_seen_is_extrapolated(table: Table, quick: Settings) -> None:
    """Trees alone stop at the largest label; the margin does not."""
    model = table.learn(find_target("latency_ns"), seed=0, settings=quick, candidates=["lightgbm", "roofline"]).model
    assert model.estimate == "latency_ns"
    columns = {n: i for i, n in enumerate(table.names)}
    largest = table.X[[int(np.argmax(table.X[:, columns["work.loads"]]))]]
    grown = largest.copy()
    for name in (
        "work.loads",
        "work.stores",
        "work.loop_iterations",
        "work.float_ops",
        "codegen.cycles",
        "access.lines_l1",
        "access.lines_llc",
    ):
        grown[0, columns[name]] *= 100
    ratio = model.predict(grown, columns).value[0] / model.predict(largest, columns).value[0]
    assert 20 < ratio < 300


def test_intervals_come_from_unseen_programs(table: Table, quick: Settings) -> None:
    """Errors on the rows a model was fitted on would make intervals far too narrow."""
    learned = table.learn(find_target("latency_ns"), seed=0, settings=quick)
    model = learned.model
    y = table.y[model.column][learned.oof_rows]
    below, above = model.intervals.bounds(model.encode(learned.oof_value))
    inside = (model.encode(y) >= below - 1e-9) & (model.encode(y) <= above + 1e-9)
    assert 0.88 <= inside.mean() <= 1
    outcome = model.predict(table.X, {n: i for i, n in enumerate(table.names)})
    assert (outcome.low <= outcome.value).all()
    assert (outcome.value <= outcome.high).all()


def test_intervals_are_those_of_families_never_seen(table: Table, quick: Settings) -> None:
    """What a family adds of its own cannot be learned from others: program folds would not know it."""
    family = np.array([int(f.removeprefix("family")) for f in table.family])
    shift = np.random.default_rng(1).normal(0, 1, 12)[family]
    y = np.exp(np.log(table.y["x86-64-v3/latency_ns"]) + shift)
    X = table.X.copy()
    X[:, table.names.index("tensors.bytes_in")] = family  # tells families apart, not what they add
    shifted = replace(table, X=X, y={"x86-64-v3/latency_ns": y})
    target = find_target("latency_ns")
    settings = replace(quick, rounds=75)
    by_family = shifted.learn(target, seed=0, settings=settings, candidates=["lightgbm"]).model
    by_program = replace(shifted, family=("one",) * len(y)).learn(
        target, seed=0, settings=settings, candidates=["lightgbm"]
    )
    width, narrow = (
        float(np.mean(model.intervals.above - model.intervals.below)) for model in (by_family, by_program.model)
    )
    assert width > 1.5 * narrow


def test_intervals_from_fewer_rounds_leave_the_values_as_they_are(
    table: Table, quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []

    def counted(name: str, X: Float32, z: Float64, seed: int, settings: Settings, *, robust: bool = False) -> Part:
        rounds.append(settings.rounds)
        return fit_candidate(name, X, z, seed, settings, robust=robust)

    monkeypatch.setattr("irgauge.models.learn.fit_candidate", counted)
    target, recipe = find_target("latency_ns"), Recipe("lightgbm", True, {"rounds": 9})
    whole, half = (
        table.learn(target, seed=0, settings=replace(quick, calibration_rounds=share), recipe=recipe)
        for share in (1.0, 0.5)
    )
    assert rounds == [9, 9, 9, 5, 5, 9]
    columns = {n: i for i, n in enumerate(table.names)}
    values = [learned.model.predict(table.X, columns).value for learned in (whole, half)]
    np.testing.assert_array_equal(*values)
    assert not np.array_equal(whole.oof_value, half.oof_value)


def test_only_what_variants_are_compared_by_has_an_order(table: Table, quick: Settings) -> None:
    latency, size = (
        table.learn(find_target(name), seed=0, settings=quick, candidates=["lightgbm"]).model
        for name in ("latency_ns", "static_instructions")
    )
    assert latency.order is not None
    assert size.order is None
    columns = {n: i for i, n in enumerate(table.names)}
    without = replace(latency, order=None).predict(table.X, columns)
    outcome = latency.predict(table.X, columns)
    np.testing.assert_array_equal(outcome.value, without.value)  # moves ranks, never values
    assert not np.array_equal(outcome.ranked, without.ranked)


def test_few_rows_give_the_median(table: Table, quick: Settings) -> None:
    few = table.rows(np.arange(12))
    model = few.learn(find_target("vec_used"), seed=0, settings=quick).model
    assert model.candidate == "constant"
    assert model.predict(few.X, {n: i for i, n in enumerate(table.names)}).value[0] == np.median(
        few.y["x86-64-v3/vec_used"]
    )


def test_no_label_and_bad_features_are_errors(table: Table) -> None:
    target = find_target("latency_ns")
    nothing = np.full(len(table.X), np.nan)
    with pytest.raises(ValueError, match="no row has a label for x86-64-v3/latency_ns"):
        learn_target(target, table.X, nothing, table.program_id, table.names)
    X = table.X.copy()
    X[3, 3] = np.inf
    with pytest.raises(ValueError, match="finite"):
        learn_target(target, X, nothing, table.program_id, table.names)


def test_useless_columns_are_left_out() -> None:
    rng = np.random.default_rng(0)
    n = 1000
    a = rng.integers(0, 50, n).astype(np.float32)
    rare = np.zeros(n, np.float32)
    rare[:4] = 1
    X = np.stack([a, np.log1p(a), np.ones(n, np.float32), rare, a, a % 7, np.log1p(a % 7)], axis=1).astype(np.float32)
    names = ("work.a", "work.a_log", "one", "rare", "copy", "b", "alone_log")
    assert useful_columns(X, names).tolist() == [0, 5, 6]


def test_small_counts_are_covered_as_promised(table: Table, quick: Settings) -> None:
    """Labels of a few registers: an interval around the value before rounding would miss by half a register."""
    rng = np.random.default_rng(3)
    column = "x86-64-v3/vec_used"
    noisy = replace(table, y={column: np.clip(table.y[column] + rng.integers(-1, 3, len(table.X)), 0, 20)})
    learned = noisy.learn(find_target("vec_used"), seed=0, settings=quick)
    rows = learned.oof_rows
    below, above = learned.model.intervals.bounds(learned.oof_value)
    outcome = learned.model.finish(learned.oof_value + 0.4, None, None)
    np.testing.assert_array_equal(outcome.low, np.maximum(np.ceil(np.minimum(below, learned.oof_value)), 0))
    inside = (noisy.y[column][rows] >= outcome.low) & (noisy.y[column][rows] <= outcome.high)
    assert inside.mean() >= 0.9
    assert (above >= learned.oof_value).all()


def test_the_amount_is_learned_from_rows_that_are_not_zero(table: Table, quick: Settings) -> None:
    model = table.learn(find_target("spills"), seed=0, settings=quick, candidates=["lightgbm"]).model
    columns = {n: i for i, n in enumerate(table.names)}
    y = table.y["x86-64-v3/spills"]
    learned_from = (model.encode(y) - model.margin(table.X, columns))[y > 0]
    assert model.part.predict(table.X).min() > learned_from.min() - 0.2


def test_noise_gets_intervals_as_wide_as_the_noise(table: Table, quick: Settings) -> None:
    """Calibrated on rows it was fitted on, a booster would promise to know what cannot be known."""
    rng = np.random.default_rng(5)
    noise = np.exp(rng.normal(8, 1, len(table.X)))
    noisy = replace(table, y={"x86-64-v3/latency_ns": noise})
    learned = noisy.learn(find_target("latency_ns"), seed=0, settings=quick, candidates=["lightgbm"])
    errors = np.log(learned.oof_value + 1) - np.log(noise[learned.oof_rows] + 1)
    assert errors.std() > 0.9
    assert (learned.model.intervals.above - learned.model.intervals.below).min() > 2.5
