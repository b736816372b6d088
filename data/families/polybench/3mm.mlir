!A = memref<${NI}x${NK}x${T}>
!B = memref<${NK}x${NJ}x${T}>
!C = memref<${NJ}x${NM}x${T}>
!D = memref<${NM}x${NL}x${T}>
!E = memref<${NI}x${NJ}x${T}>
!F = memref<${NJ}x${NL}x${T}>
!G = memref<${NI}x${NL}x${T}>
// E := A B;  F := C D;  G := E F
func.func @kernel(%E: !E, %A: !A, %B: !B, %F: !F, %C: !C, %D: !D, %G: !G) {
  %zero = arith.constant 0.0 : $T
  affine.for %i = 0 to $NI {
    affine.for %j = 0 to $NJ {
      affine.store %zero, %E[%i, %j] : !E
      affine.for %k = 0 to $NK {
        %a = affine.load %A[%i, %k] : !A
        %b = affine.load %B[%k, %j] : !B
        %e = affine.load %E[%i, %j] : !E
        %product = arith.mulf %a, %b : $T
        %sum = arith.addf %e, %product : $T
        affine.store %sum, %E[%i, %j] : !E
      }
    }
  }
  affine.for %i = 0 to $NJ {
    affine.for %j = 0 to $NL {
      affine.store %zero, %F[%i, %j] : !F
      affine.for %k = 0 to $NM {
        %c = affine.load %C[%i, %k] : !C
        %d = affine.load %D[%k, %j] : !D
        %f = affine.load %F[%i, %j] : !F
        %product = arith.mulf %c, %d : $T
        %sum = arith.addf %f, %product : $T
        affine.store %sum, %F[%i, %j] : !F
      }
    }
  }
  affine.for %i = 0 to $NI {
    affine.for %j = 0 to $NL {
      affine.store %zero, %G[%i, %j] : !G
      affine.for %k = 0 to $NJ {
        %e = affine.load %E[%i, %k] : !E
        %f = affine.load %F[%k, %j] : !F
        %g = affine.load %G[%i, %j] : !G
        %product = arith.mulf %e, %f : $T
        %sum = arith.addf %g, %product : $T
        affine.store %sum, %G[%i, %j] : !G
      }
    }
  }
  return
}
