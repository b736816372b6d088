"""What `irgauge inspect` knows of each function."""

from __future__ import annotations

from irgauge.featurize import features_of
from irgauge.featurize.describe import FIXED
from irgauge.featurize.overview import LIVE, MEMORY, MOST_FUNCTIONS, WORK, overviews
from irgauge.featurize.reader import read

TWO = """func.func @first(%A: memref<4xf32>, %x: f32) {
  affine.for %i = 0 to 4 { affine.store %x, %A[%i] : memref<4xf32> }
  return
}
func.func private @declared(f32)
func.func @second() { return }"""


def test_each_function_with_a_body_is_described() -> None:
    first, second = overviews(read(TWO))
    assert first.heading == "@first(%A: memref<4xf32>, %x: f32)"
    assert first.tree[0] == "└─ affine.for %i: 4 iterations"
    assert (second.heading, second.tree) == ("@second()", ["nothing but constants and terminators"])


def test_figures_are_the_features() -> None:
    (found, _), expected = overviews(read(TWO)), features_of(TWO)["first"]
    for feature in (*WORK.values(), *MEMORY.values(), *LIVE.values()):
        assert feature in FIXED
        assert found.features[feature] == expected[feature]
    assert found.features["work.stores"] == 4


def test_many_functions_are_cut_unless_all_are_wanted() -> None:
    program = read("\n".join(f"func.func @f{i}() {{\nreturn\n}}" for i in range(MOST_FUNCTIONS + 5)))
    assert [f.name for f in overviews(program)] == [f"f{i}" for i in range(MOST_FUNCTIONS)]
    assert len(list(overviews(program, everything=True))) == MOST_FUNCTIONS + 5


def test_modules_without_functions() -> None:
    assert list(overviews(read(""))) == []
    assert list(overviews(read("module {}"))) == []
    (found,) = overviews(read("func.func private @declared(f32)"))
    assert (found.heading, found.tree) == ("top level of the module", ["nothing but constants and terminators"])
    (found,) = overviews(read('"vendor.op"() : () -> ()'))
    assert (found.heading, found.tree) == ("top level of the module", ["1 vendor.op"])


def test_long_signatures_are_cut() -> None:
    arguments = ", ".join(f"%a{i}: i32" for i in range(11))
    (found,) = overviews(read(f"func.func @f({arguments}) {{ return }}"))
    assert found.heading.endswith("%a7: i32, 3 more)")
    long = "tensor<" + "1x" * 60 + "f32>"
    (found,) = overviews(read(f"func.func @f(%a: {long}) {{ return }}"))
    assert found.heading == f"@f(%a: {long[:60]}…)"
