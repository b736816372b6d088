// 4 × 5 × 6 iterations = 120 runs of the innermost body, 20 of the second, 4 of the outermost: 144 in all.
// Body: 3 loads, mulf, addf, store = 6 operations: 720, and the loop operations 1 + 4 + 20 = 25: 745 executions.
// flops 2 × 120 = 240; loads 360, stores 120, 4 bytes each: 1920 bytes; 240 / 1920 = 0.125.
// In %k: A moves 1 element (unit), B a row of 5 elements = 20 bytes (small), C not at all (twice).
// Footprint: A 4×6, B 6×5, C 4×5 elements = 74 × 4 = 296 bytes.
//= work.flops = 2 * 4 * 5 * 6
//= work.loads = 3 * 4 * 5 * 6
//= work.stores = 4 * 5 * 6
//= work.bytes = 4 * (360 + 120)
//= work.executions = 1 + 4 + 20 + 6 * 120
//= work.intensity = 240 / 1920
//= access.footprint_bytes = 4 * (4 * 6 + 6 * 5 + 4 * 5)
//= loops.volume_max = 4 * 5 * 6
//= access.small = 1
//= access.unit = 1
//= access.stride0 = 2
func.func @kernel(%A: memref<4x6xf32>, %B: memref<6x5xf32>, %C: memref<4x5xf32>) {
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 5 {
      affine.for %k = 0 to 6 {
        %a = affine.load %A[%i, %k] : memref<4x6xf32>
        %b = affine.load %B[%k, %j] : memref<6x5xf32>
        %c = affine.load %C[%i, %j] : memref<4x5xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<4x5xf32>
      }
    }
  }
  return
}
