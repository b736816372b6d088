"""Bodies that named linalg operations have in the generic print."""

import pytest

from irgauge.featurize.implied_bodies import implied_body
from irgauge.featurize.inspect import facts
from irgauge.featurize.reader import read


@pytest.mark.parametrize(
    ("name", "elements", "text", "expected"),
    [
        ("linalg.matmul", ["f32"] * 3, "", "arith.mulf arith.addf linalg.yield"),
        ("linalg.matmul", ["i8", "i8", "i32"], "", "arith.extsi arith.extsi arith.muli arith.addi linalg.yield"),
        ("linalg.matmul", ["f16", "f64", "f32"], "", "arith.extf arith.truncf arith.mulf arith.addf linalg.yield"),
        (
            "linalg.matmul",
            ["i16", "i64", "f32"],
            "{cast = #linalg.type_fn<cast_unsigned>}",
            "arith.uitofp arith.uitofp arith.mulf arith.addf linalg.yield",
        ),
        ("linalg.conv_2d_nhwc_hwcf", ["f32"] * 3, "", "arith.mulf arith.addf linalg.yield"),
        ("linalg.pooling_nhwc_max_unsigned", ["i32"] * 3, "", "arith.maxui linalg.yield"),
        ("linalg.fill", ["f32", "f32"], "", "linalg.yield"),
        ("linalg.copy", ["f32", "bf16"], "", "arith.truncf linalg.yield"),
        ("linalg.exp", ["f32", "f32"], "", "math.exp linalg.yield"),
        ("linalg.div", ["i32"] * 3, "", "arith.divsi linalg.yield"),
        ("linalg.elementwise", ["f32"] * 2, " kind=#linalg.elementwise_kind<tanh> ins", "math.tanh linalg.yield"),
        ("linalg.map", ["f32"] * 3, " { arith.addf } ins", "arith.addf linalg.yield"),
        ("linalg.reduce", ["f32"] * 2, " { arith.maximumf {fastmath = #f} } ins", "arith.maximumf linalg.yield"),
        (
            "linalg.quantized_matmul",
            ["i8", "i8", "i32", "i32", "i32"],
            "",
            "arith.extsi arith.subi arith.extsi arith.subi arith.muli arith.addi linalg.yield",
        ),
    ],
)
def test_body(name, elements, text, expected):
    body = implied_body(name, elements, text)
    assert " ".join(op.name for op in body) == expected


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("linalg.unknown", ["f32"]),
        ("arith.addf", ["f32"]),
        ("linalg.index", []),
        ("linalg.pack", ["f32"]),
    ],
)
def test_no_body(name, elements):
    assert implied_body(name, elements, "") is None


def test_facts_count_a_body_as_implied():
    program = read(
        "func.func @f(%a: memref<4x4xf16>, %c: memref<4x4xf32>) {\n"
        "  linalg.matmul ins(%a, %a : memref<4x4xf16>, memref<4x4xf16>) outs(%c : memref<4x4xf32>)\n  return\n}\n"
    )
    found = facts(program)
    assert found["num_ops"] == 3
    assert found["implied_ops"] == {
        "arith.addf": 1, "arith.extf": 2, "arith.mulf": 1, "builtin.module": 1, "linalg.yield": 1,
    }  # fmt: skip
    assert (found["num_blocks"], found["num_block_args"], found["max_region_depth"]) == (3, 5, 3)
    assert (found["num_results"], found["num_operands"]) == (4, 3 + 2 + 4 + 1)
