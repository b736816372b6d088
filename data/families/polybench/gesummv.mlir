!A = memref<${N}x${N}x${T}>
!V = memref<${N}x${T}>
// y := alpha A x + beta B x
func.func @kernel(%A: !A, %B: !A, %tmp: !V, %x: !V, %y: !V) {
  %alpha = arith.constant 1.5 : $T
  %beta = arith.constant 1.2 : $T
  %zero = arith.constant 0.0 : $T
  affine.for %i = 0 to $N {
    affine.store %zero, %tmp[%i] : !V
    affine.store %zero, %y[%i] : !V
    affine.for %j = 0 to $N {
      %a = affine.load %A[%i, %j] : !A
      %x_j = affine.load %x[%j] : !V
      %tmp_i = affine.load %tmp[%i] : !V
      %ax = arith.mulf %a, %x_j : $T
      %tmp_next = arith.addf %ax, %tmp_i : $T
      affine.store %tmp_next, %tmp[%i] : !V
      %b = affine.load %B[%i, %j] : !A
      %x_again = affine.load %x[%j] : !V
      %y_i = affine.load %y[%i] : !V
      %bx = arith.mulf %b, %x_again : $T
      %y_next = arith.addf %bx, %y_i : $T
      affine.store %y_next, %y[%i] : !V
    }
    %tmp_i = affine.load %tmp[%i] : !V
    %y_i = affine.load %y[%i] : !V
    %left = arith.mulf %alpha, %tmp_i : $T
    %right = arith.mulf %beta, %y_i : $T
    %sum = arith.addf %left, %right : $T
    affine.store %sum, %y[%i] : !V
  }
  return
}
