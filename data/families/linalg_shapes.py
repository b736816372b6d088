"""Layer shapes of real networks, and how they are scaled to a volume of work.

Every table row names the network and the layer it comes from. The shapes are public knowledge: they follow from the
hyperparameters of each network's paper (widths, heads, strides, image and sequence lengths).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "ATTENTION",
    "CONVOLUTIONS",
    "DEPTHWISE",
    "EMBEDDINGS",
    "FEATURE_MAPS",
    "GEMMS",
    "POOLING",
    "TOKENS",
    "TOWERS",
    "VOLUMES",
    "Attention",
    "Convolution",
    "Embedding",
    "FeatureMap",
    "Gemm",
    "Tokens",
    "Tower",
    "fit",
]


@dataclass(frozen=True)
class Gemm:
    """C[m, n] = sum over k of A[m, k] B[k, n]."""

    layer: str
    m: int
    n: int
    k: int


@dataclass(frozen=True)
class Attention:
    """Scores and weighted values of all heads of one layer."""

    layer: str
    heads: int
    queries: int
    keys: int
    width: int
    """Of one head."""
    kv_heads: int
    """Heads that share keys and values; equal to `heads` without grouped-query attention."""


@dataclass(frozen=True)
class Convolution:
    """A convolution over `channels` of an image to `filters`, by the size of its output."""

    layer: str
    height: int
    width: int
    channels: int
    filters: int
    kernel: int
    stride: int = 1
    dilation: int = 1
    groups: int = 1


@dataclass(frozen=True)
class FeatureMap:
    """Channels of an image inside a network."""

    layer: str
    channels: int
    height: int
    width: int


@dataclass(frozen=True)
class Tokens:
    """Activations of a transformer layer: tokens by width, and the width inside its MLP."""

    layer: str
    tokens: int
    width: int
    hidden: int


@dataclass(frozen=True)
class Embedding:
    """A table of rows, and how it is looked up: `bags` results, each from `per_bag` rows."""

    layer: str
    rows: int
    width: int
    bags: int
    per_bag: int


@dataclass(frozen=True)
class Tower:
    """Widths of an MLP's layers for a batch."""

    layer: str
    batch: int
    widths: tuple[int, ...]


GEMMS = (
    Gemm("bert-base/query", 128, 768, 768),
    Gemm("bert-base/ffn-up", 128, 3072, 768),
    Gemm("bert-base/ffn-down", 128, 768, 3072),
    Gemm("bert-large/ffn-up", 384, 4096, 1024),
    Gemm("gpt2/qkv", 1024, 2304, 768),
    Gemm("gpt2/projection", 1024, 768, 768),
    Gemm("gpt2/lm-head", 4, 50257, 768),
    Gemm("gpt2-xl/ffn-up", 256, 6400, 1600),
    Gemm("llama-7b/query", 512, 4096, 4096),
    Gemm("llama-7b/gate", 16, 11008, 4096),
    Gemm("llama-7b/down", 8, 4096, 11008),
    Gemm("llama-3-8b/key", 64, 1024, 4096),
    Gemm("llama-3-8b/lm-head", 2, 128256, 4096),
    Gemm("mixtral/expert", 32, 14336, 4096),
    Gemm("vit-b16/patch-embedding", 196, 768, 768),
    Gemm("vit-b16/qkv", 197, 2304, 768),
    Gemm("vit-h14/mlp-up", 257, 5120, 1280),
    Gemm("swin-t/qkv", 49, 288, 96),
    Gemm("resnet-50/fc", 32, 1000, 2048),
    Gemm("resnet-50/conv2-im2col", 3136, 64, 576),
    Gemm("resnet-50/conv5-im2col", 49, 512, 4608),
    Gemm("resnet-18/stem-im2col", 12544, 64, 147),
    Gemm("mobilenet-v2/expand", 3136, 144, 24),
    Gemm("mobilenet-v2/project", 784, 32, 192),
    Gemm("mobilenet-v2/last", 49, 1280, 320),
    Gemm("unet-sd/query", 4096, 320, 320),
    Gemm("unet-sd/text-key", 77, 320, 768),
    Gemm("dlrm/bottom-0", 128, 512, 13),
    Gemm("dlrm/bottom-2", 128, 64, 256),
    Gemm("dlrm/top-0", 128, 1024, 479),
    Gemm("dlrm/top-last", 2048, 1, 256),
    Gemm("whisper-tiny/ffn-up", 1500, 1536, 384),
    Gemm("deepspeech/rnn", 7, 5124, 700),
    Gemm("mlp-mixer/token-mixing", 512, 384, 196),
)

