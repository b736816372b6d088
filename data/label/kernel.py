"""Labels of the kernel track: MLIR functions to every target, many at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import LabelError
from ...featurize.featurizer import functions_of
from ...featurize.program import Program
from ...featurize.reader import read
from ..targets import NEOVERSE, X86
from .assembly import (
    Function,
    Instruction,
    deepest_block,
    has_masked_accesses,
    hottest_block,
    parse_function,
    registers_used,
    spills_and_reloads,
    true_executions,
    vector_utilization,
)
from .callgrind import Counts, count
from .executable import Argument, Placed, arguments_of, build, kernel_assembly
from .latency import Latency, measure
from .llvm import WITH_DESCRIPTORS, code_bytes, mca, to_assemblies
from .tools import in_halves

MAX_INSTRUCTIONS = 500_000_000
"""Kernels that execute more in one call have static targets only: they could not be counted or timed in seconds."""


@dataclass(frozen=True)
class ExactLabels:
    """Everything but the latency."""

    values: dict[str, float]
    """Column, e.g. "x86-64-v3/spills" -> value. A column that could not be had is missing."""
    assembly: str
    """What was compiled for x86-64, ready for `build`; latencies are measured from it later."""
    skipped: tuple[str, str] | None
    """Why the executed targets are missing: a reason and its detail; None if they are there."""
    incomplete: tuple[str, str] | None = None
    """Why the targets of neoverse-v2 are missing; None if they are there."""


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


@dataclass
class _Work:
    """One program on its way through the steps."""

    signature: Signature
    function: Function
    runnable: str
    values: dict[str, float]
    arguments: list[Argument] | None
    skipped: tuple[str, str] | None = None
    incomplete: tuple[str, str] | None = None

    def finished(self) -> ExactLabels:
        return ExactLabels(self.values, self.runnable, self.skipped, self.incomplete)


def label_exact(mlir: str) -> ExactLabels:
    """Compile a module's one public function, count what it executes once, and read its static targets.

    Raises
    ------
    LabelError
        It does not compile. Where it compiles and does not run, the static targets are there and `skipped` says why.
    """
    (labels,) = label_batch([(mlir, only_signature(mlir))])
    if isinstance(labels, LabelError):
        raise labels
    return labels


def only_signature(mlir: str) -> Signature:
    """The one public function of a module.

    Raises
    ------
    LabelError
        reason "no-function": there is none, or several.
    """
    found = signatures(read(mlir))
    if len(found) != 1:
        raise LabelError("no-function", f"expected one public function with a body, found {len(found)}")
    return found[0]


def label_batch(items: Sequence[tuple[str, Signature]]) -> list[ExactLabels | LabelError]:
    """Label one function of each module. What a program's labels are does not depend on the others of its batch.

    A program that does not compile has its error in its place.
    """
    results: list[_Work | LabelError] = []
    neoverse: list[tuple[_Work, str]] = []
    for (_, signature), (compiled, arguments) in zip(items, _compiled(items), strict=True):
        try:
            work = _static(signature, _for_x86(compiled), arguments)
        except LabelError as error:
            results.append(error)
            continue
        results.append(work)
        assert not isinstance(compiled, LabelError)
        if isinstance(for_arm := compiled[NEOVERSE], LabelError):
            work.incomplete = for_arm.reason, for_arm.detail
        else:
            neoverse.append((work, for_arm))
    compiled_well = [work for work in results if isinstance(work, _Work)]
    for runs in (True, False):  # those that cannot be called are linked only, in a program of their own
        part = [work for work in compiled_well if (work.arguments is not None) == runs]
        counted: list[_Counted | LabelError] = [*in_halves(_build_and_count if runs else _build_only, part)]
        _executed(part, counted)
    _for_neoverse(neoverse)
    return [work.finished() if isinstance(work, _Work) else work for work in results]


_Compiled = dict[str, str | LabelError] | LabelError
"""Assembly by device, or why there is none."""


def _compiled(items: Sequence[tuple[str, Signature]]) -> list[tuple[_Compiled, list[Argument] | LabelError]]:
    """Each module compiled, with the data for the function's arguments, or why it cannot be called.

    What does not compile with memrefs as bare pointers, since a size is unknown, is compiled with descriptors: it has
    static targets only.
    """
    found: list[tuple[_Compiled, list[Argument] | LabelError]] = []
    for (_, signature), compiled in zip(items, to_assemblies([mlir for mlir, _ in items]), strict=True):
        try:
            found.append((compiled, arguments_of(signature.argument_types)))
        except LabelError as error:
            found.append((compiled, error))
    unknown = [i for i, (compiled, _) in enumerate(found) if _is_refused(compiled)]
    again = to_assemblies([items[i][0] for i in unknown], WITH_DESCRIPTORS)
    for i, compiled in zip(unknown, again, strict=True):
        if not isinstance(compiled, LabelError):
            found[i] = compiled, LabelError("arguments", "memrefs whose sizes are unknown are passed as descriptors")
    return found


def _is_refused(compiled: _Compiled) -> bool:
    return isinstance(compiled, LabelError) and compiled.reason == "mlir-translate-error"


def _for_x86(compiled: _Compiled) -> str:
    """The assembly that everything else depends on, or the error in its place."""
    found = compiled if isinstance(compiled, LabelError) else compiled[X86]
    if isinstance(found, LabelError):
        raise found
    return found


def _static(signature: Signature, assembly: str, arguments: list[Argument] | LabelError) -> _Work:
    """What can be read from the assembly for x86-64."""
    function = parse_function(assembly, signature.name)
    skipped = (arguments.reason, arguments.detail) if isinstance(arguments, LabelError) else None
    data = None if isinstance(arguments, LabelError) else arguments
    runnable = kernel_assembly(assembly, signature.name, data or [])
    return _Work(signature, function, runnable, _read_off(function, X86), data, skipped)


def _read_off(function: Function, device: str) -> dict[str, float]:
    general, vectors = registers_used(function, device)
    spills, reloads = spills_and_reloads(function, device)
    return {
        f"{device}/static_instructions": float(len(function.instructions)),
        f"{device}/gpr_used": float(general),
        f"{device}/vec_used": float(vectors),
        f"{device}/spills": float(spills),
        f"{device}/reloads": float(reloads),
    }


_Counted = tuple[Placed, Counts | LabelError | None]
"""Where the kernel lies, and what it executed (None: not run)."""


def _build_only(works: Sequence[_Work]) -> list[_Counted]:
    with tempfile.TemporaryDirectory(prefix="irgauge-") as name:
        return [(kernel, None) for kernel in build([w.runnable for w in works], Path(name)).kernels]


def _build_and_count(works: Sequence[_Work]) -> list[_Counted]:
    with tempfile.TemporaryDirectory(prefix="irgauge-") as name:
        program = build([w.runnable for w in works], Path(name))
        return list(zip(program.kernels, count(program), strict=True))


def _executed(works: Sequence[_Work], counted: Sequence[_Counted | LabelError]) -> None:
    """Enter the targets that need a run of the built kernel, or the reason why there are none."""
    hottest: list[tuple[_Work, Sequence[Instruction]]] = []
    for work, result in zip(works, counted, strict=True):
        if isinstance(result, LabelError):
            work.skipped = result.reason, result.detail
            continue
        placed, counts = result
        work.values[f"{X86}/code_bytes"] = float(placed.code_bytes)
        if isinstance(counts, LabelError):
            work.skipped = counts.reason, counts.detail
        elif counts is not None:
            by_line = placed.lines_of(counts.executions)
            executions = true_executions(work.function, by_line)
            counted_twice = sum(by_line.values()) - sum(executions.values())
            instructions = counts.total("Ir") - counted_twice
            if instructions > MAX_INSTRUCTIONS:
                work.skipped = "too-long", f"one call executes {instructions:,} instructions"
                continue
            work.values |= _events(work.function, counts, executions, instructions)
            hottest.append((work, hottest_block(work.function, executions)))
    _block_targets(hottest, X86)


def _events(function: Function, counts: Counts, executions: dict[int, int], instructions: int) -> dict[str, float]:
    values: dict[str, float] = {
        f"{X86}/vector_utilization": vector_utilization(function, executions),
        f"{X86}/instructions_executed": float(instructions),
        f"{X86}/branch_mispredicts": float(counts.total("Bcm", "Bim")),
    }
    if not has_masked_accesses(function):  # callgrind would miss their data
        values[f"{X86}/data_refs"] = float(counts.total("Dr", "Dw"))
        values[f"{X86}/l1d_misses"] = float(counts.total("D1mr", "D1mw"))
        values[f"{X86}/ll_misses"] = float(counts.total("DLmr", "DLmw"))
    return values


def _block_targets(blocks: Sequence[tuple[_Work, Sequence[Instruction]]], device: str) -> None:
    for (work, _), result in zip(blocks, mca([block for _, block in blocks], device), strict=True):
        if isinstance(result, LabelError):
            if device == X86:
                work.skipped = work.skipped or (result.reason, result.detail)
            else:
                work.incomplete = work.incomplete or (result.reason, result.detail)
            continue
        work.values[f"{device}/mca_cycles"], work.values[f"{device}/mca_ipc"] = result


def _for_neoverse(items: Sequence[tuple[_Work, str]]) -> None:
    """Enter the targets of the device on which nothing is run."""
    blocks: list[tuple[_Work, Sequence[Instruction]]] = []
    sizes = code_bytes([assembly for _, assembly in items], [work.signature.name for work, _ in items], NEOVERSE)
    for (work, assembly), size in zip(items, sizes, strict=True):
        try:
            if isinstance(size, LabelError):
                raise size
            function = parse_function(assembly, work.signature.name, NEOVERSE)
        except LabelError as error:
            work.incomplete = error.reason, error.detail
            continue
        work.values[f"{NEOVERSE}/code_bytes"] = float(size)
        work.values |= _read_off(function, NEOVERSE)
        blocks.append((work, deepest_block(function)))
    _block_targets(blocks, NEOVERSE)


def runnable_assemblies(items: Sequence[tuple[str, Signature]]) -> list[str | LabelError]:
    """`ExactLabels.assembly` of each function, without labelling it: for programs whose labels are known."""
    results: list[str | LabelError] = []
    for (_, signature), (compiled, arguments) in zip(items, _compiled(items), strict=True):
        try:
            results.append(_static(signature, _for_x86(compiled), arguments).runnable)
        except LabelError as error:
            results.append(error)
    return results


def label_latencies(assemblies: Sequence[str], core: int) -> list[Latency | LabelError]:
    """Build results of `ExactLabels.assembly` again, in one program, and time them on `core`, one after the other.

    One that does not link, run, or end in time has its error in its place.
    """

    def work(part: Sequence[str]) -> list[Latency | LabelError]:
        with tempfile.TemporaryDirectory(prefix="irgauge-") as name:
            program = build(part, Path(name))
            measured = measure(program, range(len(part)), core)
        return [measured[number] for number in range(len(part))]

    return list(in_halves(work, assemblies))


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
    for signature, labels in zip(found, label_batch([(program.text, s) for s in found]), strict=True):
        if isinstance(labels, LabelError):
            raise labels
        labelled[signature.name] = dict(labels.values)
        if latency_core is not None and labels.skipped is None:
            (latency,) = label_latencies([labels.assembly], latency_core)
            if isinstance(latency, LabelError):
                raise latency
            labelled[signature.name][f"{X86}/latency_ns"] = latency.median_ns
    return labelled
