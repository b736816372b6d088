"""The loop nest of a function as a tree of text lines, for people: trip counts, work and strides of each loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from .function_view import FunctionView
from .inner_loops import bodies
from .nodes import UNKNOWN_TRIP, Access, Loop, Node
from .op_classes import FLOAT_CLASSES
from .program import Op, Program

MOST_DEPTH = 24
"""Loops nested deeper are counted, not drawn."""
MOST_LINES = 80
"""Lines drawn of one function unless all are wanted."""
_MOST_STRIDES = 4
"""Loops whose strides are named, the innermost ones."""
_MOST_NAMES = 6
_MOST_ACCESSES = 12

LEGEND = {
    "~": "an average or an estimate",
    "?": f"not known from the text, taken as {UNKNOWN_TRIP}",
    "strides": "elements that the address moves with each iteration of the loop named",
}
"""What the marks in the lines mean."""


@dataclass(frozen=True)
class Glyphs:
    """What branches and cuts are drawn with."""

    tee: str = "├─ "
    corner: str = "└─ "
    bar: str = "│  "
    blank: str = "   "
    ellipsis: str = "…"


ASCII = Glyphs("|- ", "`- ", "|  ", "   ", "...")
BOXES = Glyphs()


def draw(view: FunctionView, glyphs: Glyphs = BOXES, most_lines: int | None = MOST_LINES) -> list[str]:
    """Lines of the tree below a function's name; what is left out is said in a line of its own.

    A loop's line has its kind, counter and iterations; the lines below it have the work of one iteration outside inner
    loops, then its accesses, then the loops inside. None for `most_lines` draws all down to `MOST_DEPTH`.
    """
    lines: list[tuple[str, int]] = []
    for line in _lines(view, glyphs):
        if len(lines) == most_lines:
            left = len(view.loops) - sum(loops for _, loops in lines[:-1])
            what = f"{left:,} more {_plural('loop', left)}" if left else "more"
            lines[-1] = f"{glyphs.ellipsis} {what} not drawn (--all draws all)", 0
            break
        lines.append(line)
    return [text for text, _ in lines] or ["nothing but constants and terminators"]


def _lines(view: FunctionView, glyphs: Glyphs) -> Iterator[tuple[str, int]]:
    """Each line, and how many loops it stands for."""
    accesses: dict[int, list[Access]] = {}
    for access in view.accesses:
        accesses.setdefault(id(access.loop), []).append(access)
    bodies_of = {id(body.loop): body for body in bodies(view)}
    names = _Names(view)
    top = [node for node in view.nodes if node.loop is None]
    for text in _work(view, top, accesses.get(id(None), []), names, None, "outside loops: " if view.loops else ""):
        yield text, 0
    if view.back_edges and not any(loop.kind == "cf" for loop in view.loops):
        yield f"loops made of branches: {view.back_edges:,} (each ? iterations)", 0
    stack = [(loop, "", i == len(view.top_loops) - 1) for i, loop in enumerate(view.top_loops)][::-1]
    while stack:
        loop, indent, last = stack.pop()
        notes = [_iterations(loop)]
        if loop.depth > 1:
            notes.append(f"{_estimated(loop)}{_count(loop.execs)} in all")
        notes += [word for word, true in (("parallel", loop.parallel), ("reduction", loop.reduction)) if true]
        if loop.step != 1:
            notes.append(f"step {loop.step:,}")
        if loop.carried:
            notes.append(f"carries {len(loop.carried):,} {_plural('value', len(loop.carried))}")
        body = bodies_of.get(id(loop))
        if body is not None and body.memory_reductions and not loop.reduction:
            notes.append("reduces in memory")
        if body is not None and body.vector_width > 1 and not loop.children:
            notes.append(f"should vectorize to {body.vector_width:g} lanes")
        yield f"{indent}{glyphs.corner if last else glyphs.tee}{names.loop(loop)}: {', '.join(notes)}", 1
        indent += glyphs.blank if last else glyphs.bar
        below = indent + (glyphs.bar if loop.children else glyphs.blank)
        for text in _work(view, loop.nodes, accesses.get(id(loop), []), names, loop, ""):
            yield below + text, 0
        if loop.depth >= MOST_DEPTH and loop.children:
            deeper = _inside(loop)
            yield (
                f"{indent}{glyphs.corner}{glyphs.ellipsis} {deeper:,} deeper {_plural('loop', deeper)} not drawn",
                deeper,
            )
            continue
        count = len(loop.children)
        stack += [(child, indent, i == count - 1) for i, child in enumerate(loop.children)][::-1]


def _work(
    view: FunctionView, nodes: list[Node], accesses: list[Access], names: _Names, loop: Loop | None, prefix: str
) -> Iterator[str]:
    """What one iteration does outside inner loops: counts, then a line for each kind of access."""
    flop = loads = stores = 0
    others: Counter[str] = Counter()
    for node in nodes:
        if node.cls in FLOAT_CLASSES:
            flop += node.lanes * (2 if node.cls == "fma" else 1)
            if node.results and view.type_of(node.results[0]).kind not in ("scalar", "vector"):
                others[node.name] += 1  # an operation of a graph: which one it is tells more
        elif node.cls == "load":
            loads += 1
        elif node.cls == "store":
            stores += 1
        elif node.cls not in ("const", "yield", "loop") and not node.virtual and not node.name.startswith("linalg."):
            others[node.name] += 1
    parts = [f"{flop:,} flop"] if flop else []
    parts += [f"{n:,} {_plural(word, n)}" for word, n in (("load", loads), ("store", stores)) if n]
    ordered = sorted(others.items(), key=lambda item: (-item[1], item[0]))
    parts += [f"{n:,} {name}" for name, n in ordered[:_MOST_NAMES]]
    rest = sum(n for _, n in ordered[_MOST_NAMES:])
    parts += [f"{rest:,} other {_plural('operation', rest)}"] if rest else []
    if parts:
        yield prefix + ", ".join(parts)
    if loop is None:
        return
    groups: dict[tuple[object, ...], list[Access]] = {}
    for access in accesses:
        groups.setdefault(names.access(access, loop), []).append(access)
    width = max((len(str(key[1])) for key in groups), default=0)
    for key, group in list(groups.items())[:_MOST_ACCESSES]:
        kind, name, element, strides, share = key
        times = f" ×{len(group)}" if len(group) > 1 else ""
        yield f"{kind:5} {name!s:{width}}  {element}  {strides}{share}{times}"
    if len(groups) > _MOST_ACCESSES:
        left = sum(map(len, list(groups.values())[_MOST_ACCESSES:]))
        yield f"{left:,} more loads and stores"


class _Names:
    """Values and loop counters as the text calls them."""

    def __init__(self, view: FunctionView) -> None:
        self._view = view
        self._known: dict[int, str] = {}

    def loop(self, loop: Loop) -> str:
        """The op with its counter: `affine.for %i`, `linalg.matmul d0`."""
        kind = loop.node.name if loop.node is not None else loop.kind
        return kind if kind == "scf.while" else f"{kind} {self.counter(loop)}"

    def counter(self, loop: Loop) -> str:
        """The loop's counter as written; where the text has none: `d` and the dimension, of a plain loop the depth."""
        dimension = 0
        parent = loop.parent
        while parent is not None and parent.node is loop.node:
            dimension += 1
            parent = parent.parent
        op = loop.node.op if loop.node is not None else None
        if op is not None and loop.kind != "linalg":
            match = _COUNTERS.match(op.text)
            written = _NAME.findall(match.group()) if match is not None else []
            if dimension < len(written):
                return str(written[dimension])
            return f"d{loop.depth - 1}"
        return f"d{dimension}"

    def access(self, access: Access, loop: Loop) -> tuple[object, ...]:
        """What is the same in accesses drawn as one line: kind, memref, element, strides, share of the iterations."""
        moves: list[str] = []
        level: Loop | None = loop
        while level is not None and len(moves) < _MOST_STRIDES:
            if level.kind != "scf.while":
                moves.append(f"{self.counter(level).removeprefix('%')} {access.stride_in(level):,}")
            level = level.parent
        if not access.known:
            strides = "address not known"
        else:
            about = "" if access.address.is_linear() else "~"
            strides = f"strides {about}{', '.join(reversed(moves))}" if moves else ""
        element = self._view.type_of(access.root).element or "?"
        if access.lanes > 1:
            element = f"{access.lanes:,} x {element}"
        share = access.weight / loop.execs if loop.execs else 1.0
        taken = "" if share > 0.9995 else f", in {100 * share:.3g} % of the iterations"
        return "store" if access.is_store else "load", self.value(access.root), element, strides, taken

    def value(self, value: int) -> str:
        """The SSA name, with `%`."""
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = value_name(self._view.program, value)
        return known


