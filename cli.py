"""The command line: parses, calls, prints.

Results on stdout, messages on stderr; exit 0 done, 1 bad input, 2 bad usage.
"""

from __future__ import annotations

import argparse
import csv
import glob
import io
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .data.targets import TRACK_NAMES
from .errors import IrgaugeError, ReadError, UsageError
from .featurize.featurizer import GROUP_NAMES

if TYPE_CHECKING:
    import pandas as pd

    from .featurize.program import Program
    from .featurize.rows import FunctionRow

ROOT = Path(__file__).parent
MODELS = ROOT / "models" / "pretrained"
REPORT = Path("reports/out")
CORPUS = ROOT.parent / "shared" / "corpus"

_EXTRA_OF = {
    **dict.fromkeys(("lightgbm", "pandas", "pyarrow", "sklearn", "threadpoolctl", "tqdm", "xgboost"), "train"),
    "optuna": "tune",
    "jinja2": "report",
    "onnx": "onnx",
    "distributed": "dask",
}
"""Module -> the extra of irgauge that brings it; prediction needs none of them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; never a traceback for bad input."""
    try:
        arguments = _parser().parse_args(argv)
        if isinstance(sys.stdout, io.TextIOWrapper):  # names may hold what the terminal's encoding lacks
            sys.stdout.reconfigure(errors="backslashreplace")
        code: int | None = arguments.run(arguments)
        sys.stdout.flush()
        return code or 0
    except IrgaugeError as error:
        _complain(error)
        return error.exit_code
    except ModuleNotFoundError as error:
        extra = _EXTRA_OF.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        print(
            f"irgauge: this command needs {error.name}. Install it with `pip install 'irgauge[{extra}]'`.",
            file=sys.stderr,
        )
        return 1
    except BrokenPipeError:  # the reader of our output has gone: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("irgauge: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return 130
    return 0


