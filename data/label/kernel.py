"""Labels of the kernel track: one MLIR function to every `x86-64-v3` target."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ...errors import LabelError
from ...featurize.featurizer import functions_of
from ...featurize.program import Program
from ...featurize.reader import read
from ..targets import X86
from .assembly import (
    has_masked_accesses,
    hottest_block,
    parse_function,
    registers_used,
    spills_and_reloads,
    true_executions,
    vector_utilization,
)
from .callgrind import count
from .executable import KERNEL, Argument, arguments_of, build, code_bytes, kernel_assembly
from .latency import Latency, call_cpu_ns, measure
from .llvm import mca, to_assembly

MAX_CALL_NS = 80e6
"""Kernels that need more processor time are not executed under callgrind: counting them would take minutes."""


@dataclass(frozen=True)
class ExactLabels:
    """Everything but the latency."""

    values: dict[str, float]
    """Column, e.g. "x86-64-v3/spills" -> value. A column that could not be had is missing."""
    assembly: str
    """What was compiled, ready for `build`; latencies are measured from it later."""
    skipped: tuple[str, str] | None
    """Why the executed targets are missing: a reason and its detail; None if they are there."""


@dataclass(frozen=True)
class Signature:
    """A function that can be labelled."""

    name: str
    argument_types: tuple[str, ...]


def signatures(program: Program) -> list[Signature]:
    """Public `func.func`s with a body at the top of a module, in order."""
    found = []
    for name, op in functions_of(program):
        if op.name != "func.func" or op.parent is None or op.parent.parent.parent is not program.root:
            continue
        if op.text.lstrip().startswith("private") or 'sym_visibility = "private"' in op.text:
            continue
        entry = op.regions[0].blocks[0]
        found.append(Signature(name, tuple(program.value_types[value] for value in entry.args)))
    return found


def label_exact(mlir: str, *, timeout_s: float = 20.0) -> ExactLabels:
    """Compile a module's one public function, count what it executes once, and read its static targets.

    Raises
    ------
    LabelError
        It does not compile. Where it compiles and does not run, the static targets are there and `skipped` says why.
    """
    found = signatures(read(mlir))
    if len(found) != 1:
        raise LabelError("no-function", f"expected one public function with a body, found {len(found)}")
    return label_function(mlir, found[0], timeout_s=timeout_s)


def label_function(mlir: str, signature: Signature, *, timeout_s: float = 20.0) -> ExactLabels:
    """Label one function of a module; see `label_exact`."""
    assembly = to_assembly(mlir, timeout_s=timeout_s)
    function = parse_function(assembly, signature.name)
    gprs, vectors = registers_used(function)
    spills, reloads = spills_and_reloads(function)
    values: dict[str, float] = {
        "static_instructions": len(function.instructions),
        "gpr_used": gprs,
        "vec_used": vectors,
        "spills": spills,
        "reloads": reloads,
    }
    skipped: tuple[str, str] | None = None
    arguments: list[Argument] = []
    try:
        arguments = arguments_of(signature.argument_types)
    except LabelError as error:
        skipped = (error.reason, error.detail)
    runnable = kernel_assembly(assembly, signature.name, arguments)
    with tempfile.TemporaryDirectory(prefix="irgauge-") as name:
        folder = Path(name)
        try:
            values["code_bytes"] = code_bytes(build(runnable, folder))
            if skipped is None:
                values |= _executed(folder, runnable, timeout_s)
        except LabelError as error:
            skipped = (error.reason, error.detail)
    return ExactLabels({f"{X86}/{key}": float(value) for key, value in values.items()}, runnable, skipped)


def _executed(folder: Path, assembly: str, timeout_s: float) -> dict[str, float]:
    """Targets that need a run of the built kernel."""
    call_ns = call_cpu_ns(folder, timeout_s=timeout_s)
    if call_ns > MAX_CALL_NS:
        raise LabelError("too-long", f"one call takes {call_ns / 1e6:.0f} ms, over {MAX_CALL_NS / 1e6:.0f} ms")
    counts = count(folder)
    function = parse_function(assembly, KERNEL)
    executions = true_executions(function, counts.executions)
    counted_twice = sum(counts.executions.values()) - sum(executions.values())
    cycles, ipc = mca(hottest_block(function, executions))
    values: dict[str, float] = {
        "mca_cycles": cycles,
        "mca_ipc": ipc,
        "vector_utilization": vector_utilization(function, executions),
        "instructions_executed": counts.total("Ir") - counted_twice,
        "branch_mispredicts": counts.total("Bcm", "Bim"),
    }
    if not has_masked_accesses(function):  # callgrind would miss their data
        values["data_refs"] = counts.total("Dr", "Dw")
        values["l1d_misses"] = counts.total("D1mr", "D1mw")
        values["ll_misses"] = counts.total("DLmr", "DLmw")
    return values


def label_latency(assembly: str, core: int) -> Latency:
    """Build `ExactLabels.assembly` again and time it on `core`.

    Raises
    ------
    LabelError
        It does not link, run, or end in time.
    """
    with tempfile.TemporaryDirectory(prefix="irgauge-") as name:
        folder = Path(name)
        build(assembly, folder)
        return measure(folder, core)


def label_functions(program: Program, *, latency_core: int | None = None) -> dict[str, dict[str, float]]:
    """Every public function of a module to its targets by column; with a latency if a core to measure on is given.

    Raises
    ------
    LabelError
        A function does not compile, or the module has none. What compiles and does not run keeps its static targets.
    """
    found = signatures(program)
    if not found:
        raise LabelError("no-function", f"{program.path}: no public func.func with a body")
    labelled = {}
    for signature in found:
        labels = label_function(program.text, signature)
        values = dict(labels.values)
        if latency_core is not None and labels.skipped is None:
            values[f"{X86}/latency_ns"] = label_latency(labels.assembly, latency_core).median_ns
        labelled[signature.name] = values
    return labelled
