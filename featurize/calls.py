"""What calls add: a function that calls others counts what they count, times how often the call runs.

Rules
-----
* Each call adds the totals of its callee (its own calls included) times the executions of the call.
* Functions that call each other in a cycle count as one body that runs once: each of them has the sum of all, and of
  the calls that leave the cycle. How deep a recursion goes is not in the text.
* A callee that the program does not hold (a declaration, a pointer, a custom call) counts as a call, and its executions
  in `work.calls_unknown`.
* `footprint` is of data, not of time: it adds each callee once. `unknown_trip` is a flag: it holds if one does.
* Totals stop at 1e18: ten calls in a chain of ten loops reach any number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .program import Op
from .symbols import Symbols, symbol_at

if TYPE_CHECKING:
    from .function_view import FunctionView

Totals = dict[str, float]
MOST = 1e18
_CALLEE = re.compile(r"\bdecomposition\s*=\s*(@)|\bcallee\s*=\s*(@)")
_NO_CALLEE = ("custom_call", "call_indirect", "inline_asm", "call_intrinsic")


@dataclass
class Called:
    """One function: what it does itself, and what it calls."""

    own: Totals
    calls: list[tuple[Op, float]] = field(default_factory=list)
    """(function, executions of the call)."""
    total: Totals | None = None
    """With everything it calls, once known."""


def calls_of(view: FunctionView, symbols: Symbols) -> tuple[list[tuple[Op, float]], float]:
    """([(callee, executions)], executions of calls whose callee is not in the program)."""
    found = []
    unknown = 0.0
    for node in view.nodes:
        if node.cls != "call" or node.op is None:
            continue
        callee = symbols.resolve(path, node.op) if (path := _path(view, node.op)) else None
        if callee is None:
            unknown += node.execs
        else:
            found.append((callee, node.execs))
    return found, unknown


def _path(view: FunctionView, op: Op) -> list[str]:
    """The parts of the symbol that a call names."""
    if op.name.rpartition(".")[2] in _NO_CALLEE:
        return []
    text = view.text_of(op)
    match = _CALLEE.search(text)
    at = text.find("@") if match is None else match.start(1) if match.group(1) else match.start(2)
    if at < 0 or (match is None and text.lstrip().startswith("(")):
        return []
    path = []
    while at >= 0:
        name = symbol_at(text, at)
        path.append(name)
        end = at + 1 + len(name) + (2 if text.startswith('"', at + 1) else 0)
        at = end + 2 if text.startswith("::@", end) else -1
    return path


def with_calls(view: FunctionView, own: Totals, measure: Callable[[FunctionView], Totals]) -> Totals:
    """`own` and what the calls of the function add; `measure` gives the own totals of another view."""
    if not any(node.cls == "call" and node.op is not None for node in view.nodes):
        return own
    memo = view.program.memo
    symbols: Symbols | None = memo.get("symbols")
    if symbols is None:
        symbols = memo["symbols"] = Symbols(view.program)
    known: dict[Op, Called] = memo.setdefault("calls", {})
    start = view.function
    if start not in known:
        calls, unknown = calls_of(view, symbols)
        known[start] = Called({**own, "calls_unknown": unknown}, calls)
    _reach(view, known, symbols, measure)
    _sum(known, start)
    total = known[start].total
    assert total is not None
    return total


def _reach(
    view: FunctionView, known: dict[Op, Called], symbols: Symbols, measure: Callable[[FunctionView], Totals]
) -> None:
    """Measure every function that can be reached and is not known."""
    waiting = [callee for callee, _ in known[view.function].calls]
    while waiting:
        function = waiting.pop()
        if function in known:
            continue
        other = type(view)(view.program, function)
        calls, unknown = calls_of(other, symbols)
        known[function] = Called({**measure(other), "calls_unknown": unknown}, calls)
        waiting.extend(callee for callee, _ in calls)


def _sum(known: dict[Op, Called], start: Op) -> None:
    """Set the totals of `start` and all it reaches: callees first, cycles as one (Tarjan's algorithm, iterative)."""
    index: dict[Op, int] = {}
    low: dict[Op, int] = {}
    open_: list[Op] = []
    is_open: set[Op] = set()
    work: list[tuple[Op, int]] = [(start, -1)]
    while work:
        function, at = work.pop()
        entry = known[function]
        if at < 0:
            if entry.total is not None or function in index:
                continue
            index[function] = low[function] = len(index)
            open_.append(function)
            is_open.add(function)
        deeper = False
        for i in range(max(at, 0), len(entry.calls)):
            callee = entry.calls[i][0]
            if callee in is_open:
                low[function] = min(low[function], low[callee])
            elif known[callee].total is None:
                work.append((function, i))
                work.append((callee, -1))
                deeper = True
                break
        if deeper or low[function] != index[function]:
            continue
        cycle = []
        while True:
            member = open_.pop()
            is_open.discard(member)
            cycle.append(member)
            if member is function:
                break
        _close(known, cycle)


def _close(known: dict[Op, Called], cycle: list[Op]) -> None:
    inside = set(cycle)
    recursive = any(callee in inside for member in cycle for callee, _ in known[member].calls)
    parts = [(known[member].own, 1.0) for member in cycle]
    data: dict[Op, None] = {}
    for member in cycle:
        for callee, execs in known[member].calls:
            if callee in inside:
                continue
            total = known[callee].total
            assert total is not None
            parts.append((total, execs))
            data[callee] = None
    out: Totals = {}
    for name in parts[0][0]:
        if name == "unknown_trip":
            out[name] = max(1.0 if recursive else 0.0, *(totals[name] for totals, _ in parts))
        elif name == "footprint":
            reached = [known[callee].total or {} for callee in data]
            out[name] = min(MOST, sum([known[m].own[name] for m in cycle] + [t[name] for t in reached]))
        else:
            out[name] = min(MOST, sum(totals[name] * execs for totals, execs in parts))
    for member in cycle:
        known[member].total = out
