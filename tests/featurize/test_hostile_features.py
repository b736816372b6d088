"""Programs that are read but make no sense: features, or one of our errors, and nothing else. Found by `fuzz.py`."""

from __future__ import annotations

import math

import pytest

from irgauge.errors import IrgaugeError
from irgauge.featurize import features_of

HEAD = "func.func @f(%m: memref<8x8xf32>, %i: index, %x: f32) {\n"
TEXTS = {
    "sizes beyond 64 bits": "func.func @f(%t: tensor<" + "9223372036854775807x" * 20 + "f32>) {\n  return\n}\n",
    "negative size in Torch": "func.func @f(%t: !torch.vtensor<[-1,9223372036854775807,4],f32>) {\n  return\n}\n",
    "step of 400 digits": HEAD
    + "affine.for %k = 0 to 10 step "
    + "9" * 400
    + " {\n  memref.store %x, %m[%k, %k] : memref<8x8xf32>\n}\nreturn\n}\n",
    "bounds of 400 digits": HEAD + "affine.for %k = -" + "9" * 400 + " to " + "9" * 400 + " {\na.b %k\n}\nreturn\n}\n",
    "map with a comma too many": HEAD
    + """linalg.generic {indexing_maps = [affine_map<(d0,) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]} ins(%m : memref<8x8xf32>) outs(%m : memref<8x8xf32>) {
^bb0(%a: f32, %b: f32):
  linalg.yield %a : f32
}
return
}
""",
    "map with many commas": HEAD
    + """linalg.generic {indexing_maps = [affine_map<(d0,,,,,, d1, d2) -> (d2, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]} ins(%m : memref<8x8xf32>) outs(%m : memref<8x8xf32>) {
^bb0(%a: f32, %b: f32):
  linalg.yield %a : f32
}
return
}
""",
    "map with more dimensions than iterators": HEAD
    + """linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel"]}
  outs(%m : memref<8x8xf32>) {
^bb0(%a: f32):
  linalg.yield %a : f32
}
return
}
""",
    "subview of another rank": HEAD
    + """%s = memref.subview %m[0, 0] [4, 4] [11] : memref<8x8xf32> to memref<4x4xf32>
affine.for %k = 0 to 4 {
  %v = memref.load %s[%k, %k] : memref<4x4xf32>
  memref.store %v, %s[%k, %k] : memref<4x4xf32>
}
return
}
""",
    "strides of another rank": HEAD
    + "%s = memref.cast %m : memref<8x8xf32> to memref<8x8xf32, strided<[1]>>\n"
    + "%v = memref.load %s[%i, %i] : memref<8x8xf32, strided<[1]>>\nreturn\n}\n",
    "attribute without a name": ""
    + 'module attributes {"" = 1, a = 2} {\nfunc.func @f() attributes {"" 3} {\n  return\n}\n}\n',
    "too many subscripts": HEAD + "%v = memref.load %m[%i, %i, %i] : memref<8x8xf32>\nreturn\n}\n",
    "too few subscripts": HEAD + "%v = memref.load %m[%i] : memref<8x8xf32>\nreturn\n}\n",
    "no operands": HEAD
    + '"memref.load"() : () -> ()\n"scf.for"() : () -> ()\n"linalg.matmul"() : () -> ()\nreturn\n}\n',
    "executions beyond all floats": HEAD + "affine.for %k = 0 to 1000000000 {\n" * 60 + "}\n" * 60 + "return\n}\n",
    "loop without bounds": HEAD + "affine.for {\n}\nscf.for %k {\n}\nreturn\n}\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_features_or_our_error(name: str) -> None:
    try:
        found = features_of(TEXTS[name])
    except IrgaugeError:
        return
    assert all(math.isfinite(value) for features in found.values() for value in features.values())
