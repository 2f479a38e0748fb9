# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of what another node makes empty, which end OpenVINO's process: only the types tell, once they are inferred."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

import onnx_multi_backend as omb

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
EMPTIED = {
    "Slice": "<int64[1] b = {1}, int64[1] e = {1}, int64[1] d = {1}> { z = Slice (x, b, e, d)",
    "Split": "<int64[2] p = {0, 2}> { z, o = Split <axis = 1> (x, p)",
}
CODE = """
import sys
import onnx_multi_backend as omb
try:
    omb.OpenvinoBackend.prepare(sys.argv[1])
except omb.UnsupportedModelError as error:
    print("refused", error)
"""


@pytest.mark.parametrize("emptied", EMPTIED)
@pytest.mark.parametrize("layer", GATES)
def test_they_are_refused(openvino: type[omb.Preset], layer: str, emptied: str, tmp_path: Path) -> None:
    assert openvino.availability().usable
    rows = GATES[layer] * 2
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[3, 2, 4] x, float[1, {rows}, 4] w, float[1, {rows}, 2] r)
        => (float[s, d, n, h] y) {EMPTIED[emptied]} y = {layer} <hidden_size = 2> (z, w, r) }}"""
    )
    onnx.save(made, tmp_path / "model.onnx")
    command = [sys.executable, "-c", CODE, str(tmp_path / "model.onnx")]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0
    assert "a layer without steps, batch or features" in told.stdout
