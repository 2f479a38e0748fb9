# SPDX-License-Identifier: Apache-2.0
"""Axes that are moved or merged behind a reduction: OpenVINO leaves that out where there are as many afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

#: The shape that is reduced, the axes, and the nodes behind.
Form = tuple[Sequence[int | str], list[int], list[tuple[str, list[int]]]]

FORMS: dict[str, Form] = {
    "Transpose": ([5, 4, 1], [0], [("Transpose", [1, 0])]),
    "Reshape": ([5, 1, 4], [0, 1], [("Reshape", [4, 1, 1]), ("Reshape", [1, 4])]),
    "Reshape of an open size": ([5, 1, 1, 4], [0, 1], [("Reshape", [-1, 1])]),
    "Squeeze and Unsqueeze": ([5, 4, 1], [0], [("Squeeze", [1]), ("Unsqueeze", [0])]),
    "Unsqueeze and Reshape": ([5, 4, 1], [0], [("Unsqueeze", [0]), ("Reshape", [1, 4])]),
    "Flatten": ([5, 4, 1], [0], [("Flatten", [0])]),
    "behind an Identity": ([5, 4, 1], [0], [("Identity", []), ("Transpose", [1, 0])]),
    "of rank 3": ([2, 3, 1, 1], [0], [("Transpose", [1, 0, 2])]),
    "several axes": ([5, 6, 4, 1], [0, 2], [("Transpose", [1, 0])]),
    "merged": ([5, 3, 2], [0], [("Unsqueeze", [0]), ("Flatten", [1])]),
    "merged, of an open batch": (["n", 3, 2], [0], [("Unsqueeze", [0]), ("Reshape", [1, -1])]),
    "by way of a lower rank": ([3, 1, 3, 1], [1, 3], [("Reshape", [9]), ("Reshape", [9, 1])]),
    "behind a Dropout": ([5, 4, 1], [0], [("Dropout", []), ("Transpose", [1, 0])]),
    "behind a Cast to its own type": ([5, 4, 1], [0], [("Cast", []), ("Transpose", [1, 0])]),
    "behind a sum with 0": ([5, 4, 1], [0], [("Add", [0]), ("Transpose", [1, 0])]),
    "open sizes": (["n", "m", 1], [0], [("Transpose", [1, 0])]),
}
SIZES = {"n": 5, "m": 4}


def _model(form: Form, reduction: str = "ReduceMean", opset: int = 18) -> ModelProto:
    shape, axes, behind = form
    constants = {"axes": np.array(axes)} if opset >= 18 else {}
    reduced = ["x", "axes"] if constants else ["x"]
    given = {} if constants else {"axes": axes}
    nodes = [helper.make_node(reduction, reduced, ["v0"], name="reduced", keepdims=0, **given)]
    for i, (operator, how) in enumerate(behind):
        nodes.append(_moving(operator, how, i, constants, opset))
    return models.model(
        nodes,
        [models.tensor("x", shape)],
        [models.tensor(f"v{len(behind)}", None)],
        initializers=constants,
        opsets={"": opset},
    )


def _moving(operator: str, how: list[int], i: int, constants: dict[str, np.ndarray], opset: int) -> NodeProto:
    read, made = [f"v{i}"], [f"v{i + 1}"]
    if operator == "Reshape" or (operator in ("Squeeze", "Unsqueeze") and opset >= 13):
        constants[f"c{i}"] = np.array(how)
        return helper.make_node(operator, [*read, f"c{i}"], made)
    if operator == "Add":
        constants[f"c{i}"] = np.float32(0)
        return helper.make_node(operator, [f"c{i}", *read], made)
    attributes = {
        "Cast": {"to": 1},
        "Dropout": {},
        "Transpose": {"perm": how},
        "Flatten": {"axis": how[0] if how else 0},
        "Identity": {},
    }
    return helper.make_node(operator, read, made, **attributes.get(operator, {"axes": how}))


def _input(form: Form) -> np.ndarray:
    sizes = [SIZES[size] if isinstance(size, str) else size for size in form[0]]
    return np.random.default_rng(0).uniform(1, 2, sizes).astype(np.float32)


def _holds(prepared: omb.PreparedModel, model: ModelProto, x: np.ndarray) -> bool:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,), (result,) = session.run(None, {"x": x}), prepared.run({"x": x})
    return bool(result.shape == expected.shape and np.allclose(result, expected, rtol=1e-4))


@pytest.mark.parametrize("form", FORMS)
def test_the_axes_are_moved(preset: type[omb.Preset], form: str) -> None:
    model = _model(FORMS[form])
    assert _holds(preset.prepare(model), model, _input(FORMS[form]))


@pytest.mark.parametrize(
    "reduction", "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split(), ids="Reduce{}".format
)
@pytest.mark.parametrize("opset", [11, 18])
def test_behind_each_reduction(preset: type[omb.Preset], reduction: str, opset: int) -> None:
    model = _model(FORMS["Transpose"], f"Reduce{reduction}", opset)
    assert _holds(preset.prepare(model), model, _input(FORMS["Transpose"]))


@pytest.mark.parametrize(
    "form",
    [
        ([5, 4], [0], [("Unsqueeze", [0])]),
        (["n", 16, "h", "w"], [2, 3], [("Reshape", [-1, 16])]),
    ],
    ids=["one axis more", "the same shape"],
)
def test_nothing_is_put_between_without_need(openvino: type[omb.Preset], form: Form) -> None:
    prepared = openvino.prepare(_model(form))
    assert not [change for change in prepared.adaptations if change.pass_name == "axes_moved"]


@pytest.mark.parametrize("opset", [7, 13])
def test_of_doubles(built_in_ep: type[omb.Preset], opset: int) -> None:
    """ONNX Runtime has no Max of doubles before opset 8."""
    nodes = [
        helper.make_node("Sin", ["f"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("Cos", ["b"], ["c"]),
        helper.make_node("ReduceL2", ["x"], ["r"], keepdims=0, axes=[0]),
        helper.make_node("Transpose", ["r"], ["y"], perm=[1, 0]),
    ]
    inputs = [models.tensor("f", [3]), models.tensor("x", [5, 4, 1], TensorProto.DOUBLE)]
    outputs = [models.tensor("c", [3]), models.tensor("y", [1, 4], TensorProto.DOUBLE)]
    prepared = built_in_ep.prepare(models.model(nodes, inputs, outputs, opsets={"": opset}))
    x = np.random.default_rng(0).uniform(1, 2, (5, 4, 1))
    _, found = prepared.run([np.ones(3, np.float32), x])
    np.testing.assert_allclose(found, np.sqrt((x**2).sum(0)).T, rtol=1e-6)


def test_a_name_that_is_taken_stays(preset: type[omb.Preset]) -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["romb_castaxes"]),
        helper.make_node("ReduceSum", ["x"], ["r"], keepdims=0, axes=[0]),
        helper.make_node("Transpose", ["r"], ["y"], perm=[1, 0]),
    ]
    outputs = [models.tensor("romb_castaxes", [5, 4, 1]), models.tensor("y", [1, 4])]
    model = models.model(nodes, [models.tensor("x", [5, 4, 1])], outputs, opsets={"": 11})
    x = np.random.default_rng(0).uniform(1, 2, (5, 4, 1)).astype(np.float32)
    negative, moved = preset.prepare(model).run([x])
    np.testing.assert_array_equal(negative, -x)
    np.testing.assert_allclose(moved, x.sum(0).T, rtol=1e-6)


@pytest.mark.parametrize("name", ["ReduceL1", "ReduceLogSum", "ReduceSumSquare"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_reduction_over_all_axes_stays(openvino: type[omb.Preset], name: str, keepdims: int) -> None:
    """OpenVINO ignores the attribute `axes` there, and reduces all axes, as it is to."""
    shape = "[1, 1]" if keepdims else ""
    text = f"(float[n, m] x) => (float{shape} y) {{ y = {name} <axes = [0, -1], keepdims = {keepdims}> (x) }}"
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g {text}')
    prepared = openvino.prepare(made)
    assert not [a for a in prepared.adaptations if a.pass_name == "reduce_functions"]
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    right = {"ReduceL1": 21, "ReduceLogSum": np.log(21), "ReduceSumSquare": 91}[name]
    got = prepared.run([x])[0]
    assert got.shape == ((1, 1) if keepdims else ())
    np.testing.assert_allclose(got, right, rtol=1e-6)
