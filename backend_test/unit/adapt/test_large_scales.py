# SPDX-License-Identifier: Apache-2.0
"""Scales so large that OpenVINO's limits of a quantized type are infinite: ONNX Runtime's quantizer writes them for masks of the lowest float32."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

LOWEST = float(np.finfo(np.float32).min)
#: What `quantize_static` makes of values between the lowest float32 and 0, by the type of the activations.
SCALES = {
    "uint8": (1.3344405750530544e36, 255),
    "int8": (2.6793887059314005e36, 0),
    "uint16": (5.192376086697342e33, 65535),
    "int16": (1.0384911e34, 0),
}
QUANTIZED = [
    models.node("QuantizeLinear", ["x", "s", "z"], ["q"]),
    models.node("DequantizeLinear", ["q", "s", "z"], ["d"]),
]


def masked(kind: str, scale: float, zero: int, shape: list[int | None] | None) -> ModelProto:
    """The softmax of scores behind a quantized mask."""
    return models.model(
        [
            models.node("Where", ["m", "nothing", "lowest"], ["x"]),
            *QUANTIZED,
            models.node("Add", ["d", "scores"], ["a"]),
            models.node("Softmax", ["a"], ["y"]),
        ],
        [models.tensor("m", shape, TensorProto.BOOL), models.tensor("scores", shape)],
        [models.tensor("y", None)],
        initializers={
            "nothing": np.float32(0),
            "lowest": np.float32(LOWEST),
            "s": np.float32(scale),
            "z": np.array(zero, kind),
        },
        opsets={"": 21},
    )


@pytest.mark.parametrize("shape", [[2, 4, 6], [None, None, None]], ids=["fixed", "open"])
@pytest.mark.parametrize("kind", SCALES)
def test_scores_behind_a_quantized_mask(engine: type[omb.Preset], kind: str, shape: list[int | None]) -> None:
    rng = np.random.default_rng(0)
    mask, scores = rng.random((2, 4, 6)) < 0.6, rng.normal(size=(2, 4, 6)).astype(np.float32)
    mask[..., 0] = True
    (made,) = engine.prepare(masked(kind, *SCALES[kind], shape)).run([mask, scores])
    powers = np.exp(scores) * mask
    np.testing.assert_allclose(made, powers / powers.sum(axis=-1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("kind", SCALES)
def test_so_they_are_where_no_rank_is_known(engine: type[omb.Preset], kind: str) -> None:
    model = masked(kind, *SCALES[kind], None)
    if engine.name == "Openvino":  # which needs to know it
        with pytest.raises(omb.UnsupportedModelError):
            engine.prepare(model)
        return
    mask = np.array([[True, False, True]])
    (made,) = engine.prepare(model).run([mask, np.zeros((1, 3), np.float32)])
    np.testing.assert_array_equal(made, [[0.5, 0, 0.5]])


@pytest.mark.parametrize("shape", [[3, 5], [None, None]], ids=["fixed", "open"])
@pytest.mark.parametrize("scale", [1e38, 1e36, 1e35, 5e33, 1e30, 1e10])
@pytest.mark.parametrize(("kind", "zero"), [("uint8", 0), ("uint8", 128), ("uint8", 255), ("int8", -3), ("int8", 0)])
def test_each_step(engine: type[omb.Preset], kind: str, zero: int, scale: float, shape: list[int | None]) -> None:
    """Of all integers that the type has, as far as float32 holds what they stand for."""
    model = models.model(
        [*QUANTIZED, models.node("Cast", ["q"], ["y"], to=TensorProto.FLOAT), models.node("Identity", ["d"], ["z0"])],
        [models.tensor("x", shape)],
        [models.tensor("y", None), models.tensor("z0", None)],
        initializers={"s": np.float32(scale), "z": np.array(zero, kind)},
        opsets={"": 21},
    )
    limits = np.iinfo(kind)
    steps = np.linspace(limits.min, limits.max, 15).round() - zero
    with np.errstate(over="ignore"):
        values = (steps * np.float64(np.float32(scale))).astype(np.float32)
    values = np.where(np.isfinite(values), values, 0).reshape(3, 5)
    made, back = engine.prepare(model).run([values])
    expected = np.clip(np.round(values.astype(np.float64) / np.float32(scale)) + zero, limits.min, limits.max)
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_allclose(back, values, rtol=1e-6)


@pytest.mark.parametrize("attributes", [{"axis": 1}, {"axis": 1, "block_size": 2}], ids=["columns", "blocks"])
def test_several_of_which_the_reciprocal_is_subnormal(engine: type[omb.Preset], attributes: dict[str, int]) -> None:
    """OpenVINO takes that for 0."""
    scales = np.float32([1e38, 9e37, 1, 2e-3]) if "block_size" not in attributes else np.full((2, 2), 1e38, np.float32)
    model = models.model(
        [models.node("QuantizeLinear", ["x", "s"], ["y"], **attributes)],
        [models.tensor("x", [2, 4])],
        [models.tensor("y", None, TensorProto.UINT8)],
        initializers={"s": scales},
        opsets={"": 21},
    )
    x = np.float32([[3e38, 2e38, 3, 1e-2], [1.2e38, 1.2e38, 300, 1]])
    steps = x / (scales if "block_size" not in attributes else np.repeat(scales, 2, axis=1))
    if engine.name == "Openvino":
        with pytest.raises(omb.UnsupportedModelError, match="scaled limits"):
            engine.prepare(model)
        return
    np.testing.assert_array_equal(engine.prepare(model, fallback="full").run([x])[0], np.clip(np.round(steps), 0, 255))


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("kind", SCALES)
def test_a_zero_point_that_scaled_is_infinite(engine: type[omb.Preset], kind: str, axis: int | None) -> None:
    dtype = np.dtype(kind)
    zero = np.iinfo(dtype).max
    scale = np.float32(3e38 / zero * 2)
    constants = (
        {"s": scale, "z": dtype.type(zero)} if axis is None else {"s": np.full(2, scale), "z": np.full(2, zero, dtype)}
    )
    model = models.model(
        [models.node("DequantizeLinear", ["x", "s", "z"], ["y"], **({} if axis is None else {"axis": axis}))],
        [models.tensor("x", ["n", 2], helper.np_dtype_to_tensor_dtype(dtype))],
        [models.tensor("y", None)],
        initializers=constants,
        opsets={"": 21},
    )
    x = np.array([[zero, zero - 1], [zero - 2, zero // 2 + 2]], dtype)
    (made,) = engine.prepare(model).run([x])
    np.testing.assert_allclose(made, (x.astype(np.int64) - zero) * np.float64(scale), rtol=1e-6)
    assert made[0, 0] == 0


@pytest.mark.parametrize(
    ("scale", "zero", "axis"),
    [([1e9] * 3, [1, 2], 1), ([], [1], 1), ([1e38] * 3, [5] * 3, 5), ([1e38] * 3, [5] * 3, -3)],
)
def test_what_is_not_valid_is_refused(
    openvino: type[omb.Preset], scale: list[float], zero: list[int], axis: int
) -> None:
    model = models.model(
        [models.node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=axis)],
        [models.tensor("x", [2, 3], TensorProto.UINT8)],
        [models.tensor("y", None)],
        initializers={"s": np.float32(scale), "z": np.uint8(zero)},
        opsets={"": 21},
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(model)


def test_a_scale_that_is_nan_hides_no_other(engine: type[omb.Preset]) -> None:
    model = models.model(
        [models.node("DequantizeLinear", ["x", "s", "z"], ["y"])],
        [models.tensor("x", [2, 3], TensorProto.UINT8)],
        [models.tensor("y", None)],
        initializers={"s": np.float32([np.nan, 3e38, 1e9]), "z": np.uint8([5, 5, 5])},
        opsets={"": 21},
    )
    (made,) = engine.prepare(model).run([np.uint8([[4, 5, 6], [7, 8, 9]])])
    np.testing.assert_array_equal(made[:, 1:], [[0, np.float32(1e9)], [np.inf, np.float32(4e9)]])
