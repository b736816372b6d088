"""Random graphs: chains, residual blocks, branches that are joined, and graphs whose every step may look back."""

from __future__ import annotations

from collections.abc import Sequence

from .tosa_draw import Draw, Kind, families_of
from .tosa_text import Tensor

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "tosa_graphs"
NETWORKS_PER_FAMILY = 320
MAX_CHANNELS = 320


def chain(d: Draw) -> Sequence[Tensor]:
    """One layer after the other, 2 to 16."""
    x = _start(d)
    for _ in range(d.log_whole(2, 16)):
        x = _layer(d, x)
    return [x]


def residual_chain(d: Draw) -> Sequence[Tensor]:
    """Runs of layers that keep the shape, each with its input added to its output."""
    x = _start(d)
    for _ in range(d.log_whole(1, 7)):
        y = x
        for _ in range(d.whole(1, 3)):
            y = _same_shape(d, y, x.channels)
        x = d.net.add(x, y, d.act()) if d.chance(0.85) else d.net.mul(x, y)
        if d.chance(0.4):
            x = _layer(d, x)
    return [x]


def branches(d: Draw) -> Sequence[Tensor]:
    """Two to four branches of one to three layers side by side, joined by their channels or added; then again."""
    x = _start(d)
    for _ in range(d.log_whole(1, 4)):
        ends = []
        width = d.channels(4, 96)
        join = d.chance(0.65)
        for _ in range(d.whole(2, 4)):
            y = x
            for _ in range(d.whole(0, 2)):
                y = _same_shape(d, y, y.channels)
            ends.append(d.net.conv2d(y, d.near(width, 4) if join else width, d.pick(1, 1, 3), act=d.act()))
        x = d.net.concat(ends) if join else ends[0]
        for end in [] if join else ends[1:]:
            x = d.net.add(x, end)
        if d.chance(0.5):
            x = _layer(d, x)
    return [x]


def free_graph(d: Draw) -> Sequence[Tensor]:
    """Each step takes any value there is, or joins two of one size; what nobody took is an output."""
    n = d.net
    values = [_start(d)]
    unused = set(values)
    for _ in range(d.log_whole(3, 20)):
        x = values[-1] if d.chance(0.6) else d.pick(*values)
        others = [v for v in values if v is not x and v.shape[:3] == x.shape[:3]]
        if others and d.chance(0.4):
            other = d.pick(*others)
            if other.shape == x.shape and d.chance(0.7):
                made = d.pick(n.add, n.add, n.sub, n.mul, n.maximum)(x, other)
            else:
                made = n.concat([x, other])
            unused -= {x, other}
        else:
            made = _layer(d, x)
            unused -= {x}
        values.append(made)
        unused.add(made)
    return [value for value in values if value in unused]


def awkward_chain(d: Draw) -> Sequence[Tensor]:
    """Sizes that fit no unit of the hardware: odd channels, prime and oblong images, uncommon kernels."""
    odd = (1, 3, 5, 7, 9, 11, 13, 17, 19, 23, 29, 31, 33, 37, 41, 47, 53, 61, 65, 71, 83, 97, 113, 129, 151)
    x = d.net.input(1, d.pick(*odd[2:20]), d.pick(*odd[2:20]), d.pick(*odd))
    for _ in range(d.log_whole(1, 10)):
        kernel = min(d.pick(1, 2, 3, 4, 5, 6, 9), x.height), min(d.pick(1, 2, 3, 5, 7), x.width)
        stride = d.size(1, 1, 1, 2, (1, 2), (2, 1), 3)
        if d.chance(0.3):
            x = d.net.depthwise(x, kernel, stride, padding=d.pick("same", "valid"), act=d.act())
        else:
            x = d.net.conv2d(x, d.pick(*odd), kernel, stride, padding=d.pick("same", "valid"), act=d.act())
    return [x]


