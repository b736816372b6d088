"""A small evaluation of real models on real MLIR text. The labels are simple functions of the features: these tests are
about the report, not about accuracy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")
threadpool_limits = pytest.importorskip("threadpoolctl").threadpool_limits  # a dependency of scikit-learn

from irgauge.models.candidates import Settings  # noqa: E402  (after the checks that its libraries are there)
from irgauge.models.evaluate import Evaluation, evaluate_track  # noqa: E402
from irgauge.models.train import table_of, train_track  # noqa: E402
from irgauge.reports.summarize import summarize  # noqa: E402
from irgauge.reports.summary import Summary  # noqa: E402

X86 = "x86-64-v3"
LATENCY, REGISTERS, SPILLS, SHARE = (
    f"{X86}/{name}" for name in ("latency_ns", "gpr_used", "spills", "vector_utilization")
)
ARM_SPILLS = "neoverse-v2/spills"
FAMILIES = ("add", "mul", "axpy", "divide", "stencil")


def kernel(family: str, rows: int, columns: int, unroll: int) -> str:
    """A two-deep nest over a matrix; `unroll` repeats its body."""
    body = []
    for i in range(unroll):
        body += [
            f"      %a{i} = memref.load %A[%i, %j] : memref<{rows}x{columns}xf32>",
            f"      %b{i} = memref.load %B[%i, %j] : memref<{rows}x{columns}xf32>",
        ]
        op = {"add": "arith.addf", "mul": "arith.mulf", "divide": "arith.divf"}.get(family, "arith.addf")
        body.append(f"      %c{i} = {op} %a{i}, %b{i} : f32")
        if family == "axpy":
            body.append(f"      %d{i} = arith.mulf %c{i}, %a{i} : f32")
        body.append(f"      memref.store %c{i}, %B[%i, %j] : memref<{rows}x{columns}xf32>")
        if family == "stencil":
            body.append(f"      memref.store %a{i}, %A[%j, %i] : memref<{rows}x{columns}xf32>")
    lines = "\n".join(body)
    return f"""func.func @kernel(%A: memref<{rows}x{columns}xf32>, %B: memref<{rows}x{columns}xf32>) {{
  affine.for %i = 0 to {rows} {{
    affine.for %j = 0 to {columns} {{
{lines}
    }}
  }}
  return
}}
"""


@dataclass(frozen=True, eq=False)
class Judged:
    """What `irgauge report` has at hand before it summarizes."""

    evaluation: Evaluation
    artifact: dict[str, Any]
    frame: Any


@pytest.fixture(scope="session")
def judged() -> Judged:
    rng = np.random.default_rng(0)
    records = []
    for number in range(25):
        family = FAMILIES[number % len(FAMILIES)]
        rows, columns = (int(n) for n in rng.choice([8, 12, 20, 32, 64], 2))
        for unroll in (1, 2, 4):
            work = rows * columns * unroll
            records.append(
                {
                    "id": f"{number:014x}{unroll:02x}",
                    "program_id": f"made/{family}/{number}",
                    "family": family,
                    "origin": "made",
                    "schedule": "identity" if unroll == 1 else f"unroll-{unroll}",
                    "mlir": kernel(family, rows, columns, unroll),
                    LATENCY: work * (3.0 if family == "divide" else 1.0) * float(rng.uniform(0.95, 1.05)),
                    REGISTERS: float(3 + unroll + FAMILIES.index(family)),
                    SPILLS: float(max(0, unroll - 1) * (40 if family == "stencil" else 0)),
                    ARM_SPILLS: float(max(0, unroll - 2) * (20 if family == "stencil" else 0)),
                    SHARE: 0.5 if family in ("add", "mul") else 1.0,
                    "latency_spread": 0.01,
                    "machine": "test machine",
                    "version_llvm": "22.1.8",
                }
            )
    frame = pd.DataFrame(records)
    table = table_of(frame, n_jobs=1)
    settings = replace(Settings(), rounds=8, learning_rate=0.3, screening_rounds=5, gate_rounds=8, folds=2)
    real = table.rows(np.arange(0, len(frame), 4))
    with threadpool_limits(1):
        artifact = train_track(table, n_jobs=1, settings=settings)
        evaluation = evaluate_track(table, real, model=artifact, n_jobs=1, settings=settings)
    return Judged(evaluation, artifact, frame)


@pytest.fixture(scope="session")
def summary(judged: Judged) -> Summary:
    return summarize(judged.evaluation, judged.artifact, judged.frame, shap_rows=20, n_jobs=1, revision="abc123")