ATTENTION = (
    Attention("bert-base", 12, 128, 128, 64, 12),
    Attention("bert-large", 16, 384, 384, 64, 16),
    Attention("gpt2/prefill", 12, 1024, 1024, 64, 12),
    Attention("gpt2/decode", 12, 1, 1024, 64, 12),
    Attention("llama-7b/prefill", 32, 512, 512, 128, 32),
    Attention("llama-7b/decode", 32, 1, 2048, 128, 32),
    Attention("llama-3-8b/prefill", 32, 256, 256, 128, 8),
    Attention("llama-3-8b/decode", 32, 1, 4096, 128, 8),
    Attention("vit-b16", 12, 197, 197, 64, 12),
    Attention("vit-h14", 16, 257, 257, 80, 16),
    Attention("swin-t/window", 3, 49, 49, 32, 3),
    Attention("unet-sd/self", 8, 1024, 1024, 40, 8),
    Attention("unet-sd/cross", 8, 4096, 77, 40, 8),
    Attention("whisper-tiny/cross", 6, 24, 1500, 64, 6),
    Attention("t5-small", 8, 96, 96, 64, 8),
    Attention("falcon-7b/decode", 71, 1, 1024, 64, 1),
)

CONVOLUTIONS = (
    Convolution("resnet-50/stem", 112, 112, 3, 64, 7, 2),
    Convolution("resnet-50/conv2-1x1", 56, 56, 64, 256, 1),
    Convolution("resnet-50/conv2-3x3", 56, 56, 64, 64, 3),
    Convolution("resnet-50/conv3-down", 28, 28, 128, 128, 3, 2),
    Convolution("resnet-50/conv4-3x3", 14, 14, 256, 256, 3),
    Convolution("resnet-50/conv5-3x3", 7, 7, 512, 512, 3),
    Convolution("resnet-50/shortcut", 28, 28, 256, 512, 1, 2),
    Convolution("resnet-18/conv2", 56, 56, 64, 64, 3),
    Convolution("mobilenet-v1/stem", 112, 112, 3, 32, 3, 2),
    Convolution("mobilenet-v2/expand", 56, 56, 24, 144, 1),
    Convolution("mobilenet-v2/project", 14, 14, 384, 64, 1),
    Convolution("vit-b16/patches", 14, 14, 3, 768, 16, 16),
    Convolution("vit-b32/patches", 7, 7, 3, 768, 32, 32),
    Convolution("unet/down-1", 284, 284, 64, 64, 3),
    Convolution("unet/down-2", 138, 138, 64, 128, 3),
    Convolution("unet/bottleneck", 28, 28, 512, 1024, 3),
    Convolution("unet-sd/in", 64, 64, 4, 320, 3),
    Convolution("unet-sd/down", 32, 32, 320, 320, 3, 2),
    Convolution("deeplab/atrous", 33, 33, 256, 256, 3, 1, 6),
    Convolution("deeplab/atrous-2", 28, 28, 512, 256, 3, 1, 2),
    Convolution("inception/5x5", 35, 35, 48, 64, 5),
    Convolution("vgg-16/conv1", 224, 224, 64, 64, 3),
    Convolution("alexnet/conv1", 55, 55, 3, 96, 11, 4),
    Convolution("resnext-50/conv3", 28, 28, 256, 256, 3, 1, 1, 32),
    Convolution("resnext-50/conv2", 56, 56, 128, 128, 3, 1, 1, 32),
    Convolution("shufflenet/grouped", 28, 28, 240, 60, 1, 1, 1, 3),
    Convolution("alexnet/conv2", 27, 27, 96, 256, 5, 1, 1, 2),
)

DEPTHWISE = (
    Convolution("mobilenet-v1/dw1", 112, 112, 32, 1, 3),
    Convolution("mobilenet-v1/dw2", 56, 56, 64, 1, 3, 2),
    Convolution("mobilenet-v1/dw6", 14, 14, 512, 1, 3),
    Convolution("mobilenet-v2/dw3", 28, 28, 144, 1, 3, 2),
    Convolution("mobilenet-v2/dw16", 7, 7, 960, 1, 3),
    Convolution("mobilenet-v3/dw5x5", 14, 14, 240, 1, 5),
    Convolution("efficientnet-b0/dw5x5", 28, 28, 144, 1, 5, 2),
    Convolution("convnext-t/dw7x7", 56, 56, 96, 1, 7),
    Convolution("convnext-t/dw7x7-last", 7, 7, 768, 1, 7),
    Convolution("xception/middle", 19, 19, 728, 1, 3),
    Convolution("conformer/dw31", 1, 201, 144, 1, 31),
)

POOLING = (
    Convolution("resnet-50/stem", 56, 56, 64, 64, 3, 2),
    Convolution("unet/down", 140, 140, 128, 128, 2, 2),
    Convolution("vgg-16/pool5", 7, 7, 512, 512, 2, 2),
    Convolution("inception/branch", 35, 35, 192, 192, 3, 1),
    Convolution("alexnet/pool1", 27, 27, 96, 96, 3, 2),
    Convolution("squeezenet/pool", 13, 13, 256, 256, 3, 2),
    Convolution("mobilenet-v2/global", 1, 1, 1280, 1280, 7, 1),
    Convolution("resnet-50/global", 1, 1, 2048, 2048, 7, 1),
    Convolution("spp/pool5", 13, 13, 256, 256, 5, 1),
)

