# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime gathers the first string of each row alone, and has no Pad of strings: numbers are moved in their place."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb

X = np.array([[f"{i}{j}" for j in "abc"] for i in range(2)], object)


def parsed(graph: str, opset: int = 19) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": {opset}]> g {graph}')


def of_unknown_rank(model: ModelProto) -> ModelProto:
    model.graph.input[0].type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("opset", [1, 11, 19])
@pytest.mark.parametrize("shape", ["2, 3", "a, b", ""])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("places", [1, [1, 0, 0], [[1], [0]], []])
def test_rows_are_gathered_whole(ort_cpu: type[omb.Preset], opset: int, shape: str, axis: int, places: list) -> None:  # type: ignore[type-arg]
    indices = np.array(places, np.int64)
    sizes = [["i", "j", "k", "l"][: indices.ndim], ["p", "q", "r"][: indices.ndim + 1]]
    declared = [f"[{', '.join(names)}]" if names else "" for names in sizes]
    model = parsed(
        f"(string[{shape or '2, 3'}] x, int64{declared[0]} i) => (string{declared[1]} y) {{ y = Gather <axis = {axis}> (x, i) }}",
        opset,
    )
    prepared = ort_cpu.prepare(model if shape else of_unknown_rank(model))
    for x in (X, X[:, ::-1]):
        np.testing.assert_array_equal(prepared.run([x, indices])[0], np.take(x, indices, axis))


@pytest.mark.parametrize("known", ["the indices", "the strings"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("places", [1, [1], [1, 0, 0], [[1], [0]]])
def test_rows_are_gathered_whole_where_one_of_both_is_known(
    ort_cpu: type[omb.Preset], known: str, axis: int, places: list[int]
) -> None:
    """ONNX Runtime moves a Transpose over a Gather by a known index, and computes nothing of known strings beforehand (1.24)."""
    indices = np.array(places, np.int64)
    right = np.take(X, indices, axis)
    value = onnx.helper.make_tensor_value_info
    x, i = value("x", onnx.TensorProto.STRING, X.shape), value("i", onnx.TensorProto.INT64, indices.shape)
    y = value("y", onnx.TensorProto.STRING, right.shape)
    if known == "the indices":
        constant, inputs, feeds = onnx.numpy_helper.from_array(indices, "i"), [x], [X]
    else:
        constant, inputs, feeds = onnx.numpy_helper.from_array(X, "x"), [i], [indices]
    node = onnx.helper.make_node("Gather", ["x", "i"], ["y"], axis=axis)
    graph = onnx.helper.make_graph([node], "g", inputs, [y], initializer=[constant])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)
    np.testing.assert_array_equal(ort_cpu.prepare(model).run(feeds)[0], right)


def test_no_rows_are_gathered(ort_cpu: type[omb.Preset]) -> None:
    model = parsed("(string[a, b] x, int64[i] i) => (string[i, b] y) { y = Gather (x, i) }")
    made = ort_cpu.prepare(model).run([np.empty((2, 0), object), np.array([1, 0, 1])])[0]
    assert made.shape == (3, 0)


def test_single_strings_are_gathered_as_they_are(ort_cpu: type[omb.Preset]) -> None:
    model = parsed("(string[a, 3] x, int64[i] i) => (string[a, i] y) { y = Gather <axis = 1> (x, i) }")
    assert ort_cpu.prepare(model).adaptations == ()


def test_rows_are_gathered_whole_within_a_branch(ort_cpu: type[omb.Preset]) -> None:
    model = parsed(
        """(bool c, string[a, b] x, int64[i] i) => (string[i, b] y) { y = If (c) <
        then_branch = t () => (string[i, b] u) { u = Gather (x, i) },
        else_branch = e () => (string[j, b] v) { v = Identity (x) }> }"""
    )
    made = ort_cpu.prepare(model).run([np.array(True), X, np.array([1, 1])])[0]
    np.testing.assert_array_equal(made, X[[1, 1]])


@pytest.mark.parametrize("shape", ["2, 3", "a, b", ""])
@pytest.mark.parametrize(
    ("given", "mode", "expected"),
    [
        ([1, 0, 0, 1], "constant", [["v"] * 4, ["0a", "0b", "0c", "v"], ["1a", "1b", "1c", "v"]]),
        ([0, -1, 0, 1], "constant", [["0b", "0c", "v"], ["1b", "1c", "v"]]),
        ([0, 1, 0, 1], "edge", [["0a", "0a", "0b", "0c", "0c"], ["1a", "1a", "1b", "1c", "1c"]]),
        ([0, 1, 0, 1], "reflect", [["0b", "0a", "0b", "0c", "0b"], ["1b", "1a", "1b", "1c", "1b"]]),
        ([0, 1, 0, 1], "wrap", [["0c", "0a", "0b", "0c", "0a"], ["1c", "1a", "1b", "1c", "1a"]]),
    ],
)
def test_strings_are_padded(
    ort_cpu: type[omb.Preset], shape: str, given: list[int], mode: str, expected: list[list[str]]
) -> None:
    model = parsed(
        f"(string[{shape or '2, 3'}] x, int64[4] p, string v) => (string[k, l] y) {{ y = Pad <mode = '{mode}'> (x, p, v) }}".replace(
            "'", '"'
        )
    )
    prepared = ort_cpu.prepare(model if shape else of_unknown_rank(model))
    made = prepared.run([X, np.array(given), np.array("v", object)])[0]
    np.testing.assert_array_equal(made, np.array(expected, object))


@pytest.mark.parametrize("axes", [[1], [-1]])
def test_strings_are_padded_along_some_axes(ort_cpu: type[omb.Preset], axes: list[int]) -> None:
    model = parsed("(string[a, b] x, int64[2] p, int64[1] i) => (string[a, c] y) { y = Pad (x, p, , i) }")
    made = ort_cpu.prepare(model).run([X, np.array([1, 0]), np.array(axes)])[0]
    np.testing.assert_array_equal(made, np.array([["", "0a", "0b", "0c"], ["", "1a", "1b", "1c"]], object))
