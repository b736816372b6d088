"""One text for all texts of a program that differ only in names, locations, comments and white space."""

from __future__ import annotations

import hashlib

from . import lexer
from .lexer import Unreadable, balanced_end, error_at


def canonical_text(text: str) -> str:
    """The program with its accidental choices taken out; equal texts mean the same program.

    SSA values, block labels and symbols are renamed in order of first appearance (`%0`, `^0`, `@0`), each name to the same
    new one wherever it stands. Comments and `loc(...)` are dropped, tokens are one space apart. The result read again
    gives itself.

    Raises
    ------
    ReadError
        The text cannot be cut into tokens.
    """
    names: dict[str, str] = {}
    counts = {"value": 0, "symbol": 0, "label": 0}
    out: list[str] = []
    try:
        for kind, token in lexer.tokens(_without_locations(text)):
            if kind in counts:
                base, pack, index = token.partition("#") if kind == "value" else (token, "", "")
                new = names.get(base)
                if new is None:
                    new = names[base] = f"{token[0]}{counts[kind]}" if kind != "symbol" else f"@s{counts[kind]}"
                    counts[kind] += 1
                out.append(new + pack + index)
            else:
                out.append(token)
    except Unreadable as failure:
        raise error_at(failure, text, "<text>") from None
    return " ".join(out)


def _without_locations(text: str) -> str:
    """The text without trailing `loc(...)` and without location aliases."""
    if "loc(" not in text:
        return text
    out: list[str] = []
    position = start = 0
    size = len(text)
    match_token = lexer.TOKEN.match
    alias_at = -1
    previous = ""
    while position < size:
        match = match_token(text, position)
        if match is None:
            raise Unreadable(f"unexpected character {text[position]!r}", position)
        kind = match.lastgroup
        end = match.end()
        if kind == "string":
            end = lexer.string_end(text, position)
        elif kind == "symbol" and end == position + 1:
            end = lexer.string_end(text, end)
        elif kind == "prefixed":
            if text.startswith("<", end):
                end = lexer.dialect_body_end(text, end)
            else:
                alias_at = position
        elif kind == "resource":
            end = lexer.resource_end(text, position)
        elif kind == "word" and match[0] == "loc" and text.startswith("(", end):
            end = balanced_end(text, end)
            out.append(text[start : alias_at if previous == "=" and alias_at >= 0 else position])
            start = end
        if kind not in ("space", "comment"):
            previous = match[0]
            if kind not in ("prefixed", "punct"):
                alias_at = -1
        position = end
    out.append(text[start:])
    return " ".join(out)


def canonical_id(text: str) -> str:
    """16 hex digits that name the program: the head of the SHA-256 of its canonical text."""
    return hashlib.sha256(canonical_text(text).encode("utf-8", "surrogateescape")).hexdigest()[:16]
