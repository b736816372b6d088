// 4 rows of 8, step by step: max 32, subtraction 32, exponential 32, sum 32, division 32 = 160 flops.
// Two broadcasts copy 4 values to 32 places. Loads: 64 + 32 + 64 + 32 + 64 + 32 + 64 (a reduction loads its result too).
// Stores: 32 in each of 7 nests. Distinct: %x, 5 tensors of 32 and 2 rows of 4.
//= work.flops = 5 * 32
//= work.math_calls = 32
//= work.loads = 4 * 64 + 3 * 32
//= work.stores = 7 * 32
//= access.footprint_bytes = 4 * (6 * 32 + 2 * 4)
//= loops.count = 7 * 2
//= ops.stablehlo.reduce = 2
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4x8xf32>
  %e = stablehlo.exponential %d : tensor<4x8xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %r = stablehlo.divide %e, %sb : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
