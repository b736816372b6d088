"""Text to features: `features_of` for one program, `Featurizer` for a column of programs as scikit-learn expects it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import IrgaugeError, SchemaError
from .access import access
from .codegen import codegen
from .describe import FIXED
from .function_view import FunctionView
from .liveness import liveness
from .loops import loops
from .ngrams import ngrams
from .ops import ops
from .options import options
from .program import Op, Program
from .reader import read
from .schema import Schema
from .tensors import tensors
from .work import work

_GROUPS = (ops, ngrams, loops, tensors, work, access, liveness, codegen, options)
_FIXED = frozenset(FIXED)


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
        if short in ("func", "function", "kernel_func"):
            if any(b.ops for r in op.regions for b in r.blocks):
                found.append((_symbol(op), op))
            continue
        inner = [o for r in op.regions for b in r.blocks for o in b.ops if o.regions]
        stack.extend(reversed(inner))
    seen: Counter[str] = Counter()
    out = []
    for name, op in found:
        seen[name] += 1
        out.append((name if seen[name] == 1 else f"{name}#{seen[name] - 1}", op))
    return out or [("<module>", program.root)]


def _symbol(op: Op) -> str:
    text = op.text
    at = text.find("@")
    if not text.lstrip().startswith("(") and at >= 0:
        rest = text[at + 1 :]
        if rest.startswith('"'):
            return rest[1 : rest.index('"', 1)]
        end = 0
        while end < len(rest) and (rest[end].isalnum() or rest[end] in "_$.-"):
            end += 1
        return rest[:end]
    mark = text.find("sym_name")
    if mark >= 0:
        start = text.find('"', mark)
        if start >= 0:
            return text[start + 1 : text.index('"', start + 1)]
    return "<anonymous>"


def function_features(program: Program, function: Op) -> dict[str, float]:
    """All features of one function, each finite: the fixed ones (always present), the learned ones that occur."""
    view = FunctionView(program, function)
    out: dict[str, float] = {}
    for group in _GROUPS:
        out.update(group(view))
    return out


def features_of(source: Any) -> dict[str, dict[str, float]]:
    """Features of each function with a body, by symbol name.

    `source`: MLIR text, bytes, a path object, an object whose `str()` is MLIR, or a Program. Raises ReadError.
    """
    program = source if isinstance(source, Program) else read(source)
    return {name: function_features(program, op) for name, op in functions_of(program)}


def main_features(source: Any) -> dict[str, float]:
    """Features of the kernel: the only function, `@kernel` or `@main` of several, else the one that does most."""
    found = features_of(source)
    if len(found) == 1:
        return next(iter(found.values()))
    for name in ("kernel", "main"):
        if name in found:
            return found[name]
    return max(found.values(), key=lambda f: f["work.executions"])


def _try_features(source: Any) -> dict[str, float] | IrgaugeError:
    try:
        return main_features(source)
    except IrgaugeError as error:
        return error


class Featurizer:
    """A scikit-learn transformer: programs in, one row of features for each program out.

    Parameters
    ----------
    min_df : int
        A learned feature (op name, n-gram, chain, option) must occur in this many programs.
    max_vocabulary : int or None
        At most this many learned features, those in most programs first.
    n_jobs : int
        Processes that read and analyse (joblib); 1 stays in this one.

    Attributes
    ----------
    schema_ : Schema
        Fixed features first, then the learned ones in sorted order.
    n_features_in_ : int
        1: the column of programs.

    `fit` and `transform` take a sequence of MLIR texts, paths, Programs, or of dicts that `main_features` gave.
    """

    def __init__(self, min_df: int = 10, max_vocabulary: int | None = 1500, n_jobs: int = 1) -> None:
        self.min_df = min_df
        self.max_vocabulary = max_vocabulary
        self.n_jobs = n_jobs

    # ---- scikit-learn's contract, without importing it ------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"min_df": self.min_df, "max_vocabulary": self.max_vocabulary, "n_jobs": self.n_jobs}

    def set_params(self, **params: Any) -> Featurizer:
        """Change constructor arguments. ValueError for a name that is not one."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"Featurizer has no parameter {name!r}; it has {sorted(self.get_params())}.")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: a transformer of one column of strings that needs fitting."""
        from sklearn.utils import Tags, TargetTags, TransformerTags
        from sklearn.utils._tags import InputTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
            requires_fit=True,
        )

    def __repr__(self) -> str:
        return f"Featurizer(min_df={self.min_df}, max_vocabulary={self.max_vocabulary}, n_jobs={self.n_jobs})"

    def fit(self, X: Sequence[Any], y: Any = None) -> Featurizer:
        """Learn the vocabulary. ValueError for bad parameters, ReadError for a program that cannot be read."""
        self._fit(self._extract(X))
        return self

    def fit_transform(self, X: Sequence[Any], y: Any = None, **_: Any) -> Any:
        """`fit`, then `transform`, reading each program once."""
        rows = self._extract(X)
        self._fit(rows)
        return self._transform(rows, X)

    def transform(self, X: Sequence[Any]) -> Any:
        """Float64 array of shape (n_programs, n_features), or a DataFrame after `set_output(transform="pandas")`."""
        self._fitted()
        return self._transform(self._extract(X), X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the columns, in order."""
        return np.asarray(self._fitted().names, dtype=object)

    def set_output(self, *, transform: str | None = None) -> Featurizer:
        """`transform="pandas"` for DataFrames, "default" for arrays."""
        if transform not in (None, "default", "pandas"):
            raise ValueError(f"transform must be 'default' or 'pandas', got {transform!r}.")
        if transform is not None:
            self._output = transform
        return self

    # ---- our own ------------------------------------------------------------------------------------------------

    def unseen_ops(self, source: Any) -> dict[str, float]:
        """Op names of a program that the vocabulary lacks, with their counts."""
        return self._fitted().unseen_ops(source if isinstance(source, Mapping) else main_features(source))

    def _fitted(self) -> Schema:
        schema: Schema | None = getattr(self, "schema_", None)
        if schema is None:
            raise SchemaError("this Featurizer is not fitted; call fit with the training programs first.")
        return schema

    def _extract(self, X: Iterable[Any]) -> list[Mapping[str, float]]:
        if isinstance(X, str | bytes | Mapping | Program):
            raise ValueError("expected a sequence of programs, got one; wrap it in a list.")
        sources = list(X)
        if self.n_jobs == 1 or len(sources) < 64:
            rows = [s if isinstance(s, Mapping) else _try_features(s) for s in sources]
        else:
            from joblib import Parallel, delayed

            todo = [delayed(_try_features)(s) for s in sources if not isinstance(s, Mapping)]
            done = iter(Parallel(n_jobs=self.n_jobs, batch_size=32)(todo))
            rows = [s if isinstance(s, Mapping) else next(done) for s in sources]
        good: list[Mapping[str, float]] = []
        for row in rows:
            if isinstance(row, IrgaugeError):
                raise row
            good.append(row)
        return good

    def _fit(self, rows: Sequence[Mapping[str, float]]) -> None:
        if self.min_df < 1:
            raise ValueError(f"min_df must be at least 1, got {self.min_df!r}.")
        if not rows:
            raise ValueError("no programs to fit on.")
        frequency: Counter[str] = Counter()
        for row in rows:
            frequency.update(name for name, value in row.items() if name not in _FIXED and value != 0)
        enough = [name for name, count in frequency.items() if count >= self.min_df]
        if self.max_vocabulary is not None and len(enough) > self.max_vocabulary:
            enough.sort(key=lambda name: (-frequency[name], name))
            del enough[self.max_vocabulary :]
        self.schema_ = Schema((*FIXED, *sorted(enough)))
        self.n_features_in_ = 1

    def _transform(self, rows: Sequence[Mapping[str, float]], X: Any) -> Any:
        schema = self._fitted()
        matrix = np.empty((len(rows), len(schema.names)))
        for i, row in enumerate(rows):
            matrix[i] = schema.vector(row)
        if not np.isfinite(matrix).all():
            warnings.warn("a feature is not finite; this is a bug in irgauge.", RuntimeWarning, stacklevel=3)
        if getattr(self, "_output", "default") == "pandas":
            import pandas

            return pandas.DataFrame(matrix, columns=list(schema.names), index=X.index if hasattr(X, "iloc") else None)
        return matrix
