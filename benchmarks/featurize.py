"""Reading and features beside MLIR's own parsers: IREE's and upstream's Python bindings, xDSL, tree-sitter.

    python benchmarks/featurize.py [--format table|json] [--quick] [--rounds N] [--megabytes 1 10 100]

Every library runs on one thread in a process of its own and waits while another is timed; on each text the rivals
take turns, so that a drift of the machine hits all alike. Times are CPU times, which waiting for a shared processor
does not change. A sample is the mean of as many calls as take 5 ms. A text counts for a comparison where both accept
it. Large modules and the large constant are read by fresh processes, which also tell their peak memory. Quote figures
from a quiet machine only.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

SAMPLE_NS = 5_000_000
SEED = 0


# --- rivals -----------------------------------------------------------------------------------------------------------


class Rival(ABC):
    """One way from text to something; an exception means that it does not accept the text."""

    name: ClassVar[str]
    package: ClassVar[str]
    beside: ClassVar[str]
    """Which of ours does the same work."""

    def prepared(self, text: str) -> Any:
        """The text as the library takes it; not timed."""
        return text

    @abstractmethod
    def __call__(self, text: Any) -> object: ...


class OurReader(Rival):
    name, package, beside = "irgauge read", "irgauge", "irgauge read"

    def __init__(self) -> None:
        from irgauge.featurize import read

        self.read = read

    def __call__(self, text: str) -> object:
        return self.read(text)


class OurFeatures(Rival):
    name, package, beside = "irgauge read + features", "irgauge", "irgauge read + features"

    def __init__(self) -> None:
        from irgauge.featurize import features_of

        self.features_of = features_of

    def __call__(self, text: str) -> object:
        return self.features_of(text)


class _Bindings(Rival):
    """MLIR's Python bindings; unregistered operations are allowed, the context is made once and not timed."""

    module: ClassVar[str]

    def __init__(self) -> None:
        self.ir = importlib.import_module(self.module)
        self.context = self.ir.Context()
        self.context.allow_unregistered_dialects = True
        self.context.enable_multithreading(False)
        self.context.__enter__()

    def __call__(self, text: str) -> object:
        return self.ir.Module.parse(text)


class _BindingsWalk(_Bindings):
    """What a cost model asks for at the least: operation names, result types, attributes."""

    def __call__(self, text: str) -> object:
        names: Counter[str] = Counter()
        types: list[str] = []
        attributes: list[Any] = []
        advance = self.ir.WalkResult.ADVANCE

        def visit(op: Any) -> Any:
            names[op.name] += 1
            for result in op.results:
                types.append(str(result.type))  # noqa: PERF401
            of_op = op.attributes
            for k in range(len(of_op)):
                attributes.append(of_op[k])  # noqa: PERF401
            return advance

        self.ir.Module.parse(text).operation.walk(visit)
        return names, types, attributes


class IreeParse(_Bindings):
    name, package, beside = "IREE parse", "iree-base-compiler", OurReader.name
    module = "iree.compiler.ir"


class IreeWalk(_BindingsWalk):
    name, package, beside = "IREE parse + walk", "iree-base-compiler", OurFeatures.name
    module = "iree.compiler.ir"


class UpstreamParse(_Bindings):
    name, package, beside = "upstream parse", "xtc-mlir-python-bindings", OurReader.name
    module = "mlir.ir"


class UpstreamWalk(_BindingsWalk):
    name, package, beside = "upstream parse + walk", "xtc-mlir-python-bindings", OurFeatures.name
    module = "mlir.ir"


class XdslParse(Rival):
    name, package, beside = "xDSL parse", "xdsl", OurReader.name

    def __init__(self) -> None:
        from xdsl.context import Context
        from xdsl.dialects import get_all_dialects
        from xdsl.parser import Parser

        self.Parser = Parser
        self.context = Context(allow_unregistered=True)
        for name, dialect in get_all_dialects().items():
            self.context.register_dialect(name, dialect)

    def __call__(self, text: str) -> Any:
        return self.Parser(self.context, text).parse_module()


