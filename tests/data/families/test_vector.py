"""Vector families: every program compiles and runs, and what has a closed meaning computes what NumPy computes."""

from __future__ import annotations

import ctypes
import importlib.util
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from irgauge.data.families import FAMILIES
from irgauge.data.families.affine_text import Index
from irgauge.data.families.vector import KINDS, MAX_OPERAND_BYTES, families, program
from irgauge.data.families.vector_text import VectorDraw, VectorKernel
from irgauge.data.label.llvm import to_assembly
from irgauge.data.label.tools import run, tool

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

FORMS = (("affine", False), ("transfer", False), ("load", True), ("transfer", True), ("load", False))
"""How vectors are accessed, and whether loops are scf.for; the checked programs take them in turn."""


def _kernel(form: int) -> VectorKernel:
    kernel = VectorKernel(random.Random(3))
    kernel.access, kernel.scf = FORMS[form % len(FORMS)]
    return kernel


def _written(kind: str, *wanted: object, element: str = "f32", scale: float = 1e-3, form: int = 0) -> str:
    """The program that comes of certain choices."""
    kernel = _kernel(form)
    KINDS[f"vector_{kind}"](VectorDraw(compiled.Chosen(*wanted), kernel, scale, element, "mixed"), kernel)
    return kernel.finish()


def _product(a: Arrays) -> dict[int, np.ndarray]:
    return {2: a[0] @ a[1]}


def _gathered(a: Arrays) -> dict[int, np.ndarray]:
    places = np.arange(a[1].size) * (12345 | 1) + a[1]
    return {2: a[0][(places & 0x7FFFFFFF) % a[0].size]}


def _filtered(a: Arrays) -> dict[int, np.ndarray]:
    windows = np.lib.stride_tricks.sliding_window_view(a[0], a[1].shape[1])
    return {2: 0.125 * windows @ a[1].T if a[2].ndim == 1 else (0.125 * windows @ a[1].T).T}


def _multiplied(a: Arrays) -> dict[int, np.ndarray]:
    product = 0.5 * (a[0] + 1j * a[1]) * (a[2] + 1j * a[3])
    return {4: product.real, 5: product.imag}


def _radix4(a: Arrays) -> dict[int, np.ndarray]:
    """Rows come out in bit-reversed order, turned by the twiddles, over twice the radix."""
    whole = np.fft.fft(a[0] + 1j * a[1], axis=0)[[0, 2, 1, 3]] / 8
    whole[1:] *= (a[2] + 1j * a[3])[1:]
    return {4: whole.real, 5: whole.imag}


def _small(a: Arrays) -> dict[int, np.ndarray]:
    return {2: 0.125 * np.einsum("rti,tsi->rsi", a[0], a[1])}


def _blurred(a: Arrays) -> dict[int, np.ndarray]:
    return {1: np.lib.stride_tricks.sliding_window_view(a[0], a[0].size - a[1].size + 1).mean(axis=1)}


def _blurred_down(a: Arrays) -> dict[int, np.ndarray]:
    reach = len(a[0]) - len(a[1]) + 1
    return {1: np.lib.stride_tricks.sliding_window_view(a[0], reach, axis=0).sum(axis=2) / (2 * reach)}


Check = tuple[str, tuple[object, ...], str, Callable[[Arrays], dict[int, np.ndarray]]]

WAYS: dict[str, Check] = {
    "axpy": ("elementwise", ("axpy", 2, "masked"), "f32", lambda a: {2: 3 * a[0] + a[1], 3: 3 * a[0] + a[1]}),
    "axpy, split": ("elementwise", ("axpy", 2, "split"), "f64", lambda a: {2: 3 * a[0] + a[1], 3: 3 * a[0] + a[1]}),
    "axpy, scalar tail": ("elementwise", ("axpy", 2, "scalar"), "i32", lambda a: {2: 3 * a[0] + a[1]}),
    "dot": ("reduction", ("dot", 4), "f32", lambda a: {2: a[0] @ a[1]}),
    "max": ("reduction", ("max", 12), "f64", lambda a: {2: a[0].max(axis=1)}),
    "gemv": ("gemv", ("rows", 4), "f32", lambda a: {2: a[0] @ a[1]}),
    "gemv by columns": ("gemv", ("columns", 6), "f64", lambda a: {2: a[2] + a[1] @ a[0]}),
    "gemm 1x1": ("gemm_broadcast", (), "f32", _product),
    "gemm 4x3": ("gemm_broadcast", ((4, 3), 2), "f32", _product),
    "gemm 6x4": ("gemm_broadcast", ((6, 4),), "f64", _product),
    "contract": ("gemm_contract", (4, "contract"), "f32", _product),
    "contract, B transposed": ("gemm_contract", (4, "contract-bt"), "f32", lambda a: {2: a[0] @ a[1].T}),
    "contract, A transposed": ("gemm_contract", (4, "contract-at"), "f32", lambda a: {2: a[0].T @ a[1]}),
    "outer products": ("gemm_contract", (6, "outer"), "f32", lambda a: {2: a[0].T @ a[1]}),
    "row sums": ("multi_reduction", ("add",), "f32", lambda a: {2: a[0].sum(axis=1)}),
    "transpose": ("transpose", ("tiles",), "f32", lambda a: {1: a[0].T}),
    "transpose by shuffles": ("transpose", ("shuffled", 8), "f32", lambda a: {1: a[0].T}),
    "interleave": ("transpose", ("interleave",), "f32", lambda a: {2: np.stack([a[0], a[1]], axis=1).ravel()}),
    "reverse": ("transpose", ("reverse",), "f32", lambda a: {1: a[0][::-1]}),
    "gather": ("gather", ("gather", 1000), "f32", _gathered),
    "stencil": ("stencil", ("loads", 1), "f32", _blurred),
    "stencil down a strip": ("stencil", ("carried", 2), "f32", _blurred_down),
    "dot of i8": ("widening", ("dot8",), "i8", lambda a: {2: a[0].astype(int) @ a[1].astype(int)}),
    "scan": ("scan", ("shuffles", "add"), "f32", lambda a: {1: np.cumsum(a[0], axis=-1)}),
    "scan of the largest": ("scan", ("blocked", "max", 8), "i32", lambda a: {1: np.maximum.accumulate(a[0], axis=-1)}),
    "filter": ("filter", (5, "loads"), "f32", _filtered),
    "filter bank": ("filter", (3, "bank", 4), "f64", _filtered),
    "complex product": ("complex", ("multiply",), "f32", _multiplied),
    "radix-4 butterfly": ("complex", ("radix4",), "f32", _radix4),
    "small matrices": ("small_matrices", ("arrays", 3), "f32", _small),
}
"""Name -> family, choices, element type, and the arguments' values afterwards, by number."""

