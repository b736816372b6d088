"""Feature group `ngrams`: runs of operations in block order, and along def-use chains (producer>consumer)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from .function_view import FunctionView
from .ops import safe_name

FEATURES: dict[str, tuple[str, str]] = {
    "ngram.edges": ("def-use edges between operations of the function", "count"),
    "ngram.distinct": ("different 2-grams in block order", "count"),
}
_CHAIN_LIMIT = 200_000


def op_ngrams(ops: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Runs of `n` consecutive op names: (["a", "b", "a"], 2) -> [("a", "b"), ("b", "a")]."""
    return list(zip(*[ops[i:] for i in range(n)], strict=False))


@lru_cache(maxsize=65536)
def _feature(prefix: str, gram: tuple[str, ...]) -> str:
    return prefix + ">".join([safe_name(name) for name in gram])


def ngrams(view: FunctionView) -> dict[str, float]:
    """`ngram/a>b`, `ngram/a>b>c` in block order; `chain/a>b`, `chain/a>b>c` along def-use edges."""
    pairs: list[tuple[str, ...]] = []
    triples: list[tuple[str, ...]] = []
    for stream in view.block_streams:
        names = [node.name for node in stream]
        pairs += op_ngrams(names, 2)
        triples += op_ngrams(names, 3)
    edges: list[tuple[str, ...]] = []
    chains: list[tuple[str, ...]] = []
    for node in view.nodes:
        consumer = node.name
        for producer in node.producers:
            middle = producer.name
            edges.append((middle, consumer))
            if producer.producers and len(chains) < _CHAIN_LIMIT:
                chains += [(first.name, middle, consumer) for first in producer.producers]
    out: dict[str, float] = {}
    for grams in (pairs, triples):
        for gram, count in Counter(grams).items():
            name = _feature("ngram/", gram)
            out[name] = out.get(name, 0.0) + count
        if grams is pairs:
            distinct = float(len(out))
    for grams in (edges, chains):
        for gram, count in Counter(grams).items():
            name = _feature("chain/", gram)
            out[name] = out.get(name, 0.0) + count
    out["ngram.edges"] = float(len(edges))
    out["ngram.distinct"] = distinct
    return out
