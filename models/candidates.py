"""The regressors that compete for each target, behind one interface: matrix and learned-space labels in, `Part` out.

Every booster is fitted on one thread with a fixed number of rounds and fixed seeds, then read into flat arrays
(`trees`) and compared with the library's own predictions on some of its training rows; the library object is dropped.
Same data, seed and versions therefore give the same model whatever number of processes trains the targets. Rounds are
fixed rather than stopped early: with shrinkage and sampling the error is flat in the number of rounds here, and
nothing needs to be held back to find the end.

xgboost, lightgbm and scikit-learn are imported where they are used. Only training needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from . import trees
from .target_model import Linear, Part, constant, squash
from .trees import Boosted, Float32, Float64, Int32, concatenate, empty_forest


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters: the defaults; a track (`recipes.settings_of`) and a target's recipe differ in some."""

    rounds: int = 150
    learning_rate: float = 0.12
    leaves: int = 127
    depth: int = 16
    """Of LightGBM and HistGradientBoosting, which grow leaf by leaf."""
    xgboost_depth: int = 8
    min_rows_in_leaf: int = 5
    l2: float = 1.0
    columns_per_tree: float = 0.6
    objective: str = "auto"
    """What LightGBM minimises: "l2", "l1" or "huber" (in log space); "auto" is Huber's loss for labels in log space
    that lie near one another, else l2."""
    huber_delta: float = 0.5
    """Errors above this count linearly, not squared: some programs behave like no other."""
    rows_per_tree: float = 0.8
    bins: int = 63
    ridge_l2: float = 3.0
    screened_columns: int = 120
    """Features kept per target before the contest, by their gain in a short LightGBM run on the training rows."""
    screening_rows: int = 5000
    """About so many rows are screened, every so-manieth where there are more: neighbours are variants of a program."""
    screening_rounds: int = 25
    screening_leaves: int = 31
    contest_rows: int = 3000
    """Training rows, of whole programs, on which the candidates are compared; the chosen one learns from all."""
    folds: int = 4
    """Folds of whole families (of programs where there are few families) inside the training rows; the first one
    chooses."""
    calibration_folds: int = 2
    """How many of them give errors on unseen families for the intervals."""
    calibration_rounds: float = 1.0
    """Share of the rounds that their fits take. On unseen families half of them err as much as all (docs/tuning.md)."""
    gate_rounds: int = 100
    order_rounds: int = 60
    order_leaves: int = 31
    order_weight: float = 0.3
    """How far a step of the learned order moves what variants are ranked by, in log space."""

    def shortened(self, share: float) -> Settings:
        """With this share of the rounds."""
        return replace(self, rounds=ceil(share * self.rounds), gate_rounds=ceil(share * self.gate_rounds))

    def quick(self) -> Settings:
        """Few, fast-learning trees: for tests, where accuracy does not matter."""
        return replace(self, rounds=25, learning_rate=0.3, screening_rounds=10, gate_rounds=20, order_rounds=10)


BOOSTERS = ("lightgbm", "xgboost", "hist")
CANDIDATES = (*BOOSTERS, "mean", "ridge", "roofline", "constant")
"""In the order in which equal scores are decided. "mean" is the mean of LightGBM and XGBoost."""
CONTEST = tuple(name for name in CANDIDATES if name != "mean")
"""Those compared by default: the mean is twice as large, and no better than one booster with as many leaves."""

_LEAF_BITS = 11
_CHECKED_ROWS = 64


def fit_candidate(name: str, X: Float32, z: Float64, seed: int, settings: Settings, *, robust: bool = False) -> Part:
    """Fit one candidate.

    Parameters
    ----------
    name : one of `CANDIDATES`
    X : float32 array of shape (n_rows, n_features), finite
    z : shape (n_rows,), labels in the learned space with the margin taken off
    robust : the objective "auto" is Huber's loss (meant for log space)

    Raises
    ------
    ValueError
        An unknown name, or no rows.
    RuntimeError
        The library's trees, read into arrays, do not predict what the library predicts.
    """
    if not len(z) or len(X) != len(z):
        raise ValueError(f"{name}: {len(X)} rows and {len(z)} labels")
    if name in ("roofline", "constant") or len(z) < 20 or np.all(z == z[0]):
        # The roofline is the margin times one factor; without a margin the same thing is a constant. Median: outliers
        # have no say.
        return constant(float(np.median(z)))
    if name == "mean":
        return mean_of([fit_candidate(b, X, z, seed, settings, robust=robust) for b in ("lightgbm", "xgboost")])
    if name == "ridge":
        return fit_ridge(X, z, settings.ridge_l2)
    fit: Mapping[str, Callable[[Float32, Float64, int, Settings], Boosted]] = {
        "lightgbm": _lightgbm,
        "xgboost": _xgboost,
        "hist": _hist,
    }
    if name not in fit:
        raise ValueError(f"unknown candidate {name!r}; known: {', '.join(CANDIDATES)}")
    if settings.objective == "auto":
        settings = replace(settings, objective="huber" if robust else "l2")
    return _part(fit[name](X, z, seed, settings))


