# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime gets wrong of Resize: an axis that is cropped to its own size, and interpolation along axes that it refuses together."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from backend_test.unit import models

SHAPE = [2, 2, 3, 4]


def _resized(sizes: list[Any], shape: list[Any], **attributes: Any) -> onnx.ModelProto:
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


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_the_kernel_runs_unless_a_run_crops_to_the_same_size(ort_cpu: type[omb.Preset], mode: str) -> None:
    made = models.model(
        [
            models.node(
                "Resize",
                ["x", "roi", "", "sizes"],
                ["y"],
                mode=mode,
                coordinate_transformation_mode="tf_crop_and_resize",
            )
        ],
        [models.tensor("x", SHAPE), models.tensor("roi", [8]), models.tensor("sizes", [4], models.INT64)],
        [models.tensor("y", [None] * 4)],
    )
    prepared = ort_cpu.prepare(made)
    assert [change.pass_name for change in prepared.adaptations] == ["resize_crops"]
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    for begins, ends in (([0, 0, 0.3, 0.2], [1, 1, 0.8, 0.9]), ([0] * 4, [1] * 4), ([0.3, 0, 0, 0], [0.8, 1, 1, 1])):
        for sizes in (SHAPE, [2, 2, 5, 7], [2, 2, 3, 7], [2, 2, 6, 4]):
            feeds = {"x": x, "roi": np.float32([*begins, *ends]), "sizes": np.array(sizes)}
            (expected,) = ReferenceEvaluator(made).run(None, feeds)
            np.testing.assert_allclose(prepared.run(feeds)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("roi", ["float16", "float", "double"])
@pytest.mark.parametrize("image", ["float", "uint8"])
def test_a_region_of_any_type(ort_cpu: type[omb.Preset], image: str, roi: str, opset: int) -> None:
    """The kernel reads float32 alone, and cuts what lies between two integers."""
    dtypes = {"float16": np.float16, "float": np.float32, "double": np.float64, "uint8": np.uint8}
    prepared, evaluator = ort_cpu.prepare(_region(image, roi, opset)), ReferenceEvaluator(_region("float", "float", 18))
    x = np.random.default_rng(0).integers(0, 200, (1, 2, 3, 4)).astype(dtypes[image])
    region = np.array([0, 0, 0.25, 0.125, 1, 1, 0.75, 0.875], dtypes[roi])
    for sizes in ([1, 2, 3, 7], [1, 2, 5, 7]):
        (y,) = prepared.run({"x": x, "roi": region, "s": np.array(sizes)})
        feeds = {"x": x.astype(np.float32), "roi": region.astype(np.float32), "s": np.array(sizes)}
        (right,) = evaluator.run(None, feeds)
        assert y.dtype == x.dtype
        np.testing.assert_allclose(y, np.round(right) if image == "uint8" else right, rtol=1e-4, atol=1e-4)


def _region(image: str, roi: str, opset: int) -> onnx.ModelProto:
    empty = "e" if opset < 13 else ""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g ({image}[a, b, c, d] x, {roi}[8] roi, int64[4] s) => ({image}[p, q, r, t] y)
        <float[0] e = {{}}> {{ y = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"> (x, roi, {empty}, s) }}"""
    )


@pytest.mark.parametrize("kind", [models.INT64, onnx.TensorProto.INT32])
@pytest.mark.parametrize("outside", [3.0, -500.0])
def test_integers_outside_the_image(preset: type[omb.Preset], kind: int, outside: float) -> None:
    """The value is that of the integer, not of each of its halves."""
    made = models.model(
        [
            models.node(
                "Resize",
                ["x", "roi", "", "sizes"],
                ["y"],
                mode="nearest",
                axes=[0, 1],
                coordinate_transformation_mode="tf_crop_and_resize",
                extrapolation_value=outside,
            )
        ],
        [models.tensor("x", [2, 3], kind)],
        [models.tensor("y", [4, 3], kind)],
        initializers={"roi": np.float32([-0.5, 0, 1.5, 1]), "sizes": np.array([4, 3])},
    )
    x = np.array([[70000, 2, 3], [4, -5, 6]], np.int64 if kind == models.INT64 else np.int32)
    (y,) = preset.prepare(made, fallback="full").run(x)
    assert y[0].tolist() == y[-1].tolist() == [outside] * 3
    assert y[1:3].tolist() == x.tolist()


@pytest.mark.parametrize(
    "axes", [axes for count in (1, 2, 3, 4) for axes in itertools.combinations(range(4), count)], ids=str
)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_axes_together(preset: type[omb.Preset], mode: str, axes: tuple[int, ...]) -> None:
    sizes = [SHAPE[axis] + 2 for axis in axes]
    _right(preset, _resized(sizes, SHAPE, mode=mode, axes=list(axes)), SHAPE)


@pytest.mark.parametrize("axes", [[1], [1, 3], [1, 2, 3], [2, 4], [0, 4]], ids=str)
def test_axes_of_five(preset: type[omb.Preset], axes: list[int]) -> None:
    shape = [2, 3, 2, 3, 2]
    _right(preset, _resized([shape[axis] + 1 for axis in axes], shape, mode="linear", axes=axes), shape)


@pytest.mark.parametrize("rank", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_all_axes(preset: type[omb.Preset], mode: str, rank: int) -> None:
    shape = [2, 3, 2, 3, 2, 3][:rank]
    _right(preset, _resized([n + 1 for n in shape], shape, mode=mode, axes=list(range(rank))), shape)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("antialias", [0, 1])
def test_sizes_in_a_table_of_one_row(ort_cpu: type[omb.Preset], mode: str, antialias: int) -> None:
    """Not valid, and ONNX Runtime takes them; they came to a plain ValueError."""
    if antialias and mode == "nearest":
        pytest.skip("ONNX Runtime does not take that")
    how = {"mode": mode, "antialias": antialias, "axes": [0, 1, 2, 3]}
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    expected, found = (
        ort_cpu.prepare(_without_a_region(_resized(sizes, SHAPE, **how))).run(x)[0]
        for sizes in ([2, 2, 2, 3], [[2, 2, 2, 3]])
    )
    np.testing.assert_array_equal(found, expected)


def test_crops_to_sizes_in_a_table_are_not_left_as_they_are(ort_cpu: type[omb.Preset]) -> None:
    how = {"mode": "nearest", "axes": [2, 3], "coordinate_transformation_mode": "tf_crop_and_resize"}
    with pytest.raises(omb.UnsupportedModelError, match="an axis that is cropped"):
        ort_cpu.prepare(_resized([[3, 5]], SHAPE, **how))


def _without_a_region(model: onnx.ModelProto) -> onnx.ModelProto:
    model.graph.node[0].input[1] = ""
    return model
