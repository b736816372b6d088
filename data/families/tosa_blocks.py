"""The blocks that networks are made of. Each takes a network and an activation and returns what follows."""

from __future__ import annotations

from collections.abc import Sequence

from .tosa_text import Net, Size, Tensor

__all__ = [
    "attention_block",
    "classifier",
    "conv",
    "csp_block",
    "dense_unit",
    "fire",
    "gated_unit",
    "grouped_bottleneck",
    "inception",
    "inverted_residual",
    "mixer_block",
    "next_block",
    "residual",
    "separable",
    "shuffle_unit",
    "squeeze_excite",
    "temporal_unit",
]


def conv(n: Net, x: Tensor, *, channels: int, kernel: Size = 3, stride: Size = 1, act: str | None) -> Tensor:
    return n.conv2d(x, channels, kernel, stride, act=act)


def separable(n: Net, x: Tensor, *, channels: int, stride: Size = 1, act: str, kernel: Size = 3) -> Tensor:
    """Depthwise, then pointwise."""
    return n.conv2d(n.depthwise(x, kernel, stride, act=act), channels, 1, act=act)


def residual(
    n: Net, x: Tensor, *, channels: int, stride: Size = 1, kernel: Size = 3, bottleneck: int = 0, act: str = "relu"
) -> Tensor:
    """Two convolutions, or three with a narrow middle, and the input added; projected where the shapes differ."""
    if bottleneck:
        y = n.conv2d(x, channels, 1, act=act)
        y = n.conv2d(y, channels, kernel, stride, act=act)
        y = n.conv2d(y, channels * bottleneck, 1)
    else:
        y = n.conv2d(n.conv2d(x, channels, kernel, stride, act=act), channels, kernel)
    skip = x if x.shape == y.shape else n.conv2d(x, y.channels, 1, stride)
    return n.add(skip, y, act)


