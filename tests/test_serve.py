"""`irgauge serve` as its clients meet it: one answer a line, whatever the line; clean ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import irgauge
from irgauge.serve import answer, lines_of, serve_socket

MATMUL = (Path(__file__).parent.parent / "examples" / "matmul.mlir").read_text()
OTHER = MATMUL.replace("arith.addf", "arith.maximumf")
SERVE = [sys.executable, "-m", "irgauge", "serve"]
MAX_BYTES = 1 << 16


@pytest.fixture(scope="module")
def model() -> irgauge.CostModel:
    return irgauge.load()


def ask(model: irgauge.CostModel, request: Any) -> dict[str, Any]:
    line = answer(model, request if isinstance(request, bytes) else json.dumps(request).encode())
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line)


def chunks(*pieces: bytes) -> Any:
    waiting = [*pieces, b""]
    return lambda n: waiting.pop(0)


# --- lines and answers, in this process


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_do_not_depend_on_how_they_arrive(size: int) -> None:
    content = b"one\n\nthree\nlonger than ten\nfive\nlast"
    pieces = [content[i : i + size] for i in range(0, len(content), size)]
    found = [line if isinstance(line, bytes) else None for line in lines_of(chunks(*pieces), 10)]
    assert found == [b"one", b"", b"three", None, b"five", b"last"]


def test_a_long_line_is_not_kept() -> None:
    seen = 0

    def receive(n: int) -> bytes:
        nonlocal seen
        seen += 1
        return bytes([97 + seen % 2]) * n if seen < 500 else b""

    tracemalloc.start()
    try:
        assert len(list(lines_of(receive, 1 << 20))) == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20  # of 32 MiB


def test_the_answer_says_what_predict_says(model: irgauge.CostModel) -> None:
    response = ask(model, {"id": [1, "a"], "mlir": MATMUL, "targets": ["spills", "latency_ns"], "device": "x86-64-v3"})
    (expected,) = model.predict(MATMUL, targets=["spills", "latency_ns"], device="x86-64-v3")
    assert response == {"id": [1, "a"], "functions": [expected.to_plain()]}


def test_explain_adds_up(model: irgauge.CostModel) -> None:
    response = ask(model, {"id": 1, "mlir": MATMUL, "targets": ["latency_ns"], "explain": True})
    (function,) = response["functions"]
    (explanation,) = function["explanations"]
    total = explanation["base"] + sum(c["amount"] for c in explanation["contributions"])
    assert total == pytest.approx(function["predictions"][0]["value"], rel=1e-9)
    assert explanation["prediction"] == function["predictions"][0]["value"]


def test_rank_diff_and_info(model: irgauge.CostModel) -> None:
    big = MATMUL.replace("96", "960")
    ranked = ask(model, {"id": 1, "op": "rank", "candidates": [big, MATMUL], "target": "instructions_executed"})
    assert [r["position"] for r in ranked["ranking"]] == [1, 0]
    diff = ask(model, {"id": 1, "op": "diff", "before": MATMUL, "after": big, "targets": ["latency_ns"]})
    (change,) = diff["functions"][0]["changes"]
    assert change["before"] + sum(d["amount"] for d in change["drivers"]) == pytest.approx(change["after"], rel=1e-9)
    assert "x86-64-v3/spills" in ask(model, {"op": "info"})["targets"]


BAD: dict[str, tuple[bytes, str, str]] = {
    "malformed": (b'{"id": 1, "mlir": ', "RequestError", "not JSON"),
    "text": (b"predict this", "RequestError", "not JSON"),
    "binary": (bytes(range(128, 256)), "RequestError", "not UTF-8 at byte 0"),
    "nul": (b"\x00", "RequestError", "not JSON"),
    "list": (b"[1]", "RequestError", "a request is a JSON object, got list"),
    "nan": (b'{"id": NaN}', "RequestError", "NaN is not JSON"),
    "huge number": (b'{"id": ' + b"9" * 10_000 + b"}", "RequestError", "not JSON"),
    "deep": (b'{"id":' + b"[" * 50_000, "RequestError", "nested too deeply"),
    "no text": (b'{"id": 1}', "RequestError", "'mlir' must be MLIR text, got nothing"),
    "number as text": (b'{"mlir": 3}', "RequestError", "'mlir' must be MLIR text, got int"),
    "misspelt field": (b'{"mlir": "", "target": "spills"}', "RequestError", "unknown field 'target'"),
    "unknown op": (b'{"op": "compile"}', "RequestError", "unknown op 'compile'. Known: predict, rank"),
    "op is a list": (b'{"op": ["rank"]}', "RequestError", "unknown op"),
    "targets": (b'{"mlir": "", "targets": "spills"}', "RequestError", "list of strings"),
    "explain": (b'{"mlir": "", "explain": 1}', "RequestError", "true or false"),
    "candidates": (b'{"op": "rank", "candidates": [1]}', "RequestError", "list of MLIR texts"),
    "device": (b'{"mlir": "", "device": 1}', "RequestError", "must be a string"),
    "not MLIR": (b'{"mlir": "nonsense {"}', "ReadError", "<text>:1:"),
    "lone surrogate": (b'{"mlir": "\\ud800"}', "ReadError", "<text>:1:"),
    "unknown target": (b'{"mlir": "func.func @f() { return }", "targets": ["x"]}', "UsageError", "Known: x86-64-v3/"),
    "unknown device": (
        b'{"mlir": "func.func @f() { return }", "device": "x"}',
        "UsageError",
        "Known: ethos-u55-128, ethos-u85-256, neoverse-v2, x86-64-v3",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_gets_an_error_with_its_reason(
    model: irgauge.CostModel, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    line, kind, message = BAD[name]
    response = ask(model, line)
    assert response["error"]["kind"] == kind
    assert message in response["error"]["message"]
    assert "\n" not in response["error"]["message"]
    assert capfd.readouterr() == ("", "")


def test_the_id_comes_back_with_an_error(model: irgauge.CostModel) -> None:
    assert ask(model, {"id": "x", "mlir": "nonsense {"})["id"] == "x"


def test_a_fault_of_ours_is_an_answer_too(
    model: irgauge.CostModel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(irgauge.CostModel, "predict", lambda *_, **__: 1 / 0)
    response = ask(model, {"id": 7, "mlir": MATMUL})
    assert (response["id"], response["error"]["kind"]) == (7, "InternalError")
    assert "ZeroDivisionError" in capsys.readouterr().err


# --- standard input


def test_standard_input_goes_on_after_bad_lines_and_ends_with_it(model: irgauge.CostModel) -> None:
    lines = [
        json.dumps({"id": 1, "mlir": MATMUL, "targets": ["spills"]}).encode(),
        b"nonsense",
        b"",
        b"x" * (MAX_BYTES + 1),
        bytes(range(14, 256)),
        json.dumps({"id": 2, "mlir": MATMUL.replace("96", "96000000000"), "targets": ["latency_ns"]}).encode(),
        b'{"id": 3, "mlir"',  # half a line, then the end
    ]
    done = subprocess.run(
        [*SERVE, "--max-bytes", str(MAX_BYTES)], input=b"\n".join(lines), capture_output=True, timeout=60, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["id"] for a in answers] == [1, None, None, None, 2, None]
    assert [a.get("error", {}).get("kind") for a in answers] == [None, *["RequestError"] * 3, None, "RequestError"]
    assert f"longer than {MAX_BYTES} bytes" in answers[2]["error"]["message"]
    assert answers[0]["functions"][0] == model.predict(MATMUL, targets=["spills"])[0].to_plain()
    assert done.stderr == b""


def test_sigterm_ends_it_cleanly() -> None:
    with subprocess.Popen(SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b'{"id": 1, "op": "info"}\n')
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"id": 1')
        process.terminate()
        assert process.wait(30) == 0
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def test_a_reader_that_has_gone_ends_it_without_a_traceback() -> None:
    with subprocess.Popen(SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b'{"id": 1, "op": "info"}\n')
        process.stdin.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""


# --- socket


class Connection:
    """A client of the socket."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def ask(self, request: Any) -> dict[str, Any]:
        self.socket.sendall(request if isinstance(request, bytes) else json.dumps(request).encode() + b"\n")
        return json.loads(self.file.readline())


