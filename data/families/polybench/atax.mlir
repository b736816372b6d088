!A = memref<${M}x${N}x${T}>
!X = memref<${N}x${T}>
!TMP = memref<${M}x${T}>
// y := A' (A x)
func.func @kernel(%A: !A, %x: !X, %y: !X, %tmp: !TMP) {
  %zero = arith.constant 0.0 : $T
  affine.for %i = 0 to $N {
    affine.store %zero, %y[%i] : !X
  }
  affine.for %i = 0 to $M {
    affine.store %zero, %tmp[%i] : !TMP
    affine.for %j = 0 to $N {
      %old = affine.load %tmp[%i] : !TMP
      %a = affine.load %A[%i, %j] : !A
      %x_j = affine.load %x[%j] : !X
      %product = arith.mulf %a, %x_j : $T
      %sum = arith.addf %old, %product : $T
      affine.store %sum, %tmp[%i] : !TMP
    }
    affine.for %j = 0 to $N {
      %y_j = affine.load %y[%j] : !X
      %a = affine.load %A[%i, %j] : !A
      %t = affine.load %tmp[%i] : !TMP
      %product = arith.mulf %a, %t : $T
      %sum = arith.addf %y_j, %product : $T
      affine.store %sum, %y[%j] : !X
    }
  }
  return
}
