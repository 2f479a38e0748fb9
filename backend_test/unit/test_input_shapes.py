# SPDX-License-Identifier: Apache-2.0
"""`input_shapes` fixes inputs to shapes before an engine sees the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def two_inputs() -> ModelProto:
    return models.model(
        [models.node("Add", ["x", "z"], ["s"]), models.node("ReduceSum", ["s"], ["y"])],
        [models.tensor("x", ["N", None]), models.tensor("z", ["N", 3])],
        [models.tensor("y", None)],
    )


@pytest.mark.parametrize("adapt", [True, False])
def test_an_input_has_the_shape_that_was_asked_for(preset: type[omb.Preset], adapt: bool) -> None:
    rep = preset.prepare(two_inputs(), input_shapes={"x": (2, 3)}, adapt=adapt, fallback="full")
    assert [i.shape for i in rep.get_inputs()] == [(2, 3), (2, 3)]  # N is 2 wherever it stands
    assert any(change.pass_name == "input_shapes" for change in rep.adaptations)
    np.testing.assert_allclose(rep.run([X, X])[0].ravel(), [30])
    with pytest.raises(omb.InputError, match="dimension 0 is 1 in the given shape"):
        rep.run([X[:1], X[:1]])


def test_a_size_may_stay_open(engine: type[omb.Preset]) -> None:
    rep = engine.prepare(two_inputs(), input_shapes={"x": [None, 3]})
    assert [i.shape for i in rep.get_inputs()] == [("N", 3), ("N", 3)]
    for rows in (1, 2):
        np.testing.assert_allclose(rep.run([X[:rows], X[:rows]])[0].ravel(), [2 * X[:rows].sum()])


@pytest.mark.parametrize("size", [-1, "?"])
def test_what_exporters_write_for_an_open_size(engine: type[omb.Preset], size: int | str) -> None:
    """PaddleOCR's models have both."""
    model = models.one_node("Neg", [models.tensor("x", [size, size])], [models.tensor("y", [size, size])])
    rep = engine.prepare(model, input_shapes={"x": (2, 3)})
    np.testing.assert_array_equal(rep.run([X])[0], -X)


def test_an_input_without_a_rank_gets_one(ort_cpu: type[omb.Preset]) -> None:
    model = models.one_node("Neg", [models.tensor("x", None)], [models.tensor("y", None)])
    rep = ort_cpu.prepare(model, input_shapes={"x": (2, 3)})
    assert rep.get_inputs()[0].shape == (2, 3)
    np.testing.assert_array_equal(rep.run([X])[0], -X)


def test_a_model_with_weights_in_files(engine: type[omb.Preset], tmp_path: Path) -> None:
    import onnx

    onnx.save(models.linear(3, 2), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    expected = engine.prepare(models.linear(3, 2)).run([X])[0]
    rep = engine.prepare(tmp_path / "m.onnx", input_shapes={"x": (2, 3)})
    np.testing.assert_allclose(rep.run([X])[0], expected, rtol=1e-6)


def test_the_cache_keeps_shapes_apart(engine: type[omb.Preset], tmp_path: Path) -> None:
    for shape in ((2, 3), (1, 3), (2, 3)):
        rep = engine.prepare(two_inputs(), input_shapes={"x": shape}, cache_dir=tmp_path)
        assert rep.get_inputs()[0].shape == shape
        rows = X[: shape[0]]
        np.testing.assert_allclose(rep.run([rows, rows])[0].ravel(), [2 * rows.sum()])


WRONG: dict[str, tuple[Any, str]] = {
    "no such input": ({"q": (1,)}, "no input 'q'; it has 'x', 'z'"),
    "another rank": ({"x": (1, 2, 3)}, "has 2 dimensions"),
    "another size": ({"z": (1, 4)}, "dimension 1 of input 'z'.* is 3; 4 was given"),
    "two sizes for a name": ({"x": (1, 3), "z": (2, 3)}, "'N' stands at another input too"),
    "no mapping": ([1, 3], "is a mapping"),
    "a word": ({"x": "13"}, "has a list of sizes"),
    "a negative size": ({"x": (-1, 3)}, "has a list of sizes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_shape_that_does_not_fit_is_refused(ort_cpu: type[omb.Preset], name: str) -> None:
    given, words = WRONG[name]
    with pytest.raises(omb.OptionError, match=words):
        ort_cpu.prepare(two_inputs(), input_shapes=given)
