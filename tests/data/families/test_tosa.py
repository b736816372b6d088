"""TOSA families: the same networks each time, of the shapes that their layers imply, and valid for the real tools."""

from __future__ import annotations

import random
import re
from itertools import islice
from pathlib import Path

import pytest

from irgauge.data.families import FAMILIES, NETWORK_FAMILIES
from irgauge.data.families.tosa_blocks import classifier, inverted_residual, residual
from irgauge.data.families.tosa_draw import Draw, some_blocks
from irgauge.data.families.tosa_text import ELIDED, Net, Tensor
from irgauge.data.label.elided import fill_elided
from irgauge.data.label.vela import serialize
from irgauge.featurize.canonical import canonical_id
from irgauge.featurize.reader import read

MLPERF_TINY = {"resnet8", "mobilenet_v1", "ds_cnn", "autoencoder"}


def _net(element: str = "i8") -> Net:
    return Net(random.Random(0), element)


def _op_names(text: str) -> list[str]:
    return [op.name for op in read(text).walk() if op.name.startswith("tosa.") and "const" not in op.name]


@pytest.mark.parametrize("name", NETWORK_FAMILIES)
def test_a_family_writes_valid_networks_and_the_same_ones_each_time(name: str, tmp_path: Path) -> None:
    first, second = (list(islice(NETWORK_FAMILIES[name].sources(), 3)) for _ in range(2))
    assert first == second
    assert len({canonical_id(source.mlir) for source in first}) == 3
    for source in first:
        assert source.family == name
        serialize(fill_elided(source.mlir), tmp_path / "network.tosa")  # tosa-opt checks every shape


def test_whole_architectures_are_families_of_their_own() -> None:
    assert set(NETWORK_FAMILIES) >= MLPERF_TINY | {
        "mobilenet_v2",
        "mobilenet_v3",
        "efficientnet_lite",
        "resnet",
        "yolo",
    }
    assert not set(NETWORK_FAMILIES) & set(FAMILIES)


def test_there_are_16_bit_networks_in_most_families() -> None:
    wide = [n for n, f in NETWORK_FAMILIES.items() if any("xi48>" in s.mlir for s in islice(f.sources(), 40))]
    assert len(wide) > 0.6 * len(NETWORK_FAMILIES)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation", "shape"),
    [
        (3, 1, "same", 1, (1, 13, 24, 5)),
        (3, 2, "same", 1, (1, 7, 12, 5)),
        (3, 2, "valid", 1, (1, 6, 11, 5)),
        (1, 3, "same", 1, (1, 5, 8, 5)),
        ((5, 1), (1, 2), "valid", 1, (1, 9, 12, 5)),
        (3, 1, "same", 3, (1, 13, 24, 5)),
    ],
)
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_convolution_has_the_shape_of_its_window(
    kernel, stride, padding, dilation, shape, symmetric, tmp_path: Path
) -> None:
    n = Net(random.Random(0), symmetric=symmetric)
    y = n.conv2d(n.input(1, 13, 24, 4), 5, kernel, stride, padding=padding, dilation=dilation)
    assert y.shape == shape
    assert (y.element, y.zero_point) != ("i32", 0)
    serialize(fill_elided(n.finish(y)), tmp_path / "network.tosa")


@pytest.mark.parametrize(("symmetric", "pads"), [(False, "0, 1, 0, 1"), (True, "1, 0, 1, 0")])
def test_an_odd_padding_is_where_the_converter_puts_it(symmetric: bool, pads: str) -> None:
    n = Net(random.Random(0), symmetric=symmetric)
    y = n.conv2d(n.input(1, 32, 32, 4), 5, 3, 2)
    assert y.shape == (1, 16, 16, 5)
    assert f"pad = array<i64: {pads}>" in n.finish(y)


def test_what_the_windows_do_not_reach_is_cut_off() -> None:
    """13 rows and windows of 2 at every third: the last row is never read, and TOSA allows no remainder."""
    n = _net()
    text = n.finish(n.conv2d(n.input(1, 13, 11, 4), 5, 2, 3, padding="valid"))
    assert "tosa.slice" in text
    assert "tensor<1x11x11x4xi8>" in text


def test_16_bit_products_are_added_up_in_48() -> None:
    n = _net("i16")
    text = n.finish(n.conv2d(n.input(1, 8, 8, 4), 5))
    assert "acc_type = i48" in text
    assert "scale32 = false" in text
    assert re.search(r"tensor<5x3x3x4xi8>", text)


def test_multiplications_and_weights_are_counted() -> None:
    n = _net()
    n.conv2d(n.input(1, 8, 8, 4), 5, 3, 2)
    assert n.macs == 4 * 4 * 5 * 9 * 4
    assert n.weight_bytes == 5 * 9 * 4 + 5 * 4
    n.depthwise(n.input(1, 8, 8, 4), 3)
    assert n.macs == 2880 + 8 * 8 * 4 * 9
    n.matmul(n.input(2, 3, 5), n.input(2, 5, 7))
    assert n.macs == 2880 + 2304 + 2 * 3 * 5 * 7


def test_weights_are_elided_and_small_constants_are_not() -> None:
    n = _net()
    text = n.finish(n.dense(n.input(1, 64), 10))
    assert text.count(ELIDED) == 2
    assert len(text) < 3000


def test_equal_constants_are_written_once() -> None:
    n = _net()
    x = n.input(1, 8, 8, 4)
    text = n.finish(n.clamp(n.pad(n.pad(x, (0, 1, 1, 0), (0, 1, 1, 0)), (0, 1, 1, 0), (0, 1, 1, 0)), 0, 9))
    assert text.count("tosa.const_shape") == 1


def test_residuals_are_added_where_the_shapes_allow() -> None:
    n = _net()
    x = n.input(1, 8, 8, 16)
    same = inverted_residual(n, x, channels=16, expand=2, act="relu6")
    assert _op_names(n.finish(same)).count("tosa.add") == 1
    n = _net()
    other = inverted_residual(n, n.input(1, 8, 8, 16), channels=16, expand=2, stride=2, act="relu6")
    assert _op_names(n.finish(other)).count("tosa.add") == 0
    n = _net()
    projected = residual(n, n.input(1, 8, 8, 16), channels=24, stride=2)
    assert _op_names(n.finish(projected)).count("tosa.conv2d") == 3


def test_a_part_of_a_network_takes_what_it_is_given_there() -> None:
    """The last block of three follows two that halve the image."""

    def half(n: Net, x: Tensor) -> Tensor:
        return n.max_pool(x)

    for seed in range(50):
        d = Draw(random.Random(seed), _net())
        y = some_blocks(d, (1, 32, 32, 8), [half, half, half], whole=0.0)
        text = d.net.finish(y)
        pools = text.count("max_pool2d")
        assert y.shape[1] << pools in (32, 16, 8)
        if pools == 1 and y.shape[1] == 4:
            assert "%arg0: tensor<1x8x8x8xi8>" in text
            return
    raise AssertionError("the last block alone never came")


def test_a_classifier_ends_in_one_number_a_class() -> None:
    n = _net()
    assert classifier(n, n.input(1, 7, 5, 32), classes=12, hidden=20, softmax=True).shape == (1, 12)
