// The same loop nest as matmul.mlir, implied by one operation: 1 operation as written, but 3 loops, 120 body runs,
// 240 flops, 360 loads and 120 stores. Executions: the linalg operation once + 6 × 120 implied ones = 721.
//= work.flops = 2 * 4 * 5 * 6
//= work.loads = 3 * 120
//= work.stores = 120
//= work.executions = 1 + 6 * 120
//= loops.count = 3
//= access.footprint_bytes = 4 * (24 + 30 + 20)
func.func @kernel(%A: memref<4x6xf32>, %B: memref<6x5xf32>, %C: memref<4x5xf32>) {
  linalg.matmul ins(%A, %B : memref<4x6xf32>, memref<6x5xf32>) outs(%C : memref<4x5xf32>)
  return
}
