# SPDX-License-Identifier: Apache-2.0
"""How long the official suite takes: OrtCpu in two worker processes against the stock suite in one pytest process.

::

    python benchmarks/suite_time.py [rounds]

Both are whole commands, start to end, taken in turns; the ratio is of the medians.
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
    ours, stock = [], []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_stock.py").write_text(STOCK, encoding="utf-8")
        for _ in range(rounds):
            stock.append(seconds("pytest", "-q", "-p", "no:cacheprovider", "test_stock.py", cwd=folder))
            ours.append(seconds("onnx_multi_backend", "conformance", "--preset", "OrtCpu", "--jobs", "2"))
    for name, taken in (("stock, onnxruntime.backend, one process", stock), ("OrtCpu, two jobs", ours)):
        print(f"{name:42} {statistics.median(taken):6.1f} s  ({min(taken):.1f} to {max(taken):.1f}, n={len(taken)})")
    print(f"{'ratio of the medians':42} {statistics.median(ours) / statistics.median(stock):6.2f}")


if __name__ == "__main__":
    main()
