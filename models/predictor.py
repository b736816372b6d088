"""Predict from MLIR text: what a compiler calls. NumPy, joblib's file format and the standard library; one thread.

A `CostModel` is read-only after loading: any number of threads and forked children may use it at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.targets import TRACK_DIALECTS, TRACK_GROUPS
from ..errors import ArtifactError, SchemaError, UsageError
from ..featurize.describe import GROUPS
from ..featurize.featurizer import dialects_of, function_features, functions_of
from ..featurize.program import Op, Program
from ..featurize.reader import read
from ..featurize.schema import SCHEMA_VERSION, Schema, is_op_name
from .artifact import read_artifact
from .track_model import TrackModel
from .trees import Float32

if TYPE_CHECKING:  # loaded where something is explained: a tenth of the time that our modules take to load
    from .changed_lines import LineShare
    from .explain import Change, Explainer, Explanation

_SHOWN = 5


@dataclass(frozen=True)
class Estimate:
    """The prediction of one target."""

    device: str
    target: str
    """E.g. "latency_ns"."""
    value: float
    """In `unit`; a whole number where the target is counted."""
    low: float
    high: float
    """95 % interval; contains the value."""
    unit: str
    """"" for shares in [0, 1]."""
    status: str
    """ "ok", or "outside": the function is unlike the training programs in what this target depends on; see
    `outside`."""
    outside: tuple[str, ...] = ()
    """What is unlike, by name: ops never seen, features beyond their range in training."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """All predictions for one function."""

    function: str
    """Name without `@`."""
    track: str
    warnings: tuple[str, ...]
    """One line each; empty when there is nothing to say."""
    estimates: tuple[Estimate, ...]

    def __getitem__(self, key: str | tuple[str, str]) -> Estimate:
        """`p["x86-64-v3", "latency_ns"]`, `p["x86-64-v3/latency_ns"]` or, where one device has it, `p["latency_ns"]`.

        Raises
        ------
        UsageError
            Nothing, or more than one device, has a target of this name; the message lists what there is.
        """
        device, _, name = (key if isinstance(key, str) else "/".join(key)).rpartition("/")
        found = [e for e in self.estimates if e.target == name and device in ("", e.device)]
        if len(found) == 1:
            return found[0]
        known = ", ".join(f"{e.device}/{e.target}" for e in self.estimates)
        raise UsageError(f"{'several devices have' if found else 'no prediction for'} target {name!r}. Known: {known}")

    def to_plain(self) -> dict[str, Any]:
        """As JSON holds it: function, track, warnings and predictions."""
        keys = ("device", "target", "value", "low", "high", "unit", "status")
        return {
            "function": self.function,
            "track": self.track,
            "warnings": list(self.warnings),
            "predictions": [{key: getattr(e, key) for key in keys} for e in self.estimates],
        }

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)


@dataclass(frozen=True)
class Ranked:
    """One candidate of a ranking."""

    position: int
    """Where it stood among the candidates given, from 0."""
    estimate: Estimate


@dataclass(frozen=True, eq=False)
class Difference:
    """What changed between two versions of one function."""

    function: str
    """Its name in the second version, without `@`."""
    track: str
    changes: tuple[Change, ...]
    """One per target."""
    lines: tuple[tuple[LineShare, ...], ...]
    """For each of `changes`, the changed source lines and what they add to it; see `changed_lines`."""

    def to_plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        changes = [
            {**change.to_plain(), "lines": [asdict(line) for line in lines]}
            for change, lines in zip(self.changes, self.lines, strict=True)
        ]
        return {"function": self.function, "track": self.track, "changes": changes}


class CostModel:
    """A loaded artifact: predicts, ranks and explains."""

    def __init__(self, manifest: Mapping[str, Any], tracks: Sequence[TrackModel], path: str = "") -> None:
        self.manifest = manifest
        """What the artifact says about itself: format, targets, versions, training data, scores."""
        self.tracks = {track.track: track for track in tracks}
        self.path = path
        self._where = {t.track: {name: i for i, name in enumerate(t.names)} for t in tracks}
        self._explainers: dict[str, Explainer] = {}

    def __repr__(self) -> str:
        targets = sum(len(t.targets) for t in self.tracks.values())
        return f"<CostModel {self.path or 'in memory'}: {targets} targets on {', '.join(self.devices)}>"

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices that some target is for, sorted."""
        return tuple(sorted({target.device for track in self.tracks.values() for target in track.targets}))

    def targets(self, names: Iterable[str] | None = None, *, device: str | None = None) -> list[str]:
        """ "device/name" of the targets with these names, of all by default; UsageError for one there is not."""
        wanted = self._wanted(device, names)
        return [track.targets[index].column for track in self.tracks.values() for index in wanted[track.track]]

    def predict(
        self, source: Any, *, device: str | None = None, targets: Iterable[str] | None = None, path: str = "<text>"
    ) -> list[Prediction]:
        """Predict all functions of a module, in the order of the text.

        Parameters
        ----------
        source : MLIR text (`str`, `bytes`), a read `Program`, or an object of an MLIR library (`featurize.read`)
        device : leave out the targets of other devices
        targets : names ("latency_ns" or "x86-64-v3/latency_ns") to keep; all by default
        path : how errors call the text

        Raises
        ------
        ReadError
            The text is not MLIR that can be read exactly.
        UsageError
            No such device or target.
        """
        wanted = self._wanted(device, targets)
        predictions = []
        for name, track, features in self._read(source, path):
            predictions.append(self._predict_one(track, name, features, wanted[track.track]))
        return predictions

    def predict_one(
        self, source: Any, *, function: str | None = None, path: str = "<text>", **narrow: Any
    ) -> Prediction:
        """Predict one function: the named one, or the only one there is.

        Raises
        ------
        UsageError
            No function has the name, or none is named and there is not exactly one.
        """
        predictions = self.predict(source, path=path, **narrow)
        return next(p for p in predictions if p.function == _only([p.function for p in predictions], function, path))

    def rank(
        self,
        candidates: Sequence[Any],
        target: str = "latency_ns",
        *,
        device: str | None = None,
        function: str | None = None,
        paths: Sequence[str] | None = None,
    ) -> list[Ranked]:
        """Order variants of a program, best first; equal ones keep their order.

        Parameters
        ----------
        candidates : as `source` of `predict`; each with one function, or with the one named `function`
        target : by what to order; the registry says whether lower or higher is better
        paths : how errors call the candidates
        """
        wanted = self._wanted(device, [target])
        rows = []
        for position, candidate in enumerate(candidates):
            read_ones = self._read(candidate, paths[position] if paths else f"<candidate {position}>")
            by_name = {name: (track, features) for name, track, features in read_ones}
            name = _only(list(by_name), function, paths[position] if paths else f"candidate {position}")
            track, features = by_name[name]
            index = _one(track, wanted[track.track], target)
            sign = 1.0 if self._lower_is_better(track.targets[index].column) else -1.0
            x, unseen = self._vector(track, features)
            (estimate,), (ranked,) = self._estimates(track, [index], x, unseen)
            rows.append((sign * ranked, position, estimate))
        return [Ranked(position, estimate) for _, position, estimate in sorted(rows, key=lambda row: row[:2])]

    def explain(
        self, source: Any, target: str, *, device: str | None = None, path: str = "<text>"
    ) -> dict[str, Explanation]:
        """Explain one target's prediction for every function of a module that has it: function name to `Explanation`.

        Raises
        ------
        ReadError, UsageError
            As `predict`; also where no function has the target.
        """
        wanted = self._wanted(device, [target])
        found = {}
        tracks = set()
        for name, track, features in self._read(source, path):
            tracks.add(track.track)
            if wanted[track.track]:
                index = _one(track, wanted[track.track], target)
                found[name] = self._explainer(track).explain(index, self._vector(track, features)[0])
        if tracks and not found:
            raise UsageError(f"{path}: target {target!r} is not one of track {', '.join(sorted(tracks))}.")
        return found

    def diff(
        self,
        before: Any,
        after: Any,
        *,
        device: str | None = None,
        targets: Iterable[str] | None = None,
        paths: tuple[str, str] = ("<before>", "<after>"),
    ) -> list[Difference]:
        """Compare two versions of a module, function by function: what changed per target, and what drove it.

        Functions are paired by name; where each side has exactly one, these two are a pair whatever their names.

        Raises
        ------
        ReadError, UsageError
            As `predict`; also where the two have no function in common.
        """
        from .changed_lines import changed_ops

        wanted = self._wanted(device, targets)
        programs = [
            source if isinstance(source, Program) else read(source, path=path)
            for source, path in zip((before, after), paths, strict=True)
        ]
        old, new = (dict(functions_of(program)) for program in programs)
        pairs = [(name, name) for name in old if name in new]
        if len(old) == len(new) == 1:
            pairs = [(next(iter(old)), next(iter(new)))]
        if not pairs:
            raise UsageError(f"{paths[0]} and {paths[1]} have no function in common: {_list([*old])}; {_list([*new])}.")
        found = []
        for one, other in pairs:
            track = self._track_of(new[other])
            versions = [
                function_features(program, function, TRACK_GROUPS.get(track.track))
                for program, function in ((programs[0], old[one]), (programs[1], new[other]))
            ]
            rows = [self._vector(track, features)[0] for features in versions]
            explainer = self._explainer(track)
            changes = tuple(explainer.compare(index, *rows) for index in wanted[track.track])
            ops = changed_ops((programs[0], old[one]), (programs[1], new[other]))
            found.append(Difference(other, track.track, changes, tuple(ops.shares(change) for change in changes)))
        return found

    def _explainer(self, track: TrackModel) -> Explainer:
        from .explain import Explainer

        return self._explainers.setdefault(track.track, Explainer(track))

    def _read(self, source: Any, path: str) -> list[tuple[str, TrackModel, dict[str, float]]]:
        """Name, track and features of each function."""
        program = source if isinstance(source, Program) else read(source, path=path)
        found = []
        for name, function in functions_of(program):
            track = self._track_of(function)
            found.append((name, track, function_features(program, function, TRACK_GROUPS.get(track.track))))
        return found

    def _track_of(self, function: Op) -> TrackModel:
        """The track that reads a function, by the dialects of its operations; the first one where there is no other."""
        if len(self.tracks) > 1:
            dialects = dialects_of(function)
            for track, reads in TRACK_DIALECTS.items():
                if track in self.tracks and not dialects.isdisjoint(reads):
                    return self.tracks[track]
        return next(iter(self.tracks.values()))

    def _wanted(self, device: str | None, targets: Iterable[str] | None) -> dict[str, list[int]]:
        """Track -> the targets asked for, as positions; UsageError for a device or a name that no track has."""
        if device is not None and device not in self.devices:
            raise UsageError(f"unknown device {device!r}. Known: {', '.join(self.devices)}")
        allowed = {
            track.track: [i for i, t in enumerate(track.targets) if device in (None, t.device)]
            for track in self.tracks.values()
        }
        if targets is None:
            return allowed
        kept: dict[str, list[int]] = {name: [] for name in allowed}
        for name in [targets] if isinstance(targets, str) else targets:
            found = {
                track: [
                    i
                    for i in indices
                    if name in (self.tracks[track].targets[i].name, self.tracks[track].targets[i].column)
                ]
                for track, indices in allowed.items()
            }
            if not any(found.values()):
                known = ", ".join(
                    self.tracks[track].targets[i].column for track, every in allowed.items() for i in every
                )
                raise UsageError(f"unknown target {name!r}. Known: {known}")
            for track, indices in found.items():
                kept[track] += [i for i in indices if i not in kept[track]]
        return kept

    def _lower_is_better(self, column: str) -> bool:
        return bool(self.manifest["targets"][column]["lower_is_better"])

    def _vector(self, track: TrackModel, features: Mapping[str, float]) -> tuple[Float32, tuple[str, ...]]:
        """The row of one function, and the op names that the schema does not know (they count in `ops.unknown`)."""
        where = self._where[track.track]
        wide = np.zeros(len(track.names))
        unseen = []
        n_unseen = 0.0
        for name, value in features.items():
            if not value:  # most features of most programs
                continue
            index = where.get(name)
            if index is not None:
                wide[index] = value
            elif is_op_name(name):
                unseen.append(name[4:])
                n_unseen += value
        if unseen and "ops.unknown" in where:
            wide[where["ops.unknown"]] = n_unseen
        with np.errstate(over="ignore"):  # found just below, and named
            x = wide.astype(np.float32)
        if not np.isfinite(x).all():
            raise SchemaError(
                f"feature {track.names[int(np.flatnonzero(~np.isfinite(x))[0])]!r} is not a finite number"
            )
        return x, tuple(sorted(unseen))

    def _predict_one(
        self, track: TrackModel, function: str, features: Mapping[str, float], wanted: Sequence[int]
    ) -> Prediction:
        x, unseen = self._vector(track, features)
        estimates, _ = self._estimates(track, wanted, x, unseen)
        warnings = []
        if unseen:
            warnings.append(f"ops never seen in training: {_list(unseen)}")
        beyond = sorted({name for e in estimates for name in e.outside} - set(unseen))
        if beyond:
            warnings.append(f"features outside their range in training: {_list(beyond)}")
        return Prediction(function, track.track, tuple(warnings), estimates)

    def _estimates(
        self, track: TrackModel, wanted: Sequence[int], x: Float32, unseen: Sequence[str]
    ) -> tuple[tuple[Estimate, ...], list[float]]:
        """Of the targets wanted, by position; and what variants are ranked by."""
        if not wanted:
            return (), []
        value, low, high, ranked = track.values_of_row(x, wanted)
        strange = np.flatnonzero(track.strange(x))
        used = track.used[:, strange]
        names = [track.names[i] for i in strange]
        estimates = []
        for place, index in enumerate(wanted):
            target = track.targets[index]
            outside = (*unseen, *(name for name, reads in zip(names, used[index].tolist(), strict=True) if reads))
            estimates.append(
                Estimate(
                    target.device,
                    target.name,
                    value[place],
                    low[place],
                    high[place],
                    target.unit,
                    "outside" if outside else "ok",
                    outside,
                )
            )
        return tuple(estimates), ranked


