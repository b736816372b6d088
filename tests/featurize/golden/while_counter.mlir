// The counter goes 3, 5, 7, 9 and stops at 11: 4 iterations. In each: the comparison, a load, an addition of floats, a
// store and the addition of the counter. The condition's own arithmetic is counted with the iterations.
// The address is the counter, which the condition decides: it is not a function of a loop variable, so unknown.
//= loops.while = 1
//= loops.constant = 1
//= work.loop_iterations = 4
//= work.flops = 4
//= work.loads = 4
//= work.stores = 4
//= access.unknown = 2
//= work.executions = 1 + 4 * 5
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
