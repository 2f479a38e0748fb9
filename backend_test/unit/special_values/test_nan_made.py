# SPDX-License-Identifier: Apache-2.0
"""NaN that a model makes of numbers itself comes through the operators in which OpenVINO would lose it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.array([[1, -1, 2, 3], [1, 2, 3, 4]], np.float32)

COMPARED = ["y = Greater(a, x)", "y = Greater(x, a)", "b = Sqrt(x) y = Greater(b, a)", "y = Less(x, a)"]


def net(body: str, opset: int = 17) -> object:
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[N,4] x) => (float[N,4] y) {{ {body} }}'
    )


@pytest.mark.parametrize("operator", ["Clip", "Exp", "HardSigmoid", "Relu", "LogSoftmax", "Softmax", "Softmax<axis=0>"])
@pytest.mark.parametrize("passing", ["Identity", "Neg", "LeakyRelu", "Floor", "Round", "Sigmoid", "Tanh"])
def test_what_log_makes_of_a_negative_number_stays(operator: str, passing: str, preset: type[omb.Preset]) -> None:
    found = preset.prepare(net(f"a = Log(x) b = {passing}(a) y = {operator}(b)")).run([X])[0]
    nan = np.isnan(found)
    if operator == "Softmax<axis=0>":
        np.testing.assert_array_equal(nan, [[False, True, False, False]] * 2)
    elif "Softmax" in operator:
        np.testing.assert_array_equal(nan, [[True] * 4, [False] * 4])
    else:
        np.testing.assert_array_equal(nan, [[False, True, False, False], [False] * 4])


@pytest.mark.parametrize("made", ["Softsign(x)", "Sin(x)", "Cos(x)", "Tan(x)", "Mish(x)", "HardSwish(x)", "Pow(x, h)"])
def test_what_an_operator_makes_of_an_infinity_or_of_a_negative_number_stays(
    made: str, preset: type[omb.Preset]
) -> None:
    model = net(f"h = Constant<value_float=0.5>() a = {made} b = Relu(a) y = Identity(a)", 18)
    assert hasattr(model, "graph")
    model.graph.output.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, ["N", 4]))
    a, b = preset.prepare(model).run([np.array([[-1, -np.inf, 2, np.inf]], np.float32)])
    assert np.isnan(a).any()
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))


@pytest.mark.parametrize("opset", [9, 13, 17])
@pytest.mark.parametrize("body", COMPARED)
def test_nan_is_greater_than_nothing(body: str, opset: int, preset: type[omb.Preset]) -> None:
    model = net(f"a = Log(x) {body}", opset)
    assert hasattr(model, "graph")
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    found = preset.prepare(model).run([X])[0]
    with np.errstate(invalid="ignore"):
        a = np.log(X)
        right = [a > X, a < X, np.sqrt(X) > a, a > X][COMPARED.index(body)]
    np.testing.assert_array_equal(found, right)


def test_what_a_division_by_zero_makes_stays(preset: type[omb.Preset]) -> None:
    found = preset.prepare(net("d = Neg(x) z = Add(d, x) a = Div(z, z) y = Exp(a)")).run([X])[0]
    assert np.isnan(found).all()


@pytest.mark.parametrize(
    "between",
    [
        *("Mul(a, c)", "Sub(c, a)", "Concat<axis=0>(x, a)", "Where(w, a, x)", "Relu(a)", "Min(x, a)"),
        *("Trilu(a)", "ScatterND(x, i, a)", "GatherND(a, i)", "Reciprocal(a)", "Ceil(a)", "Cast<to = 1>(a)"),
    ],
)
def test_what_comes_through_other_operators_stays(between: str, preset: type[omb.Preset]) -> None:
    constants = "c = Constant<value_float=3.0>() i = Constant<value = int64[2, 1] {0, 1}>()"
    body = f"{constants} w = Less(x, c) a = Log(x) b = {between} y = Exp(b)"
    found = preset.prepare(net(body)).run([X])[0]
    assert np.isnan(found).sum() == 1


def test_a_value_from_around_a_branch(preset: type[omb.Preset]) -> None:
    branch = parser.parse_graph("b () => (float[N,4] y) { y = Relu(a) }")
    other = parser.parse_graph("c () => (float[N,4] z) { z = Identity(a) }")
    model = net(
        "a = Log(x) p = ReduceSum<keepdims=0>(x) zero = Constant<value_float=0.0>() is = Greater(p, zero) y = Identity(x)"
    )
    assert hasattr(model, "graph")
    del model.graph.node[-1]
    model.graph.node.append(helper.make_node("If", ["is"], ["y"], then_branch=branch, else_branch=other))
    found = preset.prepare(model).run([X])[0]
    np.testing.assert_array_equal(np.isnan(found), [[False, True, False, False], [False] * 4])


@pytest.mark.parametrize(
    "branch",
    ["(float[N,4] b) { b = Identity(a) }", "(float[N,4] b) { b = Log(x) }", "(float[N,4] b) { d = Log(x) b = Neg(d) }"],
)
def test_what_a_branch_hands_on(branch: str, preset: type[omb.Preset]) -> None:
    """Through its result, whether it was made there or outside."""
    other = "(float[N,4] b) { b = Identity(x) }"
    model = net(
        "a = Log(x) p = ReduceSum<keepdims=0>(x) zero = Constant<value_float=0.0>() is = Greater(p, zero) y = Identity(x)"
    )
    assert hasattr(model, "graph")
    del model.graph.node[-1]
    branches = {
        f"{name}_branch": parser.parse_graph(f"{name} () => {text}")
        for name, text in (("then", branch), ("else", other))
    }
    model.graph.node.append(helper.make_node("If", ["is"], ["r"], **branches))
    model.graph.node.append(helper.make_node("Exp", ["r"], ["y"]))
    found = preset.prepare(model).run([X])[0]
    np.testing.assert_array_equal(np.isnan(found), [[False, True, False, False], [False] * 4])


def test_a_branch_whose_result_has_the_name_of_the_node_s(preset: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N,4] x, bool c) => (float[N,4] y, float[N,4] z) {
        a = Log(x) z = Relu(a)
        b = If(c) <then_branch = t () => (float[N,4] b) { b = Softplus(x) },
                   else_branch = e () => (float[N,4] d) { d = Softsign(x) }>
        y = Relu(b) }"""
    )
    found = preset.prepare(model).run([X, np.array(True)])
    np.testing.assert_allclose(found[0], np.log1p(np.exp(X)), rtol=1e-5)
    np.testing.assert_array_equal(np.isnan(found[1]), [[False, True, False, False], [False] * 4])


