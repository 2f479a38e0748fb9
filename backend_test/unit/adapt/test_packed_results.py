# SPDX-License-Identifier: Apache-2.0
"""Elements of 4 bits that a model only passes on are carried as bytes on OpenVINO, whose own copy of them breaks the memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import onnx_multi_backend as omb
from backend_test.unit import models

DTYPES: dict[str, Any] = {"uint4": ml_dtypes.uint4, "int4": ml_dtypes.int4, "float4e2m1": ml_dtypes.float4_e2m1fn}


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        pytest.param("y = Identity(x)", lambda x: x, id="identity"),
        pytest.param("y = Reshape(x, s)", lambda x: x.reshape(3, -1), id="reshape"),
        pytest.param("t = Transpose<perm = [1, 0]>(x) y = Identity(t)", lambda x: x.T, id="transpose"),
    ],
)
def test_they_come_through(body: str, wanted: Any, kind: str, openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f'<ir_version: 11, opset_import: ["": 23]> g ({kind}[N,3] x) => ({kind}[P,Q] y) <int64[2] s = {{3,-1}}> {{ {body} }}'
    )
    rep = openvino.prepare(model)
    assert {change.pass_name for change in rep.adaptations} == {"carried_types"}
    for rows in (400, 2, 5):
        x = np.resize(np.array([0, 1, 2, 3, 4, 6, 1], np.float32), (rows, 3)).astype(DTYPES[kind])
        (found,) = rep.run([x])
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found.astype(np.float32), wanted(x.astype(np.float32)))


def test_what_a_cast_makes_is_not_carried(openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        '<ir_version: 11, opset_import: ["": 23]> g (float[N] x) => (uint4[N] y) { y = Cast<to = 21>(x) }'
    )
    rep = openvino.prepare(model)
    assert "carried_types" not in {change.pass_name for change in rep.adaptations}
    assert rep.run([np.float32([1, 7, 3])])[0].astype(int).tolist() == [1, 7, 3]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        pytest.param("m = Slice(x, one, three, one)", lambda x: x[:, 1:3], id="slice"),
        pytest.param("m = Gather<axis = 1>(x, three)", lambda x: x[:, 3:4], id="gather"),
        pytest.param("m = Concat<axis = 1>(x, x)", lambda x: np.concatenate([x, x], 1), id="concat"),
        pytest.param("m = Transpose<perm = [1, 0]>(x)", lambda x: x.T, id="transpose"),
        pytest.param("m, rest = Split<axis = 1>(x, sizes)", lambda x: x[:, :1], id="split"),
    ],
)
def test_float4_that_a_run_gives_is_moved_element_by_element(
    body: str, wanted: Any, openvino: type[omb.Preset]
) -> None:
    constants = "int64[1] one = {1}, int64[1] three = {3}, int64[2] sizes = {1,4}"
    model = parser.parse_model(
        f'<ir_version: 13, opset_import: ["": 25]> g (float4e2m1[N,5] x) => (float[P,Q] y) <{constants}> '
        f"{{ {body} y = Cast<to = 1>(m) }}"
    )
    rep = openvino.prepare(model)
    for rows in (3, 1, 6):
        x = np.resize(np.array([0, 1, 2, 3, 4, 6, -1], np.float32), (rows, 5))
        np.testing.assert_array_equal(rep.run([x.astype(ml_dtypes.float4_e2m1fn)])[0], wanted(x))


@pytest.mark.parametrize("kind", ["uint4", "int4"])
@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        pytest.param("y = Reshape(x, s)", lambda x: x.reshape(3, -1), id="reshape"),
        pytest.param("y = Pad<mode = 'edge'>(x, p)", lambda x: np.pad(x, ((1, 0), (0, 2)), "edge"), id="pad"),
        pytest.param("y = Identity(x)", lambda x: x, id="identity"),
    ],
)
def test_they_come_through_the_execution_provider(
    body: str, wanted: Any, kind: str, openvino_ep: type[omb.Preset]
) -> None:
    """Beside nodes that the provider takes; ONNX Runtime 1.24 has no kernels for these elements."""
    text = (
        f"({kind}[N,3] x, float[3] f) => ({kind}[P,Q] y, float[3] w) <int64[2] s = {{3,-1}}, int64[4] p = {{1,0,0,2}}>"
    )
    beside = "a = Sin(f) b = Tanh(a) w = Exp(b)"
    quoted = body.replace("'", '"')
    rep = openvino_ep.prepare(
        parser.parse_model(f'<ir_version: 11, opset_import: ["": 21]> g {text} {{ {quoted} {beside} }}')
    )
    for rows in (400, 2, 5):
        x = np.resize(np.array([0, 1, 7, 3, -4, 6, -8] if kind == "int4" else [0, 1, 15, 3, 8]), (rows, 3))
        found, _ = rep.run([x.astype(DTYPES[kind]), np.ones(3, np.float32)])
        assert found.dtype == DTYPES[kind]
        np.testing.assert_array_equal(found.astype(int), wanted(x))


@pytest.mark.parametrize("kind", ["uint4", "int4"])
def test_a_function_may_pass_them_on(kind: str, openvino_ep: type[omb.Preset]) -> None:
    rep = openvino_ep.prepare(
        parser.parse_model(
            f"""<ir_version: 11, opset_import: ["": 21, "own": 1]> g ({kind}[N,3] x, float[3] f) => ({kind}[N,3] y, float[3] w)
                {{ y = own.same(x) a = Sin(f) b = Tanh(a) c = Cos(b) w = Exp(c) }}
                <domain: "own", opset_import: ["": 21]> same (p) => (q) {{ q = Identity(p) }}"""
        )
    )
    x = np.resize(np.array([0, 1, 7, 3, 5]), (4, 3)).astype(DTYPES[kind])
    found, _ = rep.run([x, np.ones(3, np.float32)])
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.astype(int), x.astype(int))


@pytest.mark.parametrize("kind", DTYPES)
def test_what_is_filled_with_one_of_them_has_its_shape(kind: str, openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f"""<ir_version: 11, opset_import: ["": 24]> g (int64[2] s) => ({kind}[N, 3] y) {{
        y = ConstantOfShape<value = {kind}[1] {{3}}>(s) }}"""
    )
    (number,) = numpy_helper.to_array(model.graph.node[0].attribute[0].t)
    rep = openvino.prepare(model)
    for rows in (4, 1, 0):
        (found,) = rep.run([np.array([rows, 3])])
        np.testing.assert_array_equal(found, np.full((rows, 3), number), strict=True)


@pytest.mark.parametrize("elem_type", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("operator", ["Cast", "CastLike", "DequantizeLinear"])
def test_a_constant_without_elements_keeps_its_shape(openvino: type[omb.Preset], operator: str, elem_type: int) -> None:
    node = {
        "Cast": helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
        "CastLike": helper.make_node("CastLike", ["c", "s"], ["y"]),
        "DequantizeLinear": helper.make_node("DequantizeLinear", ["c", "s"], ["y"]),
    }[operator]
    model = models.model(
        [node], [], [models.tensor("y", [3, 0, 2])], initializers={"s": np.float32(2)}, opsets={"": 21}
    )
    model.graph.initializer.append(helper.make_tensor("c", elem_type, [3, 0, 2], []))
    (result,) = openvino.prepare(model).run([])
    assert (result.shape, result.dtype) == ((3, 0, 2), np.float32)
