# SPDX-License-Identifier: Apache-2.0
"""Products that add up nothing are 0, also where engines leave their memory as it was: OpenVINO, and ONNX Runtime of bytes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser

import onnx_multi_backend as omb

WIDE, TALL = np.zeros((2, 0), np.float32), np.zeros((0, 2), np.float32)


def model(signature: str, body: str) -> ModelProto:
    constants = "<float[0,3] c = {}, float[3,0] turned = {}, float[3] b = {1, 2, -inf}>"
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g ({signature}) => (float[M,N] y) {constants} {{ {body} }}'
    )


@pytest.mark.parametrize("sizes", ["M,K", "2,0"])
@pytest.mark.parametrize(
    ("body", "row"),
    [
        pytest.param("y = MatMul(x, c)", [0, 0, 0], id="MatMul"),
        pytest.param("y = Gemm(x, c)", [0, 0, 0], id="Gemm"),
        pytest.param("y = Gemm<transB = 1>(x, turned)", [0, 0, 0], id="turned"),
        pytest.param("y = Gemm<beta = 0.5, alpha = 3.0>(x, c, b)", [0.5, 1, -np.inf], id="with C"),
        pytest.param("y = Gemm<beta = 0.0>(x, c, b)", [0, 0, 0], id="with C that counts for nothing"),
    ],
)
def test_they_are_zero(body: str, row: list[float], sizes: str, openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(model(f"float[{sizes}] x", body))
    for _ in range(2):
        np.testing.assert_array_equal(rep.run([WIDE])[0], [row, row])


@pytest.mark.parametrize("sizes", ["K,M", "0,2"])
def test_a_first_operand_that_is_turned(sizes: str, openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(model(f"float[{sizes}] x", "y = Gemm<transA = 1, transB = 1>(x, turned, b)"))
    np.testing.assert_array_equal(rep.run([TALL])[0], [[1, 2, -np.inf]] * 2)


def test_batches_count_too(openvino: type[omb.Preset]) -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[B,1,2,0] x, float[4,0,3] w) => (float[a,b,c,d] y) { y = MatMul(x, w) }'
    )
    (found,) = openvino.prepare(made).run([np.zeros((5, 1, 2, 0), np.float32), np.zeros((4, 0, 3), np.float32)])
    assert found.shape == (5, 4, 2, 3) and not found.any()


@pytest.mark.parametrize(
    "graph",
    [
        "(float[1,0,4,4] x, float[2,0,3,3] w) => (float[a,b,c,d] y) { y = Conv(x, w) }",
        "(float[M,0] x, float[0,N] w) => (float[a,b] y) { y = Einsum<equation = \"ij,jk->ik\">(x, w) }",
        "(uint8[M,0] x, uint8[0,3] w) => (uint8[a,b] y) <float s = {1}, uint8 z = {3}> { y = QLinearMatMul(x, s, z, w, s, z, s, z) }",
    ],
)  # fmt: skip
def test_others_are_refused(graph: str, openvino: type[omb.Preset]) -> None:
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {graph}')
    with pytest.raises(omb.UnsupportedModelError, match="memory that was never written"):
        openvino.prepare(made)


def test_what_a_run_alone_makes_empty_is_zero(openvino: type[omb.Preset]) -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[M,K] x, float[K,N] w) => (float[a,b] y) { y = MatMul(x, w) }'
    )
    rep = openvino.prepare(made)
    assert not rep.adaptations
    for size in (3, 0, 2, 0):
        x, w = np.full((2, size), 7, np.float32), np.ones((size, 3), np.float32)
        np.testing.assert_array_equal(rep.run([x, w])[0], x @ w)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("batch", ["", "3,"])
def test_products_of_bytes(preset: type[omb.Preset], batch: str, kind: str) -> None:
    made = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g ({kind}[{batch}M,0] x, {kind}[{batch}0,5] w, float[n] f)
        => (int32[{batch}a,b] y, float[n] z) {{ y = MatMulInteger(x, w) z = Cos(f) }}"""
    )
    front = (3,) if batch else ()
    feeds = [np.zeros((*front, 7, 0), kind), np.zeros((*front, 0, 5), kind), np.ones(2, np.float32)]
    prepared = preset.prepare(made)
    for _ in range(5):
        found = prepared.run(feeds)[0]
        assert found.shape == (*front, 7, 5)
        assert not found.any()


@pytest.mark.parametrize("operator", ["ConvInteger(x, w)", "QLinearConv(x, s, z, w, s, z, s, z)"])
def test_other_products_of_bytes_are_refused(ort_cpu: type[omb.Preset], operator: str) -> None:
    kind = "int32" if "Integer" in operator else "uint8"
    made = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (uint8[1,0,4,4] x, uint8[2,0,3,3] w) => ({kind}[a,b,c,d] y)
        <float s = {{1}}, uint8 z = {{3}}> {{ y = {operator} }}"""
    )
    with pytest.raises(omb.UnsupportedModelError, match="memory that was never written"):
        ort_cpu.prepare(made)


@pytest.mark.parametrize(
    ("signature", "body", "shape"),
    [
        ("float[0, 2, 2, 0] x, float[0] z", "y = MatMul(x, z)", (0, 2, 2)),
        ("float[2, 0] x, float[0] z", "y = MatMul(x, z)", (2,)),
        ("float[0] x, float[0, 2] z", "y = MatMul(x, z)", (2,)),
        ("float[0] x, float[0] z", "y = MatMul(x, z)", ()),
    ],
)
def test_vectors(signature: str, body: str, shape: tuple[int, ...], openvino: type[omb.Preset]) -> None:
    made = model(signature, body)
    del made.graph.output[0].type.tensor_type.shape.dim[:]
    made.graph.output[0].type.tensor_type.ClearField("shape")
    sizes = [[d.dim_value for d in value.type.tensor_type.shape.dim] for value in made.graph.input]
    (y,) = openvino.prepare(made).run([np.zeros(size, np.float32) for size in sizes])
    np.testing.assert_array_equal(y, np.zeros(shape, np.float32))


@pytest.mark.parametrize("shape", ["5,0,0", "0,0"])
def test_a_result_of_no_elements_is_not_refused(shape: str, ort_cpu: type[omb.Preset]) -> None:
    """ONNX Runtime 1.24 adds up no constant of two empty axes, and need not."""
    other = shape[:-1] + "2"
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 11]> g (uint8[{other}] x) => (int32[{other}] y) <uint8[{shape}] c = {{}}> {{ y = MatMulInteger(c, x) }}'
    )
    x = np.zeros([int(size) for size in other.split(",")], np.uint8)
    (y,) = ort_cpu.prepare(made).run([x])
    assert y.shape == x.shape
