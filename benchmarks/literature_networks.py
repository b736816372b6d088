"""The literature's networks, small: padded tokens in, one number for each target out.

All take integers of shape (n_rows, length), `PADDING` behind the end of each row, and return float32 of shape
(n_rows, n_targets). Padding changes nothing: it is masked out of counts, convolutions, maxima and attention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from irgauge.benchmarks.literature_tokens import PADDING

_DROPOUT = 0.1


def _head(inputs: int, width: int, n_targets: int) -> nn.Sequential:
    """Two fully connected layers and the output."""
    return nn.Sequential(
        nn.Linear(inputs, width), nn.LayerNorm(width), nn.ReLU(), nn.Dropout(_DROPOUT),
        nn.Linear(width, width), nn.ReLU(), nn.Dropout(_DROPOUT),
        nn.Linear(width, n_targets),
    )  # fmt: skip


def _highest(states: Tensor, mask: Tensor) -> Tensor:
    """The largest value of each column over the tokens of a row: (n_rows, length, width) -> (n_rows, width)."""
    return states.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)


class BagOfWords(nn.Module):
    """log1p of how often each token occurs, then fully connected layers."""

    def __init__(self, vocabulary: int, n_targets: int, width: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.head = _head(vocabulary, width, n_targets)

    def forward(self, tokens: Tensor) -> Tensor:
        counts = torch.zeros(len(tokens), self.vocabulary)
        counts.scatter_add_(1, tokens, (tokens != PADDING).float())
        return self.head(torch.log1p(counts))


class Conv1D(nn.Module):
    """Embedding, two convolutions over five tokens each, the maximum over the sequence, fully connected layers."""

    def __init__(self, vocabulary: int, n_targets: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PADDING)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(2))
        self.head = _head(width, width, n_targets)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = tokens != PADDING
        states = self.embedding(tokens).transpose(1, 2)
        for convolution in self.convolutions:
            states = torch.relu(convolution(states)) * mask[:, None, :]
        return self.head(_highest(states.transpose(1, 2), mask))


class Lstm(nn.Module):
    """Embedding, one LSTM layer, its last output and the maximum of all over the sequence, fully connected layers."""

    def __init__(self, vocabulary: int, n_targets: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PADDING)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = _head(2 * width, width, n_targets)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = tokens != PADDING
        states, _ = self.lstm(self.embedding(tokens))  # what comes behind a row's end cannot reach its outputs
        last = states[torch.arange(len(tokens)), mask.sum(dim=1) - 1]
        return self.head(torch.cat([last, _highest(states, mask)], dim=1))


class Transformer(nn.Module):
    """Embedding of token and position, two encoder layers of four heads, the maximum, fully connected layers."""

    def __init__(self, vocabulary: int, n_targets: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PADDING)
        self.register_buffer("rates", 10_000.0 ** (-torch.arange(0, width, 2) / width), persistent=False)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = _head(width, width, n_targets)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = tokens != PADDING
        angles = torch.arange(tokens.shape[1])[:, None] * self.rates
        positions = torch.cat([angles.sin(), angles.cos()], dim=1)
        states = self.encoder(self.embedding(tokens) + positions, src_key_padding_mask=~mask)
        return self.head(_highest(states, mask))


NETWORKS: Mapping[str, Callable[[int, int, int], nn.Module]] = {
    "bag_fc": BagOfWords,
    "conv1d": Conv1D,
    "lstm": Lstm,
    "transformer": Transformer,
}
"""Called with the size of the vocabulary, the number of targets and the width."""
