# SPDX-License-Identifier: Apache-2.0
"""Passes that look from node to node: bodies that name their values alike, and types that no pass is about."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized
from backend_test.unit.adapt.test_searched_forms import parsed

EYE = "1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1"
CONSTANTS = f"""float s = {{0.1}}, uint8 z = {{0}}, float[4] ws = {{0.1, 0.2, 0.3, 0.4}}, int8[4, 4] qw = {{{EYE}}}, float bs = {{0.1}},
    int32[4] stored = {{1, 2, 3, 4}}"""
#: What one body makes of `a`, by way of `b`, and the other of `b`, by way of `a`.
BODIES = {
    "a product": "{b} = Identity ({a}) {o} = MatMul ({b}, wd)",
    "a product with a bias": "{b} = Identity ({a}) {o} = Gemm ({b}, wd, bd)",
    "the largest element": "{b} = Relu ({a}) {o}m = ReduceMax <axes = [1], keepdims = 0> ({b}) {o}k = Concat <axis = 0> ({b}, {b}) {o} = Add ({b}, wd2)",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_two_bodies_that_name_their_values_crosswise(preset: type[omb.Preset], body: str) -> None:
    """`prepare` went from one to the other and back, for ever."""
    one, other = (BODIES[body].format(a=a, b=b, o=o) for a, b, o in (("a", "b", "bo"), ("b", "a", "ao")))
    model = parsed(
        f"""(float[2, 3, 4] x) => (float[2, 3, 4] u, float[2, 3, 4] v) <{CONSTANTS}, float wd2 = {{2}}> {{
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) wd = DequantizeLinear <axis = 0> (qw, ws) bd = DequantizeLinear (stored, bs)
        u = Scan <num_scan_inputs = 1, body = b1 (float[3, 4] a) => (float[3, 4] bo) {{ {one} }}> (d)
        v = Scan <num_scan_inputs = 1, body = b2 (float[3, 4] b) => (float[3, 4] ao) {{ {other} }}> (d) }}""",
        13,
    )
    x = np.random.default_rng(0).uniform(0, 2, (2, 3, 4)).astype(np.float32)
    for made, right in zip(preset.prepare(model, fallback="full").run(x), unoptimized(model, x), strict=True):
        np.testing.assert_allclose(made, right, atol=1e-4)


def test_the_largest_of_two_concatenated_tensors_of_bool(
    ort_cpu: type[omb.Preset], openvino_ep: type[omb.Preset]
) -> None:
    model = parsed(
        """(bool[2, 3] x, bool[2, 3] y) => (bool[1, 3] r) <int64[1] axis = {0}> {
        c = Concat <axis = 0> (x, y) r = ReduceMax <keepdims = 1> (c, axis) }""",
        20,
    )
    x, y = np.array([[1, 0, 0], [1, 0, 0]], bool), np.array([[0, 0, 1], [0, 0, 0]], bool)
    (made,) = openvino_ep.prepare(model, fallback="full").run([x, y])
    np.testing.assert_array_equal(made, [[True, False, True]])


def test_branches_whose_outputs_share_a_name(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float[4, 4] x, bool c) => (bool[4, 4] p, float[4, 4] o) {
        p = If (c) <then_branch = t1 () => (bool[4, 4] r) { r0 = MatMul (x, x) r = Greater (r0, x) },
            else_branch = e1 () => (bool[4, 4] e) { e = Less (x, x) }>
        o = If (c) <then_branch = t2 () => (float[4, 4] r) { w = Softmax (x) r = MatMul (w, x) },
            else_branch = e2 () => (float[4, 4] f) { f = Neg (x) }> }""",
        13,
    )
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    weights = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    greater, product = preset.prepare(model, fallback="full").run([x, np.array(True)])
    np.testing.assert_array_equal(greater, x @ x > x)
    np.testing.assert_allclose(product, weights @ x, rtol=1e-4, atol=1e-5)


