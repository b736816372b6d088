"""What an operation on whole tensors stands for: perfect loop nests with accesses and arithmetic for one iteration.

A nest is the closed form of an operation: flops are iterations × arithmetic, bytes are iterations × accesses, the
elements of the result are the iterations of the parallel loops. `walk.py` turns it into the loops, accesses and nodes
of a `FunctionView`, so that every feature group sees the same work.

Rules that hold for every dialect
---------------------------------
* A reduction of n elements is n combinations, not n - 1: each result starts from an initial value.
* A contraction loads and stores its accumulator in each iteration, as the loops that it is lowered to do.
  The distinct bytes (inputs + outputs) are `access.footprint_bytes`.
* A bias is the initial value of the accumulator: it is loaded and stored once for each result and costs no flop.
* Positions in the padding of a window count as work; those that an input dilation leaves empty do not.
* A rank-0 tensor is a scalar: it is not loaded.
* What only changes how memory is looked at (reshape, a view) moves nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..affine import Linear, constant, integer, variable
from ..attribute_text import property_text
from ..op_classes import op_class
from ..program import Op

if TYPE_CHECKING:
    from ..function_view import FunctionView

Shape = tuple[int | None, ...]
MISFITS = (ArithmeticError, LookupError, ValueError)
"""What a rule raises where the attributes of an operation do not fit its shapes."""


@dataclass(frozen=True)
class Touch:
    """One load or store of one element in each iteration."""

    value: int
    """The memref or tensor; -1, -2, … is the scratch buffer of that number (see `Implied.scratch`)."""
    indices: tuple[Linear, ...]
    """Subscripts over loop positions."""
    is_store: bool
    irregular: bool = False
    """The subscripts depend on data (gather); those given stand for the number of places touched."""
    start: tuple[Linear, ...] = ()
    """What is added to the subscripts, over values of the function; () for nothing."""


@dataclass(frozen=True)
class ImpliedNest:
    """One perfect loop nest."""

    extents: Shape
    """Iterations of each loop, outermost first; None where the shape does not say."""
    iterators: tuple[str, ...]
    """"parallel" or "reduction" for each loop."""
    accesses: tuple[Touch, ...]
    compute: tuple[str, ...]
    """Classes of the operations of one iteration; empty where the region states them."""
    element: str = ""
    """Element type that the arithmetic is done in."""
    region: int | None = None
    """The region of the operation that runs in each iteration; only in the last nest of an operation."""


@dataclass(frozen=True)
class Implied:
    """What one operation stands for."""

    nests: tuple[ImpliedNest, ...] = ()
    """Run one after another."""
    cls: str = "loop"
    """Class of the operation itself (see op_classes); "" for the class that its name has."""
    lanes: int = 1
    """Elements that the operation itself works on, where it has no nest."""
    tied: tuple[tuple[int, int], ...] = ()
    """(result, operand) where the result is the operand's memory, written in place."""
    scratch: tuple[tuple[Shape, str], ...] = ()
    """(shape, element type) of buffers that exist only inside the operation."""


FREE = Implied(cls="index")
"""Another view of memory that exists."""


@dataclass
class Sketch:
    """A nest being put together."""

    extents: list[int | None] = field(default_factory=list)
    iterators: list[str] = field(default_factory=list)
    loads: list[Touch] = field(default_factory=list)
    stores: list[Touch] = field(default_factory=list)

    def loop(self, extent: int | None, iterator: str = "parallel") -> Linear:
        """A new innermost loop; gives its variable."""
        self.extents.append(extent)
        self.iterators.append(iterator)
        return variable(len(self.extents) - 1)

    def over(self, shape: Iterable[int | None], iterator: str = "parallel") -> list[Linear]:
        """A loop for each extent."""
        return [self.loop(extent, iterator) for extent in shape]

    def load(
        self, value: int, indices: Sequence[Linear], *, irregular: bool = False, start: Sequence[Linear] = ()
    ) -> None:
        """One element is loaded in each iteration."""
        self.loads.append(Touch(value, tuple(indices), False, irregular, tuple(start)))

    def store(
        self, value: int, indices: Sequence[Linear], *, irregular: bool = False, start: Sequence[Linear] = ()
    ) -> None:
        """One element is stored in each iteration."""
        self.stores.append(Touch(value, tuple(indices), True, irregular, tuple(start)))

    def update(self, value: int, indices: Sequence[Linear], *, irregular: bool = False) -> None:
        """One element is loaded and stored in each iteration."""
        self.load(value, indices, irregular=irregular)
        self.store(value, indices, irregular=irregular)

    def done(self, *compute: str, element: str = "", region: int | None = None) -> ImpliedNest:
        """The nest: `compute` are the classes of one iteration, for floats; integer ones follow from `element`."""
        classes = tuple(class_for(c, element) for c in compute)
        return ImpliedNest(
            tuple(self.extents), tuple(self.iterators), (*self.loads, *self.stores), classes, element, region
        )


