!A = memref<${N}x${N}x${T}>
// mean of five neighbours, from A to B and back
func.func @kernel(%A: !A, %B: !A) {
  %fifth = arith.constant 0.2 : $T
  affine.for %t = 0 to $TSTEPS {
    affine.for %i = 1 to $N_1 {
      affine.for %j = 1 to $N_1 {
        %here = affine.load %A[%i, %j] : !A
        %west = affine.load %A[%i, %j - 1] : !A
        %east = affine.load %A[%i, %j + 1] : !A
        %south = affine.load %A[%i + 1, %j] : !A
        %north = affine.load %A[%i - 1, %j] : !A
        %s1 = arith.addf %here, %west : $T
        %s2 = arith.addf %s1, %east : $T
        %s3 = arith.addf %s2, %south : $T
        %s4 = arith.addf %s3, %north : $T
        %new = arith.mulf %fifth, %s4 : $T
        affine.store %new, %B[%i, %j] : !A
      }
    }
    affine.for %i = 1 to $N_1 {
      affine.for %j = 1 to $N_1 {
        %here = affine.load %B[%i, %j] : !A
        %west = affine.load %B[%i, %j - 1] : !A
        %east = affine.load %B[%i, %j + 1] : !A
        %south = affine.load %B[%i + 1, %j] : !A
        %north = affine.load %B[%i - 1, %j] : !A
        %s1 = arith.addf %here, %west : $T
        %s2 = arith.addf %s1, %east : $T
        %s3 = arith.addf %s2, %south : $T
        %s4 = arith.addf %s3, %north : $T
        %new = arith.mulf %fifth, %s4 : $T
        affine.store %new, %A[%i, %j] : !A
      }
    }
  }
  return
}
