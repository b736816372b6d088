!A = memref<${N}x${N}x${T}>
// A = L L', L overwrites the lower triangle
func.func @kernel(%A: !A) {
  affine.for %i = 0 to $N {
    affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
      affine.for %k = 0 to affine_map<(d0) -> (d0)>(%j) {
        %a_ik = affine.load %A[%i, %k] : !A
        %a_jk = affine.load %A[%j, %k] : !A
        %a = affine.load %A[%i, %j] : !A
        %product = arith.mulf %a_ik, %a_jk : $T
        %rest = arith.subf %a, %product : $T
        affine.store %rest, %A[%i, %j] : !A
      }
      %a = affine.load %A[%i, %j] : !A
      %pivot = affine.load %A[%j, %j] : !A
      %quotient = arith.divf %a, %pivot : $T
      affine.store %quotient, %A[%i, %j] : !A
    }
    affine.for %k = 0 to affine_map<(d0) -> (d0)>(%i) {
      %a_ik = affine.load %A[%i, %k] : !A
      %a = affine.load %A[%i, %i] : !A
      %square = arith.mulf %a_ik, %a_ik : $T
      %rest = arith.subf %a, %square : $T
      affine.store %rest, %A[%i, %i] : !A
    }
    %a = affine.load %A[%i, %i] : !A
    %root = math.sqrt %a : $T
    affine.store %root, %A[%i, %i] : !A
  }
  return
}
