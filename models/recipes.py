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

from .candidates import Settings

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
    targets = _read(track, folder).get("targets", {})
    return {column: Recipe(t["candidate"], t["margin"], t["settings"]) for column, t in targets.items()}


def settings_of(track: str, folder: Path = FOLDER) -> Settings:
    """Hyper-parameters of all targets of a track: the defaults, but for what its file says under "settings".

    There are few large trees where there are many rows: with as many leaves in all they are nearly as good as more
    small ones, and sooner walked.
    """
    return Settings(**_read(track, folder).get("settings", {}))


def _read(track: str, folder: Path) -> dict[str, Any]:
    path = folder / f"{track}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found