FEATURE_MAPS = (
    FeatureMap("resnet-50/stem", 64, 112, 112),
    FeatureMap("resnet-50/conv3", 512, 28, 28),
    FeatureMap("resnet-50/conv5", 2048, 7, 7),
    FeatureMap("mobilenet-v2/block4", 32, 28, 28),
    FeatureMap("mobilenet-v2/last", 1280, 7, 7),
    FeatureMap("unet/down-1", 64, 568, 568),
    FeatureMap("unet-sd/up", 640, 32, 32),
    FeatureMap("convnext-t/stage-3", 384, 14, 14),
    FeatureMap("efficientnet-b0/input", 3, 224, 224),
    FeatureMap("deeplab/aspp", 256, 33, 33),
    FeatureMap("inception/mixed", 288, 35, 35),
)

TOKENS = (
    Tokens("bert-base", 128, 768, 3072),
    Tokens("bert-large", 384, 1024, 4096),
    Tokens("gpt2/prefill", 1024, 768, 3072),
    Tokens("gpt2/decode", 1, 768, 3072),
    Tokens("gpt2-xl", 256, 1600, 6400),
    Tokens("llama-7b/prefill", 128, 4096, 11008),
    Tokens("llama-7b/decode", 1, 4096, 11008),
    Tokens("llama-3-8b/batch", 16, 4096, 14336),
    Tokens("tinyllama", 64, 2048, 5632),
    Tokens("vit-b16", 197, 768, 3072),
    Tokens("vit-h14", 257, 1280, 5120),
    Tokens("swin-t/window", 49, 96, 384),
    Tokens("unet-sd", 1024, 320, 1280),
    Tokens("whisper-tiny", 1500, 384, 1536),
    Tokens("t5-small", 96, 512, 2048),
    Tokens("phi-2", 33, 2560, 10240),
)

EMBEDDINGS = (
    Embedding("dlrm/small", 10000, 16, 128, 1),
    Embedding("dlrm/multi-hot", 100000, 64, 64, 20),
    Embedding("dlrm/criteo", 200000, 128, 32, 27),
    Embedding("gpt2/tokens", 50257, 768, 64, 1),
    Embedding("bert-base/tokens", 30522, 768, 128, 1),
    Embedding("word2vec/cbow", 30000, 300, 64, 10),
    Embedding("fasttext/bag", 40000, 100, 128, 33),
    Embedding("wide-and-deep", 5000, 32, 256, 7),
)

TOWERS = (
    Tower("dlrm/bottom", 128, (13, 512, 256, 64)),
    Tower("dlrm/top", 128, (479, 1024, 1024, 512, 256, 1)),
    Tower("wide-and-deep", 256, (160, 1024, 512, 256)),
    Tower("ncf", 512, (64, 32, 16, 8)),
    Tower("nerf", 1024, (63, 256, 256, 128, 4)),
    Tower("autoencoder", 64, (784, 128, 32, 128, 784)),
    Tower("mnist", 32, (784, 256, 10)),
    Tower("critic", 1, (17, 400, 300, 1)),
)

VOLUMES = (300.0, 2e7)
"""Innermost iterations a program is scaled to, from the smallest to the largest; drawn evenly in log scale."""


def fit(
    rng: random.Random, sizes: Mapping[str, int], volume: float, *, free: Sequence[str] | None = None
) -> dict[str, int]:
    """Sizes in the proportions of a layer whose product is at most about `volume`.

    Only the `free` ones (by default all) shrink, by one factor, so aspect ratios stay; small sizes (channels of an
    image, a batch of one) stay as they are while they can. What was odd stays odd, multiples of eight stay multiples
    of eight where they are large enough. Nothing grows.
    """
    made = dict(sizes)
    shrinking = [name for name in (free if free is not None else sizes) if sizes[name] > 4]
    if len(shrinking) > 1 and rng.random() < 0.25:  # a smaller batch or fewer channels, the rest as it is
        shrinking = rng.sample(shrinking, len(shrinking) - 1)
    for floor in (3, 1):
        for _ in range(8):
            excess = math.prod(made.values()) / max(volume, 1.0)
            open_ones = [name for name in shrinking if made[name] > floor]
            if excess <= 1.3 or not open_ones:
                break
            factor = excess ** (1 / len(open_ones))
            for name in open_ones:
                made[name] = max(floor, _like(rng, made[name] / factor, sizes[name]))
        shrinking = [name for name in sizes if free is None or name in free]
    return made


def _like(rng: random.Random, about: float, original: int) -> int:
    """A whole number near `about` with the parity, or the factor of eight, of the original."""
    size = max(1, round(about))
    if original & (original - 1) == 0 and rng.random() < 0.4:
        return 1 << max(0, round(math.log2(size)))
    if original % 8 == 0:
        return 8 * round(size / 8) if size >= 12 else size
    if original % 2:
        return size if size % 2 else size + (1 if rng.random() < 0.5 or size == 0 else -1)
    return size
