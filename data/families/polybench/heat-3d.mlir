!A = memref<${N}x${N}x${N}x${T}>
// heat equation in space, explicit steps from A to B and back
func.func @kernel(%A: !A, %B: !A) {
  %eighth = arith.constant 0.125 : $T
  %two = arith.constant 2.0 : $T
  affine.for %t = 0 to $TSTEPS {
    affine.for %i = 1 to $N_1 {
      affine.for %j = 1 to $N_1 {
        affine.for %k = 1 to $N_1 {
          %here = affine.load %A[%i, %j, %k] : !A
          %twice = arith.mulf %two, %here : $T
          %i_after = affine.load %A[%i + 1, %j, %k] : !A
          %i_before = affine.load %A[%i - 1, %j, %k] : !A
          %i_half = arith.subf %i_after, %twice : $T
          %i_bend = arith.addf %i_half, %i_before : $T
          %i_flow = arith.mulf %eighth, %i_bend : $T
          %j_after = affine.load %A[%i, %j + 1, %k] : !A
          %j_before = affine.load %A[%i, %j - 1, %k] : !A
          %j_half = arith.subf %j_after, %twice : $T
          %j_bend = arith.addf %j_half, %j_before : $T
          %j_flow = arith.mulf %eighth, %j_bend : $T
          %k_after = affine.load %A[%i, %j, %k + 1] : !A
          %k_before = affine.load %A[%i, %j, %k - 1] : !A
          %k_half = arith.subf %k_after, %twice : $T
          %k_bend = arith.addf %k_half, %k_before : $T
          %k_flow = arith.mulf %eighth, %k_bend : $T
          %s1 = arith.addf %i_flow, %j_flow : $T
          %s2 = arith.addf %s1, %k_flow : $T
          %new = arith.addf %s2, %here : $T
          affine.store %new, %B[%i, %j, %k] : !A
        }
      }
    }
    affine.for %i = 1 to $N_1 {
      affine.for %j = 1 to $N_1 {
        affine.for %k = 1 to $N_1 {
          %here = affine.load %B[%i, %j, %k] : !A
          %twice = arith.mulf %two, %here : $T
          %i_after = affine.load %B[%i + 1, %j, %k] : !A
          %i_before = affine.load %B[%i - 1, %j, %k] : !A
          %i_half = arith.subf %i_after, %twice : $T
          %i_bend = arith.addf %i_half, %i_before : $T
          %i_flow = arith.mulf %eighth, %i_bend : $T
          %j_after = affine.load %B[%i, %j + 1, %k] : !A
          %j_before = affine.load %B[%i, %j - 1, %k] : !A
          %j_half = arith.subf %j_after, %twice : $T
          %j_bend = arith.addf %j_half, %j_before : $T
          %j_flow = arith.mulf %eighth, %j_bend : $T
          %k_after = affine.load %B[%i, %j, %k + 1] : !A
          %k_before = affine.load %B[%i, %j, %k - 1] : !A
          %k_half = arith.subf %k_after, %twice : $T
          %k_bend = arith.addf %k_half, %k_before : $T
          %k_flow = arith.mulf %eighth, %k_bend : $T
          %s1 = arith.addf %i_flow, %j_flow : $T
          %s2 = arith.addf %s1, %k_flow : $T
          %new = arith.addf %s2, %here : $T
          affine.store %new, %A[%i, %j, %k] : !A
        }
      }
    }
  }
  return
}
