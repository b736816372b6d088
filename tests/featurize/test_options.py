from __future__ import annotations

from irgauge.featurize import features_of

CUSTOM = """module attributes {"ttg.num-warps" = 4 : i32, target = "cuda:90"} {
  func.func @f(%a: memref<4xf32> {llvm.noalias}, %b: memref<4xf32>)
      attributes {tile = 8 : index, fast, level = #arith.fastmath<fast>} { return }
}"""
GENERIC = """"builtin.module"() ({
  "func.func"() <{arg_attrs = [{llvm.noalias}, {}],
                  function_type = (memref<4xf32>, memref<4xf32>) -> (), sym_name = "f"}> ({
  ^bb0(%a: memref<4xf32>, %b: memref<4xf32>):
    "func.return"() : () -> ()
  }) {fast, level = #arith.fastmath<fast>, tile = 8 : index} : () -> ()
}) {target = "cuda:90", "ttg.num-warps" = 4 : i32} : () -> ()"""


def test_numbers_flags_and_enums_in_both_syntaxes() -> None:
    for text in (CUSTOM, GENERIC):
        found = {k: v for k, v in features_of(text)["f"].items() if k.startswith("options.")}
        assert found == {
            "options.count": 5,
            "options.noalias": 1,
            "options.ttg.num_warps": 4,
            "options.target/cuda_90": 1,
            "options.tile": 8,
            "options.fast": 1,
            "options.level/fast": 1,
        }
