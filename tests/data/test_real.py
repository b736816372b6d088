from __future__ import annotations

from pathlib import Path

import pytest

from irgauge.data.real import attach_text, real_functions, split_chunks
from irgauge.errors import IrgaugeError

ROWS = "path\tsource_repo\tlower_ok\n"
KERNEL = "func.func @f(%a: memref<4xf32>) {\n  return\n}\n"


def _corpus(folder: Path, text: str) -> Path:
    (folder / "MANIFEST.tsv").write_text(ROWS + "a.mlir\tsomebody/something\t1\n")
    (folder / "a.mlir").write_text(text)
    return folder


def test_files_are_cut_at_their_marks() -> None:
    assert split_chunks("a\n// -----\nb\n  // ----- more\nc") == ["a\n", "\nb\n", "\nc"]


def test_only_functions_of_the_kernel_dialects_count(tmp_path: Path) -> None:
    foreign = '"tosa.add"() : () -> ()'
    tensor = "func.func @t(%a: tensor<4xf32>) {\n  return\n}\n"
    wrong = "// expected-error\n" + KERNEL.replace("@f", "@w")
    chunks = [KERNEL, KERNEL.replace("@f", "@g") + foreign, tensor, wrong, "not MLIR {", KERNEL.replace("@f", "@h")]
    found = list(real_functions(_corpus(tmp_path, "\n// -----\n".join(chunks))))
    assert [(f.signature.name, f.chunk) for f in found] == [("f", 0), ("h", 5)]
    assert found[0].signature.argument_types == ("memref<4xf32>",)


def test_single_operations_of_llvm_are_let_through(tmp_path: Path) -> None:
    undefined = "  %u = llvm.mlir.undef : f32\n"
    affine = "".join(f"  affine.store %u, %a[{i % 4}] : memref<4xf32>\n" for i in range(12))
    mixed = KERNEL.replace("  return", f"{undefined}{affine}  return")
    low = KERNEL.replace("@f", "@low").replace("  return", f"{undefined}  return")
    found = list(real_functions(_corpus(tmp_path, f"{mixed}// -----\n{low}")))
    assert [f.signature.name for f in found] == ["f"]


def test_a_text_that_occurs_twice_counts_once(tmp_path: Path) -> None:
    assert len(list(real_functions(_corpus(tmp_path, f"{KERNEL}// -----\n\n{KERNEL}")))) == 2  # not the same bytes
    assert len(list(real_functions(_corpus(tmp_path, f"\n{KERNEL}// -----\n{KERNEL}")))) == 1


def test_text_comes_back_by_its_hash(tmp_path: Path) -> None:
    import pandas as pd

    corpus = _corpus(tmp_path, KERNEL)
    (function,) = real_functions(corpus)
    frame = pd.DataFrame({"id": [function.id, "0" * 16 + ":f"], "label": [1.0, 2.0]})
    found = attach_text(frame, corpus)
    assert list(found["mlir"]) == [KERNEL]
    assert list(found["function"]) == ["f"]


def test_a_folder_without_a_corpus_is_named(tmp_path: Path) -> None:
    with pytest.raises(IrgaugeError, match=r"no corpus there.*--corpus"):
        list(real_functions(tmp_path))
