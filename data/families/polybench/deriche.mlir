!I = memref<${W}x${H}x${T}>
// recursive smoothing of an image, forwards and backwards along rows, then along columns
func.func @kernel(%in: !I, %out: !I, %y1: !I, %y2: !I) {
  %zero = arith.constant 0.0 : $T
  %one = arith.constant 1.0 : $T
  %two = arith.constant 2.0 : $T
  %alpha = arith.constant 0.25 : $T
  %minus_alpha = arith.negf %alpha : $T
  %two_alpha = arith.mulf %two, %alpha : $T
  %minus_two_alpha = arith.negf %two_alpha : $T
  %decay = math.exp %minus_alpha : $T
  %decay2 = math.exp %minus_two_alpha : $T
  %growth2 = math.exp %two_alpha : $T
  %lost = arith.subf %one, %decay : $T
  %lost_square = arith.mulf %lost, %lost : $T
  %slope = arith.mulf %two_alpha, %decay : $T
  %one_slope = arith.addf %one, %slope : $T
  %norm = arith.subf %one_slope, %growth2 : $T
  %k = arith.divf %lost_square, %norm : $T
  %k_decay = arith.mulf %k, %decay : $T
  %alpha_less = arith.subf %alpha, %one : $T
  %alpha_more = arith.addf %alpha, %one : $T
  %a2 = arith.mulf %k_decay, %alpha_less : $T
  %a3 = arith.mulf %k_decay, %alpha_more : $T
  %k_decay2 = arith.mulf %k, %decay2 : $T
  %a4 = arith.negf %k_decay2 : $T
  %b1 = math.powf %two, %minus_alpha : $T
  %b2 = arith.negf %decay2 : $T
  affine.for %i = 0 to $W {
    %rows:3 = affine.for %j = 0 to $H iter_args(%xm1 = %zero, %ym1 = %zero, %ym2 = %zero) -> ($T, $T, $T) {
      %x = affine.load %in[%i, %j] : !I
      %t1 = arith.mulf %k, %x : $T
      %t2 = arith.mulf %a2, %xm1 : $T
      %t3 = arith.mulf %b1, %ym1 : $T
      %t4 = arith.mulf %b2, %ym2 : $T
      %s1 = arith.addf %t1, %t2 : $T
      %s2 = arith.addf %s1, %t3 : $T
      %y = arith.addf %s2, %t4 : $T
      affine.store %y, %y1[%i, %j] : !I
      affine.yield %x, %y, %ym1 : $T, $T, $T
    }
  }
  affine.for %i = 0 to $W {
    %rows:4 = affine.for %back = 0 to $H iter_args(%xp1 = %zero, %xp2 = %zero, %yp1 = %zero, %yp2 = %zero) -> ($T, $T, $T, $T) {
      %t1 = arith.mulf %a3, %xp1 : $T
      %t2 = arith.mulf %a4, %xp2 : $T
      %t3 = arith.mulf %b1, %yp1 : $T
      %t4 = arith.mulf %b2, %yp2 : $T
      %s1 = arith.addf %t1, %t2 : $T
      %s2 = arith.addf %s1, %t3 : $T
      %y = arith.addf %s2, %t4 : $T
      affine.store %y, %y2[%i, $H_1 - %back] : !I
      %x = affine.load %in[%i, $H_1 - %back] : !I
      affine.yield %x, %xp1, %y, %yp1 : $T, $T, $T, $T
    }
  }
  affine.for %i = 0 to $W {
    affine.for %j = 0 to $H {
      %left = affine.load %y1[%i, %j] : !I
      %right = affine.load %y2[%i, %j] : !I
      %sum = arith.addf %left, %right : $T
      affine.store %sum, %out[%i, %j] : !I
    }
  }
  affine.for %j = 0 to $H {
    %columns:3 = affine.for %i = 0 to $W iter_args(%xm1 = %zero, %ym1 = %zero, %ym2 = %zero) -> ($T, $T, $T) {
      %x = affine.load %out[%i, %j] : !I
      %t1 = arith.mulf %k, %x : $T
      %t2 = arith.mulf %a2, %xm1 : $T
      %t3 = arith.mulf %b1, %ym1 : $T
      %t4 = arith.mulf %b2, %ym2 : $T
      %s1 = arith.addf %t1, %t2 : $T
      %s2 = arith.addf %s1, %t3 : $T
      %y = arith.addf %s2, %t4 : $T
      affine.store %y, %y1[%i, %j] : !I
      affine.yield %x, %y, %ym1 : $T, $T, $T
    }
  }
  affine.for %j = 0 to $H {
    %columns:4 = affine.for %back = 0 to $W iter_args(%xp1 = %zero, %xp2 = %zero, %yp1 = %zero, %yp2 = %zero) -> ($T, $T, $T, $T) {
      %t1 = arith.mulf %a3, %xp1 : $T
      %t2 = arith.mulf %a4, %xp2 : $T
      %t3 = arith.mulf %b1, %yp1 : $T
      %t4 = arith.mulf %b2, %yp2 : $T
      %s1 = arith.addf %t1, %t2 : $T
      %s2 = arith.addf %s1, %t3 : $T
      %y = arith.addf %s2, %t4 : $T
      affine.store %y, %y2[$W_1 - %back, %j] : !I
      %x = affine.load %out[$W_1 - %back, %j] : !I
      affine.yield %x, %xp1, %y, %yp1 : $T, $T, $T, $T
    }
  }
  affine.for %i = 0 to $W {
    affine.for %j = 0 to $H {
      %left = affine.load %y1[%i, %j] : !I
      %right = affine.load %y2[%i, %j] : !I
      %sum = arith.addf %left, %right : $T
      affine.store %sum, %out[%i, %j] : !I
    }
  }
  return
}
