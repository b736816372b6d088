"""What `make tune` settled for the committed datasets: candidate, margin and hyper-parameters of each target.

`tuned/<track>.json` is read by training and judging alike, so that neither has to compare candidates again. Where it
says nothing, `learn` compares them itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tuned"


@dataclass(frozen=True)
class Recipe:
    """How one target is learned."""

    candidate: str
    """ "lightgbm", "xgboost", "hist", "roofline", ..."""
    margin: bool
    """Whether the analytical estimate is corrected, where the target has one."""
    settings: Mapping[str, Any]
    """Fields of `Settings` that differ from their defaults."""


def recipes_of(track: str, folder: Path = FOLDER) -> dict[str, Recipe]:
    """Target column to recipe; empty for a track that was never tuned."""
    path = folder / f"{track}.json"
    if not path.is_file():
        return {}
    targets = json.loads(path.read_text(encoding="utf-8"))["targets"]
    return {column: Recipe(t["candidate"], t["margin"], t["settings"]) for column, t in targets.items()}
