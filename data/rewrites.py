"""Transformations that no pass of `mlir-opt` does, written on the text it prints: one operation a line.

Each function takes a module and gives a module that computes the same; where it has nothing to do, the same text. Names
are kept apart by what `mlir-opt` promises of its own output: a name is defined once in a region and what is nested in
it, and index constants carry their value in their name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = [
    "REWRITES",
    "TRANSFORMS",
    "associated",
    "branched",
    "fissioned",
    "loop_lines",
    "on_stack",
    "raised",
    "selected",
    "transformed",
    "without_transform",
]

_LOOP = re.compile(r"^(\s*)(?:%\S+ = )?(affine|scf)\.for ")
_CONSTANT = re.compile(r"%c(-?\d+)(?:_\d+)?$")
_NAME = re.compile(r"%[A-Za-z0-9_$.\-]+(?:#\d+)?")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end(lines: list[str], start: int) -> int:
    """Index of the line that closes the region opened on line `start`: the next one that is indented as little."""
    depth = _indent(lines[start])
    for at in range(start + 1, len(lines)):
        if lines[at].strip() and _indent(lines[at]) <= depth and not lines[at].lstrip().startswith("^"):
            return at
    return len(lines) - 1


def loop_lines(mlir: str) -> list[tuple[int, int]]:
    """First and last line of each affine.for and scf.for, in text order."""
    lines = mlir.splitlines()
    return [(at, _end(lines, at)) for at, line in enumerate(lines) if _LOOP.match(line)]


# --- the transform dialect --------------------------------------------------------------------------------------------

MARK = "irgauge.chosen"

TRANSFORMS: Mapping[str, Callable[[int], str]] = {
    "unroll": lambda n: f"transform.loop.unroll %loop {{factor = {n}}} : !transform.any_op",
    "peel": lambda n: (
        'transform.loop.peel %loop {peel_front = true} : (!transform.op<"scf.for">)'
        " -> (!transform.any_op, !transform.any_op)"
    ),
    "flatten": lambda n: "transform.loop.coalesce %loop : (!transform.any_op) -> (!transform.any_op)",
}
"""Name -> the operation of the transform dialect on the chosen loop, for a parameter."""


def transformed(mlir: str, kind: str, loop: int, parameter: int) -> str:
    """The module with a script that transforms its loop of that number, for `transform-interpreter`."""
    lines = mlir.rstrip().splitlines()
    start, end = loop_lines(mlir)[loop]
    dialect = "affine" if "affine.for" in lines[start] else "scf"
    lines[end] = f"{' ' * _indent(lines[end])}}} {{{MARK}}}"
    assert lines[0] == "module {", lines[0]
    made = {"peel": "%made:2 = ", "flatten": "%made = "}.get(kind, "")
    handle = '!transform.op<"scf.for">' if kind == "peel" else "!transform.any_op"
    lines[0] = "module attributes {transform.with_named_sequence} {"
    lines[-1:] = [
        "  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {",
        f'    %loop = transform.structured.match ops{{["{dialect}.for"]}} attributes {{{MARK}}} in %module'
        f" : (!transform.any_op) -> {handle}",
        f"    {made}{TRANSFORMS[kind](parameter)}",
        "    transform.yield",
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def without_transform(mlir: str) -> str:
    """The module without its script and marks."""
    lines = mlir.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("  transform.named_sequence"))
    del lines[start : _end(lines, start) + 1]
    lines[0] = "module {"
    return "\n".join(lines).replace(f" {{{MARK}}}", "") + "\n"


# --- rewrites ---------------------------------------------------------------------------------------------------------


def raised(mlir: str) -> str:
    """`scf.for` with constant bounds becomes `affine.for`, sums of its variables become `affine.apply`.

    `affine-raise-from-memref` after it turns their loads and stores into affine ones.
    """
    lines = mlir.splitlines()
    dims: list[set[str]] = [set()]  # one entry per open region: values an affine map may use
    opened: list[str] = []  # "affine" for each region of a loop that was raised
    pattern = re.compile(r"scf\.for (%\S+) = (%\S+) to (%\S+) step (%\S+?)(?= iter_args| \{)")
    for at, line in enumerate(lines):
        text = line.strip()
        if text.startswith("}") and opened:
            opened.pop()
            dims.pop()
        if text.startswith("scf.yield") and opened and opened[-1] == "raised":
            lines[at] = line.replace("scf.yield", "affine.yield", 1)
        header = pattern.search(line)
        found: set[str] = set()
        kind = "other"
        if header:
            bounds = [_CONSTANT.match(name) for name in header.groups()[1:]]
            if all(bounds) and int(bounds[2][1]) > 0:  # type: ignore[index]
                low, high, step = (match[1] for match in bounds)  # type: ignore[index]
                stride = f" step {step}" if step != "1" else ""
                lines[at] = (
                    f"{line[: header.start()]}affine.for {header[1]} = {low} to {high}{stride}{line[header.end() :]}"
                )
                found, kind = {header[1]}, "raised"
        elif loop := re.search(r"affine\.for (%\S+) =", line):
            found = {loop[1]}
        elif apply := re.match(r"\s*(%\S+) = affine\.apply", line):
            dims[-1].add(apply[1])
        else:
            made = _applied(text, dims)
            if made is not None:
                lines[at] = " " * _indent(line) + made[1]
                dims[-1].add(made[0])
        if text.endswith("{"):
            opened.append(kind)
            dims.append(found)
    return "\n".join(lines) + "\n"


_INDEX_OP = re.compile(r"(%\S+) = arith\.(addi|subi|muli) (%\S+), (%\S+)(?: overflow\S+)? : index$")


def _applied(text: str, dims: list[set[str]]) -> tuple[str, str] | None:
    """(result, operation) of an index sum as an `affine.apply`; None for any other."""
    match = _INDEX_OP.match(text)
    if match is None:
        return None
    result, op, *operands = match.groups()
    used: list[str] = []
    parts = []
    for operand in operands:
        constant = _CONSTANT.match(operand)
        if constant:
            parts.append(constant[1])
        elif any(operand in scope for scope in dims):
            if operand not in used:
                used.append(operand)
            parts.append(f"d{used.index(operand)}")
        else:
            return None
    if not used or (op == "muli" and len([p for p in parts if p.startswith("d")]) > 1):
        return None
    names = ", ".join(f"d{n}" for n in range(len(used)))
    sign = {"addi": "+", "subi": "-", "muli": "*"}[op]
    first, second = parts if op != "muli" or parts[0].startswith("d") else parts[::-1]
    return result, f"{result} = affine.apply affine_map<({names}) -> ({first} {sign} {second})>({', '.join(used)})"


def on_stack(mlir: str, limit_bytes: int = 1 << 16) -> str:
    """Buffers of up to that size that are allocated outside every loop live in the function's frame."""
    lines = mlir.splitlines()
    kept = []
    moved: set[str] = set()
    for line in lines:
        match = re.match(r"    (%\S+) = memref\.alloc\(\)(?: \{[^}]*\})? : memref<([0-9x]*)x([a-z0-9]+)>$", line)
        if match:
            size = {"index": 8}.get(match[3]) or max(8, int(match[3].lstrip("bfi"))) // 8
            for extent in match[2].split("x"):
                size *= int(extent)
            if size <= limit_bytes:
                moved.add(match[1])
                limit_bytes -= size
                line = line.replace("memref.alloc()", "memref.alloca()")
        freed = re.match(r"\s*memref\.dealloc (%\S+) :", line)
        if not (freed and freed[1] in moved):
            kept.append(line)
    return "\n".join(kept) + "\n"


