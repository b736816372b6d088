"""Labels of the npu track: TOSA modules to what Arm's Vela estimates for two NPUs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import LabelError
from ..targets import ETHOS_U55, ETHOS_U85
from .elided import NUMBERS, fill_elided
from .labels import Labels, Reason
from .tools import in_halves
from .vela import Estimate, Job, environment, estimate, serialize


@dataclass(frozen=True)
class Device:
    """An NPU with the memories around it, all from the configuration file that comes with Vela."""

    name: str
    """As Vela's option --accelerator-config."""
    macs_per_cycle: int
    """Of 8-bit numbers."""
    system_config: str
    memory_mode: str
    off_chip: str
    """The memory that holds what the SRAM does not: a prefix of Vela's columns."""

    @property
    def options(self) -> list[str]:
        chosen = {
            "--accelerator-config": self.name,
            "--config": "Arm/vela.ini",
            "--system-config": self.system_config,
            "--memory-mode": self.memory_mode,
        }
        return [part for pair in chosen.items() for part in pair]


DEVICES = (
    Device(ETHOS_U85, 256, "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB", "dram"),
    Device(ETHOS_U55, 128, "Ethos_U55_High_End_Embedded", "Shared_Sram", "off_chip_flash"),
)
"""Vela's defaults for each: the U85 beside 384 KiB of SRAM of its own and DRAM, the U55 beside SRAM and flash."""


def npu_versions() -> Mapping[str, str]:
    """Versions that stand in every record: both tools, and the numbers put where constants were left out."""
    return {**environment().versions, "elided-numbers": NUMBERS}


def label_networks(texts: Sequence[str]) -> list[Labels | LabelError]:
    """Label TOSA modules. What a module's labels are does not depend on the others.

    A module that no device takes has its error in its place; what one device does not take stands in `Labels.failed`.
    """
    results: dict[int, LabelError] = {}
    jobs: dict[tuple[int, Device], Job] = {}
    with tempfile.TemporaryDirectory(prefix="irgauge-") as name:
        for at, text in enumerate(texts):
            network = Path(name) / f"{at}.tosa"
            try:
                serialize(fill_elided(text), network)
            except LabelError as error:
                results[at] = error
                continue
            for device in DEVICES:
                jobs[at, device] = Job(network, device.options, Path(name) / f"{at}-{device.name}")
        found = dict(zip(jobs, in_halves(estimate, list(jobs.values())), strict=True))
    return [
        results[at] if at in results else _labels({device: found[at, device] for device in DEVICES})
        for at in range(len(texts))
    ]


def label_network(mlir: str) -> Labels:
    """`label_networks` of one.

    Raises
    ------
    LabelError
        No device takes it.
    """
    (found,) = label_networks([mlir])
    if isinstance(found, LabelError):
        raise found
    return found


def _labels(found: Mapping[Device, Estimate | LabelError]) -> Labels | LabelError:
    values: dict[str, float] = {}
    failed: dict[str, Reason] = {}
    for device, result in found.items():
        if isinstance(result, LabelError):
            failed[device.name] = _reason(result), result.detail
        else:
            values |= {f"{device.name}/{name}": value for name, value in _targets(device, result).items()}
    return Labels(values, failed) if values else LabelError(*failed[DEVICES[0].name])


def _targets(device: Device, found: Estimate) -> dict[str, float]:
    """The targets of one device from the columns of Vela's summary, which gives memory in KiB and traffic in bytes."""

    def number(column: str) -> float:
        return float(found.summary[column])

    memory = device.off_chip.removeprefix("off_chip_")
    values = {
        "cycles": number("cycles_total"),
        "sram_bytes": number("sram_memory_used") * 1024,
        f"{memory}_bytes": number(f"{device.off_chip}_memory_used") * 1024,
        f"{memory}_traffic_bytes": number(f"{device.off_chip}_total_bytes"),
        "weights_encoded_bytes": number("total_npu_encoded_weights"),
        "cpu_operators": float(found.cpu_operators),
    }
    if not found.cpu_operators and values["cycles"]:
        values["mac_utilization"] = number("nn_macs") / (values["cycles"] * device.macs_per_cycle)
    return values


_NOT_ON_NPU = re.compile(r"operation \((\w+)\) could not run on NPU")
_INVALID = re.compile(r"(\w+): - ")


def _reason(error: LabelError) -> str:
    """Vela's reason with the operator that it objects to, so that the card can count them."""
    for pattern, reason in ((_NOT_ON_NPU, "not-on-npu"), (_INVALID, "not-valid")):
        if error.reason == "vela-error" and (match := pattern.search(error.detail)):
            return f"{reason}-{match[1]}"
    return error.reason
