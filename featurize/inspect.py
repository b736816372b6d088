"""Counts of a program that need no interpretation: operations, regions, blocks, values, shapes."""

from __future__ import annotations

from collections import Counter

from .dialects import FUNCTION_OPS, LOOP_LEVELS
from .implied_bodies import APPLYING, BodyOp, implied_body
from .program import Op, Program
from .types import parse_type


def facts(program: Program, *, implied: bool = False) -> dict[str, object]:
    """The facts of a program as a JSON-ready dict, keys as in `inspect --format json`.

    `num_ops` and `op_counts` are of the written text; with `implied`, operations that the text leaves out count too
    (the outer module, terminators, bodies of named linalg operations). `implied_ops` lists them in either case.
    Every other field is as in the generic print: blocks and block arguments of regions, sums of results, operands and
    successors, the longest loop nest, and sizes of shaped values (results and block arguments of memref, tensor or
    vector type). `static_elements_max` is None where no shaped value has a static size.
    """
    counts: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    num_blocks = num_block_args = num_results = num_operands = num_successors = 0
    max_region_depth = max_loop_depth = 0
    values: list[int] = []
    stack: list[tuple[Op, int, int]] = [(program.root, 0, 0)]
    while stack:
        op, depth, loops = stack.pop()
        counts[op.name] += 1
        if op.implied:
            left_out[op.name] += 1
        max_region_depth = max(max_region_depth, depth)
        num_results += len(op.results)
        num_operands += len(op.operands)
        num_successors += len(op.successors)
        values.extend(op.results)
        body = _body(program, op)
        if body is not None:
            max_region_depth = max(max_region_depth, depth + 1)
            num_blocks += 1
            num_block_args += len(op.operands)
            if op.name in APPLYING:  # two arguments and a result of the type of the initial value
                values.extend([op.operands[-1]] * 3)
            for inner in body:
                counts[inner.name] += 1
                left_out[inner.name] += 1
                num_operands += inner.operands
                num_results += inner.results
        if op.regions:
            if op.name in LOOP_LEVELS:
                loops += 1
                max_loop_depth = max(max_loop_depth, loops)
            for region in op.regions:
                num_blocks += len(region.blocks)
                for block in region.blocks:
                    num_block_args += len(block.args)
                    values.extend(block.args)
                    stack.extend((child, depth + 1, loops) for child in block.ops)
    out: dict[str, object] = {}
    shown = counts if implied else counts - left_out
    out["num_ops"] = shown.total()
    out["op_counts"] = dict(sorted(shown.items()))
    out["implied_ops"] = dict(sorted(left_out.items()))
    out["max_loop_depth"] = max_loop_depth
    out["num_functions"] = sum(counts[name] for name in FUNCTION_OPS)
    out["max_region_depth"] = max_region_depth
    out["num_blocks"] = num_blocks
    out["num_block_args"] = num_block_args
    out["num_results"] = num_results
    out["num_operands"] = num_operands
    out["num_successors"] = num_successors
    out.update(_shapes(program, values))
    return out


def _body(program: Program, op: Op) -> tuple[BodyOp, ...] | None:
    """The body that an operation has although it is not written."""
    if op.regions or not (op.name in APPLYING or op.name.startswith("linalg.")):
        return None
    elements = [parse_type(program.value_types[value]).element for value in op.operands]
    return implied_body(op.name, elements, op.text)


def _shapes(program: Program, values: list[int]) -> dict[str, object]:
    """Sizes of the shaped ones of these values."""
    types = Counter(program.value_types[value] for value in values)
    shaped = dynamic_values = dynamic_dims = unranked = scalable = total = 0
    largest: int | None = None
    for text, times in types.items():
        if not text.startswith(("memref<", "tensor<", "vector<")):
            continue
        info = parse_type(text)
        shaped += times
        scalable += times * info.scalable
        if info.shape is None:
            unranked += times
            continue
        unknown = sum(size is None for size in info.shape)
        if unknown:
            dynamic_values += times
            dynamic_dims += times * unknown
            continue
        elements = info.elements
        assert elements is not None
        total += times * elements
        largest = elements if largest is None else max(largest, elements)
    return {
        "shaped_values": shaped,
        "static_elements_max": largest,
        "static_elements_total": total,
        "dynamic_values": dynamic_values,
        "dynamic_dims": dynamic_dims,
        "unranked_values": unranked,
        "scalable_values": scalable,
    }