_SPECULATED = re.compile(
    r"\s*%\S+ = (?:arith\.(?!div|rem|ceildiv|floordiv)\w+|math\.(?:absf|sqrt|fma|ctpop|cttz|ctlz)|affine\.apply) "
)
MAX_SPECULATED = 12
"""Operations of both sides of a branch that are executed always instead."""


def selected(mlir: str) -> str:
    """`scf.if` whose sides only compute: both are computed, and `arith.select` chooses."""
    lines = mlir.rstrip().splitlines()
    count = 0
    at = len(lines) - 1
    while at >= 0:  # from the end, so that inner ones come first
        head = re.match(r"(\s*)(%\w+)(?::(\d+))? = scf\.if (%\S+) -> \((.*)\) \{$", lines[at])
        if head is None:
            at -= 1
            continue
        middle = _end(lines, at)
        end = _end(lines, middle) if lines[middle].strip() == "} else {" else at
        sides = [lines[at + 1 : middle], lines[middle + 1 : end]]
        bodies = [side[:-1] for side in sides if side]
        if (
            len(bodies) == 2
            and sum(map(len, bodies)) <= MAX_SPECULATED
            and all(_SPECULATED.match(line) for body in bodies for line in body)
        ):
            count += 1
            made: list[str] = []
            yields = []
            for number, side in enumerate(sides):
                renamed = {
                    line.split(" = ")[0].strip(): f"%s{count}_{number}_{position}"
                    for position, line in enumerate(side[:-1])
                }
                side = [_renamed(line, renamed) for line in side]
                made += [head[1] + line.strip() for line in side[:-1]]
                yields.append(re.findall(_NAME, side[-1].split(" : ")[0]))
            types = [kind.strip() for kind in head[5].split(",")]
            results = [f"%r{count}_{n}" for n in range(len(types))]
            for result, yes, no, kind in zip(results, *yields, types, strict=True):
                made.append(f"{head[1]}{result} = arith.select {head[4]}, {yes}, {no} : {kind}")
            old = [head[2]] if head[3] is None else [f"{head[2]}#{n}" for n in range(len(types))]
            names = dict(zip(old, results, strict=True))
            behind = end + 1
            while behind < len(lines) and (_indent(lines[behind]) >= len(head[1]) or not lines[behind].strip()):
                lines[behind] = _renamed(lines[behind], names)
                behind += 1
            lines[at : end + 1] = made
        at -= 1
    return "\n".join(lines) + "\n"


