!P = memref<${N}x${N}x${T}>
// shortest paths between all pairs of nodes, in place
func.func @kernel(%path: !P) {
  affine.for %k = 0 to $N {
    affine.for %i = 0 to $N {
      affine.for %j = 0 to $N {
        %direct = affine.load %path[%i, %j] : !P
        %to_k = affine.load %path[%i, %k] : !P
        %from_k = affine.load %path[%k, %j] : !P
        %through_k = arith.addi %to_k, %from_k : $T
        %shorter = arith.cmpi slt, %direct, %through_k : $T
        %best = arith.select %shorter, %direct, %through_k : $T
        affine.store %best, %path[%i, %j] : !P
      }
    }
  }
  return
}
