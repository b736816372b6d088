"""A plan for a whole network: what lies in which memory, and what each step then takes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .allocation import fill_cache
from .cost import Place, input_elements, macs, op_cycles
from .devices import Npu, TensorOp
from .steps import Step, Tensor
from .traffic import Access, Stream, Weights, access
from .weights import buffer_weights, copied_cycles, encoded_weights, read_cycles, slice_cycles, unmoved_cycles

_TABLE_BYTES = {8: 256, 16: 2048, 32: 1024}
_FEW_READS, _MANY_READS = 2, 2.95
"""A convolution that reads an input more often than that may have it copied; the second where weights decide."""


@dataclass(frozen=True)
class Cost:
    """What operations take."""

    cycles: float = 0.0
    compute: float = 0.0
    """Cycles if memory were never waited for."""
    tensor_bytes: float = 0.0
    cache_bytes: float = 0.0
    constant_bytes: float = 0.0
    macs: float = 0.0


def plan_memories(steps: Sequence[Step], npu: Npu) -> list[Step]:
    """Decide for each step and tensor where its bytes lie: the steps, with those that copy an input to the cache."""
    for step in steps:
        if step.weights:
            step.weight_bytes, step.scale_bytes = encoded_weights(step, npu)
    if not npu.shared:
        steps = _staged(steps, npu)
    for number, step in enumerate(steps):
        step.writes.makers.append(number)
        for tensor in (*step.reads, *step.chained_reads):
            tensor.readers.append(number)
    buffer_weights(steps, npu)
    if npu.shared:
        for step in steps:
            for tensor in (*step.reads, *step.chained_reads, step.writes):
                tensor.cached = tensor.interface != "constant"
    else:
        fill_cache(steps, npu)
    return list(steps)


def _staged(steps: Sequence[Step], npu: Npu) -> list[Step]:
    """With a copy to the cache before a convolution that reads one of the network's inputs more than twice.

    When Vela copies is not documented; this is what separates the networks where it does from the others.
    """
    reads = Counter(id(tensor) for step in steps for tensor in (*step.reads, *step.chained_reads))
    found: list[Step] = []
    for step in steps:
        source = step.reads[0]
        if source.interface == "input" and reads[id(source)] == 1 and step.op.kind == "conv" and _is_staged(step, npu):
            made = Tensor(source.shape, source.bits, bricks=False, staged=True)
            op = TensorOp("copy", source.shape, source.shape, input_bits=source.bits, output_bits=source.bits)
            found.append(Step(op, [source], made))
            step.reads[0] = made
        found.append(step)
    return found


def _is_staged(step: Step, npu: Npu) -> bool:
    op = step.op
    elements = input_elements(op, npu, False)
    times = elements / math.prod(op.input)
    run = slice_cycles(step, op.output[3], npu, staged=False)
    reading = read_cycles(elements * op.input_bits / 8, npu.tensors.read, npu.tensors)
    weights = unmoved_cycles(step, npu)
    if step.reads[0].bytes > npu.cache_bytes or times <= _FEW_READS:
        return False
    return reading > run if run > weights else times > _MANY_READS and 2 * reading > run


def _place(tensor: Tensor, npu: Npu) -> Place:
    if tensor.interface == "constant":
        return Place(npu.constants, tensor.bricks)
    return Place(npu.cache if tensor.cached or npu.shared else npu.tensors, tensor.bricks)


def _target(step: Step, npu: Npu) -> Place:
    """Of the first of a chain: what is chained takes it from where it is made, counted as in memory."""
    return Place(npu.tensors, True) if step.chained else _place(step.writes, npu)


def step_costs(steps: Sequence[Step], npu: Npu) -> list[Cost]:
    """What each step takes, planned with `plan_memories`."""
    found = []
    slack = 0.0
    for step in steps:
        run, moved = _run_cycles(step, npu), _moved(step, npu)
        compute = float(run)
        if step.buffered:
            first, whole = (
                copied_cycles(size, npu.constants, npu.cache) for size in (step.first_bytes, step.stored_bytes)
            )
            compute = max(whole - slack + step.slack_cycles, run + max(first - slack, 0.0))
        table = _TABLE_BYTES.get(step.op.input_bits, 256)
        if step.table:
            waited = copied_cycles(table, npu.constants, npu.cache)
            compute += waited if step.buffered else max(waited - slack, 0.0)
        constants = moved.constant_bytes + (table if step.table or step.fused_table else 0)
        cycles = max(compute, moved.cycles)
        found.append(Cost(cycles, compute, moved.tensor_bytes, moved.cache_bytes, constants, macs(step.op, npu)))
        slack = step.slack_cycles
    return found


def _run_cycles(step: Step, npu: Npu) -> int:
    """Of a step with its weights at hand."""
    weights = None
    if step.weights:
        weights = npu.cache if step.buffered else npu.constants
    return op_cycles(step.op, npu, _place(step.reads[0], npu), _target(step, npu), weights)


def _moved(step: Step, npu: Npu) -> Access:
    """What a step reads and writes."""
    source, target = _place(step.reads[0], npu), _target(step, npu)
    second = _place(step.reads[1], npu) if len(step.reads) > 1 else None
    weights = None
    if step.weights:
        buffer = npu.cache if step.buffered else None
        weights = Weights(step.weight_bytes, step.scale_bytes, npu.constants, buffer, step.ahead_bytes)
    whole = Stream(step.writes.shape, step.writes.bits, _place(step.writes, npu))
    if step.chained:
        streams = tuple(Stream(tensor.shape, tensor.bits, _place(tensor, npu)) for tensor in step.chained_reads)
        return access(step.op, npu, source, None, weights, second, streams, whole)
    if not npu.shared and step.fused and len(step.writes.makers) > 1 and step.op.kind == "conv":
        return access(step.op, npu, source, None, weights, second, (), whole)  # counts all that is joined
    return access(step.op, npu, source, target, weights, second)
