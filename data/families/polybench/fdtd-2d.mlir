!G = memref<${NX}x${NY}x${T}>
!F = memref<${TSTEPS}x${T}>
// electric and magnetic field in the plane by finite differences in time
func.func @kernel(%ex: !G, %ey: !G, %hz: !G, %fict: !F) {
  %half = arith.constant 0.5 : $T
  %courant = arith.constant 0.7 : $T
  affine.for %t = 0 to $TSTEPS {
    affine.for %j = 0 to $NY {
      %source = affine.load %fict[%t] : !F
      affine.store %source, %ey[0, %j] : !G
    }
    affine.for %i = 1 to $NX {
      affine.for %j = 0 to $NY {
        %old = affine.load %ey[%i, %j] : !G
        %here = affine.load %hz[%i, %j] : !G
        %north = affine.load %hz[%i - 1, %j] : !G
        %difference = arith.subf %here, %north : $T
        %change = arith.mulf %half, %difference : $T
        %new = arith.subf %old, %change : $T
        affine.store %new, %ey[%i, %j] : !G
      }
    }
    affine.for %i = 0 to $NX {
      affine.for %j = 1 to $NY {
        %old = affine.load %ex[%i, %j] : !G
        %here = affine.load %hz[%i, %j] : !G
        %west = affine.load %hz[%i, %j - 1] : !G
        %difference = arith.subf %here, %west : $T
        %change = arith.mulf %half, %difference : $T
        %new = arith.subf %old, %change : $T
        affine.store %new, %ex[%i, %j] : !G
      }
    }
    affine.for %i = 0 to $NX_1 {
      affine.for %j = 0 to $NY_1 {
        %old = affine.load %hz[%i, %j] : !G
        %ex_east = affine.load %ex[%i, %j + 1] : !G
        %ex_here = affine.load %ex[%i, %j] : !G
        %ey_south = affine.load %ey[%i + 1, %j] : !G
        %ey_here = affine.load %ey[%i, %j] : !G
        %s1 = arith.subf %ex_east, %ex_here : $T
        %s2 = arith.addf %s1, %ey_south : $T
        %curl = arith.subf %s2, %ey_here : $T
        %change = arith.mulf %courant, %curl : $T
        %new = arith.subf %old, %change : $T
        affine.store %new, %hz[%i, %j] : !G
      }
    }
  }
  return
}
