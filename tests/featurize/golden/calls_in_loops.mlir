// @scale runs once for each of the 6 × 4 iterations: what it does counts 24 times in @kernel, with its own loop.
// @scale: 8 loads, 8 products, 8 stores, 1 loop = 25 executions. @kernel: loops 1 + 6, calls 24, and 24 × 25.
// The call of @outside, which the program does not hold, counts as a call only: 1 in work.calls_unknown.
//= @scale work.flops = 8
//= @scale work.executions = 1 + 3 * 8
//= @kernel work.flops = 6 * 4 * 8
//= @kernel work.loads = 6 * 4 * 8
//= @kernel work.executions = 1 + 6 + 24 + 1 + 24 * 25
//= @kernel work.loop_iterations = 6 + 6 * 4 + 24 * 8
//= @kernel work.calls_unknown = 1
//= @kernel work.share/call = (24 + 1) / 632
func.func private @outside(memref<8xf32>)
func.func private @scale(%A: memref<8xf32>, %x: f32) {
  affine.for %i = 0 to 8 {
    %a = affine.load %A[%i] : memref<8xf32>
    %b = arith.mulf %a, %x : f32
    affine.store %b, %A[%i] : memref<8xf32>
  }
  return
}
func.func @kernel(%A: memref<8xf32>, %x: f32) {
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 4 {
      func.call @scale(%A, %x) : (memref<8xf32>, f32) -> ()
    }
  }
  call @outside(%A) : (memref<8xf32>) -> ()
  return
}
