!D = memref<${N}x${M}x${T}>
!C = memref<${M}x${M}x${T}>
!V = memref<${M}x${T}>
// covariance of the M columns of N samples; data is centered in place
func.func @kernel(%data: !D, %cov: !C, %mean: !V) {
  %zero = arith.constant 0.0 : $T
  %one = arith.constant 1.0 : $T
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
  affine.for %i = 0 to $N {
    affine.for %j = 0 to $M {
      %d = affine.load %data[%i, %j] : !D
      %m = affine.load %mean[%j] : !V
      %centered = arith.subf %d, %m : $T
      affine.store %centered, %data[%i, %j] : !D
    }
  }
  %freedom = arith.subf %n, %one : $T
  affine.for %i = 0 to $M {
    affine.for %j = affine_map<(d0) -> (d0)>(%i) to $M {
      affine.store %zero, %cov[%i, %j] : !C
      affine.for %k = 0 to $N {
        %d_i = affine.load %data[%k, %i] : !D
        %d_j = affine.load %data[%k, %j] : !D
        %c = affine.load %cov[%i, %j] : !C
        %product = arith.mulf %d_i, %d_j : $T
        %sum = arith.addf %c, %product : $T
        affine.store %sum, %cov[%i, %j] : !C
      }
      %c = affine.load %cov[%i, %j] : !C
      %scaled = arith.divf %c, %freedom : $T
      affine.store %scaled, %cov[%i, %j] : !C
      affine.store %scaled, %cov[%j, %i] : !C
    }
  }
  return
}
