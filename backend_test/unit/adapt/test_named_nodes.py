# SPDX-License-Identifier: Apache-2.0
"""Nodes that OpenVINO's built-in provider takes and fails to compile, and models of which it takes no node at all."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import onnx_multi_backend as omb
from onnx_multi_backend.engines.placement import MisplacedError


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_top_k_of_unknown_length_beside_a_cast(openvino_ep: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (int64[N, M] x, int64[K] k) => (int64[A, B] y, int64[A, B] i, int64[C] l)
        { y, i = TopK <largest = 0> (x, k) l = Cast <to = 7> (k) }"""
    )
    prepared = openvino_ep.prepare(model)
    assert "left_to_cpu" in {change.pass_name for change in prepared.adaptations}
    for size, k in ((5, 2), (7, 3)):
        x = np.random.default_rng(size).permuted(np.tile(np.arange(size), (2, 1)), axis=1)
        y, i, length = prepared.run([x, np.array([k])])
        np.testing.assert_array_equal(y, np.tile(np.arange(k), (2, 1)))
        np.testing.assert_array_equal(i, np.argsort(x)[:, :k])
        assert length == [k]


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_layer_normalization_of_three_results_beside_a_loop(openvino_ep: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g (float[N] x, float[M] s, int64[1, K] i) => (float[N] y, float[1] r, float[1] l, float[M] u)
        <int64 n = {1}, bool go = {1}, int64[1] one = {1}> {
            y, m, r = LayerNormalization <axis = 0> (x, x, x)
            l = Loop (n, go, m) <body = b (int64 step, bool more, float[1] st) => (bool again, float[1] so) {
                again = Identity (more) v = Reshape (step, one) so = Identity (st) }>
            u = ScatterND (s, i, l) }"""
    )
    model.graph.input[1].type.tensor_type.ClearField("shape")
    model.graph.output[3].type.tensor_type.ClearField("shape")
    prepared = openvino_ep.prepare(model)
    for size in (4, 3):
        x = np.random.default_rng(size).uniform(-1, 1, size).astype(np.float32)
        y, r, mean, u = prepared.run([x, np.zeros(3, np.float32), np.array([[1]])])
        np.testing.assert_allclose(y, (x - x.mean()) / np.sqrt(x.var() + 1e-5) * x + x, rtol=1e-4)
        np.testing.assert_allclose(r, [1 / np.sqrt(x.var() + 1e-5)], rtol=1e-4)
        np.testing.assert_allclose(mean, [x.mean()], rtol=1e-4)
        np.testing.assert_allclose(u, [0, x.mean(), 0], rtol=1e-4)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("kind", ["float", "float16"])
def test_a_dropout_beside_a_loop_on_the_cpu(openvino_ep: type[omb.Preset], kind: str) -> None:
    """Its input has the name of its result in OpenVINO's model, and the provider looks for its own."""
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]> g ({kind}[2, d] x, int64 n) => ({kind}[a, b] v, bool[a, b] m, {kind}[a, b] y)
        <bool go = {{1}}> {{
            v, m = Dropout (x)
            y = Loop (n, go, x) <body = b (int64 i, bool more, {kind}[2, 2] s) => (bool again, {kind}[2, 2] o) {{
                again = Identity (more) o = Neg (v) }}> }}"""
    )
    x = np.array([[1, -2], [3, 4]], np.dtype(kind + "32" if kind == "float" else kind))
    v, m, y = openvino_ep.prepare(model).run([x, np.array(2)])
    np.testing.assert_array_equal(v, x)
    assert m.all()
    np.testing.assert_array_equal(y, -x)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_an_if_of_constants_with_operators_that_openvino_lacks(openvino_ep: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g () => (float[N] u, bool[N] y)
        <float[3] c = {1, -2, 3}, float[3] d = {1, 2, 3}, bool no = {0}> {
            v = Mish (c) u = Hardmax (v) w = Equal (c, d)
            y = If (no) <then_branch = a () => (bool[N] p) { o = Optional (w) g = OptionalGetElement (o) p = Identity (g) },
                else_branch = b () => (bool[N] q) { r = Optional (v) q = Identity (w) }> }"""
    )
    u, y = openvino_ep.prepare(model).run([])
    np.testing.assert_array_equal(u, [0, 0, 1])
    np.testing.assert_array_equal(y, [True, False, True])


