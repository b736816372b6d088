"""The command line as a user meets it: what it prints, where, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from irgauge.cli import main
from irgauge.data.targets import X86, targets_of
from irgauge.featurize.describe import FIXED, GROUPS
from irgauge.featurize.schema import SCHEMA_VERSION
from irgauge.models.predictor import load

MATMUL = Path(__file__).parent.parent / "examples" / "matmul.mlir"
SEVERAL = sorted(
    str(p) for p in (Path(__file__).parent / "featurize" / "golden").glob("*.mlir") if "call" not in p.stem
)
"""Files of one function each."""


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    code, out, err = _run(capsys, *arguments, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_inspect_counts_the_written_operations(capsys: pytest.CaptureFixture[str]) -> None:
    facts = _json(capsys, "inspect", str(MATMUL))
    assert isinstance(facts, dict)
    assert facts["num_ops"] == 11
    assert facts["op_counts"]["affine.load"] == 3
    assert "builtin.module" not in facts["op_counts"]
    assert (facts["max_loop_depth"], facts["num_functions"]) == (3, 1)


def test_inspect_draws_the_loops_and_counts_work_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys, "inspect", str(MATMUL))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"{MATMUL}: 11 operations (4 more implied by the syntax), loops up to 3 deep"
    assert lines[2] == "@matmul(%A: memref<96x128xf32>, %B: memref<128x112xf32>, %C: memref<96x112xf32>)"
    assert lines[5] == "      └─ affine.for %k: 128 iterations, 1,376,256 in all, reduces in memory"
    assert "\x1b" not in out
    tables = {part.partition("\n")[0]: part.splitlines()[1:] for part in out.split("\n\n")}
    work = dict(zip(*(re.split(r"  +", line) for line in tables["Work in one call"]), strict=True))
    assert (work["function"], work["flop"], work["bytes moved"]) == ("matmul", "2,752,512", "22,020,096")
    title = next(title for title in tables if title.startswith("Memory"))
    memory = dict(zip(*(re.split(r"  +", line) for line in tables[title]), strict=True))
    assert memory["argument bytes"] == memory["bytes touched"] == f"{4 * (96 * 128 + 128 * 112 + 96 * 112):,}"
    assert tables["Most values live at once"][1].split()[0] == "matmul"
    assert tables["Operations"][1].split() == ["affine.for", "3"]
    assert ["static_elements_max", "14,336"] in [line.split() for line in tables["Regions, values, shapes"]]


def test_inspect_text_and_json_have_the_same_facts(capsys: pytest.CaptureFixture[str]) -> None:
    facts = _json(capsys, "inspect", SEVERAL[0])
    assert isinstance(facts, dict)
    assert set(facts) == {
        "num_ops", "op_counts", "implied_ops", "max_loop_depth", "num_functions", "max_region_depth", "num_blocks",
        "num_block_args", "num_results", "num_operands", "num_successors", "shaped_values", "static_elements_max",
        "static_elements_total", "dynamic_values", "dynamic_dims", "unranked_values", "scalable_values",
    }  # fmt: skip
    _, out, _ = _run(capsys, "inspect", SEVERAL[0])
    printed = {line.split()[0]: line.split()[1] for line in out.splitlines() if len(line.split()) == 2}
    for name, value in facts.items():
        if isinstance(value, int):
            assert printed[name] == f"{value:,}"


@pytest.mark.parametrize("text", ["", "module {}", "// nothing\n"])
def test_inspect_of_an_empty_module(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    (tmp_path / "empty.mlir").write_text(text)
    code, out, err = _run(capsys, "inspect", str(tmp_path / "empty.mlir"))
    assert (code, err) == (0, "")
    assert ": 1 operation" in out if text == "module {}" else ": 0 operations" in out
    assert "Work in one call" not in out


def test_inspect_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    loops = "\n".join(f"affine.for %i{k} = 0 to 2 {{\n}}" for k in range(200))
    texts = [f"func.func @f{i}() {{\n{loops if i == 1 else ''}\nreturn\n}}" for i in range(30)]
    (tmp_path / "many.mlir").write_text("\n".join(texts))
    _, short, _ = _run(capsys, "inspect", str(tmp_path / "many.mlir"))
    assert "… 121 more loops not drawn (--all draws all)\n" in short
    assert "\n… 10 more functions not shown (--all shows all)\n" in short
    _, whole, _ = _run(capsys, "inspect", str(tmp_path / "many.mlir"), "--all")
    assert "not drawn" not in whole
    assert "not shown" not in whole
    assert whole.count("affine.for %i") == 200
    assert whole.count("\n@f") == 30


def test_inspect_in_an_encoding_without_boxes(tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(MATMUL.read_text().replace("@matmul", '@"é"'))
    command = [sys.executable, "-m", "irgauge", "inspect", str(tmp_path / "f.mlir")]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True)
    text = done.stdout.decode("ascii")
    assert "      `- affine.for %k: 128 iterations" in text
    assert "@\\xe9(%A: " in text
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"}, check=True)
    assert "      └─ affine.for %k: 128 iterations" in done.stdout.decode("utf-8")
    assert "@é(%A: " in done.stdout.decode("utf-8")


def test_inspect_cuts_lines_to_the_width_of_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole, _ = _run(capsys, "inspect", str(MATMUL))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    _, narrow, _ = _run(capsys, "inspect", str(MATMUL))
    assert "\x1b" not in narrow
    for cut, line in zip(narrow.splitlines(), whole.splitlines(), strict=True):
        assert cut == (line if len(line) <= 60 else line[:59] + "…")
    monkeypatch.setenv("COLUMNS", "400")
    assert _run(capsys, "inspect", str(MATMUL))[1] == whole


def _as_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_featurize_forms_agree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A row for each function, the same in every form, printed or written."""
    functions = _json(capsys, "featurize", str(MATMUL), *SEVERAL)
    assert isinstance(functions, list)
    assert [f["path"] for f in functions] == [str(MATMUL), *SEVERAL]
    assert functions[0]["function"] == "matmul"
    assert functions[0]["features"]["work.flops"] == 2 * 96 * 112 * 128
    code, out, err = _run(capsys, "featurize", str(MATMUL), *SEVERAL, "--format", "csv")
    assert (code, err) == (0, "")
    header = out.partition("\n")[0].split(",")
    fixed = len(FIXED) + 2
    assert header[:fixed] == ["path", "function", *FIXED]
    assert header[fixed:] == sorted(header[fixed:])
    assert len(header) > fixed
    for row, function in zip(_as_csv(out), functions, strict=True):
        assert (row.pop("path"), row.pop("function")) == (function["path"], function["function"])
        assert {k: float(v) for k, v in row.items()} == {**dict.fromkeys(row, 0.0), **function["features"]}
    table = tmp_path / "features.parquet"
    assert _run(capsys, "featurize", str(MATMUL), *SEVERAL, "-o", str(table)) == (0, "", "")
    parquet = pytest.importorskip("pyarrow.parquet").read_table(table)
    assert parquet.column_names == header
    assert parquet.schema.metadata == {b"irgauge.schema_version": str(SCHEMA_VERSION).encode()}
    assert [{k: str(v) for k, v in row.items()} for row in parquet.to_pylist()] == _as_csv(out)


