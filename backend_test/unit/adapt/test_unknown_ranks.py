# SPDX-License-Identifier: Apache-2.0
"""Ranks and sizes that are not known, and nodes that read a tensor of unknown rank, which OpenVINO's execution provider cannot."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.inferring.inference import infer


def _model(opset: int, nodes: str, outputs: str) -> ModelProto:
    """A model beside nodes that the provider takes, and one that it does not: of a model that it has whole it takes nothing then."""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[1] x, float[2, 3] f) => (float[A] w, {outputs})'
        f" {{ a = Sin(f) b = Tanh(a) c = Cos(b) d = Exp(c) w = Unique(d) {nodes} }}"
    )
    model.graph.input[0].type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_they_are_left_to_the_cpu_provider(openvino_ep: type[omb.Preset], opset: int) -> None:
    model = _model(opset, "y = Neg(x) s = Abs(y) z = Sqrt(s)", "float y, float z")
    for value in model.graph.output[1:]:
        value.type.tensor_type.ClearField("shape")
    with pytest.warns(omb.FallbackWarning, match="Neg"):
        prepared = openvino_ep.prepare(model)
    assert "left_to_cpu" in {change.pass_name for change in prepared.adaptations}
    assert "OpenVINOExecutionProvider" in {node.provider for node in prepared.placement()}
    for shape in ((4,), (1, 3, 2), ()):
        x, f = np.full(shape, -4, np.float32), np.ones((2, 3), np.float32)
        w, y, z = prepared.run([x, f])
        np.testing.assert_allclose(w, np.unique(np.exp(np.cos(np.tanh(np.sin(f))))), rtol=1e-5)
        assert y.shape == z.shape == shape
        assert np.all(y == 4) and np.all(z == 2)


def test_what_a_known_rank_comes_of_is_declared(openvino_ep: type[omb.Preset]) -> None:
    """Nodes behind may run on the provider: their rank is known."""
    model = _model(13, "r = Reshape(x, s) t = Sin(r) u = Tanh(t) v = Exp(u) y = Cos(v)", "float[N] y")
    model.graph.initializer.add(name="s", data_type=7, dims=[1], int64_data=[-1])
    with pytest.warns(omb.FallbackWarning, match="Reshape"):
        prepared = openvino_ep.prepare(model)
    for shape in ((4,), (1, 3, 2)):
        x = np.ones(shape, np.float32)
        _, y = prepared.run([x, np.ones((2, 3), np.float32)])
        np.testing.assert_allclose(y, np.cos(np.exp(np.tanh(np.sin(x.ravel())))), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("shape", ["", "[a, b]"], ids=["unknown", "declared"])
def test_scales_along_an_axis(openvino_ep: type[omb.Preset], axis: int, shape: str) -> None:
    """An input without a shape is not a scalar: its rank is that of the result, or a run tells it."""
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 22]> g (float8e4m3fn[1] x) => (float16{shape} y) {{
            y = DequantizeLinear <axis = {axis}> (x, scale, zero) }}"""
    )
    scale, zero = np.array([1, 0.25], np.float16), np.zeros(2, ml_dtypes.float8_e4m3fn)
    model.graph.initializer.extend([numpy_helper.from_array(scale, "scale"), numpy_helper.from_array(zero, "zero")])
    model.graph.input[0].type.tensor_type.ClearField("shape")
    if not shape:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.array([[1.5, -2], [0.5, 3], [-1, 8]], ml_dtypes.float8_e4m3fn)
    (y,) = openvino_ep.prepare(model).run([x])
    np.testing.assert_array_equal(y, x.astype(np.float16) * scale)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_vector_times_what_has_any_rank(openvino_ep: type[omb.Preset]) -> None:
    """Only where both ranks are known the product tells which axis a vector was given."""
    model = _model(13, "i = Cast <to = 3> (x) y = MatMulInteger (v, i)", "int32 y")
    model.graph.initializer.append(numpy_helper.from_array(np.array([3, 2], np.uint8), "v"))
    model.graph.output[1].type.tensor_type.ClearField("shape")
    prepared = openvino_ep.prepare(model)
    for shape in ((2,), (2, 3), (2,)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 2
        _, y = prepared.run([x, np.ones((2, 3), np.float32)])
        np.testing.assert_array_equal(y, np.array([3, 2], np.int32) @ x.astype(np.int32))


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_quantized_weights_of_any_rank(openvino_ep: type[omb.Preset]) -> None:
    """A Conv by weights that are dequantized from an input of unknown rank ended the process."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (uint8[1, 1, 4, n] x, uint8[1] w, float s) => (uint8[a, b, c, d] y)
        <float xs = {0.5}, uint8 z = {3}, float[2] ws = {0.5, 0.25}, uint8[2] wz = {0, 0}, int32[2] bias = {0, 0}> {
            y = QLinearConv (x, xs, z, w, ws, wz, s, z, bias) }"""
    )
    model.graph.input[1].type.tensor_type.ClearField("shape")
    x, w = np.arange(12, dtype=np.uint8).reshape(1, 1, 4, 3), np.ones((2, 1, 2, 2), np.uint8)
    (y,) = openvino_ep.prepare(model, fallback="full").run([x, w, np.array(0.25, np.float32)])
    sums = (x[..., :3, :2].astype(int) + x[..., 1:, :2] + x[..., :3, 1:] + x[..., 1:, 1:] - 12)[0, 0]
    np.testing.assert_array_equal(y[0], np.clip([sums + 3, np.round(sums / 2) + 3], 0, 255))


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_loop_beside_them_is_right(openvino_ep: type[omb.Preset]) -> None:
    """The provider took its body, and then the loop."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 8]> g (float v, float[1] x) => (float w, float[a, b, c] y) <int64 n = {3}, bool go = {1}> {
        w = Loop (n, go, v) <body = s (int64 i, bool more, float t) => (bool again, float u) {
            again = Identity (more) k = Log (t) u = Identity (k) }>
        y = ReduceMax <axes = [0, 1, 2], keepdims = 1> (x) }"""
    )
    model.graph.input[1].type.tensor_type.ClearField("shape")
    prepared = openvino_ep.prepare(model)
    for size in (2, 3):
        x = np.arange(size * 4, dtype=np.float32).reshape(size, 2, 2)
        w, y = prepared.run([np.array(12, np.float32), x])
        np.testing.assert_allclose(w, np.log(np.log(np.log(12))), rtol=1e-5)
        np.testing.assert_array_equal(y, [[[size * 4 - 1]]])


