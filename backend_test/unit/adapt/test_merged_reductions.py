# SPDX-License-Identifier: Apache-2.0
"""Reductions of what the same reduction made, which OpenVINO takes at once."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized

HEAD = '<ir_version: 8, opset_import: ["": 17]>'
MEANS = {
    "of a batch": "u = GlobalAveragePool (v) y = ReduceMean <axes = [0]> (u)",
    "dropped": "u = ReduceMean <axes = [-2, -1], keepdims = 0> (v) s = ReduceMean <axes = [0], keepdims = 0> (u) y = Unsqueeze (s, axes)",
    "batch first": "u = ReduceMean <axes = [0]> (v) y = GlobalAveragePool (u)",
    "one by one": "t = ReduceMean <axes = [3]> (v) u = ReduceMean <axes = [2]> (t) y = ReduceMean <axes = [0]> (u)",
    "over an Identity": "u = GlobalAveragePool (v) t = Identity (u) y = ReduceMean <axes = [0]> (t)",
}


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("sizes", ["2, 3, 8, 8", "n, 3, 8, 8", "n, c, h, w"])
def test_means_of_means(preset: type[omb.Preset], name: str, sizes: str) -> None:
    model = onnx.parser.parse_model(
        f"""{HEAD} g (float[{sizes}] x) => (float[1, c, 1, 1] y) <int64[3] axes = {{0, 2, 3}}> {{
            v = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) {MEANS[name]} }}"""
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    right = x.reshape(2, 3, 4, 2, 4, 2).max((3, 5)).mean((0, 2, 3), keepdims=True)
    prepared = preset.prepare(model, fallback="full")
    for _ in range(3):
        np.testing.assert_allclose(prepared.run([x])[0], right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mean", ["ReduceMean <axes = [0, 2, 3]>", "MeanVarianceNormalization"])
def test_a_mean_of_an_output_of_sizes_that_are_not_declared(preset: type[omb.Preset], mean: str) -> None:
    model = onnx.parser.parse_model(
        f"""{HEAD} g (float[n, 3, 8, 8] x) => (float[a, b, c, d] v, float[e, f, g, h] y) {{
            v = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) y = {mean} (v) }}"""
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    pooled = x.reshape(2, 3, 4, 2, 4, 2).max((3, 5))
    right = pooled.mean((0, 2, 3), keepdims=True)
    if "Variance" in mean:
        right = (pooled - right) / pooled.std((0, 2, 3), keepdims=True)
    prepared = preset.prepare(model, fallback="full")
    for _ in range(3):
        np.testing.assert_allclose(prepared.run([x])[1], right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "operator", ["ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceSumSquare"]
)
@pytest.mark.parametrize(("first", "second"), [([3], [-1]), ([-1], [-2]), ([2, 3], [-1]), ([1], [-1, 0]), ([3], [1])])
@pytest.mark.parametrize("between", ["", "i = Identity (u)"])
def test_negative_axes_behind_dropped_ones(
    preset: type[omb.Preset], operator: str, first: list[int], second: list[int], between: str
) -> None:
    """They were counted from the end of what the first reduction reads."""

    def node(made: str, read: str, axes: list[int], name: str) -> str:
        if operator == "ReduceSum":
            return f"{made} = ReduceSum <keepdims = 0> ({read}, {name})"
        return f"{made} = {operator} <axes = {axes}, keepdims = 0> ({read})"

    lists = [
        f"int64[{len(axes)}] {name} = {{{', '.join(map(str, axes))}}}" for name, axes in (("f", first), ("s", second))
    ]
    body = f"{node('u', 'x', first, 'f')} {between} {node('y', 'i' if between else 'u', second, 's')}"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[2, 3, 4, 5] x) => (float y) <{", ".join(lists)}> {{ {body} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.random.default_rng(0).uniform(0.5, 1.5, (2, 3, 4, 5)).astype(np.float32)
    (made,) = preset.prepare(model).run([x])
    (wanted,) = unoptimized(model, x)
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made, wanted, rtol=1e-4)


@pytest.mark.parametrize(
    "nodes",
    [
        "u = ReduceSum <keepdims = 0> (x, a) i = Cast <to = 1> (u) y = ReduceSum <keepdims = 0> (i, a)",
        "u = ReduceSum <keepdims = 0> (x, a) i = Reshape (u, sizes) y = ReduceSum <keepdims = 0> (i, a)",
        "u = ReduceSumSquare <axes = [-1], keepdims = 0> (x) y = ReduceSum <keepdims = 0> (u, a)",
        "u = ReduceSum <keepdims = 0> (x, a) y = ReduceLogSum <axes = [-1], keepdims = 0> (u)",
    ],
)
def test_negative_axes_behind_other_sums(preset: type[omb.Preset], nodes: str) -> None:
    model = onnx.parser.parse_model(
        f"""{HEAD} g (float[2, 3, 4, 5] x) => (float[2, 3] y) <int64[1] a = {{-1}}, int64[3] sizes = {{2, 3, 4}}> {{ {nodes} }}"""
    )
    x = np.random.default_rng(0).uniform(0.5, 1.5, (2, 3, 4, 5)).astype(np.float32)
    (made,) = preset.prepare(model).run([x])
    np.testing.assert_allclose(made, unoptimized(model, x)[0], rtol=1e-4)
