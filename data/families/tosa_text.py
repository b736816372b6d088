"""Writes TOSA modules: quantized layers as converters from TensorFlow Lite and PyTorch write them.

Weights, biases and tables are elided (`dense_resource<__elided__>`), as MLIR's tools print large constants; the
labeller puts random numbers there (`data/label/elided.py`). All else that a cost can depend on is in the text.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ELIDED", "Net", "Size", "Tensor"]

ELIDED = "dense_resource<__elided__>"

Size = int | tuple[int, int]
"""Height and width; one number stands for both."""

_ACCUMULATOR = {"i8": "i32", "i16": "i48"}
_LIMITS = {"i8": (-128, 127), "i16": (-32768, 32767)}
_SCALE_SHIFTS = {"i8": range(36, 42), "i16": range(20, 26)}
"""Shifts after a product with weights: what comes out fills most of the element's range."""


@dataclass(frozen=True)
class Tensor:
    """A value of the network."""

    name: str
    shape: tuple[int, ...]
    element: str
    zero_point: int = 0

    @property
    def type(self) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"

    @property
    def height(self) -> int:
        return self.shape[1]

    @property
    def width(self) -> int:
        return self.shape[2]

    @property
    def channels(self) -> int:
        return self.shape[-1]


class Net:
    """One `func.func @main`, written operation by operation.

    Images are NHWC. `element` is the type of the activations, "i8" or "i16"; weights are always i8. The rest is what
    converters differ in: scales for each channel of weights, an odd padding at the bottom and right (TensorFlow) or
    at the top and left (PyTorch, symmetric and then cut), and where images are sampled that are enlarged.
    """

    def __init__(
        self,
        rng: random.Random,
        element: str = "i8",
        *,
        per_channel: bool = True,
        symmetric: bool = False,
        half_pixel: bool = True,
    ) -> None:
        self.rng = rng
        self.element = element
        self.operations = 0
        """Without constants and shapes."""
        self.macs = 0
        """Multiplications with weights and of matrices, one inference."""
        self.weight_bytes = 0
        self.largest_bytes = 0
        """Of the activations."""
        self._per_channel = per_channel
        self._symmetric = symmetric
        self._half_pixel = half_pixel
        self._inputs: list[Tensor] = []
        self._lines: list[str] = []
        self._constants: dict[str, str] = {}
        self._values = 0

    # what everything is made of

    def input(self, *shape: int) -> Tensor:
        """A new argument of the network."""
        made = Tensor(f"%arg{len(self._inputs)}", shape, self.element, self._zero_point())
        self._inputs.append(made)
        return made

    def op(
        self, name: str, operands: Sequence[Tensor], shape: Sequence[int], element: str, attributes: str = ""
    ) -> Tensor:
        """One operation; the result's zero point is that of the first operand where their types agree."""
        zero_point = operands[0].zero_point if operands[0].element == element else 0
        made = Tensor(self._fresh(), tuple(shape), element, zero_point)
        names, types = ", ".join(o.name for o in operands), ", ".join(o.type for o in operands)
        attributes = f" {{{attributes}}}" if attributes else ""
        self._lines.append(f"{made.name} = tosa.{name} {names}{attributes} : ({types}) -> {made.type}")
        self.operations += 1
        self.largest_bytes = max(self.largest_bytes, math.prod(shape) * int(element[1:]) // 8)
        return made

    def constant(self, value: int, shape: Sequence[int], element: str) -> Tensor:
        """The same number everywhere; equal constants are written once."""
        made = Tensor("", tuple(shape), element)
        text = f'"tosa.const"() <{{values = dense<{value}> : {made.type}}}> : () -> {made.type}'
        return Tensor(self._once(text), made.shape, element)

    def weights(self, shape: Sequence[int], element: str = "i8") -> Tensor:
        """A constant whose numbers are left out."""
        made = Tensor(self._fresh(), tuple(shape), element)
        self._lines.append(f'{made.name} = "tosa.const"() <{{values = {ELIDED} : {made.type}}}> : () -> {made.type}')
        self.weight_bytes += math.prod(shape) * int(element[1:]) // 8
        return made

    def finish(self, *outputs: Tensor) -> str:
        """The module's text."""
        arguments = ", ".join(
            f'{value.name}: {value.type} {{ml_program.identifier = "input_{at}"}}'
            for at, value in enumerate(self._inputs)
        )
        results = ", ".join(
            f'{value.type} {{ml_program.identifier = "output_{at}"}}' for at, value in enumerate(outputs)
        )
        returned = f"{', '.join(v.name for v in outputs)} : {', '.join(v.type for v in outputs)}"
        body = "\n".join(f"    {line}" for line in [*self._lines, f"return {returned}"])
        return f"module {{\n  func.func @main({arguments}) -> ({results}) {{\n{body}\n  }}\n}}\n"

    def rescale(self, x: Tensor, element: str | None = None, *, per_channel: bool = False) -> Tensor:
        """To another scale, and to another type (default: the network's)."""
        element = element or self.element
        wide = x.element != "i48"  # the multiplier has 32 bits
        count = x.channels if per_channel else 1
        shift = self.rng.choice(_SCALE_SHIFTS["i8" if wide else "i16"]) if x.element in ("i32", "i48") else 30
        multiplier = self.rng.randrange(1 << 30, 1 << 31) if wide else self.rng.randrange(1 << 14, 1 << 15)
        zero_point = self._zero_point() if element == self.element else 0
        made = self.op(
            "rescale",
            [
                x,
                self.constant(multiplier, (count,), "i32" if wide else "i16"),
                self.constant(shift, (count,), "i8"),
                self.constant(x.zero_point, (1,), x.element),
                self.constant(zero_point, (1,), element),
            ],
            x.shape,
            element,
            "input_unsigned = false, output_unsigned = false, "
            f"per_channel = {str(per_channel).lower()}, rounding_mode = SINGLE_ROUND, scale32 = {str(wide).lower()}",
        )
        return Tensor(made.name, made.shape, element, zero_point)

    # products with weights

    def conv2d(
        self,
        x: Tensor,
        channels: int,
        kernel: Size = 3,
        stride: Size = 1,
        *,
        padding: str = "same",
        dilation: Size = 1,
        act: str | None = None,
    ) -> Tensor:
        """A convolution with bias, requantized, and an activation."""
        x, out, pads = self._window(x, kernel, stride, padding, dilation)
        weights = self.weights((channels, *_pair(kernel), x.channels))
        attributes = (
            f"dilation = {_numbers(_pair(dilation))}, pad = {_numbers(pads)}, stride = {_numbers(_pair(stride))}"
        )
        return self._product("conv2d", x, weights, channels, (x.shape[0], *out, channels), attributes, act)

    def depthwise(
        self,
        x: Tensor,
        kernel: Size = 3,
        stride: Size = 1,
        *,
        multiplier: int = 1,
        padding: str = "same",
        dilation: Size = 1,
        act: str | None = None,
    ) -> Tensor:
        """A convolution of each channel by itself, to `multiplier` channels."""
        x, out, pads = self._window(x, kernel, stride, padding, dilation)
        weights = self.weights((*_pair(kernel), x.channels, multiplier))
        attributes = (
            f"dilation = {_numbers(_pair(dilation))}, pad = {_numbers(pads)}, stride = {_numbers(_pair(stride))}"
        )
        channels = x.channels * multiplier
        return self._product("depthwise_conv2d", x, weights, channels, (x.shape[0], *out, channels), attributes, act)

    def transpose_conv2d(
        self, x: Tensor, channels: int, kernel: Size = 2, stride: Size = 2, *, act: str | None = None
    ) -> Tensor:
        """The convolution that multiplies height and width by the stride."""
        kernels, strides = _pair(kernel), _pair(stride)
        pads: list[int] = []
        for k, s in zip(kernels, strides, strict=True):
            pads += [(s - k) - (s - k) // 2, (s - k) // 2]
        out = [size * s for size, s in zip(x.shape[1:3], strides, strict=True)]
        attributes = f"out_pad = {_numbers(pads)}, stride = {_numbers(strides)}"
        weights = self.weights((channels, *kernels, x.channels))
        return self._product("transpose_conv2d", x, weights, channels, (x.shape[0], *out, channels), attributes, act)

    def dense(self, x: Tensor, channels: int, *, act: str | None = None) -> Tensor:
        """A fully connected layer over the last dimension, written as a 1 x 1 convolution, as converters do."""
        rows = math.prod(x.shape[:-1])
        image = self.reshape(x, (rows, 1, 1, x.channels) if len(x.shape) == 2 else (1, rows, 1, x.channels))
        made = self.conv2d(image, channels, 1, act=act)
        return self.reshape(made, (*x.shape[:-1], channels))

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Products of two activations: [n, h, c] times [n, c, w]."""
        zero_points = [self.constant(t.zero_point, (1,), t.element) for t in (a, b)]
        shape = (a.shape[0], a.shape[1], b.shape[2])
        self.macs += math.prod(shape) * a.shape[2]
        return self.rescale(self.op("matmul", [a, b, *zero_points], shape, _ACCUMULATOR[self.element]))

    def _product(
        self, op: str, x: Tensor, weights: Tensor, channels: int, shape: Sequence[int], attributes: str, act: str | None
    ) -> Tensor:
        accumulator = _ACCUMULATOR[self.element]
        operands = [
            x,
            weights,
            self.weights((channels,), accumulator),
            self.constant(x.zero_point, (1,), self.element),
            self.constant(0, (1,), "i8"),
        ]
        made = self.op(op, operands, shape, accumulator, f"acc_type = {accumulator}, {attributes}")
        self.macs += math.prod(shape) * math.prod(weights.shape) // channels
        return self.activate(self.rescale(made, per_channel=self._per_channel), act)

    def _window(
        self, x: Tensor, kernel: Size, stride: Size, padding: str, dilation: Size = 1
    ) -> tuple[Tensor, list[int], list[int]]:
        """The input cut to what the windows cover (TOSA allows no remainder), the output's size, and the padding."""
        used, pads, out = list(x.shape), [], []
        for at, (k, s, d) in enumerate(zip(_pair(kernel), _pair(stride), _pair(dilation), strict=True), start=1):
            size, extent = x.shape[at], (k - 1) * d + 1
            before = after = 0
            if padding == "same" and self._symmetric and extent % 2:
                before = after = extent // 2
            elif padding == "same":
                total = max((-(-size // s) - 1) * s + extent - size, 0)
                before, after = total // 2, total - total // 2
            covered = size + before + after - extent
            after -= (rest := min(covered % s, after))
            used[at] -= covered % s - rest
            pads += [before, after]
            out.append(covered // s + 1)
        if tuple(used) != x.shape:
            x = self.slice(x, [0] * len(used), used)
        return x, out, pads

    # what stands between them

    def activate(self, x: Tensor, act: str | None) -> Tensor:
        """ "relu", "relu6", or any other name for a function that converters write as a table; None changes nothing."""
        if act is None:
            return x
        if act in ("relu", "relu6"):
            top = _LIMITS[x.element][1]
            return self.clamp(x, x.zero_point, top if act == "relu" else top - self.rng.choice((0, 7, 31)))
        return self.table(x)

    def clamp(self, x: Tensor, low: int, high: int) -> Tensor:
        attributes = f"max_val = {high} : {x.element}, min_val = {low} : {x.element}"
        return self.op("clamp", [x], x.shape, x.element, attributes)

    def table(self, x: Tensor) -> Tensor:
        """A function of one element, looked up."""
        if x.element == "i8":
            return self.op("table", [x, self.weights((256,))], x.shape, "i8")
        return self.rescale(self.op("table", [x, self.weights((513,), "i16")], x.shape, "i32"))

    def max_pool(self, x: Tensor, kernel: Size = 2, stride: Size = 2, *, padding: str = "valid") -> Tensor:
        x, out, attributes = self._pool(x, kernel, stride, padding)
        return self.op("max_pool2d", [x], (x.shape[0], *out, x.channels), x.element, attributes)

    def avg_pool(self, x: Tensor, kernel: Size = 2, stride: Size = 2, *, padding: str = "valid") -> Tensor:
        x, out, attributes = self._pool(x, kernel, stride, padding)
        zero_point = self.constant(x.zero_point, (1,), x.element)
        shape = (x.shape[0], *out, x.channels)
        return self.op("avg_pool2d", [x, zero_point, zero_point], shape, x.element, f"acc_type = i32, {attributes}")

    def _pool(self, x: Tensor, kernel: Size, stride: Size, padding: str) -> tuple[Tensor, list[int], str]:
        x, out, pads = self._window(x, kernel, stride, padding)
        sizes = f"kernel = {_numbers(_pair(kernel))}, pad = {_numbers(pads)}, stride = {_numbers(_pair(stride))}"
        return x, out, sizes

    def global_pool(self, x: Tensor) -> Tensor:
        """The mean of each channel: [n, 1, 1, c]."""
        return self.avg_pool(x, (x.height, x.width), 1)

    def mean(self, x: Tensor, axis: int) -> Tensor:
        """The mean along one dimension, by a sum; the dimension stays with size 1."""
        return self.rescale(self._reduce("reduce_sum", self.rescale(x, "i32"), axis))

    def reduce_max(self, x: Tensor, axis: int) -> Tensor:
        return self._reduce("reduce_max", x, axis)

    def _reduce(self, op: str, x: Tensor, axis: int) -> Tensor:
        shape = [1 if at == axis else size for at, size in enumerate(x.shape)]
        return self.op(op, [x], shape, x.element, f"axis = {axis} : i32")

    def add(self, a: Tensor, b: Tensor, act: str | None = None) -> Tensor:
        return self._elementwise("add", a, b, act)

    def sub(self, a: Tensor, b: Tensor, act: str | None = None) -> Tensor:
        return self._elementwise("sub", a, b, act)

    def mul(self, a: Tensor, b: Tensor, act: str | None = None) -> Tensor:
        return self._elementwise("mul", a, b, act)

    def _elementwise(self, op: str, a: Tensor, b: Tensor, act: str | None) -> Tensor:
        """In 32 bits, as converters write it; sizes of 1 are broadcast."""
        operands = [self.rescale(a, "i32"), self.rescale(b, "i32")]
        if op == "mul":
            operands.append(self.constant(0, (1,), "i8"))
        shape = [max(sizes) for sizes in zip(a.shape, b.shape, strict=True)]
        return self.activate(self.rescale(self.op(op, operands, shape, "i32")), act)

    def maximum(self, a: Tensor, b: Tensor) -> Tensor:
        return self._elementwise("maximum", a, b, None)

    def minimum(self, a: Tensor, b: Tensor) -> Tensor:
        return self._elementwise("minimum", a, b, None)

    def softmax(self, x: Tensor) -> Tensor:
        """Over the last dimension, each step in the network's own type."""
        axis = len(x.shape) - 1
        powers = self.table(self.sub(x, self.reduce_max(x, axis)))
        return self.mul(powers, self.table(self.mean(powers, axis)))

    def layer_norm(self, x: Tensor) -> Tensor:
        """Over the last dimension: the mean off, by the root of the variance, scaled and shifted by weights."""
        axis = len(x.shape) - 1
        centred = self.sub(x, self.mean(x, axis))
        deviation = self.table(self.mean(self.mul(centred, centred), axis))
        weights_shape = [1] * axis + [x.channels]
        scaled = self.mul(self.mul(centred, deviation), self._weights_like(weights_shape))
        return self.add(scaled, self._weights_like(weights_shape))

    def _weights_like(self, shape: Sequence[int]) -> Tensor:
        return self.weights(shape, self.element)

    # shapes

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Nothing where the shape is that already."""
        if tuple(shape) == x.shape:
            return x
        return self.op("reshape", [x, self._shape(shape)], shape, x.element)

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        perms = ", ".join(map(str, order))
        return self.op("transpose", [x], [x.shape[at] for at in order], x.element, f"perms = array<i32: {perms}>")

    def concat(self, parts: Sequence[Tensor], axis: int = 3) -> Tensor:
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.op("concat", parts, shape, parts[0].element, f"axis = {axis} : i32")

    def slice(self, x: Tensor, start: Sequence[int], size: Sequence[int]) -> Tensor:
        return self.op("slice", [x, self._shape(start), self._shape(size)], size, x.element)

    def pad(self, x: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
        amounts = [n for pair in zip(before, after, strict=True) for n in pair]
        shape = [b + size + a for b, size, a in zip(before, x.shape, after, strict=True)]
        value = self.constant(x.zero_point, (1,), x.element)
        return self.op("pad", [x, self._shape(amounts), value], shape, x.element)

    def upsample(self, x: Tensor, factor: int = 2, mode: str = "NEAREST_NEIGHBOR") -> Tensor:
        """Height and width times `factor`, by the nearest pixel or "BILINEAR"."""
        if self._half_pixel or mode == "BILINEAR":
            scale, offset = [2 * factor, 2] * 2, [1 - factor] * 2
        else:
            scale, offset = [factor, 1] * 2, [0, 0]
        shape = (x.shape[0], x.height * factor, x.width * factor, x.channels)
        operands = [x, self._shape(scale), self._shape(offset), self._shape([factor - 1] * 2)]
        element = _ACCUMULATOR[x.element] if mode == "BILINEAR" else x.element
        made = self.op("resize", operands, shape, element, f"mode = {mode}")
        return made if element == x.element else self.rescale(made)

    def _shape(self, values: Sequence[int]) -> Tensor:
        """A `!tosa.shape`, which is an operand of its own."""
        type = f"!tosa.shape<{len(values)}>"
        numbers = ", ".join(map(str, values))
        text = f"tosa.const_shape {{values = dense<[{numbers}]> : tensor<{len(values)}xindex>}} : () -> {type}"
        return _Shape(self._once(text), (len(values),), "index")

    def _once(self, text: str) -> str:
        if text not in self._constants:
            self._constants[text] = self._fresh()
            self._lines.append(f"{self._constants[text]} = {text}")
        return self._constants[text]

    def _zero_point(self) -> int:
        """As calibration finds them: the least number behind a ReLU, any other elsewhere, 0 where there are 16 bits."""
        if self.element == "i16":
            return 0
        return self.rng.choice((-128, -128, self.rng.randint(-40, 40)))

    def _fresh(self) -> str:
        self._values += 1
        return f"%{self._values - 1}"


class _Shape(Tensor):
    @property
    def type(self) -> str:
        return f"!tosa.shape<{self.shape[0]}>"


def _pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _numbers(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"
