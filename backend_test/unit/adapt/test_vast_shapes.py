# SPDX-License-Identifier: Apache-2.0
"""A declared shape of billions of elements costs no memory before the model runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc tells the peak of memory")

ROOT = Path(__file__).parents[3]

#: Prints how many MiB of memory preparing a model took at most.
PREPARE = """
import sys
import onnx_multi_backend as omb
def peak():
    return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) >> 10
preset = getattr(omb, sys.argv[2] + "Backend")
preset.prepare(sys.argv[3])  # loads the engine
before = peak()
preset.prepare(sys.argv[1])
print(peak() - before)
"""

#: The provider is asked whether it takes the reduction, since it computes this form wrongly. In the model it does not take it.
VAST = """<ir_version: 10, opset_import: ["": 21]> g (float[3, 3] x, int16[3] i, int64[2147483648] v)
    => (float[3, 3] y, int16[3] j, float[1, 3] s) {
    y = Round (x) j = BitwiseNot (i) s = ReduceLogSumExp <noop_with_empty_axes = 1> (x, v) }"""


def test_a_vast_shape_takes_no_memory(openvino_ep: type[omb.Preset], tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(VAST), tmp_path / "vast.onnx")
    onnx.save(onnx.parser.parse_model(VAST.replace("2147483648", "1")), tmp_path / "small.onnx")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PREPARE, "vast.onnx", openvino_ep.name, "small.onnx"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 512
