"""From the assembly of many kernels to one static program that runs each on operands of the right size.

A kernel's counts must not depend on which others are in the program. So each one's code, constants and data begin at a
multiple of 128 KiB (the address bits that choose a cache set and a branch counter are the same everywhere), all in
sections of their own at fixed addresses far behind the driver and the C library, and what a kernel may call is in every
program.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import LabelError
from ...featurize.types import parse_type
from .tools import DRIVER, compiled_once, run, tool

KERNEL = "irgauge_kernel"
_KINDS = {"f16": 0, "bf16": 1, "f32": 2, "f64": 3, "i1": 4, "i8": 5, "i16": 6, "i32": 7, "i64": 8, "index": 8}
_INTEGER_SCALAR = 9
_INTEGER_SCALAR_VALUE = 4
_MAX_ARGUMENTS, _MAX_FLOAT_SCALARS = 32, 8
_IN_DRIVER = {
    "malloc": "irgauge_malloc",
    "calloc": "irgauge_calloc",
    "aligned_alloc": "irgauge_aligned_alloc",
    "free": "irgauge_free",
    "__truncsfbf2": "irgauge_truncsfbf2",
    "__truncdfbf2": "irgauge_truncdfbf2",
}
"""Symbol of libc or the compiler's runtime -> what the driver has in its place."""
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
        elif info.kind == "scalar" and info.element in ("f16", "bf16", "f32", "f64"):
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


_COMMON = re.compile(r"^\s*\.comm\s+([^,]+),(\d+)(?:,(\d+))?")
_SECTION = re.compile(r"^\s*\.section\s+\"?(\.?[\w.-]+)")
_TEXT, _CONSTANTS, _DATA = (
    '.section .kernels.text,"ax",@progbits',
    '.section .kernels.constants,"a",@progbits',
    '.section .kernels.data,"aw",@progbits',
)
_ADDRESSES = {"text": 0x10000000, "constants": 0x20000000, "data": 0x30000000, "end": 0x70000000}
_ALIGNMENT_BITS = 17
"""128 KiB: the size of one way of the last simulated cache level."""


def kernel_assembly(assembly: str, name: str, arguments: Sequence[Argument]) -> str:
    """The assembly ready for `build`: line for line the same instructions, in sections and under names of our own.

    The kernel becomes `irgauge_kernel`, every other symbol it defines `irgauge_module_<name>`, its heap the driver's. A
    table of the arguments follows.
    """
    defined = set(re.findall(r"^\s*\.(?:globl|local|type|comm)\s+((?!\.L)[^\s,]+)", assembly, re.M)) | {name}
    names = {symbol: f"irgauge_module_{symbol.strip(chr(34))}" for symbol in defined}
    names |= {symbol: ours for symbol, ours in _IN_DRIVER.items() if symbol not in defined} | {name: KERNEL}
    pattern = re.compile(
        r"(?<![\w.])(" + "|".join(re.escape(s) for s in sorted(names, key=len, reverse=True)) + r")(?![\w.$])"
    )
    lines = [_in_our_sections(line) for line in pattern.sub(lambda match: names[match[1]], assembly).splitlines()]
    rows = "".join(f"\t.quad {a.kind}, {a.bytes}\n" for a in arguments)
    table = f"\t{_CONSTANTS}\n\t.p2align 4\nirgauge_arguments:\t# {len(arguments)}\n{rows}"
    return "\n".join(lines) + "\n" + table


def _in_our_sections(line: str) -> str:
    """One line of llc's output with its section replaced; what would move the driver's own sections is left blank."""
    word = line.split(None, 1)[0] if line[:1].isspace() and line.strip() else ""
    if word == ".text":
        return f"\t{_TEXT}"
    if word in (".data", ".bss"):
        return f"\t{_DATA}"
    if word == ".section":
        found = _SECTION.match(line)
        section = found[1] if found else ""
        if section.startswith(".text"):
            return f"\t{_TEXT}"
        if section.startswith((".data.rel.ro", ".rodata")):
            return f"\t{_CONSTANTS}"
        return f"\t{_DATA}" if section.startswith((".data", ".bss", ".ldata", ".lbss")) else ""
    if word == ".comm":
        common = _COMMON.match(line)
        assert common is not None
        return f"\t{_DATA}; .balign {common[3] or 1}; {common[1]}: .zero {common[2]}; .previous"
    if word in (".file", ".ident", ".local", ".globl", ".weak", ".hidden") or word.startswith((".cfi_", ".addrsig")):
        return ""
    return line


_OURS = re.compile(r"(?<![\w.])(\.L|irgauge_(?:kernel|arguments|module_))(?=[\w.$]|\b)")


