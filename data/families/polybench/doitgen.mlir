!A = memref<${NR}x${NQ}x${NP}x${T}>
!C4 = memref<${NP}x${NP}x${T}>
!S = memref<${NP}x${T}>
// A[r, q, :] := A[r, q, :] C4
func.func @kernel(%A: !A, %C4: !C4, %sum: !S) {
  %zero = arith.constant 0.0 : $T
  affine.for %r = 0 to $NR {
    affine.for %q = 0 to $NQ {
      affine.for %p = 0 to $NP {
        affine.store %zero, %sum[%p] : !S
        affine.for %s = 0 to $NP {
          %old = affine.load %sum[%p] : !S
          %a = affine.load %A[%r, %q, %s] : !A
          %c = affine.load %C4[%s, %p] : !C4
          %product = arith.mulf %a, %c : $T
          %next = arith.addf %old, %product : $T
          affine.store %next, %sum[%p] : !S
        }
      }
      affine.for %p = 0 to $NP {
        %total = affine.load %sum[%p] : !S
        affine.store %total, %A[%r, %q, %p] : !A
      }
    }
  }
  return
}
