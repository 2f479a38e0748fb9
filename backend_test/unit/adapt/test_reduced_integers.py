# SPDX-License-Identifier: Apache-2.0
"""Integers that are reduced, and what is computed of them with constants, on OpenVINO, which would have the reduction do both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb

X = np.array([[[14, -15], [3, 4]], [[-2, -1], [-5, -6]], [[13, -15], [2, 2]], [[-70, -37], [-9, -12]]])
REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "ReduceL1": lambda x, axis: abs(x).sum(axis),
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, axis: (x * x).sum(axis),
}
#: Enough nodes for the execution provider to take them all.
AROUND = "a = Add (x, c) b = Sub (a, c)"
BEHIND: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "Add": ("y = Add (f, c)", lambda f: f + 3),
    "Mul": ("y = Mul (f, c)", lambda f: f * 3),
    "Neg": ("y = Neg (f)", np.negative),
}


def reducing(operator: str, behind: str, kind: str, shape: str, opset: int) -> ModelProto:
    axes = "axes = [1, 2], " if opset < 13 else ""
    return onnx.parser.parse_model(
        f"""<ir_version: 7, opset_import: ["": {opset}]> g ({kind}[{shape}] x) => ({kind}[p] y)
        <{kind} c = {{3}}, int64[2] axes = {{1, 2}}> {{
        {AROUND} f = {operator} <{axes}keepdims = 0> (b{"" if axes else ", axes"}) {BEHIND[behind][0]} }}"""
    )


def check(preset: type[omb.Preset], model: ModelProto, operator: str, behind: str, kind: str) -> omb.PreparedModel:
    prepared = preset.prepare(model)
    x = X.astype(kind)
    for part in (x, x[::-1].copy()):
        right = BEHIND[behind][1](REDUCTIONS[operator](part, (1, 2)))
        np.testing.assert_array_equal(prepared.run([part])[0], right)
    return prepared


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("shape", ["4, 2, 2", "n, m, k"])
def test_a_reduction_is_right_whatever_is_behind_it(
    openvino: type[omb.Preset], operator: str, behind: str, kind: str, shape: str
) -> None:
    check(openvino, reducing(operator, behind, kind, shape, 18), operator, behind, kind)


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_the_execution_provider_is_right_too(
    openvino_ep: type[omb.Preset], operator: str, behind: str, opset: int
) -> None:
    if opset < 13 and operator == "ReduceSum":
        pytest.skip("its axes are an input since opset 13 alone")
    check(openvino_ep, reducing(operator, behind, "int32", "n, m, k", opset), operator, behind, "int32")


BODIES = {
    "If": """y = If (go) <then_branch = t () => (int32[n] p) { f = ReduceProd <keepdims = 0> (x, axes) p = Mul (f, c) },
                           else_branch = e () => (int32[n] q) { g = ReduceProd <keepdims = 0> (x, axes) q = Sub (g, c) }>""",
    "Loop": """s = ReduceProd <keepdims = 0> (x, axes)
        y = Loop (two, go, s) <body = t (int64 i, bool on, int32[n] v) => (bool further, int32[n] w) {
            further = Identity (on) f = ReduceProd <keepdims = 0> (x, axes) w = Mul (f, c) }>""",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("engine", ["openvino", "openvino_ep"])
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_within_branches_and_loops(request: pytest.FixtureRequest, engine: str, body: str) -> None:
    preset: type[omb.Preset] = request.getfixturevalue(engine)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (int32[n, m, k] x, bool go) => (int32[p] y)
        <int32 c = {{3}}, int64[2] axes = {{1, 2}}, int64 two = {{2}}> {{ {BODIES[body]} }}"""
    )
    try:
        prepared = preset.prepare(model)
    except omb.UnsupportedModelError as refused:
        pytest.skip(f"refused: {refused}")
    x = X.astype(np.int32)
    np.testing.assert_array_equal(prepared.run({"x": x, "go": np.array(True)})[0], x.prod((1, 2)) * 3)


@pytest.mark.parametrize(
    "reduced", ["y = ReduceProd <keepdims = 0> (x, axes)", "y = ReduceSum <keepdims = 0> (d, axes)"]
)
def test_nothing_is_put_in_where_nothing_is_computed_of_integers(openvino: type[omb.Preset], reduced: str) -> None:
    kind = "float" if "d," in reduced else "int32"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (int32[n, m, k] x) => ({kind}[p] y)
        <int64[2] axes = {{1, 2}}> {{ d = Cast <to = 1> (x) {reduced} }}"""
    )
    assert not [a for a in openvino.prepare(model).adaptations if a.pass_name == "mend_frontend"]


@pytest.mark.parametrize("engine", ["openvino", "openvino_ep"])
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_half_of_a_size_is_cut_off(request: pytest.FixtureRequest, engine: str) -> None:
    preset: type[omb.Preset] = request.getfixturevalue(engine)
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[n, m] x) => (int64 y, float[n, m] z) <int64 two = {2}> {
        s = Size (x) y = Div (s, two) p = Add (x, x) q = Mul (p, x) z = Sub (q, x) }"""
    )
    prepared = preset.prepare(model)
    for shape in ((3, 5), (1, 1), (7, 3), (2, 2)):
        assert prepared.run([np.zeros(shape, np.float32)])[0] == shape[0] * shape[1] // 2


