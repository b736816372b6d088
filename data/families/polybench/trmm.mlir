!A = memref<${M}x${M}x${T}>
!B = memref<${M}x${N}x${T}>
// B := alpha A' B, A lower triangular with a unit diagonal
func.func @kernel(%A: !A, %B: !B) {
  %alpha = arith.constant 1.5 : $T
  affine.for %i = 0 to $M {
    affine.for %j = 0 to $N {
      affine.for %k = affine_map<(d0) -> (d0 + 1)>(%i) to $M {
        %a = affine.load %A[%k, %i] : !A
        %b_k = affine.load %B[%k, %j] : !B
        %b = affine.load %B[%i, %j] : !B
        %product = arith.mulf %a, %b_k : $T
        %sum = arith.addf %b, %product : $T
        affine.store %sum, %B[%i, %j] : !B
      }
      %b = affine.load %B[%i, %j] : !B
      %scaled = arith.mulf %alpha, %b : $T
      affine.store %scaled, %B[%i, %j] : !B
    }
  }
  return
}
