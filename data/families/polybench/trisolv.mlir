!L = memref<${N}x${N}x${T}>
!V = memref<${N}x${T}>
// L x = b, L lower triangular
func.func @kernel(%L: !L, %x: !V, %b: !V) {
  affine.for %i = 0 to $N {
    %b_i = affine.load %b[%i] : !V
    affine.store %b_i, %x[%i] : !V
    affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
      %l = affine.load %L[%i, %j] : !L
      %x_j = affine.load %x[%j] : !V
      %x_i = affine.load %x[%i] : !V
      %product = arith.mulf %l, %x_j : $T
      %rest = arith.subf %x_i, %product : $T
      affine.store %rest, %x[%i] : !V
    }
    %x_i = affine.load %x[%i] : !V
    %pivot = affine.load %L[%i, %i] : !L
    %quotient = arith.divf %x_i, %pivot : $T
    affine.store %quotient, %x[%i] : !V
  }
  return
}
