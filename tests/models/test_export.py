"""Exported models say what the predictor says: on thresholds, at extremes, with missing values."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irgauge.data.targets import find_target
from irgauge.errors import ArtifactError, UsageError
from irgauge.models.analytical import estimate, has_estimate
from irgauge.models.candidates import Settings
from irgauge.models.conformal import Intervals
from irgauge.models.export_c import header_text, write_c
from irgauge.models.export_onnx import onnx_model, write_onnx
from irgauge.models.expressions import Expression, estimate_expression
from irgauge.models.target_model import Part, constant
from irgauge.models.track_model import TrackModel
from irgauge.models.train import Table

from .conftest import NEEDED

TOLERANCE = 1e-13
"""Relative: exp, log and log1p of the C library may differ from NumPy's in the last place."""


@pytest.fixture(scope="module")
def track(artifact: Mapping[str, Any], table: Table, text_table: Table, quick: Settings) -> TrackModel:
    """Logarithmic and plain targets, with an estimate and without, gated, linear, of a single leaf, without trees."""
    made = TrackModel.from_plain(artifact["tracks"]["kernel"])
    targets = [*made.targets]
    first = targets[0]
    lone = first.part.forest.part(0, 1)
    leaf = np.flatnonzero(lone.left == np.arange(lone.n_nodes))[:1]
    stump = replace(
        lone,
        **{k: getattr(lone, k)[leaf] for k in ("feature", "threshold", "nan_left", "value", "cover")},
        left=np.zeros(1, np.int32),
        roots=np.zeros(1, np.int32),
    )
    targets.append(replace(first, column="x86-64-v3/stump", part=Part(1.5, stump)))
    ridge = table.learn(find_target("latency_ns"), seed=0, settings=quick, candidates=["ridge"]).model
    where = [made.names.index(n) if n in made.names else -1 for n in table.names]
    linear = ridge.part.linear
    assert linear is not None
    kept = np.array([where[c] >= 0 for c in linear.columns])
    moved = np.array([where[c] for c in linear.columns[kept]], np.int32)
    arrays = {k: getattr(linear, k)[kept] for k in ("weight", "center", "low", "high")}
    line = replace(linear, columns=moved, **arrays)
    targets.append(replace(ridge, column="x86-64-v3/ridge", part=Part(0.25, ridge.part.forest, line)))
    # Whole predictions on the edge of a group, where one step further another interval begins.
    counted = next(t for t in targets if t.whole and t.space == "log" and t.part.forest.n_trees)
    values = np.unique(counted.predict(text_table.X, made.columns).value)
    edges = counted.encode(values[:: max(1, len(values) // 20)])
    sides = np.linspace(0.1, 2.0, len(edges) + 1)
    targets.append(replace(counted, column="x86-64-v3/on_edges", intervals=Intervals(edges, -sides, sides)))
    assert {t.space for t in targets} == {"log", "plain"}
    assert any(t.gate is not None for t in targets)
    assert {bool(t.estimate) for t in targets} == {True, False}
    assert {t.part.forest.n_trees == 0 for t in targets} == {True, False}
    return replace(made, targets=tuple(targets))


@pytest.fixture(scope="module")
def rows(track: TrackModel, text_table: Table) -> np.ndarray[Any, Any]:
    """Real rows, rows on thresholds and one step beside them, extremes, and rows with missing values."""
    rng = np.random.default_rng(0)
    forests = [t.part.forest for t in track.targets if t.part.forest.n_trees]
    hits = text_table.X[rng.integers(0, len(text_table.X), 200)].copy()
    for row in hits:
        for _ in range(30):
            forest = forests[rng.integers(len(forests))]
            node = rng.integers(forest.n_nodes)
            if forest.left[node] != node:
                step = np.float32(rng.choice([-np.inf, np.inf]))
                t = forest.threshold[node]
                row[forest.feature[node]] = rng.choice([t, np.nextafter(t, step)])
    extremes = np.array([0, -0.0, -7, 1e-45, 3.4e38, -3.4e38, 1e30, 2**24], np.float32)[:, None]
    missing = hits[:100].copy()
    gaps = rng.random(missing.shape) < 0.3
    gaps[:50, list(track.columns.values())] = False
    missing[gaps] = np.nan
    return np.concatenate([text_table.X, hits, np.repeat(extremes, len(track.names), 1), missing]).astype(np.float32)


def expected(track: TrackModel, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Value, low, high and ranked of each target and row: shape (4, n_rows, n_targets)."""
    with np.errstate(all="ignore"):
        return np.array([track.values_of_row(x) for x in rows]).transpose(1, 0, 2)


def compiled(track: TrackModel, folder: Path) -> ctypes.CDLL:
    write_c(track, folder / "model.c")
    command = ["gcc", "-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, "model.c", "-o", "model.so", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "model.so"))


@pytest.fixture(scope="module")
def library(track: TrackModel, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled(track, tmp_path_factory.mktemp("c"))


def pointer(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def c_predict(library: ctypes.CDLL, rows: np.ndarray[Any, Any], n_targets: int) -> np.ndarray[Any, Any]:
    out = np.zeros((len(rows), n_targets, 4))
    for x, place in zip(rows, out, strict=True):
        library.irgauge_predict(pointer(x), pointer(place))
    return out.transpose(2, 0, 1)


def test_c_predicts_the_same(library: ctypes.CDLL, track: TrackModel, rows: np.ndarray[Any, Any]) -> None:
    assert len(rows) > 400
    got = c_predict(library, rows, len(track.targets))
    np.testing.assert_allclose(got, expected(track, rows), rtol=TOLERANCE, atol=0)


def test_c_counts_what_lies_outside(library: ctypes.CDLL, track: TrackModel, rows: np.ndarray[Any, Any]) -> None:
    for x in rows[::23]:
        counted = [library.irgauge_outside(pointer(x), i) for i in range(len(track.targets))]
        assert counted == (track.used & track.strange(x)).sum(axis=1).tolist()


def test_c_knows_the_names(library: ctypes.CDLL, track: TrackModel) -> None:
    index = library.irgauge_feature_index
    assert [index(name.encode()) for name in track.names[::50]] == list(range(len(track.names)))[::50]
    assert index(b"no.such.feature") == -1
    header = header_text(track)
    assert f'#define IRGAUGE_SCHEMA_HASH "{track.schema_hash}"' in header
    for i, target in enumerate(track.targets):
        assert f"IRGAUGE_{target.device}_{target.name} = {i},".replace("-", "_") in header


def test_c_header_serves_cpp(track: TrackModel, library: ctypes.CDLL, tmp_path: Path) -> None:
    (tmp_path / "model.h").write_text(header_text(track))
    (tmp_path / "use.cpp").write_text('#include "model.h"\nint use(const float *x) { return irgauge_outside(x, 0); }\n')
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", "use.cpp"], cwd=tmp_path, check=True)


def test_onnx_predicts_the_same(track: TrackModel, rows: np.ndarray[Any, Any]) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(onnx_model(track).SerializeToString(), providers=["CPUExecutionProvider"])
    got = session.run(["value", "low", "high"], {"features": rows})
    np.testing.assert_allclose(got, expected(track, rows)[:3], rtol=TOLERANCE, atol=0)
    properties = session.get_modelmeta().custom_metadata_map
    assert properties["schema_hash"] == track.schema_hash
    assert '"stump"' in properties["targets"]


@pytest.mark.parametrize(
    ("name", "targets"), [("kernel", ("latency_ns", "spills")), ("npu", ("cycles", "mac_utilization", "dram_bytes"))]
)
def test_targets_of_the_bundled_models_predict_the_same(tmp_path: Path, name: str, targets: tuple[str, ...]) -> None:
    import irgauge

    whole = irgauge.load().tracks[name]
    track = replace(whole, targets=tuple(t for t in whole.targets if t.name in targets))
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(0, 5, (200, len(track.names)))).astype(np.float32)
    got = c_predict(compiled(track, tmp_path), X, len(track.targets))
    np.testing.assert_allclose(got, expected(track, X), rtol=TOLERANCE, atol=0)


def test_a_track_without_a_tree_is_c_as_well(track: TrackModel, tmp_path: Path) -> None:
    first = next(t for t in track.targets if t.estimate)
    bare = replace(track, targets=(replace(first, part=constant(0.5), gate=None, order=None),))
    X = np.ones((3, len(track.names)), np.float32)
    got = c_predict(compiled(bare, tmp_path), X, len(bare.targets))
    np.testing.assert_allclose(got, expected(bare, X), rtol=TOLERANCE, atol=0)


@pytest.mark.parametrize(("write", "name"), [(write_c, "model.c"), (write_onnx, "model.onnx")])
def test_a_place_that_cannot_be_written_is_one_line(
    track: TrackModel, tmp_path: Path, write: Callable[[TrackModel, Path], None], name: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="cannot be written"):
        write(track, tmp_path / "file" / name)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_c_source_needs_its_ending(track: TrackModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.c"):
        write_c(track, tmp_path / "model.h")
    assert list(tmp_path.iterdir()) == []


def test_edges_of_values_part_whole_numbers_as_the_encoded_ones_do(track: TrackModel) -> None:
    values = np.arange(3000.0)
    for target in (t for t in track.targets if t.whole):
        for edge, of_values in zip(target.intervals.edges, target.edges_of_values(), strict=True):
            np.testing.assert_array_equal(values > of_values, target.encode(values) > edge)


def evaluate(e: Expression, values: Mapping[str, float]) -> float:
    if e.kind == "column":
        return values[e.name]
    if e.kind == "constant":
        return e.value
    a, b = (evaluate(part, values) for part in e.parts)
    return {"+": a + b, "*": a * b, "/": a / b, "min": min(a, b)}[e.kind]


def test_expressions_are_the_formulas() -> None:
    rng = np.random.default_rng(0)
    x = np.exp(rng.normal(3, 3, len(NEEDED))).astype(np.float32)
    columns = {name: i for i, name in enumerate(NEEDED)}
    values = {name: float(x[i]) for name, i in columns.items()}
    names = [n for n in ("latency_ns", "spills", "data_refs", "mca_cycles", "code_bytes") if has_estimate(n)]
    assert len(names) == 5
    for name in names:
        assert evaluate(estimate_expression(name), values) == estimate(name, x[None, :], columns)[0]
