"""Base and contributions add up to the prediction, in the target's unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from irgauge.models import analytical
from irgauge.models.candidates import Settings
from irgauge.models.explain import CLIPPED, ESTIMATE, GATE, ROUNDED, STEPS, Explainer
from irgauge.models.track_model import TrackModel
from irgauge.models.train import Table, train_track


@pytest.fixture(scope="module")
def model(artifact: Mapping[str, Any]) -> TrackModel:
    return TrackModel.from_plain(artifact["tracks"]["kernel"])


def test_contributions_add_up_for_every_target_and_row(model: TrackModel, text_table: Table) -> None:
    explainer = Explainer(model)
    for index, target in enumerate(model.targets):
        for x in text_table.X[::11]:
            explanation = explainer.explain(index, x)
            value = float(target.predict(x[None, :], model.columns).value[0])
            total = explanation.base + sum(c.amount for c in explanation.contributions)
            assert explanation.value == value
            assert abs(total - value) <= 1e-9 * max(1.0, abs(value), abs(explanation.base))


def test_contributions_add_up_far_outside_the_training_range(model: TrackModel) -> None:
    explainer = Explainer(model)
    for scale in (0.0, 1e3, 1e12, 1e30):
        x = np.full(len(model.names), scale, np.float32)
        for index in range(len(model.targets)):
            explanation = explainer.explain(index, x)
            total = explanation.base + sum(c.amount for c in explanation.contributions)
            largest = max([abs(c.amount) for c in explanation.contributions] + [1.0, abs(explanation.value)])
            assert abs(total - explanation.value) <= 1e-9 * largest


@pytest.mark.parametrize("candidate", ["ridge", "hist", "roofline", "constant", "mean"])
def test_contributions_add_up_for_every_candidate(table: Table, quick: Settings, candidate: str) -> None:
    from irgauge.data.targets import find_target

    found = table.learn(
        find_target("latency_ns"),
        seed=0,
        settings=quick,
        candidates=[candidate, "lightgbm", "xgboost"][: 3 if candidate == "mean" else 1],
    )
    plain = train_track(
        replace(table, y={"x86-64-v3/latency_ns": table.y["x86-64-v3/latency_ns"]}), n_jobs=1, settings=quick
    )
    model = replace(TrackModel.from_plain(plain["tracks"]["kernel"]), targets=(found.model,))
    explanation = Explainer(model).explain(0, table.X[5])
    assert explanation.base + sum(c.amount for c in explanation.contributions) == pytest.approx(
        explanation.value, rel=1e-9
    )


def test_the_estimate_stands_apart_with_its_value(table: Table, quick: Settings) -> None:
    from irgauge.data.targets import find_target

    found = table.learn(find_target("latency_ns"), seed=0, settings=quick, candidates=["lightgbm", "roofline"]).model
    assert found.estimate == "latency_ns"
    low, high = table.X.min(axis=0), table.X.max(axis=0)
    model = TrackModel("kernel", table.schema_version, "", table.names, (found,), low, high)
    explanation = Explainer(model).explain(0, table.X[3])
    (estimate,) = [c for c in explanation.contributions if c.feature == ESTIMATE]
    assert estimate.value == pytest.approx(analytical.estimate("latency_ns", table.X[[3]], model.columns)[0])


def test_spills_show_the_gate(model: TrackModel, text_table: Table) -> None:
    index = next(i for i, t in enumerate(model.targets) if t.gate is not None)
    explainer = Explainer(model)
    values = [explainer.explain(index, x) for x in text_table.X[:8]]
    for explanation in values:
        named = {c.feature: c.amount for c in explanation.contributions}
        if explanation.value > 0:
            assert named[GATE] > 0  # from the expected amount to the full one
        else:
            assert named[GATE] <= model.targets[index].offset  # the expected amount is dropped
    assert {e.value == 0 for e in values} == {True, False}


def test_largest_come_first_and_steps_are_no_features(model: TrackModel, text_table: Table) -> None:
    for index in range(len(model.targets)):
        contributions = Explainer(model).explain(index, text_table.X[20]).contributions
        amounts = [abs(c.amount) for c in contributions]
        assert amounts == sorted(amounts, reverse=True)
        assert 0 not in amounts
        for c in contributions:
            assert c.feature in model.names or c.feature in (ESTIMATE, *STEPS)
    assert {CLIPPED, ROUNDED} < set(STEPS)


def test_learned_space_values_for_many_rows_have_one_shape(model: TrackModel, text_table: Table) -> None:
    base, values = Explainer(model).learned(0, text_table.X[:6])
    assert values.shape == (6, len(model.names))
    part = model.targets[0].part
    np.testing.assert_allclose(base + values.sum(axis=1), part.predict(text_table.X[:6]), atol=1e-9)


def test_equal_to_the_shap_package_where_it_is_installed(model: TrackModel, text_table: Table) -> None:
    shap = pytest.importorskip("shap")
    lightgbm = pytest.importorskip("lightgbm")
    from irgauge.models import trees
    from irgauge.models.treeshap import leaf_paths, shap_values

    X = text_table.X
    y = np.log(text_table.y["x86-64-v3/latency_ns"])
    booster = lightgbm.train({"verbose": -1, "num_threads": 1, "min_data_in_leaf": 3}, lightgbm.Dataset(X, y), 15)
    theirs = shap.TreeExplainer(booster, feature_perturbation="tree_path_dependent").shap_values(X[:10])
    paths = leaf_paths(trees.from_lightgbm(booster).forest)
    np.testing.assert_allclose([shap_values(paths, x, X.shape[1]) for x in X[:10]], theirs, atol=1e-9)
