# SPDX-License-Identifier: Apache-2.0
"""Pooling and its inverse, in forms that the engines lack or get wrong, against the definition in ONNX's documentation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import computed, rewritten

REDUCE = {
    "AveragePool": np.nanmean,
    "LpPool": lambda window: np.sqrt(np.nansum(window**2)),
    "MaxPool": np.nanmax,
}


def pooled(op_type: str, x: np.ndarray, kernel: int, stride: int, dilation: int, how: str) -> np.ndarray:
    """Pool over all axes but two, each alike."""
    reach = (kernel - 1) * dilation + 1
    sizes = [math.ceil(size / stride) for size in x.shape[2:]]
    pads = [max(0, (new - 1) * stride + reach - old) for new, old in zip(sizes, x.shape[2:], strict=True)]
    sides = [(p // 2, p - p // 2) if how == "SAME_UPPER" else (p - p // 2, p // 2) for p in pads]
    padded = np.pad(x, [(0, 0), (0, 0), *sides], constant_values=np.nan)
    y = np.zeros((*x.shape[:2], *sizes), np.float32)
    for place in itertools.product(*map(range, y.shape)):
        window = tuple(slice(i * stride, i * stride + reach, dilation) for i in place[2:])
        y[place] = REDUCE[op_type](padded[place[:2]][window])
    return y


@pytest.mark.parametrize("op_type", list(REDUCE))
@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(2, 1, 2), (3, 2, 2), (2, 3, 2), (3, 1, 2)])
@pytest.mark.parametrize("how", ["SAME_UPPER", "SAME_LOWER"])
def test_dilated_pooling_with_auto_pad(
    preset: type[omb.Preset], op_type: str, kernel: int, stride: int, dilation: int, how: str
) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 7, 8)).astype(np.float32)
    form = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "dilations": [dilation] * 2, "auto_pad": how}
    model = models.one_node(op_type, [models.tensor("x", x.shape)], [models.tensor("y", None)], opset=22, **form)
    expected = pooled(op_type, x, kernel, stride, dilation, how)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run(x)["y"], expected, rtol=1e-5, atol=1e-6)


def padded_means(x: np.ndarray, kernel: int, stride: int, begin: int, end: int) -> np.ndarray:
    """Means of what each window has of the padded image, as long as it starts before the padding at the end."""
    size = x.shape[-1]
    padded = np.pad(x, [(0, 0), (0, 0), *[(begin, end)] * 2])
    count = min(-(-(size + begin + end - kernel) // stride) + 1, -(-(size + begin) // stride))
    windows = [slice(i * stride, i * stride + kernel) for i in range(count)]
    return np.array([[padded[:, :, a, b].mean((2, 3)) for b in windows] for a in windows]).transpose(2, 3, 0, 1)


@pytest.mark.parametrize("opset", [10, 11, 22])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "begin", "end"), [(7, 3, 3, 1, 0), (5, 3, 2, 0, 1), (6, 3, 2, 1, 1), (6, 2, 3, 1, 0)]
)
@pytest.mark.parametrize("name", ["openvino", "openvino_ep"])
def test_nothing_behind_the_padding_counts(
    request: pytest.FixtureRequest,
    name: str,
    size: int,
    kernel: int,
    stride: int,
    begin: int,
    end: int,
    fixed: bool,
    opset: int,
) -> None:
    x = np.random.default_rng(size).standard_normal((2, 3, size, size)).astype(np.float32)
    form = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [begin] * 2 + [end] * 2}
    given = models.tensor("x", x.shape if fixed else ["n", 3, "h", "w"])
    model = models.one_node(
        "AveragePool", [given], [models.tensor("y", None)], opset=opset, ceil_mode=1, count_include_pad=1, **form
    )
    preset: type[omb.Preset] = request.getfixturevalue(name)
    expected = padded_means(x, kernel, stride, begin, end)
    np.testing.assert_allclose(preset.prepare(model, fallback="full").run(x)["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [10, 12, 22])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("how", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("name", ["openvino", "openvino_ep"])
def test_no_window_lies_beyond_an_image_that_auto_pad_pads(
    request: pytest.FixtureRequest, name: str, op_type: str, how: str, fixed: bool, opset: int
) -> None:
    """Where strides are longer than the window, there is nothing to pad."""
    preset: type[omb.Preset] = request.getfixturevalue(name)
    given = models.tensor("x", [2, 3, 6, 7] if fixed else ["n", 3, "h", "w"])
    form = {"kernel_shape": [1, 2], "strides": [2, 3], "ceil_mode": 1, "auto_pad": how}
    model = models.one_node(op_type, [given], [models.tensor("y", None)], opset=opset, **form)
    prepared = preset.prepare(model)
    for sizes in ((6, 7), (4, 10), (6, 7))[: 1 if fixed else 3]:
        x = np.random.default_rng(0).standard_normal((2, 3, *sizes)).astype(np.float32)
        rows = x[:, :, ::2]
        starts = range(0 if how == "SAME_UPPER" else -1, sizes[1], 3)
        windows = [rows[..., max(start, 0) : start + 2] for start in starts]
        right = np.stack([REDUCE[op_type](window, axis=-1) for window in windows], axis=-1)
        np.testing.assert_allclose(prepared.run([x])[0], right, rtol=1e-6)


@pytest.mark.parametrize("opset", [8, 12, 22])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("how", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool"])
def test_every_second_element(preset: type[omb.Preset], op_type: str, how: str, fixed: bool, opset: int) -> None:
    """As TensorFlow's residual networks take them on the way around a block, here along one axis."""
    given = models.tensor("x", [2, 3, 6, 7] if fixed else ["n", 3, "h", "w"])
    form = {"kernel_shape": [1, 1], "strides": [2, 1], "auto_pad": how}
    model = models.one_node(op_type, [given], [models.tensor("y", None)], opset=opset, **form)
    prepared = preset.prepare(model, fallback="full")
    for sizes in ((6, 7), (5, 4), (6, 7))[: 1 if fixed else 3]:
        x = np.random.default_rng(0).standard_normal((2, 3, *sizes)).astype(np.float32)
        np.testing.assert_array_equal(prepared.run([x])[0], x[:, :, ::2])


