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


def options_of(text: str, function: str) -> dict[str, float]:
    found = {k: v for k, v in features_of(text)[function].items() if k.startswith("options.")}
    del found["options.count"]
    return found


LAUNCH = {
    "options.noalias": 1,
    "options.nvvm.kernel": 1,
    "options.nvvm.maxntid/0": 128,
    "options.nvvm.maxntid/1": 2,
    "options.amdgpu_waves_per_eu": 2,
    "options.target_cpu/znver4": 1,
    "options.no_inline": 1,
}


def test_lists_of_numbers_and_quoted_numbers_in_both_syntaxes() -> None:
    custom = """llvm.func @k(%a: !llvm.ptr {llvm.noalias}) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 2>,
      "amdgpu-waves-per-eu" = "2", target_cpu = "znver4", no_inline} { llvm.return }"""
    generic = """"llvm.func"() <{CConv = #llvm.cconv<ccc>, arg_attrs = [{llvm.noalias}],
        function_type = !llvm.func<void (ptr)>, linkage = #llvm.linkage<external>, sym_name = "k", no_inline,
        target_cpu = "znver4", visibility_ = 0 : i64}> ({
    ^bb0(%a: !llvm.ptr):
      "llvm.return"() : () -> ()
    }) {"amdgpu-waves-per-eu" = "2", nvvm.kernel, nvvm.maxntid = array<i32: 128, 2>} : () -> ()"""
    assert options_of(custom, "k") == LAUNCH
    assert options_of(generic, "k") == LAUNCH


def test_triton_modules_and_arguments_in_both_syntaxes() -> None:
    module = '"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"'
    expected = {
        "options.noalias": 0,
        "options.ttg.num_warps": 4,
        "options.ttg.num_ctas": 1,
        "options.ttg.target/cuda_90": 1,
        "options.noinline": 0,
        "options.args/tt.divisibility": 2,
        "options.args/tt.divisibility/16": 2,
        "options.args/tt.pointer_range": 1,
        "options.args/tt.pointer_range/32": 1,
    }
    attributes = ["tt.divisibility = 16 : i32", "tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32"]
    custom = f"""module attributes {{{module}}} {{
  tt.func public @k(%a: !tt.ptr<f32> {{{attributes[0]}}}, %b: !tt.ptr<f32> {{{attributes[1]}}}, %n: i32)
      attributes {{noinline = false}} {{ tt.return }}
}}"""
    generic = f""""builtin.module"() ({{
  "tt.func"() <{{arg_attrs = [{{{attributes[0]}}}, {{{attributes[1]}}}, {{}}],
      function_type = (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (), sym_name = "k", sym_visibility = "public"}}> ({{
  ^bb0(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %n: i32):
    "tt.return"() : () -> ()
  }}) {{noinline = false}} : () -> ()
}}) {{{module}}} : () -> ()"""
    assert options_of(custom, "k") == expected
    assert options_of(generic, "k") == expected


def test_targets_partitions_and_lists() -> None:
    text = """module attributes {mhlo.num_partitions = 2 : i32, hal.device.targets = [#hal.device.target<"local",
    [#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {cpu = "znver4", vector = 16 : i64}>]>]} {
  func.func @f(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32> {jax.result_info = "x"})
      attributes {tiles = [8, 16], unroll = dense<[2, 4]> : tensor<2xi64>, fast = true} { return %a : tensor<4xf32> }
}"""
    assert options_of(text, "f") == {
        "options.noalias": 0,
        "options.mhlo.num_partitions": 2,
        "options.hal.device.targets/local": 1,
        "options.hal.device.targets/llvm_cpu": 1,
        "options.hal.device.targets/embedded_elf_x86_64": 1,
        "options.hal.device.targets/znver4": 1,
        "options.tiles/0": 8,
        "options.tiles/1": 16,
        "options.unroll/0": 2,
        "options.unroll/1": 4,
        "options.fast": 1,
        "options.args/tf.aliasing_output": 1,
        "options.args/tf.aliasing_output/0": 1,
    }


def test_aliases_in_a_list_count_as_what_they_stand_for() -> None:
    text = "module attributes {targets = [@T@]} { func.func @f(%a: memref<4xf32>) { return } }"
    own = features_of(text.replace("@T@", '#hal.device.target<"llvm-cpu">'))["f"]
    aliased = features_of('#t = #hal.device.target<"llvm-cpu">\n' + text.replace("@T@", "#t"))["f"]
    assert aliased == own
    assert own["options.targets/llvm_cpu"] == 1
