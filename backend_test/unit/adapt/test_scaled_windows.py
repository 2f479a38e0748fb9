# SPDX-License-Identifier: Apache-2.0
"""What is multiplied by a constant along an image axis, and convolved: OpenVINO scales the window instead, without a word."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

X = np.random.default_rng(0).normal(size=(2, 2, 3)).astype(np.float32)
WEIGHTS = np.float32([[[1, 2, 3], [-1, 0.5, 2]]])
FACTORS = np.float32([1, 20, -3])


@pytest.mark.parametrize("sizes", ["2, 2, 3", "n, 2, m"])
@pytest.mark.parametrize(
    ("scaled", "image"),
    [
        ("a = Mul (x, s)", X * FACTORS),
        ("a = Mul (s, x)", X * FACTORS),
        ("a = Div (x, s)", X / FACTORS),
        (
            "a = LayerNormalization <axis = -1, epsilon = 0.0> (x, s)",
            (X - X.mean(2, keepdims=True)) / X.std(2, keepdims=True) * FACTORS,
        ),
        ("a = Mul (x, c)", X * np.float32([[5], [7]])),
    ],
)
def test_places_of_the_image_are_scaled(preset: type[omb.Preset], scaled: str, image: np.ndarray, sizes: str) -> None:
    model = parsed(
        f"""(float[{sizes}] x) => (float[p, q, r] y) <float[3] s = {{1, 20, -3}}, float[2, 1] c = {{5, 7}}, float[1, 2, 3] w = {{1, 2, 3, -1, 0.5, 2}}>
            {{ {scaled} y = Conv <pads = [1, 1]> (a, w) }}"""
    )
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1)))
    right = np.stack([(padded[:, :, i : i + 3] * WEIGHTS).sum((1, 2)) for i in range(3)], -1)[:, None]
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([X])[0], right, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("between", ["b = Neg (a)", "b = Mul (a, h)", "b = Cast <to = 1> (a)", "b = Identity (a)"])
@pytest.mark.parametrize(
    "factor", ["k = Unsqueeze (s, first)", "k = Abs (s)", "k = Constant <value_floats = [1.0, 20.0, 3.0]> ()"]
)
def test_whatever_is_between_and_however_the_factor_is_made(
    preset: type[omb.Preset], factor: str, between: str
) -> None:
    model = parsed(
        f"""(float[n, 2, m] x) => (float[p, q, r] y) <float[3] s = {{1, 20, 3}}, float h = {{0.5}}, int64[1] first = {{0}},
            float[1, 2, 3] w = {{1, 2, 3, -1, 0.5, 2}}> {{ {factor} a = Mul (x, k) {between} y = Conv <pads = [1, 1]> (b, w) }}"""
    )
    image = X * np.abs(FACTORS) * (-1 if "Neg" in between else 0.5 if "Mul" in between else 1)
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1)))
    right = np.stack([(padded[:, :, i : i + 3] * WEIGHTS).sum((1, 2)) for i in range(3)], -1)[:, None]
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([X])[0], right, rtol=1e-4, atol=1e-3)


def test_a_column_is_not_a_factor_of_channels(preset: type[omb.Preset]) -> None:
    model = parsed(
        """(float[n, 1, 2, 3] x) => (float[p, q, r, o] y) <float[2, 1] c = {5, 7}, float[1, 1, 2, 1] w = {1, 2}>
        { a = Mul (x, c) y = Conv <pads = [1, 0, 0, 0]> (a, w) }"""
    )
    x = X[:1, :, None].transpose(0, 2, 1, 3).copy()
    image = x * np.float32([[5], [7]])
    padded = np.pad(image, ((0, 0), (0, 0), (1, 0), (0, 0)))
    right = padded[:, :, :-1] + 2 * padded[:, :, 1:]
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([x])[0], right, rtol=1e-4, atol=1e-3)
