# SPDX-License-Identifier: Apache-2.0
"""Conditions that are known before anything runs, and numbers that came of a float32."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.intervals.ranges import ranges
from onnx_multi_backend.adapt.intervals.truths import FALSE, TRUE
from onnx_multi_backend.adapt.intervals.values import BOOL

CONSTANTS = "int64[2] few = {1, 3}, int64[2] more = {3, 9}, float[1] near = {3}, bool no = {0}, bool[2] both = {0, 1}"
TRUTHS = {
    "Less (few, more)": BOOL,
    "LessOrEqual (few, more)": TRUE,
    "Greater (more, few)": BOOL,
    "GreaterOrEqual (more, few)": TRUE,
    "Less (more, few)": FALSE,
    "Greater (few, more)": FALSE,
    "Equal (few, more)": BOOL,
    "Equal (three, three)": TRUE,
    "Equal (zero, more)": FALSE,
    "Equal (x, x)": BOOL,
    "Equal (zero, rounded)": FALSE,
    "Equal (rounded, three)": BOOL,
    "Not (no)": TRUE,
    "Not (both)": BOOL,
    "Not (b)": BOOL,
    "And (b, no)": FALSE,
    "And (b, yes)": BOOL,
    "And (yes, yes)": TRUE,
    "Or (b, yes)": TRUE,
    "Or (b, no)": BOOL,
    "Or (no, no)": FALSE,
    "Less (few, x)": BOOL,
    "Cast <to = 9> (few)": TRUE,
    "Cast <to = 9> (x)": BOOL,
    "Less (zero, rounded)": TRUE,
    # Bounds of floating-point numbers may be off by a rounding.
    "LessOrEqual (rounded, three)": BOOL,
    "Less (rounded, three)": BOOL,
    "Cast <to = 9> (zero)": FALSE,
}


@pytest.mark.parametrize("expression", TRUTHS)
def test_what_is_known(expression: str) -> None:
    graph = f"""g (bool b, int64[2] x) => (bool y) <{CONSTANTS}, int64 zero = {{0}}, int64 three = {{3}}, float one = {{1}}> {{
        yes = Not (no) sum = Add (near, one) less = Sub (sum, one) rounded = Cast <to = 7> (less) y = {expression} }}"""
    assert ranges(onnx.parser.parse_graph(graph))["y"] == TRUTHS[expression]


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
