// @main calls the layer twice: 2 × (2 · 4 · 4 · 4 for the product, 16 for tanh). The layer alone: 144 flops.
// Loads of a layer: 3 × 64 for the product, 16 for tanh.
//= @layer work.flops = 2 * 4 * 4 * 4 + 16
//= @main work.flops = 2 * 144
//= @main work.math_calls = 2 * 16
//= @main work.loads = 2 * (3 * 64 + 16)
//= @main work.calls_unknown = 0
//= @main access.count = 0
module @net attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = call @layer(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = call @layer(%0, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
  func.func private @layer(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.dot %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = stablehlo.tanh %0 : tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
