"""Times are measured, on real programs and with the real tools."""

from __future__ import annotations

import math
import random

from irgauge.data.families.tosa_text import Net
from irgauge.reports.times import _tool_seconds, time_facts


def _network() -> str:
    n = Net(random.Random(0), "i8")
    return n.finish(n.conv2d(n.input(1, 8, 8, 4), 8, 1))


def test_predictions_of_short_and_long_programs_are_timed(judged) -> None:
    found = time_facts(judged.artifact, judged.frame, "kernel")
    assert found is not None
    assert found.n_programs == 9
    assert 0 < found.median_s <= found.longest_s < 60
    assert math.isnan(found.tool_median_s)  # labels of kernels come from many tools and runs


def test_without_texts_nothing_is_timed(judged) -> None:
    assert time_facts(judged.artifact, judged.frame.drop(columns="mlir"), "kernel") is None


def test_the_tools_are_timed_where_they_take_the_network() -> None:
    (taken,) = _tool_seconds([_network(), "module {}" * 2])
    assert 0.01 < taken < 60
