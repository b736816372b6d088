"""The plan as a person reads it."""

from __future__ import annotations

import pytest

from irgauge.featurize.featurizer import functions_of
from irgauge.featurize.npu.devices import U85
from irgauge.featurize.npu.listing import planned_steps
from irgauge.featurize.reader import read

from .conftest import network


def test_each_step_has_the_line_that_makes_it() -> None:
    text = network(lambda n, x: n.max_pool(n.pad(n.conv2d(x, 24, act="relu"), (0, 3, 0, 0), (0, 2, 0, 0))))
    program = read(text)
    ((_, function),) = functions_of(program)
    steps = planned_steps(program, function, U85)
    lines = text.splitlines()
    written = {"conv": "tosa.conv2d", "copy": "tosa.pad", "pool": "tosa.max_pool2d"}
    assert [written[step.kind] in lines[step.line - 1] for step in steps] == [True] * 4
    assert sum(step.cycles for step in steps) > 0
    assert steps[0].weight_bytes > 0
    assert steps[0].cached


@pytest.mark.parametrize("text", ["func.func @f(%a: tensor<?x4x4x8xi8>) {\n  return\n}\n", "module {\n}\n"])
def test_what_is_no_network_has_none(text: str) -> None:
    program = read(text)
    ((_, function),) = functions_of(program)
    assert planned_steps(program, function, U85) == []
