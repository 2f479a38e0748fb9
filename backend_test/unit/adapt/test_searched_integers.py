# SPDX-License-Identifier: Apache-2.0
"""Integers that random graphs showed to come out wrong on OpenVINO, or to be refused in vain."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_searched_forms import parsed

GENERATOR = np.random.default_rng(11)


@pytest.mark.parametrize("made", ["ConvInteger (x, w)", "MatMulInteger (x, v)"])
def test_sums_of_squares_of_what_integer_products_make(openvino: type[omb.Preset], made: str) -> None:
    weights = "uint8[1, 1, 1] w = {255}, uint8[1, 1] v = {255}"
    model = parsed(
        f"(uint8[n, 1, 1] x) => (int32[a, b, c] y) <{weights}> {{ p = {made} y = ReduceSumSquare (p) }}", opset=18
    )
    x = np.uint8([255, 254, 251, 7]).reshape(4, 1, 1)
    (y,) = openvino.prepare(model).run(x)
    assert y.item() == ((x.astype(np.int64) * 255) ** 2).sum().astype(np.int32)


def test_sums_of_integers_out_of_a_sequence(openvino: type[omb.Preset]) -> None:
    model = parsed(
        """(int32[n] a, int32[n] b) => (int32[1] y) <int64 i = {1}> {
        s = SequenceConstruct (a, b) c = SequenceAt (s, i) y = ReduceSum (c) }"""
    )
    x = np.int32([2**24 + 1, 2**25 + 3, 5])
    assert openvino.prepare(model).run([x, x])[0].item() == x.sum()
