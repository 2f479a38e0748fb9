# SPDX-License-Identifier: Apache-2.0
"""Types that numpy lacks: ml_dtypes arrays in and out, through casts at the edge or byte by byte."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from packaging.version import Version

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.models.tensors import numpy_dtype

FLOAT8 = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0")
SMALL = ("FLOAT4E2M1", "INT4", "UINT4", "INT2", "UINT2")
TYPES = ("BFLOAT16", *FLOAT8, *SMALL)


def _versions(op_type: str, elem_type: int, becomes: int, **attributes: object) -> ModelProto:
    # Opset 25 and IR 12: the first that know the 2-bit types, and every engine reads them.
    return models.one_node(
        op_type,
        [models.tensor("x", ["N", "M"], elem_type)],
        [models.tensor("y", ["N", "M"], becomes)],
        opset=25,
        ir_version=12,
        **attributes,
    )


def every_value(type_name: str) -> np.ndarray:
    """Every bit pattern of a type, infinities and NaNs included, in two dimensions."""
    dtype = numpy_dtype(getattr(TensorProto, type_name))
    if type_name == "BFLOAT16":
        return np.arange(1 << 16, dtype=np.uint16).view(dtype).reshape(256, 256)
    if type_name in FLOAT8:
        return np.arange(1 << 8, dtype=np.uint8).view(dtype).reshape(16, 16)
    low, high = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1), "UINT2": (0, 3), "FLOAT4E2M1": (0, 15)}[type_name]
    values = np.arange(low, high + 1)
    if type_name == "FLOAT4E2M1":
        return values.astype(np.uint8).view(dtype).reshape(1, -1)
    return np.resize(values, 35).astype(dtype).reshape(5, 7)  # an odd number of them does not fill its last byte


def refused(preset: type[omb.Preset], type_name: str, *, moved_only: bool, adapt: bool = True) -> bool:
    """Whether the engine has no operator for the type, so that the preset has to say no.

    `moved_only`: an Identity that is not adapted, which the engines lack for more types than Cast; OpenVINO would copy 4-bit
    elements over the end of its memory.
    """
    if preset.name == "Openvino":
        if type_name in ("FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ", "INT2", "UINT2"):
            return not adapt  # adapted, they are carried in a wider type
        return moved_only and type_name in SMALL
    import onnxruntime

    lacks = {"FLOAT8E8M0"} if Version(onnxruntime.__version__) < Version("1.31") else set()
    if not adapt:
        lacks.add("FLOAT4E2M1")  # adapted, it is carried as float32
    return type_name in lacks or (moved_only and type_name in ("FLOAT8E8M0", *SMALL))


def assert_same_values(result: np.ndarray, expected: np.ndarray) -> None:
    """The same dtype and shape, and the same bits except for the payload of a NaN."""
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    one, other = result.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(np.signbit(one)[~np.isnan(one)], np.signbit(other)[~np.isnan(other)])


@pytest.mark.parametrize("adapt", [True, False], ids=["adapted", "as it is"])
@pytest.mark.parametrize("type_name", TYPES)
def test_every_value_passes_through(engine: type[omb.Preset], type_name: str, adapt: bool) -> None:
    elem_type = getattr(TensorProto, type_name)
    made, values = _versions("Identity", elem_type, elem_type), every_value(type_name)
    if refused(engine, type_name, moved_only=not adapt, adapt=adapt):
        with pytest.raises(omb.UnsupportedModelError):
            engine.prepare(made, adapt=adapt)
        return
    rep = engine.prepare(made, adapt=adapt)
    assert (rep.get_inputs()[0].dtype, rep.get_outputs()[0].dtype) == (values.dtype, values.dtype)
    assert_same_values(rep.run(values)[0], values)
    if not adapt:
        assert {n.name for n in rep.placement()} <= {"the_Identity"}


@pytest.mark.parametrize("adapt", [True, False], ids=["adapted", "as it is"])
@pytest.mark.parametrize("type_name", TYPES)
def test_every_value_goes_in_and_is_computed_with(engine: type[omb.Preset], type_name: str, adapt: bool) -> None:
    made, values = (
        _versions("Cast", getattr(TensorProto, type_name), models.FLOAT, to=models.FLOAT),
        every_value(type_name),
    )
    if refused(engine, type_name, moved_only=False, adapt=adapt):
        with pytest.raises(omb.UnsupportedModelError):
            engine.prepare(made, adapt=adapt)
        return
    assert_same_values(engine.prepare(made, adapt=adapt).run(values)[0], values.astype(np.float32))


@pytest.mark.parametrize("adapt", [True, False], ids=["adapted", "as it is"])
@pytest.mark.parametrize("type_name", TYPES)
def test_every_finite_value_is_computed_and_comes_out(engine: type[omb.Preset], type_name: str, adapt: bool) -> None:
    elem_type = getattr(TensorProto, type_name)
    made, values = _versions("Cast", models.FLOAT, elem_type, to=elem_type), every_value(type_name)
    if refused(engine, type_name, moved_only=False, adapt=adapt):
        with pytest.raises(omb.UnsupportedModelError):
            engine.prepare(made, adapt=adapt)
        return
    wide = values.astype(np.float32)
    wide, values = wide[np.isfinite(wide)].reshape(1, -1), values[np.isfinite(wide)].reshape(1, -1)
    assert_same_values(engine.prepare(made, adapt=adapt).run(wide)[0], values)


@pytest.mark.parametrize("adapt", [True, False], ids=["adapted", "as it is"])
@pytest.mark.parametrize("type_name", ["BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_what_leaves_the_range_becomes_what_the_cast_says(
    ort_cpu: type[omb.Preset], type_name: str, saturate: int, adapt: bool
) -> None:
    elem_type = getattr(TensorProto, type_name)
    attributes = {} if type_name == "BFLOAT16" else {"saturate": saturate}
    made = _versions("Cast", models.FLOAT, elem_type, to=elem_type, **attributes)
    given = np.array([[np.inf, -np.inf, np.nan, 1e30, -1e30]], np.float32)
    result = ort_cpu.prepare(made, adapt=adapt).run(given)[0].astype(np.float32)[0]
    largest = float(
        every_value(type_name).astype(np.float32)[np.isfinite(every_value(type_name).astype(np.float32))].max()
    )
    beyond = {"BFLOAT16": np.inf, "FLOAT8E5M2": np.inf}.get(type_name, np.nan)
    if type_name == "BFLOAT16":
        assert result[:3].tolist()[:2] == [np.inf, -np.inf]
        assert result[3] == pytest.approx(1e30, rel=0.01)
    elif saturate:  # https://onnx.ai/onnx/operators/onnx__Cast.html: also the infinities saturate
        np.testing.assert_array_equal(result[[0, 1, 3, 4]], [largest, -largest, largest, -largest])
    else:
        np.testing.assert_array_equal(result[[0, 1, 3, 4]], np.array([beyond, -beyond, beyond, -beyond], np.float32))
    assert np.isnan(result[2])


@pytest.mark.parametrize("type_name", [t for t in TYPES if t not in ("BFLOAT16", "FLOAT8E8M0")])
def test_quantizing_and_back(engine: type[omb.Preset], type_name: str) -> None:
    elem_type = getattr(TensorProto, type_name)
    quantized = models.tensor("q", ["N"], elem_type)
    made = models.model(
        [
            models.node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=elem_type),
            models.node("DequantizeLinear", ["q", "s"], ["y"]),
        ],
        [models.tensor("x", ["N"]), models.tensor("s", [])],
        [quantized, models.tensor("y", ["N"])],
        opsets={"": 25},
        ir_version=12,
    )
    if refused(engine, type_name, moved_only=False):
        with pytest.raises(omb.UnsupportedModelError):
            engine.prepare(made)
        return
    codes = np.array([0, 1, 2, 3] if type_name.startswith("U") else [-2, -1, 0, 1], np.float32)
    if type_name == "UINT2":
        codes = np.array([0, 1, 2, 3], np.float32)
    result = engine.prepare(made).run([codes * 0.5, np.float32(0.5)])
    assert_same_values(result["q"], codes.astype(numpy_dtype(elem_type)))
    np.testing.assert_array_equal(result["y"], codes * 0.5)


@pytest.mark.parametrize("type_name", ["BFLOAT16", "FLOAT8E5M2", "INT4"])
@pytest.mark.parametrize("adapt", [True, False], ids=["adapted", "as it is"])
def test_layouts_and_scalars_of_exotic_types(engine: type[omb.Preset], type_name: str, adapt: bool) -> None:
    made = _versions("Cast", getattr(TensorProto, type_name), models.FLOAT, to=models.FLOAT)
    rep, values = (
        engine.prepare(made, adapt=adapt),
        np.arange(-6, 6).astype(numpy_dtype(getattr(TensorProto, type_name))),
    )
    values = values.reshape(4, 3)
    frozen = values.copy()
    frozen.flags.writeable = False
    for array in (np.asfortranarray(values), np.repeat(values, 2, axis=0)[::2], frozen, values[:0], values[:1, :1]):
        assert_same_values(rep.run(array)[0], array.astype(np.float32))


def test_a_bfloat16_scalar(engine: type[omb.Preset]) -> None:
    made = models.one_node(
        "Cast", [models.tensor("x", [], TensorProto.BFLOAT16)], [models.tensor("y", [])], to=models.FLOAT
    )
    bfloat16 = numpy_dtype(TensorProto.BFLOAT16).type
    assert float(engine.prepare(made).run(bfloat16(1.5))[0]) == 1.5


def test_float32_is_no_bfloat16(engine: type[omb.Preset]) -> None:
    made = _versions("Cast", TensorProto.BFLOAT16, models.FLOAT, to=models.FLOAT)
    for adapt in (True, False):
        with pytest.raises(omb.InputError, match="float32 given, the model wants bfloat16"):
            engine.prepare(made, adapt=adapt).run(np.zeros((1, 1), np.float32))


def test_a_sequence_beside_an_exotic_type(ort_cpu: type[omb.Preset]) -> None:
    from onnx import helper

    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(models.FLOAT, ["N"]))
    made = models.model(
        [
            models.node("ConcatFromSequence", ["s"], ["z"], axis=0),
            models.node("Cast", ["b"], ["c"], to=models.FLOAT),
            models.node("Add", ["z", "c"], ["y"]),
        ],
        [helper.make_value_info("s", sequence), models.tensor("b", [], TensorProto.BFLOAT16)],
        [models.tensor("y", ["N"])],
    )
    one = numpy_dtype(TensorProto.BFLOAT16).type(1)
    np.testing.assert_array_equal(ort_cpu.prepare(made).run([[np.float32([1]), np.float32([2])], one])[0], [2, 3])
    with pytest.raises(omb.UnsupportedModelError, match="sequences"):
        ort_cpu.prepare(made, adapt=False).run([[np.float32([1]), np.float32([2])], one])


def test_a_scalar_is_quantized_to_float8_with_a_zero_point_of_one_element(openvino: type[omb.Preset]) -> None:
    inputs = [
        models.tensor("x", []),
        models.tensor("scale", []),
        models.tensor("zero", [1], TensorProto.FLOAT8E5M2),
    ]
    made = models.one_node("QuantizeLinear", inputs, [models.tensor("y", [], TensorProto.FLOAT8E5M2)])
    made.opset_import[0].version = 21
    for scale in ([], [1]):
        made.graph.input[1].CopyFrom(models.tensor("scale", scale))
        given = np.full(scale, 2, np.float32)
        zero = np.zeros(1, numpy_dtype(TensorProto.FLOAT8E5M2))
        (result,) = openvino.prepare(made).run([np.float32(3), given, zero])
        assert result.shape == ()
        assert result == 1.5
