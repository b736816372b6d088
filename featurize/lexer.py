"""The words of MLIR text: patterns for each kind of token, and the few skips that patterns cannot do in linear time.

All patterns are ASCII and possessive, so none of them backtracks. Text is a `str` whose characters above 0x7F only
ever stand inside strings and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import ReadError

SPACE = r"(?:[ \t\r\n]++|//[^\r\n]*+)*+"
"""White space and comments; a carriage return ends a comment too."""
VALUE = r"%(?:[0-9]++|[A-Za-z$._\-][A-Za-z0-9_$.\-]*+)"
"""An SSA name, without `#n`."""
IDENT = r"[A-Za-z_][A-Za-z0-9_$.]*+"
"""A bare identifier, dots included: `arith.addf`, `iter_args`."""
RESULTS = rf"{VALUE}(?::[0-9]++)?+(?:{SPACE},{SPACE}{VALUE}(?::[0-9]++)?+)*+"

_COMPLETE_STRING = r'"(?:[^"\\\n]++|\\.)*+"'

skip_space = re.compile(SPACE, re.ASCII).match
"""`skip_space(text, pos).end()` is the next position that is neither white space nor comment."""

TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\r\n]++)
    | (?P<comment>//[^\r\n]*+)
    | (?P<value>{VALUE}(?:\#[0-9]++)?+)
    | (?P<symbol>@(?:[A-Za-z_][A-Za-z0-9_$.\-]*+|(?=")))
    | (?P<label>\^(?:[0-9]++|[A-Za-z$._\-][A-Za-z0-9_$.\-]*+))
    | (?P<prefixed>[#!](?:[0-9]++|{IDENT}))
    | (?P<word>{IDENT})
    | (?P<number>[0-9](?:[A-Za-z0-9_.]|(?<=[eE])[+-](?=[0-9]))*+)
    | (?P<arrow>[-=]>)
    | (?P<compare>[<>=]=)
    | (?P<resource>\{{-\#)
    | (?P<open>[(\[{{<])
    | (?P<close>[)\]}}>])
    | (?P<string>")
    | (?P<punct>::|\.\.\.|[:,=+\-*?|/])
    """,
    re.ASCII | re.VERBOSE,
)
"""One token. `string` and a quoted `symbol` match only their first character: `string_end` finds the rest."""

CLOSER = {"(": ")", "[": "]", "{": "}", "<": ">"}

_string = re.compile(_COMPLETE_STRING, re.ASCII)


LONGEST_MESSAGE = 240


class Unreadable(Exception):
    """A position where reading stopped; the reader turns it into a `ReadError` with line, column and source line."""

    def __init__(self, message: str, position: int, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.position, self.hint = message, position, hint


def error_at(failure: Unreadable, text: str, path: str) -> ReadError:
    """The `ReadError` that shows a failure at its place in the text."""
    position = min(failure.position, len(text))
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position, position + 400)
    if end < 0:
        end = min(len(text), position + 400)
    column = position - start + 1
    shown = text[max(start, position - 400) : end].rstrip("\r")
    line = text.count("\n", 0, position) + 1
    printable = "".join(c if c.isprintable() or c == "\t" else "�" for c in shown)
    message = failure.message
    if len(message) > LONGEST_MESSAGE:  # it quotes the text
        message = f"{message[: LONGEST_MESSAGE - 60]}...{message[-50:]}"
    return ReadError(message, path=path, line=line, column=column, source_line=printable, hint=failure.hint)


def string_end(text: str, pos: int) -> int:
    """The position after the string that opens at `pos` (a `"`). A string of any length costs one `str.find`."""
    end = text.find('"', pos + 1)
    if end >= 0:
        if text.find("\\", pos, end) < 0:
            if text.find("\n", pos, end) < 0:
                return end + 1
        else:
            match = _string.match(text, pos)
            if match:
                return match.end()
    raise Unreadable("a string without an end on its line", pos, 'Close it with `"`, or escape the quotes in it.')


_body = re.compile(r"""[^"<>()\[\]{}\-]++|->|-""", re.ASCII)