def test_the_indices_of_a_pool_of_quantized_values(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float[1, 2, 8] x) => (float[1, 2, 4] y, int64[1, 2, 1] r) <float s = {0.1}, uint8 z = {0}> {
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) y, i = MaxPool <kernel_shape = [2], strides = [2]> (d)
        r = ReduceSum <axes = [2]> (i) }""",
        11,
    )
    x = np.random.default_rng(0).uniform(0, 5, (1, 2, 8)).astype(np.float32)
    for made, right in zip(preset.prepare(model, fallback="full").run(x), unoptimized(model, x), strict=True):
        np.testing.assert_allclose(made, right, atol=1e-5)


def test_a_branch_that_reads_scales_from_outside(ort_cpu: type[omb.Preset]) -> None:
    model = parsed(
        """(float[1, 2, 4, 4] x, bool c) => (float[1, 2, 3, 3] o) <float[1] s = {0.1}, uint8[1] z = {3}> {
        o = If (c) <then_branch = t () => (float[1, 2, 3, 3] r) { q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z)
            p = AveragePool <kernel_shape = [2, 2]> (y) q2 = QuantizeLinear (p, s, z) r = DequantizeLinear (q2, s, z) },
            else_branch = e () => (float[1, 2, 3, 3] r2) { r2 = MaxPool <kernel_shape = [2, 2]> (x) }> }""",
        13,
    )
    x = np.random.default_rng(0).uniform(0, 5, (1, 2, 4, 4)).astype(np.float32)
    (right,) = unoptimized(model, x, c=np.array(True))
    np.testing.assert_allclose(ort_cpu.prepare(model).run([x, np.array(True)])[0], right, atol=0.11)


def test_two_branches_whose_biases_share_a_name(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float[p, q] x, float[q, s] w, bool c) => (float[p, s] y) <float[2] b = {1, 2}, float[1] one = {5}> {
        y = If (c) <then_branch = t () => (float[n, m] o) { k = Identity (b) o = Gemm (x, w, k) },
            else_branch = e () => (float[n2, m2] o2) { k = Identity (one) o2 = Gemm (x, w, k) }> }""",
        18,
    )
    x, w = np.float32([[2]]), np.float32([[3, 4]])
    prepared = preset.prepare(model, fallback="full")
    np.testing.assert_allclose(prepared.run([x, w, np.array(True)])[0], [[7, 10]])
    np.testing.assert_allclose(prepared.run([x, w, np.array(False)])[0], [[11, 13]])


def test_two_branches_whose_vectors_share_a_name(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float[2, 2, 3] x) => (float[a, b] y) <float k = {3}, bool c = {0}> {
        y = If (c) <then_branch = t () => (float[n, m, l] o) { w = Constant <value = float[3, 2] {1, 2, 3, 4, 5, 6}> () p = MatMul (x, w) o = Mul (p, k) },
            else_branch = e () => (float[n2, m2] o2) { w = Constant <value = float[3] {1, 2, 3}> () p = MatMul (x, w) o2 = Mul (p, k) }> }""",
        18,
    )
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], x @ np.float32([3, 6, 9]), rtol=1e-6)


@pytest.mark.parametrize("node", ["w = cu.Constant (x)", "w = cu.Identity ()", "w = cu.Shape (x)"])
def test_nodes_of_another_domain_that_nothing_reads(openvino_ep: type[omb.Preset], node: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18, "cu": 1]> g (float[6] x) => (float[a, b] y) <int64[2] t = {{3, 2}}, float[1, 1] k = {{1}}> {{
        {node} v = Reshape (x, t) y = Add (v, k) }}"""
    )
    if "Identity" not in node:
        del model.graph.node[0].output[:]
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(openvino_ep.prepare(model, fallback="full").run([x])[0], x.reshape(3, 2) + 1)


#: What both branches of an If make of `x` under the same names, and what the second one makes of that.
ALIKE = {
    "an attention": (
        "r = Relu (x) q = Transpose <perm = [0, 2, 1, 3]> (r) a = MatMul (q, k) s = Softmax (a) {made} = MatMul (s, v)",
        (2, 3, 3, 4),
    ),
    "a leaky activation": ("a = Relu (x) n = Neg (x) b = Relu (n) d = Mul (b, w) {made} = Sub (a, d)", (2, 3, 4, 1)),
    "sums": ("u = ReduceSum <keepdims = 0> (x, last) {made} = ReduceSum <keepdims = 0> (u, last)", (2, 3, 4, 5)),
}


@pytest.mark.parametrize("form", ALIKE)
@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_branches_that_name_their_values_alike(preset: type[omb.Preset], form: str, chosen: bool) -> None:
    """What looks from node to node left such names out, and OpenVINO's faults in."""
    made, sizes = ALIKE[form]
    shape = ", ".join(map(str, sizes))
    model = parsed(
        f"""(bool c, float[{shape}] x, float[2, 3, 4, 5] k, float[2, 3, 5, 4] v) => (float y) <int64[1] last = {{-1}},
        float[8] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> {{ y = If (c)
        <then_branch = t () => (float t1) {{ {made.format(made="t1")} }}, else_branch = e () => (float e1) {{ {made.format(made="z")} e1 = Neg (z) }}> }}""",
        17,
    )
    for graph in (model.graph, *(attribute.g for node in model.graph.node for attribute in node.attribute)):
        for value in graph.output:
            value.type.tensor_type.ClearField("shape")
    rng = np.random.default_rng(0)
    feeds = {
        name: rng.normal(size=size).astype(np.float32)
        for name, size in (("x", sizes), ("k", (2, 3, 4, 5)), ("v", (2, 3, 5, 4)))
    }
    feeds["c"] = np.array(chosen)
    (result,) = preset.prepare(model, fallback="full").run(feeds)
    (wanted,) = unoptimized(model, **feeds)
    assert result.shape == wanted.shape
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
