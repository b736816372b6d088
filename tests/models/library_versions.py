"""The model file under the lowest supported NumPy and joblib and under the newest: opened, written, predicted alike.

    python tests/models/library_versions.py     (`make versions`; makes two small environments, under a minute)

Each environment reads the bundled model and a copy that the other one wrote, and predicts the PolyBench kernels from
them. Whole numbers must be equal; the others may differ in the last places, because NumPy's exp and log do.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENTS = {"lowest": ("numpy==1.26.0", "joblib==1.4.0"), "newest": ("numpy", "joblib")}
"""As pyproject.toml states them."""
TOLERANCE = 1e-12

WRITE = """
import sys
from irgauge.models.artifact import read_artifact, write_artifact
from irgauge.models.predictor import bundled_paths
write_artifact(read_artifact(bundled_paths()[0]), sys.argv[1])
"""
PREDICT = """
import json, sys
from pathlib import Path
import joblib, numpy
import irgauge
from irgauge.data.families.polybench import FAMILIES
print("numpy", numpy.__version__, "joblib", joblib.__version__, file=sys.stderr)
texts = [next(family.sources()).mlir for family in FAMILIES]
found = {}
for path in sys.argv[1:]:
    model = irgauge.load(path or None)
    found[path and Path(path).name] = [
        [e.target, e.value, e.low, e.high] for text in texts for p in model.predict(text) for e in p
    ]
print(json.dumps(found))
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="irgauge-versions-") as name:
        folder = Path(name)
        (folder / "source").mkdir()
        (folder / "source" / "irgauge").symlink_to(ROOT)
        pythons = {}
        for which, packages in ENVIRONMENTS.items():
            venv.create(folder / which, with_pip=True)
            pythons[which] = folder / which / "bin" / "python"
            install = [pythons[which], "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
            subprocess.run(install, check=True)

        def run(which: str, code: str, *arguments: str) -> str:
            command = [pythons[which], "-W", "error", "-c", code, *arguments]
            environment = {"PYTHONPATH": str(folder / "source")}
            return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

        written = {which: str(folder / f"{which}.joblib") for which in pythons}
        for which, path in written.items():
            run(which, WRITE, path)
        results = {which: json.loads(run(which, PREDICT, "", *written.values())) for which in pythons}
    expected = results["newest"][""]
    worst = 0.0
    for which, files in results.items():
        for file, rows in files.items():
            if len(rows) != len(expected) or not rows:
                raise SystemExit(f"{which} {file}: {len(rows)} predictions, expected {len(expected)}")
            for (target, *got), (_, *should) in zip(rows, expected, strict=True):
                for a, b in zip(got, should, strict=True):
                    if not math.isclose(a, b, rel_tol=TOLERANCE) or (float(b).is_integer() and a != b):
                        raise SystemExit(f"{which} {file}: {target} is {a!r}, with the newest NumPy {b!r}")
                    worst = max(worst, abs(a - b) / max(abs(b), 1e-300))
    print(f"{len(expected)} predictions from 3 files under 2 versions agree; largest relative difference {worst:.0e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
