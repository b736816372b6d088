"""Which features drive each target: exact SHAP values of the model's own trees, averaged over a sample of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..featurize.describe import GROUPS, describe
from ..models.explain import Explainer
from ..models.target_model import Part
from ..models.track_model import TrackModel
from ..models.treeshap import leaf_paths, shap_values
from .summary import ShapFeature, ShapSummary

Floats = NDArray[np.float64]


def group_of(feature: str) -> str:
    """Feature group of a feature name: "ops", "ngrams", "loops", ...; "other" for none of ours."""
    for group, names in GROUPS.items():
        if feature in names:
            return group
    if feature.startswith(("ngram/", "chain/")):
        return "ngrams"
    head = feature.partition(".")[0]
    return head if head in GROUPS else "other"


def meaning_of(feature: str) -> tuple[str, str]:
    """(meaning, unit) of a feature; empty for a name that no group knows."""
    try:
        return describe(feature)
    except KeyError:
        return "", ""


def explain_target(model: TrackModel, index: int, X: NDArray[np.float32], n_shown: int) -> tuple[ShapSummary, ...]:
    """Summaries of one target: of its value, and of its gate where it has one.

    Parameters
    ----------
    index : which of the model's targets
    X : float32 array of shape (n_rows, n_features), finite; the rows to average over
    n_shown : how many features to give in full
    """
    target = model.targets[index]
    _, values = Explainer(model).learned(index, X)
    margin = target.margin(X, model.columns) - target.margin_mean
    found = [
        _summary(
            model.names,
            X,
            values,
            "value",
            target.space,
            n_shown,
            target.estimate,
            float(np.mean(np.abs(margin))) if target.estimate and len(X) else float("nan"),
        )
    ]
    if target.gate is not None:
        gate = _gate_values(target.gate, X, len(model.names))
        found.append(_summary(model.names, X, gate, "gate", "log-odds", n_shown, "", float("nan")))
    return tuple(found)


def _gate_values(gate: Part, X: NDArray[np.float32], n_features: int) -> Floats:
    paths = leaf_paths(gate.forest)
    values = [shap_values(paths, x, n_features) for x in X]
    return np.array(values, np.float64).reshape(len(X), n_features)


def _summary(
    names: Sequence[str],
    X: NDArray[np.float32],
    values: Floats,
    part: str,
    space: str,
    n_shown: int,
    estimate: str,
    estimate_mean_abs: float,
) -> ShapSummary:
    mean_abs = np.abs(values).mean(axis=0) if len(X) else np.zeros(len(names))
    order = np.argsort(-mean_abs, kind="stable")
    shown = [int(i) for i in order[:n_shown] if mean_abs[i] > 0]
    total = float(mean_abs.sum())
    groups: dict[str, float] = {}
    for i in map(int, np.flatnonzero(mean_abs)):
        group = group_of(names[i])
        groups[group] = groups.get(group, 0.0) + float(mean_abs[i]) / total
    features = tuple(
        ShapFeature(
            names[i],
            *meaning_of(names[i]),
            float(mean_abs[i]),
            rank_correlation(X[:, i].astype(np.float64), values[:, i]),
            X[:, i].astype(np.float64),
            np.asarray(values[:, i], np.float64),
        )
        for i in shown
    )
    return ShapSummary(
        part,
        space,
        len(X),
        int(np.count_nonzero(mean_abs)),
        features,
        float(np.mean(np.abs(np.delete(values, shown, axis=1).sum(axis=1)))) if len(X) else 0.0,
        groups,
        estimate,
        estimate_mean_abs,
    )


def rank_correlation(a: Floats, b: Floats) -> float:
    """Spearman's; NaN where either is constant."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse.ravel()], np.float64)