class XdslWalk(XdslParse):
    name, beside = "xDSL parse + walk", OurFeatures.name

    def __call__(self, text: str) -> object:
        names: Counter[str] = Counter()
        types: list[Any] = []
        attributes: list[Any] = []
        for op in super().__call__(text).walk():
            names[op.name] += 1
            types += [result.type for result in op.results]
            attributes += op.properties.values()
            attributes += op.attributes.values()
        return names, types, attributes


class TreeSitterParse(Rival):
    """A syntax tree only: no operations, no values. Texts whose tree holds an error count as refused."""

    name, package, beside = "tree-sitter parse", "tree-sitter-mlir", OurReader.name

    def __init__(self) -> None:
        import tree_sitter
        import tree_sitter_mlir

        self.parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_mlir.language()))

    def prepared(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogateescape")

    def __call__(self, text: bytes) -> object:
        tree = self.parser.parse(text)
        if tree.root_node.has_error:
            raise ValueError("the tree holds an error")
        return tree


RIVALS: tuple[type[Rival], ...] = (
    OurReader, OurFeatures, IreeParse, IreeWalk, UpstreamParse, UpstreamWalk, XdslParse, XdslWalk, TreeSitterParse,
)  # fmt: skip
MODULES = {
    "irgauge": "irgauge", "iree-base-compiler": "iree.compiler", "xtc-mlir-python-bindings": "mlir.ir", "xdsl": "xdsl",
    "tree-sitter-mlir": "tree_sitter_mlir",
}  # fmt: skip


def installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(MODULES[package]) is not None
    except ModuleNotFoundError:
        return False


# --- one process per library ------------------------------------------------------------------------------------------


def serve(pipe: Connection, package: str, texts: Sequence[str]) -> None:
    """Answer (rival, text, calls) with the mean CPU time of that many calls in ns, or with the refusal as a string."""
    rivals = {kind.name: kind() for kind in RIVALS if kind.package == package}
    while (order := pipe.recv()) is not None:
        name, position, calls = order
        rival = rivals[name]
        text = rival.prepared(texts[position])
        try:
            start = time.process_time_ns()
            for _ in range(calls):
                rival(text)
            pipe.send((time.process_time_ns() - start) / calls)
        except Exception as refusal:
            pipe.send(str(refusal) or type(refusal).__name__)
    os._exit(0)  # MLIR's bindings end a Python that finishes with a context open


class Worker:
    """A library's process; started again after a crash, which counts as a refusal."""

    def __init__(self, package: str, texts: Sequence[str]) -> None:
        self.package, self.texts = package, texts
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.package, self.texts), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, name: str, position: int, calls: int) -> float | str:
        self.pipe.send((name, position, calls))
        try:
            answer: float | str = self.pipe.recv()
        except EOFError:
            self.start()
            return "crashed"
        return answer

    def stop(self) -> None:
        self.pipe.send(None)
        self.process.join()


# --- texts ------------------------------------------------------------------------------------------------------------


def text_sets(limit: int) -> Iterator[tuple[str, list[str]]]:
    """(title, texts) of each set; `limit` texts at most in a set."""
    from irgauge.data.families.polybench import FAMILIES
    from irgauge.data.store import read_dataset

    root = Path(__file__).parent.parent
    kernels = [next(iter(family.sources())).mlir for family in FAMILIES]
    yield "PolyBench kernels", kernels[:limit]
    records = read_dataset(root / "data" / "sets" / "kernel.parquet")
    draw = random.Random(SEED)

    def drawn(texts: Sequence[str]) -> list[str]:
        return draw.sample(sorted(set(texts)), min(limit, len(set(texts))))

    yield "functions of 3 KB", drawn([t for t in records["mlir"] if 2800 <= len(t) <= 3400])
    scheduled = records[records["schedule"].astype(str).str.contains("unroll|tile")]
    yield "tiled and unrolled", drawn(scheduled["mlir"])
    files = sorted((root / "tests" / "cases").glob("*.mlir"))
    valid = [f for f in files if json.loads(f.with_suffix(".json").read_text())["outcome"] == "counts"]
    yield (
        "the reader's test cases",
        [file.read_bytes().decode("utf-8", "surrogateescape") for file in valid[: 2 * limit]],
    )


