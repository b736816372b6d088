"""One row and a batch, in memory and stored: the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from irgauge.models.target_model import parts_of
from irgauge.models.track_model import TrackModel
from irgauge.models.train import Table


@pytest.fixture(scope="module")
def model(artifact: Mapping[str, Any]) -> TrackModel:
    return TrackModel.from_plain(artifact["tracks"]["kernel"])


def test_one_row_equals_its_row_of_a_batch_to_the_last_bit(model: TrackModel, text_table: Table) -> None:
    batch = model.predict(text_table.X)
    for row in range(0, len(text_table.X), 7):
        one = model.predict_row(text_table.X[row])
        for a, b in zip(one, batch, strict=True):
            for field in ("value", "low", "high", "ranked"):
                assert getattr(a, field)[0] == getattr(b, field)[row]


def test_some_targets_alone_are_as_among_all_to_the_last_bit(model: TrackModel, text_table: Table) -> None:
    n = len(model.targets)
    for x in text_table.X[::11]:
        every = model.values_of_row(x)
        for wanted in ([n - 1], [2, 0], list(range(n)), list(reversed(range(n)))):
            assert model.values_of_row(x, wanted) == tuple([of[i] for i in wanted] for of in every)


def test_trees_of_few_choices_of_targets_are_kept(model: TrackModel, text_table: Table) -> None:
    for number in range(40):
        model.values_of_row(text_table.X[0], [number % len(model.targets)] * (1 + number // len(model.targets)))
    assert len(model._selections) <= 16


def test_a_row_with_missing_values_takes_the_default_sides(model: TrackModel, text_table: Table) -> None:
    X = text_table.X[:20].copy()
    columns = sorted(set(range(X.shape[1])) - set(model.columns.values()))
    X[:, columns] = np.nan
    for row in range(20):
        alone = model._row.walk.sums(X[row])
        parts = [part for _, _, part in parts_of(model.targets)]
        np.testing.assert_array_equal(alone, [p.forest.predict(X[row : row + 1])[0] for p in parts])


def test_stored_and_read_again_is_the_same(model: TrackModel, text_table: Table) -> None:
    again = TrackModel.from_plain(model.to_plain())
    for a, b in zip(model.predict(text_table.X), again.predict(text_table.X), strict=True):
        np.testing.assert_array_equal(a.value, b.value)
        np.testing.assert_array_equal(a.high, b.high)
        np.testing.assert_array_equal(a.ranked, b.ranked)


def test_values_stay_in_range(model: TrackModel) -> None:
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(0, 12, (200, len(model.names)))).astype(np.float32)
    for target, outcome in zip(model.targets, model.predict(X), strict=True):
        for values in (outcome.value, outcome.low, outcome.high):
            assert np.isfinite(values).all()
            assert (values >= 0).all()
            assert (values <= target.upper).all()
        assert (outcome.low <= outcome.value).all()
        assert (outcome.value <= outcome.high).all()
        if target.whole:
            assert (outcome.value == np.round(outcome.value)).all()


DAMAGE: dict[str, Any] = {
    "column out of range": lambda t: t["trees"].update(feature=t["trees"]["feature"] + 30000),
    "backwards": lambda t: t["trees"].update(step=-t["trees"]["step"]),
    "no roots": lambda t: t["trees"].update(roots=t["trees"]["roots"][:0]),
    "leaf values missing": lambda t: t["trees"].update(leaf_value=t["trees"]["leaf_value"][:-1]),
    "trees of a target": lambda t: t["targets"][0]["part"].update(trees=[0, 10**9]),
    "space": lambda t: t["targets"][0].update(space="cubic"),
    "estimate": lambda t: t["targets"][0].update(estimate="os.system"),
    "intervals": lambda t: t["targets"][0]["intervals"].update(below=np.zeros(0)),
    "field": lambda t: t["targets"][0].pop("offset"),
    "names": lambda t: t["schema"].update(names=t["schema"]["names"][:-1]),
    "names are a number": lambda t: t["schema"].update(names=3),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_content_is_refused(artifact: Mapping[str, Any], damage: str) -> None:
    plain = deepcopy(artifact["tracks"]["kernel"])
    DAMAGE[damage](plain)
    with pytest.raises((KeyError, TypeError, ValueError, IndexError)):
        TrackModel.from_plain(plain)
