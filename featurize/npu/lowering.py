"""From a network's text to the steps of an NPU."""

from __future__ import annotations

from ..program import Op, Program
from .devices import Npu
from .graph import Graph, in_order
from .merging import merge_parts, merge_views
from .packing import steps_of
from .preparing import prepare
from .rescalings import merge_rescalings
from .steps import Step


def lower(program: Program, function: Op, npu: Npu) -> list[Step]:
    """The steps of one NPU for a function of TOSA operations. UnknownNetwork if it is no network it could run."""
    graph = Graph(program, function)
    merge_views(graph)
    merge_rescalings(graph, npu)
    merge_parts(graph)
    prepare(graph)
    return steps_of(in_order(graph.outputs), npu)
