"""Exact execution counts of one call of each kernel of a program, from valgrind's callgrind fixed caches."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import LabelError
from .executable import Program
from .tools import ended_by, run_bytes, tool

CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,8,64")
"""Size in bytes, ways, line size: the L1 and the private last level of a Zen 4 core."""


@dataclass(frozen=True)
class Counts:
    """What one call of the kernel executed."""

    events: Mapping[str, int]
    """Callgrind's events (Ir, Dr, Dw, D1mr, D1mw, DLmr, DLmw, Bc, Bcm, Bi, Bim), what the kernel calls included."""
    executions: Mapping[int, int]
    """Address -> instructions executed there by the kernel itself."""

    def total(self, *names: str) -> int:
        """Sum of some events."""
        return sum(self.events.get(name, 0) for name in names)


def count(program: Program, *, cpu_s: int = 40) -> list[Counts | LabelError]:
    """Call each kernel of a program once under callgrind, in a process of its own.

    A kernel that crashes or needs more than `cpu_s` seconds of processor time gets a `LabelError` in its place: reason
    "callgrind-timeout", "callgrind-crash" or "callgrind-error".

    Raises
    ------
    LabelError
        The program as a whole could not be run.
    """
    command = [
        tool("valgrind"),
        "--tool=callgrind",
        "--cache-sim=yes",
        "--branch-sim=yes",
        *CACHES,
        "--dump-instr=yes",
        "--compress-strings=no",
        "--compress-pos=no",
        "--callgrind-out-file=callgrind.%p",
        "./kernels",
        "count",
        str(cpu_s),
    ]
    kernels = len(program.kernels)
    reports = run_bytes(  # no environment: the same stack every time
        command, step="callgrind", cwd=program.folder, timeout_s=60 + 2 * cpu_s * kernels, memory_bytes=None, env={}
    )
    children = list(struct.iter_unpack("=qq", reports))[-kernels:]  # before them some that only warm up
    results: list[Counts | LabelError] = []
    for kernel, (process, status) in zip(program.kernels, children, strict=True):
        try:
            if status != 0:
                raise ended_by("callgrind", status, "the call did not end well")
            results.append(parse_counts((program.folder / f"callgrind.{process}").read_text(), kernel.entry))
        except LabelError as error:
            results.append(error)
    return results


def parse_counts(text: str, entry: int) -> Counts:
    """Read what the function at address `entry` cost from callgrind's output format.

    That is version 1, positions "instr line", of a program without symbols: a function is named by its address.

    Raises
    ------
    LabelError
        reason "callgrind-error": the function is not in it.
    """
    names: list[str] = []
    totals: dict[str, int] = defaultdict(int)
    executions: dict[int, int] = defaultdict(int)
    wanted = f"fn={entry:#018x}"
    inside = found = False
    after_call = False
    for line in text.splitlines():
        if line.startswith("events:"):
            names = line.split()[1:]
        elif line.startswith("fn="):
            inside = line == wanted
            found = found or inside
        elif not inside or not line:
            continue
        elif line.startswith("calls="):
            after_call = True
        elif line.startswith("0x"):
            address, _, *costs = line.split()
            for event, cost in zip(names, costs, strict=False):  # trailing zeros are left out
                totals[event] += int(cost)
            if not after_call:
                executions[int(address, 16)] += int(costs[0]) if costs else 0
            after_call = False
    if not found:
        raise LabelError("callgrind-error", "the kernel was not called")
    return Counts(dict(totals), dict(executions))
