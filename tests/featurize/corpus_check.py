"""Read every chunk of a corpus of MLIR files and compare with `mlir-opt`'s generic print where that reads it too.

A script, not a test: `python tests/featurize/corpus_check.py --corpus ../shared/corpus [--limit N]`. A chunk is what
stands between lines that start with `// -----`; chunks that are meant to be refused (`expected-error`) are left out.

"same" compares operation by operation name, implied ones and bodies of named linalg operations included. "facts" also
compares blocks, block arguments, results, operands, successors and shapes.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from irgauge.errors import ReadError
from irgauge.featurize.inspect import facts
from irgauge.featurize.program import Op, Program
from irgauge.featurize.reader import read

_PRINTED_OP = re.compile(r'^ *(?:%[^=]*= )?"([^"]+)"[(]', re.MULTILINE)
_FLAGS = ["--allow-unregistered-dialect", "--mlir-print-op-generic", "--mlir-print-local-scope"]


def chunks_of(data: bytes) -> list[bytes]:
    """The parts of a file between lines that start with `// -----`."""
    return re.split(rb"(?m)^// -----.*$", data)


def find_tool() -> str | None:
    """`mlir-opt`, from the PATH or from the package that installs it."""
    found = shutil.which("mlir-opt")
    if found:
        return found
    for folder in sys.path:
        tool = Path(folder) / "mlir" / "bin" / "mlir-opt"
        if tool.exists():
            return str(tool)
    return None


def generic_print(tool: str, chunk: bytes, cache: Path | None) -> str | None:
    """What the tool prints for a chunk; None where it refuses it."""
    kept = cache / hashlib.sha256(chunk).hexdigest() if cache else None
    if kept and kept.exists():
        data = kept.read_bytes()
    else:
        try:
            done = subprocess.run([tool, *_FLAGS], input=chunk, capture_output=True, timeout=20, check=False)
            data = done.stdout if done.returncode == 0 else b""
        except subprocess.TimeoutExpired:
            data = b""
        if kept:
            kept.write_bytes(data)
    return data.decode("utf-8", "surrogateescape") if data else None


def without_named_bodies(program: Program) -> Program:
    """The program with the bodies of linalg operations taken out that have one the text does not show."""
    for op in program.walk():
        if op.name.startswith("linalg.") and op.name not in ("linalg.generic", "linalg.index", "linalg.yield"):
            op.regions = ()
    return program


def differences(ours: Program, printed: Program) -> tuple[dict[str, int], list[str]]:
    """Counts of operations, ours less the printed ones, and the other facts that differ."""
    mine = facts(ours, implied=True)
    theirs = facts(printed, implied=True)
    counts = Counter(mine["op_counts"])
    counts.subtract(theirs["op_counts"])
    off = {name: n for name, n in sorted(counts.items()) if n}
    others = [
        f"{key} {mine[key]} for {theirs[key]}"
        for key in mine
        if key not in ("op_counts", "num_ops", "implied_ops") and mine[key] != theirs[key]
    ]
    if not off:
        others += sorted(set(type_differences(ours, printed)))[:4]
    return off, others


def type_differences(ours: Program, printed: Program) -> Iterator[str]:
    """Operations whose shaped results or block arguments have another type in the print, layouts left out."""
    for mine, theirs in zip(without_named_bodies(ours).walk(), without_named_bodies(printed).walk(), strict=False):
        for found, right in zip(shaped_types(ours, mine), shaped_types(printed, theirs), strict=False):
            if found != right:
                yield f"{mine.name}: {found or 'no type'} for {right}"


def shaped_types(program: Program, op: Op) -> list[str]:
    """Types of the results and block arguments of an operation; "" for those that are not shaped."""
    values = [*op.results, *(value for region in op.regions for block in region.blocks for value in block.args)]
    types = [program.value_types[value] for value in values]
    return [
        re.sub(r"[\s,].*", "", text) if text.startswith(("memref<", "tensor<", "vector<")) else "" for text in types
    ]


def main(argv: list[str] | None = None) -> int:
    """Print rates and first differences; 1 if a chunk that the tool reads is read otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=0, help="stop after this many files")
    parser.add_argument("--show", type=int, default=20, help="print this many differences of each kind")
    parser.add_argument("--cache", type=Path, help="keep the tool's prints in this folder")
    options = parser.parse_args(argv)
    tool = find_tool()
    if tool is None:
        print("mlir-opt is not installed: only reading is checked", file=sys.stderr)
    if options.cache:
        options.cache.mkdir(parents=True, exist_ok=True)
    files = sorted(options.corpus.rglob("*.mlir"))[: options.limit or None]
    tally: Counter[str] = Counter()
    shown: dict[str, list[str]] = {"refused though mlir-opt reads it": [], "counts": [], "facts": [], "refused": []}
    for file in files:
        for number, chunk in enumerate(chunks_of(file.read_bytes())):
            if b"expected-error" in chunk:
                tally["left out"] += 1
                continue
            where = f"{file.relative_to(options.corpus)}[{number}]"
            tally["chunks"] += 1
            print_text = generic_print(tool, chunk, options.cache) if tool else None
            if print_text is not None:
                tally["mlir-opt reads"] += 1
            try:
                program = read(chunk, path=where)
            except ReadError as problem:
                tally["refused"] += 1
                kind = "refused" if print_text is None else "refused though mlir-opt reads it"
                shown[kind].append(str(problem))
                continue
            tally["read"] += 1
            if print_text is None:
                continue
            try:
                printed = read(print_text, path=f"{where} as printed")
            except ReadError as problem:
                shown["refused though mlir-opt reads it"].append(str(problem))
                continue
            whole = facts(printed, implied=True)["op_counts"]
            assert whole == dict(sorted(Counter(_PRINTED_OP.findall(print_text)).items())), where
            off, others = differences(program, printed)
            tally["same"] += not off
            tally["facts same"] += not off and not others
            if off:
                shown["counts"].append(f"{where}: {off}")
            elif others:
                shown["facts"].append(f"{where}: {'; '.join(others)}")
    for kind, found in shown.items():
        if found:
            print(f"--- {kind}: {len(found)}")
            print("\n".join(found[: options.show]))
    print("---", ", ".join(f"{name} {count}" for name, count in tally.items()))
    read_both = max(tally["mlir-opt reads"], 1)
    print(f"read {tally['read'] / max(tally['chunks'], 1):.2%} of all chunks")
    print(f"same counts {tally['same'] / read_both:.2%}, all facts {tally['facts same'] / read_both:.2%}")
    return int(tally["same"] < tally["mlir-opt reads"])


if __name__ == "__main__":
    sys.exit(main())
