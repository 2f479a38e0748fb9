# SPDX-License-Identifier: Apache-2.0
"""Bodies whose results are their inputs, or one value twice, and calls of functions that engines take for others."""

from __future__ import annotations

import numpy as np
import onnx.checker
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import parsed

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

A, B = np.float32([1, 2]), np.float32([10, 20])
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def test_a_scan_passes_its_inputs_on(preset: type[omb.Preset]) -> None:
    """ONNX Runtime left the memory of such results unwritten."""
    model = parsed(
        """(float[4, 2] x, float[2] a, float[2] b) => (float[2] r, float[2] z, float[4, 2] rows, float[4, 2] before) {
        r, z, rows, before = Scan <num_scan_inputs = 1, body = g (float[2] p, float[2] q, float[2] e)
        => (float[2] p, float[2] t, float[2] e, float[2] q) { t = Add (q, e) }> (a, b, x) }"""
    )
    sums = np.concatenate([[B], B + np.cumsum(X, axis=0)])
    found = preset.prepare(model, fallback="full").run([X, A, B])
    for value, right in zip(found, (A, sums[-1], X, sums[:-1]), strict=True):
        np.testing.assert_allclose(value, right)


#: The results of a Loop's body of states p and q, and the states after three iterations; the condition and the number are c and i.
LOOPS = {
    "states change places": ("q, p", "", (B, A)),
    "one takes the place of both": ("q, q", "", (B, B)),
    "one is computed of both": ("t, p", "t = Add (p, q)", (3 * A + 2 * B, 2 * A + B)),
    "they stay": ("p, q", "", (A, B)),
}


