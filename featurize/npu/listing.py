"""The plan of a network as a person reads it: what the NPU runs for each line, and what that takes."""

from __future__ import annotations

from dataclasses import dataclass

from ..program import Op, Program
from .devices import Npu, Shape
from .graph import UnknownNetwork, is_network
from .lowering import lower
from .schedule import plan_memories, step_costs


@dataclass(frozen=True)
class PlannedStep:
    """One step of the NPU."""

    line: int
    """Of the program's text, from 1; 0 for what is written nowhere."""
    kind: str
    """As `TensorOp.kind`."""
    input: Shape
    output: Shape
    cycles: float
    waits_for_memory: bool
    """Whether memory takes longer than computing."""
    weight_bytes: int
    cached: bool
    """Whether what it makes stays in SRAM."""


def planned_steps(program: Program, function: Op, npu: Npu) -> list[PlannedStep]:
    """All steps in the order in which they run; none for what is no network that the NPU could run."""
    if not is_network(function):
        return []
    try:
        steps = plan_memories(lower(program, function, npu), npu)
    except UnknownNetwork:
        return []
    return [
        PlannedStep(
            program.text.count("\n", 0, step.place) + 1 if step.place >= 0 else 0,
            step.op.kind,
            step.op.input,
            step.op.output,
            cost.cycles,
            cost.cycles > cost.compute,
            step.weight_bytes,
            step.writes.cached,
        )
        for step, cost in zip(steps, step_costs(steps, npu), strict=True)
    ]
