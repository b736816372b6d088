"""`irgauge serve`: one JSON line in, one JSON line out. For compilers that call a process instead of Python.

docs/serve.md has the protocol. Every line gets exactly one answer, in the order of the requests; a line that cannot
be answered gets an error object, and the connection goes on. Each client of the socket has a thread of its own; the
model is read-only, so all of them see the same numbers.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from .errors import IrgaugeError, ReadError, UsageError
from .models.predictor import CostModel

MAX_BYTES = 1 << 24
_CHUNK = 1 << 16
_LEAVE_SECONDS = 5.0
"""How long answers under way may take after SIGTERM."""
_FIELDS: Mapping[str, frozenset[str]] = {
    "predict": frozenset(("mlir", "targets", "device", "explain")),
    "rank": frozenset(("candidates", "target", "device", "function")),
    "diff": frozenset(("before", "after", "targets", "device")),
    "info": frozenset(),
}


class _RequestError(IrgaugeError):
    """The line is not a request."""


class _TooLong:
    """Stands for a line that exceeded the limit and was thrown away."""


def lines_of(receive: Callable[[int], bytes], max_bytes: int) -> Iterator[bytes | _TooLong]:
    """Split what `receive` gives (b"" at the end) into lines without their newline.

    A line over `max_bytes` is dropped as it arrives and given as `_TooLong`; what follows the last newline is a line
    too, if it is not empty.
    """
    kept: list[bytes] = []
    size = 0
    while chunk := receive(_CHUNK):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            size += len(piece)
            if size > max_bytes:
                yield _TooLong()
            else:
                yield b"".join([*kept, piece])
            kept, size = [], 0
        size += len(rest)
        if size > max_bytes:
            kept = []
        elif rest:
            kept.append(rest)
    if size > max_bytes:
        yield _TooLong()
    elif size:
        yield b"".join(kept)


def answer(model: CostModel, line: bytes | _TooLong, max_bytes: int = MAX_BYTES) -> bytes:
    """The response to one request line, newline included. Never raises for what a line holds."""
    identity: Any = None
    try:
        if isinstance(line, _TooLong):
            raise _RequestError(
                f"the line is longer than {max_bytes} bytes. Start the server with a larger --max-bytes."
            )
        request = _parse(line)
        identity = request.pop("id", None)
        with np.errstate(all="ignore"):
            response = {"id": identity, **_respond(model, request)}
        text = json.dumps(response, allow_nan=False)
    except IrgaugeError as error:
        text = _error(identity, type(error).__name__.lstrip("_"), _one_line(error))
    except Exception as error:  # whatever one request sets off, the others must be answered
        print(f"irgauge serve: {type(error).__name__}: {error}", file=sys.stderr)
        text = _error(identity, "InternalError", f"{type(error).__name__}: {error}")
    return text.encode("ascii") + b"\n"


def _error(identity: Any, kind: str, message: str) -> str:
    return json.dumps({"id": identity, "error": {"kind": kind, "message": message}})


def _one_line(error: IrgaugeError) -> str:
    return error.one_line() if isinstance(error, ReadError) else " ".join(str(error).split())


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _RequestError(f"the line is not UTF-8 at byte {error.start}.") from None
    except RecursionError:
        raise _RequestError("the line is not a request: its JSON is nested too deeply.") from None
    except ValueError as error:
        raise _RequestError(f"the line is not JSON: {error}.") from None
    if not isinstance(request, dict):
        raise _RequestError(f"a request is a JSON object, got {type(request).__name__}.")
    return request


def _respond(model: CostModel, request: dict[str, Any]) -> dict[str, Any]:
    op = request.pop("op", "predict")
    if not isinstance(op, str) or op not in _FIELDS:
        raise _RequestError(f"unknown op {op!r}. Known: {', '.join(_FIELDS)}.")
    unknown = sorted(set(request) - _FIELDS[op])
    if unknown:
        raise _RequestError(f"unknown field {unknown[0]!r}. A {op} request has: {', '.join(sorted(_FIELDS[op]))}.")
    device = _string(request, "device", None)
    if op == "info":
        return {"devices": list(model.devices), "targets": dict(model.manifest["targets"])}
    if op == "rank":
        candidates = request.get("candidates")
        if not isinstance(candidates, list) or not all(isinstance(c, str) for c in candidates):
            raise _RequestError("'candidates' must be a list of MLIR texts.")
        ranked = model.rank(
            candidates,
            _string(request, "target", "latency_ns"),
            device=device,
            function=_string(request, "function", None),
        )
        keys = ("device", "target", "value", "low", "high", "unit", "status")
        return {"ranking": [{"position": r.position, **{k: getattr(r.estimate, k) for k in keys}} for r in ranked]}
    targets = _strings(request, "targets")
    if op == "diff":
        before, after = (_text(request, name) for name in ("before", "after"))
        return {"functions": [d.to_plain() for d in model.diff(before, after, device=device, targets=targets)]}
    text, explain = _text(request, "mlir"), request.get("explain", False)
    if not isinstance(explain, bool):
        raise _RequestError(f"'explain' must be true or false, got {explain!r}.")
    functions = [p.to_plain() for p in model.predict(text, device=device, targets=targets)]
    if explain:
        columns = dict.fromkeys(f"{p['device']}/{p['target']}" for f in functions for p in f["predictions"])
        explained = [model.explain(text, column) for column in columns]
        for function in functions:
            name = function["function"]
            function["explanations"] = [by_name[name].to_plain() for by_name in explained if name in by_name]
    return {"functions": functions}


def _text(request: Mapping[str, Any], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise _RequestError(f"{name!r} must be MLIR text, got {'nothing' if value is None else type(value).__name__}.")
    return value


def _string(request: Mapping[str, Any], name: str, default: Any) -> Any:
    value = request.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise _RequestError(f"{name!r} must be a string, got {type(value).__name__}.")
    return value


def _strings(request: Mapping[str, Any], name: str) -> list[str] | None:
    value = request.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _RequestError(f"{name!r} must be a list of strings.")
    return value


# --- ending


class _Stop(BaseException):
    """SIGTERM or SIGINT arrived while nothing was being answered."""


class _Ending:
    """Turns SIGTERM and SIGINT into an orderly end: at once where the process waits, else after the answer."""

    def __init__(self) -> None:
        self.asked, self.working = False, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if not self.working:
            raise _Stop

    @contextmanager
    def watched(self) -> Iterator[_Ending]:
        """Listen to the signals inside, where this is the main thread; leave quietly when one came."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = [(number, signal.signal(number, self)) for number in (signal.SIGTERM, signal.SIGINT)]
        try:
            yield self
        except _Stop:
            pass
        finally:
            for number, handler in before:
                signal.signal(number, handler)


