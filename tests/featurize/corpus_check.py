"""Read every chunk of a corpus of MLIR files and compare with `mlir-opt`'s generic print where that reads it too.

A script, not a test: `python tests/featurize/corpus_check.py --corpus ../shared/corpus [--limit N]`. A chunk is what
stands between lines that start with `// -----`; chunks that are meant to be refused (`expected-error`) are left out.

"same" compares operation by operation name, implied ones and bodies of named linalg operations included. "facts" also
compares blocks, block arguments, results, operands, successors and shapes.

With `--forms`, the features of each chunk are compared with those of its other forms: respelled (see `forms.py`) and,
where `mlir-opt` reads it, printed in each of its ways. `--list FILE` writes every chunk that is refused or differs,
with the reason: kind, place and message between tabs, one a line.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from irgauge.errors import ReadError
from irgauge.featurize.inspect import facts
from irgauge.featurize.program import Op, Program
from irgauge.featurize.reader import read
from irgauge.tests.featurize.forms import PRINTS, compare, features_of, respelling_differences

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


def printed_by(tool: str, chunk: bytes, cache: Path | None, arguments: Sequence[str] = _FLAGS) -> str | None:
    """What the tool prints for a chunk; None where it refuses it."""
    key = hashlib.sha256(chunk)
    if list(arguments) != _FLAGS:
        key.update("".join(arguments).encode())
    kept = cache / key.hexdigest() if cache else None
    if kept and kept.exists():
        data = kept.read_bytes()
    else:
        try:
            done = subprocess.run([tool, *arguments], input=chunk, capture_output=True, timeout=20, check=False)
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


def form_differences(tool: str | None, chunk: bytes, cache: Path | None) -> dict[str, str]:
    """For each other form of a chunk that is read: how its features differ; "" if they do not."""
    text = chunk.decode("utf-8", "surrogateescape")
    expected = features_of(text)
    out = dict(respelling_differences(text, expected, seed=1))
    if tool:
        for name, arguments in PRINTS.items():
            printed = printed_by(tool, chunk, cache, ["--allow-unregistered-dialect", *arguments])
            if printed is not None:
                out[name] = compare(expected, printed)
    return out


def main(argv: list[str] | None = None) -> int:
    """Print rates and first differences; 1 if a chunk that the tool reads is read otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=0, help="stop after this many files")
    parser.add_argument("--every", type=int, default=1, help="look at every n-th file only")
    parser.add_argument("--show", type=int, default=20, help="print this many differences of each kind")
    parser.add_argument("--cache", type=Path, help="keep the tool's prints in this folder")
    parser.add_argument("--forms", action="store_true", help="compare the features of other forms of each chunk, too")
    parser.add_argument("--list", type=Path, help="write every refused or differing chunk with its reason to this file")
    options = parser.parse_args(argv)
    tool = find_tool()
    if tool is None:
        print("mlir-opt is not installed: only reading is checked", file=sys.stderr)
    if options.cache:
        options.cache.mkdir(parents=True, exist_ok=True)
    files = sorted(options.corpus.rglob("*.mlir"))[:: options.every][: options.limit or None]
    tally: Counter[str] = Counter()
    forms: Counter[str] = Counter()
    shown: dict[str, list[tuple[str, str]]] = defaultdict(list)
    refusals = [shown[kind] for kind in ("refused though mlir-opt reads it", "refused")]
    for file in files:
        for number, chunk in enumerate(chunks_of(file.read_bytes())):
            if b"expected-error" in chunk:
                tally["left out"] += 1
                continue
            where = f"{file.relative_to(options.corpus)}[{number}]"
            for kind, reason in check_chunk(chunk, where, tool, options.cache, tally):
                shown[kind].append((where, reason))
            if options.forms and not any(found and found[-1][0] == where for found in refusals):
                for form, difference in form_differences(tool, chunk, options.cache).items():
                    forms[form] += 1
                    if difference:
                        forms[f"{form} differs"] += 1
                        shown[f"features: {form}"].append((where, difference))
    for kind, found in shown.items():
        if found:
            print(f"--- {kind}: {len(found)}")
            print("\n".join(f"{where}: {reason}" for where, reason in found[: options.show]))
    if options.list:
        lines = [f"{kind}\t{where}\t{reason}\n" for kind, found in shown.items() for where, reason in found]
        new = options.list.with_name(options.list.name + ".new")
        new.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")
        new.replace(options.list)
    print("---", ", ".join(f"{name} {count}" for name, count in tally.items()))
    read_both = max(tally["mlir-opt reads"], 1)
    print(f"read {tally['read'] / max(tally['chunks'], 1):.2%} of all chunks")
    print(f"same counts {tally['same'] / read_both:.2%}, all facts {tally['facts same'] / read_both:.2%}")
    for form, count in forms.items():
        if not form.endswith(" differs"):
            print(f"same features, {form}: {1 - forms[f'{form} differs'] / count:.2%} of {count}")
    return int(tally["same"] < tally["mlir-opt reads"])


def check_chunk(
    chunk: bytes, where: str, tool: str | None, cache: Path | None, tally: Counter[str]
) -> Iterator[tuple[str, str]]:
    """Read a chunk and compare it with the tool's print; (kind, reason) of what is not as it should be."""
    tally["chunks"] += 1
    print_text = printed_by(tool, chunk, cache) if tool else None
    if print_text is not None:
        tally["mlir-opt reads"] += 1
    try:
        program = read(chunk, path=where)
    except ReadError as problem:
        tally["refused"] += 1
        yield ("refused" if print_text is None else "refused though mlir-opt reads it"), problem.one_line()
        return
    tally["read"] += 1
    if print_text is None:
        return
    try:
        printed = read(print_text, path=f"{where} as printed")
    except ReadError as problem:
        yield "refused though mlir-opt reads it", problem.one_line()
        return
    whole = facts(printed, implied=True)["op_counts"]
    assert whole == dict(sorted(Counter(_PRINTED_OP.findall(print_text)).items())), where
    off, others = differences(program, printed)
    tally["same"] += not off
    tally["facts same"] += not off and not others
    if off:
        yield "counts", str(off)
    elif others:
        yield "facts", "; ".join(others)


if __name__ == "__main__":
    sys.exit(main())
