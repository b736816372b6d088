// The transpose is a view. 4 × 6 by 6 × 5 is 240 flops; the bias is the first value of each of the 20 sums: 20 loads and
// stores, no flop. Then 20 results are added to 5 others, broadcast, and compared with zero.
// Distinct: input, weight, bias, product, %c, sum, result.
//= work.flops = 2 * 4 * 5 * 6 + 20 + 20
//= work.loads = 20 + 3 * 120 + 2 * 20 + 20
//= work.stores = 20 + 120 + 20 + 20
//= access.footprint_bytes = 4 * (24 + 30 + 5 + 20 + 5 + 20 + 20)
//= loops.count = 2 + 3 + 2 + 2
func.func @main(%x: !torch.vtensor<[4,6],f32>, %w: !torch.vtensor<[5,6],f32>, %b: !torch.vtensor<[5],f32>,
                %c: !torch.vtensor<[5],f32>) -> !torch.vtensor<[4,5],f32> {
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %t = torch.aten.transpose.int %w, %int0, %int1 : !torch.vtensor<[5,6],f32>, !torch.int, !torch.int
    -> !torch.vtensor<[6,5],f32>
  %m = torch.aten.addmm %b, %x, %t, %int1, %int1 : !torch.vtensor<[5],f32>, !torch.vtensor<[4,6],f32>,
    !torch.vtensor<[6,5],f32>, !torch.int, !torch.int -> !torch.vtensor<[4,5],f32>
  %s = torch.aten.add.Tensor %m, %c, %int1 : !torch.vtensor<[4,5],f32>, !torch.vtensor<[5],f32>, !torch.int
    -> !torch.vtensor<[4,5],f32>
  %r = torch.aten.relu %s : !torch.vtensor<[4,5],f32> -> !torch.vtensor<[4,5],f32>
  return %r : !torch.vtensor<[4,5],f32>
}
