// The counter goes 3, 5, 7, 9 and stops at 11: 4 iterations. In each: a load, an addition of floats and a store. The
// comparison and the addition of the counter are the loop's own, as `scf.for` has them without saying so; the operation
// itself counts once. %k in the body is the %k that the condition hands on: the address moves by 2 elements an iteration,
// so that 4 different elements of 4 bytes are touched. Both accesses have the small stride 2; half of each 2 elements is
// enough for a vector load with a shuffle (access.hot_unit), not for a store (access.hot_strided).
//= loops.while = 1
//= loops.constant = 1
//= loops.carried = 0
//= work.loop_iterations = 4
//= work.flops = 4
//= work.loads = 4
//= work.stores = 4
//= access.unknown = 0
//= access.footprint_bytes = 4 * 4
//= loops.step_not_one = 1
//= access.small = 2
//= access.hot_unit = 1
//= access.hot_strided = 1
//= work.executions = 1 + 4 * 3
func.func @kernel(%A: memref<64xf32>) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c10 = arith.constant 10 : index
  %r = scf.while (%k = %c3) : (index) -> index {
    %c = arith.cmpi sle, %k, %c10 : index
    scf.condition(%c) %k : index
  } do {
  ^bb0(%k: index):
    %a = memref.load %A[%k] : memref<64xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %A[%k] : memref<64xf32>
    %next = arith.addi %k, %c2 : index
    scf.yield %next : index
  }
  return
}
