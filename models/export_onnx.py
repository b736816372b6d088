"""The models of a track as one ONNX graph: features in, value, low and high of every target out.

All trees stand in one `TreeEnsemble` operator (domain ai.onnx.ml, version 5, which keeps float64 where the older
`TreeEnsembleRegressor` returns float32); the steps of `TargetModel` follow as elementwise operators in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArtifactError
from ..files import write_whole
from . import analytical
from .expressions import Expression, estimate_expression
from .target_model import LARGEST_LOG, parts_of
from .track_model import TrackModel
from .trees import concatenate

_LESS_OR_EQUAL = 0


class _Graph:
    """Collects operators and constants; each call returns the name of what it makes."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = 0

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def __call__(self, op: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        from onnx import helper

        self._count += 1
        name = output or f"{op.lower()}_{self._count}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name


def write_onnx(track: TrackModel, path: Path) -> None:
    """Write the ONNX file; it appears whole or not at all. Needs the package onnx (extra "onnx").

    Input "features": float32, shape (n_rows, n_features), in the schema's order; NaN is a missing value. Outputs
    "value", "low", "high": float64, shape (n_rows, n_targets). Metadata: the schema, and the targets with their units.

    Raises
    ------
    ArtifactError
        The file cannot be written.
    """
    write_whole(path, onnx_model(track).SerializeToString(), ArtifactError)


def onnx_model(track: TrackModel) -> Any:
    """The `onnx.ModelProto`."""
    import json

    from onnx import TensorProto, checker, helper

    graph = _Graph()
    n = len(track.targets)
    x = graph("Cast", "features", to=TensorProto.DOUBLE)
    gated = [i for i, t in enumerate(track.targets) if t.gate is not None]
    sums = _sums(graph, track, x)
    learned = graph("Gather", sums, graph.constant(np.arange(n), np.int64), axis=1)
    learned = _with_estimates(graph, track, x, learned)
    log = graph.constant([t.space == "log" for t in track.targets], np.bool_)
    offset = graph.constant([t.offset for t in track.targets])
    upper = graph.constant([min(t.upper, np.finfo(np.float64).max) for t in track.targets])
    zero = graph.constant(0.0)

    def decode(name: str) -> str:
        grown = graph("Sub", graph("Exp", graph("Min", name, graph.constant(LARGEST_LOG))), offset)
        return graph("Min", graph("Max", graph("Where", log, grown, name), zero), upper)

    value = decode(learned)
    if gated:
        # A target without a gate has odds above any limit.
        rows = np.full(n, -1)
        rows[gated] = n + np.arange(len(gated))
        odds = graph("Gather", sums, graph.constant(np.maximum(rows, 0), np.int64), axis=1)
        is_open = graph("Or", graph.constant(rows < 0, np.bool_), graph("GreaterOrEqual", odds, graph.constant(0.0)))
        floor = graph.constant([float(t.gate is not None and t.whole) for t in track.targets])
        value = graph("Where", is_open, graph("Max", value, floor), zero)
    whole = graph.constant([t.whole for t in track.targets], np.bool_)
    value = graph("Where", whole, graph("Round", value), value)
    # In plain space the logarithm is not taken, so it is kept away from where it has none.
    inside = graph("Where", log, graph("Add", value, offset), graph.constant(1.0))
    encoded = graph("Where", log, graph("Log", inside), value)
    compared = graph("Where", whole, value, encoded)  # whole values often lie on an edge
    low = decode(graph("Add", encoded, _by_group(graph, track, compared, "below")))
    high = decode(graph("Add", encoded, _by_group(graph, track, compared, "above")))
    near = graph.constant(1e-9)
    low = graph("Where", whole, graph("Ceil", graph("Sub", low, graph("Mul", low, near))), low)
    high = graph("Where", whole, graph("Floor", graph("Add", high, graph("Mul", high, near))), high)
    graph("Min", low, value, output="low")
    graph("Max", high, value, output="high")
    graph("Identity", value, output="value")
    outputs = [helper.make_tensor_value_info(k, TensorProto.DOUBLE, ["rows", n]) for k in ("value", "low", "high")]
    inputs = [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["rows", len(track.names)])]
    made = helper.make_graph(graph.nodes, f"irgauge {track.track}", inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 5)]
    model = helper.make_model(made, opset_imports=opsets, producer_name="irgauge", ir_version=9)
    targets = [{"device": t.device, "target": t.name, "unit": t.unit} for t in track.targets]
    helper.set_model_props(
        model,
        {
            "track": track.track,
            "schema_version": str(track.schema_version),
            "schema_hash": track.schema_hash,
            "features": json.dumps(track.names),
            "targets": json.dumps(targets),
        },
    )
    checker.check_model(model)
    return model


