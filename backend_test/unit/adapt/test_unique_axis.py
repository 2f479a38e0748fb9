# SPDX-License-Identifier: Apache-2.0
"""Unique of slices, of which OpenVINO tells equal ones apart along any axis but the first, and misplaces those of 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models

KINDS = {"float32": models.FLOAT, "int64": models.INT64, "int8": TensorProto.INT8}
OUTPUTS = ("y", "firsts", "places", "counts")


def found(x: np.ndarray, axis: int, *, ordered: bool) -> dict[str, np.ndarray]:
    """What numpy finds, in the order of the first occurrences where it is not to be sorted."""
    y, firsts, places, counts = np.unique(x, True, True, True, axis=axis)
    if not ordered:
        order = np.argsort(firsts)
        places = np.argsort(order)[places]
        y, firsts, counts = y.take(order, axis), firsts[order], counts[order]
    return dict(zip(OUTPUTS, (y, firsts, places.ravel(), counts), strict=True))


@pytest.mark.parametrize("wanted", [OUTPUTS, ("y",), ("y", "firsts"), ("y", "", "", "counts")])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("shape", "axis"), [((6, 2), 0), ((4, 6), 1), ((2, 5, 2), -2), ((2, 2, 6), 2)])
@pytest.mark.parametrize("dtype", KINDS)
def test_equal_slices_are_found(
    preset: type[omb.Preset], dtype: str, shape: tuple[int, ...], axis: int, ordered: bool, wanted: tuple[str, ...]
) -> None:
    node = models.node("Unique", ["x"], list(wanted), axis=axis, sorted=int(ordered))
    sizes: list[Any] = ["N", *shape[1:]]
    made = [models.tensor(name, None, KINDS[dtype] if name == "y" else models.INT64) for name in wanted if name]
    rep = preset.prepare(models.model([node], [models.tensor("x", sizes, KINDS[dtype])], made), fallback="full")
    numbers = np.random.default_rng(0)
    for _ in range(8):
        x = numbers.integers(0, 2, shape).astype(dtype)
        right = found(x, axis, ordered=ordered)
        for name, result in zip(filter(None, wanted), rep.run(x), strict=True):
            np.testing.assert_array_equal(result, right[name], err_msg=name)


@pytest.mark.parametrize("operator", ["ReduceL1", "ReduceSum", "ReduceMax"])
def test_a_reduction_along_axes_of_a_run_keeps_its_rank(operator: str, openvino: type[omb.Preset]) -> None:
    """onnx leaves it open, and without it Unique is not rewritten."""
    nodes = [models.node(operator, ["x", "axes"], ["r"]), models.node("Unique", ["r"], ["y"], axis=1)]
    given = [models.tensor("x", ["N", 4]), models.tensor("axes", [1], models.INT64)]
    rep = openvino.prepare(models.model(nodes, given, [models.tensor("y", ["A", "B"])], opsets={"": 18}))
    x = np.float32([[3, 1, 3, 1]])
    np.testing.assert_array_equal(rep.run([x, np.array([0])])[0], [[1, 3]])
