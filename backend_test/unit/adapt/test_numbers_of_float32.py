# SPDX-License-Identifier: Apache-2.0
"""Integers that come of a float32: OpenVINO compares them in float32, which holds each of them."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb


def test_numbers_of_a_float32_are_compared_as_they_are(openvino: type[omb.Preset]) -> None:
    """Numbers that are integers from the start are not: beyond 2**24 OpenVINO rounds them to float32."""
    model = """<ir_version: 8, opset_import: ["": 14]> g (float[3] a, float[3] b) => (bool[3] y)
        { i = Cast <to = 7> (a) j = Cast <to = 7> (b) k = Squeeze (j) y = Less (i, k) }"""
    prepared = openvino.prepare(onnx.parser.parse_model(model))
    assert not [change for change in prepared.adaptations if change.pass_name == "exact_integers"]
    a, b = np.float32([2**24 + 2, 2**24, -5]), np.float32([2**24, 2**24 + 2, 2**30])
    np.testing.assert_array_equal(prepared.run([a, b])[0], [False, True, True])


@pytest.mark.parametrize("more", ["k = BitwiseNot (j)", "k = Add (j, i)"])
def test_what_is_computed_of_them_is_not(more: str, openvino: type[omb.Preset]) -> None:
    model = f"""<ir_version: 8, opset_import: ["": 18]> g (float[1] a, float[1] b) => (bool[1] y)
        {{ i = Cast <to = 6> (a) j = Cast <to = 6> (b) {more} l = Neg (k) y = Less (l, i) }}"""
    prepared = openvino.prepare(onnx.parser.parse_model(model))
    assert [change for change in prepared.adaptations if change.pass_name == "exact_integers"]
