# SPDX-License-Identifier: Apache-2.0
"""Values of narrow types are carried in a wider one in branches and loops too: there OpenVINO does not saturate, and ONNX Runtime has no float4."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb

KINDS = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"]
X = np.float32([500, -1000, 1.1, -0.0, 448, 460, np.inf, -np.inf, np.nan, 1e-9, 7, 3.3])

FORMS = {
    "a branch": """y = If (c) <
        then_branch = t () => (float[n] yt) { a = Cast <to = $to> (x) yt = Cast <to = 1> (a) },
        else_branch = e () => (float[n] ye) { ye = Neg (x) }>""",
    "the result of a branch": """z = If (c) <
        then_branch = t () => ($type[n] yt) { yt = Cast <to = $to> (x) },
        else_branch = e () => ($type[n] ye) { q = Neg (x) ye = Cast <to = $to> (q) }>
        y = Cast <to = 1> (z)""",
    "a branch in a branch": """y = If (c) <
        then_branch = t () => (float[n] yt) { yt = If (c) <
            then_branch = tt () => (float[n] ytt) { ytt = Cast <to = 1> (z) },
            else_branch = te () => (float[n] yte) { yte = Cast <to = 1> (k) }> },
        else_branch = e () => (float[n] ye) { ye = Neg (x) }>
        z = Cast <to = $to> (x)
        k = CastLike (x, z)""",
    "a loop": """three = Constant <value_int = 3> ()
        y = Loop (three, c, x) <body = b (int64 i, bool go, float[n] s) => (bool on, float[n] so) {
            on = Identity (go) a = Cast <to = $to> (s) so = Cast <to = 1> (a) }>""",
    "the state of a loop": """three = Constant <value_int = 3> ()
        first = Cast <to = $to> (x)
        last = Loop (three, c, first) <body = b (int64 i, bool go, $type[n] s) => (bool on, $type[n] so) {
            on = Identity (go) a = Cast <to = 1> (s) b = Add (a, a) so = Cast <to = $to> (b) }>
        y = Cast <to = 1> (last)""",
}


def _model(form: str, kind: str) -> onnx.ModelProto:
    body = FORMS[form].replace("$to", str(TensorProto.DataType.Value(kind))).replace("$type", kind.lower())
    made = onnx.parser.parse_model(
        f'<ir_version: 11, opset_import: ["": 24]> g (bool c, float[n] x) => (float[n] y) {{ {body} }}'
    )
    made.graph.node.sort(key=lambda node: node.op_type in ("If", "Loop"))  # what it reads first
    made.graph.node.sort(key=lambda node: "y" in node.output)
    onnx.checker.check_model(made)
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("preset", ["openvino", "ort_cpu"])
def test_they_are_rounded_as_outside(preset: str, form: str, kind: str, request: pytest.FixtureRequest) -> None:
    model = _model(form, kind)
    prepared = request.getfixturevalue(preset).prepare(model)
    for feeds in ({"c": np.array(True), "x": X}, {"c": np.array(False), "x": X[::-1].copy()}):
        np.testing.assert_array_equal(prepared.run(feeds)[0], ReferenceEvaluator(model).run(None, feeds)[0])


@pytest.mark.parametrize("form", ["a branch", "the result of a branch"])
def test_a_branch_of_a_function_too(form: str, openvino: type[omb.Preset]) -> None:
    body = FORMS[form].replace("$to", "17").replace("$type", "float8e4m3fn")
    model = onnx.parser.parse_model(
        f'<ir_version: 11, opset_import: ["": 24, "own": 1]> g (bool c, float[n] x) => (float[n] y) {{ y = own.f (c, x) }} '
        f'<domain: "own", opset_import: ["": 24]> f (c, x) => (y) {{ {body} }}'
    )
    feeds = {"c": np.array(True), "x": X}
    np.testing.assert_array_equal(openvino.prepare(model).run(feeds)[0], ReferenceEvaluator(model).run(None, feeds)[0])


@pytest.mark.parametrize(
    "body",
    [
        "a = Cast <to: int = @t> (x) y = Cast <to = 1> (a)",
        """y = If (c) <then_branch = th () => (float[n] yt) { a = Cast <to: int = @t> (x) yt = Cast <to = 1> (a) },
                       else_branch = el () => (float[n] ye) { ye = Neg (x) }>""",
    ],
)
def test_a_function_whose_caller_tells_the_type(body: str, openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 11, opset_import: ["": 24, "own": 1]> g (bool c, float[n] x) => (float[n] y) {{ y = own.f <t = 17> (c, x) }} '
        f'<domain: "own", opset_import: ["": 24]> f <t> (c, x) => (y) {{ {body} }}'
    )
    x = np.float32([500, -3, 0.3])
    np.testing.assert_array_equal(openvino.prepare(model).run([np.array(True), x])[0], np.float32([448, -3, 0.3125]))
