"""The schema: the ordered, versioned, hashed list of features that a model was trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..errors import SchemaError

SCHEMA_VERSION = 2
"""Raised whenever a feature of the same name changes its meaning."""


@dataclass(frozen=True)
class Schema:
    """An ordered list of feature names."""

    names: tuple[str, ...]
    """Fixed features in the order of `describe.FIXED`, then the learned ones, sorted."""
    version: int = SCHEMA_VERSION

    @property
    def hash(self) -> str:
        """16 hex digits over version, names and order."""
        return hashlib.sha256("\n".join((str(self.version), *self.names)).encode()).hexdigest()[:16]

    def vector(self, features: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """Shape (n_features,): the values in schema order; a learned feature that the program lacks is 0.

        Operations whose name is not in the schema are added up in `ops.unknown`.
        """
        values = np.fromiter((features.get(name, 0.0) for name in self.names), np.float64, len(self.names))
        if "ops.unknown" in self.positions:
            values[self.positions["ops.unknown"]] = sum(self.unseen_ops(features).values())
        return values

    def nonzero(self, features: Mapping[str, float]) -> dict[int, float]:
        """Position -> value of what is not 0 in `vector(features)`, positions ascending."""
        positions = self.positions
        found = {positions[k]: float(v) for k, v in features.items() if v != 0 and k in positions}
        if "ops.unknown" in positions:
            found.pop(positions["ops.unknown"], None)
            unseen = sum(self.unseen_ops(features).values())
            if unseen:
                found[positions["ops.unknown"]] = float(unseen)
        return dict(sorted(found.items()))

    def unseen_ops(self, features: Mapping[str, float]) -> dict[str, float]:
        """Counts of the operations whose name the schema does not hold, by op name."""
        known = self.positions
        return {k[4:]: v for k, v in features.items() if k.startswith("ops.") and k not in known and is_op_name(k)}

    @cached_property
    def positions(self) -> dict[str, int]:
        """Name -> column."""
        return {name: i for i, name in enumerate(self.names)}

    def check(self, version: int, digest: str) -> None:
        """SchemaError unless a model's schema is this one."""
        if version != self.version or digest != self.hash:
            raise SchemaError(
                f"the model's features are schema {version}/{digest}, the extractor's are {self.version}/{self.hash}. "
                "Train again, or use the irgauge version that made the model."
            )


def is_op_name(feature: str) -> bool:
    """Whether a feature is the count of one op name (`ops.arith.addf`), not a fixed or dialect feature."""
    return feature.startswith("ops.") and "/" not in feature and "." in feature[4:]
