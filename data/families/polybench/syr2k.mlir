!A = memref<${N}x${M}x${T}>
!C = memref<${N}x${N}x${T}>
// C := alpha A B' + alpha B A' + beta C, lower triangle
func.func @kernel(%A: !A, %B: !A, %C: !C) {
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
        %a_j = affine.load %A[%j, %k] : !A
        %b_i = affine.load %B[%i, %k] : !A
        %b_j = affine.load %B[%j, %k] : !A
        %a_i = affine.load %A[%i, %k] : !A
        %c = affine.load %C[%i, %j] : !C
        %left_scaled = arith.mulf %a_j, %alpha : $T
        %left = arith.mulf %left_scaled, %b_i : $T
        %right_scaled = arith.mulf %b_j, %alpha : $T
        %right = arith.mulf %right_scaled, %a_i : $T
        %both = arith.addf %left, %right : $T
        %sum = arith.addf %c, %both : $T
        affine.store %sum, %C[%i, %j] : !C
      }
    }
  }
  return
}
