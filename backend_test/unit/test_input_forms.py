# SPDX-License-Identifier: Apache-2.0
"""The three forms of inputs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.host.applies import applies

A = np.array([[1, 2, 3]], np.float32)
B = np.array([[10, 20, 30]], np.float32)


@pytest.mark.parametrize(
    "form",
    [
        lambda: [A, B],
        lambda: (A, B),
        lambda: {"a": A, "b": B},
        lambda: {"b": B, "a": A},
        lambda: OrderedDict(b=B, a=A),
    ],
    ids=["list", "tuple", "dict", "dict in another order", "another mapping"],
)
def test_two_inputs_by_order_or_by_name(preset: type[omb.Preset], form: Callable[[], Any]) -> None:
    np.testing.assert_array_equal(preset.prepare(models.subtract()).run(form())[0], A - B)


@pytest.mark.parametrize(
    "form", [lambda: A, lambda: [A], lambda: (A,), lambda: {"x": A}], ids=["alone", "list", "tuple", "dict"]
)
def test_one_input_alone_in_a_sequence_or_by_name(preset: type[omb.Preset], form: Callable[[], Any]) -> None:
    np.testing.assert_array_equal(preset.prepare(models.relu()).run(form())[0], A)


def test_what_the_constructor_returns_is_what_prepare_returns(preset: type[omb.Preset]) -> None:
    built, prepared = preset(models.relu()), preset.prepare(models.relu())
    assert type(built) is type(prepared) is omb.PreparedModel
    np.testing.assert_array_equal(built.run(-A)[0], prepared.run(-A)[0])


def test_run_model_prepares_and_runs(preset: type[omb.Preset]) -> None:
    np.testing.assert_array_equal(preset.run_model(models.subtract(), [A, B])[0], A - B)


def test_a_model_without_inputs_runs_on_an_empty_list_or_mapping(engine: type[omb.Preset]) -> None:
    rep = engine.prepare(
        models.model(
            [models.node("Add", ["w", "w"], ["y"])],
            [],
            [models.tensor("y", [2])],
            initializers={"w": np.float32([1, 2])},
        )
    )
    assert rep.get_inputs() == []
    for inputs in ([], {}, ()):
        np.testing.assert_array_equal(rep.run(inputs)[0], [2, 4])


def test_what_is_wrong_with_an_input_is_said_with_a_cure(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(models.relu((1, 3)))
    with pytest.raises(
        omb.InputError, match=r"list given where a numpy array is needed.*numpy\.array\(value, 'float32'\)"
    ):
        rep.run({"x": [[1.0, 2.0, 3.0]]})
    with pytest.raises(omb.InputError, match=r"has no input 'X'\. Did you mean 'x'\? Its inputs are x: tensor"):
        rep.run({"X": A})
    with pytest.raises(omb.InputError, match="input 'x' missing"):
        rep.run({})


def test_an_input_with_a_default_can_be_left_out_or_given_by_name(ort_cpu: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Sub", ["a", "b"], ["y"])],
        [models.tensor("a"), models.tensor("b", [3])],
        [models.tensor("y")],
        initializers={"b": np.float32([1, 1, 1])},
    )
    rep = ort_cpu.prepare(made)
    assert [i.name for i in rep.get_inputs()] == ["a"]
    np.testing.assert_array_equal(rep.run(A)[0], A - 1)
    np.testing.assert_array_equal(rep.run({"a": A, "b": B[0]})[0], A - B)


def test_openvino_takes_the_default_of_an_input_as_a_constant_or_as_an_input(openvino: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Sub", ["a", "b"], ["y"])],
        [models.tensor("a"), models.tensor("b", [3])],
        [models.tensor("y")],
        initializers={"b": np.float32([1, 1, 1])},
    )
    np.testing.assert_array_equal(openvino.prepare(made).run(A)[0], A - 1)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("reader", ["Add", "Unique"])
def test_the_built_in_openvino_provider_does_not_ignore_what_is_given_for_a_default(
    openvino_ep: type[omb.Preset], reader: str
) -> None:
    """Unique runs on the CPU provider, which takes the default for what it is."""
    if not applies({"onnxruntime": "<1.31"}):
        pytest.skip("of the built-in provider")
    made = models.model(
        [
            models.node(reader, ["b", "b"] if reader == "Add" else ["b"], ["c"], name="first"),
            models.node("Add", ["a", "c"], ["d"]),
            models.node("Exp", ["d"], ["e"]),
            models.node("Neg", ["e"], ["y"]),
        ],
        [models.tensor("a", (2, 3)), models.tensor("b", [3])],
        [models.tensor("y", (2, 3))],
        initializers={"b": np.float32([1, 2, 3])},
    )
    a, b = np.zeros((2, 3), np.float32), np.float32([4, 5, 6])
    prepared = openvino_ep.prepare(made)
    times = 2 if reader == "Add" else 1
    np.testing.assert_allclose(prepared.run(a)[0], -np.exp(a + times * np.float32([1, 2, 3])), rtol=1e-4)
    if reader == "Unique":
        np.testing.assert_allclose(prepared.run({"a": a, "b": b})[0], -np.exp(a + b), rtol=1e-4)
        return
    with pytest.raises(omb.InputError, match="'b': OpenVINOExecutionProvider treats its default as a constant"):
        prepared.run({"a": a, "b": b})
    np.testing.assert_allclose(prepared.run(a)[0], -np.exp(a + times * np.float32([1, 2, 3])), rtol=1e-4)


class WithDlpack:
    """Another library's tensor, read through DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


class WithArray:
    """Another library's tensor, read through ``__array__``."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._array


class WithBoth(WithArray):
    """Its DLPack refuses (as for memory on another device), its ``__array__`` copies."""

    def __dlpack__(self, **kwargs: Any) -> Any:
        raise BufferError("on another device")

    def __dlpack_device__(self) -> Any:
        return (1, 0)


@pytest.mark.parametrize("kind", [WithDlpack, WithArray, WithBoth])
def test_another_librarys_tensor_is_read(preset: type[omb.Preset], kind: Callable[[np.ndarray], Any]) -> None:
    rep = preset.prepare(models.subtract())
    np.testing.assert_array_equal(rep.run([kind(A), kind(B)])[0], A - B)
    np.testing.assert_array_equal(preset.prepare(models.relu()).run(kind(A))[0], A)


def test_another_librarys_tensor_of_a_wrong_dtype_is_refused(engine: type[omb.Preset]) -> None:
    with pytest.raises(omb.InputError, match="float64"):
        engine.prepare(models.relu()).run(WithDlpack(A.astype(np.float64)))


def test_what_is_no_array_is_refused(engine: type[omb.Preset]) -> None:
    with pytest.raises(omb.InputError, match="object given"):
        engine.prepare(models.relu()).run(object())