def inverted_residual(
    n: Net,
    x: Tensor,
    *,
    channels: int,
    expand: int = 0,
    inner: int = 0,
    kernel: Size = 3,
    stride: Size = 1,
    squeeze: bool = False,
    act: str,
) -> Tensor:
    """Wide depthwise middle, `expand` times the input or `inner` channels, between two pointwise layers."""
    inner = inner or x.channels * expand
    y = x if inner == x.channels else n.conv2d(x, inner, 1, act=act)
    y = n.depthwise(y, kernel, stride, act=act)
    if squeeze:
        y = squeeze_excite(n, y, max(4, inner // 4))
    y = n.conv2d(y, channels, 1)
    return n.add(x, y) if x.shape == y.shape else y


def squeeze_excite(n: Net, x: Tensor, inner: int) -> Tensor:
    """Each channel scaled by what a small network makes of all channels' means."""
    gate = n.conv2d(n.global_pool(x), inner, 1, act="relu")
    return n.mul(x, n.conv2d(gate, x.channels, 1, act="sigmoid"))


def classifier(n: Net, x: Tensor, *, classes: int, hidden: int = 0, softmax: bool) -> Tensor:
    """The mean of the image, then one or two dense layers."""
    x = n.reshape(n.global_pool(x), (x.shape[0], x.channels))
    if hidden:
        x = n.dense(x, hidden, act="hard-swish")
    x = n.dense(x, classes)
    return n.softmax(x) if softmax else x


def grouped_bottleneck(n: Net, x: Tensor, *, channels: int, groups: int) -> Tensor:
    y = n.conv2d(x, channels, 1, act="relu")
    part = channels // groups
    shape = (*y.shape[:3], part)
    parts = [n.conv2d(n.slice(y, (0, 0, 0, at * part), shape), part, 3, act="relu") for at in range(groups)]
    return n.add(x, n.conv2d(n.concat(parts), x.channels, 1), "relu")


def fire(n: Net, x: Tensor, *, squeeze: int, expand: int) -> Tensor:
    """A narrow layer, then two wide ones side by side."""
    x = n.conv2d(x, squeeze, 1, act="relu")
    return n.concat([n.conv2d(x, expand, 1, act="relu"), n.conv2d(x, expand, 3, act="relu")])


def inception(n: Net, x: Tensor, *, sizes: Sequence[int]) -> Tensor:
    """Four branches; `sizes` are the channels of 1 x 1, before and of 3 x 3, before and of 5 x 5, behind the pool."""
    one, before_three, three, before_five, five, pool = sizes
    return n.concat(
        [
            n.conv2d(x, one, 1, act="relu"),
            n.conv2d(n.conv2d(x, before_three, 1, act="relu"), three, 3, act="relu"),
            n.conv2d(n.conv2d(x, before_five, 1, act="relu"), five, 5, act="relu"),
            n.conv2d(n.max_pool(x, 3, 1, padding="same"), pool, 1, act="relu"),
        ]
    )


def dense_unit(n: Net, x: Tensor, *, growth: int) -> Tensor:
    return n.concat([x, n.conv2d(n.conv2d(x, 4 * growth, 1, act="relu"), growth, 3, act="relu")])


def shuffle_unit(n: Net, x: Tensor) -> Tensor:
    half = x.channels // 2
    shape = (*x.shape[:3], half)
    kept, y = (n.slice(x, (0, 0, 0, at), shape) for at in (0, half))
    y = n.conv2d(n.depthwise(n.conv2d(y, half, 1, act="relu"), 3), half, 1, act="relu")
    joined = n.reshape(n.concat([kept, y]), (*x.shape[:3], 2, half))
    return n.reshape(n.transpose(joined, (0, 1, 2, 4, 3)), x.shape)


def next_block(n: Net, x: Tensor, *, kernel: int, norm: bool) -> Tensor:
    y = n.depthwise(x, kernel)
    y = n.layer_norm(y) if norm else y
    y = n.conv2d(n.conv2d(y, 4 * x.channels, 1, act="gelu"), x.channels, 1)
    return n.add(x, y)


def csp_block(n: Net, x: Tensor, *, channels: int, count: int, act: str) -> Tensor:
    """Half of the channels through small residuals, the other half past them."""
    half = max(4, channels // 2)
    y = n.conv2d(x, half, 1, act=act)
    for _ in range(count):
        y = n.add(y, n.conv2d(n.conv2d(y, half, 1, act=act), half, 3, act=act))
    return n.conv2d(n.concat([y, n.conv2d(x, half, 1, act=act)]), channels, 1, act=act)


def attention_block(n: Net, x: Tensor, *, heads: int, wide: int, norm: bool, act: str) -> Tensor:
    """Self-attention and a dense pair `wide` times as wide, each with the input added and normalized before."""
    _, tokens, channels = x.shape
    depth = channels // heads
    y = n.layer_norm(x) if norm else x
    q, k, v = (n.reshape(n.dense(y, channels), (tokens, heads, depth)) for _ in range(3))
    scores = n.matmul(n.transpose(q, (1, 0, 2)), n.transpose(k, (1, 2, 0)))
    mixed = n.matmul(n.softmax(scores), n.transpose(v, (1, 0, 2)))
    joined = n.reshape(n.transpose(mixed, (1, 0, 2)), x.shape)
    x = n.add(x, n.dense(joined, channels))
    y = n.layer_norm(x) if norm else x
    return n.add(x, n.dense(n.dense(y, wide * channels, act=act), channels))


def mixer_block(n: Net, x: Tensor, *, inside: tuple[int, int], norm: bool) -> Tensor:
    """Dense pairs over the tokens and over the channels, `inside` numbers wide."""
    y = n.transpose(n.layer_norm(x) if norm else x, (0, 2, 1))
    y = n.dense(n.dense(y, inside[0], act="gelu"), x.shape[1])
    x = n.add(x, n.transpose(y, (0, 2, 1)))
    y = n.layer_norm(x) if norm else x
    return n.add(x, n.dense(n.dense(y, inside[1], act="gelu"), x.channels))


def gated_unit(n: Net, x: Tensor, *, dilation: int, kernel: int) -> Tensor:
    """Two dilated convolutions along time, one the gate of the other."""
    window = min(dilation, max(1, (x.height - 1) // max(1, kernel - 1)))
    value, gate = (n.conv2d(x, x.channels, (kernel, 1), dilation=(window, 1), act=act) for act in ("tanh", "sigmoid"))
    return n.add(x, n.conv2d(n.mul(value, gate), x.channels, 1))


def temporal_unit(n: Net, x: Tensor, *, kernel: int, count: int) -> Tensor:
    y = x
    for _ in range(count):
        y = separable(n, y, channels=x.channels, kernel=(kernel, 1), act="relu")
    return n.add(x, y, "relu")
