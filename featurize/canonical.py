"""One text for all texts of a program that differ only in names, locations, comments and white space."""

from __future__ import annotations

import hashlib

from . import lexer
from .lexer import Unreadable, error_at


def canonical_text(text: str) -> str:
    """The program with its accidental choices taken out; equal texts mean the same program.

    SSA values, block labels and symbols are renamed in order of first appearance (`%0`, `^0`, `@s0`), each name to the
    same new one wherever it stands. Comments and `loc(...)` are dropped, tokens are one space apart. The result read
    again gives itself.

    Raises
    ------
    ReadError
        The text cannot be cut into tokens.
    """
    names: dict[str, str] = {}
    counts = {"value": 0, "symbol": 0, "label": 0}
    out: list[str] = []
    location = -1
    """How many brackets of a location are open; -1 outside."""
    try:
        for kind, token in lexer.tokens(text):
            if location >= 0:
                if kind == "open":
                    location += 1
                elif kind == "close":
                    location -= 1
                    if location == 0:
                        location = -1
                        if out and out[-1] == "=":  # a location alias
                            del out[-2:]
            elif kind in counts:
                base, pack, index = token.partition("#") if kind == "value" else (token, "", "")
                new = names.get(base)
                if new is None:
                    new = f"@s{counts[kind]}" if kind == "symbol" else f"{token[0]}{counts[kind]}"
                    names[base] = new
                    counts[kind] += 1
                out.append(new + pack + index)
            elif kind == "body":
                out[-1] += token if '"' in token else " ".join(token.split())
            elif token == "(" and out and out[-1] == "loc":
                out.pop()
                location = 1
            else:
                out.append(token)
    except Unreadable as failure:
        raise error_at(failure, text, "<text>") from None
    return " ".join(out)


def canonical_id(text: str) -> str:
    """16 hex digits that name the program: the head of the SHA-256 of its canonical text."""
    return hashlib.sha256(canonical_text(text).encode("utf-8", "surrogateescape")).hexdigest()[:16]
