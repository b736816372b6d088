"""Exact SHAP values of a `Forest`, in NumPy alone.

For one leaf with value v, reached through the conditions on m distinct features, the (path-dependent) SHAP value of
feature i is

    v · (o_i − z_i) · ∫₀¹ Π_{j≠i} (o_j·s + z_j·(1−s)) ds

where o is 1 when the row meets all the path's conditions on the feature and 0 otherwise, and z is the share of
training weight that follows the path at the nodes that compare the feature. The Shapley weights |S|!(m−1−|S|)!/m! are
∫ s^|S| (1−s)^(m−1−|S|) ds, which turns the sum over subsets into this one integral of a polynomial of degree m−1:
Gauss-Legendre with m/2 nodes is exact.

References
----------
Lundberg, Erion, Lee: "Consistent Individualized Feature Attribution for Tree Ensembles", arXiv:1802.03888 (the values).
Mitchell, Frank, Holmes: "GPUTreeShap", arXiv:2010.13972 (leaf by leaf, repeated features merged).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .trees import Float32, Float64, Forest


@dataclass(frozen=True, eq=False)
class Paths:
    """The conditions of every leaf, one entry per leaf and distinct feature, grouped by leaf."""

    feature: NDArray[np.int64]
    """Column of the entry."""
    low: Float32
    high: Float32
    """The row meets the entry's conditions when `low < x <= high`."""
    zero: Float64
    """Share of the training weight that meets them."""
    starts: NDArray[np.int64]
    """First entry of each leaf that has any."""
    leaf_of: NDArray[np.int64]
    """Position in `starts` of each entry's leaf."""
    value: Float64
    """Leaf value, one for each of `starts`."""
    expected: float
    """Mean prediction over the training weight: the base of the explanation."""
    nodes: Float64
    weights: Float64
    """Gauss-Legendre on [0, 1], exact for the longest path."""


def leaf_paths(forest: Forest) -> Paths:
    """Collect what `shap_values` needs, once per forest; the time is linear in leaves times depth."""
    n = forest.n_nodes
    here = np.arange(n)
    inner = np.flatnonzero(forest.left != here)
    parent = np.full(n, -1, np.int64)
    parent[forest.left[inner]] = inner
    parent[forest.left[inner] + 1] = inner
    is_left = np.zeros(n, bool)
    is_left[forest.left[inner]] = True
    # Children's weights may miss the parent's by rounding: shares are taken between siblings so that they add up to 1.
    cover = forest.cover.astype(np.float64)
    share = np.ones(n)
    both = cover[forest.left[inner]] + cover[forest.left[inner] + 1]
    share[forest.left[inner]] = cover[forest.left[inner]] / both
    share[forest.left[inner] + 1] = cover[forest.left[inner] + 1] / both

    leaves = np.flatnonzero(forest.left == here)
    at, owner = leaves.copy(), np.arange(len(leaves))
    owners, features, lows, highs, zeros = [], [], [], [], []
    while len(at):
        up = parent[at]
        keep = up >= 0
        at, owner, up = at[keep], owner[keep], up[keep]
        left = is_left[at]
        owners.append(owner)
        features.append(forest.feature[up].astype(np.int64))
        highs.append(np.where(left, forest.threshold[up], np.float32(np.inf)).astype(np.float32))
        lows.append(np.where(left, np.float32(-np.inf), forest.threshold[up]).astype(np.float32))
        zeros.append(share[at])
        at = up
    if not owners or not sum(map(len, owners)):
        none = np.zeros(0, np.int64)
        return Paths(
            none,
            none.astype(np.float32),
            none.astype(np.float32),
            none.astype(float),
            none,
            none,
            none.astype(float),
            float(forest.value[leaves].sum()),
            np.full(1, 0.5),
            np.ones(1),
        )
    owner, feature = np.concatenate(owners), np.concatenate(features)
    order = np.lexsort((feature, owner))
    owner, feature = owner[order], feature[order]
    first = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(feature) != 0)])
    zero = np.multiply.reduceat(np.concatenate(zeros)[order], first)
    low = np.maximum.reduceat(np.concatenate(lows)[order], first)
    high = np.minimum.reduceat(np.concatenate(highs)[order], first)
    owner, feature = owner[first], feature[first]
    starts = np.flatnonzero(np.r_[True, np.diff(owner) != 0])
    leaf_of = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(owner)]))
    longest = int(np.diff(np.r_[starts, len(owner)]).max())
    nodes, weights = np.polynomial.legendre.leggauss((longest + 1) // 2)
    values = forest.value[leaves[owner[starts]]]
    alone = np.setdiff1d(np.arange(len(leaves)), owner)  # trees of a single leaf
    expected = float((values * np.multiply.reduceat(zero, starts)).sum() + forest.value[leaves[alone]].sum())
    return Paths(feature, low, high, zero, starts, leaf_of, values, expected, (nodes + 1) / 2, weights / 2)


def shap_values(paths: Paths, x: Float32, n_features: int) -> Float64:
    """SHAP value of each column for one row: shape (n_features,); `paths.expected + sum` is the prediction.

    Parameters
    ----------
    x : float32 array of shape (n_features,), finite.
    """
    if not len(paths.feature):
        return np.zeros(n_features)
    at = x[paths.feature]
    one = ((at > paths.low) & (at <= paths.high)).astype(np.float64)
    factor = one[:, None] * paths.nodes + paths.zero[:, None] * (1 - paths.nodes)  # > 0: nodes lie inside (0, 1)
    product = np.multiply.reduceat(factor, paths.starts, axis=0)
    others = (product[paths.leaf_of] / factor) @ paths.weights
    sums = np.bincount(
        paths.feature, weights=paths.value[paths.leaf_of] * (one - paths.zero) * others, minlength=n_features
    )
    return np.asarray(sums, np.float64)
