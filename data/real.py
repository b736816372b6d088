"""The real test set: functions of public MLIR files that nobody here wrote. For evaluation, never for training.

The corpus lies beside a checkout (`../shared/corpus`) with its own licences, so labels are committed without the
text: each record names its file, chunk and function and holds the hash of the chunk; the text is read back from there.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import IrgaugeError
from ..featurize.program import Op, Program
from ..featurize.reader import read
from .label.kernel import Signature, signatures

if TYPE_CHECKING:
    import pandas as pd

DIALECTS = frozenset(
    {"affine", "scf", "memref", "arith", "math", "vector", "linalg", "func", "cf", "index", "ub", "builtin"}
)
"""What the kernel track reads; a function with any other operation is left out, but for single operations of `llvm`
beside these (front ends leave an `llvm.mlir.undef` among affine loops)."""
_MOST_LLVM = 0.1
"""Share of the operations."""


@dataclass(frozen=True)
class RealFunction:
    """One function of one chunk of one file."""

    id: str
    """First 16 hex digits of the chunk's sha256, ":" and the function's name."""
    repository: str
    path: str
    """File inside the corpus."""
    chunk: int
    """0-based, between `// -----` lines."""
    signature: Signature
    mlir: str
    """The whole chunk."""


def split_chunks(text: str) -> list[str]:
    """Cut a file at its `// -----` lines, as `mlir-opt --split-input-file` does."""
    return re.split(r"^[ \t]*// -----.*$", text, flags=re.M)


def real_functions(corpus: Path) -> Iterator[RealFunction]:
    """All functions of the corpus that the kernel track could label, in the order of its manifest; each text once.

    Raises
    ------
    IrgaugeError
        There is no corpus at that path.
    """
    manifest = corpus / "MANIFEST.tsv"
    if not manifest.is_file():
        raise IrgaugeError(f"{corpus}: no corpus there (MANIFEST.tsv is missing). Name its folder with --corpus.")
    seen: set[str] = set()
    with manifest.open(newline="") as rows:
        for row in csv.DictReader(rows, delimiter="\t"):
            if int(row["lower_ok"]) == 0:
                continue
            text = (corpus / row["path"]).read_bytes().decode("utf-8", "surrogateescape")
            for number, chunk in enumerate(split_chunks(text)):
                for function in _functions_of(chunk, row["source_repo"], row["path"], number):
                    if function.id not in seen:
                        seen.add(function.id)
                        yield function


def _functions_of(chunk: str, repository: str, path: str, number: int) -> Iterator[RealFunction]:
    if "expected-error" in chunk or "func.func" not in chunk:
        return
    try:
        program = read(chunk, path=path)
    except IrgaugeError:
        return
    if not _in_kernel_dialects(program):
        return
    key = hashlib.sha256(chunk.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    for signature in signatures(program):
        yield RealFunction(f"{key}:{signature.name}", repository, path, number, signature, chunk)


def _in_kernel_dialects(program: Program) -> bool:
    found: Counter[str] = Counter()
    stack: list[Op] = [program.root]
    while stack:
        op = stack.pop()
        found[op.name.partition(".")[0]] += 1
        stack.extend(child for region in op.regions for block in region.blocks for child in block.ops)
    if found["llvm"] > _MOST_LLVM * found.total() or not DIALECTS.issuperset(found.keys() - {"llvm"}):
        return False
    return not any("tensor<" in text for text in program.value_types)


def attach_text(frame: pd.DataFrame, corpus: Path) -> pd.DataFrame:
    """The records whose text is at hand, with the columns `mlir` and `function`; a text is found by its hash."""
    texts = {function.id: function for function in real_functions(corpus)}
    found = frame[frame["id"].isin(list(texts))].copy()
    found["mlir"] = [texts[id].mlir for id in found["id"]]
    found["function"] = [texts[id].signature.name for id in found["id"]]
    return found