def _renamed(line: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda match: names.get(match[0], match[0]), line)


def branched(mlir: str) -> str:
    """Each scalar `arith.select` becomes an `scf.if`; `control-flow-sink` after it moves what only one side needs."""
    pattern = re.compile(r"(\s*)(%\S+) = arith\.select (%\S+), (%\S+), (%\S+) : ([a-z0-9]+)$")
    made = []
    for line in mlir.splitlines():
        match = pattern.match(line)
        if match is None:
            made.append(line)
            continue
        space, result, test, yes, no, kind = match.groups()
        made += [
            f"{space}{result} = scf.if {test} -> ({kind}) {{",
            f"{space}  scf.yield {yes} : {kind}",
            f"{space}}} else {{",
            f"{space}  scf.yield {no} : {kind}",
            f"{space}}}",
        ]
    return "\n".join(made) + "\n"


_STORE = re.compile(r"\s*(?:affine\.store|memref\.store) \S+, (%\w+)\[")
_USED = re.compile(r"(?:affine|memref)\.(load|store) (?:\S+, )?(%\w+)\[")


def fissioned(mlir: str, loop: int) -> str:
    """An outermost loop twice: once with the stores to its first array only, once with the others.

    `canonicalize` after it removes what a copy does not need. Only where neither copy stores what the other accesses.
    """
    lines = mlir.splitlines()
    start, end = loop_lines(mlir)[loop]
    body = lines[start : end + 1]
    stored = list(dict.fromkeys(match[1] for line in body if (match := _STORE.match(line))))
    if len(stored) < 2 or " = " in body[0].split(".for")[0]:
        return mlir
    copies = [
        [line for line in body if not (match := _STORE.match(line)) or (match[1] == stored[0]) == first]
        for first in (True, False)
    ]
    return "\n".join([*lines[:start], *copies[0], *copies[1], *lines[end + 1 :]]) + "\n"


def accesses_are_apart(mlir: str, loop: int) -> bool:
    """Whether an outermost loop and the one behind it store nothing that the other accesses."""
    lines = mlir.splitlines()
    outermost = [(s, e) for s, e in loop_lines(mlir) if _indent(lines[s]) == 4]
    if loop + 1 >= len(outermost):
        return False
    used = [
        [match.groups() for line in lines[s : e + 1] for match in _USED.finditer(line)]
        for s, e in outermost[loop : loop + 2]
    ]
    for one, other in (used, used[::-1]):
        if {array for kind, array in one if kind == "store"} & {array for _, array in other}:
            return False
    return True


_SUM = re.compile(r"(\s*)(%\S+) = arith\.addf (%\S+), (%\S+) : (?:f32|f64)$")


def associated(mlir: str) -> str:
    """Sums that a loop carries may be added in any order: `fastmath<reassoc>` on them and nothing else."""
    lines = mlir.splitlines()
    carried: list[set[str]] = []
    sums: list[dict[str, int]] = []
    for at, line in enumerate(lines):
        text = line.strip()
        if text.startswith(("affine.yield", "scf.yield")) and sums:
            for name in re.findall(_NAME, text.split(" : ")[0]):
                if name in sums[-1]:
                    place = sums[-1][name]
                    lines[place] = lines[place].replace(" : ", " fastmath<reassoc> : ", 1)
        if text.startswith("}") and carried:
            carried.pop()
            sums.pop()
        match = _SUM.match(line)
        if match and carried and {match[3], match[4]} & carried[-1]:
            name = next(iter({match[3], match[4]} & carried[-1]))
            region = _region(lines, at)
            if sum(len(re.findall(rf"{re.escape(name)}(?![\w#])", other)) for other in region) == 1:
                sums[-1][match[2]] = at
        if text.endswith("{"):
            arguments = re.search(r"iter_args\(([^)]*)\)", text) if ".for" in text else None
            carried.append(set(re.findall(r"(%\w+) =", arguments[1])) if arguments else set())
            sums.append({})
    return "\n".join(lines) + "\n"


def _region(lines: list[str], at: int) -> list[str]:
    """The lines of the innermost loop body around a line, its header apart."""
    depth = _indent(lines[at])
    start = at
    while start > 0 and _indent(lines[start - 1]) >= depth:
        start -= 1
    return lines[start : _end(lines, start - 1)]


REWRITES: Mapping[str, Callable[[str], str]] = {
    "raise": raised,
    "stack": on_stack,
    "select": selected,
    "branch": branched,
    "associate": associated,
}
"""Those without parameters, by name."""
