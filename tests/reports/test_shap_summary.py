"""The summary repeats what the explanations say."""

from __future__ import annotations

import numpy as np
import pytest

from irgauge.models.explain import Explainer
from irgauge.models.track_model import TrackModel
from irgauge.reports.shap_summary import explain_target, group_of, meaning_of, rank_correlation


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("work.flops", "work"),
        ("ops.arith.addf", "ops"),
        ("ngram/arith.mulf>arith.addf", "ngrams"),
        ("chain/arith.mulf>arith.addf", "ngrams"),
        ("options.num-warps", "options"),
        ("moon", "other"),
    ],
)
def test_group_of_a_feature(name: str, group: str) -> None:
    assert group_of(name) == group


def test_meaning_of_a_feature() -> None:
    assert "floating-point" in meaning_of("work.flops")[0]
    assert meaning_of("moon") == ("", "")


def test_means_are_those_of_the_explainer(judged) -> None:  # type: ignore[no-untyped-def]
    model = TrackModel.from_plain(judged.artifact["tracks"]["kernel"])
    X = judged.evaluation.tables["program"].X[:12]
    for index, target in enumerate(model.targets):
        part = explain_target(model, index, X, 5)[0]
        _, values = Explainer(model).learned(index, X)
        mean_abs = np.abs(values).mean(axis=0)
        assert part.n_features == np.count_nonzero(mean_abs)
        assert [f.mean_abs for f in part.features] == sorted(mean_abs[mean_abs > 0], reverse=True)[:5]
        total = values.sum(axis=1)
        shown = sum((f.contributions for f in part.features), np.zeros(len(X)))
        assert part.rest == pytest.approx(np.abs(total - shown).mean(), abs=1e-12)
        if part.groups:
            assert sum(part.groups.values()) == pytest.approx(1)
        predicted = target.part.predict(X)
        np.testing.assert_allclose(Explainer(model).learned(index, X)[0] + total, predicted, atol=1e-9)


def test_a_gated_target_explains_its_gate_too(judged) -> None:  # type: ignore[no-untyped-def]
    model = TrackModel.from_plain(judged.artifact["tracks"]["kernel"])
    X = judged.evaluation.tables["program"].X[:6]
    for index, target in enumerate(model.targets):
        parts = [p.part for p in explain_target(model, index, X, 3)]
        assert parts == (["value"] if target.gate is None else ["value", "gate"])


def test_rank_correlation() -> None:
    assert rank_correlation(np.array([1.0, 2, 3]), np.array([1.0, 10, 100])) == pytest.approx(1)
    assert np.isnan(rank_correlation(np.ones(3), np.arange(3.0)))
