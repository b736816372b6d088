"""Engines that could evaluate the trees of the bundled model, one thread: the same trees in each of them.

    pip install -e '.[bench]'; python benchmarks/engines.py [--rows N] [--only NAME,NAME]

Each engine gets the stored trees of the kernel track (all targets, gates included) in its own form and returns the sum
of each part. Single rows are timed twice: in turns, one call of each engine after the other, so that every call finds
the caches full of something else, as in a compiler, and a busy machine is equally unfair to all ("cold"); and many
calls of one engine in a row ("warm"); in processor time, least and median. The error is the largest difference from
`Forest.predict` over the largest absolute sum of the part. docs/engines.md has the result and the decision.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import irgauge
from irgauge.data.build import machine_name
from irgauge.data.families.polybench import FAMILIES
from irgauge.models.export_c import write_c
from irgauge.models.export_onnx import onnx_model
from irgauge.models.target_model import Part, parts_of
from irgauge.models.track_model import TrackModel
from irgauge.models.trees import Forest, concatenate

Array = NDArray[Any]
SCRATCH = Path(tempfile.mkdtemp(prefix="irgauge-engines-"))


def functions_of(track: TrackModel) -> list[Part]:
    """Regressors, gates and orders of all targets, as the walk adds them up."""
    return [part for _, _, part in parts_of(track.targets)]


class NumpyEngine:
    """models/walk.py: what irgauge uses."""

    name, packages = "NumPy (ours)", ("numpy",)

    def __init__(self, track: TrackModel) -> None:
        self.walk = track._row.walk

    def row(self, x: Array) -> Array:
        return self.walk.sums(x)

    def batch(self, X: Array) -> Array:
        return self.walk.sums_of_rows(X)


class NumpyBefore:
    """The walk before it was packed: three gathers and a comparison a level."""

    name, packages = "NumPy, plain walk", ("numpy",)

    def __init__(self, track: TrackModel) -> None:
        self.forest = concatenate(track._row.walk.forests)
        self.part_of_tree, self.n_parts = track._row.walk.part_of_tree, track._row.walk.n_parts

    def row(self, x: Array) -> Array:
        ends = self.forest.leaves(x[None, :])[:, 0]
        return np.bincount(self.part_of_tree, self.forest.value[ends], self.n_parts)

    batch = None


class ExportedC:
    """`irgauge export --format c`, compiled with gcc -O2; finishes the targets too (exp, intervals)."""

    name, packages = "exported C (gcc -O2)", ()

    def __init__(self, track: TrackModel) -> None:
        write_c(track, SCRATCH / "model.c")
        command = ["gcc", "-std=c99", "-O2", "-shared", "-fPIC", "model.c", "-o", "model.so", "-lm"]
        subprocess.run(command, cwd=SCRATCH, check=True)
        self.call = ctypes.CDLL(str(SCRATCH / "model.so")).irgauge_predict
        self.out = np.zeros((len(track.targets), 4))
        self.at = self.out.ctypes.data_as(ctypes.c_void_p)
        self.track = track

    def row(self, x: Array) -> Array:
        self.call(ctypes.c_void_p(x.ctypes.data), self.at)
        return self.out[:, 0]

    def batch(self, X: Array) -> Array:
        return np.array([self.row(x).copy() for x in X])

    def expected(self, X: Array) -> Array:
        return np.array([self.track.values_of_row(x)[0] for x in X])


class OnnxRuntime:
    """One TreeEnsembleRegressor (ai.onnx.ml 3, float32) with all parts as its targets."""

    name, packages = "ONNX Runtime, float32", ("onnxruntime",)

    def __init__(self, track: TrackModel) -> None:
        from onnx import TensorProto, helper

        forests = [p.forest for p in functions_of(track)]
        columns: dict[str, list[Any]] = {
            key: [] for key in ("tree", "node", "feature", "value", "mode", "t", "f", "nan")
        }
        leaves: dict[str, list[Any]] = {key: [] for key in ("tree", "node", "target", "weight")}
        tree = 0
        for part, forest in enumerate(forests):
            for one in (forest.part(i, i + 1) for i in range(forest.n_trees)):
                here = np.arange(one.n_nodes)
                leaf = one.left == here
                columns["tree"] += [tree] * one.n_nodes
                columns["node"] += here.tolist()
                columns["feature"] += one.feature.tolist()
                columns["value"] += np.where(leaf, 0, one.threshold).tolist()
                columns["mode"] += ["LEAF" if is_leaf else "BRANCH_LEQ" for is_leaf in leaf]
                columns["t"] += np.where(leaf, 0, one.left).tolist()
                columns["f"] += np.where(leaf, 0, one.left + 1).tolist()
                columns["nan"] += one.nan_left.astype(int).tolist()
                leaves["tree"] += [tree] * int(leaf.sum())
                leaves["node"] += here[leaf].tolist()
                leaves["target"] += [part] * int(leaf.sum())
                leaves["weight"] += one.value[leaf].tolist()
                tree += 1
        node = helper.make_node(
            "TreeEnsembleRegressor",
            ["x"],
            ["y"],
            domain="ai.onnx.ml",
            n_targets=len(forests),
            nodes_treeids=columns["tree"],
            nodes_nodeids=columns["node"],
            nodes_featureids=columns["feature"],
            nodes_values=columns["value"],
            nodes_modes=columns["mode"],
            nodes_truenodeids=columns["t"],
            nodes_falsenodeids=columns["f"],
            nodes_missing_value_tracks_true=columns["nan"],
            target_treeids=leaves["tree"],
            target_nodeids=leaves["node"],
            target_ids=leaves["target"],
            target_weights=leaves["weight"],
            base_values=[p.base for p in functions_of(track)],
        )
        graph = helper.make_graph(
            [node],
            "trees",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, len(track.names)])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, len(forests)])],
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
        self._open(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
        self.names = ["y"]

    def _open(self, content: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        (self.input,) = (i.name for i in self.session.get_inputs())

    def row(self, x: Array) -> Array:
        return np.asarray(self.session.run(self.names, {self.input: x[None, :]})[0][0])

    def batch(self, X: Array) -> Array:
        return np.asarray(self.session.run(self.names, {self.input: X})[0])


class OnnxExport(OnnxRuntime):
    """`irgauge export --format onnx`: TreeEnsemble (ai.onnx.ml 5) in float64, targets finished with their intervals."""

    name = "ONNX Runtime, exported float64"

    def __init__(self, track: TrackModel) -> None:
        self._open(onnx_model(track).SerializeToString())
        self.names = ["value"]
        self.track = track

    def expected(self, X: Array) -> Array:
        return np.array([self.track.values_of_row(x)[0] for x in X])


class Treelite:
    """One Treelite model with all parts as targets, evaluated by its reference engine (GTIL)."""

    name = "Treelite GTIL"
    packages: tuple[str, ...] = ("treelite",)

    def __init__(self, track: TrackModel) -> None:
        self.model = self.build(track)
        self.n_parts = len(functions_of(track))

    def build(self, track: TrackModel) -> Any:
        from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

        builder: Any  # it is not annotated

        parts = functions_of(track)
        targets = np.repeat(np.arange(len(parts)), [p.forest.n_trees for p in parts])
        builder = ModelBuilder(
            threshold_type="float64",
            leaf_output_type="float64",
            metadata=Metadata(
                num_feature=len(track.names),
                task_type="kRegressor",
                average_tree_output=False,
                num_target=len(parts),
                num_class=[1] * len(parts),
                leaf_vector_shape=(1, 1),
            ),
            tree_annotation=TreeAnnotation(
                num_tree=len(targets), target_id=targets.tolist(), class_id=[0] * len(targets)
            ),
            postprocessor=PostProcessorFunc(name="identity"),
            base_scores=[p.base for p in parts],
        )
        for part in parts:
            for one in (part.forest.part(i, i + 1) for i in range(part.forest.n_trees)):
                builder.start_tree()
                for i in range(one.n_nodes):
                    builder.start_node(i)
                    if one.left[i] == i:
                        builder.leaf(float(one.value[i]))
                    else:
                        builder.numerical_test(
                            feature_id=int(one.feature[i]),
                            threshold=float(one.threshold[i]),
                            default_left=bool(one.nan_left[i]),
                            opname="<=",
                            left_child_key=int(one.left[i]),
                            right_child_key=int(one.left[i]) + 1,
                        )
                    builder.end_node()
                builder.end_tree()
        return builder.commit()

    def row(self, x: Array) -> Array:
        return np.asarray(self.batch(x[None, :])[0])

    def batch(self, X: Array) -> Array:
        import treelite

        found = treelite.gtil.predict(self.model, X.astype(np.float64), nthread=1)
        return np.asarray(found).reshape(len(X), self.n_parts)


class TreeliteCompiled(Treelite):
    """The same model made into C by tl2cgen, compiled by gcc."""

    name, packages = "Treelite compiled (tl2cgen)", ("treelite", "tl2cgen")

    def __init__(self, track: TrackModel) -> None:
        import tl2cgen

        self.n_parts = len(functions_of(track))
        library = str(SCRATCH / "treelite.so")
        tl2cgen.export_lib(self.build(track), "gcc", library, params={"parallel_comp": 16}, nthread=1)
        self.predictor = tl2cgen.Predictor(library, nthread=1)
        self.matrix = tl2cgen.DMatrix

    def batch(self, X: Array) -> Array:
        found = self.predictor.predict(self.matrix(X, dtype="float64"))
        return np.asarray(found).reshape(len(X), self.n_parts)


def lightgbm_text(part: Part, n_features: int) -> str:
    """A part as LightGBM's text model; the base is added by the caller."""
    names = " ".join(f"Column_{i}" for i in range(n_features))
    infos = " ".join(["[-1e300:1e300]"] * n_features)
    lines = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0"]
    lines += [f"max_feature_idx={n_features - 1}", "objective=regression", f"feature_names={names}"]
    lines.append(f"feature_infos={infos}")
    sections = []
    for number in range(part.forest.n_trees):
        one = part.forest.part(number, number + 1)
        leaf = one.left == np.arange(one.n_nodes)
        place = np.where(leaf, -np.cumsum(leaf), np.cumsum(~leaf) - 1)
        inner, zero = np.flatnonzero(~leaf), np.zeros(int((~leaf).sum()), int)

        def field(name: str, values: Any) -> str:
            return f"{name}={' '.join(repr(v) for v in np.asarray(values).tolist())}"

        tree = [f"Tree={number}", f"num_leaves={int(leaf.sum())}", "num_cat=0"]
        tree += [
            field("split_feature", one.feature[inner]),
            field("split_gain", zero),
            field("threshold", one.threshold[inner].astype(float)),
            field("decision_type", np.where(one.nan_left[inner], 10, 8)),
            field("left_child", place[one.left[inner]]),
            field("right_child", place[one.left[inner] + 1]),
            field("leaf_value", one.value[leaf]),
            field("leaf_weight", np.ones(int(leaf.sum()))),
            field("leaf_count", np.ones(int(leaf.sum()), int)),
            field("internal_value", zero),
            field("internal_weight", zero),
            field("internal_count", zero),
            "is_linear=0",
            "shrinkage=1",
        ]
        sections.append("\n".join(tree) + "\n\n\n")
    lines += [f"tree_sizes={' '.join(str(len(section)) for section in sections)}", "", ""]
    end = ["end of trees", "", "parameters:", "end of parameters", "", "pandas_categorical:null", ""]
    return "\n".join(lines) + "".join(sections) + "\n".join(end)


