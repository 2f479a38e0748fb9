# SPDX-License-Identifier: Apache-2.0
"""Branches of which it is known beforehand that they never run: what they hold is not a reason to refuse a model."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.unneeded import without_unneeded

#: OpenVINO computes nothing with strings. Names are those of the graph around the branch, and a branch within it reads what the outer one makes.
MODEL = """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (float[2] y) <int64 rate = {8000}, int64 other = {RATE}, bool[2] parts = {1, 0}> {
    is_other = Equal (rate, other)
    y = If (is_other) <
        then_branch = t () => (float[2] a) <float[2] two = {2, 3}> {
            inner = Mul (x, two) no = Not (is_other)
            a = If (no) <then_branch = t2 () => (float[2] b) { b = Neg (inner) }, else_branch = e2 () => (float[2] c) { c = Add (inner, two) }> },
        else_branch = e () => (float[2] a) {
            words = Constant <value = string[2] {"1", "2"}> () lower = StringNormalizer (words) a = Cast <to = 1> (lower) }> }"""


def test_a_model_is_not_refused_for_them(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(onnx.parser.parse_model(MODEL.replace("RATE", "8000")))
    x = np.float32([5, 7])
    np.testing.assert_array_equal(prepared.run(x)[0], x * [2, 3] + [2, 3])
    assert [a.node for a in prepared.adaptations if a.pass_name == "known_branches"] == [
        "If 'y'",
        "If 'y/omb_branch0/a'",
    ]


def test_one_that_runs_is(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(onnx.parser.parse_model(MODEL.replace("RATE", "16000")))


@pytest.mark.parametrize("condition", ["Equal (x, x)", "Identity (parts)"])
def test_one_that_may_run_is_left(condition: str) -> None:
    text = MODEL.replace("RATE", "8000").replace("Equal (rate, other)", condition).replace("float[2] x)", "bool x)")
    model = onnx.parser.parse_model(text)
    assert not [change for change in without_unneeded(model)[1] if change.pass_name == "known_branches"]
