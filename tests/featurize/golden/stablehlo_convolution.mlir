// Two groups of 4 channels, stride 2, no padding: outputs (9 - 3) / 2 + 1 = 4 by (11 - 3) / 2 + 1 = 5.
// flops = 2 · N · OH · OW · OC · KH · KW · (IC / groups); the windows touch the whole image.
// Then 3 × 4 × 5 × 8 = 480 results are compared with zero.
//= work.flops = 2 * 3 * 4 * 5 * 8 * 3 * 3 * 4 + 480
//= work.stores = 480 * 36 + 480 + 480
//= access.footprint_bytes = 4 * (3 * 9 * 11 * 8 + 3 * 3 * 4 * 8 + 480 + 480 + 480)
//= loops.volume_max = 480 * 36
//= tensors.bytes_out = 4 * 480
func.func @main(%x: tensor<3x9x11x8xf32>, %w: tensor<3x3x4x8xf32>) -> tensor<3x4x5x8xf32> {
  %c = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 2], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
    : (tensor<3x9x11x8xf32>, tensor<3x3x4x8xf32>) -> tensor<3x4x5x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<3x4x5x8xf32>
  %r = stablehlo.maximum %c, %z : tensor<3x4x5x8xf32>
  return %r : tensor<3x4x5x8xf32>
}