def large_module(megabytes: int) -> str:
    """A module of that many times 10^6 characters: PolyBench kernels, each again and again under another name."""
    from irgauge.data.families.polybench import FAMILIES

    sources = [source for family in FAMILIES for source in list(family.sources())[:2]]
    kernels = [source.mlir for source in sources if "affine.if" not in source.mlir]  # which xDSL cannot read
    parts, size = ["module {\n"], 0
    for number in range(10**9):
        if size >= megabytes * 10**6:
            break
        text = kernels[number % len(kernels)].replace("@kernel", f"@kernel_{number}", 1)
        parts.append(text)
        size += len(text)
    return "".join([*parts, "}\n"])


def large_constant(megabytes: int) -> str:
    """A function around one constant of that many times 10^6 hexadecimal digits."""
    elements = megabytes * 10**6 // 8
    return f"""func.func @kernel(%x: tensor<{elements}xf32>) -> tensor<{elements}xf32> {{
  %w = arith.constant dense<"0x{"0000803F" * (elements - 1)}000000BF"> : tensor<{elements}xf32>
  %y = arith.addf %x, %w : tensor<{elements}xf32>
  return %y : tensor<{elements}xf32>
}}
"""


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One rival on one set of texts."""

    texts: str
    rival: str
    accepted: int
    of: int
    median_us: float | None = None
    """Median over the accepted texts of each text's median over the rounds."""
    min_us: float | None = None
    """The same of each text's minimum."""
    mb_per_s: float | None = None
    """10^6 bytes of the accepted texts over the sum of their medians."""
    beside: str = ""
    """Which of ours the ratio is to."""
    ratio: float | None = None
    """Median over texts and rounds of its time over ours in the same round: 2 means that ours is twice as fast."""


@dataclass
class Large:
    """One rival on one large text, read from a file in a fresh process."""

    text: str
    megabytes: float
    rival: str
    seconds: float | None = None
    """Minimum over the processes."""
    cpu_seconds: float | None = None
    """The same of the CPU time."""
    mb_per_s: float | None = None
    peak_mb: float | None = None
    """Peak resident memory of the process."""
    peak_over_size: float | None = None
    refusal: str = ""


@dataclass
class Results:
    machine: str
    versions: dict[str, str]
    rounds: int
    sets: list[Row] = field(default_factory=list)
    large: list[Large] = field(default_factory=list)


def compare(title: str, texts: Sequence[str], rivals: Sequence[type[Rival]], rounds: int) -> list[Row]:
    """Time the rivals in turns on each text."""
    workers = {package: Worker(package, texts) for package in dict.fromkeys(rival.package for rival in rivals)}
    times: dict[str, dict[int, list[float]]] = {rival.name: {} for rival in rivals}
    for position in range(len(texts)):
        calls: dict[str, int] = {}
        for rival in rivals:
            worker = workers[rival.package]
            first = worker.ask(rival.name, position, 1)
            if not isinstance(first, str):
                second = worker.ask(rival.name, position, 1)  # the first call warms up
                if not isinstance(second, str):
                    calls[rival.name] = max(1, round(SAMPLE_NS / max(second, 1000)))
        for _ in range(rounds):
            for rival in rivals:
                if rival.name in calls:
                    answer = workers[rival.package].ask(rival.name, position, calls[rival.name])
                    assert not isinstance(answer, str), answer
                    times[rival.name].setdefault(position, []).append(answer)
    for worker in workers.values():
        worker.stop()
    return [_row(title, texts, rival, times) for rival in rivals]


