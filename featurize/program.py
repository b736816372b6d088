"""What the reader makes of MLIR text: operations, regions, blocks and values, as lean objects.

Values are plain integers: index into `Program.value_types` and `Program.value_defs`. Nothing here knows a dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .aliases import Aliases

if TYPE_CHECKING:
    from .op_syntax import Form


class Block:
    """A list of operations with typed arguments."""

    __slots__ = ("args", "label", "ops", "parent")

    def __init__(self, parent: Region, label: str = "") -> None:
        self.parent = parent
        self.label = label
        """The written name without `^`, "" for an entry block without one."""
        self.args: list[int] = []
        """Value ids of the block arguments."""
        self.ops: list[Op] = []


class Region:
    """A list of blocks that belongs to an operation."""

    __slots__ = ("blocks", "parent")

    def __init__(self, parent: Op) -> None:
        self.parent = parent
        self.blocks: list[Block] = []


class Op:
    """One operation as written. Its sequences are read-only to everyone but the reader."""

    __slots__ = (
        "form", "implied", "name", "offset", "operands", "parent", "regions", "results", "successors", "text",
    )  # fmt: skip

    def __init__(self, name: str, text: str, offset: int, parent: Block | None, *, implied: bool = False) -> None:
        self.name = name
        """Full name, e.g. "arith.addf"; never a bare `return` or `module`."""
        self.text = text
        """The operation as written after its name, to its end; each region body is left out (`{}` stands for it).
        Comments and a trailing `loc(...)` are dropped; strings over 4096 characters are cut."""
        self.offset = offset
        """Where its first character (result or name) is in `Program.text`."""
        self.parent = parent
        self.implied = implied
        """True for what the text leaves out and the generic print shows (the outer module, a loop's terminator)."""
        self.form: Form | None = None
        """What all operations written alike, SSA names apart, have in common; None where it was read token by token."""
        self.operands: Sequence[int] = ()
        """Value ids in the order of the generic form."""
        self.results: Sequence[int] = ()
        self.regions: Sequence[Region] = ()
        self.successors: Sequence[str] = ()
        """Block labels without `^`."""


class Program:
    """One module, read exactly."""

    __slots__ = ("aliases", "memo", "path", "root", "text", "value_defs", "value_types")

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self.root: Op = Op("builtin.module", "", 0, None, implied=True)
        """The outer `builtin.module`; implied where none is written."""
        self.value_types: list[str] = []
        """Type text of each value with aliases expanded and white space normalised; "" where the text does not say."""
        self.value_defs: list[Op | Block] = []
        """What defines each value: an operation (result) or a block (argument)."""
        self.aliases = Aliases(len(text))
        """`#name` and `!name` -> text, aliases in it expanded."""
        self.memo: dict[str, Any] = {}
        """What analyses of several functions share, by name."""

    def walk(self) -> Iterator[Op]:
        """Every operation, the root first, each before the ones inside it, in text order. Iterative."""
        stack: list[Op] = [self.root]
        while stack:
            op = stack.pop()
            yield op
            if op.regions:
                inner = [child for region in op.regions for block in region.blocks for child in block.ops]
                stack.extend(reversed(inner))

    def line_column(self, op: Op) -> tuple[int, int]:
        """Line and column, both from 1, of the operation's first character."""
        start = self.text.rfind("\n", 0, op.offset) + 1
        return self.text.count("\n", 0, op.offset) + 1, op.offset - start + 1
