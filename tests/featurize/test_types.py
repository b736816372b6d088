"""Shapes, layouts and bits from type text."""

import pytest

from irgauge.featurize.types import parse_type, scalar_bits, split_types, with_element


@pytest.mark.parametrize(
    ("text", "kind", "shape", "element", "bits"),
    [
        ("memref<4x8xf32>", "memref", (4, 8), "f32", 32),
        ("tensor<?x3xbf16>", "tensor", (None, 3), "bf16", 16),
        ("tensor<*xi8>", "tensor", None, "i8", 8),
        ("tensor<f64>", "tensor", (), "f64", 64),
        ("vector<[4]x2xi1>", "vector", (4, 2), "i1", 1),
        ("memref<16xvector<4xf32>>", "memref", (16,), "vector<4xf32>", 128),
        ("tensor<2x!quant.uniform<i8:f32, 1.0>>", "tensor", (2,), "!quant.uniform<i8:f32, 1.0>", 8),
        ("tensor<2x3xf32, #enc<a, b>>", "tensor", (2, 3), "f32", 32),
        ("tensor<7xcomplex<f32>>", "tensor", (7,), "complex<f32>", 64),
        ("!torch.vtensor<[2,?],f32>", "tensor", (2, None), "f32", 32),
        ("f8E4M3FN", "scalar", None, "f8E4M3FN", 8),
        ("index", "scalar", None, "index", 64),
        ("ui4", "scalar", None, "ui4", 4),
        ("!llvm.ptr<1>", "other", None, "!llvm.ptr<1>", 64),
        ("(i32) -> f32", "other", None, "(i32) -> f32", 0),
        ("", "other", None, "", 0),
    ],
)
def test_shape_and_element(text, kind, shape, element, bits):
    info = parse_type(text)
    assert (info.kind, info.shape, info.element, info.element_bits) == (kind, shape, element, bits)


@pytest.mark.parametrize(
    ("text", "strides", "offset", "space"),
    [
        ("memref<2x3x4xf32>", (12, 4, 1), 0, ""),
        ("memref<2x?x4xf32>", (None, 4, 1), 0, ""),
        ("memref<8x?xf32, strided<[?, -1], offset: ?>>", (None, -1), None, ""),
        ("memref<4xi8, strided<[-2], offset: 7>, 3>", (-2,), 7, "3"),
        ("memref<4xi8, strided<[2]>>", (2,), 0, ""),
        ("memref<64xf32, #gpu.address_space<workgroup>>", (1,), 0, "#gpu.address_space<workgroup>"),
        ("memref<8x8xf32, affine_map<(d0, d1) -> (d1, d0)>>", None, None, ""),
        ("memref<8x8xf32, affine_map<(d0, d1) -> (d1, d0)>, 1>", None, None, "1"),
        ("memref<f32, strided<[], offset: 3>>", (), 3, ""),
        ("tensor<4xf32>", None, None, ""),
    ],
)
def test_layout(text, strides, offset, space):
    info = parse_type(text)
    assert (info.strides, info.offset, info.memory_space) == (strides, offset, space)


def test_elements_are_unknown_only_where_a_size_is():
    assert parse_type("tensor<3x0xf32>").elements == 0
    assert parse_type("vector<[4]x2xf32>").elements == 8
    assert parse_type("tensor<?x2xf32>").elements is None
    assert parse_type("tensor<*xf32>").elements is None
    assert parse_type("f32").elements == 1


def test_split_leaves_brackets_and_arrows_alone():
    assert split_types("") == ()
    assert split_types("i32, (f32, f32) -> tuple<i1, i8>, memref<2xf32, 1>") == (
        "i32",
        "(f32, f32) -> tuple<i1, i8>",
        "memref<2xf32, 1>",
    )
    assert split_types('!a.b<"x, y">,\n  i1') == ('!a.b<"x, y">', "i1")


def test_other_element_keeps_shape_and_encoding_but_no_layout():
    assert with_element("memref<4x?xf32, strided<[1, 1]>>", "i1") == "memref<4x?xi1>"
    assert with_element("tensor<4xf32, #e>", "i1") == "tensor<4xi1, #e>"
    assert with_element("tensor<*xf32>", "i1") == "tensor<*xi1>"
    assert with_element("f32", "i1") == "i1"


def test_bits_of_unknown_types_are_zero():
    assert scalar_bits("!foo.bar<i32>") == 0
    assert scalar_bits("none") == 0