@pytest.mark.parametrize(
    ("inputs", "node", "rank"),
    [
        ("float[3, 5] x, int64[2] s", "CenterCropPad (x, s)", 2),
        ("float[3, 5] x, int64[1] s", "CenterCropPad <axes = [1]> (x, s)", 2),
        ("float[3, 5] x, int64[2] s, int64[1] a", "Pad (x, s, , a)", 2),
        ("float[3, 5] x, int64[2] s", "Unsqueeze (x, s)", 4),
        ("float[1, 1, 3, 3] x, int64[1, 1, 3, 3] i, int64[4] s", "MaxUnpool <kernel_shape = [2, 2]> (x, i, s)", 4),
        ("float[1, 16, 1] x, int64 s, float[4] w", "STFT (x, s, w)", 4),
        ("float[3, 5] x, int64[n] s", "Resize (x, , , s)", 2),
        ("int64 s", "BlackmanWindow (s)", 1),
        ("int64 s, float f", "MelWeightMatrix (s, s, s, f, f)", 2),
        ("float[3, 5] x, int64[n] s", "Unsqueeze (x, s)", None),
    ],
)
def test_ranks_that_onnx_leaves_open(inputs: str, node: str, rank: int | None) -> None:
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 20]> g ({inputs}) => (bool[N] y) {{ v = {node} y = IsNaN (v) }}'
    )
    (kind,) = [value.type.tensor_type for value in infer(model).graph.value_info if value.name == "v"]
    assert kind.elem_type == onnx.TensorProto.FLOAT
    assert (len(kind.shape.dim) if kind.HasField("shape") else None) == rank


