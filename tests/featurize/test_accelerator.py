"""What an accelerator sees of a network: every number is derived beside it."""

from __future__ import annotations

import math

import pytest

from irgauge.featurize import features_of
from irgauge.featurize.accelerator import FEATURES

CONSTANTS = """
  %z = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %zi = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %m = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>
"""
WINDOW = "dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>"


def _constant(name: str, type: str) -> str:
    return f'  %{name} = "tosa.const"() <{{values = dense<1> : {type}}}> : () -> {type}\n'


def _rescale(result: str, value: str, shape: str) -> str:
    return (
        f"  %{result} = tosa.rescale %{value}, %m, %z, %zi, %z {{input_unsigned = false, output_unsigned = false, "
        f"per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true}} : (tensor<{shape}xi32>, tensor<1xi32>, "
        f"tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<{shape}xi8>\n"
    )


def _conv(result: str, value: str, channels: tuple[int, int]) -> str:
    """3 x 3 on 8 x 8, rescaled to i8; %<result>w and %<result>b are its weights and bias."""
    own, made = channels
    weight, bias = f"tensor<{made}x3x3x{own}xi8>", f"tensor<{made}xi32>"
    return (
        _constant(f"{result}w", weight)
        + _constant(f"{result}b", bias)
        + f"  %{result}a = tosa.conv2d %{value}, %{result}w, %{result}b, %z, %z {{acc_type = i32, {WINDOW}}} : "
        f"(tensor<1x8x8x{own}xi8>, {weight}, {bias}, tensor<1xi8>, tensor<1xi8>) -> tensor<1x8x8x{made}xi32>\n"
        + _rescale(result, f"{result}a", f"1x8x8x{made}")
    )


def _network(body: str, argument: str, result: str, value: str) -> dict[str, float]:
    text = f"func.func @net(%x: {argument}) -> {result} {{\n{CONSTANTS}{body}  return %{value} : {result}\n}}\n"
    return features_of(text)["net"]


def _log(found: dict[str, float], name: str) -> float:
    return math.expm1(found[f"accelerator.{name}_log"])


def test_a_convolution_with_its_rescale_is_one_step() -> None:
    found = _network(_conv("y", "x", (3, 20)), "tensor<1x8x8x3xi8>", "tensor<1x8x8x20xi8>", "y")
    assert found["accelerator.steps"] == 1
    assert found["accelerator.steps_fused"] == 1
    assert found["accelerator.macs"] == 8 * 8 * 20 * 9 * 3
    assert _log(found, "macs_window") == pytest.approx(8 * 8 * 20 * 9 * 3)
    assert _log(found, "macs_padded") == pytest.approx(8 * 8 * 32 * 9 * 16)
    assert found["accelerator.array_share"] == pytest.approx(20 * 3 / (32 * 16))
    assert _log(found, "array_cycles") == pytest.approx(8 * 8 * 32 * 9 * 16 / 256)
    assert found["accelerator.channels_out"] == 20
    assert found["accelerator.channels_in"] == 3
    assert found["accelerator.taps"] == 9
    assert _log(found, "positions") == pytest.approx(64)
    assert found["accelerator.weights"] == 20 * 9 * 3
    assert found["accelerator.outputs"] == 20
    assert found["accelerator.peak_bytes"] == 8 * 8 * 3 + 8 * 8 * 20  # the i32 sums are never written


def test_a_skip_connection_keeps_its_tensor_alive() -> None:
    body = _conv("a", "x", (16, 16)) + _conv("b", "a", (16, 16))
    add = "  %y = tosa.add %b, %x : (tensor<1x8x8x16xi8>, tensor<1x8x8x16xi8>) -> tensor<1x8x8x16xi8>\n"
    plain = _network(body, "tensor<1x8x8x16xi8>", "tensor<1x8x8x16xi8>", "b")
    skip = _network(body + add, "tensor<1x8x8x16xi8>", "tensor<1x8x8x16xi8>", "y")
    assert plain["accelerator.peak_bytes"] == 2 * 8 * 8 * 16
    assert skip["accelerator.peak_bytes"] == 3 * 8 * 8 * 16
    assert skip["accelerator.peak_values"] == 3
    assert skip["accelerator.steps"] == 3
    assert _log(skip, "elements") == pytest.approx(8 * 8 * 16)
    assert _log(skip, "traffic") == pytest.approx((2 + 2 + 3) * 8 * 8 * 16)


def test_a_depthwise_convolution_fills_one_side_of_the_array() -> None:
    weight = "tensor<3x3x24x1xi8>"
    body = _constant("w", weight) + _constant("b", "tensor<24xi32>")
    body += (
        f"  %a = tosa.depthwise_conv2d %x, %w, %b, %z, %z {{acc_type = i32, {WINDOW}}} : (tensor<1x8x8x24xi8>, "
        f"{weight}, tensor<24xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x8x8x24xi32>\n"
    )
    body += _rescale("y", "a", "1x8x8x24")
    found = _network(body, "tensor<1x8x8x24xi8>", "tensor<1x8x8x24xi8>", "y")
    assert found["accelerator.macs"] == 8 * 8 * 24 * 9
    assert found["accelerator.depthwise_share"] == 1
    assert _log(found, "array_cycles") == pytest.approx(8 * 8 * 32 * 9 / 16)


def test_a_matrix_product_is_one_in_every_dialect() -> None:
    tosa = """
    func.func @net(%x: tensor<1x12x40xi8>, %y: tensor<1x40x24xi8>) -> tensor<1x12x24xi32> {
      %z = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
      %0 = tosa.matmul %x, %y, %z, %z
        : (tensor<1x12x40xi8>, tensor<1x40x24xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x12x24xi32>
      return %0 : tensor<1x12x24xi32>
    }"""
    stablehlo = """
    func.func @net(%x: tensor<12x40xi8>, %y: tensor<40x24xi8>) -> tensor<12x24xi32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<12x40xi8>, tensor<40x24xi8>) -> tensor<12x24xi32>
      return %0 : tensor<12x24xi32>
    }"""
    found = [features_of(text)["net"] for text in (tosa, stablehlo)]
    for features in found:
        assert features["accelerator.macs"] == 12 * 40 * 24
        assert _log(features, "macs_dynamic") == pytest.approx(12 * 40 * 24)
        assert features["accelerator.channels_in"] == 40
        assert features["accelerator.weights"] == 0
    assert [found[0][name] for name in FEATURES] == [found[1][name] for name in FEATURES]


def test_a_kernel_on_memrefs_has_none_of_it() -> None:
    text = """
    func.func @kernel(%a: memref<8xf32>) {
      affine.for %i = 0 to 8 {
        %x = affine.load %a[%i] : memref<8xf32>
        affine.store %x, %a[%i] : memref<8xf32>
      }
      return
    }"""
    assert not any(features_of(text)["kernel"][name] for name in FEATURES)
