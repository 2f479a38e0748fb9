# SPDX-License-Identifier: Apache-2.0
"""Abs of what is made of constants and shapes alone: OpenVINO leaves it out."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.conftest import without_the_plugin

NODES = {
    "a shape": "s = Shape (a) t = Cast <to = {to}> (s) c = Sub (t, nine) y = Abs (c)",
    "a size": "n = Size (a) r = Reshape (n, one) t = Cast <to = {to}> (r) c = Sub (t, nine) y = Abs (c)",
    "a default": "c = Sub (two, nine) y = Abs (c)",
    "of a number and itself": "s = Shape (a) t = Cast <to = {to}> (s) c = Sub (t, nine) m = Add (c, c) h = Sub (m, c) y = Abs (h)",
    "in a branch": """s = Shape (a) t = Cast <to = {to}> (s) sum = ReduceSum (a) more = Cast <to = 9> (sum)
        y = If (more) <then_branch = p () => ({kind}[1] u) {{ c = Sub (t, nine) u = Abs (c) }},
                       else_branch = q () => ({kind}[1] v) {{ v = Identity (t) }}>""",
}


@pytest.mark.parametrize("form", NODES)
@pytest.mark.parametrize("kind", ["float", "int64", "int32", "int8", "float16"])
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_it_is_not_left_out(preset: type[omb.Preset], form: str, kind: str) -> None:
    if form == "a default":
        without_the_plugin(preset)  # which takes no inputs with a default
    two, nine = (16384, 18560) if kind == "float16" else (2, 9)  # its bits
    given, default = (f", {kind}[1] two", f"{kind}[1] two = {{{two}}},") if form == "a default" else ("", "")
    elem_type = onnx.TensorProto.DataType.Value(kind.upper())
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 16]> g (float[n] a{given}) => ({kind}[1] y, float[n] b)
        <{default} {kind}[1] nine = {{{nine}}}, int64[1] one = {{1}}> {{
        {NODES[form].format(to=elem_type, kind=kind)} b0 = Relu (a) b1 = Exp (b0) b = Sqrt (b1) }}"""
    )
    y, b = preset.prepare(model).run({"a": np.float32([0, 4])})
    np.testing.assert_array_equal(y, np.array([7], onnx.helper.tensor_dtype_to_np_dtype(elem_type)), strict=True)
    np.testing.assert_allclose(b, np.exp(np.float32([0, 2])), rtol=1e-5)


def test_an_abs_of_an_input_stays(openvino_ep: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 16]> g (float[n] a) => (float[n] y) {
        s = Shape (a) t = Cast <to = 1> (s) c = Sub (a, t) d = Neg (c) e = Exp (d) y = Abs (e) }"""
    )
    assert not [a for a in openvino_ep.prepare(model).adaptations if a.pass_name == "signs_told"]
