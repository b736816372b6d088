// The fill stores 1 × 4 × 4 × 8 = 128 zeros. The convolution, stride 2: 2 flops for each of 4 × 4 outputs, 8 filters,
// 3 × 3 places of the window and 3 channels. Loads: image, filter, sum. Its result is the filled buffer, written in place:
// the distinct bytes are the image (all of 9 × 9: 3 · 2 + 3 = 9), the filter and one result.
//= work.flops = 2 * 4 * 4 * 8 * 3 * 3 * 3
//= work.loads = 3 * 3456
//= work.stores = 128 + 3456
//= access.footprint_bytes = 4 * (9 * 9 * 3 + 3 * 3 * 3 * 8 + 4 * 4 * 8)
//= loops.count = 4 + 7
//= loops.volume_max = 4 * 4 * 8 * 27
//= tensors.allocs = 1
//= tensors.bytes_out = 4 * 128
func.func @kernel(%x: tensor<1x9x9x3xf32>, %w: tensor<3x3x3x8xf32>) -> tensor<1x4x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x9x9x3xf32>, tensor<3x3x3x8xf32>) outs(%z : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  return %r : tensor<1x4x4x8xf32>
}