def test_featurize_table_shows_what_is_not_zero(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "featurize", str(MATMUL))
    assert code == 0
    lines = {line.split()[1]: line.split()[2] for line in out.splitlines()[1:]}
    assert lines["work.flops"] == "2,752,512"
    assert "loops.while" not in lines
    code, out, _ = _run(capsys, "featurize", *SEVERAL[:2])
    assert out.splitlines()[0].split() == ["path", "function", "feature", "value"]
    assert {line.split()[0] for line in out.splitlines()[1:]} == set(SEVERAL[:2])


def test_featurize_processes_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    one = _run(capsys, "featurize", *SEVERAL, "--format", "csv")
    assert one[0] == 0
    assert _run(capsys, "featurize", *SEVERAL, "--format", "csv", "--jobs", "2") == one


def test_featurize_reads_standard_input_among_files() -> None:
    command = [sys.executable, "-m", "irgauge", "featurize", SEVERAL[0], "-", SEVERAL[1], "--format", "csv"]
    done = subprocess.run([*command, "--jobs", "2"], input=MATMUL.read_bytes(), capture_output=True, check=True)
    rows = _as_csv(done.stdout.decode())
    assert [row["path"] for row in rows] == [SEVERAL[0], "<stdin>", SEVERAL[1]]
    assert float(rows[1]["work.flops"]) == 2 * 96 * 112 * 128


