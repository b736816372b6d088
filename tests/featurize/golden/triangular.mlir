// The inner loop runs 0 + 1 + … + 9 = 45 times, 4.5 on average, 9 at most; the outer one 10 times: 55 in all.
// Executions: outer loop 1, inner loop 10, and 3 × 45: 146. Loads and stores 45 each, 8 bytes: 720 bytes, 360 distinct.
//= loops.volume_max = 10 * 9 / 2
//= work.executions = 1 + 10 + 3 * 45
//= work.flops = 45
//= work.bytes = 8 * (45 + 45)
//= access.footprint_bytes = 8 * 45
//= loops.max_trip = 10
func.func @kernel(%A: memref<10x10xf64>) {
  affine.for %i = 0 to 10 {
    affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
      %a = affine.load %A[%i, %j] : memref<10x10xf64>
      %b = arith.mulf %a, %a : f64
      affine.store %b, %A[%i, %j] : memref<10x10xf64>
    }
  }
  return
}
