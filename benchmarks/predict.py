"""How long a prediction takes beside compiling the same kernel: medians over PolyBench, one thread, one process.

    python benchmarks/predict.py [--repeats N]

Quote figures from a quiet machine only.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import irgauge
from irgauge.data.build import machine_name
from irgauge.data.families.polybench import FAMILIES
from irgauge.data.label.llvm import to_assembly
from irgauge.featurize.featurizer import features_of
from irgauge.featurize.reader import read


def median_us(work: Callable[[], object], repeats: int) -> float:
    """Median time of one call in microseconds, after one call to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        work()
        times.append((time.perf_counter_ns() - start) / 1000)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    repeats = parser.parse_args().repeats
    start = time.perf_counter()
    model = irgauge.load()
    load_ms = (time.perf_counter() - start) * 1000
    texts = [next(family.sources()).mlir for family in FAMILIES]
    rows = [
        (
            len(text),
            median_us(partial(read, text), repeats),
            median_us(partial(features_of, read(text)), repeats),
            median_us(partial(model.predict, text), repeats),
            median_us(partial(to_assembly, text), 3),
        )
        for text in texts
    ]
    sizes, reading, features, predicting, compiling = (statistics.median(column) for column in zip(*rows, strict=True))
    print(
        f"{machine_name()}; Python {platform.python_version()}, numpy {np.__version__}, irgauge {Path(model.path).name}"
    )
    print(f"{len(texts)} PolyBench kernels, median {sizes:,.0f} bytes of MLIR; model loaded in {load_ms:.0f} ms")
    for what, value in (
        ("reading", reading),
        ("features of what was read", features),
        ("text to all predictions", predicting),
        ("compiling to assembly", compiling),
    ):
        print(f"{what:28} {value:12,.0f} us   {compiling / value:8,.1f} x faster than compiling")


if __name__ == "__main__":
    main()
