"""Which source lines a difference between two predictions belongs to.

Operations are compared as written, with SSA names left out: those of one function that the other lacks have changed.
A feature is about operations: `chain/arith.mulf>arith.addf` about the two it names, `loops.…` about loops, `access.…`
and `tensors.…` about loads and stores; what is about the function as a whole (`codegen.…`, `liveness.…`) about all of
them. Rounding and the like are about none. What a feature adds to the difference is shared evenly among the changed
operations that it is about; what belongs to no changed operation stays with the function. The shares and what stays
add up to the difference.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ..featurize.ops import safe_name
from ..featurize.program import Op, Program
from .explain import STEPS, Change

_VALUE = re.compile(r"%[\w$.#:-]+")
_SPACE = re.compile(r"\s+")
_MOST_ALIGNED = 2000
"""Longer functions are compared as bags of operations: aligning takes quadratic time."""
_LOOPS = re.compile(r"\.(for|parallel|forall|while)$")
_MEMORY = re.compile(r"load|store|transfer|copy|gather|scatter|subview|alloc|linalg\.")
_ARITHMETIC = re.compile(r"^(arith|math|vector|complex|index)\.")


@dataclass(frozen=True)
class LineShare:
    """What one source line adds to the difference between two predictions."""

    side: str
    """ "before" or "after": in which text the line stands."""
    line: int
    """From 1."""
    text: str
    """The line, white space at its ends left out."""
    amount: float
    """In the target's unit."""


@dataclass(frozen=True, eq=False)
class ChangedOps:
    """The operations of two functions that the other one lacks, in the order of the text."""

    before: tuple[Op, ...]
    after: tuple[Op, ...]
    programs: tuple[Program, Program]

    def shares(self, change: Change) -> tuple[LineShare, ...]:
        """Share a change among the lines, largest first; lines that add nothing are left out."""
        amounts: dict[tuple[int, int], float] = defaultdict(float)
        sided = [(0, op) for op in self.before] + [(1, op) for op in self.after]
        lines = [self.programs[side].line_column(op)[0] for side, op in sided]
        for driver in change.drivers:
            about = [i for i, (_, op) in enumerate(sided) if _is_about(driver.feature, op)]
            for i in about:
                amounts[sided[i][0], lines[i]] += driver.amount / len(about)
        texts = [program.text.split("\n") for program in self.programs]
        found = [
            LineShare(("before", "after")[side], line, texts[side][line - 1].strip(), amount)
            for (side, line), amount in amounts.items()
            if amount
        ]
        return tuple(sorted(found, key=lambda s: (-abs(s.amount), s.side, s.line)))


def changed_ops(before: tuple[Program, Op], after: tuple[Program, Op]) -> ChangedOps:
    """Compare two functions, each given with the program it stands in."""
    old, new = (list(_ops(function)) for _, function in (before, after))
    old_keys, new_keys = [_key(op) for op in old], [_key(op) for op in new]
    if max(len(old), len(new)) <= _MOST_ALIGNED:
        blocks = SequenceMatcher(None, old_keys, new_keys, autojunk=False).get_matching_blocks()
        kept_old = {i for a, _, n in blocks for i in range(a, a + n)}
        kept_new = {i for _, b, n in blocks for i in range(b, b + n)}
    else:
        kept_old, kept_new = _kept(old_keys, new_keys), _kept(new_keys, old_keys)
    return ChangedOps(
        tuple(op for i, op in enumerate(old) if i not in kept_old),
        tuple(op for i, op in enumerate(new) if i not in kept_new),
        (before[0], after[0]),
    )


def _kept(keys: Sequence[str], others: Iterable[str]) -> set[int]:
    """Positions of the keys that the others have too, each of theirs used once."""
    left, kept = Counter(others), set()
    for i, key in enumerate(keys):
        if left[key] > 0:
            left[key] -= 1
            kept.add(i)
    return kept


def _ops(function: Op) -> Iterator[Op]:
    """Written operations inside a function, in the order of the text."""
    stack = [op for region in reversed(function.regions) for b in reversed(region.blocks) for op in reversed(b.ops)]
    while stack:
        op = stack.pop()
        if not op.implied:
            yield op
        stack += [
            inner for region in reversed(op.regions) for b in reversed(region.blocks) for inner in reversed(b.ops)
        ]


def _key(op: Op) -> str:
    return f"{op.name} {_SPACE.sub(' ', _VALUE.sub('%', op.text)).strip()}"


def _is_about(feature: str, op: Op) -> bool:
    if feature in STEPS:
        return False
    group, _, rest = feature.replace("/", ".", 1).partition(".")
    name = safe_name(op.name)
    if group in ("ngram", "chain") and ">" in rest:
        return name in rest.split(">")
    if group == "ops" and "." in rest and not rest.startswith("class."):
        return name == rest
    if group == "loops" or rest.startswith(("loop", "innermost_entries")):
        return bool(_LOOPS.search(op.name))
    if group in ("access", "tensors") or rest.startswith(("load", "store", "bytes")):
        return bool(_MEMORY.search(op.name))
    if group == "work" and rest.startswith(("float", "int", "vector")):
        return bool(_ARITHMETIC.match(op.name)) and op.name != "arith.constant"
    return True
