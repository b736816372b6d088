// 8 filters of 3 × 3 over 3 channels of 9 × 9, stride 2, padding 1: 5 × 5 outputs; places in the padding count.
// Max pooling of 2 × 2 windows, stride 2, leaves 2 × 2: 4 comparisons each. Every list is made of constants.
//= work.flops = 2 * 5 * 5 * 8 * 3 * 3 * 3 + 8 * 2 * 2 * 4
//= work.loads = 3 * 200 * 27 + 2 * 128
//= work.stores = 200 * 27 + 128
//= loops.volume_max = 200 * 27
//= tensors.bytes_out = 4 * 8 * 2 * 2
func.func @main(%x: !torch.vtensor<[1,3,9,9],f32>, %w: !torch.vtensor<[8,3,3,3],f32>)
    -> !torch.vtensor<[1,8,2,2],f32> {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int2 = torch.constant.int 2
  %l2 = torch.prim.ListConstruct %int2, %int2 : (!torch.int, !torch.int) -> !torch.list<int>
  %l1 = torch.prim.ListConstruct %int1, %int1 : (!torch.int, !torch.int) -> !torch.list<int>
  %l0 = torch.prim.ListConstruct %int0, %int0 : (!torch.int, !torch.int) -> !torch.list<int>
  %c = torch.aten.convolution %x, %w, %none, %l2, %l1, %l1, %false, %l0, %int1 : !torch.vtensor<[1,3,9,9],f32>,
    !torch.vtensor<[8,3,3,3],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool,
    !torch.list<int>, !torch.int -> !torch.vtensor<[1,8,5,5],f32>
  %r = torch.aten.max_pool2d %c, %l2, %l2, %l0, %l1, %false : !torch.vtensor<[1,8,5,5],f32>, !torch.list<int>,
    !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool -> !torch.vtensor<[1,8,2,2],f32>
  return %r : !torch.vtensor<[1,8,2,2],f32>
}