def _complain(error: IrgaugeError) -> None:
    """One line on stderr."""
    if isinstance(error, ReadError):
        print(error.one_line(), file=sys.stderr)
    else:
        print(f"irgauge: {' '.join(str(error).split())}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="irgauge", description="Predicts what MLIR will cost on real hardware, from the IR alone, and says why."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], int | None], text: str, under: Any = commands
    ) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = under.add_parser(name, help=text.replace("%", "%%"), description=text)
        made.set_defaults(run=run)
        return made

    inspect = command(
        "inspect", _inspect, "draw the loops of each function, and count work, memory, operations, shapes"
    )
    _file(inspect)
    inspect.add_argument("--all", action="store_true", help="draw every function and loop, however many")
    _format(inspect, "table", "json")

    featurize = command("featurize", _featurize, "write the features of each function, a row for each")
    featurize.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="MLIR text; a directory stands for the .mlir files below it, - for standard input",
    )
    featurize.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of printing")
    featurize.add_argument(
        "--format",
        choices=("table", "json", "csv", "parquet"),
        help="default: by the ending of --output, else table (what is not 0, a line for each feature)",
    )
    featurize.add_argument("--groups", metavar="A,B", help=f"only these of {', '.join(GROUP_NAMES)}")
    featurize.add_argument("--keep-going", action="store_true", help="leave out files that cannot be read; exit 1")
    featurize.add_argument("--jobs", type=_positive, default=1, metavar="N", help="files read at once (default 1)")

    predict = command("predict", _predict, "predict every target of each function, with 95 % intervals")
    _file(predict)
    _model(predict)
    predict.add_argument("--device", help="only targets of this device")
    predict.add_argument("--target", action="append", metavar="NAME", help="only this target; may be repeated")
    _format(predict, "table", "json", "csv")

    explain = command(
        "explain", _explain, "say which features drive a prediction, and by how much in the target's unit"
    )
    _file(explain)
    _model(explain)
    explain.add_argument("--target", required=True, metavar="NAME")
    explain.add_argument("--device", help="the target's device, where several have it")
    explain.add_argument(
        "--top", type=_positive, default=15, metavar="N", help="lines shown; the rest is one sum (default 15)"
    )
    _format(explain, "table", "json", "csv")

    rank = command("rank", _rank, "order variants of a program, best first")
    rank.add_argument("files", nargs="+", metavar="FILE", help="MLIR text, one variant each; - reads standard input")
    _model(rank)
    rank.add_argument("--target", default="latency_ns", metavar="NAME", help="by what to order (default latency_ns)")
    rank.add_argument("--device", help="the target's device, where several have it")
    rank.add_argument("--function", metavar="NAME", help="the function to compare, where files hold several")
    _format(rank, "table", "json", "csv")

    diff = command("diff", _diff, "say what changed between two versions, per target, and what drove it")
    diff.add_argument("before", metavar="BEFORE", help="MLIR text; - reads standard input")
    diff.add_argument("after", metavar="AFTER")
    _model(diff)
    diff.add_argument("--device", help="only targets of this device")
    diff.add_argument(
        "--target", action="append", metavar="NAME", help="only this target, with what drove it; may be repeated"
    )
    diff.add_argument("--top", type=_positive, default=10, metavar="N", help="features and lines shown (default 10)")
    _format(diff, "table", "json")

    check = command("check", _check, "hold predictions against limits; exit status 1 where one is not kept")
    check.add_argument("files", nargs="+", metavar="FILE", help="MLIR text; - reads standard input")
    _model(check)
    for option, text in (("--max", "at most this"), ("--min", "at least this")):
        check.add_argument(
            option, action="append", default=[], type=_limit, metavar="TARGET=VALUE", help=f"{text}; may be repeated"
        )
    check.add_argument("--device", help="only targets of this device")
    _format(check, "table", "json", "csv")

    serve = command("serve", _serve, "answer one JSON line per JSON line, for compilers without Python")
    _model(serve)
    serve.add_argument("--socket", type=Path, metavar="PATH", help="a Unix socket for many clients; default: stdin")
    serve.add_argument(
        "--max-bytes", type=_positive, default=1 << 24, metavar="N", help="longest request line (default 16 MiB)"
    )

    export = command("export", _export, "write the models as C source, or as ONNX, for compilers without Python")
    _model(export)
    export.add_argument("--track", default="kernel", help="default: kernel")
    export.add_argument("--output", "-o", type=Path, required=True, metavar="FILE")
    export.add_argument("--format", choices=("c", "onnx"), default="c", help="default: c")

    train = command("train", _train, "learn from a dataset and write the artifact")
    _learning(train)
    train.add_argument("--output", type=Path, metavar="FILE", help="default: models/pretrained/<track>.joblib")

    tune = command("tune", _tune, "search for each target's hyper-parameters, for `train` and `evaluate` to use")
    _learning(tune)
    tune.add_argument("--seconds", type=float, default=60, metavar="S", help="for each target (default 60)")
    tune.add_argument("--trials", type=_positive, metavar="N", help="at most N for each target, however fast")
    tune.add_argument("--output", type=Path, metavar="FILE", help="default: models/tuned/<track>.json")

    evaluate = command("evaluate", _evaluate, "evaluate on the splits, beside the baselines")
    _learning(evaluate)
    _judging(evaluate)
    evaluate.add_argument("--splits", default="random,program,family,real", help="default: random,program,family,real")
    evaluate.add_argument(
        "--into", type=Path, metavar="FILE", help="judge this model on the split real, and write the scores into it"
    )
    _format(evaluate, "table", "json", "csv")

    report = command("report", _report, "train, evaluate, and write the HTML report")
    _learning(report)
    _judging(report)
    report.add_argument("--output", type=Path, default=REPORT, metavar="DIR", help="default: reports/out")

    dataset = commands.add_parser("dataset", help="build, label and look at datasets").add_subparsers(
        required=True, metavar="COMMAND"
    )
    build = command("build", _dataset_build, "generate, label and write a dataset; resumes where it stopped", dataset)
    build.add_argument(
        "track",
        choices=(*TRACK_NAMES, "real"),
        help="kernel, npu: our programs for CPUs and for NPUs; real: functions of the corpus",
    )
    _log(build)
    build.add_argument("--output", type=Path, metavar="FILE", help="default: data/sets/<track>.parquet")
    build.add_argument("--families", metavar="A,B", help="only these families")
    build.add_argument("--limit", type=_positive, metavar="N", help="at most N programs of each family")
    build.add_argument("--no-latency", action="store_true", help="leave latencies for a quieter hour")
    build.add_argument(
        "--stop-after", type=float, metavar="MINUTES", help="label what fits, write, and say what is left"
    )
    build.add_argument(
        "--processor",
        choices=("same", "any", "redo"),
        default="same",
        help="where latencies of another processor are there: leave the missing ones (same, the default), measure them "
        "here (any), or measure all again here (redo)",
    )
    build.add_argument(
        "--batch",
        type=_positive,
        default=24,
        metavar="N",
        help="programs compiled and counted together (default 24); a kill loses one batch a job",
    )
    build.add_argument("--dask", metavar="ADDRESS", help="give the exact labels to the workers of a Dask scheduler")
    build.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR", help="for real: where the corpus lies")
    label = command("label", _dataset_label, "label MLIR files with the real toolchain and print the targets", dataset)
    label.add_argument("files", nargs="+", metavar="FILE")
    label.add_argument("--no-latency", action="store_true", help="exact targets only")
    _format(label, "table", "json", "csv")
    verify = command(
        "verify", _dataset_verify, "label a random sample again and compare the exact targets bit for bit", dataset
    )
    verify.add_argument("track", nargs="?", choices=TRACK_NAMES, default="kernel")
    verify.add_argument("--dataset", type=Path, metavar="FILE", help="default: the committed dataset")
    verify.add_argument("--sample", type=_positive, default=300, metavar="N", help="default: 300")
    verify.add_argument("--seed", type=int, default=0)
    verify.add_argument("--no-latency", action="store_true", help="compare the exact targets only")
    _jobs(verify)
    _format(verify, "table", "json", "csv")
    status = command("status", _dataset_status, "show how far a labelling log is, and failures by reason", dataset)
    status.add_argument("track", nargs="?", choices=(*TRACK_NAMES, "real"), default="kernel")
    _log(status)
    _format(status, "table", "json")

    model = commands.add_parser("model", help="look at a model file").add_subparsers(required=True, metavar="COMMAND")
    info = command("info", _model_info, "print what an artifact says about itself", model)
    info.add_argument("path", nargs="?", type=Path, help="default: the bundled model")
    _format(info, "table", "json")
    return parser


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="MLIR text; - reads standard input")


