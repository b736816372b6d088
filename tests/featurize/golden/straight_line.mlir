// No loop: each operation runs once. func.return has no operands and is not counted: 4 operations of 3 names.
// One load and one store of f32: 8 bytes. One addition: 1 flop, so 1/8 flop per byte.
// Block order: constant>load>addf>store gives 3 two-grams. Def-use edges: constant>addf, load>addf, addf>store
// (arguments have no defining operation).
//= ops.total = 4
//= work.executions = 3
//= work.flops = 1
//= work.bytes = 4 + 4
//= work.intensity = 1 / 8
//= ops.block_max = 4
func.func @kernel(%a: memref<f32>) {
  %c = arith.constant 1.5 : f32
  %x = affine.load %a[] : memref<f32>
  %y = arith.addf %x, %c : f32
  affine.store %y, %a[] : memref<f32>
  return
}
