"""What the text of a program leaves out about known operations. Everything else in the reader knows no dialect."""

from __future__ import annotations

DEFAULT_DIALECT = {"builtin.module": "builtin", "func.func": "func"}
"""Inside these operations a name without a dialect belongs to this one."""

OWN_DEFAULT = frozenset(["handshake", "cuda_tile", "spirv", "emitc", "ml_program", "pdl", "tt", "test", "wasmssa"])
"""Dialects whose operations with regions make themselves the default inside."""

BARE_NAMES = {
    "builtin": frozenset(["module", "unrealized_conversion_cast"]),
    "func": frozenset(["return", "call", "call_indirect", "constant"]),
}

FUNC_NAMES = {name: f"func.{name}" for name in ("return", "call", "call_indirect", "constant", "func")}

FORMER_STD = {
    **dict.fromkeys(["br", "cond_br", "switch"], "cf"),
    **dict.fromkeys(
        ["alloc", "alloca", "dealloc", "load", "store", "dim", "subview", "view", "memref_cast", "get_global"], "memref"
    ),
    **dict.fromkeys(
        ["addi", "addf", "subi", "subf", "muli", "mulf", "divf", "divi_signed", "divi_unsigned", "divsi", "divui",
         "remi_signed", "remi_unsigned", "remsi", "remui", "remf", "cmpi", "cmpf", "select", "and", "or", "xor",
         "index_cast", "sitofp", "uitofp", "fptosi", "fptoui", "extsi", "extui", "extf", "trunci", "truncf", "fpext",
         "fptrunc", "sexti", "zexti", "shift_left", "shift_right_signed", "negf", "maxf", "minf"],
        "arith",
    ),
    **dict.fromkeys(["sqrt", "exp", "log", "tanh", "rsqrt", "absf", "sin", "cos"], "math"),
    **dict.fromkeys(["assert"], "cf"),
}  # fmt: skip
"""Names of the dissolved `std` dialect, which were written bare, and the dialect that has them now."""

NOT_OPERATIONS = frozenset(
    ["else", "do", "case", "default", "attributes", "loc", "in", "to", "step", "iter_args", "ins", "outs", "into",
     "from", "init", "args", "then", "shared_outs", "mapping", "combiner", "cleanup", "reducer", "applies", "across",
     "cond", "workgroup", "private", "kernel", "permutation", "dimensions", "min", "max", "symbol", "true", "false",
     "dense", "affine_map", "affine_set", "dense_resource", "array", "sparse", "unit", "f32", "f64", "f16", "bf16",
     "index", "none", "tensor", "memref", "vector", "tuple", "complex", "weak", "strong", "uses", "requires", "with",
     "on", "as", "of", "by", "at", "producing", "threads", "blocks", "clusters", "no_inline", "unordered",
     "offset", "strides", "sizes"]
)  # fmt: skip
"""Words that go on with an operation when they stand at the start of a line."""

IMPLIED_TERMINATOR = {
    "affine.for": "affine.yield", "affine.parallel": "affine.yield", "affine.if": "affine.yield",
    "scf.for": "scf.yield", "scf.if": "scf.yield", "scf.parallel": "scf.reduce",
    "scf.forall": "scf.forall.in_parallel", "scf.index_switch": "scf.yield",
    "memref.alloca_scope": "memref.alloca_scope.return", "async.execute": "async.yield",
    "vector.mask": "vector.yield", "gpu.warp_execute_on_lane_0": "gpu.yield",
    "emitc.for": "emitc.yield", "emitc.if": "emitc.yield",
    "transform.sequence": "transform.yield", "transform.named_sequence": "transform.yield",
    "transform.foreach": "transform.yield", "smt.solver": "smt.yield", "smt.check": "smt.yield",
}  # fmt: skip
"""The operation that ends a region of these where none is written."""

ISOLATED = frozenset(
    ["builtin.module", "func.func", "llvm.func", "gpu.func", "gpu.module", "spirv.func", "spirv.module",
     "transform.named_sequence", "emitc.func", "ml_program.func", "async.func", "shape.func", "tt.func"]
)  # fmt: skip
"""Operations whose regions see no value from outside."""

TRANSPARENT = frozenset(["scf", "affine"])
"""Dialects whose regions see the values around them, so that no name may be given twice."""

LOOPS = frozenset(["scf.for", "scf.forall", "scf.parallel", "affine.for", "affine.parallel"])
"""Loops whose counters stand at the start of their text."""

LOOP_LEVELS = LOOPS | {"scf.while"}
"""What counts as a level of a loop nest."""

FUNCTION_OPS = frozenset(["func.func", "llvm.func", "gpu.func", "spirv.func"])

USE_KEYWORDS = frozenset(["ins", "outs", "init", "inits", "operands", "dynamic_shared_memory_size"])
"""Words before a parenthesis that holds uses, not block arguments."""

REGION_ENDS = frozenset(
    ["yield", "return", "terminator", "end", "parallel", "reduce", "output", "barrier", "exit", "unreachable",
     "merge", "Return", "Unreachable", "execute_terminator", "done"]
)  # fmt: skip
"""Last name parts that make `{ a.b }` a region and not the attribute dictionary `{a.b}`."""

REGION_FIRST = frozenset(
    ["func.func", "llvm.func", "gpu.func", "builtin.module", "gpu.module", "scf.for", "scf.if", "scf.parallel",
     "scf.forall", "scf.while", "affine.for", "affine.if", "affine.parallel"]
)  # fmt: skip
"""Operations whose first `{` opens a region unless `attributes` stands before it; so does that of any function."""


def is_region_first(name: str) -> bool:
    """Is the first `{` outside brackets a region, unless `attributes` stands before it?"""
    return name in REGION_FIRST or name.endswith(".func")


