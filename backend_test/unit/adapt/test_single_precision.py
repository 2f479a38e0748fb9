# SPDX-License-Identifier: Apache-2.0
"""Infinities in models of float64, which OpenVINO computes in float32, stay infinite."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models

DOUBLE = TensorProto.DOUBLE
TOLD = pytest.mark.filterwarnings("ignore::onnx_multi_backend.PrecisionWarning")
X = np.array([1.0, -2.5, np.inf, -np.inf, 3.0])
MASK = np.array([True, False, True, False, True])
INFINITE = (-np.inf, np.inf)


def _model(nodes: list[NodeProto], given: dict[str, np.ndarray], result: int, **constants: Any) -> onnx.ModelProto:
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in given.items()}
    inputs = [models.tensor(name, list(given[name].shape), kind) for name, kind in kinds.items()]
    held = {name: np.asarray(value) for name, value in constants.items()}
    return models.model(nodes, inputs, [models.tensor("y", None, result)], initializers=held, opsets={"": 18})


def _passes(prepared: omb.PreparedModel) -> set[str]:
    return {change.pass_name for change in prepared.adaptations}


@TOLD
@pytest.mark.parametrize("infinite", INFINITE)
@pytest.mark.parametrize(
    ("nodes", "right"),
    [
        ([models.node("Add", ["x", "c"], ["y"])], lambda c: X + c),
        ([models.node("Where", ["m", "x", "c"], ["y"])], lambda c: np.where(MASK, X, c)),
        ([models.node("Mul", ["x", "c"], ["y"])], lambda c: X * c),
        ([models.node("Max", ["x", "c"], ["y"])], lambda c: np.maximum(X, c)),
    ],
)
def test_an_infinite_constant(openvino: type[omb.Preset], nodes: list[NodeProto], right: Any, infinite: float) -> None:
    model = _model(nodes, {"x": X, "m": MASK}, DOUBLE, c=np.array(infinite))
    prepared = openvino.prepare(model)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(prepared.run([X, MASK])[0], right(infinite))
    assert "single_precision" in _passes(prepared)


@TOLD
@pytest.mark.parametrize("infinite", INFINITE)
def test_constants_that_attributes_hold(openvino: type[omb.Preset], infinite: float) -> None:
    value = numpy_helper.from_array(np.array([infinite]))
    filled = _model([models.node("ConstantOfShape", ["s"], ["y"], value=value)], {"s": np.array([3])}, DOUBLE)
    assert openvino.prepare(filled).run([np.array([3])])[0].tolist() == [infinite] * 3
    nodes = [
        models.node("Constant", [], ["c"], value_float=infinite),
        models.node("CastLike", ["c", "x"], ["d"]),
        models.node("Where", ["m", "x", "d"], ["y"]),
    ]
    made = openvino.prepare(_model(nodes, {"x": X, "m": MASK}, DOUBLE)).run([X, MASK])[0]
    np.testing.assert_array_equal(made, np.where(MASK, X, infinite))


@TOLD
def test_a_mask_hides_whole_rows(openvino: type[omb.Preset], ort_cpu: type[omb.Preset]) -> None:
    model = _model(
        [models.node("Where", ["m", "x", "c"], ["h"]), models.node("Softmax", ["h"], ["y"])],
        {"x": np.zeros((2, 3)), "m": np.zeros((2, 3), bool)},
        DOUBLE,
        c=-np.inf,
    )
    feeds = [np.arange(6.0).reshape(2, 3), np.array([[True, False, True], [False] * 3])]
    made, wanted = (preset.prepare(model).run(feeds)[0] for preset in (openvino, ort_cpu))
    np.testing.assert_allclose(made, wanted, rtol=1e-6)


@TOLD
@pytest.mark.parametrize(("operator", "infinite"), [("ReduceMax", -np.inf), ("ReduceMin", np.inf)])
def test_the_extreme_of_infinities_alone_and_of_nothing(
    openvino: type[omb.Preset], operator: str, infinite: float
) -> None:
    model = _model([models.node(operator, ["x"], ["y"], keepdims=0)], {"x": X}, DOUBLE)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    prepared = openvino.prepare(model)
    for count in (2, 0):
        assert prepared.run([np.full(count, infinite)])[0] == infinite


@TOLD
@pytest.mark.parametrize("causal", [0, 1])
def test_an_attention_whose_rows_are_masked(openvino: type[omb.Preset], causal: int) -> None:
    q, k, v = (np.random.default_rng(i).normal(size=(1, 1, 3, 4)) for i in range(3))
    seen = np.array([[[[1, 0, 1], [0, 0, 0], [1, 1, 1]]]], bool)
    model = _model(
        [models.node("Attention", list("qkvm"), ["y"], is_causal=causal)],
        {"q": q, "k": k, "v": v, "m": seen},
        DOUBLE,
    )
    model.opset_import[0].version = 24
    shown = seen & np.tri(3, dtype=bool) if causal else seen
    scores = np.where(shown, np.exp(q @ k.swapaxes(2, 3) / 2), 0)
    total = scores.sum(-1, keepdims=True)
    right = scores / np.where(total, total, 1) @ v
    np.testing.assert_allclose(openvino.prepare(model).run([q, k, v, seen])[0], right, rtol=1e-5, atol=1e-6)


@TOLD
def test_in_a_branch(openvino: type[omb.Preset]) -> None:
    branches = [
        onnx.helper.make_graph(
            [
                models.node("Constant", [], [f"{name}c"], value=numpy_helper.from_array(np.array(infinite)), name=name),
                models.node("Add", ["x", f"{name}c"], [f"{name}y"], name=f"{name}add"),
            ],
            name,
            [],
            [models.tensor(f"{name}y", None, DOUBLE)],
        )
        for name, infinite in (("a", np.inf), ("b", -np.inf))
    ]
    node = models.node("If", ["b"], ["y"], then_branch=branches[0], else_branch=branches[1])
    prepared = openvino.prepare(_model([node], {"x": X, "b": np.array(True)}, DOUBLE))
    for condition, infinite in ((True, np.inf), (False, -np.inf)):
        made = prepared.run([np.array([1.0, 2, 3, 4, 5]), np.array(condition)])[0]
        assert made.tolist() == [infinite] * 5


def test_that_float64_is_computed_in_float32_is_told(openvino: type[omb.Preset]) -> None:
    model = _model([models.node("Add", ["x", "c"], ["y"])], {"x": X}, DOUBLE, c=np.inf)
    with pytest.warns(omb.PrecisionWarning, match=re.escape("computes float64 in float32")):
        openvino.prepare(model)
    with pytest.raises(omb.UnsupportedModelError, match="float64"):
        openvino.prepare(model, precision_policy="strict")


@TOLD
def test_weights_in_another_file(openvino: type[omb.Preset], tmp_path: Path) -> None:
    weights = np.arange(2000.0)
    weights[7] = -np.inf
    model = _model([models.node("Add", ["x", "c"], ["y"])], {"x": weights}, DOUBLE, c=weights)
    model.graph.initializer.append(numpy_helper.from_array(np.array(np.inf), "small"))
    model.graph.node.append(models.node("Add", ["y", "small"], ["z"], name="other"))
    model.graph.output.append(models.tensor("z", None, DOUBLE))
    path = tmp_path / "some.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin")
    y, z = openvino.prepare(path).run([np.ones(2000)])
    np.testing.assert_array_equal(y, weights + 1)
    assert np.isposinf(np.delete(z, 7)).all()
    assert np.isnan(z[7])


@TOLD
def test_constants_of_other_models_keep_their_digits(openvino: type[omb.Preset]) -> None:
    """They are folded in float64."""
    nodes = [models.node("Cast", ["c"], ["n"], to=TensorProto.INT64), models.node("Add", ["i", "n"], ["y"])]
    model = _model(nodes, {"i": np.array([1])}, TensorProto.INT64, c=np.array([123456789.0]))
    prepared = openvino.prepare(model)
    assert prepared.run([np.array([1])])[0].tolist() == [123456790]
    assert "single_precision" not in _passes(prepared)


@TOLD
@pytest.mark.parametrize(
    ("nodes", "constants", "right"),
    [
        (
            [models.node("Range", ["a", "b", "c"], ["r"]), models.node("Cast", ["r"], ["z"], to=TensorProto.FLOAT)],
            {"a": np.array(0.0), "b": np.array(0.3), "c": np.array(0.1)},
            [0.0, 0.1, 0.2],
        ),
        (
            [models.node("Cast", ["a"], ["r"], to=TensorProto.INT64), models.node("Add", ["r", "b"], ["z"])],
            {"a": np.array([16777217.0]), "b": np.array([1])},
            [16777218],
        ),
        (
            [models.node("Equal", ["a", "b"], ["z"])],
            {"a": np.array([0.1 + 0.2]), "b": np.array([0.3])},
            [False],
        ),
    ],
)
@pytest.mark.parametrize("mask", [True, False])
def test_what_is_folded_stays_exact(
    openvino: type[omb.Preset], nodes: list[NodeProto], constants: dict[str, Any], right: list[Any], mask: bool
) -> None:
    """An infinity elsewhere does not change how many numbers a Range has, or what integer a float64 becomes."""
    x = np.array([1, -3, 2], np.float32)
    first = models.node("Add", ["x", "m"], ["y"]) if mask else models.node("ReduceMax", ["x"], ["y"], keepdims=0)
    held = constants | ({"m": np.array([0, -np.inf, 0], np.float32)} if mask else {})
    kind = np.asarray(right).dtype
    model = _model([first, *nodes], {"x": x}, TensorProto.FLOAT, **held)
    kinds = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
    model.graph.output.append(models.tensor("z", None, kinds[kind.kind]))
    y, z = openvino.prepare(model).run([x])
    np.testing.assert_array_equal(y, x + held["m"] if mask else 2)
    np.testing.assert_allclose(z, right, rtol=1e-6)


@TOLD
@pytest.mark.parametrize("beside", [True, False])
def test_a_model_in_a_file(openvino: type[omb.Preset], tmp_path: Path, beside: bool) -> None:
    x, c, w = np.ones(3, np.float32), np.array([0, -np.inf, 1.0]), np.arange(3, dtype=np.float32)
    nodes = [
        models.node("Cast", ["x"], ["d"], to=DOUBLE),
        models.node("Add", ["d", "c"], ["s"]),
        models.node("Cast", ["s"], ["f"], to=TensorProto.FLOAT, name="back"),
        models.node("Mul", ["f", "w"], ["y"]),
    ]
    path = tmp_path / "some.onnx"
    model = _model(nodes, {"x": x}, TensorProto.FLOAT, c=c, w=w)
    onnx.save(model, path, save_as_external_data=beside, location="weights.bin", size_threshold=0)
    np.testing.assert_array_equal(openvino.prepare(path).run([x])[0], [0, -np.inf, 4])


@TOLD
def test_a_large_mask(openvino: type[omb.Preset]) -> None:
    x = np.zeros((300, 300), np.float32)
    mask = np.triu(np.full((300, 300), -np.inf), 1)
    nodes = [
        models.node("Cast", ["x"], ["d"], to=DOUBLE),
        models.node("Add", ["d", "m"], ["s"]),
        models.node("Cast", ["s"], ["y"], to=TensorProto.FLOAT, name="back"),
    ]
    model = _model(nodes, {"x": x}, TensorProto.FLOAT, m=mask)
    np.testing.assert_array_equal(openvino.prepare(model).run([x])[0], mask)


@TOLD
def test_an_input_with_a_default(openvino: type[omb.Preset]) -> None:
    x, w, c = np.ones(3), np.array([1, 2, np.inf]), np.array([0, -np.inf, 1.0])
    nodes = [models.node("Add", ["x", "c"], ["s"], name="one"), models.node("Add", ["w", "s"], ["y"], name="other")]
    model = _model(nodes, {"x": x, "w": w}, DOUBLE, c=c, w=w)
    np.testing.assert_array_equal(openvino.prepare(model).run({"x": x})[0], [2, -np.inf, np.inf])


def test_a_model_without_float64_is_left_as_it_is(openvino: type[omb.Preset]) -> None:
    nodes = [onnx.helper.make_node("Gelu", ["x"], ["g"], domain="com.microsoft"), models.node("Add", ["g", "m"], ["y"])]
    x, mask = np.ones(3, np.float32), np.array([0, -np.inf, 0], np.float32)
    model = _model(nodes, {"x": x}, TensorProto.FLOAT, m=mask)
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    prepared = openvino.prepare(model)
    assert prepared.adaptations == ()
    assert np.isneginf(prepared.run([x])[0][1])
