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
from onnx_multi_backend.engines.vast_shapes import has_vast

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
try:
    preset.prepare(sys.argv[1])
except omb.UnsupportedModelError as error:
    print(error)
print(peak() - before)
"""

#: The provider is asked whether it takes the reduction, since it computes this form wrongly. In the model it does not take it.
VAST = """<ir_version: 10, opset_import: ["": 21]> g (float[3, 3] x, int16[3] i, int64[2147483648] v)
    => (float[3, 3] y, int16[3] j, float[1, 3] s) {
    y = Round (x) j = BitwiseNot (i) s = ReduceLogSumExp <noop_with_empty_axes = 1> (x, v) }"""


#: OpenVINO refuses the bound, and is asked about what the operator is written with.
REFUSED = """<ir_version: 7, opset_import: ["": 13]> g (float[3, 4, 5] x, float[4294967296] high) => (float[3, 4, 5] y) { y = Clip (x, "", high) }"""


def _told(folder: Path, model: str, small: str, preset: type[omb.Preset]) -> list[str]:
    """What preparing a model says, and the memory that it took."""
    onnx.save(onnx.parser.parse_model(model), folder / "vast.onnx")
    onnx.save(onnx.parser.parse_model(small), folder / "small.onnx")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PREPARE, "vast.onnx", preset.name, "small.onnx"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_vast_shape_takes_no_memory(openvino_ep: type[omb.Preset], tmp_path: Path) -> None:
    (memory,) = _told(tmp_path, VAST, VAST.replace("2147483648", "1"), openvino_ep)
    assert int(memory) < 512


def test_a_vast_shape_is_refused_without_its_memory(openvino: type[omb.Preset], tmp_path: Path) -> None:
    words, memory = _told(tmp_path, REFUSED, REFUSED.replace("[4294967296]", ""), openvino)
    assert "Clip" in words
    assert int(memory) < 512


UNSQUEEZE = """<ir_version: 8, opset_import: ["": 18]> g (float[3, 4, 5] x, int64[4294967296] axes) => (float[N] y) { y = Unsqueeze (x, axes) }"""
QUANTIZE = """<ir_version: 10, opset_import: ["": 21]> g (float[3, 4, 5] x, float[4294967296] s) => (int8[a, b, c] y) { y = QuantizeLinear <output_dtype = 3> (x, s) }"""


@pytest.mark.parametrize("model", [UNSQUEEZE, QUANTIZE])
def test_axes_and_scales_are_not_written_down(openvino: type[omb.Preset], tmp_path: Path, model: str) -> None:
    words, memory = _told(
        tmp_path, model, model.replace("4294967296", "1").replace("float[N]", "float[N, a, b, c]"), openvino
    )
    assert words.split("lacks ")[-1].startswith(("Unsqueeze", "QuantizeLinear"))
    assert int(memory) < 512


def test_a_vast_axis_is_not_cast(openvino_ep: type[omb.Preset], tmp_path: Path) -> None:
    model = """<ir_version: 7, opset_import: ["": 14]> g (double[5] x, int32[2147483648] axis) => (double[5] y) { y = CumSum (x, axis) }"""
    words, memory = _told(tmp_path, model, VAST.replace("2147483648", "1"), openvino_ep)
    assert "CumSum" in words
    assert int(memory) < 512


@pytest.mark.parametrize(
    ("sizes", "vast"),
    [
        ("4294967296", True),
        ("n, 4294967296", True),
        ("65536, n, 65536", True),
        ("0, 4294967296", False),
        ("n, 4", False),
    ],
)
def test_one_row_of_an_open_number_may_be_vast(sizes: str, vast: bool) -> None:
    """OpenVINO reserves the memory of a row that a Gather makes of them."""
    text = f"""<ir_version: 10, opset_import: ["": 21]> g (float[{sizes}] x) => (float[a] y) {{ y = Abs (x) }}"""
    assert has_vast(onnx.parser.parse_model(text)) is vast
