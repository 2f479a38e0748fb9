# SPDX-License-Identifier: Apache-2.0
"""What comes back: named, of the declared types, and the caller's own."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.array([[-1, 2, -3]], np.float32)


def test_outputs_by_index_key_and_attribute(preset: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Relu", ["x"], ["positive"]), models.node("Neg", ["x"], ["negated"])],
        [models.tensor("x")],
        [models.tensor("positive"), models.tensor("negated")],
    )
    result = preset.prepare(made).run(X)
    assert isinstance(result, tuple)
    assert len(result) == 2
    for positive in (result[0], result["positive"], result.positive):
        np.testing.assert_array_equal(positive, np.maximum(X, 0))
    for negated in (result[1], result["negated"], result.negated):
        np.testing.assert_array_equal(negated, -X)
    with pytest.raises(KeyError):
        result["nothing"]


@pytest.mark.parametrize("name", ["a/b:0", "1st", "class", "with space", "日本", "_private", "count", "index", "a.b"])
def test_a_name_that_is_no_identifier(preset: type[omb.Preset], name: str) -> None:
    made = models.model(
        [models.node("Relu", ["x y"], [name]), models.node("Neg", ["x y"], ["b"])],
        [models.tensor("x y")],
        [models.tensor(name), models.tensor("b")],
    )
    result = preset.prepare(made).run({"x y": X})
    np.testing.assert_array_equal(result[name], np.maximum(X, 0))
    np.testing.assert_array_equal(result["b"], -X)


def test_inputs_and_outputs_are_described(preset: type[omb.Preset]) -> None:
    made = models.one_node(
        "ArgMax", [models.tensor("x", ["batch", 3])], [models.tensor("y", ["batch", None], models.INT64)], axis=1
    )
    rep = preset.prepare(made)
    assert rep.get_inputs() == [omb.TensorInfo("x", np.dtype(np.float32), ("batch", 3), "tensor(float)")]
    assert rep.get_outputs() == [omb.TensorInfo("y", np.dtype(np.int64), ("batch", None), "tensor(int64)")]


MODELS: dict[str, ModelProto] = {
    "relu": models.relu(),
    "identity": models.one_node("Identity", [models.tensor("x")], [models.tensor("y")]),
    "dropout": models.one_node("Dropout", [models.tensor("x")], [models.tensor("y")]),
    "sum of one": models.one_node("Sum", [models.tensor("x")], [models.tensor("y")]),
    "max of one": models.one_node("Max", [models.tensor("x")], [models.tensor("y")]),
    "concat of one": models.one_node("Concat", [models.tensor("x")], [models.tensor("y")], axis=0),
    "cast to the same": models.one_node("Cast", [models.tensor("x")], [models.tensor("y")], to=models.FLOAT),
    "transpose twice": models.model(
        [models.node("Transpose", ["x"], ["t"], name="one"), models.node("Transpose", ["t"], ["y"], name="two")],
        [models.tensor("x")],
        [models.tensor("y")],
    ),
    "flatten": models.one_node("Flatten", [models.tensor("x")], [models.tensor("y")]),
    "reshape to the same": models.model(
        [models.node("Reshape", ["x", "s"], ["y"])],
        [models.tensor("x")],
        [models.tensor("y")],
        initializers={"s": np.array([0, -1])},
    ),
    "slice": models.model(
        [models.node("Slice", ["x", "b", "e"], ["y"])],
        [models.tensor("x")],
        [models.tensor("y")],
        initializers={"b": np.array([0]), "e": np.array([100])},
    ),
}


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("name", MODELS)
def test_no_later_run_and_no_later_change_of_the_input_alters_a_result(preset: type[omb.Preset], name: str) -> None:
    rep = preset.prepare(MODELS[name], fallback="full")
    given = np.abs(X)
    first = rep.run(given)[0]
    expected = first.copy()
    np.testing.assert_array_equal(expected, np.abs(X))
    given[:] = 77
    np.testing.assert_array_equal(first, expected)
    second = rep.run(np.full_like(X, 5))[0]
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, np.full_like(X, 5))


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("name", MODELS)
def test_changing_a_result_alters_neither_the_input_nor_a_later_result(preset: type[omb.Preset], name: str) -> None:
    rep = preset.prepare(MODELS[name], fallback="full")
    given = np.abs(X)
    first = rep.run(given)[0]
    assert first.flags.writeable
    first[:] = 99
    np.testing.assert_array_equal(given, np.abs(X))
    np.testing.assert_array_equal(rep.run(given)[0], np.abs(X))


def test_an_output_that_is_an_input(engine: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Neg", ["x"], ["y"])], [models.tensor("x")], [models.tensor("x"), models.tensor("y")]
    )
    rep = engine.prepare(made)
    given = X.copy()
    same, negated = rep.run(given)
    given[:] = 0
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(negated, -X)


def test_an_initializer_as_output_is_the_callers_copy(engine: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Add", ["x", "w"], ["y"])],
        [models.tensor("x")],
        [models.tensor("w", [3]), models.tensor("y")],
        initializers={"w": np.float32([1, 2, 3])},
    )
    rep = engine.prepare(made)
    first = rep.run(X)
    first["w"][:] = 1000
    second = rep.run(X)
    np.testing.assert_array_equal(second["w"], [1, 2, 3])
    np.testing.assert_array_equal(second["y"], X + [1, 2, 3])


def test_a_constant_as_output_is_the_callers_copy(engine: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Constant", [], ["c"], value_floats=[1.0, 2.0]), models.node("Neg", ["x"], ["y"])],
        [models.tensor("x")],
        [models.tensor("c", [2]), models.tensor("y")],
    )
    rep = engine.prepare(made)
    rep.run(X)["c"][:] = 1000
    np.testing.assert_array_equal(rep.run(X)["c"], [1, 2])


def test_two_outputs_of_one_value_are_two_arrays(engine: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Relu", ["x"], ["r"]), models.node("Identity", ["r"], ["y"])],
        [models.tensor("x")],
        [models.tensor("r"), models.tensor("y")],
    )
    result = engine.prepare(made).run(X)
    result["r"][:] = 99
    np.testing.assert_array_equal(result["y"], np.maximum(X, 0))


def test_one_value_named_twice_as_output(engine: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Relu", ["x"], ["y"])], [models.tensor("x")], [models.tensor("y"), models.tensor("y")]
    )
    first, second = engine.prepare(made).run(X)
    first[:] = 99
    np.testing.assert_array_equal(second, np.maximum(X, 0))
