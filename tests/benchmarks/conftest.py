"""The made-up table of the models' tests."""

from irgauge.tests.models.conftest import table

__all__ = ["table"]
