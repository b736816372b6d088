"""Transformer families: every program runs in bounds, and what has a closed meaning computes what NumPy computes."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from irgauge.data.families import FAMILIES
from irgauge.data.families.nest_draw import Draw
from irgauge.data.families.transformer import KINDS, MAX_OPERAND_BYTES, families, program
from irgauge.data.families.transformer_text import ACTIVATIONS, NetKernel
from irgauge.data.label.tools import run, tool

Arrays = list[np.ndarray]


def _load(name: str) -> ModuleType:
    """A module beside this one; tests are no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compiled = _load("compiled")


def _written(kind: str, *wanted: object, chances: bool = False, scale: float = 1e-3) -> str:
    """The program that comes of certain choices."""
    kernel = NetKernel()
    rng = compiled.Chosen(*wanted, chances=chances)
    KINDS[f"transformer_{kind}"](Draw(rng, kernel, scale, "f32", "mixed"), kernel)
    return kernel.finish()


def _softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def _causal_log_softmax(a: Arrays) -> dict[int, np.ndarray]:
    """In place, of x / 8 + bias; what lies right of the diagonal stays."""
    out = a[0].copy()
    for i in range(out.shape[1]):
        scores = a[0][:, i, : i + 1] / 8 + a[1][i, : i + 1]
        out[:, i, : i + 1] = np.log(_softmax(scores))
    return {0: out}


