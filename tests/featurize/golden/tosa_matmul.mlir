// The reshape is free. 2 batches of 5 × 11 by 11 × 7: 2 · 2 · 5 · 7 · 11 = 1540 flops. The sigmoid: 70 calls.
// The clamp takes a minimum and a maximum of each of 70 elements.
//= work.flops = 1540 + 70 + 2 * 70
//= work.math_calls = 70
//= work.loads = 3 * 770 + 70 + 70
//= work.stores = 770 + 70 + 70
//= access.footprint_bytes = 4 * (110 + 154 + 3 * 70)
//= loops.count = 4 + 3 + 3
func.func @main(%a: tensor<10x11xf32>, %b: tensor<2x11x7xf32>) -> tensor<2x5x7xf32> {
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %shape = tosa.const_shape {values = dense<[2, 5, 11]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %x = tosa.reshape %a, %shape : (tensor<10x11xf32>, !tosa.shape<3>) -> tensor<2x5x11xf32>
  %m = tosa.matmul %x, %b, %zp, %zp : (tensor<2x5x11xf32>, tensor<2x11x7xf32>, tensor<1xf32>, tensor<1xf32>)
    -> tensor<2x5x7xf32>
  %s = tosa.sigmoid %m : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %r = tosa.clamp %s {max_val = 0.9 : f32, min_val = 0.1 : f32} : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  return %r : tensor<2x5x7xf32>
}
