// 8 iterations of 8 lanes: 64 elements loaded from each of two memrefs, 64 stored, 64 fused multiply-adds = 128 flops.
// Each access moves by 8 elements, its own width: unit. Vector values fill one 256-bit register each.
//= work.loads = 8 * 8 * 2
//= work.stores = 8 * 8
//= work.flops = 2 * 8 * 8
//= work.bytes = 4 * (128 + 64)
//= access.unit = 3
//= work.executions = 1 + 8 * 4
func.func @kernel(%A: memref<64xf32>, %B: memref<64xf32>) {
  affine.for %i = 0 to 64 step 8 {
    %a = affine.vector_load %A[%i] : memref<64xf32>, vector<8xf32>
    %b = affine.vector_load %B[%i] : memref<64xf32>, vector<8xf32>
    %c = vector.fma %a, %b, %b : vector<8xf32>
    affine.vector_store %c, %B[%i] : memref<64xf32>, vector<8xf32>
  }
  return
}
