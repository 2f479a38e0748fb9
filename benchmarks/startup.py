# SPDX-License-Identifier: Apache-2.0
"""From the start of Python to the first result, beside the bare engine: processor time of processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import models
from benchmarks.timing import row

_OURS = """
import sys
import numpy as np
import onnx_multi_backend as omb
omb.prepare(sys.argv[1], preset=sys.argv[2], cache_dir=False).run(np.zeros((1, 3, 48, 320), np.float32))
"""

_BARE = {
    "OrtCpu": """
import sys
import numpy as np
import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
session.run(None, {"x": np.zeros((1, 3, 48, 320), np.float32)})
""",
    "Openvino": """
import sys
import numpy as np
import openvino
core = openvino.Core()
properties = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
core.compile_model(core.read_model(sys.argv[1]), "CPU", properties)(np.zeros((1, 3, 48, 320), np.float32))
""",
}

#: Prints what a child of this process took.
_TIMED = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-c", *sys.argv[1:]], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""


def _seconds(code: str, *arguments: str) -> float:
    command = [sys.executable, "-c", _TIMED, code, *arguments]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=kept).stdout)


def startup(folder: Path) -> list[dict[str, Any]]:
    """A first run, of modules that Python compiled before, as an installer does: whatever the environment forbids."""
    path, rows = str(models.recognition()), []
    for preset, bare in _BARE.items():
        codes = {"import, prepare, run": _OURS, "the bare engine": bare}
        figures: dict[str, list[float]] = {name: [] for name in codes}
        for turn in range(16):
            for name, code in codes.items():
                seconds = _seconds(code, path, preset)
                if turn:
                    figures[name].append(seconds)
        rows.append(
            row(f"a first run, {preset}, PP-OCRv4 rec", "import, prepare, run", "the bare engine", figures, 1.23)
        )
    return rows
