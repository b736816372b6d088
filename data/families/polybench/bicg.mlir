!A = memref<${N}x${M}x${T}>
!S = memref<${M}x${T}>
!Q = memref<${N}x${T}>
// s := A' r;  q := A p
func.func @kernel(%A: !A, %s: !S, %q: !Q, %p: !S, %r: !Q) {
  %zero = arith.constant 0.0 : $T
  affine.for %i = 0 to $M {
    affine.store %zero, %s[%i] : !S
  }
  affine.for %i = 0 to $N {
    affine.store %zero, %q[%i] : !Q
    affine.for %j = 0 to $M {
      %s_j = affine.load %s[%j] : !S
      %r_i = affine.load %r[%i] : !Q
      %a = affine.load %A[%i, %j] : !A
      %ra = arith.mulf %r_i, %a : $T
      %s_next = arith.addf %s_j, %ra : $T
      affine.store %s_next, %s[%j] : !S
      %q_i = affine.load %q[%i] : !Q
      %a_again = affine.load %A[%i, %j] : !A
      %p_j = affine.load %p[%j] : !S
      %ap = arith.mulf %a_again, %p_j : $T
      %q_next = arith.addf %q_i, %ap : $T
      affine.store %q_next, %q[%i] : !Q
    }
  }
  return
}
