"""A small made-up table for tests of the estimators: features that all modules expect, targets that follow from
them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from irgauge.featurize.schema import SCHEMA_VERSION
from irgauge.models import analytical
from irgauge.models.candidates import Settings
from irgauge.models.train import Table

NEEDED = tuple(sorted({name for estimate in analytical._ESTIMATES for name in analytical.reads(estimate)}))
"""Features that some estimate reads."""

X86 = "x86-64-v3"


def made_up_table(n_programs: int = 60, variants: int = 5, seed: int = 0) -> Table:
    """Rows in groups of variants; labels with a known dependence, a few of them missing."""
    rng = np.random.default_rng(seed)
    n = n_programs * variants
    names = (*NEEDED, "loops.volume_max", "ops.arith.addf", "ops.arith.mulf", "ops.unknown", "tensors.bytes_in")
    names = tuple(sorted(names))
    where = {name: i for i, name in enumerate(names)}
    X = np.zeros((n, len(names)), np.float32)
    program = np.repeat(np.arange(n_programs), variants)
    size = np.exp(rng.uniform(4, 12, n_programs))[program]
    unroll = 2.0 ** (np.arange(n) % variants)
    for name in names:
        X[:, where[name]] = np.floor(size * rng.uniform(0.5, 2) / 10 ** rng.integers(0, 3))
    X[:, where["codegen.static_size"]] = 10 + 6 * unroll
    X[:, where["codegen.hot.unrolled_size"]] = 8 * unroll
    X[:, where["ops.arith.addf"]] = unroll
    X[:, where["ops.arith.mulf"]] = 2 * unroll
    X[:, where["liveness.over_16"]] = np.maximum(0, 3 * unroll - 13)
    X[:, where["codegen.cycles"]] = np.floor(X[:, where["work.loads"]] / 2)
    X[:, where["ops.unknown"]] = 0
    X[:, where["work.loop_iterations"]] = np.floor(size / unroll)
    loads = X[:, where["work.loads"]].astype(float)
    noise = np.exp(rng.normal(0, 0.03, n))
    y = {
        f"{X86}/static_instructions": np.round(20 + 9 * unroll * noise),
        f"{X86}/vec_used": np.minimum(16, 3 + 3 * unroll),
        f"{X86}/spills": np.round(np.maximum(0, 20 * (3 * unroll - 13)) * noise),
        f"{X86}/vector_utilization": (unroll >= 8).astype(float),
        f"{X86}/mca_cycles": 2 * unroll * noise,
        f"{X86}/latency_ns": (10 + loads / 3 + size / unroll) * noise,
    }
    y[f"{X86}/latency_ns"][::17] = np.nan
    return Table(
        "kernel",
        names,
        SCHEMA_VERSION,
        X,
        y,
        tuple(f"id{i}" for i in range(n)),
        tuple(f"program{p}" for p in program),
        tuple(f"family{p % 12}" for p in program),
    )


@pytest.fixture(scope="session")
def table() -> Table:
    return made_up_table()


@pytest.fixture(scope="session")
def quick() -> Settings:
    return Settings().quick()


NEST = """func.func @{name}(%a: memref<{n}x{m}xf32>, %b: memref<{n}x{m}xf32>) {{
  affine.for %i = 0 to {n} {{
    affine.for %j = 0 to {m} {{
      %x = affine.load %a[%i, %j] : memref<{n}x{m}xf32>
      %y = affine.load %b[%i, %j] : memref<{n}x{m}xf32>
      %z = arith.{op} %x, %y : f32
{more}      affine.store %z, %b[%i, %j] : memref<{n}x{m}xf32>
    }}
  }}
  return
}}
"""


def nest(n: int = 16, m: int = 32, op: str = "mulf", more: int = 0, name: str = "kernel") -> str:
    """A two-deep loop nest as MLIR text."""
    extra = "".join(f"      %m{i} = arith.addf %x, %y : f32\n" for i in range(more))
    return NEST.format(n=n, m=m, op=op, more=extra, name=name)


@pytest.fixture(scope="session")
def text_table() -> Table:
    """A table whose features come from MLIR text, for what reads text; labels are made up from the features."""
    import pandas as pd

    from irgauge.models.train import table_of

    rng = np.random.default_rng(1)
    rows = []
    for program in range(40):
        n, m = (int(v) for v in 4 * 2 ** rng.integers(0, 6, 2))
        for more in (0, 2, 5, 9):
            text = nest(n, m, "mulf" if program % 2 else "addf", more)
            work = n * m * (4 + more)
            rows.append(
                {
                    "id": f"{program}.{more}",
                    "program_id": f"p{program}",
                    "family": f"f{program % 9}",
                    "mlir": text,
                    f"{X86}/latency_ns": 10 + work / 3 * float(np.exp(rng.normal(0, 0.02))),
                    f"{X86}/spills": float(24 * (more - 4)) if more > 4 else 0.0,
                    f"{X86}/vec_used": 3.0 + more,
                    f"{X86}/static_instructions": 40.0 + 7 * more,
                    f"{X86}/vector_utilization": 1.0 if m >= 16 else 0.0,
                }
            )
    return table_of(pd.DataFrame(rows), n_jobs=1)


@pytest.fixture(scope="session")
def artifact(text_table: Table, quick: Settings) -> Mapping[str, Any]:
    from irgauge.models.train import train_track

    return train_track(text_table, n_jobs=1, settings=quick)
