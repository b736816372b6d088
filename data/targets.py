"""The registry of targets: every measured quantity, its unit, and how it is obtained.

One list; labels, models, reports and the command line all take names, units and directions from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import UsageError

KINDS = ("count", "time", "bytes", "share", "ratio")

TRACK_DIALECTS: dict[str, tuple[str, ...]] = {"npu": ("tosa",)}
"""Track -> the dialects by which a function is known to belong to it; every other one belongs to `kernel`."""

TRACK_GROUPS: dict[str, tuple[str, ...]] = {
    "kernel": (
        "ops", "ngrams", "loops", "tensors", "work", "access", "liveness", "codegen", "options",
    ),
    "npu": ("ops", "ngrams", "tensors", "work", "accelerator", "npu"),
}  # fmt: skip
"""Track -> the feature groups that it is predicted from. Loops are nothing to an NPU, its plan nothing to a CPU."""

X86 = "x86-64-v3"
NEOVERSE = "neoverse-v2"
ETHOS_U85 = "ethos-u85-256"
ETHOS_U55 = "ethos-u55-128"


@dataclass(frozen=True)
class Target:
    """One measured quantity on one device."""

    track: str
    """The level of MLIR it belongs to: "kernel" or "npu"."""
    device: str
    """E.g. "x86-64-v3"."""
    name: str
    """E.g. "latency_ns"."""
    unit: str
    """Printed behind each value; "" for shares."""
    kind: str
    """"count" (whole number), "time", "bytes" (whole number), "share" (in [0, 1]) or "ratio" (any number >= 0)."""
    lower_is_better: bool
    exact: bool
    """True: labelling again gives the same number. False: measured, with repeats and spread."""
    how: str
    """What it counts and how it is obtained."""
    tool: str
    """What produces it; the version stands in each record."""

    @property
    def column(self) -> str:
        """The dataset's column, e.g. "x86-64-v3/latency_ns"."""
        return f"{self.device}/{self.name}"

    @property
    def whole(self) -> bool:
        """True where only whole numbers occur."""
        return self.kind in ("count", "bytes")

    @property
    def upper(self) -> float:
        """Largest value that can occur."""
        return 1.0 if self.kind == "share" else float("inf")


def _x86(name: str, unit: str, kind: str, how: str, tool: str, *, lower: bool = True, exact: bool = True) -> Target:
    return Target("kernel", X86, name, unit, kind, lower, exact, how, tool)


def _neoverse(name: str, unit: str, kind: str, how: str, tool: str, *, lower: bool = True) -> Target:
    return Target("kernel", NEOVERSE, name, unit, kind, lower, True, how, tool)


def _ethos(device: str, macs_per_cycle: int, off_chip: str) -> tuple[Target, ...]:
    """What Vela's summary (`*_summary_*.csv`) gives for one NPU; its columns stand in quotes."""
    memory = off_chip.replace("off_chip_", "")

    def target(name: str, unit: str, kind: str, how: str, *, lower: bool = True) -> Target:
        return Target("npu", device, name, unit, kind, lower, True, how, "vela")

    return (
        target(
            "cycles",
            "cycles",
            "count",
            "NPU clock cycles of one inference, Vela's estimate with memory accesses that take longer than the work "
            "('cycles_total')",
        ),
        target(
            "mac_utilization",
            "",
            "share",
            "operations of the MAC array, as Vela counts them (elementwise operations and pooling too), over those "
            f"{macs_per_cycle} MACs a cycle could do ('nn_macs' / ('cycles_total' * {macs_per_cycle})); missing where "
            "an operation falls back to the CPU",
            lower=False,
        ),
        target("sram_bytes", "bytes", "bytes", "most SRAM in use at once ('sram_memory_used')"),
        target(
            f"{memory}_bytes",
            "bytes",
            "bytes",
            f"most {memory} in use at once, weights included ('{off_chip}_memory_used')",
        ),
        target(
            f"{memory}_traffic_bytes",
            "bytes",
            "bytes",
            f"bytes read from {memory} and written to it in one inference ('{off_chip}_total_bytes')",
        ),
        target(
            "weights_encoded_bytes",
            "bytes",
            "bytes",
            "weights, biases and scales as Vela compresses them ('total_npu_encoded_weights')",
        ),
    )


