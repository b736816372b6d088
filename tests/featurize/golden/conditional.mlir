// i >= j holds in 8 × 9 / 2 = 36 of 64 iterations: the addition runs 36 times, the multiplication 28 times.
// Executions: loops 1 + 8, the load and affine.if 64 each, branches 36 × 2 + 28 × 2: 9 + 128 + 128 = 265.
//= work.executions = 1 + 8 + 64 + 64 + 36 * 2 + 28 * 2
//= work.flops = 36 + 28
//= work.loads = 8 * 8
//= work.stores = 36 + 28
//= loops.branches = 1
//= access.footprint_bytes = 8 * 8 * 4
func.func @kernel(%A: memref<8x8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %a = affine.load %A[%i, %j] : memref<8x8xf32>
      affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j) {
        %b = arith.addf %a, %a : f32
        affine.store %b, %A[%i, %j] : memref<8x8xf32>
      } else {
        %b = arith.mulf %a, %a : f32
        affine.store %b, %A[%i, %j] : memref<8x8xf32>
      }
    }
  }
  return
}
