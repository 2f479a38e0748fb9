# SPDX-License-Identifier: Apache-2.0
"""What is known of floating-point constants, near the limits of their types and around integers that are made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, numpy_helper

import onnx_multi_backend as omb

pytestmark = [
    pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning"),
    pytest.mark.filterwarnings("ignore::onnx_multi_backend.PrecisionWarning"),
]


def parsed(text: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')


EXTREME: dict[str, tuple[str, list[Any]]] = {
    "by a number near 0": (
        "(int64[n, 2] x) => (double[n, 2] y) <double[2] s = {1e-300, 2}> { f = Cast <to = 11> (x) y = Div (f, s) }",
        [np.array([[0, 2]])],
    ),
    "of constants": (
        "(double[2] x) => (double[2] y) <double[2] a = {1e300, 2}, double[2] s = {1e-300, 64}> { f = Div (a, s) y = Mul (f, x) }",
        [np.array([0.0, 2.0])],
    ),
    "of a power": (
        """(int64[2] i) => (float[2] y) <float[3] a = {1e7, 1, 2}, float e = {44}, float[2] s = {1e-30, 1e-2}> {
        g = Gather (a, i) p = Pow (g, e) y = Div (p, s) }""",
        [np.array([1, 2])],
    ),
    "of a difference": (
        "(int64[2] i) => (double[2] y) <double[2] a = {1e200, 1e200}> { g = Gather (a, i) p = Mul (g, g) q = Sub (p, p) y = Floor (q) }",
        [np.array([1, 0])],
    ),
}


@pytest.mark.parametrize("form", EXTREME)
def test_nothing_is_known_beyond_the_type(preset: type[omb.Preset], form: str) -> None:
    text, feeds = EXTREME[form]
    (got,) = preset.prepare(parsed(text), fallback="full").run(feeds)
    assert got.shape[-1] == 2
    if form == "of a power":
        np.testing.assert_allclose(got, [1e30, 2.0**44 / 1e-2], rtol=1e-6)


@pytest.mark.parametrize("exponent", [np.inf, -np.inf, np.nan])
def test_integers_to_a_power_that_is_no_number(preset: type[omb.Preset], exponent: float) -> None:
    model = parsed("(int32[2] x) => (int32[2] y) <float e = {1}> { y = Pow (x, e) }")
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32(exponent), "e"))
    assert preset.prepare(model, fallback="full").run([np.int32([1, 2])])[0].shape == (2,)


def test_a_power_of_at_most_1_leaves_no_type(preset: type[omb.Preset]) -> None:
    model = parsed("(int64[3] x) => (int64[3] y) <float[3] e = {0, 1, -1}> { y = Pow (x, e) }")
    x = np.array([5, -(2**31), 7])
    np.testing.assert_array_equal(preset.prepare(model, fallback="full").run([x])[0], [1, -(2**31), 0])


@pytest.mark.parametrize(
    ("nodes", "limit", "right"),
    [
        ("g = Gather (minus, i) f = Floor (g) c = Cast <to = 7> (f) y = Mul (c, x)", 8 * 10**8, -24 * 10**8),
        (
            "g = Gather (part, i) c = Cast <to = 7> (g) k = Sub (one, c) a = Mul (k, x) y = Mul (a, nine)",
            10**9,
            9 * 10**9,
        ),
    ],
    ids=["rounded down", "cut off"],
)
def test_integers_made_of_fractions_are_held_to_their_limits(
    preset: type[omb.Preset], nodes: str, limit: int, right: int
) -> None:
    model = parsed(
        f"""(int64[2] i, int64 x) => (int64[2] y)
        <float[2] minus = {{-2.5, -2.5}}, float[2] part = {{0.9, 0.9}}, int64 one = {{1}}, int64 nine = {{9}}> {{ {nodes} }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    i = np.array([0, 1])
    np.testing.assert_array_equal(prepared.run([i, np.array(limit // 1000)])[0], [right // 1000] * 2)
    if preset.name == "OrtCpu":
        np.testing.assert_array_equal(prepared.run([i, np.array(limit)])[0], [right] * 2)
        return
    with pytest.raises(omb.InputError, match="correct results only for values from"):
        prepared.run([i, np.array(limit)])
