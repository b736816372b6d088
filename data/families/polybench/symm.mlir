!A = memref<${M}x${M}x${T}>
!B = memref<${M}x${N}x${T}>
// C := alpha A B + beta C, A symmetric with only its lower triangle stored
func.func @kernel(%A: !A, %B: !B, %C: !B) {
  %alpha = arith.constant 1.5 : $T
  %beta = arith.constant 1.2 : $T
  %zero = arith.constant 0.0 : $T
  affine.for %i = 0 to $M {
    affine.for %j = 0 to $N {
      %upper = affine.for %k = 0 to affine_map<(d0) -> (d0)>(%i) iter_args(%acc = %zero) -> ($T) {
        %b = affine.load %B[%i, %j] : !B
        %a = affine.load %A[%i, %k] : !A
        %c = affine.load %C[%k, %j] : !B
        %scaled = arith.mulf %alpha, %b : $T
        %product = arith.mulf %scaled, %a : $T
        %sum = arith.addf %c, %product : $T
        affine.store %sum, %C[%k, %j] : !B
        %b_k = affine.load %B[%k, %j] : !B
        %a_again = affine.load %A[%i, %k] : !A
        %ba = arith.mulf %b_k, %a_again : $T
        %next = arith.addf %acc, %ba : $T
        affine.yield %next : $T
      }
      %c = affine.load %C[%i, %j] : !B
      %b = affine.load %B[%i, %j] : !B
      %a = affine.load %A[%i, %i] : !A
      %old = arith.mulf %beta, %c : $T
      %scaled = arith.mulf %alpha, %b : $T
      %diagonal = arith.mulf %scaled, %a : $T
      %partial = arith.addf %old, %diagonal : $T
      %rest = arith.mulf %alpha, %upper : $T
      %sum = arith.addf %partial, %rest : $T
      affine.store %sum, %C[%i, %j] : !B
    }
  }
  return
}
