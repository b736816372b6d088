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
from irgauge.data.label import kernel as kernel_module
from irgauge.data.label.assembly import parse_function, true_executions
from irgauge.data.label.callgrind import Counts, count
from irgauge.data.label.executable import KERNEL, build
from irgauge.data.label.kernel import (
    ExactLabels,
    Signature,
    label_batch,
    label_exact,
    label_latencies,
    only_signature,
    runnable_assemblies,
)
from irgauge.data.label.latency import Latency, latency_core, measure
from irgauge.data.label.llvm import TRIPLES, to_assemblies, to_assembly
from irgauge.data.label.tools import run, tool
from irgauge.data.targets import NEOVERSE, X86, targets_of
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
        program = build([labels.assembly], Path(folder))
        (placed,) = program.kernels
        executable = program.folder / "kernels"
        step = [stepper, executable, f"{placed.entry:x}", f"{placed.code_bytes:x}"]
        steps = [int(n) for n in subprocess.run(step, capture_output=True, text=True, check=True).stdout.split()]
        function = parse_function(labels.assembly, KERNEL)
        (counts,) = count(program)
        assert isinstance(counts, Counts)
        counted_own = sum(true_executions(function, placed.lines_of(counts.executions)).values())
        listing = subprocess.run(
            [
                "objdump",
                "-d",
                "--no-show-raw-insn",
                f"--start-address={placed.entry}",
                f"--stop-address={placed.entry + placed.code_bytes}",
                str(executable),
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    instructions = re.findall(r"^\s+[0-9a-f]+:\t(\S.*)$", listing, re.M)
    real = [text for text in instructions if not re.match(r"(data16 |cs )*nop|xchg\s+%ax,%ax", text)]
    values = {c.partition("/")[2]: value for c, value in labels.values.items() if c.startswith(X86)}
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
    expected = {t.name for t in targets_of("kernel") if t.device == X86} - {"latency_ns"}
    assert set(_labelled("gemm", stepper).values) == expected


def test_labels_are_the_same_alone_and_in_any_company() -> None:
    """Calls of libc and libm, data of its own, big and small, in front, in the middle and behind."""
    texts = [_mini("correlation"), _mini("durbin"), EXPONENTIALS, GLOBALS, ALLOCATES, MASKED]
    items = [(text, only_signature(text)) for text in texts]
    alone = [label_batch([item])[0] for item in items]
    assert label_batch(items) == alone
    order = [4, 2, 5, 0]
    assert label_batch([items[k] for k in order]) == [alone[k] for k in order]
    assert all(isinstance(labels, ExactLabels) and labels.skipped is None for labels in alone)


def test_every_count_is_the_same_in_any_company(tmp_path: Path) -> None:
    """Not only what becomes a label: instruction fetches, and which address executed how often."""
    texts = [_mini("correlation"), EXPONENTIALS, GLOBALS, _mini("lu"), ALLOCATES]
    assemblies = [label_exact(text).assembly for text in texts]

    def counted(order: list[int]) -> dict[int, tuple[object, object]]:
        folder = tmp_path / "-".join(map(str, order))
        folder.mkdir()
        program = build([assemblies[k] for k in order], folder)
        found = {}
        for k, placed, counts in zip(order, program.kernels, count(program), strict=True):
            assert isinstance(counts, Counts)
            found[k] = (counts.events, sorted(placed.lines_of(counts.executions).items()))
        return found

    together = counted([0, 1, 2, 3, 4])
    assert counted([4, 2, 0]) == {k: together[k] for k in (4, 2, 0)}
    assert counted([3]) == {3: together[3]}


def test_what_others_call_moves_nothing(tmp_path: Path) -> None:
    """The linker's table of functions chosen by processor, and the C library's start, which sees the folder's name."""
    texts = [EXPONENTIALS.replace("math.exp ", f"math.{name} ") for name in ("tanh", "sin", "log", "cbrt", "erf")]
    texts.append(GLOBALS)
    assemblies = [label_exact(text).assembly for text in texts]
    assert all(
        f"\t{name}f@PLT" in a for name, a in zip(("tanh", "sin", "log", "cbrt", "erf"), assemblies, strict=False)
    )
    alone = [_events([assembly], tmp_path / str(k))[0] for k, assembly in enumerate(assemblies)]
    assert _events(assemblies, tmp_path / ("long" * 40)) == alone


def _events(assemblies: list[str], folder: Path) -> list[object]:
    folder.mkdir()
    counted = count(build(assemblies, folder))
    assert all(isinstance(counts, Counts) for counts in counted)
    return [counts.events for counts in counted if isinstance(counts, Counts)]


def test_every_place_in_a_program_is_alike(tmp_path: Path) -> None:
    """The parent has left the same in the simulated predictor before the first child and the last."""
    assembly = label_exact(Path(__file__).with_name("place_sensitive.mlir").read_text()).assembly
    counted = count(build([assembly] * 8, tmp_path))
    assert all(isinstance(counts, Counts) for counts in counted)
    assert len({str(counts.events) for counts in counted}) == 1  # type: ignore[union-attr]


def test_a_bad_program_takes_no_other_with_it() -> None:
    texts = [ELEMENTWISE, WILD, NOT_LINKED, "func.func @kernel() { nonsense }", CHAIN]
    signature = Signature("kernel", ())
    items = [(text, only_signature(text) if "nonsense" not in text else signature) for text in texts]
    good, wild, not_linked, wrong, chain = label_batch(items)
    assert [good, chain] == label_batch([items[0], items[4]])
    assert isinstance(wild, ExactLabels)
    assert wild.skipped is not None
    assert wild.skipped[0] == "callgrind-crash"
    assert isinstance(not_linked, ExactLabels)
    assert not_linked.skipped == ("link-error", "undefined symbol nowhere")
    assert isinstance(wrong, LabelError)
    assert wrong.reason == "mlir-opt-error"


def test_a_program_that_does_not_end_takes_no_other_with_it(tmp_path: Path) -> None:
    assemblies = [str(a) for a in runnable_assemblies([(t, only_signature(t)) for t in (CHAIN, TOO_LONG)])]
    program = build(assemblies, tmp_path)
    good, endless = count(program, cpu_s=1)
    assert isinstance(good, Counts)
    assert isinstance(endless, LabelError)
    assert endless.reason == "callgrind-timeout"
    timed = measure(program, [0, 1], latency_core(), cpu_s=1)
    assert isinstance(timed[0], Latency)
    assert isinstance(timed[1], LabelError)
    assert timed[1].reason == "latency-timeout"


@pytest.mark.parametrize("kernel", ["adi", "gemm", "nussinov"])
def test_compiled_together_is_what_opt_and_llc_make(kernel: str) -> None:
    """Two roads to one assembly, for both devices: libLLVM in our compiler, and LLVM's own two programs."""
    (together,) = to_assemblies([_mini(kernel)])
    assert isinstance(together, dict)
    for device in (X86, NEOVERSE):
        assert _without_file(str(together[device])) == _without_file(to_assembly(_mini(kernel), device))


def _without_file(assembly: str) -> str:
    return re.sub(r"^\t\.file.*\n", "", assembly, flags=re.M)


@pytest.mark.parametrize("kernel", ["adi", "correlation", "gemm", "durbin", "fdtd-2d", "ludcmp"])
def test_static_targets_of_neoverse_equal_the_disassembly(kernel: str, tmp_path: Path) -> None:
    labels = label_exact(_mini(kernel)).values
    (tmp_path / "k.s").write_text(to_assembly(_mini(kernel), NEOVERSE))
    assemble = [tool("llvm-mc"), f"-triple={TRIPLES[NEOVERSE]}", "-mcpu=neoverse-v2", "-filetype=obj"]
    run([*assemble, str(tmp_path / "k.s"), "-o", str(tmp_path / "k.o")], step="llvm-mc")
    objdump = str(Path(tool("llc")).with_name("llvm-objdump"))
    listing = run([objdump, "-d", "--no-show-raw-insn", str(tmp_path / "k.o")], step="objdump")
    instructions = re.findall(r"^\s*[0-9a-f]+:\s+(\S.*)$", listing, re.M)
    real = [text for text in instructions if text.strip() != "nop"]
    assert labels[f"{NEOVERSE}/static_instructions"] == len(real)
    assert labels[f"{NEOVERSE}/code_bytes"] == 4 * len(instructions)
    operands = [re.sub(r"<.*?>|//.*", "", text.partition("\t")[2]) for text in real]
    words = {word for text in operands for word in re.findall(r"\b[a-z]\d+\b", text)}
    assert labels[f"{NEOVERSE}/gpr_used"] == len({w[1:] for w in words if w[0] in "xw"})
    assert labels[f"{NEOVERSE}/vec_used"] == len({w[1:] for w in words if w[0] in "vqdshbz"})
    assert labels[f"{NEOVERSE}/mca_cycles"] > 0


def _sum_of(element: str, add: str) -> str:
    return f"""
func.func @kernel(%a: memref<300x{element}>, %b: memref<300x{element}>, %s: {element}) {{
  affine.for %i = 0 to 300 {{
    %x = affine.load %a[%i] : memref<300x{element}>
    %y = affine.load %b[%i] : memref<300x{element}>
    %z = {add} %x, %y : {element}
    %w = {add} %z, %s : {element}
    affine.store %w, %b[%i] : memref<300x{element}>
  }}
  return
}}
"""


def test_every_element_type_runs_and_computes() -> None:
    """The driver fills, passes and sums each type; but for rounding, all of one kind agree."""
    floats, integers = ("f64", "f32", "f16", "bf16"), ("i64", "index", "i32", "i16", "i8")
    texts = [_sum_of(t, "arith.addf") for t in floats] + [_sum_of(t, "arith.addi") for t in integers]
    labels = label_batch([(text, only_signature(text)) for text in texts])
    assert all(isinstance(label, ExactLabels) and label.skipped is None for label in labels)
    measured = label_latencies([label.assembly for label in labels], latency_core())  # type: ignore[union-attr]
    means = [m.result_sum / 600 for m in measured]  # type: ignore[union-attr]
    # a weight of 1 on average; a holds 1 on average, b that and 1 of a and the scalar 1.5 (0.125 as bf16)
    assert means[:3] == pytest.approx([(1 + 1 + 1 + 1.5) / 2] * 3, rel=0.05)
    assert means[3] == pytest.approx((1 + 1 + 1 + 0.125) / 2, rel=0.05)
    assert means[4:] == pytest.approx([(1.5 + 1.5 + 1.5 + 4) / 2] * 5, rel=0.05)


EXPONENTIALS = """
func.func @kernel(%a: memref<300xf32>, %b: memref<300xf64>) {
  affine.for %i = 0 to 300 {
    %x = affine.load %a[%i] : memref<300xf32>
    %y = math.exp %x : f32
    affine.store %y, %a[%i] : memref<300xf32>
    %u = affine.load %b[%i] : memref<300xf64>
    %v = math.tanh %u : f64
    affine.store %v, %b[%i] : memref<300xf64>
  }
  return
}
"""

GLOBALS = """
memref.global "private" constant @table : memref<64xi32> = dense<3>
memref.global "private" @state : memref<2048xf32> = uninitialized
func.func @kernel(%a: memref<64xi32>, %b: memref<2048xf32>) {
  %t = memref.get_global @table : memref<64xi32>
  %s = memref.get_global @state : memref<2048xf32>
  affine.for %i = 0 to 64 {
    %x = affine.load %t[%i] : memref<64xi32>
    affine.store %x, %a[%i] : memref<64xi32>
  }
  affine.for %i = 0 to 2048 {
    %x = affine.load %b[%i] : memref<2048xf32>
    affine.store %x, %s[-%i + 2047] : memref<2048xf32>
  }
  affine.for %i = 0 to 2048 {
    %x = affine.load %s[%i] : memref<2048xf32>
    affine.store %x, %b[%i] : memref<2048xf32>
  }
  return
}
"""

ALLOCATES = """
func.func @kernel(%a: memref<64x64xf64>) {
  affine.for %i = 0 to 8 {
    %m = memref.alloc() : memref<64x64xf64>
    memref.copy %a, %m : memref<64x64xf64> to memref<64x64xf64>
    affine.for %j = 0 to 64 {
      %x = affine.load %m[%j, %i] : memref<64x64xf64>
      affine.store %x, %a[%i, %j] : memref<64x64xf64>
    }
    memref.dealloc %m : memref<64x64xf64>
  }
  return
}
"""

WILD = """
func.func @kernel(%a: memref<4xi64>) {
  %c = arith.constant 1 : i64
  %far = arith.constant 1000000000000 : index
  memref.store %c, %a[%far] : memref<4xi64>
  return
}
"""

NOT_LINKED = """
func.func private @nowhere()
func.func @kernel(%a: memref<4xi64>) {
  func.call @nowhere() : () -> ()
  return
}
"""

TOO_LONG = """
func.func @kernel(%a: memref<1xf64>) {
  affine.for %i = 0 to 4000000000 {
    %x = affine.load %a[0] : memref<1xf64>
    %y = math.sqrt %x : f64
    affine.store %y, %a[0] : memref<1xf64>
  }
  return
}
"""

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


def test_memrefs_of_unknown_size_have_static_targets() -> None:
    """They are passed as descriptors: pointers, offset, sizes and strides, 7 arguments for two dimensions."""
    text = """
    func.func @kernel(%a: memref<?x8xf32>, %n: index) {
      %c = arith.constant 1.0 : f32
      affine.for %i = 0 to %n {
        affine.store %c, %a[%i, 0] : memref<?x8xf32>
      }
      return
    }"""
    labels, static = label_batch([(t, only_signature(t)) for t in (text, STREAM)])
    assert isinstance(labels, ExactLabels)
    assert labels.skipped == ("arguments", "memrefs whose sizes are unknown are passed as descriptors")
    assert "rsp" in labels.assembly  # the eighth argument, %n, is on the stack
    assert labels.values[f"{X86}/static_instructions"] >= 5
    assert labels.values[f"{NEOVERSE}/mca_cycles"] > 0
    assert isinstance(static, ExactLabels)
    assert static.skipped is None


def test_too_long_a_call_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_module, "MAX_INSTRUCTIONS", 10_000)
    labels, short = label_batch([(t, only_signature(t)) for t in (STREAM, ELEMENTWISE)])
    assert isinstance(labels, ExactLabels)
    assert labels.skipped is not None
    assert labels.skipped[0] == "too-long"
    assert f"{X86}/instructions_executed" not in labels.values
    assert isinstance(short, ExactLabels)
    assert short.skipped is None


def test_functions_without_a_body_or_private_do_not_count() -> None:
    with pytest.raises(LabelError, match="no-function"):
        label_exact("func.func private @f()")
