# SPDX-License-Identifier: Apache-2.0
"""Ifs whose conditions are known, which ONNX Runtime replaces by their branches.

1.24 lost large constants in them, or died of them; 1.24 to 1.32 lose what another If or Loop in two of them reads, or die of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.conftest import without_the_plugin
from onnx_multi_backend.engines.ort.chosen_branches import of_branches
from onnx_multi_backend.models.contents import Contents

SIZE = 45
CONSTANT = np.arange(SIZE, dtype=np.float32) / 4
NUMBERS = ", ".join(map(str, CONSTANT))


def branching(depth: int, condition: str) -> str:
    """The nodes of an If in an If, the innermost of which adds a constant to x; the last makes ``r<depth>``."""
    if not depth:
        return f"c = Constant <value = float[{SIZE}] {{{NUMBERS}}}> () r0 = Add (c, x)"
    inner = branching(depth - 1, condition)
    return f"""r{depth} = If ({condition}) <
        then_branch = then{depth} () => (float[{SIZE}] r{depth - 1}) {{ {inner} }},
        else_branch = else{depth} () => (float[{SIZE}] z{depth}) {{ z{depth} = Neg (x) }}>"""


@pytest.mark.parametrize("condition", ["known", "computed"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_they_are_computed(preset: type[omb.Preset], depth: int, condition: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[{SIZE}] x) => (float[{SIZE}] y)
        <bool known = {{1}}, bool unknown = {{0}}> {{
        computed = Not (unknown) {branching(depth, condition)} y = Exp (r{depth}) }}"""
    )
    prepared = preset.prepare(model)
    for factor in (-1, 0.5, -1):
        x = np.linspace(-2, 1, SIZE, dtype=np.float32) * np.float32(factor)
        np.testing.assert_allclose(prepared.run([x])[0], np.exp(CONSTANT + x), rtol=1e-5)


def test_constants_computed_in_a_branch(preset: type[omb.Preset]) -> None:
    """An outer constant of 100 bytes is one of 200 there, computed beforehand."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 14]> g (float[25] x, bool b) => (float[25] y)
        <bool known = {{1}}, int32 depth = {{3}}, float[2] ends = {{0, 1}}, float[25] outer = {{{", ".join(map(str, range(25)))}}}> {{
        y = If (b) <then_branch = t () => (float[25] yt) {{
            i = If (known) <then_branch = tt () => (bool it) {{ l = Cast <to = 11> (outer) o = OneHot (l, depth, ends) it = Identity (b) }},
                else_branch = te () => (bool ie) {{ ie = Identity (b) }}>
            yt = Neg (x)
        }}, else_branch = e () => (float[25] ye) {{ ye = Abs (x) }}> }}"""
    )
    prepared = preset.prepare(model)
    x = np.linspace(-2, 1, 25, dtype=np.float32)
    for b in (True, False, True):
        np.testing.assert_array_equal(prepared.run([x, np.array(b)])[0], -x if b else np.abs(x))


#: What makes p of w, which is made in the outer branch, u, made in the inner one, and b, a bool; and what it is.
WITHIN = {
    "If": (
        """p = If (b) <then_branch = t () => (float[n] pt) { pt = Sub (u, w) }, else_branch = e () => (float[n] pe) { pe = Abs (w) }>""",
        lambda w, b: np.sin(w) - w if b else np.abs(w),
    ),
    "If in an If": (
        """p = If (b) <then_branch = t () => (float[n] pt) {
            pt = If (b) <then_branch = tt () => (float[n] ptt) { ptt = Exp (w) }, else_branch = te () => (float[n] pte) { pte = Abs (x) }>
        }, else_branch = e () => (float[n] pe) { pe = Neg (x) }>""",
        lambda w, b: np.exp(w) if b else w,
    ),
    "Loop": (
        """two = Constant <value_int = 2> () p = Loop (two, b, x) <body = l (int64 i, bool c, float[n] s) => (bool go, float[n] r) {
            go = Identity (c) r = Add (s, w) }>""",
        lambda w, b: w if b else -w,
    ),
}


