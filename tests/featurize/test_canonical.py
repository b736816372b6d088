"""One canonical text for all ways to write a program."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgauge.errors import ReadError
from irgauge.featurize.canonical import canonical_id, canonical_text

CASES = Path(__file__).parents[1] / "cases"

PLAIN = """func.func @f(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32
  return %0 : f32
}
"""


def test_names_comments_locations_and_space_do_not_matter():
    other = """
    // a comment
    #loc = loc("x.py":1:2)
    func.func   @g(%x : f32 loc("y":1:1)) -> f32 { %sum = arith.addf %x,%x : f32 loc(fused[#loc, "}"])
      return %sum : f32 } loc(#loc)
    """
    assert canonical_text(other) == canonical_text(PLAIN)
    assert canonical_id(other) == canonical_id(PLAIN)


@pytest.mark.parametrize(
    ("old", "new"), [("addf", "mulf"), ("f32", "f64"), ("%a, %a", "%0, %a"), ("-> f32 {", "-> f32 attributes {x} {")]
)
def test_other_programs_have_other_texts(old, new):
    assert canonical_id(PLAIN.replace(old, new)) != canonical_id(PLAIN)


def test_result_indices_stay():
    assert canonical_text("%r:2 = a.b %x#1") == "%0 : 2 = a.b %1#1"


def test_id_is_sixteen_hex_digits():
    assert len(canonical_id(PLAIN)) == 16
    int(canonical_id(PLAIN), 16)


def test_text_that_is_no_mlir_is_refused_with_its_place():
    with pytest.raises(ReadError, match=r"<text>:2:3: unexpected character"):
        canonical_text("a.b\n  `")


READABLE = sorted(path.name for path in CASES.glob("*.mlir") if not path.name.startswith(("bad_", "bytecode")))


@pytest.mark.parametrize("name", READABLE)
def test_canonical_text_of_itself_is_itself(name):
    once = canonical_text((CASES / name).read_bytes().decode("utf-8", "surrogateescape"))
    assert canonical_text(once) == once


@given(names=st.lists(st.from_regex(r"[a-z_][a-z0-9_.$]{0,6}", fullmatch=True), min_size=2, max_size=2, unique=True))
def test_any_names_give_the_same_text(names):
    renamed = PLAIN.replace("%a", f"%{names[0]}").replace("%0", f"%{names[1]}")
    assert canonical_text(renamed) == canonical_text(PLAIN)


@given(gap=st.text(alphabet=" \t\n", min_size=1, max_size=4), comment=st.text(alphabet='ab%{}"@/', max_size=8))
def test_any_space_and_comments_give_the_same_text(gap, comment):
    spaced = PLAIN.replace(" ", gap).replace("\n", f"// {comment}\n{gap}")
    assert canonical_text(spaced) == canonical_text(PLAIN)
