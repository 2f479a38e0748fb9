# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's built-in provider joins a lone node to a group that waits for it in another way too: it is computed twice."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import expected
from onnx_multi_backend.host.applies import applies

pytestmark = [
    pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning"),
    pytest.mark.skipif(not applies({"onnxruntime": "<1.31"}), reason="of the built-in provider"),
]
CPU, OPENVINO = "CPUExecutionProvider", "OpenVINOExecutionProvider"

#: The provider takes neither BitwiseAnd nor Unique.
GRAPHS = {
    "of integers": """(uint32[n, 3] x) => (int64[n, 3] y) <int64 c = {65535}> {
        a = Cast <to = 7> (x) b = BitwiseAnd (a, c) y = Sub (a, b)
    }""",
    "of floats": """(float[2, 3] x) => (float[2, 3] y) {
        a = Neg (x) b = Unique (a) d = ReduceSum <keepdims = 0> (b) e = Sub (a, d) f = Exp (e) y = Add (f, a)
    }""",
    "twice in a row": """(uint32[n, 3] x) => (int64[n, 3] y) <int64 c = {65535}> {
        a = Cast <to = 7> (x) b = BitwiseAnd (a, c) d = Sub (a, b) e = BitwiseAnd (d, b) f = Add (d, e) y = Add (f, a)
    }""",
}


def parsed(graph: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {graph}')


def numbers(kind: str, *shape: int) -> np.ndarray:
    size = int(np.prod(shape))
    return (np.arange(size) * 7919 + 5).reshape(shape).astype(np.float32 if kind == "float" else np.uint32)


def check(preset: type[omb.Preset], made: ModelProto, *runs: list[np.ndarray]) -> omb.PreparedModel:
    prepared = preset.prepare(made)
    assert "computed_twice" in {a.pass_name for a in prepared.adaptations}
    for feeds in runs:
        for got, right in zip(prepared.run(feeds), expected(made, *feeds), strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-5)
    return prepared


@pytest.mark.parametrize("form", GRAPHS)
def test_what_the_cpu_provider_and_a_group_behind_it_read(openvino_ep: type[omb.Preset], form: str) -> None:
    kind = "float" if "floats" in form else "uint32"
    runs = [[numbers(kind, 2, 3)]] if kind == "float" else [[numbers(kind, n, 3)] for n in (2, 5)]
    prepared = check(openvino_ep, parsed(GRAPHS[form]), *runs)
    placed = {(n.op_type, n.provider) for n in prepared.placement()}
    assert {("Unique", CPU), ("Exp", OPENVINO)} <= placed or {("BitwiseAnd", CPU), ("Sub", OPENVINO)} <= placed


def test_in_a_body(openvino_ep: type[omb.Preset]) -> None:
    made = parsed("""(int64 n, int64[2, 3] x, int64[2, 3] w) => (int64[2, 3] y) <bool t = {1}> {
        y = Loop (n, t, x) <body = b (int64 i, bool c, int64[2, 3] s) => (bool c2, int64[2, 3] s2) <int64 k = {255}> {
            c2 = Identity (c) p = Mul (s, w) q = BitwiseAnd (p, k) d = Sub (p, q) e = Add (d, k) s2 = Add (e, p)
        }>
    }""")
    x, w = (numbers("uint32", 2, 3) % size for size in (11, 5))
    check(openvino_ep, made, *([np.array(n), x.astype(np.int64), w.astype(np.int64)] for n in (3, 0, 2)))


def test_the_process_lives_where_a_body_is_rewritten(openvino_ep: type[omb.Preset]) -> None:
    made = parsed("""(int64 n, int32[5, 4] x) => (int32[5, 4] y, int32[m, 5, 4] z) <bool t = {1}> {
        y, z = Loop (n, t, x) <body = b (int64 i, bool c, int32[5, 4] s) => (bool c2, int32[5, 4] s2, int32[5, 4] row) {
            c2 = Identity (c) unread = ReduceL2 (i) s2 = Identity (s) row = Identity (s)
        }>
    }""")
    made.opset_import[0].version = 11
    prepared = openvino_ep.prepare(made)
    for n in (3, 1, 2, 3):
        x = np.arange(20, dtype=np.int32).reshape(5, 4) + n
        y, z = prepared.run([np.array(n), x])
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(z, np.stack([x] * n))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", ["int64[1] axes", ""])
def test_the_lowest_of_wide_unsigned_integers(openvino_ep: type[omb.Preset], axes: str, keepdims: int) -> None:
    given, constant = (f", {axes}", "") if axes else ("", "<int64[1] axes = {1}>")
    shape = "n, 1, k" if keepdims else "n, k"
    made = parsed(
        f"(uint32[n, 3, k] x{given}) => (uint32[{shape}] y) {constant} {{ y = ReduceMin <keepdims = {keepdims}> (x, axes) }}"
    )
    x = np.arange(24, dtype=np.uint32).reshape(2, 3, 4)[:, ::-1] * np.uint32(5) + np.uint32(2**30)
    prepared = openvino_ep.prepare(made)
    got = prepared.run([x, np.array([1])] if axes else [x])[0]
    np.testing.assert_array_equal(got, x.min(1, keepdims=bool(keepdims)))
    assert OPENVINO in {node.provider for node in prepared.placement()}


def test_the_shape_of_a_constant_in_a_branch(openvino_ep: type[omb.Preset]) -> None:
    numbers = ", ".join(map(str, range(1, 41)))
    made = parsed(f"""(float[2, 3] x) => (float[2, 3] y) <bool never = {{0}}, float[4, 10] c = {{{numbers}}}> {{
        y = If (never) <
            then_branch = then () => (float[2, 3] u) {{ u = Neg (x) }},
            else_branch = other () => (float[2, 3] v) {{
                pooled = Exp (c) s = Shape (c) n = Size (s) zero = Constant <value = int64[1] {{0}}> () one = Sub (n, zero)
                all = Concat <axis = 0> (s, one) v = Identity (x)
            }}>
    }}""")
    x = np.float32([[1, -2, 3], [4, -5, 6]])
    np.testing.assert_array_equal(openvino_ep.prepare(made).run([x])[0], x)
