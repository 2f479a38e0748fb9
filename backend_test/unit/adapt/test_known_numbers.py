# SPDX-License-Identifier: Apache-2.0
"""Conditions that are computed from constants are known beforehand, and no others."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.known_numbers import known_numbers

CONSTANTS = """bool no = {0}, bool[1, 1] yes = {1}, bool[2] both = {0, 1}, int64 two = {2}, int64[1] three = {3}, int64[2] few = {1, 3}, int64[0] none = {},
    float half = {0.5}, float big = {3e38}, uint8 low = {5}, uint8 high = {7}, int32 last = {2147483647}, int32 one = {1}, int64 long = {9007199254740993}, double wide = {0.5}"""
KNOWN = {
    "Less (two, three)": True,
    "GreaterOrEqual (two, three)": False,
    "Equal (two, two)": True,
    "Not (yes)": False,
    "And (no, yes)": False,
    "Or (no, yes)": True,
    "Xor (yes, yes)": False,
    "Add (two, three)": 5,
    "Sub (low, high)": None,
    "Sub (high, low)": 2,
    "Add (last, one)": None,
    "Mul (long, long)": None,
    "Add (long, two)": 9007199254740995,
    "Add (half, half)": 1.0,
    "Add (big, big)": np.inf,
    "Add (wide, wide)": None,
    "Cast <to = 7> (half)": 0,
    "Cast <to = 9> (two)": True,
    "Cast <to = 3> (last)": None,
    "Cast <to = 1> (long)": None,
    "Cast <to = 1> (last)": 2147483648.0,
    "Cast <to = 10> (big)": None,
    "Less (undefined, half)": False,
    "Cast <to = 7> (infinite)": None,
    "Cast <to = 9> (infinite)": None,
    "Reshape (three, few)": 3,
    "Squeeze (yes)": True,
    "Not (both)": None,
    "Less (few, three)": None,
    "Less (none, three)": None,
    "ReduceSum (few)": None,
    "ReduceMax (none)": None,
    "And (no, given)": None,
    "Less (two, default)": None,
    "Size (few)": None,
}


@pytest.mark.parametrize("expression", KNOWN)
def test_what_is_known(expression: str) -> None:
    graph = onnx.parser.parse_graph(
        f"g (bool given, int64 default = {{4}}) => (bool y) <{CONSTANTS}> {{ infinite = Add (big, big) undefined = Sub (infinite, infinite) y = {expression} }}"
    )
    assert known_numbers(graph).get("y") == KNOWN[expression]


X = np.float32([1, -2])
#: What bounds alone would get wrong: sums of any number of elements, extremes of none, numbers that wrap around, round or overflow.
CONDITIONS = {
    "many ones": (
        "zero = Constant <value = float {0}> () m = Greater (z, zero) k = Cast <to = 7> (m) s = ReduceSum <keepdims = 0> (k) c = Greater (s, many)",
        True,
    ),
    "none": ("w = Slice (few, first, first) extreme = ReduceMax <keepdims = 0> (w) c = Greater (extreme, many)", False),
    "rounded": ("p = Mul (part, ten) i = Cast <to = 7> (p) k = Add (i, zeros) c = Equal (k, seven)", True),
    "overflow": ("s = Add (huge, huge) d = Sub (s, s) c = Less (d, ten)", False),
}


@pytest.mark.parametrize("form", ["If", "Loop"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_is_not_known_is_computed(preset: type[omb.Preset], condition: str, form: str) -> None:
    nodes, is_true = CONDITIONS[condition]
    if condition == "none" and form == "Loop":
        pytest.skip(
            "OpenVINO computes the condition while it loads the model, and drops the states of a loop of no steps"
        )
    choosing = {
        "If": "y = If (c) <then_branch = t () => (float[2] a) { a = Neg (x) }, else_branch = e () => (float[2] b) { b = Abs (x) }>",
        "Loop": """two = Constant <value = int64 {2}> () y, q = Loop (two, c, x, x) <body = body (int64 i, bool go, float[2] a, float[2] s)
            => (bool more, float[2] b, float[2] t) { more = Identity (go) t = Neg (s) b = Add (a, x) }>""",
    }[form]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[2] x, float[m] z) => (float[2] y, float[2] other)
        <int64[1] few = {{7}}, int64[1] first = {{0}}, int64 many = {{1500}}, float part = {{0.7}}, float ten = {{10}}, int64 zeros = {{0}}, int64 seven = {{7}}, float huge = {{3e38}}, int64 twice = {{2}}, bool on = {{1}}> {{
        other = Loop (twice, on, x) <body = unneeded (int64 n, bool d, float[2] e) => (bool f, float[2] g1) {{ f = Identity (d) g1 = Neg (e) dead = Abs (e) }}>
        {nodes} {choosing} }}"""
    )
    expected = {("If", True): -X, ("If", False): np.abs(X), ("Loop", True): 3 * X, ("Loop", False): X}[form, is_true]
    try:
        prepared = preset.prepare(model, fallback="full")
    except omb.UnsupportedModelError:
        pytest.skip("refused, not wrong")
    np.testing.assert_array_equal(prepared.run([X, np.ones(3000, np.float32)])[0], expected)


