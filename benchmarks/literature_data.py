"""What the literature's models learn from: programs as tokens and as loop features, labels, the splits' rows."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from irgauge.benchmarks.literature_tokens import KINDS, tokens_of
from irgauge.data.splits import group_folds
from irgauge.data.targets import Target, targets_of
from irgauge.featurize.featurizer import main_features
from irgauge.featurize.reader import read
from irgauge.files import replacing
from irgauge.models.train import matrix

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

CONTEXT_GROUPS = ("loops", "access", "work")
"""Our feature groups that hold what AutoTVM's loop-context features do: extents, strides, reuse, arithmetic."""
_VALIDATION_FOLDS = 10


@dataclass(frozen=True, eq=False)
class Data:
    """A dataset, one row per record."""

    texts: Sequence[str]
    program_id: Sequence[str]
    family: Sequence[str]
    targets: Sequence[Target]
    """Those with a label."""
    y: Floats
    """Labels, shape (n_rows, n_targets), NaN where there is none."""
    tokens: Mapping[str, Sequence[Sequence[str]]]
    """Kind of token -> the sequence of each record."""
    context: NDArray[np.float32]
    """Loop-context features, shape (n_rows, n_features)."""
    context_names: tuple[str, ...]
    sha256: str
    """Of the records' ids."""

    def column(self, name: str) -> int:
        """The column of `y` of the target of this name, e.g. "latency_ns"."""
        return [t.name for t in self.targets].index(name)

    def validation(self, split: str, train: Rows, seed: int) -> tuple[Rows, Rows]:
        """Training rows to learn from, and a tenth of them held out as the split's test rows are.

        Records are held out for "random", whole programs for "program", whole families for "family/3".
        """
        kind = split.partition("/")[0]
        if kind == "random":
            groups: Sequence[str] = [str(row) for row in train]
        else:
            by_row = self.program_id if kind == "program" else self.family
            groups = [by_row[row] for row in train]
        folds = group_folds(groups, _VALIDATION_FOLDS, seed)
        return train[folds != 0], train[folds == 0]


def data_hash(ids: Sequence[str]) -> str:
    """SHA-256 of the ids, one a line, in row order."""
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()


def read_programs(texts: Sequence[str]) -> pd.DataFrame:
    """Each text read once: a column of tokens for each kind, a line each, and a column for each context feature."""
    import pandas as pd

    rows = []
    features: list[dict[str, float]] = []
    for text in texts:
        program = read(text)
        rows.append({kind: "\n".join(tokens_of(program, kind)) for kind in KINDS})
        features.append(main_features(program, CONTEXT_GROUPS))
    names = tuple(sorted(set().union(*features)))
    return pd.concat([pd.DataFrame(rows), pd.DataFrame(matrix(features, names), columns=list(names))], axis=1)


def load_data(path: Path, cache: Path, track: str, every: int = 1) -> Data:
    """The dataset at `path`, or one program of `every` so many; what was read is kept in the folder `cache`."""
    import pandas as pd

    frame = pd.read_parquet(path)
    frame = frame[frame["program_id"].isin(frame["program_id"].unique()[::every])].reset_index(drop=True)
    sha256 = data_hash(frame["id"].tolist())
    kept = cache / f"programs-{sha256[:16]}.parquet"
    if not kept.exists():
        with replacing(kept) as temporary:
            read_programs(frame["mlir"].tolist()).to_parquet(temporary)
    return _data(frame, pd.read_parquet(kept), track, sha256)


def _data(frame: pd.DataFrame, programs: pd.DataFrame, track: str, sha256: str) -> Data:
    targets = [t for t in targets_of(track) if t.column in frame.columns and frame[t.column].notna().any()]
    context: list[Any] = [name for name in programs.columns if name not in KINDS]
    return Data(
        frame["mlir"].tolist(),
        frame["program_id"].tolist(),
        frame["family"].tolist(),
        targets,
        frame[[t.column for t in targets]].to_numpy(np.float64),
        {kind: [[sys.intern(token) for token in row.split("\n")] for row in programs[kind]] for kind in KINDS},
        programs[context].to_numpy(np.float32),
        tuple(context),
        sha256,
    )
