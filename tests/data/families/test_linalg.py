"""Linalg families: every program lowers and runs in bounds, and named operations compute what NumPy computes."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from irgauge.data.families import FAMILIES
from irgauge.data.families.linalg import (
    KINDS,
    MAX_OPERAND_BYTES,
    NAMED_OPS,
    families,
    kernel_text,
)
from irgauge.data.families.linalg_shapes import CONVOLUTIONS, GEMMS, fit
from irgauge.data.families.linalg_text import LinalgKernel, StridedArray, to_affine
from irgauge.data.families.nest_draw import Draw

Arrays = list[np.ndarray]


def _load(name: str) -> ModuleType:
    """A module beside this one; tests are no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compiled = _load("compiled")


def _written(family: str, *wanted: object, chances: bool = False, scale: float = 1e-3) -> str:
    """The program that comes of certain choices."""
    rng = compiled.Chosen(*wanted, chances=chances)
    kernel = LinalgKernel()
    KINDS[family](Draw(rng, kernel, scale, "f32", "mixed"), kernel)
    return kernel.finish()


def _convolved(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """NHWC by HWCF."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("nhwcij,ijcf->nhwf", windows, w)


def _softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def _matmul(a: Arrays) -> dict[int, np.ndarray]:
    return {2: a[2] + a[0] @ a[1]}


def _batch_matmul(a: Arrays) -> dict[int, np.ndarray]:
    return {0: a[0] + a[1] @ a[2]}


def _packed(a: Arrays) -> dict[int, np.ndarray]:
    return {2: a[2] + np.einsum("mkac,nkbc->mnab", a[0], a[1])}


def _bilinear(a: Arrays) -> dict[int, np.ndarray]:
    return {2: a[2] + np.einsum("bi,ijk->bjk", a[0], a[1])}


def _conv_2d(a: Arrays) -> dict[int, np.ndarray]:
    return {2: a[2] + _convolved(a[0], a[1], 2)}


def _grouped(a: Arrays) -> dict[int, np.ndarray]:  # ngchw by fgchw
    windows = np.lib.stride_tricks.sliding_window_view(a[0], a[1].shape[3:], axis=(3, 4))
    return {2: a[2] + np.einsum("ngchwij,fgcij->ngfhw", windows, a[1])}


def _conv_3d(a: Arrays) -> dict[int, np.ndarray]:  # ncdhw by fcdhw
    windows = np.lib.stride_tricks.sliding_window_view(a[0], a[1].shape[2:], axis=(2, 3, 4))
    return {2: a[2] + np.einsum("ncdhwijk,fcijk->nfdhw", windows, a[1])}


def _depthwise(a: Arrays) -> dict[int, np.ndarray]:
    """Dilated by two."""
    spread = tuple(2 * size - 1 for size in a[1].shape[:2])
    windows = np.lib.stride_tricks.sliding_window_view(a[0], spread, axis=(1, 2))[..., ::2, ::2]
    return {2: a[2] + np.einsum("nhwcij,ijc->nhwc", windows, a[1])}


def _pooled(a: Arrays) -> dict[int, np.ndarray]:
    windows = np.lib.stride_tricks.sliding_window_view(a[0], a[1].shape, axis=(1, 2))[:, ::2, ::2]
    return {2: windows.max(axis=(4, 5))}


def _reduced(a: Arrays) -> dict[int, np.ndarray]:
    return {1: a[0].sum(axis=tuple(range(a[0].ndim - a[1].ndim)))}


def _attention(a: Arrays) -> dict[int, np.ndarray]:
    scores = _softmax(a[0] @ a[1] / np.sqrt(a[0].shape[-1]))
    return {3: scores, 4: scores @ a[2]}


CHECKED: dict[str, tuple[str, Callable[[Arrays], dict[int, np.ndarray]]]] = {
    "matmul": (_written("linalg_matmul", "matmul"), _matmul),
    "matmul of f64": (_written("linalg_matmul", "matmul", ("f64", "f64", "f64")), _matmul),
    "matmul of i8": (
        _written("linalg_matmul", "matmul", ("i8", "i8", "i32")),
        lambda a: {2: a[2] + a[0].astype(np.int32) @ a[1].astype(np.int32)},
    ),
    "matmul, transposed A": (
        _written("linalg_matmul", "transposed", chances=True),
        lambda a: {2: a[0].T @ a[1].T + a[3]},  # with a bias behind it
    ),
    "matmul, loops in order 2 0 1": (_written("linalg_matmul", "generic"), _matmul),
    "batch_reduce_matmul": (
        _written("linalg_matmul", "reduce"),
        lambda a: {2: a[2] + np.einsum("bmk,bkn->mn", a[0], a[1])},
    ),
    "batch_matmul": (_written("linalg_batch_matmul", "named"), _batch_matmul),
    "batch_matmul, one matrix of keys": (_written("linalg_batch_matmul", "shared-keys"), _batch_matmul),
    "matvec": (_written("linalg_matvec", "matvec"), lambda a: {0: a[0] + a[1] @ a[2]}),
    "dot": (_written("linalg_matvec", "dot", scale=1e-4), lambda a: {2: a[2] + a[0] @ a[1]}),
    "mmt4d": (_written("linalg_packed_matmul", (4, 4, 1)), _packed),
    "bilinear": (_written("linalg_einsum"), _bilinear),
    "conv_2d": (_written("linalg_conv_2d"), _conv_2d),
    "conv_grouped": (_written("linalg_conv_grouped"), _grouped),
    "conv_3d": (_written("linalg_conv_1d_3d", 3), _conv_3d),
    "depthwise": (_written("linalg_depthwise_conv", 2), _depthwise),
    "pooling": (_written("linalg_pooling", "max"), _pooled),
    "add": (_written("linalg_elementwise", "add"), lambda a: {1: a[0] + a[2]}),
    "sum": (_written("linalg_reduce", "sum"), _reduced),
    "transpose": (_written("linalg_layout", "transpose"), lambda a: {1: a[0].T}),
    "pixel shuffle": (
        _written("linalg_layout", "shuffle"),
        lambda a: {1: a[0].transpose(0, 3, 1, 4, 2).reshape(a[1].shape)},
    ),
    "matmul and bias": (_written("linalg_matmul_epilogue", "bias"), lambda a: {2: a[0] @ a[1] + a[3] + a[4]}),
    "conv, batch norm, relu": (
        _written("linalg_conv_block", "single", CONVOLUTIONS[2]),
        lambda a: {2: np.maximum(_convolved(a[0], a[1], 1) * 0.01 * a[3] + a[4], 0)},
    ),
    "softmax": (_written("linalg_normalization", "softmax"), lambda a: {len(a) - 1: _softmax(a[0])}),
    "attention": (_written("linalg_network_block", "attention"), _attention),
}
"""Name -> the program of one way through a family, and its arguments' values afterwards, by number."""

TOLERANCES = {"f32": 3e-5, "f64": 1e-12}
"""Relative to the largest element; sums run in another order than NumPy's."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    kernels = to_affine(tuple(text for text, _ in CHECKED.values()))
    made: ctypes.CDLL = compiled.library(tmp_path_factory.mktemp("linalg"), kernels)
    return made


@pytest.mark.parametrize("name", CHECKED)
def test_a_program_computes_what_numpy_computes(library: ctypes.CDLL, name: str) -> None:
    text, reference = CHECKED[name]
    found = compiled.operands(text)
    expected = reference([a.astype(np.float64) if a.dtype == np.float32 else a.copy() for a in found])
    assert expected
    compiled.call(getattr(library, f"kernel_{list(CHECKED).index(name)}"), found)
    for at, wanted in expected.items():
        atol = TOLERANCES.get({4: "f32", 8: "f64"}[found[at].itemsize] if found[at].dtype.kind == "f" else "", 0)
        np.testing.assert_allclose(found[at], wanted, rtol=0, atol=atol * float(np.abs(wanted).max()))


def test_programs_run_in_bounds_and_stay_finite(tmp_path: Path) -> None:
    compiled.skip_without_tools()
    texts = {family: [kernel_text(family, seed) for seed in range(300, 308)] for family in KINDS}
    kernels = to_affine(tuple(one for found in texts.values() for one in compiled.smallest(found, 2)))
    output = compiled.run_checked(tmp_path, kernels)
    assert output.endswith("done\n"), output[-500:]
    assert "not finite" not in output


def test_the_bound_checks_stop_a_program(tmp_path: Path) -> None:
    compiled.skip_without_tools()
    (text,) = to_affine((CHECKED["sum"][0],))
    loop = re.search(r"affine\.for %\w+ = 0 to (\d+)", text)
    assert loop is not None
    longer = text[: loop.start(1)] + str(int(loop[1]) + 9) + text[loop.end(1) :]
    assert not compiled.run_checked(tmp_path, [longer]).endswith("done\n")


def test_every_family_lowers_to_affine_loops() -> None:
    compiled.skip_without_tools()
    for family in families(count=5):
        sources = list(family.sources())
        assert len({source.mlir for source in sources}) == 5
        for source in sources:
            assert ("linalg." in source.mlir) == (family.name == NAMED_OPS)
            assert source.mlir.count("func.func @kernel(") == 1


def test_families_are_registered_with_programs_of_their_own() -> None:
    assert set(KINDS) | {NAMED_OPS} <= set(FAMILIES)
    texts = [kernel_text(family, seed) for family in KINDS for seed in range(8)]
    assert len(set(texts)) == len(texts)


def test_programs_of_a_family_differ_in_structure() -> None:
    for family in KINDS:
        shapes = {re.sub(r"\d+", "#", kernel_text(family, seed)) for seed in range(30)}
        assert len(shapes) >= 8, family


def test_operands_fit_the_limit() -> None:
    sizes = [compiled.operand_bytes(kernel_text(family, seed)) for family in KINDS for seed in range(12)]
    assert min(sizes) > 0
    assert max(sizes) <= MAX_OPERAND_BYTES


def test_same_seed_gives_same_text_in_every_process() -> None:
    code = (
        "import zlib; from irgauge.data.families import linalg, transformer, vector;"
        "texts = [linalg.kernel_text(f, s) for f in linalg.KINDS for s in (0, 1)];"
        "texts += [m.program(f, s).mlir for m in (transformer, vector) for f in m.KINDS for s in (0, 1)];"
        "print(zlib.crc32(''.join(texts).encode()))"
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


def test_a_layer_shrinks_in_proportion() -> None:
    rng = compiled.Chosen()
    whole = {"m": 128, "n": 3072, "k": 768}
    assert fit(rng, whole, 1e12) == whole
    small = fit(rng, whole, 128 * 3072 * 768 / 512)
    assert small == {"m": 16, "n": 384, "k": 96}
    assert fit(rng, {"tokens": 197, "width": 768}, 2000)["tokens"] % 2 == 1
    assert fit(rng, {"m": 1, "n": 4096}, 64) == {"m": 1, "n": 64}
    assert fit(rng, {"m": 64, "taps": 64}, 128, free=("m",)) == {"m": 2, "taps": 64}


def test_every_layer_can_be_scaled_to_any_volume() -> None:
    rng = compiled.Chosen()
    for gemm in GEMMS:
        for volume in (300.0, 1e4, 1e6):
            made = fit(rng, {"m": gemm.m, "n": gemm.n, "k": gemm.k}, volume)
            assert min(made.values()) >= 1
            assert made["m"] * made["n"] * made["k"] <= 4 * volume, gemm


def test_a_strided_argument_knows_its_type_and_bytes() -> None:
    rows = StridedArray("%A0", "f32", False, [3, 5], 8)
    assert rows.type == "memref<3x5xf32, strided<[8, 1]>>"
    assert rows.bytes == (2 * 8 + 5) * 4
    columns = StridedArray("%A0", "f64", False, [3, 5], 4, transposed=True)
    assert columns.type == "memref<3x5xf64, strided<[1, 4]>>"
    assert columns.bytes == (4 * 4 + 3) * 8
