!S = memref<${N}x${T}>
!P = memref<${N}x${N}x${T}>
// most base pairs of an RNA sequence (bases 0..3 pair when they add up to 3), by dynamic programming
func.func @kernel(%seq: !S, %table: !P) {
  %three = arith.constant 3 : $T
  affine.for %back = 0 to $N {
    affine.for %j = affine_map<(d0) -> ($N - d0)>(%back) to $N {
      %start = affine.load %table[$N_1 - %back, %j] : !P
      %left = affine.load %table[$N_1 - %back, %j - 1] : !P
      %best1 = arith.maxsi %start, %left : $T
      affine.store %best1, %table[$N_1 - %back, %j] : !P
      %before_below = affine.load %table[$N_1 - %back, %j] : !P
      %below = affine.load %table[$N - %back, %j] : !P
      %best2 = arith.maxsi %before_below, %below : $T
      affine.store %best2, %table[$N_1 - %back, %j] : !P
      affine.if affine_set<(d0, d1) : (d0 + d1 - $N_1 - 2 >= 0)>(%back, %j) {
        %old = affine.load %table[$N_1 - %back, %j] : !P
        %inner = affine.load %table[$N - %back, %j - 1] : !P
        %base_i = affine.load %seq[$N_1 - %back] : !S
        %base_j = affine.load %seq[%j] : !S
        %bases = arith.addi %base_i, %base_j : $T
        %pairs = arith.cmpi eq, %bases, %three : $T
        %match = arith.extui %pairs : i1 to $T
        %paired = arith.addi %inner, %match : $T
        %best = arith.maxsi %old, %paired : $T
        affine.store %best, %table[$N_1 - %back, %j] : !P
      } else {
        %old = affine.load %table[$N_1 - %back, %j] : !P
        %inner = affine.load %table[$N - %back, %j - 1] : !P
        %best = arith.maxsi %old, %inner : $T
        affine.store %best, %table[$N_1 - %back, %j] : !P
      }
      affine.for %k = affine_map<(d0) -> ($N - d0)>(%back) to affine_map<(d0) -> (d0)>(%j) {
        %old = affine.load %table[$N_1 - %back, %j] : !P
        %first = affine.load %table[$N_1 - %back, %k] : !P
        %second = affine.load %table[%k + 1, %j] : !P
        %split = arith.addi %first, %second : $T
        %best = arith.maxsi %old, %split : $T
        affine.store %best, %table[$N_1 - %back, %j] : !P
      }
    }
  }
  return
}
