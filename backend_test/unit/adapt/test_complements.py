# SPDX-License-Identifier: Apache-2.0
"""The complement of an unsigned constant on OpenVINO: whole where it is a result, refused where OpenVINO computes with it."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize("kind", ["uint32", "uint64", "int64"])
@pytest.mark.parametrize(
    "body", ["w = Flatten(y)", "i = Identity(y) w = Reshape(i, s)", "s1 = Squeeze(y) w = Unsqueeze(s1, z0)"]
)
def test_in_another_shape_it_is_whole_too(kind: str, body: str, openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g (float[1] x) => (float[1] z, {kind}[1, 4] y, {kind}[a, b] w)
            <{kind}[1, 4] c = {{13, 8, 2, 0}}, int64[2] s = {{2, 2}}, int64[1] z0 = {{0}}> {{ y = BitwiseNot(c) {body} z = Relu(x) }}"""
    )
    _, found, reshaped = openvino.prepare(model).run([np.ones(1, np.float32)])
    np.testing.assert_array_equal(found, ~np.array([[13, 8, 2, 0]], kind), strict=True)
    np.testing.assert_array_equal(reshaped.ravel(), found.ravel(), strict=True)


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


BESIDE = "a = Sin(x) d = Tanh(a) z = Exp(d)"


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize(
    ("result", "body", "wanted"),
    [
        pytest.param("uint64[2, 2] y", "y = ReverseSequence<batch_axis = 0, time_axis = 1>(b, n)", lambda x: x, id="an output"),
        pytest.param(
            "float[2, 2] y",
            "r = ReverseSequence<batch_axis = 0, time_axis = 1>(b, n) f = Cast<to = 1>(r) y = Sqrt(f)",
            lambda x: np.sqrt(x.astype(np.float32)),
            id="a float made of it",
        ),
    ],
)  # fmt: skip
def test_another_provider_may_read_it(result: str, body: str, wanted: Any, openvino_ep: type[omb.Preset]) -> None:
    """ONNX Runtime computes it ahead, and its CPU provider turns the rows round."""
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g (float[N] x, int64[2] n) => (float[N] z, {result})
            <uint64[2, 2] c = {{3, 5, 0, 300}}> {{ b = BitwiseNot(c) {body} {BESIDE} }}"""
    )
    rep = openvino_ep.prepare(model)
    rows = ~np.array([[3, 5], [0, 300]], np.uint64)
    for lengths, turned in (([1, 2], [rows[0], rows[1, ::-1]]), ([2, 1], [rows[0, ::-1], rows[1]])):
        found = rep.run([np.ones(1, np.float32), np.array(lengths)])[1]
        np.testing.assert_allclose(found, wanted(np.stack(turned)), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_what_that_makes_of_it_must_not_be_read_by_openvino(openvino_ep: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g (float[N] x, uint32[2] n) => (float[N] z, float[2] y)
            <uint32[2] c = {{3, 300}}> {{ b = BitwiseNot(c) r = BitwiseAnd(b, n) f = Cast<to = 1>(r) e = Sqrt(f) y = Tanh(e) {BESIDE} }}"""
    )
    with pytest.raises(omb.UnsupportedModelError, match=r"BitwiseNot .*its result leaves what int32 holds"):
        openvino_ep.prepare(model)