_OF_INTEGERS = {
    "fadd": "iadd",
    "fmul": "imul",
    "fminmax": "iadd",
    "fdiv": "idiv",
    "fma": "imul",
    "fcmp": "icmp",
    "fcheap": "ibit",
}


def is_integer(element: str) -> bool:
    """Integer and index types, signed or not."""
    return element[:1] == "i" or element[:2] in ("si", "ui")


def class_for(cls: str, element: str) -> str:
    """The class of an operation on elements of a type: the integer counterpart where the type is an integer."""
    return _OF_INTEGERS.get(cls, cls) if is_integer(element) else cls


def shape_of(view: FunctionView, value: int) -> Shape | None:
    """Extents of a tensor or memref; None where it has no shape or it is not known."""
    return view.type_of(value).shape


def element_of(view: FunctionView, value: int) -> str:
    """Element type of a value."""
    return view.type_of(value).element


def known(*extents: int | None) -> int | None:
    """The first extent that is known."""
    return next((e for e in extents if e is not None), None)


def times(*extents: int | None) -> int | None:
    """The product, None where a factor is unknown."""
    return None if None in extents else math.prod(e for e in extents if e is not None)


def log2_ceil(extent: int | None) -> int | None:
    """Passes of a merge over that many elements, at least 1."""
    return None if extent is None else max(1, (extent - 1).bit_length())


def broadcast(indices: Sequence[Linear], shape: Shape) -> list[Linear]:
    """Subscripts of an operand that is broadcast to the loops `indices`, aligned at the last dimension."""
    own = indices[len(indices) - len(shape) :] if len(shape) <= len(indices) else list(indices)
    return [constant(0) if extent == 1 else i for i, extent in zip(own, shape, strict=False)]


def elementwise(
    view: FunctionView, inputs: Sequence[int], out: int, compute: Sequence[str], *, region: int | None = None
) -> Implied | None:
    """Each element of `out` from the elements of the inputs at its place; inputs broadcast. None: shape unknown.

    Flops: elements × arithmetic. Bytes: inputs (as often as broadcast) + output.
    """
    shape = shape_of(view, out)
    if shape is None:
        return None
    element = element_of(view, inputs[0] if inputs and compute[:1] == ("fcmp",) else out)
    if not shape:
        return Implied(cls=class_for(compute[0], element)) if compute and region is None else None
    shapes = [(v, s) for v in inputs if (s := shape_of(view, v))]
    sketch = Sketch()
    rank = len(shape)
    loops = [
        sketch.loop(known(extent, *(s[d - rank + len(s)] for _, s in shapes if rank - d <= len(s) and extent is None)))
        for d, extent in enumerate(shape)
    ]
    for value, own in shapes:
        sketch.load(value, broadcast(loops, own))
    sketch.store(out, loops)
    return Implied((sketch.done(*compute, element=element, region=region),))


def moved(view: FunctionView, source: int, out: int, index: Sequence[Linear] | None, sketch: Sketch) -> Implied:
    """`out` filled in order from `source` at `index` (None: nothing is loaded); the sketch has the loops of `out`."""
    if index is not None and shape_of(view, source):
        sketch.load(source, index)
    sketch.store(out, [variable(d) for d in range(len(sketch.extents))])
    return Implied((sketch.done(element=element_of(view, out)),))


def transposed(view: FunctionView, source: int, out: int, order: Sequence[int]) -> Implied | None:
    """`out[i…] = source[…]` where dimension d of `out` is dimension `order[d]` of the source."""
    shape, wide = shape_of(view, out), shape_of(view, source)
    if shape is None or wide is None or sorted(order) != list(range(len(shape))) or len(wide) != len(shape):
        return None
    sketch = Sketch()
    loops = [sketch.loop(known(extent, wide[order[d]])) for d, extent in enumerate(shape)]
    where = {source_dim: d for d, source_dim in enumerate(order)}
    return moved(view, source, out, [loops[where[d]] for d in range(len(wide))], sketch)


