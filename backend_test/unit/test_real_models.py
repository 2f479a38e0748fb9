# SPDX-License-Identifier: Apache-2.0
"""``python -m backend_test.real_models`` on a model of one node: its sessions of nox are not run with these tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.real_models import plain
from backend_test.unit import models
from onnx_multi_backend.host.applies import applies


def _tried(made: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "backend_test.real_models", "--preset=OrtCpu", f"--made={made}", "--only=tiny"]
    return subprocess.run(
        [*command, "--no-timing", f"--out={out}", f"--table={out / 'table.md'}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )


def test_a_model_is_tried_once_and_its_cell_written(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    made, out = tmp_path / "made", tmp_path / "out"
    (made / "tiny").mkdir(parents=True)
    onnx.save(models.relu((2, 3)), made / "tiny" / "model.onnx")
    np.savez(made / "tiny" / "inputs.npz", x=np.zeros((2, 3), np.float32))
    first = _tried(made, out).stdout
    assert "tiny" in first and "0 cells are worse" in first
    (file,) = (out / "OrtCpu").iterdir()
    entry = json.loads(file.read_text())
    assert (entry["verdict"], entry["machine"]["packages"]["onnx"]) == ("ok", onnx.__version__)
    assert entry["machine"]["cpu"] in (out / "table.md").read_text()
    assert "tiny" not in _tried(made, out).stdout  # it was tried with these versions


@pytest.mark.skipif(applies({"onnxruntime": "<1.31"}), reason="its option for that ends the process")
def test_the_reference_adds_up_products_of_bytes_exactly(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    """On a processor without VNNI sums of two products are limited to 16 bits, without optimizations too."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[4, 64] x) => (float[4, 8] y) {
        q, scale, zero = DynamicQuantizeLinear (x) i = MatMulInteger (q, w, zero) y = Cast <to = 1> (i) }"""
    )
    weights = np.full((64, 8), 127, np.int8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "model.onnx")
    x = np.ones((4, 64), np.float32)  # quantized to 255, with a zero point of 0
    assert np.array_equal(plain.reference(tmp_path / "model.onnx")({"x": x})[0], np.full((4, 8), 64 * 255 * 127))
