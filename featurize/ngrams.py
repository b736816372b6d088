"""Feature group `ngrams`: runs of operations in block order, and along def-use chains (producer>consumer)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .function_view import FunctionView
from .ops import safe_name

FEATURES: dict[str, tuple[str, str]] = {
    "ngram.edges": ("def-use edges between operations of the function", "count"),
    "ngram.distinct": ("different 2-grams in block order", "count"),
}
_CHAIN_LIMIT = 200_000


def op_ngrams(ops: Sequence[str], n: int) -> Counter[str]:
    """Count runs of `n` consecutive op names: (["a", "b", "a"], 2) -> {"a>b": 1, "b>a": 1}."""
    return Counter([">".join(ops[i : i + n]) for i in range(len(ops) - n + 1)])


def ngrams(view: FunctionView) -> dict[str, float]:
    """`ngram/a>b`, `ngram/a>b>c` in block order; `chain/a>b`, `chain/a>b>c` along def-use edges."""
    pairs: Counter[str] = Counter()
    triples: Counter[str] = Counter()
    for stream in view.block_streams:
        names = [safe_name(n.name) for n in stream]
        pairs.update(op_ngrams(names, 2))
        triples.update(op_ngrams(names, 3))
    edges: Counter[str] = Counter()
    chains: Counter[str] = Counter()
    seen = 0
    for node in view.nodes:
        if not node.producers:
            continue
        consumer = safe_name(node.name)
        for producer in node.producers:
            tail = f"{safe_name(producer.name)}>{consumer}"
            edges[tail] += 1
            if producer.producers and seen < _CHAIN_LIMIT:
                seen += len(producer.producers)
                for first in producer.producers:
                    chains[f"{safe_name(first.name)}>{tail}"] += 1
    out = {"ngram.edges": float(sum(edges.values())), "ngram.distinct": float(len(pairs))}
    for prefix, counter in (("ngram/", pairs), ("ngram/", triples), ("chain/", edges), ("chain/", chains)):
        for gram, count in counter.items():
            out[prefix + gram] = float(count)
    return out
