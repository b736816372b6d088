// %j goes from max(i - 2, 0) to min(i + 3, 10): a band of 5 elements around the diagonal, cut off at the ends.
// i = 0, 1: 3 and 4; i = 2 … 7: 5 each; i = 8, 9: 4 and 3. In all 7 + 30 + 7 = 44 iterations.
//= loops.volume_max = 3 + 4 + 6 * 5 + 4 + 3
//= loops.max_trip = 10
//= loops.variable = 1
//= work.flops = 44
//= work.loads = 2 * 44
//= work.stores = 44
//= work.executions = 1 + 10 + 4 * 44
func.func @kernel(%A: memref<10x10xf32>, %B: memref<10x10xf32>) {
  affine.for %i = 0 to 10 {
    affine.for %j = max affine_map<(d0) -> (d0 - 2, 0)>(%i) to min affine_map<(d0) -> (d0 + 3, 10)>(%i) {
      %a = affine.load %A[%i, %j] : memref<10x10xf32>
      %b = affine.load %B[%i, %j] : memref<10x10xf32>
      %c = arith.addf %a, %b : f32
      affine.store %c, %B[%i, %j] : memref<10x10xf32>
    }
  }
  return
}
