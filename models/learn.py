"""Learn one target from its training rows: choose space and candidate, fit, calibrate. Nothing here sees a row that
is judged.

1. Space: log where labels pass 64, else plain (registers, shares, instructions per cycle).
2. Columns: a short run keeps the features that matter for this target.
3. Choice. `make tune` has settled it for the committed datasets (`recipes`). Otherwise, on a few thousand rows, those
   of the first of the grouped folds judged (all programs of a family on one side): with or without the analytical
   margin, then among the boosters and, where these are all rows there are, ridge and the roofline. The score is the
   mean absolute error in log space (a relative error), or the RMSE in plain space.
4. The chosen one learns from all rows outside a fold and predicts it, for some folds; these errors on unseen families
   make the intervals.
5. It is fitted again on all training rows, with what orders variants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.splits import group_folds
from ..data.targets import Target
from . import analytical
from .candidates import BOOSTERS, CONTEST, Settings, fit_candidate, fit_gate, fit_order, mean_of, screen_columns
from .conformal import Intervals, calibrate
from .recipes import Recipe
from .target_model import Part, TargetModel, constant
from .trees import Float32, Float64, Int32

_PLAIN_UP_TO = 64.0
_MIN_ROWS = 40
_GATE_ZERO_SHARE = (0.05, 0.995)
_WHOLE_UP_TO = 3.0
"""Candidates are compared on all rows if there are at most so many times those of a contest: only then the plan of a
network by itself, or another simple model, may win."""


@dataclass(frozen=True, eq=False)
class Learned:
    """A target's model and how it was arrived at."""

    model: TargetModel
    cv_scores: Mapping[str, float]
    """Score of each candidate on the choosing fold, lower is better: "lightgbm+margin", "ridge", ..."""
    oof_rows: np.ndarray
    """Rows (positions in the arrays given) with an out-of-fold prediction."""
    oof_value: Float64
    """Out-of-fold predictions of these rows, in the target's unit."""


_ORDERED = ("latency_ns", "instructions_executed")
"""Targets whose models learn order too: what variants are compared by, and where their differences are smaller than
errors."""

MARGIN_IS_WORTH = 1.05
"""The contest, and `tune`, drop the analytical estimate where errors are so many times smaller without it: on what is
larger than all training programs, which no fold shows, it is what keeps a prediction growing."""

_SHARE_OFFSET = 0.01
"""Added to a share that has an estimate, so that it can be learned as a correction of that."""


def learn_target(
    target: Target,
    X: Float32,
    y: Float64,
    programs: Sequence[str],
    names: tuple[str, ...],
    *,
    rows: np.ndarray | None = None,
    families: Sequence[str] | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    candidates: Sequence[str] | None = None,
    recipe: Recipe | None = None,
) -> Learned:
    """Learn one target.

    Parameters
    ----------
    X : float32 array of shape (n_rows, n_features), finite, columns as in `names`
    y : shape (n_rows,), labels in the target's unit; rows with NaN are left out
    rows : learn from these rows alone, by position; from all by default
    programs, families : `program_id` and family of each row; folds hold whole families, or programs where there are
        few families or none are given
    candidates : what may be chosen; by default `CONTEST`, or the boosters where only a part of the rows compares them
    recipe : settles the choice, and some of the settings

    Raises
    ------
    ValueError
        No row has a label, or the features are not finite.
    """
    settings = settings or Settings()
    if recipe is not None:
        settings = replace(settings, **recipe.settings)
    if not np.isfinite(X).all():
        raise ValueError("features must be finite")
    columns = analytical.needed_columns(names, [analytical.name_for(target)])
    labelled = np.flatnonzero(np.isfinite(y)) if rows is None else rows[np.isfinite(y[rows])]
    if not len(labelled):
        raise ValueError(f"no row has a label for {target.column}")
    y = np.asarray(y, np.float64)[labelled]
    program = np.asarray(programs, dtype=str)[labelled]
    task = TargetTask(target, X, y, names, columns, seed, settings, rows=labelled)
    if len(y) < _MIN_ROWS or len(np.unique(program)) < 2 * settings.folds or np.all(y == y[0]):
        z = task.encode(y)
        part = constant(float(np.median(z)))
        model = task.model("", "constant", (part, None), None, calibrate(np.full(len(z), part.base), z))
        return Learned(model, {}, np.zeros(0, np.int64), np.zeros(0))

    folds = _folds(program, None if families is None else np.asarray(families, dtype=str)[labelled], settings, seed)
    scores: dict[str, float] = {}
    first = None
    if recipe is not None:
        chosen, margin = recipe.candidate, task.margin_of(recipe)
    else:
        few = some_groups(program, settings.contest_rows, seed)
        if candidates is None:  # a simple model that wins on a part says nothing about the whole
            candidates = CONTEST if few.all() else BOOSTERS
        scores, chosen, margin, first = task.choose(few & (folds != 0), few & (folds == 0), candidates)
        if not few.all():
            task.forget()
            first = None
    oof = np.full(len(y), np.nan)
    shorter = settings.shortened(settings.calibration_rounds)
    for fold in range(min(settings.calibration_folds, int(folds.max()) + 1)):
        inner, outer = folds != fold, folds == fold
        parts = first if fold == 0 and first is not None else task.fit(chosen, margin, inner, shorter)
        oof[outer] = task.model(margin, chosen, parts, None, no_intervals()).predict(X[labelled[outer]], columns).value
    known = np.flatnonzero(np.isfinite(oof))
    intervals = calibrate(task.encode(oof[known]), task.encode(y[known]))
    parts = task.fit(chosen, margin, np.ones(len(y), bool))
    model = task.model(margin, chosen, parts, task.fit_order(program), intervals)
    return Learned(model, scores, labelled[known], oof[known])


