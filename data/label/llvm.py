"""MLIR kernels to assembly with MLIR/LLVM's own tools, and what llvm-mca says of a block."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...errors import LabelError
from .assembly import Instruction
from .tools import run, tool

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
    "--convert-func-to-llvm=use-bare-ptr-memref-call-conv=1",
    "--reconcile-unrealized-casts",
)
"""From affine, scf, memref, arith, math, vector and linalg to the LLVM dialect; a static memref is one pointer."""

CPU = "x86-64-v3"
# Without a triple, `opt` has no target description and vectorizes nothing.
_TARGET = ("-mtriple=x86_64-unknown-linux-gnu", f"-mcpu={CPU}")
MCA_CPU = "znver4"
MCA_ITERATIONS = 100


def to_llvm_dialect(mlir: str, *, timeout_s: float = 20.0) -> str:
    """Lower one module to the LLVM dialect.

    Raises
    ------
    LabelError
        reason "mlir-opt-error", "mlir-opt-crash" or "mlir-opt-timeout".
    """
    return run([tool("mlir-opt"), *LOWERING], step="mlir-opt", stdin=mlir, timeout_s=timeout_s)


def to_assembly(mlir: str, *, timeout_s: float = 20.0) -> str:
    """Compile one module to optimized x86-64 assembly.

    Raises
    ------
    LabelError
        reason "<tool>-error", "<tool>-crash" or "<tool>-timeout".
    """
    lowered = to_llvm_dialect(mlir, timeout_s=timeout_s)
    ir = run([tool("mlir-translate"), "--mlir-to-llvmir"], step="mlir-translate", stdin=lowered, timeout_s=timeout_s)
    optimized = run([tool("opt"), "-O3", *_TARGET, "-S"], step="opt", stdin=ir, timeout_s=timeout_s)
    return run([tool("llc"), "-O3", *_TARGET], step="llc", stdin=optimized, timeout_s=timeout_s)


_MCA_INSTRUCTIONS = re.compile(r"^Instructions:\s+(\d+)", re.M)
_MCA_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)", re.M)


def mca(block: Sequence[Instruction], *, timeout_s: float = 20.0) -> tuple[float, float]:
    """Cycles per iteration and instructions per cycle of one block that repeats 100 times.

    Raises
    ------
    LabelError
        reason "llvm-mca-error", ...: it does not know an instruction, or prints no summary.
    """
    command = [
        tool("llvm-mca"),
        "-mtriple=x86_64-unknown-linux-gnu",
        f"-mcpu={MCA_CPU}",
        f"-iterations={MCA_ITERATIONS}",
        "-instruction-info=false",
        "-resource-pressure=false",
    ]
    text = "\n".join(f"\t{i.text}" for i in block) + "\n"
    report = run(command, step="llvm-mca", stdin=text, timeout_s=timeout_s)
    instructions, cycles = _MCA_INSTRUCTIONS.search(report), _MCA_CYCLES.search(report)
    if instructions is None or cycles is None:
        raise LabelError("llvm-mca-error", "no summary in its report")
    return int(cycles[1]) / MCA_ITERATIONS, int(instructions[1]) / int(cycles[1])
