"""All trees of a track at once: the fast road of prediction. NumPy only; equal to `Forest.predict` to the last bit.

One row. Every tree takes its next step in the same array operation. A node is one 64-bit word

    feature << 53 | left child << 32 | (2^32 - 1 - code(threshold))        (features counted among those in use)

where `code` maps float32 to 32-bit integers in the same order. Adding `code(x)` carries into the child number exactly
when `x > threshold`, so one addition compares and steps right; two gathers and four cheap operations make a level.

Many rows. Walking is gathering, which costs a nanosecond an element whatever is done. Comparing and selecting bytes
costs a thirtieth. So each distinct comparison of the track is made once for all rows of a block, and each tree is
folded from its leaves up: the leaf reached below a node is `left ^ ((left ^ right) & mask)`, a few byte operations
over the block for all nodes of one height.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .trees import Float32, Float64, Forest, Int64, concatenate

Indices = NDArray[np.intp]

_CHILD_BITS, _FEATURE_BITS = 21, 10
_LOW = 0xFFFF_FFFF
_BLOCK_ROWS = 256
_GROUP_NODES = 2500
"""Inner nodes folded at once: with `_BLOCK_ROWS` bytes each they stay in the second-level cache."""
FEW_ROWS = 8
"""Up to here rows are walked one by one."""


def ordered_code(x: Float32) -> NDArray[np.uint32]:
    """Unsigned integers in the order of the floats: a < b exactly where code(a) < code(b); both zeros have one code."""
    bits = (x + np.float32(0)).view(np.uint32)  # -0 + 0 is +0
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint32)


class Walk:
    """The trees of several parts, walked together."""

    def __init__(self, forests: Sequence[Forest]) -> None:
        self.forests = tuple(forests)
        self.n_parts = len(forests)
        self.part_of_tree = np.repeat(np.arange(self.n_parts), [f.n_trees for f in forests])
        starts = np.cumsum([0, *(f.n_nodes for f in forests)])
        # Part by part into arrays of their full size: temporaries of that size would stay with the allocator.
        single = all(np.array_equal(f.value.astype(np.float32), f.value) for f in forests)
        self.value = np.empty(starts[-1], np.float32 if single else np.float64)  # added in float64 all the same
        self.columns = np.unique(np.concatenate([f.features_used() for f in forests])).astype(np.intp)
        self.packs = starts[-1] < 1 << _CHILD_BITS and 0 < len(self.columns) < 1 << _FEATURE_BITS
        self.node = np.empty(starts[-1] if self.packs else 0, np.int64)
        for forest, start, end in zip(forests, starts[:-1], starts[1:], strict=True):
            self.value[start:end] = forest.value
            if self.packs:
                self.node[start:end] = _words(forest, self.columns, start)
        roots = np.concatenate([f.roots + start for f, start in zip(forests, starts[:-1], strict=True)])
        depths = np.concatenate([tree_depths(f) for f in forests])
        # Deepest trees first: those that have ended drop out of the walk.
        self.order = np.argsort(-depths, kind="stable")
        self.roots = roots[self.order].astype(np.intp)
        self.active = [int(np.sum(depths > level)) for level in range(int(depths.max(initial=0)))]
        if self.packs:
            self.first_word = self.node.take(self.roots[: self.active[0]])
            self.first_feature = self.first_word >> 32 + _CHILD_BITS
        self._folds: _Folds | None = None

    def sums(self, x: Float32) -> Float64:
        """Sum of each part's trees for one row, added in the order of the trees: shape (n_parts,)."""
        if not self.packs or bool(np.isnan(x).any()):
            return np.array([forest.predict(x[None, :])[0] for forest in self.forests])
        code = ordered_code(x.take(self.columns)).astype(np.int64)
        at = self.roots.copy()
        word, feature = self.first_word, self.first_feature
        for level, n in enumerate(self.active):
            if level:
                word = self.node.take(at[:n])
                feature = word >> 32 + _CHILD_BITS
            step = code.take(feature)
            step += word
            step >>= 32
            step &= (1 << _CHILD_BITS) - 1
            at[:n] = step
        ends = np.empty_like(at)
        ends[self.order] = at
        return self._per_part(ends)

    def _per_part(self, ends: NDArray[Any]) -> Float64:
        return np.asarray(np.bincount(self.part_of_tree, self.value.take(ends), self.n_parts), np.float64)

    def sums_of_rows(self, X: Float32) -> Float64:
        """`sums` of many rows: shape (n_rows, n_parts)."""
        out = np.empty((len(X), self.n_parts))
        missing = np.isnan(X).any(axis=1)
        if len(X) - int(missing.sum()) <= FEW_ROWS:
            for row, x in enumerate(X):
                out[row] = self.sums(x)
            return out
        for place in np.flatnonzero(missing):
            out[place] = self.sums(X[place])
        if self._folds is None:
            self._folds = _Folds(concatenate(self.forests), self.part_of_tree, self.n_parts)
        present = np.flatnonzero(~missing)
        n_blocks = -(-len(present) // _BLOCK_ROWS)
        scratch = _Scratch()
        for rows in np.array_split(present, n_blocks):  # even blocks: none of a single row
            out[rows] = self._folds.sums(X[rows], scratch)
        return out


def _words(forest: Forest, columns: Indices, start: int) -> Int64:
    """The nodes of a forest as words (see above), when its first one has the number `start`."""
    inner = forest.left != np.arange(forest.n_nodes)
    feature = np.searchsorted(columns, np.where(inner, forest.feature, columns[0]))
    low = _LOW - ordered_code(forest.threshold).astype(np.int64)
    return feature.astype(np.int64) << 32 + _CHILD_BITS | (forest.left.astype(np.int64) + start) << 32 | low


class _Scratch:
    """Arrays that one call uses again for each block: fresh memory of this size costs more than the work in it."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def __call__(self, name: str, shape: tuple[int, int], dtype: Any) -> NDArray[Any]:
        kept = self._kept.get(name)
        if kept is None or kept.shape != shape:
            kept = self._kept[name] = np.empty(shape, dtype)
        return kept


@dataclass(frozen=True, eq=False)
class _Height:
    """Inner nodes of one group whose longest way down has this many steps; one entry per node."""

    start: int
    end: int
    """Their rows in the buffer."""
    left: Indices
    right: Indices
    """Buffer rows of the children; the first rows of the buffer hold the leaf numbers."""
    comparison: Indices


@dataclass(frozen=True, eq=False)
class _Group:
    """Neighbouring trees that are folded together."""

    first_tree: int
    last_tree: int
    heights: tuple[_Height, ...]
    roots: Indices
    """Buffer row of each tree's root."""


class _Folds:
    """What folding needs, computed once: the distinct comparisons, and where each node stands in the buffer."""

    def __init__(self, forest: Forest, part_of_tree: NDArray[Any], n_parts: int) -> None:
        n = forest.n_nodes
        is_leaf = forest.left == np.arange(n)
        inner = np.flatnonzero(~is_leaf)
        tree_of = np.searchsorted(forest.roots, np.arange(n), side="right") - 1
        leaves_before = np.cumsum(is_leaf) - is_leaf
        self.first_leaf = leaves_before[forest.roots]
        number = leaves_before - self.first_leaf[tree_of]  # of each leaf within its tree
        self.n_leaves = int(number[is_leaf].max(initial=0)) + 1
        self.leaf_type: type[np.unsignedinteger[Any]] = np.uint8 if self.n_leaves <= 256 else np.uint16
        self.leaf_value = forest.value[is_leaf]
        self.part_ends = np.searchsorted(part_of_tree, np.arange(n_parts + 1)).tolist()

        self.columns = np.unique(forest.feature[inner]).astype(np.intp)
        keys = forest.feature[inner].astype(np.int64) << 32 | ordered_code(forest.threshold[inner])
        distinct, first, which = np.unique(keys, return_index=True, return_inverse=True)
        comparison = np.zeros(n, np.intp)
        comparison[inner] = which.reshape(-1)
        self.threshold = forest.threshold[inner][first][:, None]
        self.runs = np.append(np.searchsorted(distinct >> 32, self.columns), len(distinct)).tolist()

        level = forest.levels()
        height = np.zeros(n, np.int64)
        for depth in range(int(level.max(initial=0)) - 1, -1, -1):
            parents = inner[level[inner] == depth]
            height[parents] = 1 + np.maximum(height[forest.left[parents]], height[forest.left[parents] + 1])
        self.groups: list[_Group] = []
        inner_before = np.searchsorted(inner, np.append(forest.roots, n))  # inner nodes in front of each tree
        at = 0
        while at < forest.n_trees:
            fits = int(np.searchsorted(inner_before, inner_before[at] + _GROUP_NODES, side="right")) - 1
            last = min(max(fits, at + 1), forest.n_trees)
            nodes = inner[inner_before[at] : inner_before[last]]
            nodes = nodes[np.argsort(height[nodes], kind="stable")]
            row = number.copy()
            row[nodes] = self.n_leaves + np.arange(len(nodes))
            heights = []
            for h in range(1, int(height[nodes].max(initial=0)) + 1):
                these = nodes[height[nodes] == h]
                start = int(row[these[0]])
                left = forest.left[these]
                heights.append(_Height(start, start + len(these), row[left], row[left + 1], comparison[these]))
            self.groups.append(_Group(at, last, tuple(heights), row[forest.roots[at:last]]))
            at = last
        self.buffer_rows = self.n_leaves + max(
            (h.end - self.n_leaves for group in self.groups for h in group.heights), default=0
        )
        self.widest = max((h.end - h.start for group in self.groups for h in group.heights), default=0)
        self.n_trees, self.n_parts = forest.n_trees, n_parts

    def sums(self, X: Float32, scratch: _Scratch) -> Float64:
        """Sum of each part's trees, added in their order, for a block of rows without NaN: shape (n_rows, n_parts)."""
        n_rows = len(X)
        columns = np.ascontiguousarray(X.take(self.columns, axis=1).T)
        is_right = scratch("is_right", (len(self.threshold), n_rows), np.bool_)
        for x, start, end in zip(columns, self.runs[:-1], self.runs[1:], strict=True):
            np.greater(x, self.threshold[start:end], out=is_right[start:end])
        # All bits of a mask are the answer: right keeps them, left clears them.
        mask = is_right.view(np.uint8) if self.leaf_type is np.uint8 else is_right.astype(self.leaf_type)
        np.negative(mask, out=mask)

        buffer = scratch("buffer", (self.buffer_rows, n_rows), self.leaf_type)
        buffer[: self.n_leaves] = np.arange(self.n_leaves, dtype=self.leaf_type)[:, None]
        lefts, rights = (scratch(side, (self.widest, n_rows), self.leaf_type) for side in ("left", "right"))
        leaf = scratch("leaf", (self.n_trees, n_rows), self.leaf_type)
        for group in self.groups:
            for h in group.heights:
                here = buffer[h.start : h.end]
                left, right = lefts[: len(here)], rights[: len(here)]
                buffer.take(h.left, axis=0, out=left, mode="clip")  # "clip" only because it writes without a copy
                buffer.take(h.right, axis=0, out=right, mode="clip")
                mask.take(h.comparison, axis=0, out=here, mode="clip")
                right ^= left
                here &= right
                here ^= left
            buffer.take(group.roots, axis=0, out=leaf[group.first_tree : group.last_tree], mode="clip")
        out = np.empty((n_rows, self.n_parts))
        for part, (start, end) in enumerate(zip(self.part_ends[:-1], self.part_ends[1:], strict=True)):
            at = scratch(f"at {end - start}", (end - start, n_rows), np.intp)
            np.add(leaf[start:end], self.first_leaf[start:end, None], out=at)
            added = scratch(f"value {end - start}", at.shape, np.float64)
            self.leaf_value.take(at, out=added, mode="clip")
            np.add.reduce(added, axis=0, out=out[:, part])
        return out


def tree_depths(forest: Forest) -> Int64:
    """Most comparisons on any path of each tree: shape (n_trees,)."""
    return np.maximum.reduceat(forest.levels(), forest.roots) if forest.n_trees else np.zeros(0, np.int64)
