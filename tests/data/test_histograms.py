from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from irgauge.data.histograms import BINS, histogram, histograms_svg
from irgauge.data.targets import targets_of


@pytest.mark.parametrize(
    "values",
    [[1.0, 2.0, 3.0], [0.0, 0.0, 5.0], [1.0, 1e9, 3.3, 0.0], [7.0], [0.0], list(np.geomspace(0.1, 1e7, 1000))],
)
def test_every_value_is_in_one_bin(values: list[float]) -> None:
    found = histogram(np.array(values))
    assert len(found.counts) == BINS
    assert found.counts.sum() + found.zeros == len(values)
    assert found.zeros == values.count(0.0)
    assert (np.diff(found.edges) > 0).all()


def test_a_long_tail_is_shown_in_ratios() -> None:
    assert histogram(np.array([1.0, 10.0, 1e6])).log
    assert not histogram(np.array([1.0, 16.0])).log


def test_the_picture_has_a_panel_for_each_labelled_target() -> None:
    spills, latency = "x86-64-v3/spills", "x86-64-v3/latency_ns"
    frame = pd.DataFrame({spills: [0.0, 3.0, 3.0], latency: [np.nan, 10.0, 1e6], "neoverse-v2/spills": [np.nan] * 3})
    root = ET.fromstring(histograms_svg(frame, targets_of("kernel")))
    namespace = "{http://www.w3.org/2000/svg}"
    panels = root.findall(f"{namespace}g")
    assert [g.findtext(f"{namespace}text") for g in panels] == [spills, latency]
    titles = [t.text for g in panels for t in g.iter(f"{namespace}title")]
    assert sum(int(str(title).rsplit(" ", 1)[1]) for title in titles) == 5
