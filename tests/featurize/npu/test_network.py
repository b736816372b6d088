"""Networks: the plan of the memories, and the sums beside what Vela says of the networks of the dataset."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from irgauge.data.store import SETS
from irgauge.featurize import main_features
from irgauge.featurize.npu import U85, Cost, NpuStep, TensorOp, most_bytes, network_cost, step_costs
from irgauge.featurize.npu.network import CACHE_BYTES

SHAPE = (1, 16, 16, 32)
CONV = TensorOp("conv", SHAPE, SHAPE, (3, 3), weight_bytes=9216)
BYTES = 16.0 * 16 * 32


def _chain(size: float = BYTES) -> tuple[list[NpuStep], dict[int, float]]:
    return [NpuStep(CONV, (at,), (at + 1,)) for at in range(3)], dict.fromkeys(range(4), size)


def test_tensors_between_operations_are_cached() -> None:
    first, second, last = step_costs(*_chain(), U85)
    assert first.tensor_bytes > 0  # the argument
    assert second.tensor_bytes == 0
    assert last.tensor_bytes > 0  # the result


def test_what_does_not_fit_is_not_cached() -> None:
    _, second, _ = step_costs(*_chain(CACHE_BYTES + 1.0), U85)
    assert second.tensor_bytes > 0


def test_weights_are_waited_for_at_the_start_only() -> None:
    first, second, _ = step_costs(*_chain(), U85)
    assert first.compute > second.compute


def test_a_network_is_the_sum_of_its_steps() -> None:
    steps, sizes = _chain()
    total = Cost()
    for one in step_costs(steps, sizes, U85):
        total += one
    assert network_cost(steps, sizes, U85) == total


def test_steps_of_several_parts_count_as_often() -> None:
    (once,) = step_costs([NpuStep(CONV, (0,), (1,))], {0: BYTES, 1: BYTES}, U85)
    (thrice,) = step_costs([NpuStep(CONV, (0,), (1,), 3)], {0: BYTES, 1: BYTES}, U85)
    assert thrice.cycles == 3 * once.cycles


def test_most_bytes_are_those_alive_with_the_weights() -> None:
    steps, sizes = _chain()
    assert 2 * BYTES < most_bytes(steps, sizes, U85) < 2 * BYTES + 12_000


@pytest.mark.parametrize(("npu", "device", "allowed"), [("u85", "ethos-u85-256", 0.05), ("u55", "ethos-u55-128", 0.10)])
def test_plain_networks_take_what_vela_says(npu: str, device: str, allowed: float) -> None:
    """Convolutions one after the other: nothing but the plan itself decides. Half of the networks are this close."""
    frame = pd.read_parquet(SETS / "npu.parquet", columns=["family", "mlir", f"{device}/cycles"])
    frame = frame[frame["family"].isin(["vgg", "ds_cnn"]) & frame[f"{device}/cycles"].notna()].sample(
        24, random_state=0
    )
    features = [main_features(text, ["accelerator"]) for text in frame["mlir"]]
    ratio = np.array([f[f"accelerator.{npu}.cycles"] for f in features]) / frame[f"{device}/cycles"].to_numpy()
    assert np.median(np.abs(np.log(ratio))) < allowed
