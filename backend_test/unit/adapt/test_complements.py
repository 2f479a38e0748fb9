# SPDX-License-Identifier: Apache-2.0
"""The complement of an unsigned constant on OpenVINO: whole where it is a result, refused where a node reads it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import onnx_multi_backend as omb


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
@pytest.mark.parametrize(("sizes", "values"), [("", [7]), ("4", [0, 1, 300, 2**31 - 1])])
def test_alone_it_is_whole(kind: str, sizes: str, values: list[int], openvino: type[omb.Preset]) -> None:
    shape = f"[{sizes}]" if sizes else ""
    text = ", ".join(map(str, values))
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g (float[1] x) => (float[1] z, {kind}{shape} y)
            <{kind}{shape} c = {{{text}}}> {{ y = BitwiseNot(c) z = Relu(x) }}"""
    )
    _, found = openvino.prepare(model).run([np.ones(1, np.float32)])
    wanted = ~np.array(values, kind)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.ravel(), wanted)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("y = BitwiseNot(c) d = Div(y, two) z = Cast<to = 1>(d)", id="read too"),
        pytest.param(
            """b = Greater(x, x) f = Squeeze(b)
               y = If(f) <then_branch = t () => (uint32[2] p) { p = BitwiseNot(c) }, else_branch = e () => (uint32[2] q) { q = Identity(c) }>
               z = Relu(x)""",
            id="in a branch",
        ),
    ],
)
def test_elsewhere_it_is_refused(body: str, openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g (float[1] x) => (float[N] z, uint32[2] y)
            <uint32[2] c = {{3, 5}}, uint32[2] two = {{2, 2}}> {{ {body} }}"""
    )
    with pytest.raises(omb.UnsupportedModelError, match=r"BitwiseNot .*its result leaves what int32 holds"):
        openvino.prepare(model)
