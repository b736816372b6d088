// int8 image 8 × 8 × 3, 16 filters of 3 × 3, padding 1: 8 × 8 × 16 = 1024 results, 27 products and sums each, in int32.
// The bias is the first value of each sum. Rescaling: 5 integer operations and a cast for each result.
// Bytes: image and filter 1 each, sums 4; the bias nest loads and stores 4; rescaling loads 4 and stores 1.
//= work.int_ops = 2 * 1024 * 27 + 5 * 1024
//= work.flops = 0
//= work.load_bytes = 1024 * 27 * (1 + 1 + 4) + 4 * 1024 + 4 * 1024
//= work.store_bytes = 1024 * 27 * 4 + 4 * 1024 + 1024
//= tensors.bytes_out = 1024
//= access.footprint_bytes = 192 + 432 + 64 + 4 * 1024 + 1024
func.func @main(%x: tensor<1x8x8x3xi8>, %w: tensor<16x3x3x3xi8>, %b: tensor<16xi32>) -> tensor<1x8x8x16xi8> {
  %zp = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %zp32 = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %multiplier = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>
  %shift = "tosa.const"() <{values = dense<38> : tensor<1xi8>}> : () -> tensor<1xi8>
  %c = tosa.conv2d %x, %w, %b, %zp, %zp {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>,
    stride = array<i64: 1, 1>} : (tensor<1x8x8x3xi8>, tensor<16x3x3x3xi8>, tensor<16xi32>, tensor<1xi8>,
    tensor<1xi8>) -> tensor<1x8x8x16xi32>
  %r = tosa.rescale %c, %multiplier, %shift, %zp32, %zp {input_unsigned = false, output_unsigned = false,
    per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true} : (tensor<1x8x8x16xi32>, tensor<1xi32>,
    tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x8x8x16xi8>
  return %r : tensor<1x8x8x16xi8>
}
