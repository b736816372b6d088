"""What kind of work an operation is, from its name and its result's element type: the classes every group counts by.

Known dialects are listed; an operation of any other dialect is classed by the last part of its name where that is
telling (`foo.add`, `vendor.exp`), else it is `other`. Nothing fails on an unknown name.
"""

from __future__ import annotations

from functools import lru_cache

CLASSES: tuple[str, ...] = (
    "fadd",
    "fmul",
    "fdiv",
    "fma",
    "fsqrt",
    "fmath",
    "fminmax",
    "fcheap",
    "fcmp",
    "select",
    "iadd",
    "imul",
    "idiv",
    "ibit",
    "icmp",
    "index",
    "cast",
    "const",
    "load",
    "store",
    "alloc",
    "copy",
    "loop",
    "branch",
    "call",
    "yield",
    "vecmove",
    "vreduce",
    "sync",
    "other",
)
"""`index` is integer arithmetic on `index` values (addresses and bounds); `fmath` is a library call (exp, pow, …);
`fcheap` is one instruction without arithmetic (abs, copysign, round); `vecmove` rearranges vector lanes."""

FLOAT_CLASSES = frozenset(("fadd", "fmul", "fdiv", "fma", "fsqrt", "fmath", "fminmax", "fcheap"))
INT_CLASSES = frozenset(("iadd", "imul", "idiv", "ibit", "icmp"))

LATENCY: dict[str, float] = {
    "fadd": 4.0,
    "fmul": 4.0,
    "fdiv": 13.0,
    "fma": 4.0,
    "fsqrt": 18.0,
    "fmath": 45.0,
    "fminmax": 4.0,
    "fcheap": 1.0,
    "fcmp": 4.0,
    "select": 2.0,
    "iadd": 1.0,
    "imul": 3.0,
    "idiv": 18.0,
    "ibit": 1.0,
    "icmp": 1.0,
    "index": 1.0,
    "cast": 4.0,
    "load": 5.0,
    "store": 1.0,
    "call": 5.0,
    "vecmove": 2.0,
    "vreduce": 12.0,
    "copy": 10.0,
    "alloc": 20.0,
}
"""Cycles from operands to result on a recent x86-64 core, rounded; classes left out take 0."""

THROUGHPUT: dict[str, float] = {
    "fadd": 0.5,
    "fmul": 0.5,
    "fdiv": 5.0,
    "fma": 0.5,
    "fsqrt": 6.0,
    "fmath": 20.0,
    "fminmax": 0.5,
    "fcheap": 0.5,
    "fcmp": 0.5,
    "select": 0.5,
    "iadd": 0.25,
    "imul": 1.0,
    "idiv": 8.0,
    "ibit": 0.25,
    "icmp": 0.25,
    "index": 0.15,
    "cast": 1.0,
    "load": 0.5,
    "store": 1.0,
    "call": 5.0,
    "vecmove": 1.0,
    "vreduce": 4.0,
    "copy": 10.0,
    "alloc": 20.0,
}
"""Cycles one operation keeps its busiest port, reciprocal throughput."""

