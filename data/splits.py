"""The four ways to judge a model: random, unseen program, unseen family, real.

Each is a list of `Fold`s, so that a split with one test set and a cross-validated one are evaluated alike: the test
predictions of all folds are pooled and scored once.

- **random**: 20,000 rows to learn from and 2,000 to judge, as in the literature, where that many exist; else 10 % are
  judged. Variants of one program stand on both sides: an optimistic number, given for comparison only.
- **program**: programs in 5 groups by `program_id`; one group is judged. 20 % of the programs.
- **family**: families in 5 groups of about equal size, each judged once by a model that saw none of its families, and
  the predictions pooled. One draw of held-out families would say more about the draw than about the model: families
  differ a lot, and there are few. Nothing is chosen by looking at results: the groups follow from the names, sizes
  and the seed.
- **real**: learn from all rows, judge on modules that nobody here wrote (`data/sets/real.parquet`); it needs no fold
  here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

LITERATURE_TRAIN, LITERATURE_TEST = 20_000, 2_000
SPLITS = ("random", "program", "family", "real")


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from and rows to judge; no row is in both."""

    name: str
    """ "random", "program", or "family" with the number of the fold: "family/3"."""
    train_index: Indices
    test_index: Indices
    """Positions of rows, ascending."""


def random_split(n_rows: int, seed: int = 0) -> Split:
    """20,000 / 2,000 rows drawn without repetition where there are that many, else 90 % / 10 %.

    Raises
    ------
    ValueError
        Fewer than two rows.
    """
    if n_rows < 2:
        raise ValueError(f"a split needs at least 2 rows, got {n_rows}")
    order = np.random.default_rng([seed, 1]).permutation(n_rows)
    if n_rows >= LITERATURE_TRAIN + LITERATURE_TEST:
        test, train = order[:LITERATURE_TEST], order[LITERATURE_TEST : LITERATURE_TEST + LITERATURE_TRAIN]
    else:
        n_test = max(1, n_rows // 10)
        test, train = order[:n_test], order[n_test:]
    return Split("random", np.sort(train), np.sort(test))


def group_folds(groups: Sequence[str], n_folds: int, seed: int = 0) -> NDArray[np.int64]:
    """Fold number of each row; all rows of a group get the same one, and folds have about the same number of rows.

    Groups are shuffled, then given, largest first, to the fold with the fewest rows. The result depends on the set of
    rows (group names and sizes) and the seed, not on the order of the rows. Fewer groups than folds leave folds out.

    Raises
    ------
    ValueError
        There are fewer than two groups: nothing can be held out.
    """
    names, inverse, sizes = np.unique(np.asarray(groups, dtype=str), return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise ValueError(f"folds by group need at least 2 groups, got {len(names)}")
    shuffled = np.random.default_rng([seed, 2]).permutation(len(names))
    by_size = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    load = np.zeros(min(n_folds, len(names)), np.int64)
    fold_of_group = np.zeros(len(names), np.int64)
    for group in by_size:
        fold = int(np.argmin(load))
        fold_of_group[group] = fold
        load[fold] += sizes[group]
    return fold_of_group[inverse.ravel()]


def grouped_splits(name: str, groups: Sequence[str], n_folds: int = 5, seed: int = 0) -> Iterator[Split]:
    """One `Split` per fold of `group_folds`, named "name/0", "name/1", ...; together they judge every row once."""
    folds = group_folds(groups, n_folds, seed)
    for fold in range(int(folds.max()) + 1):
        yield Split(f"{name}/{fold}", np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))


def splits_of(name: str, program_id: Sequence[str], family: Sequence[str], seed: int = 0) -> list[Split]:
    """The folds of "random", "program" or "family" (see the module's text for what each means).

    Raises
    ------
    ValueError
        Another name, or too few rows or groups.
    """
    if name == "random":
        return [random_split(len(program_id), seed)]
    if name == "program":
        first = next(grouped_splits("program", program_id, 5, seed))
        return [Split("program", first.train_index, first.test_index)]
    if name == "family":
        return list(grouped_splits("family", family, 5, seed))
    raise ValueError(f"no split of this name is made from one dataset: {name!r}")
