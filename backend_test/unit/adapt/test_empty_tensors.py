# SPDX-License-Identifier: Apache-2.0
"""Whether a tensor without elements is a list of nothing, or data: a Gather of nothing ends the process on OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.facts import Facts

_HEAD = '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[n] x, int64[k] i) => '


def _model(text: str, *, domain: str = "") -> ModelProto:
    model = parser.parse_model(_HEAD + text)
    for node in model.graph.node:
        node.domain = domain if node.op_type == "Expand" else node.domain
    return model


@pytest.mark.parametrize(
    "text",
    [
        "(float y) <int64[0] none = {}> { y = ConstantOfShape(none) }",
        "(float[n] y) <int64[0] none = {}> { y = Expand(x, none) }",
        "(float[n] y) <int64[0] none = {}> { y = ReduceSum<noop_with_empty_axes: int = 1>(x, none) }",
    ],
)
def test_a_list_of_nothing_is_no_data(text: str) -> None:
    assert not Facts(_model(text)).may_be_empty


@pytest.mark.parametrize(
    "text",
    [
        "(float[k] y) <float[0] none = {}> { y = Gather(none, i) }",
        "(float[n] y) <float[0] none = {}> { y = Concat<axis: int = 0>(x, none) }",
        "(float[0] none) <float[0] none = {}> { y = Relu(x) }",
    ],
)
def test_data_without_elements_is_found(text: str) -> None:
    assert Facts(_model(text)).may_be_empty


def test_an_operator_of_another_domain_may_take_it_for_data() -> None:
    text = "(float[n] y) <int64[0] none = {}> { y = Expand(x, none) }"
    assert Facts(_model(text, domain="own")).may_be_empty


def test_a_constant_node_counts_like_an_initializer() -> None:
    none = numpy_helper.from_array(np.zeros((0,), np.float32))
    nodes = [helper.make_node("Constant", [], ["c"], value=none), helper.make_node("Gather", ["c", "i"], ["y"])]
    info = helper.make_tensor_value_info
    inputs, outputs = [info("i", TensorProto.INT64, ["k"])], [info("y", TensorProto.FLOAT, ["k"])]
    assert Facts(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs))).may_be_empty


@pytest.mark.parametrize("kind", ["int64", "int32", "uint32"])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("sizes", [(3, 0, 5), (0, 4), (2, 4, 0)])
def test_a_triangle_of_nothing(openvino: type[omb.Preset], kind: str, upper: int, sizes: tuple[int, ...]) -> None:
    """The mask by which it was multiplied, computed while the model was loaded, broke the memory."""
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 14]> g ({kind}{list(sizes)} x) => ({kind}{list(sizes)} y) {{ y = Trilu <upper = {upper}> (x) }}"""
    )
    x = np.zeros(sizes, kind)
    for _ in range(3):
        np.testing.assert_array_equal(openvino.prepare(model).run([x])[0], x, strict=True)


@pytest.mark.parametrize("declared", ["2, 3", "n, m"])
def test_sizes_cut_to_none_that_are_indices(engine: type[omb.Preset], declared: str) -> None:
    """They are more than a list: OpenVINO's process ended over them."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[{declared}] x, float[1] z) => (float[a, b] y, float[1] other) <int64[1] one = {{1}}> {{
        s = Shape (x) e = Slice (s, one, one) y = Gather <axis = 0> (x, e) other = Neg (z) }}"""
    with engine.prepare(parser.parse_model(text), isolate=True) as rep:
        y, other = rep.run([np.ones((2, 3), np.float32), np.float32([4])])
    assert y.shape == (0, 3)
    assert other == [-4]


def test_a_text_of_a_function_has_the_name_of_a_place(engine: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 17, "local": 1]> g (int64[1] axes) => (float[1, 2, A, B] y)
        <float[1, 2, 1, 3] x = {1, 2, 3, 4, 5, 6}, int64[1] c = {-1}, int64[1] e = {9223372036854775807}, int64[1] s = {2}>
        { v = Slice (x, c, e, axes, s) y = local.f (v) }
        <domain: "local", opset_import: ["": 17]> f (a) => (b) { c = Constant <value = string[1] {"text"}> () d = Identity (c) b = Tanh (a) }"""
    )
    (made,) = engine.prepare(model).run([np.array([3])])
    np.testing.assert_allclose(made.ravel(), np.tanh([3, 6]), rtol=1e-5)
