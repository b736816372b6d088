"""Closed forms of StableHLO operations, in custom and generic syntax."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from irgauge.featurize import features_of

Work = Callable[[str], dict[str, float]]


def one(operands: str, text: str) -> str:
    """A function with the operands as arguments %0, %1, … and one operation."""
    arguments = ", ".join(f"%{chr(97 + i)}: {t}" for i, t in enumerate(operands.split(" ; ")))
    return f"func.func @f({arguments}) {{\n%r = {text}\nreturn\n}}"


B, M, N, K = 2, 5, 7, 11
DOT = {
    "flops": 2 * B * M * N * K,  # a multiplication and an addition for each point of b, m, n, k
    "loads": 3 * B * M * N * K,  # left, right, accumulator
    "stores": B * M * N * K,
    "bytes": 16 * B * M * N * K,
    "footprint": 4 * (B * M * K + B * K * N + B * M * N),  # inputs + outputs
}
CONV = 2 * 3 * 4 * 5 * 8 * 3 * 3 * 4  # 2 · N · OH · OW · OC · KH · KW · IC / groups, IC = 8, 2 groups
CASES: dict[str, tuple[str, list[str], dict[str, float]]] = {
    "dot_general": (
        f"tensor<{B}x{M}x{K}xf32> ; tensor<{B}x{K}x{N}xf32>",
        [
            f"stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], "
            f"precision = [DEFAULT, DEFAULT] : "
            f"(tensor<{B}x{M}x{K}xf32>, tensor<{B}x{K}x{N}xf32>) -> tensor<{B}x{M}x{N}xf32>",
            f'"stablehlo.dot_general"(%a, %b) <{{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], '
            f"rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}}> : "
            f"(tensor<{B}x{M}x{K}xf32>, tensor<{B}x{K}x{N}xf32>) -> tensor<{B}x{M}x{N}xf32>",
        ],
        DOT,
    ),
    "dot of vectors": (
        "tensor<9xf32> ; tensor<9xf32>",
        [
            "stablehlo.dot %a, %b : (tensor<9xf32>, tensor<9xf32>) -> tensor<f32>",
            '"stablehlo.dot"(%a, %b) : (tensor<9xf32>, tensor<9xf32>) -> tensor<f32>',
        ],
        {"flops": 18, "loads": 27, "stores": 9, "footprint": 76},
    ),
    "integer dot": (
        "tensor<4x6xi8> ; tensor<6x5xi8>",
        ["stablehlo.dot %a, %b : (tensor<4x6xi8>, tensor<6x5xi8>) -> tensor<4x5xi32>"],
        {"flops": 0, "int_ops": 240, "bytes": 120 * (1 + 1 + 4 + 4)},
    ),
    "convolution, strided, padded, grouped": (
        "tensor<3x9x11x8xf32> ; tensor<3x3x4x8xf32>",
        [
            "stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
            "window = {stride = [2, 2], pad = [[0, 0], [0, 0]], rhs_dilate = [1, 1]} "
            "{batch_group_count = 1 : i64, feature_group_count = 2 : i64} : "
            "(tensor<3x9x11x8xf32>, tensor<3x3x4x8xf32>) -> tensor<3x4x5x8xf32>",
            '"stablehlo.convolution"(%a, %b) <{batch_group_count = 1 : i64, dimension_numbers = '
            "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 2 : i64, "
            "padding = dense<0> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>, "
            "window_strides = array<i64: 2, 2>}> : "
            "(tensor<3x9x11x8xf32>, tensor<3x3x4x8xf32>) -> tensor<3x4x5x8xf32>",
            '"stablehlo.convolution"(%a, %b) {batch_group_count = 1 : i64, dimension_numbers = '
            "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, "
            "input_spatial_dimensions = [1, 2], kernel_output_feature_dimension = 3, "
            "kernel_input_feature_dimension = 2, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, "
            "output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 2 : i64, "
            "padding = dense<0> : tensor<2x2xi64>, window_strides = dense<2> : tensor<2xi64>} : "
            "(tensor<3x9x11x8xf32>, tensor<3x3x4x8xf32>) -> tensor<3x4x5x8xf32>",
        ],
        # the windows touch all of the 9 × 11 inputs: (4 - 1) · 2 + 3 = 9, (5 - 1) · 2 + 3 = 11
        {"flops": CONV, "footprint": 4 * (3 * 9 * 11 * 8 + 3 * 3 * 4 * 8 + 3 * 4 * 5 * 8)},
    ),
    "transposed convolution": (
        "tensor<1x4x4x2xf32> ; tensor<3x3x2x5xf32>",
        [
            "stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
            "window = {pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]} "
            "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
            "(tensor<1x4x4x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x8x8x5xf32>",
        ],
        {"flops": 2 * 4 * 4 * 2 * 5 * 3 * 3},  # each input meets each weight once: the holes do no work
    ),
    "reduce, n additions for n elements": (
        "tensor<6x10xf32> ; tensor<f32>",
        [
            "stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1] : "
            "(tensor<6x10xf32>, tensor<f32>) -> tensor<6xf32>",
            '"stablehlo.reduce"(%a, %b) <{dimensions = array<i64: 1>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n'
            "%s = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %s : tensor<f32>\n}) : "
            "(tensor<6x10xf32>, tensor<f32>) -> tensor<6xf32>",
            "stablehlo.reduce(%a init: %b) across dimensions = [1] : (tensor<6x10xf32>, tensor<f32>) -> tensor<6xf32>\n"
            "reducer(%x: tensor<f32>, %y: tensor<f32>) {\n%s = stablehlo.add %x, %y : tensor<f32>\n"
            "stablehlo.return %s : tensor<f32>\n}",
        ],
        {"flops": 60, "loads": 120, "stores": 60, "footprint": 4 * (60 + 6)},
    ),
    "reduce_window": (
        "tensor<1x8x8x3xf32> ; tensor<f32>",
        [
            '"stablehlo.reduce_window"(%a, %b) <{window_dimensions = array<i64: 1, 2, 2, 1>, '
            "window_strides = array<i64: 1, 2, 2, 1>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
            "%s = stablehlo.maximum %x, %y : tensor<f32>\nstablehlo.return %s : tensor<f32>\n}) : "
            "(tensor<1x8x8x3xf32>, tensor<f32>) -> tensor<1x4x4x3xf32>",
        ],
        {"flops": 4 * 4 * 3 * 4, "footprint": 4 * (8 * 8 * 3 + 4 * 4 * 3)},
    ),
    "select_and_scatter": (
        "tensor<8x8xf32> ; tensor<4x4xf32> ; tensor<f32>",
        [
            '"stablehlo.select_and_scatter"(%a, %b, %c) <{window_dimensions = array<i64: 2, 2>, '
            "window_strides = array<i64: 2, 2>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
            "%s = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "stablehlo.return %s : tensor<i1>\n}, {\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
            "%s = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %s : tensor<f32>\n}) : "
            "(tensor<8x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<8x8xf32>",
        ],
        {"flops": 16, "loads": 64 + 2 * 16, "stores": 16},  # 64 positions are compared, 16 sums are scattered
    ),
    "gather": (
        "tensor<100x8xf32> ; tensor<5x1xi32>",
        [
            '"stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
            "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, "
            "slice_sizes = array<i64: 1, 8>}> : (tensor<100x8xf32>, tensor<5x1xi32>) -> tensor<5x8xf32>",
        ],
        {"flops": 0, "loads": 5 + 40, "stores": 40, "footprint": 4 * (5 + 40 + 40)},
    ),
    "scatter": (
        "tensor<100x8xf32> ; tensor<5x1xi32> ; tensor<5x8xf32>",
        [
            '"stablehlo.scatter"(%a, %b, %c) <{scatter_dimension_numbers = #stablehlo.scatter<'
            "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
            "index_vector_dim = 1>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
            "%s = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %s : tensor<f32>\n}) : "
            "(tensor<100x8xf32>, tensor<5x1xi32>, tensor<5x8xf32>) -> tensor<100x8xf32>",
        ],
        {"flops": 40, "loads": 5 + 40 + 40, "stores": 40},
    ),
    "dynamic_slice": (
        "tensor<64x32xf32> ; tensor<i32> ; tensor<i32>",
        [
            "stablehlo.dynamic_slice %a, %b, %c, sizes = [4, 8] : "
            "(tensor<64x32xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>",
            '"stablehlo.dynamic_slice"(%a, %b, %c) <{slice_sizes = array<i64: 4, 8>}> : '
            "(tensor<64x32xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>",
        ],
        {"loads": 32, "stores": 32, "footprint": 256},
    ),
    "dynamic_update_slice, in place": (
        "tensor<64x32xf32> ; tensor<4x8xf32> ; tensor<i32> ; tensor<i32>",
        [
            "stablehlo.dynamic_update_slice %a, %b, %c, %d : "
            "(tensor<64x32xf32>, tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<64x32xf32>",
        ],
        {"loads": 32, "stores": 32, "footprint": 256},
    ),
    "concatenate": (
        "tensor<4x8xf32> ; tensor<2x8xf32>",
        [
            "stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>",
            '"stablehlo.concatenate"(%a, %b) <{dimension = 0 : i64}> : '
            "(tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>",
        ],
        {"loads": 48, "stores": 48, "bytes": 384, "footprint": 384},
    ),
    "pad": (
        "tensor<4x8xf32> ; tensor<f32>",
        [
            "stablehlo.pad %a, %b, low = [1, 0], high = [1, 2], interior = [0, 0] : "
            "(tensor<4x8xf32>, tensor<f32>) -> tensor<6x10xf32>",
            '"stablehlo.pad"(%a, %b) <{edge_padding_high = array<i64: 1, 2>, edge_padding_low = array<i64: 1, 0>, '
            "interior_padding = array<i64: 0, 0>}> : (tensor<4x8xf32>, tensor<f32>) -> tensor<6x10xf32>",
        ],
        {"loads": 32, "stores": 60, "bytes": 4 * (32 + 60)},
    ),
    "transpose": (
        "tensor<4x8xf32>",
        [
            "stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>",
            '"stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<4x8xf32>) -> tensor<8x4xf32>',
        ],
        {"loads": 32, "stores": 32, "footprint": 256},
    ),
    "broadcast_in_dim": (
        "tensor<8xf32>",
        [
            "stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>",
            '"stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 1>}> : '
            "(tensor<8xf32>) -> tensor<4x8xf32>",
        ],
        {"loads": 32, "stores": 32, "footprint": 4 * (8 + 32)},
    ),
    "reshape is free": (
        "tensor<4x8xf32>",
        [
            "stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<32xf32>",
            '"stablehlo.reshape"(%a) : (tensor<4x8xf32>) -> tensor<32xf32>',
        ],
        {"flops": 0, "bytes": 0, "loop_iterations": 0},
    ),
    "slice reads what it keeps": (
        "tensor<10x8xf32>",
        [
            "stablehlo.slice %a [2:8:2, 0:4] : (tensor<10x8xf32>) -> tensor<3x4xf32>",
            '"stablehlo.slice"(%a) <{limit_indices = array<i64: 8, 4>, start_indices = array<i64: 2, 0>, '
            "strides = array<i64: 2, 1>}> : (tensor<10x8xf32>) -> tensor<3x4xf32>",
        ],
        {"loads": 12, "stores": 12, "footprint": 96},
    ),
    "reverse": (
        "tensor<4x8xf32>",
        ["stablehlo.reverse %a, dims = [1] : tensor<4x8xf32>"],
        {"loads": 32, "stores": 32, "footprint": 256},
    ),
    "iota": (
        "tensor<1xf32>",
        [
            "stablehlo.iota dim = 0 : tensor<32xi32>",
            '"stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<32xi32>',
        ],
        {"loads": 0, "stores": 32, "bytes": 128},
    ),
    "sort: n log2 n comparisons": (
        "tensor<3x100xf32>",
        [
            '"stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({\n'
            "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
            "%s = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "stablehlo.return %s : tensor<i1>\n}) : (tensor<3x100xf32>) -> tensor<3x100xf32>",
        ],
        {"loads": 3 * 100 * 7, "stores": 3 * 100 * 7},  # ceil(log2 100) = 7 passes
    ),
    "fft: 5 n log2 n": (
        "tensor<4x64xcomplex<f32>>",
        ["stablehlo.fft %a, type = FFT, length = [64] : (tensor<4x64xcomplex<f32>>) -> tensor<4x64xcomplex<f32>>"],
        {"flops": 5 * 4 * 64 * 6},
    ),
    "addition": (
        "tensor<4x8xf32> ; tensor<4x8xf32>",
        [
            "stablehlo.add %a, %b : tensor<4x8xf32>",
            '"stablehlo.add"(%a, %b) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>',
        ],
        {"flops": 32, "loads": 64, "stores": 32, "bytes": 384, "footprint": 384},
    ),
    "exponential": (
        "tensor<4x8xf32>",
        ["stablehlo.exponential %a : tensor<4x8xf32>"],
        {"flops": 32, "math_calls": 32, "bytes": 256},
    ),
    "comparison": (
        "tensor<4x8xf32> ; tensor<4x8xf32>",
        ["stablehlo.compare LT, %a, %b, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>"],
        {"flops": 0, "int_ops": 0, "loads": 64, "stores": 32, "bytes": 256 + 32 / 8},
    ),
    "integer comparison": (
        "tensor<4x8xi32> ; tensor<4x8xi32>",
        ["stablehlo.compare LT, %a, %b, SIGNED : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>"],
        {"int_ops": 32},
    ),
    "conversion": (
        "tensor<4x8xf32>",
        ["stablehlo.convert %a : (tensor<4x8xf32>) -> tensor<4x8xf16>"],
        {"flops": 0, "bytes": 32 * 6},
    ),
    "scalar tensors are registers": (
        "tensor<f32> ; tensor<f32>",
        ["stablehlo.divide %a, %b : tensor<f32>"],
        {"flops": 1, "divs": 1, "bytes": 0, "loop_iterations": 0},
    ),
    "batch norm: 3 an element, 3 a channel": (
        "tensor<2x6x5xf32> ; tensor<6xf32> ; tensor<6xf32> ; tensor<6xf32> ; tensor<6xf32>",
        [
            '"stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : '
            "(tensor<2x6x5xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x5xf32>",
        ],
        {"flops": 3 * 60 + 3 * 6},
    ),
    "einsum": (
        "tensor<4x6xf32> ; tensor<6x5xf32>",
        [
            'stablehlo.einsum %a, %b, config = "ab,bc->ac" : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>',
        ],
        {"flops": 240},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_closed_forms_in_every_syntax(name: str, work: Work) -> None:
    operands, forms, expected = CASES[name]
    for form in forms:
        found = work(one(operands, form))
        assert {k: found[k] for k in expected} == expected, form


@pytest.mark.parametrize("name", [n for n, (_, forms, _) in CASES.items() if len(forms) > 1])
def test_both_syntaxes_give_the_same_features(name: str) -> None:
    operands, forms, _ = CASES[name]
    first, *others = (features_of(one(operands, form)) for form in forms)
    for other in others:
        assert other == first


def test_dynamic_extents_count_apart() -> None:
    found = features_of(one("tensor<?x8xf32> ; tensor<?x8xf32>", "stablehlo.add %a, %b : tensor<?x8xf32>"))["f"]
    assert found["work.flops"] == 16 * 8  # an unknown extent counts as 16
    assert found["loops.unknown"] == 1
    assert found["work.unknown_trip"] == 1


LOOP = """func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %start = stablehlo.constant dense<START> : tensor<i32>
  %step = stablehlo.constant dense<STEP> : tensor<i32>
  %end = stablehlo.constant dense<END> : tensor<i32>
  %r:3 = stablehlo.while(%i = %start, %v = %x, %n = %end) : tensor<i32>, tensor<8xf32>, tensor<i32>
    cond {
    %c = stablehlo.compare RELATION, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %w = stablehlo.add %v, %v : tensor<8xf32>
    %j = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %j, %w, %n : tensor<i32>, tensor<8xf32>, tensor<i32>
  }
  return %r#1 : tensor<8xf32>
}"""


@pytest.mark.parametrize(
    ("start", "step", "end", "relation", "trips"),
    [(0, 1, 10, "LT", 10), (0, 3, 10, "LE", 4), (20, -2, 10, "GT", 5), (5, 1, 5, "LT", 0), (0, 2, 8, "NE", 4)],
)
def test_countable_loops_run_as_often_as_they_say(start: int, step: int, end: int, relation: str, trips: int) -> None:
    text = LOOP.replace("START", str(start)).replace("STEP", str(step)).replace("END", str(end))
    found = features_of(text.replace("RELATION", relation))["f"]
    assert found["work.flops"] == 8 * trips
    assert (found["loops.while"], found["loops.unknown"]) == (1, 0)


def test_loop_with_a_limit_from_outside_is_unknown() -> None:
    text = LOOP.replace("RELATION", "LT").replace("STEP", "1").replace("START", "0")
    text = text.replace("(%x: tensor<8xf32>)", "(%x: tensor<8xf32>, %m: tensor<i32>)").replace("%n = %end", "%n = %m")
    found = features_of(text.replace("END", "3"))["f"]
    assert found["work.flops"] == 8 * 16
    assert found["loops.unknown"] == 1
