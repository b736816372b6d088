"""Objects of one MLIR library, read by irgauge: run by test_bindings.py in a process of its own, prints JSON.

    python library_objects.py upstream|iree|torch_mlir|jax|xdsl

A process for each library, since two of them may not load together (IREE's bindings and upstream's bring clashing
copies of one native library).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from irgauge import CostModel, IrgaugeError, load
from irgauge.featurize import features_of, read
from irgauge.featurize.inspect import facts

Case = tuple[str, Any, Counter[str], str]
"""Name, object, its operations as its own library walks them, its text as its own library prints it."""

KERNEL = """
#map = affine_map<(d0) -> (d0 * 2 + 1)>
module {
  func.func @kernel(%A: memref<64x64xf32>, %B: memref<64xf32>, %n: index) -> f32 {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    affine.for %i = 0 to 8 {
      %j = affine.apply #map(%i)
      %v = affine.load %A[%i, %j] : memref<64x64xf32>
      %w = arith.mulf %v, %v : f32
      affine.store %w, %B[%i] : memref<64xf32>
    }
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
      %x = memref.load %B[%k] : memref<64xf32>
      %y = arith.addf %s, %x : f32
      scf.yield %y : f32
    }
    return %sum : f32
  }
  func.func private @other(f32)
}
"""

LINALG = """
func.func @main(%a: tensor<16x32xf32>, %b: tensor<32x?xf32>, %c: tensor<16x?xf32>) -> tensor<16x?xf32> {
  %zero = arith.constant 0.0 : f32
  %weights = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%c : tensor<16x?xf32>) -> tensor<16x?xf32>
  %d = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x?xf32>)
                     outs(%init : tensor<16x?xf32>) -> tensor<16x?xf32>
  %e = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%d : tensor<16x?xf32>) outs(%c : tensor<16x?xf32>) {
  ^bb0(%x: f32, %y: f32):
    %m = arith.maximumf %x, %zero : f32
    linalg.yield %m : f32
  } -> tensor<16x?xf32>
  return %e : tensor<16x?xf32>
}
"""

BLOB = '"a.b"() {v = dense_resource<blob> : tensor<200000xi8>} : () -> ()'
RESOURCE = '{-# dialect_resources: { builtin: { blob: "0x08000000' + "0102" * 100_000 + '" } } #-}'


def ops_of(operation: Any) -> Counter[str]:
    """Operation names under an operation of the bindings, itself included, by a walk over its regions."""
    counts: Counter[str] = Counter()
    stack = [operation]
    while stack:
        op = stack.pop()
        counts[op.operation.name] += 1
        stack += [child for region in op.regions for block in region.blocks for child in block.operations]
    return counts


def shared_cases(ir: Any) -> Iterator[Case]:
    """What all Python bindings of MLIR are asked."""
    module = ir.Module.parse(KERNEL)
    ops = ops_of(module.operation)
    function = module.body.operations[0]
    yield "module", module, ops, str(module)
    yield "operation of a module", module.operation, ops, str(module)
    yield "a function alone", function, ops_of(function), str(function)
    yield "operation of a function", function.operation, ops_of(function), str(function)
    with_locations = module.operation.get_asm(enable_debug_info=True)
    assert "loc(" in with_locations
    yield "locations", module, ops, with_locations
    yield "generic form", module, ops, module.operation.get_asm(print_generic_op_form=True)
    unregistered = ir.Module.parse('"foreign.op"() ({ "foreign.inner"() : () -> () }) : () -> ()')
    yield "unregistered operations", unregistered, ops_of(unregistered.operation), str(unregistered)
    blob = ir.Module.parse(BLOB + RESOURCE)
    yield "a resource", blob, ops_of(blob.operation), str(blob)
    dense = ir.Module.parse(BLOB.replace("dense_resource<blob>", 'dense<"0x' + "0102" * 100_000 + '">'))
    yield "a large constant", dense, ops_of(dense.operation), str(dense)
    module.body.append(ir.Operation.create("arith.addf", results=[ir.IntegerType.get_signless(8)]))
    ops["arith.addf"] += 1
    assert 'arith.addf"() <{' in str(module), "prints what does not verify in the generic form"
    yield "a module that does not verify", module, ops, str(module)


def shared_refusals(ir: Any) -> Iterator[tuple[str, Any]]:
    """Objects that are not a program."""
    module = ir.Module.parse(KERNEL)
    function = module.body.operations[0]
    body = function.regions[0].blocks[0]
    yield "a loop alone", next(op for op in body.operations if op.operation.name == "affine.for")
    yield "a block", body
    yield "a value", body.operations[0].results[0]
    yield "a type", body.operations[0].results[0].type
    function.operation.erase()
    yield "an erased operation", function


def upstream() -> Iterator[Case | tuple[str, Any]]:
    from mlir import ir
    from mlir.dialects import affine, arith, func

    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        yield from shared_cases(ir)
        yield from shared_refusals(ir)
        built = ir.Module.create()
        f32 = ir.F32Type.get()
        matrix = ir.MemRefType.get([96, 112], f32)
        with ir.InsertionPoint(built.body):

            @func.FuncOp.from_py_func(matrix, matrix, name="copy")
            def _(source: Any, target: Any) -> None:
                two = arith.ConstantOp(f32, 2.0)
                both = affine.AffineMap.get_identity(2)
                for i in affine.for_(0, 96):
                    for j in affine.for_(0, 112, 4):
                        value = affine.AffineLoadOp(f32, source, [i, j], both)
                        twice = arith.MulFOp(value.result, two.result)
                        affine.AffineStoreOp(twice.result, target, [i, j], both)
                        affine.AffineYieldOp([])
                    affine.AffineYieldOp([])

        assert built.operation.verify()
        ops = ops_of(built.operation)
        assert ops["affine.for"] == 2
        yield "a nest of the builder", built, ops, str(built)


def iree() -> Iterator[Case | tuple[str, Any]]:
    from iree.compiler import ir

    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        yield from shared_cases(ir)
        yield from shared_refusals(ir)
        module = ir.Module.parse(LINALG)
        yield "linalg on tensors", module, ops_of(module.operation), str(module)


def torch_mlir() -> Iterator[Case | tuple[str, Any]]:
    import torch
    from torch_mlir import fx, ir

    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        yield from shared_cases(ir)
        yield from shared_refusals(ir)
    network = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    for output in ("torch", "linalg-on-tensors", "stablehlo", "tosa"):
        module = fx.export_and_import(network, torch.ones(4, 64), output_type=output)
        yield output, module, ops_of(module.operation), str(module)


def jax() -> Iterator[Case | tuple[str, Any]]:
    import jax
    import numpy as np
    from jax import export, lax
    from jax import numpy as jnp
    from jaxlib.mlir import ir

    weights = np.arange(256 * 128, dtype=np.float32).reshape(256, 128) / 7

    def network(x: Any, last: Any) -> Any:
        return jax.nn.softmax(jnp.maximum(x @ weights, 0) @ last)

    def loops(x: Any) -> Any:
        total, _ = lax.scan(lambda carry, row: (carry * 2 + row.sum(), carry), jnp.float32(0), x)
        return lax.while_loop(lambda v: v < 10, lambda v: lax.cond(v > 3, lambda u: u + 3, lambda u: u + 1, v), total)

    x, last = jnp.ones((8, 256)), jnp.ones((128, 10))
    jitted = jax.jit(network)
    lowered = jitted.lower(x, last)
    module = lowered.compiler_ir()
    ops = ops_of(module.operation)
    yield "lowered", lowered, ops, lowered.as_text()
    yield "lowered, with locations", lowered, ops, lowered.as_text(debug_info=True)
    yield "module", module, ops, str(module)
    function = module.body.operations[0]
    yield "a function alone", function, ops_of(function), str(function)
    gradient = jax.jit(jax.grad(lambda x, last: network(x, last)[0, 0])).lower(x, last)
    yield "gradient", gradient, ops_of(gradient.compiler_ir().operation), gradient.as_text()
    control = jax.jit(loops).lower(x)
    yield "scan, while and cond", control, ops_of(control.compiler_ir().operation), control.as_text()
    exported = export.export(jax.jit(loops))(x)
    text = exported.mlir_module()
    with module.context:  # a new one does not know StableHLO
        parsed = ir.Module.parse(text)
    yield "exported", exported, ops_of(parsed.operation), text
    yield "not lowered", jitted
    yield "traced", jitted.trace(x, last)
    yield "compiled", lowered.compile()
    yield "hlo", lowered.compiler_ir("hlo")


def xdsl() -> Iterator[Case | tuple[str, Any]]:
    from xdsl.builder import Builder
    from xdsl.context import Context
    from xdsl.dialects import arith, builtin, func, get_all_dialects, scf
    from xdsl.ir import Block, Region
    from xdsl.parser import Parser
    from xdsl.rewriter import InsertPoint

    def ops_under(operation: Any) -> Counter[str]:
        unregistered = builtin.UnregisteredOp
        return Counter(op.op_name.data if isinstance(op, unregistered) else op.name for op in operation.walk())

    context = Context(allow_unregistered=True)
    for name, dialect in get_all_dialects().items():
        context.register_dialect(name, dialect)
    for title, text in {
        "kernel": KERNEL,
        "linalg on tensors": LINALG,
        "unregistered operations": '"foreign.op"() ({ "foreign.inner"() : () -> () }) : () -> ()',
        "a large constant": '"a.b"() {v = dense<"0x' + "0102" * 100_000 + '"> : tensor<200000xi8>} : () -> ()',
    }.items():
        module = Parser(context, text).parse_module()
        yield title, module, ops_under(module), str(module)
        if title == "kernel":
            function = next(iter(module.body.block.ops))
            yield "a function alone", function, ops_under(function), str(function)
            yield "a loop alone", next(op for op in function.walk() if op.name == "affine.for")
            yield "a block", module.body.block
            yield "a type", builtin.f32
    index = builtin.IndexType()
    body = Block(arg_types=[index])
    add = Builder(InsertPoint.at_end(body))
    one = add.insert(arith.ConstantOp.from_int_and_width(1, 32))
    add.insert(arith.AddiOp(one, one))
    add.insert(scf.YieldOp())
    bounds = [arith.ConstantOp.from_int_and_width(n, index) for n in (0, 10, 2)]
    built = builtin.ModuleOp(
        [func.FuncOp("f", ((), ()), Region(Block([*bounds, scf.ForOp(*bounds, [], Region(body)), func.ReturnOp()])))]
    )
    built.verify()
    yield "a loop of the builder", built, ops_under(built), str(built)


LIBRARIES: dict[str, Callable[[], Iterator[Case | tuple[str, Any]]]] = {
    "upstream": upstream,
    "iree": iree,
    "torch_mlir": torch_mlir,
    "jax": jax,
    "xdsl": xdsl,
}


def predicted(model: CostModel, source: Any) -> list[tuple[str, str, float]]:
    """Function, target and value of each prediction."""
    return [(p.function, e.target, e.value) for p in model.predict(source) for e in p]


def main(library: str) -> None:
    read_objects: dict[str, dict[str, Any]] = {}
    refused: dict[str, dict[str, str]] = {}
    model = load()
    for case in LIBRARIES[library]():
        if len(case) == 2:
            name, source = case
            try:
                read(source)
            except IrgaugeError as error:
                message = str(error)
            else:
                message = ""
            kind = type(source)
            refused[name] = {"type": f"{kind.__module__}.{kind.__qualname__}", "message": message}
            continue
        name, source, ops, text = case
        program = read(source)
        read_objects[name] = {
            "walked": dict(ops),
            "counted": facts(program, implied=True)["op_counts"],
            "implied module": program.root.implied,
            "characters": len(program.text),
            "text": text,
            "features": features_of(source),
            "predicted": predicted(model, source) if len(text) < 10_000 else [],
            "predicted from text": predicted(model, text) if len(text) < 10_000 else [],
        }
    json.dump({"read": read_objects, "refused": refused}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
