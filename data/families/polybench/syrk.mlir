!A = memref<${N}x${M}x${T}>
!C = memref<${N}x${N}x${T}>
// C := alpha A A' + beta C, lower triangle
func.func @kernel(%A: !A, %C: !C) {
  %alpha = arith.constant 1.5 : $T
  %beta = arith.constant 1.2 : $T
  affine.for %i = 0 to $N {
    affine.for %j = 0 to affine_map<(d0) -> (d0 + 1)>(%i) {
      %c = affine.load %C[%i, %j] : !C
      %scaled = arith.mulf %c, %beta : $T
      affine.store %scaled, %C[%i, %j] : !C
    }
    affine.for %k = 0 to $M {
      affine.for %j = 0 to affine_map<(d0) -> (d0 + 1)>(%i) {
        %a_i = affine.load %A[%i, %k] : !A
        %a_j = affine.load %A[%j, %k] : !A
        %c = affine.load %C[%i, %j] : !C
        %scaled = arith.mulf %alpha, %a_i : $T
        %product = arith.mulf %scaled, %a_j : $T
        %sum = arith.addf %c, %product : $T
        affine.store %sum, %C[%i, %j] : !C
      }
    }
  }
  return
}