def _part(boosted: Boosted) -> Part:
    """Leaves are rounded to 11 significant bits, far below what they are sure of: they take a third of the room."""
    return Part(boosted.base, boosted.forest.rounded(_LEAF_BITS))


def mean_of(parts: list[Part]) -> Part:
    """The mean of several fitted functions without linear terms, as one."""
    n = len(parts)
    return Part(sum(p.base for p in parts) / n, concatenate([p.forest.scaled(1 / n) for p in parts]))


def fit_gate(X: Float32, nonzero: np.ndarray, seed: int, settings: Settings) -> Part:
    """Classifier for "the label is not 0": log-odds. LightGBM's binary objective; a constant where one class has
    under 10 rows."""
    n_yes = int(nonzero.sum())
    if min(n_yes, len(nonzero) - n_yes) < 10:
        return constant(float(np.log((n_yes + 0.5) / (len(nonzero) - n_yes + 0.5))))
    settings = replace(settings, rounds=settings.gate_rounds, objective="binary")
    return _part(_lightgbm(X, nonzero.astype(np.float64), seed, settings))


def fit_order(X: Float32, z: Float64, groups: np.ndarray, seed: int, settings: Settings) -> Part:
    """What tells the variants of one program apart in order, whatever their size: LambdaMART over programs.

    Parameters
    ----------
    z : shape (n_rows,), labels in the learned space
    groups : program of each row, shape (n_rows,)

    Returns
    -------
    Part whose value grows with the label's place among the variants.

    References
    ----------
    Burges: "From RankNet to LambdaRank to LambdaMART", MSR-TR-2010-82.
    """
    order = np.argsort(groups, kind="stable")
    sizes = np.unique(groups[order], return_counts=True)[1]
    grades = np.concatenate([_grades(part) for part in np.split(z[order], np.cumsum(sizes)[:-1])])
    settings = replace(
        settings,
        rounds=settings.order_rounds,
        leaves=settings.order_leaves,
        learning_rate=0.1,
        min_rows_in_leaf=20,
        objective="lambdarank",
    )
    boosted = _lightgbm(np.ascontiguousarray(X[order]), grades, seed, settings, group=sizes)
    weight = -settings.order_weight
    return _part(Boosted(weight * boosted.base, boosted.forest.scaled(weight)))


_GRADES = 30


def _grades(z: Float64) -> Float64:
    """Places of one program's variants, the smallest label highest, brought to 0 .. 30 where there are more."""
    places = np.unique(-z, return_inverse=True)[1].ravel()
    most = int(places.max(initial=0))
    return np.floor(places * (_GRADES / most)) if most > _GRADES else places.astype(np.float64)


def fit_ridge(X: Float32, z: Float64, l2: float) -> Part:
    """Ridge on standardised squashed features, in closed form; columns that never vary are left out."""
    squashed = squash(X.astype(np.float64))
    center, spread = squashed.mean(axis=0), squashed.std(axis=0)
    columns = np.flatnonzero(spread > 1e-9)
    if not len(columns):
        return constant(float(z.mean()))
    Z = (squashed[:, columns] - center[columns]) / spread[columns]
    gram = Z.T @ Z
    gram[np.diag_indices_from(gram)] += l2 * len(z) / 100
    weight = np.linalg.solve(gram, Z.T @ (z - z.mean())) / spread[columns]
    low, high = squashed[:, columns].min(axis=0), squashed[:, columns].max(axis=0)
    return Part(float(z.mean()), empty_forest(), Linear(columns.astype(np.int32), weight, center[columns], low, high))


