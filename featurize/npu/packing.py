"""From operations on tensors to the steps of an NPU: what is cut into several, what is done at once.

On the larger NPU operations element by element are chained: what one makes the next takes, without a way through
memory. An activation, and there a transpose, is done along with the operation before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .devices import Npu, Shape, TensorOp
from .exchanges import exchanges, permuted_forward
from .graph import ACTIVATIONS, BINARY, MOST_ELEMENTS, MOST_STEPS, Node, Read, UnknownNetwork, Value, four
from .steps import Step, Tensor

_ELEMENTLIKE = BINARY | ACTIVATIONS | {"rescale"}
"""Operations whose tensors may be laid out in any shape of as many elements."""
_FEW_CHANNELS, _ENOUGH_CHANNELS, _FEW_ELEMENTS = 8, 16, 16
_MOST_CHAINED, _MOST_STREAMS = 4, 3
_LONGEST_STRIDE = 3
_LONGEST_DILATION = 2
_KINDS = {"average": "pool", "maximum_pool": "pool", "max": "pool", "transposed": "conv", "transpose": "pool"}


def steps_of(nodes: Sequence[Node], npu: Npu) -> list[Step]:
    """The steps for operations in the order in which they run."""
    return _Packing(npu).steps(nodes)


def _bound(steps: int, node: Node) -> None:
    """UnknownNetwork where there are too many."""
    if steps > MOST_STEPS:
        raise UnknownNetwork(f"{node.kind} of {node.shape} makes more than {MOST_STEPS} steps")


def _enough_channels(shape: Shape) -> Shape:
    """The same elements with at least 16 channels, where there are few."""
    elements = math.prod(shape)
    if shape[3] >= _FEW_CHANNELS or elements <= _FEW_ELEMENTS:
        return shape
    extents = [1, 1, 1]
    for factor in _factors(elements):
        if extents[2] < _ENOUGH_CHANNELS:
            extents[2] *= factor
        else:
            extents[0 if extents[0] <= extents[1] else 1] *= factor
    return 1, max(extents[:2]), min(extents[:2]), extents[2]


def _factors(number: int) -> list[int]:
    found, factor = [], 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return [*found, number] if number > 1 else found


@dataclass
class _Command:
    """One operation with the tensors it touches, before those that follow are merged with it."""

    node: Node
    op: TensorOp
    reads: list[Read]
    read_shapes: list[Shape]
    """Of the whole tensors, as the operation sees them."""
    shape: Shape
    """Of the whole output."""
    weights: int = 0
    parts: int = 1
    """How many operations write the output."""
    phase: int = 0
    """Which of those have weights of their own."""


@dataclass
class _Group:
    """A command with what is done along with it and chained to it."""

    first: _Command
    commands: list[_Command] = field(default_factory=list)
    activated: bool = False
    transposed: bool = False
    chained: int = 0
    streams: int = 0


class _Packing:
    """Turns operations into steps, in the order in which they run."""

    def __init__(self, npu: Npu) -> None:
        self.npu = npu
        self.tensors: dict[int, Tensor] = {}

    def steps(self, nodes: Sequence[Node]) -> list[Step]:
        commands: list[_Command] = []
        for node in nodes:
            commands += self._commands(node)
            _bound(len(commands), node)
        groups: list[_Group] = []
        at = 0
        while at < len(commands):
            group = _Group(commands[at], [commands[at]])
            self._start(group)
            at += 1
            while at < len(commands) and self._takes(group, commands[at]):
                group.commands.append(commands[at])
                at += 1
            groups.append(group)
        formats = self._formats(groups)
        return [self._step(group, formats) for group in groups]

    # what an operation is run as

    def _commands(self, node: Node) -> list[_Command]:
        whole = [four(read.shape) for read in node.reads]
        inputs = [four(read.part or read.shape) for read in node.reads]
        shape, part = four(node.shape), four(node.part or node.shape)
        if node.kind != "transpose":
            _bound(part[0] * math.prod(node.dilation) * math.prod(node.stride), node)
        if node.kind in _ELEMENTLIKE:
            return self._element_commands(node, whole, inputs, shape, part)
        if node.kind == "matmul":
            return self._matmul_commands(node, whole, shape)
        bits, out_bits = node.reads[0].value.bits, node.out.bits
        kind = _KINDS.get(node.kind, node.kind)
        op = TensorOp(
            kind, (1, *inputs[0][1:]), (1, *part[1:]), node.window, node.stride, node.dilation, bits,
            out_bits, wide_sums=kind in ("conv", "depthwise", "sum"), output_cycles=self._output_cycles(node),
        )  # fmt: skip
        if node.kind == "transposed":
            return self._transposed_commands(node, op, whole, shape)
        if node.kind == "transpose":
            return self._transpose_commands(node, op, whole, shape)
        if node.kind == "resize":
            return self._resize_commands(node, op, whole, shape)
        batches = part[0]
        if node.kind == "depthwise" and part[3] > inputs[0][3] == 1:
            op = replace(op, kind="conv")
        found = []
        for cut, weights in self._cuts(node, op):
            found.append(_Command(node, cut, node.reads, whole, shape, weights))
        found *= batches
        for command in found:
            command.parts = len(found)
        return [replace(command) for command in found]

    def _cuts(self, node: Node, op: TensorOp) -> list[tuple[TensorOp, int]]:
        """An operation cut where the hardware cannot do it at once."""
        if max(op.stride) > _LONGEST_STRIDE and node.kind != "depthwise" and node.pad == (0, 0, 0, 0):
            if op.window == op.stride == op.input[1:3]:
                return [(replace(op, stride=(1, 1)), node.weights)]
            one = replace(op, input=(1, *op.window, op.input[3]), output=(1, 1, 1, op.output[3]), stride=(1, 1))
            _bound(op.output[1] * op.output[2], node)
            return [(one, node.weights)] * (op.output[1] * op.output[2])
        if max(op.dilation) > _LONGEST_DILATION:
            found = []
            for down in range(op.dilation[0]):
                for right in range(op.dilation[1]):
                    high, wide = op.output[1] - down, op.output[2] - right
                    if high > 0 and wide > 0:
                        found.append((replace(op, output=(1, high, wide, op.output[3]), dilation=(1, 1)), node.weights))
            return found
        return [(op, node.weights)]

    def _output_cycles(self, node: Node) -> float:
        """Cycles for one output of an operation on its own."""
        bits, out_bits = node.reads[0].value.bits, node.out.bits
        if self.npu.shared:
            if node.kind in BINARY:
                if bits == 32:
                    return 1.25
                return 0.75 if node.kind == "mul" else 1.5
            return 0.75 if node.kind in ("conv", "depthwise", "transposed") and bits == 16 else 0.5
        if out_bits == 64 or (node.kind in BINARY and bits == 32):
            return 0.5
        return 0.25

    def _element_commands(
        self, node: Node, whole: list[Shape], inputs: list[Shape], shape: Shape, part: Shape
    ) -> list[_Command]:
        bits, out_bits = node.reads[0].value.bits, node.out.bits
        second: Shape | None = inputs[1] if len(inputs) > 1 else None
        plain = node.part is None and all(read.part is None for read in node.reads)
        same = second is None or math.prod(second) == 1 or second == inputs[0]
        if plain and same and not node.per_channel:
            laid = _enough_channels(part)
            if laid != part:
                shape = part = laid
                whole = [laid if math.prod(w) > 1 else w for w in whole]
                inputs = [laid if math.prod(i) > 1 else i for i in inputs]
        if part[0] > 1 and 1 in part[1:]:
            drop = max(d for d in range(1, 4) if part[d] == 1)

            def fewer(s: Shape) -> Shape:
                return four([n for d, n in enumerate(s) if d != drop])

            shape, part = fewer(shape), fewer(part)
            whole, inputs = [fewer(w) for w in whole], [fewer(i) for i in inputs]
        elif part[0] > 1 and plain and same and not node.per_channel:

            def stacked(s: Shape) -> Shape:
                return 1, s[0] * s[1], s[2], s[3]

            shape, part = stacked(shape), stacked(part)
            whole, inputs = [stacked(w) for w in whole], [stacked(i) for i in inputs]
        second = inputs[1] if len(inputs) > 1 else None
        kind = "elements" if node.kind in BINARY else "pool"
        batches = part[0]
        first = inputs[0]
        if math.prod(first) == 1 and second is not None:
            first, second = second, first
        op = TensorOp(
            kind, (1, *first[1:]), (1, *part[1:]), input_bits=bits, output_bits=out_bits,
            second=None if second is None else (1, *second[1:]), output_cycles=self._output_cycles(node),
        )  # fmt: skip
        return [_Command(node, op, node.reads, whole, shape, parts=batches) for _ in range(batches)]

    def _matmul_commands(self, node: Node, whole: list[Shape], shape: Shape) -> list[_Command]:
        def flat(s: Shape) -> Shape:
            return 1, s[0] * s[1], s[2], s[3]

        first, second, out = flat(whole[0]), flat(whole[1]), flat(shape)
        _bound(out[1], node)
        bits, out_bits = node.reads[0].value.bits, node.out.bits
        if self.npu.shared:
            op = TensorOp("matmul", first, out, input_bits=bits, output_bits=out_bits, second=second, output_cycles=0.5)
            return [_Command(node, op, node.reads, [first, second], out)]
        op = TensorOp(
            "product", (1, 1, *first[2:]), (1, 1, *out[2:]), input_bits=bits, output_bits=out_bits,
            second=(1, 1, *second[2:]), wide_sums=True, output_cycles=self._output_cycles(node),
        )  # fmt: skip
        return [_Command(node, op, node.reads, [first, second], out, parts=out[1]) for _ in range(out[1])]

    def _transposed_commands(self, node: Node, op: TensorOp, whole: list[Shape], shape: Shape) -> list[_Command]:
        """A convolution of what is spread by zeros; on the larger NPU one for each phase of the output."""
        batches = shape[0]
        if self.npu.shared:
            plain = replace(op, stride=(1, 1), spread=max(node.stride) > 1)
            return [_Command(node, plain, node.reads, whole, shape, node.weights, batches) for _ in range(batches)]
        found: list[_Command] = []
        for down in range(node.stride[0]):
            for right in range(node.stride[1]):
                window = -(-(node.window[0] - down) // node.stride[0]), -(-(node.window[1] - right) // node.stride[1])
                output = (1, op.output[1] - down, op.output[2] - right, op.output[3])
                if min(*window, *output) < 1:
                    continue
                phase = replace(op, stride=(1, 1), window=window, output=output)
                weights = math.prod(window) * op.input[3] * op.output[3]
                found.append(_Command(node, phase, node.reads, whole, shape, weights, phase=len(found)))
        found *= batches
        return [replace(command, parts=len(found)) for command in found]

    def _transpose_commands(self, node: Node, op: TensorOp, whole: list[Shape], shape: Shape) -> list[_Command]:
        kind = "transpose" if self.npu.shared else "pool"
        found = []
        for first, order in exchanges(node.reads[0].shape, node.permutation, self.npu):
            out = permuted_forward(first, order)
            one = replace(op, kind=kind, input=first, output=out, permuted=order)
            found.append(_Command(node, one, node.reads, [first], out))
        for command in found:
            command.parts = len(found)
        return found

    def _resize_commands(self, node: Node, op: TensorOp, whole: list[Shape], shape: Shape) -> list[_Command]:
        if not self.npu.shared:
            op = replace(op, kind="resize")
            return [_Command(node, op, node.reads, whole, shape, parts=shape[0]) for _ in range(shape[0])]
        found, high, wide = [], op.input[1], op.input[2]
        while high < op.output[1] or wide < op.output[2]:
            next_high, next_wide = min(2 * high, op.output[1]), min(2 * wide, op.output[2])
            source, target = (1, high, wide, op.input[3]), (1, next_high, next_wide, op.input[3])
            one = replace(op, kind="pool", input=source, output=target, spread=True)
            found.append(_Command(node, one, node.reads, whole, shape))
            high, wide = next_high, next_wide
        return found or [_Command(node, replace(op, kind="copy"), node.reads, whole, shape)]

    # what is merged

    def _start(self, group: _Group) -> None:
        command = group.first
        group.activated = command.node.kind in ACTIVATIONS
        group.transposed = command.node.kind == "transpose" and bool(command.op.permuted)
        group.streams = len([r for r in command.reads if math.prod(r.shape) > 1 or r.value.interface != "constant"])

    def _takes(self, group: _Group, command: _Command) -> bool:
        """Whether the next operation is done along with a group."""
        last = group.commands[-1]
        made = last.node.out
        node = command.node
        if command.parts > 1 or made.interface == "output" or len(made.readers) != 1 or len(made.makers) != 1:
            return False
        at = next((n for n, read in enumerate(node.reads) if read.value is made), None)
        if at is None or last.parts > 1 or last.node.part is not None or node.reads[at].part is not None:
            return False
        if node.kind in ACTIVATIONS or (node.kind == "transpose" and not self.npu.shared):
            return self._fuses(group, last, command)
        return self._chains(group, last, command, at)

    def _fuses(self, group: _Group, last: _Command, command: _Command) -> bool:
        node = command.node
        first = group.first
        if node.kind in ACTIVATIONS:
            if group.activated or first.op.kind in ("matmul", "resize") or (self.npu.shared and group.commands[1:]):
                return False
            if first.op.kind == "transpose" and first.op.output_bits != 8:
                return False
            any_shape = first.op.kind in ("sum", "elements", "transpose") and last.op.kind != "pool"
            if last.shape != command.read_shapes[0] and not any_shape:
                return False
            if node.part is None:
                command.shape = last.shape
            group.activated = True
            return True
        order = command.op.permuted
        if group.transposed or group.chained or not order or first.op.kind == "resize":
            return False
        if node.reads[0].shape != last.node.shape:
            return False
        if last.shape != command.read_shapes[0] or (last.op.kind == "elements" and order not in ("NHCW", "NCHW")):
            return False
        group.transposed = True
        return True

    def _chains(self, group: _Group, last: _Command, command: _Command, at: int) -> bool:
        npu, first = self.npu, group.first
        if npu.shared or command.op.kind != "elements" or group.transposed:
            return False
        if first.op.kind == "resize" or (first.node.kind == "rescale" and first.op.input_bits > 16):
            return False
        others = [n for n in range(len(command.reads)) if n != at]
        reads = [(command.reads[n].value, command.read_shapes[n]) for n in others]
        external = [value for value, shape in reads if value.interface != "constant" or math.prod(shape) > 1]
        if group.chained + 1 >= _MOST_CHAINED or group.streams + len(external) > _MOST_STREAMS:
            return False
        if last.shape != four(command.node.part or command.shape) or last.shape != command.read_shapes[at]:
            return False
        group.chained += 1
        group.streams += len(external)
        group.activated = False
        return True

    # tensors and steps

    def _formats(self, groups: Sequence[_Group]) -> dict[int, bool]:
        """Whether each tensor is stored in bricks of 16 channels: all who touch it see the same width and channels."""
        seen: dict[int, set[tuple[int, int]]] = {}
        linear: set[int] = set()
        for group in groups:
            inside = {id(c.node.out) for c in group.commands[:-1]}
            for command in group.commands:
                for read, shape in zip(command.reads, command.read_shapes, strict=True):
                    value = read.value
                    if id(value) in inside:
                        continue
                    if value.interface:
                        linear.add(id(value))
                    part = four(read.part)[2:] if read.part is not None else shape[2:]
                    seen.setdefault(id(value), set()).add((part[0], part[1]))
                    if read.offset is not None and read.offset and read.offset[-1] % 16:
                        linear.add(id(value))
                    if command.op.kind == "sum" and command.op.input_bits == 32:
                        linear.add(id(value))
                    if command.op.kind in ("transpose", "matmul"):
                        linear.add(id(value))
            last = group.commands[-1]
            value = last.node.out
            if value.interface:
                linear.add(id(value))
            shape = last.shape
            seen.setdefault(id(value), set()).add((shape[2], shape[3]))
            offset = last.node.offset
            if offset and last.node.part is not None and offset[-1] % 16:
                linear.add(id(value))
            phases = group.first.node.kind == "transposed" and group.first.parts > 1
            if phases or any(c.op.kind in ("transpose", "matmul") for c in group.commands):
                linear.add(id(value))
        return {value: value not in linear and len(shapes) == 1 for value, shapes in seen.items()}

    def _tensor(self, value: Value, shape: Shape, formats: dict[int, bool]) -> Tensor:
        found = self.tensors.get(id(value))
        if found is None:
            interface = value.interface
            found = Tensor(shape, value.bits, interface, formats.get(id(value), False))
            self.tensors[id(value)] = found
        return found

    def _step(self, group: _Group, formats: dict[int, bool]) -> Step:
        first, last = group.first, group.commands[-1]
        inside = {id(c.node.out) for c in group.commands[:-1]}
        op = first.op
        cycles = op.output_cycles
        table = any(c.node.kind == "table" for c in group.commands)
        if self.npu.shared and table and first.node.kind != "table":
            cycles = max(cycles, 1.0)
        if group.chained:
            chain = [c for c in group.commands if c is first or c.op.kind == "elements"]
            cycles = 0.0
            for at, command in enumerate(chain):
                wide = 32 in (command.op.input_bits, command.op.output_bits)
                inner = at < len(chain) - 1
                cycles += 0.5 if inner and wide else self._output_cycles(command.node)
        transposes = [c for c in group.commands[1:] if c.node.kind == "transpose"]
        out_bits = last.node.out.bits if not group.chained else first.op.output_bits
        op = replace(op, output_cycles=cycles, output_bits=out_bits)
        if transposes:
            op = replace(op, output=(1, *last.shape[1:]), permuted=transposes[0].op.permuted)
        reads: list[Tensor] = []
        chained: list[Tensor] = []
        for command in group.commands:
            for read, shape in zip(command.reads, command.read_shapes, strict=True):
                if id(read.value) in inside or (read.value.interface == "constant" and math.prod(shape) == 1):
                    continue
                tensor = self._tensor(read.value, shape, formats)
                (reads if command is first else chained).append(tensor)
        writes = self._tensor(last.node.out, last.shape, formats)
        if op.permuted and not self.npu.shared:
            op = replace(op, permuted_bricks=writes.bricks)
        if not reads:
            reads = [Tensor(op.input, op.input_bits, "constant", False)]
        for shape in (op.input, op.output, *(tensor.shape for tensor in (*reads, *chained, writes))):
            if min(shape) < 1 or math.prod(shape) > MOST_ELEMENTS:
                raise UnknownNetwork(f"{op.kind} of {shape}")
        own_table = first.node.kind == "table"
        return Step(
            op,
            reads,
            writes,
            chained,
            chained=bool(group.chained),
            weights=first.weights,
            place=next((c.node.place for c in group.commands if c.node.place >= 0), -1),
            weights_of=(id(first.node), first.phase),
            table=own_table,
            fused=group.activated and not own_table,
            fused_table=table and not own_table,
        )
