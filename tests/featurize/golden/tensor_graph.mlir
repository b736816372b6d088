// The slice is a view: it costs nothing, and the sum reads 4 × 4 elements of %x through it, twice. The square root works
// in its own result. The insertion copies 16 elements into %y, which stays where it is.
// Distinct: 16 elements of %x, the sum, the root, 16 elements of %y.
//= work.flops = 16 + 16
//= work.divs = 16
//= work.loads = 2 * 16 + 16 + 16
//= work.stores = 3 * 16
//= access.footprint_bytes = 4 * 4 * 16
//= loops.count = 3 * 2
func.func @kernel(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %s = tensor.extract_slice %x[2, 4] [4, 4] [1, 1] : tensor<8x8xf32> to tensor<4x4xf32>
  %a = arith.addf %s, %s : tensor<4x4xf32>
  %b = math.sqrt %a : tensor<4x4xf32>
  %r = tensor.insert_slice %b into %y[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
