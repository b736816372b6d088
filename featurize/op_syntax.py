"""What the text of one operation in custom syntax says, apart from the names of its values.

The reader replaces each `%name` by `%` and asks for the `Form` of what is left, the template. Programs repeat few
templates (`arith.addf` ` %, % : f32`), so the analysis here runs once for each and the reader looks the rest up.
"""

from __future__ import annotations

import re
from typing import Any

from .dialects import (
    ALWAYS_ONE_RESULT,
    ELEMENT_RESULT,
    FUNCTION_VALUE,
    INDEX_RESULT,
    LOOPS,
    ONE_RESULT,
    OPERANDS,
    REGION_ENDS,
    REGIONLESS,
    REGIONLESS_BUT,
    USE_KEYWORDS,
    WITH_BUILTIN_TYPES,
    is_region_first,
)
from .lexer import CLOSER, TOKEN, Unreadable, dialect_body_end, string_end
from .types import is_type, parse_type, split_types, with_element

USE = (0, "")
"""A slot that uses a value."""
DEFINE, MAYBE, LIKE_NEXT = 1, 2, 3
"""Other slots: a block argument of the type given; one if the name is not defined yet, else a use; a block argument
with the type of the next use (`%acc = %init`)."""

Slot = tuple[int, str]


class Form:
    """What a template says."""

    __slots__ = (
        "aliases",
        "declares",
        "facts",
        "kept",
        "plain",
        "problem",
        "result",
        "results",
        "slots",
        "special",
        "successors",
        "unnamed",
        "whole",
    )

    def __init__(self) -> None:
        self.whole = False
        """It is exactly one operation (or one up to the `{` of its region) for certain; if not, read token by token."""
        self.slots: tuple[Slot, ...] = ()
        """One for each `%`."""
        self.plain = True
        """All slots are uses."""
        self.results: tuple[str, ...] = ()
        """Types of the results as far as the text tells."""
        self.result = ""
        """The type, if there is one result."""
        self.unnamed: tuple[str, ...] = ()
        """Types of the results that the operation has although no name is given to them."""
        self.aliases: tuple[str, ...] = ()
        """`#name` and `!name` used, in order."""
        self.successors: tuple[str, ...] = ()
        """Labels without `^`."""
        self.declares = False
        """A function without a body: the names of its arguments are no values."""
        self.problem = ""
        """Why it cannot be what it seems to be."""
        self.special = False
        """It has aliases or successors."""
        self.kept = -1
        """For affine accesses: operands from this one on are listed once each; -1 for other operations."""
        self.facts: Any = None
        """What the analyses found out about operations of this form; theirs alone."""


class _Token:
    __slots__ = ("kind", "partner", "spaced", "text")

    def __init__(self, kind: str, text: str, spaced: bool) -> None:
        self.kind, self.text, self.spaced, self.partner = kind, text, spaced, -1


def _lex(template: str) -> list[_Token] | None:
    """Tokens with their bracket partners; None where brackets do not balance or something is no token."""
    out: list[_Token] = []
    open_at: list[int] = []
    pos = 0
    size = len(template)
    spaced = False
    while pos < size:
        if template[pos] == "%":
            out.append(_Token("slot", "%", spaced))
            spaced = False
            pos += 1
            if pos < size and (template[pos].isalnum() or template[pos] in "_$.-"):
                return None
            continue
        match = TOKEN.match(template, pos)
        if match is None and template[pos] == "^":  # a label whose name is hidden
            out.append(_Token("label", "^", spaced))
            spaced = False
            pos += 1
            continue
        if match is None:
            return None
        kind = match.lastgroup or ""
        end = match.end()
        if kind in ("space", "comment"):
            spaced = True
            pos = end
            continue
        try:
            if kind == "string":
                end = string_end(template, pos)
            elif kind == "symbol" and end == pos + 1:
                end = string_end(template, end)
            elif kind == "prefixed" and template.startswith("<", end):
                end = dialect_body_end(template, end)
                kind = "dialect"
        except Unreadable:
            return None
        token = _Token(kind, template[pos:end], spaced)
        if token.text == ">=" and open_at and out[open_at[-1]].text == "<":
            return None  # a bracket and an equals sign
        if kind == "open":
            open_at.append(len(out))
        elif kind == "close":
            if not open_at or CLOSER[out[open_at[-1]].text] != token.text:
                return None
            token.partner = open_at.pop()
            out[token.partner].partner = len(out)
        out.append(token)
        spaced = False
        pos = end
    return None if open_at else out


