from __future__ import annotations

import pytest

from irgauge.data.dedup import few_alike, masked_text
from irgauge.data.families.base import Source


def _nest(rows: int, columns: int, constant: str = "1.0", element: str = "f32", op: str = "arith.mulf") -> str:
    return f"""func.func @kernel(%a{rows}: memref<{rows}x{columns}x{element}>) {{
  %c = arith.constant {constant} : {element}
  affine.for %i = 0 to {rows} {{
    affine.for %j = 0 to {columns} step 2 {{
      %x = affine.load %a{rows}[%i, %j + 1] : memref<{rows}x{columns}x{element}>
      %y = {op} %x, %c : {element}
      affine.store %y, %a{rows}[%i, %j] : memref<{rows}x{columns}x{element}>
    }}
  }}
  return
}}"""


def test_sizes_and_constants_are_masked() -> None:
    assert masked_text(_nest(16, 8)) == masked_text(_nest(300, 1024, "-2.5e-3"))


@pytest.mark.parametrize("other", [_nest(16, 8, element="f64"), _nest(16, 8, op="arith.addf")])
def test_structure_and_element_types_are_not(other: str) -> None:
    assert masked_text(_nest(16, 8)) != masked_text(other)


def test_which_value_is_used_is_not_masked() -> None:
    swapped = _nest(16, 8).replace("%x, %c", "%x, %x")
    assert masked_text(swapped) != masked_text(_nest(16, 8))


def test_the_number_of_dimensions_is_not_masked() -> None:
    assert masked_text('"test.op"() : () -> memref<4x4xf32>') != masked_text('"test.op"() : () -> memref<4xf32>')


def _source(number: int, family: str, mlir: str) -> Source:
    return Source(f"{family}/{number}", family, "o", mlir)


def test_only_a_few_of_a_family_are_kept_in_order() -> None:
    sources = [_source(n, "one", _nest(8 + n, 8)) for n in range(4)]
    sources += [_source(n, "two", _nest(8 + n, 8)) for n in range(2)]
    sources.insert(1, _source(9, "one", _nest(8, 8, element="f64")))
    kept, dropped = few_alike(sources, most=2)
    assert [s.program_id for s in kept] == ["one/0", "one/9", "one/1", "two/0", "two/1"]
    assert [(s.program_id, like) for s, like in dropped] == [("one/2", "one/0"), ("one/3", "one/0")]
