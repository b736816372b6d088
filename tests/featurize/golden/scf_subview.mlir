// The view is rows 2, 3, 4, 5 and every second column from 1 on: its element [i, j] is %A[i + 2, 2 j + 1].
// 4 × 3 iterations; in %j the load moves 2 elements = 8 bytes (small), the store 1 element (unit).
// 12 elements loaded, 12 stored, all distinct: 96 bytes. Executions: subview 1, loops 1 + 4, body 2 × 12: 30.
//= work.executions = 1 + 1 + 4 + 2 * 12
//= work.loads = 4 * 3
//= work.bytes = 4 * (12 + 12)
//= access.footprint_bytes = 4 * (12 + 12)
//= access.small = 1
//= access.unit = 1
func.func @kernel(%A: memref<16x16xf32>, %B: memref<4x3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %v = memref.subview %A[2, 1] [4, 3] [1, 2] : memref<16x16xf32> to memref<4x3xf32, strided<[16, 2], offset: 33>>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %a = memref.load %v[%i, %j] : memref<4x3xf32, strided<[16, 2], offset: 33>>
      memref.store %a, %B[%i, %j] : memref<4x3xf32>
    }
  }
  return
}