# --- standard input


def serve_stdin(model: CostModel, *, max_bytes: int = MAX_BYTES) -> None:
    """Answer standard input on standard output until it ends or SIGTERM comes."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    with _Ending().watched() as ending:
        for line in lines_of(lambda n: os.read(source.fileno(), n), max_bytes):
            if isinstance(line, bytes) and not line.strip():
                continue
            ending.working = True
            sink.write(answer(model, line, max_bytes))
            sink.flush()
            ending.working = False
            if ending.asked:
                return


# --- Unix socket


def serve_socket(model: CostModel, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
    """Answer any number of clients of a Unix socket until SIGTERM or SIGINT.

    The socket is the user's own (mode 600). One left behind by a server that is gone is replaced.

    Raises
    ------
    UsageError
        Another server listens there, the path is something else than a socket, too long, or cannot be made.
    """
    listener = _listen(path)
    made = os.stat(path)
    clients: dict[threading.Thread, socket.socket] = {}
    try:
        with _Ending().watched():
            print(f"irgauge serve: listening on {path}", file=sys.stderr, flush=True)
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=_serve_client, args=(model, connection, max_bytes), daemon=True)
                clients = {t: c for t, c in clients.items() if t.is_alive()}
                clients[thread] = connection
                thread.start()
    finally:
        listener.close()
        with suppress(OSError):
            now = os.stat(path)
            if (now.st_dev, now.st_ino) == (made.st_dev, made.st_ino):  # not another server's by now
                os.unlink(path)
        for connection in clients.values():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        deadline = time.monotonic() + _LEAVE_SECONDS
        for thread in clients:
            thread.join(max(0.0, deadline - time.monotonic()))


def _serve_client(model: CostModel, connection: socket.socket, max_bytes: int) -> None:
    with connection, suppress(ConnectionError, BrokenPipeError):
        for line in lines_of(connection.recv, max_bytes):
            if isinstance(line, bytes) and not line.strip():
                continue
            connection.sendall(answer(model, line, max_bytes))


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        umask = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(umask)
        listener.listen(64)
    except OSError as error:
        listener.close()
        reason = "the path is too long for a socket (about 100 bytes)" if error.errno is None else error.strerror
        raise UsageError(f"{path}: cannot listen there: {reason}.") from None
    except IrgaugeError:
        listener.close()
        raise
    return listener


def _remove_stale(path: Path) -> None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise UsageError(f"{path}: is there already, and is not a socket. Name another path.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError as error:
            if error.errno != errno.ECONNREFUSED:
                raise
            os.unlink(path)
            return
    raise UsageError(f"{path}: another server listens there. Stop it, or name another path.")
