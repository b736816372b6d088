"""Compiles many kernels into one library and calls them on NumPy arrays; draws whose choices a test makes itself."""

from __future__ import annotations

import ctypes
import json
import random
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irgauge.data.label.llvm import LOWERING, to_assembly
from irgauge.data.label.tools import run, tool
from irgauge.errors import ToolMissingError

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.uint8,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
"""Element type -> dtype of the array that is passed; bf16 as its bits."""

_MEMREF = re.compile(r"memref<([\dx]*?)(bf16|[fi]\d+)(?:, strided<\[([\d, ]*)\]>)?>")


class Chosen(random.Random):
    """Makes the choices a test names, the first one where it names none; every chance comes out the same."""

    def __init__(self, *wanted: object, chances: bool = False) -> None:
        super().__init__(7)
        self._wanted = wanted
        self._chances = chances

    def random(self) -> float:
        return 0.0 if self._chances else 0.9999

    def choice(self, seq: Any) -> Any:
        return next((one for one in seq if one in self._wanted), seq[0])

    def choices(self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        return [self.choice(population)] * k

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        return list(population)[:k]

    def shuffle(self, x: Any) -> None:
        x.reverse()

    def randint(self, a: int, b: int) -> int:
        return (a + b) // 2

    def getrandbits(self, k: int, /) -> int:
        return 12345 % (1 << k)


def skip_without_tools() -> None:
    try:
        for name in ("mlir-opt", "mlir-translate", "opt", "llc", "gcc"):
            tool(name)
    except ToolMissingError as error:
        pytest.skip(str(error))


def arguments(mlir: str) -> list[tuple[tuple[int, ...], str, tuple[int, ...] | None]]:
    """(shape, element type, strides in elements or None for dense) of each argument of a kernel."""
    header = re.search(r"func\.func @\w+\((.*)\) (?:attributes .*)?\{", mlir)
    assert header is not None
    found = []
    for shape, element, strides in _MEMREF.findall(header[1]):
        sizes = tuple(int(size) for size in shape.split("x")[:-1])
        found.append((sizes, element, tuple(map(int, strides.split(","))) if strides else None))
    return found


def elements(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> int:
    """Elements from the first to the last one of an argument."""
    if strides is None:
        return int(np.prod(shape))
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def operand_bytes(mlir: str) -> int:
    return sum(elements(shape, strides) * np.dtype(DTYPES[e]).itemsize for shape, e, strides in arguments(mlir))


def operands(mlir: str, seed: int = 0) -> list[np.ndarray]:
    """Arguments as labelling fills them: floats in [0.5, 1.5), integers in [0, 4); strided ones are views."""
    rng = np.random.default_rng(seed)
    made = []
    for shape, element, strides in arguments(mlir):
        n = elements(shape, strides)
        if element == "bf16":
            flat = (rng.uniform(0.5, 1.5, n).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        elif element.startswith("f"):
            flat = rng.uniform(0.5, 1.5, n).astype(DTYPES[element])
        else:
            flat = rng.integers(0, 2 if element == "i1" else 4, n).astype(DTYPES[element])
        steps = None if strides is None else tuple(stride * flat.itemsize for stride in strides)
        made.append(np.lib.stride_tricks.as_strided(flat, shape, steps) if steps else flat.reshape(shape))
    return made


def _joined(kernels: Sequence[str]) -> str:
    """The functions of several modules, "kernel_0" and so on."""
    bodies = []
    for at, one in enumerate(kernels):
        assert one.startswith("module {")
        bodies.append(one.strip().removeprefix("module {").removesuffix("}").replace("@kernel", f"@kernel_{at}"))
    return "\n".join(bodies)


def library(folder: Path, kernels: Sequence[str]) -> ctypes.CDLL:
    """One shared library of modules, "kernel_0" and so on."""
    skip_without_tools()
    (folder / "kernels.s").write_text(to_assembly(_joined(kernels), timeout_s=120))
    run([tool("gcc"), "-shared", "-o", "kernels.so", "kernels.s", "-lm"], step="link", cwd=folder, timeout_s=120)
    return ctypes.CDLL(str(folder / "kernels.so"))


def call(function: Any, arrays: Sequence[np.ndarray]) -> None:
    function(*(array.ctypes.data_as(ctypes.c_void_p) for array in arrays))


_TO_BF16 = """
\t.text
\t.globl __truncsfbf2
__truncsfbf2:
\tvmovd %xmm0, %eax
\tshrl $16, %eax
\tvmovd %eax, %xmm0
\tretq
"""
"""What older libraries lack: behind a check, a loaded bf16 value is an f32 for a while; there is nothing to round."""

_RUNNER = """
import ctypes, json, sys
import numpy as np
library = ctypes.CDLL("./kernels.so")
for at, kernel in enumerate(json.load(open("arguments.json"))):
    print("running", at, flush=True)
    arrays = []
    for n, dtype in kernel:
        random = np.random.default_rng(len(arrays))
        if dtype.startswith("float"):
            arrays.append(random.uniform(0.5, 1.5, n).astype(dtype))
        elif dtype == "uint16":  # bf16
            arrays.append((random.uniform(0.5, 1.5, n).astype("float32").view("uint32") >> 16).astype("uint16"))
        else:
            arrays.append(random.integers(0, 2 if dtype == "uint8" else 4, n).astype(dtype))
    for _ in range(3):
        getattr(library, f"kernel_{at}")(*(a.ctypes.data_as(ctypes.c_void_p) for a in arrays))
    if not all(np.isfinite(a).all() for a in arrays if a.dtype.kind == "f"):
        print("not finite", at, flush=True)
print("done")
"""


def run_checked(folder: Path, kernels: Sequence[str]) -> str:
    """Call each kernel three times with a check before every access to memory, in a process of its own.

    The output ends with "done" unless a check stopped it, and names kernels whose results are not finite.
    """
    skip_without_tools()
    text = _joined(kernels)
    checks = ["--convert-linalg-to-affine-loops", "--lower-affine", "--generate-runtime-verification"]
    checked = run([tool("mlir-opt"), *checks], step="checks", stdin=text, timeout_s=60)
    assert "cf.assert" in checked
    lowered = run([tool("mlir-opt"), *LOWERING], step="lower", stdin=checked, timeout_s=60)
    ir = run([tool("mlir-translate"), "--mlir-to-llvmir"], step="translate", stdin=lowered, timeout_s=60)
    llc = [tool("llc"), "-O1", "-relocation-model=pic", "-mcpu=x86-64-v3"]
    (folder / "kernels.s").write_text(run(llc, step="llc", stdin=ir, timeout_s=60) + _TO_BF16)
    run([tool("gcc"), "-shared", "-o", "kernels.so", "kernels.s", "-lm"], step="link", cwd=folder, timeout_s=60)
    types = [
        [(elements(shape, strides), np.dtype(DTYPES[element]).name) for shape, element, strides in arguments(one)]
        for one in kernels
    ]
    (folder / "arguments.json").write_text(json.dumps(types))
    done = subprocess.run(
        [sys.executable, "-c", _RUNNER], cwd=folder, timeout=120, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def smallest(texts: Collection[str], n: int) -> list[str]:
    """Those with the fewest bytes of operands."""
    return sorted(texts, key=operand_bytes)[:n]
