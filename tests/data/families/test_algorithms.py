"""The algorithm families: what they compute, that they stay in bounds and end, determinism, sizes."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irgauge.data.families import FAMILIES, control, dp, image, image_stencils, numeric, registers, sorting, sparse
from irgauge.data.families.drawn import MAX_OPERAND_BYTES, MAX_TEXT_BYTES, Kind, program
from irgauge.data.label.llvm import LOWERING, to_assembly
from irgauge.data.label.tools import run, tool
from irgauge.errors import ToolMissingError

MODULES = (control, dp, image, image_stencils, numeric, registers, sorting, sparse)
KINDS: dict[str, tuple[str, Kind]] = {
    family: (module.ORIGIN, kind) for module in MODULES for family, kind in module.KINDS.items()
}
DTYPES = {"f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "index": "q"}


def _made(family: str, seed: int = 0, forced: Mapping[str, Any] | None = None) -> str:
    origin, kind = KINDS[family]
    return program(origin, family, seed, kind, forced).mlir


def _needs(*names: str) -> None:
    try:
        for name in names:
            tool(name)
    except ToolMissingError as error:
        pytest.skip(str(error))


def _arguments(mlir: str) -> list[tuple[list[int], str]]:
    """Shape and element type of each argument."""
    header = re.search(r"func\.func @kernel\((.*?)\) \{", mlir)
    assert header is not None
    types = [
        inside.split("x", inside.count("x") - ("index" in inside))
        for inside in re.findall(r"memref<([^>]*)>", header[1])
    ]
    return [([int(size) for size in parts[:-1]], parts[-1]) for parts in types]


# --- meaning ----------------------------------------------------------------------------------------------------------

Arrays = Sequence[np.ndarray]


def _close(found: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * (1 + np.max(np.abs(wanted))))


def _inner(a: np.ndarray, dy: int, dx: int, r: int = 1) -> np.ndarray:
    """The picture moved by an offset, without a border of `r`."""
    rows, columns = a.shape
    return a[r + dy : rows - r + dy, r + dx : columns - r + dx]


NEAR = list(product((-1, 0, 1), repeat=2))


def box_filter(b: Arrays, a: Arrays) -> None:
    _close(_inner(a[1], 0, 0), sum(_inner(b[0], *o) for o in NEAR) / 9)


def sobel(b: Arrays, a: Arrays) -> None:
    def p(y: int, x: int) -> np.ndarray:
        return _inner(b[0], y, x)

    gx = p(-1, 1) - p(-1, -1) + 2 * (p(0, 1) - p(0, -1)) + p(1, 1) - p(1, -1)
    gy = p(1, -1) - p(-1, -1) + 2 * (p(1, 0) - p(-1, 0)) + p(1, 1) - p(-1, 1)
    _close(_inner(a[1], 0, 0), abs(gx) + abs(gy))


def median(b: Arrays, a: Arrays) -> None:
    _close(_inner(a[1], 0, 0), np.median([_inner(b[0], *o) for o in NEAR], axis=0))


def contrast(b: Arrays, a: Arrays) -> None:
    window = np.array([_inner(b[0], *o) for o in NEAR])
    spread = np.abs((window**2).mean(0) - window.mean(0) ** 2)
    _close(_inner(a[1], 0, 0), (_inner(b[0], 0, 0) - window.mean(0)) / np.sqrt(spread + 0.01))


def area(b: Arrays, a: Arrays) -> None:
    y, x = a[1].shape
    _close(a[1], b[0][: 2 * y, : 2 * x].reshape(y, 2, x, 2).mean((1, 3)))


def histogram(b: Arrays, a: Arrays) -> None:
    bins = len(a[1])
    places = np.clip(((b[0] - 0.5) * (bins - 1)).astype(int), 0, bins - 1)
    assert np.array_equal(a[1], np.bincount(places.ravel(), minlength=bins))


def grey(b: Arrays, a: Arrays) -> None:
    _close(a[1], np.tensordot([0.299, 0.587, 0.114], b[0], 1))


def integral(b: Arrays, a: Arrays) -> None:
    _close(a[1][1:, 1:], b[0].cumsum(0).cumsum(1))


def star(b: Arrays, a: Arrays) -> None:
    around = sum(_inner(b[0], *o) for o in NEAR if sum(map(abs, o)) == 1)
    _close(_inner(a[1], 0, 0), (_inner(b[0], 0, 0) + around / 2) / 3)


def gauss_seidel(b: Arrays, a: Arrays) -> None:
    line = b[0].copy()
    for _ in range(8):
        for i in range(1, len(line) - 1):
            line[i] = (line[i - 1] / 2 + line[i] + line[i + 1] / 2) / 2
    _close(a[0], line)


def restrict(b: Arrays, a: Arrays) -> None:
    y, x = (s - 2 for s in a[1].shape)
    _close(a[1][1:-1, 1:-1], b[0][1 : 2 * y + 1, 1 : 2 * x + 1].reshape(y, 2, x, 2).mean((1, 3)))


def life(b: Arrays, a: Arrays) -> None:
    cells = [b[0] & 1, b[1] & 1]
    for read, write in ((0, 1), (1, 0)):
        old = cells[read]
        around = sum(_inner(old, *o, 2) for o in NEAR if o != (0, 0))
        cells[write][2:-2, 2:-2] = (around == 3) | ((around == 2) & (_inner(old, 0, 0, 2) == 1))
    assert np.array_equal(a[0][2:-2, 2:-2], cells[0][2:-2, 2:-2])


def lcs(b: Arrays, a: Arrays) -> None:
    x, y = b[0], b[1]
    table = np.zeros((len(x) + 1, len(y) + 1), int)
    for i, j in product(range(len(x)), range(len(y))):
        table[i + 1, j + 1] = table[i, j] + 1 if x[i] == y[j] else max(table[i, j + 1], table[i + 1, j])
    assert np.array_equal(a[2], table)


def edit(b: Arrays, a: Arrays) -> None:
    x, y = b[0], b[1]
    row = list(range(len(y) + 1))
    for i in range(len(x)):
        old, row = row, [i + 1]
        for j in range(len(y)):
            row.append(min(old[j] + (x[i] != y[j]), old[j + 1] + 1, row[j] + 1))
    assert a[2].tolist() == row


def rods(b: Arrays, a: Arrays) -> None:
    price = b[0]
    best = [0.0]
    for length in range(1, len(price)):
        best.append(max(0.0, *(price[i] + best[length - i] for i in range(1, length + 1))))
    _close(a[1], np.array(best))


def chain(b: Arrays, a: Arrays) -> None:
    sizes = b[1]
    n = len(a[0])
    best = np.zeros((n, n))
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best[i, j] = min(best[i, m] + best[m + 1, j] + sizes[i] * sizes[m + 1] * sizes[j + 1] for m in range(i, j))
    _close(a[0], best)


def viterbi(b: Arrays, a: Arrays) -> None:
    observed, moves = b[1], b[2]
    score = [observed[0]]
    for t in range(1, len(observed)):
        score.append((score[-1][:, None] + moves).max(0) + observed[t])
    _close(a[0], np.array(score))


def warping(b: Arrays, a: Arrays) -> None:
    n, m = len(b[0]) - 2, len(b[1]) - 2
    table = np.full((n + 2, m + 2), 1e6)
    table[0, 0] = table[1, 1] = 0
    for i, j in product(range(1, n + 1), range(1, m + 1)):
        table[i, j] = min(table[i - 1, j - 1], table[i - 1, j], table[i, j - 1]) + abs(b[0][i - 1] - b[1][j - 1])
    _close(a[2], table)


def floyd(b: Arrays, a: Arrays) -> None:
    dist = b[0].copy()
    for m in range(len(dist)):
        dist = np.minimum(dist, dist[:, m : m + 1] + dist[m : m + 1])
    _close(a[0], dist)


def sorts(b: Arrays, a: Arrays) -> None:
    assert len(set(a[0].tolist())) > len(a[0]) // 2  # filled with keys that differ
    assert np.array_equal(a[0], np.sort(a[0]))


def sorts_by_digits(b: Arrays, a: Arrays) -> None:
    assert np.array_equal(a[0] & 255, np.sort(a[0] & 255))
    assert len(set(a[0].tolist())) > len(a[0]) // 2


def prefix(b: Arrays, a: Arrays) -> None:
    _close(a[1], np.cumsum(b[0].ravel()).reshape(b[0].shape))


def compact(b: Arrays, a: Arrays) -> None:
    kept = b[0][b[0] > 1]
    assert a[2][0] == len(kept)
    assert np.array_equal(a[1][: len(kept)], kept)


def lower_bound(b: Arrays, a: Arrays) -> None:
    table, found = a[0], a[1]
    assert len(set(found.tolist())) > 4
    assert all(table[place - 1] < table[place] for place in found if 0 < place < len(table))
    assert found.min() >= 0
    assert found.max() <= len(table)


def csr_product(b: Arrays, a: Arrays) -> None:
    x, starts, columns, values = b[0], a[2], a[3], b[4]
    wanted = [sum(values[e] * x[columns[e]] for e in range(starts[r], starts[r + 1])) for r in range(len(starts) - 1)]
    _close(a[1], np.array(wanted))


def csr_times_dense(b: Arrays, a: Arrays) -> None:
    starts, columns, values, dense = a[0], a[1], b[2], b[3]
    wanted = np.zeros(a[4].shape)
    for r in range(len(starts) - 1):
        for e in range(starts[r], starts[r + 1]):
            wanted[r] += values[e] * dense[columns[e]]
    _close(a[4], wanted)


def to_columns(b: Arrays, a: Arrays) -> None:
    starts, columns, values, out_starts, out_rows, out_values = a[0], a[1], b[2], a[3], a[4], a[5]
    entries = [(columns[e], r, values[e]) for r in range(len(starts) - 1) for e in range(starts[r], starts[r + 1])]
    entries.sort(key=lambda entry: (entry[0], entry[1]))
    n = len(entries)
    assert out_rows[:n].tolist() == [r for _, r, _ in entries]
    _close(out_values[:n], np.array([v for _, _, v in entries]))
    counts = np.bincount([c for c, _, _ in entries], minlength=len(out_starts) - 2)
    assert np.array_equal(out_starts[1 : len(counts) + 1], np.cumsum(counts))


def gathers(b: Arrays, a: Arrays) -> None:
    _close(a[2], b[1][a[0]])


def group_means(b: Arrays, a: Arrays) -> None:
    bins = len(a[1])
    place = np.clip(((b[0] - 0.5) * bins).astype(int), 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    assert np.array_equal(a[1], counts)
    _close(a[2], np.bincount(place, b[0], bins) / np.maximum(counts, 1))


def breadth_first(b: Arrays, a: Arrays) -> None:
    starts, columns, level = a[0], a[1], a[2]
    wanted = np.full(len(level), -1)
    wanted[0] = 0
    for depth in range(2):
        for r in np.flatnonzero(wanted == depth):
            for target in columns[starts[r] : starts[r + 1]]:
                wanted[target] = depth + 1 if wanted[target] < 0 else wanted[target]
    assert np.array_equal(level, wanted)


def small_fourier(b: Arrays, a: Arrays) -> None:
    wanted = np.fft.fft(b[-2] + 1j * b[-1], axis=1) / b[-2].shape[1]
    _close(a[-2] + 1j * a[-1], wanted)


def distances(b: Arrays, a: Arrays) -> None:
    points = np.array(b[:3]).T
    _close(a[4], np.linalg.norm(points[:, None] - points[None], axis=2))


def pi_quarter(b: Arrays, a: Arrays) -> None:
    assert abs(a[0][0] - np.pi / 4) < 0.03


def crc(b: Arrays, a: Arrays) -> None:
    assert int(a[0][0]) & 0xFFFFFFFF == zlib.crc32(b[1].tobytes())


def horner(b: Arrays, a: Arrays) -> None:
    _close(a[1], np.polyval(b[2], b[0] - 1))


def cube_root(b: Arrays, a: Arrays) -> None:
    _close(a[1], np.cbrt(b[0]), 1e-4)


def lorenz(b: Arrays, a: Arrays) -> None:
    def slope(y: np.ndarray) -> np.ndarray:
        return np.array([(y[1] - y[0]) * 10, y[0] * (28 - y[2]) - y[1], y[0] * y[1] - y[2] * 2.667])

    h, steps = 0.003, 20
    y = b[0].T
    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + k1 * h / 2)
        k3 = slope(y + k2 * h / 2)
        y = y + (k1 + 2 * k2 + 2 * k3 + slope(y + k3 * h)) * h / 6
    _close(a[1], y.T, 1e-6)


def thomas(b: Arrays, a: Arrays) -> None:
    n = len(b[0])
    matrix = np.diag(b[1] + 1) + np.diag(b[0][1:] * 0.4, -1) + np.diag(b[2][: n - 1] * 0.4, 1)
    _close(matrix @ a[5], b[3])


def small_solves(b: Arrays, a: Arrays) -> None:
    size = b[0].shape[1]
    matrices = b[0] + 2.0 * size * np.eye(size)
    _close(a[2][:, 0], np.linalg.solve(matrices, b[1][:, 0][..., None])[..., 0])


def big_product(b: Arrays, a: Arrays) -> None:
    def number(limbs: np.ndarray) -> int:
        return sum((int(limb) & 0xFFFFFFFF) << (32 * at) for at, limb in enumerate(limbs))

    for row in range(len(b[0])):
        assert number(a[2][row]) == number(b[0][row]) * number(b[1][row])


def parity(b: Arrays, a: Arrays) -> None:
    mixed = b[0].astype(np.int64) * 0x2F0B + np.arange(len(b[0]))
    assert np.array_equal(a[2], [bin(int(x) & 0xFFFFFFFF).count("1") & 1 for x in mixed])


def complex_product(b: Arrays, a: Arrays) -> None:
    x, y = b[0] + 1j * b[1], b[2] + 1j * b[3]
    _close(a[4] + 1j * a[5], x @ y)


def run_lengths(b: Arrays, a: Arrays) -> None:
    text, count = a[0], int(a[1][0])
    letters, lengths = a[2][:count], a[3][:count]
    assert np.array_equal(np.repeat(letters, lengths), text)
    assert np.all(letters[1:] != letters[:-1])


def matrix_product(b: Arrays, a: Arrays) -> None:
    _close(a[2], b[0] @ b[1], 1e-5 if a[2].dtype == np.float32 else 1e-9)


def small_products(b: Arrays, a: Arrays) -> None:
    n, size = len(b[0]), int(b[0].shape[1] ** 0.5)
    x, y, z = (m.reshape(n, size, size) for m in (b[0], b[1], a[2]))
    _close(z, x @ y)


def inverses(b: Arrays, a: Arrays) -> None:
    size = int(b[0].shape[1] ** 0.5)
    matrices = b[0].reshape(-1, size, size) + 2.0 * size * np.eye(size)
    _close(a[1].reshape(-1, size, size), np.linalg.inv(matrices))


def filtered(b: Arrays, a: Arrays) -> None:
    weights = [round(1 / (m + 2), 4) for m in range(len(a[2]))]
    _close(a[1], np.convolve(b[0], weights)[: len(b[0])])


def sorts_rows(b: Arrays, a: Arrays) -> None:
    assert np.array_equal(a[0], np.sort(b[0], axis=1))


F64 = {"element": "f64", "pixels": ("f64", "f64"), "loops": "affine", "work": 3000.0}
I32 = F64 | {"element": "i32"}
SORTED = F64 | {"given": False, "work": 900.0}
CASES: list[tuple[str, dict[str, Any], Callable[[Arrays, Arrays], None]]] = [
    ("img_filter", F64 | {"style": "unrolled", "window": "box", "radius": 1}, box_filter),
    ("img_filter", F64 | {"style": "unrolled", "window": "box", "radius": 1, "loops": "scf"}, box_filter),
    ("img_gradient", F64 | {"operator": "sobel", "measure": "absolute", "after": "none"}, sobel),
    ("img_rank", F64 | {"style": "median"}, median),
    ("img_adaptive", F64 | {"style": "contrast", "radius": 1}, contrast),
    ("img_resample", F64 | {"style": "area", "factor": 2}, area),
    ("img_histogram", F64 | {"style": "histogram", "element": "f64"}, histogram),
    ("img_colour", F64 | {"style": "grey", "planar": True}, grey),
    ("img_integral", F64 | {"style": "one pass"}, integral),
    ("img_integral", F64 | {"style": "two passes"}, integral),
    ("stencil_shapes", F64 | {"rank": 2, "radius": 1, "shape": "star", "sweeps": 1, "weights": "constant"}, star),
    ("stencil_skewed", F64 | {"rank": 1, "radius": 1, "in_place": True, "tiled": True, "steps": 8}, gauss_seidel),
    ("stencil_skewed", F64 | {"rank": 1, "radius": 1, "in_place": True, "tiled": False, "steps": 8}, gauss_seidel),
    ("stencil_multigrid", F64 | {"style": "restrict", "rank": 2}, restrict),
    ("stencil_physics", F64 | {"style": "life", "element": "i32", "steps": 1}, life),
    ("dp_alignment", F64 | {"style": "lcs", "cell": "i32", "order": "full"}, lcs),
    ("dp_alignment", F64 | {"style": "lcs", "cell": "i32", "order": "diagonal", "branch": True}, lcs),
    ("dp_alignment", F64 | {"style": "edit", "cell": "i32", "order": "rolling"}, edit),
    ("dp_knapsack", F64 | {"style": "rods", "values": "f64"}, rods),
    ("dp_intervals", F64 | {"style": "chain", "by_length": True}, chain),
    ("dp_intervals", F64 | {"style": "chain", "by_length": False}, chain),
    ("dp_hidden", F64 | {"style": "viterbi", "path": False}, viterbi),
    ("dp_warping", F64 | {"style": "full", "measure": "absolute"}, warping),
    ("dp_paths", F64 | {"style": "pairs", "next": False}, floyd),
    *(
        ("sort_exchange", SORTED | {"style": style, "how": how}, sorts)
        for style, how in zip(
            ("bubble", "early", "odd-even", "insertion", "selection", "shell", "cocktail"),
            ("branch", "select", "extrema", "select", "branch", "select", "extrema"),
            strict=True,
        )
    ),
    ("sort_network", SORTED | {"style": "bitonic", "how": "branch"}, sorts),
    ("sort_network", SORTED | {"style": "bitonic", "how": "select"}, sorts),
    ("sort_merge", SORTED | {"style": "quick"}, sorts),
    ("sort_merge", SORTED | {"style": "heap"}, sorts),
    ("sort_radix", SORTED | {"style": "radix", "key": "i32", "digit_bits": 4, "passes": 2}, sorts_by_digits),
    *(
        ("scan_prefix", F64 | {"style": style, "kind": "add", "exclusive": False, "in_memory": True}, prefix)
        for style in ("naive", "blocked")
    ),
    *(
        ("scan_compact", I32 | {"style": style, "level": 1, "predicate": "gt"}, compact)
        for style in ("branch", "flag", "scanned")
    ),
    ("search_tables", I32 | {"style": "binary", "logs": 6}, lower_bound),
    ("search_tables", I32 | {"style": "branchless", "logs": 6}, lower_bound),
    ("sparse_vector", F64 | {"style": "csr", "scaled": False, "index": "i32"}, csr_product),
    ("sparse_vector", F64 | {"style": "unrolled", "scaled": False, "index": "index"}, csr_product),
    ("sparse_matrix", F64 | {"style": "rows", "index": "i32"}, csr_times_dense),
    ("sparse_matrix", F64 | {"style": "register", "index": "i64"}, csr_times_dense),
    ("sparse_transposed", F64 | {"style": "convert", "index": "i32"}, to_columns),
    ("sparse_graph", F64 | {"style": "bfs", "index": "i32", "rounds": 2}, breadth_first),
    ("sparse_indirect", F64 | {"style": "gather", "index": "i64", "extra": 0}, gathers),
    ("sparse_buckets", F64 | {"style": "groups", "bins": 16}, group_means),
    ("num_fourier", F64 | {"style": "unrolled", "points": 8, "by_row": True}, small_fourier),
    ("num_particles", F64 | {"style": "pairs", "packed": False, "dims": 3, "rooted": True}, distances),
    ("num_monte_carlo", F64 | {"style": "pi", "generator": "hash", "work": 400_000.0}, pi_quarter),
    ("num_hashes", F64 | {"style": "crc table"}, crc),
    ("num_hashes", F64 | {"style": "crc bits", "unrolled": True}, crc),
    ("num_polynomials", F64 | {"style": "loop", "long": 8}, horner),
    ("num_iterations", F64 | {"style": "newton", "tolerance": 1e-5}, cube_root),
    ("num_equations", F64 | {"system": "lorenz", "method": "rk4", "many": True, "h": 0.003, "steps": 20}, lorenz),
    ("num_banded", F64 | {"style": "thomas"}, thomas),
    ("num_algebra", F64 | {"style": "small", "small": 3, "what": "solve"}, small_solves),
    ("num_integers", F64 | {"style": "multiply", "many": 8}, big_product),
    ("num_bits", F64 | {"style": "parity", "word": "i32"}, parity),
    ("num_complex", F64 | {"style": "matmul", "split": True}, complex_product),
    ("ctl_strings", F64 | {"style": "run-length", "letter": "i8"}, run_lengths),
    ("ctl_graphs", F64 | {"style": "matmul"}, matrix_product),
    ("reg_accumulators", F64 | {"style": "product", "turned": False, "packed": False}, matrix_product),
    ("reg_vectors", F64 | {"style": "outer", "packed": False, "vector": ("f64", 4)}, matrix_product),
    ("reg_transforms", F64 | {"style": "product", "transposed": False}, small_products),
    ("reg_transforms", F64 | {"style": "inverse", "transposed": False}, inverses),
    ("reg_carried", F64 | {"style": "filter", "nested": False}, filtered),
    ("reg_windows", F64 | {"style": "sort", "transposed": False, "width": 16}, sorts_rows),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """One shared library of all checked kernels, "kernel_0" and so on in the order of CASES."""
    _needs("mlir-opt", "mlir-translate", "opt", "llc", "gcc")
    folder = tmp_path_factory.mktemp("algorithms")
    kernels = []
    for number, (family, forced, _) in enumerate(CASES):
        text = _made(family, 0, forced).replace("@kernel", f"@kernel_{number}")
        kernels.append(text.removeprefix("module {\n").rstrip().removesuffix("}"))
    (folder / "kernels.s").write_text(to_assembly("\n".join(kernels), timeout_s=120))
    run([tool("gcc"), "-shared", "-o", "kernels.so", "kernels.s", "-lm"], step="link", cwd=folder)
    return ctypes.CDLL(str(folder / "kernels.so"))


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{family}-{check.__name__}-{n}" for n, (family, _, check) in enumerate(CASES)]
)
def test_kernel_computes_what_it_is_named_for(library: ctypes.CDLL, number: int) -> None:
    family, forced, check = CASES[number]
    rng = np.random.default_rng(number)
    found = []
    for shape, element in _arguments(_made(family, 0, forced)):
        drawn = rng.uniform(0.5, 1.5, shape) if element[0] == "f" else rng.integers(0, 4, shape)
        found.append(np.ascontiguousarray(drawn.astype(DTYPES[element])))
    before = [array.copy() for array in found]
    getattr(library, f"kernel_{number}")(*(array.ctypes.data_as(ctypes.c_void_p) for array in found))
    check(before, found)


def test_red_black_is_the_same_by_stride_and_by_condition(tmp_path: Path) -> None:
    _needs("mlir-opt", "mlir-translate", "opt", "llc", "gcc")
    results = []
    for style in ("stride", "condition", "step"):
        forced = F64 | {"style": style, "rank": 2, "steps": 2, "source": True, "residual": False, "sides": [12, 16]}
        text = _made("stencil_red_black", 3, forced)
        (tmp_path / f"{style}.s").write_text(to_assembly(text))
        run([tool("gcc"), "-shared", "-o", f"{style}.so", f"{style}.s"], step="link", cwd=tmp_path)
        rng = np.random.default_rng(5)
        arrays = [rng.uniform(0.5, 1.5, shape) for shape, _ in _arguments(text)]
        kernel = ctypes.CDLL(str(tmp_path / f"{style}.so")).kernel
        kernel(*(array.ctypes.data_as(ctypes.c_void_p) for array in arrays))
        results.append(arrays[0])
    _close(results[0], results[1])
    _close(results[0], results[2])


# --- every family -----------------------------------------------------------------------------------------------------


def test_families_are_registered() -> None:
    assert set(KINDS) <= set(FAMILIES)
    assert len(KINDS) >= 34
    assert {origin for origin, _ in KINDS.values()} == {
        "image", "dp", "sorting", "sparse", "numeric", "control", "registers",
    }  # fmt: skip


def test_every_family_says_what_it_is() -> None:
    assert all(kind.__doc__ for _, kind in KINDS.values())


def test_every_source_has_a_program_id_of_its_own() -> None:
    for family in ("dp_paths", "reg_vectors"):
        sources = [source for source, _ in zip(FAMILIES[family].sources(), range(9), strict=False)]
        assert [one.program_id for one in sources] == [f"{sources[0].origin}/{family}/{n}" for n in range(9)]
        assert len({one.mlir for one in sources}) == 9


def test_same_seed_gives_same_text_in_every_process() -> None:
    code = (
        "import zlib; from irgauge.data.families import FAMILIES; from itertools import islice;"
        f"names = {sorted(KINDS)!r};"
        "print(zlib.crc32(''.join(s.mlir for n in names for s in islice(FAMILIES[n].sources(), 1)).encode()))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    checksums = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(checksums) == 1


def test_sizes_stay_within_the_limits() -> None:
    width = {"f16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "index": 8}
    for family in KINDS:
        for seed in range(4):
            text = _made(family, seed)
            total = sum(int(np.prod(shape)) * width[element] for shape, element in _arguments(text))
            assert 0 < total <= MAX_OPERAND_BYTES, (family, seed)
            assert len(text) <= MAX_TEXT_BYTES, (family, seed)
            assert len(_arguments(text)) <= 32, (family, seed)


def test_programs_of_a_family_differ_in_structure() -> None:
    """With every number struck out, types included."""
    for family in KINDS:
        shapes = {re.sub(r"\d+", "#", _made(family, seed)) for seed in range(9)}
        assert len(shapes) >= 4, family


def test_every_program_verifies() -> None:
    _needs("mlir-opt")
    texts = [_made(family, seed) for family in KINDS for seed in range(40, 43)]
    run(
        [tool("mlir-opt"), "--split-input-file", "-o", "-"],
        step="mlir-opt",
        stdin="\n// -----\n".join(texts),
        timeout_s=60,
    )


def _checked(text: str) -> str:
    """The kernel with a check before each access."""
    lowered = run(
        [tool("mlir-opt"), "--lower-affine", "--generate-runtime-verification"], step="checks", stdin=text, timeout_s=60
    )
    assert "cf.assert" in lowered or "vector." in lowered
    return lowered


def _stops(texts: Sequence[str], folder: Path) -> list[int]:
    """Which kernels run into a bound check, or do not return."""
    _needs("mlir-opt", "mlir-translate", "llc", "gcc")
    kernels = [_checked(text).replace("@kernel", f"@kernel_{number}") for number, text in enumerate(texts)]
    checks = sorted(set(re.findall(r"llvm\.mlir\.global[^\n]*", "\n".join(kernels))))
    assert not checks
    bodies = [text.removeprefix("module {\n").rstrip().removesuffix("}") for text in kernels]
    lowered = run([tool("mlir-opt"), *LOWERING], step="lower", stdin="\n".join(bodies), timeout_s=120)
    ir = run([tool("mlir-translate"), "--mlir-to-llvmir"], step="translate", stdin=lowered, timeout_s=60)
    assembly = run(
        [tool("llc"), "-O0", "-mcpu=x86-64-v3", "-relocation-model=pic"], step="llc", stdin=ir, timeout_s=120
    )
    (folder / "kernels.s").write_text(assembly)
    subprocess.run(["gcc", "-shared", "kernels.s", "-o", "kernels.so", "-lm"], cwd=folder, check=True)
    code = (
        "import ctypes, sys; number, *sizes = map(int, sys.argv[1:]);"
        "ones = b'\\x01' + b'\\0' * 7;"
        "buffers = [(ctypes.c_char * n).from_buffer(bytearray(ones * (n // 8 + 1))) for n in sizes];"
        "getattr(ctypes.CDLL('./kernels.so'), f'kernel_{number}')(*buffers)"
    )
    stopped = []
    for number, text in enumerate(texts):
        sizes = [str(int(np.prod(shape)) * np.dtype(DTYPES[element]).itemsize) for shape, element in _arguments(text)]
        done = subprocess.run(
            [sys.executable, "-c", code, str(number), *sizes], cwd=folder, timeout=60, capture_output=True, check=False
        )
        if done.returncode != 0:
            stopped.append(number)
    return stopped


def test_every_access_is_in_bounds_and_every_loop_ends(tmp_path: Path) -> None:
    families = list(KINDS)
    texts = [_made(family, 200, {"work": 300.0}) for family in families]
    assert [families[number] for number in _stops(texts, tmp_path)] == []


def test_the_bound_checks_do_stop_a_kernel(tmp_path: Path) -> None:
    text = _made("sparse_vector", 0, F64 | {"style": "csr", "scaled": False, "index": "i32"})
    shorter = re.sub(r"%A0: memref<\d+xf64>", "%A0: memref<2xf64>", text)
    shorter = re.sub(r"(%A0\[[^\]]*\] : )memref<\d+xf64>", r"\1memref<2xf64>", shorter)
    assert shorter != text
    assert _stops([shorter], tmp_path) == [0]


def test_register_families_spill() -> None:
    _needs("mlir-opt", "mlir-translate", "opt", "llc")
    spilling = sum("Spill" in to_assembly(_made(family, 1, {"work": 2000.0})) for family in registers.KINDS)
    assert spilling >= 5