CHECKED = {
    name: _written(kind, *wanted, element=element, form=at, scale=3e-4)
    for at, (name, (kind, wanted, element, _)) in enumerate(WAYS.items())
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    made: ctypes.CDLL = compiled.library(tmp_path_factory.mktemp("vector"), list(CHECKED.values()))
    return made


@pytest.mark.parametrize("name", CHECKED)
def test_a_program_computes_what_numpy_computes(library: ctypes.CDLL, name: str) -> None:
    found = compiled.operands(CHECKED[name])
    expected = WAYS[name][3]([a.astype(np.float64) if a.dtype == np.float32 else a.copy() for a in found])
    compiled.call(getattr(library, f"kernel_{list(CHECKED).index(name)}"), found)
    for at, wanted in expected.items():
        wanted = np.reshape(wanted, found[at].shape)
        atol = 4e-5 * float(np.abs(wanted).max()) if found[at].dtype.kind == "f" else 0
        np.testing.assert_allclose(found[at].astype(np.float64), wanted, rtol=0, atol=atol, err_msg=f"argument {at}")


def test_programs_run_in_bounds_and_stay_finite(tmp_path: Path) -> None:
    texts = {family: [program(family, seed).mlir for seed in range(300, 312)] for family in KINDS}
    kernels = [one for found in texts.values() for one in compiled.smallest(found, 2)]
    output = compiled.run_checked(tmp_path, kernels)
    assert output.endswith("done\n"), output[-500:]
    assert "not finite" not in output, output


def test_an_array_holds_every_lane() -> None:
    for form in range(len(FORMS)):
        kernel = _kernel(form)
        array = kernel.array("f32")
        with kernel.loop(0, 32, step=8) as i:
            kernel.write(kernel.read(array, i + 3, width=8), array, i)
        assert "%A0: memref<35xf32>" in kernel.finish()


def test_subscripts_of_scf_loops_are_computed(tmp_path: Path) -> None:
    kernel = _kernel(2)
    source, target = kernel.array("i64"), kernel.array("i64")
    with kernel.loop(0, 5) as i, kernel.loop(0, 7) as j:
        kernel.store(kernel.load(source, (i * 3 + j) % 11), target, (i * -7) + 28, (j + 1) // 2)
    text = kernel.finish()
    assert "scf.for" in text
    assert "affine" not in text
    found = [np.arange(11), np.zeros((29, 4), np.int64)]
    compiled.call(compiled.library(tmp_path, [text]).kernel_0, found)
    wanted = np.zeros((29, 4), np.int64)
    for i in range(5):
        for j in range(7):
            wanted[28 - 7 * i, (j + 1) // 2] = (3 * i + j) % 11
    np.testing.assert_array_equal(found[1], wanted)


def test_vector_types_are_told_apart() -> None:
    kernel = _kernel(0)
    two = kernel.constant(2, "vector<4xf32>")
    assert two.is_float
    assert not kernel.constant(2, "vector<4xi32>").is_float
    assert kernel.compare("ogt", two, two).type == "vector<4xi1>"
    assert kernel.converted(two, "f64").type == "vector<4xf64>"
    with kernel.loop(0, 4) as i:
        kernel.write(two, kernel.array("f32"), i)
    assert "dense<2.000000000e+00> : vector<4xf32>" in kernel.finish()
    assert kernel.constant(1, "bf16").is_float
    assert Index("%i", 0, 3).high == 3


def test_large_register_tiles_spill_and_small_ones_do_not() -> None:
    compiled.skip_without_tools()
    assert "Spill" not in to_assembly(CHECKED["gemm 1x1"])
    assert "Spill" in to_assembly(CHECKED["gemm 6x4"])


def test_every_program_verifies() -> None:
    compiled.skip_without_tools()
    texts = [source.mlir for family in families(count=8) for source in family.sources()]
    run([tool("mlir-opt"), "--split-input-file", "-o", "-"], step="mlir-opt", stdin="\n// -----\n".join(texts))
    assert len(set(texts)) == len(texts)


def test_families_are_registered_and_differ_in_structure() -> None:
    assert set(KINDS) <= set(FAMILIES)
    for family in KINDS:
        shapes = {re.sub(r"\d+", "#", program(family, seed).mlir) for seed in range(30)}
        assert len(shapes) >= 15, family


def test_operands_fit_the_limit() -> None:
    sizes = [compiled.operand_bytes(program(family, seed).mlir) for family in KINDS for seed in range(12)]
    assert min(sizes) > 0
    assert max(sizes) <= MAX_OPERAND_BYTES
