"""How long a prediction takes, text to all targets, beside what the tools take whose answer it predicts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..errors import LabelError, ToolMissingError
from ..models.predictor import CostModel
from ..models.track_model import TrackModel
from .summary import TimeFacts

_PROGRAMS, _REPEATS = 9, 3


def time_facts(artifact: Mapping[str, Any], frame: pd.DataFrame, track: str) -> TimeFacts | None:
    """Measured here and now, one after the other, on programs from the shortest text to the longest.

    None where the dataset has no texts. Parameters as those of `summarize`.
    """
    if "mlir" not in frame.columns or not len(frame):
        return None
    texts = sorted(frame["mlir"], key=len)
    texts = [texts[int(at)] for at in np.linspace(0, len(texts) - 1, min(_PROGRAMS, len(texts)))]
    model = CostModel(artifact["manifest"], [TrackModel.from_plain(artifact["tracks"][track])])
    predicting = [_seconds(model, text) for text in texts]
    labelling = _tool_seconds(texts) if track == "npu" else []
    return TimeFacts(
        len(texts),
        float(np.median(predicting)),
        float(max(predicting)),
        float(np.median(labelling)) if labelling else float("nan"),
    )


def _seconds(model: CostModel, text: str) -> float:
    """The shortest of several predictions: the first of a process pays for more than itself."""
    taken = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        model.predict(text)
        taken.append(time.perf_counter() - start)
    return min(taken)


def _tool_seconds(texts: list[str]) -> list[float]:
    """What `tosa-opt` and Vela take for both NPUs; nothing where they are not installed."""
    from ..data.label.npu import label_network

    found = []
    for text in texts:
        start = time.perf_counter()
        try:
            label_network(text)
        except ToolMissingError:
            return []
        except LabelError:
            continue
        found.append(time.perf_counter() - start)
    return found