@pytest.mark.parametrize("form", LOOPS)
def test_states_of_a_loop(preset: type[omb.Preset], form: str) -> None:
    """OpenVINO gave both the same value, or the process died."""
    results, nodes, right = LOOPS[form]
    declared = ", ".join(f"float[2] {name}" for name in results.split(", "))
    model = parsed(
        f"""(float[2] a, float[2] b) => (float[2] y, float[2] z) {{ m = Constant <value_int = 3> ()
        r, s = Loop <body = g (int64 i, bool c, float[2] p, float[2] q) => (bool c, {declared}) {{ {nodes} }}> (m, , a, b)
        y = Add (r, a) z = Add (s, a) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    for factor in (1, 2):
        for value, expected in zip(prepared.run([factor * A, factor * B]), right, strict=True):
            np.testing.assert_allclose(value, factor * (expected + A))


def test_a_loop_collects_the_numbers_of_its_iterations(preset: type[omb.Preset]) -> None:
    """Each row was the last number."""
    model = parsed(
        """(float[2] a, float[2] b) => (float[2] y, int64[3] z) { m = Constant <value_int = 3> ()
        y, z = Loop <body = g (int64 i, bool c, float[2] p) => (bool c, float[2] t, int64 i) { t = Add (p, b) }> (m, , a) }"""
    )
    y, z = preset.prepare(model, fallback="full").run([A, B])
    np.testing.assert_allclose(y, A + 3 * B)
    assert z.tolist() == [0, 1, 2]


def test_one_value_is_two_results(preset: type[omb.Preset]) -> None:
    """Of a branch and of a Scan's body ONNX Runtime wrote the second alone."""
    model = parsed(
        """(float[4, 2] x, float[2] a, float[2] b) => (float[2] r, float[2] z, float[2] s, float[4, 2] y) {
        k = Constant <value_float = 0.0> () n = ReduceSum <keepdims = 0> (a) c = Greater (n, k)
        r, z = If (c) <then_branch = t () => (float[2] v, float[2] v) { v = Neg (b) },
                       else_branch = e () => (float[2] w, float[2] w) { w = Abs (b) }>
        s, y = Scan <num_scan_inputs = 1, body = g (float[2] p, float[2] f) => (float[2] h, float[2] h) { h = Add (p, f) }> (a, x) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    for sign in (1, -1):
        a = sign * A
        rows = a + np.cumsum(X, axis=0)
        for value, right in zip(prepared.run([X, a, B]), (-sign * B, -sign * B, rows[-1], rows), strict=True):
            np.testing.assert_allclose(value, right)


def _with_functions(graph: str, *functions: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 17, "d": 1]> m {graph} {" ".join(functions)}')
    onnx.checker.check_model(model)
    return model


def test_functions_that_differ_in_their_overload(preset: type[omb.Preset]) -> None:
    """ONNX Runtime 1.24 took them for one."""
    model = _with_functions(
        "(float[2] x) => (float[2] y) { a = d.f:one (x) y = d.f:two (a) }",
        *(
            f'<domain: "d", overload: "{overload}", opset_import: ["": 17]> f (a) => (b) {{ b = {operator} (a) }}'
            for overload, operator in (("one", "Neg"), ("two", "Tanh"))
        ),
    )
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run([A])[0], np.tanh(-A), rtol=1e-5)


def test_a_call_leaves_out_the_last_result(preset: type[omb.Preset]) -> None:
    """ONNX Runtime refused it, and 1.24 died of it with an execution provider."""
    model = _with_functions(
        "(float[2] x) => (float[2] y) { y = d.f (x) }",
        '<domain: "d", opset_import: ["": 17]> f (a) => (b, c) { b = Neg (a) c = Abs (a) }',
    )
    prepared = preset.prepare(model, fallback="full")
    np.testing.assert_allclose(prepared.run([A])[0], -A)
    assert [change.pass_name for change in prepared.adaptations] == ["calls_inlined"]


@pytest.mark.parametrize("computed", [False, True])
def test_an_initializer_of_a_branch_hides_a_value_around_it(preset: type[omb.Preset], computed: bool) -> None:
    """ONNX Runtime computed with that value."""
    outer = "<float[2] k = {9, 9}>" if not computed else ""
    made = "k = Abs (x)" if computed else ""
    model = parsed(
        f"""(float[2] x) => (float[2] y) {outer} {{ z = Constant <value_float = 0.0> () s = ReduceSum <keepdims = 0> (x) c = Greater (s, z) {made}
        y = If (c) <then_branch = t () => (float[2] p) <float[2] k = {{1, 2}}> {{ p = Mul (x, k) }},
                    else_branch = e () => (float[2] q) {{ q = Add (x, k) }}> }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    np.testing.assert_allclose(prepared.run([A])[0], A * [1, 2])
    np.testing.assert_allclose(prepared.run([-A])[0], -A + (A if computed else 9))


def test_the_number_of_the_iteration_is_the_next_state(preset: type[omb.Preset]) -> None:
    """It was one too large, or the rows of the step before."""
    model = parsed(
        """(int64 n, float[2] x) => (int64 y, float[m, 2] r) <bool go = {1}, int64 first = {7}> {
        y, r = Loop <body = g (int64 i, bool c, int64 s) => (bool c, int64 i, float[2] row) { f = Cast <to = 1> (s) row = Add (f, x) }> (n, go, first) }"""
    )
    y, rows = preset.prepare(model, fallback="full").run([np.array(3), A])
    assert y == 2
    np.testing.assert_allclose(rows, [A + 7, A, A + 1])


def test_an_initializer_of_a_branch_in_a_function(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "l": 1]> g (bool c, float[2] x) => (float[2] y) { y = l.f (c, x) }
        <domain: "l", opset_import: ["": 17]> f (c, x) => (y) { v = Neg (x)
        y = If <then_branch = t () => (float[2] a) <float[2] v = {1, 2}> { a = Add (x, v) }, else_branch = e () => (float[2] b) { b = Add (x, v) }> (c) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    np.testing.assert_allclose(prepared.run([np.array(True), A])[0], A + [1, 2])
    np.testing.assert_allclose(prepared.run([np.array(False), A])[0], 0 * A)
