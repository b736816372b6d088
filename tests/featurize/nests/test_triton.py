"""Triton: blocks in registers, one program; in custom and generic syntax."""

from __future__ import annotations

from irgauge.featurize import features_of

COPY = """tt.func public @f(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16>, %n: i32) {
  %c64 = arith.constant 64 : i32
  %pid = tt.get_program_id x : i32
  %start = arith.muli %pid, %c64 : i32
  %lane = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %starts = tt.splat %start : i32 -> tensor<64xi32>
  %at = arith.addi %starts, %lane : tensor<64xi32>
  %ends = tt.splat %n : i32 -> tensor<64xi32>
  %mask = arith.cmpi slt, %at, %ends : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %px = tt.addptr %xs, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v = tt.load %px, %mask : tensor<64x!tt.ptr<f32>>
  %s = arith.mulf %v, %v : tensor<64xf32>
  %e = math.exp %s : tensor<64xf32>
  %h = arith.truncf %e : tensor<64xf32> to tensor<64xf16>
  %ys = tt.splat %y : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %py = tt.addptr %ys, %at : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  tt.store %py, %h, %mask : tensor<64x!tt.ptr<f16>>
  tt.return
}"""
GENERIC_COPY = """"tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}],
    function_type = (!tt.ptr<f32>, !tt.ptr<f16>, i32) -> (), sym_name = "f", sym_visibility = "public"}> ({
^bb0(%x: !tt.ptr<f32>, %y: !tt.ptr<f16>, %n: i32):
  %c64 = "arith.constant"() <{value = 64 : i32}> : () -> i32
  %pid = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
  %start = "arith.muli"(%pid, %c64) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
  %lane = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
  %starts = "tt.splat"(%start) : (i32) -> tensor<64xi32>
  %at = "arith.addi"(%starts, %lane) <{overflowFlags = #arith.overflow<none>}> :
    (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  %ends = "tt.splat"(%n) : (i32) -> tensor<64xi32>
  %mask = "arith.cmpi"(%at, %ends) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
  %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
  %px = "tt.addptr"(%xs, %at) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
  %v = "tt.load"(%px, %mask) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32, isVolatile = false,
    operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>) -> tensor<64xf32>
  %s = "arith.mulf"(%v, %v) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %e = "math.exp"(%s) <{fastmath = #arith.fastmath<none>}> : (tensor<64xf32>) -> tensor<64xf32>
  %h = "arith.truncf"(%e) : (tensor<64xf32>) -> tensor<64xf16>
  %ys = "tt.splat"(%y) : (!tt.ptr<f16>) -> tensor<64x!tt.ptr<f16>>
  %py = "tt.addptr"(%ys, %at) : (tensor<64x!tt.ptr<f16>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f16>>
  "tt.store"(%py, %h, %mask) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> :
    (tensor<64x!tt.ptr<f16>>, tensor<64xf16>, tensor<64xi1>) -> ()
  "tt.return"() : () -> ()
}) : () -> ()"""
MATMUL = """tt.func public @f(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %steps = arith.constant 8 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<32x64xf32>
  %next = arith.constant dense<16> : tensor<32x16xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<32x16x!tt.ptr<f16>>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>>
  %r:2 = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero, %pa = %as)
      -> (tensor<32x64xf32>, tensor<32x16x!tt.ptr<f16>>) : i32 {
    %x = tt.load %pa : tensor<32x16x!tt.ptr<f16>>
    %y = tt.load %bs : tensor<16x64x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<32x16xf16> * tensor<16x64xf16> -> tensor<32x64xf32>
    %n = tt.addptr %pa, %next : tensor<32x16x!tt.ptr<f16>>, tensor<32x16xi32>
    scf.yield %d, %n : tensor<32x64xf32>, tensor<32x16x!tt.ptr<f16>>
  }
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
  tt.store %cs, %r#0 : tensor<32x64x!tt.ptr<f32>>
  tt.return
}"""


def test_loads_and_stores_move_their_blocks() -> None:
    found = features_of(COPY)["f"]
    assert (found["work.loads"], found["work.load_bytes"]) == (64, 256)
    assert (found["work.stores"], found["work.store_bytes"]) == (64, 128)
    assert found["work.flops"] == 64 + 64
    assert found["work.math_calls"] == 64
    assert found["work.int_ops"] == 1 + 64 + 64  # start, places, mask; splats, ranges and pointers are address work
    assert (found["access.masked"], found["access.roots"], found["access.unknown"]) == (2, 2, 0)
    assert found["access.footprint_bytes"] == 256 + 128
    assert found["loops.count"] == 0


def test_generic_syntax_gives_the_same() -> None:
    assert features_of(GENERIC_COPY) == features_of(COPY)


def test_dot_is_two_flops_for_each_m_n_k() -> None:
    found = features_of(MATMUL)["f"]
    assert found["work.flops"] == 8 * 2 * 32 * 64 * 16
    assert found["work.loads"] == 8 * (32 * 16 + 16 * 64)
    assert found["work.bytes"] == 8 * 2 * (512 + 1024) + 4 * 2048
    assert found["access.masked"] == 0


def test_a_carried_pointer_moves_and_a_fixed_one_does_not() -> None:
    found = features_of(MATMUL)["f"]
    assert (found["access.small"], found["access.stride0"], found["access.outside"]) == (1, 1, 1)  # 16 f16: 32 bytes
    # a: 8 steps of 16 places and a block of 512; b: one block; c: one block
    assert found["access.footprint_bytes"] == 2 * (16 * 7 + 512) + 2 * 1024 + 4 * 2048


def test_integer_dot_is_integer_work() -> None:
    found = features_of("""tt.func @f(%a: tensor<16x32xi8>, %b: tensor<32x16xi8>, %c: tensor<16x16xi32>) {
  %d = tt.dot %a, %b, %c : tensor<16x32xi8> * tensor<32x16xi8> -> tensor<16x16xi32>
  tt.return }""")["f"]
    assert (found["work.flops"], found["work.int_ops"]) == (0, 2 * 16 * 16 * 32)


def test_reduction_has_no_initial_value() -> None:
    found = features_of("""tt.func @f(%x: tensor<4x128xf32>) {
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<4x128xf32>) -> tensor<4xf32>
  %c = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.mulf %a, %b : f32
    tt.scan.return %t : f32
  }) : (tensor<4x128xf32>) -> tensor<4x128xf32>
  tt.return }""")["f"]
    assert found["work.flops"] == 2 * 4 * 127
