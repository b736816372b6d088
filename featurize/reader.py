"""MLIR text to a `Program`: any dialect, custom and generic syntax, exact or refused.

Most operations stand on one line. One regular expression takes such a line apart, `op_syntax.form_of` knows what a line
of that form means, and what is left to do is to look up names. Everything else (operations over several lines, strings,
regions, comments in odd places) is read token by token. Nothing recurses and nothing looks twice at the same text.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Sequence
from pathlib import Path

from .aliases import TooLongError
from .dialects import (
    BARE_NAMES,
    DEFAULT_DIALECT,
    FORMER_STD,
    FUNC_NAMES,
    IMPLIED_TERMINATOR,
    ISOLATED,
    NOT_OPERATIONS,
    OWN_DEFAULT,
    REGION_ENDS,
    REGIONLESS,
    REGIONLESS_BUT,
    TRANSPARENT,
    is_region_first,
)
from .generic_form import alias_uses, aliases_in, generic_form_of, is_flat, is_one_type, successors_of, type_end
from .lexer import (
    CLOSER,
    IDENT,
    RESULTS,
    SPACE,
    TOKEN,
    VALUE,
    Unreadable,
    balanced_end,
    dialect_body_end,
    error_at,
    resource_end,
    skip_space,
    string_end,
)
from .op_syntax import (
    DEFINE,
    FORMS,
    JOINED_NAMES,
    LIKE_NEXT,
    LITERALS,
    LONGEST_PHRASE,
    MAYBE,
    UNFINISHED,
    USE,
    Form,
    Slot,
    form_of,
)
from .program import Block, Op, Program, Region
from .sources import BYTECODE, is_text, not_mlir, text_and_path
from .types import normalized, split_types

_BLANKS = " \t\r\n"
_LONGEST_STRING = 4096

_REGION_FIRST = r"""[ \t\r\n]*+(?:
      [}^%] | "[A-Za-z0-9_$.]++"\( | return\b
    | [A-Za-z_][A-Za-z0-9_$]*+\.[A-Za-z_][A-Za-z0-9_$.]*+(?![ \t\r\n]*+[=,}]) )"""
"""What shows that a `{` opens a region."""

_FAST = re.compile(
    rf"""[ \t\r\n]*+(?:
      ({VALUE}(?::[0-9]++)?+)\ =\ (?:
          ([A-Za-z_][A-Za-z0-9_$.]*+)([^\n\r"{{}}/]{{0,4000}}+)(?:\n|(\{{)\n(?={_REGION_FIRST}))
        | "([A-Za-z0-9_$.]++)"\(([^()\n"]*+)\)([^\n]{{0,2000}}+)\n )
    | ([A-Za-z_][A-Za-z0-9_$.]*+)([^\n\r"{{}}/]{{0,4000}}+)(?:\n|(\{{)\n(?={_REGION_FIRST}))
    | (\}})\n(?=[ \t\r\n]*+(?:
          [}}^] | %[A-Za-z0-9_$.\-:]++(?:,\ %[A-Za-z0-9_$.\-:]++)*+\ = | [A-Za-z_][A-Za-z0-9_$]*+\.[A-Za-z_] | return\b
        | "[A-Za-z0-9_$.]++"\( | \Z))
    | "([A-Za-z0-9_$.]++)"\(([^()\n"]*+)\)([^\n]{{0,2000}}+)\n
    | \}}\)([^\n]{{0,2000}}+)\n
    )""",
    re.ASCII | re.VERBOSE,
)
"""A whole line of the commonest kinds. Whether the operation goes on after the line shows when the next one is read."""
(
    _F_FIRST, _F_NAME, _F_REST, _F_OPENS, _F_QUOTED, _F_ARGS, _F_AFTER, _F_BARE, _F_BARE_REST, _F_BARE_OPENS, _F_CLOSE,
    _F_BARE_QUOTED, _F_BARE_ARGS, _F_BARE_AFTER, _F_END,
) = range(1, 16)  # fmt: skip

_NEXT = rf"""{SPACE}(?:
      \}}
    | \^[A-Za-z0-9_$.\-]++(?:\(%[^\n"()]*+\))?+\ *+:
    | {VALUE}(?::[0-9]++)?+(?:\ *+,\ *+{VALUE}(?::[0-9]++)?+)*+\ *+=\ *+
      (?:"|[A-Za-z_][A-Za-z0-9_$]*+\.|call\b|constant\b)
    | "[A-Za-z0-9_$.]++"\(
    | [A-Za-z_][A-Za-z0-9_$]*+\.[A-Za-z_]
    | return\b
    | [\#!][A-Za-z_][A-Za-z0-9_$]*+\ *+=
    | \Z)"""
"""What shows, behind the end of a line outside all brackets, that the operation is over."""

_LINE = re.compile(
    rf"""{SPACE}(?:
      (?:({VALUE})((?::[0-9]++)?+(?:\ *+,\ *+{VALUE}(?::[0-9]++)?+)*+)\ *+=\ *+)?+
      ([A-Za-z_][A-Za-z0-9_$.]*+)((?:[^\n\r"{{}}/]{{1,1000}}+|\{{[^\n\r"{{}}/]{{0,1000}}+\}}){{0,9}}+)
      (?: (?://[^\r\n]*+)?+\r?+\n(?={_NEXT})
        | (\{{)[ \t]*+(?://[^\r\n]*+)?+\r?+\n(?={SPACE}{_REGION_FIRST})
      )
    | (\}})[ \t]*+(?:loc\(\#[A-Za-z0-9_]++\))?+[ \t]*+(?://[^\r\n]*+)?+\r?+(?:\n|\Z)(?={_NEXT})
    | \^([0-9]++|[A-Za-z$._\-][A-Za-z0-9_$.\-]*+)(?:\(([^()\n"/]*+)\))?+:
    )""",
    re.ASCII | re.VERBOSE,
)
"""A line with comments, several results, dictionaries or Windows' line end; a block label."""
_FIRST, _MORE, _NAME, _REST, _OPENS, _CLOSE, _LABEL, _PARAMS = range(1, 9)

_split_values = re.compile(r"(%[A-Za-z0-9_$.\-#]*+)", re.ASCII).split
_find_labels = re.compile(r"\^([A-Za-z0-9_$.\-]++)", re.ASCII).findall
_hide_labels = re.compile(r"\^[A-Za-z0-9_$.\-]++", re.ASCII).sub
_odd_value = re.compile(
    r"%(?:[0-9]++[A-Za-z_$.\-]|[^A-Za-z0-9_$.\-]|\Z|[A-Za-z0-9_$.\-]*+\#(?![0-9]++(?![\#A-Za-z_$.\-])))"
    r"|\#(?![0-9A-Za-z_])",
    re.ASCII,
).search
"""What only looks like a value to `_split_values`, or like an index."""
_values = re.compile(rf"({VALUE}(?:\#[0-9]++)?+)", re.ASCII).split
_find_values = re.compile(rf"{VALUE}(?:\#[0-9]++)?+", re.ASCII).findall
_is_value_list = re.compile(
    rf"{SPACE}(?:{VALUE}(?:\#[0-9]++)?+{SPACE}(?:,{SPACE}(?={VALUE})|\Z))*+", re.ASCII
).fullmatch
_results = re.compile(
    rf"{SPACE}({VALUE}{SPACE}(?::{SPACE}[0-9]++)?+(?:{SPACE},{SPACE}{VALUE}{SPACE}(?::{SPACE}[0-9]++)?+)*+){SPACE}={SPACE}",
    re.ASCII,
).match
_result = re.compile(rf"({VALUE}){SPACE}(?::{SPACE}([0-9]++))?+", re.ASCII).finditer
_name = re.compile(IDENT, re.ASCII).match
_alias = re.compile(rf"([#!][A-Za-z_][A-Za-z0-9_$]*+){SPACE}={SPACE}", re.ASCII).match
_alias_line = re.compile(
    r"([#!][A-Za-z_][A-Za-z0-9_$]*+) = ([^\n\r/{}\"]{0,2000}+)\n(?=[ \t]*+(?:[#!\n]|//|module\b|func\.func\b))",
    re.ASCII,
).match
_dictionary = re.compile(rf'\{{{SPACE}(?:"[^"\n]*+"|({IDENT})){SPACE}([=,}}:]|\Z)?', re.ASCII).match
_region_start = re.compile(
    rf"""\{{{SPACE}(?: [\^] | {RESULTS}{SPACE}={SPACE} | "[^"\n]*+"{SPACE}\( | ({IDENT}) | [\#!]{IDENT}{SPACE}= )""",
    re.ASCII | re.VERBOSE,
).match
_quoted_op = re.compile(rf'"([^"\n]*+)"{SPACE}\(', re.ASCII).match
_defines = re.compile(
    rf"{VALUE}{SPACE}(?::{SPACE}[0-9]++)?+(?:{SPACE},{SPACE}{VALUE}{SPACE}(?::{SPACE}[0-9]++)?+)*+{SPACE}={SPACE}(?:(\")|({IDENT}))",
    re.ASCII,
).match
_block_label = re.compile(r"\^([0-9]++|[A-Za-z$._\-][A-Za-z0-9_$.\-]*+)", re.ASCII).match
_location = re.compile(rf"{SPACE}loc{SPACE}\(", re.ASCII).match

_CUSTOM, _GENERIC_FORM, _TOP = range(3)


class _Careful(Exception):
    """An operation goes on after its line where that was not foreseen: read again without the shortest way."""


_CLOSES = frozenset(")]}>")
_NO_LOCATION = frozenset("([{=,:")
"""A `loc(...)` behind one of these is an attribute of its own."""
_GOES_ON = frozenset([",", ":", "->", "=>", "=", "applies"])
"""After these an operation is not over."""


_REGION_FACTS: dict[str, tuple[bool, str, str]] = {}


def _region_facts(name: str) -> tuple[bool, str, str]:
    """Of an operation: is it isolated, its implied terminator, the default dialect inside ("" for the one outside)."""
    dialect = name.partition(".")[0]
    default = DEFAULT_DIALECT.get(name) or (dialect if dialect in OWN_DEFAULT else "")
    facts = (name in ISOLATED, IMPLIED_TERMINATOR.get(name, ""), default)
    if len(_REGION_FACTS) < 1000:
        _REGION_FACTS[name] = facts
    return facts


class _Frame:
    """An open region and the operation around it."""

    __slots__ = (
        "arguments", "block", "dialect", "first_value", "form", "isolated", "labels", "mark", "more", "op",
        "outer_names", "outer_pending", "region", "start", "successors", "template", "terminator", "text", "undo",
        "uses",
    )  # fmt: skip

    def __init__(self, op: Op, form: int, start: int) -> None:
        self.op = op
        self.form = form
        self.start = start
        """Where the operation starts, for messages."""
        self.dialect = "builtin"
        """What a name without a dialect belongs to inside."""
        self.more: tuple[str, str] | None = None
        """Written results: the first name, and the rest."""
        self.template: list[str] = []
        """Pieces of what is written, values as `%`."""
        self.text: list[str] = []
        self.uses: list[int] = []
        self.arguments: list[tuple[str, str]] = []
        """Name and type of the entry block's arguments that the operation's own syntax gives."""
        self.region: Region
        self.block: Block
        self.mark = 0
        """How many names were visible when the region was opened."""
        self.first_value = 0
        self.isolated = False
        self.outer_names: dict[str, int] | None = None
        self.outer_pending: dict[str, int] | None = None
        self.undo: list[tuple[str, int]] = []
        self.labels: set[str] = set()
        self.successors: dict[str, int] = {}
        self.terminator = ""


class _Reader:
    def __init__(self, text: str, path: str, *, careful: bool = False) -> None:
        self.careful = careful
        self.text = text
        self.program = Program(text, path)
        self.names: dict[str, int] = {}
        self.pending: dict[str, int] = {}
        """Values used above their definition, by name."""
        self.pending_at: dict[str, int] = {}
        self.types = self.program.value_types
        self.defs = self.program.value_defs
        self.aliases = self.program.aliases.written
        root = _Frame(self.program.root, _TOP, 0)
        root.region = Region(root.op)
        root.op.regions = [root.region]
        root.block = Block(root.region)
        root.region.blocks.append(root.block)
        root.isolated = True
        self.last: Op | None = None
        """The operation of the line before, if it could still go on on this line."""
        self.final: Op | None = None
        """An operation that cannot be taken back."""
        self.awaits: Op | None = None
        """The last operation that awaits values."""
        self.mark = 0
        """The first value that it awaits."""
        self.stack = [root]
        self.frame = root
        self.most_values = len(text) + 10_000
        """Left for result packs, so that a short text does not take much memory."""

    # --- values ---------------------------------------------------------------------------------------------------

    def use(self, name: str, position: int) -> int:
        """The id of a used value; a value that is not defined yet is awaited."""
        found = self.names.get(name)
        if found is not None:
            return found
        if name.endswith("#0") and name[:-2] in self.names:
            return self.names[name[:-2]]
        if "#" in name and name.partition("#")[0] in self.names:
            raise Unreadable(f"'{name}' is not a result: '{name.partition('#')[0]}' has fewer", position)
        found = self.pending.get(name)
        if found is None:
            found = len(self.types)
            self.types.append("")
            self.defs.append(self.program.root)
            self.pending[name] = found
            self.pending_at[name] = position
        return found

    def define(self, name: str, written: str, owner: Op | Block, position: int) -> int:
        """A new value, or the awaited one of that name."""
        pending = self.pending
        names = self.names
        if pending and name in pending:
            value = pending.pop(name)
            self.types[value] = written
            self.defs[value] = owner
        else:
            value = len(self.types)
            self.types.append(written)
            self.defs.append(owner)
        if name in names:
            self.redefine(name, position)
        names[name] = value
        return value

    def redefine(self, name: str, position: int) -> None:
        """A name given before: an error in the same region, and hidden by the new one in a region of its own."""
        old = self.names[name]
        frame = self.frame
        if old >= frame.first_value or frame.op.name.partition(".")[0] in TRANSPARENT:
            raise Unreadable(
                f"redefinition of '{name}'", position, "Names are given once in a region; split files at `// -----`."
            )
        frame.undo.append((name, old))

    def define_results(self, op: Op, first: str, more: str, types: tuple[str, ...], position: int) -> None:
        """The results `first more =` of an operation, e.g. ("%a", ":2, %b")."""
        if not more:
            op.results = [self.define(first, types[0] if len(types) == 1 else "", op, position)]
            return
        packs = self.packs(first + more, position)
        total = sum(count for _, count in packs)
        if len(types) != total:
            types = types * total if len(types) == 1 else types[-total:] if len(types) > total else ("",) * total
        results: list[int] = []
        for name, count in packs:
            for k in range(count):
                value = self.define(name if k == 0 else f"{name}#{k}", types[len(results)], op, position)
                if k == 0 and count > 1:
                    self.define_alias(f"{name}#0", value)
                results.append(value)
        op.results = results

    def packs(self, written: str, position: int) -> list[tuple[str, int]]:
        """Names and sizes of the results written as `%a:2, %b`."""
        packs = []
        for match in _result(written):
            count = 1
            if match[2]:
                count = int(match[2]) if len(match[2]) < 10 else self.most_values + 1
                if count == 0:
                    raise Unreadable("a result pack holds at least one value", position)
                self.most_values -= count
                if self.most_values < 0:
                    raise Unreadable("the result packs hold more values than a text of this size", position)
            packs.append((match[1], count))
        return packs

    def add_results(self, op: Op, types: tuple[str, ...]) -> None:
        """Results that are not named."""
        value = len(self.types)
        self.types.extend(types)
        self.defs.extend([op] * len(types))
        op.results = list(range(value, value + len(types)))

    def define_alias(self, name: str, value: int) -> None:
        if name in self.pending:  # used as %r#0 above: both ids stand for one value; the awaited one keeps its type
            awaited = self.pending.pop(name)
            self.types[awaited] = self.types[value]
            self.defs[awaited] = self.defs[value]
            value = awaited
        if name in self.names:
            self.frame.undo.append((name, self.names[name]))
        self.names[name] = value

    # --- the walk -------------------------------------------------------------------------------------------------

    def run(self) -> Program:
        text = self.text
        size = len(text)
        match_line = _FAST.match
        careful = self.careful
        split_values = _split_values
        forms = FORMS
        types, defs = self.types, self.defs
        names, pending = self.names, self.pending
        frame = self.frame
        block = frame.block
        ops = block.ops
        position = 0
        while True:
            match = None if careful else match_line(text, position)
            if match is not None:
                kind = match.lastindex
                if kind == _F_REST:
                    first, name, rest = match.group(1, 2, 3)
                elif kind == _F_BARE_REST:
                    first = None
                    name, rest = match.group(8, 9)
                elif kind == _F_CLOSE:
                    if frame.form == _CUSTOM:
                        start = match.end() - 2
                        self.finish_custom(self.close_region(start), start)
                        self.last = None
                        position = match.end()
                        frame = self.frame
                        block = frame.block
                        ops = block.ops
                        names, pending = self.names, self.pending
                        continue
                    name = ""
                elif kind in (_F_OPENS, _F_BARE_OPENS):
                    if kind == _F_OPENS:
                        first, name, rest = match.group(1, 2, 3)
                        start = match.start(_F_FIRST)
                    else:
                        first = None
                        name, rest = match.group(8, 9)
                        start = match.start(_F_BARE)
                    if self.open_line(first, "", name, rest, start, match.end()):
                        position = match.end()
                        frame = self.frame
                        block = frame.block
                        ops = block.ops
                        names, pending = self.names, self.pending
                        continue
                    name = ""
                else:
                    done = self.read_quoted(match)
                    if done >= 0:
                        position = done
                        frame = self.frame
                        block = frame.block
                        ops = block.ops
                        names, pending = self.names, self.pending
                        continue
                    name = ""
                if name and "." not in name:
                    name = self.full_name(name, named=first is not None) or ""
                if name:
                    if " loc(" in rest:
                        rest = _locations("", rest)
                    if rest[-1:] == " ":
                        rest = rest.rstrip(_BLANKS)
                    labels = None
                    if "^" in rest:
                        labels = _find_labels(rest)
                        parts = split_values(_hide_labels("^", rest))
                    else:
                        parts = split_values(rest)
                    template = "%".join(parts[::2])
                    form = forms.get(name + template)
                    if form is None:
                        form = form_of(name, template)
                    if form.whole and (labels is None or len(labels) == len(form.successors)):
                        op = Op(name, rest, match.start(_F_BARE) if first is None else match.start(_F_FIRST), block)
                        op.form = form
                        try:
                            op.operands = [names[value] for value in parts[1::2]]
                        except KeyError:
                            if _odd_value(rest):
                                position = self.read_slowly(self.after_space(position))
                                frame = self.frame
                                continue
                            self.awaits = op
                            self.mark = len(types)
                            op.operands = [self.use(value, op.offset) for value in parts[1::2]]
                        if form.special:
                            self.finish_special(op, form, labels)
                        elif form.kept >= 0:
                            subscripts = op.operands[form.kept :]
                            if len(set(subscripts)) < len(subscripts):
                                op.operands = [*op.operands[: form.kept], *dict.fromkeys(subscripts)]
                        if first is not None:
                            if pending or first in names or ":" in first:
                                self.define_named(op, first, form.results, form.result)
                            else:
                                op.results = [len(types)]
                                names[first] = len(types)
                                types.append(form.result)
                                defs.append(op)
                        elif form.unnamed:
                            self.add_results(op, form.unnamed)
                        ops.append(op)
                        self.last = op
                        position = match.end()
                        continue
            done = self.read_line(position)
            if done < 0:
                position = self.after_space(position)
                if position >= size:
                    break
                done = self.read_slowly(position)
                self.last = None
            position = done
            frame = self.frame
            block = frame.block
            ops = block.ops
            names, pending = self.names, self.pending
        return self.finish()

    def finish_special(self, op: Op, form: Form, labels: list[str] | None = None) -> None:
        """Aliases, successors (`labels` where the form hides them), affine subscripts."""
        if form.aliases:
            self.check_aliases(form.aliases, op.offset)
        if form.successors:
            self.succeed(op, labels or form.successors, op.offset)
        if form.kept >= 0:
            _list_once(op, form.kept)

    def define_named(self, op: Op, written: str, types: tuple[str, ...], last: str) -> None:
        """Results of a line `%r:2 = ...` or of one that something above awaits."""
        if self.pending:
            self.final = op
        if ":" in written:
            first, _, pack = written.partition(":")
            if not pack.isdigit():
                raise Unreadable(f"expected a result, found '{written}'", op.offset)
            self.define_results(op, first, ":" + pack, types, op.offset)
        else:
            self.define_results(op, written, "", (last,), op.offset)

    def open_line(self, first: str | None, more: str, name: str, rest: str, start: int, inside: int) -> bool:
        """An operation whose line ends with the `{` of its region; False where it must be read token by token."""
        if "." not in name:
            name = self.full_name(name, named=first is not None) or ""
            if not name:
                return False
        if " loc(" in rest:
            rest = _locations("", rest)
        parts = _split_values(rest)
        template = "%".join(parts[::2])
        form = FORMS.get(name + template + "{") or form_of(name, template + "{")
        if not form.whole or form.successors or len(form.slots) != len(parts) // 2 or _odd_value(rest):
            return False
        frame = _Frame(Op(name, rest, start, self.frame.block), _CUSTOM, start)
        frame.op.form = form
        if first is not None:
            if not more and ":" in first:
                first, colon, more = first.partition(":")
                more = colon + more
            frame.more = (first, more)
        if form.aliases:
            self.check_aliases(form.aliases, start)
        frame.template.append(template)
        frame.text.append(rest)
        self.take_slots(frame, parts[1::2], form.slots, start)
        self.open_region(frame, inside)
        self.last = None
        return True

    def read_line(self, position: int) -> int:
        """A line of a less common kind; -1 where it must be read token by token."""
        match = _LINE.match(self.text, position)
        if match is None:
            return -1
        kind = match.lastindex
        if kind in (_REST, _OPENS):
            if match.end() - match.start() > _LONGEST_STRING:
                return -1
            first, more, name, rest = match.group(1, 2, 3, 4)
            start = match.start(_NAME) if first is None else match.start(_FIRST)
            if kind == _OPENS:
                return match.end() if self.open_line(first, more, name, rest, start, match.end()) else -1
            if "." not in name:
                name = self.full_name(name, named=first is not None)
                if name is None:
                    return -1
            if " loc(" in rest:
                rest = _locations("", rest)
            rest = rest.rstrip(_BLANKS)
            if _odd_value(rest):
                return -1
            parts = _split_values(rest)
            form = form_of(name, "%".join(parts[::2]))
            if not form.whole:
                return -1
            op = Op(name, rest, start, self.frame.block)
            op.form = form
            op.operands = [self.use(value, start) for value in parts[1::2]]
            if form.special or form.kept >= 0:
                self.finish_special(op, form)
            if first is not None:
                self.define_results(op, first, more, form.results if more else (form.result,), start)
            elif form.unnamed:
                self.add_results(op, form.unnamed)
            self.frame.block.ops.append(op)
            self.last = None
            return match.end()
        if kind == _CLOSE:
            if self.frame.form != _CUSTOM:
                return -1
            start = match.start(_CLOSE)
            self.finish_custom(self.close_region(start), start)
            self.last = None
            return match.end()
        self.last = None
        return self.read_simple_label(match)

    def read_quoted(self, match: re.Match[str]) -> int:
        """A line of an operation in generic syntax, or the line after its regions; -1 where it must be read slowly."""
        frame = self.frame
        kind = match.lastindex
        if kind == _F_END:
            if frame.form != _GENERIC_FORM:
                return -1
            rest = match[_F_END]
            form = generic_form_of(rest)
            if form is None or form.opens or form.takes != len(frame.uses):
                return -1
            start = frame.start
            frame = self.close_region(match.end())
            op = frame.op
            op.text = "".join([*frame.text, "{})", form.text])
            op.operands = frame.uses
            first, more = frame.more if frame.more is not None else (None, "")
        else:
            if kind == _F_AFTER:
                first, name, args, rest = match.group(1, 5, 6, 7)
                start = match.start(1)
            else:
                first = None
                name, args, rest = match.group(12, 13, 14)
                start = match.start(_F_BARE_QUOTED) - 1
            more = ""
            form = generic_form_of(rest)
            if form is None:
                return -1
            if first is not None and ":" in first:
                first, colon, more = first.partition(":")
                more = colon + more
            op = Op(name, f"({args}){form.text}", start, frame.block)
            operands: list[int] = []
            if args:
                names = self.names
                written = args.split(", ")
                try:
                    operands = [names[value] for value in written]
                except KeyError:
                    written = _find_values(args)
                    if not _is_value_list(args):
                        return -1
                    operands = [self.use(value, start) for value in written]
            if not form.opens and len(operands) != form.takes:
                return -1
            op.operands = operands
            if form.aliases:
                self.check_aliases(form.aliases, start)
            if form.successors:
                self.succeed(op, form.successors, start)
            if form.opens:
                opened = _Frame(op, _GENERIC_FORM, start)
                opened.uses = operands
                opened.text.append(op.text)
                if first is not None:
                    opened.more = (first, more)
                self.open_region(opened, match.end())
                self.last = None
                return match.end()
        if kind == _F_END and form.aliases:
            self.check_aliases(form.aliases, start)
        self.finish_generic(op, first, more, form.gives, start)
        self.last = op
        self.final = op
        return match.end()

    def finish(self) -> Program:
        """The end of the text: everything is closed and defined, and a lone written module is the root."""
        if len(self.stack) > 1:
            frame = self.stack[-1]
            raise Unreadable(
                f"the text ends inside a region of '{frame.op.name}'",
                max(len(self.text.rstrip()) - 1, 0),
                "A closing `}` is missing, or the text was cut off.",
            )
        self.check_pending()
        self.check_labels(self.stack[0])
        program = self.program
        ops = self.frame.block.ops
        if len(ops) == 1 and ops[0].name == "builtin.module":
            program.root = ops[0]
            program.root.parent = None
        if self.aliases:
            self.expand_types()
        return program

    def check_pending(self) -> None:
        if self.pending:
            name = min(self.pending, key=self.pending_at.__getitem__)
            raise Unreadable(
                f"'{name}' is used but never defined", self.pending_at[name], "Is the text a part of a larger program?"
            )

    def check_labels(self, frame: _Frame) -> None:
        for label, position in frame.successors.items():
            if label not in frame.labels:
                raise Unreadable(f"block '^{label}' is used but not defined in this region", position)

    def succeed(self, op: Op, labels: Sequence[str], position: int) -> None:
        op.successors = list(labels)
        for label in labels:
            self.frame.successors.setdefault(label, position)

    # --- names of operations ----------------------------------------------------------------------------------------

    def full_name(self, word: str, *, named: bool) -> str | None:
        """The name with its dialect of an operation written without one; None where it is not one for certain.

        `named`: it follows `%x =`, so that only a bound (`%i = max ...`) can stand there instead.
        """
        dialect = self.frame.dialect
        if word in NOT_OPERATIONS and (not named or word in ("min", "max", "true", "false", "dense")):
            return None
        if word in BARE_NAMES.get(dialect, ()):
            return f"{dialect}.{word}"
        if dialect not in BARE_NAMES:
            return f"{dialect}.{word}"
        if word in FUNC_NAMES:
            return FUNC_NAMES[word]
        if word == "module":
            return "builtin.module"
        if word in FORMER_STD:
            return f"{FORMER_STD[word]}.{word}"
        return None

    # --- regions ----------------------------------------------------------------------------------------------------

    def open_region(self, frame: _Frame, inside: int) -> None:
        """Make the next region of the frame's operation the current place; `inside` is the position after its `{`."""
        op = frame.op
        region = Region(op)
        if op.regions:
            op.regions.append(region)  # type: ignore[attr-defined]
        else:
            op.regions = [region]
        block = Block(region)
        region.blocks.append(block)
        frame.region, frame.block = region, block
        facts = _REGION_FACTS.get(op.name) or _region_facts(op.name)
        frame.isolated, frame.terminator, dialect = facts
        frame.dialect = dialect or self.frame.dialect
        self.stack.append(frame)
        self.frame = frame
        if frame.isolated:
            frame.outer_names, frame.outer_pending = self.names, self.pending
            self.names, self.pending = {}, {}
        frame.mark = len(self.names)
        types = self.types
        frame.first_value = len(types)
        arguments = frame.arguments
        if arguments and not (len(op.regions) > 1 and self.text.startswith("^", self.after_space(inside))):
            names = self.names
            args = block.args
            for name, written in arguments:
                if name in names or self.pending:
                    args.append(self.define(name, written, block, frame.start))
                else:
                    names[name] = len(types)
                    args.append(len(types))
                    types.append(written)
                    self.defs.append(block)
            if op.name == "gpu.launch" and len(block.args) == 12:  # block and thread ids, then grid and block sizes
                block.args = [*args[:3], *args[6:9], *args[3:6], *args[9:]]

    def close_region(self, position: int) -> _Frame:
        """Leave the current region; its names are forgotten."""
        frame = self.stack.pop()
        if frame.form == _TOP:
            raise Unreadable("unbalanced '}'", position, "No region is open here.")
        self.frame = self.stack[-1]
        names = self.names
        if frame.isolated:
            if self.pending:
                self.check_pending()
            assert frame.outer_names is not None
            assert frame.outer_pending is not None
            self.names, self.pending = frame.outer_names, frame.outer_pending
        else:
            for _ in range(len(names) - frame.mark):
                names.popitem()
            if frame.undo:
                for name, value in reversed(frame.undo):
                    names[name] = value
                frame.undo = []
        if frame.successors:
            self.check_labels(frame)
            frame.successors = {}
        if frame.labels:
            frame.labels = set()
        blocks = frame.region.blocks
        last = blocks[-1]
        if frame.form == _CUSTOM:
            if frame.terminator and (not last.ops or last.ops[-1].name != frame.terminator):
                self.imply(frame.terminator, last, position)
            elif frame.op.name == "gpu.all_reduce" and not last.ops:
                blocks.clear()
        elif len(blocks) == 1 and not last.ops and not last.label:
            blocks.clear()
        return frame

    def imply(self, name: str, block: Block, position: int) -> None:
        """Add the terminator that the text leaves out."""
        op = Op(name, "", position, block, implied=True)
        if name == "scf.forall.in_parallel":
            region = Region(op)
            region.blocks.append(Block(region))
            op.regions = [region]
        elif name == "vector.yield" and block.ops:
            op.operands = block.ops[-1].results
        block.ops.append(op)

    def finish_custom(self, frame: _Frame, position: int) -> None:
        """The last region of an operation in custom syntax is closed and nothing follows."""
        op = frame.op
        frame.template.append("{}")
        frame.text.append("{}")
        op.text = "".join(frame.text)
        op.operands = frame.uses
        if op.name == "scf.index_switch":  # written last, the default region comes first in the generic form
            op.regions = [*op.regions[-1:], *op.regions[:-1]]
        form = form_of(op.name, "".join(frame.template))
        if form.problem:
            raise Unreadable(form.problem, frame.start)
        if frame.more is not None:
            first, more = frame.more
            self.define_results(op, first, more, form.results if more else (form.result,), frame.start)
        elif form.unnamed:
            self.add_results(op, form.unnamed)
        if form.successors:
            self.succeed(op, form.successors, frame.start)
        self.frame.block.ops.append(op)

    def take_slots(self, frame: _Frame, written: list[str], slots: tuple[Slot, ...], position: int) -> None:
        """Sort the values before a region into uses and arguments of its entry block."""
        names = self.names
        uses = frame.uses
        arguments = frame.arguments
        listed: set[tuple[str, int]] = set()
        awaiting: list[int] = []
        for name, slot in zip(written, slots, strict=True):
            kind = slot[0]
            if kind == DEFINE:
                arguments.append((name, slot[1]))
            elif kind == 0 or (kind == MAYBE and (name in names or name in self.pending)):
                found = names.get(name)
                value = self.use(name, position) if found is None else found
                if kind == 0 and slot[1]:  # a bound of affine.parallel: each value once
                    if (slot[1], value) in listed:
                        continue
                    listed.add((slot[1], value))
                uses.append(value)
                if awaiting:
                    at = awaiting.pop()
                    arguments[at] = (arguments[at][0], self.types[value])
            else:
                if kind == LIKE_NEXT:
                    awaiting.append(len(arguments))
                arguments.append((name, slot[1]))
        if frame.op.name == "emitc.expression" and not frame.op.regions:  # its operands go by the same names inside
            arguments.extend([(name, self.types[value]) for name, value in zip(written, uses, strict=False)])

    # --- the simple lines -------------------------------------------------------------------------------------------

    def read_simple_label(self, match: re.Match[str]) -> int:
        """`^bb0(%a: f32):`; -1 where it must be read token by token."""
        label, params = match.group(_LABEL, _PARAMS)
        arguments: list[tuple[str, str]] = []
        if params:
            parts = _values(params)
            for k in range(1, len(parts), 2):
                after = parts[k + 1].strip(_BLANKS)
                if not after.startswith(":"):
                    return -1
                written = after[1:].strip(_BLANKS)
                if k + 2 < len(parts):
                    if not written.endswith(","):
                        return -1
                    written = written[:-1].rstrip(_BLANKS)
                if not is_one_type(written):
                    return -1
                arguments.append((parts[k], normalized(written)))
            if parts[0].strip(_BLANKS):
                return -1
        self.start_block(label, arguments, match.start(_LABEL))
        return match.end()

    def start_block(self, label: str, arguments: list[tuple[str, str]], position: int) -> None:
        frame = self.frame
        if label in frame.labels:
            raise Unreadable(f"redefinition of block '^{label}'", position)
        frame.labels.add(label)
        if frame.form == _TOP:
            raise Unreadable("a block label outside any region", position)
        region = frame.region
        first = region.blocks[0]
        if len(region.blocks) == 1 and not first.ops and not first.label and not first.args:
            block = first
            block.label = label
        else:
            block = Block(region, label)
            region.blocks.append(block)
        frame.block = block
        block.args = [self.define(name, written, block, position) for name, written in arguments]

    def finish_generic(self, op: Op, first: str | None, more: str, types: tuple[str, ...], start: int) -> None:
        if first is not None:
            packs = sum(count for _, count in self.packs(first + more, start)) if more else 1
            if packs != len(types):
                raise Unreadable(f"'{op.name}' has {len(types)} results, but {packs} are named", start)
            self.define_results(op, first, more, types, start)
        else:
            self.add_results(op, types)
        self.frame.block.ops.append(op)

    # --- token by token ---------------------------------------------------------------------------------------------

    def read_slowly(self, position: int) -> int:
        """Read what starts at `position` (not white space), up to its end or into its first region."""
        text = self.text
        char = text[position]
        if self.last is not None and char == "l" and (location := _location(text, position)):
            return balanced_end(text, location.end() - 1)
        if self.last is not None and char != "}" and not self.is_operation_start(position, True):
            position = self.take_back(self.last)
            char = text[position]
        if char == "}":
            if self.frame.form == _TOP:
                raise Unreadable("unbalanced '}'", position, "No region is open here.")
            frame = self.close_region(position)
            if frame.form == _CUSTOM:
                return self.go_on_custom(frame, position + 1, after_region=True)
            return self.go_on_generic(frame, position + 1)
        if char == "^":
            return self.read_label(position)
        if char == "{" and text.startswith("{-#", position):
            return resource_end(text, position)
        if char in "#!":
            match = _alias_line(text, position)
            if match is not None and self.frame.form == _TOP and is_flat(match[2]):
                self.define_alias_name(match[1], normalized(match[2]), position)
                return match.end()
            return self.read_alias(position)
        start = position
        match = _results(text, position)
        first, more = None, ""
        if match:
            found = match[1]
            first = re.match(VALUE, found, re.ASCII)[0]  # type: ignore[index]
            more = found[len(first) :].strip()
            position = match.end()
        if position < len(text) and text[position] == '"':
            return self.read_generic(position, start, first, more)
        word = _name(text, position)
        if word is None:
            raise Unreadable(f"expected an operation, found {self.shown(position)}", position)
        name: str | None = word[0]
        if "." not in word[0]:
            name = self.full_name(word[0], named=first is not None)
            if name is None:
                raise Unreadable(
                    f"'{word[0]}' is not an operation here",
                    position,
                    "Is this MLIR? Operations are written `dialect.name`.",
                )
        if name is None or name.endswith("."):
            raise Unreadable(f"expected an operation, found {self.shown(position)}", position)
        frame = _Frame(Op(name, "", start, self.frame.block), _CUSTOM, start)
        if first is not None:
            frame.more = (first, more)
        return self.go_on_custom(frame, word.end(), after_region=False)

    def take_back(self, op: Op) -> int:
        """Forget the operation of the last line, which goes on after the line; where it starts."""
        if self.final is op:
            raise _Careful
        self.last = None
        self.frame.block.ops.pop()
        names, types = self.names, self.types
        results = set(op.results)
        undo = self.frame.undo
        while undo and names.get(undo[-1][0]) in results:
            hidden, old = undo.pop()
            names[hidden] = old
        while names and next(reversed(names.values())) in results:
            names.popitem()
        mark = self.mark if self.awaits is op else len(types) - len(results)
        pending = self.pending
        while pending and next(reversed(pending.values())) >= mark:  # ids grow in the order of the dict
            pending.popitem()
        del types[mark:]
        del self.defs[mark:]
        return op.offset

    def after_space(self, position: int) -> int:
        """The next position that is neither white space nor comment."""
        match = skip_space(self.text, position)
        assert match
        return match.end()

    def shown(self, position: int) -> str:
        token = TOKEN.match(self.text, position)
        return f"'{token[0]}'" if token and token[0].strip() else repr(self.text[position : position + 1]) or "the end"

    def is_operation_start(self, position: int, new_line: bool, last: str = "") -> bool:
        """Outside all brackets, does another operation, alias or label start here, after the token `last`?"""
        text = self.text
        char = text[position]
        if char == "%":
            match = _defines(text, position)
            if not match:
                return False
            if match[1]:
                return bool(_quoted_op(text, match.start(1)))
            word = match[2]
            return "." in word or ((new_line or last[-1:] in _CLOSES) and self.full_name(word, named=True) is not None)
        if char == '"':
            return new_line and bool(_quoted_op(text, position))
        if char in "#!":
            return new_line and bool(_alias(text, position))
        if char == "^":
            return new_line and self.is_label(position)
        if char == "{":
            return text.startswith("{-#", position)
        match = _name(text, position)
        if not match:
            return False
        word = match[0]
        if "." in word:
            return not word.endswith(".") and last != "applies"
        if not new_line and (last[-1:] not in _CLOSES or word not in JOINED_NAMES):
            return False
        return self.full_name(word, named=False) is not None

    def is_region(self, position: int, frame: _Frame, last: str, *, inside: bool) -> bool:
        """Does the `{` here open a region (or an attribute dictionary)?"""
        text = self.text
        if frame.op.name.partition(".")[0] in REGIONLESS and frame.op.name not in REGIONLESS_BUT:
            return False
        if is_region_first(frame.op.name) and not frame.op.regions and not inside:
            return last != "attributes"
        match = _dictionary(text, position)
        if match is not None and match[2] and match[2] != ":":
            name = match[1]
            if name is None or match[2] in "=," or inside:
                return False
            if last == "attributes":
                return False
            if name.rpartition(".")[2].rpartition("_")[2] in REGION_ENDS:
                return "." in name or self.full_name(name, named=False) is not None
            if text[position + 1] == " " and name.partition(".")[0] == frame.op.name.partition(".")[0]:
                return True  # `{ a.c }` in an operation of the dialect a; an attribute is written `{a.c}`
            return "." in name and "\n" in text[position : match.end()]
        after = self.after_space(position + 1)
        if text.startswith("}", after):
            return not inside and last != "attributes"
        match = _region_start(text, position)
        if match is None:  # a list of values is written behind its brace, a first line on the next
            return text.startswith("%", after) and "\n" in text[position:after]
        if match[1] is not None:
            return (
                "." in match[1]
                or self.full_name(match[1], named=False) is not None
                or frame.op.name.partition(".")[0] in OWN_DEFAULT
            )
        return True

    def go_on_custom(self, frame: _Frame, position: int, *, after_region: bool) -> int:
        """Read an operation in custom syntax from after its name or a region of it, to its end or its next region."""
        text = self.text
        size = len(text)
        pieces: list[str] = []
        template: list[str] = []
        written: list[str] = []
        brackets: list[tuple[str, int]] = []
        if after_region:
            pieces.append("{}")
            template.append("{}")
        first = not after_region
        spaced = new_line = False
        joins = after_region
        """Another operation may start here although no line ended."""
        segment = position
        words = 0
        last = "}" if after_region else ""
        located = False
        aliases: list[str] = []
        match_token = TOKEN.match
        while position < size:
            token = match_token(text, position)
            if token is None:
                raise Unreadable(f"unexpected character {text[position]!r}", position)
            kind = token.lastgroup
            end = token.end()
            if kind == "space" or kind == "comment":
                spaced = True
                if kind == "space" and ("\n" in token[0] or "\r" in token[0]):
                    new_line = True
                position = end
                continue
            part = token[0]
            if not brackets:
                if kind == "close":
                    if part == "}":
                        break
                    if part == ">" and text.startswith("^", self.after_space(end)):  # wasmssa: `{ }> ^bb1`
                        last = part
                        pieces.append(part)
                        template.append("=>")
                        position = end
                        continue
                    raise Unreadable(f"unbalanced '{part}'", position)
                if (
                    (new_line or joins)
                    and kind in ("value", "string", "prefixed", "word", "resource", "label")
                    and last not in _GOES_ON
                    and self.is_operation_start(position, new_line, last)
                ):
                    break
                if kind == "word" and part == "loc" and text.startswith("(", self.after_space(end)):
                    position = balanced_end(text, self.after_space(end))
                    joins = True
                    located = new_line
                    continue
                if located and kind in ("word", "value"):
                    raise Unreadable(f"'{frame.op.name}' goes on behind its location", position)
            elif (
                kind == "word" and part == "loc" and brackets[-1][0] == ")" and last not in _NO_LOCATION
                and text.startswith("(", end)
            ):  # fmt: skip
                position = balanced_end(text, end)
                continue
            if first and kind == "label" and new_line and self.is_label(position):
                break
            first = False
            joins = False
            after_region = after_region and kind == "space"
            if spaced:
                pieces.append(" ")
                template.append(" ")
            starts_line = new_line
            spaced = new_line = False
            if kind == "word":
                if starts_line and not brackets and part[-1] == ".":
                    raise Unreadable(f"expected an operation, found '{part}'", position)
                words += 1
                if words > LONGEST_PHRASE and not brackets:
                    raise Unreadable(f"'{frame.op.name}' reads like prose, not like an operation", frame.start)
                if not brackets:
                    joins = True
            else:
                words = 0
            if kind == "value":
                if (
                    not brackets
                    and part[1:].isdigit()
                    and (text[end : end + 1].isalpha() or text[end : end + 1] in ("_", "$"))
                ):
                    raise Unreadable(
                        f"'{part}{text[end]}...' is not a value",
                        position,
                        "A name that starts with a digit has digits only.",
                    )
                written.append(part)
                pieces.append(part)
                template.append("%")
                if end < size and (text[end].isalnum() or text[end] in "_$.-"):
                    template.append(" ")
                joins = not brackets
                last = part
                position = end
                continue
            if kind == "string":
                end = string_end(text, position)
                part = (
                    text[position:end]
                    if end - position <= _LONGEST_STRING
                    else text[position : position + 16].rstrip("\\") + '"'
                )
            elif kind == "symbol":
                if end == position + 1:
                    end = string_end(text, end)
                    part = text[position:end]
                joins = not brackets
            elif kind == "prefixed":
                if text.startswith("<", end):
                    end = dialect_body_end(text, end)
                    part = text[position:end]
                elif "." not in part:
                    aliases.append(part)
                joins = not brackets
            elif kind == "number":
                joins = not brackets
            elif kind == "open":
                if part == "{" and (not brackets or brackets[-1][0] == ")"):
                    if self.is_region(position, frame, last, inside=bool(brackets)):
                        if brackets:
                            raise Unreadable(
                                f"a region of '{frame.op.name}' inside parentheses cannot be read",
                                position,
                                "Print the program in generic form, or report the operation.",
                            )
                        self.add_segment(frame, pieces, template, written, aliases, segment, opens=True)
                        self.open_region(frame, end)
                        return end
                    if brackets:  # looked at piece by piece: such groups may stand in each other
                        brackets.append(("}", position))
                    else:
                        close = balanced_end(text, position)
                        part = self.plain_group(position, close)
                        if "%" in part and "%" in _strings("", part):
                            part = "{"
                            brackets.append(("}", position))
                        else:
                            self.check_text(part, position)
                            end = close
                    joins = not brackets
                elif part == "<" and last in LITERALS:
                    end = balanced_end(text, position)
                    self.check_text(text[position:end], position)
                    part = self.plain_group(position, end) if end - position <= _LONGEST_STRING else "<...>"
                    joins = not brackets
                else:
                    brackets.append((CLOSER[part], position))
            elif kind == "close":
                if part != brackets[-1][0]:
                    raise Unreadable(f"unbalanced '{part}': '{brackets[-1][0]}' is missing", position)
                brackets.pop()
                joins = not brackets
            elif kind == "resource":
                raise Unreadable("unexpected '{-#'", position)
            pieces.append(part)
            template.append(part)
            last = part
            position = end
        if brackets:
            raise Unreadable(
                f"the text ends inside '{frame.op.name}'",
                max(len(text.rstrip()) - 1, 0),
                f"The bracket opened on line {text.count(chr(10), 0, brackets[-1][1]) + 1} is not closed.",
            )
        self.add_segment(frame, pieces, template, written, aliases, segment, opens=False)
        op = frame.op
        form = form_of(op.name, "".join(frame.template))
        if form.problem:
            raise Unreadable(form.problem, frame.start)
        op.text = "".join(frame.text).rstrip()
        op.operands = frame.uses
        if form.declares:
            written = []
        frame.uses.extend([self.use(name, segment) for name in written])
        if form.successors:
            self.succeed(op, form.successors, frame.start)
        if form.kept >= 0:
            _list_once(op, form.kept)
        if op.name == "scf.index_switch":  # written last, the default region comes first in the generic form
            op.regions = [*op.regions[-1:], *op.regions[:-1]]
        if frame.more is not None:
            names, more = frame.more
            self.define_results(op, names, more, form.results if more else (form.result,), frame.start)
        elif form.unnamed:
            self.add_results(op, form.unnamed)
        if last in UNFINISHED:
            here = len(self.text[frame.start : position].rstrip()) - 1
            raise Unreadable(f"'{op.name}' ends after '{last}'", frame.start + here)
        if " applies " in op.text:
            self.add_applied(op)
        self.frame.block.ops.append(op)
        return position

    def add_applied(self, op: Op) -> None:
        """The region of `stablehlo.reduce(%a init: %i) applies stablehlo.add ...`, as the generic print has it."""
        words = op.text.partition(" applies ")[2].split(None, 1)
        if not words or "." not in words[0] or op.regions or not op.operands:
            return
        written = self.types[op.operands[-1]]
        region = Region(op)
        block = Block(region)
        region.blocks.append(block)
        op.regions = [region]
        first = len(self.types)
        inner = Op(words[0], "", op.offset, block, implied=True)
        end = Op(f"{op.name.partition('.')[0]}.return", "", op.offset, block, implied=True)
        block.args = [first, first + 1]
        inner.operands = [first, first + 1]
        inner.results = [first + 2]
        end.operands = [first + 2]
        block.ops = [inner, end]
        self.types.extend([written] * 3)
        self.defs.extend([block, block, inner])

    def plain_group(self, position: int, end: int) -> str:
        """The text of an attribute dictionary, comments and long strings left out."""
        text = self.text
        if end - position <= _LONGEST_STRING and "//" not in text[position:end] and "\n" not in text[position:end]:
            return text[position:end]
        out: list[str] = []
        here = position
        while here < end:
            token = TOKEN.match(text, here)
            if token is None:
                raise Unreadable(f"unexpected character {text[here]!r}", here)
            kind = token.lastgroup
            stop = token.end()
            part = token[0]
            if kind == "string":
                stop = string_end(text, here)
                part = text[here:stop] if stop - here <= _LONGEST_STRING else text[here : here + 16].rstrip("\\") + '"'
            elif kind == "symbol" and stop == here + 1:
                stop = string_end(text, stop)
                part = text[here:stop]
            elif kind == "prefixed" and text.startswith("<", stop):
                stop = dialect_body_end(text, stop)
                part = text[here:stop]
            elif part == "<" and out and out[-1] in LITERALS:
                stop = balanced_end(text, here)
                part = text[here:stop] if stop - here <= _LONGEST_STRING else "<...>"
            elif kind == "space" or kind == "comment":
                part = " "
            if part != " " or (out and out[-1] != " "):
                out.append(part)
            here = stop
        return "".join(out)

    def is_label(self, position: int) -> bool:
        """`^name:` or `^name(`...`):`, not a successor."""
        match = _block_label(self.text, position)
        if match is None:
            return False
        end = self.after_space(match.end())
        if self.text.startswith("(", end):
            end = self.after_space(balanced_end(self.text, end))
        return self.text.startswith(":", end)

    def add_segment(
        self,
        frame: _Frame,
        pieces: list[str],
        template: list[str],
        written: list[str],
        aliases: list[str],
        position: int,
        *,
        opens: bool,
    ) -> None:
        """Take over what stands between two regions: text, uses, and arguments of the next region."""
        segment = "".join(template)
        frame.text.extend(pieces)
        frame.template.append(segment)
        if aliases:
            self.check_aliases(tuple(aliases), position)
        if opens:
            form = form_of(frame.op.name, segment.removeprefix("{}") + "{")
            if form.problem and not frame.op.regions:
                raise Unreadable(form.problem, frame.start)
            slots = form.slots
            if len(slots) != len(written):
                slots = (USE,) * len(written)
            self.take_slots(frame, written, slots, position)

    def read_generic(self, position: int, start: int, first: str | None, more: str) -> int:
        """`"a.b"(%x)[^bb] <{...}> ({...}) {...} : (f32) -> f32`, up to its first region or its end."""
        text = self.text
        match = _quoted_op(text, position)
        if not match:
            raise Unreadable("expected `(` after the name of an operation in quotes", position)
        frame = _Frame(Op(match[1], "", start, self.frame.block), _GENERIC_FORM, start)
        if first is not None:
            frame.more = (first, more)
        end = balanced_end(text, match.end() - 1)
        operands = text[match.end() : end - 1]
        names = _find_values(operands)
        if not _is_value_list(operands):
            raise Unreadable(f"the operands of '{match[1]}' are not a list of values", match.end())
        frame.uses = [self.use(name, match.end()) for name in names]
        frame.text = [text[match.end() - 1 : end]]
        position = self.after_space(end)
        if text.startswith("[", position):
            end = balanced_end(text, position)
            labels = successors_of(text[position:end])
            if labels is None:
                raise Unreadable(f"the successors of '{match[1]}' are not a list of labels", position)
            self.succeed(frame.op, labels, position)
            frame.text.append(text[position:end])
            position = self.after_space(end)
        if text.startswith("<", position):
            end = balanced_end(text, position)
            part = self.plain_group(position, end)
            self.check_text(part, position)
            frame.text.append(" " + part)
            position = self.after_space(end)
        if text.startswith("(", position):
            inside = self.after_space(position + 1)
            if not text.startswith("{", inside):
                raise Unreadable(f"expected a region of '{match[1]}'", inside)
            frame.text.append(" (")
            self.open_region(frame, inside + 1)
            return inside + 1
        return self.end_generic(frame, position)

    def go_on_generic(self, frame: _Frame, position: int) -> int:
        """After a region of an operation in generic syntax: its next region, or its end."""
        text = self.text
        frame.text.append("{}")
        position = self.after_space(position)
        if text.startswith(",", position):
            position = self.after_space(position + 1)
            if not text.startswith("{", position):
                raise Unreadable(f"expected a region of '{frame.op.name}'", position)
            frame.text.append(", ")
            self.open_region(frame, position + 1)
            return position + 1
        if not text.startswith(")", position):
            raise Unreadable(f"expected ')' after the regions of '{frame.op.name}'", position)
        frame.text.append(")")
        return self.end_generic(frame, self.after_space(position + 1))

    def end_generic(self, frame: _Frame, position: int) -> int:
        """Attributes and the function type."""
        text = self.text
        op = frame.op
        if text.startswith("{", position):
            end = balanced_end(text, position)
            part = self.plain_group(position, end)
            self.check_text(part, position)
            frame.text.append(" " + part)
            position = self.after_space(end)
        if not text.startswith(":", position):
            raise Unreadable(f"expected ':' and the type of '{op.name}', found {self.shown(position)}", position)
        position = self.after_space(position + 1)
        start = position
        if not text.startswith("(", position):
            raise Unreadable(f"expected the function type of '{op.name}'", position)
        end = balanced_end(text, position)
        takes = split_types(self.plain_group(position, end)[1:-1])
        position = self.after_space(end)
        if not text.startswith("->", position):
            raise Unreadable(f"expected '->' in the function type of '{op.name}'", position)
        position = self.after_space(position + 2)
        gives_at = position
        if text.startswith("(", position):
            end = balanced_end(text, position)
            after = self.after_space(end)
            if text.startswith("->", after):  # one result, itself a function type
                end = type_end(text, position)
                gives: tuple[str, ...] = (normalized(self.plain_group(gives_at, end)),)
            else:
                gives = split_types(self.plain_group(gives_at, end)[1:-1])
        else:
            end = type_end(text, position)
            gives = (normalized(self.plain_group(gives_at, end)),)
        if len(takes) != len(frame.uses):
            raise Unreadable(f"'{op.name}' has {len(frame.uses)} operands and {len(takes)} operand types", start)
        self.check_text(self.plain_group(start, end), start)
        op.text = "".join([*frame.text, " : ", self.plain_group(start, end)])
        op.operands = frame.uses
        location = _location(text, end)
        if location:
            end = balanced_end(text, location.end() - 1)
        first, more = frame.more if frame.more is not None else (None, "")
        self.finish_generic(op, first, more, gives, frame.start)
        return end

    def read_label(self, position: int) -> int:
        """A block label with arguments that span lines or hold brackets."""
        text = self.text
        match = _block_label(text, position)
        if not match:
            raise Unreadable("expected a block label", position)
        end = self.after_space(match.end())
        arguments: list[tuple[str, str]] = []
        if text.startswith("(", end):
            close = balanced_end(text, end)
            here = self.after_space(end + 1)
            while here < close - 1:
                value = re.compile(VALUE, re.ASCII).match(text, here)
                if not value:
                    raise Unreadable(f"expected a block argument, found {self.shown(here)}", here)
                here = self.after_space(value.end())
                if not text.startswith(":", here):
                    raise Unreadable("expected ':' and the type of a block argument", here)
                here = self.after_space(here + 1)
                stop = type_end(text, here)
                arguments.append((value[0], normalized(self.plain_group(here, stop))))
                location = _location(text, stop)
                if location:
                    stop = balanced_end(text, location.end() - 1)
                here = self.after_space(stop)
                if text.startswith(",", here):
                    here = self.after_space(here + 1)
                elif here != close - 1:
                    raise Unreadable(f"expected ',' or ')' after a block argument, found {self.shown(here)}", here)
            end = self.after_space(close)
        if not text.startswith(":", end):
            raise Unreadable(f"expected ':' after the block label '^{match[1]}'", end)
        self.start_block(match[1], arguments, position)
        return end + 1

    # --- aliases ----------------------------------------------------------------------------------------------------

    def read_alias(self, position: int) -> int:
        """`#name = attribute` or `!name = type`."""
        text = self.text
        match = _alias(text, position)
        if not match or self.frame.form != _TOP:
            raise Unreadable(f"expected an operation, found {self.shown(position)}", position)
        size = len(text)
        here = match.end()
        new_line = False
        first = True
        while here < size:
            token = TOKEN.match(text, here)
            if token is None:
                raise Unreadable(f"unexpected character {text[here]!r}", here)
            kind = token.lastgroup
            if kind == "space" or kind == "comment":
                new_line = new_line or "\n" in token[0] or "\r" in token[0]
                here = token.end()
                continue
            if (
                new_line
                and not first
                and kind in ("value", "string", "prefixed", "word", "resource")
                and self.is_operation_start(here, True)
            ):
                break
            if kind == "close":
                raise Unreadable(f"unbalanced '{token[0]}'", here)
            first = new_line = False
            end = token.end()
            if kind == "open":
                end = balanced_end(text, here)
            elif kind == "string":
                end = string_end(text, here)
            elif kind == "symbol" and end == here + 1:
                end = string_end(text, end)
            elif kind == "prefixed" and text.startswith("<", end):
                end = dialect_body_end(text, end)
            here = end
        if first:
            raise Unreadable(f"nothing is written after '{match[1]} ='", position)
        self.define_alias_name(match[1], normalized(self.plain_group(match.end(), here)), position)
        return here

    def define_alias_name(self, name: str, written: str, position: int) -> None:
        """`name` stands for `written` from here on."""
        aliases = self.aliases
        if aliases.get(name, written) != written:
            raise Unreadable(f"redefinition of the alias '{name}'", position, "Split files at `// -----`.")
        if not written.startswith("loc("):
            self.check_text(written, position)
        aliases[name] = written

    def check_aliases(self, used: tuple[str, ...], position: int) -> None:
        for name in used:
            if name not in self.aliases:
                raise Unreadable(f"undefined alias '{name}'", position, f"Define it above: `{name} = ...`.")

    def check_text(self, text: str, position: int) -> None:
        """Every alias used in an attribute or a type is defined."""
        if ("#" in text or "!" in text) and any(name not in self.aliases for name in alias_uses(text)):
            self.check_aliases(aliases_in(text), position)

    def expand_types(self) -> None:
        """Aliases in the types of values."""
        types = self.types
        expand = self.program.aliases.expand
        for value, written in enumerate(types):
            if "!" in written or "#" in written:
                try:
                    expanded = expand(written)
                except TooLongError as problem:
                    owner = self.defs[value]
                    owner = owner if isinstance(owner, Op) else owner.parent.parent
                    raise Unreadable(f"a type of '{owner.name}' is too long: {problem}", owner.offset) from None
                if written[0] == "#" and " : " in expanded:  # arith.constant #two
                    expanded = expanded.rpartition(" : ")[2]
                types[value] = expanded


_strings = re.compile(r'"(?:[^"\\]++|\\[\s\S])*+"?+', re.ASCII).sub
_locations = re.compile(r"(?<![\[({=,:]) loc\((?:[^()\"]++|\([^()\"]*+\))*+\)", re.ASCII).sub


def _list_once(op: Op, kept: int) -> None:
    """Operands of an affine access: each subscript value once, as in the map's operand list."""
    operands = op.operands
    subscripts = operands[kept + 0 :]
    if len(subscripts) > 1 and len(set(subscripts)) < len(subscripts):
        op.operands = [*operands[:kept], *dict.fromkeys(subscripts)]


def _text_of(source: object, path: str) -> tuple[str, str]:
    """Text without a byte order mark, and path."""
    text, path = text_and_path(source, path)
    if text.startswith(("ML\xefR", "ML\udcefR", "ML\ufffdR")):
        return text_and_path(BYTECODE, path)
    return text.removeprefix("\ufeff"), path


def read(source: object, *, path: str = "<text>") -> Program:
    """Read one MLIR module.

    Parameters
    ----------
    source : str or bytes (the text), os.PathLike (a file), an object of an MLIR library or any whose `str()` is MLIR;
        `sources.text_and_path` says how each is read
    path : name for messages, where the source has none of its own

    Raises
    ------
    ReadError
        The text is not MLIR, is cut off, is bytecode, or cannot be read exactly. It says where.
    """
    text, path = _text_of(source, path)
    collecting = len(text) > 100_000 and gc.isenabled()
    if collecting:
        gc.disable()
    try:
        try:
            return _Reader(text, path).run()
        except _Careful:
            return _Reader(text, path, careful=True).run()
    except Unreadable as failure:
        error = error_at(failure, text, path)
        raise (error if is_text(source) else not_mlir(source, text, error)) from None
    finally:
        if collecting:
            gc.enable()


class _TokenReader(_Reader):
    """Reads no line at once."""

    def __init__(self, text: str, path: str) -> None:
        super().__init__(text, path, careful=True)

    def read_line(self, position: int) -> int:
        return -1


def read_by_tokens(source: object, *, path: str = "<text>") -> Program:
    """`read` without its short ways for whole lines: slower, and the same result, for tests to compare with."""
    text, path = _text_of(source, path)
    try:
        return _TokenReader(text, path).run()
    except Unreadable as failure:
        raise error_at(failure, text, path) from None


def read_path(path: str | os.PathLike[str]) -> Program:
    """Read the MLIR module in a file."""
    return read(Path(path))