def joined(view: FunctionView, parts: Sequence[int], out: int, axis: int) -> Implied | None:
    """Concatenation: each part is copied to its place."""
    nests = []
    offset = 0
    for part in parts:
        shape = shape_of(view, part)
        if shape is None or not 0 <= axis < len(shape):
            return None
        sketch = Sketch()
        loops = sketch.over(shape)
        sketch.load(part, loops)
        sketch.store(out, [i + constant(offset) if d == axis else i for d, i in enumerate(loops)])
        nests.append(sketch.done(element=element_of(view, out)))
        offset += shape[axis] or 0
    return Implied(tuple(nests)) if nests else None


def padded(view: FunctionView, source: int, out: int, low: Sequence[int], step: Sequence[int] = ()) -> Implied | None:
    """The source copied into the output, and the rest of the output filled: bytes = inputs + outputs."""
    shape, wide = shape_of(view, source), shape_of(view, out)
    if shape is None or wide is None or len(shape) != len(wide):
        return None
    sketch = Sketch()
    loops = sketch.over(known(s, w) for s, w in zip(shape, wide, strict=True))
    sketch.load(source, loops)
    starts = [*low, *[0] * len(shape)]
    steps = [*step, *[1] * len(shape)]
    sketch.store(out, [i.scaled(steps[d]) + constant(starts[d]) for d, i in enumerate(loops)])
    nests = [sketch.done(element=element_of(view, out))]
    whole, inside = times(*wide), times(*sketch.extents)
    if whole is None or inside is None or whole > inside:
        fill = Sketch()
        rest = fill.loop(None if whole is None or inside is None else min(whole - inside, 1 << 62))
        fill.store(out, [*[constant(0)] * (len(wide) - 1), rest])
        nests.append(fill.done(element=element_of(view, out)))
    return Implied(tuple(nests))


def reduced(
    view: FunctionView,
    inputs: Sequence[int],
    outs: Sequence[int],
    dims: Iterable[int],
    compute: Sequence[str],
    *,
    keep: bool = False,
    region: int | None = None,
) -> Implied | None:
    """A reduction over `dims`, one combination for each element of the inputs. `keep`: reduced dims stay, of size 1."""
    shape = shape_of(view, inputs[0])
    if shape is None:
        return None
    gone = {d % len(shape) for d in dims} if shape else set()
    sketch = Sketch()
    loops = [sketch.loop(e, "reduction" if d in gone else "parallel") for d, e in enumerate(shape)]
    for value in inputs:
        if shape_of(view, value):
            sketch.load(value, loops)
    kept = [constant(0) if d in gone else i for d, i in enumerate(loops) if keep or d not in gone]
    for out in outs:
        sketch.update(out, kept)
    element = element_of(view, inputs[0] if compute[:1] == ("fcmp",) else outs[0])
    return Implied((sketch.done(*compute, element=element, region=region),))


def contracted(
    view: FunctionView, lhs: tuple[int, str], rhs: tuple[int, str], out: tuple[int, str], bias: int | None = None
) -> Implied | None:
    """A contraction by letters, `(a, "mk"), (b, "kn"), (c, "mn")`: 2 flops for each point of the loops.

    Loops: the letters of the output in order, then the others in the order of the operands, which are summed over.
    """
    letters = out[1] + "".join(dict.fromkeys(x for x in lhs[1] + rhs[1] if x not in out[1]))
    extents: dict[str, int | None] = {}
    for value, own in (lhs, rhs, out):
        shape = shape_of(view, value)
        if shape is None or len(shape) != len(own):
            return None
        for letter, extent in zip(own, shape, strict=True):
            if extents.get(letter) is None or extents[letter] == 1:
                extents[letter] = extent
    sketch = Sketch()
    loops = {x: sketch.loop(extents[x], "parallel" if x in out[1] else "reduction") for x in letters}
    for value, own in (lhs, rhs):
        shape = shape_of(view, value) or ()
        sketch.load(
            value,
            [constant(0) if e == 1 and extents[x] != 1 else loops[x] for x, e in zip(own, shape, strict=True)],
        )
    sketch.update(out[0], [loops[x] for x in out[1]])
    nest = sketch.done("fmul", "fadd", element=element_of(view, out[0]))
    return Implied((*initial(view, bias, out[0]), nest))


