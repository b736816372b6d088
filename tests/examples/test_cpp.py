"""The C++ client: compiled as strictly as a compiler's own build, and run against a server."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import irgauge
from irgauge.serve import _listen, _serve_client

ROOT = Path(__file__).parent.parent.parent
MATMUL = ROOT / "examples" / "matmul.mlir"
STRICT = [
    "-std=c++17",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-Werror",
    "-fno-exceptions",
    "-fno-rtti",
]

TRIALS = """\
#include "irgauge_client.hpp"
#include <cstdio>

#define CHECK(what) do { if (!(what)) { std::printf("line %d: %s\\n", __LINE__, #what); return 1; } } while (0)

int main(int, char **argv) {
  irgauge::Client client;
  std::vector<irgauge::Function> functions;
  const std::string good = "func.func @f(%a: memref<8xf32>) { return }";
  CHECK(!client.predict(good, functions) && client.error() == "not connected");
  CHECK(!client.connect("/no/such/socket") && client.error().find("No such file") != std::string::npos);
  CHECK(!client.connect(std::string(300, 'x')) && client.error().find("too long") != std::string::npos);
  CHECK(client.connect(argv[1]));
  // Control characters, a quote, UTF-8 and a stray byte in a comment: sent as they have to be.
  CHECK(client.predict("// \\t\\x01 \\"quoted\\" \\\\ \\xC3\\xA9 \\xF0\\x9F\\x98\\x80 \\xFF\\n" + good, functions));
  CHECK(functions.size() == 1 && functions[0].name == "f" && functions[0].estimates.size() == 23);
  CHECK(functions[0].find("spills") && !functions[0].find("speed"));
  CHECK(!client.predict("nonsense {", functions) && client.error().find("<text>:1:") == 0);
  CHECK(client.predict(good, functions, {"spills", "latency_ns"}, "x86-64-v3"));
  CHECK(functions[0].estimates.size() == 2 && functions[0].find("latency_ns")->unit == "ns");
  CHECK(!client.predict(good, functions, {}, "z80") && client.error().find("unknown device") == 0);
  std::vector<irgauge::Ranked> ranked;
  CHECK(client.rank({good, good}, ranked) && ranked.size() == 2 && ranked[0].position == 0);
  CHECK(!client.rank({good}, ranked, "\\xED\\xA0\\x80") && client.error().find("unknown target") == 0);
  irgauge::detail::Json json;
  for (const char *bad : {"", "{", "[1,", "[1 2]", "{\\"a\\" 1}", "{a: 1}", "\\"\\\\u12\\"", "\\"\\\\x\\"", "\\"open",
                          "tru", "[] []"})
    CHECK(!irgauge::detail::JsonReader(bad).read(json = {}));
  CHECK(!irgauge::detail::JsonReader(std::string(100, '[')).read(json = {}));
  CHECK(irgauge::detail::JsonReader(
      " {\\"a\\\\n\\\\u00e9\\\\ud83d\\\\ude00\\" : [1e3, true, null, {}]} ").read(json = {}));
  CHECK(json.keys[0] == "a\\n\\xC3\\xA9\\xF0\\x9F\\x98\\x80" && json.items[0].items[0].number == 1000);
  std::puts("ok");
}
"""


@pytest.fixture(scope="module")
def model() -> irgauge.CostModel:
    return irgauge.load()


@pytest.fixture(scope="module")
def server(model: irgauge.CostModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server in this process: one thread for each connection, as `serve_socket` does it."""
    path = tmp_path_factory.mktemp("s") / "socket"
    listener = _listen(path)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_serve_client, args=(model, connection, 1 << 20), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield path
    listener.close()


def build(source: Path, program: Path) -> Path:
    command = ["g++", *STRICT, f"-I{ROOT / 'examples' / 'cpp'}", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def test_the_example_prints_what_predict_says(server: Path, model: irgauge.CostModel, tmp_path: Path) -> None:
    program = build(ROOT / "examples" / "cpp" / "predict.cpp", tmp_path / "predict")
    done = subprocess.run([program, server, MATMUL], capture_output=True, text=True, timeout=60, check=True)
    (prediction,) = model.predict(MATMUL.read_text())
    printed = [line.split(" ", 3) for line in done.stdout.splitlines()]
    assert [(name, target, float(value)) for name, target, value, _ in printed] == [
        ("matmul", f"{e.device}/{e.target}", e.value) for e in prediction
    ]
    last = list(prediction)[-1]
    assert json.loads(printed[-1][3].partition("]")[0] + "]") == [last.low, last.high]
    (tmp_path / "bad.mlir").write_text("nonsense {")
    done = subprocess.run([program, server, tmp_path / "bad.mlir"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "<text>:1:1" in done.stderr


def test_the_client_in_all_its_cases(server: Path, tmp_path: Path) -> None:
    (tmp_path / "trials.cpp").write_text(TRIALS)
    program = build(tmp_path / "trials.cpp", tmp_path / "trials")
    done = subprocess.run([program, server], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ok\n"
