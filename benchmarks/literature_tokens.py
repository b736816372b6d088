"""Programs as the literature's models see them: a sequence of tokens, in print order (arXiv 2302.11405).

- `ops`: the names of the operations.
- `shapes`: after each name the shapes of its operands, one token for each type that differs from the one before, and
  after a loop `trip:96`, the iterations of each dimension where its bounds tell them. The paper's operands are all
  tensors; here scalars give no token, and a function's operands are its arguments.

A size that few programs have says little: a shape token has a coarse spelling too, sizes rounded to powers of two,
those of loops to quarters of an octave. The vocabulary decides which of the two is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from irgauge.featurize.affine import Linear
from irgauge.featurize.loop_bounds import bounds_of
from irgauge.featurize.program import Op, Program
from irgauge.featurize.types import parse_type
from irgauge.featurize.values import Values

Tokens = NDArray[np.int64]
KINDS = ("ops", "shapes")
PADDING, UNKNOWN = 0, 1
"""Numbers of no token, and of a token that is not in the vocabulary."""
_FIRST = 2
_LOOPS = frozenset(("affine.for", "affine.parallel", "scf.for", "scf.parallel", "scf.forall"))
_TRIP = "trip:"
_SIZE = re.compile(r"(?<=[<x])[0-9]+(?=x)")


def tokens_of(program: Program, kind: str) -> list[str]:
    """The tokens of one module, without what its text leaves out (implied terminators, the outer module)."""
    ops = [op for op in program.walk() if not op.implied and op.name != "builtin.module"]
    if kind == "ops":
        return [op.name for op in ops]
    values = Values(program)
    return [token for op in ops for token in (op.name, *_shapes(values, op))]


def _shapes(values: Values, op: Op) -> list[str]:
    arguments = op.regions[0].blocks[0].args if op.regions and op.regions[0].blocks else []
    types = [values.program.value_types[v] for v in (arguments if op.name.endswith(".func") else op.operands)]
    found: list[str] = []
    for shape in map(shape_of, types):
        if shape and found[-1:] != [shape]:
            found.append(shape)
    if op.name in _LOOPS:
        found += [_TRIP + _trip(lowers, uppers, step) for lowers, uppers, step in bounds_of(values, op, arguments)]
    return found


@lru_cache(maxsize=65536)
def shape_of(written: str) -> str:
    """A shaped type without its layout: `memref<96x?xf32, strided<...>>` -> "memref<96x?xf32>"; "" for others."""
    info = parse_type(written)
    if info.shape is None:
        return ""
    sizes = "".join(f"{'?' if size is None else size}x" for size in info.shape)
    return f"{info.kind}<{sizes}{info.element}>"


def _trip(lowers: Sequence[Linear], uppers: Sequence[Linear], step: int) -> str:
    """Iterations where a difference of the bounds is a constant (that of a tile, `min(i + 32, n)`, is 32), else "?"."""
    lengths = [d.const for d in (upper - lower for upper in uppers for lower in lowers) if not d.terms]
    return str(max(0, -(-min(lengths) // step))) if lengths else "?"


@lru_cache(maxsize=65536)
def coarse(token: str) -> str:
    """The spelling of a shape token with rounded sizes: "memref<96x100xf32>" -> "memref<~128x~128xf32>"."""
    if token.startswith(_TRIP):
        return _TRIP + _rounded(token.removeprefix(_TRIP), 4)
    return _SIZE.sub(lambda size: _rounded(size[0], 1), token)


def _rounded(size: str, steps_an_octave: int) -> str:
    """`size` to the nearest of so many steps between powers of two, as "~128"; 0 and what is no number stay."""
    if not size.isdecimal() or int(size) == 0:
        return size
    return f"~{2 ** (round(math.log2(int(size)) * steps_an_octave) / steps_an_octave):.0f}"


@dataclass(frozen=True)
class Vocabulary:
    """Numbers of the tokens that enough training programs have."""

    numbers: Mapping[str, int]
    """Token -> number, from 2 up; 0 is padding, 1 unknown."""

    @classmethod
    def of(cls, sequences: Iterable[Sequence[str]], programs: Iterable[str], least: int = 5) -> Vocabulary:
        """Tokens of at least `least` programs; the rarer ones in their coarse spelling, where that many share it.

        `sequences`: the tokens of each training record; `programs`: their `program_id`, variants of a program count
        once.
        """
        having: dict[str, set[str]] = {}
        for sequence, program in zip(sequences, programs, strict=True):
            for token in set(sequence):
                having.setdefault(token, set()).add(program)
        known = {token for token, users in having.items() if len(users) >= least}
        rounded: dict[str, set[str]] = {}
        for token in having.keys() - known:
            rounded.setdefault(coarse(token), set()).update(having[token])
        known |= {token for token, users in rounded.items() if len(users) >= least}
        return cls({token: number for number, token in enumerate(sorted(known), start=_FIRST)})

    @property
    def size(self) -> int:
        """How many numbers there are, padding and unknown included."""
        return len(self.numbers) + _FIRST

    def encode(self, sequence: Sequence[str]) -> Tokens:
        """Numbers of the tokens, shape (n_tokens,)."""
        numbers = self.numbers
        return np.array([numbers.get(t) or numbers.get(coarse(t), UNKNOWN) for t in sequence], np.int64)
