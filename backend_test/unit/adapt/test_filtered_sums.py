# SPDX-License-Identifier: Apache-2.0
"""Sums with a convolution: where sizes are open OpenVINO lost a depthwise one of an image of one place, and kept old results for no elements."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

#: What comes between the convolution f and the sum of k, and behind the sum s; with what that makes of numpy's arrays.
BETWEEN = {
    "nothing": ("k = Identity (f)", lambda f, c: f),
    "BatchNormalization": ("k = BatchNormalization (f, b, b, b, v)", lambda f, c: (f - c) / np.sqrt(1 + 1e-5) * c + c),
    "Mul": ("k = Mul (f, c)", lambda f, c: f * c),
}
BEHIND = {
    "Mul": ("y = Mul (s, c)", lambda s, c: s * c),
    "PRelu": ("y = PRelu (s, c)", lambda s, c: np.where(s < 0, s * c, s)),
    "Relu, Add": ("r = Relu (s) y = Add (r, c)", lambda s, c: np.maximum(s, 0) + c),
}


@pytest.mark.parametrize("sizes", ["n, 4, h, w", "n, 4, 1, 1", "1, 4, h, 1"])
@pytest.mark.parametrize("sum_", ["Add", "Sub"])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("between", BETWEEN)
def test_of_one_place_and_of_more(preset: type[omb.Preset], between: str, behind: str, sum_: str, sizes: str) -> None:
    before, of_filtered = BETWEEN[between]
    after, of_sum = BEHIND[behind]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[p, q, r, s] y)
        <float[4, 1, 1, 1] w = {{2, -1, 3, 0.5}}, float[4, 1, 1] c = {{1, 2, -3, 4}}, float[4] b = {{1, 2, -3, 4}}, float[4] v = {{1, 1, 1, 1}}> {{
        f = Conv <group = 4> (x, w) g = Relu (x) {before} s = {sum_} (g, k) {after} }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    w, c = (np.float32(v).reshape(4, 1, 1) for v in ([2, -1, 3, 0.5], [1, 2, -3, 4]))
    for shape in ((1, 4, 1, 1), (2, 4, 1, 1), (1, 4, 3, 5), (1, 4, 1, 1)):
        if (shape[0] > 1 and sizes.startswith("1")) or (shape[3] > 1 and sizes != "n, 4, h, w"):
            continue
        x = np.random.default_rng(len(behind)).normal(size=shape).astype(np.float32)
        filtered = of_filtered(x * w, c)
        s = np.maximum(x, 0) + (filtered if sum_ == "Add" else -filtered)
        np.testing.assert_allclose(prepared.run([x])[0], of_sum(s, c), rtol=1e-4, atol=1e-4)


def test_where_all_sizes_are_known_nothing_is_changed(openvino: type[omb.Preset]) -> None:
    for sizes in ("1, 2, 1, 1", "n, 2, 3, 3"):
        model = onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x, float[2, 1, 1, 1] w) => (float[p, q, r, s] y) {{
            f = Conv <group = 2> (x, w) g = Relu (x) s = Add (g, f) y = Relu (s) }}"""
        )
        assert not openvino.prepare(model).adaptations


#: What a Slice empties beside a sum with a convolution: its other operand, or the convolution.
EMPTIED = {
    "the convolution": "v = Slice (x, one, most, zero) f = Conv (v, w) y = Add (f, x)",
    "the other": "v = Slice (x, one, most, zero) f = Conv (x, w) y = Add (v, f)",
    "one of two convolutions": "v = Slice (x, one, most, zero) e = Conv (v, w) f = Conv (x, w) y = Add (f, e)",
    "the other, of several": "v = Slice (x, one, most, zero) f = Conv (x, w) y = Sum (f, v)",
}


@pytest.mark.parametrize("form", EMPTIED)
def test_where_one_operand_is_emptied(preset: type[omb.Preset], form: str) -> None:
    """OpenVINO gave the results of the run before, and of the next run wrong ones."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[n, 2, 3] x) => (float[m, 2, 3] y)
        <float[2, 2, 1] w = {{1, 2, 3, 4}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] most = {{9}}> {{ {EMPTIED[form]} }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    for n in (2, 1, 2, 1):
        x = np.random.default_rng(n).normal(size=(n, 2, 3)).astype(np.float32)
        filtered = np.einsum("oi,nil->nol", np.float32([[1, 2], [3, 4]]), x)
        expected = filtered[1:] + x if form == "the convolution" else filtered + x[1:]
        if form == "one of two convolutions":
            expected = filtered + filtered[1:]
        np.testing.assert_allclose(prepared.run([x])[0], expected, rtol=1e-5, atol=1e-5, strict=True)


def test_where_an_input_is_empty(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[n, 2, l] x, float[m, 2, k] z) => (float[p, 2, r] y)
        <float[2, 2, 1] w = {1, 2, 3, 4}> { f = Conv (x, w) r = Relu (z) y = Add (f, r) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    for n, m, k in ((2, 1, 3), (1, 0, 3), (2, 1, 1), (1, 2, 3), (1, 0, 1)):
        x, z = (np.random.default_rng(n).normal(size=s).astype(np.float32) for s in ((n, 2, 3), (m, 2, k)))
        expected = np.einsum("oi,nil->nol", np.float32([[1, 2], [3, 4]]), x) + np.maximum(z, 0)
        np.testing.assert_allclose(prepared.run([x, z])[0], expected, rtol=1e-5, atol=1e-5, strict=True)


def test_what_is_emptied_together_stays(openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[n, 2, l] x) => (float[m, 2, k] y)
        <float[2, 2, 1] w = {1, 2, 3, 4}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] most = {9}> {
        v = Slice (x, one, most, zero) f = Conv (v, w) y = Add (f, v) }"""
    )
    assert not openvino.prepare(model).adaptations


@pytest.mark.parametrize("sizes", ["n, 1, 3, 4", "n, 1, h, w", "1, 1, 3, 4"])
@pytest.mark.parametrize("sum_", ["Add (p, q)", "Sub (p, q)", "Sub (p, d)"])
@pytest.mark.parametrize("strides", [[1, 1], [2, 1]])
def test_of_one_channel(preset: type[omb.Preset], strides: list[int], sum_: str, sizes: str) -> None:
    """OpenVINO lost a convolution of a small image of one channel, of which another one is summed."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[a, b, c, d] y) <float[2, 1, 2, 2] v = {{1, 2, 3, 4, 5, 6, 7, 8}},
        float[2, 1, 2, 2] w = {{1, 1, 1, 1, -1, 1, -1, 1}}, float z = {{3}}> {{ p = Conv <strides = {strides}> (x, v) q = Conv <strides = {strides}> (x, w)
        d = Mul (q, z) y = {sum_} }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    for n in (1, 2, 1) if sizes.startswith("n") else (1,):
        x = np.random.default_rng(n).normal(size=(n, 1, 3, 4)).astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(x[:, 0], (2, 2), axis=(1, 2))[
            :, :: strides[0], :: strides[1]
        ]
        p, q = (
            np.einsum("nhwij,oij->nohw", windows, np.float32(weights).reshape(2, 2, 2))
            for weights in (range(1, 9), (1, 1, 1, 1, -1, 1, -1, 1))
        )
        expected = {"Add (p, q)": p + q, "Sub (p, q)": p - q, "Sub (p, d)": p - 3 * q}[sum_]
        np.testing.assert_allclose(prepared.run([x])[0], expected, rtol=1e-4, atol=1e-4)
