"""What arithmetic alone says about a target: the roofline and its relatives, from features, without learning.

Used three ways: as the baseline "roofline" (times one learned factor), as a candidate, and as the margin that the
learned models correct. The last is why a program larger than any in the training set is not cut off at the largest
label seen: the estimate grows with it and the trees only say by what factor it is wrong.

Estimates are in the target's unit, > 0 and finite. They need no accuracy (a constant factor is learned); they need
the right growth. Gpr, vector registers, shares and mca's figures do not grow with a program, so they have no
estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import SchemaError
from .trees import Float32, Float64


@dataclass(frozen=True)
class Machine:
    """One core of the machine behind `x86-64-v3` labels: AMD Zen 4 running code for AVX2 (AMD document 57647, "Software
    Optimization Guide for the Zen4 Microarchitecture", and 56665 for cache sizes)."""

    ghz: float = 3.7
    """Clock under one busy core."""
    flops_per_cycle: float = 8.0
    """Half of 2 × 4 double FMAs: between scalar and full-width code, since which of both it becomes is what has to be
    learned."""
    accesses_per_cycle: float = 2.0
    """Loads and stores the first-level cache serves per cycle."""
    issue_per_cycle: float = 4.0
    """Operations completed per cycle in ordinary code."""
    l1_miss_cycles: float = 4.0
    """Per line brought from the second level, with prefetching: 64 bytes at 16 to 32 bytes a cycle."""
    memory_miss_cycles: float = 14.0
    """Per line brought from beyond the second level, with prefetching: about 17 GB/s a core."""
    divide_cycles: float = 5.0
    """Per scalar division, pipelined."""
    math_cycles: float = 20.0
    """Per call of exp, sin, pow ..."""
    call_ns: float = 5.0
    """A call of an empty function, as measured."""


ZEN4 = Machine()

Column = Callable[[str], Float64]


def _accesses(c: Column) -> Float64:
    return c("work.loads") + c("work.stores")


def _instructions(c: Column) -> Float64:
    return 5 + _accesses(c) + c("work.float_ops") + 2 * c("work.loop_iterations") + 40 * c("work.math_calls")


def _latency_ns(c: Column) -> Float64:
    m = ZEN4
    work = np.maximum.reduce(
        [c("work.flops") / m.flops_per_cycle, _accesses(c) / m.accesses_per_cycle, _instructions(c) / m.issue_per_cycle]
    )
    slow = m.divide_cycles * c("work.divs") + m.math_cycles * c("work.math_calls")
    memory = m.l1_miss_cycles * c("access.lines_l1") + m.memory_miss_cycles * c("access.lines_llc")
    return m.call_ns + (np.maximum(work, memory) + slow) / m.ghz


def _static_instructions(c: Column) -> Float64:
    return 4 + c("ops.total")


_ESTIMATES: Mapping[str, Callable[[Column], Float64]] = {
    "static_instructions": _static_instructions,
    "code_bytes": lambda c: 5 * _static_instructions(c),
    "spills": lambda c: (
        np.maximum(c("liveness.max_live_float") - 16, 0) + np.maximum(c("liveness.max_live_scalar") - 16, 0) + 1
    ),
    "reloads": lambda c: (
        np.maximum(c("liveness.max_live_float") - 16, 0) + np.maximum(c("liveness.max_live_scalar") - 16, 0) + 1
    ),
    "instructions_executed": _instructions,
    "data_refs": lambda c: 2 + _accesses(c),
    "l1d_misses": lambda c: 1 + c("access.lines_l1"),
    "ll_misses": lambda c: 1 + c("access.lines_llc"),
    "branch_mispredicts": lambda c: 2 + c("work.loop_iterations") / np.maximum(c("loops.innermost_trip_mean"), 1),
    "latency_ns": _latency_ns,
}

NEEDED = (
    "access.lines_l1",
    "access.lines_llc",
    "liveness.max_live_float",
    "liveness.max_live_scalar",
    "loops.innermost_trip_mean",
    "ops.total",
    "work.divs",
    "work.float_ops",
    "work.flops",
    "work.loads",
    "work.loop_iterations",
    "work.math_calls",
    "work.stores",
)
"""Features that the estimates read."""


def has_estimate(target: str) -> bool:
    """Whether `estimate` knows the target ("latency_ns", without the device)."""
    return target in _ESTIMATES


def needed_columns(names: tuple[str, ...]) -> dict[str, int]:
    """Where the features that estimates read stand among `names`.

    Raises
    ------
    SchemaError
        One of them is missing.
    """
    where = {name: i for i, name in enumerate(names)}
    missing = [name for name in NEEDED if name not in where]
    if missing:
        raise SchemaError(f"the analytical estimate needs features that the schema lacks: {', '.join(missing)}")
    return {name: where[name] for name in NEEDED}


def estimate(target: str, X: Float32, columns: Mapping[str, int]) -> Float64:
    """The estimate of one target for each row.

    Parameters
    ----------
    target : a target for which `has_estimate` is true
    X : float32 array of shape (n_rows, n_features), finite
    columns : of `needed_columns`

    Returns
    -------
    ndarray of shape (n_rows,), in the target's unit, > 0 and finite.
    """

    def column(name: str) -> NDArray[np.float64]:
        return np.maximum(X[:, columns[name]].astype(np.float64), 0)

    return np.asarray(np.clip(_ESTIMATES[target](column), 1e-3, 1e30), np.float64)
