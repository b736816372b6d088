"""Estimates are positive, finite, and grow with the work."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgauge.data.targets import targets_of
from irgauge.errors import SchemaError
from irgauge.models import analytical

from .conftest import NEEDED

WITH_ESTIMATE = [t.name for t in targets_of("kernel") if analytical.has_estimate(t.name)]
EVERY = [name for track in ("kernel", "npu") for t in targets_of(track) if (name := analytical.name_for(t))]
COLUMNS = analytical.needed_columns(NEEDED, EVERY)


@settings(deadline=None)
@given(
    st.lists(st.floats(-1024, 2.0**60, width=32, allow_subnormal=False), min_size=len(COLUMNS), max_size=len(COLUMNS)),
    st.sampled_from(WITH_ESTIMATE),
)
def test_every_estimate_is_positive_and_finite(values: list[float], target: str) -> None:
    (estimate,) = analytical.estimate(target, np.array([values], np.float32), COLUMNS)
    assert 0 < estimate < 1e31


@pytest.mark.parametrize("target", ["instructions_executed", "data_refs", "latency_ns"])
def test_ten_times_the_work_costs_about_ten_times_as_much(target: str) -> None:
    row = np.full((1, len(COLUMNS)), 1e5, np.float32)
    ratio = analytical.estimate(target, 10 * row, COLUMNS)[0] / analytical.estimate(target, row, COLUMNS)[0]
    assert 9 < ratio < 10.5


def test_misses_cost_time() -> None:
    row = np.zeros((1, len(COLUMNS)), np.float32)
    row[0, COLUMNS["codegen.cycles"]] = 1e6
    far = row.copy()
    far[0, COLUMNS["access.lines_llc"]] = 1e6
    assert analytical.estimate("latency_ns", far, COLUMNS)[0] > 5 * analytical.estimate("latency_ns", row, COLUMNS)[0]


def test_registers_and_shares_have_no_estimate() -> None:
    assert not any(analytical.has_estimate(name) for name in ("gpr_used", "vec_used", "vector_utilization", "mca_ipc"))


def test_a_schema_without_a_needed_feature_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"work\.stores"):
        analytical.needed_columns(tuple(n for n in NEEDED if n != "work.stores"), WITH_ESTIMATE)


def test_only_what_the_estimates_read_is_needed() -> None:
    names = ("access.lines_l1", "codegen.static_size", "other")
    assert analytical.needed_columns(names, ["static_instructions", "", "l1d_misses"]) == {
        "access.lines_l1": 0,
        "codegen.static_size": 1,
    }
    assert analytical.needed_columns((), [""]) == {}
    assert analytical.reads("spills") == ("liveness.over_16",)