def dialect_body_end(text: str, pos: int) -> int:
    """The position after the `<...>` body of a dialect type or attribute that opens at `pos`.

    As in MLIR's own lexer the body is raw: brackets balance, strings are skipped, `//` is not a comment.
    """
    closers: list[str] = []
    here = pos
    size = len(text)
    while here < size:
        char = text[here]
        if char in "<([{":
            closers.append(CLOSER[char])
            here += 1
        elif char in ">)]}":
            if char != closers.pop():
                raise Unreadable(f"unbalanced '{char}' in a dialect type or attribute", here)
            here += 1
            if not closers:
                return here
        elif char == '"':
            here = string_end(text, here)
        else:
            match = _body.match(text, here)
            assert match
            here = match.end()
    raise Unreadable("the text ends inside a dialect type or attribute", _text_end(text))


def _text_end(text: str) -> int:
    return max(len(text.rstrip()) - 1, 0)


_plain = re.compile(r"""[^"<>()\[\]{}\-/#!=]++|[-=]>|[<>=]=|//[^\r\n]*+|[-/=]""", re.ASCII)
_flat = re.compile(r"<(?:[A-Za-z0-9_ \t\r\n.,+\[\]()]++|->|-)*+>", re.ASCII)
_prefix = re.compile(rf"[#!]{IDENT}(?=<)", re.ASCII)


def flat_end(text: str, pos: int) -> int:
    """The position after a `<...>` of words, numbers and lists; 0 where something else is in it."""
    match = _flat.match(text, pos)
    if match is None:
        return 0
    end = match.end()
    if text.count("[", pos, end) != text.count("]", pos, end) or text.count("(", pos, end) != text.count(")", pos, end):
        return 0
    return end


def balanced_end(text: str, pos: int) -> int:
    """The position after the bracket that closes the one at `pos`; strings, comments and dialect bodies are skipped."""
    closers: list[str] = []
    here = pos
    size = len(text)
    while here < size:
        char = text[here]
        if char in "<([{":
            if char == "<":
                if closers and text.startswith("<=", here):
                    here += 2
                    continue
                end = flat_end(text, here)  # numbers by the million
                if end:
                    here = end
                    if not closers:
                        return here
                    continue
            closers.append(CLOSER[char])
            here += 1
        elif char in ">)]}":
            if char == ">" and text.startswith(">=", here) and closers[-1] != ">":
                here += 2
                continue
            if char != closers.pop():
                raise Unreadable(f"unbalanced '{char}'", here, "The bracket opened last needs another closer.")
            here += 1
            if not closers:
                return here
        elif char == '"':
            here = string_end(text, here)
        elif char in "#!":
            match = _prefix.match(text, here)
            here = dialect_body_end(text, match.end()) if match else here + 1
        else:
            match = _plain.match(text, here)
            assert match
            here = match.end()
    raise Unreadable(f"the text ends before the '{text[pos]}' opened here is closed", pos)


def resource_end(text: str, pos: int) -> int:
    """The position after the `{-# ... #-}` section that opens at `pos`; strings in it may hold anything."""
    here = pos + 3
    while True:
        close = text.find("#-}", here)
        if close < 0:
            raise Unreadable("the resource section `{-#` has no end", pos, "It ends with `#-}`.")
        quote = text.find('"', here, close)
        if quote < 0:
            return close + 3
        here = string_end(text, quote)


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """Every token of the text as (kind, text), white space and comments left out; dialect bodies are one `body`."""
    pos = 0
    size = len(text)
    match_token = TOKEN.match
    while pos < size:
        match = match_token(text, pos)
        if match is None:
            raise Unreadable(f"unexpected character {text[pos]!r}", pos)
        kind = match.lastgroup
        end = match.end()
        if kind == "string":
            end = string_end(text, pos)
        elif kind == "symbol" and end == pos + 1:
            end = string_end(text, end)
        elif kind == "prefixed" and end < size and text[end] == "<":
            yield kind, text[pos:end]
            pos, end = end, dialect_body_end(text, end)
            kind = "body"
        elif kind == "resource":
            end = resource_end(text, pos)
        if kind != "space" and kind != "comment":
            assert kind is not None
            yield kind, text[pos:end]
        pos = end
