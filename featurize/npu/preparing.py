"""What an operation needs before or after it: exchanges of dimensions around reductions, products, convolutions."""

from __future__ import annotations

import math
from dataclasses import replace

from .exchanges import permuted_forward, swaps_last
from .graph import Graph, Node, Read, Value


def prepare(graph: Graph) -> None:
    """What an operation needs before it: reductions go over channels, products take their second input transposed."""
    _split_multiplied(graph)
    for node in list(graph.nodes):
        if node.kind == "matmul":
            second = node.reads[1]
            maker = second.value.makers[0] if len(second.value.makers) == len(second.value.readers) == 1 else None
            if maker is not None and maker.kind == "transpose" and swaps_last(maker) and len(maker.shape) == 4:
                node.reread(1, maker.reads[0].value)
                node.reads[1].shape = maker.reads[0].shape
                graph.drop(maker)
            else:
                shape = (*second.shape[:-2], second.shape[-1], second.shape[-2])
                _insert_transpose(graph, node, 1, shape)
        elif node.kind == "sum":
            axis = node.axis % len(node.reads[0].shape)
            shape = node.reads[0].shape
            if axis != len(shape) - 1:
                high, wide, deep = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
                node.reads[0].shape = (high, wide, deep)
                _insert_transpose(graph, node, 0, (high, deep, wide))
                node.shape = (high, deep, 1)
            elif len(shape) > 3:
                node.reads[0].shape = (math.prod(shape[:-2]), shape[-2], shape[-1])
                node.shape = (*node.reads[0].shape[:-1], 1)
        elif node.kind == "max":
            axis = node.axis % len(node.reads[0].shape)
            shape = node.reads[0].shape
            high, wide, deep = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
            node.reads[0].shape, node.shape = (high, wide, deep), (high, 1, deep)
            node.window = (1, wide)
        elif node.kind == "conv" and node.reads[0].shape[0] > 1 and node.window == (1, 1) and node.stride == (1, 1):
            shape = node.reads[0].shape
            number = math.prod(shape[:-1])
            wide = max(number // 16, math.ceil(math.sqrt(number)))
            while number % wide:
                wide += 1
            node.reads[0].shape = (1, number // wide, wide, shape[-1])
            node.shape = (1, number // wide, wide, node.shape[-1])


def _split_multiplied(graph: Graph) -> None:
    """A convolution of each channel by itself with several outputs for each is one for each of those, and seven
    exchanges that bring the outputs of a channel beside each other."""
    for node in [n for n in graph.nodes if n.kind == "depthwise" and n.reads[0].part is None and n.part is None]:
        channels, deep = node.reads[0].shape[-1], node.shape[-1]
        if channels == 1 or deep == channels or node.shape[0] > 1:
            continue
        _, high, wide, _ = node.shape
        times = deep // channels
        target, read = node.out, node.reads[0]
        joined = Value((times, high, wide, channels), target.bits)
        graph.drop(node)
        for at in range(times):
            part = replace(node, reads=[replace(read)], out=joined, shape=joined.shape, part=(1, high, wide, channels))
            part.offset, part.weights = (at, 0, 0, 0), node.weights // times
            graph.insert(part)
        made = joined
        exchanges = (
            ((1, times, high, wide * channels), "NWHC"), ((1, high, times, wide * channels), "NWHC"),
            ((1, times * high, wide, channels), "NHCW"), ((1, times, high * channels, wide), "NCWH"),
            ((1, wide * high, channels, times), "NHCW"), ((1, wide, high, times * channels), "NWHC"),
            ((1, high * wide, times, channels), "NHCW"),
        )  # fmt: skip
        for at, (shape, order) in enumerate(exchanges):
            out = target if at == len(exchanges) - 1 else Value(permuted_forward(shape, order), target.bits)
            exchange = Node("transpose", [Read(made, shape)], out, permuted_forward(shape, order), place=node.place)
            exchange.permutation = tuple("NHWC".index(letter) for letter in order)
            made = graph.insert(exchange)


def _insert_transpose(graph: Graph, node: Node, at: int, shape: tuple[int, ...]) -> None:
    read = node.reads[at]
    made = Value(shape, read.value.bits)
    rank = len(shape)
    source = Read(read.value, read.shape, read.part, read.offset)
    transpose = Node("transpose", [source], made, shape, place=node.place)
    transpose.permutation = (*range(rank - 2), rank - 1, rank - 2)
    graph.insert(transpose)
    node.reread(at, made)
    node.reads[at] = Read(made, shape)
