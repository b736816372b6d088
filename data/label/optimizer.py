"""Pass pipelines on modules, as `mlir-opt` runs them, in a process that stays: starting takes ten times as long."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import threading
from pathlib import Path
from typing import IO

from ...errors import LabelError
from .tools import MEMORY_BYTES, compiled_once, ended_by, first_error, mlir_library, tool

_PROGRAM = Path(__file__).with_name("mlir_opt.c")
_CPU_SECONDS = 20
"""What one pipeline may take."""

_running: dict[tuple[int, int], subprocess.Popen[bytes]] = {}
"""Process and thread -> the one that answers it; a fork starts its own."""


def optimize(mlir: str, pipeline: str, *, step: str) -> str:
    """The module after a pipeline such as "builtin.module(canonicalize)", printed without aliases; "" only prints it.

    Raises
    ------
    LabelError
        reason "<step>-error" (the module or the pipeline is refused, or a pass fails; `detail` is the first error
        line), "<step>-crash" (ended by a signal) or "<step>-timeout" (20 s of processor time are used up).
    ToolMissingError
        mlir-opt or gcc is not installed.
    """
    status, module, messages = _ask(pipeline.encode(), mlir.encode("utf-8", "surrogateescape"))
    if status != 0:
        raise ended_by(step, status, first_error(messages.decode("utf-8", "replace")))
    return module.decode("utf-8", "replace")


def _ask(pipeline: bytes, module: bytes) -> tuple[int, bytes, bytes]:
    """Wait status, module and messages."""
    process = _optimizer()
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(b"%d %d\n" % (len(pipeline), len(module)) + pipeline + module)
        process.stdin.flush()
        status, n_module, n_messages = map(int, process.stdout.readline().split())
        return status, _exactly(process.stdout, n_module), _exactly(process.stdout, n_messages)
    except BaseException as error:  # half an answer may be under way: the next question starts afresh
        _end(process)
        if isinstance(error, (OSError, ValueError, EOFError)):
            raise LabelError("optimizer-crash", f"it ended with status {process.returncode}") from None
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with contextlib.suppress(BrokenPipeError):
        process.communicate()


@atexit.register
def _end_all() -> None:
    for (pid, _), process in _running.items():
        if pid == os.getpid():
            _end(process)


def _exactly(stream: IO[bytes], n: int) -> bytes:
    found = stream.read(n)
    if len(found) != n:
        raise EOFError
    return found


def _optimizer() -> subprocess.Popen[bytes]:
    asking = os.getpid(), threading.get_ident()
    process = _running.get(asking)
    if process is None or process.poll() is not None:
        if process is not None:
            _end(process)
        library = str(mlir_library())
        program = compiled_once(_PROGRAM, "", [tool("gcc"), "-O2"], library, f"-Wl,-rpath,{Path(library).parent}")
        process = subprocess.Popen(
            [str(program), str(_CPU_SECONDS), str(MEMORY_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"LLVM_DISABLE_SYMBOLIZATION": "1"},
            start_new_session=True,
        )
        _running[asking] = process
    return process
