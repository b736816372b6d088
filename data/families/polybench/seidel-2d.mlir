!A = memref<${N}x${N}x${T}>
// mean of nine neighbours, in place
func.func @kernel(%A: !A) {
  %nine = arith.constant 9.0 : $T
  affine.for %t = 0 to $TSTEPS {
    affine.for %i = 1 to $N_1 {
      affine.for %j = 1 to $N_1 {
        %nw = affine.load %A[%i - 1, %j - 1] : !A
        %n = affine.load %A[%i - 1, %j] : !A
        %ne = affine.load %A[%i - 1, %j + 1] : !A
        %w = affine.load %A[%i, %j - 1] : !A
        %c = affine.load %A[%i, %j] : !A
        %e = affine.load %A[%i, %j + 1] : !A
        %sw = affine.load %A[%i + 1, %j - 1] : !A
        %s = affine.load %A[%i + 1, %j] : !A
        %se = affine.load %A[%i + 1, %j + 1] : !A
        %s1 = arith.addf %nw, %n : $T
        %s2 = arith.addf %s1, %ne : $T
        %s3 = arith.addf %s2, %w : $T
        %s4 = arith.addf %s3, %c : $T
        %s5 = arith.addf %s4, %e : $T
        %s6 = arith.addf %s5, %sw : $T
        %s7 = arith.addf %s6, %s : $T
        %s8 = arith.addf %s7, %se : $T
        %mean = arith.divf %s8, %nine : $T
        affine.store %mean, %A[%i, %j] : !A
      }
    }
  }
  return
}