class LightGBM:
    """LightGBM's own call, one booster per part."""

    name, packages = "LightGBM, own call", ("lightgbm", "scipy")

    def __init__(self, track: TrackModel) -> None:
        import lightgbm

        texts = [lightgbm_text(part, len(track.names)) for part in functions_of(track)]
        self.boosters = [lightgbm.Booster(model_str=text) for text in texts]
        self.base = np.array([part.base for part in functions_of(track)])

    def row(self, x: Array) -> Array:
        return np.asarray(self.batch(x[None, :])[0])

    def batch(self, X: Array) -> Array:
        return np.asarray(self.base + np.array([b.predict(X, num_threads=1) for b in self.boosters]).T)


class Lleaves:
    """lleaves: LightGBM models compiled through LLVM, one per part.

    Not in the extra `bench`: it needs llvmlite < 0.45, and numba, which shap needs, a newer one.
    """

    name, packages = "lleaves", ("lleaves", "llvmlite", "lightgbm")

    def __init__(self, track: TrackModel) -> None:
        import lleaves

        self.models = []
        for number, part in enumerate(functions_of(track)):
            path = SCRATCH / f"part{number}.txt"
            path.write_text(lightgbm_text(part, len(track.names)))
            self.models.append(lleaves.Model(model_file=str(path)))
            self.models[-1].compile()
        self.base = np.array([part.base for part in functions_of(track)])

    def row(self, x: Array) -> Array:
        return np.asarray(self.batch(x[None, :])[0])

    def batch(self, X: Array) -> Array:
        wide = X.astype(np.float64)
        return np.asarray(self.base + np.array([m.predict(wide, n_jobs=1) for m in self.models]).T)


