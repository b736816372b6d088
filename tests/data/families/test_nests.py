"""Random nests: the same seed gives the same program, every program is valid, in bounds, small enough, and its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from irgauge.data.families import FAMILIES
from irgauge.data.families.affine_text import Index, Kernel
from irgauge.data.families.nests import KINDS, MAX_OPERAND_BYTES, families, nest
from irgauge.data.label.llvm import LOWERING, to_assembly
from irgauge.data.label.tools import run, tool
from irgauge.data.schedules import IDENTITY, apply
from irgauge.errors import ToolMissingError


def _has(*names: str) -> bool:
    try:
        return all(tool(name) for name in names)
    except ToolMissingError:
        return False


needs_tools = pytest.mark.skipif(
    not _has("mlir-opt", "mlir-translate", "opt", "llc", "gcc"), reason="the labelling toolchain is not installed"
)

BITS = {"f32": 32, "f64": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def _arguments(mlir: str) -> list[tuple[list[int], str]]:
    """Shape and element type of each argument."""
    header = re.search(r"func\.func @kernel\((.*?)\) \{", mlir)
    assert header is not None
    types = [inside.split("x") for inside in re.findall(r"memref<([^>]*)>", header[1])]
    return [([int(size) for size in parts[:-1]], parts[-1]) for parts in types]


def _bytes(mlir: str) -> int:
    return sum(int(np.prod(shape)) * BITS[element] // 8 for shape, element in _arguments(mlir))


def test_same_seed_gives_same_text_in_every_process() -> None:
    code = (
        "import zlib; from irgauge.data.families.nests import KINDS, nest;"
        "print(zlib.crc32(''.join(nest(f, s).mlir for f in KINDS for s in (0, 1)).encode()))"
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


def test_every_source_has_a_program_id_of_its_own() -> None:
    sources = [source for family in families(count=3) for source in family.sources()]
    assert len({source.program_id for source in sources}) == 3 * len(KINDS)
    assert sources[4].program_id == f"nests/{sources[4].family}/1"
    assert set(KINDS) <= set(FAMILIES)


def test_programs_of_a_family_differ_in_structure() -> None:
    """Not copies at other sizes: with every number struck out, types included, nearly all texts of a family differ."""
    for family in KINDS:
        shapes = {re.sub(r"\d+", "#", nest(family, seed).mlir) for seed in range(20)}
        assert len(shapes) >= 17, family


def test_operands_fit_the_limit() -> None:
    sizes = [_bytes(nest(family, seed).mlir) for family in KINDS for seed in range(12)]
    assert min(sizes) > 0
    assert max(sizes) <= MAX_OPERAND_BYTES


def test_index_keeps_its_interval() -> None:
    i, j = Index("%i", 0, 9), Index("%j", 2, 4)
    assert (i * 2 + j - 1) == Index("%i * 2 + %j - 1", 1, 21)
    assert (i + j) * 3 == Index("(%i + %j) * 3", 6, 39)
    assert i.mirrored() == Index("%i * -1 + 9", 0, 9)
    assert (i + 1) // 4 == Index("(%i + 1) floordiv 4", 0, 2)
    assert j % 8 == Index("%j mod 8", 2, 4)
    assert i % 8 == Index("%i mod 8", 0, 7)


def test_an_array_grows_to_hold_every_access() -> None:
    kernel = Kernel()
    array = kernel.array("f32")
    with kernel.loop(1, 9) as i:
        kernel.store(kernel.load(array, i + 3), array, i)
    assert "%A0: memref<12xf32>" in kernel.finish()
    assert kernel.executed_ops == 16


@needs_tools
@pytest.mark.parametrize("family", KINDS)
def test_mlir_opt_accepts_the_programs(family: str) -> None:
    for seed in range(100, 104):
        apply(nest(family, seed).mlir, IDENTITY)


def _stops(mlir: str, folder: Path) -> bool:
    """Whether a kernel runs into one of the bound checks that mlir-opt puts around every access, or does not return."""
    checked = run(
        [tool("mlir-opt"), "--lower-affine", "--generate-runtime-verification"], step="checks", stdin=mlir, timeout_s=60
    )
    assert "cf.assert" in checked
    lowered = run([tool("mlir-opt"), *LOWERING], step="lower", stdin=checked, timeout_s=60)
    ir = run([tool("mlir-translate"), "--mlir-to-llvmir"], step="translate", stdin=lowered)
    assembly = run([tool("llc"), "-O1", "-relocation-model=pic"], step="llc", stdin=ir, timeout_s=60)
    (folder / "kernel.s").write_text(assembly)
    subprocess.run(["gcc", "-shared", "kernel.s", "-o", "kernel.so", "-lm"], cwd=folder, check=True)
    code = (
        "import ctypes, sys; sizes = [int(size) for size in sys.argv[1:]];"
        "ctypes.CDLL('./kernel.so').kernel(*[(ctypes.c_char * size)() for size in sizes])"
    )
    sizes = [str(int(np.prod(shape)) * BITS[element] // 8) for shape, element in _arguments(mlir)]
    done = subprocess.run(
        [sys.executable, "-c", code, *sizes], cwd=folder, timeout=60, capture_output=True, check=False
    )
    return done.returncode != 0


@needs_tools
def test_every_access_is_in_bounds(tmp_path: Path) -> None:
    for family in KINDS:
        small = min((nest(family, seed).mlir for seed in range(200, 206)), key=_bytes)
        assert not _stops(small, tmp_path), family


@needs_tools
def test_the_bound_checks_do_stop_a_kernel(tmp_path: Path) -> None:
    outside = nest("nest_stencil", 200).mlir
    loop = re.search(r"affine\.for %\w+ = \d+ to (\d+) \{\n[^\n]*affine\.load", outside)
    assert loop is not None
    longer = outside[: loop.start(1)] + str(int(loop[1]) + 9) + outside[loop.end(1) :]
    assert _stops(longer, tmp_path)


@needs_tools
def test_register_hungry_programs_spill() -> None:
    spilling = sum("Spill" in to_assembly(nest("nest_register_hungry", seed).mlir) for seed in range(9))
    assert spilling >= 3
