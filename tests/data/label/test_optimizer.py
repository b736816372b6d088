"""The process that runs pass pipelines answers as `mlir-opt` does, and outlives what it is given."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from irgauge.data.label import optimizer
from irgauge.data.label.optimizer import optimize
from irgauge.data.label.tools import run, tool
from irgauge.errors import LabelError

KERNEL = """
#map = affine_map<(d0) -> (d0 + 1)>
func.func @kernel(%a: memref<8xf32>) {
  affine.for %i = 0 to 7 {
    %j = affine.apply #map(%i)
    %x = affine.load %a[%j] : memref<8xf32>
    affine.store %x, %a[%i] : memref<8xf32>
  }
  return
}
"""
UNROLL = "builtin.module(func.func(affine-loop-unroll{unroll-factor=7},canonicalize))"


@pytest.mark.parametrize("pipeline", ["", UNROLL, "builtin.module(func.func(lower-affine),canonicalize,cse)"])
def test_the_answer_is_what_mlir_opt_prints(pipeline: str) -> None:
    passes = [f"--pass-pipeline={pipeline}"] if pipeline else []
    expected = run([tool("mlir-opt"), "--mlir-print-local-scope", *passes], step="mlir-opt", stdin=KERNEL)
    assert optimize(KERNEL, pipeline, step="it") == expected


def test_what_is_refused_says_why_and_the_next_one_is_answered() -> None:
    with pytest.raises(LabelError, match=r"it-error: .*'nonsense' does not refer to a registered pass"):
        optimize(KERNEL, "builtin.module(nonsense)", step="it")
    with pytest.raises(LabelError, match=r"it-error: .*expected"):
        optimize("func.func @kernel( {", "", step="it")
    assert "affine.for" not in optimize(KERNEL, UNROLL, step="it")


def test_a_pipeline_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "_CPU_SECONDS", 1)
    monkeypatch.setattr(optimizer, "_running", {})
    endless = KERNEL.replace("to 7 ", "to 70000000 ").replace("8xf32", "80000000xf32")
    with pytest.raises(LabelError, match=r"it-timeout: its time is used up"):
        optimize(endless, "builtin.module(func.func(affine-loop-unroll{unroll-factor=-1}))", step="it")
    assert "affine.for" not in optimize(KERNEL, UNROLL, step="it")
    optimizer._end_all()


def test_threads_have_answers_of_their_own() -> None:
    factors = [2, 3, 4, 5] * 4
    kernel = KERNEL.replace("to 7 ", "to 70 ").replace("8xf32", "80xf32")
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(
            lambda n: optimize(
                kernel, f"builtin.module(func.func(affine-loop-unroll{{unroll-factor={n}}}))", step="it"
            ),
            factors,
        )
        assert [f"step {n}" in text for n, text in zip(factors, found, strict=True)] == [True] * len(factors)


def test_one_that_was_killed_is_started_again() -> None:
    assert optimize(KERNEL, "", step="it")
    for process in optimizer._running.values():
        process.kill()
        process.wait()
    assert "affine.for" not in optimize(KERNEL, UNROLL, step="it")
