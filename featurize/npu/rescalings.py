"""Rescalings: done along with the operation before or after where the hardware can, else passes of their own.

On the smaller NPU one of 32-bit numbers is an addition and a multiplication, element by element.
"""

from __future__ import annotations

from .devices import Npu
from .graph import BINARY, POOLS, WINDOWED, Graph, Node, Read, Value


def merge_rescalings(graph: Graph, npu: Npu) -> None:
    """Leave out those that cost nothing; on the smaller NPU take apart the others, and wide tables."""
    for node in [n for n in graph.nodes if n.kind == "rescale"]:
        source, target = node.reads[0].value, node.out
        unit = not node.per_channel and node.multiplier == 1 << node.shift if node.shift < 63 else False
        if len(target.readers) == 1 and target.interface != "output" and node.zeros[1] == 0:
            reader = target.readers[0]
            at = next(n for n, read in enumerate(reader.reads) if read.value is target)
            if not reader.reads[at].scaled and _takes_scaled_input(reader, node, at, unit, npu):
                graph.drop(node)
                reader.reread(at, source)
                reader.reads[at].scaled = True
                continue
        if len(source.makers) == 1 and len(source.readers) == 1 and source.interface == "" and node.zeros[0] == 0:
            maker = source.makers[0]
            if not maker.scaled and _scales_output(maker, node, unit, npu):
                graph.drop(node)
                maker.retarget(target)
                maker.scaled = True
                if node.part is not None:
                    maker.part, maker.offset, maker.shape = node.part, node.offset, node.shape
    if npu.shared:
        _split_tables(graph)
        _split_rescalings(graph)


def _takes_scaled_input(reader: Node, node: Node, at: int, unit: bool, npu: Npu) -> bool:
    bits = node.reads[0].value.bits
    if node.per_channel or bits > 16:
        return False
    if reader.kind == "sum":
        return not npu.shared and unit
    if reader.kind not in BINARY:
        return False
    if npu.shared:
        if reader.kind in ("add", "sub"):
            whole = node.shift < 31 and node.multiplier % (1 << node.shift) == 0
            if not (whole and node.multiplier >> node.shift < 1 << 15):
                return False
        elif not unit:
            return False
    elif reader.kind == "mul" and not unit:
        return False
    other = reader.reads[1 - at]
    if other.value.bits == bits:
        return True
    makers = other.value.makers
    if len(makers) == 1 and makers[0].kind == "rescale":
        rescale = makers[0]
        return (
            rescale.reads[0].value.bits == bits
            and not rescale.per_channel
            and len(other.value.readers) == 1
            and rescale.zeros[1] == 0
        )
    return False


def _scales_output(maker: Node, node: Node, unit: bool, npu: Npu) -> bool:
    bits = maker.reads[0].value.bits
    if maker.kind in WINDOWED or maker.kind == "matmul":
        return True
    if maker.kind == "transposed":
        return False
    if maker.kind in POOLS:
        return not npu.shared or maker.kind != "average" or unit
    if maker.kind == "sum":
        return not node.per_channel
    if maker.kind == "resize":
        return node.multiplier == 1 and node.shift >= 16
    if maker.kind in BINARY and not node.per_channel:
        if npu.shared:
            return bits < 32 or node.multiplier == 1
        return maker.kind != "mul" or bits < 32 or node.multiplier == 1
    if maker.kind == "table" and npu.shared:
        return node.multiplier == 1 and node.shift == 7
    return False


def _split_rescalings(graph: Graph) -> None:
    """On the smaller NPU: widened by an addition, multiplied element by element."""
    for node in [n for n in graph.nodes if n.kind == "rescale"]:
        source = node.reads[0].value
        if source.bits <= 16 and node.out.bits <= 16:
            continue
        number = Value((1,), source.bits, "constant")
        if source.bits < 32:
            wide = Value(source.shape, 32)
            shape = node.reads[0].shape
            widening = Node("add", [Read(source, shape), Read(number, (1,))], wide, shape, place=node.place)
            graph.insert(widening)
            node.reread(0, wide)
        scales = Value((node.shape[-1],) if node.per_channel else (1,), 32, "constant")
        node.kind = "mul"
        node.reads.append(Read(scales, scales.shape))


def _split_tables(graph: Graph) -> None:
    """On the smaller NPU: a table of 16-bit inputs with 32-bit outputs is three of them, two products and a sum."""
    for node in [n for n in graph.nodes if n.kind == "table" and n.out.bits == 32 and n.reads[0].value.bits == 16]:
        _split_table(graph, node)


def _split_table(graph: Graph, node: Node) -> None:
    source, shape = node.reads[0].value, node.shape

    def added(kind: str, *values: Value, bits: int) -> Value:
        reads = [Read(value, value.shape if value.interface == "constant" else shape) for value in values]
        return graph.insert(Node(kind, reads, Value(shape, bits), shape, place=node.place))

    first, second, third = (added("table", source, bits=16) for _ in range(3))
    rest = added("mul", first, Value((1,), 16, "constant"), bits=32)
    slopes = added("mul", second, third, bits=32)
    source.readers.remove(node)
    node.kind, node.reads = "add", [Read(rest, shape), Read(slopes, shape)]
    rest.readers.append(node)
    slopes.readers.append(node)