@pytest.mark.parametrize("axes", [[2], [2, 0], [-1, -3, 1], []])
@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum", "ReduceSumSquare"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_axes_of_the_run_that_may_stand_for_none(
    openvino: type[omb.Preset], operator: str, kind: str, noop: int, axes: list[int]
) -> None:
    """How many there are is known, so that it does not matter what none would mean; float32 does not hold the squares."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g ({kind}[n, m, k] x, int64[{len(axes)}] axes) => ({kind}[p, q, r] y) {{
        y = {operator} <noop_with_empty_axes = {noop}> (x, axes) }}"""
    )
    if noop and not axes:
        pytest.skip("nothing is reduced")
    prepared = openvino.prepare(model)
    for part in (X, X[:3, :1]):
        x = (part * (14 if operator == "ReduceSumSquare" else 29_959)).astype(kind)
        right = (x * x if operator == "ReduceSumSquare" else x).sum(tuple(axes) or None, keepdims=True)
        if operator == "ReduceMean":
            right = np.trunc(right / (x.size / right.size))
        np.testing.assert_array_equal(prepared.run([x, np.array(axes, np.int64)])[0], right.astype(kind))


def test_a_pad_of_an_older_opset_beside_what_lifts_the_model(openvino: type[omb.Preset]) -> None:
    """ONNX's version converter puts its pads beside the nodes."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 7]> g (int64[n, m] x, float[p, q] w) => (int64[r, s] y, float[t, u] z) {
        y = ReduceMean <axes = [0]> (x) z = Pad <mode = "edge", pads = [0, 1, 1, 0]> (w) }"""
    )
    x = X[:, 0].astype(np.int64) * 29_959
    w = np.float32([[1, 2], [3, 4]])
    y, z = openvino.prepare(model).run([x, w])
    np.testing.assert_array_equal(y, np.trunc(x.mean(0, keepdims=True)))
    np.testing.assert_array_equal(z, np.pad(w, ((0, 1), (1, 0)), "edge"))


@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceMean", "ReduceSum", "ReduceSumSquare"])
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("x", [np.array(-70), np.array([3, -300]), X])
def test_all_axes_of_a_tensor_of_unknown_rank(
    openvino: type[omb.Preset], operator: str, keep: int, x: np.ndarray
) -> None:
    """What a Loop carries may change its shape, so that ONNX's inference does not tell that of its result."""
    shape = f"[{','.join('abc'[: x.ndim])}]" if x.ndim else ""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (int64{shape} x) => (int64{shape if keep else ""} y)
        <int64 two = {{2}}, bool go = {{1}}> {{
        v = Loop (two, go, x) <body = t (int64 i, bool on, int64{shape} s) => (bool further, int64{shape} w) {{
            further = Identity (on) w = Identity (s) }}>
        y = {operator} <keepdims = {keep}> (v) }}"""
    )
    right = {
        "ReduceL1": abs(x).sum(),
        "ReduceMean": np.trunc(x.mean()),
        "ReduceSum": x.sum(),
        "ReduceSumSquare": (x * x).sum(),
    }[operator]
    (y,) = openvino.prepare(model).run([x])
    np.testing.assert_array_equal(y, np.full([1] * x.ndim if keep else [], right))


@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceL2"])
@pytest.mark.parametrize("kind", ["uint32", "uint64", "int32", "int64"])
def test_the_norm_of_each_number_by_itself(ort_cpu: type[omb.Preset], operator: str, kind: str) -> None:
    """The square of a large one leaves the type."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g ({kind}[n, m] x) => ({kind}[n, m] y) <int64[0] axes = {{}}> {{
        y = {operator} <noop_with_empty_axes = 1> (x, axes) }}"""
    )
    limits = np.iinfo(kind)
    x = np.array([[0, 3, limits.max], [limits.max - 1, limits.min + 1, limits.max // 2 + 1]], kind)
    np.testing.assert_array_equal(ort_cpu.prepare(model).run([x])[0], np.abs(x))
