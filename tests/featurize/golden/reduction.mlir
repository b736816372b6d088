// 64 iterations that carry one sum: load 5 cycles, then each addition waits 4 cycles for the one before.
// The sum may not be reordered (no fastmath), so the loop stays scalar. affine.yield has an operand and is counted.
// Executions: loop 1, load and addf 64 each, the last store 1: 130 (constants and yields do not execute).
//= work.executions = 1 + 64 + 64 + 1
//= work.flops = 64
//= work.loads = 64
//= work.stores = 1
//= loops.carried = 1
//= access.footprint_bytes = 4 * 64 + 4
func.func @kernel(%A: memref<64xf32>, %R: memref<1xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = affine.for %i = 0 to 64 iter_args(%s = %zero) -> (f32) {
    %a = affine.load %A[%i] : memref<64xf32>
    %t = arith.addf %s, %a : f32
    affine.yield %t : f32
  }
  affine.store %sum, %R[0] : memref<1xf32>
  return
}
