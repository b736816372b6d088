"""Dots stand where the numbers say."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgauge.reports import plots
from irgauge.reports.summarize import label_facts
from irgauge.reports.summary import Points, ShapFeature


def decoded(path: str) -> list[tuple[float, float]]:
    """Absolute places of a path of dots."""
    at, found = np.zeros(2), []
    for step in re.findall(r"m([^h]*)h0", path):
        numbers = re.findall(r"-?\d+(?:\.\d+)?", step)
        assert len(numbers) == 2, step
        at = at + np.array([float(n) for n in numbers])
        found.append((float(at[0]), float(at[1])))
    return found


@given(st.lists(st.tuples(st.integers(-500, 500), st.integers(0, 500)), max_size=30))
def test_path_of_dots_reads_back(places: list[tuple[int, int]]) -> None:
    halves = np.array(places, np.int64).reshape(len(places), 2)
    assert decoded(plots.dot_path(halves)) == [(x / 2, y / 2) for x, y in places]


@given(st.lists(st.just(0.0) | st.floats(1e-6, 1e12), min_size=2, max_size=20), st.booleans())
def test_axis_keeps_order_and_bounds(values: list[float], log: bool) -> None:
    y = np.sort(np.array(values))
    axis = plots.axis_for(y, y, log=log, size=200)
    places = axis.place(y)
    assert np.all(np.diff(places) >= 0)
    assert places.min() >= 0
    assert places.max() <= 200
    assert all(0 <= t.at <= 200 for t in axis.ticks())


def test_zeros_have_their_own_lane() -> None:
    axis = plots.axis_for(np.array([0.0, 1.0, 100.0]), np.array([0.0, 1.0, 100.0]), log=True, size=200)
    zero, one, hundred = axis.place(np.array([0.0, 1.0, 100.0]))
    assert zero < axis.start <= one < hundred
    assert axis.ticks()[0].label == "0"


def test_a_wild_prediction_does_not_stretch_the_axis() -> None:
    axis = plots.axis_for(np.array([1.0, 100.0]), np.array([1.0, 1e30]), log=True, size=200)
    assert axis.high < 1e4
    assert axis.place(np.array([1e30]))[0] <= 200


def test_decades_are_labelled() -> None:
    labels = [t.label for t in plots.Axis(1, 1e6, True, False, 200).ticks(7)]
    assert labels == ["1", "10", "100", "1k", "10k", "100k", "1M"]


def test_panels_share_their_axes_and_keep_every_record() -> None:
    rng = np.random.default_rng(0)
    points = [Points(s, y := rng.uniform(1, 50, n), y * 1.1, rng.random(n) < 0.5) for s, n in (("a", 30), ("b", 9))]
    made = plots.panels(points, log=True)
    assert [p.n for p in made] == [30, 9]
    assert made[0].ticks == made[1].ticks
    assert sum(len(decoded(d.path)) for d in made[1].dots) == 9
    for x, y in (place for d in made[0].dots for place in decoded(d.path)):
        assert y < made[0].size - x  # predicted 10 % high: above the diagonal


def test_dots_that_fall_together_are_drawn_stronger() -> None:
    x = np.array([10.0] * 40 + [50.0])
    made = plots.dots(x, x, np.ones(41, bool))
    assert {d.strength: decoded(d.path) for d in made} == {3: [(10.0, 10.0)], 0: [(50.0, 50.0)]}


def test_thousands_of_records_share_a_coarser_raster() -> None:
    at = np.random.default_rng(0).uniform(10, 200, 4000)
    fine, coarse = (plots.dots(at[:n], at[:n], np.ones(n, bool)) for n in (3000, 4000))
    assert any(x % 1 for d in fine for x, _ in decoded(d.path))
    assert not any(x % 1 or y % 1 for d in coarse for x, y in decoded(d.path))


def feature(values: list[float], contributions: list[float]) -> ShapFeature:
    return ShapFeature("f", "", "", 1.0, 0.0, np.array(values), np.array(contributions))


def test_swarm_is_shaded_by_value_and_placed_by_contribution() -> None:
    one = feature([1.0, 2.0, 3.0, 4.0, 5.0], [-2.0, -1.0, 0.0, 1.0, 2.0])
    axis = plots.swarm_axis([one], "plain", 300)
    xs = [decoded(path)[0][0] for path in plots.swarm(one, axis).dots]
    assert xs == sorted(xs)
    assert xs[2] == pytest.approx(150)


def test_a_feature_that_never_varies_is_neutral() -> None:
    assert set(plots.shades(np.ones(4))) == {plots.SHADES // 2}


def test_swarm_axis_names_factors_in_log_space() -> None:
    axis = plots.swarm_axis([feature([1, 2], [-0.7, 0.7])], "log")
    labels = [t.label for t in axis.ticks]
    assert "×1" in labels
    assert any(label.startswith("×") and label != "×1" for label in labels)
    at = {t.label: t.at for t in axis.ticks}
    assert at["×1"] == pytest.approx(axis.width / 2)


def test_histogram_counts_zeros_apart() -> None:
    labels = label_facts(np.array([0.0, 0.0, 1.0, 10.0, 1000.0, np.nan]), whole=True, log=True)
    assert (labels.n, labels.n_missing, int(labels.counts.sum())) == (5, 1, 3)
    bars = plots.histogram(labels)
    assert bars.zero_height == bars.height
    assert bars.path.count("z") == 3


@pytest.mark.parametrize("values", [[5.0], [3.0, 3.0], [0.0, 0.0], [0.25, 0.75, 1.0], [-0.0, 2.0]])
@pytest.mark.parametrize("log", [True, False])
def test_histogram_of_few_or_equal_labels(values: list[float], log: bool) -> None:
    labels = label_facts(np.array(values), whole=False, log=log)
    n_zeros = sum(v == 0 for v in values) if labels.log_bins else 0
    assert int(labels.counts.sum()) + n_zeros == len(values)
    plots.histogram(labels)