def _text(tokens: list[_Token], start: int, end: int) -> str:
    """Text of a run of tokens, white space as single spaces."""
    return "".join((" " if token.spaced and k else "") + token.text for k, token in enumerate(tokens[start:end]))


def _top(tokens: list[_Token]) -> list[int]:
    """Positions of the tokens outside all brackets; a bracket stands for its whole group."""
    out = []
    k = 0
    while k < len(tokens):
        out.append(k)
        k = tokens[k].partner + 1 if tokens[k].kind == "open" else k + 1
    return out


def _is_dictionary(op_name: str, tokens: list[_Token], k: int, *, first: bool) -> bool:
    """Is the `{` at `k` the start of an attribute dictionary for certain? `first`: it is the first outside brackets."""
    if k + 2 >= len(tokens) or tokens[k + 1].kind not in ("word", "string"):
        return False
    if first and is_region_first(op_name) and tokens[k - 1].text != "attributes":
        return False
    after = tokens[k + 2].text
    if after in ("=", ","):
        return True
    if after != "}":
        return False
    name = tokens[k + 1].text
    dialect = op_name.partition(".")[0]
    if dialect in REGIONLESS or "." not in name:
        return True
    if tokens[k + 1].spaced and name.partition(".")[0] == dialect:
        return False
    return name.rpartition(".")[2].rpartition("_")[2] not in REGION_ENDS


UNFINISHED = frozenset([",", ":", "->", "=>", "=", "-", "attributes"])
"""No operation ends after one of these."""

LONGEST_PHRASE = 6
"""More words than this in a row are no operation's syntax."""

JOINED_NAMES = frozenset(["return", "call", "module"])
"""Operations that may start without their dialect on the line on which another one ends, behind a bracket."""

LITERALS = frozenset(["dense", "array", "sparse"])
"""Words before the `<...>` of an attribute that holds numbers."""

_ENDS_OPERAND = frozenset(["value", "word", "number", "string", "symbol", "label", "close", "prefixed", "dialect"])


def _names_results(tokens: list[_Token], top: list[int], at: int) -> bool:
    """Is what starts here `%a:2, %b =`?"""
    for k in top[at:]:
        token = tokens[k]
        if token.text == "=":
            return True
        if token.kind not in ("slot", "number") and token.text not in (":", ","):
            return False
    return False


def _one_statement(name: str, tokens: list[_Token], top: list[int], opens: bool) -> bool:
    """No second operation starts inside, and every `{` is a dictionary (but the last one, if it opens a region)."""
    if any(token.text == "{" for token in tokens):
        first = next((k for k in top if tokens[k].text == "{"), -1)
        for k, token in enumerate(tokens):
            if token.text == "{" and not _is_dictionary(name, tokens, k, first=k == first):
                return False
    previous = None
    words = 0
    for at, k in enumerate(top):
        token = tokens[k]
        words = words + 1 if token.kind == "word" else 0
        if words > LONGEST_PHRASE or (token.text == "loc" and tokens[min(k + 1, len(tokens) - 1)].text == "("):
            return False
        if previous is not None and tokens[previous].kind in ("open", "dialect"):
            if token.kind == "word" and ("." in token.text or token.text in JOINED_NAMES):
                return False
            if token.kind == "slot" and _names_results(tokens, top, at):
                return False
        elif token.kind == "word" and "." in token.text and previous is not None and token.spaced:
            before = tokens[previous]
            if before.text == "applies":
                return False  # its region is added where operations are read token by token
            ends = before.kind in _ENDS_OPERAND or before.text == "%"
            if ends or (before.text == "=" and not (opens and tokens[top[at - 2]].text != "%")):
                return False
        if token.kind == "resource":
            return False
        previous = k
    return previous is None or tokens[previous].text != "applies"


