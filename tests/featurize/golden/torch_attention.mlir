// 2 heads, 5 queries, 7 keys, 4 and 6 wide. Scores: 2 · 2 · 5 · 7 · 4 = 560; scale 70; softmax 5 × 70 = 350; values:
// 2 · 2 · 5 · 7 · 6 = 840. The scores and two rows of 10 are scratch inside the operation.
//= work.flops = 560 + 70 + 350 + 840
//= work.math_calls = 70
//= work.divs = 70
//= access.footprint_bytes = 4 * (40 + 56 + 84 + 60 + 70 + 10 + 10)
//= loops.count = 4 + 3 + 4 * 3 + 4
func.func @main(%q: !torch.vtensor<[2,5,4],f32>, %k: !torch.vtensor<[2,7,4],f32>, %v: !torch.vtensor<[2,7,6],f32>)
    -> !torch.vtensor<[2,5,6],f32> {
  %none = torch.constant.none
  %false = torch.constant.bool false
  %zero = torch.constant.float 0.000000e+00
  %r = torch.aten.scaled_dot_product_attention %q, %k, %v, %none, %zero, %false, %none, %false :
    !torch.vtensor<[2,5,4],f32>, !torch.vtensor<[2,7,4],f32>, !torch.vtensor<[2,7,6],f32>, !torch.none, !torch.float,
    !torch.bool, !torch.none, !torch.bool -> !torch.vtensor<[2,5,6],f32>
  return %r : !torch.vtensor<[2,5,6],f32>
}
