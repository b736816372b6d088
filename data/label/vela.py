"""`tosa-opt` and Arm's Vela: networks to what Vela estimates of them.

Both stand in an environment of their own, because they need older versions of libraries that irgauge also uses.
"""

from __future__ import annotations

import csv
import functools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import LabelError, ToolMissingError
from .tools import MEMORY_BYTES, ended_by, run

WORKER = Path(__file__).with_name("vela_worker.py")
CPU_S, WALL_S = 60, 180
"""What one network may take."""

_ASK = """
import json, sysconfig
from importlib.metadata import version
tools = ("tosa-tools", "ethos-u-vela")
print(json.dumps({"folder": sysconfig.get_paths()["purelib"], "versions": {tool: version(tool) for tool in tools}}))
"""


@dataclass(frozen=True)
class Environment:
    """Where the tools are."""

    python: str
    tosa_opt: str
    versions: Mapping[str, str]
    """Package -> version."""


@functools.cache
def environment() -> Environment:
    """The environment `npu` inside this one, which `make setup` makes, or this one.

    Raises
    ------
    ToolMissingError
        Neither has the tools; the message says what to install.
    """
    inside = Path(sys.prefix) / "npu" / "bin" / "python"
    python = str(inside) if inside.exists() else sys.executable
    try:
        found = json.loads(run([python, "-c", _ASK], step="vela"))
    except LabelError:
        raise ToolMissingError(
            "tosa-tools and ethos-u-vela are not installed. Install irgauge's extra `npu`, here or, because they need "
            f"NumPy < 2.2, into an environment of its own at {inside.parents[1]}; in a checkout, `make setup` does it."
        ) from None
    return Environment(python, str(Path(found["folder"]) / "bin" / "tosa-opt"), found["versions"])


def serialize(mlir: str, path: Path) -> None:
    """Write a TOSA module as the flatbuffer that Vela reads.

    Raises
    ------
    LabelError
        reason "tosa-opt-...": it is not TOSA, or not valid.
    """
    command = [environment().tosa_opt, "-", f"--tosa-serialize=tosa-flatbuffer-filename={path}", "-o", "/dev/null"]
    run(command, step="tosa-opt", stdin=mlir)


@dataclass(frozen=True)
class Job:
    """One network for one device."""

    network: Path
    options: Sequence[str]
    """Of Vela's command line."""
    folder: Path
    """Where Vela writes; no other job may."""


@dataclass(frozen=True)
class Estimate:
    """What Vela says of one network."""

    summary: Mapping[str, str]
    """The row of its summary CSV; sizes in KiB, traffic in bytes."""
    cpu_operators: int
    """Operations that the NPU does not run."""


def estimate(jobs: Sequence[Job]) -> list[Estimate | LabelError]:
    """Compile networks one after the other, each in a process of its own.

    The errors have the reason "vela-error", "vela-crash" or "vela-timeout".

    Raises
    ------
    LabelError
        The process that starts the others has ended early.
    """
    if not jobs:
        return []
    for job in jobs:
        job.folder.mkdir(parents=True, exist_ok=True)
    given = {
        "cpu_s": CPU_S,
        "wall_s": WALL_S,
        "memory_bytes": MEMORY_BYTES,
        "jobs": [
            {
                "arguments": [str(job.network), "--output-dir", str(job.folder), *job.options],
                "messages": str(_messages(job)),
            }
            for job in jobs
        ],
    }
    command = [environment().python, str(WORKER)]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # more would count against the memory that is allowed
    limit_s = WALL_S * (len(jobs) + 1)
    printed = run(command, step="vela", stdin=json.dumps(given), timeout_s=limit_s, env=one_thread)
    return [_read(job, int(status)) for job, status in zip(jobs, printed.split(), strict=True)]


def _messages(job: Job) -> Path:
    return job.folder / "messages.txt"


def _read(job: Job, status: int) -> Estimate | LabelError:
    text = _messages(job).read_text(errors="replace")
    files = list(job.folder.glob("*_summary_*.csv"))
    if status != 0 or not files:
        return ended_by("vela", status, _what_is_wrong(text))
    with files[0].open() as file:
        (row,) = csv.DictReader(file)
    operators = next(line for line in text.splitlines() if line.startswith("CPU operators = "))
    return Estimate(row, int(operators.split()[3]))


def _what_is_wrong(text: str) -> str:
    """Vela's last words: the exception, or the operator with what it objects to."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no message"]
    start = next((at for at, line in enumerate(lines) if line.startswith("- ")), len(lines))
    return " ".join(lines[max(start - 1, 0) :] if start < len(lines) else lines[-1:])[:300]