def _format(parser: argparse.ArgumentParser, *choices: str) -> None:
    parser.add_argument("--format", choices=choices, default=choices[0], help=f"default: {choices[0]}")


def _model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, metavar="FILE", help="default: the bundled model")


def _log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", type=Path, metavar="FILE", help="default: build/<track>.sqlite")
    _jobs(parser)


def _jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N", help="default: all cores")


def _learning(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("track", nargs="?", choices=TRACK_NAMES, default="kernel", help="default: kernel")
    parser.add_argument("--dataset", type=Path, metavar="FILE", help="default: the committed dataset of the track")
    parser.add_argument("--seed", type=int, default=0)
    _jobs(parser)


def _judging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--real", type=Path, metavar="FILE", help="default: the committed real dataset")
    parser.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR", help="where the real set's texts lie")


def _limit(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not name or math.isnan(value):
        raise argparse.ArgumentTypeError(f"must be TARGET=VALUE, e.g. spills=0, got {text!r}")
    return name, value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


# --- reading and printing


def _read(name: str) -> Program:
    from .featurize.reader import read, read_path

    if name == "-":
        return read(sys.stdin.buffer.read(), path="<stdin>")
    return read_path(name)


def _read_code(name: str) -> Program:
    """Read a file that must hold at least one operation."""
    program = _read(name)
    if not any(block.ops for region in program.root.regions for block in region.blocks):
        raise IrgaugeError(f"{_shown_path(name)}: no function in it, the module is empty. Give one with a func.func.")
    return program


def _shown_path(name: str) -> str:
    return "<stdin>" if name == "-" else name


def _number(value: float) -> str:
    """Whole numbers in full, others with four significant digits."""
    if value != value:
        return "-"
    if value == math.inf:
        return ">1e308"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Columns as wide as their longest cell; numbers to the right."""
    if not rows:
        return ""
    columns = list(rows[0])
    cells = [[_number(row[c]) if isinstance(row[c], (int, float)) else str(row[c]) for c in columns] for row in rows]
    right = [all(isinstance(row[c], (int, float)) for row in rows) for c in columns]
    widths = [max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(columns)]

    def line(texts: Sequence[str]) -> str:
        padded = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(columns), *map(line, cells)])


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().rstrip("\n")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, allow_nan=False, default=str)


def _check_output(path: Path) -> None:
    """IrgaugeError where a file of this name cannot be: found before the work, not after."""
    if path.is_dir():
        raise IrgaugeError(f"{path}: is a directory. Name a file in it.")
    if not path.parent.is_dir():
        raise IrgaugeError(f"{path}: there is no directory {path.parent} to write it to.")


def _emit(data: bytes, output: Path | None) -> None:
    """Print text, or write a file that appears whole or not at all."""
    if output is None:
        sys.stdout.write(data.decode())
        return
    try:
        if output.is_relative_to("/dev") or (output.exists() and not output.is_file()):  # a device or a pipe
            output.write_bytes(data)
            return
        output = output.resolve()  # a link stays one
        partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
        try:
            partial.write_bytes(data)
            partial.replace(output)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as problem:
        raise IrgaugeError(f"{output}: cannot be written: {problem.strerror or problem}") from None


def _print_rows(rows: Sequence[Mapping[str, Any]], format: str) -> None:
    print({"table": _table, "csv": _csv, "json": _json}[format](rows))


# --- commands on MLIR text


def _inspect(arguments: argparse.Namespace) -> None:
    from .featurize.inspect import facts

    program = _read(arguments.file)
    found: dict[str, Any] = facts(program)
    if arguments.format == "json":
        print(_json(found))
        return
    for text in _described(program, found, arguments.all):
        print(_to_terminal(text))


def _described(program: Program, found: dict[str, Any], everything: bool) -> Iterator[str]:
    """What `inspect` tells a person, part by part; `found` are the program's facts."""
    from .featurize.featurizer import functions_of
    from .featurize.loop_tree import ASCII, BOXES, LEGEND
    from .featurize.overview import LIVE, MEMORY, WORK, overviews
    from .featurize.rows import printable

    counts, depth = found.pop("op_counts"), found["max_loop_depth"]
    implied = sum(found.pop("implied_ops").values())
    glyphs = BOXES if _prints("".join(vars(BOXES).values())) else ASCII
    shown = []
    loops = f", loops up to {depth:,} deep" if depth else ""
    more = f" ({implied:,} more implied by the syntax)" if implied else ""
    yield f"{printable(program.path)}: {_counted(found['num_ops'], 'operation')}{more}{loops}"
    for function in overviews(program, glyphs, everything=everything):
        shown.append(function)
        yield "\n" + printable("\n".join([function.heading, *function.tree]))
    if shown:
        left = len(functions_of(program)) - len(shown)
        if left:
            yield f"\n{glyphs.ellipsis} {_counted(left, 'more function')} not shown (--all shows all)"
        drawn = "\n".join(line for function in shown for line in function.tree)
        legend = [f"{mark}: {text}" for mark, text in LEGEND.items() if f"{mark}" in drawn]
        if legend:
            yield f"\n{'; '.join(legend)}"
        for title, columns in (
            ("Work in one call", WORK),
            ("Memory: distinct bytes, 64-byte lines, lines fetched into 32 KiB L1 and 1 MiB last level", MEMORY),
            ("Most values live at once", LIVE),
        ):
            rows = [
                {"function": printable(function.name), **{c: function.features[f] for c, f in columns.items()}}
                for function in shown
            ]
            yield f"\n{title}\n{_table(rows)}"
    if counts:
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        yield f"\nOperations\n{_table([{'operation': name, 'count': n} for name, n in ordered])}"
    rows = [{"fact": name, "value": "-" if value is None else _number(value)} for name, value in found.items()]
    yield f"\nRegions, values, shapes\n{_table(rows)}"


def _counted(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def _prints(text: str) -> bool:
    """Whether standard output's encoding has these characters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _to_terminal(text: str) -> str:
    """Each line cut to the width of the terminal; whole where the output is not one."""
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    end = "…" if _prints("…") else "..."
    lines = (line if len(line) <= width else line[: width - len(end)] + end for line in text.split("\n"))
    return "\n".join(lines)


def _featurize(arguments: argparse.Namespace) -> int:
    from .featurize.featurizer import known_groups

    output: Path | None = arguments.output
    format = arguments.format or (_format_of(output) if output is not None else "table")
    if format == "parquet":
        if output is None:
            raise UsageError("Parquet is written to a file: give one with --output FILE.")
        import pyarrow  # noqa: F401  # to know now, not after all files were read
    if output is not None:
        _check_output(output)
    groups = known_groups(arguments.groups.split(",")) if arguments.groups else None
    rows, errors = _function_rows(_files(arguments.files), groups, arguments.jobs)
    for error in errors:
        _complain(error)
    if not errors or (arguments.keep_going and rows):
        _emit(_rows_as(rows, format, groups), output)
    return 1 if errors else 0


def _format_of(output: Path) -> str:
    known = {".json": "json", ".csv": "csv", ".parquet": "parquet"}
    return known.get(output.suffix.lower(), "table")


def _files(names: Sequence[str]) -> list[str]:
    """Files by name, each once: those of a directory and of a pattern that the shell has left, in sorted order."""
    found: list[str] = []
    for name in names:
        if os.path.isdir(name):
            inside = sorted(str(path) for path in Path(name).rglob("*.mlir") if path.is_file())
            if not inside:
                raise IrgaugeError(
                    f"{name}: no .mlir file in this directory. Name the files if they end in another way."
                )
            found += inside
        elif glob.has_magic(name) and not os.path.exists(name):
            matches = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
            if not matches:
                raise IrgaugeError(f"{name}: no file has a name like this.")
            found += matches
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def _function_rows(
    names: Sequence[str], groups: Sequence[str] | None, jobs: int
) -> tuple[list[FunctionRow], list[IrgaugeError]]:
    """The rows of the files that can be read, and the errors of the others, in order."""
    if jobs > 1 and len(names) > 1:
        from joblib import Parallel, delayed

        there = iter(Parallel(n_jobs=jobs)(delayed(_rows_or_error)(name, groups) for name in names if name != "-"))
        done = [_rows_or_error(name, groups) if name == "-" else next(there) for name in names]
    else:
        done = [_rows_or_error(name, groups) for name in names]
    rows = [row for found in done if not isinstance(found, IrgaugeError) for row in found]
    return rows, [error for error in done if isinstance(error, IrgaugeError)]


def _rows_or_error(name: str, groups: Sequence[str] | None) -> list[FunctionRow] | IrgaugeError:
    from .featurize.rows import rows_of

    try:
        return rows_of(_read_code(name), groups)
    except IrgaugeError as error:
        return error


def _rows_as(rows: Sequence[FunctionRow], format: str, groups: Sequence[str] | None) -> bytes:
    from .featurize.rows import to_csv, to_json, to_parquet

    if format == "parquet":
        return to_parquet(rows, groups)
    if format == "table":
        several = len({row.path for row in rows}) > 1
        lines = [
            {**({"path": row.path} if several else {}), "function": row.function, "feature": name, "value": value}
            for row in rows
            for name, value in sorted(row.features.items())
            if value
        ]
        return f"{_table(lines)}\n".encode()
    return (to_csv(rows, groups) if format == "csv" else to_json(rows) + "\n").encode()


def _predict(arguments: argparse.Namespace) -> None:
    from .models.predictor import load

    model = load(arguments.model)
    path = _shown_path(arguments.file)
    predictions = model.predict(_read_code(arguments.file), device=arguments.device, targets=arguments.target)
    for prediction in predictions:
        for warning in prediction.warnings:
            print(f"{path}: @{prediction.function}: {warning}", file=sys.stderr)
    if arguments.format == "json":
        print(_json([{"path": path, **p.to_plain()} for p in predictions]))
        return
    rows = [
        {
            "function": p.function,
            "device": e.device,
            "target": e.target,
            "value": e.value,
            "low": e.low,
            "high": e.high,
            "unit": e.unit,
            "status": e.status,
        }
        for p in predictions
        for e in p
    ]
    _print_rows(rows, arguments.format)


def _explain(arguments: argparse.Namespace) -> None:
    from .models.predictor import load

    path, program = _shown_path(arguments.file), _read_code(arguments.file)
    explained = load(arguments.model).explain(program, arguments.target, device=arguments.device)
    plans = {name: _plan(program, name, e.target) for name, e in explained.items()}
    if arguments.format == "json":
        found = [{"path": path, "function": name, **e.to_plain()} for name, e in explained.items()]
        print(
            _json(
                [
                    {**plain, "plan": plans[name]} if plans[name] else plain
                    for plain, name in zip(found, plans, strict=True)
                ]
            )
        )
        return
    for name, e in explained.items():
        rest = e.contributions[arguments.top :]
        rows = [{"amount": e.base, "what": "base: a typical program", "value": ""}]
        rows += [
            {"amount": c.amount, "what": c.feature, "value": "" if c.value is None else _number(c.value)}
            for c in e.contributions[: arguments.top]
        ]
        if rest:
            rows.append({"amount": sum(c.amount for c in rest), "what": f"{len(rest)} more features", "value": ""})
        rows.append({"amount": e.value, "what": "= prediction", "value": ""})
        if arguments.format == "csv":
            _print_rows([{"function": name, **row} for row in rows], "csv")
        else:
            print(f"@{name}: {e.target}{f', in {e.unit}' if e.unit else ''}")
            print(_table(rows))
            if plans[name]:
                print(f"\nThe plan behind the estimate: the longest of {_counted(len(plans[name]), 'step')}, by line")
                longest = sorted(plans[name], key=lambda step: -step["cycles"])[: arguments.top]
                print(_table(longest))


def _plan(program: Program, function: str, target: str) -> list[dict[str, Any]]:
    """What an NPU runs for a function, where the target is its cycles; nothing for other targets and functions."""
    from .data.targets import ETHOS_U55, ETHOS_U85
    from .featurize.featurizer import functions_of
    from .featurize.npu.devices import U55, U85
    from .featurize.npu.listing import planned_steps

    npu = {f"{ETHOS_U85}/cycles": U85, f"{ETHOS_U55}/cycles": U55}.get(target)
    if npu is None:
        return []
    steps = planned_steps(program, dict(functions_of(program))[function], npu)
    return [
        {
            "line": step.line or "-",
            "step": step.kind,
            "input": "x".join(map(str, step.input[1:])),
            "output": "x".join(map(str, step.output[1:])),
            "cycles": step.cycles,
            "waits for": "memory" if step.waits_for_memory else "-",
            "weight bytes": step.weight_bytes,
            "result in": "SRAM" if step.cached else "DRAM",
        }
        for step in steps
    ]


# --- commands that compare, and commands for compilers


def _rank(arguments: argparse.Namespace) -> None:
    from .models.predictor import load

    model = load(arguments.model)
    candidates = [_read_code(name) for name in arguments.files]
    names = [_shown_path(name) for name in arguments.files]
    ranked = model.rank(candidates, arguments.target, device=arguments.device, function=arguments.function, paths=names)
    rows = [
        {
            "rank": rank,
            "path": names[r.position],
            "device": r.estimate.device,
            "target": r.estimate.target,
            "value": r.estimate.value,
            "low": r.estimate.low,
            "high": r.estimate.high,
            "unit": r.estimate.unit,
            "status": r.estimate.status,
        }
        for rank, r in enumerate(ranked, 1)
    ]
    _print_rows(rows, arguments.format)


def _diff(arguments: argparse.Namespace) -> None:
    from .models.predictor import load

    names = (_shown_path(arguments.before), _shown_path(arguments.after))
    found = load(arguments.model).diff(
        _read_code(arguments.before),
        _read_code(arguments.after),
        device=arguments.device,
        targets=arguments.target,
        paths=names,
    )
    if arguments.format == "json":
        print(_json([{"before": names[0], "after": names[1], **d.to_plain()} for d in found]))
        return
    for number, difference in enumerate(found):
        print("\n" * (number > 0) + f"@{difference.function}")
        print(
            _table(
                [
                    {
                        "target": change.target,
                        "before": change.before,
                        "after": change.after,
                        "change": _signed(change.after - change.before),
                        "unit": change.unit,
                        "driven by": change.drivers[0].feature if change.after != change.before else "",
                    }
                    for change in difference.changes
                ]
            )
        )
        if not arguments.target:
            continue
        for change, lines in zip(difference.changes, difference.lines, strict=True):
            print(f"\n{change.target}: what drove it{f', in {change.unit}' if change.unit else ''}")
            shown, rest = change.drivers[: arguments.top], change.drivers[arguments.top :]
            values = [("" if v is None else _number(v)) for d in shown for v in (d.before, d.after)]
            rows = [
                {"amount": _signed(d.amount), "feature": d.feature, "before": b, "after": a}
                for d, b, a in zip(shown, values[::2], values[1::2], strict=True)
            ]
            if rest:
                amount = _signed(sum(d.amount for d in rest))
                rows.append({"amount": amount, "feature": f"{len(rest)} more", "before": "", "after": ""})
            rows.append(
                {"amount": _signed(change.after - change.before), "feature": "= change", "before": "", "after": ""}
            )
            print(_table(rows))
            if lines:
                where = dict(zip(("before", "after"), names, strict=True))
                print()
                print(
                    _table(
                        [
                            {"amount": _signed(n.amount), "line": f"{where[n.side]}:{n.line}", "text": n.text}
                            for n in lines[: arguments.top]
                        ]
                    )
                )


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{_number(abs(value))}"


def _check(arguments: argparse.Namespace) -> int:
    """Exit status: 0 all limits kept, 1 one is not, or a file cannot be read (the others are checked all the same)."""
    from .models.predictor import load

    limits = [(name, ">", value) for name, value in arguments.max] + [(name, "<", v) for name, v in arguments.min]
    if not limits:
        raise UsageError("nothing to check; give --max TARGET=VALUE or --min TARGET=VALUE.")
    model = load(arguments.model)
    model.targets([name for name, _, _ in limits], device=arguments.device)  # a misspelt name ends it before any file
    rows: list[dict[str, Any]] = []
    failed = False
    for file in arguments.files:
        path = _shown_path(file)
        try:
            predictions = model.predict(_read_code(file), device=arguments.device)
        except IrgaugeError as error:
            failed = True
            print(error.one_line() if isinstance(error, ReadError) else f"irgauge: {error}", file=sys.stderr)
            continue
        for prediction in predictions:
            for warning in prediction.warnings:
                print(f"{path}: @{prediction.function}: {warning}", file=sys.stderr)
            for name, relation, limit in limits:
                rows += [
                    {
                        "path": path,
                        "function": prediction.function,
                        "device": e.device,
                        "target": e.target,
                        "value": e.value,
                        "relation": "<=" if relation == ">" else ">=",
                        "limit": limit,
                        "unit": e.unit,
                        "kept": not (e.value > limit if relation == ">" else e.value < limit),
                        "status": e.status,
                    }
                    for e in prediction
                    if name in (e.target, f"{e.device}/{e.target}")
                ]
    failed = failed or not all(row["kept"] for row in rows)
    if arguments.format != "table":
        _print_rows(rows, arguments.format)
        return int(failed)
    for row in rows:
        if not row["kept"]:
            relation, unit = ">" if row["relation"] == "<=" else "<", f" ({row['unit']})" if row["unit"] else ""
            value, limit = _number(row["value"]), _number(row["limit"])
            print(f"{row['path']}:{row['function']}: {row['device']}/{row['target']} {value} {relation} {limit}{unit}")
    return int(failed)


def _serve(arguments: argparse.Namespace) -> None:
    from .models.predictor import load
    from .serve import serve_socket, serve_stdin

    model = load(arguments.model)
    if arguments.socket is None:
        serve_stdin(model, max_bytes=arguments.max_bytes)
    else:
        serve_socket(model, arguments.socket, max_bytes=arguments.max_bytes)


def _export(arguments: argparse.Namespace) -> None:
    from .models.predictor import load

    tracks = load(arguments.model).tracks
    if arguments.track not in tracks:
        raise UsageError(f"the model has no track {arguments.track!r}. It has: {', '.join(tracks)}")
    track = tracks[arguments.track]
    if arguments.format == "c":
        from .models.export_c import write_c

        write_c(track, arguments.output)
    else:
        from .models.export_onnx import write_onnx

        write_onnx(track, arguments.output)
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1e6:.1f} MB")


# --- learning


def _progress(what: str) -> Callable[[int, int, str], None]:
    """A callback that draws a progress bar on stderr where that is a terminal."""
    from tqdm import tqdm

    bar = tqdm(desc=what, disable=None, leave=False)

    def show(done: int, total: int, label: str) -> None:
        bar.total = total
        bar.set_description_str(label, refresh=False)
        bar.n = done
        bar.refresh()

    return show


def _datasets(arguments: argparse.Namespace) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """The dataset, and the real set with its texts where the corpus is at hand (None and a message where not)."""
    from .data.real import attach_text
    from .data.store import SETS, read_dataset

    frame = read_dataset(arguments.dataset, track=arguments.track)
    if arguments.track != "kernel":
        return frame, None
    where = arguments.real or SETS / "real.parquet"
    if not where.is_file() or not (arguments.corpus / "MANIFEST.tsv").is_file():
        missing = where if not where.is_file() else arguments.corpus
        print(f"irgauge: the split `real` is left out: {missing} is not there", file=sys.stderr)
        return frame, None
    return frame, attach_text(read_dataset(where), arguments.corpus)


def _train(arguments: argparse.Namespace) -> None:
    from .data.store import read_dataset
    from .models.artifact import write_artifact
    from .models.train import train_track

    frame = read_dataset(arguments.dataset, track=arguments.track)
    artifact = train_track(
        frame, track=arguments.track, seed=arguments.seed, n_jobs=arguments.jobs, progress=_progress("training")
    )
    path = arguments.output or MODELS / f"{arguments.track}.joblib"
    write_artifact(artifact, path)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB; `irgauge evaluate --into` adds its scores")


def _tune(arguments: argparse.Namespace) -> None:
    from .data.store import read_dataset
    from .models.recipes import FOLDER, settings_of
    from .models.train import data_hash, table_of
    from .models.tune import tune_track, write_tuned

    progress = _progress("tuning")
    frame = read_dataset(arguments.dataset, track=arguments.track)
    table = table_of(frame, track=arguments.track, n_jobs=arguments.jobs, progress=progress)
    how = {"seconds": arguments.seconds, "trials": arguments.trials, "seed": arguments.seed}
    settings = settings_of(arguments.track)
    found = tune_track(table, **how, n_jobs=arguments.jobs, settings=settings, progress=progress)
    path = arguments.output or FOLDER / f"{arguments.track}.json"
    write_tuned(path, found, {"track": arguments.track, "data_sha256": data_hash(table), **how}, settings)
    for column, tuned in found.items():
        gain = 1 - tuned.score
        print(f"{column:36} {tuned.recipe.candidate:10} {gain:6.1%} less error than by default, {tuned.trials} trials")
    print(f"{path}: `make train` and `make evaluate` learn by it")


def _evaluate(arguments: argparse.Namespace) -> None:
    from .models.artifact import plain_scores, read_artifact, write_artifact
    from .models.evaluate import evaluate_track
    from .models.train import table_of

    splits = arguments.splits.split(",")
    unknown = set(splits) - {"random", "program", "family", "real"}
    if unknown:
        raise UsageError(f"unknown split {sorted(unknown)[0]!r}. Known: random, program, family, real")
    artifact = read_artifact(arguments.into) if arguments.into else None
    if artifact is not None and arguments.track not in artifact["tracks"]:
        raise UsageError(f"{arguments.into} has no track {arguments.track!r}. It has: {', '.join(artifact['tracks'])}")
    frame, real = _datasets(arguments)
    progress = _progress("evaluating")
    table = table_of(frame, track=arguments.track, n_jobs=arguments.jobs, progress=progress)
    evaluation = evaluate_track(
        table, real, model=artifact, splits=splits, seed=arguments.seed, n_jobs=arguments.jobs, progress=progress
    )
    if artifact is not None:
        evaluation.into_manifest(artifact["manifest"])
        write_artifact(artifact, arguments.into)
    if arguments.format == "json":
        print(_json({"scores": plain_scores(evaluation.scores), "baselines": plain_scores(evaluation.baselines)}))
        return
    metrics = ("n", "rmse_pct", "mape", "mdape", "within10", "exact", "kendall", "regret1", "coverage90")
    _print_rows(evaluation.table_rows(metrics), arguments.format)


def _report(arguments: argparse.Namespace) -> None:
    from .models.artifact import write_artifact
    from .models.evaluate import evaluate_track
    from .models.train import table_of, train_track
    from .reports.render import write_report
    from .reports.summarize import headline_text, summarize

    frame, real = _datasets(arguments)
    progress = _progress("learning")
    how: dict[str, Any] = {"seed": arguments.seed, "n_jobs": arguments.jobs, "progress": progress}
    table = table_of(frame, track=arguments.track, n_jobs=arguments.jobs, progress=progress)
    artifact = train_track(table, **how)
    evaluation = evaluate_track(table, real, model=artifact, **how)
    evaluation.into_manifest(artifact["manifest"])
    write_artifact(artifact, arguments.output / f"{arguments.track}.joblib")
    summary = summarize(evaluation, artifact, frame, n_jobs=arguments.jobs, seed=arguments.seed)
    page = arguments.output / "index.html"
    write_report(summary, page)
    print(headline_text(summary))
    print(page)


# --- datasets


def _log_path(arguments: argparse.Namespace) -> Path:
    path: Path = arguments.log or Path(f"build/{arguments.track}.sqlite")
    return path


def _dataset_build(arguments: argparse.Namespace) -> None:
    from .data.build import build_dataset, build_real
    from .data.store import SETS
    from .data.tracks import TRACKS

    log, output = _log_path(arguments), arguments.output or SETS / f"{arguments.track}.parquet"
    settings: dict[str, Any] = {
        "n_jobs": arguments.jobs,
        "dask": arguments.dask,
        "latency": not arguments.no_latency,
        "processor": arguments.processor,
        "minutes": arguments.stop_after,
        "batch": arguments.batch,
    }
    if arguments.track == "real":
        built = build_real(log, output, arguments.corpus, **settings)
    else:
        names = arguments.families.split(",") if arguments.families else None
        built = build_dataset(TRACKS[arguments.track], log, output, names=names, limit=arguments.limit, **settings)
    print(f"{output}: {len(built.frame):,} records, {output.stat().st_size / 1e6:.1f} MB")
    if built.left:
        print(f"irgauge: left to do: {'; '.join(built.left)}. The same command goes on.", file=sys.stderr)


def _dataset_label(arguments: argparse.Namespace) -> None:
    from .data.label.latency import latency_core
    from .data.targets import TARGETS

    core = None if arguments.no_latency else latency_core()
    targets = {target.column: target for target in TARGETS}
    rows = []
    for name in arguments.files:
        for function, values in _labels(_read(name), core).items():
            for column, value in values.items():
                if target := targets.get(column):
                    rows.append(
                        {
                            "path": _shown_path(name),
                            "function": function,
                            "device": target.device,
                            "target": target.name,
                            "value": value,
                            "unit": target.unit,
                        }
                    )
    _print_rows(rows, arguments.format)


def _labels(program: Program, latency_core: int | None) -> Mapping[str, Mapping[str, float]]:
    """Function -> column -> value; a module with TOSA operations is a network, anything else holds kernels."""
    from .data.label.kernel import label_functions
    from .data.label.npu import label_network

    if any(op.name.startswith("tosa.") for op in program.walk()):
        return {"main": label_network(program.text).values}
    return label_functions(program, latency_core=latency_core)


def _dataset_verify(arguments: argparse.Namespace) -> None:
    from dataclasses import asdict

    from .data.card import write_agreement
    from .data.store import SETS, read_dataset
    from .data.tracks import TRACKS
    from .data.verify import verify

    found = verify(
        read_dataset(arguments.dataset, track=arguments.track),
        sample=arguments.sample,
        seed=arguments.seed,
        n_jobs=arguments.jobs,
        track=TRACKS[arguments.track],
        latency=not arguments.no_latency,
    )
    card = (arguments.dataset or SETS / f"{arguments.track}.parquet").with_suffix(".md")
    if card.is_file():
        write_agreement(found, card)
    if found.differences or arguments.format != "table":
        _print_rows([asdict(difference) for difference in found.differences], arguments.format)
    summary = f"{found.n_records:,} records labelled again, {found.n_values:,} values compared"
    if found.differences:
        raise IrgaugeError(f"{summary}: {len(found.differences):,} differ")
    print(f"irgauge: {summary}: all the same", file=sys.stderr)


def _dataset_status(arguments: argparse.Namespace) -> None:
    from .data.store import open_log

    path = _log_path(arguments)
    if not path.is_file():
        raise IrgaugeError(f"{path}: no labelling log there. `irgauge dataset build {arguments.track}` starts one.")
    with open_log(path) as log:
        counts, failures, rates = log.counts(), log.failures(), log.rates()
    failed = [{"stage": stage, "reason": reason, "programs": n} for stage, reason, n in failures]
    if arguments.format == "json":
        print(_json({"counts": counts, "per_second": rates, "failures": failed}))
        return
    names = {
        "source": "sources generated",
        "program": "distinct programs",
        "exact": "with exact labels",
        "latency": "with a latency",
        "failure": "failures",
    }
    rows = [{"what": names[table], "count": n, "per second": _rate(rates.get(table))} for table, n in counts.items()]
    print(_table(rows))
    if failed:
        print()
        print(_table(failed))


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


# --- model files


def _model_info(arguments: argparse.Namespace) -> None:
    from .models.predictor import bundled_paths, load

    model = load(arguments.path)
    if arguments.format == "json":
        print(_json(dict(model.manifest)))
        return
    manifest = model.manifest
    for file in [arguments.path] if arguments.path is not None else bundled_paths():
        print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")
    for name, track in manifest["tracks"].items():
        training = track["training"]
        size = f"{training['rows']:,} records of {training['programs']:,} programs"
        print(f"track {name}: {size}, {track['schema']['n_features']} features")
        rows = []
        for column in track["chosen"]:
            row: dict[str, Any] = {"target": column, "learned by": track["chosen"][column]["candidate"]}
            for split, scores in track["scores"].items():
                row[f"mape {split}"] = _share(scores.get(column, {}).get("mape"))
            rows.append(row)
        print(_table(rows))


def _share(value: float | None) -> str:
    return "-" if value is None or value != value else f"{100 * value:.1f} %"
