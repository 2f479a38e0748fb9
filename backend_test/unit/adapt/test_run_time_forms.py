# SPDX-License-Identifier: Apache-2.0
"""Rules for what is known only at run time, on an engine without the operator and on OpenVINO."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import ModelProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import computed, expected, rewritten

pytest.importorskip("onnxruntime")
quickly = settings(max_examples=25, deadline=None)
INT64 = models.INT64
DTYPES = (np.float32, np.float16, np.int64, np.uint8, np.bool_)


def kind_of(x: np.ndarray) -> int:
    return helper.np_dtype_to_tensor_dtype(x.dtype)


def tile_of(x: np.ndarray, *, opset: int = 13, dynamic: bool = False) -> ModelProto:
    shape = [None] * x.ndim if dynamic else x.shape
    inputs = [models.tensor("x", shape, kind_of(x)), models.tensor("r", [x.ndim], INT64)]
    return models.one_node("Tile", inputs, [models.tensor("y", [None] * x.ndim, kind_of(x))], opset=opset)


@quickly
@given(
    shape=hnp.array_shapes(min_dims=1, max_dims=5, min_side=0, max_side=3),
    dtype=st.sampled_from(DTYPES),
    data=st.data(),
)
def test_tile(shape: tuple[int, ...], dtype: Any, data: st.DataObject) -> None:
    repeats = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(shape), max_size=len(shape))), np.int64)
    x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    new, changes = rewritten(tile_of(x, dynamic=data.draw(st.booleans())), "Tile")
    assert [c.pass_name for c in changes] == ["tile"]
    np.testing.assert_array_equal(computed(new, x, repeats)[0], np.tile(x, repeats))


@pytest.mark.parametrize("opset", [6, 13, 21])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tile_on_openvino(openvino: type[omb.Preset], opset: int, dynamic: bool, dtype: Any) -> None:
    x = np.arange(2 * 3 * 4 * 2).reshape(2, 3, 4, 2).astype(dtype)
    prepared = openvino.prepare(tile_of(x, opset=opset, dynamic=dynamic))
    for repeats in ([2, 3, 2, 2], [1, 1, 1, 1], [1, 2, 2, 2], [2, 0, 2, 2], [3, 1, 2, 3]):
        np.testing.assert_array_equal(prepared.run([x, np.array(repeats)])[0], np.tile(x, repeats))


def test_tile_by_a_batch_stays_on_openvino(openvino_ep: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 18]>
        g (float[n, 4] q, float[1, 2, h, w] x) => (float[n, 2, h, w] y)
            <int64[1] zero = {0}, int64[3] ones = {1, 1, 1}, float[1] two = {2}> {
            s = Shape (q) batch = Gather (s, zero) times = Concat <axis = 0> (batch, ones)
            t = Tile (x, times) u = Relu (t) m = Mul (u, two) y = Add (m, t) }"""
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", omb.FallbackWarning)
        prepared = openvino_ep.prepare(model)
    assert "tile" in {change.pass_name for change in prepared.adaptations}
    for batch, size in ((2, 3), (3, 4), (1, 2)):
        x = np.random.default_rng(0).normal(size=(1, 2, size, 4)).astype(np.float32)
        made = prepared.run({"q": np.zeros((batch, 4), np.float32), "x": x})[0]
        np.testing.assert_allclose(made, np.tile(np.maximum(x, 0) * 2 + x, (batch, 1, 1, 1)), rtol=1e-6)


def reduction_of(op_type: str, shape: tuple[int, ...], count: int, *, dynamic: bool, opset: int = 20) -> ModelProto:
    inputs = [
        models.tensor("x", [None] * len(shape) if dynamic else shape),
        models.tensor("a", [count], INT64),
    ]
    return models.one_node(op_type, inputs, [models.tensor("y", None)], opset=opset, keepdims=0)


@quickly
@given(
    op_type=st.sampled_from(["ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceProd"]),
    shape=hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=3),
    dynamic=st.booleans(),
    data=st.data(),
)
def test_reductions(op_type: str, shape: tuple[int, ...], dynamic: bool, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    axes = np.array([p - len(shape) if data.draw(st.booleans()) else p for p in places], np.int64)
    x = np.random.default_rng(1).uniform(0.5, 2, shape).astype(np.float32)
    model = reduction_of(op_type, shape, len(axes), dynamic=dynamic)
    new, changes = rewritten(model, op_type, forms=lambda s: not s.attribute("keepdims", 1) and s.has_input(1))
    functions = ("ReduceL1", "ReduceLogSum", "ReduceLogSumExp")
    assert [c.pass_name for c in changes] == ["reduce_functions" if op_type in functions else "reduce_axes"]
    np.testing.assert_allclose(computed(new, x, axes)[0], expected(model, x, axes)[0], rtol=1e-5)


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceLogSum", "ReduceL1", "ReduceMean", "ReduceMin"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_reductions_on_openvino(openvino: type[omb.Preset], op_type: str, dynamic: bool) -> None:
    x = np.random.default_rng(1).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
    model = reduction_of(op_type, x.shape, 2, dynamic=dynamic)
    prepared = openvino.prepare(model)
    for axes in ([0, 1], [2, 0], [-1, 1], [0, 1]):
        result = prepared.run([x, np.array(axes)])[0]
        np.testing.assert_allclose(result, expected(model, x, np.array(axes))[0], rtol=1e-4)


@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 2, 2)])
def test_reductions_of_nothing(openvino: type[omb.Preset], shape: tuple[int, ...]) -> None:
    prepared = openvino.prepare(reduction_of("ReduceSum", shape, 1, dynamic=True))
    for axis in range(3):
        result = prepared.run([np.zeros(shape, np.float32), np.array([axis])])[0]
        np.testing.assert_array_equal(result, np.zeros(shape).sum(axis))


