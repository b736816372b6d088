"""What a report says, as plain values: everything that `render` turns into HTML and `headline_text` into text.

No HTML, no formatting and no rounding here. A figure that does not exist is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OURS = "irgauge"
"""Name of our own model beside the baselines' names."""


@dataclass(frozen=True)
class ScoreRow:
    """All figures of one model for one target on one split."""

    split: str
    model: str
    """`OURS` or the name of a baseline."""
    figures: Mapping[str, float]
    """Metric to figure; shares are in [0, 1]."""


@dataclass(frozen=True)
class Certainty:
    """How sure one target's figures are on one split, and how good its prediction intervals."""

    split: str
    n_rows: int
    n_programs: int
    error_low: float
    error_high: float
    """90 % bootstrap interval of the target's error figure, programs drawn with all their variants."""
    coverage: float
    """Share of labels inside the 95 % prediction interval."""
    coverage_ok: float
    """The same over predictions with status "ok"."""
    ok: float
    """Share of predictions with status "ok"."""
    width: float
    """Median width of the prediction interval: upper over lower bound (each + `offset`) where `width_is_factor`, else
    upper − lower in the target's unit."""
    width_is_factor: bool


@dataclass(frozen=True, eq=False)
class Points:
    """Predictions of one target on one split, for a plot; arrays of shape (n_rows,)."""

    split: str
    y: Floats
    predicted: Floats
    ok: NDArray[np.bool_]
    """False where the prediction's status is "outside"."""


@dataclass(frozen=True, eq=False)
class ShapFeature:
    """One feature's part in the predictions of a sample of rows."""

    name: str
    meaning: str
    unit: str
    mean_abs: float
    """Mean |SHAP value|, in the space the target is learned in."""
    direction: float
    """Rank correlation of the feature's value with its SHAP value; NaN where one of them is constant."""
    values: Floats
    """The feature's value, shape (n_rows,)."""
    contributions: Floats
    """Its SHAP value, shape (n_rows,)."""


@dataclass(frozen=True, eq=False)
class ShapSummary:
    """Which features drive one function of the model: the value of a target, or whether it is 0 at all."""

    part: str
    """ "value", or "gate" for the classifier "not 0" of a two-part model."""
    space: str
    """What SHAP values add up to: "log" (natural logarithm of the value), "plain" (the unit) or "log-odds"."""
    n_rows: int
    n_features: int
    """Features that contribute to any of the rows."""
    features: tuple[ShapFeature, ...]
    """The largest, by mean |SHAP value|."""
    rest: float
    """Mean |sum of the SHAP values| of all other features."""
    groups: Mapping[str, float]
    """Feature group to its share of the sum of all mean |SHAP value|; empty where nothing contributes."""
    estimate: str
    """The analytical estimate that the learned part corrects, "" for none."""
    estimate_mean_abs: float
    """Mean |log estimate − its mean|: how much of the spread the estimate explains before anything is learned. NaN
    without one."""


@dataclass(frozen=True)
class WorstProgram:
    """A program predicted badly."""

    split: str
    id: str
    program_id: str
    family: str
    origin: str
    """ "" where the record's text is not at hand."""
    schedule: str
    y: float
    predicted: float
    low: float
    high: float
    factor: float
    """(1 + larger) / (1 + smaller) of label and prediction, >= 1."""
    ok: bool
    """Whether the prediction had status "ok"."""


