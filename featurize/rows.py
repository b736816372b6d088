"""One row of features for each function of many files, as JSON, CSV or Parquet: what `irgauge featurize` writes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .describe import GROUPS
from .featurizer import check_finite, features_of, known_groups
from .program import Program
from .schema import SCHEMA_VERSION

KEYS = ("path", "function")
"""The columns before the features."""


@dataclass(frozen=True)
class FunctionRow:
    """The features of one function."""

    path: str
    function: str
    """Name without `@`."""
    features: dict[str, float]
    """By name: all fixed features of the groups asked for, and the learned ones that occur."""


def rows_of(program: Program, groups: Iterable[str] | None = None) -> list[FunctionRow]:
    """A row for each function with a body, in order.

    Raises
    ------
    UsageError
        A group does not exist.
    SchemaError
        A feature is not finite.
    """
    rows = []
    path = printable(program.path)
    for name, features in features_of(program, groups).items():
        check_finite(features, f"{path}: @{name}")
        rows.append(FunctionRow(path, printable(name), features))
    return rows


def printable(text: str) -> str:
    r"""The text with bytes that were not UTF-8 (kept as lone surrogates by the reader) written as `\udc80`."""
    return text.encode("utf-8", "backslashreplace").decode()


def columns(rows: Sequence[FunctionRow], groups: Iterable[str] | None = None) -> tuple[str, ...]:
    """Feature columns of a table of these rows: the fixed ones in schema order, then the learned ones, sorted.

    In a table, a learned feature that a function lacks is 0.
    """
    fixed = tuple(name for group in (GROUPS if groups is None else known_groups(groups)) for name in GROUPS[group])
    learned = set().union(*(row.features for row in rows)) - set(fixed)
    return (*fixed, *sorted(learned))


def to_json(rows: Sequence[FunctionRow]) -> str:
    """A list of `{"path", "function", "features": {name: value}}`, features by name."""
    plain = [{"path": r.path, "function": r.function, "features": dict(sorted(r.features.items()))} for r in rows]
    return json.dumps(plain, indent=2, allow_nan=False)


def to_csv(rows: Sequence[FunctionRow], groups: Iterable[str] | None = None) -> str:
    """A line for each function after a header: path, function, features."""
    names = columns(rows, groups)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*KEYS, *names))
    writer.writerows((r.path, r.function, *(float(r.features.get(name, 0.0)) for name in names)) for r in rows)
    return out.getvalue()


def to_parquet(rows: Sequence[FunctionRow], groups: Iterable[str] | None = None) -> bytes:
    """A Parquet file (zstd): two columns of strings, then float64; `irgauge.schema_version` in its metadata.

    Raises
    ------
    ModuleNotFoundError
        pyarrow is not installed.
    """
    import pyarrow
    import pyarrow.parquet

    table = {"path": pyarrow.array([r.path for r in rows], pyarrow.string())}
    table["function"] = pyarrow.array([r.function for r in rows], pyarrow.string())
    for name in columns(rows, groups):
        table[name] = pyarrow.array((r.features.get(name, 0.0) for r in rows), pyarrow.float64(), size=len(rows))
    made = pyarrow.table(table).replace_schema_metadata({"irgauge.schema_version": str(SCHEMA_VERSION)})
    out = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(made, out, compression="zstd")
    return bytes(out.getvalue())