def test_one_branch_behind_another_is_looked_through_once(openvino: type[omb.Preset]) -> None:
    count = 40
    nodes = "a = Log(x) z = Relu(a) v0 = Neg(a) " + " ".join(
        f"""v{i + 1} = If(c) <then_branch = t{i} () => (float[N,4] t{i}) {{ t{i} = Mul(v{i}, two) }},
                           else_branch = e{i} () => (float[N,4] e{i}) {{ e{i} = Identity(v{i}) }}>"""
        for i in range(count)
    )
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[N,4] x, bool c) => (float[N,4] y, float[N,4] z) <float two = {{2}}> {{
        {nodes} y = Relu(v{count}) }}"""
    )
    found = openvino.prepare(model).run([X, np.array(False)])[0]
    np.testing.assert_array_equal(np.isnan(found), [[False, True, False, False], [False] * 4])


@pytest.mark.parametrize("opset", [7, 8, 9, 10])
@pytest.mark.parametrize("operator", ["Clip<min=-1.0, max=1.0>", "Exp", "HardSigmoid", "Relu"])
def test_older_opsets(operator: str, opset: int, preset: type[omb.Preset]) -> None:
    x = np.array([[1, -1, 0, np.inf], [1, 2, 3, 4]], np.float32)
    found, a = preset.prepare(_with_log(f"a = Log(x) y = {operator}(a)", opset)).run([x])
    a = np.float64(a)
    wanted = {
        "Clip": lambda: np.clip(a, -1, 1),
        "Exp": lambda: np.exp(a),
        "HardSigmoid": lambda: np.clip(a * 0.2 + 0.5, 0, 1),
        "Relu": lambda: np.maximum(a, 0),
    }[operator.partition("<")[0]]
    assert np.isnan(a[0, 1])
    np.testing.assert_allclose(found, wanted(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [7, 9, 11, 12])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Softmax<axis=0>", "Softmax<axis=-1>"])
def test_rows_before_opset_13(operator: str, opset: int, preset: type[omb.Preset]) -> None:
    """They are all axes from `axis` on."""
    if "-1" in operator and opset < 11:
        pytest.skip("an axis is not counted from the end yet")
    x = np.float32([[1, 2, 3, 4], [1, -2, 3, 4]])
    (found,) = preset.prepare(net(f"a = Log(x) y = {operator}(a)", opset)).run([x])
    assert np.isnan(found[1]).all()
    assert np.isnan(found[0]).all() == ("=0" in operator)
    assert np.isfinite(found[0]).all() == ("=0" not in operator)


def _with_log(body: str, opset: int) -> object:
    model = net(body, opset)
    assert hasattr(model, "graph")
    model.graph.output.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, ["N", 4]))
    return model


def test_an_older_opset_in_float16(preset: type[omb.Preset]) -> None:
    model = net("h = Cast<to=10>(x) a = Log(h) b = Exp(a) y = Cast<to=1>(b)", 8)
    found = preset.prepare(model).run([X])[0]
    np.testing.assert_array_equal(np.isnan(found), [[False, True, False, False], [False] * 4])


@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_each_operand_of_an_extreme_is_guarded(operator: str, preset: type[omb.Preset]) -> None:
    found = preset.prepare(net(f"a = Log(x) n = Neg(x) b = Sqrt(n) y = {operator}(a, x, b)")).run([X - 2.5])[0]
    assert np.isnan(found).all()


def test_inside_a_branch(preset: type[omb.Preset]) -> None:
    branch = parser.parse_graph("b () => (float[N,4] y) { a = Log(x) y = Relu(a) }")
    other = parser.parse_graph("c () => (float[N,4] z) { z = Identity(x) }")
    model = net("p = ReduceSum<keepdims=0>(x) zero = Constant<value_float=0.0>() is = Greater(p, zero) y = Identity(x)")
    assert hasattr(model, "graph")
    del model.graph.node[-1]
    model.graph.node.append(helper.make_node("If", ["is"], ["y"], then_branch=branch, else_branch=other))
    found = preset.prepare(model).run([X])[0]
    np.testing.assert_array_equal(np.isnan(found), [[False, True, False, False], [False] * 4])


@pytest.mark.parametrize(
    "body",
    [
        "s = Sqrt(x) t = Div(x, s) y = Softmax(t)",
        "c = Constant<value_float=6.0>() a = Div(x, c) y = Clip(a)",
        "c = Constant<value_float=2.0>() a = Pow(x, c) y = Relu(a)",
        "a = Sqrt(x) b = Div(x, a) c = Mul(b, x) d = Add(c, x) y = Relu(d)",
        "i = Cast<to=7>(x) j = Div(i, i) k = Max(i, j) y = Cast<to=1>(k)",
    ],
)
def test_other_models_go_to_the_engine_as_they_are(body: str, openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(net(body))
    assert not [a for a in rep.adaptations if a.pass_name == "nan_kept"]


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_constant_with_nan_stays_where_it_is(operator: str, dtype: type, preset: type[omb.Preset]) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    limits = np.array([0, np.nan, 0, 0], dtype)
    model = models.model(
        [models.node(operator, ["x", "c"], ["y"])],
        [models.tensor("x", ["N", 4], kind)],
        [models.tensor("y", ["N", 4], kind)],
        initializers={"c": limits},
    )
    found = preset.prepare(model).run([X.astype(dtype)])[0]
    np.testing.assert_array_equal(np.isnan(found), [[False, True, False, False]] * 2)


@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE"])
def test_the_sign_of_nan_is_nan(kind: str, ort_cpu: type[omb.Preset]) -> None:
    to = TensorProto.DataType.Value(kind)
    found = ort_cpu.prepare(net(f"a = Cast<to={to}>(x) b = Sign(a) y = Cast<to=1>(b)")).run([X * np.float32(np.nan)])[0]
    assert np.isnan(found).all()
