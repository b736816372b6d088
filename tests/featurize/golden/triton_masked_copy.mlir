// One program: a block of 64. The load moves 64 f32 (256 bytes), the store 64 f16 (128 bytes), both under a mask.
// 64 products and 64 exponentials; integers: the start of the block once, its 64 places, 64 comparisons.
// Ranges, splats and pointers are address work. The pointers are followed to the arguments: two of them.
//= work.loads = 64
//= work.load_bytes = 4 * 64
//= work.store_bytes = 2 * 64
//= work.flops = 64 + 64
//= work.math_calls = 64
//= work.int_ops = 1 + 64 + 64
//= access.masked = 2
//= access.roots = 2
//= access.unknown = 0
//= options.ttg.num_warps = 4
//= options.args/tt.divisibility = 2
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @kernel(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                         %n: i32) {
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
  }
}