def test_featurize_takes_directories_and_patterns(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("b.mlir", "deep/a.mlir", "c.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"func.func @{path.stem}() {{ return }}")
    for names, functions in (
        ([tmp_path], ["b", "a"]),
        ([tmp_path / "*"], ["b", "c"]),
        ([tmp_path / "**" / "*.mlir", tmp_path / "b.mlir"], ["b", "a"]),
    ):
        found = _json(capsys, "featurize", *map(str, names))
        assert isinstance(found, list)
        assert [f["function"] for f in found] == functions
    (tmp_path / "empty").mkdir()
    (tmp_path / "[x].mlir").write_text("func.func @brackets() { return }")
    assert _json(capsys, "featurize", str(tmp_path / "[x].mlir"))[0]["function"] == "brackets"  # type: ignore[index]
    for name, message in (("empty", "no .mlir file in this directory"), ("*.py", "no file has a name like this")):
        code, out, err = _run(capsys, "featurize", str(tmp_path / name))
        assert (code, out) == (1, "")
        assert err.startswith(f"irgauge: {tmp_path / name}: {message}")
        assert err.count("\n") == 1


def test_featurize_groups(capsys: pytest.CaptureFixture[str]) -> None:
    (whole,) = _json(capsys, "featurize", str(MATMUL))  # type: ignore[misc]
    (some,) = _json(capsys, "featurize", str(MATMUL), "--groups", "work,ops")  # type: ignore[misc]
    assert some["features"] == {k: v for k, v in whole["features"].items() if k.startswith(("work.", "ops."))}
    _, out, _ = _run(capsys, "featurize", str(MATMUL), "--groups", "work,ops", "--format", "csv")
    header = out.partition("\n")[0].split(",")
    assert header[2 : 2 + len(GROUPS["ops"])] == list(GROUPS["ops"])
    assert set(header[2:]) == set(some["features"])
    code, out, err = _run(capsys, "featurize", str(MATMUL), "--groups", "speed")
    assert (code, out) == (2, "")
    assert "unknown feature group 'speed'. Known: ops, ngrams, " in err


def test_featurize_writes_all_or_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text("func.func @f( {")
    (tmp_path / "empty.mlir").write_text("")
    output = tmp_path / "features.csv"
    output.write_text("as it was")
    inputs = [str(tmp_path / "bad.mlir"), str(MATMUL), str(tmp_path / "empty.mlir")]
    for jobs in ("1", "2"):
        code, out, err = _run(capsys, "featurize", *inputs, "-o", str(output), "--jobs", jobs)
        assert (code, out) == (1, "")
        first, second = err.splitlines()
        assert first.startswith(f"{inputs[0]}:1:15: ")
        assert second.startswith(f"irgauge: {inputs[2]}: no function in it")
        assert output.read_text() == "as it was"
        assert _run(capsys, "featurize", *inputs, "--jobs", jobs) == (1, "", err)
    code, out, err = _run(capsys, "featurize", *inputs, "-o", str(output), "--keep-going")
    assert (code, out) == (1, "")
    assert err.splitlines() == [first, second]
    assert [row["path"] for row in _as_csv(output.read_text())] == [str(MATMUL)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.mlir", "empty.mlir", "features.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--format", "parquet"), 2, "Parquet is written to a file"),
        (("-o", "{tmp}"), 1, "is a directory"),
        (("-o", "{tmp}/none/features.csv"), 1, "there is no directory"),
    ],
)
def test_featurize_refuses_an_output_before_it_reads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    got, out, err = _run(capsys, "featurize", "none.mlir", *(a.replace("{tmp}", str(tmp_path)) for a in arguments))
    assert (got, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1


def test_featurize_keeps_links_and_devices(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "there.json")
    assert _run(capsys, "featurize", str(MATMUL), "-o", str(tmp_path / "link.json")) == (0, "", "")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "there.json").read_text())[0]["function"] == "matmul"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        try:
            assert _run(capsys, "featurize", str(MATMUL), "--format", "json", "-o", str(pipe)) == (0, "", "")
            assert pipe.is_fifo()
            assert json.loads(reader.communicate(timeout=60)[0])[0]["function"] == "matmul"
        finally:
            reader.kill()


