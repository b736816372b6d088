!A = memref<${N}x${N}x${T}>
// A = L U without pivoting, both overwrite A
func.func @kernel(%A: !A) {
  affine.for %i = 0 to $N {
    affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
      affine.for %k = 0 to affine_map<(d0) -> (d0)>(%j) {
        %a_ik = affine.load %A[%i, %k] : !A
        %a_kj = affine.load %A[%k, %j] : !A
        %a = affine.load %A[%i, %j] : !A
        %product = arith.mulf %a_ik, %a_kj : $T
        %rest = arith.subf %a, %product : $T
        affine.store %rest, %A[%i, %j] : !A
      }
      %a = affine.load %A[%i, %j] : !A
      %pivot = affine.load %A[%j, %j] : !A
      %quotient = arith.divf %a, %pivot : $T
      affine.store %quotient, %A[%i, %j] : !A
    }
    affine.for %j = affine_map<(d0) -> (d0)>(%i) to $N {
      affine.for %k = 0 to affine_map<(d0) -> (d0)>(%i) {
        %a_ik = affine.load %A[%i, %k] : !A
        %a_kj = affine.load %A[%k, %j] : !A
        %a = affine.load %A[%i, %j] : !A
        %product = arith.mulf %a_ik, %a_kj : $T
        %rest = arith.subf %a, %product : $T
        affine.store %rest, %A[%i, %j] : !A
      }
    }
  }
  return
}