def test_that_no_node_runs_on_the_provider_is_what_is_told(openvino_ep: type[omb.Preset]) -> None:
    """Rewritten it runs on the CPU provider alone; as it is, it would end the process."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[3] x) => (float[3] y) <float[1, 1] k = {3}> {
            y = Scan <num_scan_inputs = 1, body = b (float row) => (float z) { s = Neg (x) z = Det (k) }> (x) }"""
    )
    with pytest.raises(MisplacedError, match="no node of the model runs on OpenVINOExecutionProvider.*fallback='full'"):
        openvino_ep.prepare(model)
    with pytest.warns(omb.FallbackWarning):
        prepared = openvino_ep.prepare(model, fallback="full")
    (y,) = prepared.run([np.float32([1, 2, 3])])
    np.testing.assert_array_equal(y, [3, 3, 3])


@pytest.mark.parametrize("opset", [6, 7, 8, 13])
def test_a_float64_is_cast_to_its_own_type(openvino_ep: type[omb.Preset], opset: int) -> None:
    """ONNX Runtime has a Max of float64 since opset 8 alone, and the provider takes no Cast of it."""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (double[N] x) => (double[M] y) {{ y = Cast <to = 11> (x) }}'
    )
    with pytest.warns(omb.FallbackWarning):
        prepared = openvino_ep.prepare(model, fallback="full")
    for size in (3, 5, 2):
        x = np.arange(size) / 3
        np.testing.assert_array_equal(prepared.run([x])[0], x)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_softmax_along_the_third_last_axis_beside_an_optional(openvino_ep: type[omb.Preset]) -> None:
    """OpenVINO's CPU plugin has no kernel of float16 for it, and the provider takes it once nothing else of the model is left."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float16[3, N, 2] x) => (float16[A, B, C] y, float16[D, E, F] z) {
            y = Softmax <axis = -3> (x) o = Optional (x) z = OptionalGetElement (o) }"""
    )
    prepared = openvino_ep.prepare(model)
    for size in (4, 3):
        x = np.random.default_rng(size).uniform(-1, 1, (3, size, 2)).astype(np.float16)
        y, z = prepared.run([x])
        powers = np.exp(x.astype(np.float32))
        np.testing.assert_allclose(y, powers / powers.sum(0), rtol=1e-2)
        np.testing.assert_array_equal(z, x)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_constant_of_a_shape_of_unknown_length_beside_an_optional(openvino_ep: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[L, M, N] x, int64[K] s) => (float[A, B, C] y, float[P] z, float[D, E, F] u, float[G, H, I] v) {
            y = Softplus (x) o = Optional (x) u = OptionalGetElement (o) z = ConstantOfShape (s) v = Identity (u) }"""
    )
    prepared = openvino_ep.prepare(model)
    for size in (4, 3):
        x = np.random.default_rng(size).uniform(-1, 1, (size, 2, 3)).astype(np.float32)
        y, z, u, _ = prepared.run([x, np.array([size])])
        np.testing.assert_allclose(y, np.log1p(np.exp(x)), rtol=1e-4)
        np.testing.assert_array_equal(z, np.zeros(size, np.float32))
        np.testing.assert_array_equal(u, x)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_remainder_of_an_input_that_is_passed_on(openvino_ep: type[omb.Preset]) -> None:
    """OpenVINO's frontend converts one operand to int32 and not the other, however the node is written."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (int64[3] x, int64[3] d) => (int64[3] y, int64[3] z)
        { y = Mod <fmod = 1> (x, d) o = Optional (x) z = OptionalGetElement (o) }"""
    )
    prepared = openvino_ep.prepare(model)
    for x, d in (([17, -17, 5], [5, 5, -7]), ([2, 0, -9], [3, 1, 4])):
        y, z = prepared.run([np.array(x), np.array(d)])
        np.testing.assert_array_equal(y, np.fmod(x, d))
        np.testing.assert_array_equal(z, x)