def _types_in(tokens: list[_Token], start: int, end: int) -> tuple[str, ...]:
    """Types between two positions, split at commas outside brackets; one pair of parentheses around all is dropped."""
    if start < end and tokens[start].text == "(" and tokens[start].partner == end - 1:
        start, end = start + 1, end - 1
    return tuple(_cleaned(part) for part in split_types(_text(tokens, start, end)) if part)


def _cleaned(text: str) -> str:
    """A result's type without its name, attributes and location: `%x: i32 {a.b}` -> `i32`."""
    if text.endswith("}") and (at := text.find(" {")) > 0:
        text = text[:at]
    if text.endswith(")") and (at := text.find(" loc(")) > 0:
        text = text[:at]
    return text


_STOPS = frozenset(["attributes", "loc"])
_REGION_NAMES = frozenset(["cond", "do", "reducer"])
"""Words after the types that say which region follows."""


def _result_types(name: str, tokens: list[_Token], top: list[int]) -> tuple[str, ...]:
    """Types of the results, as the operation's own rule or the common ways to write them say."""
    end = len(tokens)
    colon = arrow = -1
    for k in top:
        token = tokens[k]
        if (token.text == "{" and k > max(colon, arrow) >= 0 and end == len(tokens)) or (
            token.kind == "word"
            and end == len(tokens)
            and (token.text in _STOPS or (token.text in _REGION_NAMES and max(colon, arrow) >= 0))
        ):
            end = k
        elif token.text == ":" and k < end:
            colon = k
        elif token.kind == "arrow" and k < end and not (k + 1 < len(tokens) and tokens[k + 1].text == "["):
            arrow = k  # `[b, f]x[i, o]->[b, f]` is a layout
    if name in INDEX_RESULT:
        return ("index",)
    if name in FUNCTION_VALUE and colon >= 0:
        return (_text(tokens, colon + 1, end),)
    rule = _SPECIAL.get(name)
    if rule is None and name.startswith("linalg.") and name != "linalg.index":
        rule = _destinations
    if rule is not None:
        special = rule(name, tokens, top, colon, arrow, end)
        if special is not None:
            return special
    if arrow > colon:
        return _types_in(tokens, arrow + 1, end)
    if colon < 0:
        return ()
    start = colon + 1
    parts_end = end
    for k in top:
        if colon < k < end and tokens[k].kind == "word":
            word = tokens[k].text
            if word in ("to", "into"):
                start = k + 1
            elif word in ("from", "of", "in") and parts_end == end:
                parts_end = k
    types = _types_in(tokens, start, parts_end if parts_end > start else end)
    if name in ELEMENT_RESULT and types:
        return (parse_type(types[0]).element,)
    return types


