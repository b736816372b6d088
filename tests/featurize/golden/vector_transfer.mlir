// 4 × 2 iterations: a row of 16 in two vectors of 8. The read is in bounds; the broadcast read touches one element for
// 8 lanes (its map has no dimension of the memref): 1 element in each iteration. The write may reach past the end: masked.
//= work.loads = 4 * 2 * (8 + 1)
//= work.stores = 4 * 2 * 8
//= work.flops = 4 * 2 * 8
//= access.masked = 1
//= access.broadcasts = 1
//= work.bytes = 4 * (72 + 64)
//= loops.volume_max = 8
func.func @kernel(%A: memref<4x16xf32>, %B: memref<4xf32>, %C: memref<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 16 step 8 {
      %a = vector.transfer_read %A[%i, %j], %zero {in_bounds = [true]} : memref<4x16xf32>, vector<8xf32>
      %b = vector.transfer_read %B[%i], %zero {in_bounds = [true], permutation_map = affine_map<(d0) -> (0)>}
        : memref<4xf32>, vector<8xf32>
      %c = arith.mulf %a, %b : vector<8xf32>
      vector.transfer_write %c, %C[%i, %j] : vector<8xf32>, memref<4x16xf32>
    }
  }
  return
}
