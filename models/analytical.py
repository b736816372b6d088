"""What arithmetic alone says about a target: the roofline and its relatives, from features, without learning.

Used three ways: as the baseline "roofline" (times one learned factor), as a candidate, and as the margin that the
learned models correct. The last is why a program larger than any in the training set is not cut off at the largest
label seen: the estimate grows with it and the trees only say by what factor it is wrong.

Estimates are in the target's unit, > 0 and finite. They need no accuracy (a constant factor is learned); they need
the right growth. Gpr, vector registers, shares and mca's figures do not grow with a program, so they have no
estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.targets import ETHOS_U55, ETHOS_U85, Target
from ..errors import SchemaError
from .trees import Float32, Float64


@dataclass(frozen=True)
class Machine:
    """One core of the machine behind `x86-64-v3` labels, as far as the roofline needs it: AMD Zen 4 (AMD document
    57647, "Software Optimization Guide for the Zen4 Microarchitecture")."""

    ghz: float = 3.7
    """Clock under one busy core."""
    issue_per_cycle: float = 4.0
    """Instructions completed per cycle in ordinary code."""
    l1_miss_cycles: float = 2.0
    """Per line brought from the second level, with prefetching: 64 bytes at 32 bytes a cycle."""
    memory_miss_cycles: float = 7.0
    """Per line brought from beyond the second level, with prefetching: about 34 GB/s a core."""
    bytes_per_instruction: float = 5.5
    """Mean length of an instruction in AVX2 code."""
    call_ns: float = 2.0
    """A call of an empty function."""


ZEN4 = Machine()

Value = Any
"""A float, or an array with one entry per row: the formulas are written once, and give the same bits for both."""
Column = Callable[[str], Value]
SMALLEST, LARGEST = 1e-3, 1e30
"""Estimates are held between these."""


def _smaller(a: Value, b: float) -> Value:
    return min(a, b) if isinstance(a, float) else np.minimum(a, b)


def _latency_ns(c: Column) -> Value:
    memory = ZEN4.l1_miss_cycles * c("access.lines_l1") + ZEN4.memory_miss_cycles * c("access.lines_llc")
    return ZEN4.call_ns + (c("codegen.cycles") + memory) / ZEN4.ghz


def _static_instructions(c: Column) -> Value:
    return 2.0 + c("codegen.static_size")


def _spills(c: Column) -> Value:
    return 1.0 + c("liveness.over_16")


def _data_refs(c: Column) -> Value:
    """Element accesses, reduced as the instructions are by vectorization."""
    accesses = c("work.loads") + c("work.stores")
    scalar = 5.0 + accesses + c("work.float_ops") + c("work.int_ops") + 2.0 * c("work.loop_iterations")
    return 2.0 + accesses * _smaller(c("codegen.instructions") / scalar, 1.0)


def _npu(least: float, *parts: str) -> Callable[[Column], Value]:
    """What the plan of a network says (feature group `npu`): the sum of features, and at least so much."""
    return lambda c: sum((c(f"npu.{part}") for part in parts), start=least)


_ESTIMATES: Mapping[str, Callable[[Column], Value]] = {
    "static_instructions": _static_instructions,
    "code_bytes": lambda c: ZEN4.bytes_per_instruction * _static_instructions(c),
    "spills": _spills,
    "reloads": _spills,
    "mca_cycles": lambda c: 0.5 + c("codegen.hot.unrolled_size") / ZEN4.issue_per_cycle,
    "instructions_executed": lambda c: 2.0 + c("codegen.instructions"),
    "data_refs": _data_refs,
    "l1d_misses": lambda c: 1.0 + c("access.lines_l1"),
    "ll_misses": lambda c: 1.0 + c("access.lines_llc"),
    "branch_mispredicts": lambda c: 2.0 + c("codegen.exits"),
    "latency_ns": _latency_ns,
    f"{ETHOS_U85}/cycles": _npu(1.0, "u85.cycles"),
    f"{ETHOS_U85}/mac_utilization": _npu(0.0, "u85.utilization"),
    f"{ETHOS_U85}/sram_bytes": _npu(16.0, "u85.most_bytes"),
    f"{ETHOS_U85}/dram_bytes": _npu(16.0, "u85.arena_bytes", "u85.encoded_bytes"),
    f"{ETHOS_U85}/dram_traffic_bytes": _npu(16.0, "u85.tensor_bytes", "u85.constant_bytes"),
    f"{ETHOS_U85}/weights_encoded_bytes": _npu(16.0, "u85.weight_bytes"),
    f"{ETHOS_U55}/cycles": _npu(1.0, "u55.cycles"),
    f"{ETHOS_U55}/mac_utilization": _npu(0.0, "u55.utilization"),
    f"{ETHOS_U55}/sram_bytes": _npu(16.0, "u55.most_bytes"),
    f"{ETHOS_U55}/flash_bytes": _npu(16.0, "u55.encoded_bytes"),
    f"{ETHOS_U55}/flash_traffic_bytes": _npu(16.0, "u55.constant_bytes"),
    f"{ETHOS_U55}/weights_encoded_bytes": _npu(16.0, "u55.weight_bytes"),
}


def reads(target: str) -> tuple[str, ...]:
    """The features that an estimate reads, in the order in which it does."""
    seen: dict[str, None] = {}

    def column(name: str) -> float:
        seen[name] = None
        return 1.0

    _ESTIMATES[target](column)
    return tuple(seen)


def has_estimate(name: str) -> bool:
    """Whether `estimate` knows the name: a target's, or a device's target's ("ethos-u85-256/cycles")."""
    return name in _ESTIMATES


def name_for(target: Target) -> str:
    """Under which name there is an estimate of a target; "" if there is none."""
    return next((name for name in (target.column, target.name) if name in _ESTIMATES), "")


def formula(target: str) -> Callable[[Column], Value]:
    """The estimate of a target as a function of its features (>= 0), not yet held between `SMALLEST` and `LARGEST`.

    It adds, multiplies, divides and takes `np.minimum`, so it also takes what records these (`expressions`).
    """
    return _ESTIMATES[target]


def needed_columns(names: tuple[str, ...], estimates: Iterable[str]) -> dict[str, int]:
    """Where the features that these estimates read ("" reads none) stand among `names`.

    Raises
    ------
    SchemaError
        One of them is missing.
    """
    where = {name: i for i, name in enumerate(names)}
    needed = sorted({name for estimate in estimates if estimate for name in reads(estimate)})
    missing = [name for name in needed if name not in where]
    if missing:
        raise SchemaError(f"the analytical estimate needs features that the schema lacks: {', '.join(missing)}")
    return {name: where[name] for name in needed}


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

    def column(name: str) -> Float64:
        return np.maximum(X[:, columns[name]].astype(np.float64), 0.0)

    return np.asarray(np.clip(_ESTIMATES[target](column), SMALLEST, LARGEST), np.float64)


def estimates_of_row(targets: Sequence[str], x: Float32, columns: Mapping[str, int]) -> list[float]:
    """`estimate` of several targets for one row, shape (n_features,): the same numbers, sooner."""
    values = {name: max(float(x[index]), 0.0) for name, index in columns.items()}
    return [min(max(_ESTIMATES[target](values.__getitem__), SMALLEST), LARGEST) for target in targets]
