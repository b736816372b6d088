"""Small networks, and the steps that an NPU runs for them."""

from __future__ import annotations

import random
from collections.abc import Callable

from irgauge.data.families.tosa_text import Net, Tensor
from irgauge.featurize.featurizer import functions_of
from irgauge.featurize.npu.devices import Npu
from irgauge.featurize.npu.lowering import lower
from irgauge.featurize.npu.schedule import plan_memories
from irgauge.featurize.npu.steps import Step
from irgauge.featurize.reader import read


def network(write: Callable[[Net, Tensor], Tensor], *shape: int, element: str = "i8") -> str:
    """Text of a network with one input, of 24 x 20 x 16 unless a shape is given."""
    n = Net(random.Random(0), element)
    return n.finish(write(n, n.input(*(shape or (1, 24, 20, 16)))))


def steps_of(text: str, npu: Npu) -> list[Step]:
    """As they run, with their memories planned."""
    program = read(text)
    ((_, function),) = functions_of(program)
    return plan_memories(lower(program, function, npu), npu)


def kinds(text: str, npu: Npu) -> list[str]:
    return [step.op.kind for step in steps_of(text, npu)]