def _normal(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def _normal_gradient(a: Arrays) -> dict[int, np.ndarray]:
    x, _, gamma, _, upstream = a
    normal, weighted = _normal(x), upstream * gamma
    inverse = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    first, second = weighted.mean(axis=-1, keepdims=True), (weighted * normal).mean(axis=-1, keepdims=True)
    return {1: inverse * (weighted - first - normal * second)}


def _rms(a: Arrays) -> dict[int, np.ndarray]:
    return {2: a[0] / np.sqrt((a[0] ** 2).mean(axis=-1, keepdims=True) + 1e-6) * a[1]}


def _scores(a: Arrays) -> dict[int, np.ndarray]:
    return {2: a[0] @ a[1].swapaxes(1, 2) * round(1 / np.sqrt(a[0].shape[-1]), 6)}


def _head(a: Arrays) -> dict[int, np.ndarray]:
    scale = round(1 / np.sqrt(a[0].shape[-1]), 6)
    return {3: _softmax(a[0] @ a[1].swapaxes(1, 2) * scale) @ a[2]}


def _rope(a: Arrays) -> dict[int, np.ndarray]:
    """By halves, the first half of the pairs."""
    x, y = a[0], a[1].copy()
    rotated = _rotated(x)
    half = x.shape[-1] - rotated
    turn = np.arange(x.shape[1])[:, None] * np.exp(-np.log(10000.0) / half * np.arange(rotated))
    first, second = x[..., :rotated], x[..., half : half + rotated]
    y[..., :rotated] = first * np.cos(turn) - second * np.sin(turn)
    y[..., half : half + rotated] = first * np.sin(turn) + second * np.cos(turn)
    return {1: y}


def _rotated(x: np.ndarray) -> int:
    """The array ends with the second half's last rotated element: half + half // 2."""
    return next(n // 2 for n in range(2, 1000) if n + max(1, n // 2) == x.shape[-1])


def _hashed(seed: int, *numbers: np.ndarray) -> np.ndarray:
    mixed = np.array(seed, np.uint32)
    for number in numbers:
        mixed = mixed ^ (number.astype(np.uint32) * np.uint32(2654435761))
        mixed = mixed ^ (mixed >> np.uint32(15))
        mixed = mixed * np.uint32(2246822507)
    return mixed ^ (mixed >> np.uint32(13))


def _bag(a: Arrays) -> dict[int, np.ndarray]:
    table, ids, _ = a
    rows = _hashed(12345, np.arange(ids.size).reshape(ids.shape), ids) % np.uint32(len(table))
    return {2: table[rows].sum(axis=1)}


def _ring(a: Arrays) -> dict[int, np.ndarray]:
    found = re.search(r"\(%\w+ \+ (\d+)\) mod", CHECKED["kv cache, ring"][0])
    assert found is not None
    return {1: np.roll(a[0].transpose(1, 0, 2), int(found[1]), axis=1)}


def _quantized_cache(a: Arrays) -> dict[int, np.ndarray]:
    top = np.abs(a[0]).max(axis=-1)
    return {1: np.round(a[0] / top[..., None] * 127).transpose(1, 0, 2).astype(np.int8), 2: top.T / 127}


def _requantized(a: Arrays) -> dict[int, np.ndarray]:
    total = a[0].astype(np.int64) @ a[1] + a[5]
    return {4: np.clip(np.round(total * a[2] * 0.01), -128, 127).astype(np.int8)}


def _top_two(a: Arrays) -> dict[int, np.ndarray]:
    order = np.argsort(-a[0], axis=1, kind="stable")[:, :2]
    return {1: order.astype(np.int32), 2: _softmax(np.take_along_axis(a[0], order, axis=1))}


def _cross_entropy(a: Arrays) -> dict[int, np.ndarray]:
    rows = np.arange(len(a[0]))
    labels = _hashed(12345, rows, a[1]) % np.uint32(a[0].shape[1])
    gradient = _softmax(a[0])
    loss = -np.log(gradient[rows, labels])
    gradient[rows, labels] -= 1
    return {2: loss, 3: gradient / len(rows)}


def _adam(a: Arrays) -> dict[int, np.ndarray]:
    w, g, m, v = a
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    return {0: w - 1e-3 * 1.1 * m / (np.sqrt(1.25 * v) + 1e-8), 2: m, 3: v}


def _dropped(a: Arrays) -> dict[int, np.ndarray]:
    draws = _hashed(12345, np.arange(a[0].size)).reshape(a[0].shape) >> np.uint32(8)
    return {1: np.where(draws < int(0.9 * (1 << 24)), a[0] / 0.9, 0)}


CHECKED: dict[str, tuple[str, Callable[[Arrays], dict[int, np.ndarray]]]] = {
    "softmax": (_written("softmax"), lambda a: {1: _softmax(a[0])}),
    "log-softmax, causal, online, in place": (_written("softmax", chances=True, scale=30), _causal_log_softmax),
    "layer norm": (_written("layer_norm"), lambda a: {1: _normal(a[0])}),
    "layer norm, Welford": (_written("layer_norm", "welford"), lambda a: {1: _normal(a[0])}),
    "layer norm with residual": (
        _written("layer_norm", "sums", chances=True),
        lambda a: {1: _normal(a[0] + a[2]) * a[4] + a[5], 3: a[0] + a[2]},
    ),
    "layer norm, gradient": (_written("layer_norm", "gradient"), _normal_gradient),
    "rms norm": (_written("rms_norm"), _rms),
    "rms norm, factors first": (_written("rms_norm", "memory"), _rms),
    "scores": (_written("attention_scores", "none"), _scores),
    "head, three nests": (_written("attention_head", "nests"), _head),
    "head, a row at a time": (_written("attention_head", "rows"), _head),
    "head, online": (_written("attention_head", "online"), _head),
    "rope": (_written("rope", scale=1e-2), _rope),
    "gated mlp, middle": (
        _written("gated_mlp", "gated-middle", "silu"),
        lambda a: {1: a[0] / (1 + np.exp(-a[0])) * a[2]},
    ),
    "mlp": (
        _written("gated_mlp", "whole", "relu"),
        lambda a: {2: np.maximum(a[0] @ a[1] / len(a[1]), 0) @ a[3].T / a[1].shape[1]},
    ),
    "embedding bag": (_written("embedding_bag", "sum", 20), _bag),
    "kv cache, ring": (_written("kv_cache", "ring"), _ring),
    "kv cache, quantized": (_written("kv_cache", "quantize"), _quantized_cache),
    "quantized matmul": (_written("quantized_matmul", "requantize"), _requantized),
    "half matmul": (_written("half_matmul"), lambda a: {2: a[0] @ a[1].astype(np.float64) / len(a[1])}),
    "half matmul, register tile": (
        _written("half_matmul", "blocked", (4, 2)),
        lambda a: {2: a[0] @ a[1].astype(np.float64) / len(a[1])},
    ),
    "top-2 gate": (_written("top_k_gate", "top2", 8), _top_two),
    "cross-entropy and gradient": (_written("cross_entropy", "gradient"), _cross_entropy),
    "adam": (_written("optimizer", "adam"), _adam),
    "dropout": (_written("dropout"), _dropped),
}
"""Name -> the program of one way through a family, and its arguments' values afterwards, by number."""

LOOSE = {"quantized matmul": 1, "kv cache, quantized": 1}
"""Where a product in f32 may round to the other side."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    kernels = [text for text, _ in CHECKED.values()]
    made: ctypes.CDLL = compiled.library(tmp_path_factory.mktemp("transformer"), kernels)
    return made


@pytest.mark.parametrize("name", CHECKED)
def test_a_program_computes_what_numpy_computes(library: ctypes.CDLL, name: str) -> None:
    text, reference = CHECKED[name]
    found = compiled.operands(text)
    expected = reference([a.astype(np.float64) if a.dtype == np.float32 else a.copy() for a in found])
    compiled.call(getattr(library, f"kernel_{list(CHECKED).index(name)}"), found)
    for at, wanted in expected.items():
        atol = 4e-5 * float(np.abs(wanted).max()) if found[at].dtype.kind == "f" else LOOSE.get(name, 0)
        np.testing.assert_allclose(found[at].astype(np.float64), wanted, rtol=0, atol=atol, err_msg=f"argument {at}")


def test_programs_run_in_bounds_and_stay_finite(tmp_path: Path) -> None:
    texts = {family: [program(family, seed).mlir for seed in range(300, 312)] for family in KINDS}
    kernels = [one for found in texts.values() for one in compiled.smallest(found, 3)]
    output = compiled.run_checked(tmp_path, kernels)
    assert output.endswith("done\n"), output[-500:]
    assert "not finite" not in output, output


def test_bf16_is_rounded_to_even(tmp_path: Path) -> None:
    kernel = NetKernel()
    wide, narrow = kernel.array("f32"), kernel.array("bf16")
    with kernel.loop(0, 64) as i:
        kernel.store_as(kernel.load(wide, i), narrow, i)
    library = compiled.library(tmp_path, [kernel.finish()])
    values = np.concatenate([1 + np.arange(32) / 512, np.linspace(-3, 3, 32)]).astype(np.float32)
    out = np.zeros(64, np.uint16)
    compiled.call(library.kernel_0, [values, out])
    error = np.abs((out.astype(np.uint32) << 16).view(np.float32) - values)
    assert np.all(error <= np.spacing(np.abs(values)) * 2**15)
    ties = values[:32].view(np.uint32) & 0xFFFF == 0x8000
    assert ties.sum() == 8
    assert np.all(out[:32][ties] % 2 == 0)


def test_activations(tmp_path: Path) -> None:
    kernel = NetKernel()
    source = kernel.array("f64")
    for kind in ACTIVATIONS:
        result = kernel.array("f64")
        with kernel.loop(0, 41) as i:
            kernel.store(kernel.activation(kind, kernel.load(source, i)), result, i)
    x = np.linspace(-4, 8, 41)
    found = [x.copy(), *(np.zeros(41) for _ in ACTIVATIONS)]
    compiled.call(compiled.library(tmp_path, [kernel.finish()]).kernel_0, found)
    sigmoid = 1 / (1 + np.exp(-x))
    tanh_inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    wanted = {
        "relu": np.maximum(x, 0),
        "relu6": np.clip(x, 0, 6),
        "leaky-relu": np.where(x > 0, x, 0.01 * x),
        "gelu-tanh": 0.5 * x * (1 + np.tanh(tanh_inner)),
        "quick-gelu": x / (1 + np.exp(-1.702 * x)),
        "silu": x * sigmoid,
        "sigmoid": sigmoid,
        "tanh": np.tanh(x),
        "hard-swish": x * np.clip(x + 3, 0, 6) / 6,
        "elu": np.where(x > 0, x, np.exp(x) - 1),
        "softplus": np.log1p(np.exp(x)),
        "squared-relu": np.maximum(x, 0) ** 2,
        "softsign": x / (1 + np.abs(x)),
    }
    for kind, result in zip(ACTIVATIONS, found[1:], strict=True):
        if kind == "gelu-erf":  # NumPy has no erf; the tanh form is near it
            np.testing.assert_allclose(result, wanted["gelu-tanh"], atol=1e-3)
        else:
            np.testing.assert_allclose(result, wanted[kind], rtol=1e-8, atol=1e-12, err_msg=kind)


def test_every_program_verifies() -> None:
    compiled.skip_without_tools()
    texts = [source.mlir for family in families(count=8) for source in family.sources()]
    run([tool("mlir-opt"), "--split-input-file", "-o", "-"], step="mlir-opt", stdin="\n// -----\n".join(texts))
    assert len(set(texts)) == len(texts)


def test_families_are_registered_and_differ_in_structure() -> None:
    assert set(KINDS) <= set(FAMILIES)
    for family in KINDS:
        shapes = {re.sub(r"\d+", "#", program(family, seed).mlir) for seed in range(30)}
        assert len(shapes) >= 11, family


def test_operands_fit_the_limit() -> None:
    sizes = [compiled.operand_bytes(program(family, seed).mlir) for family in KINDS for seed in range(12)]
    assert min(sizes) > 0
    assert max(sizes) <= MAX_OPERAND_BYTES
