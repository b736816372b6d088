"""Single layers and what directly stands around them, at realistic and at awkward sizes."""

from __future__ import annotations

from collections.abc import Sequence

from .tosa_draw import Draw, Kind, families_of
from .tosa_text import Size, Tensor

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "tosa_layers"


def _image(d: Draw, low: int = 4, high: int = 96, channels: tuple[int, int] = (1, 384)) -> Tensor:
    batch = d.pick(*[1] * 12, 2, 3)
    return d.net.input(batch, *d.resolution(low, high), d.channels(*channels))


def _kernel(d: Draw, x: Tensor) -> Size:
    size = d.pick(1, 1, 3, 3, 3, 3, 5, 5, 7, 2, 4, 9, 11)
    kernel = d.pick(*[(size, size)] * 6, (1, size), (size, 1), (size, d.whole(1, 5)))
    return min(kernel[0], x.height), min(kernel[1], x.width)


def _stride(d: Draw) -> Size:
    return d.size(1, 1, 1, 2, 2, 3, (1, 2), (2, 1))


def conv2d(d: Draw) -> Sequence[Tensor]:
    """Convolutions; two of them now and then."""
    x = _image(d)
    for _ in range(d.pick(1, 1, 1, 2)):
        kernel = _kernel(d, x)
        dilation = 2 if d.chance(0.12) else 1
        padding = d.pick("same", "same", "valid") if dilation == 1 else "same"
        stride = _stride(d) if dilation == 1 else 1
        x = d.net.conv2d(x, d.channels(1, 384), kernel, stride, padding=padding, dilation=dilation, act=d.act())
    return [x]


def pointwise(d: Draw) -> Sequence[Tensor]:
    """1 x 1 convolutions, one to three."""
    x = _image(d, high=64, channels=(4, 512))
    for _ in range(d.whole(1, 3)):
        x = d.net.conv2d(x, d.channels(4, 512), 1, act=d.act())
    return [x]


def depthwise(d: Draw) -> Sequence[Tensor]:
    """Depthwise convolutions, alone or before a pointwise one."""
    x = _image(d)
    multiplier = d.pick(*[1] * 8, 2) if x.channels > 1 else d.pick(1, 4, 8)
    x = d.net.depthwise(
        x, _kernel(d, x), _stride(d), multiplier=multiplier, padding=d.pick("same", "same", "valid"), act=d.act()
    )
    if d.chance(0.5):
        x = d.net.conv2d(x, d.channels(), 1, act=d.act())
    return [x]


def transpose_conv2d(d: Draw) -> Sequence[Tensor]:
    """Layers that enlarge an image, with a convolution before or behind now and then."""
    x = _image(d, high=40, channels=(4, 96))
    if d.chance(0.3):
        x = d.net.conv2d(x, d.channels(4, 96), act=d.act())
    square = [((2, 2), (k, k)) for k in (2, 2, 3, 3, 4, 4)]
    stride, kernel = d.pick(*square, ((1, 2), (1, 3)), ((2, 1), (3, 1)))
    x = d.net.transpose_conv2d(x, d.channels(4, 96), kernel, stride, act=d.act())
    if d.chance(0.3):
        x = d.net.conv2d(x, d.channels(1, 64), act=d.act())
    return [x]


def dense(d: Draw) -> Sequence[Tensor]:
    """Fully connected layers, one to four, of one row or a batch."""
    x = d.net.input(d.pick(1, 1, 1, 1, 2, 5, 16, d.whole(2, 64)), d.channels(8, 2048))
    for _ in range(d.whole(1, 4)):
        x = d.net.dense(x, d.channels(2, 1024), act=d.act())
    return [x]


def pooling(d: Draw) -> Sequence[Tensor]:
    """Maxima and means of windows, or of the whole image, before or behind a convolution now and then."""
    x = _image(d, low=6)
    if d.chance(0.4):
        x = d.net.conv2d(x, d.channels(4, 128), d.pick(1, 3), act=d.act())
    kind = d.pick("max", "max", "avg", "avg", "global")
    if kind == "global":
        x = d.net.global_pool(x)
    else:
        kernel = d.size(2, 2, 3, 3, 5, (1, 2), (2, 1))
        pool = d.net.max_pool if kind == "max" else d.net.avg_pool
        x = pool(x, kernel, d.pick(1, 2, 2, 2, 3), padding=d.pick("valid", "same"))
    if d.chance(0.3):
        x = d.net.conv2d(x, d.channels(4, 128), 1, act=d.act())
    return [x]


