"""The command line as a user meets it: what it prints, where, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from irgauge.cli import main
from irgauge.data.targets import targets_of

MATMUL = Path(__file__).parent.parent / "examples" / "matmul.mlir"


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


def test_featurize_forms_agree(capsys: pytest.CaptureFixture[str]) -> None:
    (function,) = _json(capsys, "featurize", str(MATMUL))  # type: ignore[misc]
    assert function["function"] == "matmul"
    assert function["features"]["work.flops"] == 2 * 96 * 112 * 128
    _, out, _ = _run(capsys, "featurize", str(MATMUL), "--format", "csv")
    rows = {row["feature"]: float(row["value"]) for row in csv.DictReader(io.StringIO(out))}
    assert rows == function["features"]


def test_predict_prints_every_target_with_unit_and_interval(capsys: pytest.CaptureFixture[str]) -> None:
    (function,) = _json(capsys, "predict", str(MATMUL))  # type: ignore[misc]
    assert (function["path"], function["function"], function["track"]) == (str(MATMUL), "matmul", "kernel")
    assert [(p["device"], p["target"], p["unit"]) for p in function["predictions"]] == [
        (t.device, t.name, t.unit) for t in targets_of("kernel")
    ]
    for p in function["predictions"]:
        assert p["low"] <= p["value"] <= p["high"]
        assert p["status"] in ("ok", "outside")
    code, out, _ = _run(capsys, "predict", str(MATMUL))
    assert code == 0
    assert all(t.name in out for t in targets_of("kernel"))


def test_predict_keeps_the_targets_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    narrow = ("--target", "spills", "--target", "x86-64-v3/latency_ns")
    (function,) = _json(capsys, "predict", str(MATMUL), *narrow)  # type: ignore[misc]
    assert [p["target"] for p in function["predictions"]] == ["spills", "latency_ns"]


@pytest.mark.parametrize("target", [t.name for t in targets_of("kernel")])
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
    *((name,) for name in ("inspect", "featurize", "predict", "explain", "train", "evaluate", "report")),
    *(("dataset", name) for name in ("build", "label", "status")),
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


def test_a_missing_extra_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    code, out, err = _run(capsys, "evaluate")
    assert (code, out) == (1, "")
    assert "irgauge[train]" in err
    assert err.count("\n") == 1


def test_prediction_imports_no_learning_library() -> None:
    code = (
        f"import sys, irgauge; irgauge.load().predict(open({str(MATMUL)!r}).read());"
        "print(sorted({'sklearn', 'xgboost', 'lightgbm', 'pandas', 'shap', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_labels_come_from_the_real_toolchain(capsys: pytest.CaptureFixture[str]) -> None:
    rows = _json(capsys, "dataset", "label", str(MATMUL), "--no-latency")
    assert isinstance(rows, list)
    values = {row["target"]: row["value"] for row in rows}
    assert set(values) == {t.name for t in targets_of("kernel")} - {"latency_ns"}
    assert values["data_refs"] >= 3 * 96 * 112 * 128


def test_status_of_no_log_says_how_to_start_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = _run(capsys, "dataset", "status", "--log", str(tmp_path / "none.sqlite"))
    assert code == 1
    assert "dataset build kernel" in err
