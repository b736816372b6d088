// 5 rows of 8 of a table of 100: the 5 indices are loaded once, then 40 elements are loaded and stored. Where the rows
// are depends on data: unknown. The loop runs 0, 1, 2: 3 times over 40 elements, a sum each.
//= work.loads = 5 + 40 + 3 * 2 * 40
//= work.stores = 40 + 3 * 40
//= work.flops = 3 * 40
//= access.unknown = 1
//= loops.while = 1
//= loops.unknown = 0
func.func @main(%t: tensor<100x8xf32>, %i: tensor<5x1xi32>) -> tensor<5x8xf32> {
  %g = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<100x8xf32>, tensor<5x1xi32>) -> tensor<5x8xf32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c3 = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%k = %c0, %v = %g) : tensor<i32>, tensor<5x8xf32>
    cond {
    %c = stablehlo.compare LT, %k, %c3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %w = stablehlo.add %v, %v : tensor<5x8xf32>
    %n = stablehlo.add %k, %c1 : tensor<i32>
    stablehlo.return %n, %w : tensor<i32>, tensor<5x8xf32>
  }
  return %r#1 : tensor<5x8xf32>
}
