"""Whole networks and runs of their blocks, each at other widths, depths, resolutions and numbers of classes.

The structures follow the papers and MLPerf Tiny's reference models; a family is one architecture, so that whole
architectures can be held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from .tosa_blocks import (
    attention_block,
    classifier,
    conv,
    csp_block,
    dense_unit,
    fire,
    gated_unit,
    grouped_bottleneck,
    inception,
    inverted_residual,
    mixer_block,
    next_block,
    residual,
    separable,
    shuffle_unit,
    temporal_unit,
)
from .tosa_draw import Block, Draw, Kind, families_of, some_blocks
from .tosa_text import Net, Tensor

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "tosa_networks"
NETWORKS_PER_FAMILY = 160

MOBILENET_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2))
"""Channels and stride of the layers before those that are repeated."""

Stage = tuple[int, int, int, int, int]
"""Expansion, channels, blocks, stride of the first, kernel."""

MOBILENET_V2: Sequence[Stage] = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 32, 3, 2, 3),
    (6, 64, 4, 2, 3),
    (6, 96, 3, 1, 3),
    (6, 160, 3, 2, 3),
    (6, 320, 1, 1, 3),
)
EFFICIENTNET: Sequence[Stage] = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)

MOBILENET_V3 = (
    (3, 16, 16, True, "relu", 2),
    (3, 72, 24, False, "relu", 2),
    (3, 88, 24, False, "relu", 1),
    (5, 96, 40, True, "hard-swish", 2),
    (5, 240, 40, True, "hard-swish", 1),
    (5, 240, 40, True, "hard-swish", 1),
    (5, 120, 48, True, "hard-swish", 1),
    (5, 144, 48, True, "hard-swish", 1),
    (5, 288, 96, True, "hard-swish", 2),
    (5, 576, 96, True, "hard-swish", 1),
)
"""Kernel, channels inside and outside, squeeze and excitation, activation, stride of each block."""


def _width(d: Draw, low: float = 0.25, high: float = 1.0) -> float:
    return d.pick(0.25, 0.35, 0.5, 0.75, 1.0) if d.chance(0.6) else d.rng.uniform(low, high)


def _run(d: Draw, shape: tuple[int, ...], blocks: Sequence[Block], whole: float = 0.4) -> list[Tensor]:
    return [some_blocks(d, shape, blocks, whole)]


# MLPerf Tiny


def resnet8(d: Draw) -> list[Tensor]:
    """Image classification on CIFAR-10."""
    width, size = d.near(16 * d.pick(0.5, 1, 1, 1.5, 2, 3), 4), d.pick(32, 32, 32, 24, 28, 48, d.whole(17, 64))
    blocks: list[Block] = [partial(conv, channels=width, kernel=3, act="relu")]
    for stage in range(d.pick(2, 3, 3, 3, 4)):
        for at in range(d.pick(1, 1, 1, 2, 3)):
            stride = 2 if stage and not at else 1
            blocks.append(partial(residual, channels=width << stage, stride=stride, kernel=3))
    blocks.append(partial(classifier, classes=d.pick(10, 10, 100, d.whole(2, 40)), softmax=d.chance(0.4)))
    return _run(d, (1, size, size, 3), blocks, 0.6)


def mobilenet_v1(d: Draw) -> list[Tensor]:
    """Visual wake words: 96 x 96 at a width of 0.25, and wider ones."""
    width, size = _width(d), d.pick(96, 96, 96, 128, 160, 192, 224, d.whole(50, 200))
    act = d.pick("relu", "relu6")
    blocks: list[Block] = [partial(conv, channels=d.near(32 * width, 4), kernel=3, stride=2, act=act)]
    blocks += [
        partial(separable, channels=d.near(channels * width, 4), stride=stride, act=act)
        for channels, stride in (*MOBILENET_V1, *[(512, 1)] * d.pick(1, 3, 5, 5), (1024, 2), (1024, 1))
    ]
    blocks.append(partial(classifier, classes=d.pick(2, 2, 10, 1000), softmax=d.chance(0.4)))
    return _run(d, (1, size, size, d.pick(3, 3, 1)), blocks)


def ds_cnn(d: Draw) -> list[Tensor]:
    """Keyword spotting on 49 x 10 features."""
    width = d.near(64 * d.pick(0.5, 1, 1, 1.5, 2.5, 4), 8)
    frames, bands = d.pick((49, 10), (49, 10), (49, 10), (98, 40), (25, 5), (d.whole(20, 100), d.whole(8, 40)))
    blocks: list[Block] = [partial(conv, channels=width, kernel=(10, 4), stride=d.size(2, (2, 1)), act="relu")]
    blocks += [partial(separable, channels=width, stride=1, act="relu") for _ in range(d.pick(2, 3, 4, 4, 4, 5, 6))]
    blocks.append(partial(classifier, classes=d.pick(12, 12, 36, d.whole(2, 40)), softmax=d.chance(0.5)))
    return _run(d, (1, frames, bands, 1), blocks, 0.7)


def autoencoder(d: Draw) -> list[Tensor]:
    """Anomaly detection: fully connected layers down to a few numbers and back."""
    n, scale = d.net, d.pick(1, 1, 0.5, 2, 3)
    outside, hidden, inside = d.near(640 * scale, 8), d.near(128 * scale, 8), d.pick(8, 8, 4, 16, d.whole(3, 32))
    depth = d.pick(2, 3, 4, 4, 5)
    x = n.input(d.pick(1, 1, 1, 1, 2, 5, d.whole(2, 32)), outside)
    for channels in [hidden] * depth + [inside] + [hidden] * depth:
        x = n.dense(x, channels, act="relu")
    return [n.dense(x, outside)]


# networks for images


def mobilenet_v2(d: Draw) -> list[Tensor]:
    width, size = _width(d), d.pick(96, 128, 160, 192, 224, d.whole(60, 200))
    blocks: list[Block] = [partial(conv, channels=d.near(32 * width, 8), kernel=3, stride=2, act="relu6")]
    blocks += _inverted(d, MOBILENET_V2, width)
    blocks.append(partial(conv, channels=d.near(1280 * min(width, 0.6), 8), kernel=1, act="relu6"))
    blocks.append(partial(classifier, classes=d.pick(10, 100, 1000), softmax=d.chance(0.3)))
    return _run(d, (1, size, size, 3), blocks, 0.3)


def _inverted(d: Draw, stages: Sequence[Stage], width: float) -> Iterator[Block]:
    """Blocks of one stage have the same channels, so that their inputs are added."""
    for expand, channels, count, stride, kernel in stages:
        outside = d.near(channels * width, 8)
        for at in range(count):
            first = stride if at == 0 else 1
            yield partial(inverted_residual, channels=outside, expand=expand, kernel=kernel, stride=first, act="relu6")


def mobilenet_v3(d: Draw) -> list[Tensor]:
    """The small one: squeeze and excitation, hard swish as a table."""
    width, size = _width(d), d.pick(96, 128, 160, 192, 224, d.whole(60, 200))
    blocks: list[Block] = [partial(conv, channels=d.near(16 * width, 8), kernel=3, stride=2, act="hard-swish")]
    outside = {channels: d.near(channels * width, 8) for _, _, channels, *_ in MOBILENET_V3}
    blocks += [
        partial(
            inverted_residual,
            channels=outside[channels],
            inner=d.near(inner * width, 8),
            kernel=kernel,
            squeeze=squeeze,
            stride=stride,
            act=act,
        )
        for kernel, inner, channels, squeeze, act, stride in MOBILENET_V3
    ]
    blocks.append(partial(conv, channels=d.near(576 * width, 8), kernel=1, act="hard-swish"))
    blocks.append(partial(classifier, classes=d.pick(10, 100, 1000), hidden=d.near(512 * width, 8), softmax=False))
    return _run(d, (1, size, size, 3), blocks, 0.3)


def efficientnet_lite(d: Draw) -> list[Tensor]:
    width, size = d.pick(0.3, 0.5, 0.75, 1.0), d.pick(96, 128, 160, 192, 224, d.whole(60, 200))
    blocks: list[Block] = [partial(conv, channels=d.near(32 * width, 8), kernel=3, stride=2, act="relu6")]
    blocks += _inverted(d, EFFICIENTNET, width)
    blocks.append(partial(conv, channels=d.near(1280 * min(width, 0.5), 8), kernel=1, act="relu6"))
    blocks.append(partial(classifier, classes=d.pick(10, 100, 1000), softmax=d.chance(0.3)))
    return _run(d, (1, size, size, 3), blocks, 0.25)


def resnet(d: Draw) -> list[Tensor]:
    """ResNet-18 to 50: plain blocks or bottlenecks."""
    bottleneck, width = d.chance(0.6), d.pick(0.25, 0.25, 0.5, 0.5, 1.0)
    size = d.pick(64, 96, 128, 160, 224, d.whole(50, 200))
    stem = d.near(64 * width, 8)

    def start(n: Net, x: Tensor) -> Tensor:
        return n.max_pool(conv(n, x, channels=stem, kernel=7, stride=2, act="relu"), 3, 2, padding="same")

    blocks: list[Block] = [start]
    for stage in range(d.pick(2, 3, 4)):
        block = partial(residual, channels=d.near((64 << stage) * width, 8), bottleneck=4 if bottleneck else 0)
        blocks += [partial(block, stride=2 if stage else 1), *[block] * d.whole(0, 2)]
    blocks.append(partial(classifier, classes=d.pick(10, 100, 1000), softmax=d.chance(0.3)))
    return _run(d, (1, size, size, 3), blocks, 0.3)


def resnext(d: Draw) -> list[Tensor]:
    """Bottlenecks whose middle works on groups of channels, as slices that are joined again."""
    size, groups = d.pick(14, 28, 32, 56, d.whole(9, 48)), d.pick(2, 2, 4, 4, 8)
    channels = groups * d.near(d.log_whole(16, 128) / groups, 2)
    blocks: list[Block] = [partial(conv, channels=channels, kernel=3, act="relu")]
    blocks += [partial(grouped_bottleneck, channels=channels, groups=groups) for _ in range(d.whole(1, 4))]
    return _run(d, (1, size, size, d.pick(3, 16, 32)), blocks, 0.6)


def vgg(d: Draw) -> list[Tensor]:
    """Plain 3 x 3 convolutions with pooling between."""
    size, width = d.pick(32, 48, 64, 96, d.whole(20, 112)), d.near(d.pick(8, 16, 32, 64), 4)
    blocks: list[Block] = []
    for stage in range(d.whole(2, 4)):
        channels = min(width << stage, 256)
        blocks += [partial(conv, channels=channels, kernel=3, act="relu") for _ in range(d.whole(1, 3))]
        blocks.append(lambda n, x: n.max_pool(x))
    blocks.append(partial(classifier, classes=d.pick(10, 100), hidden=d.near(128, 8), softmax=d.chance(0.3)))
    return _run(d, (1, size, size, 3), blocks)


def squeezenet(d: Draw) -> list[Tensor]:
    width, size = d.pick(0.5, 1, 1, 1.5), d.pick(48, 64, 96, 128, 224, d.whole(40, 160))

    def pooled(n: Net, x: Tensor) -> Tensor:
        return n.max_pool(x, 3, 2)

    blocks: list[Block] = [partial(conv, channels=d.near(64 * width, 8), kernel=3, stride=2, act="relu"), pooled]
    for at, squeeze in enumerate((16, 16, 32, 32, 48, 48, 64, 64)[: d.whole(3, 8)]):
        blocks.append(partial(fire, squeeze=d.near(squeeze * width, 4), expand=d.near(4 * squeeze * width, 8)))
        if at in (1, 3):
            blocks.append(pooled)
    blocks.append(partial(conv, channels=d.pick(10, 100, 1000), kernel=1, act="relu"))
    blocks.append(lambda n, x: n.global_pool(x))
    return _run(d, (1, size, size, 3), blocks)


def googlenet(d: Draw) -> list[Tensor]:
    """Inception modules: four branches that are joined."""
    size, width = d.pick(14, 28, 32, 56, d.whole(9, 60)), d.pick(0.25, 0.5, 1.0)
    blocks: list[Block] = [partial(conv, channels=d.near(64 * width, 8), kernel=3, act="relu")]
    for _ in range(d.whole(1, 4)):
        sizes = [d.near(about * width * d.rng.uniform(0.6, 1.6), 4) for about in (64, 96, 128, 16, 32, 32)]
        blocks.append(partial(inception, sizes=sizes))
        if d.chance(0.3):
            blocks.append(lambda n, x: n.max_pool(x, 3, 2, padding="same"))
    return _run(d, (1, size, size, d.pick(3, 32, 64)), blocks, 0.7)


def densenet(d: Draw) -> list[Tensor]:
    """Each unit's output joined to all before it, with transitions that halve."""
    size, growth = d.pick(16, 28, 32, 56, d.whole(10, 60)), d.pick(8, 12, 16, 24, 32)

    def transition(n: Net, x: Tensor) -> Tensor:
        return n.avg_pool(n.conv2d(x, max(8, x.channels // 2), 1, act="relu"))

    blocks: list[Block] = [partial(conv, channels=2 * growth, kernel=3, act="relu")]
    for _ in range(d.whole(1, 3)):
        blocks += [*[partial(dense_unit, growth=growth)] * d.whole(2, 4), transition]
    return _run(d, (1, size, size, 3), blocks, 0.7)


def shufflenet(d: Draw) -> list[Tensor]:
    """Half of the channels through a depthwise branch, then channels interleaved."""
    size, width = d.pick(14, 28, 32, 56, d.whole(8, 56)), 2 * d.near(d.log_whole(12, 116), 4)
    blocks: list[Block] = [partial(conv, channels=width, kernel=3, act="relu")]
    blocks += [shuffle_unit] * d.whole(1, 4)
    return _run(d, (1, size, size, d.pick(3, 24)), blocks, 0.7)


def convnext(d: Draw) -> list[Tensor]:
    """Depthwise 7 x 7, normalization, and a wide pair of pointwise layers."""
    size, width = d.pick(7, 14, 16, 28, d.whole(7, 40)), d.near(d.log_whole(24, 128), 8)
    blocks: list[Block] = [partial(conv, channels=width, kernel=d.pick(2, 4), stride=d.pick(2, 4), act=None)]
    kernel = d.pick(5, 7, 7)
    blocks += [partial(next_block, kernel=kernel, norm=d.chance(0.6)) for _ in range(d.whole(1, 3))]
    return _run(d, (1, 2 * size, 2 * size, 3), blocks, 0.6)


# what finds, cuts out and restores


def yolo(d: Draw) -> list[Tensor]:
    """A small backbone, a neck that goes up and down again, and heads at two or three scales."""
    n, width = d.net, d.near(d.pick(8, 12, 16, 24, 32), 4)
    size, act = 32 * d.pick(2, 3, 4, 5, 6, 7), d.pick("relu", "relu6", "leaky-relu", "silu")
    whole, count = d.chance(0.4), d.pick(1, 1, 2)
    scales = d.pick(2, 3, 3)
    if whole:
        x = conv(n, n.input(1, size, size, 3), channels=width, kernel=3, stride=2, act=act)
        levels = []
        for stage in range(4):
            x = conv(n, x, channels=width << (stage + 1), kernel=3, stride=2, act=act)
            x = csp_block(n, x, channels=width << (stage + 1), count=count, act=act)
            levels.append(x)
        levels = levels[-scales:]
    else:
        shallow = 4 - scales
        levels = [n.input(1, *[size >> (shallow + at + 2)] * 2, width << (shallow + at + 1)) for at in range(scales)]
    tops = [levels[-1]]
    for level in reversed(levels[:-1]):
        up = n.upsample(conv(n, tops[0], channels=level.channels, kernel=1, act=act))
        tops.insert(0, csp_block(n, n.concat([up, level]), channels=level.channels, count=count, act=act))
    outputs = [tops[0]]
    for level in tops[1:] if d.chance(0.7) else []:
        down = conv(n, outputs[-1], channels=outputs[-1].channels, kernel=3, stride=2, act=act)
        outputs.append(csp_block(n, n.concat([down, level]), channels=level.channels, count=count, act=act))
    anchors = 3 * (5 + d.pick(1, 2, 20, 80))
    return [n.conv2d(output, anchors, 1) for output in outputs]


def ssd(d: Draw) -> list[Tensor]:
    """Separable layers down to ever smaller images, a pair of heads on each, all boxes joined."""
    n, width = d.net, d.near(d.pick(16, 24, 32, 48, 64), 8)
    x = n.input(1, *d.resolution(16, 64), d.pick(3, 16, 32))
    x = conv(n, x, channels=width, kernel=3, stride=1, act="relu6")
    anchors, classes = d.pick(2, 3, 6), d.pick(2, 21, 91)
    boxes: list[Tensor] = []
    scores: list[Tensor] = []
    for _ in range(d.whole(2, 5)):
        x = separable(n, x, channels=min(256, d.near(x.channels * d.pick(1, 1.5, 2), 8)), stride=2, act="relu6")
        for found, size in ((boxes, 4), (scores, classes)):
            head = n.conv2d(x, anchors * size, d.pick(1, 3))
            found.append(n.reshape(head, (1, head.height * head.width * anchors, size)))
        if min(x.height, x.width) < 4:
            break
    return [n.concat(boxes, 1), n.concat(scores, 1)]


def unet(d: Draw) -> list[Tensor]:
    """Down with pooling, up with transposed convolutions or resizing, and skips across."""
    n, width, depth = d.net, d.near(d.log_whole(6, 32), 4), d.pick(1, 2, 2, 3)
    side = (1 << depth) * d.whole(3, 96 >> depth)
    x, skips = n.input(1, side, side, d.pick(1, 3)), []
    up = d.pick("transpose", "transpose", "nearest", "bilinear")
    convs = d.pick(1, 2)

    def level(x: Tensor, channels: int) -> Tensor:
        for _ in range(convs):
            x = n.conv2d(x, channels, 3, act="relu")
        return x

    for stage in range(depth):
        x = level(x, width << stage)
        skips.append(x)
        x = n.max_pool(x)
    x = level(x, width << depth)
    for stage in reversed(range(depth)):
        if up == "transpose":
            x = n.transpose_conv2d(x, width << stage, d.pick(2, 2, 3))
        else:
            x = n.upsample(x, 2, "BILINEAR" if up == "bilinear" else "NEAREST_NEIGHBOR")
        x = level(n.concat([x, skips[stage]]), width << stage)
    return [n.conv2d(x, d.pick(1, 2, 21), 1)]


def deeplab(d: Draw) -> list[Tensor]:
    """Parallel convolutions at several dilations, joined, projected and enlarged."""
    n, width = d.net, d.near(d.log_whole(8, 96), 4)
    x = n.input(1, *d.resolution(12, 48), d.near(d.log_whole(16, 160), 8))
    separate = d.chance(0.5)
    branches = [n.conv2d(x, width, 1, act="relu")]
    for dilation in d.pick((2, 4), (2, 4, 6), (6, 12), (3, 6, 9)):
        if separate:
            branch = n.conv2d(n.depthwise(x, 3, dilation=dilation, act="relu"), width, 1, act="relu")
        else:
            branch = n.conv2d(x, width, 3, dilation=dilation, act="relu")
        branches.append(branch)
    x = n.conv2d(n.concat(branches), width, 1, act="relu")
    x = n.conv2d(x, d.pick(2, 5, 21), 1)
    return [n.upsample(x, d.pick(2, 4), d.pick("NEAREST_NEIGHBOR", "BILINEAR")) if d.chance(0.6) else x]


def super_resolution(d: Draw) -> list[Tensor]:
    """FSRCNN and ESPCN: thin convolutions on a small image that end in one that is enlarged."""
    n, width = d.net, d.near(d.log_whole(8, 56), 4)
    x = n.input(1, *d.resolution(16, 96), d.pick(1, 3))
    x = n.conv2d(x, width, 5, act="relu")
    if d.chance(0.5):
        x = n.conv2d(x, d.near(width / 4, 4), 1, act="relu")
    for _ in range(d.whole(1, 5)):
        x = n.conv2d(x, x.channels, 3, act="relu")
    factor, colours = 2, d.pick(1, 3)
    if d.chance(0.4):
        return [n.transpose_conv2d(x, colours, 4, factor)]
    x = n.conv2d(x, colours * factor**2, 3)
    parts = n.reshape(x, (1, x.height, x.width, factor, factor, colours))
    mixed = n.transpose(parts, (0, 1, 3, 2, 4, 5))
    return [n.reshape(mixed, (1, factor * x.height, factor * x.width, colours))]


# sequences


def transformer(d: Draw) -> list[Tensor]:
    """Encoder blocks over a sequence: attention by heads, normalization, a pair of dense layers."""
    heads, depth = d.pick(1, 2, 3, 4), d.pick(8, 16, 24, 32, 48, 64)
    tokens = d.pick(16, 32, 49, 50, 64, 98, 128, d.whole(5, 150))
    act, norm = d.pick("gelu", "gelu", "relu"), d.chance(0.6)
    wide = d.pick(1, 2, 4)
    blocks: list[Block] = [
        partial(attention_block, heads=heads, wide=wide, norm=norm, act=act) for _ in range(d.pick(1, 1, 2))
    ]
    return _run(d, (1, tokens, heads * depth), blocks, 1.0)


def mlp_mixer(d: Draw) -> list[Tensor]:
    """Dense layers over the tokens, then over the channels."""
    tokens, channels = d.pick(16, 49, 64, 100, d.whole(8, 144)), d.near(d.log_whole(16, 192), 8)
    inside = (d.near(tokens * d.pick(0.5, 1, 2), 8), d.near(channels * d.pick(1, 2, 4), 8))
    norm = d.chance(0.5)
    blocks: list[Block] = [partial(mixer_block, inside=inside, norm=norm) for _ in range(d.whole(1, 3))]
    return _run(d, (1, tokens, channels), blocks, 0.7)


def tc_resnet(d: Draw) -> list[Tensor]:
    """Keyword spotting by convolutions along time only."""
    width = d.pick(1, 1, 1.5, 2, 3)
    blocks: list[Block] = [partial(conv, channels=d.near(16 * width, 8), kernel=(3, 1), act="relu")]
    blocks += [
        partial(residual, channels=d.near(channels * width, 8), stride=(2, 1), kernel=(d.pick(3, 9, 9), 1))
        for channels in (24, 32, 48, 64)[: d.whole(2, 4)]
    ]
    blocks.append(partial(classifier, classes=d.pick(12, 36), softmax=d.chance(0.4)))
    return _run(d, (1, d.pick(49, 98, 101, d.whole(30, 160)), 1, d.pick(40, 10, 20, 64)), blocks, 0.6)


def wavenet(d: Draw) -> list[Tensor]:
    """Dilated convolutions along time with gates, residuals and one sum of all."""
    width = d.near(d.log_whole(8, 96), 4)
    blocks: list[Block] = [partial(conv, channels=width, kernel=(1, 1), act=None)]
    kernel = d.pick(2, 3)
    blocks += [partial(gated_unit, dilation=1 << at, kernel=kernel) for at in range(d.whole(2, 5))]
    blocks.append(partial(conv, channels=d.pick(32, 64, 128), kernel=1, act="relu"))
    return _run(d, (1, d.log_whole(32, 400), 1, d.pick(1, 16, 40)), blocks, 0.7)


def temporal_separable(d: Draw) -> list[Tensor]:
    """Speech: separable convolutions along time with residuals, as in QuartzNet and MatchboxNet."""
    width, kernel = d.near(d.log_whole(24, 160), 8), d.pick(9, 11, 13, 17, 33)
    blocks: list[Block] = [partial(conv, channels=width, kernel=(11, 1), stride=(2, 1), act="relu")]
    blocks += [partial(temporal_unit, kernel=kernel + 2 * at, count=d.pick(1, 2, 3)) for at in range(d.whole(1, 3))]
    blocks.append(partial(conv, channels=d.pick(29, 36, 64), kernel=1, act=None))
    return _run(d, (1, d.pick(64, 100, 128, 200, d.whole(50, 260)), 1, d.pick(40, 64, 80)), blocks, 0.7)


KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        resnet8,
        mobilenet_v1,
        ds_cnn,
        autoencoder,
        mobilenet_v2,
        mobilenet_v3,
        efficientnet_lite,
        resnet,
        resnext,
        vgg,
        squeezenet,
        googlenet,
        densenet,
        shufflenet,
        convnext,
        yolo,
        ssd,
        unet,
        deeplab,
        super_resolution,
        transformer,
        mlp_mixer,
        tc_resnet,
        wavenet,
        temporal_separable,
    )
}
FAMILIES = families_of(ORIGIN, KINDS, NETWORKS_PER_FAMILY)