@pytest.mark.parametrize("condition", ["known", "computed", "sized"])
@pytest.mark.parametrize("within", WITHIN)
def test_what_is_in_two_of_them_reads_their_values(preset: type[omb.Preset], within: str, condition: str) -> None:
    if (within, condition) == ("Loop", "sized"):  # the plugin refuses it
        without_the_plugin(preset)
    nodes, expected = WITHIN[within]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g (float[n] x, bool b, float[3] three) => (float[n] y, float[3] z)
        <bool known = {{1}}, bool unknown = {{0}}, int64 size = {{3}}> {{
        computed = Not (unknown) s = Size (three) sized = Equal (s, size) z = Neg (three)
        y = If ({condition}) <then_branch = outer () => (float[n] q) {{ w = Neg (x)
            q = If ({condition}) <then_branch = inner () => (float[n] p) {{ u = Sin (w) {nodes} }},
                else_branch = never () => (float[n] pn) {{ pn = Neg (w) }}>
        }}, else_branch = neither () => (float[n] qn) {{ qn = Identity (x) }}> }}"""
    )
    prepared = preset.prepare(model)
    for x, b in ((np.array([1, -2], np.float32), True), (np.array([0.5, 2], np.float32), False)):
        found = prepared.run({"x": x, "b": np.array(b), "three": np.zeros(3, np.float32)})[0]
        np.testing.assert_allclose(found, expected(-x, b), rtol=1e-6)


def test_a_loop_is_left_with_the_if_in_it(openvino_ep: type[omb.Preset]) -> None:
    """The provider looks at no node in the body of a Loop that it takes."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 15]> g (float[4] x, bool b) => (float y) {
        two = Constant <value_int = 2> () go = Constant <value = bool {1}> () zero = Constant <value_float = 0.0> ()
        y, xs, bs = Loop (two, go, zero, x, b) <body = l (int64 i, bool c, float s, float[4] v, bool d) => (bool c2, float s2, float[4] v2, bool d2) {
            c2 = Identity (c) v2 = Identity (v) d2 = Identity (d) n = NonZero (v) f = Cast <to = 1> (n)
            h = If (d) <then_branch = t () => (float[q, w] ht) { ht = Identity (f) }, else_branch = e () => (float[q, w] he) { he = Neg (f) }>
            r = ReduceSum <keepdims = 0> (h) s2 = Add (s, r) }> }"""
    )
    prepared = openvino_ep.prepare(model)
    for x, sign in (([1, 2, 3, 4], 1), ([1, 2, 3, 4], -1), ([0, 0, 3, 4], -1)):
        found = prepared.run([np.array(x, np.float32), np.array(sign > 0)])[0]
        assert found == sign * 2 * np.flatnonzero(x).sum()


def test_small_constants_with_long_names_are_small() -> None:
    name = "n" * 200
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g (float[2] x) => (float[2] y) <bool known = {{1}}> {{
        y = If (known) <then_branch = t () => (float[2] a) {{ {name} = Constant <value = float[2] {{1, 2}}> () a = Add (x, {name}) }},
            else_branch = e () => (float[2] b) {{ b = Neg (x) }}> }}"""
    )
    assert of_branches(Contents(model)) == []


SPARSE = helper.make_sparse_tensor(
    helper.make_tensor("v", TensorProto.FLOAT, [2], [1.0, 5.0]),
    helper.make_tensor("i", TensorProto.INT64, [2], [0, 3]),
    [200],
)


@pytest.mark.parametrize(
    ("constant", "kind", "size", "expected"),
    [
        ({"value_strings": ["a" * 200, "b", "c", "d"]}, TensorProto.STRING, 4, [True, False, False, False]),
        ({"sparse_value": SPARSE}, TensorProto.FLOAT, 200, [1, 0, 0, 5, *[0] * 196]),
    ],
)
def test_strings_and_sparse_constants(
    ort_cpu: type[omb.Preset], constant: dict[str, Any], kind: int, size: int, expected: list[Any]
) -> None:
    """A string counts 32 bytes, a sparse constant what it would be without holes."""
    strings = kind == TensorProto.STRING
    result = models.tensor("a", [size], TensorProto.BOOL if strings else kind)
    nodes = [
        models.node("Constant", [], ["u"], **constant),
        models.node("Equal" if strings else "Add", ["x", "u"], ["a"]),
    ]
    branch = helper.make_graph(nodes, "branch", [], [result])
    choice = models.node("If", ["known"], ["y"], then_branch=branch, else_branch=branch)
    made = models.model([choice], [models.tensor("x", [size], kind)], [result], initializers={"known": np.array(True)})
    made.graph.output[0].name = "y"
    made.opset_import[0].version = 19
    x = np.array(["a" * 200, "x", "x", "x"], object) if strings else np.zeros(size, np.float32)
    np.testing.assert_array_equal(ort_cpu.prepare(made).run([x])[0], expected)


@pytest.mark.parametrize(("declared", "left_out"), [("float[n, 2] s", []), ("float[3, 2] s", ["ConstantFolding"])])
def test_a_size_that_is_declared_open_is_not_known(declared: str, left_out: list[str]) -> None:
    """As in a Silero VAD, whose runs take twice as long where nothing is computed beforehand."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g (float[n] x, bool b, {declared}) => (float[n] y) <int64 size = {{6}}> {{
        t = Size (s) sized = Equal (t, size)
        y = If (sized) <then_branch = outer () => (float[n] q) {{ w = Neg (x)
            q = If (sized) <then_branch = inner () => (float[n] p) {{ u = Sin (w)
                p = If (b) <then_branch = third () => (float[n] o) {{ o = Exp (u) }}, else_branch = fourth () => (float[n] on) {{ on = Neg (u) }}> }},
                else_branch = never () => (float[n] pn) {{ pn = Neg (w) }}>
        }}, else_branch = neither () => (float[n] qn) {{ qn = Identity (x) }}> }}"""
    )
    assert of_branches(Contents(model)) == left_out
