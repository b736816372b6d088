"""The example chooses, compiles and times; what it prints holds together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_the_pass_pipeline_runs(tmp_path: Path) -> None:
    small = tmp_path / "small.mlir"
    small.write_text(
        (EXAMPLES / "matmul.mlir").read_text().replace("96", "16").replace("112", "32").replace("128", "24")
    )
    command = [sys.executable, str(EXAMPLES / "pass_pipeline.py"), str(small), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("small.mlir: 6 combinations, applied through ")
    rows = {line.split()[0]: line for line in lines[3:6]}
    assert set(rows) == {"default", "chosen", "best"}
    assert rows["best"].endswith(" 1 of 6")
    assert all(float(line.split()[3].replace(",", "")) > 0 for line in rows.values())
    assert lines[6].startswith("speedup over the default: chosen ")
