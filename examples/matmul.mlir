// C += A * B, the first kernel everybody writes.
func.func @matmul(%A: memref<96x128xf32>, %B: memref<128x112xf32>, %C: memref<96x112xf32>) {
  affine.for %i = 0 to 96 {
    affine.for %j = 0 to 112 {
      affine.for %k = 0 to 128 {
        %a = affine.load %A[%i, %k] : memref<96x128xf32>
        %b = affine.load %B[%k, %j] : memref<128x112xf32>
        %c = affine.load %C[%i, %j] : memref<96x112xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<96x112xf32>
      }
    }
  }
  return
}
