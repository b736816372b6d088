// 8 steps of a 32 × 16 by 16 × 64 product: 2 · 32 · 64 · 16 flops each. A step loads 512 + 1024 f16; the end stores 2048
// f32. The left pointer moves 16 elements = 32 bytes a step (small), the right one not at all.
// Distinct: left 16 · 7 + 512, right 1024 elements of 2 bytes, the result 2048 of 4.
// The maximum of each of 32 rows of 64 takes 63 comparisons a row: a reduction of a block has no first value.
//= work.flops = 8 * 2 * 32 * 64 * 16 + 32 * 63
//= work.loads = 8 * (512 + 1024)
//= work.bytes = 8 * 2 * 1536 + 4 * 2048
//= access.small = 1
//= access.stride0 = 1
//= access.outside = 1
//= access.footprint_bytes = 2 * (16 * 7 + 512) + 2 * 1024 + 4 * 2048
//= loops.count = 1
tt.func public @kernel(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>) {
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
  %m = "tt.reduce"(%r#0) <{axis = 1 : i32}> ({
  ^bb0(%p: f32, %q: f32):
    %t = arith.maxnumf %p, %q : f32
    tt.reduce.return %t : f32
  }) : (tensor<32x64xf32>) -> tensor<32xf32>
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
  tt.store %cs, %r#0 : tensor<32x64x!tt.ptr<f32>>
  tt.return
}
