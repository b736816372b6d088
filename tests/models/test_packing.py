"""Packed and unpacked again, trees are the same trees; what does not fit together is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from irgauge.models.candidates import Settings, fit_candidate, fit_gate
from irgauge.models.packing import pack, unpack
from irgauge.models.trees import Forest, concatenate, empty_forest

FIELDS = ("feature", "threshold", "left", "nan_left", "value", "cover", "roots")


def forests() -> list[Forest]:
    rng = np.random.default_rng(0)
    X = np.floor(np.exp(rng.normal(2, 1.5, (300, 12)))).astype(np.float32)
    z = np.log1p(X[:, 0].astype(float)) + 0.5 * (X[:, 3] > 8)
    quick = Settings().quick()
    boosted = [fit_candidate(name, X, z, 0, quick).forest for name in ("lightgbm", "xgboost", "hist")]
    return [*boosted, fit_gate(X, z > 2, 0, quick).forest]


def test_packed_and_unpacked_every_array_is_the_same() -> None:
    for forest in [*forests(), concatenate(forests()), empty_forest()]:
        again = unpack(pack(forest))
        again.check(12)
        for field in FIELDS:
            theirs, ours = getattr(forest, field), getattr(again, field)
            assert ours.dtype == theirs.dtype, field
            np.testing.assert_allclose(ours, theirs, rtol=1e-6 if field == "cover" else 0, err_msg=field)


def test_leaves_that_float32_cannot_hold_keep_their_bits() -> None:
    forest = forests()[0]
    precise = replace(forest, value=np.where(forest.value != 0, forest.value + 1e-12, 0.0))
    np.testing.assert_array_equal(unpack(pack(precise)).value, precise.value)


def test_each_comparison_is_stored_once() -> None:
    packed = pack(concatenate(forests()))
    rows = list(zip(packed["feature"].tolist(), packed["threshold"].tolist(), packed["nan_left"].tolist(), strict=True))
    assert len(rows) == len(set(rows)) < len(packed["comparison"])


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("comparison", lambda a: a[:-1]),
        ("comparison", lambda a: a.astype(np.int64) + 60000),
        ("comparison", lambda a: a.astype(np.int64) - 60000),
        ("step", lambda a: a.astype(np.int64) + 40000),
        ("step", lambda a: a.astype(np.int64) - 40000),
        ("leaf_value", lambda a: a[:-1]),
        ("leaf_cover", lambda a: a[:-1]),
        ("threshold", lambda a: a[:3]),
    ],
)
def test_arrays_that_do_not_fit_are_refused(field: str, change: object) -> None:
    packed = pack(forests()[0])
    packed[field] = change(packed[field])  # type: ignore[operator]
    with pytest.raises((ValueError, IndexError)):
        unpack(packed).check(12)
