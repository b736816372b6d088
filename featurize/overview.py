"""What a person wants to know of a program at first sight: each function's loops, work, memory and registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from .access import access
from .featurizer import functions_of
from .function_view import FunctionView
from .liveness import liveness
from .loop_tree import BOXES, MOST_LINES, Glyphs, draw, value_name
from .program import Op, Program
from .tensors import tensors
from .work import work

MOST_FUNCTIONS = 20
"""Functions described unless all are wanted."""
_MOST_PARAMETERS = 8
_LONGEST_TYPE = 60

WORK = {
    "operations run": "work.executions",
    "flop": "work.flops",
    "elements loaded": "work.loads",
    "elements stored": "work.stores",
    "bytes moved": "work.bytes",
    "flop/byte": "work.intensity",
    "cycles (estimate)": "work.cycles",
}
"""Column -> feature, all for one call of the function."""
MEMORY = {
    "argument bytes": "tensors.bytes_in",
    "bytes made inside": "tensors.bytes_inside",
    "bytes touched": "access.footprint_bytes",
    "lines touched": "access.lines_cold",
    "lines into L1": "access.lines_l1",
    "lines into LLC": "access.lines_llc",
}
"""Column -> feature: bytes, then distinct cache lines, then lines fetched through two caches."""
LIVE = {
    "live values": "liveness.max_live",
    "integers": "liveness.max_live_scalar",
    "floats": "liveness.max_live_float",
    "256-bit vectors": "liveness.max_live_vector",
    "in innermost loops": "liveness.innermost_live",
    "longest chain": "liveness.chain_max",
}
"""Column -> feature: most values live at once, by class; operations of the longest dependence chain of a block."""


@dataclass(frozen=True)
class FunctionOverview:
    """One function, described."""

    name: str
    """Without `@`."""
    heading: str
    """Name and arguments."""
    tree: list[str]
    """Lines of `loop_tree.draw`."""
    features: dict[str, float]
    """Of the groups work, access, tensors and liveness."""


def overviews(program: Program, glyphs: Glyphs = BOXES, *, everything: bool = False) -> Iterator[FunctionOverview]:
    """Each function with a body, the first `MOST_FUNCTIONS` unless `everything`; nothing for an empty module."""
    functions = [(name, op) for name, op in functions_of(program) if any(b.ops for r in op.regions for b in r.blocks)]
    for name, op in functions if everything else islice(functions, MOST_FUNCTIONS):
        view = FunctionView(program, op)
        features = {**work(view), **access(view), **tensors(view), **liveness(view)}
        tree = draw(view, glyphs, None if everything else MOST_LINES)
        yield FunctionOverview(name, _heading(program, name, op, view, glyphs), tree, features)


def _heading(program: Program, name: str, op: Op, view: FunctionView, glyphs: Glyphs) -> str:
    if op is program.root:
        return "top level of the module"
    parameters = []
    for value in view.arguments[:_MOST_PARAMETERS]:
        text = program.value_types[value]
        shown = text if len(text) <= _LONGEST_TYPE else text[:_LONGEST_TYPE] + glyphs.ellipsis
        parameters.append(f"{value_name(program, value)}: {shown}")
    left = len(view.arguments) - len(parameters)
    if left:
        parameters.append(f"{left:,} more")
    return f"@{name}({', '.join(parameters)})"
