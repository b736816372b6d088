!A = memref<${NI}x${NK}x${T}>
!B = memref<${NK}x${NJ}x${T}>
!C = memref<${NI}x${NJ}x${T}>
// C := alpha A B + beta C
func.func @kernel(%A: !A, %B: !B, %C: !C) {
  %alpha = arith.constant 1.5 : $T
  %beta = arith.constant 1.2 : $T
  affine.for %i = 0 to $NI {
    affine.for %j = 0 to $NJ {
      %c = affine.load %C[%i, %j] : !C
      %scaled = arith.mulf %c, %beta : $T
      affine.store %scaled, %C[%i, %j] : !C
    }
    affine.for %k = 0 to $NK {
      affine.for %j = 0 to $NJ {
        %a = affine.load %A[%i, %k] : !A
        %b = affine.load %B[%k, %j] : !B
        %c = affine.load %C[%i, %j] : !C
        %scaled = arith.mulf %alpha, %a : $T
        %product = arith.mulf %scaled, %b : $T
        %sum = arith.addf %c, %product : $T
        affine.store %sum, %C[%i, %j] : !C
      }
    }
  }
  return
}