REGIONLESS = frozenset(["arith", "math", "cf", "index", "complex", "llvm", "func"])
REGIONLESS_BUT = frozenset(["llvm.func", "llvm.mlir.global", "llvm.comdat", "func.func"])
"""Dialects whose operations have no regions, and their exceptions."""

FUNCTION_VALUE = frozenset(["func.constant", "spirv.mlir.addressof"])
"""What stands after their colon is the type of the result, arrow or not."""

INDEX_RESULT = frozenset(
    ["memref.dim", "tensor.dim", "tensor.rank", "memref.rank", "affine.apply", "affine.min", "affine.max",
     "gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.global_id", "gpu.lane_id",
     "gpu.subgroup_id", "gpu.subgroup_size", "gpu.num_subgroups", "gpu.cluster_id", "gpu.cluster_dim",
     "gpu.cluster_block_id", "vector.vscale", "index.add", "index.sub", "index.mul", "index.divs", "index.divu",
     "index.rems", "index.remu", "index.maxs", "index.maxu", "index.mins", "index.minu", "index.ceildivs",
     "index.ceildivu", "index.floordivs", "index.shl", "index.shrs", "index.shru", "index.and", "index.or",
     "index.xor", "memref.extract_aligned_pointer_as_index", "flow.dispatch.workgroup.id",
     "flow.dispatch.workgroup.count", "flow.dispatch.workgroup.size", "hal.interface.workgroup.id",
     "hal.interface.workgroup.count", "hal.interface.workgroup.size", "affine.linearize_index", "async.add_to_group",
     "index.sizeof"]
)  # fmt: skip

ELEMENT_RESULT = frozenset(
    [
        "llvm.extractelement",
        "memref.load",
        "affine.load",
        "tensor.extract",
        "memref.generic_atomic_rmw",
        "vector.extractelement",
    ]
)
"""The result is an element of the first type written."""

ALWAYS_ONE_RESULT = frozenset(["arith", "math", "complex", "index"])
"""Dialects whose operations have one result, named or not."""

ONE_RESULT = INDEX_RESULT | {
    "memref.load", "memref.alloc", "memref.alloca", "memref.cast", "memref.subview", "memref.view", "memref.get_global",
    "memref.expand_shape", "memref.collapse_shape", "memref.reinterpret_cast", "memref.transpose", "memref.atomic_rmw",
    "affine.load", "affine.vector_load", "tensor.empty", "tensor.extract", "tensor.insert", "tensor.cast",
    "tensor.extract_slice", "tensor.insert_slice", "tensor.expand_shape", "tensor.collapse_shape", "tensor.pad",
    "tensor.from_elements", "tensor.generate", "tensor.splat", "tensor.reshape", "tensor.concat",
    "vector.load", "vector.transfer_read", "vector.broadcast", "vector.splat", "vector.fma", "vector.extract",
    "vector.insert", "vector.contract", "vector.reduction", "vector.multi_reduction", "vector.outerproduct",
    "vector.shape_cast", "vector.transpose", "vector.shuffle", "vector.bitcast", "vector.create_mask",
    "vector.constant_mask", "vector.extract_strided_slice", "vector.insert_strided_slice", "vector.gather",
    "vector.maskedload", "vector.expandload", "vector.step", "vector.extractelement", "vector.insertelement",
    "vector.interleave", "vector.scan", "bufferization.to_tensor", "bufferization.to_buffer",
    "bufferization.alloc_tensor", "bufferization.clone", "linalg.index", "builtin.unrealized_conversion_cast",
    "llvm.load", "llvm.add", "llvm.mlir.constant", "llvm.mlir.addressof", "llvm.mlir.zero", "llvm.alloca",
}  # fmt: skip
"""Operations with one result, named or not."""

WITH_BUILTIN_TYPES = frozenset(
    ["arith", "math", "memref", "affine", "scf", "func", "tensor", "vector", "complex", "index", "linalg"]
)
"""Dialects whose types are builtin ones or start with `!`: a type that is neither is a mistake."""

OPERANDS = {
    **dict.fromkeys(
        ["arith.addi", "arith.addf", "arith.subi", "arith.subf", "arith.muli", "arith.mulf", "arith.divf",
         "arith.divsi", "arith.divui", "arith.remf", "arith.remsi", "arith.remui", "arith.ceildivsi", "arith.ceildivui",
         "arith.floordivsi", "arith.andi", "arith.ori", "arith.xori", "arith.shli", "arith.shrsi", "arith.shrui",
         "arith.cmpi", "arith.cmpf", "arith.maxsi", "arith.maxui", "arith.minsi", "arith.minui", "arith.maximumf",
         "arith.minimumf", "arith.maxnumf", "arith.minnumf", "math.powf", "math.ipowi", "math.fpowi", "math.atan2",
         "math.copysign"],
        2,
    ),
    **dict.fromkeys(
        ["arith.extf", "arith.extsi", "arith.extui", "arith.truncf", "arith.trunci", "arith.sitofp", "arith.uitofp",
         "arith.fptosi", "arith.fptoui", "arith.bitcast", "arith.index_cast", "arith.index_castui", "arith.negf",
         "math.absf", "math.absi", "math.ceil", "math.cos", "math.erf", "math.exp", "math.exp2", "math.expm1",
         "math.floor", "math.log", "math.log10", "math.log1p", "math.log2", "math.round", "math.rsqrt", "math.sin",
         "math.sqrt", "math.tan", "math.tanh", "math.trunc", "memref.cast", "tensor.cast"],
        1,
    ),
    **dict.fromkeys(["arith.select", "math.fma", "vector.fma"], 3),
    "arith.constant": 0,
}  # fmt: skip
"""How many operands these have."""
