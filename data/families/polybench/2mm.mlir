!A = memref<${NI}x${NK}x${T}>
!B = memref<${NK}x${NJ}x${T}>
!C = memref<${NJ}x${NL}x${T}>
!D = memref<${NI}x${NL}x${T}>
!TMP = memref<${NI}x${NJ}x${T}>
// D := alpha A B C + beta D
func.func @kernel(%tmp: !TMP, %A: !A, %B: !B, %C: !C, %D: !D) {
  %alpha = arith.constant 1.5 : $T
  %beta = arith.constant 1.2 : $T
  %zero = arith.constant 0.0 : $T
  affine.for %i = 0 to $NI {
    affine.for %j = 0 to $NJ {
      affine.store %zero, %tmp[%i, %j] : !TMP
      affine.for %k = 0 to $NK {
        %a = affine.load %A[%i, %k] : !A
        %b = affine.load %B[%k, %j] : !B
        %old = affine.load %tmp[%i, %j] : !TMP
        %scaled = arith.mulf %alpha, %a : $T
        %product = arith.mulf %scaled, %b : $T
        %sum = arith.addf %old, %product : $T
        affine.store %sum, %tmp[%i, %j] : !TMP
      }
    }
  }
  affine.for %i = 0 to $NI {
    affine.for %j = 0 to $NL {
      %d = affine.load %D[%i, %j] : !D
      %scaled = arith.mulf %d, %beta : $T
      affine.store %scaled, %D[%i, %j] : !D
      affine.for %k = 0 to $NJ {
        %t = affine.load %tmp[%i, %k] : !TMP
        %c = affine.load %C[%k, %j] : !C
        %old = affine.load %D[%i, %j] : !D
        %product = arith.mulf %t, %c : $T
        %sum = arith.addf %old, %product : $T
        affine.store %sum, %D[%i, %j] : !D
      }
    }
  }
  return
}
