"""Trees as the artifact stores them: nothing twice, and in small numbers, so that the file packs well.

Each distinct comparison (feature, threshold, side of a missing value) stands once in a table that nodes refer to: the
boosters try at most 63 thresholds a feature, so nodes share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .trees import Forest


def pack(forest: Forest) -> dict[str, NDArray[Any]]:
    """Plain arrays: `step`, `cover` and `roots`, `comparison` of each inner node, the comparisons' `feature`,
    `threshold` and `nan_left`, and `leaf_value` of each leaf."""
    here = np.arange(forest.n_nodes)
    leaf = forest.left == here
    table = np.zeros(int(np.sum(~leaf)), [("feature", "<i4"), ("threshold", "<f4"), ("nan_left", "?")])
    table["feature"], table["threshold"] = forest.feature[~leaf], forest.threshold[~leaf]
    table["nan_left"] = forest.nan_left[~leaf]
    distinct, comparison = np.unique(table, return_inverse=True)
    single = forest.value[leaf].astype(np.float32)
    return {
        "step": _small(forest.left - here),  # how far the left child is; 0 for a leaf
        "roots": forest.roots,
        "comparison": _small(comparison.ravel()),
        "feature": _small(distinct["feature"]),
        "threshold": np.ascontiguousarray(distinct["threshold"]),
        "nan_left": np.ascontiguousarray(distinct["nan_left"]),
        "leaf_value": single if np.array_equal(single, forest.value[leaf]) else forest.value[leaf],
        "cover": _small(forest.cover) if np.all(forest.cover == np.round(forest.cover)) else forest.cover,
    }


def unpack(packed: Mapping[str, Any]) -> Forest:
    """Inverse of `pack`. `Forest.check` says whether the trees can be walked.

    Raises
    ------
    KeyError, TypeError, ValueError, IndexError
        An array is missing or does not fit the others.
    """
    step = np.asarray(packed["step"], np.int32)  # what does not fit is caught by `Forest.check`, whatever it becomes
    comparison = np.asarray(packed["comparison"], np.int32)
    n = len(step)
    inner, leaf = np.flatnonzero(step), np.flatnonzero(step == 0)
    if step.ndim != 1 or comparison.shape != inner.shape or (comparison < 0).any():
        raise ValueError("trees: nodes and comparisons do not fit together")
    left = np.arange(n, dtype=np.int32) + step
    if n and (left.min() < 0 or left.max() > n - 1):
        raise ValueError("trees: a child stands outside")
    feature, threshold = np.zeros(n, np.int32), np.full(n, np.inf, np.float32)
    nan_left, value = np.ones(n, np.bool_), np.zeros(n)
    feature[inner] = np.asarray(packed["feature"], np.int32).take(comparison)
    threshold[inner] = np.asarray(packed["threshold"], np.float32).take(comparison)
    nan_left[inner] = np.asarray(packed["nan_left"], np.bool_).take(comparison)
    value[leaf] = np.asarray(packed["leaf_value"], np.float64)
    roots = np.asarray(packed["roots"], np.int32)
    return Forest(feature, threshold, left, nan_left, value, np.asarray(packed["cover"], np.float32), roots)


def _small(numbers: NDArray[Any]) -> NDArray[Any]:
    """The same whole numbers, >= 0, in 16 bits where these are enough."""
    return numbers.astype(np.uint16 if numbers.max(initial=0) < 1 << 16 else np.int32)
