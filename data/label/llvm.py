"""MLIR kernels to assembly with MLIR/LLVM's own tools, many at a time, and what llvm-mca says of blocks."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ...errors import LabelError
from ..targets import NEOVERSE, X86
from .assembly import Instruction
from .tools import COMPILER, MEMORY_BYTES, compiled_once, ended_by, first_error, in_halves, llvm_library, run, tool

_FUNCTIONS = "--convert-func-to-llvm"
LOWERING = (
    "--convert-linalg-to-affine-loops",
    "--lower-vector-multi-reduction",
    "--convert-vector-to-scf",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-vector-to-llvm",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--finalize-memref-to-llvm",
    "--convert-arith-to-llvm",
    "--convert-ub-to-llvm",
    "--convert-index-to-llvm",
    "--convert-cf-to-llvm",
    f"{_FUNCTIONS}=use-bare-ptr-memref-call-conv=1",
    "--reconcile-unrealized-casts",
)
"""From affine, scf, memref, arith, math, vector and linalg to the LLVM dialect; a static memref is one pointer."""
WITH_DESCRIPTORS = tuple(_FUNCTIONS if option.startswith(_FUNCTIONS) else option for option in LOWERING)
"""The same where a memref is passed as its pointers, offset, sizes and strides: what sizes unknown here need."""

MCA_CPU = {X86: "znver4", NEOVERSE: "neoverse-v2"}
"""Device -> the scheduling model that llvm-mca uses."""
MCA_ITERATIONS = (100, 30, 10)
"""How often a block is repeated: the fewest of these that make 3,000 instructions, or the most."""
CPU_SECONDS = 20
"""Processor time that one program may take in one compilation."""
CPUS = {X86: "x86-64-v3", NEOVERSE: "neoverse-v2"}
TRIPLES = {X86: "x86_64-unknown-linux-gnu", NEOVERSE: "aarch64-unknown-linux-gnu"}
"""Device -> triple, the same as in compile.c. Without one, `opt` has no target description and vectorizes nothing."""

_CHUNK = "// -----"


def to_llvm_dialect(mlir: str, *, timeout_s: float = 20.0) -> str:
    """Lower one module to the LLVM dialect.

    Raises
    ------
    LabelError
        reason "mlir-opt-error", "mlir-opt-crash" or "mlir-opt-timeout".
    """
    return run([tool("mlir-opt"), *LOWERING], step="mlir-opt", stdin=mlir, timeout_s=timeout_s)


def to_assembly(mlir: str, device: str = X86, *, timeout_s: float = 20.0) -> str:
    """Compile one module with LLVM's programs, one after the other: what `to_assemblies` must be equal to.

    Raises
    ------
    LabelError
        reason "<tool>-error", "<tool>-crash" or "<tool>-timeout".
    """
    lowered = to_llvm_dialect(mlir, timeout_s=timeout_s)
    ir = run([tool("mlir-translate"), "--mlir-to-llvmir"], step="mlir-translate", stdin=lowered, timeout_s=timeout_s)
    target = (f"-mtriple={TRIPLES[device]}", f"-mcpu={CPUS[device]}")
    optimized = run([tool("opt"), "-O3", *target, "-S"], step="opt", stdin=ir, timeout_s=timeout_s)
    return run([tool("llc"), "-O3", *target], step="llc", stdin=optimized, timeout_s=timeout_s)


def to_assemblies(
    mlirs: Sequence[str], lowering: Sequence[str] = LOWERING
) -> list[dict[str, str | LabelError] | LabelError]:
    """Compile modules to optimized assembly for each device; a module or a device that fails has its error there.

    Reasons are "<tool>-error", "<tool>-crash" and "<tool>-timeout". Modules share processes as far as that cannot
    change a result: `mlir-opt` and `mlir-translate` read chunks, LLVM runs once a module and device.
    """
    translated = in_halves(partial(_to_llvm_ir, lowering), mlirs)
    compiled = iter(_compile([ir for ir in translated if isinstance(ir, str)]))
    return [next(compiled) if isinstance(ir, str) else ir for ir in translated]


def _to_llvm_ir(lowering: Sequence[str], mlirs: Sequence[str]) -> list[str]:
    one_line = re.compile(rf"^[ \t]*{_CHUNK}.*$", re.M)
    chunks = f"\n{_CHUNK}\n".join(one_line.sub("", mlir) for mlir in mlirs)
    timeout_s = 20.0 + len(mlirs)
    split = "--split-input-file"
    lowered = run(
        [tool("mlir-opt"), *lowering, split, "--mlir-disable-threading"],
        step="mlir-opt",
        stdin=chunks,
        timeout_s=timeout_s,
    )
    command = [tool("mlir-translate"), "--mlir-to-llvmir", split, f"--output-split-marker=; {_CHUNK}"]
    translated = run(command, step="mlir-translate", stdin=lowered, timeout_s=timeout_s)
    found = re.split(rf"^; {_CHUNK}$", translated, flags=re.M)
    if len(found) != len(mlirs):
        raise LabelError("mlir-opt-error", f"{len(found)} modules for {len(mlirs)}")
    return found


def _compiler() -> Path:
    library = str(llvm_library())
    return compiled_once(COMPILER, "", [tool("gcc"), "-O2"], library, f"-Wl,-rpath,{Path(library).parent}")


def _compile(irs: Sequence[str]) -> list[dict[str, str | LabelError]]:
    """Optimize and compile each module for each device."""
    if not irs:
        return []
    with tempfile.TemporaryDirectory(prefix="irgauge-") as name:
        folder = Path(name)
        for number, ir in enumerate(irs):
            (folder / f"{number}.ll").write_text(ir)
        command = [str(_compiler()), str(len(irs)), str(CPU_SECONDS), str(MEMORY_BYTES)]
        timeout_s = 60.0 + 2 * CPU_SECONDS * len(TRIPLES) * len(irs)
        report = run(command, step="compile", cwd=folder, timeout_s=timeout_s)
        results: list[dict[str, str | LabelError]] = [{} for _ in irs]
        for line in report.splitlines():
            module, device, status = line.split()
            results[int(module)][device] = _compiled(folder, f"{module}.{device}", int(status))
    return results


def _compiled(folder: Path, name: str, status: int) -> str | LabelError:
    if status == 0:
        return (folder / f"{name}.s").read_text(errors="replace")
    messages = (folder / f"{name}.err").read_text(errors="replace")
    step = "llc" if "@llc" in messages else "opt"
    return ended_by(step, status, first_error(re.sub(r"^@\w+\n", "", messages, flags=re.M)))


_MCA_REGION = re.compile(r"^\[\d+\] Code Region.*$", re.M)
_MCA_INSTRUCTIONS = re.compile(r"^Instructions:\s+(\d+)", re.M)
_MCA_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)", re.M)


def mca(blocks: Sequence[Sequence[Instruction]], device: str) -> list[tuple[float, float] | LabelError]:
    """Cycles per iteration and instructions per cycle of each block, when it alone repeats.

    A block with an instruction that llvm-mca does not know has its error there, reason "llvm-mca-error".
    """
    results: dict[int, tuple[float, float] | LabelError] = {}
    for iterations in MCA_ITERATIONS:
        part = [k for k, block in enumerate(blocks) if mca_iterations(len(block)) == iterations]
        found = in_halves(lambda some, n=iterations: _mca(some, device, n), [blocks[k] for k in part])  # type: ignore[misc]
        results |= dict(zip(part, found, strict=True))
    return [results[k] for k in range(len(blocks))]


def mca_iterations(instructions: int) -> int:
    """How often a block of that many instructions is repeated."""
    enough = [n for n in MCA_ITERATIONS if n * instructions >= 3000]
    return min(enough, default=max(MCA_ITERATIONS))


def _mca(blocks: Sequence[Sequence[Instruction]], device: str, iterations: int) -> list[tuple[float, float]]:
    command = [
        tool("llvm-mca"),
        f"-mtriple={TRIPLES[device]}",
        f"-mcpu={MCA_CPU[device]}",
        f"-iterations={iterations}",
        "-instruction-info=false",
        "-resource-pressure=false",
    ]
    comment = {X86: "#", NEOVERSE: "//"}[device]
    text = "".join(
        f"{comment} LLVM-MCA-BEGIN {number}\n" + "".join(f"\t{i.text}\n" for i in block) + f"{comment} LLVM-MCA-END\n"
        for number, block in enumerate(blocks)
    )
    report = run(command, step="llvm-mca", stdin=text, timeout_s=20.0 + 5 * len(blocks))
    regions = _MCA_REGION.split(report)[1:]
    if len(regions) != len(blocks):
        raise LabelError("llvm-mca-error", f"{len(regions)} regions in its report for {len(blocks)} blocks")
    results = []
    for region in regions:
        instructions, cycles = _MCA_INSTRUCTIONS.search(region), _MCA_CYCLES.search(region)
        if instructions is None or cycles is None:
            raise LabelError("llvm-mca-error", "no summary in its report")
        results.append((int(cycles[1]) / iterations, int(instructions[1]) / int(cycles[1])))
    return results


def code_bytes(assemblies: Sequence[str], names: Sequence[str], device: str) -> list[int | LabelError]:
    """Size of the function `names[k]` in the object file of `assemblies[k]`, padding inside it included."""
    return in_halves(lambda part: _code_bytes(part, device), list(zip(assemblies, names, strict=True)))


def _code_bytes(items: Sequence[tuple[str, str]], device: str) -> list[int]:
    """All in one object: each one's symbols get a prefix, and its code starts at a page, as it would alone."""
    parts = []
    for number, (assembly, _) in enumerate(items):
        defined = set(re.findall(r"^\s*\.(?:globl|local|type|comm)\s+(?!\.L)([^\s,]+)", assembly, re.M))
        words = "|".join(re.escape(symbol) for symbol in sorted(defined, key=len, reverse=True))
        pattern = re.compile(rf"(?<![\w.])(?:\.L|(?:{words})(?![\w.$]))")
        renamed = pattern.sub(
            lambda m, k=number: f".Lk{k}_" if m[0] == ".L" else f"k{k}_{m[0].strip(chr(34))}",  # type: ignore[misc]
            re.sub(r"^\s*\.(?:cfi_|addrsig).*$", "", assembly, flags=re.M),
        )
        parts.append(f"\t.text\n\t.p2align 12\n{renamed}\n")
    with tempfile.TemporaryDirectory(prefix="irgauge-") as folder:
        (Path(folder) / "all.s").write_text("".join(parts))
        command = [tool("llvm-mc"), f"-triple={TRIPLES[device]}", f"-mcpu={CPUS[device]}", "-filetype=obj"]
        run([*command, "all.s", "-o", "all.o"], step="llvm-mc", cwd=Path(folder), timeout_s=60)
        listing = run([tool("llvm-nm"), "--print-size", "all.o"], step="llvm-nm", cwd=Path(folder))
    sizes = {name: int(size, 16) for size, name in re.findall(r"^\S+ ([0-9a-f]+) \S (\S+)$", listing, re.M)}
    try:
        return [sizes[f"k{number}_{name.strip(chr(34))}"] for number, (_, name) in enumerate(items)]
    except KeyError as error:
        raise LabelError("no-function", f"the object has no {error.args[0]}") from None
