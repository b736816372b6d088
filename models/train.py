"""From a dataset to an artifact: features, one model per target, the manifest. `make train` ends here."""

from __future__ import annotations

import gc
import hashlib
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..data.targets import TRACK_GROUPS, Target, targets_of
from ..errors import IrgaugeError
from ..featurize.describe import GROUPS
from ..featurize.featurizer import features_of, main_features
from ..featurize.reader import read
from ..featurize.schema import SCHEMA_VERSION, Schema, is_op_name
from ..featurize.transformer import Featurizer
from .artifact import library_versions
from .candidates import Settings
from .learn import Learned, learn_target
from .recipes import Recipe, recipes_of, settings_of
from .target_model import TargetModel
from .track_model import TrackModel
from .trees import Float32, Float64

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int, str], None]
"""Called with steps done, steps in all, and what was done."""
_T = TypeVar("_T")

_LIBRARIES = ("irgauge", "numpy", "joblib", "scikit-learn", "xgboost-cpu", "xgboost", "lightgbm", "pandas", "pyarrow")
_CHUNK = 50


@dataclass(frozen=True, eq=False)
class Table:
    """A dataset as the models see it: one row per record."""

    track: str
    names: tuple[str, ...]
    """Feature names in column order."""
    schema_version: int
    X: Float32
    """Shape (n_rows, n_features), finite."""
    y: Mapping[str, Float64]
    """Target column to labels, shape (n_rows,); NaN where a record has none."""
    ids: tuple[str, ...]
    program_id: tuple[str, ...]
    family: tuple[str, ...]

    def rows(self, index: np.ndarray) -> Table:
        """The table of some rows."""
        return replace(
            self,
            X=np.ascontiguousarray(self.X[index]),
            y={column: labels[index] for column, labels in self.y.items()},
            ids=tuple(self.ids[i] for i in index),
            program_id=tuple(self.program_id[i] for i in index),
            family=tuple(self.family[i] for i in index),
        )

    def targets(self) -> tuple[Target, ...]:
        """Targets of the track with at least one label, in the order of the registry."""
        return tuple(t for t in targets_of(self.track) if t.column in self.y and np.isfinite(self.y[t.column]).any())

    def learn(
        self,
        target: Target,
        index: np.ndarray | None = None,
        *,
        seed: int,
        settings: Settings,
        candidates: Sequence[str] | None = None,
        recipe: Recipe | None = None,
    ) -> Learned:
        """Learn one target from some rows; all by default."""
        return learn_target(
            target,
            self.X,
            self.y[target.column],
            self.program_id,
            self.names,
            rows=index,
            families=self.family,
            seed=seed,
            settings=settings,
            candidates=candidates,
            recipe=recipe,
        )


@contextmanager
def shared(table: Table, n_jobs: int) -> Iterator[Table]:
    """The same table with its matrix in a temporary file that processes map instead of copying; as it is for one
    process."""
    if n_jobs == 1:
        yield table
        return
    with tempfile.TemporaryDirectory(prefix="irgauge-") as folder:
        path = Path(folder) / "features.npy"
        np.save(path, table.X)
        mapped = np.load(path, mmap_mode="r")
        try:
            yield replace(table, X=mapped)
        finally:
            del mapped


def run_all(
    function: Callable[..., _T],
    arguments: Sequence[tuple[Any, ...]],
    n_jobs: int,
    progress: Progress | None,
    label: Callable[..., str],
) -> list[_T]:
    """Call a function with each tuple of arguments, in processes where `n_jobs` is not 1; results in order, progress
    as they come."""
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1, max_nbytes="1M")
    results = []
    for done, result in enumerate(parallel(delayed(function)(*a) for a in arguments)):
        results.append(result)
        if progress is not None:
            progress(done + 1, len(arguments), label(*arguments[done]))
    return results