def test_featurize_leaves_the_old_file_where_writing_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    output = tmp_path / "features.json"
    output.write_text("as it was")

    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    code, out, err = _run(capsys, "featurize", str(MATMUL), "-o", str(output))
    assert (code, out) == (1, "")
    assert err == f"irgauge: {output}: cannot be written: No space left on device\n"
    assert [path.name for path in tmp_path.iterdir()] == ["features.json"]
    assert output.read_text() == "as it was"


def test_names_that_are_not_utf_8_are_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    odd = tmp_path / "odd.mlir"
    odd.write_bytes(b'func.func @"a\xffb"() {\nreturn\n}\nfunc.func @"\xc3\xa9,"() {\nreturn\n}')
    names = ["a\\udcffb", "é,"]
    functions = _json(capsys, "featurize", str(odd))
    assert [f["function"] for f in functions] == names  # type: ignore[attr-defined]
    assert _run(capsys, "featurize", str(odd), "-o", str(tmp_path / "odd.parquet")) == (0, "", "")
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "odd.parquet")
    assert table["function"].to_pylist() == names
    command = [sys.executable, "-m", "irgauge", "featurize", str(odd), "--format", "csv", "--groups", "options"]
    for encoding, second in (("ascii", "\\xe9,"), ("utf-8", "é,")):
        done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding})
        assert (done.returncode, done.stderr) == (0, b"")
        assert [row["function"] for row in _as_csv(done.stdout.decode(encoding))] == [names[0], second]


def test_predict_prints_every_target_with_unit_and_interval(capsys: pytest.CaptureFixture[str]) -> None:
    (function,) = _json(capsys, "predict", str(MATMUL))  # type: ignore[misc]
    assert (function["path"], function["function"], function["track"]) == (str(MATMUL), "matmul", "kernel")
    assert [(p["device"], p["target"], p["unit"]) for p in function["predictions"]] == [
        (t.device, t.name, t.unit) for t in targets_of("kernel") if t.column in load().manifest["targets"]
    ]
    for p in function["predictions"]:
        assert p["low"] <= p["value"] <= p["high"]
        assert p["status"] in ("ok", "outside")
    code, out, _ = _run(capsys, "predict", str(MATMUL))
    assert code == 0
    assert all(t.name in out for t in targets_of("kernel"))


def test_predict_keeps_the_targets_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    narrow = ("--target", "spills", "--target", "x86-64-v3/latency_ns", "--device", X86)
    (function,) = _json(capsys, "predict", str(MATMUL), *narrow)  # type: ignore[misc]
    assert [p["target"] for p in function["predictions"]] == ["spills", "latency_ns"]


@pytest.mark.parametrize("target", [t.column for t in targets_of("kernel") if t.device == X86])
def test_base_and_contributions_add_up_to_the_prediction(capsys: pytest.CaptureFixture[str], target: str) -> None:
    (explained,) = _json(capsys, "explain", str(MATMUL), "--target", target)  # type: ignore[misc]
    (predicted,) = _json(capsys, "predict", str(MATMUL), "--target", target)  # type: ignore[misc]
    assert explained["prediction"] == predicted["predictions"][0]["value"]
    amounts = [c["amount"] for c in explained["contributions"]]
    total = math.fsum([explained["base"], *amounts])
    scale = max(abs(explained["base"]), *(abs(a) for a in amounts), 1e-9)
    assert total == pytest.approx(explained["prediction"], abs=1e-9 * scale)
    assert any(a != 0 for a in amounts)


