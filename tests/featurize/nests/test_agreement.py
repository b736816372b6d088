"""The same computation counts the same in linalg, StableHLO, TOSA and Torch."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from irgauge.featurize import features_of

SIZES = st.integers(2, 9)
NAMES = ("flops", "loads", "stores", "bytes")


def work(text: str) -> dict[str, float]:
    features = features_of(text)["f"]
    return {**{n: features[f"work.{n}"] for n in NAMES}, "footprint": features["access.footprint_bytes"]}


def torch(shape: str) -> str:
    return f"!torch.vtensor<[{shape.replace('x', ',')}],f32>"


@settings(max_examples=25, deadline=None)
@given(b=SIZES, m=SIZES, n=SIZES, k=SIZES)
def test_batched_matmul(b: int, m: int, n: int, k: int) -> None:
    x, y, z = f"{b}x{m}x{k}", f"{b}x{k}x{n}", f"{b}x{m}x{n}"
    tx, ty, tz = (f"tensor<{s}xf32>" for s in (x, y, z))
    forms = {
        "linalg": f"func.func @f(%x: {tx}, %y: {ty}, %z: {tz}) -> {tz} {{ "
        f"%r = linalg.batch_matmul ins(%x, %y : {tx}, {ty}) outs(%z : {tz}) -> {tz}\nreturn %r : {tz} }}",
        "stablehlo": f"func.func @f(%x: {tx}, %y: {ty}) -> {tz} {{ %r = stablehlo.dot_general %x, %y, "
        f"batching_dims = [0] x [0], contracting_dims = [2] x [1] : ({tx}, {ty}) -> {tz}\nreturn %r : {tz} }}",
        "tosa": f"func.func @f(%x: {tx}, %y: {ty}, %p: tensor<1xf32>) -> {tz} {{ "
        f"%r = tosa.matmul %x, %y, %p, %p : ({tx}, {ty}, tensor<1xf32>, tensor<1xf32>) -> {tz}\nreturn %r : {tz} }}",
        "torch": f"func.func @f(%x: {torch(x)}, %y: {torch(y)}) -> {torch(z)} {{ %r = torch.aten.bmm %x, %y : "
        f"{torch(x)}, {torch(y)} -> {torch(z)}\nreturn %r : {torch(z)} }}",
    }
    found = {name: work(text) for name, text in forms.items()}
    assert found["linalg"]["flops"] == 2 * b * m * n * k
    for name, totals in found.items():
        assert totals == found["linalg"], name


@settings(max_examples=25, deadline=None)
@given(h=st.integers(4, 9), c=SIZES, f=SIZES, k=st.integers(1, 3), s=st.integers(1, 2))
def test_convolution(h: int, c: int, f: int, k: int, s: int) -> None:
    o = (h - k) // s + 1
    image, weight, out = f"1x{h}x{h}x{c}", f"{k}x{k}x{c}x{f}", f"1x{o}x{o}x{f}"
    ti, tw, to = (f"tensor<{t}xf32>" for t in (image, weight, out))
    tosa_weight = f"tensor<{f}x{k}x{k}x{c}xf32>"
    ni, nw, no = torch(f"1x{c}x{h}x{h}"), torch(f"{f}x{c}x{k}x{k}"), torch(f"1x{f}x{o}x{o}")
    forms = {
        "linalg": f"func.func @f(%x: {ti}, %w: {tw}, %z: {to}) -> {to} {{ %r = linalg.conv_2d_nhwc_hwcf "
        f"{{dilations = dense<1> : tensor<2xi64>, strides = dense<{s}> : tensor<2xi64>}} "
        f"ins(%x, %w : {ti}, {tw}) outs(%z : {to}) -> {to}\nreturn %r : {to} }}",
        "stablehlo": f"func.func @f(%x: {ti}, %w: {tw}) -> {to} {{ %r = stablehlo.convolution(%x, %w) "
        f"dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{stride = [{s}, {s}]}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({ti}, {tw}) -> {to}\nreturn %r : {to} }}",
        "torch": f"func.func @f(%x: {ni}, %w: {nw}) -> {no} {{ %none = torch.constant.none\n"
        f"%false = torch.constant.bool false\n%s = torch.constant.int {s}\n%i0 = torch.constant.int 0\n"
        "%i1 = torch.constant.int 1\n%ls = torch.prim.ListConstruct %s, %s : (!torch.int, !torch.int) -> "
        "!torch.list<int>\n%l0 = torch.prim.ListConstruct %i0, %i0 : (!torch.int, !torch.int) -> !torch.list<int>\n"
        "%l1 = torch.prim.ListConstruct %i1, %i1 : (!torch.int, !torch.int) -> !torch.list<int>\n"
        f"%r = torch.aten.convolution %x, %w, %none, %ls, %l0, %l1, %false, %l0, %i1 : {ni}, {nw}, !torch.none, "
        "!torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int -> "
        f"{no}\nreturn %r : {no} }}",
    }
    found = {name: work(text) for name, text in forms.items()}
    assert found["linalg"]["flops"] == 2 * o * o * f * k * k * c
    for name, totals in found.items():
        assert totals == found["linalg"], name
    # TOSA has a bias, which is the initial value of each sum: one more load and store for each output
    tosa = work(
        f"func.func @f(%x: {ti}, %w: {tosa_weight}, %b: tensor<{f}xf32>, %p: tensor<1xf32>) -> {to} {{ "
        f"%r = tosa.conv2d %x, %w, %b, %p, %p {{acc_type = f32, dilation = array<i64: 1, 1>, "
        f"pad = array<i64: 0, 0, 0, 0>, stride = array<i64: {s}, {s}>}} : "
        f"({ti}, {tosa_weight}, tensor<{f}xf32>, tensor<1xf32>, tensor<1xf32>) -> {to}\nreturn %r : {to} }}"
    )
    outputs = o * o * f
    expected = dict(found["linalg"])
    expected["loads"] += outputs
    expected["stores"] += outputs
    expected["bytes"] += 8 * outputs
    expected["footprint"] += 4 * f
    assert tosa == expected


def softmax_forms(m: int, n: int) -> dict[str, str]:
    t, row, kept = f"tensor<{m}x{n}xf32>", f"tensor<{m}xf32>", f"tensor<{m}x1xf32>"
    v = torch(f"{m}x{n}")
    return {
        "linalg": f"func.func @f(%x: {t}, %z: {t}) -> {t} {{ "
        f"%r = linalg.softmax dimension(1) ins(%x : {t}) outs(%z : {t}) -> {t}\nreturn %r : {t} }}",
        "torch": f"func.func @f(%x: {v}) -> {v} {{ %d = torch.constant.int 1\n%none = torch.constant.none\n"
        f"%r = torch.aten.softmax.int %x, %d, %none : {v}, !torch.int, !torch.none -> {v}\nreturn %r : {v} }}",
        "stablehlo": f"""func.func @f(%x: {t}) -> {t} {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : ({t}, tensor<f32>) -> {row}
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : ({row}) -> {t}
  %d = stablehlo.subtract %x, %mb : {t}
  %e = stablehlo.exponential %d : {t}
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : ({t}, tensor<f32>) -> {row}
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : ({row}) -> {t}
  %r = stablehlo.divide %e, %sb : {t}
  return %r : {t}
}}""",
        "tosa": f"""func.func @f(%x: {t}) -> {t} {{
  %shift = "tosa.const"() <{{values = dense<0> : tensor<1xi8>}}> : () -> tensor<1xi8>
  %m = tosa.reduce_max %x {{axis = 1 : i32}} : ({t}) -> {kept}
  %d = tosa.sub %x, %m : ({t}, {kept}) -> {t}
  %e = tosa.exp %d : ({t}) -> {t}
  %s = tosa.reduce_sum %e {{axis = 1 : i32}} : ({t}) -> {kept}
  %i = tosa.reciprocal %s : ({kept}) -> {kept}
  %r = tosa.mul %e, %i, %shift : ({t}, {kept}, tensor<1xi8>) -> {t}
  return %r : {t}
}}""",
    }


@settings(max_examples=15, deadline=None)
@given(m=SIZES, n=SIZES)
def test_softmax(m: int, n: int) -> None:
    found = {name: work(text) for name, text in softmax_forms(m, n).items()}
    assert found["linalg"]["flops"] == 5 * m * n
    assert found["torch"] == found["linalg"]
    assert found["stablehlo"]["flops"] == found["linalg"]["flops"]
    # TOSA has no division: a reciprocal for each row, and a product for each element
    assert found["tosa"]["flops"] == 5 * m * n + m


@settings(max_examples=15, deadline=None)
@given(m=SIZES, n=SIZES)
def test_elementwise_and_reduction(m: int, n: int) -> None:
    t, row = f"tensor<{m}x{n}xf32>", f"tensor<{m}xf32>"
    v, vrow = torch(f"{m}x{n}"), torch(str(m))

    def build(add: Callable[[str], str], total: str, ty: str) -> str:
        return f"func.func @f(%x: {ty}, %y: {ty}) {{\n{add(ty)}\n{total}\nreturn }}"

    forms = {
        "stablehlo": build(
            lambda ty: f"%z = stablehlo.constant dense<0.0> : tensor<f32>\n%s = stablehlo.add %x, %y : {ty}",
            f"%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] : "
            f"({t}, tensor<f32>) -> {row}", t,
        ),
        "torch": build(
            lambda ty: "%i = torch.constant.int 1\n%n = torch.constant.none\n%no = torch.constant.bool false\n"
            "%l = torch.prim.ListConstruct %i : (!torch.int) -> !torch.list<int>\n"
            f"%s = torch.aten.add.Tensor %x, %y, %i : {ty}, {ty}, !torch.int -> {ty}",
            f"%r = torch.aten.sum.dim_IntList %s, %l, %no, %n : {v}, !torch.list<int>, !torch.bool, !torch.none -> "
            f"{vrow}", v,
        ),
        "tosa": build(
            lambda ty: f"%s = tosa.add %x, %y : ({ty}, {ty}) -> {ty}",
            f"%r = tosa.reduce_sum %s {{axis = 1 : i32}} : ({t}) -> tensor<{m}x1xf32>", t,
        ),
        "arith and linalg": f"func.func @f(%x: {t}, %y: {t}, %z: {row}) {{\n%s = arith.addf %x, %y : {t}\n"
        f"%r = linalg.reduce {{ arith.addf }} ins(%s : {t}) outs(%z : {row}) dimensions = [1]\nreturn }}",
    }  # fmt: skip
    found = {name: work(text) for name, text in forms.items()}
    for name, totals in found.items():
        assert totals == found["stablehlo"], name
    assert found["tosa"]["flops"] == 2 * m * n