@contextlib.contextmanager
def serving(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*SERVE, "--socket", str(path), "--max-bytes", str(MAX_BYTES)], stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == f"irgauge serve: listening on {path}\n".encode()
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                assert process.wait(30) == 0
                assert process.stderr.read() == b""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("s") / "socket"
    with serving(path):
        yield path


REQUEST = {"id": 1, "mlir": MATMUL}


def test_two_clients_at_once(server: Path, model: irgauge.CostModel) -> None:
    with Connection(server) as one, Connection(server) as two:
        one.socket.sendall(b'{"id": 5, "mlir": ')  # half a request must not keep the other waiting
        (expected,) = model.predict(OTHER)
        assert two.ask({"id": 1, "mlir": OTHER})["functions"] == [expected.to_plain()]
        assert one.ask(json.dumps(MATMUL).encode() + b"}\n")["id"] == 5


def test_a_bad_line_ends_neither_the_connection_nor_others(server: Path) -> None:
    with Connection(server) as one, Connection(server) as two:
        assert "error" in one.ask(b"\xff\xfe\n")
        assert "error" in one.ask(b"y" * (MAX_BYTES * 3) + b"\n")
        assert "functions" in one.ask(REQUEST)
        assert "functions" in two.ask(REQUEST)


def test_a_client_that_leaves_in_the_middle_disturbs_nobody(server: Path) -> None:
    with Connection(server) as one:
        one.socket.sendall(json.dumps(REQUEST).encode() + b"\n" + b'{"half')
    with Connection(server) as one:
        one.socket.sendall(b'{"id": 9, "op": "info"}')
        one.socket.shutdown(socket.SHUT_WR)
        assert json.loads(one.file.readline())["id"] == 9
        assert one.file.readline() == b""


