"""The model of cache lines against a simulated cache: 8 ways, least recently used, 64-byte lines."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable

import pytest

from irgauge.featurize.cache import L1_BYTES, cache_model
from irgauge.featurize.function_view import FunctionView

View = Callable[[str], FunctionView]


def misses(addresses: Iterable[int], size_bytes: int, written_before: int) -> int:
    """Lines fetched by a run of byte addresses, after bytes 0 to `written_before` were written in order."""
    sets = size_bytes // 64 // 8
    cache: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]
    count = 0

    def touch(line: int) -> bool:
        lines = cache[line % sets]
        hit = line in lines
        lines[line] = None
        lines.move_to_end(line)
        if len(lines) > 8:
            lines.popitem(last=False)
        return hit

    for line in range(written_before // 64):
        touch(line)
    for address in addresses:
        count += not touch(address // 64)
    return count


def gemm(n: int, order: str) -> tuple[str, Iterable[int]]:
    loops = "".join(f"affine.for %{x} = 0 to {n} {{\n" for x in order)
    shape = f"memref<{n}x{n}xf64>"
    text = f"""func.func @f(%A: {shape}, %B: {shape}, %C: {shape}) {{ {loops}
    %a = affine.load %A[%i, %k] : {shape}
    %b = affine.load %B[%k, %j] : {shape}
    %c = affine.load %C[%i, %j] : {shape}
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    affine.store %s, %C[%i, %j] : {shape}
  {"}" * 3} return }}"""

    def run() -> Iterable[int]:
        size = n * n * 8
        for x in range(n):
            for y in range(n):
                for z in range(n):
                    at = dict(zip(order, (x, y, z), strict=True))
                    i, j, k = at["i"], at["j"], at["k"]
                    yield (i * n + k) * 8
                    yield size + (k * n + j) * 8
                    yield 2 * size + (i * n + j) * 8

    return text, run()


@pytest.mark.parametrize("order", ["ijk", "ikj", "jki"])
@pytest.mark.parametrize("n", [24, 72, 88])
def test_matrix_product_is_near_a_simulated_cache(view: View, order: str, n: int) -> None:
    text, addresses = gemm(n, order)
    truth = misses(addresses, L1_BYTES, 3 * n * n * 8)
    lines, _ = cache_model(view(text)).fetched(L1_BYTES, sets=True)
    assert abs(math.log((lines + 32) / (truth + 32))) < math.log(1.6), (lines, truth)


def test_small_operands_are_there_already(view: View) -> None:
    text, _ = gemm(16, "ijk")
    model = cache_model(view(text))
    assert model.fetched(L1_BYTES, sets=True) == (0, 0)
    assert sum(model.cold.values()) == 3 * 16 * 16 * 8 / 64


def test_rows_in_the_same_sets_thrash(view: View) -> None:
    def column(row: int) -> float:
        text = f"""func.func @f(%A: memref<128x{row}xf32>, %B: memref<128xf32>) {{
  affine.for %t = 0 to 100 {{ affine.for %i = 0 to 128 {{
    %a = affine.load %A[%i, 0] : memref<128x{row}xf32>
    affine.store %a, %B[%i] : memref<128xf32> }} }}
  return }}"""
        return cache_model(view(text)).fetched(L1_BYTES, sets=True)[0]

    assert column(1024) > 50 * column(1040)


def test_buffer_never_freed_in_a_loop_is_new_each_time(view: View) -> None:
    text = """func.func @f(%A: memref<64xf32>) {
  affine.for %t = 0 to 100 {
    %m = memref.alloc() : memref<64xf32>
    affine.for %i = 0 to 64 {
      %a = affine.load %A[%i] : memref<64xf32>
      affine.store %a, %m[%i] : memref<64xf32> }
    FREE }
  return }"""
    leaking = cache_model(view(text.replace("FREE", ""))).fetched(1024, sets=False)[0]
    freed = cache_model(view(text.replace("FREE", "memref.dealloc %m : memref<64xf32>"))).fetched(1024, sets=False)[0]
    assert leaking > 50 * freed