def initial(view: FunctionView, bias: int | None, out: int, channel: int | None = None) -> tuple[ImpliedNest, ...]:
    """The nest that gives each result its bias (along dimension `channel`, else aligned at the end) as first value."""
    shape = shape_of(view, out)
    own = shape_of(view, bias) if bias is not None else None
    if bias is None or shape is None or not own:
        return ()
    sketch = Sketch()
    loops = sketch.over(shape)
    if channel is not None and len(own) == 1:
        sketch.load(bias, [constant(0) if own[0] == 1 else loops[channel]])
    else:
        sketch.load(bias, broadcast(loops, own))
    sketch.store(out, loops)
    return (sketch.done(element=element_of(view, out)),)


@dataclass(frozen=True)
class Window:
    """How a window moves over one spatial dimension."""

    extent: int | None
    """Positions of the window along it."""
    stride: int = 1
    dilation: int = 1
    low: int = 0
    """Padding before the first element."""
    holes: int = 1
    """Input dilation: every so many places hold an input element."""


def convolved(
    view: FunctionView,
    image: tuple[int, int | None, int | None, Sequence[int]],
    kernel: tuple[int, int | None, int | None, Sequence[int]],
    out: tuple[int, int | None, int | None, Sequence[int]],
    windows: Sequence[Window],
    groups: int = 1,
    bias: int | None = None,
    batch_groups: int = 1,
    *,
    scatter: bool = False,
) -> Implied | None:
    """A convolution. Operands are (value, batch | input-feature dim, feature | output-feature dim, spatial dims).

    Flops: 2 × batch × outputs × output channels × window × input channels / groups, where the batch is the output's;
    with an input dilation, or `scatter` (a transposed convolution), input positions take the place of output positions.
    """
    shapes = [shape_of(view, v[0]) for v in (image, kernel, out)]
    if any(s is None for s in shapes):
        return None
    in_shape, w_shape, out_shape = (s or () for s in shapes)

    def extent(shape: Shape, dim: int | None) -> int | None:
        return 1 if dim is None else shape[dim]

    sketch = Sketch()
    batch = sketch.loop(known(extent(out_shape, out[1]), extent(in_shape, image[1])))
    spread = scatter or any(w.holes > 1 for w in windows)
    places = (in_shape, image[3]) if spread else (out_shape, out[3])
    spatial = [sketch.loop(places[0][d]) for d in places[1]]
    channels = known(extent(out_shape, out[2]), extent(w_shape, kernel[2]))
    parts = max(groups, batch_groups)
    if parts > 1:
        group = sketch.loop(parts)
        per_group = None if channels is None else max(1, channels // parts)
        feature = sketch.loop(per_group)
        out_feature = group.scaled(per_group or 1) + feature
    else:
        group = constant(0)
        out_feature = sketch.loop(channels)
    taps = [sketch.loop(w.extent, "reduction") for w in windows]
    depth = extent(w_shape, kernel[1])
    inner = sketch.loop(depth, "reduction")
    in_feature = group.scaled(depth or 1) + inner if groups > 1 else inner
    source: dict[int, Linear] = {}
    target: dict[int, Linear] = {}
    weight: dict[int, Linear] = {}
    for axis, w in enumerate(windows):
        if spread:
            source[image[3][axis]] = spatial[axis]
            target[out[3][axis]] = spatial[axis].scaled(w.holes) + taps[axis].scaled(w.dilation) + constant(-w.low)
        else:
            source[image[3][axis]] = spatial[axis].scaled(w.stride) + taps[axis].scaled(w.dilation) + constant(-w.low)
            target[out[3][axis]] = spatial[axis]
        weight[kernel[3][axis]] = taps[axis]
    for places_, dim, index in (
        (source, image[1], group.scaled(sketch.extents[0] or 1) + batch if batch_groups > 1 else batch),
        (source, image[2], in_feature),
        (target, out[1], batch),
        (target, out[2], out_feature),
        (weight, kernel[1], inner),
        (weight, kernel[2], out_feature),
    ):
        if dim is not None:
            places_[dim] = index
    sketch.load(image[0], [source[d] for d in sorted(source)])
    sketch.load(kernel[0], [weight[d] for d in sorted(weight)])
    sketch.update(out[0], [target[d] for d in sorted(target)])
    nest = sketch.done("fmul", "fadd", element=element_of(view, out[0]))
    return Implied((*initial(view, bias, out[0], out[2]), nest))


def pooled(
    view: FunctionView, source: int, out: int, spatial: Sequence[int], windows: Sequence[Window], cls: str, mean: bool
) -> Implied | None:
    """A window reduction: one combination for each position of the window of each output; `mean`: then a division."""
    shape = shape_of(view, out)
    wide = shape_of(view, source)
    if shape is None or wide is None or len(shape) != len(wide):
        return None
    sketch = Sketch()
    loops = [sketch.loop(known(e, None if d in spatial else wide[d])) for d, e in enumerate(shape)]
    taps = [sketch.loop(w.extent, "reduction") for w in windows]
    index = list(loops)
    for axis, (dim, w) in enumerate(zip(spatial, windows, strict=True)):
        index[dim] = loops[dim].scaled(w.stride) + taps[axis].scaled(w.dilation) + constant(-w.low)
    sketch.load(source, index)
    sketch.update(out, loops)
    element = element_of(view, out)
    nests = [sketch.done(cls, element=element)]
    if mean:
        scale = Sketch()
        scale.update(out, scale.over(shape))
        nests.append(scale.done("fdiv", element=element))
    return Implied(tuple(nests))


def softmax(view: FunctionView, source: int, out: int, dim: int, *, log: bool = False) -> Implied | None:
    """max, exp(x - max), sum, division: 5 operations for each element, one of them an exponential.

    `log`: max, x - max, exp, sum, and the difference to the logarithm of the sum of each row.
    """
    shape = shape_of(view, out)
    if shape is None or not shape:
        return None
    dim %= len(shape)
    element = element_of(view, out)
    rows = tuple(e for d, e in enumerate(shape) if d != dim)
    largest, total = -1, -2
    nests = []

    def nest(kind: str) -> tuple[Sketch, list[Linear], list[Linear]]:
        sketch = Sketch()
        loops = [sketch.loop(e, kind if d == dim else "parallel") for d, e in enumerate(shape)]
        return sketch, loops, [i for d, i in enumerate(loops) if d != dim]

    sketch, loops, row = nest("reduction")
    sketch.load(source, loops)
    sketch.update(largest, row)
    nests.append(sketch.done("fminmax", element=element))
    sketch, loops, row = nest("parallel")
    sketch.load(source, loops)
    sketch.load(largest, row)
    sketch.store(out, loops)
    nests.append(sketch.done(*(("fadd",) if log else ("fadd", "fmath")), element=element))
    sketch, loops, row = nest("reduction")
    sketch.load(out, loops)
    sketch.update(total, row)
    nests.append(sketch.done(*(("fmath", "fadd") if log else ("fadd",)), element=element))
    if log:
        sketch = Sketch()
        sketch.update(total, sketch.over(rows))
        nests.append(sketch.done("fmath", element=element))
    sketch, loops, row = nest("parallel")
    sketch.load(out, loops)
    sketch.load(total, row)
    sketch.store(out, loops)
    nests.append(sketch.done("fadd" if log else "fdiv", element=element))
    return Implied(tuple(nests), scratch=((rows, element), (rows, element)))


def normalized(
    view: FunctionView,
    source: int,
    out: int,
    dims: Iterable[int],
    parameters: Sequence[int],
    channel: int | None = None,
) -> Implied | None:
    """Layer, group or instance norm over `dims`: 6 flops an element, 3 a row, 1 an element and affine parameter.

    Mean (1), variance (3), (x - mean) · rsqrt(variance / n + eps) (2), then scale and shift, whose parameters go with
    the last dimensions or with `channel`.
    """
    shape = shape_of(view, source)
    if shape is None or not shape:
        return None
    gone = {d % len(shape) for d in dims}
    element = element_of(view, out)
    rows = tuple(e for d, e in enumerate(shape) if d not in gone)
    mean, variance = -1, -2
    nests = []

    def nest(kind: str) -> tuple[Sketch, list[Linear], list[Linear]]:
        sketch = Sketch()
        loops = [sketch.loop(e, kind if d in gone else "parallel") for d, e in enumerate(shape)]
        return sketch, loops, [i for d, i in enumerate(loops) if d not in gone]

    sketch, loops, row = nest("reduction")
    sketch.load(source, loops)
    sketch.update(mean, row)
    nests.append(sketch.done("fadd", element=element))
    sketch, loops, row = nest("reduction")
    sketch.load(source, loops)
    sketch.load(mean, row)
    sketch.update(variance, row)
    nests.append(sketch.done("fadd", "fmul", "fadd", element=element))
    sketch = Sketch()
    sketch.update(variance, sketch.over(rows))
    nests.append(sketch.done("fdiv", "fadd", "fsqrt", element=element))
    sketch, loops, row = nest("parallel")
    sketch.load(source, loops)
    sketch.load(mean, row)
    sketch.load(variance, row)
    for parameter in parameters:
        at = broadcast(loops, shape_of(view, parameter) or ()) if channel is None else [loops[channel]]
        sketch.load(parameter, at)
    sketch.store(out, loops)
    nests.append(sketch.done("fadd", "fmul", *("fmul", "fadd")[: len(parameters)], element=element))
    return Implied(tuple(nests), scratch=((rows, element), (rows, element)))


def sorted_along(
    view: FunctionView, inputs: Sequence[int], outs: Sequence[int], dim: int, region: int | None
) -> Implied | None:
    """A merge sort: ceil(log2 n) passes, each compares, loads and stores every element once."""
    shape = shape_of(view, inputs[0])
    if shape is None or not shape:
        return None
    dim %= len(shape)
    sketch = Sketch()
    loops = {d: sketch.loop(e) for d, e in enumerate(shape) if d != dim}
    sketch.loop(log2_ceil(shape[dim]), "reduction")
    loops[dim] = sketch.loop(shape[dim])
    index = [loops[d] for d in range(len(shape))]
    for value, out in zip(inputs, outs, strict=False):
        sketch.load(value, index)
        sketch.store(out, index)
    element = element_of(view, inputs[0])
    return Implied((sketch.done(*(() if region is not None else ("fcmp",)), element=element, region=region),))


def transform(view: FunctionView, source: int, out: int, length: int | None, batch: Sequence[int | None]) -> Implied:
    """A fast Fourier transform: log2 n passes with 5 flops for each complex element (5 n log2 n in all)."""
    sketch = Sketch()
    for extent in batch:
        sketch.loop(extent)
    sketch.loop(log2_ceil(length), "reduction")
    place = sketch.loop(length)
    rank = len(shape_of(view, out) or ())
    index = [*[constant(0)] * max(0, rank - 1), place][:rank] if rank else []
    sketch.load(source if shape_of(view, source) == shape_of(view, out) else out, index)
    sketch.store(out, index)
    return Implied((sketch.done("fmul", "fmul", "fadd", "fadd", "fadd", element="f32"),))


# ---- text ----------------------------------------------------------------------------------------------------------

_INT = re.compile(r"-?\d+")
_ALIAS = re.compile(r"\s*(#[A-Za-z_][\w$]*)(?![\w$.<])")


def property_of(view: FunctionView, op: Op, *keys: str) -> str:
    """The attribute of the first key that is there, with aliases replaced; "" if none is.

    A linalg operation may have its attributes behind an alias: `linalg.generic #trait ins(…)`.
    """
    text = view.text_of(op)
    alias = _ALIAS.match(text)
    for where in (text, view.attribute(alias[1])) if alias else (text,):
        for key in keys:
            found = property_text(where, key)
            if found:
                return view.expanded(found)
    return ""


def ints(text: str, n: int | None = None) -> list[int]:
    """Integers of `array<i64: 1>`, `dense<[[1, 2]]> : tensor<…>`, `[1, 2]` or `3 : i64`; a splat is repeated to n."""
    text = text.strip()
    if text.startswith("array<"):
        body = text.partition(":")[2].partition(">")[0]
    elif text.startswith("dense<"):
        body = text[6:].partition(">")[0]
        if '"' in body:
            return []
    elif text.startswith("["):
        depth = 0
        end = len(text)
        for i, c in enumerate(text):
            depth += (c == "[") - (c == "]")
            if not depth:
                end = i
                break
        body = text[:end]
        body = re.sub(r":\s*[su]?i\d+", "", body)
    else:
        body = text.partition(":")[0]
    values = [integer(s) for s in _INT.findall(body)]
    return values * n if n is not None and len(values) == 1 and n > 1 else values


def ints_of(view: FunctionView, op: Op, *keys: str, n: int | None = None) -> list[int]:
    """`ints` of the first of these attributes that is there; [] if none is."""
    text = property_of(view, op, *keys)
    return ints(text, n) if text else []


def body_classes(view: FunctionView, op: Op, region: int = 0) -> list[str]:
    """Classes of the operations in a region, constants and terminators apart."""
    if len(op.regions) <= region:
        return []
    out = []
    for block in op.regions[region].blocks:
        for inner in block.ops:
            value = inner.operands[0] if inner.operands else (inner.results[0] if inner.results else None)
            cls = op_class(inner.name, element_of(view, value) if value is not None else "")
            if cls not in ("const", "yield"):
                out.append(cls)
    return out