def _start(d: Draw) -> Tensor:
    return d.net.input(d.pick(*[1] * 15, 2), *d.resolution(8, 80), d.channels(3, 96))


def _layer(d: Draw, x: Tensor) -> Tensor:
    """Any layer; the image gets smaller more often than larger."""
    n = d.net
    small = min(x.height, x.width) < 4
    width = min(MAX_CHANNELS, d.near(x.channels * d.pick(0.5, 1, 1, 1, 1.5, 2), 2))
    match d.rng.choices(_NAMES, _WEIGHTS)[0]:
        case "conv":
            return n.conv2d(x, width, d.pick(1, 3, 3, 5), 1 if small else d.pick(1, 1, 2), act=d.act())
        case "pointwise":
            return n.conv2d(x, width, 1, act=d.act())
        case "depthwise":
            return n.depthwise(x, d.pick(3, 3, 5, 7), 1 if small else d.pick(1, 1, 2), act=d.act())
        case "pool" if not small:
            return d.pick(n.max_pool, n.avg_pool)(x, d.pick(2, 3), 2, padding=d.pick("same", "valid"))
        case "enlarge" if max(x.height, x.width) < 48 and x.channels < 128:
            if d.chance(0.5):
                return n.upsample(x, 2, d.pick("NEAREST_NEIGHBOR", "BILINEAR"))
            return n.transpose_conv2d(x, width, d.pick(2, 3), 2, act=d.act())
        case "table":
            return n.table(x)
        case "rescale":
            return n.rescale(x)
        case "scale":
            return n.mul(x, n.conv2d(n.global_pool(x), x.channels, 1, act="sigmoid"))
        case "pad":
            return n.pad(x, (0, d.whole(0, 2), d.whole(0, 2), 0), (0, d.whole(0, 2), d.whole(0, 2), 0))
        case "slice" if not small and x.channels > 8:
            return n.slice(x, (0, 1, 0, 0), (x.shape[0], x.height - 1, x.width, d.pick(x.channels, x.channels // 2)))
        case "transpose":
            return n.transpose(x, (0, 2, 1, 3))
        case "dense" if x.shape[0] == 1 and x.height * x.width * x.channels < 4096:
            return n.reshape(n.dense(n.reshape(x, (1, x.height * x.width * x.channels)), width), (1, 1, 1, width))
        case "softmax" if x.height * x.width < 1024:
            return n.softmax(x)
        case _:
            return _same_shape(d, x, x.channels)


_LAYERS = {
    "conv": 30,
    "pointwise": 14,
    "depthwise": 16,
    "pool": 8,
    "enlarge": 6,
    "table": 4,
    "rescale": 2,
    "scale": 3,
    "pad": 3,
    "slice": 3,
    "transpose": 2,
    "dense": 3,
    "softmax": 1,
    "same": 5,
}
_NAMES, _WEIGHTS = list(_LAYERS), list(_LAYERS.values())


def _same_shape(d: Draw, x: Tensor, channels: int) -> Tensor:
    """A layer that keeps height and width."""
    n = d.net
    match d.pick("conv", "conv", "pointwise", "depthwise", "separable", "activation"):
        case "conv":
            return n.conv2d(x, channels, d.size(3, 3, 5, (1, 3), (3, 1)), act=d.act())
        case "pointwise":
            return n.conv2d(x, channels, 1, act=d.act())
        case "depthwise" if channels == x.channels:
            return n.depthwise(x, d.pick(3, 5), act=d.act())
        case "activation" if channels == x.channels:
            return n.activate(x, d.pick("relu", "relu6", "sigmoid"))
        case _:
            return n.conv2d(n.depthwise(x, 3, act="relu"), channels, 1, act=d.act())


KINDS: dict[str, Kind] = {
    f"graph_{kind.__name__}": kind for kind in (chain, residual_chain, branches, free_graph, awkward_chain)
}
FAMILIES = families_of(ORIGIN, KINDS, NETWORKS_PER_FAMILY)