def _one(track: TrackModel, wanted: Sequence[int], target: str) -> int:
    if len(wanted) == 1:
        return wanted[0]
    if not wanted:
        raise UsageError(f"target {target!r} is not one of track {track.track}.")
    devices = ", ".join(sorted(track.targets[i].device for i in wanted))
    raise UsageError(f"several devices have target {target!r}: {devices}. Name one.")


def _only(names: Sequence[str], wanted: str | None, what: str) -> str:
    if wanted is not None:
        if wanted in names:
            return wanted
        raise UsageError(f"{what}: no function {wanted!r}. Known: {', '.join(names) or 'none'}")
    if len(names) == 1:
        return names[0]
    raise UsageError(f"{what}: has {len(names)} functions ({_list(names)}); name one with function=.")


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def bundled_paths() -> list[Path]:
    """Where the artifacts that come with the package lie, one a track, the kernel track's first.

    Raises
    ------
    ArtifactError
        The package was built without one.
    """
    folder = Path(__file__).with_name("pretrained")
    found = sorted(folder.glob("*.joblib"), key=lambda path: (path.stem != "kernel", path.stem))
    if not found:
        raise ArtifactError(f"{folder}: this installation has no bundled model. Run `make train`, or name a file.")
    return found


def load(path: str | os.PathLike[str] | None = None) -> CostModel:
    """Load a model file; the bundled ones, of all tracks, by default. Nothing in a file is run.

    Raises
    ------
    ArtifactError
        A file is missing, damaged, not an irgauge model, of another format, or made for another feature schema.
    """
    paths = [Path(path)] if path is not None else bundled_paths()
    models = [model_from_plain(read_artifact(where), str(where)) for where in paths]
    return models[0] if len(models) == 1 else together(models)


