"""How a network of the literature learns: all targets at once, in a fixed time of one core, from training rows."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss

from irgauge.benchmarks.literature_networks import NETWORKS
from irgauge.benchmarks.literature_tokens import PADDING, Tokens
from irgauge.data.targets import Target

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

BATCH = 32
_SORTED_AT_ONCE = 30
"""Batches whose rows are sorted by length together, so that little of a batch is padding."""
_WEIGHT_DECAY = 0.01
_LONGEST_GRADIENT = 1.0
_HUBER = 0.1
"""Standard deviations up to which the loss is a square, beyond it is an absolute value."""
_WARM_UP = 0.05
"""Share of the time in which the learning rate rises."""
MOST_EPOCHS, PATIENCE = 60, 8
_PLAIN_UP_TO = 64.0


@dataclass(frozen=True)
class Configuration:
    """What is tuned."""

    width: int
    """Of all hidden layers and the embedding."""
    learning_rate: float
    """The largest; it rises for a twentieth of the time and falls to 0 along a cosine."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Labels in the space that is learned: logarithms where they pass 64 and are no share, then mean 0, deviation 1.

    Arrays of shape (n_targets,), from the training rows.
    """

    offset: Floats
    """Added before the logarithm, 0 where there is none: 1 for whole numbers and times, else 0.1, as our models do."""
    mean: Floats
    deviation: Floats
    low: Floats
    high: Floats
    """Least and largest standardised label; a prediction is kept between them."""

    @classmethod
    def of(cls, targets: Sequence[Target], y: Floats) -> Scale:
        """`y`: training labels, shape (n_rows, n_targets), NaN where there is none; each target has one at least."""
        grows = np.array([t.kind != "share" for t in targets]) & (np.nanmax(y, axis=0) > _PLAIN_UP_TO)
        offset = np.where(grows, [1.0 if t.whole or t.kind == "time" else 0.1 for t in targets], 0.0)
        z = _logarithm(y, offset)
        mean, deviation = np.nanmean(z, axis=0), np.nanstd(z, axis=0)
        deviation = np.where(deviation > 0, deviation, 1.0)
        z = (z - mean) / deviation
        return cls(offset, mean, deviation, np.nanmin(z, axis=0), np.nanmax(z, axis=0))

    def encode(self, y: Floats) -> Floats:
        return np.asarray((_logarithm(y, self.offset) - self.mean) / self.deviation)

    def decode(self, z: Floats) -> Floats:
        """Standardised predictions in the targets' units, not yet rounded."""
        plain = np.clip(z, self.low, self.high) * self.deviation + self.mean
        return np.where(self.offset > 0, np.exp(np.where(self.offset > 0, plain, 0)) - self.offset, plain)


def _logarithm(y: Floats, offset: Floats) -> Floats:
    return np.where(offset > 0, np.log(np.where(offset > 0, y + offset, 1.0)), y)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A network with the weights of its best check, and how it got there."""

    network: nn.Module
    loss: float
    """On the validation rows."""
    epochs: float
    """Passes over the training rows until training stopped."""
    seconds: float
    """Processor time."""


def padded(sequences: Sequence[Tokens]) -> Tensor:
    """Rows of one length, shape (n_rows, longest)."""
    tokens = np.full((len(sequences), max(map(len, sequences))), PADDING, np.int64)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(tokens)


def batches(lengths: Rows, rows: Rows, rng: np.random.Generator) -> Iterator[Rows]:
    """The rows once, in batches of similar lengths, in a random order."""
    order = rng.permutation(rows)
    found = []
    for start in range(0, len(order), BATCH * _SORTED_AT_ONCE):
        part = order[start : start + BATCH * _SORTED_AT_ONCE]
        part = part[np.argsort(lengths[part], kind="stable")]
        found += [part[i : i + BATCH] for i in range(0, len(part), BATCH)]
    for i in rng.permutation(len(found)):
        yield found[i]


def masked_loss(z: Tensor, labels: Tensor) -> Tensor:
    """Mean Huber loss over the labels that exist; NaN stands for a missing one."""
    known = ~torch.isnan(labels)
    return smooth_l1_loss(z[known], labels[known], beta=_HUBER)


def fit(
    name: str,
    configuration: Configuration,
    vocabulary: int,
    sequences: Sequence[Tokens],
    labels: Floats,
    train: Rows,
    valid: Rows,
    *,
    seconds: float,
    seed: int,
) -> Fitted:
    """Train a network until its time is over, `MOST_EPOCHS` are done, or `PATIENCE` checks have brought nothing.

    Parameters
    ----------
    vocabulary : numbers that tokens may have
    labels : standardised, shape (n_rows, n_targets), NaN where missing
    train, valid : rows to learn from, and rows to check on after each epoch
    seconds : of processor time, the checks included; the learning rate falls with it, so other machines give other
        weights
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 4])
    network = NETWORKS[name](vocabulary, labels.shape[1], configuration.width)
    optimizer = torch.optim.AdamW(network.parameters(), configuration.learning_rate, weight_decay=_WEIGHT_DECAY)
    lengths = np.array([len(s) for s in sequences])
    target = torch.from_numpy(labels.astype(np.float32))
    best, kept, since, steps = math.inf, network.state_dict(), 0, 0
    steps_an_epoch = -(-len(train) // BATCH)
    start = time.process_time()
    progress = 0.0
    while progress < 1 and since < PATIENCE:
        network.train()
        for rows in batches(lengths, train, rng):
            progress = max((time.process_time() - start) / seconds, steps / (steps_an_epoch * MOST_EPOCHS))
            if progress >= 1:
                break
            share = min(1.0, progress / _WARM_UP) * (1 + math.cos(math.pi * progress)) / 2
            optimizer.param_groups[0]["lr"] = configuration.learning_rate * max(share, 0.01)
            optimizer.zero_grad()
            masked_loss(network(padded([sequences[i] for i in rows])), target[rows]).backward()
            nn.utils.clip_grad_norm_(network.parameters(), _LONGEST_GRADIENT)
            optimizer.step()
            steps += 1
        loss = float(masked_loss(torch.from_numpy(predict(network, sequences, valid)), target[valid].double()))
        since += 1
        if loss < best:
            best, kept, since = loss, copy.deepcopy(network.state_dict()), 0
    network.load_state_dict(kept)
    return Fitted(network.eval(), best, steps / steps_an_epoch, time.process_time() - start)


def predict(network: nn.Module, sequences: Sequence[Tokens], rows: Rows) -> Floats:
    """Standardised predictions of some rows, shape (n_rows, n_targets)."""
    network.eval()
    order = np.argsort([len(sequences[i]) for i in rows], kind="stable")
    parts = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
    with torch.no_grad():
        z = np.concatenate([network(padded([sequences[i] for i in rows[part]])).numpy() for part in parts])
    return z[np.argsort(order)].astype(np.float64)
