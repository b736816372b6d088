!A = memref<${M}x${N}x${T}>
!R = memref<${N}x${N}x${T}>
// A = Q R by modified Gram-Schmidt, A is overwritten
func.func @kernel(%A: !A, %R: !R, %Q: !A) {
  %zero = arith.constant 0.0 : $T
  affine.for %k = 0 to $N {
    %norm = affine.for %i = 0 to $M iter_args(%acc = %zero) -> ($T) {
      %a = affine.load %A[%i, %k] : !A
      %square = arith.mulf %a, %a : $T
      %next = arith.addf %acc, %square : $T
      affine.yield %next : $T
    }
    %length = math.sqrt %norm : $T
    affine.store %length, %R[%k, %k] : !R
    affine.for %i = 0 to $M {
      %a = affine.load %A[%i, %k] : !A
      %r = affine.load %R[%k, %k] : !R
      %quotient = arith.divf %a, %r : $T
      affine.store %quotient, %Q[%i, %k] : !A
    }
    affine.for %j = affine_map<(d0) -> (d0 + 1)>(%k) to $N {
      affine.store %zero, %R[%k, %j] : !R
      affine.for %i = 0 to $M {
        %q = affine.load %Q[%i, %k] : !A
        %a = affine.load %A[%i, %j] : !A
        %r = affine.load %R[%k, %j] : !R
        %product = arith.mulf %q, %a : $T
        %sum = arith.addf %r, %product : $T
        affine.store %sum, %R[%k, %j] : !R
      }
      affine.for %i = 0 to $M {
        %a = affine.load %A[%i, %j] : !A
        %q = affine.load %Q[%i, %k] : !A
        %r = affine.load %R[%k, %j] : !R
        %product = arith.mulf %q, %r : $T
        %rest = arith.subf %a, %product : $T
        affine.store %rest, %A[%i, %j] : !A
      }
    }
  }
  return
}