@dataclass(frozen=True)
class Placed:
    """Where a kernel lies in its program."""

    entry: int
    """Address of its first instruction."""
    code_bytes: int
    addresses: Mapping[int, int]
    """Line of its assembly -> address, for every line with an instruction; other symbols of its module included."""

    def lines_of(self, executions: Mapping[int, int]) -> dict[int, int]:
        """From executions by address to executions by line; padding counts with the instruction before it."""
        at = sorted((address, line) for line, address in self.addresses.items())
        starts = [address for address, _ in at]
        by_line: dict[int, int] = defaultdict(int)
        for address, count in executions.items():
            if self.entry <= address < self.entry + self.code_bytes:
                by_line[at[bisect.bisect_right(starts, address) - 1][1]] += count
        return dict(by_line)


@dataclass(frozen=True)
class Program:
    """A linked program of several kernels: `folder/kernels`."""

    folder: Path
    kernels: tuple[Placed, ...]


def build(assemblies: Sequence[str], folder: Path) -> Program:
    """Assemble and link results of `kernel_assembly` with the driver into `folder/kernels`; static, without symbols.

    Raises
    ------
    LabelError
        reason "link-error": an instruction the assembler does not know, or a function that the driver does not have.
        It may be the fault of any of the kernels.
    """
    parts: list[str] = []
    first_lines: list[int] = []
    line = 0
    for number, assembly in enumerate(assemblies):
        begin = "".join(f"\t{section}\n\t.p2align {_ALIGNMENT_BITS}\n" for section in _sections_of(assembly))
        first_lines.append(line + begin.count("\n"))
        text = _OURS.sub(lambda m, k=number: f".Lk{k}_" if m[1] == ".L" else f"k{k}_{m[1]}", assembly)  # type: ignore[misc]
        parts.append(begin + text)
        line = first_lines[-1] + text.count("\n")
    parts.append(_table([int(re.search(r"^irgauge_arguments:\t# (\d+)", a, re.M)[1]) for a in assemblies]))  # type: ignore[index]
    (folder / "kernels.s").write_text("".join(parts))
    listing = run(
        [tool("as"), "-aln", "--listing-lhs-width=8", "kernels.s", "-o", "kernels.o"],
        step="link",
        cwd=folder,
        timeout_s=120,
    )
    symbols = run([tool("nm"), "-S", "kernels.o"], step="link", cwd=folder)
    unknown = set(re.findall(r"^\s+U (\S+)", symbols, re.M)) - _provided()
    if unknown:
        raise LabelError("link-error", f"undefined symbol {sorted(unknown)[0]}")
    places = [f"-Wl,--section-start=.kernels.{name}={at:#x}" for name, at in _ADDRESSES.items()]
    command = [tool("gcc"), "-static", "-no-pie", "-s", *places, "-o", "kernels", str(_driver()), "kernels.o", "-lm"]
    run(command, step="link", cwd=folder, timeout_s=120)
    return Program(folder, _placed(listing, symbols, first_lines, assemblies))


def _placed(listing: str, symbols: str, first_lines: Sequence[int], assemblies: Sequence[str]) -> tuple[Placed, ...]:
    base = _ADDRESSES["text"]
    offsets = {int(line): int(offset, 16) for line, offset in re.findall(r"^ *(\d+) ([0-9a-f]{4,}) \S", listing, re.M)}
    found = {
        int(number): (base + int(at, 16), int(size, 16))
        for at, size, number in re.findall(rf"^(\S+) (\S+) \w k(\d+)_{KERNEL}$", symbols, re.M)
    }
    placed = []
    for number, (first, assembly) in enumerate(zip(first_lines, assemblies, strict=True)):
        if number not in found:
            raise LabelError("no-function", "the assembled program has no kernel")
        entry, size = found[number]
        addresses = {
            line: base + offsets[first + line]
            for line, text in enumerate(assembly.splitlines(), 1)
            if first + line in offsets and _INSTRUCTION.match(text)
        }
        placed.append(Placed(entry, size, addresses))
    return tuple(placed)


_INSTRUCTION = re.compile(r"\t[a-z]")


def _sections_of(assembly: str) -> list[str]:
    return [section for section in (_TEXT, _CONSTANTS, _DATA) if section in assembly]


def _table(num_arguments: Sequence[int]) -> str:
    """The table of kernels that the driver reads; there is something in every section, all programs alike."""
    rows = "".join(f"\t.quad k{k}_{KERNEL}, {n}, k{k}_irgauge_arguments\n" for k, n in enumerate(num_arguments))
    return (
        f"\t{_DATA}\n\t.quad 0\n\t{_CONSTANTS}\n\t.globl irgauge_num_kernels, irgauge_kernels\n\t.p2align 6\n"
        f"irgauge_num_kernels:\n\t.quad {len(num_arguments)}\nirgauge_kernels:\n{rows}"
        '\t.section ".note.GNU-stack","",@progbits\n'
    )


def _driver() -> Path:
    return compiled_once(DRIVER, ".o", [tool("gcc"), "-O2", "-mf16c", "-c"])


@functools.cache
def _provided() -> frozenset[str]:
    """Symbols that a kernel may use: the driver's own, and those of libc and libm that are in every program."""
    listing = run([tool("nm"), str(_driver())], step="nm")
    return frozenset(re.findall(r" [UTW] (\S+)$", listing, re.M))
