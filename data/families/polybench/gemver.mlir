!A = memref<${N}x${N}x${T}>
!V = memref<${N}x${T}>
// A := A + u1 v1' + u2 v2';  x := x + beta A' y + z;  w := w + alpha A x
func.func @kernel(%A: !A, %u1: !V, %v1: !V, %u2: !V, %v2: !V, %w: !V, %x: !V, %y: !V, %z: !V) {
  %alpha = arith.constant 1.5 : $T
  %beta = arith.constant 1.2 : $T
  affine.for %i = 0 to $N {
    affine.for %j = 0 to $N {
      %a = affine.load %A[%i, %j] : !A
      %u1_i = affine.load %u1[%i] : !V
      %v1_j = affine.load %v1[%j] : !V
      %u2_i = affine.load %u2[%i] : !V
      %v2_j = affine.load %v2[%j] : !V
      %outer1 = arith.mulf %u1_i, %v1_j : $T
      %sum1 = arith.addf %a, %outer1 : $T
      %outer2 = arith.mulf %u2_i, %v2_j : $T
      %sum2 = arith.addf %sum1, %outer2 : $T
      affine.store %sum2, %A[%i, %j] : !A
    }
  }
  affine.for %i = 0 to $N {
    affine.for %j = 0 to $N {
      %x_i = affine.load %x[%i] : !V
      %a = affine.load %A[%j, %i] : !A
      %y_j = affine.load %y[%j] : !V
      %scaled = arith.mulf %beta, %a : $T
      %product = arith.mulf %scaled, %y_j : $T
      %sum = arith.addf %x_i, %product : $T
      affine.store %sum, %x[%i] : !V
    }
  }
  affine.for %i = 0 to $N {
    %x_i = affine.load %x[%i] : !V
    %z_i = affine.load %z[%i] : !V
    %sum = arith.addf %x_i, %z_i : $T
    affine.store %sum, %x[%i] : !V
  }
  affine.for %i = 0 to $N {
    affine.for %j = 0 to $N {
      %w_i = affine.load %w[%i] : !V
      %a = affine.load %A[%i, %j] : !A
      %x_j = affine.load %x[%j] : !V
      %scaled = arith.mulf %alpha, %a : $T
      %product = arith.mulf %scaled, %x_j : $T
      %sum = arith.addf %w_i, %product : $T
      affine.store %sum, %w[%i] : !V
    }
  }
  return
}
