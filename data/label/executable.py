"""From a kernel's assembly to a small static program that runs it on operands of the right size."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import LabelError
from ...featurize.types import parse_type
from .tools import DRIVER, run, tool, tool_versions

KERNEL = "irgauge_kernel"
_KINDS = {"f16": 0, "bf16": 1, "f32": 2, "f64": 3, "i1": 4, "i8": 5, "i16": 6, "i32": 7, "i64": 8, "index": 8}
_INTEGER_SCALAR = 9
_INTEGER_SCALAR_VALUE = 4
_MAX_ARGUMENTS, _MAX_FLOAT_SCALARS = 32, 8
_HEAP = {"malloc", "aligned_alloc", "free"}
MAX_OPERAND_BYTES = 128 << 20


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel as the driver sees it."""

    kind: int
    """Index into the driver's list of element types."""
    bytes: int
    """Size of a memref; the value of an integer scalar."""


def arguments_of(types: Sequence[str]) -> list[Argument]:
    """Arguments for a function with these MLIR types.

    Floating-point scalars travel in registers of their own and are left out.

    Raises
    ------
    LabelError
        reason "arguments": a type whose size is not static, or that the driver cannot fill.
    """
    arguments, float_scalars = [], 0
    for text in types:
        info = parse_type(text)
        signless = re.sub(r"^[su]i(?=\d)", "i", info.element)
        kind = _KINDS.get(signless)
        if kind is None:
            raise LabelError("arguments", f"no data for an argument of type {text}")
        if info.kind == "memref":
            arguments.append(Argument(kind, _memref_bytes(text)))
        elif info.kind == "scalar" and info.element.endswith(("f32", "f64")):
            float_scalars += 1
        elif info.kind == "scalar" and kind >= _KINDS["i1"]:
            arguments.append(Argument(_INTEGER_SCALAR, 1 if signless == "i1" else _INTEGER_SCALAR_VALUE))
        else:
            raise LabelError("arguments", f"no data for an argument of type {text}")
    if len(arguments) > _MAX_ARGUMENTS or float_scalars > _MAX_FLOAT_SCALARS:
        raise LabelError(
            "arguments", f"more than {_MAX_ARGUMENTS} arguments or {_MAX_FLOAT_SCALARS} floating-point scalars"
        )
    if sum(a.bytes for a in arguments if a.kind != _INTEGER_SCALAR) > MAX_OPERAND_BYTES:
        raise LabelError("arguments", f"operands of more than {MAX_OPERAND_BYTES >> 20} MiB")
    return arguments


def _memref_bytes(text: str) -> int:
    """Bytes from the first to behind the last element of a static memref, its strides and offset included."""
    info = parse_type(text)
    shape, strides, offset = info.shape, info.strides, info.offset
    if shape is None or any(size is None for size in shape):
        raise LabelError("arguments", f"the size of {text} is not static")
    if strides is None or offset is None or any(stride is None for stride in strides):
        raise LabelError("arguments", f"the layout of {text} is not static")
    sizes = [size for size in shape if size is not None]
    steps = [stride for stride in strides if stride is not None]
    last = offset + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    elements = 0 if 0 in sizes else last + 1
    return max(elements * max(info.element_bits, 8) // 8, 1)


def kernel_assembly(assembly: str, name: str, arguments: Sequence[Argument]) -> str:
    """The assembly with every symbol it defines renamed, the kernel to `irgauge_kernel`, and the argument table added.

    Its heap becomes the driver's. Line numbers stay as they are.
    """
    defined = set(re.findall(r"^\s*\.globl\s+(\S+)", assembly, re.M)) | {name}
    names = {symbol: f"irgauge_module_{symbol.strip(chr(34))}" for symbol in defined}
    names |= {symbol: f"irgauge_{symbol}" for symbol in _HEAP - defined} | {name: KERNEL}
    pattern = re.compile(
        r"(?<![\w.$])(" + "|".join(re.escape(s) for s in sorted(names, key=len, reverse=True)) + r")(?![\w.$])"
    )
    renamed = pattern.sub(lambda match: names[match[1]], assembly)
    rows = "".join(f"\t.quad {a.kind}, {a.bytes}\n" for a in arguments) or "\t.quad 0, 0\n"
    table = (
        "\t.section .rodata\n\t.globl irgauge_num_arguments, irgauge_arguments\n\t.p2align 4\n"
        f"irgauge_num_arguments:\n\t.quad {len(arguments)}\n\t.p2align 4\nirgauge_arguments:\n{rows}"
    )
    return renamed.rstrip("\n") + "\n" + table


def build(assembly: str, folder: Path) -> Path:
    """Assemble and link `kernel_assembly`'s result with the driver into `folder/kernel`; static, with line numbers.

    Raises
    ------
    LabelError
        reason "link-error": mostly a function that nothing here defines.
    """
    (folder / "kernel.s").write_text(assembly)
    command = [tool("gcc"), "-static", "-g", "-o", "kernel", "kernel.s", str(_driver()), "-lm"]
    run(command, step="link", cwd=folder)
    return folder / "kernel"


def _driver() -> Path:
    """The compiled driver, made once per version of its source and kept in the temporary folder."""
    compiled = Path(tempfile.gettempdir()) / f"irgauge-driver-{os.getuid()}-{tool_versions()['driver']}.o"
    if not compiled.exists():
        partial = compiled.with_suffix(f".{os.getpid()}.o")
        run([tool("gcc"), "-O2", "-mf16c", "-c", str(DRIVER), "-o", str(partial)], step="driver")
        partial.replace(compiled)
    return compiled


def code_bytes(executable: Path) -> int:
    """Size of the kernel's symbol."""
    listing = run([tool("nm"), "-S", str(executable)], step="nm")
    match = re.search(rf"^\S+ ([0-9a-f]+) \w {KERNEL}$", listing, re.M)
    if match is None:
        raise LabelError("no-function", "the linked program has no kernel")
    return int(match[1], 16)
