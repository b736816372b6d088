"""Natural loops of control-flow graphs: against a slow definition, and on graphs made to be slow."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgauge.featurize import read
from irgauge.featurize.featurizer import functions_of
from irgauge.featurize.flow_graph import FlowGraph, FlowLoop, flow_graph

Graph = list[list[int]]


def text_of(graph: Graph) -> str:
    """A function with a block for each list of successors."""
    blocks = []
    for at, targets in enumerate(graph):
        labels = ", ".join(f"^b{t}" for t in targets)
        blocks.append(f"^b{at}:\n" + (f'"t.go"()[{labels}] : () -> ()' if targets else '"t.end"() : () -> ()'))
    return '"func.func"() <{function_type = () -> (), sym_name = "f"}> ({\n' + "\n".join(blocks) + "\n}) : () -> ()"


def found(graph: Graph) -> FlowGraph | None:
    program = read(text_of(graph))
    return flow_graph(functions_of(program)[0][1].regions[0].blocks)


def reached(graph: Graph, start: int, without: int = -1) -> set[int]:
    """What can be reached from a block on ways that do not pass another."""
    seen = {start} - {without}
    waiting = list(seen)
    while waiting:
        new = {t for t in graph[waiting.pop()] if t not in seen and t != without}
        seen |= new
        waiting += new
    return seen


def by_definition(graph: Graph) -> dict[int, set[int]] | None:
    """Header -> body, of edges to a dominator; None where a cycle is left without those edges."""
    live = reached(graph, 0)
    dominated = {a: live - reached(graph, 0, without=a) for a in live}
    loops: dict[int, set[int]] = {}
    forward: Graph = [[] for _ in graph]
    for u in live:
        for v in graph[u]:
            if u not in dominated[v]:
                forward[u].append(v)
                continue
            body = loops.setdefault(v, {v})
            body |= {w for w in dominated[v] if w != v and u in reached(graph, w, without=v)}
    if any(u in reached(forward, v) for u in live for v in forward[u]):
        return None
    return loops


def chain(loop: FlowLoop | None) -> list[int]:
    """Headers of a loop and those around it."""
    out = []
    while loop is not None:
        out.append(loop.header)
        loop = loop.parent
    return out


@settings(max_examples=400, deadline=None)
@given(data=st.data(), n=st.integers(2, 9))
def test_loops_order_and_exits_are_those_of_the_definition(data: st.DataObject, n: int) -> None:
    # mostly structured graphs: a spine, with edges back and forth
    graph = [
        [i + 1, *data.draw(st.lists(st.integers(max(0, i - 3), min(n, i + 2)), max_size=1))] if i < n else []
        for i in range(n + 1)
    ]
    expected = by_definition(graph)
    result = found(graph)
    if not expected:
        assert result is None
        return
    assert result is not None
    live = reached(graph, 0)
    assert sorted(result.order) == sorted(live)
    for block in live:
        assert set(chain(result.loop[block])) == {h for h, body in expected.items() if block in body}
    position = {block: k for k, block in enumerate(result.order)}
    for header, body in expected.items():
        places = sorted(position[b] for b in body)
        assert places == list(range(position[header], position[header] + len(body)))
        loop = result.loop[header]
        assert loop is not None
        assert {e.source for e in loop.back} == {u for u in body if header in graph[u]}
        leaving = [(u, v) for u in body for v in graph[u] if v not in body]
        assert loop.exits == len(leaving)
        around = expected[loop.parent.header] if loop.parent is not None else live
        assert loop.leads == sum(v in around for _, v in leaving)
    for u in live:
        for v in graph[u]:
            assert position[u] < position[v] or (v in expected and u in expected[v])


@pytest.mark.parametrize(
    "graph",
    [[[1], [2], []], [[1, 2], [2], [1]], [[1, 2], [3], [3], [1]], [[], [1]], [[1, 3], [2], [3], [2]]],
)
def test_no_cycle_or_one_with_two_entries_has_no_loops(graph: Graph) -> None:
    assert found(graph) is None


def test_deep_and_wide_graphs_take_linear_time() -> None:
    def deep(n: int) -> Graph:
        """Loops in loops: headers 0 to n - 1, each left to the back edge of the loop around it."""
        heads = [[i + 1, 2 * n - i] for i in range(n)]
        return [*heads, [n + 1], *[[n - 1 - k] for k in range(n)], []]

    def ladder(n: int) -> Graph:
        return [*[[0, i + 1] for i in range(n)], []]

    for make in (deep, ladder):
        program = read(text_of(make(10_000)))
        blocks = functions_of(program)[0][1].regions[0].blocks
        start = time.process_time()
        graph = flow_graph(blocks)
        assert graph is not None
        assert graph.n_back == 10_000
        assert time.process_time() - start < 2
