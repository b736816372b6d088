"""Writes kernels of linalg operations on memrefs, and lowers them to affine loops with `mlir-opt`."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..label.tools import run, tool
from .affine_text import BITS, Array, Value
from .transformer_text import NetKernel

__all__ = ["LinalgKernel", "StridedArray", "to_affine"]


@dataclass(eq=False)
class StridedArray(Array):
    """An argument that is part of a larger matrix: its last dimension is contiguous, rows are `pitch` elements apart.

    With `transposed`, the first dimension of two is contiguous instead.
    """

    pitch: int = 0
    transposed: bool = False

    @property
    def type(self) -> str:
        shape = "".join(f"{extent}x" for extent in self.extents)
        return f"memref<{shape}{self.element}, strided<[{', '.join(map(str, self._strides))}]>>"

    @property
    def _strides(self) -> list[int]:
        if self.transposed:
            return [1, self.pitch]
        strides = [1, self.pitch]
        for extent in reversed(self.extents[1:-1]):
            strides.append(strides[-1] * extent)
        return strides[::-1]

    @property
    def bytes(self) -> int:
        last = sum((extent - 1) * stride for extent, stride in zip(self.extents, self._strides, strict=True))
        return (last + 1) * BITS[self.element] // 8


class LinalgKernel(NetKernel):
    """A kernel whose body is linalg operations; every buffer has its shape from the start."""

    def __init__(self, style: random.Random | None = None) -> None:
        super().__init__(style)
        self.cleared: set[str] = set()
        """Names of results that every call computes anew."""

    def strided(self, element: str, *shape: int, pitch: int, transposed: bool = False) -> StridedArray:
        """A new argument with rows (or columns) `pitch` elements apart."""
        made = StridedArray(f"%A{len(self._arrays)}", element, False, list(shape), pitch, transposed)
        self._arrays.append(made)
        return made

    def named(
        self,
        op: str,
        inputs: Sequence[Array | Value],
        outputs: Sequence[Array],
        *,
        volume: float,
        before: str = "",
        after: str = "",
    ) -> None:
        """One named operation; `before` and `after` are its attributes where its syntax has them.

        `volume` is the number of innermost iterations it executes.
        """
        names, types = (", ".join(one) for one in zip(*((i.name, i.type) for i in inputs), strict=True))
        outs = ", ".join(output.name for output in outputs)
        out_types = ", ".join(output.type for output in outputs)
        self.line(f"linalg.{op}{before} ins({names} : {types}) outs({outs} : {out_types}){after}")
        self.executed(4 * volume)

    def fill(self, value: float, array: Array) -> None:
        """Set every element."""
        self.named("fill", [self.constant(value, array.element)], [array], volume=math.prod(array.extents))

    def generic(
        self,
        loops: Sequence[int],
        reductions: Sequence[int],
        inputs: Sequence[tuple[Array, str]],
        outputs: Sequence[tuple[Array, str]],
        body: Callable[[list[Value], list[Value]], Sequence[Value]],
    ) -> None:
        """One `linalg.generic`.

        Parameters
        ----------
        loops : trip counts, which the operands' shapes must imply
        reductions : numbers of the loops that are reductions
        inputs, outputs : each array with its subscripts, e.g. "d0, d2"
        body : takes the scalars read and the outputs' old values, and returns the new ones
        """
        dims = ", ".join(f"d{at}" for at in range(len(loops)))
        maps = ", ".join(f"affine_map<({dims}) -> ({subscripts})>" for _, subscripts in [*inputs, *outputs])
        kinds = ", ".join('"reduction"' if at in reductions else '"parallel"' for at in range(len(loops)))
        heads = []
        for keyword, operands in (("ins", inputs), ("outs", outputs)):
            if operands:
                names = ", ".join(array.name for array, _ in operands)
                heads.append(f"{keyword}({names} : {', '.join(array.type for array, _ in operands)})")
        self.line(f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {' '.join(heads)} {{")
        read = [Value(self.fresh(), array.element) for array, _ in inputs]
        old = [Value(self.fresh(), array.element) for array, _ in outputs]
        self.line(f"^bb0({', '.join(f'{value.name}: {value.type}' for value in [*read, *old])}):")
        with self._inside(float(math.prod(loops))):
            results = body(read, old)
            self._yield("linalg.yield", results)
        self.executed((len(inputs) + 2 * len(outputs)) * math.prod(loops))
        self.line("}")

    def elementwise(
        self, shape: Sequence[int], inputs: Sequence[Array], output: Array, body: Callable[[list[Value]], Value]
    ) -> None:
        """A `linalg.generic` over all elements; an input of lower rank is broadcast along the leading dimensions."""
        rank = len(shape)

        def subscripts(array: Array) -> str:
            return ", ".join(f"d{at}" for at in range(rank - len(array.extents), rank))

        self.generic(
            shape,
            (),
            [(array, subscripts(array)) for array in inputs],
            [(output, subscripts(output))],
            lambda read, old: [body(read)],
        )

    def iteration(self, dimension: int, element: str) -> Value:
        """Inside a body: the loop variable of one dimension as a number."""
        index = self.emit(f"linalg.index {dimension} : index", "index")
        if not Value("", element).is_float:
            return self.cast("arith.index_cast", index, element)
        return self.cast("arith.sitofp", self.cast("arith.index_cast", index, "i32"), element)


_SEPARATOR = "// -----"


@functools.lru_cache(maxsize=64)
def to_affine(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The modules with every linalg operation lowered to affine loops, in one run of `mlir-opt`.

    Raises
    ------
    LabelError
        reason "linalg-error": mlir-opt refuses one of them.
    ToolMissingError
        mlir-opt is not installed.
    """
    command = [tool("mlir-opt"), "--split-input-file", "--convert-linalg-to-affine-loops", "--mlir-print-local-scope"]
    printed = run(command, step="linalg", stdin=f"\n{_SEPARATOR}\n".join(texts), timeout_s=120)
    lowered = tuple(part.strip() + "\n" for part in printed.split(_SEPARATOR))
    assert len(lowered) == len(texts)
    return lowered