def test_a_model_older_than_the_rules_is_lifted(openvino: type[omb.Preset]) -> None:
    """The rule's body is of opset 18; what changed since in the model's own nodes is converted with it."""
    x = np.arange(16, dtype=np.float32).reshape(1, 2, 4, 2)
    nodes = [
        models.node("Unsqueeze", ["x"], ["u"], axes=[0]),
        models.node("Squeeze", ["u"], ["s"], axes=[0]),
        models.node("Tile", ["s", "r"], ["y"]),
    ]
    inputs = [models.tensor("x", x.shape), models.tensor("r", [4], INT64)]
    model = models.model(nodes, inputs, [models.tensor("y", [None] * 4)], opsets={"": 11})
    prepared = openvino.prepare(model)
    assert {"tile", "opset_version"} <= {a.pass_name for a in prepared.adaptations}
    for repeats in ([1, 2, 2, 3], [2, 1, 3, 2]):
        np.testing.assert_array_equal(prepared.run([x, np.array(repeats)])[0], np.tile(x, repeats))


EMPTY = [
    ((2, 1), [2, 0]),
    ((1,), [0]),
    ((1, 3), [4, 0, 3]),
    ((1, 1), [0, 0]),
    ((), [0]),
    ((2, 0), [2, 0]),
    ((0,), [5, 1]),
]


@pytest.mark.parametrize(("shape", "wanted"), EMPTY)
@pytest.mark.parametrize("known", ["all", "last", "nothing"])
def test_expanding_to_nothing(shape: tuple[int, ...], wanted: list[int], known: str) -> None:
    pytest.importorskip("openvino")
    x = np.ones(shape, np.float32)
    dims = {"all": shape, "last": [None, *shape[1:]], "nothing": [None] * x.ndim}[known] if shape else shape
    node = models.node("Expand", ["x", "s"], ["y"])
    outputs = [models.tensor("y", None)]
    model = models.model([node], [models.tensor("x", dims)], outputs, initializers={"s": np.array(wanted)})
    prepared = omb.OpenvinoBackend.prepare(model)
    assert prepared.run([x])[0].shape == np.broadcast_shapes(shape, tuple(wanted))
    if known == "all":
        new, changes = rewritten(model, "Expand")
        assert [c.pass_name for c in changes] == ["expand_to_nothing"]
        assert computed(new, x)[0].shape == np.broadcast_shapes(shape, tuple(wanted))


def test_a_tile_of_unknown_rank_has_as_many_axes_as_repeats(openvino: type[omb.Preset]) -> None:
    """One repeat is right as it is."""
    nodes = [models.node("ReduceMean", ["x", "a"], ["m"], keepdims=0), models.node("Tile", ["m", "r"], ["y"])]
    given = [models.tensor("x", [2, 3]), models.tensor("a", [1], models.INT64), models.tensor("r", [1], models.INT64)]
    prepared = openvino.prepare(models.model(nodes, given, [models.tensor("y", ["n"])]))
    x = np.float32([[1, 2, 3], [5, 6, 7]])
    np.testing.assert_array_equal(prepared.run([x, np.int64([0]), np.int64([2])])[0], [3, 4, 5, 3, 4, 5])


@quickly
@given(shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3), data=st.data())
def test_axes_that_are_inserted(shape: tuple[int, ...], data: st.DataObject) -> None:
    """Also into tensors of no elements, whose sizes of 0 are kept."""
    count = data.draw(st.integers(1, 2))
    total = len(shape) + count
    places = st.lists(st.integers(-total, total - 1), min_size=count, max_size=count, unique_by=lambda a: a % total)
    axes = np.array(data.draw(places), np.int64)
    inputs = [models.tensor("x", [None] * len(shape)), models.tensor("a", [count], INT64)]
    model = models.one_node("Unsqueeze", inputs, [models.tensor("y", [None] * total)], opset=13)
    new, changes = rewritten(model, "Unsqueeze")
    assert [c.pass_name for c in changes] == ["unsqueeze_axes"]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(computed(new, x, axes)[0], np.expand_dims(x, tuple(axes.tolist())))
