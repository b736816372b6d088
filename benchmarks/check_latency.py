"""Latency labels against another clock: the same kernels called from Python through ctypes on NumPy arrays.

    python benchmarks/check_latency.py [--records N]

Nothing of the labelling driver takes part: other operands, other addresses, another timer. A ratio near 1 says that the
labels mean what they say; the spread of the ratios says how far another allocation moves a kernel.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from irgauge.data.label.kernel import signatures
from irgauge.data.label.llvm import to_assembly
from irgauge.data.store import read_dataset
from irgauge.featurize.reader import read
from irgauge.featurize.types import parse_type

COLUMN = "x86-64-v3/latency_ns"
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


def call_ns(mlir: str, folder: Path) -> float:
    """Median time of one call over seven runs of at least 3 ms each, after a warm-up."""
    (signature,) = signatures(read(mlir))
    (folder / "kernel.s").write_text(to_assembly(mlir))
    library = folder / "kernel.so"
    subprocess.run(
        ["gcc", "-shared", "-o", str(library), str(folder / "kernel.s"), "-lm"], check=True, capture_output=True
    )
    arrays = []
    for text in signature.argument_types:
        info = parse_type(text)
        shape = [size for size in info.shape or () if size is not None]
        values = np.random.default_rng(0).uniform(1, 3, shape)
        arrays.append(np.ascontiguousarray(values.astype(DTYPES[info.element])))
    function = ctypes.CDLL(str(library))[signature.name]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    function(*pointers)
    start = time.perf_counter_ns()
    function(*pointers)
    calls = max(1, int(3e6 / max(time.perf_counter_ns() - start, 1)))
    times = []
    for _ in range(7):
        start = time.perf_counter_ns()
        for _ in range(calls):
            function(*pointers)
        times.append((time.perf_counter_ns() - start) / calls)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=40)
    wanted = parser.parse_args().records
    frame = read_dataset()
    types = frame["mlir"].str.contains("f16|i8|i16|i1>|index>", regex=True)  # ctypes needs no more than NumPy's types
    frame = frame[(frame[COLUMN] > 2e4) & (frame[COLUMN] < 2e7) & ~types].sample(wanted, random_state=0)
    ratios = []
    for _, record in frame.iterrows():
        with tempfile.TemporaryDirectory() as folder:
            measured = call_ns(record["mlir"], Path(folder))
        ratios.append(record[COLUMN] / measured)
        name = f"{record['program_id']} {record['schedule']}"
        print(f"{name:70} {record[COLUMN]:12,.0f} {measured:12,.0f} {ratios[-1]:6.2f}")
    low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
    print(f"label / ctypes over {len(ratios)} records: median {middle:.3f}, 10 % to 90 %: {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