def screen_columns(X: Float32, z: Float64, seed: int, settings: Settings) -> Int32:
    """The columns worth learning from, ascending: those with most gain in a short LightGBM run, constant columns
    never."""
    varying = np.flatnonzero(X.max(axis=0) > X.min(axis=0)).astype(np.int32) if len(X) else np.zeros(0, np.int32)
    if len(varying) <= settings.screened_columns or len(z) < 20 or np.all(z == z[0]):
        return varying
    booster = _train_lightgbm(
        X[:, varying],
        z,
        seed,
        replace(
            settings,
            rounds=settings.screening_rounds,
            leaves=settings.screening_leaves,
            learning_rate=0.15,
            objective="l2",
        ),
    )
    gain = np.asarray(booster.feature_importance(importance_type="gain"))
    best = np.argsort(-gain, kind="stable")[: settings.screened_columns]
    return np.sort(varying[best[gain[best] > 0]]).astype(np.int32)


def _train_lightgbm(X: Float32, z: Float64, seed: int, settings: Settings, group: np.ndarray | None = None) -> Any:
    import lightgbm

    params = {
        "objective": _LIGHTGBM_OBJECTIVES.get(settings.objective, settings.objective),
        "label_gain": list(range(_GRADES + 1)),
        "alpha": settings.huber_delta,
        "num_leaves": settings.leaves,
        "max_depth": settings.depth,
        "learning_rate": settings.learning_rate,
        "min_data_in_leaf": settings.min_rows_in_leaf,
        "lambda_l2": settings.l2,
        "feature_fraction": settings.columns_per_tree,
        "bagging_fraction": settings.rows_per_tree,
        "bagging_freq": 1,
        "max_bin": settings.bins,
        "seed": seed,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(
        X, z, group=group, params={"max_bin": settings.bins, "num_threads": 1, "verbosity": -1}, free_raw_data=True
    )
    return lightgbm.train(params, data, settings.rounds)


_LIGHTGBM_OBJECTIVES = {"auto": "regression", "l2": "regression", "l1": "regression_l1"}


def _lightgbm(X: Float32, z: Float64, seed: int, settings: Settings, group: np.ndarray | None = None) -> Boosted:
    booster = _train_lightgbm(X, z, seed, settings, group)
    boosted = trees.from_lightgbm(booster)
    rows = X[:_CHECKED_ROWS]
    return _same("LightGBM", boosted, rows, booster.predict(rows, raw_score=True, num_threads=1), 1e-9)


def _xgboost(X: Float32, z: Float64, seed: int, settings: Settings) -> Boosted:
    import xgboost

    params = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "max_depth": settings.xgboost_depth,
        "eta": settings.learning_rate,
        "min_child_weight": settings.min_rows_in_leaf,
        "lambda": settings.l2,
        "colsample_bytree": settings.columns_per_tree,
        "subsample": settings.rows_per_tree,
        "max_bin": settings.bins,
        "base_score": float(z.mean()),
        "seed": seed,
        "nthread": 1,
        "verbosity": 0,
    }
    booster = xgboost.train(params, xgboost.QuantileDMatrix(X, z, nthread=1, max_bin=settings.bins), settings.rounds)
    boosted = trees.from_xgboost(booster)
    rows = X[:_CHECKED_ROWS]
    # XGBoost adds up in float32.
    tolerance = 1e-5 * max(1.0, float(np.abs(z).max()))
    return _same(
        "XGBoost", boosted, rows, booster.predict(xgboost.DMatrix(rows, nthread=1), output_margin=True), tolerance
    )


def _hist(X: Float32, z: Float64, seed: int, settings: Settings) -> Boosted:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    estimator = HistGradientBoostingRegressor(
        max_iter=settings.rounds,
        learning_rate=settings.learning_rate,
        max_leaf_nodes=settings.leaves,
        max_depth=settings.depth,
        min_samples_leaf=settings.min_rows_in_leaf,
        l2_regularization=settings.l2,
        max_features=settings.columns_per_tree,
        max_bins=settings.bins,
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(1):
        estimator.fit(X, z)
    rows = X[:_CHECKED_ROWS]
    return _same(
        "HistGradientBoosting", trees.from_hist_gradient_boosting(estimator), rows, estimator.predict(rows), 1e-9
    )


def _same(library: str, boosted: Boosted, rows: Float32, theirs: Any, tolerance: float) -> Boosted:
    """Give back what was read, once it is known to predict what the library predicts."""
    off = float(np.max(np.abs(boosted.base + boosted.forest.predict(rows) - np.asarray(theirs)), initial=0.0))
    if off > tolerance * max(1.0, float(np.max(np.abs(theirs), initial=0.0))):
        raise RuntimeError(f"trees read from this release of {library} predict something else: off by {off:g}")
    return boosted
