"""The same program in any textual form gives the same features."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from irgauge.featurize import features_of

FORMS: dict[str, tuple[str, ...]] = {
    "custom": (),
    "generic": ("--mlir-print-op-generic",),
    "locations": ("--mlir-print-debuginfo",),
    "generic with locations": ("--mlir-print-op-generic", "--mlir-print-debuginfo"),
    "no aliases": ("--mlir-print-local-scope",),
    "unique names": ("--mlir-print-unique-ssa-ids",),
}
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.mlir"))
EXTRA = {
    "bounds and symbols": """
#set = affine_set<(d0, d1)[s0] : (d0 - d1 >= 0, s0 - d0 - 1 == 0)>
func.func @kernel(%A: memref<100x64xf32>, %n: index, %a: f32) {
  %cst = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  affine.for %t = 0 to 100 step 32 {
    affine.for %i = max affine_map<(d0) -> (d0, 5)>(%t) to min affine_map<(d0)[s0] -> (d0 + 32, s0)>(%t)[%n] {
      %r = affine.for %j = affine_map<(d0) -> (d0)>(%i) to 64 step 2 iter_args(%s = %cst) -> (f32) {
        %v = affine.load %A[symbol(%n) + %i + %j mod 4, %j] : memref<100x64xf32>
        affine.if #set(%i, %j)[%n] {
          affine.store %v, %A[%i, 3] : memref<100x64xf32>
        } else {
          affine.store %a, %A[0, 3] : memref<100x64xf32>
        }
        %u = arith.addf %v, %s fastmath<reassoc> : f32
        affine.yield %u : f32
      }
      affine.parallel (%x, %y) = (0, %i) to (10, min(%i + 3, 64)) step (2, 1) {
        %q = memref.load %A[%x, %y] : memref<100x64xf32>
        memref.store %q, %A[%y, %c0] : memref<100x64xf32>
      }
    }
  }
  return
}""",
    "scf, linalg, vector": """
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @kernel(%A: memref<100x64xf32>, %B: memref<64x64xf32>, %C: memref<100x64xf32>, %n: index, %a: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %sv = memref.subview %A[%n, 4] [8, 16] [1, 2] : memref<100x64xf32> to memref<8x16xf32, strided<[64, 2], offset: ?>>
  scf.for %i = %c0 to %c100 step %c1 {
    %r = scf.for %j = %c0 to %n step %c1 iter_args(%s = %a) -> f32 {
      %k = affine.apply affine_map<(d0) -> (d0 * 2 + 1)>(%j)
      %v = memref.load %A[%i, %k] : memref<100x64xf32>
      %u = vector.transfer_read %A[%i, %k], %a {in_bounds = [true]} : memref<100x64xf32>, vector<8xf32>
      vector.transfer_write %u, %A[%i, %j] : vector<8xf32>, memref<100x64xf32>
      %c = arith.cmpf olt, %v, %s : f32
      %z = scf.if %c -> f32 { scf.yield %v : f32 } else { scf.yield %s : f32 }
      scf.yield %z : f32
    }
  }
  scf.parallel (%i, %j) = (%c0, %c0) to (%c100, %n) step (%c1, %c1) {
    memref.store %a, %A[%i, %j] : memref<100x64xf32>
    scf.reduce
  }
  scf.forall (%i, %j) in (10, %n) { memref.store %a, %A[%i, %j] : memref<100x64xf32> }
  scf.forall (%i) = (4) to (10) step (2) { memref.store %a, %A[%i, %i] : memref<100x64xf32> }
  %w:2 = scf.while (%x = %c0, %f = %a) : (index, f32) -> (index, f32) {
    %c = arith.cmpi slt, %x, %c100 : index
    scf.condition(%c) %x, %f : index, f32
  } do {
  ^bb0(%x: index, %f : f32):
    %y = arith.addi %x, %c1 : index
    scf.yield %y, %f : index, f32
  }
  linalg.fill ins(%a : f32) outs(%C : memref<100x64xf32>)
  linalg.matmul ins(%A, %B : memref<100x64xf32>, memref<64x64xf32>) outs(%C : memref<100x64xf32>)
  linalg.transpose ins(%B : memref<64x64xf32>) outs(%B : memref<64x64xf32>) permutation = [1, 0]
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%A : memref<100x64xf32>) outs(%C : memref<100x64xf32>) {
  ^bb0(%x: f32, %y: f32):
    %m = arith.mulf %x, %y : f32
    linalg.yield %m : f32
  }
  return
}""",
}


def programs() -> list[tuple[str, str]]:
    return [*((p.stem, p.read_text()) for p in GOLDEN), *EXTRA.items()]


def known_to_mlir_opt() -> list[tuple[str, str]]:
    return [(name, text) for name, text in programs() if not re.search(r"\b(?:stablehlo|torch|tt)\.", text)]


@pytest.mark.parametrize(("name", "text"), known_to_mlir_opt(), ids=[n for n, _ in known_to_mlir_opt()])
def test_every_print_of_a_program_gives_the_same_features(name: str, text: str, mlir_opt: Callable[..., str]) -> None:
    expected = features_of(text)
    for form, arguments in FORMS.items():
        assert features_of(mlir_opt(text, *arguments)) == expected, form


@pytest.mark.parametrize("kernel", ["gemm", "cholesky", "heat-3d", "durbin", "nussinov"])
def test_every_print_of_a_polybench_kernel(kernel: str, mlir_opt: Callable[..., str]) -> None:
    families = pytest.importorskip("irgauge.data.families")
    text = next(iter(families.FAMILIES[kernel].sources())).mlir
    expected = features_of(text)
    for form, arguments in FORMS.items():
        assert features_of(mlir_opt(text, *arguments)) == expected, form


def respell(text: str, seed: int) -> str:
    """Other SSA names, other white space, comments."""
    rng = random.Random(seed)
    names: dict[str, str] = {}
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"%[\w$.-]+", lambda m: names.setdefault(m.group(), f"%v{rng.randrange(10**6)}_{len(names)}"), text)
    lines = []
    for line in text.splitlines():
        lines.append(
            rng.choice(["", "  ", "\t\t"]) + line.strip() + rng.choice(["", "  ", ' // a "comment" } with %x = op'])
        )
        if rng.random() < 0.2:
            lines.append("// { unbalanced (")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "text"), programs(), ids=[n for n, _ in programs()])
def test_names_space_and_comments_do_not_matter(name: str, text: str, seed: int) -> None:
    assert features_of(respell(text, seed)) == features_of(text)
