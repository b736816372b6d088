"""Exact execution counts of one kernel call, from valgrind's callgrind with a fixed cache geometry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import LabelError
from .executable import KERNEL
from .tools import run, tool

CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,8,64")
"""Size in bytes, ways, line size: the L1 and the private last level of a Zen 4 core."""


@dataclass(frozen=True)
class Counts:
    """What one call of the kernel executed."""

    events: Mapping[str, int]
    """Callgrind's events (Ir, Dr, Dw, D1mr, D1mw, DLmr, DLmw, Bc, Bcm, Bi, Bim), what the kernel calls included."""
    executions: Mapping[int, int]
    """Assembly line -> instructions executed there by the kernel itself."""

    def total(self, *names: str) -> int:
        """Sum of some events."""
        return sum(self.events.get(name, 0) for name in names)


def count(folder: Path, *, timeout_s: float = 120.0) -> Counts:
    """Run `folder/kernel` once under callgrind.

    Raises
    ------
    LabelError
        reason "callgrind-timeout", "callgrind-crash" or "callgrind-error".
    """
    out = folder / "callgrind.out"
    command = [
        tool("valgrind"),
        "--tool=callgrind",
        "--cache-sim=yes",
        "--branch-sim=yes",
        *CACHES,
        "--compress-strings=no",
        "--compress-pos=no",
        f"--callgrind-out-file={out.name}",
        "./kernel",
        "count",
    ]
    run(command, step="callgrind", cwd=folder, timeout_s=timeout_s, env={})  # no environment: the same stack every time
    return parse_counts(out.read_text())


def parse_counts(text: str) -> Counts:
    """Read callgrind's output format (version 1, one function a `fn=` line, costs behind a line number).

    Raises
    ------
    LabelError
        reason "callgrind-error": the kernel is not in it.
    """
    names: list[str] = []
    totals: dict[str, int] = defaultdict(int)
    executions: dict[int, int] = defaultdict(int)
    inside = found = False
    after_call = False
    for line in text.splitlines():
        if line.startswith("events:"):
            names = line.split()[1:]
        elif line.startswith("fn="):
            inside = line[3:] == KERNEL
            found = found or inside
        elif not inside or not line:
            continue
        elif line.startswith("calls="):
            after_call = True
        elif line[0].isdigit():
            number, *costs = (int(part) for part in line.split())
            for name, cost in zip(names, costs, strict=False):  # trailing zeros are left out
                totals[name] += cost
            if not after_call:
                executions[number] += costs[0] if costs else 0
            after_call = False
    if not found:
        raise LabelError("callgrind-error", "the kernel was not called")
    return Counts(dict(totals), dict(executions))
