module {
  func.func @kernel(%arg0: memref<52xf64>, %arg1: memref<175xf64>, %arg2: memref<3x408xf64>, %arg3: memref<420xf64>, %arg4: memref<408xf64>) {
    %cst = arith.constant 0.000000e+00 : f64
    %alloc = memref.alloc() : memref<1x408xf64>
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %arg2[0, %arg5] : memref<3x408xf64>
      affine.store %0, %alloc[0, %arg5] : memref<1x408xf64>
    }
    %alloc_0 = memref.alloc() : memref<408xf64>
    affine.for %arg5 = 8 to 416 {
      %0 = affine.load %arg3[%arg5] : memref<420xf64>
      affine.store %0, %alloc_0[%arg5 - 8] : memref<408xf64>
    }
    %alloc_1 = memref.alloc() : memref<408xf64>
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %alloc[0, %arg5] : memref<1x408xf64>
      %1 = affine.load %alloc_0[%arg5] : memref<408xf64>
      %2 = arith.mulf %0, %1 : f64
      %3 = arith.addf %2, %cst : f64
      affine.store %3, %alloc_1[%arg5] : memref<408xf64>
    }
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %alloc_1[%arg5] : memref<408xf64>
      affine.store %0, %arg4[%arg5] : memref<408xf64>
    }
    memref.dealloc %alloc_1 : memref<408xf64>
    memref.dealloc %alloc_0 : memref<408xf64>
    memref.dealloc %alloc : memref<1x408xf64>
    %alloc_2 = memref.alloc() : memref<408xf64>
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %arg4[%arg5] : memref<408xf64>
      affine.store %0, %alloc_2[%arg5] : memref<408xf64>
    }
    %alloc_3 = memref.alloc() : memref<1x408xf64>
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %arg2[1, %arg5] : memref<3x408xf64>
      affine.store %0, %alloc_3[0, %arg5] : memref<1x408xf64>
    }
    %alloc_4 = memref.alloc() : memref<408xf64>
    affine.for %arg5 = 10 to 418 {
      %0 = affine.load %arg3[%arg5] : memref<420xf64>
      affine.store %0, %alloc_4[%arg5 - 10] : memref<408xf64>
    }
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %alloc_2[%arg5] : memref<408xf64>
      %1 = affine.load %alloc_3[0, %arg5] : memref<1x408xf64>
      %2 = affine.load %alloc_4[%arg5] : memref<408xf64>
      %3 = arith.mulf %1, %2 : f64
      %4 = arith.addf %0, %3 : f64
      affine.store %4, %alloc_2[%arg5] : memref<408xf64>
    }
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %alloc_2[%arg5] : memref<408xf64>
      affine.store %0, %arg4[%arg5] : memref<408xf64>
    }
    memref.dealloc %alloc_4 : memref<408xf64>
    memref.dealloc %alloc_3 : memref<1x408xf64>
    memref.dealloc %alloc_2 : memref<408xf64>
    %alloc_5 = memref.alloc() : memref<408xf64>
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %arg4[%arg5] : memref<408xf64>
      affine.store %0, %alloc_5[%arg5] : memref<408xf64>
    }
    %alloc_6 = memref.alloc() : memref<1x408xf64>
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %arg2[2, %arg5] : memref<3x408xf64>
      affine.store %0, %alloc_6[0, %arg5] : memref<1x408xf64>
    }
    %alloc_7 = memref.alloc() : memref<408xf64>
    affine.for %arg5 = 11 to 419 {
      %0 = affine.load %arg3[%arg5] : memref<420xf64>
      affine.store %0, %alloc_7[%arg5 - 11] : memref<408xf64>
    }
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %alloc_5[%arg5] : memref<408xf64>
      %1 = affine.load %alloc_6[0, %arg5] : memref<1x408xf64>
      %2 = affine.load %alloc_7[%arg5] : memref<408xf64>
      %3 = arith.mulf %1, %2 : f64
      %4 = arith.addf %0, %3 : f64
      affine.store %4, %alloc_5[%arg5] : memref<408xf64>
    }
    affine.for %arg5 = 0 to 408 {
      %0 = affine.load %alloc_5[%arg5] : memref<408xf64>
      affine.store %0, %arg4[%arg5] : memref<408xf64>
    }
    memref.dealloc %alloc_7 : memref<408xf64>
    memref.dealloc %alloc_6 : memref<1x408xf64>
    memref.dealloc %alloc_5 : memref<408xf64>
    return
  }
}
