"""Every PolyBench kernel verifies, and computes what plain NumPy computes."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from irgauge.data.families.base import Source
from irgauge.data.families.polybench import FAMILIES, render, source
from irgauge.data.families.polybench.sizes import DIMENSIONS, ELEMENT_TYPES, SIZES
from irgauge.data.label.llvm import to_assembly
from irgauge.data.label.tools import run, tool
from irgauge.errors import ToolMissingError

DTYPES = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
TOLERANCES = {"f32": 2e-5, "f64": 1e-11, "i32": 0, "i64": 0}
"""Relative to the largest element of an array; sums run in another order than NumPy's."""

CHECKED = [
    (kernel, size_name, element_type)
    for kernel in DIMENSIONS
    for size_name in ("mini", "odd")
    for element_type in ELEMENT_TYPES[kernel]
]


def _load_reference() -> ModuleType:
    """The module beside this one; tests are no package."""
    path = Path(__file__).with_name("polybench_reference.py")
    spec = importlib.util.spec_from_file_location("polybench_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _load_reference()


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return [one for family in FAMILIES for one in family.sources()]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """One shared library of all checked kernels, "kernel_0" and so on in the order of CHECKED."""
    try:
        for name in ("mlir-opt", "mlir-translate", "opt", "llc", "gcc"):
            tool(name)
    except ToolMissingError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("polybench")
    kernels = [source(*key).mlir.replace("@kernel", f"@kernel_{number}") for number, key in enumerate(CHECKED)]
    (folder / "kernels.s").write_text(to_assembly("\n".join(kernels), timeout_s=120))
    run([tool("gcc"), "-shared", "-o", "kernels.so", "kernels.s", "-lm"], step="link", cwd=folder)
    return ctypes.CDLL(str(folder / "kernels.so"))


@pytest.mark.parametrize(("kernel", "size_name", "element_type"), CHECKED, ids=map("-".join, CHECKED))
def test_kernel_computes_what_numpy_computes(
    library: ctypes.CDLL, kernel: str, size_name: str, element_type: str
) -> None:
    signature = re.search(r"func\.func @kernel\((.*)\)", source(kernel, size_name, element_type).mlir)
    assert signature is not None
    shapes = [tuple(map(int, sizes.split("x")[:-1])) for sizes in re.findall(r"memref<([^>]*)>", signature[1])]
    rng = np.random.default_rng(len(kernel) + shapes[0][0])
    found = reference.operands(kernel, shapes, DTYPES[element_type], rng)
    before = [array.copy() for array in found]
    expected = [array.astype(np.float64) if element_type == "f32" else array.copy() for array in found]

    dimensions = dict(zip(DIMENSIONS[kernel], SIZES[kernel][size_name], strict=True))
    steps = {"steps": dimensions["TSTEPS"]} if kernel in reference.TIME_STEPPED else {}
    reference.REFERENCES[kernel](*expected, **steps)
    function = getattr(library, f"kernel_{CHECKED.index((kernel, size_name, element_type))}")
    function(*(array.ctypes.data_as(ctypes.c_void_p) for array in found))

    assert any(np.any(array != old) for array, old in zip(found, before, strict=True))
    for number, (array, wanted) in enumerate(zip(found, expected, strict=True)):
        atol = TOLERANCES[element_type] * float(np.max(np.abs(wanted)))
        np.testing.assert_allclose(array, wanted, rtol=0, atol=atol, err_msg=f"argument {number}")


def test_every_source_verifies(sources: list[Source]) -> None:
    try:
        mlir_opt = tool("mlir-opt")
    except ToolMissingError as error:
        pytest.skip(str(error))
    run(
        [mlir_opt, "--split-input-file", "-o", "-"], step="mlir-opt", stdin="\n// -----\n".join(s.mlir for s in sources)
    )


def test_there_are_30_kernels_in_two_types_at_six_sizes(sources: list[Source]) -> None:
    assert len(FAMILIES) == 30
    assert set(reference.REFERENCES) == {family.name for family in FAMILIES}
    assert len({one.program_id for one in sources}) == len({one.mlir for one in sources}) == 30 * 2 * 6
    assert {one.origin for one in sources} == {"polybench"}


def test_sources_are_the_same_every_time(sources: list[Source]) -> None:
    assert [one for family in FAMILIES for one in family.sources()] == sources


def test_a_source_has_one_public_function_of_static_memrefs(sources: list[Source]) -> None:
    for one in sources:
        assert one.mlir.count("func.func") == 1
        assert re.search(r"^func\.func @kernel\((%\w+: memref<(\d+x)+[fi]\d\d>(, )?)+\) \{$", one.mlir, re.MULTILINE)


def test_odd_sizes_are_prime() -> None:
    sizes = {size for kernel in DIMENSIONS for size in SIZES[kernel]["odd"]}
    assert [n for n in sizes if any(n % divisor == 0 for divisor in range(2, math.isqrt(n) + 1))] == []


def test_type_aliases_are_written_out() -> None:
    template = "!A = memref<${N}x${T}>\n!B = memref<${N_1}x${T}>\nfunc.func @kernel(%a: !A, %b: !B)\n"
    text = render(template, {"N": 8}, "f32")
    assert text == "func.func @kernel(%a: memref<8xf32>, %b: memref<7xf32>)\n"


def test_an_unknown_size_is_an_error() -> None:
    with pytest.raises(KeyError, match="huge"):
        source("gemm", "huge", "f32")