def _compared(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """i1, or a shape of i1."""
    if arrow > colon or colon < 0:
        return None
    types = _types_in(tokens, colon + 1, end)
    return (with_element(types[0], "i1"),) if types else None


def _constant(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """The written type, or the one that a bare literal has."""
    if colon >= 0 or not top:
        return None
    written = [tokens[k] for k in top if tokens[k].text not in ("{", "-")]
    if len(written) != 1:
        return ()
    last = written[0]
    if last.text in ("true", "false"):
        return ("i1",)
    if last.kind == "number":
        return ("f64" if "." in last.text and not last.text.startswith("0x") else "i64",)
    if last.kind == "prefixed":
        return (last.text,)
    return None


def _carried(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """A loop or conditional gives what stands after its arrow; the type after `:` is the counter's."""
    return _types_in(tokens, arrow + 1, _type_end(tokens, arrow + 1)) if arrow >= 0 else ()


def _type_end(tokens: list[_Token], k: int) -> int:
    """The position after the type, or the parenthesised list of types, that starts at `k`."""
    while k < len(tokens) and tokens[k].text == "(":
        k = tokens[k].partner + 1
        if k == len(tokens) or tokens[k].kind != "arrow":
            return k
        k += 1
    if k >= len(tokens):
        return k
    k += 1
    if k < len(tokens) and tokens[k].text == "<":
        return tokens[k].partner + 1
    return k


def _destinations(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """A linalg operation gives what its arrow says, else the types of its `outs` that are tensors."""
    if arrow >= 0:
        return _types_in(tokens, arrow + 1, _type_end(tokens, arrow + 1))
    for k in top:
        if tokens[k].text in ("outs", "init") and k + 1 < len(tokens) and tokens[k + 1].text == "(":
            first, last = k + 2, tokens[k + 1].partner
            for inner in range(first, last):
                if tokens[inner].text == ":":
                    types = _types_in(tokens, inner + 1, last)
                    return tuple(part for part in types if part.startswith(("tensor", "!")))
    return None


def _first_of_arrow(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """`: (!llvm.ptr, i64) -> !llvm.ptr, f32`: the first type after the arrow."""
    if arrow < 0:
        return None
    types = _types_in(tokens, arrow + 1, end)
    return types[:1]


_LONGEST_PATH = 100
"""A member that stands in more structures than this has no type."""


def _member(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """`%s[1, 0] : !llvm.struct<(i32, array<2 x f32>)>`: the member at that position."""
    if colon < 0:
        return None
    text = _text(tokens, colon + 1, end)
    steps = 0
    for k in top:
        if tokens[k].text == "[":
            for inner in range(k + 1, tokens[k].partner):
                if tokens[inner].kind == "number":
                    at = tokens[inner].text
                    steps += 1
                    if steps > _LONGEST_PATH or not at.isdigit() or len(at) > 9:
                        return ("",)
                    text = _struct_member(text, int(at))
    return (text,)


def _struct_member(text: str, position: int) -> str:
    body = text.removeprefix("!llvm.")
    if body.startswith("struct<") and 0 < body.find("(") < body.rfind(")"):
        members = split_types(body[body.index("(") + 1 : body.rindex(")")])
        if position < len(members):
            member = members[position]
            return f"!llvm.{member}" if member.startswith(("ptr", "struct", "array")) else member
    if body.startswith("array<") and " x " in body:
        member = body[body.index(" x ") + 3 : -1]
        return f"!llvm.{member}" if member.startswith(("ptr", "struct", "array")) else member
    return ""


def _shuffled(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """`%a, %b [0, 4, 1, 5] : vector<4xf32>, vector<4xf32>`: as many elements as the mask has."""
    types = _types_in(tokens, colon + 1, end) if colon >= 0 else ()
    for k in top:
        if tokens[k].text == "[" and types:
            count = sum(1 for inner in tokens[k + 1 : tokens[k].partner] if inner.kind == "number")
            info = parse_type(types[0])
            sizes = (count, *(info.shape or ())[1:])
            return (f"vector<{''.join(f'{size}x' for size in sizes)}{info.element}>",)
    return None


def _outer_product(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """`vector<4xf32>, vector<8xf32>` -> `vector<4x8xf32>`; with a scalar, the vector."""
    types = _types_in(tokens, colon + 1, end) if colon >= 0 else ()
    if len(types) != 2 or not types[1].startswith("vector<"):
        return types[:1]
    left, right = types[0][len("vector<") : -1], types[1][len("vector<") :]
    if "x" not in left:
        return types[:1]
    return (f"vector<{left[: left.rindex('x') + 1]}{right}",)


def _first_type(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    return _types_in(tokens, colon + 1, end)[:1] if colon >= 0 else None


def _async_token(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    return ("!gpu.async.token",)


def _copy_token(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    return ("!nvgpu.device.async.token",)


def _value_and_bit(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    types = _types_in(tokens, colon + 1, end) if colon >= 0 else ()
    return (*types[:1], "i1")


def _complex_part(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    types = _types_in(tokens, colon + 1, end) if colon >= 0 else ()
    if types and types[0].startswith("complex<"):
        return (types[0][len("complex<") : -1],)
    return None


def _future(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """`async.execute` gives a token first."""
    rest = _types_in(tokens, arrow + 1, _type_end(tokens, arrow + 1)) if arrow >= 0 else ()
    return ("!async.token", *rest)


def _with_token(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """`gpu.alloc async` gives a token after the memref."""
    types = _types_in(tokens, colon + 1, end) if colon >= 0 else ()
    return (*types[-1:], "!gpu.async.token") if any(tokens[k].text == "async" for k in top) else None


def _from_buffer(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """The older `bufferization.to_tensor %m : memref<4xf32>` gives the tensor of that shape."""
    types = _types_in(tokens, colon + 1, end) if colon >= 0 else ()
    if len(types) == 1 and types[0].startswith("memref<") and not any(tokens[k].text == "to" for k in top):
        return (with_element(types[0], parse_type(types[0]).element).replace("memref", "tensor", 1),)
    return None


_POINTEE = re.compile(r"!tt\.ptr<([^<>,]++(?:<[^<>]*+>)?+)(?:,\s*+\d++)?+>")


def _loaded(
    name: str, tokens: list[_Token], top: list[int], colon: int, arrow: int, end: int
) -> tuple[str, ...] | None:
    """What a `!tt.ptr<f32>`, a block of them or a pointer to a block points to."""
    types = _types_in(tokens, colon + 1, end) if colon >= 0 else ()
    return (_POINTEE.sub(r"\1", types[0]),) if types else None


_SPECIAL = {
    "tt.load": _loaded, "tt.addptr": _first_type,
    "arith.cmpi": _compared, "arith.cmpf": _compared, "llvm.icmp": _compared, "llvm.fcmp": _compared,
    "index.cmp": _compared, "math.isnan": _compared, "math.isinf": _compared, "math.isfinite": _compared,
    "math.isnormal": _compared, "complex.eq": _compared, "complex.neq": _compared,
    "arith.constant": _constant, "index.constant": lambda *_: ("index",), "index.bool.constant": lambda *_: ("i1",),
    "memref.global": lambda *_: (),
    "scf.for": _carried, "scf.if": _carried, "scf.parallel": _carried, "scf.forall": _carried,
    "scf.index_switch": _carried,
    "affine.for": _carried, "affine.if": _carried, "affine.parallel": _carried,
    "math.fpowi": _first_type, "gpu.shuffle": _value_and_bit, "nvgpu.device_async_copy": _copy_token,
    "nvgpu.device_async_create_group": _copy_token, "llvm.shufflevector": _shuffled,
    "gpu.memcpy": _async_token, "gpu.memset": _async_token, "gpu.dealloc": _async_token, "gpu.wait": _async_token,
    "gpu.launch": _async_token, "gpu.launch_func": _async_token,
    "llvm.getelementptr": _first_of_arrow, "llvm.extractvalue": _member,
    "vector.shuffle": _shuffled, "vector.outerproduct": _outer_product,
    "complex.re": _complex_part, "complex.im": _complex_part, "complex.abs": _complex_part,
    "gpu.alloc": _with_token, "async.execute": _future, "bufferization.to_tensor": _from_buffer,
}  # fmt: skip


_DEEPEST_ARGUMENT = 8
"""Block arguments stand in at most so many brackets."""


def _slots(name: str, tokens: list[_Token]) -> tuple[Slot, ...]:
    """What each `%` before a region is: a use, or an argument of the region's first block."""
    slots: list[Slot] = []
    carried: list[int] = []
    opened: list[int] = []
    is_function = name.rpartition(".")[2].rpartition("$")[2] in _FUNCTIONS
    is_loop = name in LOOPS
    size = len(tokens)
    for k, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(k)
            continue
        if token.kind == "close":
            opened.pop()
            continue
        if token.text != "%":
            continue
        after = tokens[k + 1].text if k + 1 < size else ""
        before = tokens[k - 1].text if k else ""
        group = opened[-1] if opened and tokens[opened[-1]].text == "(" else -1
        keyword = tokens[group - 1].text if group > 0 else ""
        after_group = ""
        if group >= 0 and tokens[group].partner + 1 < size:
            after_group = tokens[tokens[group].partner + 1].text
        if after == "=":
            if (is_loop and (group < 0 or keyword not in ("iter_args", "shared_outs"))) or name == "gpu.launch":
                slots.append((DEFINE, "index"))
            else:
                carried.append(len(slots))
                slots.append((LIKE_NEXT, ""))
        elif before == "as":  # `%future as %x: !async.value<f32>`
            written = _types_in(tokens, k + 2, _argument_end(tokens, k + 2))
            future = written[0] if written else ""
            slots.append((DEFINE, future.removeprefix("!async.value<")[:-1] if "<" in future else future))
        elif group >= 0 and keyword in USE_KEYWORDS:
            slots.append(USE)
        elif after == ":" and group >= 0 and len(opened) <= _DEEPEST_ARGUMENT:
            written = _types_in(tokens, k + 2, _argument_end(tokens, k + 2))
            slots.append((DEFINE if is_function else MAYBE, written[0] if written else ""))
        elif group >= 0 and (after_group == "in" or (after_group == "=" and is_loop)):
            slots.append((DEFINE, "index"))
        elif name == "affine.parallel":
            slots.append((0, keyword if keyword in ("to", "=") else _bound_side(tokens, opened)))
        elif is_loop or name in _NO_ARGUMENTS:
            slots.append(USE)
        else:
            slots.append((MAYBE, ""))
    if is_loop:
        _type_loop_slots(name, tokens, slots, carried)
    return tuple(slots)


_FUNCTIONS = frozenset(
    [
        "func",
        "module",
        "entry",
        "kernel",
        "program",
        "class",
        "component",
        "machine",
        "define",
        "model",
        "named_sequence",
    ]
)


def _unnamed(name: str, form: Form, tokens: list[_Token], top: list[int]) -> tuple[str, ...]:
    """Types of results that are not named: of operations that always have one, and of those that write an arrow."""
    last = name.rpartition(".")[2].rpartition("$")[2]
    if last in _FUNCTIONS or last in _DECLARED or name in ("func.constant",):
        return ()
    if name.partition(".")[0] in ALWAYS_ONE_RESULT or name in ONE_RESULT:
        return (form.result,)
    if any(tokens[k].kind == "arrow" for k in top) and not any("%" in text or ":" in text for text in form.results):
        return form.results
    return ()


_DECLARED = frozenset(["func", "import", "extern", "generated"])
_NO_ARGUMENTS = frozenset(["scf.if", "affine.if", "scf.index_switch", "scf.execute_region", "memref.alloca_scope"])


def _bound_side(tokens: list[_Token], opened: list[int]) -> str:
    """Which list of bounds of an affine.parallel a value stands in."""
    return tokens[opened[0] - 1].text if opened and opened[0] else ""


def _argument_end(tokens: list[_Token], k: int) -> int:
    """The end of the type of a block argument: before its attributes, location, `=`, the comma or the parenthesis."""
    while k < len(tokens):
        token = tokens[k]
        if token.kind == "open" and token.text != "{":
            k = token.partner + 1
        elif token.kind == "close" or token.text in (",", "{", "=", "loc"):
            return k
        else:
            k += 1
    return k


def _type_loop_slots(name: str, tokens: list[_Token], slots: list[Slot], carried: list[int]) -> None:
    """Types of what a loop carries, from the list after `->`; a counter that is not an index has its type after `:`."""
    top = _top(tokens)
    arrow = next((k for k in reversed(top) if tokens[k].kind == "arrow"), -1)
    if arrow >= 0 and carried:
        types = _types_in(tokens, arrow + 1, _type_end(tokens, arrow + 1))
        if len(types) == len(carried):
            for at, written in zip(carried, types, strict=True):
                slots[at] = (DEFINE, written)
    colon = next((k for k in reversed(top) if tokens[k].text == ":"), -1)
    if name == "scf.for" and colon >= 0 and slots:
        slots[0] = (DEFINE, _text(tokens, colon + 1, _type_end(tokens, colon + 1)))


_AFFINE_ACCESS = {
    "affine.load": 1, "affine.store": 2, "affine.vector_load": 1, "affine.vector_store": 2, "affine.prefetch": 1,
}  # fmt: skip


_FUNCTION_HEADS = frozenset(["func.func", "llvm.func", "gpu.func"])


def _head_problem(name: str, tokens: list[_Token]) -> str:
    """A function is written with its name and its arguments, each with a type."""
    if name not in _FUNCTION_HEADS:
        return ""
    at = next((k for k, token in enumerate(tokens) if token.kind == "symbol"), -1)
    if at < 0:
        return f"'{name}' has no name"
    if at + 1 == len(tokens) or tokens[at + 1].text != "(":
        return f"'{name}' has no list of arguments"
    end = tokens[at + 1].partner
    if any(token.text == "%" and tokens[k + 1].text != ":" for k, token in enumerate(tokens[:end]) if k > at):
        return f"an argument of '{name}' has no type"
    return ""


def _problem(name: str, form: Form, tokens: list[_Token], top: list[int]) -> str:
    """What is wrong with an operation of a dialect whose types and operands are known."""
    dialect = name.partition(".")[0]
    if dialect not in WITH_BUILTIN_TYPES:
        return ""
    types = form.results
    colon = next((k for k in reversed(top) if tokens[k].text == ":"), -1)
    if not types and name in ("func.return", "memref.store", "affine.store", "scf.yield", "affine.yield"):
        types = _types_in(tokens, colon + 1, len(tokens)) if colon >= 0 else ()
    if name == "arith.constant" and not types:
        return f"'{name}' has no type"
    wrong = next((text for text in types if text and not is_type(text)), None)
    if wrong is not None:
        return f"'{wrong}' in '{name}' is not a type"
    count = OPERANDS.get(name)
    if count is not None and count != sum(token.text == "%" for token in tokens):
        return f"'{name}' takes {count} operand{'s' if count > 1 else ''}"
    return ""


def _values_in_literals(tokens: list[_Token]) -> bool:
    """`dense<%x>`: not an attribute, whatever it is."""
    k = 0
    while k + 1 < len(tokens):
        if tokens[k].text in LITERALS and tokens[k + 1].text == "<":
            end = tokens[k + 1].partner
            if any(token.kind == "slot" for token in tokens[k:end]):
                return True
            k = end
        k += 1
    return False


def analyse(name: str, template: str) -> Form:
    """The form of a template. A last `{` that is not closed stands for a region that opens there."""
    form = Form()
    opens = template.endswith("{")
    tokens = _lex(template[:-1] if opens else template)
    if tokens is None:
        return form
    top = _top(tokens)
    form.whole = (
        _one_statement(name, tokens, top, opens)
        and not any(token.kind != "slot" and "%" in token.text for token in tokens)
        and not (tokens and tokens[-1].text in UNFINISHED)
        and not _values_in_literals(tokens)
        and name[-1] != "."
    )
    form.aliases = tuple(
        token.text for k, token in enumerate(tokens) if token.kind == "prefixed" and "." not in token.text
    )
    form.successors = tuple(token.text[1:] for token in tokens if token.kind == "label")
    if opens:
        form.problem = _head_problem(name, tokens)
        dialect = name.partition(".")[0]
        form.whole = form.whole and not form.problem and (dialect not in REGIONLESS or name in REGIONLESS_BUT)
        form.slots = _slots(name, tokens)
        form.plain = all(slot is USE for slot in form.slots)
        return form
    form.results = tuple("" if "%" in text else text for text in _result_types(name, tokens, top))
    form.result = form.results[-1] if form.results else ""
    form.unnamed = _unnamed(name, form, tokens, top)
    form.problem = _head_problem(name, tokens) or _problem(name, form, tokens, top)
    form.whole = form.whole and not form.problem
    if "%" in template and name.rpartition(".")[2].rpartition("$")[2] in _DECLARED:
        form.declares = True
        form.whole = False
    form.kept = _AFFINE_ACCESS.get(name, -1)
    form.special = bool(form.aliases or form.successors)
    return form


FORMS: dict[str, Form] = {}
_SHAPES: dict[str, Form] = {}
"""Forms of templates whose numbers are replaced by codes."""
_MOST_FORMS = 20000
_LONGEST_KEY = 2000


def form_of(name: str, template: str) -> Form:
    """`analyse` with a bounded memory; safe to call from several threads."""
    key = name + template
    form = FORMS.get(key)
    if form is None:
        if len(key) > _LONGEST_KEY:
            return analyse(name, template)
        if len(FORMS) >= _MOST_FORMS:
            FORMS.clear()
            _SHAPES.clear()
        form = _renumbered(name, template) if name in _NUMBERS_ARE_SIZES else None
        FORMS[key] = form = form or analyse(name, template)
    return form


_NUMBERS_ARE_SIZES = frozenset(
    ("affine.load", "affine.store", "affine.vector_load", "affine.vector_store", "affine.for", "affine.apply",
     "affine.min", "affine.max", "arith.constant", "func.func", "memref.load", "memref.store", "memref.alloc",
     "memref.alloca", "memref.dealloc", "scf.for", "scf.yield", "affine.yield", "vector.load", "vector.store",
     "vector.transfer_read", "vector.transfer_write")
)  # fmt: skip
"""Operations of which every program has its own extents, bounds and constants: what their text says does not depend on
how large these are."""
_NUMBER = re.compile(
    r"(?<![\w.$#!@^%\-])([0-9]++)(?![\w.])|(?<=[<x])([0-9]++)(?=x)|(?<![\w.$#!@^%])([0-9]++\.[0-9]++(?:[eE][+-]?[0-9]++)?)(?![\w.])"
)
"""A whole number, an extent, or a fraction."""
_HEXADECIMAL = re.compile(r"(?<!\w)0x")
_FIRST_CODE = 90_000_000
_CODE = re.compile(r"90[0-9]{6}(?:\.5)?")


def _renumbered(name: str, template: str) -> Form | None:
    """The form of a template from that of one that differs in numbers alone; None where that is not certain."""
    if '"' in template or _HEXADECIMAL.search(template):
        return None
    numbers: list[str] = []

    def coded(match: re.Match[str]) -> str:
        numbers.append(match[0])
        return f"{_FIRST_CODE + len(numbers) - 1}{'.5' if match.lastindex == 3 else ''}"

    shape = _NUMBER.sub(coded, template)
    known = _SHAPES.get(name + shape)
    if known is None:
        known = _SHAPES[name + shape] = analyse(name, shape)
    if known.problem or len(numbers) >= 1_000_000 or _CODE.search(template):
        return None

    def own(text: str) -> str:
        return _CODE.sub(lambda match: numbers[int(match[0][:8]) - _FIRST_CODE], text) if "90" in text else text

    form = Form()
    form.whole, form.plain, form.special, form.kept = known.whole, known.plain, known.special, known.kept
    form.aliases, form.successors, form.declares = known.aliases, known.successors, known.declares
    form.slots = known.slots if known.plain else tuple([(kind, own(text)) for kind, text in known.slots])
    form.results = tuple(map(own, known.results))
    form.result = form.results[-1] if form.results else ""
    form.unnamed = tuple(map(own, known.unnamed))
    return form


__all__ = [
    "DEFINE",
    "FORMS",
    "JOINED_NAMES",
    "LIKE_NEXT",
    "LITERALS",
    "MAYBE",
    "UNFINISHED",
    "USE",
    "Form",
    "analyse",
    "form_of",
]
