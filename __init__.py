"""irgauge predicts what MLIR will cost on real hardware, from the IR alone, and says why."""

from .errors import ArtifactError, IrgaugeError, LabelError, ReadError, SchemaError, ToolMissingError, UsageError
from .featurize.featurizer import Featurizer
from .models.predictor import CostModel, Estimate, Prediction, load

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
