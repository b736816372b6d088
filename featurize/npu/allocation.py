"""Which tensors stay in the cache: all if they fit, else those that are read and written most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .cost import input_elements
from .devices import Npu
from .steps import Step, Tensor

_MOST_COMPETING = 20
"""Tensors that are chosen from at once."""
_MOST_TRIED = 20_000
"""Subsets that are tried then."""


@dataclass
class _Range:
    """Tensors that share a place, from the time when the first is made to the time when the last is read."""

    start: int
    end: int
    tensors: list[Tensor]

    @property
    def bytes(self) -> int:
        return max(tensor.bytes for tensor in self.tensors)


def _ranges(steps: Sequence[Step]) -> list[_Range]:
    """Of all tensors that are no constants; a step takes two units of time. What is made element by element may take
    the place of what it is made from."""
    found: list[_Range] = []
    of: dict[int, _Range] = {}
    for at, step in enumerate(steps):
        for tensor in (*step.reads, *step.chained_reads):
            if id(tensor) not in of and tensor.interface == "input":
                of[id(tensor)] = _Range(0, 2 * max(tensor.readers), [tensor])
                found.append(of[id(tensor)])
        made = step.writes
        if id(made) in of:
            continue
        last = 2 * len(steps) if made.interface == "output" else 2 * max(made.readers, default=at)
        inner = step.op.kind == "elements" and len(made.makers) == 1 and not made.interface
        same = next((t for t in (*step.reads, *step.chained_reads) if inner and _is_replaced(t, made, at)), None)
        if same is not None and id(same) in of:
            of[id(made)] = of[id(same)]
            of[id(made)].end = max(of[id(made)].end, last)
            of[id(made)].tensors.append(made)
        else:
            of[id(made)] = _Range(2 * min(made.makers), last, [made])
            found.append(of[id(made)])
    return found


def _is_replaced(tensor: Tensor, made: Tensor, at: int) -> bool:
    alike = (tensor.shape, tensor.bits, tensor.bricks) == (made.shape, made.bits, made.bricks)
    return alike and not tensor.interface and tensor.readers == [at]


def _buffers(steps: Sequence[Step]) -> list[int]:
    """Bytes that weights take in the cache, at each time."""
    used = [0] * (2 * len(steps) + 2)
    for at, step in enumerate(steps):
        if step.buffered:
            for time in range(max(2 * at - (2 if step.ahead_bytes else 0), 0), 2 * at + 1):
                used[time] += step.buffer_bytes
    return used


def most_bytes(steps: Sequence[Step], *, cached: bool) -> int:
    """Most bytes at once of tensors in the cache and of weights that are buffered there; or of tensors elsewhere."""
    used = _buffers(steps) if cached else [0] * (2 * len(steps) + 2)
    for one in _ranges(steps):
        if one.tensors[0].cached == cached:
            for time in range(one.start, one.end + 1):
                used[time] += one.bytes
    return max(used, default=0)


def fill_cache(steps: Sequence[Step], npu: Npu) -> None:
    """Keep tensors between operations in the cache: all if they fit, else those that are read and written most."""
    used = _buffers(steps)
    ranges = [one for one in _ranges(steps) if not one.tensors[0].interface and one.tensors[-1].readers]
    most = list(used)
    for one in ranges:
        for time in range(one.start, one.end + 1):
            most[time] += one.bytes
    fits = max(most, default=0) <= npu.cache_bytes
    kept = set(range(len(ranges))) if fits else _competing(ranges, used, most, npu.cache_bytes, steps, npu)
    together = {id(tensor): one for one in ranges for tensor in one.tensors}
    for number, one in enumerate(ranges):
        for tensor in one.tensors:
            tensor.cached = number in kept
    for step in steps:
        if step.op.kind == "elements" and len(step.reads) == 2:
            first, second = step.reads
            if first.cached != second.cached and "constant" not in (first.interface, second.interface):
                for tensor in together[id(first if first.cached else second)].tensors:
                    tensor.cached = False


def _competing(
    ranges: Sequence[_Range],
    used: list[int],
    most: list[int],
    limit: int,
    steps: Sequence[Step],
    npu: Npu,
) -> set[int]:
    """The ranges that are kept, by a search over those that overlap where not all fit."""
    kept: set[int] = set()
    rivals: list[int] = []
    for number, one in enumerate(ranges):
        if max(used[one.start : one.end + 1]) + one.bytes > limit:
            for time in range(one.start, one.end + 1):
                most[time] -= one.bytes
        else:
            rivals.append(number)
    contested = []
    for number in rivals:
        one = ranges[number]
        if max(most[one.start : one.end + 1]) <= limit:
            kept.add(number)
            for time in range(one.start, one.end + 1):
                used[time] += one.bytes
        else:
            contested.append(number)
    groups: list[list[int]] = []
    latest = -1
    for number in contested:
        if not groups or ranges[number].start > latest or len(groups[-1]) > _MOST_COMPETING:
            groups.append([])
            latest = -1
        groups[-1].append(number)
        latest = max(latest, ranges[number].end)
    for group in groups:
        worth = {number: _accesses(ranges[number].tensors, steps, npu) for number in group}
        chosen = _best(group, ranges, used, limit, worth)
        for number in chosen:
            for time in range(ranges[number].start, ranges[number].end + 1):
                used[time] += ranges[number].bytes
        kept.update(chosen)
    return kept


def _accesses(together: Sequence[Tensor], steps: Sequence[Step], npu: Npu) -> float:
    """Elements that are read from and written to tensors that share a place."""
    total = 0.0
    for tensor in together:
        for at in tensor.readers:
            if steps[at].reads and steps[at].reads[0] is tensor:
                total += input_elements(steps[at].op, npu, tensor.bricks)
            else:
                total += math.prod(tensor.shape)
        total += math.prod(tensor.shape) * len(tensor.makers)
    return total


def _best(
    group: Sequence[int],
    ranges: Sequence[_Range],
    used: list[int],
    limit: int,
    worth: dict[int, float],
) -> list[int]:
    """The subset of most worth that fits, by branch and bound in the order of the ranges."""
    rest = [0.0] * (len(group) + 1)
    for at in range(len(group) - 1, -1, -1):
        rest[at] = rest[at + 1] + worth[group[at]]
    best: tuple[float, list[int]] = (-1.0, [])
    budget = _MOST_TRIED

    def search(at: int, score: float, chosen: list[int]) -> None:
        nonlocal best, budget
        budget -= 1
        if at == len(group):
            if score > best[0]:
                best = (score, list(chosen))
            return
        if score + rest[at] <= best[0] or (budget < 0 <= best[0]):
            return
        start, end, size = ranges[group[at]].start, ranges[group[at]].end, ranges[group[at]].bytes
        if max(used[start : end + 1]) + size <= limit:
            for time in range(start, end + 1):
                used[time] += size
            chosen.append(group[at])
            search(at + 1, score + worth[group[at]], chosen)
            chosen.pop()
            for time in range(start, end + 1):
                used[time] -= size
        search(at + 1, score, chosen)

    search(0, 0.0, [])
    return best[1]