class XGBoost:
    """XGBoost's own call on an array (`inplace_predict`), one booster per part."""

    name, packages = "XGBoost, own call", ("xgboost-cpu", "scipy")

    def __init__(self, track: TrackModel) -> None:
        import xgboost

        self.boosters = []
        self.base = np.array([part.base for part in functions_of(track)])
        for part in functions_of(track):
            booster = xgboost.Booster({"nthread": 1})
            booster.load_model(bytearray(json.dumps(self._json(part.forest, len(track.names))).encode()))
            self.boosters.append(booster)

    @staticmethod
    def _json(forest: Forest, n_features: int) -> dict[str, Any]:
        trees = []
        for number in range(forest.n_trees):
            one = forest.part(number, number + 1)
            n = one.n_nodes
            leaf = one.left == np.arange(n)
            parent = np.full(n, 2147483647)
            parent[one.left[~leaf]] = parent[one.left[~leaf] + 1] = np.flatnonzero(~leaf)
            below = np.nextafter(np.where(leaf, 0, one.threshold), np.float32(np.inf), dtype=np.float32)
            trees.append(
                {
                    "id": number,
                    "tree_param": {
                        "num_nodes": str(n),
                        "num_feature": str(n_features),
                        "num_deleted": "0",
                        "size_leaf_vector": "1",
                    },
                    "left_children": np.where(leaf, -1, one.left).tolist(),
                    "right_children": np.where(leaf, -1, one.left + 1).tolist(),
                    "parents": parent.tolist(),
                    "split_indices": one.feature.tolist(),
                    "split_conditions": np.where(leaf, one.value, below).tolist(),
                    "split_type": [0] * n,
                    "default_left": one.nan_left.astype(int).tolist(),
                    "base_weights": one.value.tolist(),
                    "loss_changes": [0.0] * n,
                    "sum_hessian": [1.0] * n,
                    "categories": [],
                    "categories_nodes": [],
                    "categories_segments": [],
                    "categories_sizes": [],
                }
            )
        return {
            "version": [3, 0, 0],
            "learner": {
                "attributes": {},
                "feature_names": [],
                "feature_types": [],
                "learner_model_param": {
                    "base_score": "0E0",
                    "boost_from_average": "0",
                    "num_class": "0",
                    "num_feature": str(n_features),
                    "num_target": "1",
                },
                "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
                "gradient_booster": {
                    "name": "gbtree",
                    "model": {
                        "gbtree_model_param": {"num_trees": str(len(trees)), "num_parallel_tree": "1"},
                        "iteration_indptr": list(range(len(trees) + 1)),
                        "tree_info": [0] * len(trees),
                        "trees": trees,
                        "cats": {"enc": [], "feature_segments": [], "sorted_idx": []},
                    },
                },
            },
        }

    def row(self, x: Array) -> Array:
        return np.asarray(self.batch(x[None, :])[0])

    def batch(self, X: Array) -> Array:
        return np.asarray(self.base + np.array([b.inplace_predict(X) for b in self.boosters]).T)


