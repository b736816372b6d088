"""How an NPU would run a program on whole tensors: the feature group `accelerator` sums it up.

Follows the rules by which Arm's compiler Vela plans and costs for Ethos-U, as its documentation and published sources
(`regor/architecture`) state them; the text here is our own.
"""

from .cost import Cost, cost, passes
from .devices import U55, U85, Npu, TensorOp
from .network import NpuStep, encoded_weights, most_bytes, network_cost, step_costs

__all__ = [
    "U55",
    "U85",
    "Cost",
    "Npu",
    "NpuStep",
    "TensorOp",
    "cost",
    "encoded_weights",
    "most_bytes",
    "network_cost",
    "passes",
    "step_costs",
]
