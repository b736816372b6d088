"""The literature's models behind one shape: tune, fit and predict a fold, answer a single query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from irgauge.benchmarks.literature_data import CONTEXT_GROUPS, Data, Floats, Rows
from irgauge.benchmarks.literature_fit import Configuration, Fitted, Scale, fit, padded, predict
from irgauge.benchmarks.literature_networks import NETWORKS
from irgauge.benchmarks.literature_ranking import RANKING_CONFIGURATIONS, Ranking, fit_ranking
from irgauge.benchmarks.literature_tokens import Tokens, Vocabulary, tokens_of
from irgauge.data.splits import Split, group_folds
from irgauge.featurize.featurizer import main_features
from irgauge.featurize.reader import read
from irgauge.models.train import matrix

LONGEST: Mapping[str, int | None] = {"bag_fc": None, "conv1d": 384, "lstm": 384, "transformer": 128}
"""Tokens of a record that a network sees, the first ones; None: all."""
CONFIGURATIONS: Mapping[str, tuple[Configuration, ...]] = {
    "bag_fc": (Configuration(128, 3e-3), Configuration(256, 3e-3), Configuration(256, 1e-3)),
    "conv1d": (Configuration(32, 5e-3), Configuration(32, 2e-3), Configuration(64, 3e-3)),
    "lstm": (Configuration(32, 5e-3), Configuration(48, 3e-3), Configuration(64, 3e-3)),
    "transformer": (Configuration(32, 3e-3), Configuration(32, 1e-3), Configuration(64, 1e-3)),
}
_TUNING_SHARE = 0.25
"""Of a fit's time, for each configuration tried."""
_TUNING_FOLDS = 10
RANKED = ("latency_ns", "instructions_executed")
"""Targets that AutoTVM's model orders variants by; lower is better for all."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions for the test rows of a fold."""

    rows: Rows
    values: Floats
    """Shape (n_rows, n_targets), in the targets' units but neither rounded nor cut; NaN: not predicted."""
    facts: Mapping[str, float]
    """Seconds of processor time, epochs or rounds, and more of the kind."""


@dataclass(frozen=True, eq=False)
class Single:
    """A model that answers one query after the other."""

    prepare: Callable[[str], Any]
    """Text to what the model reads."""
    answer: Callable[[Any], object]
    """That to the values of all its targets."""
    n_bytes: int
    """Float32 parameters of a network, the stored form of trees."""


@dataclass(frozen=True)
class NetworkRival:
    """A network over one kind of token, for all targets at once."""

    model: str
    tokens: str
    seconds: float
    """Processor time of a fit."""
    seed: int
    ranks_only = False

    @property
    def name(self) -> str:
        return f"{self.model}/{self.tokens}"

    def tune(self, data: Data, train: Rows) -> dict[str, Any]:
        """The configuration that loses least on held-out programs of these training rows, in a short run each."""
        held_out = _held_out_programs(data, train, self.seed)
        losses = {}
        for configuration in CONFIGURATIONS[self.model]:
            seconds = self.seconds * _TUNING_SHARE
            fitted, *_ = self._fit(data, train[~held_out], train[held_out], configuration, seconds)
            losses[configuration] = fitted.loss
        return _choice(losses, asdict)

    def fit(self, data: Data, split: Split, configuration: Mapping[str, Any]) -> Outcome:
        """Learn from a fold's training rows and predict its test rows."""
        train, valid = data.validation(split.name, split.train_index, self.seed)
        fitted, scale, vocabulary, sequences = self._fit(
            data, train, valid, Configuration(**configuration), self.seconds
        )
        facts = {
            "seconds": fitted.seconds,
            "epochs": fitted.epochs,
            "validation_loss": fitted.loss,
            "vocabulary": vocabulary.size,
        }
        return Outcome(split.test_index, scale.decode(predict(fitted.network, sequences, split.test_index)), facts)

    def truncated(self, data: Data) -> float:
        """Share of the records whose end the network does not see."""
        longest = LONGEST[self.model]
        return 0.0 if longest is None else float(np.mean([len(s) > longest for s in data.tokens[self.tokens]]))

    def single(self, data: Data, split: Split, configuration: Mapping[str, Any]) -> Single:
        """An untrained network with a trained one's vocabulary: weights change neither time nor size."""
        train, _ = data.validation(split.name, split.train_index, self.seed)
        vocabulary, scale = self._vocabulary(data, train), Scale.of(data.targets, data.y[train])
        network = NETWORKS[self.model](vocabulary.size, len(data.targets), Configuration(**configuration).width).eval()

        def answer(tokens: torch.Tensor) -> Floats:
            with torch.no_grad():
                return scale.decode(network(tokens).numpy().astype(np.float64))

        return Single(
            lambda text: padded([self._encode(vocabulary, tokens_of(read(text), self.tokens))]),
            answer,
            4 * sum(p.numel() for p in network.parameters()),
        )

    def _vocabulary(self, data: Data, train: Rows) -> Vocabulary:
        tokens = data.tokens[self.tokens]
        return Vocabulary.of((tokens[i] for i in train), (data.program_id[i] for i in train))

    def _encode(self, vocabulary: Vocabulary, tokens: Sequence[str]) -> Tokens:
        return vocabulary.encode(tokens[: LONGEST[self.model]])

    def _fit(
        self, data: Data, train: Rows, valid: Rows, configuration: Configuration, seconds: float
    ) -> tuple[Fitted, Scale, Vocabulary, list[Tokens]]:
        vocabulary = self._vocabulary(data, train)
        sequences = [self._encode(vocabulary, tokens) for tokens in data.tokens[self.tokens]]
        scale = Scale.of(data.targets, data.y[train])
        labels = scale.encode(data.y)
        fitted = fit(
            self.model, configuration, vocabulary.size, sequences, labels, train, valid, seconds=seconds, seed=self.seed
        )
        return fitted, scale, vocabulary, sequences


