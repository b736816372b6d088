!A = memref<${N}x${N}x${T}>
// heat equation by alternating direction implicit steps: a column sweep, then a row sweep
func.func @kernel(%u: !A, %v: !A, %p: !A, %q: !A) {
  %zero = arith.constant 0.0 : $T
  %one = arith.constant 1.0 : $T
  %two = arith.constant 2.0 : $T
  %n = arith.constant ${N}.0 : $T
  %steps = arith.constant ${TSTEPS}.0 : $T
  %dx = arith.divf %one, %n : $T
  %dt = arith.divf %one, %steps : $T
  %dx2 = arith.mulf %dx, %dx : $T
  %two_dt = arith.mulf %two, %dt : $T
  %mul1 = arith.divf %two_dt, %dx2 : $T
  %mul2 = arith.divf %dt, %dx2 : $T
  %half1 = arith.divf %mul1, %two : $T
  %half2 = arith.divf %mul2, %two : $T
  %a = arith.negf %half1 : $T
  %b = arith.addf %one, %mul1 : $T
  %d = arith.negf %half2 : $T
  %e = arith.addf %one, %mul2 : $T
  %two_a = arith.mulf %two, %a : $T
  %two_d = arith.mulf %two, %d : $T
  %a_center = arith.addf %one, %two_a : $T
  %d_center = arith.addf %one, %two_d : $T
  affine.for %t = 0 to $TSTEPS {
    affine.for %i = 1 to $N_1 {
      affine.store %one, %v[0, %i] : !A
      affine.store %zero, %p[%i, 0] : !A
      %edge = affine.load %v[0, %i] : !A
      affine.store %edge, %q[%i, 0] : !A
      affine.for %j = 1 to $N_1 {
        %p_left = affine.load %p[%i, %j - 1] : !A
        %a_p = arith.mulf %a, %p_left : $T
        %pivot = arith.addf %a_p, %b : $T
        %p_next = arith.divf %half1, %pivot : $T
        affine.store %p_next, %p[%i, %j] : !A
        %u_west = affine.load %u[%j, %i - 1] : !A
        %u_here = affine.load %u[%j, %i] : !A
        %u_east = affine.load %u[%j, %i + 1] : !A
        %q_left = affine.load %q[%i, %j - 1] : !A
        %west = arith.mulf %half2, %u_west : $T
        %here = arith.mulf %d_center, %u_here : $T
        %east = arith.mulf %d, %u_east : $T
        %carry = arith.mulf %a, %q_left : $T
        %s1 = arith.addf %west, %here : $T
        %s2 = arith.subf %s1, %east : $T
        %s3 = arith.subf %s2, %carry : $T
        %q_next = arith.divf %s3, %pivot : $T
        affine.store %q_next, %q[%i, %j] : !A
      }
      affine.store %one, %v[$N_1, %i] : !A
      affine.for %back = 1 to $N_1 {
        %p_j = affine.load %p[%i, $N_1 - %back] : !A
        %v_after = affine.load %v[$N - %back, %i] : !A
        %q_j = affine.load %q[%i, $N_1 - %back] : !A
        %product = arith.mulf %p_j, %v_after : $T
        %v_next = arith.addf %product, %q_j : $T
        affine.store %v_next, %v[$N_1 - %back, %i] : !A
      }
    }
    affine.for %i = 1 to $N_1 {
      affine.store %one, %u[%i, 0] : !A
      affine.store %zero, %p[%i, 0] : !A
      %edge = affine.load %u[%i, 0] : !A
      affine.store %edge, %q[%i, 0] : !A
      affine.for %j = 1 to $N_1 {
        %p_left = affine.load %p[%i, %j - 1] : !A
        %d_p = arith.mulf %d, %p_left : $T
        %pivot = arith.addf %d_p, %e : $T
        %p_next = arith.divf %half2, %pivot : $T
        affine.store %p_next, %p[%i, %j] : !A
        %v_north = affine.load %v[%i - 1, %j] : !A
        %v_here = affine.load %v[%i, %j] : !A
        %v_south = affine.load %v[%i + 1, %j] : !A
        %q_left = affine.load %q[%i, %j - 1] : !A
        %north = arith.mulf %half1, %v_north : $T
        %here = arith.mulf %a_center, %v_here : $T
        %south = arith.mulf %a, %v_south : $T
        %carry = arith.mulf %d, %q_left : $T
        %s1 = arith.addf %north, %here : $T
        %s2 = arith.subf %s1, %south : $T
        %s3 = arith.subf %s2, %carry : $T
        %q_next = arith.divf %s3, %pivot : $T
        affine.store %q_next, %q[%i, %j] : !A
      }
      affine.store %one, %u[%i, $N_1] : !A
      affine.for %back = 1 to $N_1 {
        %p_j = affine.load %p[%i, $N_1 - %back] : !A
        %u_after = affine.load %u[%i, $N - %back] : !A
        %q_j = affine.load %q[%i, $N_1 - %back] : !A
        %product = arith.mulf %p_j, %u_after : $T
        %u_next = arith.addf %product, %q_j : $T
        affine.store %u_next, %u[%i, $N_1 - %back] : !A
      }
    }
  }
  return
}
