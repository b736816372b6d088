"""Operations on tensors from the text, and what is no network."""

from __future__ import annotations

import pytest

from irgauge.featurize import main_features
from irgauge.featurize.featurizer import functions_of
from irgauge.featurize.npu import FEATURES
from irgauge.featurize.npu.graph import Graph, UnknownNetwork, four, in_order
from irgauge.featurize.reader import read

from .conftest import network

CONVOLUTION = network(lambda n, x: n.conv2d(x, 24, act="relu"))


def _graph(text: str) -> Graph:
    program = read(text)
    ((_, function),) = functions_of(program)
    return Graph(program, function)


def test_shapes_have_four_dimensions() -> None:
    assert four(()) == (1, 1, 1, 1)
    assert four((3, 5)) == (1, 1, 3, 5)
    assert four((2, 3, 4, 5, 6)) == (6, 4, 5, 6)


def test_attributes_of_a_convolution_are_read() -> None:
    conv = next(n for n in _graph(CONVOLUTION).nodes if n.kind == "conv")
    assert conv.window == (3, 3)
    assert conv.pad == (1, 1, 1, 1)
    assert conv.weights == 24 * 9 * 16


def test_the_last_input_of_an_operation_is_made_first() -> None:
    text = network(lambda n, x: n.add(n.conv2d(x, 8, 1), n.max_pool(n.conv2d(x, 8, 3), 1, 1)))
    kinds = [node.kind for node in in_order(_graph(text).outputs) if node.kind in ("conv", "maximum_pool")]
    assert kinds == ["conv", "maximum_pool", "conv"]


@pytest.mark.parametrize(
    ("found", "replacement"),
    [
        ("tensor<1x24x20x16xi8>", "tensor<1x?x20x16xi8>"),
        ("tensor<1x24x20x16xi8>", "tensor<1x24x2000000x16xi8>"),
        ("stride = array<i64: 1, 1>", "stride = array<i64: 0, 1>"),
        ("tensor<24x3x3x16xi8>", "tensor<24x3x16xi8>"),
        ("dilation = array<i64: 1, 1>", "dilation = array<i64: 3000, 3000>"),
    ],
)
def test_what_no_npu_could_run_has_no_plan(found: str, replacement: str) -> None:
    assert found in CONVOLUTION
    features = main_features(CONVOLUTION.replace(found, replacement), ["npu"])
    assert not any(features.values())


def test_an_operation_that_needs_its_own_result_is_refused() -> None:
    text = network(lambda n, x: n.clamp(n.clamp(x, 0, 9), 0, 8))
    first, second = (line.split(" = ")[0].strip() for line in text.splitlines() if "tosa.clamp" in line)
    with pytest.raises(UnknownNetwork, match="its own result"):
        in_order(_graph(text.replace("tosa.clamp %arg0", f"tosa.clamp {second}")).outputs)
    assert first != second


def test_every_feature_is_there_for_any_function() -> None:
    text = "func.func @f(%a: memref<8xf32>) {\n  return\n}\n"
    assert main_features(text, ["npu"]) == dict.fromkeys(FEATURES, 0.0)
    assert main_features(CONVOLUTION, ["npu"])["npu.u85.cycles"] > 0
