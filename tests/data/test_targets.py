from __future__ import annotations

import pytest

from irgauge.data.targets import KINDS, TARGETS, find_target
from irgauge.errors import UsageError


def test_columns_are_unique_and_kinds_known() -> None:
    assert len({t.column for t in TARGETS}) == len(TARGETS)
    assert {t.kind for t in TARGETS} <= set(KINDS)


def test_targets_are_found_by_both_names() -> None:
    assert find_target("latency_ns") is find_target("x86-64-v3/latency_ns")


def test_an_unknown_target_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown target 'latency'.*x86-64-v3/latency_ns"):
        find_target("latency")