def _features_of_records(
    records: Sequence[tuple[str, str | None, str]], groups: Sequence[str] | None
) -> list[dict[str, float]]:
    """Named features that are not 0 of (text, function, id) records; of a text's kernel (`main_features`) where no
    function is named."""
    found = []
    with collected_at_the_end():
        for text, function, record_id in records:
            program = read(text, path=f"<{record_id}>")
            if function is None:
                found.append(_not_zero(main_features(program, groups)))
                continue
            by_name = features_of(program, groups)
            if function not in by_name:
                raise IrgaugeError(f"record {record_id}: no function {function!r}; it has {', '.join(by_name)}")
            found.append(_not_zero(by_name[function]))
    return found


def _not_zero(features: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in features.items() if value}


@contextmanager
def collected_at_the_end() -> Iterator[None]:
    """Without cyclic garbage collection, which goes through all programs and libraries again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def named_features(
    frame: pd.DataFrame, *, track: str = "kernel", n_jobs: int = 2, progress: Progress | None = None
) -> list[dict[str, float]]:
    """Features of each record that are not 0, by name, from its columns `mlir` and, where there is one, `function`.

    Raises
    ------
    ReadError
        A record's text cannot be read.
    IrgaugeError
        A record names a function that its text lacks.
    """
    functions = list(frame["function"]) if "function" in frame.columns else [None] * len(frame)
    records = list(zip(frame["mlir"], functions, frame["id"], strict=True))
    groups = TRACK_GROUPS.get(track)
    chunks = [(records[i : i + _CHUNK], groups) for i in range(0, len(records), _CHUNK)]
    parts = run_all(_features_of_records, chunks, n_jobs, progress, lambda *_: "reading programs")
    return [features for part in parts for features in part]


def table_of(
    frame: pd.DataFrame,
    *,
    track: str = "kernel",
    like: Table | None = None,
    n_jobs: int = 2,
    progress: Progress | None = None,
) -> Table:
    """Features and labels of a dataset.

    Parameters
    ----------
    frame : columns `id`, `program_id`, `family`, `mlir`, optionally `function`, and the targets'
    like : use this table's columns; features it lacks are dropped and unknown ops counted. By default the columns are
        learned.

    Raises
    ------
    IrgaugeError
        The frame is empty, a column is missing, or a text cannot be read.
    """
    missing = [c for c in ("id", "program_id", "family", "mlir") if c not in frame.columns]
    if missing or not len(frame):
        raise IrgaugeError(f"the dataset {'lacks column ' + repr(missing[0]) if missing else 'has no rows'}")
    features = named_features(frame, track=track, n_jobs=n_jobs, progress=progress)
    names = like.names if like is not None else _columns(features, track)
    return Table(
        track,
        names,
        SCHEMA_VERSION,
        matrix(features, names),
        {t.column: frame[t.column].to_numpy(np.float64) for t in targets_of(track) if t.column in frame.columns},
        tuple(map(str, frame["id"])),
        tuple(map(str, frame["program_id"])),
        tuple(map(str, frame["family"])),
    )


def _columns(features: Sequence[Mapping[str, float]], track: str) -> tuple[str, ...]:
    """The schema's names: the fixed features of the track's groups, and the learned ones that occur often enough."""
    extracted = TRACK_GROUPS.get(track, tuple(GROUPS))
    absent = {name for group, fixed in GROUPS.items() if group not in extracted for name in fixed}
    return tuple(str(n) for n in Featurizer().fit(features).get_feature_names_out() if n not in absent)


def matrix(features: Iterable[Mapping[str, float]], names: tuple[str, ...]) -> Float32:
    """Rows of named features as float32 columns; an absent feature is 0, unknown ops add up in `ops.unknown`.

    Raises
    ------
    IrgaugeError
        A value is not finite, or too large for float32.
    """
    rows = list(features)
    where = {name: i for i, name in enumerate(names)}
    wide = np.zeros((len(rows), len(names)))
    unknown = where.get("ops.unknown")
    for row, values in enumerate(rows):
        n_unknown = 0.0
        for name, value in values.items():
            column = where.get(name)
            if column is not None:
                wide[row, column] = value
            elif is_op_name(name):
                n_unknown += value
        if unknown is not None:
            wide[row, unknown] = n_unknown
    with np.errstate(over="ignore"):  # found just below, and named
        X = wide.astype(np.float32)
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        raise IrgaugeError(f"feature {names[int(bad[0][1])]!r} of row {int(bad[0][0])} is not a finite float32 number")
    return X


def _learn_one(
    table: Table, target: Target, seed: int, settings: Settings, recipe: Recipe | None
) -> tuple[TargetModel, dict[str, float]]:
    learned = table.learn(target, seed=seed, settings=settings, recipe=recipe)
    return learned.model, dict(learned.cv_scores)


def train_track(
    data: pd.DataFrame | Table,
    *,
    track: str = "kernel",
    seed: int = 0,
    n_jobs: int = 2,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train all targets of a track on all rows and put together the artifact (scores come from `evaluate`).

    Without `settings`, targets that `make tune` has found a recipe for are learned by it. Same data, seed and library
    versions give the same artifact, whatever `n_jobs`.

    Returns
    -------
    {"manifest": ..., "tracks": {track: ...}}, plain data for `write_artifact`.

    Raises
    ------
    IrgaugeError
        As `table_of`, or no target of the track has a label.
    """
    table = data if isinstance(data, Table) else table_of(data, track=track, n_jobs=n_jobs, progress=progress)
    recipes = recipes_of(table.track) if settings is None else {}
    settings = settings or settings_of(table.track)
    targets = table.targets()
    if not targets:
        raise IrgaugeError(f"the dataset has no label for any target of track {table.track!r}")
    with shared(table, n_jobs) as mapped:
        learned = run_all(
            _learn_one,
            [(mapped, target, seed, settings, recipes.get(target.column)) for target in targets],
            n_jobs,
            progress,
            lambda _, t, *__: f"training {t.name}",
        )
    model = TrackModel(
        table.track,
        table.schema_version,
        Schema(table.names, table.schema_version).hash,
        table.names,
        tuple(m for m, _ in learned),
        table.X.min(axis=0),
        table.X.max(axis=0),
    )
    manifest = {
        "targets": {t.column: target_facts(t) for t in targets},
        "libraries": {"python": platform.python_version(), **library_versions(_LIBRARIES)},
        "tracks": {
            table.track: {
                "schema": {"version": model.schema_version, "hash": model.schema_hash, "n_features": len(model.names)},
                "training": {
                    "rows": len(table.X),
                    "programs": len(set(table.program_id)),
                    "families": sorted(set(table.family)),
                    "rows_per_target": {t.column: int(np.isfinite(table.y[t.column]).sum()) for t in targets},
                    "data_sha256": data_hash(table),
                    "seed": seed,
                    "settings": asdict(settings),
                },
                "chosen": {
                    m.column: {
                        "candidate": m.candidate,
                        "margin": m.estimate,
                        "two_part": m.gate is not None,
                        "space": m.space,
                        "tuned": m.column in recipes,
                        "settings": dict(recipes[m.column].settings) if m.column in recipes else {},
                        "cv": {k: float(v) for k, v in sorted(cv.items())},
                    }
                    for m, cv in learned
                },
                "scores": {},
                "baselines": {},
            }
        },
    }
    return {"manifest": manifest, "tracks": {table.track: model.to_plain()}}


def target_facts(target: Target) -> dict[str, Any]:
    """What the manifest says about a target."""
    return {
        "device": target.device,
        "name": target.name,
        "unit": target.unit,
        "kind": target.kind,
        "lower_is_better": target.lower_is_better,
        "exact": target.exact,
        "how": target.how,
        "tool": target.tool,
    }


def data_hash(table: Table) -> str:
    """SHA-256 of what was learned from: ids, groups, features and labels, in row order."""
    digest = hashlib.sha256()
    for part in (table.names, table.ids, table.program_id, table.family):
        digest.update("\n".join(part).encode())
        digest.update(b"\0")
    digest.update(np.ascontiguousarray(table.X).tobytes())
    for column in sorted(table.y):
        digest.update(column.encode())
        digest.update(np.ascontiguousarray(table.y[column]).tobytes())
    return digest.hexdigest()
