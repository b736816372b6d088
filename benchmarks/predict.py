"""How long a prediction takes, beside compiling the same program, and what a process that predicts needs.

    python benchmarks/predict.py [--texts N] [--repeats N]

One thread. Texts are functions of about 3 KB, drawn from the dataset with a fixed seed; *new* ones were never seen by
the process, which knows other texts of their kind; the others are asked again and again. Rows are those of the same
functions. Start times and memory are those of fresh processes. Quote figures from a quiet machine only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

import irgauge
from irgauge.data.build import machine_name
from irgauge.data.label.llvm import to_assembly
from irgauge.data.targets import TRACK_GROUPS
from irgauge.featurize.featurizer import functions_of, main_features
from irgauge.featurize.function_view import FunctionView
from irgauge.featurize.reader import read

ROOT = Path(__file__).parent.parent
SIZES = 2800, 3400
ONE = "x86-64-v3/latency_ns"
BATCH_ROWS = 10_000
START = """
import json, sys, time
before = time.perf_counter()
import irgauge
imported = time.perf_counter()
model = irgauge.load()
loaded = time.perf_counter()
model.predict(sys.stdin.read())
learning = sorted({"sklearn", "xgboost", "lightgbm", "pandas", "shap"} & set(sys.modules))
memory = {line.split()[0]: int(line.split()[1]) / 1000 for line in open("/proc/self/status") if line[:2] == "Vm"}
print(json.dumps({
    "import": imported - before, "load": loaded - imported, "learning": learning,
    "mb": memory["VmRSS:"], "peak mb": memory["VmHWM:"],
}))
"""


def microseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / 1000


def again(works: Iterable[Callable[[], object]], repeats: int) -> list[float]:
    """Times of each call, after one to warm up."""
    found = []
    for work in works:
        work()
        found += [microseconds(work) for _ in range(repeats)]
    return found


def median_us(work: Callable[[], object], repeats: int) -> float:
    """Median time of one call, after one to warm up."""
    return statistics.median(again([work], repeats))


def line(what: str, times: list[float], compiling_us: float | None = None) -> str:
    """A row of the table; the last column is how many times longer compiling takes."""
    p99 = f"{np.quantile(times, 0.99):,.0f}" if len(times) >= 100 else ""
    ratio = f"{compiling_us / statistics.median(times):,.0f}" if compiling_us else ""
    return f"| {what} | {statistics.median(times):,.0f} | {p99} | {ratio} |"


def starts(text: str, times: int = 5) -> list[dict[str, object]]:
    """What fresh processes say about themselves; the first, which may have to compile our modules, is left out."""
    command = [sys.executable, "-c", START]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = partial(subprocess.run, command, input=text, capture_output=True, text=True, check=True, env=environment)
    return [json.loads(run().stdout) for _ in range(times + 1)][1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--texts", type=int, default=200, help="new texts, and as many known ones")
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    every = pd.read_parquet(ROOT / "data" / "sets" / "kernel.parquet", columns=["mlir"])["mlir"].drop_duplicates()
    texts = list(every[every.str.len().between(*SIZES)].sample(2 * arguments.texts, random_state=0))
    known, new = texts[: arguments.texts], texts[arguments.texts :]
    model = irgauge.load()
    track = model.tracks["kernel"]
    predict_one = partial(model.predict, targets=[ONE])
    print(
        f"{machine_name()}; Python {platform.python_version()}, numpy {np.__version__}, irgauge {version('irgauge')}\n"
    )

    compiling = statistics.median(microseconds(partial(to_assembly, text)) for text in known[:20])
    known_times = again([partial(model.predict, text) for text in known], arguments.repeats)
    new_times = [microseconds(partial(model.predict, text)) for text in new]
    programs = [read(text) for text in known]
    views = [partial(FunctionView, program, functions_of(program)[0][1]) for program in programs]
    print("| text of 3 KB | median µs | p99 µs | compiling takes … times as long |\n|---|---|---|---|")
    print(line("to all predictions", known_times, compiling))
    print(line("the same, a new text", new_times, compiling))
    print(line("to `latency_ns` alone", again([partial(predict_one, t) for t in known], arguments.repeats), compiling))
    print(line("reading", again([partial(read, text) for text in known], arguments.repeats)))
    print(line("shared analyses of what was read", again(views, arguments.repeats)))
    print(line("compiling to assembly", [compiling]))

    X = np.array([model._vector(track, main_features(program, TRACK_GROUPS[track.track]))[0] for program in programs])
    one = [target.column for target in track.targets].index(ONE)
    print("\n| row of features | median µs | p99 µs | |\n|---|---|---|---|")
    print(
        line(
            f"all {len(track.targets)} targets", again([partial(track.values_of_row, x) for x in X], arguments.repeats)
        )
    )
    alone = [partial(track.values_of_row, x, [one]) for x in X]
    print(line("`latency_ns` alone", again(alone, arguments.repeats)))
    batch = X[np.arange(BATCH_ROWS) % len(X)] * np.random.default_rng(0).uniform(0.5, 2, (BATCH_ROWS, 1)).astype("f4")
    seconds = min(again([partial(track.predict, batch)], 3)) / 1e6
    print(f"\n{BATCH_ROWS:,} rows at once: {BATCH_ROWS / seconds:,.0f} rows/s")

    found = starts(known[0])
    least = {key: min(float(str(start[key])) for start in found) for key in ("import", "load", "mb", "peak mb")}
    print(
        f"import {least['import']:.3f} s, load {least['load']:.3f} s (least of {len(found)} processes); a process that "
        f"has predicted holds {least['mb']:.0f} MB, {least['peak mb']:.0f} at most; learning libraries imported: "
        f"{found[0]['learning'] or 'none'}"
    )


if __name__ == "__main__":
    main()
