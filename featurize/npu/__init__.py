"""Feature group `npu`: what a quantized network costs on two NPUs, as their compiler plans it.

From text to cost: `graph.py` (operations on tensors), `lowering.py` (the steps that the NPU runs), `schedule.py` (what
lies in which memory, and what that takes), `totals.py` (what the group says of it) and, for one operation, `blocks.py`
and `cost.py`. All features are 0 for a function that is not a TOSA network of fixed shapes.
"""

from __future__ import annotations

from ..function_view import FunctionView

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
    for name in _NAMES
    for part, (meaning, unit) in _PARTS.items()
}


def npu(view: FunctionView) -> dict[str, float]:
    """Values of `FEATURES`."""
    from .totals import totals  # for networks alone: a fifth of the time that our modules take to load

    return {**dict.fromkeys(FEATURES, 0.0), **totals(view.program, view.function)}
