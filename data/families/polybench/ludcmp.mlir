!A = memref<${N}x${N}x${T}>
!V = memref<${N}x${T}>
// A = L U without pivoting, then A x = b through L y = b and U x = y
func.func @kernel(%A: !A, %b: !V, %x: !V, %y: !V) {
  affine.for %i = 0 to $N {
    affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
      %a = affine.load %A[%i, %j] : !A
      %w = affine.for %k = 0 to affine_map<(d0) -> (d0)>(%j) iter_args(%acc = %a) -> ($T) {
        %a_ik = affine.load %A[%i, %k] : !A
        %a_kj = affine.load %A[%k, %j] : !A
        %product = arith.mulf %a_ik, %a_kj : $T
        %rest = arith.subf %acc, %product : $T
        affine.yield %rest : $T
      }
      %pivot = affine.load %A[%j, %j] : !A
      %quotient = arith.divf %w, %pivot : $T
      affine.store %quotient, %A[%i, %j] : !A
    }
    affine.for %j = affine_map<(d0) -> (d0)>(%i) to $N {
      %a = affine.load %A[%i, %j] : !A
      %w = affine.for %k = 0 to affine_map<(d0) -> (d0)>(%i) iter_args(%acc = %a) -> ($T) {
        %a_ik = affine.load %A[%i, %k] : !A
        %a_kj = affine.load %A[%k, %j] : !A
        %product = arith.mulf %a_ik, %a_kj : $T
        %rest = arith.subf %acc, %product : $T
        affine.yield %rest : $T
      }
      affine.store %w, %A[%i, %j] : !A
    }
  }
  affine.for %i = 0 to $N {
    %b_i = affine.load %b[%i] : !V
    %w = affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) iter_args(%acc = %b_i) -> ($T) {
      %a = affine.load %A[%i, %j] : !A
      %y_j = affine.load %y[%j] : !V
      %product = arith.mulf %a, %y_j : $T
      %rest = arith.subf %acc, %product : $T
      affine.yield %rest : $T
    }
    affine.store %w, %y[%i] : !V
  }
  affine.for %back = 0 to $N {
    %y_i = affine.load %y[$N_1 - %back] : !V
    %w = affine.for %j = affine_map<(d0) -> ($N - d0)>(%back) to $N iter_args(%acc = %y_i) -> ($T) {
      %a = affine.load %A[$N_1 - %back, %j] : !A
      %x_j = affine.load %x[%j] : !V
      %product = arith.mulf %a, %x_j : $T
      %rest = arith.subf %acc, %product : $T
      affine.yield %rest : $T
    }
    %pivot = affine.load %A[$N_1 - %back, $N_1 - %back] : !A
    %quotient = arith.divf %w, %pivot : $T
    affine.store %quotient, %x[$N_1 - %back] : !V
  }
  return
}
