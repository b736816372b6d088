// %n is an argument: the trip count is unknown, taken as 16 and counted in loops.unknown. The inner loop is known: 4.
// 16 + 16 × 4 = 80 body runs. The dynamic extent of %A counts as 16 elements (64 bytes) and in tensors.dynamic_dims.
//= loops.unknown = 1
//= work.flops = 16 * 4
//= work.loads = 16 * 4
//= tensors.dynamic_dims = 1
//= work.loop_iterations = 16 + 16 * 4
func.func @kernel(%A: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %a = memref.load %A[%i] : memref<?xf32>
      %b = arith.divf %a, %a : f32
      memref.store %b, %A[%i] : memref<?xf32>
    }
  }
  return
}
