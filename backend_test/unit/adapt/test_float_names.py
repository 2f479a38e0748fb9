# SPDX-License-Identifier: Apache-2.0
"""Which values hold floating-point numbers, as far as operators tell at a glance."""

from __future__ import annotations

import onnx.parser
import pytest

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.float_names import float_names

HEAD = '<ir_version: 10, opset_import: ["" : 21, "other" : 1]>'


@pytest.mark.parametrize(
    ("text", "floats"),
    [
        ("(float[n] x) => (float[n] y) { a = Relu (x) b = Shape (x) y = Add (a, x) }", "x a y"),
        ("(int64[n] x) => (int64[n] y) { a = Relu (x) y = Cast <to = 1> (a) }", "y"),
        (
            "(int64[n] x, float16[n] z) => (int64[n] y) { a = Gather (z, x) b = Gather (x, x) y = Where (x, b, x) }",
            "z a",
        ),
        (
            "(int32[n] x) => (int32[n] y) { a = ConstantOfShape (x) b = ConstantOfShape <value = int64[1] {1}> (x) }",
            "a",
        ),
        (
            "(float[n] x) => (float[n] y) { a = Constant <value = float {1.0}> () b = Constant <value_int = 1> () }",
            "x a",
        ),
        ("(float[n] x) => (float[n] y) { y = other.Relu (x) }", "x"),
        (
            """(int64 n, bool c, float x, int64 i) => (float y, int64 z) {
            y, z = Loop (n, c, x, i) <body = b (int64 k, bool d, float s, int64 t) => (bool d, int64 t, float s) { }> }""",
            "x s",
        ),
        (
            """(bool c, float x, int64 i) => (float y) {
            y = If (c) <then_branch = t () => (float a) { b = Neg (x) a = Abs (b) },
                        else_branch = e () => (float a) { b = Neg (i) a = Cast <to = 1> (b) }> }""",
            "x y a",
        ),
        (
            """(bool c, float x, int64 i) => (float y, int64 z) {
            y, z = If (c) <then_branch = t () => (float a, int64 k) { a = Abs (x) k = Neg (i) },
                           else_branch = e () => (float b, int64 k) { b = Neg (x) k = Abs (i) }> }""",
            "x y a b",
        ),
    ],
)
def test_what_is_named_holds_floats(text: str, floats: str) -> None:
    model = onnx.parser.parse_model(f"{HEAD} g {text}")
    assert float_names(model.graph) == set(floats.split())


def test_initializers_count_by_their_type() -> None:
    graph = onnx.parser.parse_graph(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, int64[2] i = {1, 2}> { y = Add (x, w) }"
    )
    assert float_names(graph) == {"x", "w", "y"}


@pytest.mark.parametrize(
    ("text", "doubles"),
    [
        ("(float[n] x) => (float[n] y) { y = Relu (x) }", False),
        ("(double[n] x) => (double[n] y) { y = Relu (x) }", True),
        ("(float[n] x) => (float[n] y) { a = Cast <to = 11> (x) y = Cast <to = 1> (a) }", True),
        ("(float[n] x) => (float[n] y) <double[1] w = {1}> { a = CastLike (x, w) y = CastLike (a, x) }", True),
        ("(float[n] x) => (float[n] y) { y = other.Relu (x) }", True),
        ("(seq(float[n]) x) => (float[n] y) { y = ConcatFromSequence <axis = 0> (x) }", True),
    ],
)
def test_a_model_may_hold_doubles(text: str, doubles: bool) -> None:
    assert Facts(onnx.parser.parse_model(f"{HEAD} g {text}")).may_hold_doubles is doubles
