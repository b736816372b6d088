"""Near-duplicates: programs that differ only in sizes and constants teach little, so only a few of each are kept.

This is about sources; the variants that schedules make of one source are a ranking task and stay together.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

from ..featurize.canonical import canonical_text
from .families.base import Source

MOST_ALIKE = 6
"""Sources of one family that may share a masked text."""

_SHAPE = re.compile(r"(?<![\w%^@])(?:\d+x)+")
_MINUS = re.compile(r"(?<=constant )- (?=\d)")
_NUMBER = re.compile(r"(?<![\w%^@.#$])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")


def masked_text(mlir: str) -> str:
    """The canonical text with every size and constant replaced: what is left is structure and element types.

    >>> masked_text("%a = arith.constant 2.5 : f32")
    '%0 = arith.constant # : f32'

    Raises
    ------
    ReadError
        The text cannot be cut into tokens.
    """
    text = _SHAPE.sub(lambda match: "?x" * match[0].count("x"), _MINUS.sub("-", canonical_text(mlir)))
    return _NUMBER.sub("#", text)


def few_alike(sources: Iterable[Source], most: int = MOST_ALIKE) -> tuple[list[Source], list[tuple[Source, str]]]:
    """The sources without those that come after `most` of their family with the same masked text.

    Returns
    -------
    What is kept, in order, and what is not, each with the `program_id` of the first one that it is like.
    """
    kept: list[Source] = []
    dropped: list[tuple[Source, str]] = []
    alike: Counter[tuple[str, bytes]] = Counter()
    first: dict[tuple[str, bytes], str] = {}
    for source in sources:
        key = source.family, hashlib.sha256(masked_text(source.mlir).encode()).digest()
        alike[key] += 1
        first.setdefault(key, source.program_id)
        if alike[key] <= most:
            kept.append(source)
        else:
            dropped.append((source, first[key]))
    return kept, dropped
