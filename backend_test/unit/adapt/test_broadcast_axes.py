# SPDX-License-Identifier: Apache-2.0
"""Before opset 7 an attribute tells which axes of the first operand the second one stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

Kernel = Callable[..., Any]
ARITHMETIC: dict[str, Kernel] = {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract}
POWER: dict[str, Kernel] = {"Pow": np.power}
COMPARISONS: dict[str, Kernel] = {"Equal": np.equal, "Greater": np.greater, "Less": np.less}
LOGICAL: dict[str, Kernel] = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
ALL = {**ARITHMETIC, **POWER, **COMPARISONS, **LOGICAL}
#: All sizes are equal, so that numpy's broadcasting would do as well, and give other numbers.
SHAPE = (3, 3, 3)


def _operand(operator: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    whole = np.random.default_rng(seed).integers(0, 3, shape)
    if operator in LOGICAL:
        return whole > 1
    return whole.astype(np.int32) if operator == "Equal" else whole.astype(np.float32) + 1


def _model(operator: str, shapes: list[Any], opset: int, axis: int | None) -> ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(_operand(operator, (), 0).dtype)
    made = TensorProto.BOOL if operator in {**COMPARISONS, **LOGICAL} else kind
    attributes = {"broadcast": 1} | ({} if axis is None else {"axis": axis})
    node = models.node(operator, ["a", "b"], ["y"], **attributes)
    inputs = [models.tensor(name, shape, kind) for name, shape in zip("ab", shapes, strict=True)]
    return models.model([node], inputs, [models.tensor("y", None, made)], opsets={"": opset}, ir_version=3)


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("second", "axis"), [((3,), 0), ((3,), 1), ((3,), -2), ((3,), 2), ((3, 3), 0), ((3, 3), None), ((1,), None)]
)
@pytest.mark.parametrize("operator", ALL)
def test_on_openvino(
    openvino: type[omb.Preset], operator: str, second: tuple[int, ...], axis: int | None, known: bool, opset: int
) -> None:
    a, b = _operand(operator, SHAPE, 1), _operand(operator, second, 2)
    shapes = [list(x.shape) if known else [None] * x.ndim for x in (a, b)]
    start = 3 - b.ndim if axis is None else axis % 3
    right = ALL[operator](a, b.reshape(b.shape + (1,) * (3 - start - b.ndim)))
    (made,) = openvino.prepare(_model(operator, shapes, opset, axis)).run([a, b])
    np.testing.assert_allclose(made, right, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize(("operator", "known"), [("Equal", True), ("Equal", False), ("Pow", True)])
def test_on_onnx_runtime(ort_cpu: type[omb.Preset], operator: str, axis: int | None, known: bool) -> None:
    """It has no kernel of these opsets: newer ones take their place."""
    a, b = _operand(operator, SHAPE, 1), _operand(operator, (3,), 2)
    shapes = [list(x.shape) if known else [None] * x.ndim for x in (a, b)]
    right = ALL[operator](a, b.reshape(b.shape + (1,) * (0 if axis is None else 2 - axis)))
    (made,) = ort_cpu.prepare(_model(operator, shapes, 6, axis)).run([a, b])
    np.testing.assert_allclose(made, right, rtol=1e-5)


@pytest.mark.parametrize("operator", ["Equal", "Less", "Or", "Pow"])
def test_without_ranks_it_is_refused(engine: type[omb.Preset], operator: str) -> None:
    model = _model(operator, [None, None], 6, 1)
    with pytest.raises(omb.UnsupportedModelError):
        engine.prepare(model)


def test_in_a_branch(openvino: type[omb.Preset]) -> None:
    a, b = _operand("Less", SHAPE, 1), _operand("Less", (3,), 2)
    branches = [
        helper.make_graph(
            [models.node("Less", ["a", "b"], [f"{name}y"], name=name, broadcast=1, axis=axis)],
            name,
            [],
            [models.tensor(f"{name}y", None, TensorProto.BOOL)],
        )
        for name, axis in (("one", 0), ("other", 1))
    ]
    model = models.model(
        [models.node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])],
        [models.tensor("a", SHAPE), models.tensor("b", [3]), models.tensor("c", [], TensorProto.BOOL)],
        [models.tensor("y", None, TensorProto.BOOL)],
        opsets={"": 6},
        ir_version=3,
    )
    prepared = openvino.prepare(model)
    for condition, shape in ((True, (3, 1, 1)), (False, (3, 1))):
        made = prepared.run({"a": a, "b": b, "c": np.array(condition)})[0]
        np.testing.assert_array_equal(made, a < b.reshape(shape))


@pytest.mark.parametrize("shapes", [([2, 3, 3], [3]), ([None, None, None], [3]), ([None, None, None], [None])])
@pytest.mark.parametrize("count", [3, 1])
@pytest.mark.parametrize("opset", [1, 6])
def test_a_slope_for_each_channel(engine: type[omb.Preset], opset: int, count: int, shapes: tuple[Any, Any]) -> None:
    """ONNX's version converter leaves them as they are, which in newer opsets are those of the last axis."""
    x = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(np.float32)
    slopes = np.arange(1, count + 1, dtype=np.float32)
    model = models.model(
        [models.node("PRelu", ["x", "s"], ["y"])],
        [models.tensor("x", shapes[0]), models.tensor("s", [count] if shapes[1] == [3] else shapes[1])],
        [models.tensor("y", None)],
        opsets={"": opset},
        ir_version=3,
    )
    right = np.where(x < 0, x * slopes.reshape(-1, 1), x)
    np.testing.assert_allclose(engine.prepare(model).run([x, slopes])[0], right, rtol=1e-6)
