"""The plan of a network on each NPU, added up: the values of the feature group."""

from __future__ import annotations

from collections.abc import Sequence

from ..program import Op, Program
from .allocation import most_bytes
from .devices import U55, U85, Npu
from .graph import UnknownNetwork, is_network
from .lowering import lower
from .schedule import plan_memories, step_costs
from .steps import Step

NPUS = {"u85": U85, "u55": U55}


def totals(program: Program, function: Op) -> dict[str, float]:
    """`npu.<device>.<total>` of a network of fixed shapes; nothing for any other function."""
    out: dict[str, float] = {}
    if is_network(function):
        try:
            for name, device in NPUS.items():
                steps = plan_memories(lower(program, function, device), device)
                out.update({f"npu.{name}.{part}": value for part, value in _totals(steps, device).items()})
        except UnknownNetwork:
            return {}
    return out


def _totals(steps: Sequence[Step], device: Npu) -> dict[str, float]:
    costs = step_costs(steps, device)
    cycles, macs = sum(c.cycles for c in costs), sum(c.macs for c in costs)
    weighted = {step.weights_of: step for step in steps if step.weights}.values()
    weights, scales = sum(s.weight_bytes for s in weighted), sum(s.scale_bytes for s in weighted)
    return {
        "cycles": cycles,
        "compute": sum(c.compute for c in costs),
        "steps": float(len(steps)),
        "tensor_bytes": sum(c.tensor_bytes for c in costs),
        "cache_bytes": sum(c.cache_bytes for c in costs),
        "constant_bytes": sum(c.constant_bytes for c in costs),
        "macs": macs,
        "utilization": macs / (device.macs * cycles) if cycles else 0.0,
        "most_bytes": float(most_bytes(steps, cached=True)),
        "arena_bytes": float(most_bytes(steps, cached=False)),
        "weight_bytes": float(weights),
        "encoded_bytes": float(weights + scales),
    }
