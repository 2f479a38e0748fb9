# SPDX-License-Identifier: Apache-2.0
"""States of a Scan that are computed of what a step is given, and results that are computed of such a state."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import onnx_multi_backend as omb

#: What the body makes of a state and a row.
_STATES = {
    "product": "t = Mul (row, s)",
    "sum": "t = Add (s, row)",
    "the row alone": "t = Neg (row)",
    "another shape": "n = Neg (row) t = Reshape (n, whole)",
    "expanded": "n = Mul (row, s) t = Expand (n, whole)",
    "nothing added": "t = Add (row, zero)",
    "a choice": "c = Less (s, row) t = Where (c, row, s)",
    "no axes": "none = Constant <value_ints: ints = []> () t = ReduceSum <noop_with_empty_axes = 1> (row, none)",
    "the same axes": 't = Einsum <equation = "i->i"> (row)',
    "a matrix": "t = MatMul (row, matrix)",
    "in a branch": """c = ReduceMax <keepdims = 0> (s) z = Less (c, one) t = If (z)
        <then_branch = a () => (float[2] p) { p = Mul (row, s) }, else_branch = b () => (float[2] q) { q = Neg (row) }>""",
}
_RESULTS = (
    "Sigmoid (t)",
    "Neg (s)",
    "Identity (s)",
    "Mul (t, two)",
    "MatMul (t, matrix)",
    "Identity (t)",
    "Max (t, row)",
)


@pytest.mark.parametrize("state", _STATES)
@pytest.mark.parametrize("result", _RESULTS)
@pytest.mark.parametrize("length", ["3", "n"])
def test_a_state_is_what_the_step_before_made(preset: type[omb.Preset], state: str, result: str, length: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        states (float[2] x, float[{length}, 2] rows) => (float[2] y, float[a, b] all)
        <float[2] zero = {{0, 0}}, float one = {{1}}, float[2] two = {{2, -3}}, int64[1] whole = {{2}}, float[2, 2] matrix = {{1, 2, -1, 1}}> {{
           y, all = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] row) => (float[2] t, float[2] seen) {{
              {_STATES[state]}
              seen = {result}
           }}> (x, rows)
        }}"""
    )
    prepared, plain = preset.prepare(model), omb.OrtCpuBackend.prepare(model)
    x = np.array([2, -1], np.float32)
    for count in (3, 5) if length == "n" else (3,):
        rows = np.random.default_rng(count).standard_normal((count, 2)).astype(np.float32)
        for made, right in zip(prepared.run([x, rows]), plain.run([x, rows]), strict=True):
            np.testing.assert_allclose(made, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("read", ["first", "second", "outside", "outside and first", "constant and second"])
@pytest.mark.parametrize("rows", ["row", "other", "both"])
def test_inputs_that_a_body_does_not_read(preset: type[omb.Preset], read: str, rows: str) -> None:
    step = {
        "first": "t = Add (s, s) u = Neg (s)",
        "second": "t = Add (r, r) u = Neg (r)",
        "outside": "t = Sub (outer, x) u = Neg (outer)",
        "outside and first": "t = Sub (outer, s) u = Identity (s)",
        "constant and second": "t = Sub (k, r) u = Mul (r, k)",
    }[read]
    seen = {"row": "seen = Neg (row)", "other": "seen = Neg (other)", "both": "seen = Sub (row, other)"}[rows]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        states (float[2] x, float[n, 2] rows) => (float[2] y, float[2] z, float[a, b] all) <float[2] k = {{1, 3}}> {{
           outer = Neg (x)
           shifted = Sub (rows, k)
           y, z, all = Scan <num_scan_inputs = 2, body = step (float[2] s, float[2] r, float[2] row, float[2] other)
               => (float[2] t, float[2] u, float[2] seen) {{ {step} {seen} }}> (x, k, rows, shifted)
        }}"""
    )
    prepared, plain = preset.prepare(model), omb.OrtCpuBackend.prepare(model)
    x = np.array([2, -1], np.float32)
    for count in (3, 2):
        feeds = [x, np.random.default_rng(count).standard_normal((count, 2)).astype(np.float32)]
        for made, right in zip(prepared.run(feeds), plain.run(feeds), strict=True):
            np.testing.assert_allclose(made, right, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_body_that_chooses_by_a_truth_from_outside(preset: type[omb.Preset]) -> None:
    """Each run of OrtOpenvino failed: OpenVINO 2025.4 cannot pass a truth on that is read beside."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[n, 4] x, float[n, 4] y, float s, bool b) => (float t, float[p, q, w] o) {
        t, o = Scan <num_scan_inputs = 1, body = body (float a, float[4] row) => (float c, float[n, 4] r) {
            r = Where (b, y, a) one = Constant <value_float = 1.0> () c = Add (a, one) }> (s, x) }"""
    )
    y = np.arange(8, dtype=np.float32).reshape(2, 4)
    prepared = preset.prepare(model, fallback="full")
    for truth in (True, False, True):
        t, o = prepared.run([y, y, np.float32(0.5), np.array(truth)])
        assert t == 2.5
        wanted = [y, y] if truth else [np.full((2, 4), 0.5), np.full((2, 4), 1.5)]
        np.testing.assert_array_equal(o, np.stack(wanted).astype(np.float32))
