"""MLIR text to ops to program to features; depends on nothing else in irgauge."""

from .featurizer import Featurizer, features_of, main_features
from .reader import read, read_path
from .schema import SCHEMA_VERSION, Schema

__all__ = ["SCHEMA_VERSION", "Featurizer", "Schema", "features_of", "main_features", "read", "read_path"]
