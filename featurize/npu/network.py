"""A whole network: its operations one after the other, with a plan of the memories.

Tensors between two operations lie in the cache while it has room, those of the network's interface do not. Weights
are fetched into the cache ahead of time: while the operation before runs, if it takes long enough, else the first
channels' part is waited for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .cost import Cost, cost, passes
from .devices import Npu, TensorOp

CACHE_BYTES = 393216
_FIRST_CHANNELS = 16
"""What is waited for before an operation can start."""


@dataclass(frozen=True)
class NpuStep:
    """One operation with the tensors it touches."""

    op: TensorOp | None
    """None: nothing is run, what writes and reads the tensors does so elsewhere."""
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    times: int = 1
    """How often it is run, on parts."""


def step_costs(steps: Sequence[NpuStep], sizes: Mapping[int, float], npu: Npu) -> list[Cost]:
    """What each step takes, with what it waits for its weights in its cycles; `sizes`: bytes of each tensor."""
    cached, _ = _cached(steps, sizes)
    made = {value for step in steps for value in step.writes}
    found: list[Cost] = []
    slack = 0.0
    for step in steps:
        if step.op is None:
            continue
        encoded = int(encoded_weights(step.op))
        target = bool(step.writes) and step.writes[0] in cached
        depth = step.op.output[3]
        ahead = _are_fetched_ahead(step.op, npu)
        op = dataclasses.replace(
            step.op,
            weight_bytes=encoded,
            input_cached=npu.shared or (bool(step.reads) and step.reads[0] in cached),
            output_cached=npu.shared or target,
            input_bricks=bool(step.reads) and step.reads[0] in made,
            output_bricks=target,
            weights_cached=ahead,
        )
        one = cost(op, npu)
        waiting = 0.0
        if ahead:
            latency = npu.constants.read_latency
            whole = encoded / npu.constants.copied + latency
            if whole > slack:
                first = encoded * min(1.0, _FIRST_CHANNELS / depth) / npu.constants.copied + latency
                waiting = max(first - slack, whole - slack - one.compute, 0.0)
        compute = one.compute + waiting
        slack = max(compute, one.cycles)
        found.append(dataclasses.replace(one, cycles=slack, compute=compute).times(step.times))
    return found


def network_cost(steps: Sequence[NpuStep], sizes: Mapping[int, float], npu: Npu) -> Cost:
    """The sum of `step_costs`."""
    total = Cost()
    for one in step_costs(steps, sizes, npu):
        total += one
    return total


def most_bytes(steps: Sequence[NpuStep], sizes: Mapping[int, float], npu: Npu) -> float:
    """Most bytes at once of tensors and weights in the cache; where all tensors lie in it, the interface's too."""
    if npu.shared:
        alive = _alive(steps, sizes)
    else:
        _, alive = _cached(steps, sizes)
    most = 0.0
    for at, step in enumerate(steps):
        weights = encoded_weights(step.op) if step.op is not None and _are_fetched_ahead(step.op, npu) else 0.0
        most = max(most, alive[at] + weights)
    return most


def _alive(steps: Sequence[NpuStep], sizes: Mapping[int, float]) -> list[float]:
    """Bytes of all tensors at each step: arguments from the start, results to the end."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, step in enumerate(steps):
        for value in step.reads:
            first.setdefault(value, 0)
            last[value] = at
        for value in step.writes:
            first.setdefault(value, at)
    alive = [0.0] * len(steps)
    for value, start in first.items():
        for at in range(start, last.get(value, len(steps) - 1) + 1):
            alive[at] += sizes[value]
    return alive


def encoded_weights(op: TensorOp) -> float:
    """Bytes of the weights as they are stored, with a bias and a scale of 10 bytes for each channel."""
    if not op.weight_bytes:
        return 0.0
    return 1.02 * op.weight_bytes + 14.0 * op.output[3] + 100.0


def _are_fetched_ahead(op: TensorOp, npu: Npu) -> bool:
    """Weights that are read more than once, if they leave most of the cache to the tensors."""
    return 0 < encoded_weights(op) < CACHE_BYTES // 3 and passes(op, npu) > 1


def _cached(steps: Sequence[NpuStep], sizes: Mapping[int, float]) -> tuple[set[int], list[float]]:
    """Tensors between operations, in the order in which they are made, while all that are alive at once fit; and the
    bytes of those alive at each step."""
    made = {value: at for at, step in enumerate(steps) for value in step.writes}
    last = {value: at for at, step in enumerate(steps) for value in step.reads}
    alive = [0.0] * len(steps)
    found: set[int] = set()
    for value, start in made.items():
        end = last.get(value, -1)
        if end < start:
            continue  # the network's result
        size = sizes[value]
        if max(alive[start : end + 1], default=math.inf) + size > CACHE_BYTES:
            continue
        for at in range(start, end + 1):
            alive[at] += size
        found.add(value)
    return found, alive