TARGETS: tuple[Target, ...] = (
    _x86(
        "static_instructions", "instructions", "count", "machine instructions of the function, padding left out", "llc"
    ),
    _x86("code_bytes", "bytes", "bytes", "size of the function's symbol in the object file", "llc"),
    _x86(
        "gpr_used",
        "registers",
        "count",
        "distinct general-purpose registers the function names (rsp and rip left out)",
        "llc",
    ),
    _x86("vec_used", "registers", "count", "distinct vector registers the function names (xmm and ymm are one)", "llc"),
    _x86("spills", "instructions", "count", "stores to spill slots, as the register allocator marks them", "llc"),
    _x86("reloads", "instructions", "count", "loads from spill slots, folded ones included", "llc"),
    _x86(
        "mca_cycles",
        "cycles",
        "ratio",
        "cycles per iteration of the block that executes most instructions, repeated 10 to 100 times, znver4 model",
        "llvm-mca",
    ),
    _x86(
        "mca_ipc",
        "instructions/cycle",
        "ratio",
        "instructions per cycle of that block, same run",
        "llvm-mca",
        lower=False,
    ),
    _x86(
        "vector_utilization",
        "",
        "share",
        "floating-point work in 256-bit vector instructions over all floating-point work, weighted by execution "
        "counts; 0 for a function without floating-point work",
        "callgrind",
        lower=False,
    ),
    _x86(
        "instructions_executed",
        "instructions",
        "count",
        "instructions executed by one call, what it calls (libm, memset) included",
        "callgrind",
    ),
    _x86(
        "data_refs",
        "accesses",
        "count",
        "data reads and writes executed by one call; missing for functions with masked accesses",
        "callgrind",
    ),
    _x86(
        "l1d_misses",
        "misses",
        "count",
        "data accesses that miss a 32 KiB, 8-way, 64-byte-line cache; operands were written once just before",
        "callgrind",
    ),
    _x86(
        "ll_misses",
        "misses",
        "count",
        "data accesses that miss the last simulated level: 1 MiB, 8-way, 64-byte lines, a Zen 4 core's own cache",
        "callgrind",
    ),
    _x86(
        "branch_mispredicts",
        "branches",
        "count",
        "conditional and indirect branches that the simulator mispredicts, from cold predictors, which say not taken",
        "callgrind",
    ),
    _x86(
        "latency_ns",
        "ns",
        "time",
        "wall time of one warm call on one pinned core: median over >= 7 repeats of >= 1 ms",
        "this CPU",
        exact=False,
    ),
    _neoverse(
        "static_instructions", "instructions", "count", "machine instructions of the function, padding left out", "llc"
    ),
    _neoverse("code_bytes", "bytes", "bytes", "size of the function's symbol in the object file", "llvm-mc"),
    _neoverse(
        "gpr_used",
        "registers",
        "count",
        "distinct general-purpose registers the function names (sp and the zero register left out)",
        "llc",
    ),
    _neoverse(
        "vec_used", "registers", "count", "distinct vector registers the function names (NEON and SVE are one)", "llc"
    ),
    _neoverse("spills", "instructions", "count", "stores to spill slots, as the register allocator marks them", "llc"),
    _neoverse("reloads", "instructions", "count", "loads from spill slots, folded ones included", "llc"),
    _neoverse(
        "mca_cycles",
        "cycles",
        "ratio",
        "cycles per iteration of the block estimated to execute most instructions (by loop depth: nothing is run for "
        "this device), repeated 10 to 100 times, neoverse-v2 model",
        "llvm-mca",
    ),
    _neoverse(
        "mca_ipc",
        "instructions/cycle",
        "ratio",
        "instructions per cycle of that block, same run",
        "llvm-mca",
        lower=False,
    ),
    *_ethos(ETHOS_U85, 256, "dram"),
    *_ethos(ETHOS_U55, 128, "off_chip_flash"),
)


TRACK_NAMES: tuple[str, ...] = tuple(dict.fromkeys(t.track for t in TARGETS))
"""Tracks that have targets."""


def targets_of(track: str) -> tuple[Target, ...]:
    """All targets of a track, in the order of the registry."""
    return tuple(t for t in TARGETS if t.track == track)


def columns_beside(track: str) -> tuple[str, ...]:
    """Columns that a record has beside its targets: on an NPU, how many operations fall back to the processor."""
    npus = dict.fromkeys(t.device for t in targets_of(track) if t.track == "npu")
    return tuple(f"{device}/cpu_operators" for device in npus)


def find_target(name: str, among: Iterable[Target] = TARGETS) -> Target:
    """Look up "latency_ns" or "x86-64-v3/latency_ns".

    Raises
    ------
    UsageError
        No such target; the message lists those that exist.
    """
    among = tuple(among)
    for target in among:
        if name in (target.name, target.column):
            return target
    raise UsageError(f"unknown target {name!r}. Known: {', '.join(t.column for t in among)}")
