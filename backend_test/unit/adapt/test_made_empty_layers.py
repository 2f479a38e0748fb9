# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of what constants cut to nothing, which end the process of both engines: nothing is computed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import onnx_multi_backend as omb

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: By the operator, for the axis of the steps and that of the batch.
EMPTIED = {
    "Slice": "<int64[1] b = {{1}}, int64[1] e = {{1}}, int64[1] d = {{{axis}}}> {{ z = Slice (x, b, e, d)",
    "Slice from the end": "<int64[1] b = {{-1}}, int64[1] e = {{-1}}, int64[1] d = {{{axis}}}> {{ z = Slice (x, b, e, d)",
    "Split": "<int64[2] p = {{0, {size}}}> {{ z, o = Split <axis = {axis}> (x, p)",
    "Tile": "<int64[3] t = {{{repeats}}}> {{ z = Tile (x, t)",
}
SIZES = (3, 2, 4)
CODE = """
import sys
import numpy as np
import onnx_multi_backend as omb
presets = [name for name in ("OrtCpu", "Openvino", "OrtOpenvino") if omb.presets()[name].availability().usable]
for path in sys.argv[1:]:
    for name in presets:
        prepared = omb.presets()[name].prepare(path, fallback="full")
        y, h = prepared.run([np.ones(i.shape, i.dtype) for i in prepared.get_inputs()])
        print(name, y.shape, h.shape, h.any(), flush=True)
"""


def _model(layer: str, emptied: str, axis: int) -> onnx.ModelProto:
    rows = GATES[layer] * 2
    how: dict[str, Any] = {"axis": axis, "size": SIZES[axis], "repeats": "0, 1, 1" if axis == 0 else "1, 0, 1"}
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[3, 2, 4] x, float[1, {rows}, 4] w, float[1, {rows}, 2] r)
        => (float[s, d, n, h] y, float[d, n, h] yh) {EMPTIED[emptied].format(**how)} y, yh = {layer} <hidden_size = 2> (z, w, r) }}"""
    )


@pytest.mark.parametrize("layer", GATES)
def test_layers_of_nothing(layer: str, tmp_path: Path) -> None:
    """In a process of their own; a line that is missing tells which it was that ended it."""
    presets = [n for n in ("OrtCpu", "Openvino", "OrtOpenvino") if omb.presets()[n].availability().usable]
    paths, expected = [], []
    for axis, shapes in enumerate(("(0, 1, 2, 2) (1, 2, 2)", "(3, 1, 0, 2) (1, 0, 2)")):
        for emptied in EMPTIED:
            paths.append(str(tmp_path / f"{emptied}_{axis}.onnx"))
            onnx.save(_model(layer, emptied, axis), paths[-1])
            expected += [f"{preset} {shapes} False" for preset in presets]
    command = [sys.executable, "-W", "ignore", "-c", CODE, *paths]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (told.stdout.splitlines(), told.returncode) == (expected, 0), told.stderr


def test_a_slice_of_something_is_none(ort_cpu: type[omb.Preset]) -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[3, 2, 4] x) => (float[a, b, c] y)
        <int64[1] b = {2}, int64[1] e = {0}, int64[1] d = {0}, int64[1] s = {-1}> { y = Slice (x, b, e, d, s) }"""
    )
    x = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    np.testing.assert_array_equal(ort_cpu.prepare(made).run(x)[0], x[2:0:-1])