def test_explain_sums_what_it_does_not_show(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "explain", str(MATMUL), "--target", "latency_ns", "--top", "3", "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 6  # base, three features, the rest, the prediction
    assert math.fsum(float(row["amount"]) for row in rows[:-1]) == pytest.approx(float(rows[-1]["amount"]))


def test_model_info_prints_the_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    manifest = _json(capsys, "model", "info")
    assert isinstance(manifest, dict)
    scores = manifest["tracks"]["kernel"]["scores"]
    assert {"random", "program", "family", "real"} <= set(scores)
    assert 0 < scores["random"]["x86-64-v3/latency_ns"]["mape"] < 1
    assert "constant" in manifest["tracks"]["kernel"]["baselines"]
    code, out, _ = _run(capsys, "model", "info")
    assert code == 0
    assert "latency_ns" in out


def test_standard_input_is_a_dash() -> None:
    command = [sys.executable, "-m", "irgauge", "inspect", "-", "--format", "json"]
    done = subprocess.run(command, input=MATMUL.read_bytes(), capture_output=True, check=True)
    assert json.loads(done.stdout)["num_ops"] == 11


BAD = {
    "text.mlir": (b"this is not MLIR\n", "text.mlir:1:"),
    "junk.mlir": (bytes(range(256)) * 4, "junk.mlir:1:"),
    "cut.mlir": (MATMUL.read_bytes()[:400], "cut.mlir:"),
}


@pytest.mark.parametrize("command", [("inspect",), ("featurize",), ("predict",), ("explain", "--target", "spills")])
@pytest.mark.parametrize("name", BAD)
def test_bad_text_gives_one_line_with_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, command: tuple[str, ...]
) -> None:
    content, start = BAD[name]
    (tmp_path / name).write_bytes(content)
    code, out, err = _run(capsys, command[0], str(tmp_path / name), *command[1:])
    assert (code, out) == (1, "")
    assert err.startswith(str(tmp_path / start))
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", [("predict",), ("explain", "--target", "spills")])
def test_a_file_without_a_function_gives_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "empty.mlir").write_text("")
    code, out, err = _run(capsys, command[0], str(tmp_path / "empty.mlir"), *command[1:])
    assert (code, out) == (1, "")
    assert "empty.mlir" in err
    assert "no function" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("what", ["directory", "missing.mlir"])
def test_what_is_no_file_gives_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, what: str) -> None:
    path = tmp_path if what == "directory" else tmp_path / what
    code, out, err = _run(capsys, "predict", str(path))
    assert (code, out) == (1, "")
    assert str(path) in err
    assert err.count("\n") == 1


def test_an_unknown_target_is_named_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("predict", str(MATMUL), "--target", "speed"), ("explain", str(MATMUL), "--target", "speed")):
        code, out, err = _run(capsys, *command)
        assert (code, out) == (2, "")
        assert "unknown target 'speed'" in err
        assert "x86-64-v3/latency_ns" in err
        assert err.count("\n") == 1


