"""Attributes and lists in the text of one operation, in custom and generic syntax. Pure functions of the text."""

from __future__ import annotations

import re

_GENERIC = re.compile(r"\s*\([^()]*\)\s*(?:<\{|[({:\[])")
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\[\s\S])*+"?+|->|>=|<=|==|[<>\[\](){},]')
_INT = re.compile(r"-?\d+")
_DYNAMIC = -(2**63)


def is_generic(text: str) -> bool:
    """Whether an operation's text is in generic syntax: `(%operands) <{…}> … : (types) -> types`."""
    return text.lstrip()[:1] == "(" and _GENERIC.match(text) is not None


def property_text(text: str, key: str) -> str:
    """The attribute `key = …` of a generic operation's text, up to the comma or bracket that ends it; "" if none."""
    match = re.search(rf"(?<![\w.$]){re.escape(key)}\"?\s*=\s*", text)
    if match is None:
        return ""
    depth = 0
    for token in _STRUCTURE.finditer(text, match.end()):
        t = token.group()
        if t in ("<", "[", "(", "{"):
            depth += 1
        elif t in (">", "]", ")", "}"):
            depth -= 1
            if depth < 0:
                return text[match.end() : token.start()].strip()
        elif t == "," and depth == 0:
            return text[match.end() : token.start()].strip()
    return text[match.end() :].strip()


def closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes."""
    depth = 0
    for token in _STRUCTURE.finditer(text, start):
        t = token.group()
        if t in ("<", "[", "(", "{"):
            depth += 1
        elif t in (">", "]", ")", "}"):
            depth -= 1
            if depth == 0:
                return token.start()
    raise ValueError("bracket does not close")


def top_level_groups(text: str) -> list[str]:
    """The insides of the parenthesised groups of a text, in order."""
    out = []
    at = text.find("(")
    while at >= 0:
        end = closing(text, at)
        out.append(text[at + 1 : end])
        at = text.find("(", end)
    return out


def split_top(text: str) -> list[str]:
    """Split at commas outside brackets."""
    out, depth, start = [], 0, 0
    for token in _STRUCTURE.finditer(text):
        t = token.group()
        if t in ("<", "[", "(", "{"):
            depth += 1
        elif t in (">", "]", ")", "}"):
            depth -= 1
        elif t == "," and depth == 0:
            out.append(text[start : token.start()])
            start = token.end()
    last = text[start:]
    return [*out, last] if last.strip() else out


def mixed_list(text: str) -> list[int | None]:
    """`%a, 4, 8` -> [None, 4, 8]."""
    return [None if part.strip().startswith("%") else int(part) for part in split_top(text)]


def static_list(text: str) -> list[int | None]:
    """`array<i64: -9223372036854775808, 4>` -> [None, 4]."""
    _, _, body = text.partition(":")
    return [None if int(s) == _DYNAMIC else int(s) for s in _INT.findall(body)]


def strip_comments(text: str) -> str:
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda m: m.group(1) or " ", text)