def together(models: Sequence[CostModel]) -> CostModel:
    """One model with the tracks of several; where two have a track, the later one's counts."""
    manifest = dict(models[0].manifest)
    for part in ("targets", "tracks"):
        manifest[part] = {name: facts for model in models for name, facts in model.manifest[part].items()}
    manifest.pop("checksum", None)  # of one file
    tracks = {name: track for model in models for name, track in model.tracks.items()}
    return CostModel(manifest, list(tracks.values()), ", ".join(model.path for model in models))


def model_from_plain(plain: Mapping[str, Any], path: str = "") -> CostModel:
    """A `CostModel` from the content of an artifact, checked.

    Raises
    ------
    ArtifactError
        It does not hold together, or was made for another feature schema.
    """
    shown = path or "model"
    try:
        tracks = [TrackModel.from_plain(track) for track in plain["tracks"].values()]
        columns = set(plain["manifest"]["targets"])
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise ArtifactError(f"{shown}: damaged: {error}") from None
    if not tracks:
        raise ArtifactError(f"{shown}: holds no track.")
    for track in tracks:
        if track.schema_version != SCHEMA_VERSION:
            raise ArtifactError(
                f"{shown}: made for feature schema {track.schema_version}; this version extracts {SCHEMA_VERSION}. "
                "Run `make train`."
            )
        if track.schema_hash != Schema(track.names, track.schema_version).hash:
            raise ArtifactError(f"{shown}: damaged: its feature names do not match its schema hash.")
        extracted = TRACK_GROUPS.get(track.track, tuple(GROUPS))
        for group, fixed in GROUPS.items():
            if group not in extracted and not fixed.keys().isdisjoint(track.names):
                raise ArtifactError(
                    f"{shown}: reads features of group {group!r}, which are not extracted for track {track.track!r}. "
                    "Run `make train`, or use the irgauge version that made the model."
                )
        missing = {t.column for t in track.targets} - columns
        if missing:
            raise ArtifactError(f"{shown}: damaged: the manifest lacks target {sorted(missing)[0]!r}.")
    return CostModel(plain["manifest"], tracks, path)
