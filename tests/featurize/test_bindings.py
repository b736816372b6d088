"""Objects of MLIR's libraries are read as what they are: the real packages, one process each (`library_objects.py`)."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from irgauge.featurize import features_of

PACKAGES = {
    "upstream": ("mlir.ir", "xtc-mlir-python-bindings"),
    "iree": ("iree.compiler", "iree-base-compiler"),
    "torch_mlir": ("torch_mlir", "torch-mlir"),
    "jax": ("jax", "jax"),
    "xdsl": ("xdsl", "xdsl"),
}
"""Library -> (module that shows it is there, package that brings it)."""


def installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@functools.cache
def run(library: str) -> subprocess.CompletedProcess[str]:
    """The library's process; one that failed is not run again either."""
    script = Path(__file__).with_name("library_objects.py")
    return subprocess.run(
        [sys.executable, str(script), library],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )


@pytest.fixture(params=sorted(PACKAGES))
def objects(request: pytest.FixtureRequest) -> dict[str, Any]:
    module, package = PACKAGES[request.param]
    if not installed(module):
        if os.environ.get("CI"):
            pytest.fail(f"{package} is not installed, and CI installs it (`make bindings`)")
        pytest.skip(f"{package} is not installed (`make bindings`, extra `bindings`)")
    done = run(request.param)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_operations_are_those_of_the_librarys_own_walk(objects):
    for name, found in objects["read"].items():
        walked = Counter(found["walked"])
        if found["implied module"]:  # a function alone: the reader puts it into a module, as MLIR's parser does
            walked["builtin.module"] += 1
        assert walked.total() >= 2, name
        assert Counter(found["counted"]) == walked, name


def test_features_are_those_of_the_librarys_own_text(objects):
    for name, found in objects["read"].items():
        assert found["features"], name
        assert found["features"] == features_of(found["text"]), name


def test_predictions_are_those_of_the_librarys_own_text(objects):
    small = {name: found for name, found in objects["read"].items() if found["predicted"]}
    assert small
    for name, found in small.items():
        assert found["predicted"] == found["predicted from text"], name


def test_a_function_alone_has_the_features_that_it_has_in_its_module(objects):
    whole = objects["read"].get("module") or objects["read"]["kernel"]
    (alone,) = objects["read"]["a function alone"]["features"].values()
    inside = next(iter(whole["features"].values()))
    # what a module's attributes say (`mhlo.num_partitions`) is not the function's
    assert {k: v for k, v in inside.items() if not k.startswith("options.")} == {
        k: v for k, v in alone.items() if not k.startswith("options.")
    }


def test_values_of_large_constants_are_not_printed(request, objects):
    large = {name: found for name, found in objects["read"].items() if len(found["text"]) > 200_000}
    assert large
    for name, found in large.items():
        assert found["characters"] < 10_000 or "xdsl" in request.node.name, name


def test_what_is_not_a_program_is_refused_by_its_type(objects):
    assert objects["refused"]
    for name, found in objects["refused"].items():
        assert found["type"] in found["message"], name
        assert "object" in found["message"], name