def test_ranks_of_nodes_behind_each_other() -> None:
    nodes = " ".join(f"v{i + 1} = CenterCropPad (v{i}, s) " for i in range(9))
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 20]> g (float[3, 5] v0, int64[2] s) => (bool[N] y) {{ {nodes} y = IsNaN (v9) }}'
    )
    kinds = {value.name: value.type.tensor_type for value in infer(model).graph.value_info}
    assert [len(kinds[f"v{i}"].shape.dim) for i in range(1, 10)] == [2] * 9


@pytest.mark.parametrize("opset", [23, 24])
def test_sizes_that_onnx_takes_for_nothing(opset: int) -> None:
    """The last one of V counts, which is not known; the second Attention reads what the first makes."""
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": {opset}]> g (float[N,3,16] q, float[N,K,H] k, float[N,K,V] v) => (float[a,b,c] y) {{
        u = Attention <kv_num_heads = 2, q_num_heads = 4> (q, k, v)
        w = Attention <kv_num_heads = 2, q_num_heads = 4> (q, u, u)
        y = Relu (w) }}"""
    )
    typed = infer(model)
    for value in (*typed.graph.value_info, *typed.graph.output):
        assert all(size.dim_value or not size.HasField("dim_value") for size in value.type.tensor_type.shape.dim)
    assert [node.op_type for node in typed.graph.node] == ["Attention", "Attention", "Relu"]
    assert any(value.type.tensor_type.shape.dim[1].dim_value == 3 for value in typed.graph.value_info)


def test_sizes_of_many_layers_behind_each_other() -> None:
    layers = " ".join(f"y{i + 1} = Attention <q_num_heads = 2, kv_num_heads = 2> (y{i}, q, y{i})" for i in range(8))
    typed = infer(
        parser.parse_model(
            f"""<ir_version: 10, opset_import: ["": 23]> g (float[B,S,N] q) => (float[a,b,c] z) {{
            y0 = Identity (q) {layers} z = Relu (y8) }}"""
        )
    )
    assert not any(s.HasField("dim_value") for v in typed.graph.value_info for s in v.type.tensor_type.shape.dim)
    assert all(v.type.tensor_type.HasField("shape") for v in typed.graph.value_info)


def test_branches_that_name_results_alike() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 23]> g (bool t, float[B,3,N] q, float[B,2,3,N] h) => (float a, float b) {
        a, b = If (t) <then_branch = x () => (float r, float s) {
            y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, q, q) r = ReduceMax <keepdims = 0> (y) s = Identity (r) },
        else_branch = z () => (float r, float s) {
            y = Attention (h, h, h) r = ReduceMax <keepdims = 0> (y) s = Identity (r) }> }"""
    )
    ranks = [
        len(value.type.tensor_type.shape.dim)
        for attribute in infer(model).graph.node[0].attribute
        for value in attribute.g.value_info
        if value.name == "y"
    ]
    assert sorted(ranks) == [3, 4]


def test_sizes_that_are_nothing_stay() -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 23]> g (float[N,3,16] q, float[N,K,8] k, float[N,K,0] v) => (float[a,b,c] y) {
        u = Attention <kv_num_heads = 2, q_num_heads = 4> (q, k, v) y = Relu (u) }"""
    )
    assert any(value.type.tensor_type.shape.dim[2].dim_value == 0 for value in infer(model).graph.value_info)


def test_attention_of_sizes_known_at_run_time(openvino_ep: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 23]> g (float[N,3,16] q, float[N,K,H] k, float[N,K,V] v) => (float[a,b,c] y) {
        u = Attention <kv_num_heads = 2, q_num_heads = 4, softcap = 1.0> (q, k, v) y = Softmax <axis = 1> (u) }"""
    )
    rng = np.random.default_rng(0)
    values = [rng.normal(size=size).astype(np.float32) for size in ((2, 3, 16), (2, 4, 8), (2, 4, 4))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        (found,) = openvino_ep.prepare(model).run(values)
    np.testing.assert_allclose(found, omb.OrtCpuBackend.prepare(model).run(values)[0], rtol=1e-4, atol=1e-5)
