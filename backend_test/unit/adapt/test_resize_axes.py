# SPDX-License-Identifier: Apache-2.0
"""Resize of axes that are counted from the end: ONNX Runtime does not resize them where an aspect ratio is kept, and before 1.27 ends the process."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
FIXED, OPEN = [1, 1, 2, 4], ["n", "c", "h", "w"]
#: The sizes of the last two axes for [4, 3], by policy.
SIZES = {"stretch": [4, 3], "not_larger": [2, 3], "not_smaller": [4, 8]}


def _resized(sizes: list[Any], axes: list[int], policy: str, known: bool) -> Any:
    wanted = {"s": np.array([4, 3])}
    return models.model(
        [models.node("Resize", ["x", "", "", "s"], ["y"], mode="nearest", axes=axes, keep_aspect_ratio_policy=policy)],
        [models.tensor("x", sizes), *([] if known else [models.tensor("s", [2], TensorProto.INT64)])],
        [models.tensor("y", [None] * 4)],
        initializers=wanted if known else {},
    )


@pytest.mark.parametrize("known", [True, False], ids=["known", "given"])
@pytest.mark.parametrize("sizes", [FIXED, OPEN], ids=["fixed", "open"])
@pytest.mark.parametrize("axes", [[2, -1], [-2, -1], [-2, 3]], ids=str)
@pytest.mark.parametrize("policy", SIZES)
def test_axes_from_the_end(
    preset: type[omb.Preset], policy: str, axes: list[int], sizes: list[Any], known: bool
) -> None:
    given = [X] if known else [X, np.array([4, 3])]
    (y,) = preset.prepare(_resized(sizes, axes, policy, known), fallback="full").run(given)
    (expected,) = preset.prepare(_resized(sizes, [2, 3], policy, known), fallback="full").run(given)
    assert list(y.shape[2:]) == SIZES[policy]
    np.testing.assert_array_equal(y, expected)


def test_of_constants(preset: type[omb.Preset]) -> None:
    made = _resized(FIXED, [-1, -2], "stretch", known=True)
    made.graph.node.append(models.node("Add", ["y", "b"], ["z"]))
    made.graph.output[0].name = "z"
    made.graph.initializer.append(models.model([], [], [], initializers={"x": X}).graph.initializer[0])
    made.graph.input[0].CopyFrom(models.tensor("b", [1]))
    (z,) = preset.prepare(made, fallback="full").run(np.zeros(1, np.float32))
    assert z.shape == (1, 1, 3, 4)
    np.testing.assert_array_equal(z[0, 0, :, 0], [0, 0, 4])


def test_axes_of_other_operators_are_left_alone(openvino: type[omb.Preset]) -> None:
    """The Where has the model rewritten, and no axis is counted from the end of a scalar."""
    text = """<ir_version: 10, opset_import: ["": 12]> g (float x, int32 other) => (float[one] y, int32 z) <bool always = {1}, int32 low = {-2}> {
        y = Unsqueeze <axes = [-1]> (x) z = Where (always, low, other) }"""
    y, z = openvino.prepare(onnx.parser.parse_model(text)).run([np.float32(3), np.int32(4)])
    np.testing.assert_array_equal(y, [3])
    assert z == -2
