"""Closed forms of TOSA operations; every form that mlir-opt prints gives the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize import features_of

Work = Callable[[str], dict[str, float]]

ZP = """  %zi = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %zf = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %z32 = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %shift = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
"""


def one(types: str, body: str) -> str:
    arguments = ", ".join(f"%{chr(97 + i)}: tensor<{t}>" for i, t in enumerate(types.split()))
    return f"func.func @f({arguments}) {{\n{ZP}  {body}\n  return\n}}"


CASES: dict[str, tuple[str, str, dict[str, float]]] = {
    "conv2d int8: integer work, the bias comes first": (
        "1x8x8x3xi8 16x3x3x3xi8 16xi32",
        "%r = tosa.conv2d %a, %b, %c, %zi, %zi {acc_type = i32, dilation = array<i64: 1, 1>, "
        "pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x8x8x3xi8>, tensor<16x3x3x3xi8>, "
        "tensor<16xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x8x8x16xi32>",
        # 2 · OH · OW · OC · KH · KW · IC; footprint: int8 image and weight, int32 bias and result
        {"int_ops": 2 * 64 * 16 * 27, "flops": 0, "footprint": 192 + 432 + 64 + 4096},
    ),
    "rescale: six operations an element": (
        "1x8x8x16xi32",
        '%m = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>\n'
        "%r = tosa.rescale %a, %m, %shift, %z32, %zi {input_unsigned = false, output_unsigned = false, "
        "per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true} : (tensor<1x8x8x16xi32>, tensor<1xi32>, "
        "tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x8x8x16xi8>",
        {"int_ops": 5 * 1024, "bytes": 1024 * 5},  # the sixth is a cast
    ),
    "depthwise": (
        "1x8x8x4xf32 3x3x4x2xf32 8xf32",
        "%r = tosa.depthwise_conv2d %a, %b, %c, %zf, %zf {acc_type = f32, dilation = array<i64: 1, 1>, "
        "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>, "
        "tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x6x6x8xf32>",
        {"flops": 2 * 36 * 4 * 2 * 9, "footprint": 4 * (256 + 72 + 8 + 288)},
    ),
    "transpose_conv2d: each input meets each weight": (
        "1x4x4x2xf32 5x3x3x2xf32 5xf32",
        "%r = tosa.transpose_conv2d %a, %b, %c, %zf, %zf {acc_type = f32, out_pad = array<i64: 0, 0, 0, 0>, "
        "stride = array<i64: 2, 2>} : (tensor<1x4x4x2xf32>, tensor<5x3x3x2xf32>, tensor<5xf32>, tensor<1xf32>, "
        "tensor<1xf32>) -> tensor<1x9x9x5xf32>",
        {"flops": 2 * 16 * 2 * 5 * 9},
    ),
    "conv3d": (
        "1x4x4x4x2xf32 5x2x2x2x2xf32 5xf32",
        "%r = tosa.conv3d %a, %b, %c, %zf, %zf {acc_type = f32, dilation = array<i64: 1, 1, 1>, "
        "pad = array<i64: 0, 0, 0, 0, 0, 0>, stride = array<i64: 1, 1, 1>} : (tensor<1x4x4x4x2xf32>, "
        "tensor<5x2x2x2x2xf32>, tensor<5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x3x3x3x5xf32>",
        {"flops": 2 * 27 * 5 * 8 * 2, "footprint": 4 * (128 + 80 + 5 + 135)},
    ),
    "matmul": (
        "2x5x11xf32 2x11x7xf32",
        "%r = tosa.matmul %a, %b, %zf, %zf : (tensor<2x5x11xf32>, tensor<2x11x7xf32>, tensor<1xf32>, tensor<1xf32>) "
        "-> tensor<2x5x7xf32>",
        {"flops": 2 * 2 * 5 * 7 * 11, "footprint": 4 * (110 + 154 + 70)},
    ),
    "max_pool2d": (
        "1x8x8x3xf32",
        "%r = tosa.max_pool2d %a {kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, "
        "stride = array<i64: 2, 2>} : (tensor<1x8x8x3xf32>) -> tensor<1x4x4x3xf32>",
        {"flops": 192, "footprint": 4 * (192 + 48)},
    ),
    "avg_pool2d": (
        "1x8x8x3xf32",
        "%r = tosa.avg_pool2d %a, %zf, %zf {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, "
        "stride = array<i64: 2, 2>} : (tensor<1x8x8x3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x3xf32>",
        {"flops": 192 + 48, "divs": 48},
    ),
    "reduce_sum keeps the dimension": (
        "4x8xf32",
        "%r = tosa.reduce_sum %a {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x1xf32>",
        {"flops": 32, "footprint": 4 * (32 + 4)},
    ),
    "argmax": (
        "4x8xf32",
        "%r = tosa.argmax %a {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4xi32>",
        {"loads": 64, "stores": 32},
    ),
    "addition with broadcast": (
        "4x8xf32 1x8xf32",
        "%r = tosa.add %a, %b : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>",
        {"flops": 32, "loads": 64, "footprint": 4 * (32 + 8 + 32)},
    ),
    "multiplication": (
        "4x8xf32 4x8xf32",
        "%r = tosa.mul %a, %b, %shift : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<1xi8>) -> tensor<4x8xf32>",
        {"flops": 32, "bytes": 384},
    ),
    "clamp: two comparisons": (
        "4x8xf32",
        "%r = tosa.clamp %a {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<4x8xf32>) -> tensor<4x8xf32>",
        {"flops": 64, "bytes": 256},
    ),
    "table": (
        "4x8xi8 256xi8",
        "%r = tosa.table %a, %b : (tensor<4x8xi8>, tensor<256xi8>) -> tensor<4x8xi8>",
        {"loads": 64, "stores": 32, "flops": 0},
    ),
    "sigmoid": (
        "4x8xf32",
        "%r = tosa.sigmoid %a : (tensor<4x8xf32>) -> tensor<4x8xf32>",
        {"math_calls": 32},
    ),
    "concat": (
        "4x8xf32 2x8xf32",
        "%r = tosa.concat %a, %b {axis = 0 : i32} : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>",
        {"loads": 48, "stores": 48},
    ),
    "pad": (
        "4x8xf32",
        "%p = tosa.const_shape {values = dense<[1, 1, 0, 2]> : tensor<4xindex>} : () -> !tosa.shape<4>\n"
        "%r = tosa.pad %a, %p, %zf : (tensor<4x8xf32>, !tosa.shape<4>, tensor<1xf32>) -> tensor<6x10xf32>",
        {"loads": 32, "stores": 60},
    ),
    "reshape is free": (
        "4x8xf32",
        "%s = tosa.const_shape {values = dense<[32]> : tensor<1xindex>} : () -> !tosa.shape<1>\n"
        "%r = tosa.reshape %a, %s : (tensor<4x8xf32>, !tosa.shape<1>) -> tensor<32xf32>",
        {"bytes": 0, "loop_iterations": 0},
    ),
    "transpose": (
        "4x8xf32",
        "%r = tosa.transpose %a {perms = array<i32: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>",
        {"loads": 32, "stores": 32, "footprint": 256},
    ),
    "tile": (
        "4x8xf32",
        "%s = tosa.const_shape {values = dense<[2, 3]> : tensor<2xindex>} : () -> !tosa.shape<2>\n"
        "%r = tosa.tile %a, %s : (tensor<4x8xf32>, !tosa.shape<2>) -> tensor<8x24xf32>",
        {"loads": 192, "stores": 192, "footprint": 4 * (32 + 192)},
    ),
    "resize, bilinear: 7 flops an output": (
        "1x4x4x2xf32",
        "%s = tosa.const_shape {values = dense<[2, 1, 2, 1]> : tensor<4xindex>} : () -> !tosa.shape<4>\n"
        "%o = tosa.const_shape {values = dense<0> : tensor<2xindex>} : () -> !tosa.shape<2>\n"
        "%b_ = tosa.const_shape {values = dense<1> : tensor<2xindex>} : () -> !tosa.shape<2>\n"
        "%r = tosa.resize %a, %s, %o, %b_ {mode = BILINEAR} : (tensor<1x4x4x2xf32>, !tosa.shape<4>, !tosa.shape<2>, "
        "!tosa.shape<2>) -> tensor<1x8x8x2xf32>",
        {"flops": 7 * 128, "loads": 4 * 128, "stores": 128},
    ),
    "gather": (
        "2x10x8xf32 2x5xi32",
        "%r = tosa.gather %a, %b : (tensor<2x10x8xf32>, tensor<2x5xi32>) -> tensor<2x5x8xf32>",
        {"loads": 10 + 80, "stores": 80},
    ),
    "scatter": (
        "2x10x8xf32 2x5xi32 2x5x8xf32",
        "%r = tosa.scatter %a, %b, %c : (tensor<2x10x8xf32>, tensor<2x5xi32>, tensor<2x5x8xf32>) -> tensor<2x10x8xf32>",
        {"loads": 10 + 80, "stores": 80},
    ),
    "integer addition": (
        "4x8xi32 4x8xi32",
        "%r = tosa.add %a, %b : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>",
        {"flops": 0, "int_ops": 32},
    ),
    "integer division": (
        "4x8xi32 4x8xi32",
        "%r = tosa.intdiv %a, %b : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>",
        {"divs": 32},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_closed_forms(name: str, work: Work) -> None:
    types, body, expected = CASES[name]
    found = work(one(types, body))
    assert {k: found[k] for k in expected} == expected


def test_every_print_gives_the_same(mlir_opt: Callable[..., str]) -> None:
    functions = [one(t, b).replace("@f(", f"@f{i}(") for i, (t, b, _) in enumerate(CASES.values())]
    text = "\n".join(functions)
    expected = features_of(text)
    for arguments in ((), ("--mlir-print-op-generic",), ("--mlir-print-debuginfo", "--mlir-print-op-generic")):
        assert features_of(mlir_opt(text, *arguments)) == expected, arguments


def test_loop_with_a_constant_limit(work: Work) -> None:
    text = """func.func @f(%x: tensor<8xf32>) {
  %c0 = "tosa.const"() <{values = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %c1 = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %c6 = "tosa.const"() <{values = dense<6> : tensor<i32>}> : () -> tensor<i32>
  %r:2 = "tosa.while_loop"(%c0, %x) ({
  ^bb0(%i: tensor<i32>, %v: tensor<8xf32>):
    %c = "tosa.greater"(%c6, %i) : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "tosa.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %v: tensor<8xf32>):
    %j = "tosa.add"(%i, %c1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %w = "tosa.add"(%v, %v) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    "tosa.yield"(%j, %w) : (tensor<i32>, tensor<8xf32>) -> ()
  }) : (tensor<i32>, tensor<8xf32>) -> (tensor<i32>, tensor<8xf32>)
  return
}"""
    assert work(text)["flops"] == 6 * 8
