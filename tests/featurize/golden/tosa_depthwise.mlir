// 4 channels with 2 multiples each, 3 × 3, no padding: 6 × 6 × 8 = 288 results of 9 products and sums.
// Average pooling, 2 × 2 windows: 3 × 3 × 8 = 72 results, 4 sums each and a division.
//= work.flops = 2 * 288 * 9 + 72 * 4 + 72
//= work.divs = 72
//= work.loads = 288 + 3 * 288 * 9 + 2 * 72 * 4 + 72
//= work.stores = 288 + 288 * 9 + 72 * 4 + 72
//= access.footprint_bytes = 4 * (256 + 72 + 8 + 288 + 72)
func.func @main(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x2xf32>, %b: tensor<8xf32>) -> tensor<1x3x3x8xf32> {
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %c = tosa.depthwise_conv2d %x, %w, %b, %zp, %zp {acc_type = f32, dilation = array<i64: 1, 1>,
    pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>,
    tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x6x6x8xf32>
  %r = tosa.avg_pool2d %c, %zp, %zp {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>,
    stride = array<i64: 2, 2>} : (tensor<1x6x6x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x3x3x8xf32>
  return %r : tensor<1x3x3x8xf32>
}
