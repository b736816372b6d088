"""Functions of a program by name."""

from __future__ import annotations

import re

from .program import Op, Program

FUNCTION_NAMES = ("func", "function", "kernel_func")
"""An operation named `<dialect>.<one of these>` is a function."""


def symbol_of(op: Op) -> str:
    """The name that an operation defines, without `@`; `<anonymous>` where it has none."""
    text = op.text
    at = text.find("@")
    if not text.lstrip().startswith("(") and at >= 0:
        return symbol_at(text, at)
    written = _SYMBOL.search(text)
    return written[1] if written else "<anonymous>"


_SYMBOL = re.compile(r'\bsym_name"?+\s*+=\s*+"((?:[^"\\]++|\\.)*+)"')


def symbol_at(text: str, at: int) -> str:
    """The symbol whose `@` stands at `at`."""
    rest = text[at + 1 :]
    if rest.startswith('"'):
        return rest[1 : rest.index('"', 1)]
    end = 0
    while end < len(rest) and (rest[end].isalnum() or rest[end] in "_$.-"):
        end += 1
    return rest[:end]


class Symbols:
    """The functions with a body of each symbol table of a program."""

    def __init__(self, program: Program) -> None:
        self.tables: dict[Op, dict[str, Op]] = {}
        """Module -> name -> function or nested module."""
        stack = [program.root]
        while stack:
            scope = stack.pop()
            table = self.tables[scope] = {}
            for region in scope.regions:
                for block in region.blocks:
                    for op in block.ops:
                        if not op.regions:
                            continue
                        is_function = op.name.rpartition(".")[2] in FUNCTION_NAMES
                        if not is_function:
                            stack.append(op)
                        if not is_function or any(b.ops for r in op.regions for b in r.blocks):
                            table.setdefault(symbol_of(op), op)

    def resolve(self, path: list[str], user: Op) -> Op | None:
        """The function that `@a::@b` names, seen from an operation: in the nearest scope that holds its first part."""
        block = user.parent
        while block is not None:
            scope = block.parent.parent
            table = self.tables.get(scope)
            found = table.get(path[0]) if table is not None else None
            if found is not None:
                for name in path[1:]:
                    inner = self.tables.get(found)
                    found = inner.get(name) if inner is not None else None
                    if found is None:
                        return None
                return found if found.name.rpartition(".")[2] in FUNCTION_NAMES else None
            block = scope.parent
        return None