def test_eight_threads_get_the_same_numbers(server: Path, model: irgauge.CostModel) -> None:
    texts = [MATMUL.replace("96", str(n)) for n in (8, 24, 96, 200)]
    expected = [[p.to_plain() for p in model.predict(text)] for text in texts]

    def client(number: int) -> bool:
        with Connection(server) as one:
            order = [(number + i) % len(texts) for i in range(6)]
            return all(one.ask({"id": i, "mlir": texts[i]}) == {"id": i, "functions": expected[i]} for i in order)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(client, range(8))) == [True] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_get_the_same_numbers(server: Path, model: irgauge.CostModel) -> None:
    expected = {"id": 1, "functions": [p.to_plain() for p in model.predict(MATMUL)]}
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with Connection(server) as one:
                    here = json.loads(answer(model, json.dumps(REQUEST).encode()))
                    code = int(not (one.ask(REQUEST) == here == expected))
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]


def test_sigterm_lets_an_answer_under_way_arrive(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving(path) as process, Connection(path) as one:
        one.ask(REQUEST)
        one.socket.sendall(json.dumps({**REQUEST, "explain": True}).encode() + b"\n")
        time.sleep(0.2)  # all targets are explained: longer than this
        process.terminate()
        assert "functions" in json.loads(one.file.readline())
        assert process.wait(30) == 0


def test_a_socket_left_behind_is_replaced_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(path))
    with serving(path) as process, Connection(path) as one:
        assert path.stat().st_mode & 0o777 == 0o600
        assert one.ask({"op": "info", "id": 1})["id"] == 1
        process.terminate()
        assert one.file.readline() == b""
        assert process.wait(30) == 0
    assert not path.exists()


def test_where_it_cannot_listen_it_says_why(server: Path, model: irgauge.CostModel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path, reason in (
        (tmp_path / "file", "is there already, and is not a socket"),
        (server, "another server listens there"),
        (tmp_path / "nowhere" / "s", "cannot listen there: No such file"),
        (tmp_path / ("x" * 120), "too long"),
    ):
        with pytest.raises(irgauge.UsageError, match=reason):
            serve_socket(model, path)
    assert (tmp_path / "file").read_text() == "mine"
    with Connection(server) as one:
        assert one.ask({"op": "info", "id": 1})["id"] == 1
