"""Text to features, for one program. `transformer.Featurizer` does it for many, as scikit-learn expects it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from ..errors import ReadError, SchemaError, UsageError
from .accelerator import accelerator
from .access import access
from .codegen import codegen
from .function_view import FunctionView
from .liveness import liveness
from .loops import loops
from .ngrams import ngrams
from .npu import npu
from .ops import ops
from .options import options
from .program import Op, Program
from .reader import read
from .symbols import FUNCTION_NAMES, symbol_of
from .tensors import tensors
from .work import work

_GROUPS = (ops, ngrams, loops, tensors, work, access, liveness, codegen, accelerator, npu, options)
GROUP_NAMES: tuple[str, ...] = tuple(group.__name__ for group in _GROUPS)


def functions_of(program: Program) -> list[tuple[str, Op]]:
    """(symbol name, op) of each function with a body, in order; a name met twice gets `#1`, `#2`, …

    A function is an op named `<dialect>.func` or `<dialect>.function`. A module without one gives its top level as
    `<module>`.
    """
    found: list[tuple[str, Op]] = []
    stack = [program.root]
    while stack:
        op = stack.pop()
        short = op.name.rpartition(".")[2]
        if short in FUNCTION_NAMES:
            if any(b.ops for r in op.regions for b in r.blocks):
                found.append((symbol_of(op), op))
            continue
        inner = [o for r in op.regions for b in r.blocks for o in b.ops if o.regions]
        stack.extend(reversed(inner))
    seen: Counter[str] = Counter()
    out = []
    for name, op in found:
        seen[name] += 1
        out.append((name if seen[name] == 1 else f"{name}#{seen[name] - 1}", op))
    return out or [("<module>", program.root)]


def dialects_of(function: Op) -> set[str]:
    """Dialects of the operations in a function."""
    found = set()
    stack = [function]
    while stack:
        inner = [op for region in stack.pop().regions for block in region.blocks for op in block.ops]
        found.update([op.name.partition(".")[0] for op in inner])
        stack += [op for op in inner if op.regions]
    return found


def function_features(program: Program, function: Op, groups: Iterable[str] | None = None) -> dict[str, float]:
    """Features of one function, each finite: the fixed ones (always present), the learned ones that occur.

    `groups`: names from `GROUP_NAMES`, all by default; the order does not matter. UsageError for another name.
    """
    wanted = GROUP_NAMES if groups is None else known_groups(groups)
    view = FunctionView(program, function)
    out: dict[str, float] = {}
    for group in _GROUPS:
        if group.__name__ in wanted:
            out.update(group(view))
    return out


def known_groups(groups: Iterable[str]) -> tuple[str, ...]:
    """These feature groups, in the schema's order. UsageError where one is not a group."""
    asked = list(groups)
    unknown = [name for name in asked if name not in GROUP_NAMES]
    if unknown:
        raise UsageError(f"unknown feature group {unknown[0]!r}. Known: {', '.join(GROUP_NAMES)}")
    return tuple(name for name in GROUP_NAMES if name in asked)


def features_of(source: Any, groups: Iterable[str] | None = None) -> dict[str, dict[str, float]]:
    """Features of each function with a body, by symbol name; only these `groups` where some are named.

    `source`: MLIR text, bytes, a path object, an object of an MLIR library (`read`), or a Program. Raises ReadError.
    """
    program = source if isinstance(source, Program) else read(source)
    wanted = None if groups is None else known_groups(groups)
    return {name: function_features(program, op, wanted) for name, op in functions_of(program)}


def main_features(source: Any, groups: Iterable[str] | None = None) -> dict[str, float]:
    """Features of the kernel: the only function, `@kernel` or `@main` of several, else the one that does most."""
    found = features_of(source, groups)
    if len(found) == 1:
        return next(iter(found.values()))
    for name in ("kernel", "main"):
        if name in found:
            return found[name]
    return max(found.values(), key=lambda f: f["work.executions"])


def features_or_error(source: Any, position: int) -> Mapping[str, float] | ReadError:
    """Features of one program; of a dict, itself; the error, which says which program, where it cannot be read."""
    if isinstance(source, Mapping):
        return source
    path = f"<program {position}>"
    if source is None or isinstance(source, Real):  # a missing value of a table, mostly
        return ReadError(f"expected MLIR text, got {source!r}", path=path)
    try:
        return main_features(source if isinstance(source, Program) else read(source, path=path))
    except ReadError as error:
        if isinstance(source, str) and source.strip().endswith(".mlir") and "\n" not in source:
            hint = "A file's name is given as a pathlib.Path."
            return ReadError(error.message, path=path, source_line=source, hint=hint)
        return error


def check_finite(features: Mapping[str, float], where: str) -> None:
    """SchemaError, which names the feature, where one is not finite: the counts of an astronomic loop nest."""
    if not all(map(math.isfinite, features.values())):
        name = next(name for name, value in features.items() if not math.isfinite(value))
        raise SchemaError(f"{where}: feature {name!r} is not a finite number.")
