// Tiles start at 0, 32, 64, 96: 4 runs. Inner loops run 32, 32, 32 and 4 times: 100 in all, 25 on average, 32 at most.
// The inner loop starts at the tile (tile_like). Executions: 1 + 4 + 2 × 100 = 205.
//= work.executions = 1 + 4 + 2 * (32 + 32 + 32 + 4)
//= work.loads = 100
//= loops.max_trip = 32
//= loops.tile_like = 1
//= access.footprint_bytes = 4 * (100 + 100)
func.func @kernel(%A: memref<100xf32>, %B: memref<100xf32>) {
  affine.for %t = 0 to 100 step 32 {
    affine.for %i = affine_map<(d0) -> (d0)>(%t) to min affine_map<(d0) -> (d0 + 32, 100)>(%t) {
      %a = affine.load %A[%i] : memref<100xf32>
      affine.store %a, %B[%i] : memref<100xf32>
    }
  }
  return
}
