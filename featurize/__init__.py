"""MLIR text to ops to program to features; depends on nothing else in irgauge."""

from typing import TYPE_CHECKING, Any

from .featurizer import features_of, main_features
from .reader import read, read_path
from .schema import SCHEMA_VERSION, Schema

if TYPE_CHECKING:
    from .transformer import Featurizer
else:

    def __getattr__(name: str) -> Any:
        """`Featurizer` imports scikit-learn: on first use."""
        if name == "Featurizer":
            from .transformer import Featurizer

            return Featurizer
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["SCHEMA_VERSION", "Featurizer", "Schema", "features_of", "main_features", "read", "read_path"]