@dataclass(frozen=True)
class ProgramText:
    """The beginning of a program's text."""

    id: str
    text: str
    n_lines: int
    """Lines of the whole text."""
    n_lines_left_out: int


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of one target in the dataset."""

    n: int
    n_missing: int
    zeros: float
    """Share of the labels that are 0."""
    low: float
    median: float
    mean: float
    high: float
    edges: Floats
    """Edges of the histogram's bins in the target's unit, shape (n_bins + 1,); zeros are counted apart where
    `log_bins`."""
    counts: NDArray[np.int64]
    """Shape (n_bins,)."""
    log_bins: bool


@dataclass(frozen=True, eq=False)
class TargetSummary:
    """All that is said about one target."""

    column: str
    """ "device/name"."""
    name: str
    unit: str
    kind: str
    how: str
    tool: str
    exact: bool
    lower_is_better: bool
    error_metric: str
    """The error figure that fits the target; see `figures`."""
    hit_metric: str
    """The share of good predictions that fits it."""
    learned: str
    """How it is learned, for people: "LightGBM, in log space, as a correction to the analytical estimate"."""
    chosen: str
    """The candidate that the recipe names, or that won the comparison: "lightgbm", "mean", "ridge", ..."""
    scores: tuple[ScoreRow, ...]
    """By split, ours first."""
    certainty: tuple[Certainty, ...]
    """By split."""
    points: tuple[Points, ...]
    """By split."""
    shap: tuple[ShapSummary, ...]
    worst: tuple[WorstProgram, ...]
    """By split, worst first."""
    labels: Labels | None
    """None where the dataset lacks the column."""

    def figure(self, split: str, model: str, metric: str) -> float:
        """One figure; NaN where there is none."""
        for row in self.scores:
            if row.split == split and row.model == model:
                return row.figures.get(metric, float("nan"))
        return float("nan")

    def models(self) -> tuple[str, ...]:
        """Ours and the baselines that apply to this target on any split, in their order."""
        return tuple(dict.fromkeys(row.model for row in self.scores))


@dataclass(frozen=True)
class SplitFacts:
    """One way of judging."""

    name: str
    meaning: str
    n_rows: int
    """Rows judged, those with a label for any target."""
    n_programs: int
    n_families: int


@dataclass(frozen=True)
class FamilyErrors:
    """The error figures of one family, judged by models that saw no program of it."""

    family: str
    n_rows: int
    errors: Mapping[str, float]
    """Target column to its error figure."""


@dataclass(frozen=True)
class FamilyFacts:
    """One family's part in the dataset."""

    origin: str
    family: str
    n_rows: int
    n_programs: int


@dataclass(frozen=True)
class DatasetFacts:
    """What was learned from."""

    n_rows: int
    n_programs: int
    sha256: str
    """Of ids, groups, features and labels; "" where the manifest does not say."""
    families: tuple[FamilyFacts, ...]
    """By origin and name."""
    schedules: tuple[tuple[str, int], ...]
    """(transformation without its numbers, rows), most first: "tile", "unroll", ..."""
    latency_spread_median: float
    """Distance between the quartiles of a latency's repeats over their median; NaN without repeats."""
    latency_spread_p95: float


@dataclass(frozen=True)
class VersionFacts:
    """What it was made with."""

    libraries: Mapping[str, str]
    toolchain: Mapping[str, str]
    """Tool to version, as the records state them."""
    machines: tuple[str, ...]
    """Machines that latencies were measured on."""
    schema: str
    """Feature schema: version/hash."""
    n_features: int
    seed: int | None
    settings: Mapping[str, str]
    revision: str
    """Revision of the source, "" where it is not known."""


@dataclass(frozen=True)
class TimeFacts:
    """What a prediction takes, text to all targets."""

    n_programs: int
    median_s: float
    longest_s: float
    tool_median_s: float
    """What the tools take whose answer is predicted, for the same programs; NaN where that was not measured."""


@dataclass(frozen=True, eq=False)
class Summary:
    """A whole report."""

    track: str
    splits: tuple[SplitFacts, ...]
    """Those that were judged, in the order of the design."""
    splits_missing: tuple[str, ...]
    """Those of the design that were not."""
    targets: tuple[TargetSummary, ...]
    """Times first, then in the order of the registry."""
    families: tuple[FamilyErrors, ...]
    """By name; empty where the split "family" was not judged."""
    texts: Mapping[str, ProgramText]
    """Record id to text, for the worst programs whose text is in the dataset."""
    dataset: DatasetFacts
    versions: VersionFacts
    times: TimeFacts | None
    """None where there is no text to predict."""
    literature: Mapping[str, Any] | None
    """What `make bench-literature` wrote; None where it did not, or for another track."""
    ablation: Mapping[str, Any] | None
    """What `make bench-ablation` wrote."""
