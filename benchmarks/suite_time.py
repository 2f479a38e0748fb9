# SPDX-License-Identifier: Apache-2.0
"""How long the official suite takes: OrtCpu in two worker processes against the stock suite in one pytest process.

::

    python benchmarks/suite_time.py [rounds]

All are whole commands, start to end, taken in turns; the last column is what ours takes in parts of it, by the medians.
pytest writes a traceback for each of the stock backend's failures, so it is also timed without them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STOCK = """
import onnx.backend.test
import onnxruntime.backend

globals().update(onnx.backend.test.BackendTest(onnxruntime.backend, __name__).enable_report().test_cases)
"""


def seconds(*command: str, cwd: str | None = None) -> float:
    """Run a command and return the wall time that it took."""
    start = time.perf_counter_ns()
    subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, check=False)
    return (time.perf_counter_ns() - start) / 1e9


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    stock = ("pytest", "-q", "-p", "no:cacheprovider", "test_stock.py")
    ours = ("onnx_multi_backend", "conformance", "--preset", "OrtCpu", "--jobs", "2")
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_stock.py").write_text(STOCK, encoding="utf-8")
        for _ in range(rounds):
            taken.setdefault("stock, onnxruntime.backend, one process", []).append(seconds(*stock, cwd=folder))
            taken.setdefault("the same without tracebacks", []).append(seconds(*stock, "--tb=no", cwd=folder))
            taken.setdefault("OrtCpu, two jobs", []).append(seconds(*ours))
    mine = statistics.median(taken["OrtCpu, two jobs"])
    for name, times in taken.items():
        median = statistics.median(times)
        print(f"{name:42} {median:6.1f} s  ({min(times):.1f} to {max(times):.1f}, n={len(times)})  {mine / median:.2f}")


if __name__ == "__main__":
    main()
