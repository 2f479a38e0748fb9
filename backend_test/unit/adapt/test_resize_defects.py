# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime gets wrong of Resize: an axis that is cropped to its own size, and interpolation along axes that it refuses together."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from backend_test.unit import models

SHAPE = [2, 2, 3, 4]


def _resized(sizes: list[int], shape: list[Any], **attributes: Any) -> onnx.ModelProto:
    axes = attributes["axes"]
    roi = np.repeat(np.float32([0.3, 0.7]), len(axes))
    return models.model(
        [models.node("Resize", ["x", "roi", "", "sizes"], ["y"], **attributes)],
        [models.tensor("x", shape)],
        [models.tensor("y", [None] * len(shape))],
        initializers={"roi": roi, "sizes": np.array(sizes)},
    )


def _right(preset: type[omb.Preset], model: onnx.ModelProto, shape: list[int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    (y,) = preset.prepare(model, fallback="full").run(x)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [SHAPE, ["n", "c", "h", "w"]], ids=["fixed", "open"])
@pytest.mark.parametrize("sizes", [[3, 4], [3, 5], [4, 4], [5, 7]], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crops_of_the_same_size(preset: type[omb.Preset], mode: str, sizes: list[int], shape: list[Any]) -> None:
    how = {"mode": mode, "axes": [2, 3], "coordinate_transformation_mode": "tf_crop_and_resize"}
    _right(preset, _resized(sizes, shape, **how), SHAPE)


def test_without_a_region_nothing_is_cropped(ort_cpu: type[omb.Preset]) -> None:
    how = {"mode": "nearest", "axes": [2, 3], "coordinate_transformation_mode": "tf_crop_and_resize"}
    made = _resized([3, 8], ["n", "c", "h", "w"], **how)
    made.graph.node[0].input[1] = ""
    x = np.arange(48, dtype=np.float32).reshape(SHAPE)
    prepared = ort_cpu.prepare(made)
    assert prepared.adaptations == ()
    assert prepared.run(x)[0].shape == (2, 2, 3, 8)


def test_a_crop_that_changes_the_size_is_the_kernel_s(ort_cpu: type[omb.Preset]) -> None:
    how = {"mode": "linear", "axes": [2, 3], "coordinate_transformation_mode": "tf_crop_and_resize"}
    assert ort_cpu.prepare(_resized([5, 7], SHAPE, **how)).adaptations == ()


@pytest.mark.parametrize(
    "axes", [axes for count in (1, 2, 3, 4) for axes in itertools.combinations(range(4), count)], ids=str
)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_axes_together(preset: type[omb.Preset], mode: str, axes: tuple[int, ...]) -> None:
    sizes = [SHAPE[axis] + 2 for axis in axes]
    _right(preset, _resized(sizes, SHAPE, mode=mode, axes=list(axes)), SHAPE)


@pytest.mark.parametrize("rank", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_all_axes(preset: type[omb.Preset], mode: str, rank: int) -> None:
    shape = [2, 3, 2, 3, 2, 3][:rank]
    _right(preset, _resized([n + 1 for n in shape], shape, mode=mode, axes=list(range(rank))), shape)