#: The first Loop has the model looked through for what is not needed.
SIBLINGS = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] other, float[2] y, float[2] z) <bool on = {1}, int64 twice = {2}> {
    other = Loop (twice, on, x) <body = unneeded (int64 n, bool d, float[2] e) => (bool f, float[2] g1) { f = Identity (d) g1 = Neg (e) dead = Abs (e) }>
    a = If (on) <then_branch = t () => (float[2] u) { u = If (on) <then_branch = t1 () => (float[2] v) <float[2] k = {3, 4}> { v = Mul (x, k) },
            else_branch = e1 () => (float[2] l) { l = Abs (x) }> }, else_branch = e () => (float[2] b) { b = Abs (x) }>
    z = If (on) <then_branch = t2 () => (float[2] u) { u = If (on) <then_branch = t3 () => (float[2] v) <float[2] k = {5, 6}> { v = Mul (x, k) },
            else_branch = e3 () => (float[2] l) { l = Abs (x) }> }, else_branch = e2 () => (float[2] b) { b = Abs (x) }>
    y = Neg (a) }"""


def test_equal_names_in_branches(openvino: type[omb.Preset]) -> None:
    """What stands in two branches under one name is two values."""
    model = onnx.parser.parse_model(SIBLINGS)
    for place, node in enumerate(node for node in model.graph.node if node.op_type == "If"):
        node.name = f"If_{place}"
        node.attribute[0].g.node[0].name = "inner"
    _, y, z = openvino.prepare(model).run(X)
    np.testing.assert_array_equal(y, -X * [3, 4])
    np.testing.assert_array_equal(z, X * [5, 6])


def test_integers_are_rounded_once(openvino: type[omb.Preset]) -> None:
    """float64 between would round 2**60 + 2**36 + 1 down."""
    graph = f"g () => (float y) <int64 long = {{{2**60 + 2**36 + 1}}}> {{ y = Cast <to = 1> (long) }}"
    assert "y" not in known_numbers(onnx.parser.parse_graph(graph))
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[3] x) => (float[3] y, int64 z) <int64 a = {2}, int64 b = {3}> {
        m = Add (a, b) "m/omb_steps" = Neg (a) z = Neg ("m/omb_steps")
        y = Loop (m, , x) <body = body (int64 i, bool c, float[3] s) => (bool d, float[3] t) { d = Identity (c) t = Add (s, x) }> }"""
    y, z = openvino.prepare(onnx.parser.parse_model(text)).run(np.float32([1, 2, 3]))
    np.testing.assert_array_equal(y, [6, 12, 18])
    assert z == 2