ENGINES: Sequence[Any] = (
    NumpyEngine,
    NumpyBefore,
    ExportedC,
    OnnxRuntime,
    OnnxExport,
    Treelite,
    TreeliteCompiled,
    Lleaves,
    LightGBM,
    XGBoost,
)


def install_mb(packages: Sequence[str]) -> float:
    """Size of the packages' installed files."""
    found = [(importlib.metadata.distribution(p), f) for p in packages for f in importlib.metadata.files(p) or ()]
    paths = [Path(str(distribution.locate_file(file))) for distribution, file in found]
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


def rows_of(model: irgauge.CostModel, n: int) -> Array:
    """Feature rows of the PolyBench kernels, then the same with features scaled up and down: shape (n, n_features)."""
    from irgauge.featurize.featurizer import main_features

    track = model.tracks["kernel"]
    rng = np.random.default_rng(0)
    real = [model._vector(track, main_features(next(family.sources()).mlir))[0] for family in FAMILIES]
    X = np.tile(real, (-(-n // len(real)), 1))[:n].astype(np.float32)
    X[len(real) :] *= rng.choice(np.array([0, 0.5, 1, 1, 1, 2, 8], np.float32), X[len(real) :].shape)
    return np.ascontiguousarray(X)


def seconds(work: Callable[[], object]) -> float:
    """Processor time of this thread, which is all that these engines use: machines are shared."""
    start = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - start) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000, help="rows of a batch")
    parser.add_argument("--turns", type=int, default=400, help="timed single rows")
    parser.add_argument("--only", default="", help="class names, comma between them")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",") if arguments.only else [e.__name__ for e in ENGINES]
    model = irgauge.load()
    track = model.tracks["kernel"]
    X = rows_of(model, arguments.rows)
    exact = np.array([[p.predict(x[None, :])[0] for p in functions_of(track)] for x in X[:200]])
    n_trees = sum(p.forest.n_trees for p in functions_of(track))
    print(f"{machine_name()}; Python {platform.python_version()}, numpy {np.__version__}; {n_trees} trees")
    engines, prepared = [], []
    for kind in ENGINES:
        if kind.__name__ not in wanted:
            continue
        start = time.perf_counter()
        try:
            engines.append(kind(track))
        except (ImportError, AttributeError, FileNotFoundError, subprocess.CalledProcessError) as error:
            print(f"{kind.name}: left out: {error}")
            continue
        prepared.append(time.perf_counter() - start)
    times: list[list[float]] = [[] for _ in engines]
    for turn in range(arguments.turns):
        x = X[turn % len(X)]
        for engine, spent in zip(engines, times, strict=True):
            spent.append(1e6 * seconds(partial(engine.row, x)))
    columns = ["engine", "cold row, least µs", "median µs", "warm row, least µs", "median µs", "batch, rows/s"]
    columns += ["largest error", "prepare s", "installed MB"]
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    for engine, spent, prepare in zip(engines, times, prepared, strict=True):
        got = np.array([engine.row(x).copy() for x in X[:200]])
        should = engine.expected(X[:200]) if hasattr(engine, "expected") else exact
        if isinstance(engine, (NumpyEngine, NumpyBefore)):  # their sums leave the base out
            got = got + np.array([p.base for p in functions_of(track)])
        largest = float((np.abs(got - should) / np.maximum(np.abs(should).max(axis=0), 1e-300)).max())
        speed = "-"
        if engine.batch is not None:
            engine.batch(X[:500])
            speed = f"{len(X) / min(seconds(partial(engine.batch, X)) for _ in range(2)):,.0f}"
        versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in engine.packages)
        size = f"{install_mb(engine.packages):,.0f}" if engine.packages else "0"
        warm = [1e6 * seconds(partial(engine.row, x)) for x in X[: arguments.turns]]
        row = " | ".join(f"{value:,.0f}" for times in (spent, warm) for value in (min(times), statistics.median(times)))
        name = f"{engine.name}{f' ({versions})' if versions else ''}"
        print(f"| {name} | {row} | {speed} | {largest:.0e} | {prepare:.1f} | {size} |", flush=True)


if __name__ == "__main__":
    main()
