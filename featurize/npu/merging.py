"""What an NPU does by reading or writing elsewhere: reshaping, padding, joining, cutting."""

from __future__ import annotations

from .graph import WINDOWED, Graph, Node, Read, Value


def merge_views(graph: Graph) -> None:
    """Leave out what only renames tensors; copy where that is not possible."""
    _merge_aliases(graph)
    _merge_pads(graph)


def merge_parts(graph: Graph) -> None:
    """Write what is joined where it belongs, read what is cut where it lies; copy where that is not possible."""
    _merge_joins(graph)
    _merge_slices(graph)


def _insert_copy(graph: Graph, value: Value, place: int) -> Value:
    made = Value(value.shape, value.bits)
    return graph.insert(Node("copy", [Read(value, value.shape)], made, value.shape, place=place))


def _merge_aliases(graph: Graph) -> None:
    """What only changes a shape is done by reading in another shape; by a copy where the tensor is read otherwise too,
    or is one of the network's own."""
    copies: set[int] = set()
    views = [n for n in graph.nodes if n.kind in ("reshape", "identity") or _moves_nothing(n)]
    for node in list(views):
        source = node.reads[0].value
        maker = source.makers[0] if len(source.makers) == 1 else None
        if maker is not None and maker in views and source.readers == [node] and not source.interface:
            node.reread(0, maker.reads[0].value)
            views.remove(maker)
            graph.drop(maker)
    for node in views:
        source, target = node.reads[0].value, node.out
        renamed = node.shape == source.shape
        others = [n for n in source.readers if n is not node and not renamed]
        graph.drop(node)
        if target.interface == "output" and (source.interface in ("input", "constant") or others):
            graph.insert(Node("copy", [Read(source, source.shape)], target, source.shape, place=node.place))
            continue
        if target.interface == "output":
            for maker in list(source.makers):
                maker.retarget(target)
            continue
        if others and source.interface != "constant" and id(source) not in copies:
            copied = _insert_copy(graph, source, node.place)
            copies.add(id(copied))
            for reader in others:
                for at, read in enumerate(reader.reads):
                    if read.value is source:
                        reader.reread(at, copied)
            source = copied
        for reader in list(target.readers):
            for at, read in enumerate(reader.reads):
                if read.value is target:
                    reader.reread(at, source)


def _moves_nothing(node: Node) -> bool:
    """Whether a transpose leaves dimensions of more than one element in their order."""
    if node.kind != "transpose":
        return False
    kept = [d for d in node.permutation if node.reads[0].shape[d] != 1]
    return kept == sorted(kept)


def _merge_pads(graph: Graph) -> None:
    """Padding before a convolution is done along with it; other padding copies the tensor into a larger one."""
    for node in [n for n in graph.nodes if n.kind == "pad"]:
        sizes = node.permutation
        rank = len(node.shape)
        before, after = sizes[::2] or (0,) * rank, sizes[1::2] or (0,) * rank
        source, target = node.reads[0].value, node.out
        readers = list(target.readers)
        spatial = rank == 4 and not any((before[0], before[3], after[0], after[3]))
        kernels = [r for r in readers if r.kind in WINDOWED and r.pad == (0, 0, 0, 0) and spatial]
        most = (max(before[1], after[1]), max(before[2], after[2])) if spatial else (0, 0)
        fits = [r for r in kernels if most[0] < _extents(r)[0] and most[1] < _extents(r)[1]]
        for reader in fits:
            reader.pad = before[1], after[1], before[2], after[2]
            reader.reread(0, source)
            reader.reads[0].shape = source.shape
        if len(fits) == len(readers) and target.interface != "output":
            graph.drop(node)
            continue
        maker = source.makers[0] if len(source.makers) == 1 else None
        if maker is not None and source.readers == [node] and _is_movable(maker, source, node.reads[0]):
            graph.drop(node)
            maker.retarget(target)
            maker.part, maker.offset, maker.shape = node.reads[0].shape, tuple(before), node.shape
        else:
            node.kind, node.part, node.offset = "copy", node.reads[0].shape, tuple(before)
        constant = Value((1,), target.bits, "constant")
        for axis in range(rank):
            for extent in (before[axis], after[axis]):
                if extent:
                    part = tuple(extent if d == axis else n for d, n in enumerate(node.shape))
                    read = Read(constant, part)
                    graph.insert(Node("copy", [read], target, node.shape, part, (0,) * rank, place=node.place))


def _extents(node: Node) -> tuple[int, int]:
    high, wide = ((k - 1) * d + 1 for k, d in zip(node.window, node.dilation, strict=True))
    return high, wide


def _merge_joins(graph: Graph) -> None:
    """What is joined is written where it belongs; copied where it is read otherwise too."""
    for node in [n for n in graph.nodes if n.kind == "concat"]:
        target, at = node.out, 0
        axis = node.axis % len(node.shape)
        reads = node.reads
        graph.drop(node)
        for read in reads:
            offset = tuple(at if d == axis else 0 for d in range(len(node.shape)))
            at += read.shape[axis]
            value = read.value
            maker = value.makers[0] if len(value.makers) == 1 else None
            once = sum(r.value is value for r in reads) == 1 and not value.readers
            movable = maker is not None and once and _is_movable(maker, value, read)
            if maker is not None and movable:
                maker.retarget(target)
                maker.part, maker.offset, maker.shape = read.shape, offset, node.shape
            else:
                copied = Read(value, read.shape)
                graph.insert(Node("copy", [copied], target, node.shape, read.shape, offset, place=node.place))


def _is_movable(maker: Node, made: Value, read: Read) -> bool:
    """Whether what is made could be written into a part of another tensor at once."""
    turned = ("concat", "slice", "transpose", "transposed", "max")
    return not made.interface and maker.part is None and read.shape == maker.shape and maker.kind not in turned


def _merge_slices(graph: Graph) -> None:
    """A part of a tensor is read as such by its only reader; else it is copied."""
    for node in [n for n in graph.nodes if n.kind == "slice"]:
        source, target = node.reads[0], node.out
        readers = target.readers
        node.kind = "copy"
        source.part, source.offset, node.offset = node.shape, node.offset, None
        if len(readers) == 1 and target.interface == "" and readers[0].kind not in ("transpose", "reshape"):
            reader = readers[0]
            reads = [read for read in reader.reads if read.value is target]
            if len(reads) == 1 and reads[0].part is None and reads[0].shape == target.shape:
                graph.drop(node)
                reader.reread(reader.reads.index(reads[0]), source.value)
                reads[0].shape, reads[0].part, reads[0].offset = source.shape, source.part, source.offset
