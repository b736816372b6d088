!D = memref<${N}x${M}x${T}>
!C = memref<${M}x${M}x${T}>
!V = memref<${M}x${T}>
// correlation of the M columns of N samples; data is standardized in place
func.func @kernel(%data: !D, %corr: !C, %mean: !V, %stddev: !V) {
  %zero = arith.constant 0.0 : $T
  %one = arith.constant 1.0 : $T
  %eps = arith.constant 0.1 : $T
  %n = arith.constant ${N}.0 : $T
  affine.for %j = 0 to $M {
    affine.store %zero, %mean[%j] : !V
    affine.for %i = 0 to $N {
      %d = affine.load %data[%i, %j] : !D
      %m = affine.load %mean[%j] : !V
      %sum = arith.addf %m, %d : $T
      affine.store %sum, %mean[%j] : !V
    }
    %m = affine.load %mean[%j] : !V
    %average = arith.divf %m, %n : $T
    affine.store %average, %mean[%j] : !V
  }
  affine.for %j = 0 to $M {
    affine.store %zero, %stddev[%j] : !V
    affine.for %i = 0 to $N {
      %d = affine.load %data[%i, %j] : !D
      %m = affine.load %mean[%j] : !V
      %s = affine.load %stddev[%j] : !V
      %centered = arith.subf %d, %m : $T
      %square = arith.mulf %centered, %centered : $T
      %sum = arith.addf %s, %square : $T
      affine.store %sum, %stddev[%j] : !V
    }
    %s = affine.load %stddev[%j] : !V
    %variance = arith.divf %s, %n : $T
    %deviation = math.sqrt %variance : $T
    %tiny = arith.cmpf ole, %deviation, %eps : $T
    %safe = arith.select %tiny, %one, %deviation : $T
    affine.store %safe, %stddev[%j] : !V
  }
  %root_n = math.sqrt %n : $T
  affine.for %i = 0 to $N {
    affine.for %j = 0 to $M {
      %d = affine.load %data[%i, %j] : !D
      %m = affine.load %mean[%j] : !V
      %centered = arith.subf %d, %m : $T
      %s = affine.load %stddev[%j] : !V
      %scale = arith.mulf %root_n, %s : $T
      %standard = arith.divf %centered, %scale : $T
      affine.store %standard, %data[%i, %j] : !D
    }
  }
  affine.for %i = 0 to $M_1 {
    affine.store %one, %corr[%i, %i] : !C
    affine.for %j = affine_map<(d0) -> (d0 + 1)>(%i) to $M {
      affine.store %zero, %corr[%i, %j] : !C
      affine.for %k = 0 to $N {
        %d_i = affine.load %data[%k, %i] : !D
        %d_j = affine.load %data[%k, %j] : !D
        %c = affine.load %corr[%i, %j] : !C
        %product = arith.mulf %d_i, %d_j : $T
        %sum = arith.addf %c, %product : $T
        affine.store %sum, %corr[%i, %j] : !C
      }
      %c = affine.load %corr[%i, %j] : !C
      affine.store %c, %corr[%j, %i] : !C
    }
  }
  affine.store %one, %corr[$M_1, $M_1] : !C
  return
}
