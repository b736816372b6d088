// The reduction multiplies 6 × 10 elements into 6 results: one product for each element, as each result has a first value.
// The generic operation: 6 × 10 iterations of the written body, a product and a sum; both of its loads and the sum's.
// The map takes a square root of each of 6 elements.
//= work.flops = 60 + 2 * 60 + 6
//= work.loads = 2 * 60 + 3 * 60 + 6
//= work.stores = 60 + 60 + 6
//= work.divs = 6
//= loops.count = 2 + 2 + 1
//= loops.reduction = 2
func.func @kernel(%A: memref<6x10xf32>, %B: memref<10xf32>, %R: memref<6xf32>, %S: memref<6xf32>) {
  linalg.reduce { arith.mulf } ins(%A : memref<6x10xf32>) outs(%R : memref<6xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>,
                                   affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%A, %B : memref<6x10xf32>, memref<10xf32>) outs(%S : memref<6xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.map { math.sqrt } ins(%R : memref<6xf32>) outs(%R : memref<6xf32>)
  return
}
