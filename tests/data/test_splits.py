"""Splits keep what belongs together on one side, and are the same each time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgauge.data.splits import group_folds, grouped_splits, random_split, splits_of


def test_random_split_uses_the_literatures_sizes_where_rows_suffice() -> None:
    split = random_split(25_000)
    assert (len(split.train_index), len(split.test_index)) == (20_000, 2_000)


def test_random_split_holds_out_a_tenth_of_a_small_set() -> None:
    split = random_split(505)
    assert (len(split.train_index), len(split.test_index)) == (455, 50)


@settings(deadline=None)
@given(n=st.integers(2, 300), seed=st.integers(0, 5))
def test_no_row_is_on_both_sides(n: int, seed: int) -> None:
    split = random_split(n, seed)
    assert not set(split.train_index) & set(split.test_index)
    assert len(split.train_index) + len(split.test_index) == n


@settings(deadline=None)
@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=200).filter(lambda g: len(set(g)) > 1), st.integers(2, 6)
)
def test_a_group_is_never_divided_and_every_row_is_judged_once(groups: list[str], n_folds: int) -> None:
    splits = list(grouped_splits("family", groups, n_folds))
    names = np.array(groups)
    for split in splits:
        assert not set(names[split.train_index]) & set(names[split.test_index])
        assert len(split.train_index)
        assert len(split.test_index)
    assert sorted(np.concatenate([s.test_index for s in splits])) == list(range(len(groups)))


def test_folds_have_about_the_same_number_of_rows() -> None:
    groups = [f"g{i}" for i in range(30) for _ in range(1 + i % 7)]
    sizes = np.bincount(group_folds(groups, 5))
    assert sizes.max() - sizes.min() <= 7


def test_folds_do_not_depend_on_the_order_of_the_rows() -> None:
    groups = np.array([f"g{i % 13}" for i in range(100)])
    order = np.random.default_rng(0).permutation(100)
    np.testing.assert_array_equal(group_folds(list(groups), 5)[order], group_folds(list(groups[order]), 5))


def test_the_seed_decides() -> None:
    groups = [f"g{i}" for i in range(40)]
    assert (group_folds(groups, 5, 1) == group_folds(groups, 5, 1)).all()
    assert (group_folds(groups, 5, 1) != group_folds(groups, 5, 2)).any()


def test_program_split_holds_out_a_fifth_of_the_programs() -> None:
    programs = [f"p{i // 4}" for i in range(400)]
    (split,) = splits_of("program", programs, ["f"] * 400)
    assert split.name == "program"
    assert len({programs[i] for i in split.test_index}) == 20


def test_family_split_judges_every_family() -> None:
    families = [f"f{i // 10}" for i in range(200)]
    splits = splits_of("family", [str(i) for i in range(200)], families)
    assert [s.name for s in splits] == [f"family/{i}" for i in range(5)]
    assert {families[i] for s in splits for i in s.test_index} == set(families)


def test_one_group_cannot_be_held_out() -> None:
    with pytest.raises(ValueError, match="at least 2 groups"):
        group_folds(["a", "a"], 5)


def test_real_is_not_a_split_of_one_dataset() -> None:
    with pytest.raises(ValueError, match="'real'"):
        splits_of("real", ["a", "b"], ["f", "g"])
