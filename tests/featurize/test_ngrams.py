from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from irgauge.featurize.function_view import FunctionView
from irgauge.featurize.ngrams import ngrams, op_ngrams

PROGRAM = """func.func @kernel(%A: memref<8xf32>) {
  %c = arith.constant 2.0 : f32
  affine.for %i = 0 to 8 {
    %a = affine.load %A[%i] : memref<8xf32>
    %b = arith.mulf %a, %c : f32
    %d = arith.addf %b, %a : f32
    affine.store %d, %A[%i] : memref<8xf32>
  }
  return
}"""


@settings(deadline=None)
@given(ops=st.lists(st.sampled_from(["arith.addf", "memref.load"])), n=st.integers(1, 4))
def test_every_window_is_counted_once(ops: list[str], n: int) -> None:
    assert len(op_ngrams(ops, n)) == max(0, len(ops) - n + 1)
    assert all(list(gram) == ops[i : i + n] for i, gram in enumerate(op_ngrams(ops, n)))


def test_windows_stay_inside_a_block(view: Callable[[str], FunctionView]) -> None:
    grams = {k: v for k, v in ngrams(view(PROGRAM)).items() if k.startswith("ngram/")}
    assert grams == {
        "ngram/arith.constant>affine.for": 1,
        "ngram/affine.load>arith.mulf": 1,
        "ngram/arith.mulf>arith.addf": 1,
        "ngram/arith.addf>affine.store": 1,
        "ngram/affine.load>arith.mulf>arith.addf": 1,
        "ngram/arith.mulf>arith.addf>affine.store": 1,
    }


def test_chains_follow_definitions_to_uses(view: Callable[[str], FunctionView]) -> None:
    found = ngrams(view(PROGRAM))
    assert found["chain/arith.constant>arith.mulf"] == 1  # across the loop
    assert found["chain/affine.load>arith.addf"] == 1  # not next to it
    assert {k: v for k, v in found.items() if k.startswith("chain/") and k.count(">") == 2} == {
        "chain/affine.load>arith.mulf>arith.addf": 1,
        "chain/arith.constant>arith.mulf>arith.addf": 1,
        "chain/arith.mulf>arith.addf>affine.store": 1,
        "chain/affine.load>arith.addf>affine.store": 1,
    }
    assert found["ngram.edges"] == sum(v for k, v in found.items() if k.startswith("chain/") and k.count(">") == 1)


@settings(deadline=None)
@given(order=st.permutations(["arith.addf %x, %x", "arith.mulf %x, %x", "arith.subf %x, %x"]))
def test_chains_do_not_depend_on_the_order_of_independent_operations(order: list[str]) -> None:
    from irgauge.featurize import features_of

    body = "\n".join(f"%v{i} = {op} : f32\naffine.store %v{i}, %A[{i}] : memref<8xf32>" for i, op in enumerate(order))
    text = f"func.func @kernel(%A: memref<8xf32>) {{ %x = affine.load %A[7] : memref<8xf32>\n{body}\nreturn }}"
    chains = Counter({k: v for k, v in features_of(text)["kernel"].items() if k.startswith("chain/")})
    assert chains["chain/affine.load>arith.addf"] == 2
    assert sum(v for k, v in chains.items() if k.count(">") == 1) == 9
