"""irgauge predicts what MLIR will cost on real hardware, from the IR alone, and says why."""

from typing import TYPE_CHECKING, Any

from .errors import ArtifactError, IrgaugeError, LabelError, ReadError, SchemaError, ToolMissingError, UsageError
from .models.predictor import CostModel, Estimate, Prediction, load

if TYPE_CHECKING:
    from .featurize.transformer import Featurizer
else:

    def __getattr__(name: str) -> Any:
        """`Featurizer` imports scikit-learn, which prediction does without: on first use."""
        if name == "Featurizer":
            from .featurize import Featurizer

            return Featurizer
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "ArtifactError",
    "CostModel",
    "Estimate",
    "Featurizer",
    "IrgaugeError",
    "LabelError",
    "Prediction",
    "ReadError",
    "SchemaError",
    "ToolMissingError",
    "UsageError",
    "load",
]