def elementwise(d: Draw) -> Sequence[Tensor]:
    """Sums, differences, products and extrema of activations, in chains, with broadcasting now and then."""
    n = d.net
    x = _image(d, high=64, channels=(1, 160))
    for _ in range(d.whole(1, 4)):
        other = n.input(*x.shape) if d.chance(0.7) else n.input(x.shape[0], 1, 1, x.channels)
        match d.pick("add", "add", "sub", "mul", "mul", "maximum", "minimum"):
            case "add":
                x = n.add(x, other, d.act())
            case "sub":
                x = n.sub(x, other, d.act())
            case "mul":
                x = n.mul(x, other, d.act())
            case "maximum":
                x = n.maximum(x, other)
            case _:
                x = n.minimum(x, other)
    return [x]


def activation(d: Draw) -> Sequence[Tensor]:
    """Clamps, tables and rescaling, alone and in chains."""
    x = _image(d, high=64, channels=(1, 160))
    for _ in range(d.whole(1, 4)):
        kind = d.pick("rescale", "sigmoid", "relu", "relu6")
        x = d.net.rescale(x) if kind == "rescale" else d.net.activate(x, kind)
    return [x]


def reduction(d: Draw) -> Sequence[Tensor]:
    """Sums and maxima along a dimension, softmax and normalization, of sequences and images."""
    n = d.net
    x = n.input(d.pick(1, 1, 1, 2, 4), d.log_whole(4, 200), d.channels(8, 256))
    kind = d.pick("mean", "max", "softmax", "softmax", "norm", "norm")
    if d.chance(0.4):
        x = n.dense(x, d.channels(8, 128), act=d.act()) if x.shape[0] == 1 else x
    if kind == "mean":
        return [n.mean(x, d.pick(1, 2))]
    if kind == "max":
        return [n.reduce_max(x, d.pick(1, 2))]
    return [n.softmax(x) if kind == "softmax" else n.layer_norm(x)]


def data_movement(d: Draw) -> Sequence[Tensor]:
    """Concatenation, padding, slices, reshapes, transposes, resizing, mostly between two convolutions."""
    n = d.net
    x = _image(d, low=6, high=48, channels=(4, 96))
    if d.chance(0.6):
        x = n.conv2d(x, d.channels(4, 96), d.pick(1, 3), act=d.act())
    for _ in range(d.whole(1, 3)):
        match d.pick("concat", "pad", "slice", "reshape", "transpose", "resize", "resize"):
            case "concat":
                axis = d.pick(1, 2, 3, 3, 3)
                shape = list(x.shape)
                shape[axis] = d.whole(1, 2 * shape[axis])
                x = n.concat([x, n.input(*shape)], axis)
            case "pad":
                before, after = ([0, d.whole(0, 3), d.whole(0, 3), 0] for _ in range(2))
                x = n.pad(x, before, after)
            case "slice":
                start = [0, *(d.whole(0, size // 3) for size in x.shape[1:])]
                x = n.slice(x, start, [size - 2 * at for size, at in zip(x.shape, start, strict=True)])
            case "reshape":
                x = n.reshape(x, (x.shape[0], x.width, x.height, x.channels))
            case "transpose":
                x = n.transpose(x, d.pick((0, 2, 1, 3), (0, 3, 1, 2), (0, 1, 3, 2)))
            case _:
                factor = d.pick(2, 2, 2, 3, 4) if x.height < 40 else 2
                x = n.upsample(x, factor, d.pick("NEAREST_NEIGHBOR", "BILINEAR"))
    if d.chance(0.6):
        x = n.conv2d(x, d.channels(4, 96), d.pick(1, 3), act=d.act())
    return [x]


def matmul(d: Draw) -> Sequence[Tensor]:
    """Products of activations, by heads, alone or as attention scores with softmax."""
    n = d.net
    heads, rows, depth = d.pick(1, 1, 2, 3, 4, 8), d.log_whole(4, 200), d.channels(8, 128)
    a, b = n.input(heads, rows, depth), n.input(heads, d.log_whole(4, 200), depth)
    scores = n.matmul(a, n.transpose(b, (0, 2, 1)))
    if d.chance(0.5):
        return [scores]
    scores = n.softmax(scores) if d.chance(0.6) else scores
    return [n.matmul(scores, b)]


KINDS: dict[str, Kind] = {
    f"layer_{kind.__name__}": kind
    for kind in (
        conv2d,
        pointwise,
        depthwise,
        transpose_conv2d,
        dense,
        matmul,
        pooling,
        elementwise,
        activation,
        reduction,
        data_movement,
    )
}
_OFTEN = ("layer_conv2d", "layer_pointwise", "layer_depthwise", "layer_dense")
FAMILIES = (
    *families_of(ORIGIN, {name: KINDS[name] for name in _OFTEN}, 240),
    *families_of(ORIGIN, {name: kind for name, kind in KINDS.items() if name not in _OFTEN}, 100),
)
