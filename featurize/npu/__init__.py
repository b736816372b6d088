"""Feature group `npu`: what a quantized network costs on two NPUs, as their compiler plans it.

From text to cost: `graph.py` (operations on tensors), `lowering.py` (the steps that the NPU runs), `schedule.py` (what
lies in which memory, and what that takes) and, for one operation, `blocks.py` and `cost.py`. All features are 0
for a function that is not a TOSA network of fixed shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..function_view import FunctionView
from .allocation import most_bytes
from .devices import U55, U85, Npu
from .graph import UnknownNetwork, is_network
from .lowering import lower
from .schedule import plan_memories, step_costs
from .steps import Step

NPUS = {"u85": U85, "u55": U55}

_PARTS: dict[str, tuple[str, str]] = {
    "cycles": ("cycles of {npu}, operation after operation", "cycles"),
    "compute": ("those if memory were never waited for", "cycles"),
    "steps": ("operations that it runs, with what is chained to them", "count"),
    "tensor_bytes": ("bytes that tensors outside of the cache are read and written with", "bytes"),
    "cache_bytes": ("bytes that the cache is read and written with", "bytes"),
    "constant_bytes": ("bytes of weights, scales and tables that are fetched", "bytes"),
    "macs": ("multiply-accumulates as Vela counts them: those of poolings too", "count"),
    "utilization": ("these over the cycles and all multipliers", "share"),
    "most_bytes": ("most bytes of tensors and weights in SRAM at once", "bytes"),
    "arena_bytes": ("most bytes of tensors alive at once outside of the cache", "bytes"),
    "weight_bytes": ("bytes of weights as they are stored", "bytes"),
    "encoded_bytes": ("bytes of weights and scales as they are stored", "bytes"),
}
_NAMES = {"u85": "an Ethos-U85 with 256 multipliers", "u55": "an Ethos-U55 with 128 multipliers"}

FEATURES: dict[str, tuple[str, str]] = {
    f"npu.{name}.{part}": (meaning.format(npu=_NAMES[name]), unit)
    for name in NPUS
    for part, (meaning, unit) in _PARTS.items()
}


def npu(view: FunctionView) -> dict[str, float]:
    """Values of `FEATURES`."""
    out = dict.fromkeys(FEATURES, 0.0)
    if is_network(view.function):
        try:
            for name, device in NPUS.items():
                steps = plan_memories(lower(view.program, view.function, device), device)
                out.update({f"npu.{name}.{part}": value for part, value in _totals(steps, device).items()})
        except UnknownNetwork:
            return dict.fromkeys(FEATURES, 0.0)
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