_MATH_CHEAP = ("absf", "copysign", "ceil", "floor", "round", "roundeven", "trunc")
_TABLE: dict[str, str] = {
    **{f"arith.{n}": "fadd" for n in ("addf", "subf")},
    **{f"arith.{n}": "fminmax" for n in ("maximumf", "minimumf", "maxnumf", "minnumf", "maxf", "minf")},
    **{f"arith.{n}": "iadd" for n in ("addi", "subi", "addui_extended", "maxsi", "minsi", "maxui", "minui")},
    **{f"arith.{n}": "imul" for n in ("muli", "mulsi_extended", "mului_extended")},
    **{f"arith.{n}": "idiv" for n in ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")},
    **{f"arith.{n}": "ibit" for n in ("andi", "ori", "xori", "shli", "shrsi", "shrui")},
    **{
        f"arith.{n}": "cast"
        for n in (
            "extf",
            "truncf",
            "sitofp",
            "uitofp",
            "fptosi",
            "fptoui",
            "extsi",
            "extui",
            "trunci",
            "bitcast",
            "index_cast",
            "index_castui",
        )
    },
    "arith.negf": "fcheap",
    "arith.mulf": "fmul",
    "arith.divf": "fdiv",
    "arith.remf": "fmath",
    "arith.cmpf": "fcmp",
    "arith.cmpi": "icmp",
    "arith.select": "select",
    "arith.constant": "const",
    "math.fma": "fma",
    "vector.fma": "fma",
    "math.sqrt": "fsqrt",
    "math.rsqrt": "fsqrt",
    **{f"math.{n}": "fcheap" for n in _MATH_CHEAP},
    **{f"math.{n}": "ibit" for n in ("absi", "ctlz", "cttz", "ctpop")},
    "math.ipowi": "imul",
    **{f"affine.{n}": "index" for n in ("apply", "min", "max", "linearize_index", "delinearize_index")},
    "affine.load": "load",
    "affine.vector_load": "load",
    "memref.load": "load",
    "vector.load": "load",
    "tensor.extract": "load",
    "vector.transfer_read": "load",
    "vector.maskedload": "load",
    "vector.gather": "load",
    "vector.expandload": "load",
    "affine.store": "store",
    "affine.vector_store": "store",
    "memref.store": "store",
    "vector.store": "store",
    "tensor.insert": "store",
    "vector.transfer_write": "store",
    "vector.maskedstore": "store",
    "vector.scatter": "store",
    "vector.compressstore": "store",
    "memref.atomic_rmw": "store",
    "memref.generic_atomic_rmw": "store",
    "memref.alloc": "alloc",
    "memref.alloca": "alloc",
    "memref.dealloc": "alloc",
    "tensor.empty": "alloc",
    "gpu.alloc": "alloc",
    "memref.copy": "copy",
    "linalg.copy": "copy",
    "memref.dim": "index",
    "tensor.dim": "index",
    "memref.rank": "index",
    "memref.prefetch": "load",
    "affine.prefetch": "load",
    "memref.get_global": "const",
    **{
        f"memref.{n}": "index"
        for n in (
            "subview",
            "cast",
            "reinterpret_cast",
            "expand_shape",
            "collapse_shape",
            "view",
            "extract_strided_metadata",
            "memory_space_cast",
            "transpose",
            "extract_aligned_pointer_as_index",
        )
    },
    "affine.for": "loop",
    "affine.parallel": "loop",
    "scf.for": "loop",
    "scf.parallel": "loop",
    "scf.forall": "loop",
    "scf.while": "loop",
    "affine.if": "branch",
    "scf.if": "branch",
    "scf.index_switch": "branch",
    "cf.br": "branch",
    "cf.cond_br": "branch",
    "cf.switch": "branch",
    "func.call": "call",
    "func.call_indirect": "call",
    "llvm.call": "call",
    "stablehlo.composite": "call",
    "mhlo.composite": "call",
    "func.return": "yield",
    "affine.yield": "yield",
    "scf.yield": "yield",
    "scf.condition": "yield",
    "scf.reduce": "yield",
    "linalg.yield": "yield",
    "linalg.index": "index",
    "tensor.yield": "yield",
    "vector.reduction": "vreduce",
    "vector.multi_reduction": "vreduce",
    "vector.contract": "fma",
    "vector.outerproduct": "fma",
    "vector.scan": "vreduce",
    "vector.step": "const",
    "vector.constant_mask": "const",
    "vector.create_mask": "icmp",
    "vector.vscale": "const",
    "vector.bitcast": "vecmove",
    "vector.yield": "yield",
    "ub.poison": "const",
    "complex.add": "fadd",
    "complex.sub": "fadd",
    "complex.mul": "fmul",
    "complex.div": "fdiv",
    "complex.constant": "const",
    "gpu.barrier": "sync",
    "tt.load": "load",
    "tt.store": "store",
    "tt.dot": "fma",
    "tt.return": "yield",
    "ub.unreachable": "yield",
    **{
        f"index.{n}": "index"
        for n in (
            "add",
            "sub",
            "mul",
            "divs",
            "divu",
            "rems",
            "remu",
            "cmp",
            "casts",
            "castu",
            "maxs",
            "mins",
            "ceildivs",
            "floordivs",
            "shl",
            "and",
            "or",
            "xor",
        )
    },
    "index.constant": "const",
    "index.bool.constant": "const",
    "llvm.load": "load",
    "llvm.store": "store",
    "llvm.getelementptr": "index",
    "llvm.mlir.constant": "const",
    "llvm.alloca": "alloc",
    "llvm.return": "yield",
}

_BY_LAST_PART: dict[str, tuple[str, str]] = {
    # last part of the name -> (class on floats, class on integers)
    **dict.fromkeys(
        ("add", "sub", "subtract", "fadd", "fsub", "addf", "subf", "addi", "subi", "rsub", "sum"), ("fadd", "iadd")
    ),
    **dict.fromkeys(("mul", "multiply", "fmul", "mulf", "muli", "square"), ("fmul", "imul")),
    **dict.fromkeys(
        ("div", "divide", "fdiv", "divf", "divsi", "reciprocal", "rem", "remainder", "sdiv", "udiv", "srem", "urem"),
        ("fdiv", "idiv"),
    ),
    **dict.fromkeys(
        ("fma", "dot", "dot_general", "matmul", "mm", "bmm", "conv2d", "convolution", "addmm", "linear", "fmuladd"),
        ("fma", "imul"),
    ),
    **dict.fromkeys(("sqrt", "rsqrt"), ("fsqrt", "fsqrt")),
    **dict.fromkeys(
        (
            "exp",
            "exp2",
            "expm1",
            "exponential",
            "exponential_minus_one",
            "log",
            "log2",
            "log10",
            "log1p",
            "log_plus_one",
            "tanh",
            "sin",
            "cos",
            "tan",
            "atan",
            "atan2",
            "asin",
            "acos",
            "sinh",
            "cosh",
            "pow",
            "powf",
            "power",
            "fpowi",
            "erf",
            "erfc",
            "cbrt",
            "logistic",
            "sigmoid",
            "sine",
            "cosine",
            "gelu",
            "softmax",
            "_softmax",
            "silu",
        ),
        ("fmath", "fmath"),
    ),
    **dict.fromkeys(
        ("max", "min", "maximum", "minimum", "clamp", "relu", "fmax", "fmin", "maximumf", "minimumf"),
        ("fminmax", "iadd"),
    ),
    **dict.fromkeys(("abs", "neg", "negate", "negf", "floor", "ceil", "round", "sign", "absf"), ("fcheap", "ibit")),
    **dict.fromkeys(
        ("compare", "cmp", "cmpi", "cmpf", "icmp", "fcmp", "greater", "greater_equal", "equal", "lt", "gt", "eq"),
        ("fcmp", "icmp"),
    ),
    **dict.fromkeys(("select", "where"), ("select", "select")),
    **dict.fromkeys(("and", "or", "xor", "not", "shl", "shr", "shift_left", "lshr", "ashr"), ("ibit", "ibit")),
    **dict.fromkeys(("constant", "const", "iota", "splat"), ("const", "const")),
    **dict.fromkeys(
        ("convert", "cast", "extf", "truncf", "sitofp", "fptosi", "bitcast_convert", "sext", "zext"), ("cast", "cast")
    ),
    **dict.fromkeys(("call", "custom_call", "invoke"), ("call", "call")),
    **dict.fromkeys(("load", "gather", "read"), ("load", "load")),
    **dict.fromkeys(("store", "scatter", "write"), ("store", "store")),
    **dict.fromkeys(("return", "yield", "terminator", "output"), ("yield", "yield")),
    **dict.fromkeys(("copy", "memcpy", "async_copy"), ("copy", "copy")),
    **dict.fromkeys(("alloc", "alloca", "dealloc", "empty"), ("alloc", "alloc")),
    **dict.fromkeys(("br", "cond_br", "if", "case", "switch"), ("branch", "branch")),
    **dict.fromkeys(("for", "while", "parallel", "forall"), ("loop", "loop")),
    **dict.fromkeys(
        (
            "broadcast",
            "broadcast_in_dim",
            "transpose",
            "reshape",
            "concatenate",
            "concat",
            "slice",
            "dynamic_slice",
            "pad",
            "reverse",
            "shuffle",
            "permute",
            "view",
            "expand",
            "expand_dims",
        ),
        ("vecmove", "vecmove"),
    ),
    **dict.fromkeys(
        ("reduce", "reduce_window", "reduction", "reduce_sum", "reduce_max", "argmax"), ("vreduce", "vreduce")
    ),
}

WHILE_LOOPS = frozenset(("scf.while", "stablehlo.while", "mhlo.while", "tosa.while_loop"))
"""Loops with a region that decides and one that runs."""

TENSOR_VIEWS = frozenset(
    (
        *("tensor.cast", "tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape", "tensor.bitcast"),
        *("tensor.extract_slice", "stablehlo.reshape", "mhlo.reshape", "tosa.reshape", "tosa.identity"),
        *(
            f"torch.aten.{name}"
            for name in (
                "view", "_unsafe_view", "reshape", "flatten.using_ints", "unflatten.int", "squeeze", "squeeze.dim",
                "unsqueeze", "transpose.int", "permute", "t", "expand", "expand_as", "broadcast_to", "slice.Tensor",
                "select.int", "narrow", "detach", "alias", "view_as", "numpy_T", "diagonal", "unfold", "as_strided",
                "movedim.int", "view_as_real", "view_as_complex",
            )
        ),
        *("torch.prims.squeeze", "torch.prims.view_of"),
    )
)  # fmt: skip
"""Operations on tensors whose result is the memory of their first operand seen in another way."""

_TERMINATORS = frozenset(
    ("yield", "return", "terminator", "in_parallel", "reduce", "end", "unreachable", "done", "hlt")
)


@lru_cache(maxsize=8192)
def op_class(name: str, element: str = "") -> str:
    """The class of an operation: `name` is the full op name, `element` its result's element type ("" where unknown)."""
    known = _TABLE.get(name)
    integer = element == "index" or element[:1] in ("i", "s", "u")
    if known is not None:
        return "index" if element == "index" and known in INT_CLASSES and known != "icmp" else known
    dialect, _, rest = name.partition(".")
    if dialect == "linalg":
        return "loop"  # the view makes its accesses and arithmetic explicit
    if dialect == "math":
        return "fmath"
    if dialect == "vector":
        return "vecmove"
    pair = _BY_LAST_PART.get(rest.rpartition(".")[2] or rest)
    return "other" if pair is None else pair[integer]


@lru_cache(maxsize=4096)
def is_bare_terminator(name: str) -> bool:
    """Whether an op of this name, when it has no operands, is a terminator that a custom print may leave out."""
    last = name.rpartition(".")[2]
    return last in _TERMINATORS and (last != "reduce" or name == "scf.reduce")