COMMANDS = [
    (),
    *((name,) for name in ("inspect", "featurize", "predict", "explain", "rank", "diff", "check", "serve", "export")),
    *((name,) for name in ("train", "tune", "evaluate", "report")),
    *(("dataset", name) for name in ("build", "label", "status", "verify")),
    ("model", "info"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--help"])
    out = capsys.readouterr().out
    assert out.startswith(f"usage: irgauge {' '.join(command)}".rstrip())
    assert "--help" in out


def test_an_unknown_option_is_bad_usage() -> None:
    done = subprocess.run([sys.executable, "-m", "irgauge", "predict", "--speed"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "usage" in done.stderr
    assert done.stdout == ""


def test_a_model_that_is_none_gives_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "model.joblib").write_bytes(b"not a model")
    code, out, err = _run(capsys, "predict", str(MATMUL), "--model", str(tmp_path / "model.joblib"))
    assert (code, out) == (1, "")
    assert "model.joblib" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("module", "extra", "command"),
    [
        ("pandas", "train", ("evaluate",)),
        ("pyarrow", "train", ("featurize", "none.mlir", "-o", "none.parquet")),
        ("optuna", "tune", ("tune",)),
    ],
)
def test_a_missing_extra_is_named(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    extra: str,
    command: tuple[str, ...],
) -> None:
    monkeypatch.delitem(sys.modules, "irgauge.models.tune", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    code, out, err = _run(capsys, *command)
    assert (code, out) == (1, "")
    assert f"irgauge[{extra}]" in err
    assert err.count("\n") == 1


def test_prediction_imports_no_learning_library() -> None:
    code = (
        f"import sys, irgauge; irgauge.load().predict(open({str(MATMUL)!r}).read());"
        "print(sorted({'sklearn', 'xgboost', 'lightgbm', 'pandas', 'shap', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_predicting_a_kernel_loads_neither_networks_nor_explanations_nor_what_writes_files() -> None:
    code = (
        f"import sys, irgauge; irgauge.load().predict(open({str(MATMUL)!r}).read());"
        "idle = 'irgauge.featurize.npu.', 'irgauge.models.explain', 'irgauge.models.treeshap', 'difflib', 'tempfile';"
        "print([m for m in sys.modules if m.startswith(idle)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_labels_come_from_the_real_toolchain(capsys: pytest.CaptureFixture[str]) -> None:
    rows = _json(capsys, "dataset", "label", str(MATMUL), "--no-latency")
    assert isinstance(rows, list)
    values = {f"{row['device']}/{row['target']}": row["value"] for row in rows}
    assert set(values) == {t.column for t in targets_of("kernel") if t.exact}
    assert values[f"{X86}/data_refs"] >= 3 * 96 * 112 * 128


def test_status_of_no_log_says_how_to_start_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = _run(capsys, "dataset", "status", "--log", str(tmp_path / "none.sqlite"))
    assert code == 1
    assert "dataset build kernel" in err


# --- rank, diff, check, export


@pytest.fixture
def variants(tmp_path: Path) -> tuple[str, str]:
    """The matmul, and one of ten times the rows, as files."""
    small, large = tmp_path / "small.mlir", tmp_path / "large.mlir"
    small.write_text(MATMUL.read_text())
    large.write_text(MATMUL.read_text().replace("96", "960"))
    return str(small), str(large)


def test_rank_puts_the_cheapest_first(capsys: pytest.CaptureFixture[str], variants: tuple[str, str]) -> None:
    small, large = variants
    rows = _json(capsys, "rank", large, small, "--target", "instructions_executed")
    assert [(row["rank"], row["path"]) for row in rows] == [(1, small), (2, large)]  # type: ignore[attr-defined]
    (predicted,) = _json(capsys, "predict", small, "--target", "instructions_executed")  # type: ignore[misc]
    assert rows[0]["value"] == predicted["predictions"][0]["value"]  # type: ignore[index]
    code, out, _ = _run(capsys, "rank", large, small)
    assert code == 0
    assert out.splitlines()[0].split()[:2] == ["rank", "path"]


def test_rank_names_the_file_that_it_cannot_take(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    two = tmp_path / "two.mlir"
    two.write_text(MATMUL.read_text() + MATMUL.read_text().replace("@matmul", "@other"))
    code, out, err = _run(capsys, "rank", str(MATMUL), str(two))
    assert (code, out) == (2, "")
    assert f"{two}: has 2 functions (matmul, other)" in err
    assert _run(capsys, "rank", str(MATMUL), str(two), "--function", "matmul")[0] == 0


def test_diff_adds_up(capsys: pytest.CaptureFixture[str], variants: tuple[str, str]) -> None:
    (function,) = _json(capsys, "diff", *variants)  # type: ignore[misc]
    assert (function["before"], function["after"], function["function"]) == (*variants, "matmul")
    trained = load().manifest["targets"]
    assert [c["target"] for c in function["changes"]] == [t.column for t in targets_of("kernel") if t.column in trained]
    for change in function["changes"]:
        amounts = [d["amount"] for d in change["drivers"]]
        scale = max([abs(a) for a in amounts] + [1.0])
        assert math.fsum([change["before"], *amounts]) == pytest.approx(change["after"], abs=1e-9 * scale)
    (latency,) = (c for c in function["changes"] if c["target"].endswith("latency_ns"))
    assert latency["after"] > latency["before"]
    assert {(line["side"], line["line"]) for line in latency["lines"]} >= {("before", 3), ("after", 3)}


def test_diff_shows_features_and_lines_of_a_named_target(
    capsys: pytest.CaptureFixture[str], variants: tuple[str, str]
) -> None:
    code, out, _ = _run(capsys, "diff", *variants, "--target", "latency_ns", "--top", "12")
    assert code == 0
    assert "x86-64-v3/latency_ns: what drove it, in ns" in out
    assert "= change" in out
    assert f"{variants[1]}:3" in out
    assert "  affine.for %i = 0 to 960 {" in out
    code, out, _ = _run(capsys, "diff", variants[0], variants[0])
    assert code == 0
    assert "+" not in out


def test_check_is_silent_where_all_limits_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    limits = ("--max", "spills=1000", "--max", "x86-64-v3/latency_ns=1e12", "--min", "vec_used=0")
    assert _run(capsys, "check", *limits, str(MATMUL), str(MATMUL)) == (0, "", "")


def test_check_names_file_function_target_and_limit(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys, "check", "--max", "latency_ns=10", "--min", "x86-64-v3/mca_ipc=100", str(MATMUL))
    assert (code, err) == (1, "")
    first, second = out.splitlines()
    (function,) = _json(capsys, "predict", str(MATMUL), "--target", "latency_ns")  # type: ignore[misc]
    assert first == f"{MATMUL}:matmul: x86-64-v3/latency_ns {function['predictions'][0]['value']:,.0f} > 10 (ns)"
    assert second.startswith(f"{MATMUL}:matmul: x86-64-v3/mca_ipc ")
    assert second.endswith(" < 100 (instructions/cycle)")


def test_check_goes_on_after_a_file_it_cannot_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.mlir"
    bad.write_text("not MLIR")
    code, out, err = _run(capsys, "check", "--max", "x86-64-v3/spills=1000", "--format", "json", str(bad), str(MATMUL))
    assert code == 1
    assert err.startswith(f"{bad}:1:1")
    (row,) = json.loads(out)
    assert (row["target"], row["relation"], row["limit"], row["kept"]) == ("spills", "<=", 1000, True)


def test_a_limit_that_is_just_reached_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    (function,) = _json(capsys, "predict", str(MATMUL), "--target", "x86-64-v3/code_bytes")  # type: ignore[misc]
    value = int(function["predictions"][0]["value"])
    for option in ("--max", "--min"):
        assert _run(capsys, "check", option, f"x86-64-v3/code_bytes={value}", str(MATMUL))[0] == 0
    assert _run(capsys, "check", "--max", f"x86-64-v3/code_bytes={value - 1}", str(MATMUL))[0] == 1
    assert _run(capsys, "check", "--min", f"x86-64-v3/code_bytes={value + 1}", str(MATMUL))[0] == 1


def test_check_without_a_limit_or_with_a_wrong_one_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = _run(capsys, "check", str(MATMUL))
    assert code == 2
    assert "nothing to check" in err
    code, _, err = _run(capsys, "check", "--max", "speed=1", "missing.mlir")
    assert code == 2
    assert "unknown target 'speed'" in err
    for limit in ("spills", "spills=many", "=3", "spills=nan"):
        with pytest.raises(SystemExit, match="2"):
            main(["check", "--max", limit, str(MATMUL)])
        assert "must be TARGET=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["c", "onnx"])
def test_export_writes_the_bundled_model(capsys: pytest.CaptureFixture[str], tmp_path: Path, format: str) -> None:
    path = tmp_path / f"model.{format}"
    code, out, err = _run(capsys, "export", "--format", format, "-o", str(path))
    assert (code, err) == (0, "")
    assert out.startswith(f"{path}: ")
    assert sorted(p.name for p in tmp_path.iterdir()) == (["model.c", "model.h"] if format == "c" else ["model.onnx"])
    assert b"latency_ns" in path.read_bytes()
