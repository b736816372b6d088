!V = memref<${N}x${T}>
// Levinson-Durbin recursion: the Toeplitz system of r, solution in y
func.func @kernel(%r: !V, %y: !V) {
  %zero = arith.constant 0.0 : $T
  %one = arith.constant 1.0 : $T
  %z = memref.alloca() : !V
  %r_0 = affine.load %r[0] : !V
  %first = arith.negf %r_0 : $T
  affine.store %first, %y[0] : !V
  %last:2 = affine.for %k = 1 to $N iter_args(%alpha = %first, %beta = %one) -> ($T, $T) {
    %square = arith.mulf %alpha, %alpha : $T
    %shrink = arith.subf %one, %square : $T
    %beta_next = arith.mulf %shrink, %beta : $T
    %sum = affine.for %i = 0 to affine_map<(d0) -> (d0)>(%k) iter_args(%acc = %zero) -> ($T) {
      %r_back = affine.load %r[%k - %i - 1] : !V
      %y_i = affine.load %y[%i] : !V
      %product = arith.mulf %r_back, %y_i : $T
      %next = arith.addf %acc, %product : $T
      affine.yield %next : $T
    }
    %r_k = affine.load %r[%k] : !V
    %total = arith.addf %r_k, %sum : $T
    %negative = arith.negf %total : $T
    %alpha_next = arith.divf %negative, %beta_next : $T
    affine.for %i = 0 to affine_map<(d0) -> (d0)>(%k) {
      %y_i = affine.load %y[%i] : !V
      %y_back = affine.load %y[%k - %i - 1] : !V
      %product = arith.mulf %alpha_next, %y_back : $T
      %next = arith.addf %y_i, %product : $T
      affine.store %next, %z[%i] : !V
    }
    affine.for %i = 0 to affine_map<(d0) -> (d0)>(%k) {
      %z_i = affine.load %z[%i] : !V
      affine.store %z_i, %y[%i] : !V
    }
    affine.store %alpha_next, %y[%k] : !V
    affine.yield %alpha_next, %beta_next : $T, $T
  }
  return
}
