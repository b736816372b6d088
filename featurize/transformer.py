"""`Featurizer`: programs in, one row of features for each out, behind scikit-learn's contract.

The only module of `featurize` that imports scikit-learn; reading and prediction do without it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ReadError, ToolMissingError
from .describe import FIXED
from .featurizer import check_finite, features_or_error, main_features
from .program import Program
from .schema import Schema

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise ToolMissingError("Featurizer needs scikit-learn. Install it with `pip install 'irgauge[train]'`.") from None

_FIXED = frozenset(FIXED)


class Featurizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A scikit-learn transformer: programs in, one row of features for each program out.

    Parameters
    ----------
    min_df : int or float
        A learned feature (op name, n-gram, chain, option) must occur in this many programs, or as a float in this
        share of them. With fewer programs than that, only the fixed features are left.
    max_vocabulary : int or None
        At most this many learned features, those in most programs first.
    sparse_output : bool
        `transform` gives a SciPy CSR matrix (an array after `sklearn.set_config(sparse_interface="sparray")`), else a
        NumPy array or what `set_output` asks for.
    n_jobs : int or None
        Processes that read and analyse, as everywhere in scikit-learn: None is 1 outside a joblib context, -1 all
        cores. The result does not depend on it.

    Attributes
    ----------
    schema_ : Schema
        Fixed features first, then the learned ones in sorted order; the same for any order of the programs.
    n_features_in_ : int
        1: the column of programs.

    `fit` and `transform` take any iterable of programs, or a table with one column of them. A program is MLIR text,
    bytes, a path object, a Program, an object whose `str()` is MLIR, or the dict that `main_features` gave. Its row
    describes its kernel (see `main_features`). A search over parameters reads each program once where it is given
    those dicts: `[main_features(text) for text in texts]`.

    Examples
    --------
    >>> from irgauge import Featurizer
    >>> square = '''
    ... func.func @square(%x: f32) -> f32 {
    ...   %y = arith.mulf %x, %x : f32
    ...   return %y : f32
    ... }'''
    >>> table = Featurizer(min_df=1).set_output(transform="pandas").fit_transform([square])
    >>> table.loc[0, ["ops.total", "work.flops", "chain/arith.mulf>func.return"]].tolist()
    [2.0, 1.0, 1.0]
    """

    def __init__(
        self,
        min_df: int | float = 10,
        max_vocabulary: int | None = 1500,
        sparse_output: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.min_df = min_df
        self.max_vocabulary = max_vocabulary
        self.sparse_output = sparse_output
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: one column of strings."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []  # always float64
        return tags

    def fit(self, X: Iterable[Any], y: Any = None) -> Featurizer:
        """Learn the vocabulary; `y` is ignored.

        Raises
        ------
        ValueError
            A parameter is out of range, there are no programs, or `X` is not a column of programs.
        ReadError
            A program cannot be read; the message has its position in `X`, from 0, or its path.
        SchemaError
            A feature is not finite; the message has the position.
        """
        self._check_parameters()
        return self._fit(self._extract(X))

    def fit_transform(self, X: Iterable[Any], y: Any = None, **fit_params: Any) -> Any:
        """`fit`, then `transform`, reading each program once."""
        self._check_parameters()
        rows = self._extract(X)
        return self._fit(rows)._rows(rows)

    def transform(self, X: Iterable[Any]) -> Any:
        """Shape (n_programs, n_features), float64: array, CSR matrix or DataFrame.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ReadError
            As `fit`.
        """
        check_is_fitted(self)
        return self._rows(self._extract(X))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the columns, in order; `input_features` is ignored."""
        check_is_fitted(self)
        return np.asarray(self.schema_.names, dtype=object)

    def unseen_ops(self, source: Any) -> dict[str, float]:
        """Op names of a program that the vocabulary lacks, with their counts."""
        check_is_fitted(self)
        return self.schema_.unseen_ops(source if isinstance(source, Mapping) else main_features(source))

    def _check_parameters(self) -> None:
        share = isinstance(self.min_df, Real) and not isinstance(self.min_df, Integral)
        if not (0 < self.min_df <= 1 if share else _is_count(self.min_df, 1)):
            raise ValueError(f"min_df must be an integer of at least 1 or a share in (0, 1], got {self.min_df!r}.")
        if self.max_vocabulary is not None and not _is_count(self.max_vocabulary, 0):
            raise ValueError(f"max_vocabulary must be None or an integer of at least 0, got {self.max_vocabulary!r}.")

    def _extract(self, X: Iterable[Any]) -> list[Mapping[str, float]]:
        """Features of each program. Of several that cannot be read, the first one's error, for any `n_jobs`."""
        from joblib import Parallel, delayed, effective_n_jobs

        sources = _column(X)
        here = (Mapping, Program)  # done, or read already: not worth sending, and a deep Program cannot be pickled
        todo = [i for i, source in enumerate(sources) if not isinstance(source, here)]
        found: dict[int, Mapping[str, float] | ReadError] = {}
        if len(todo) > 1 and effective_n_jobs(self.n_jobs) > 1:
            calls = [delayed(features_or_error)(_portable(sources[i]), i) for i in todo]
            found = dict(zip(todo, Parallel(n_jobs=self.n_jobs)(calls), strict=True))
        rows: list[Mapping[str, float]] = []
        for i, source in enumerate(sources):
            row = found[i] if i in found else features_or_error(source, i)
            if isinstance(row, ReadError):
                raise row
            check_finite(row, f"<program {i}>")
            rows.append(row)
        return rows

    def _fit(self, rows: Sequence[Mapping[str, float]]) -> Featurizer:
        if not rows:
            raise ValueError("no programs to fit on.")
        least = self.min_df if isinstance(self.min_df, Integral) else self.min_df * len(rows)
        frequency: Counter[str] = Counter()
        for row in rows:
            frequency.update(name for name, value in row.items() if name not in _FIXED and value != 0)
        enough = [name for name, count in frequency.items() if count >= least]
        if self.max_vocabulary is not None and len(enough) > self.max_vocabulary:
            enough.sort(key=lambda name: (-frequency[name], name))
            del enough[self.max_vocabulary :]
        self.schema_ = Schema((*FIXED, *sorted(enough)))
        self.n_features_in_ = 1
        return self

    def _rows(self, rows: Sequence[Mapping[str, float]]) -> Any:
        schema = self.schema_
        if self.sparse_output:
            return _csr([schema.nonzero(row) for row in rows], len(schema.names))
        matrix = np.empty((len(rows), len(schema.names)))
        for i, row in enumerate(rows):
            matrix[i] = schema.vector(row)
        return matrix


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _column(X: Any) -> list[Any]:
    """The programs, from an iterable of them or a table with one column. ValueError for anything else."""
    if isinstance(X, str | bytes | os.PathLike | Mapping | Program):
        raise ValueError("expected a sequence of programs, got one; wrap it in a list.")
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        if len(shape) != 2 or shape[1] != 1:
            size = "x".join(map(str, shape)) or "a single value"
            raise ValueError(f"expected one column of programs, got {size}; select the column of MLIR texts.")
        return list(X.iloc[:, 0] if hasattr(X, "iloc") else X[:, 0])
    if not isinstance(X, Iterable):
        if hasattr(X, "__array__"):
            return _column(np.asarray(X))
        raise ValueError(f"expected a sequence of programs, got {type(X).__name__}.")
    return list(X)


def _portable(source: Any) -> Any:
    """The source as another process can take it: bindings' modules, for one, cannot be pickled."""
    return source if isinstance(source, str | bytes | os.PathLike | Real | None) else str(source)


def _csr(rows: Sequence[Mapping[int, float]], width: int) -> Any:
    from scipy.sparse import csr_array, csr_matrix
    from sklearn import get_config

    made = csr_array if get_config().get("sparse_interface") == "sparray" else csr_matrix
    counts = [len(row) for row in rows]
    columns = np.fromiter((column for row in rows for column in row), np.int32, sum(counts))
    values = np.fromiter((value for row in rows for value in row.values()), np.float64, sum(counts))
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return made((values, columns, starts), shape=(len(rows), width))
