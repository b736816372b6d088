"""Puts numbers where a module's large constants were left out, the same ones each time.

Costs depend on them a little: Vela compresses weights. Trained weights of a channel are about normal with the largest
at the end of the range, so that is what is put there.
"""

from __future__ import annotations

import math
import re
import zlib

import numpy as np

from ...errors import LabelError

_ELIDED = re.compile(r"dense_resource<__elided__>(\s*:\s*tensor<((?:\d+x)*)i(\d+)>)")

NUMBERS = "1"
"""Changes with the numbers: a record says which ones it has."""

_DEVIATION = {8: 32.0, 16: 8000.0, 32: 2000.0, 48: 2000.0}
"""Standard deviation of the numbers, by bits of the element: weights or a table, a table, biases, biases."""

_BYTES_DEVIATION = (8 * (256**2 - 1) / 12) ** 0.5
"""Of the sum of eight random bytes, whose mean is 1020."""


def fill_elided(mlir: str) -> str:
    """The module with every `dense_resource<__elided__>` replaced by numbers; other constants stay as they are.

    The numbers depend on the constant's type and on how many elided ones stand before it, so that two constants of one
    type differ, and on nothing else: PCG64 gives the same bytes in every version of NumPy, and their sums are about
    normal.

    Raises
    ------
    LabelError
        reason "elided-type": an element type for which it has no numbers.

    >>> fill_elided("dense_resource<__elided__> : tensor<2xi8>")
    'dense<"0xEF26"> : tensor<2xi8>'
    """
    count = 0

    def numbers(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        bits = int(match[3])
        if bits not in _DEVIATION:
            raise LabelError("elided-type", f"no numbers for a constant of i{bits}")
        size = math.prod(int(n) for n in match[2].split("x")[:-1])
        seed = zlib.crc32(f"{count} {match[2]}{bits}".encode())
        sums = np.random.PCG64(seed).random_raw(size).view(np.uint8).reshape(size, 8).sum(axis=1, dtype=np.int64)
        top = 2 ** (min(bits, 32) - 1) - 1
        drawn = np.clip(np.rint((sums - 1020) * (_DEVIATION[bits] / _BYTES_DEVIATION)), -top, top).astype("<i8")
        stored = drawn.view(np.uint8).reshape(size, 8)[:, : bits // 8]
        return f'dense<"0x{stored.tobytes().hex().upper()}">{match[1]}'

    return _ELIDED.sub(numbers, mlir)
