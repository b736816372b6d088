"""Aliases of attributes and types, `#name = ...` and `!name = ...`: each is expanded once, when something asks for it.

Aliases of aliases can double with each step, so that a short text stands for more than any memory holds. The text that
one alias, and all of them together, may stand for is limited; what is longer is refused, not left as it is.
"""

from __future__ import annotations

import re

LONGEST_EXPANSION = 65536
"""Characters that an alias of aliases may stand for."""
_MOST_CHARACTERS = 4_000_000
_MOST_CHARACTERS_PER_WRITTEN_ONE = 20

_use = re.compile(r"[#!][A-Za-z_][A-Za-z0-9_$]*+(?![A-Za-z0-9_$.<])", re.ASCII)


class TooLongError(Exception):
    """An expansion over the limits; the message names the alias or the text."""


class Aliases:
    """Names with their `#` or `!`, and the text of each."""

    __slots__ = ("_expanded", "_left", "written")

    def __init__(self, text_size: int = 0) -> None:
        self.written: dict[str, str] = {}
        """Text of each alias as written, in order of definition."""
        self._expanded: dict[str, str] = {}
        self._left = _MOST_CHARACTERS + _MOST_CHARACTERS_PER_WRITTEN_ONE * text_size

    def __contains__(self, name: object) -> bool:
        return name in self.written

    def __getitem__(self, name: str) -> str:
        """What the name stands for, aliases in it expanded. KeyError, TooLongError."""
        written = self.written[name]
        if written.startswith("loc("):  # nothing asks for more
            return written
        return self.expand(written)

    def get(self, name: str, default: str | None = None) -> str | None:
        """What the name stands for; the default for one that is not defined, or stands for too much."""
        try:
            return self[name]
        except (KeyError, TooLongError):
            return default

    def expand(self, text: str) -> str:
        """The text with aliases replaced by what they stand for, itself already expanded. TooLongError."""
        if ("#" not in text and "!" not in text) or not self.written:
            return text
        done = self._expanded
        if text in done:
            return done[text]
        pending = [text]
        waiting: set[str] = set()
        while pending:
            here = pending[-1]
            missing = []
            if here not in waiting:  # the second time, what is still missing is an alias inside itself
                waiting.add(here)
                missing = [
                    inner
                    for name in set(_use.findall(here))
                    if (inner := self.written.get(name)) is not None and inner not in done and inner not in waiting
                ]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if here not in done:
                done[here] = self._replace(here)
        return done[text]

    def _replace(self, text: str) -> str:
        """Aliases replaced, each already expanded."""
        size = len(text)
        for name in _use.findall(text):
            inner = self.written.get(name)
            size += len(self._expanded.get(inner, inner)) if inner is not None else 0
        if size > max(LONGEST_EXPANSION, 2 * len(text)):
            shown = text if len(text) <= 60 else f"{text[:57]}..."
            raise TooLongError(f"'{shown}' stands for more than {LONGEST_EXPANSION:,} characters")
        self._left -= size
        if self._left < 0:
            raise TooLongError("the aliases of this program stand for too many characters together")

        def replacement(match: re.Match[str]) -> str:
            inner = self.written.get(match[0])
            return match[0] if inner is None else self._expanded.get(inner, inner)

        return _use.sub(replacement, text)