def _folds(program: np.ndarray, family: np.ndarray | None, settings: Settings, seed: int) -> np.ndarray:
    """Fold of each row; whole families where there are at least two for each fold."""
    enough = family is not None and len(np.unique(family)) >= 2 * settings.folds
    return group_folds(list(family if enough and family is not None else program), settings.folds, seed)


def some_groups(groups: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Mask of about so many rows, whole groups drawn at random; of all rows where there are not many more."""
    if len(groups) <= _WHOLE_UP_TO * n_rows:
        return np.ones(len(groups), bool)
    names, inverse, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng([seed, 3]).permutation(len(names))
    drawn = np.zeros(len(names), bool)
    drawn[order[: 1 + np.searchsorted(np.cumsum(sizes[order]), n_rows)]] = True
    return np.asarray(drawn[inverse.ravel()])


def no_intervals() -> Intervals:
    """For a model whose value alone is wanted."""
    return Intervals(np.zeros(0), np.zeros(1), np.zeros(1))


class TargetTask:
    """The training rows of one target with what is fixed for it; fits and compares functions of them."""

    def __init__(
        self,
        target: Target,
        X: Float32,
        y: Float64,
        names: tuple[str, ...],
        columns: Mapping[str, int],
        seed: int,
        settings: Settings,
        *,
        rows: np.ndarray | None = None,
        readable: np.ndarray | None = None,
    ) -> None:
        """`y` and all masks are of `rows` of `X`, by default all; only what is learned from is ever copied.
        `readable`: mask of the features that functions may read, shape (n_features,); all by default."""
        self.target, self.X, self.y, self.names, self.columns = target, X, y, names, columns
        self.seed, self.settings, self.readable = seed, settings, readable
        self.rows = np.arange(len(y)) if rows is None else rows
        estimate = analytical.name_for(target)
        grows = target.kind != "share" and float(y.max()) > _PLAIN_UP_TO
        self.space = "log" if grows or (target.kind == "share" and estimate) else "plain"
        offset = _SHARE_OFFSET if target.kind == "share" else 1.0 if target.whole or target.kind == "time" else 0.1
        self.offset = offset if self.space == "log" else 0.0
        zeros = float(np.mean(y == 0))
        self.gated = self.space == "log" and target.whole and _GATE_ZERO_SHARE[0] <= zeros <= _GATE_ZERO_SHARE[1]
        self.margins = {"": np.zeros(len(y))}
        if self.space == "log" and estimate:
            needed = X[np.ix_(self.rows, np.array(list(columns.values())))]
            amount = analytical.estimate(estimate, needed, {name: i for i, name in enumerate(columns)})
            self.margins[estimate] = np.log(amount + self.offset)
        self.screened: dict[str, np.ndarray] = {}
        self.gates: dict[bytes, Part] = {}

    def encode(self, y: Float64) -> Float64:
        return np.log(np.maximum(y, 0) + self.offset) if self.space == "log" else y

    def model(
        self,
        margin: str,
        candidate: str,
        parts: tuple[Part, Part | None],
        order: Part | None,
        intervals: Intervals,
    ) -> TargetModel:
        """`parts`: regressor and gate."""
        target = self.target
        return TargetModel(
            column=target.column,
            unit=target.unit,
            whole=target.whole,
            upper=target.upper,
            space=self.space,
            offset=self.offset,
            estimate=margin,
            margin_mean=float(self.margins[margin].mean()),
            candidate=candidate,
            part=parts[0],
            gate=parts[1],
            order=order,
            intervals=intervals,
        )

    def margin_of(self, recipe: Recipe) -> str:
        """The name of the estimate that a recipe corrects; "" for none."""
        return list(self.margins)[-1] if recipe.margin else ""

    def forget(self) -> None:
        """Screen columns and fit gates anew: on more rows than the contest had."""
        self.screened.clear()
        self.gates.clear()

    def regression_rows(self, rows: np.ndarray) -> np.ndarray:
        """A gated target's regressor learns from the rows that are not 0, unless there are too few."""
        if not self.gated:
            return rows
        nonzero = rows & (self.y > 0)
        return nonzero if int(nonzero.sum()) >= 20 else rows

    def screen(self, key: str, rows: np.ndarray, z: Float64) -> np.ndarray:
        """The columns to learn from: chosen on the rows first asked about (training rows, always), then kept."""
        if key not in self.screened:
            every = -(-len(z) // self.settings.screening_rows)
            X = self.X[self.rows[rows][::every]]
            useful = useful_columns(X, self.names)
            if self.readable is not None:
                useful = useful[self.readable[useful]]
            self.screened[key] = useful[screen_columns(X[:, useful], z[::every], self.seed, self.settings)]
        return self.screened[key]

    def fit(
        self, candidate: str, margin: str, rows: np.ndarray, settings: Settings | None = None
    ) -> tuple[Part, Part | None]:
        """Fit regressor and gate on some rows; by the task's settings unless others are given."""
        settings = settings or self.settings
        part = self.fit_part(candidate, margin, rows, settings)
        return part, self.fit_gate(rows, settings) if self.gated else None

    def fit_gate(self, rows: np.ndarray, settings: Settings) -> Part:
        """The classifier for "not 0": the same whatever the regressor, so fitted once for the same rows."""
        key = rows.tobytes()
        if key not in self.gates:
            nonzero = self.y[rows] > 0
            kept = self.screen("gate", rows, nonzero.astype(np.float64))
            gate = fit_gate(self.matrix(rows, kept), nonzero, self.seed, settings)
            self.gates[key] = on_columns(gate, kept)
        return self.gates[key]

    def fit_order(self, programs: np.ndarray) -> Part | None:
        """What orders the variants of each program."""
        if self.target.name not in _ORDERED or self.space != "log":
            return None
        z = self.encode(self.y)
        rows = np.arange(len(z))
        kept = self.screen("amount", rows, z)
        return on_columns(fit_order(self.matrix(rows, kept), z, programs, self.seed, self.settings), kept)

    def matrix(self, rows: np.ndarray, kept: np.ndarray) -> Float32:
        """Some rows (mask or positions) and columns, copied."""
        return np.asarray(self.X[np.ix_(self.rows[rows], kept)], np.float32)

    def fit_part(self, candidate: str, margin: str, rows: np.ndarray, settings: Settings, key: str = "amount") -> Part:
        """The regressor fitted on some rows, from the columns screened first under `key`."""
        used = np.flatnonzero(self.regression_rows(rows))
        z = self.encode(self.y[used]) - self.margins[margin][used]
        if candidate in ("roofline", "constant"):
            return fit_candidate(candidate, self.matrix(used, np.zeros(0, np.intp)), z, self.seed, settings)
        kept = self.screen(key, used, z)
        # Huber moves a prediction by at most its delta a round: only for labels that lie near one another.
        robust = self.space == "log" and float(np.ptp(np.quantile(z, (0.01, 0.99)))) < 6
        part = fit_candidate(candidate, self.matrix(used, kept), z, self.seed, settings, robust=robust)
        return on_columns(part, kept)

    def loss(self, part: Part, margin: str, rows: np.ndarray) -> float:
        """Mean absolute error in log space, RMSE in plain space, of the regressor on its kind of rows."""
        used = np.flatnonzero(self.regression_rows(rows))
        error = part.predict(self.X[self.rows[used]]) + self.margins[margin][used] - self.encode(self.y[used])
        return float(np.mean(np.abs(error)) if self.space == "log" else np.sqrt(np.mean(error**2)))

    def quick_loss(self, margin: str, inner: np.ndarray, outer: np.ndarray) -> float:
        """What a short LightGBM run loses with this margin."""
        quick = replace(self.settings, rounds=self.settings.screening_rounds, learning_rate=0.15, objective="l2")
        return self.loss(self.fit_part("lightgbm", margin, inner, quick), margin, outer)

    def choose(
        self, inner: np.ndarray, outer: np.ndarray, allowed: Sequence[str]
    ) -> tuple[dict[str, float], str, str, tuple[Part, Part | None]]:
        """Scores of all candidates, the best one's name and margin, and its fit on the inner rows."""
        margins = list(self.margins)
        scores: dict[str, float] = {}
        fits: dict[tuple[str, str], tuple[Part, Part | None]] = {}

        def attempt(candidate: str, margin: str) -> float:
            fits[candidate, margin] = self.fit(candidate, margin, inner)
            loss = self.loss(fits[candidate, margin][0], margin, outer)
            scores[candidate + ("+margin" if margin else "")] = loss
            return loss

        boosters = [b for b in BOOSTERS if b in allowed]
        best_margin = margins[-1]
        if boosters:
            losses = {m: self.quick_loss(m, inner, outer) for m in margins}
            best_margin = min(reversed(margins), key=lambda m: losses[m] * (1 if m else MARGIN_IS_WORTH))
            for booster in boosters:
                attempt(booster, best_margin)
            if "mean" in allowed and {"lightgbm", "xgboost"} <= set(boosters):
                pair = [fits[b, best_margin] for b in ("lightgbm", "xgboost")]
                fits["mean", best_margin] = mean_of([p[0] for p in pair]), pair[0][1]
                scores["mean" + ("+margin" if best_margin else "")] = self.loss(
                    fits["mean", best_margin][0], best_margin, outer
                )
        for margin in margins:
            if "ridge" in allowed:
                attempt("ridge", margin)
        if "roofline" in allowed and len(margins) > 1:
            attempt("roofline", margins[1])
        if "constant" in allowed:
            attempt("constant", "")
        label = min(scores, key=lambda s: scores[s])
        candidate, margin = label.removesuffix("+margin"), margins[1] if label.endswith("+margin") else ""
        return scores, candidate, margin, fits[candidate, margin]


def useful_columns(X: Float32, names: tuple[str, ...]) -> Int32:
    """Columns that can tell rows apart, ascending. Left out are: constants; what is not 0 in under 0.5 % of the rows;
    `x_log` beside `x` (same order, and ridge takes logarithms itself); and copies of an earlier column."""
    some = np.count_nonzero(X, axis=0)
    candidates = np.flatnonzero((X.max(axis=0) > X.min(axis=0)) & (some >= max(2, len(X) // 200)))
    known = set(names)
    kept = [c for c in candidates if not (names[c].endswith("_log") and names[c].removesuffix("_log") in known)]
    first: dict[bytes, int] = {}
    for block in np.array_split(kept, -(-len(kept) // 64)) if kept else []:
        for column, values in zip(block, np.ascontiguousarray(X[:, block].T), strict=True):
            first.setdefault(hashlib.blake2b(values, digest_size=16).digest(), int(column))
    return np.array(sorted(first.values()), np.int32)


def on_columns(part: Part, kept: np.ndarray) -> Part:
    """A function fitted on `X[:, kept]`, made to read `X` itself."""
    linear = part.linear
    if linear is not None:
        linear = replace(linear, columns=kept[linear.columns].astype(np.int32))
    return Part(part.base, part.forest.renumbered(kept.astype(np.int32)), linear)
