"""The reading cases are the definition of right: each one must come out as its JSON says."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from irgauge.errors import ReadError
from irgauge.featurize.inspect import facts
from irgauge.featurize.reader import read, read_path

CASES = Path(__file__).parents[1] / "cases"
SHARED = Path(__file__).parents[3] / "shared" / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.json"))


def check_counts(program, expected):
    whole = facts(program, implied=True)
    assert {name: whole[name] for name in expected} == expected
    written = facts(program)
    left = Counter(expected["op_counts"])
    left.subtract(expected["implied_ops"])
    assert written["op_counts"] == {name: count for name, count in sorted(left.items()) if count}
    assert written["num_ops"] == left.total()


def check_error(problem, expected):
    if "error_line" in expected:
        assert problem.line == expected["error_line"]
        assert problem.source_line
    assert expected.get("message_contains", "") in str(problem)


@pytest.mark.parametrize("name", NAMES)
def test_case(name):
    case = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    start = time.perf_counter()
    if case["outcome"] == "counts":
        check_counts(read_path(CASES / f"{name}.mlir"), case["expect"])
    else:  # the reader refuses every case that may be refused
        with pytest.raises(ReadError) as caught:
            read_path(CASES / f"{name}.mlir")
        check_error(caught.value, case["expect"])
    assert time.perf_counter() - start < case.get("time_limit_s", 10)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared reading cases are not beside this checkout")
def test_copy_of_the_cases_is_complete():
    for path in sorted(SHARED.iterdir()):
        if path.suffix in (".mlir", ".json"):
            assert (CASES / path.name).read_bytes() == path.read_bytes(), path.name


def test_loop_depth_counts_every_kind_of_loop_once():
    program = read(
        """
        func.func @f(%n: index) {
          scf.parallel (%i, %j) = (%n, %n) to (%n, %n) step (%n, %n) {
            affine.for %k = 0 to 4 {
              "scf.while"() ({ "scf.condition"(%c) : (i1) -> () }, { "scf.yield"() : () -> () }) : () -> ()
            }
          }
          return
        }
        """.replace("%c", "%true").replace(
            "{\n          scf.par", "{\n          %true = arith.constant true\n          scf.par"
        )
    )
    assert facts(program)["max_loop_depth"] == 3


def test_implied_operations_are_listed_apart():
    program = read("func.func @f(%c: i1) {\n  scf.if %c {\n  }\n  return\n}\n")
    found = facts(program)
    assert found["op_counts"] == {"func.func": 1, "func.return": 1, "scf.if": 1}
    assert found["implied_ops"] == {"builtin.module": 1, "scf.yield": 1}
    assert facts(program, implied=True)["num_ops"] == 5


def test_sizes_of_shaped_values():
    program = read(
        """
        %a = "t.a"() : () -> tensor<2x0xf32>
        %b = "t.b"() : () -> memref<f32>
        %c = "t.c"() : () -> vector<[4]x2xi8>
        %d = "t.d"() : () -> tensor<?x3x?xf32>
        %e = "t.e"() : () -> tensor<*xf32>
        """
    )
    found = facts(program)
    assert found["shaped_values"] == 5
    assert found["static_elements_max"] == 8
    assert found["static_elements_total"] == 0 + 1 + 8
    assert (found["dynamic_values"], found["dynamic_dims"]) == (1, 2)
    assert (found["unranked_values"], found["scalable_values"]) == (1, 1)
