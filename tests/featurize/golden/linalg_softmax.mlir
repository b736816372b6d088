// 4 rows of 8: max (32), x - max and exp (64), sum (32), division (32): 5 × 32 = 160 flops, 32 of them exponentials.
// Four nests of 2 loops. Loads: x and the row's max (64); x and max (64); the result and the row's sum (64); both (64).
// Stores: 32 in each nest. Two scratch rows of 4 stand beside the input and the result.
//= work.flops = 5 * 4 * 8
//= work.math_calls = 32
//= work.divs = 32
//= loops.count = 4 * 2
//= work.loads = 4 * 64
//= work.stores = 4 * 32
//= access.footprint_bytes = 4 * (32 + 32 + 4 + 4)
func.func @kernel(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
