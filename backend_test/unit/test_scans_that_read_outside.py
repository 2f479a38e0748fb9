# SPDX-License-Identifier: Apache-2.0
"""Scans whose bodies read the outer graph, over which the OpenVINO provider of ONNX Runtime 1.24 may end the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.test_loops_of_exporters import CODE
from onnx_multi_backend.host.applies import applies


def scan(body: str, made: str, before: str = "") -> ModelProto:
    """A Scan over the rows of ``x``."""
    graph = f"{before} y = Scan <num_scan_inputs = 1, body = b (float row) => ({made}) {{ {body} }}> (x)"
    head = '<ir_version: 10, opset_import: ["": 21]> g (float[2] x, float c, float[2] v) => (float[n] y)'
    return onnx.parser.parse_model(f"{head} <float[1, 1] k = {{3}}, int64 last = {{-1}}> {{ {graph} }}")


FORMS = {
    "an input": (scan("z = Identity (c)", "float z"), [5, 5]),
    "what is not needed": (
        scan("s = CumSum (v, last) z = Identity (d)", "float z", "d = Det (k)"),
        [3, 3],
    ),
    "what is scanned": (scan("m = ReduceMax <keepdims = 0> (x) z = Add (row, m)", "float z"), [3, 4]),
    "what is scanned, for nothing": (scan("s = Neg (x) z = Det (k)", "float z"), [3, 3]),
    "what is scanned, for nothing, in a computed one": (
        onnx.parser.parse_model(
            """<ir_version: 10, opset_import: ["": 11]> g (float[2] x, float c, float[2] v) => (float[n] y, float[n] s)
            <float[1, 1] k = {3}, string[1] words = {"a"}, bool yes = {1}> {
            f = Floor (x)
            y = Scan <num_scan_inputs = 1, body = b (float row) => (float z) { a = Add (x, f) z = Det (k) }> (f)
            s = If (yes) <then_branch = t () => (float[n] o) { o = Identity (v) }, else_branch = e () => (float[n] p) {
                w = StringNormalizer <case_change_action = "UPPER"> (words) p = Identity (y) }> }"""
        ),
        [3, 3],
    ),
    "an input beside the row": (scan("z = Add (row, c)", "float z"), [6, 7]),
}
DEADLY = "what is not needed"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_it_runs(openvino_ep: type[omb.Preset], form: str, tmp_path: Path) -> None:
    made, right = FORMS[form]
    prepared = openvino_ep.prepare(made, fallback="full")
    for _ in range(2):
        found = prepared.run({"x": np.float32([1, 2]), "c": np.float32(5), "v": np.float32([1, 1])})[0]
        np.testing.assert_array_equal(found, right)
    if form == DEADLY and applies({"onnxruntime": "<1.31"}):
        onnx.save(made, tmp_path / "model.onnx")
        done = subprocess.run([sys.executable, "-c", CODE, tmp_path / "model.onnx"], capture_output=True, check=False)
        assert done.returncode < 0, "the provider has been mended: the entry can go"
