"""Closed forms of Torch operations on `!torch.vtensor`, in custom and generic syntax."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from irgauge.featurize import features_of

Work = Callable[[str], dict[str, float]]

HEAD = """  %none = torch.constant.none
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %int-1 = torch.constant.int -1
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int2 = torch.constant.int 2
  %int3 = torch.constant.int 3
  %eps = torch.constant.float 1.000000e-05
"""


def tensors(types: str) -> list[str]:
    return [f"!torch.vtensor<[{t.rpartition('x')[0].replace('x', ',')}],{t.rpartition('x')[2]}>" for t in types.split()]


def one(types: str, body: str) -> str:
    """A function of arguments %a, %b, … with these types (4x8xf32) and a body whose `T<4x8xf32>` are Torch types."""
    arguments = ", ".join(f"%{chr(97 + i)}: {t}" for i, t in enumerate(tensors(types)))
    body = re.sub(
        r"T<([\w?]*)>",
        lambda m: tensors(m.group(1))[0] if "x" in m.group(1) else f"!torch.vtensor<[],{m.group(1)}>",
        body,
    )
    return f"func.func @f({arguments}) {{\n{HEAD}{body}\n  return\n}}"


LIST = "  %{} = torch.prim.ListConstruct {} : ({}) -> !torch.list<int>\n"


def ints(name: str, *values: int) -> str:
    return LIST.format(name, ", ".join(f"%int{v}" for v in values), ", ".join(["!torch.int"] * len(values)))


SDPA = 2 * 2 * 5 * 7 * 4 + 2 * 5 * 7 + 5 * 2 * 5 * 7 + 2 * 2 * 5 * 7 * 6  # scores, scale, softmax, values
CASES: dict[str, tuple[str, str, dict[str, float]]] = {
    "mm": (
        "4x6xf32 6x5xf32",
        "%r = torch.aten.mm %a, %b : T<4x6xf32>, T<6x5xf32> -> T<4x5xf32>",
        {"flops": 240, "loads": 360, "stores": 120, "footprint": 4 * (24 + 30 + 20)},
    ),
    "bmm": (
        "3x4x6xf32 3x6x5xf32",
        "%r = torch.aten.bmm %a, %b : T<3x4x6xf32>, T<3x6x5xf32> -> T<3x4x5xf32>",
        {"flops": 720},
    ),
    "matmul, the batch of one operand broadcast": (
        "3x4x6xf32 6x5xf32",
        "%r = torch.aten.matmul %a, %b : T<3x4x6xf32>, T<6x5xf32> -> T<3x4x5xf32>",
        {"flops": 720, "footprint": 4 * (72 + 30 + 60)},
    ),
    "addmm: the input is the first value of the sum": (
        "5xf32 4x6xf32 6x5xf32",
        "%r = torch.aten.addmm %a, %b, %c, %int1, %int1 : T<5xf32>, T<4x6xf32>, T<6x5xf32>, !torch.int, !torch.int"
        " -> T<4x5xf32>",
        {"flops": 240, "loads": 360 + 20, "stores": 120 + 20},
    ),
    "linear: the weight is transposed": (
        "4x6xf32 5x6xf32 5xf32",
        "%r = torch.aten.linear %a, %b, %c : T<4x6xf32>, T<5x6xf32>, T<5xf32> -> T<4x5xf32>",
        {"flops": 240, "footprint": 4 * (24 + 30 + 5 + 20)},
    ),
    "convolution, strided and grouped": (
        "3x8x9x11xf32 8x4x3x3xf32 8xf32",
        ints("s", 2, 2)
        + ints("p", 0, 0)
        + ints("d", 1, 1)
        + ints("o", 0, 0)
        + "%r = torch.aten.convolution %a, %b, %c, %s, %p, %d, %false, %o, %int2 : T<3x8x9x11xf32>, T<8x4x3x3xf32>, "
        "T<8xf32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int "
        "-> T<3x8x4x5xf32>",
        {"flops": 2 * 3 * 4 * 5 * 8 * 3 * 3 * 4, "footprint": 4 * (3 * 8 * 9 * 11 + 8 * 4 * 9 + 8 + 3 * 8 * 20)},
    ),
    "transposed convolution": (
        "1x2x4x4xf32 2x5x3x3xf32",
        ints("s", 2, 2)
        + ints("p", 1, 1)
        + ints("d", 1, 1)
        + ints("o", 1, 1)
        + "%r = torch.aten.convolution %a, %b, %none, %s, %p, %d, %true, %o, %int1 : T<1x2x4x4xf32>, T<2x5x3x3xf32>, "
        "!torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int "
        "-> T<1x5x8x8xf32>",
        {"flops": 2 * 4 * 4 * 2 * 5 * 9},
    ),
    "scaled dot product attention": (
        "2x5x4xf32 2x7x4xf32 2x7x6xf32",
        "%r = torch.aten.scaled_dot_product_attention %a, %b, %c, %none, %eps, %false, %none, %false : T<2x5x4xf32>, "
        "T<2x7x4xf32>, T<2x7x6xf32>, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool -> T<2x5x6xf32>",
        {"flops": SDPA, "math_calls": 70},
    ),
    "softmax: 5 an element": (
        "4x8xf32",
        "%r = torch.aten.softmax.int %a, %int-1, %none : T<4x8xf32>, !torch.int, !torch.none -> T<4x8xf32>",
        {"flops": 160, "math_calls": 32, "divs": 32},
    ),
    "log_softmax: 5 an element, a logarithm a row": (
        "4x8xf32",
        "%r = torch.aten.log_softmax.int %a, %int-1, %none : T<4x8xf32>, !torch.int, !torch.none -> T<4x8xf32>",
        {"flops": 160 + 4, "math_calls": 36, "divs": 0},
    ),
    "layer_norm: 8 an element with scale and shift, 3 a row": (
        "4x8xf32 8xf32 8xf32",
        "%n = torch.prim.ListConstruct %int8 : (!torch.int) -> !torch.list<int>\n"
        "%r = torch.aten.layer_norm %a, %n, %b, %c, %eps, %true : T<4x8xf32>, !torch.list<int>, T<8xf32>, T<8xf32>, "
        "!torch.float, !torch.bool -> T<4x8xf32>",
        {"flops": 8 * 32 + 3 * 4, "divs": 2 * 4},
    ),
    "batch_norm: 3 an element, 3 a channel": (
        "2x6x5xf32 6xf32 6xf32 6xf32 6xf32",
        "%r = torch.aten.batch_norm %a, %b, %c, %d, %e, %false, %eps, %eps, %false : T<2x6x5xf32>, T<6xf32>, T<6xf32>, "
        "T<6xf32>, T<6xf32>, !torch.bool, !torch.float, !torch.float, !torch.bool -> T<2x6x5xf32>",
        {"flops": 3 * 60 + 3 * 6},
    ),
    "sum over a dimension": (
        "4x8xf32",
        ints("d", 1)
        + "%r = torch.aten.sum.dim_IntList %a, %d, %true, %none : T<4x8xf32>, !torch.list<int>, !torch.bool, "
        "!torch.none -> T<4x1xf32>",
        {"flops": 32, "footprint": 4 * (32 + 4)},
    ),
    "mean of everything: n additions and a division": (
        "4x8xf32",
        "%r = torch.aten.mean %a, %none : T<4x8xf32>, !torch.none -> T<f32>",
        {"flops": 33, "divs": 1},
    ),
    "max along a dimension": (
        "4x8xf32",
        "%r:2 = torch.aten.max.dim %a, %int1, %false : T<4x8xf32>, !torch.int, !torch.bool -> T<4xf32>, T<4xsi64>",
        {"flops": 32},
    ),
    "addition with broadcast": (
        "4x8xf32 8xf32",
        "%r = torch.aten.add.Tensor %a, %b, %int1 : T<4x8xf32>, T<8xf32>, !torch.int -> T<4x8xf32>",
        {"flops": 32, "loads": 64, "stores": 32, "footprint": 4 * (32 + 8 + 32)},
    ),
    "addition of a multiple": (
        "4x8xf32 4x8xf32",
        "%r = torch.aten.add.Tensor %a, %b, %int2 : T<4x8xf32>, T<4x8xf32>, !torch.int -> T<4x8xf32>",
        {"flops": 64},
    ),
    "relu": ("4x8xf32", "%r = torch.aten.relu %a : T<4x8xf32> -> T<4x8xf32>", {"flops": 32, "bytes": 256}),
    "silu": ("4x8xf32", "%r = torch.aten.silu %a : T<4x8xf32> -> T<4x8xf32>", {"flops": 64, "math_calls": 32}),
    "embedding": (
        "100x8xf32 5xsi64",
        "%r = torch.aten.embedding %a, %b, %int-1, %false, %false : T<100x8xf32>, T<5xsi64>, !torch.int, !torch.bool, "
        "!torch.bool -> T<5x8xf32>",
        {"flops": 0, "loads": 5 + 40, "stores": 40, "bytes": 8 * 5 + 4 * 80},
    ),
    "index_select": (
        "100x8xf32 5xsi64",
        "%r = torch.aten.index_select %a, %int0, %b : T<100x8xf32>, !torch.int, T<5xsi64> -> T<5x8xf32>",
        {"loads": 45, "stores": 40},
    ),
    "max_pool2d": (
        "1x3x8x8xf32",
        ints("k", 2, 2)
        + ints("s", 2, 2)
        + ints("p", 0, 0)
        + ints("d", 1, 1)
        + "%r = torch.aten.max_pool2d %a, %k, %s, %p, %d, %false : T<1x3x8x8xf32>, !torch.list<int>, !torch.list<int>, "
        "!torch.list<int>, !torch.list<int>, !torch.bool -> T<1x3x4x4xf32>",
        {"flops": 3 * 16 * 4, "footprint": 4 * (192 + 48)},
    ),
    "avg_pool2d: a division for each output": (
        "1x3x8x8xf32",
        ints("k", 2, 2)
        + ints("s", 2, 2)
        + ints("p", 0, 0)
        + "%r = torch.aten.avg_pool2d %a, %k, %s, %p, %false, %true, %none : T<1x3x8x8xf32>, !torch.list<int>, "
        "!torch.list<int>, !torch.list<int>, !torch.bool, !torch.bool, !torch.none -> T<1x3x4x4xf32>",
        {"flops": 3 * 16 * 4 + 48, "divs": 48},
    ),
    "adaptive_avg_pool2d": (
        "1x3x8x8xf32",
        ints("k", 1, 1)
        + "%r = torch.aten.adaptive_avg_pool2d %a, %k : T<1x3x8x8xf32>, !torch.list<int> -> T<1x3x1x1xf32>",
        {"flops": 3 * 64 + 3},
    ),
    "cat": (
        "4x8xf32 2x8xf32",
        "%l = torch.prim.ListConstruct %a, %b : (T<4x8xf32>, T<2x8xf32>) -> !torch.list<vtensor>\n"
        "%r = torch.aten.cat %l, %int0 : !torch.list<vtensor>, !torch.int -> T<6x8xf32>",
        {"loads": 48, "stores": 48, "footprint": 384},
    ),
    "views are free": (
        "4x8xf32",
        "%s = torch.aten.transpose.int %a, %int0, %int1 : T<4x8xf32>, !torch.int, !torch.int -> T<8x4xf32>\n"
        "%n = torch.prim.ListConstruct %int-1 : (!torch.int) -> !torch.list<int>\n"
        "%r = torch.aten.view %s, %n : T<8x4xf32>, !torch.list<int> -> T<32xf32>",
        {"flops": 0, "bytes": 0, "loop_iterations": 0},
    ),
    "a view is the memory of its source": (
        "4x8xf32",
        "%n = torch.prim.ListConstruct %int-1 : (!torch.int) -> !torch.list<int>\n"
        "%v = torch.aten.view %a, %n : T<4x8xf32>, !torch.list<int> -> T<32xf32>\n"
        "%r = torch.aten.add.Tensor %v, %v, %int1 : T<32xf32>, T<32xf32>, !torch.int -> T<32xf32>",
        {"flops": 32, "footprint": 256},
    ),
    "dtype conversion": (
        "4x8xf32",
        "%r = torch.prims.convert_element_type %a, %int2 : T<4x8xf32>, !torch.int -> T<4x8xf16>",
        {"flops": 0, "bytes": 32 * 6},
    ),
}


def complete(name: str) -> str:
    types, body, _ = CASES[name]
    if "%int8" in body:
        body = "%int8 = torch.constant.int 8\n" + body
    return one(types, body)


def generic(text: str) -> str:
    """The operations of the body in generic syntax."""

    def line(match: re.Match[str]) -> str:
        result, name, operands, takes, gives = match.groups()
        takes = takes if takes.startswith("(") else f"({takes})"
        gives = f"({gives})" if ">, " in gives else gives
        return f'{result} = "{name}"({operands}) : {takes} -> {gives}'

    text = re.sub(r"(%[\w:]+) = ([\w.]+) (%[^:]*?) : (.*) -> (.*)", line, text)
    text = re.sub(
        r"= torch.constant.(int|bool) (\S+)", r'= "torch.constant.\1"() <{value = \2}> : () -> !torch.\1', text
    )
    text = re.sub(
        r"torch.constant.float (\S+)", r'"torch.constant.float"() <{value = \1 : f64}> : () -> !torch.float', text
    )
    text = text.replace("= torch.constant.none", '= "torch.constant.none"() : () -> !torch.none')
    return re.sub(r"<\{value = (-?\d+)\}>", r"<{value = \1 : i64}>", text)


@pytest.mark.parametrize("name", CASES)
def test_closed_forms(name: str, work: Work) -> None:
    expected = CASES[name][2]
    found = work(complete(name))
    assert {k: found[k] for k in expected} == expected


@pytest.mark.parametrize("name", CASES)
def test_generic_syntax_gives_the_same(name: str) -> None:
    text = complete(name)
    assert generic(text) != text
    assert features_of(generic(text)) == features_of(text)


def test_loop_with_a_count(work: Work) -> None:
    text = one(
        "4x8xf32",
        "%r = torch.prim.Loop %int3, %true, init(%a) {\n^bb0(%i: !torch.int, %x: T<4x8xf32>):\n"
        "%y = torch.aten.relu %x : T<4x8xf32> -> T<4x8xf32>\n"
        "torch.prim.Loop.condition %true, iter(%y : T<4x8xf32>)\n"
        "} : (!torch.int, !torch.bool, T<4x8xf32>) -> T<4x8xf32>",
    )
    assert work(text)["flops"] == 3 * 32
