"""A pass pipeline that asks the model: choose tile and unroll factors of an affine nest, then see whether it was right.

    python examples/pass_pipeline.py [FILE.mlir] [--quick]

Every legal combination of a tile size and an unroll(-and-jam) factor is applied with pass options: through MLIR's own
Python bindings where they are installed (`mlir.ir`), else through `mlir-opt`. The model ranks the results from their
text alone. Then, for the example's sake, all of them are compiled and timed: the model's choice stands beside what
would have been compiled without it (the default), and beside the best there was.

Needs the extra `label` (mlir-opt, llc) and gcc. docs/examples.md has the output of a run.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import irgauge
from irgauge.data.dependences import bands_are_permutable
from irgauge.data.label.executable import arguments_of, kernel_assembly
from irgauge.data.label.kernel import label_latencies, signatures
from irgauge.data.label.latency import latency_core
from irgauge.data.label.llvm import to_assembly
from irgauge.data.schedules import Schedule, apply
from irgauge.errors import LabelError
from irgauge.featurize.reader import read

TILES = (0, 8, 16, 32, 64)
UNROLLS = (1, 2, 4, 8)
CLEAN = ("canonicalize", "cse")


@dataclass(frozen=True)
class Candidate:
    """One combination of factors, applied."""

    name: str
    mlir: str


def pipelines(tiles: Sequence[int], unrolls: Sequence[int], may_tile: bool) -> list[Schedule]:
    """All combinations; tiling and jamming reorder iterations and are left out where that is not allowed."""
    found = []
    for tile in tiles if may_tile else (0,):
        for unroll in unrolls:
            steps = [("tile", tile, f"affine-loop-tile{{tile-size={tile}}}")] if tile else []
            if unroll > 1:
                steps.append(("unroll", unroll, f"affine-loop-unroll{{unroll-factor={unroll}}}"))
            name = "+".join(f"{what}-{factor}" for what, factor, _ in steps) or "default"
            found.append(Schedule(name, (*(text for _, _, text in steps), *CLEAN)))
            if may_tile and unroll > 1:
                jam = [*(text for what, _, text in steps if what == "tile")]
                jam.append(f"affine-loop-unroll-jam{{unroll-jam-factor={unroll}}}")
                mark = f"tile-{tile}+" if tile else ""
                found.append(Schedule(f"{mark}jam-{unroll}", (*jam, *CLEAN)))
    return found


def applier() -> tuple[str, Callable[[str, Schedule], str]]:
    """How passes are run here: (name, function from text and schedule to text)."""
    try:
        ir: Any = importlib.import_module("mlir.ir")
        passmanager: Any = importlib.import_module("mlir.passmanager")
    except ImportError:
        return "mlir-opt", apply

    def through_bindings(mlir: str, schedule: Schedule) -> str:
        with ir.Context():
            module = ir.Module.parse(mlir)
            pipeline = f"builtin.module(func.func({','.join(schedule.passes)}))"
            passmanager.PassManager.parse(pipeline).run(module.operation)
            return str(module)

    return "MLIR's Python bindings", through_bindings


def measure(mlir: str, core: int) -> float:
    """Time of one call in ns, the least of nine repeats: compiled with LLVM, run on this machine."""
    (signature,) = signatures(read(mlir))
    assembly = kernel_assembly(to_assembly(mlir), signature.name, arguments_of(signature.argument_types))
    (latency,) = label_latencies([assembly], core)
    if isinstance(latency, LabelError):
        raise latency
    return min(latency.repeats_ns)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    default = Path(__file__).parent / "matmul.mlir"
    parser.add_argument("file", nargs="?", type=Path, default=default, help="one function; default: the matmul")
    parser.add_argument("--quick", action="store_true", help="four combinations only")
    arguments = parser.parse_args(argv)
    text = arguments.file.read_text()
    may_tile = bands_are_permutable(text)
    tiles, unrolls = ((0, 32), (1, 4)) if arguments.quick else (TILES, UNROLLS)
    schedules = pipelines(tiles, unrolls, may_tile)
    how, run = applier()
    candidates: list[Candidate] = []
    start = time.perf_counter()
    for schedule in schedules:
        try:
            candidates.append(Candidate(schedule.name, run(text, schedule)))
        except LabelError as error:
            print(f"{schedule.name}: left out: {error}", file=sys.stderr)
    applied_s = time.perf_counter() - start

    model = irgauge.load()
    start = time.perf_counter()
    ranked = [candidates[r.position] for r in model.rank([c.mlir for c in candidates], target="latency_ns")]
    asked_s = time.perf_counter() - start
    predicted = {c.name: model.predict(c.mlir)[0]["latency_ns"] for c in candidates}

    core = latency_core()
    start = time.perf_counter()
    # Two rounds, so that a busy moment does not decide against one of them.
    rounds = [{c.name: measure(c.mlir, core) for c in candidates} for _ in range(1 if arguments.quick else 2)]
    measured = {c.name: min(one[c.name] for one in rounds) for c in candidates}
    timed_s = time.perf_counter() - start

    order = sorted(measured, key=measured.__getitem__)
    print(f"{arguments.file.name}: {len(candidates)} combinations, applied through {how} in {applied_s:.1f} s")
    print(f"asking the model took {asked_s * 1e3:.0f} ms, compiling and timing them all {timed_s:.1f} s")
    print(f"{'':10}{'factors':16}{'predicted ns':>14}{'measured ns':>14}  place by measurement")
    rows = [("default", "default"), ("chosen", ranked[0].name), ("best", order[0])]
    for label, name in rows:
        place = f"{order.index(name) + 1} of {len(order)}"
        print(f"{label:10}{name:16}{predicted[name].value:14,.0f}{measured[name]:14,.0f}  {place}")
    print(f"speedup over the default: chosen {measured['default'] / measured[ranked[0].name]:.2f}, ", end="")
    print(f"best {measured['default'] / measured[order[0]]:.2f}, ", end="")
    print(f"median of all {measured['default'] / statistics.median(measured.values()):.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
