!A = memref<${N}x${N}x${T}>
!V = memref<${N}x${T}>
// x1 := x1 + A y1;  x2 := x2 + A' y2
func.func @kernel(%x1: !V, %x2: !V, %y1: !V, %y2: !V, %A: !A) {
  affine.for %i = 0 to $N {
    affine.for %j = 0 to $N {
      %x = affine.load %x1[%i] : !V
      %a = affine.load %A[%i, %j] : !A
      %y = affine.load %y1[%j] : !V
      %product = arith.mulf %a, %y : $T
      %sum = arith.addf %x, %product : $T
      affine.store %sum, %x1[%i] : !V
    }
  }
  affine.for %i = 0 to $N {
    affine.for %j = 0 to $N {
      %x = affine.load %x2[%i] : !V
      %a = affine.load %A[%j, %i] : !A
      %y = affine.load %y2[%j] : !V
      %product = arith.mulf %a, %y : $T
      %sum = arith.addf %x, %product : $T
      affine.store %sum, %x2[%i] : !V
    }
  }
  return
}
