"""What follows the operands of an operation in generic syntax: `[^bb] <{...}> ({`, or `{...} : (f32) -> f32`.

As for custom syntax, programs repeat a few of these texts, so each is taken apart once.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .lexer import CLOSER, IDENT, SPACE, TOKEN, Unreadable, balanced_end, dialect_body_end, skip_space, tokens
from .types import normalized, split_types

alias_uses = re.compile(r"[#!][A-Za-z_][A-Za-z0-9_$]*+(?![A-Za-z0-9_$.<])", re.ASCII).findall
"""Names with `#` or `!` that are no dialect's; also in strings and dialect bodies, where `aliases_in` does not look."""
_location = re.compile(rf"{SPACE}loc{SPACE}\(", re.ASCII).match
_labels = re.compile(r"\^([A-Za-z0-9_$.\-]++)", re.ASCII).findall
_labels_only = re.compile(rf"\[{SPACE}(?:\^[A-Za-z0-9_$.\-]++{SPACE},?{SPACE})*+\]", re.ASCII).fullmatch


class GenericForm:
    """What the text after the operands says."""

    __slots__ = ("aliases", "gives", "opens", "successors", "takes", "text")

    def __init__(self) -> None:
        self.opens = False
        """It ends with `({`: the first region follows."""
        self.takes = 0
        """Operands in the function type."""
        self.gives: tuple[str, ...] = ()
        """Types of the results."""
        self.aliases: tuple[str, ...] = ()
        self.successors: tuple[str, ...] = ()
        """Labels without `^`."""
        self.text = ""
        """The text without its location."""


def after_space(text: str, position: int) -> int:
    """The next position that is neither white space nor comment."""
    match = skip_space(text, position)
    assert match
    return match.end()


def aliases_in(text: str) -> tuple[str, ...]:
    """Aliases used in an attribute or a type; strings and bodies of dialect types are not looked at."""
    if ("#" not in text and "!" not in text) or not alias_uses(text):
        return ()
    found = []
    pending = ""
    for kind, token in tokens(text):
        if pending and kind != "body":
            found.append(pending)
        pending = token if kind == "prefixed" and "." not in token else ""
    return (*found, pending) if pending else tuple(found)


@lru_cache(maxsize=4096)
def is_flat(text: str) -> bool:
    """Brackets balance, and the text can end here."""
    closers: list[str] = []
    last = ""
    try:
        for kind, token in tokens(text):
            if kind == "open":
                closers.append(CLOSER[token])
            elif kind == "close" and (not closers or closers.pop() != token):
                return False
            last = token
    except Unreadable:
        return False
    return not closers and last not in ("", ",", ":", "->", "=")


def type_end(text: str, position: int) -> int:
    """The position after one type."""
    while True:
        if text.startswith("(", position):
            end = balanced_end(text, position)
            after = after_space(text, end)
            if not text.startswith("->", after):
                raise Unreadable("expected '->' in a function type", after)
            position = after_space(text, after + 2)
            if text.startswith("(", position):
                end = balanced_end(text, position)
                if not text.startswith("->", after_space(text, end)):
                    return end
            continue
        token = TOKEN.match(text, position)
        if token is None or token.lastgroup not in ("word", "prefixed"):
            raise Unreadable("expected a type", position)
        end = token.end()
        if text.startswith("<", end):
            return dialect_body_end(text, end) if token.lastgroup == "prefixed" else balanced_end(text, end)
        return end


@lru_cache(maxsize=4096)
def is_one_type(text: str) -> bool:
    """Is the text one type and nothing else?"""
    try:
        return type_end(text, 0) == len(text)
    except Unreadable:
        return False


def function_type(text: str, position: int) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Operand types, result types and the end of the function type at `position`; comments stay in the types."""
    if not text.startswith("(", position):
        raise Unreadable("expected a function type", position)
    end = balanced_end(text, position)
    takes = split_types(text[position + 1 : end - 1])
    arrow = after_space(text, end)
    if not text.startswith("->", arrow):
        raise Unreadable("expected '->' in a function type", arrow)
    start = after_space(text, arrow + 2)
    if text.startswith("(", start):
        end = balanced_end(text, start)
        if not text.startswith("->", after_space(text, end)):
            return takes, split_types(text[start + 1 : end - 1]), end
    end = type_end(text, start)
    return takes, (normalized(text[start:end]),), end


def successors_of(text: str) -> tuple[str, ...] | None:
    """Labels in `[^a, ^b]`; None where something else is in it."""
    return tuple(_labels(text)) if _labels_only(text) else None


def _analyse(text: str) -> GenericForm | None:
    form = GenericForm()
    position = after_space(text, 0)
    if text.startswith("[", position):
        end = balanced_end(text, position)
        labels = successors_of(text[position:end])
        if labels is None:
            return None
        form.successors = labels
        position = after_space(text, end)
    if text.startswith("<", position):
        position = after_space(text, balanced_end(text, position))
    if text.startswith("({", position):
        form.opens = True
        form.text = text[: position + 1]
        form.aliases = aliases_in(form.text[:-1])
        return form if after_space(text, position + 2) == len(text) else None
    if text.startswith("{", position):
        position = after_space(text, balanced_end(text, position))
    if not text.startswith(":", position):
        return None
    takes, form.gives, end = function_type(text, after_space(text, position + 1))
    form.takes = len(takes)
    form.text = text[:end]
    form.aliases = aliases_in(form.text)
    location = _location(text, end)
    if location:
        end = balanced_end(text, location.end() - 1)
    return form if after_space(text, end) == len(text) and "//" not in form.text else None


_forms: dict[str, GenericForm | None] = {}
_MOST_FORMS = 20000
_trailing = re.compile(r" loc\(#[A-Za-z0-9_]++\)[ \t\r]*+\Z", re.ASCII)


def generic_form_of(text: str) -> GenericForm | None:
    """The form of the text between the operands and the end of the line; None where one line does not tell it all."""
    form = _forms.get(text)
    if form is None and text not in _forms:
        if " loc(#" in text and (cut := _trailing.search(text, text.rfind(" loc(#"))):
            return generic_form_of(text[: cut.start()])
        try:
            form = _analyse(text)
        except Unreadable:
            form = None
        if len(_forms) >= _MOST_FORMS:
            _forms.clear()
        _forms[text] = form
    return form


__all__ = [
    "IDENT",
    "GenericForm",
    "after_space",
    "alias_uses",
    "aliases_in",
    "function_type",
    "generic_form_of",
    "is_flat",
    "is_one_type",
    "successors_of",
    "type_end",
]
