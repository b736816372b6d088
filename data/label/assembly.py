"""What one function's assembly says: instructions, blocks, registers, spills, floating-point work.

Pure text analysis of llc's output, x86-64 (AT&T) and AArch64; nothing is run here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...errors import LabelError
from ..targets import NEOVERSE, X86


@dataclass(frozen=True)
class Instruction:
    """One machine instruction as printed."""

    line: int
    """1-based line in the assembly file; debuggers and callgrind name it by this."""
    text: str
    """Mnemonic and operands, e.g. "vaddps %ymm1, %ymm0, %ymm0"."""
    comment: str
    """What llc wrote behind `#` or `//`, e.g. "8-byte Spill"; "" if nothing."""
    loop_depth: int
    """Loops around it, as llc marks them; 0 outside of all."""

    @property
    def mnemonic(self) -> str:
        return self.text.split(None, 1)[0]


@dataclass(frozen=True)
class Function:
    """The instructions of one function, in order."""

    instructions: tuple[Instruction, ...]
    block_starts: tuple[int, ...]
    """Index of the first instruction of each basic block, ascending, starting with 0."""

    def blocks(self) -> list[tuple[Instruction, ...]]:
        ends = (*self.block_starts[1:], len(self.instructions))
        return [self.instructions[a:b] for a, b in zip(self.block_starts, ends, strict=True)]


_LABEL = re.compile(r'^("?[\w.$]+"?):')
_BLOCK_COMMENT = re.compile(r"^(?:#|//) %bb\.\d+:")
_DEPTH = re.compile(r"(?:Loop Header: Depth=|in Loop: Header=\S+ Depth=)(\d+)")
_JUMP = {
    X86: re.compile(r"^(j[a-z]+|ret[lqw]?)\b"),
    NEOVERSE: re.compile(r"^(b|b\.\w+|br|ret\w*|cbn?z|tbn?z)\b"),
}
_COMMENT = {X86: "#", NEOVERSE: "//"}


def parse_function(assembly: str, name: str, device: str = X86) -> Function:
    """Find function `name` in llc's output.

    Raises
    ------
    LabelError
        reason "no-function": it is not there, or has no instructions.
    """
    instructions: list[Instruction] = []
    starts: set[int] = set()
    inside = False
    depth = 0
    comment_mark, jump = _COMMENT[device], _JUMP[device]
    for number, raw in enumerate(assembly.splitlines(), 1):
        label = _LABEL.match(raw)
        if label:
            if label[1].strip('"') == name:
                inside = True
            elif inside and label[1].startswith(".Lfunc_end"):
                break
            if inside:
                starts.add(len(instructions))
        if not inside:
            continue
        if label or _BLOCK_COMMENT.match(raw):
            depth = _depth_in(raw)
            continue
        if not raw.startswith("\t"):  # goes on with what stands behind a label
            depth = _depth_in(raw) or depth
            continue
        text, _, comment = raw.partition(comment_mark)
        text = " ".join(text.split())
        if not text or text.startswith("."):
            continue
        instructions.append(Instruction(number, text, comment.strip(), depth))
        if jump.match(text):
            starts.add(len(instructions))
    if not instructions:
        raise LabelError("no-function", f"no instructions of {name} in the assembly")
    return Function(tuple(instructions), tuple(sorted(s for s in starts | {0} if s < len(instructions))))


def _depth_in(line: str) -> int:
    found = _DEPTH.search(line)
    return int(found[1]) if found else 0


def _register_names() -> dict[str, str]:
    names: dict[str, str] = {}
    for letter in "abcd":
        full = f"r{letter}x"
        names |= dict.fromkeys((full, f"e{letter}x", f"{letter}x", f"{letter}l", f"{letter}h"), full)
    for stem in ("si", "di", "bp"):
        names |= dict.fromkeys((f"r{stem}", f"e{stem}", stem, f"{stem}l"), f"r{stem}")
    for number in range(8, 16):
        names |= {f"r{number}{suffix}": f"r{number}" for suffix in ("", "d", "w", "b")}
    return names


_GPR = _register_names()
"""Every spelling of a general-purpose register -> its 64-bit name; rsp and rip left out."""
_X86_REGISTER = re.compile(r"%([a-z0-9]+)")
_X86_VECTOR = re.compile(r"[xyz]mm(\d+)")
_ARM_REGISTER = re.compile(r"(?<![\w.:$#])[wx](\d+)\b")
_ARM_VECTOR = re.compile(r"(?<![\w.:$#])[vqdshbz](\d+)\b")
_ARM_SYMBOL = re.compile(r"^(?:adrp?\s+\w+, .*|bl? .*)|:\w+:[\w.$]+")
"""Where a symbol stands that could look like a register."""


def registers_used(function: Function, device: str = X86) -> tuple[int, int]:
    """Distinct general-purpose and vector registers that the function names."""
    if device == X86:
        named = {name for i in function.instructions for name in _X86_REGISTER.findall(i.text)}
        vectors = {m[1] for name in named if (m := _X86_VECTOR.fullmatch(name))}
        return len({_GPR[name] for name in named if name in _GPR}), len(vectors)
    operands = [_ARM_SYMBOL.sub(_first_register, i.text) for i in function.instructions]
    general = {number for text in operands for number in _ARM_REGISTER.findall(text) if int(number) < 31}
    return len(general), len({number for text in operands for number in _ARM_VECTOR.findall(text)})


def _first_register(match: re.Match[str]) -> str:
    """What is left of an instruction without its symbol."""
    return match[0].partition(",")[0] if match[0].startswith("adr") else ""


def spills_and_reloads(function: Function, device: str = X86) -> tuple[int, int]:
    """Stores to and loads from spill slots as llc's comments mark them, folded ones included.

    Saving the caller's registers at entry and restoring them at exit does not count; on AArch64 llc marks that too.
    """
    spills = sum(i.comment.endswith("Spill") for i in function.instructions)
    reloads = sum(i.comment.endswith("Reload") for i in function.instructions)
    if device == NEOVERSE:
        saved = _saved_for_caller(function)
        restored = [
            i
            for block in function.blocks()
            if block[-1].mnemonic in ("ret", "b")
            for i in block
            if i.comment.endswith("Reload") and _transferred(i) in saved
        ]
        return spills - len(saved), reloads - len(restored)
    return spills, reloads


_TRANSFER = re.compile(r"(?:stp|str|ldp|ldr) ((?:[xd]\d+, )+)\[sp")
_CALLEE_SAVED = frozenset({*(f"x{n}" for n in range(19, 31)), *(f"d{n}" for n in range(8, 16))})


def _transferred(instruction: Instruction) -> tuple[str, ...]:
    """Registers of a store to or load from the stack; () of anything else."""
    found = _TRANSFER.match(instruction.text)
    return tuple(found[1].rstrip(", ").split(", ")) if found else ()


def _saved_for_caller(function: Function) -> set[tuple[str, ...]]:
    """Registers that the entry block stores before anything has been computed in them."""
    saved: set[tuple[str, ...]] = set()
    seen: set[str] = set()
    for instruction in function.blocks()[0]:
        registers = _transferred(instruction)
        numbers = {f"{'x' if r[0] in 'xw' else 'd'}{r[1:]}" for r in _ARM_ANY.findall(instruction.text)}
        if instruction.comment.endswith("Spill") and registers and set(registers) <= _CALLEE_SAVED - seen:
            saved.add(registers)
        else:
            seen |= numbers
    return saved


_ARM_ANY = re.compile(r"(?<![\w.:$#])[wxvqdshbz]\d+\b")

_FLOAT_OP = re.compile(
    r"v?(?:(f(?:n?madd|n?msub|maddsub|msubadd)(?:132|213|231))|add|sub|mul|div|sqrt|min|max|hadd|hsub|addsub)([sp])([sdh])"
)


def float_work(instruction: Instruction) -> tuple[int, bool]:
    """Floating-point results one execution computes, and whether in full (256-bit) width.

    Additions, subtractions, multiplications, divisions, square roots, minima and maxima count 1 a lane, fused ones 2.
    """
    match = _FLOAT_OP.fullmatch(instruction.mnemonic)
    if match is None:
        return 0, False
    full_width = "%ymm" in instruction.text
    bits = {"s": 32, "d": 64, "h": 16}[match[3]]
    lanes = 1 if match[2] == "s" else (256 if full_width else 128) // bits
    return lanes * (2 if match[1] else 1), full_width and match[2] == "p"


_MASKED = re.compile(r"vp?(maskmov|gather)\w+")


def has_masked_accesses(function: Function) -> bool:
    """Whether some instruction is a masked move or a gather; callgrind does not see their data accesses."""
    return any(_MASKED.match(i.text) for i in function.instructions)


def true_executions(function: Function, counted: Mapping[int, int]) -> dict[int, int]:
    """How often each line ran, from callgrind's counts.

    Callgrind takes the data access of each active lane of a masked move or a gather for one more execution of the
    instruction behind it (found by single-stepping); in truth that runs as often as the one before it. Executed
    padding counts with the line before it.
    """
    executions = {i.line: counted.get(i.line, 0) for i in function.instructions}
    for block in function.blocks():
        for before, behind in pairwise(block):
            if _MASKED.match(before.text):
                executions[behind.line] = executions[before.line]
    return executions


def vector_utilization(function: Function, executions: Mapping[int, int]) -> float:
    """Share of executed floating-point work done in 256-bit instructions; 0.0 without floating-point work.

    `executions` maps an assembly line to how often it ran.
    """
    total = full = 0
    for instruction in function.instructions:
        work, full_width = float_work(instruction)
        done = work * executions.get(instruction.line, 0)
        total += done
        full += done if full_width else 0
    return full / total if total else 0.0


_ARM_VECTOR_OPERAND = re.compile(r"\b(?:v\d+\.|z\d)")


def deepest_block(function: Function) -> Sequence[Instruction]:
    """The block of AArch64 code that probably executes most instructions, where nothing was run.

    Of the blocks in the deepest loops the one with most vector instructions, of equal ones the longest: next to a
    vector loop stands a scalar one for what is left.
    """

    def key(block: Sequence[Instruction]) -> tuple[int, int, int]:
        return block[0].loop_depth, sum(bool(_ARM_VECTOR_OPERAND.search(i.text)) for i in block), len(block)

    return max(function.blocks(), key=key)


def hottest_block(function: Function, executions: Mapping[int, int]) -> Sequence[Instruction]:
    """The basic block that executes most instructions; the first of several equal ones."""
    return max(function.blocks(), key=lambda block: sum(executions.get(i.line, 0) for i in block))