_NAME = re.compile(r"%[\w$.-]+")
_COUNTERS = re.compile(r"\s*(?:unsigned\s+)?(?:%[\w$.-]+(?=\s*=)|\((?:\s*%[\w$.-]+\s*,?)+\)(?=\s*(?:=|in\b)))")
_RESULTS = re.compile(r"(?:%[\w$.-]+(?::\d+)?\s*,\s*)*%[\w$.-]+(?::\d+)?(?=\s*=)")
_PARAMETER = re.compile(r"(%[\w$.-]+)\s*:")


def value_name(program: Program, value: int) -> str:
    """A value's name as written, a member of a pack as `%r#1`; `%argN` for an argument whose name the text lacks."""
    defined = program.value_defs[value]
    if isinstance(defined, Op):
        position = list(defined.results).index(value)
        match = _RESULTS.match(program.text, defined.offset)
        for written in match.group().split(",") if match else ():
            name, _, many = written.strip().partition(":")
            if position < int(many or 1):
                return f"{name}#{position}" if many else name
            position -= int(many or 1)
        return "%?"
    position = defined.args.index(value)
    names = _PARAMETER.findall(defined.parent.parent.text) if defined is defined.parent.blocks[0] else []
    return str(names[position]) if position < len(names) else f"%arg{position}"


def _iterations(loop: Loop) -> str:
    if loop.unknown:
        return "? iterations"
    if loop.constant_trip:
        return f"{_count(loop.trip)} {_plural('iteration', loop.trip)}"
    return f"~{_count(loop.trip)} iterations, at most {_count(loop.max_trip)}"


def _estimated(loop: Loop) -> str:
    level: Loop | None = loop
    while level is not None:
        if level.unknown:
            return "~"
        level = level.parent
    return "" if float(loop.execs).is_integer() else "~"


def _inside(loop: Loop) -> int:
    count = 0
    stack = [loop]
    while stack:
        children = stack.pop().children
        count += len(children)
        stack += children
    return count


def _count(value: float) -> str:
    """Whole numbers in full up to 10^15, then with four digits; averages with four digits."""
    if value >= 1e15:
        return f"{value:.3e}"
    return f"{value:,.0f}" if float(value).is_integer() or value >= 1e4 else f"{value:.4g}"


def _plural(word: str, n: float) -> str:
    return word if n == 1 else f"{word}s"
