from __future__ import annotations

import re

import numpy as np
import pytest

from irgauge.data.families import NETWORK_FAMILIES
from irgauge.data.label.elided import fill_elided
from irgauge.errors import LabelError
from irgauge.featurize.featurizer import main_features

TWO = "dense_resource<__elided__> : tensor<64x3x3x16xi8>, dense_resource<__elided__> : tensor<64x3x3x16xi8>"


def _numbers(text: str, dtype: str) -> list[np.ndarray]:
    return [np.frombuffer(bytes.fromhex(found), dtype) for found in re.findall(r'"0x([0-9A-F]+)"', text)]


def test_the_numbers_are_the_same_each_time_and_differ_between_constants() -> None:
    first, second = _numbers(fill_elided(TWO), "i1")
    assert fill_elided(TWO) == fill_elided(TWO)
    assert first.size == second.size == 64 * 9 * 16
    assert not np.array_equal(first, second)


def test_weights_are_about_normal_and_symmetric() -> None:
    (weights,) = _numbers(fill_elided("dense_resource<__elided__> : tensor<300x300xi8>"), "i1")
    assert abs(float(weights.mean())) < 0.5
    assert 31 < float(weights.astype(float).std()) < 33
    assert int(weights.min()) >= -127


@pytest.mark.parametrize(("element", "n_bytes"), [("i8", 1), ("i16", 2), ("i32", 4), ("i48", 6)])
def test_each_element_has_its_width(element: str, n_bytes: int) -> None:
    (numbers,) = _numbers(fill_elided(f"dense_resource<__elided__> : tensor<5x7x{element}>"), "u1")
    assert numbers.size == 35 * n_bytes


def test_negative_48_bit_numbers_keep_their_sign() -> None:
    (raw,) = _numbers(fill_elided("dense_resource<__elided__> : tensor<100xi48>"), "u1")
    values = [int.from_bytes(raw[at : at + 6].tobytes(), "little", signed=True) for at in range(0, 600, 6)]
    assert min(values) < 0 < max(values)
    assert max(map(abs, values)) < 20_000


def test_constants_with_numbers_stay_as_they_are() -> None:
    text = 'values = dense<"0x0102"> : tensor<2xi8>, dense_resource<w> : tensor<2xi8>'
    assert fill_elided(text) == text


def test_a_type_without_numbers_is_refused() -> None:
    with pytest.raises(LabelError, match="i4"):
        fill_elided("dense_resource<__elided__> : tensor<2xi4>")


@pytest.mark.parametrize("family", ["resnet8", "transformer", "graph_free_graph"])
def test_a_network_with_its_weights_has_the_same_features(family: str) -> None:
    text = next(NETWORK_FAMILIES[family].sources()).mlir
    assert main_features(fill_elided(text)) == main_features(text)
