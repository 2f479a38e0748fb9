# SPDX-License-Identifier: Apache-2.0
"""ScatterND with a reduction, of places that it may name more than once: ONNX Runtime's threads lose some of what they add to one element.

Source: https://github.com/microsoft/onnxruntime/issues/18048.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.host.applies import applies

REDUCTIONS: dict[str, Callable[..., Any]] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
SIZES = (2, 3, 65, 129)


def scattered(reduction: str, rank: int | None = 4, places: np.ndarray | None = None) -> ModelProto:
    inputs = [models.tensor("x", None if rank is None else [None] * rank)]
    if places is None:
        inputs.append(models.tensor("i", [None, 2], models.INT64))
    constants = {} if places is None else {"i": places}
    return models.model(
        [models.node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)],
        [*inputs, models.tensor("u", None if rank is None else [None] * (rank - 1))],
        [models.tensor("y", None)],
        initializers=constants,
        opsets={"": 18},
    )


def expected(reduction: str, x: np.ndarray, places: np.ndarray, updates: np.ndarray) -> np.ndarray:
    right = x.copy()
    for place, update in zip(places, updates, strict=True):
        right[tuple(place)] = REDUCTIONS[reduction](right[tuple(place)], update)
    return right


@pytest.mark.parametrize("rank", [4, None])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_large_rows_are_reduced_into_few(ort_cpu: type[omb.Preset], reduction: str, rank: int | None) -> None:
    rng = np.random.default_rng(0)
    prepared = ort_cpu.prepare(scattered(reduction, rank))
    assert "scatter_rows" in {a.pass_name for a in prepared.adaptations}
    for _ in range(3):
        x = rng.integers(1, 3, SIZES).astype(np.float32)
        places = rng.integers([-2, -3], [2, 3], (20, 2))
        updates = rng.integers(1, 3, (20, *SIZES[2:])).astype(np.float32)
        (made,) = prepared.run([x, places, updates])
        np.testing.assert_array_equal(made, expected(reduction, x, places, updates))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("sizes", [SIZES, (2, 3, 0, 4), (4, 3)])
def test_on_every_preset(engine: type[omb.Preset], reduction: str, sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(1, 3, sizes).astype(np.float32)
    places = rng.integers([-2, -3], [2, 3], (7, 2))
    updates = rng.integers(1, 3, (7, *sizes[2:])).astype(np.float32)
    (made,) = engine.prepare(scattered(reduction, len(sizes))).run([x, places, updates])
    np.testing.assert_array_equal(made, expected(reduction, x, places, updates))


def test_a_place_that_is_not_there_is_refused_though_another_has_its_number(ort_cpu: type[omb.Preset]) -> None:
    prepared = ort_cpu.prepare(scattered("add"))
    for place in ([0, 3], [0, -4]):
        with pytest.raises(omb.RunError):
            prepared.run([np.ones((2, 3, 1, 1), np.float32), np.array([place]), np.ones((1, 1, 1), np.float32)])


@pytest.mark.parametrize(
    ("places", "twice"),
    [([[0, 1], [1, 1]], False), ([[1, 0], [1, 0]], True), ([[1, 0], [-1, 0]], True), ([[0, 1]], False)],
)
def test_known_places_that_are_each_named_once_stay(ort_cpu: type[omb.Preset], places: list[Any], twice: bool) -> None:
    prepared = ort_cpu.prepare(scattered("add", places=np.array(places)))
    assert bool(prepared.adaptations) is twice
    x, updates = np.ones((2, 3, 1, 1), np.float32), np.ones((len(places), 1, 1), np.float32)
    np.testing.assert_array_equal(prepared.run([x, updates])[0], expected("add", x, np.array(places), updates))


def test_updates_of_another_shape_have_an_error(ort_cpu: type[omb.Preset]) -> None:
    """As many as there should be, but turned."""
    model = scattered("add", 2, None)
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_value = 1
    model.graph.input[2].type.tensor_type.shape.dim.add()
    prepared = ort_cpu.prepare(model)
    assert prepared.adaptations
    with pytest.raises(omb.RunError):
        prepared.run([np.ones((4, 3), np.float32), np.array([[1], [2]]), np.ones((3, 2), np.float32)])


@pytest.mark.parametrize("shape", [[None, None], None])
def test_places_of_an_unknown_size_stay(ort_cpu: type[omb.Preset], shape: list[None] | None) -> None:
    model = scattered("add", 2)
    model.graph.input[1].CopyFrom(models.tensor("i", shape, models.INT64))
    x, places = np.zeros((4, 3), np.float32), np.array([[1, 0], [2, 2], [1, 0]])
    (made,) = ort_cpu.prepare(model).run([x, places, np.ones(3, np.float32)])
    np.testing.assert_array_equal(made, expected("add", x, places, np.ones(3, np.float32)))


@pytest.mark.skipif(applies({"onnxruntime": "<1.31"}), reason="it ends ONNX Runtime's process, by itself too")
@pytest.mark.parametrize("known", [True, False])
def test_places_without_a_number_are_all_of_the_data(ort_cpu: type[omb.Preset], known: bool) -> None:
    places = np.zeros((2, 0), np.int64)
    model = scattered("add", 1, places if known else None)
    if not known:
        model.graph.input[1].type.tensor_type.shape.dim[1].dim_value = 0
    model.graph.input[-1].CopyFrom(models.tensor("u", [None, None]))
    feeds = [np.ones(3, np.float32), *([] if known else [places]), np.ones((2, 3), np.float32)]
    np.testing.assert_array_equal(ort_cpu.prepare(model).run(feeds)[0], [3, 3, 3])


def test_halves_are_widened_too(ort_cpu: type[omb.Preset]) -> None:
    model = scattered("add")
    for value in (model.graph.input[0], model.graph.input[2], model.graph.output[0]):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    x, places = np.ones(SIZES, np.float16), np.array([[0, 1], [0, 1], [1, 2]])
    updates = np.full((3, *SIZES[2:]), 2, np.float16)
    (made,) = ort_cpu.prepare(model).run([x, places, updates])
    np.testing.assert_array_equal(made, expected("add", x, places, updates))
