"""What one function's assembly says: instructions, blocks, registers, spills, floating-point work.

Pure text analysis of llc's AT&T output for x86-64; nothing is run here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...errors import LabelError


@dataclass(frozen=True)
class Instruction:
    """One machine instruction as printed."""

    line: int
    """1-based line in the assembly file; debuggers and callgrind name it by this."""
    text: str
    """Mnemonic and operands, e.g. "vaddps %ymm1, %ymm0, %ymm0"."""
    comment: str
    """What llc wrote behind `#`, e.g. "8-byte Spill"; "" if nothing."""

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
_JUMP = re.compile(r"^(j[a-z]+|ret[lqw]?)\b")


def parse_function(assembly: str, name: str) -> Function:
    """Find function `name` in llc's output.

    Raises
    ------
    LabelError
        reason "no-function": it is not there, or has no instructions.
    """
    instructions: list[Instruction] = []
    starts: set[int] = set()
    inside = False
    for number, raw in enumerate(assembly.splitlines(), 1):
        label = _LABEL.match(raw)
        if label:
            if label[1].strip('"') == name:
                inside = True
            elif inside and label[1].startswith(".Lfunc_end"):
                break
            if inside:
                starts.add(len(instructions))
            continue
        if not inside or not raw.startswith("\t"):
            continue
        text, _, comment = raw.partition("#")
        text = " ".join(text.split())
        if not text or text.startswith("."):
            continue
        instructions.append(Instruction(number, text, comment.strip()))
        if _JUMP.match(text):
            starts.add(len(instructions))
    if not instructions:
        raise LabelError("no-function", f"no instructions of {name} in the assembly")
    return Function(tuple(instructions), tuple(sorted(s for s in starts | {0} if s < len(instructions))))


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
_REGISTER = re.compile(r"%([a-z0-9]+)")
_VECTOR_REGISTER = re.compile(r"[xyz]mm(\d+)")


def registers_used(function: Function) -> tuple[int, int]:
    """Distinct general-purpose and vector registers that the function names."""
    named = {name for i in function.instructions for name in _REGISTER.findall(i.text)}
    vectors = {m[1] for name in named if (m := _VECTOR_REGISTER.fullmatch(name))}
    return len({_GPR[name] for name in named if name in _GPR}), len(vectors)


def spills_and_reloads(function: Function) -> tuple[int, int]:
    """Stores to and loads from spill slots as llc's comments mark them, folded ones included."""
    spills = sum(i.comment.endswith("Spill") for i in function.instructions)
    reloads = sum(i.comment.endswith("Reload") for i in function.instructions)
    return spills, reloads


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


def hottest_block(function: Function, executions: Mapping[int, int]) -> Sequence[Instruction]:
    """The basic block that executes most instructions; the first of several equal ones."""
    return max(function.blocks(), key=lambda block: sum(executions.get(i.line, 0) for i in block))