def _sums(graph: _Graph, track: TrackModel, x: str) -> str:
    """Trees, bases and lines of all parts: shape (n_rows, n_targets + n_gates)."""
    from onnx import numpy_helper

    parts = [part for _, role, part in parts_of(track.targets) if role != "order"]  # there is no output "ranked"
    forest = concatenate([part.forest for part in parts])
    base = graph.constant([part.base for part in parts])
    if forest.n_trees:
        part_of_tree = np.repeat(np.arange(len(parts)), [part.forest.n_trees for part in parts])
        is_leaf = forest.left == np.arange(forest.n_nodes)
        tree_of = np.searchsorted(forest.roots, np.arange(forest.n_nodes), side="right") - 1
        # Inner nodes and leaves are numbered apart.
        position = np.where(is_leaf, np.cumsum(is_leaf) - 1, np.cumsum(~is_leaf) - 1)
        inner = np.flatnonzero(~is_leaf)
        left, right = forest.left[inner], forest.left[inner] + 1
        roots, stumps = forest.roots.astype(np.int64), is_leaf[forest.roots]
        features, thresholds = forest.feature[inner], forest.threshold[inner].astype(np.float64)
        true_ids, true_leaf = position[left], is_leaf[left]
        false_ids, false_leaf = position[right], is_leaf[right]
        nan_left = forest.nan_left[inner]
        root_ids = position[roots]
        # A tree of a single leaf is written as a comparison whose two sides are that leaf.
        lone = np.flatnonzero(stumps)
        if len(lone):
            root_ids[lone] = len(inner) + np.arange(len(lone))
            at = position[roots[lone]]
            more = np.ones(len(lone), bool)
            features, thresholds = np.append(features, 0 * lone), np.append(thresholds, 0.0 * lone)
            true_ids, false_ids = np.append(true_ids, at), np.append(false_ids, at)
            true_leaf, false_leaf = np.append(true_leaf, more), np.append(false_leaf, more)
            nan_left = np.append(nan_left, more)
        trees = graph(
            "TreeEnsemble",
            x,
            domain="ai.onnx.ml",
            n_targets=len(parts),
            aggregate_function=1,
            post_transform=0,
            tree_roots=root_ids.tolist(),
            nodes_featureids=features.tolist(),
            nodes_splits=numpy_helper.from_array(thresholds, "nodes_splits"),
            nodes_modes=numpy_helper.from_array(np.full(len(features), _LESS_OR_EQUAL, np.uint8), "nodes_modes"),
            nodes_truenodeids=true_ids.tolist(),
            nodes_trueleafs=true_leaf.astype(int).tolist(),
            nodes_falsenodeids=false_ids.tolist(),
            nodes_falseleafs=false_leaf.astype(int).tolist(),
            nodes_missing_value_tracks_true=nan_left.astype(int).tolist(),
            leaf_targetids=part_of_tree[tree_of[is_leaf]].tolist(),
            leaf_weights=numpy_helper.from_array(forest.value[is_leaf], "leaf_weights"),
        )
        sums = graph("Add", trees, base)
    else:
        sums = graph("Add", _zeros(graph, x), base)
    lines = [_lines(graph, part.linear, x) for part in parts]
    if any(lines):
        zeros = _zeros(graph, x)
        sums = graph("Add", sums, graph("Concat", *(line or zeros for line in lines), axis=1))
    return sums


def _zeros(graph: _Graph, x: str) -> str:
    """A column of zeros, whatever the features are: shape (n_rows, 1)."""
    from onnx import TensorProto

    missing = graph("IsNaN", graph("Gather", x, graph.constant([0], np.int64), axis=1))
    return graph("Mul", graph("Cast", missing, to=TensorProto.DOUBLE), graph.constant(0.0))


def _lines(graph: _Graph, linear: Any, x: str) -> str:
    """A part's linear terms, shape (n_rows, 1); "" where it has none."""
    if linear is None:
        return ""
    picked = graph("Gather", x, graph.constant(linear.columns, np.int64), axis=1)
    grown = graph("Log", graph("Add", graph("Abs", picked), graph.constant(1.0)))
    squashed = graph("Mul", graph("Sign", picked), grown)
    held = graph("Min", graph("Max", squashed, graph.constant(linear.low)), graph.constant(linear.high))
    centred = graph("Sub", held, graph.constant(linear.center))
    return graph("MatMul", centred, graph.constant(linear.weight[:, None]))


def _with_estimates(graph: _Graph, track: TrackModel, x: str, learned: str) -> str:
    columns: dict[str, str] = {}
    zero = graph.constant(0.0)

    def column(name: str) -> str:
        if name not in columns:
            picked = graph("Gather", x, graph.constant([track.columns[name]], np.int64), axis=1)
            columns[name] = graph("Max", picked, zero)
        return columns[name]

    def value_of(e: Expression) -> str:
        if e.kind == "column":
            return column(e.name)
        if e.kind == "constant":
            return graph.constant(e.value)
        return graph({"+": "Add", "*": "Mul", "/": "Div", "min": "Min"}[e.kind], *map(value_of, e.parts))

    def margin(target: Any) -> str:
        made = graph("Max", value_of(estimate_expression(target.estimate)), graph.constant(analytical.SMALLEST))
        made = graph("Min", made, graph.constant(analytical.LARGEST))
        return graph("Log", graph("Add", made, graph.constant(target.offset)))

    margins: Sequence[str] = [margin(t) if t.estimate else "" for t in track.targets]
    if not any(margins):
        return learned
    zeros = _zeros(graph, x)
    return graph("Add", learned, graph("Concat", *(m or zeros for m in margins), axis=1))


def _by_group(graph: _Graph, track: TrackModel, compared: str, side: str) -> str:
    """For each target the interval's end in the group that its prediction falls in."""
    intervals = [t.intervals for t in track.targets]
    all_edges = [t.edges_of_values() if t.whole else t.intervals.edges for t in track.targets]
    most = max(map(len, all_edges))
    ends = [getattr(i, side) for i in intervals]
    out = graph.constant([e[0] for e in ends])
    for k in range(most):
        edges = graph.constant([e[k] if k < len(e) else np.finfo(np.float64).max for e in all_edges])
        after = graph.constant([e[k + 1] if k + 1 < len(e) else 0.0 for e in ends])
        out = graph("Where", graph("Greater", compared, edges), after, out)
    return out
