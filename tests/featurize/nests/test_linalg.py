"""Closed forms of linalg and tensor operations; every form that mlir-opt prints gives the same."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from irgauge.featurize import features_of

Work = Callable[[str], dict[str, float]]


def one(types: str, body: str) -> str:
    arguments = ", ".join(f"%{chr(97 + i)}: {t}" for i, t in enumerate(types.split()))
    return f"func.func @f({arguments}) {{\n  {body}\n  return\n}}"


def named(op: str, *shapes: str, attributes: str = "", kind: str = "memref") -> tuple[str, str]:
    """(argument types, a named op whose last operand is the output)."""
    types = [f"{kind}<{s}>" if "x" in s else s for s in shapes]
    names = [f"%{chr(97 + i)}" for i in range(len(types))]
    ins = f"ins({', '.join(names[:-1])} : {', '.join(types[:-1])}) " if len(types) > 1 else ""
    return " ".join(types), f"linalg.{op} {attributes} {ins}outs({names[-1]} : {types[-1]})"


STRIDED = "{dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}"
DILATED = "{dilations = dense<[2, 1]> : tensor<2xi64>, strides = dense<[1, 2]> : tensor<2xi64>}"
ONE = "{dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}"
THREE = "{dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>}"
CASES: dict[str, tuple[tuple[str, str], dict[str, float]]] = {
    "matmul": (
        named("matmul", "4x6xf32", "6x5xf32", "4x5xf32"),
        {"flops": 240, "loads": 360, "stores": 120, "footprint": 4 * (24 + 30 + 20)},
    ),
    "batch_matmul": (named("batch_matmul", "3x4x6xf32", "3x6x5xf32", "3x4x5xf32"), {"flops": 720}),
    "batch_reduce_matmul": (named("batch_reduce_matmul", "3x4x6xf32", "3x6x5xf32", "4x5xf32"), {"flops": 720}),
    "quantized_matmul": (
        named("quantized_matmul", "4x6xi8", "6x5xi8", "i32", "i32", "4x5xi32"),
        {"int_ops": 240, "flops": 0},
    ),
    "matvec": (named("matvec", "4x6xf32", "6xf32", "4xf32"), {"flops": 48}),
    "vecmat": (named("vecmat", "6xf32", "6x4xf32", "4xf32"), {"flops": 48}),
    "mmt4d": (named("mmt4d", "2x3x4x5xf32", "6x3x7x5xf32", "2x6x4x7xf32"), {"flops": 2 * 2 * 3 * 4 * 5 * 6 * 7}),
    "batch_mmt4d": (
        named("batch_mmt4d", "2x2x3x4x5xf32", "2x6x3x7x5xf32", "2x2x6x4x7xf32"),
        {"flops": 2 * 2 * 2 * 3 * 4 * 5 * 6 * 7},
    ),
    "contract": (
        named(
            "contract", "4x6xf32", "5x6xf32", "4x5xf32",
            attributes="indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, "
            "affine_map<(m, n, k) -> (m, n)>]",
        ),
        {"flops": 240, "footprint": 4 * (24 + 30 + 20)},
    ),
    "conv_2d_nhwc_hwcf, strided": (
        named("conv_2d_nhwc_hwcf", "1x9x9x3xf32", "3x3x3x8xf32", "1x4x4x8xf32", attributes=STRIDED),
        {"flops": 2 * 16 * 8 * 27, "footprint": 4 * (243 + 216 + 128)},
    ),
    "conv_2d_nchw_fchw, dilated": (
        named("conv_2d_nchw_fchw", "1x3x8x9xf32", "8x3x3x3xf32", "1x8x4x4xf32", attributes=DILATED),
        {"flops": 2 * 16 * 8 * 27, "footprint": 4 * (216 + 216 + 128)},
    ),
    "conv_2d_ngchw_gfchw": (
        named("conv_2d_ngchw_gfchw", "1x2x3x6x6xf32", "2x8x3x3x3xf32", "1x2x8x4x4xf32",
              attributes=STRIDED.replace("<2> :", "<1> :")),
        {"flops": 2 * 2 * 16 * 8 * 27, "footprint": 4 * (216 + 432 + 256)},
    ),
    "conv_2d_nhwc_hwcf_q": (
        named("conv_2d_nhwc_hwcf_q", "1x9x9x3xi8", "3x3x3x8xi8", "i32", "i32", "1x4x4x8xi32", attributes=STRIDED),
        {"int_ops": 2 * 16 * 8 * 27},
    ),
    "conv_1d": (named("conv_1d", "10xf32", "3xf32", "8xf32"), {"flops": 48}),
    "conv_3d_ndhwc_dhwcf": (
        named("conv_3d_ndhwc_dhwcf", "1x4x4x4x2xf32", "2x2x2x2x5xf32", "1x3x3x3x5xf32", attributes=THREE),
        {"flops": 2 * 27 * 5 * 16},
    ),
    "depthwise_conv_2d_nhwc_hwcm": (
        named("depthwise_conv_2d_nhwc_hwcm", "1x9x9x4xf32", "3x3x4x2xf32", "1x4x4x4x2xf32", attributes=STRIDED),
        {"flops": 2 * 16 * 8 * 9, "footprint": 4 * (324 + 72 + 128)},
    ),
    "depthwise_conv_1d_ncw_cw": (
        named("depthwise_conv_1d_ncw_cw", "1x4x10xf32", "4x3xf32", "1x4x8xf32", attributes=ONE),
        {"flops": 2 * 8 * 4 * 3},
    ),
    "pooling_nhwc_max, strided": (
        named("pooling_nhwc_max", "1x9x9x3xf32", "3x3xf32", "1x4x4x3xf32", attributes=STRIDED),
        {"flops": 16 * 3 * 9, "footprint": 4 * (243 + 48)},  # the window is a shape: it is not read
    ),
    "pooling_ndhwc_sum": (
        named("pooling_ndhwc_sum", "1x4x4x4x2xf32", "2x2x2xf32", "1x3x3x3x2xf32", attributes=THREE),
        {"flops": 27 * 2 * 8},
    ),
    "reduce": (
        ("memref<4x8xf32> memref<4xf32>",
         "linalg.reduce { arith.mulf } ins(%a : memref<4x8xf32>) outs(%b : memref<4xf32>) dimensions = [1]"),
        {"flops": 32, "loads": 64, "stores": 32, "footprint": 4 * (32 + 4)},
    ),
    "reduce with a body of two operations": (
        ("memref<4x8xf32> memref<4xf32>",
         "linalg.reduce ins(%a : memref<4x8xf32>) outs(%b : memref<4xf32>) dimensions = [1] (%x: f32, %s: f32) {\n"
         "%m = arith.mulf %x, %x : f32\n%t = arith.addf %m, %s : f32\nlinalg.yield %t : f32 }"),
        {"flops": 64},
    ),
    "map: the body decides": (
        ("memref<4x8xf32> memref<4x8xf32>",
         "linalg.map { math.exp } ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>)"),
        {"flops": 32, "math_calls": 32, "loads": 32, "stores": 32},
    ),
    "fill": (named("fill", "f32", "4x8xf32"), {"flops": 0, "loads": 0, "stores": 32}),
    "copy": (named("copy", "4x8xf32", "4x8xf32"), {"loads": 32, "stores": 32, "footprint": 256}),
    "transpose": (
        ("memref<4x8xf32> memref<8x4xf32>",
         "linalg.transpose ins(%a : memref<4x8xf32>) outs(%b : memref<8x4xf32>) permutation = [1, 0]"),
        {"loads": 32, "stores": 32, "footprint": 256},
    ),
    "broadcast": (
        ("memref<8xf32> memref<4x8xf32>",
         "linalg.broadcast ins(%a : memref<8xf32>) outs(%b : memref<4x8xf32>) dimensions = [0]"),
        {"loads": 32, "stores": 32, "footprint": 4 * (8 + 32)},
    ),
    "named elementwise": (named("exp", "4x8xf32", "4x8xf32"), {"math_calls": 32, "bytes": 256}),
    "integer elementwise": (named("mul", "4x8xi32", "4x8xi32", "4x8xi32"), {"int_ops": 32, "flops": 0}),
    "elementwise kind": (
        named("elementwise", "4x8xf32", "4x8xf32", "4x8xf32", attributes="kind=#linalg.elementwise_kind<div>"),
        {"flops": 32, "divs": 32, "bytes": 384},
    ),
    "elementwise kind with maps": (
        named("elementwise", "8x4xf32", "8xf32", "4x8xf32",
              attributes="kind=#linalg.elementwise_kind<add> indexing_maps = [affine_map<(i, j) -> (j, i)>, "
              "affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>]"),
        {"flops": 32, "footprint": 4 * (32 + 8 + 32)},
    ),
    "softmax: 5 an element": (
        ("tensor<4x8xf32> tensor<4x8xf32>",
         "%r = linalg.softmax dimension(1) ins(%a : tensor<4x8xf32>) outs(%b : tensor<4x8xf32>) -> tensor<4x8xf32>"),
        {"flops": 160, "math_calls": 32, "divs": 32},
    ),
    "winograd filter: 6 x 3 by 3 x 3, then 6 x 3 by 3 x 6, a filter and channel": (
        ("tensor<2x3x3x5xf32> tensor<6x6x5x2xf32>",
         "%r = linalg.winograd_filter_transform fmr(F_4_3) ins(%a : tensor<2x3x3x5xf32>) "
         "outs(%b : tensor<6x6x5x2xf32>) -> tensor<6x6x5x2xf32>"),
        {"flops": 2 * 5 * 2 * (6 * 3 * 3 + 6 * 3 * 6)},
    ),
    "pack": (
        ("tensor<30x16xf32> tensor<4x2x8x8xf32> f32",
         "%r = linalg.pack %a padding_value(%c : f32) inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %b : "
         "tensor<30x16xf32> -> tensor<4x2x8x8xf32>"),
        {"flops": 0, "loads": 512, "stores": 512},  # the packed side, padding included
    ),
    "unpack": (
        ("tensor<4x2x8x8xf32> tensor<32x16xf32>",
         "%r = linalg.unpack %a inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %b : "
         "tensor<4x2x8x8xf32> -> tensor<32x16xf32>"),
        {"loads": 512, "stores": 512, "footprint": 4096},
    ),
    "arith on tensors": (
        ("tensor<4x8xf32> tensor<4x8xf32>", "%r = arith.addf %a, %b : tensor<4x8xf32>"),
        {"flops": 32, "loads": 64, "stores": 32},
    ),
    "math on tensors": (("tensor<4x8xf32>", "%r = math.tanh %a : tensor<4x8xf32>"), {"math_calls": 32, "bytes": 256}),
    "arith on vectors has no memory": (
        ("vector<4x8xf32> vector<4x8xf32>", "%r = arith.addf %a, %b : vector<4x8xf32>"),
        {"flops": 32, "bytes": 0, "loop_iterations": 0},
    ),
    "tensor.pad": (
        ("tensor<4x8xf32> f32",
         "%r = tensor.pad %a low[1, 0] high[1, 2] {\n^bb0(%i: index, %j: index):\ntensor.yield %b : f32\n} : "
         "tensor<4x8xf32> to tensor<6x10xf32>"),
        {"loads": 32, "stores": 60},
    ),
    "tensor.extract_slice is a view": (
        ("tensor<8x8xf32>", "%s = tensor.extract_slice %a[2, 4] [4, 4] [1, 1] : tensor<8x8xf32> to tensor<4x4xf32>\n"
         "%r = arith.addf %s, %s : tensor<4x4xf32>"),
        {"flops": 16, "loads": 32, "stores": 16, "footprint": 128},
    ),
    "tensor.insert_slice is in place": (
        ("tensor<4x4xf32> tensor<8x8xf32>",
         "%r = tensor.insert_slice %a into %b[2, 4] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<8x8xf32>"),
        {"loads": 16, "stores": 16, "footprint": 128},
    ),
    "tensor.concat": (
        ("tensor<4x8xf32> tensor<2x8xf32>",
         "%r = tensor.concat dim(0) %a, %b : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>"),
        {"loads": 48, "stores": 48},
    ),
    "tensor reshapes are free": (
        ("tensor<4x8xf32>", "%r = tensor.collapse_shape %a [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>"),
        {"bytes": 0, "loop_iterations": 0},
    ),
    "memref.copy": (
        ("memref<4x8xf32> memref<4x8xf32>", "memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32>"),
        {"loads": 32, "stores": 32, "footprint": 256},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_closed_forms(name: str, work: Work) -> None:
    (types, body), expected = CASES[name]
    found = work(one(types, body))
    assert {k: found[k] for k in expected} == expected


def test_every_print_gives_the_same(mlir_opt: Callable[..., str]) -> None:
    text = "\n".join(one(*case).replace("@f(", f"@f{i}(") for i, (case, _) in enumerate(CASES.values()))
    expected = features_of(text)
    for arguments in ((), ("--mlir-print-op-generic",), ("--mlir-print-local-scope",)):
        printed = features_of(mlir_opt(text, *arguments))
        for i, name in enumerate(CASES):
            assert printed[f"f{i}"] == expected[f"f{i}"], (name, arguments)


def test_destinations_on_tensors_are_one_buffer() -> None:
    text = one(
        "tensor<4x6xf32> tensor<6x5xf32> f32",
        """%e = tensor.empty() : tensor<4x5xf32>
  %z = linalg.fill ins(%c : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %m = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%z : tensor<4x5xf32>) -> tensor<4x5xf32>
  %n = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%z : tensor<4x5xf32>) -> tensor<4x5xf32>""",
    )
    found = features_of(text)["f"]
    # fill and the first product share a buffer; the second writes to a destination that is taken, so to a copy
    assert found["access.footprint_bytes"] == 4 * (24 + 30 + 20 + 20)


def test_misfitting_attributes_count_as_one_operation() -> None:
    body = "linalg.transpose ins(%a : memref<4x8xf32>) outs(%b : memref<8x4xf32>) permutation = [1, 0, 2]"
    text = one("memref<4x8xf32> memref<8x4xf32>", body)
    found = features_of(text)["f"]
    assert (found["loops.count"], found["ops.total"]) == (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        '%r = "tosa.tile"(%a) : (tensor<0x4xf32>) -> tensor<8x4xf32>',
        '%r = "stablehlo.dot_general"(%a) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [7]>} : '
        "(tensor<0x4xf32>) -> tensor<4xf32>",
        '%r = "stablehlo.convolution"(%a, %a) {dimension_numbers = #stablehlo.conv<[b]x[o]->[f]>} : '
        "(tensor<0x4xf32>, tensor<0x4xf32>) -> tensor<4xf32>",
        '%r = "torch.aten.cat"(%a, %a) : (tensor<0x4xf32>, tensor<0x4xf32>) -> tensor<4xf32>',
        '"tt.dot"() : () -> ()',
        '%r = "tt.load"() : () -> tensor<4xf32>',
        '%r = "stablehlo.while"(%a) ({\n^bb0(%x: tensor<0x4xf32>):\n}, {\n^bb0(%x: tensor<0x4xf32>):\n}) : '
        "(tensor<0x4xf32>) -> tensor<0x4xf32>",
        'linalg.generic {indexing_maps = [affine_map<(i)[s] -> (i + s)>], iterator_types = ["parallel"]} '
        "outs(%a : tensor<0x4xf32>) {\n^bb0(%x: f32):\nlinalg.yield %x : f32\n}",
    ],
)
def test_operations_that_do_not_fit_are_counted_and_finite(text: str) -> None:
    features = features_of(one("tensor<0x4xf32>", text))["f"]
    assert features["ops.total"] >= 1
    assert all(math.isfinite(v) for v in features.values())


def test_attributes_behind_an_alias_are_the_operations_own() -> None:
    maps = "indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>]"
    own = maps + ', iterator_types = ["reduction"]'
    body = """func.func @f(%a: memref<32xi32>, %x: memref<i32>) {
  linalg.generic @TRAIT@ ins(%a : memref<32xi32>) outs(%x : memref<i32>) {
  ^bb0(%p: i32, %q: i32):
    %s = arith.addi %p, %q : i32
    linalg.yield %s : i32
  }
  return
}
"""
    inline = features_of(body.replace("@TRAIT@", f"{{{own}}}"))
    aliased = features_of(f"#trait = {{{own}}}\n" + body.replace("@TRAIT@", "#trait"))
    assert aliased == inline
    assert inline["f"]["work.int_ops"] == 32