def _row(title: str, texts: Sequence[str], rival: type[Rival], times: dict[str, dict[int, list[float]]]) -> Row:
    own, ours = times[rival.name], times[rival.beside]
    row = Row(title, rival.name, len(own), len(texts), beside=rival.beside)
    if own:
        medians = {position: statistics.median(samples) for position, samples in own.items()}
        row.median_us = statistics.median(medians.values()) / 1000
        row.min_us = statistics.median(min(samples) for samples in own.values()) / 1000
        row.mb_per_s = sum(len(texts[position].encode()) for position in own) * 1000 / sum(medians.values())
    both = [a / b for position in own.keys() & ours.keys() for a, b in zip(own[position], ours[position], strict=True)]
    if both:
        row.ratio = statistics.median(both)
    return row


def once(rival: type[Rival], file: Path) -> dict[str, Any]:
    """What a fresh process takes for the text in a file: seconds from the file to the result, and its peak memory."""
    command = [sys.executable, str(Path(__file__).resolve()), "--once", rival.name, str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = next(iter(reversed(done.stderr.strip().splitlines())), "")
        return {"refusal": f"exit status {done.returncode} {last}"[:120]}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def print_once(name: str, file: str) -> None:
    """The other side of `once`."""
    rival = next(kind for kind in RIVALS if kind.name == name)()
    start, cpu_start = time.perf_counter(), time.process_time()
    if isinstance(rival, OurReader | OurFeatures):
        result = rival(Path(file))  # type: ignore[arg-type]
    else:
        result = rival(rival.prepared(Path(file).read_text(encoding="utf-8")))
    times = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
    status = Path("/proc/self/status").read_text()
    peak_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    del result
    print(json.dumps(times | {"peak_mb": peak_kib * 1024 / 1e6}), flush=True)
    os._exit(0)  # as in `serve`


def measure_large(title: str, text: str, rivals: Sequence[type[Rival]], repeats: int) -> Iterator[Large]:
    """Each rival in turns on one large text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "module.mlir"
        file.write_text(text, encoding="utf-8")
        size_mb = file.stat().st_size / 1e6
        answers: dict[str, list[dict[str, Any]]] = {rival.name: [] for rival in rivals}
        for _ in range(repeats):
            for rival in rivals:
                if not any("refusal" in answer for answer in answers[rival.name]):
                    answers[rival.name].append(once(rival, file))
    for name, found in answers.items():
        large = Large(title, size_mb, name, refusal=found[-1].get("refusal", ""))
        if not large.refusal:
            large.seconds = min(answer["seconds"] for answer in found)
            large.cpu_seconds = min(answer["cpu_seconds"] for answer in found)
            large.mb_per_s = size_mb / large.cpu_seconds
            large.peak_mb = min(answer["peak_mb"] for answer in found)
            large.peak_over_size = large.peak_mb / size_mb
        yield large


def large_rivals(rivals: Sequence[type[Rival]], title: str, megabytes: int) -> list[type[Rival]]:
    """Who is asked: xDSL takes minutes for 10 MB of operations."""
    return [rival for rival in rivals if not (rival.package == "xdsl" and title == "operations" and megabytes > 1)]


# --- showing ----------------------------------------------------------------------------------------------------------


def show(results: Results) -> Iterator[str]:
    """The tables, as Markdown."""
    versions = ", ".join(f"{name} {number}" for name, number in results.versions.items())
    yield f"{results.machine}; {versions}; {results.rounds} rounds."
    for title in dict.fromkeys(row.texts for row in results.sets):
        yield f"\n**{title}**\n"
        yield "| | accepted | median µs | minimum µs | MB/s | time / ours |"
        yield "|---|---|---|---|---|---|"
        for row in results.sets:
            if row.texts == title:
                ours = f"{row.ratio:.2f}" if row.ratio is not None and row.rival != row.beside else ""
                yield _line(
                    row.rival, f"{row.accepted} / {row.of}", _n(row.median_us), _n(row.min_us), _n(row.mb_per_s), ours
                )
    for title in dict.fromkeys(large.text for large in results.large):
        yield f"\n**Large module: {title}**, from a file, a fresh process each\n"
        yield "| MB | | seconds | CPU seconds | MB/s | peak MB | peak / size |"
        yield "|---|---|---|---|---|---|---|"
        for large in results.large:
            if large.text == title:
                peak = "" if large.peak_over_size is None else f"{large.peak_over_size:.1f}"
                seconds = large.refusal or (f"{large.seconds:.2f}" if large.seconds is not None else "")
                cpu = "" if large.cpu_seconds is None else f"{large.cpu_seconds:.2f}"
                yield _line(
                    f"{large.megabytes:.0f}", large.rival, seconds, cpu, _n(large.mb_per_s), _n(large.peak_mb), peak
                )

    yield "\n| goal | measured |"
    yield "|---|---|"
    for goal, measured in goals(results):
        yield _line(goal, measured)


def goals(results: Results) -> Iterator[tuple[str, str]]:
    """What was aimed at, and what was measured."""
    ours = {row.texts: row for row in results.sets if row.rival == OurFeatures.name}
    for rival, factor in ((IreeWalk.name, 1), (UpstreamWalk.name, 1), (XdslWalk.name, 20)):
        ratios = [row.ratio for row in results.sets if row.rival == rival and row.ratio is not None]
        if ratios:
            yield (
                f"read + features at least {factor} times as fast as {rival}",
                " to ".join(f"{ratio:.2f}" for ratio in (min(ratios), max(ratios))) + " times, by set",
            )
    for title, row in ours.items():
        if title.startswith("functions of 3 KB") and row.median_us is not None:
            yield "read + features of a function of 3 KB under 300 µs", f"{row.median_us:,.0f} µs"
    for rival in (OurReader.name, OurFeatures.name):
        found = [large for large in results.large if large.rival == rival and large.seconds is not None]
        speeds = [f"{large.cpu_seconds / large.megabytes:.3f}" for large in found if large.text == "operations"]  # type: ignore[operator]
        if speeds:
            yield f"{rival} linear in the text", f"{', '.join(speeds)} CPU s/MB, smallest module first"
        constants = [large for large in found if large.text == "one constant"]
        if constants:
            largest = max(constants, key=lambda large: large.megabytes)
            yield (
                f"{rival} of {largest.megabytes:.0f} MB of constant under 1 s and 3 times its size",
                f"{largest.seconds:.2f} s, {largest.peak_over_size:.2f} times",
            )


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _n(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--quick", action="store_true", help="five texts a set, two rounds, 1 MB: does it run?")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--texts", type=int, default=30, help="texts of a set at most")
    parser.add_argument("--megabytes", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--once", nargs=2, metavar=("RIVAL", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.once:
        print_once(*options.once)
        return 0
    if options.quick:
        options.rounds, options.texts, options.megabytes = 2, 5, [1]
    from irgauge.data.build import machine_name

    rivals = [rival for rival in RIVALS if installed(rival.package)]
    for rival in RIVALS:
        if rival not in rivals:
            print(f"{rival.name}: {rival.package} is not installed", file=sys.stderr)
    packages = [*dict.fromkeys(rival.package for rival in rivals), "numpy"]
    versions = {"Python": platform.python_version(), **{package: version(package) for package in packages}}
    results = Results(machine_name(), versions, options.rounds)
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr)  # noqa: E731
    for title, texts in text_sets(options.texts):
        described = f"{title} ({len(texts)}, {statistics.median(map(len, texts)):,.0f} bytes in the median)"
        say(described)
        results.sets += compare(described, texts, rivals, options.rounds)
    for title, make in (("operations", large_module), ("one constant", large_constant)):
        for megabytes in options.megabytes:
            say(f"{megabytes} MB: {title}")
            repeats = 1 if megabytes > 10 and title == "operations" else 3
            asked = large_rivals(rivals, title, megabytes)
            results.large += measure_large(title, make(megabytes), asked, repeats)
    if options.format == "json":
        json.dump(asdict(results), sys.stdout, indent=1)
        print()
    else:
        print("\n".join(show(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
