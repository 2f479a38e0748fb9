# SPDX-License-Identifier: Apache-2.0
"""Pad that goes round, and Unique in the order of the first occurrences, on every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import computed, rewritten

X = np.arange(24, dtype=np.float32).reshape(4, 6)
PADS = [(1, 0, 0, 2), (-1, 0, 0, 0), (-1, 1, 0, 0), (1, -1, 0, 0), (-1, -1, 2, 2), (4, 0, 0, 6)]


def gone_round(x: np.ndarray, pads: Any, axes: Any) -> np.ndarray:
    for axis, begin, end in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        left = x.take(range(max(-begin, 0), x.shape[axis] - max(-end, 0)), axis)
        x = left.take(range(-max(begin, 0), left.shape[axis] + max(end, 0)), axis, mode="wrap")
    return x


def padding(*inputs: Any, names: Any = ("x", "pads"), **known: Any) -> Any:
    node = models.node("Pad", names, ["y"], mode="wrap")
    return models.model([node], inputs, [models.tensor("y", None)], initializers=known)


@pytest.mark.parametrize("pads", PADS)
def test_pads_known_only_at_run_time(preset: type[omb.Preset], pads: tuple[int, ...]) -> None:
    model = padding(models.tensor("x", X.shape), models.tensor("pads", (4,), models.INT64))
    result = preset.prepare(model, fallback="full").run([X, np.array(pads)])["y"]
    np.testing.assert_array_equal(result, gone_round(X, pads, (0, 1)))


def test_pads_of_some_axes() -> None:
    names = ("x", "pads", "", "axes")
    model = padding(models.tensor("x", ("N", 6)), names=names, pads=np.array([2, 3]), axes=np.array([-1]))
    new, changes = rewritten(model, "Pad")
    assert [c.pass_name for c in changes] == ["pad_wrap"]
    np.testing.assert_array_equal(computed(new, X)[0], gone_round(X, (2, 3), (1,)))


@pytest.mark.parametrize(
    "outputs", [["y"], ["y", "firsts"], ["y", "", "", "counts"], ["y", "firsts", "places", "counts"]]
)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_unique_in_the_order_of_the_first_occurrences(preset: type[omb.Preset], outputs: list[str], dtype: str) -> None:
    x = np.array([[2, 1, 1, 3], [4, 3, 0, 2]], dtype)
    code = {"float32": models.FLOAT, "int64": models.INT64}[dtype]
    node = models.node("Unique", ["x"], outputs, sorted=0)
    made = [models.tensor(name, None, code if name == "y" else models.INT64) for name in outputs if name]
    rep = preset.prepare(models.model([node], [models.tensor("x", x.shape, code)], made), fallback="full")
    expected = {"y": [2, 1, 3, 4, 0], "firsts": [0, 1, 3, 4, 6], "counts": [2, 2, 2, 1, 1]}
    expected["places"] = [0, 1, 1, 2, 3, 2, 4, 0]
    for name, result in zip(filter(None, outputs), rep.run(x), strict=True):
        np.testing.assert_array_equal(result, expected[name])
