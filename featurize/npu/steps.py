"""What an NPU runs, one after the other, and the tensors between."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from .devices import Shape, TensorOp, up


@dataclass(eq=False)
class Tensor:
    """What operations write and read."""

    shape: Shape
    bits: int
    interface: str = ""
    """"input" or "output" of the network, "constant", or "" for one in between."""
    bricks: bool = True
    """In bricks of 16 channels; else channels last."""
    makers: list[int] = field(default_factory=list)
    """Operations that write it, by number."""
    readers: list[int] = field(default_factory=list)
    cached: bool = False
    staged: bool = False
    """A copy of one of the network's inputs."""

    @property
    def bytes(self) -> int:
        depth = up(self.shape[3], 16) if self.bricks else self.shape[3]
        return up(math.prod(self.shape[:3]) * depth * self.bits // 8, 16)


@dataclass(eq=False)
class Step:
    """One operation of the NPU, with what is chained to it."""

    op: TensorOp
    reads: list[Tensor]
    """What the first of the chain reads: one tensor or two; a number that stands in the command is not among them."""
    writes: Tensor
    """What the last of the chain writes."""
    chained_reads: list[Tensor] = field(default_factory=list)
    chained: bool = False
    """Whether operations are chained to the first, activations apart."""
    weights: int = 0
    """Elements of its constant weights."""
    table: bool = False
    """A table of its own is loaded before it runs."""
    fused: bool = False
    """An activation is done along with it."""
    fused_table: bool = False
    """And it is one that is looked up in a table."""
    place: int = -1
    """Where the first of the chain is written in the program's text; -1 for what is not."""
    weights_of: Hashable = 0
    """The same for steps that share their weights."""

    weight_bytes: int = 0
    scale_bytes: int = 0
    buffered: bool = False
    ahead_bytes: int = 0
    first_bytes: int = 0
    buffer_bytes: int = 0
    slack_cycles: float = 0.0
    slack_bytes: int = 0

    @property
    def stored_bytes(self) -> int:
        """Of all constants as they are stored."""
        return self.weight_bytes + self.scale_bytes

    def of_depth(self, depth: int) -> TensorOp:
        """The operation for so many of its output channels."""
        return replace(self.op, output=(*self.op.output[:3], depth))