@dataclass(frozen=True)
class RankingRival:
    """AutoTVM's model: an order of a program's variants by each of `RANKED`, from our loop features."""

    seed: int
    name = "autotvm_rank/context"
    ranks_only = True

    def tune(self, data: Data, train: Rows) -> dict[str, Any]:
        """The configuration that orders held-out programs of these training rows best, latency alone."""
        losses = [self._fit(data, RANKED[0], train, c).loss for c in RANKING_CONFIGURATIONS]
        return _choice(dict(enumerate(losses)), lambda i: dict(RANKING_CONFIGURATIONS[i]))

    def fit(self, data: Data, split: Split, configuration: Mapping[str, Any]) -> Outcome:
        """Learn from a fold's training rows and order its test rows."""
        values = np.full((len(split.test_index), len(data.targets)), np.nan)
        rankings = self._rankings(data, split.train_index, configuration)
        for name, ranking in rankings.items():
            values[:, data.column(name)] = ranking.predict(data.context[split.test_index])
        facts = {
            "seconds": sum(r.seconds for r in rankings.values()),
            "rounds": float(np.mean([r.rounds for r in rankings.values()])),
            "validation_loss": float(np.mean([r.loss for r in rankings.values()])),
        }
        return Outcome(split.test_index, values, facts)

    def truncated(self, data: Data) -> float:
        """Features are of whole programs."""
        return 0.0

    def single(self, data: Data, split: Split, configuration: Mapping[str, Any]) -> Single:
        """The trained trees of all `RANKED` targets."""
        rankings = self._rankings(data, split.train_index, configuration).values()
        return Single(
            lambda text: matrix([main_features(read(text), CONTEXT_GROUPS)], data.context_names),
            lambda x: [ranking.predict(x) for ranking in rankings],
            sum(len(r.booster[: r.rounds].save_raw("ubj")) for r in rankings),
        )

    def _rankings(self, data: Data, train: Rows, configuration: Mapping[str, Any]) -> dict[str, Ranking]:
        return {name: self._fit(data, name, train, configuration) for name in RANKED}

    def _fit(self, data: Data, target: str, train: Rows, configuration: Mapping[str, Any]) -> Ranking:
        y = data.y[:, data.column(target)]
        train = train[np.isfinite(y[train])]
        programs = [data.program_id[i] for i in train]
        held_out = _held_out_programs(data, train, self.seed)
        return fit_ranking(data.context[train], y[train], programs, held_out, configuration, self.seed)


Rival = NetworkRival | RankingRival


def _held_out_programs(data: Data, train: Rows, seed: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Mask of a tenth of the rows: whole programs."""
    return np.asarray(group_folds([data.program_id[i] for i in train], _TUNING_FOLDS, seed) == 0)


def _choice(losses: Mapping[Any, float], plain: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    best = min(losses, key=lambda c: losses[c])
    return {"chosen": plain(best), "tried": [{**plain(c), "loss": loss} for c, loss in losses.items()]}
