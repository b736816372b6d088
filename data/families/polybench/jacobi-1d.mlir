!A = memref<${N}x${T}>
// mean of three neighbours, from A to B and back
func.func @kernel(%A: !A, %B: !A) {
  %third = arith.constant 0.33333 : $T
  affine.for %t = 0 to $TSTEPS {
    affine.for %i = 1 to $N_1 {
      %before = affine.load %A[%i - 1] : !A
      %here = affine.load %A[%i] : !A
      %after = affine.load %A[%i + 1] : !A
      %s1 = arith.addf %before, %here : $T
      %s2 = arith.addf %s1, %after : $T
      %new = arith.mulf %third, %s2 : $T
      affine.store %new, %B[%i] : !A
    }
    affine.for %i = 1 to $N_1 {
      %before = affine.load %B[%i - 1] : !A
      %here = affine.load %B[%i] : !A
      %after = affine.load %B[%i + 1] : !A
      %s1 = arith.addf %before, %here : $T
      %s2 = arith.addf %s1, %after : $T
      %new = arith.mulf %third, %s2 : $T
      affine.store %new, %A[%i] : !A
    }
  }
  return
}
