"""Labels against counts made by other means: single-stepping, the disassembly, and arithmetic on the source."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from irgauge.data.families.base import Source
from irgauge.data.families.polybench import FAMILIES
from irgauge.data.label.assembly import parse_function, true_executions
from irgauge.data.label.callgrind import count
from irgauge.data.label.executable import KERNEL, build
from irgauge.data.label.kernel import label_exact
from irgauge.data.targets import X86, targets_of
from irgauge.errors import LabelError


@dataclass(frozen=True)
class Labelled:
    values: dict[str, float]
    assembly: str
    disassembly: list[str]
    """Instructions of the kernel as objdump prints them from the executable, padding left out."""
    steps: int
    """Instructions of one call, counted by single-stepping the processor."""
    own_steps: int
    """Those of them that are the kernel's own, not libc's."""
    counted_own: int
    """The same by callgrind."""


def _mini(kernel: str) -> str:
    sources: Iterator[Source] = next(f for f in FAMILIES if f.name == kernel).sources()
    return next(sources).mlir


KERNELS = sorted(f.name for f in FAMILIES)


@pytest.fixture(scope="session")
def stepper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("step") / "step"
    subprocess.run(["gcc", "-O2", str(Path(__file__).with_name("step.c")), "-o", str(path)], check=True)
    return path


@functools.cache
def _labelled(kernel: str, stepper: Path) -> Labelled:
    labels = label_exact(_mini(kernel))
    assert labels.skipped is None
    with tempfile.TemporaryDirectory() as folder:
        program = build(labels.assembly, Path(folder))
        symbols = subprocess.run(["nm", "-S", str(program)], capture_output=True, text=True, check=True).stdout
        entry = re.search(r"^(\w+) (\w+) \w irgauge_kernel$", symbols, re.M)
        assert entry is not None
        step = [stepper, program, entry[1], entry[2]]
        steps = [int(n) for n in subprocess.run(step, capture_output=True, text=True, check=True).stdout.split()]
        function = parse_function(labels.assembly, KERNEL)
        counted_own = sum(true_executions(function, count(Path(folder)).executions).values())
        listing = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", "--disassemble=irgauge_kernel", str(program)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    instructions = re.findall(r"^\s+[0-9a-f]+:\t(\S.*)$", listing, re.M)
    real = [text for text in instructions if not re.match(r"(data16 |cs )*nop|xchg\s+%ax,%ax", text)]
    values = {column.partition("/")[2]: value for column, value in labels.values.items()}
    return Labelled(values, labels.assembly, real, steps[0], steps[1], counted_own)


@pytest.mark.parametrize("kernel", KERNELS)
def test_executed_instructions_equal_single_stepping(kernel: str, stepper: Path) -> None:
    labelled = _labelled(kernel, stepper)
    if labelled.own_steps == labelled.steps:
        assert labelled.counted_own == labelled.steps
        assert labelled.values["instructions_executed"] == labelled.steps
    else:  # libc picks its memset by processor, and valgrind's has no AVX-512; call stubs count as the kernel's
        assert labelled.counted_own == pytest.approx(labelled.own_steps, rel=0.01)


@pytest.mark.parametrize("kernel", KERNELS)
def test_static_targets_equal_the_disassembly(kernel: str, stepper: Path) -> None:
    labelled = _labelled(kernel, stepper)
    assert labelled.values["static_instructions"] == len(labelled.disassembly)
    named = {name for text in labelled.disassembly for name in re.findall(r"%[xy]mm(\d+)", text)}
    assert labelled.values["vec_used"] == len(named)


@pytest.mark.parametrize("kernel", KERNELS)
def test_spills_equal_accesses_of_stack_slots(kernel: str, stepper: Path) -> None:
    """Whatever touches the frame between %rsp and the saved registers is a spill, a reload or a stack array.

    Slots above the frame are arguments beyond the sixth; kernels with a stack array are left to the other tests.
    """
    labelled = _labelled(kernel, stepper)
    if "alloca" in _mini(kernel):
        pytest.skip("its stack array is accessed like a spill slot")
    frame = sum(int(m[1], 16) for text in labelled.disassembly if (m := re.match(r"sub\s+\$0x(\w+),%rsp", text)))
    frame += 8 * sum(bool(re.match(r"push\s+%rax", text)) for text in labelled.disassembly)
    slots = []
    for text in labelled.disassembly:
        found = re.search(r"(?:(-?)0x(\w+))?\(%rsp\)", text)
        if (
            found and not text.startswith("lea") and (found[1] or int(found[2] or "0", 16) < frame)
        ):  # below %rsp: the red zone
            slots.append(text)
    stores = [text for text in slots if re.match(r"(v?mov|add|sub|inc|dec).*[ ,](?:-?0x\w+)?\(%rsp\)$", text)]
    assert labelled.values["spills"] == len(stores)
    assert labelled.values["reloads"] == len(slots) - len(stores)


def test_every_target_of_the_track_but_the_latency_is_labelled(stepper: Path) -> None:
    expected = {t.name for t in targets_of("kernel")} - {"latency_ns"}
    assert set(_labelled("gemm", stepper).values) == expected


def test_labelling_twice_gives_the_same() -> None:
    first, second = label_exact(_mini("adi")), label_exact(_mini("adi"))
    assert first == second


ELEMENTWISE = """
func.func @kernel(%a: memref<4096xf32>, %b: memref<4096xf32>) {
  %c = arith.constant 3.0 : f32
  affine.for %i = 0 to 4096 {
    %x = affine.load %a[%i] : memref<4096xf32>
    %y = arith.mulf %x, %c : f32
    affine.store %y, %b[%i] : memref<4096xf32>
  }
  return
}
"""

CHAIN = """
func.func @kernel(%a: memref<1000xf64>, %s: memref<1xf64>) {
  affine.for %i = 0 to 1000 {
    %x = affine.load %a[%i] : memref<1000xf64>
    %y = affine.load %s[0] : memref<1xf64>
    %z = arith.addf %x, %y : f64
    affine.store %z, %s[0] : memref<1xf64>
  }
  return
}
"""

STREAM = """
func.func @kernel(%a: memref<65536xf64>, %s: memref<1xf64>) {
  %zero = arith.constant 0.0 : f64
  %sum = affine.for %i = 0 to 65536 iter_args(%t = %zero) -> f64 {
    %x = affine.load %a[%i] : memref<65536xf64>
    %u = arith.addf %t, %x : f64
    affine.yield %u : f64
  }
  affine.store %sum, %s[0] : memref<1xf64>
  return
}
"""


def test_elementwise_kernel_is_fully_vector_and_fits_arithmetic() -> None:
    values = label_exact(ELEMENTWISE).values
    assert values[f"{X86}/vector_utilization"] == 1.0
    # 4096 loads and stores of 8 lanes each, and the pushes and pops around them
    assert values[f"{X86}/data_refs"] == pytest.approx(2 * 4096 / 8, abs=8)


def test_recurrence_is_scalar() -> None:
    values = label_exact(CHAIN).values
    assert values[f"{X86}/vector_utilization"] == 0.0


def test_streaming_reads_miss_once_a_line() -> None:
    """512 KiB written in order leave the last 32 KiB in the cache; reading from the start finds nothing of it."""
    values = label_exact(STREAM).values
    assert values[f"{X86}/l1d_misses"] == pytest.approx(65536 * 8 / 64, abs=4)
    assert values[f"{X86}/ll_misses"] == 0


MASKED = """
func.func @kernel(%a: memref<65536xf64>, %b: memref<65536xf64>) {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 65536 step 4 {
    %x = vector.transfer_read %a[%i], %zero : memref<65536xf64>, vector<4xf64>
    vector.transfer_write %x, %b[%i] : vector<4xf64>, memref<65536xf64>
  }
  return
}
"""


def test_data_of_masked_accesses_is_missing_rather_than_wrong() -> None:
    masked, unmasked = (
        label_exact(MASKED),
        label_exact(
            MASKED.replace(" : memref", " {in_bounds = [true]} : memref").replace(
                "] : vector", "] {in_bounds = [true]} : vector"
            )
        ),
    )
    assert "vmaskmov" in masked.assembly
    lost = {f"{X86}/{name}" for name in ("data_refs", "l1d_misses", "ll_misses")}
    assert set(unmasked.values) - set(masked.values) == lost


def test_mca_sees_the_latency_of_a_dependent_chain() -> None:
    """The hottest block is a chain of dependent additions; each takes 3 cycles on Zen 4."""
    labels = label_exact(STREAM)
    additions = max(len(re.findall("vaddsd", block)) for block in re.split(r"^\.L\w+:", labels.assembly, flags=re.M))
    assert labels.values[f"{X86}/mca_cycles"] == pytest.approx(3 * additions, rel=0.05)


def test_what_does_not_compile_says_which_step() -> None:
    with pytest.raises(LabelError, match="mlir-opt-error"):
        label_exact("func.func @kernel(%a: memref<4xf32>) {\n  %x = affine.load %a[] : memref<4xf32>\n  return\n}")


def test_what_does_not_run_keeps_its_static_targets() -> None:
    text = """
    func.func @kernel(%a: memref<8xf32>, %n: memref<8xcomplex<f32>>) {
      %c = arith.constant 1.0 : f32
      affine.store %c, %a[0] : memref<8xf32>
      return
    }"""
    labels = label_exact(text)
    assert labels.skipped is not None
    assert labels.skipped[0] == "arguments"
    assert labels.values[f"{X86}/static_instructions"] >= 2
    assert f"{X86}/instructions_executed" not in labels.values


def test_too_long_a_call_is_left_out() -> None:
    text = """
    func.func @kernel(%a: memref<1xf64>) {
      affine.for %i = 0 to 40000000 {
        %x = affine.load %a[0] : memref<1xf64>
        %y = math.sqrt %x : f64
        affine.store %y, %a[0] : memref<1xf64>
      }
      return
    }"""
    labels = label_exact(text)
    assert labels.skipped is not None
    assert labels.skipped[0] == "too-long"


def test_functions_without_a_body_or_private_do_not_count() -> None:
    with pytest.raises(LabelError, match="no-function"):
        label_exact("func.func private @f()")
