// 3 batches of 4 × 6 by 6 × 5: 2 flops for each of 3 × 4 × 5 × 6 = 360 points, 3 loads and a store at each.
// Distinct bytes are inputs + outputs; flops over them: 720 / 888.
//= work.flops = 2 * 3 * 4 * 5 * 6
//= work.loads = 3 * 360
//= work.stores = 360
//= work.bytes = 16 * 360
//= access.footprint_bytes = 4 * (3 * 24 + 3 * 30 + 3 * 20)
//= work.intensity_footprint = 720 / 888
//= loops.count = 4
//= loops.reduction = 1
func.func @main(%a: tensor<3x4x6xf32>, %b: tensor<3x6x5xf32>) -> tensor<3x4x5xf32> {
  %r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1],
    precision = [DEFAULT, DEFAULT] : (tensor<3x4x6xf32>, tensor<3x6x5xf32>) -> tensor<3x4x5xf32>
  return %r : tensor<3x4x5xf32>
}
