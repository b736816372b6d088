"""What the feature tests share: small programs, and the forms that one program can be written in."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from irgauge.featurize import read
from irgauge.featurize.featurizer import functions_of
from irgauge.featurize.function_view import FunctionView


def view_of(text: str) -> FunctionView:
    """The view of the first function."""
    program = read(text)
    return FunctionView(program, functions_of(program)[0][1])


@pytest.fixture
def view() -> Callable[[str], FunctionView]:
    return view_of


@pytest.fixture(scope="session")
def mlir_opt() -> Callable[..., str]:
    """Runs `mlir-opt` on a text; skips where it is not installed."""
    bundled = Path(sysconfig.get_path("purelib")) / "mlir" / "bin" / "mlir-opt"
    tool = str(bundled) if bundled.exists() else shutil.which("mlir-opt")
    if tool is None:
        pytest.skip("mlir-opt is not installed (extra `label`)")

    def run(text: str, *arguments: str) -> str:
        command = [tool, "--allow-unregistered-dialect", *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=60).stdout

    return run