def test_an_odd_image_needs_no_change(ort_cpu: type[omb.Preset]) -> None:
    form = {"kernel_shape": [1, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    model = models.one_node("MaxPool", [models.tensor("x", [1, 1, 5, 6])], [models.tensor("y", None)], **form)
    assert ort_cpu.prepare(model).adaptations == ()


def test_pads_as_wide_as_the_kernel_are_refused(ort_cpu: type[omb.Preset]) -> None:
    """ONNX Runtime lacks them, and would have given another shape."""
    form = {"kernel_shape": [3], "dilations": [3], "auto_pad": "SAME_UPPER"}
    model = models.one_node(
        "AveragePool", [models.tensor("x", (1, 1, 9))], [models.tensor("y", None)], opset=22, **form
    )
    with pytest.raises(omb.UnsupportedModelError, match="AveragePool.*auto_pad"):
        ort_cpu.prepare(model)


def test_auto_pad_without_dilations_is_left_alone(ort_cpu: type[omb.Preset]) -> None:
    form: dict[str, Any] = {"kernel_shape": [3], "dilations": [1], "auto_pad": "SAME_UPPER"}
    model = models.one_node("MaxPool", [models.tensor("x", (1, 1, "N"))], [models.tensor("y", None)], **form)
    assert ort_cpu.prepare(model).adaptations == ()


def unpooled(x: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    y = np.zeros(shape, x.dtype)
    y.reshape(-1)[indices.reshape(-1)] = x.reshape(-1)
    return y


def unpooling(x: np.ndarray, *, explicit: bool, **form: Any) -> Any:
    given = [models.tensor("x", x.shape), models.tensor("indices", x.shape, models.INT64)]
    given += [models.tensor("shape", (x.ndim,), models.INT64)] if explicit else []
    return models.one_node("MaxUnpool", given, [models.tensor("y", None)], opset=22, **form)


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
@pytest.mark.parametrize("explicit", [False, True])
def test_unpooling(preset: type[omb.Preset], axes: int, explicit: bool) -> None:
    """Indices count in the shape of the result, also in an explicit one: onnx/onnx#2398."""
    chance = np.random.default_rng(axes)
    x = chance.standard_normal((2, 2, *[2] * axes)).astype(np.float32)
    shape = (2, 2, *[5 if explicit else 4] * axes)
    indices = chance.permutation(math.prod(shape))[: x.size].reshape(x.shape)
    model = unpooling(x, explicit=explicit, kernel_shape=[2] * axes, strides=[2] * axes)
    rep = preset.prepare(model, fallback="full")
    result = rep.run([x, indices, *[np.array(shape)] * explicit])["y"]
    np.testing.assert_array_equal(result, unpooled(x, indices, shape))


def test_the_shape_of_an_unpooled_tensor_follows_from_the_attributes() -> None:
    x = np.float32([[[[1, 2, 3], [4, 5, 6]]]])
    form = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}
    new, changes = rewritten(unpooling(x, explicit=False, **form), "MaxUnpool")
    assert [c.pass_name for c in changes] == ["max_unpool"]
    indices = np.array([[[[0, 1, 2], [9, 10, 11]]]])
    np.testing.assert_array_equal(computed(new, x, indices)[0], unpooled(x, indices, (1, 1, 4, 3)))


def test_pooling_backwards_and_forwards_again(preset: type[omb.Preset]) -> None:
    x = np.random.default_rng(1).permutation(49).astype(np.float32).reshape(1, 1, 7, 7)
    form = {"kernel_shape": [2, 2], "strides": [2, 2]}
    model = models.model(
        [
            models.node("MaxPool", ["x"], ["p", "indices"], **form),
            models.node("Shape", ["x"], ["shape"]),
            models.node("MaxUnpool", ["p", "indices", "shape"], ["y"], **form),
        ],
        [models.tensor("x", x.shape)],
        [models.tensor("p", None), models.tensor("y", x.shape)],
    )
    p, y = preset.prepare(model, fallback="full").run(x)
    assert sorted(y[y > 0]) == sorted(p[p > 0])
    np.testing.assert_array_equal(y[y > 0], x[y > 0])
