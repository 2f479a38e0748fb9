# SPDX-License-Identifier: Apache-2.0
"""Pad of some of the axes, or of all in another order, as constants and as inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import computed, rewritten

pytest.importorskip("onnxruntime")
SHAPE = (2, 3, 4)
X = np.arange(1, 25, dtype=np.float32).reshape(SHAPE)


def padding(
    axes: list[int],
    pads: list[int] | None = None,
    *,
    dynamic: bool = False,
    known: bool = True,
    kind: int = models.INT64,
) -> ModelProto:
    """Behind ordinary nodes, among which execution providers take it."""
    constants: dict[str, Any] = {} if pads is None else {"p": np.array(pads, np.int64)}
    inputs = [models.tensor("x", [None] * 3 if dynamic else SHAPE)]
    if pads is None:
        inputs.append(models.tensor("p", [2 * len(axes)], models.INT64))
    if known:
        constants["a"] = np.array(axes, np.int32 if kind == TensorProto.INT32 else np.int64)
    else:
        inputs.append(models.tensor("a", [len(axes)], kind))
    nodes = [models.node("Pad", ["x", "p", "", "a"], ["y0"])]
    nodes += [helper.make_node("Relu", [f"y{i}"], [f"y{i + 1}"]) for i in range(3)]
    return models.model(nodes, inputs, [models.tensor("y3", [None] * 3)], opsets={"": 18}, initializers=constants)


def padded(axes: list[int], pads: Any) -> np.ndarray:
    every = [(0, 0)] * 3
    for axis, begin, end in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        every[axis] = (begin, end)
    return np.pad(X, every)


@pytest.mark.parametrize("axes", [[2, 1, 0], [-1, 0, 1], [1], [-3, 2], [0, 1, 2], [2, 0]])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("form", ["constants", "pads given", "all given"])
def test_two_runs(preset: type[omb.Preset], axes: list[int], dynamic: bool, form: str) -> None:
    pads = [1, 2, 0, 3, 1, 2][: 2 * len(axes)]
    constant = form == "constants"
    prepared = preset.prepare(padding(axes, pads if constant else None, dynamic=dynamic, known=form != "all given"))
    for given_pads in [pads] if constant else [pads, pads[::-1]]:
        fed = {"x": X} if constant else {"x": X, "p": np.array(given_pads)}
        if form == "all given":
            fed["a"] = np.array(axes)
        np.testing.assert_array_equal(prepared.run(fed)[0], padded(axes, given_pads))


@settings(max_examples=40, deadline=None)
@given(
    axes=st.permutations([0, 1, 2]).flatmap(lambda p: st.integers(1, 3).map(lambda n: p[:n])),
    data=st.data(),
)
def test_pad_axes(axes: list[int], data: st.DataObject) -> None:
    axes = [a - 3 if data.draw(st.booleans()) else a for a in axes]
    if axes == [0, 1, 2]:
        return
    pads = data.draw(st.lists(st.integers(0, 3), min_size=2 * len(axes), max_size=2 * len(axes)))
    known, constant = data.draw(st.booleans()), data.draw(st.booleans())
    # ONNX infers nothing for constant axes of int32, and takes such a model for invalid.
    kind = models.INT64 if known else data.draw(st.sampled_from([TensorProto.INT32, models.INT64]))
    model = padding(axes, pads if constant else None, known=known, dynamic=data.draw(st.booleans()), kind=kind)
    new, changes = rewritten(model, "Pad", forms=lambda s: s.has_input(3))
    assert [c.pass_name for c in changes] == ["pad_axes"]
    fed: list[Any] = [X] if constant else [X, np.array(pads)]
    if not known:
        fed.append(np.array(axes, np.int32 if kind == TensorProto.INT32 else np.int64))
    np.testing.assert_array_equal(computed(new, *fed)[0], padded(axes, pads))
