# SPDX-License-Identifier: Apache-2.0
"""NaN in an input is told where the engine may lose it, and never changed in silence."""

from __future__ import annotations

import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper, parser

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.openvino.special_values import LOST

CLEAN = np.array([1, -1, 2], np.float32)
HOLDS = np.array([1, np.nan, 2], np.float32)


def relu(kind: int = TensorProto.FLOAT) -> ModelProto:
    return models.model(
        [models.node("Relu", ["x"], ["y"])], [models.tensor("x", ["N"], kind)], [models.tensor("y", ["N"], kind)]
    )


@pytest.fixture(params=("Openvino", "OrtOpenvino"))
def losing(request: pytest.FixtureRequest) -> type[omb.Preset]:
    """The presets that OpenVINO computes."""
    return request.getfixturevalue("openvino" if request.param == "Openvino" else "openvino_ep")  # type: ignore[no-any-return]


def silent(rep: omb.PreparedModel, *inputs: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rep.run(list(inputs))


def test_the_first_nan_is_told(losing: type[omb.Preset]) -> None:
    rep = losing.prepare(relu())
    silent(rep, CLEAN)
    silent(rep, CLEAN[:0])
    with pytest.warns(omb.PrecisionWarning, match=r"input 'x' holds NaN.*Relu: 0"):
        rep.run([HOLDS])
    silent(rep, HOLDS)


def test_an_infinity_is_told_where_it_is_lost(losing: type[omb.Preset]) -> None:
    silent(losing.prepare(relu()), np.array([np.inf, -np.inf], np.float32))
    softmax = models.model(
        [models.node("Softmax", ["x"], ["y"])], [models.tensor("x", ["N", 3])], [models.tensor("y", ["N", 3])]
    )
    rep = losing.prepare(softmax)
    silent(rep, np.array([[1, -np.inf, 2]], np.float32))
    with pytest.warns(omb.PrecisionWarning, match=r"input 'x' holds inf.*Softmax"):
        found = rep.run([np.array([[1, np.inf, 2]], np.float32)])[0]
    assert not np.isnan(found).all()
    with pytest.warns(omb.PrecisionWarning, match="input 'x' holds NaN"):
        rep.run([HOLDS[None]])


def test_an_infinity_is_told_where_nodes_make_nan_of_it_that_is_lost(losing: type[omb.Preset]) -> None:
    nodes = [models.node("Mul", ["x", "z"], ["m"]), models.node("Relu", ["m"], ["y"])]
    inputs = [models.tensor("x", ["N"]), models.tensor("z", ["N"])]
    rep = losing.prepare(models.model(nodes, inputs, [models.tensor("y", ["N"])]))
    zeros = np.zeros(3, np.float32)
    silent(rep, CLEAN, zeros)
    with pytest.warns(omb.PrecisionWarning, match=r"input 'x' holds inf.*Relu: 0, of NaN that a node makes of it"):
        found = rep.run([np.array([1, np.inf, 2], np.float32), zeros])[0]
    assert found[1] == 0
    silent(rep, np.array([1, np.inf, 2], np.float32), zeros)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("sign", [1, -1])
def test_every_floating_point_type_is_looked_at(dtype: type, sign: int, openvino: type[omb.Preset]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that float64 is computed in float32
        rep = openvino.prepare(relu(omb_type(dtype)))
    silent(rep, np.array([1, -1, np.inf, -np.inf]).astype(dtype))
    holds = np.copysign(np.array([1, np.nan, 2]), sign).astype(dtype)
    with pytest.warns(omb.PrecisionWarning, match="input 'x' holds NaN"):
        rep.run([holds])


def omb_type(dtype: type) -> int:
    names = {np.float64: "DOUBLE", np.float16: "FLOAT16", ml_dtypes.bfloat16: "BFLOAT16", np.float32: "FLOAT"}
    return int(TensorProto.DataType.Value(names[dtype]))


def test_strict_refuses_each_run(losing: type[omb.Preset]) -> None:
    rep = losing.prepare(relu(), precision_policy="strict")
    for _ in range(2):
        with pytest.raises(omb.InputError, match="holds NaN"):
            rep.run([HOLDS])
    silent(rep, CLEAN)


def test_bound_buffers_are_looked_at(openvino: type[omb.Preset]) -> None:
    x = CLEAN.copy()
    bound = openvino.prepare(relu()).bind([x], [np.empty(3, np.float32)])
    x[:] = HOLDS
    with pytest.warns(omb.PrecisionWarning, match="holds NaN"):
        bound.run()


def test_a_session_out_of_the_cache_tells_too(openvino: type[omb.Preset], tmp_path: Path) -> None:
    for _ in range(2):
        rep = openvino.prepare(relu(), cache_dir=tmp_path)
        with pytest.warns(omb.PrecisionWarning, match="Relu: 0"):
            rep.run([HOLDS])


def test_nothing_is_told_where_nan_is_kept(preset: type[omb.Preset]) -> None:
    kept = models.model([models.node("Sqrt", ["x"], ["y"])], [models.tensor("x", ["N"])], [models.tensor("y", ["N"])])
    rep = preset.prepare(kept)
    silent(rep, HOLDS)
    assert np.isnan(rep.run([HOLDS])[0][1])


def test_ort_cpu_keeps_nan(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(relu())
    silent(rep, HOLDS)
    assert np.isnan(rep.run([HOLDS])[0][1])


#: Of the list, those of one floating-point input that a model of one node shows.
SINGLE = ("Clip", "Exp", "HardSigmoid", "LogSoftmax", "Relu", "Softmax")


@pytest.mark.parametrize("operator", SINGLE)
def test_openvino_still_loses_it(operator: str, openvino: type[omb.Preset]) -> None:
    assert operator in LOST["NaN"]
    model = models.model(
        [models.node(operator, ["x"], ["y"])], [models.tensor("x", [2, 8])], [models.tensor("y", [2, 8])]
    )
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    x[0, 3] = np.nan
    rep = openvino.prepare(model)
    with pytest.warns(omb.PrecisionWarning, match=operator):
        found = rep.run([x])[0]
    row = operator in ("Softmax", "LogSoftmax")
    assert not (np.isnan(found[0]).all() if row else np.isnan(found[0, 3]))


def test_the_logarithm_of_a_sum_of_exponentials_still_loses_it(openvino: type[omb.Preset]) -> None:
    model = models.one_node("ReduceLogSumExp", [models.tensor("x", [2, 3])], [models.tensor("y", [2, 1])], opset=18)
    model.graph.node[0].input.append("axes")
    model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axes"))
    rep = openvino.prepare(model)
    with pytest.warns(omb.PrecisionWarning, match="ReduceLogSumExp"):
        found = rep.run([np.float32([[1, np.nan, 2], [1, 2, 3]])])[0]
    assert not np.isnan(found).any()


def test_a_linear_sample_beside_an_infinity_still_is_nan(openvino: type[omb.Preset]) -> None:
    types = [models.tensor("x", [1, 1, 2, 2]), models.tensor("grid", [1, 1, 1, 2])]
    rep = openvino.prepare(models.one_node("GridSample", types, [models.tensor("y", [1, 1, 1, 1])], opset=20))
    with pytest.warns(omb.PrecisionWarning, match="input 'x' holds inf.*GridSample"):
        found = rep.run([np.float32([1, np.inf, 2, 3]).reshape(1, 1, 2, 2), np.float32([0.2, 0.1]).reshape(1, 1, 1, 2)])
    assert np.isnan(found[0]).all()


def test_the_gelu_of_an_infinity_is_told(openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(models.one_node("Gelu", [models.tensor("x", [3])], [models.tensor("y", [3])], opset=20))
    with pytest.warns(omb.PrecisionWarning, match="Gelu"):
        rep.run([np.float32([1, np.inf, 2])])


def test_a_constant_with_nan_is_told_when_the_model_is_prepared(losing: type[omb.Preset]) -> None:
    model = models.model(
        [models.node("Relu", ["c"], ["d"]), models.node("Add", ["x", "d"], ["y"])],
        [models.tensor("x", ["N"])],
        [models.tensor("y", ["N"])],
        initializers={"c": HOLDS},
    )
    with pytest.warns(omb.PrecisionWarning, match="constant 'c' holds NaN"):
        losing.prepare(model, fallback="full") if losing.name == "OrtOpenvino" else losing.prepare(model)


def test_a_constant_whose_name_a_function_has_too_is_told(openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[N] x) => (float[N] y) {
            c = Constant<value = float[1] {nan}>()
            d = Relu(c)
            e = Add(x, d)
            y = local.f(e)
        }
        <domain: "local", opset_import: ["": 17]> f (a) => (b) {
            c = Constant<value = bool[1] {1}>()
            b = Where(c, a, a)
        }"""
    )
    with pytest.warns(omb.PrecisionWarning, match="constant 'c' holds NaN"):
        openvino.prepare(model)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_meets_the_padding_of_a_convolution_is_told(value: float, losing: type[omb.Preset]) -> None:
    def convolution(weights: np.ndarray) -> ModelProto:
        return models.model(
            [models.node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
            [models.tensor("x", ["N", 1, 4, 4])],
            [models.tensor("y", ["N", 1, 4, 4])],
            initializers={"w": weights},
        )

    weights, image = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 4, 4), np.float32)
    rep = losing.prepare(convolution(weights))
    silent(rep, image)
    name = "NaN" if np.isnan(value) else "inf"
    with pytest.warns(omb.PrecisionWarning, match=f"input 'x' holds {name}.*Conv: left out"):
        rep.run([image * np.float32(value)])
    weights[0, 0, 0, 0] = value
    with pytest.warns(omb.PrecisionWarning, match=f"constant 'w' holds {name}.*Conv: left out"):
        losing.prepare(convolution(weights))


def test_strict_refuses_a_constant_with_nan(openvino: type[omb.Preset]) -> None:
    model = models.model(
        [models.node("Min", ["x", "c"], ["y"])],
        [models.tensor("x", ["N"])],
        [models.tensor("y", ["N"])],
        initializers={"c": HOLDS},
    )
    with pytest.raises(omb.UnsupportedModelError, match="constant 'c' holds NaN"):
        openvino.prepare(model, precision_policy="strict")


@pytest.mark.parametrize("operator", ["Greater", "GreaterOrEqual"])
def test_a_comparison_is_right_or_told(operator: str, losing: type[omb.Preset]) -> None:
    compared = models.model(
        [models.node(operator, ["x", "x"], ["y"])],
        [models.tensor("x", ["N"])],
        [models.tensor("y", ["N"], TensorProto.BOOL)],
    )
    rep = losing.prepare(compared, fallback="full") if losing.name == "OrtOpenvino" else losing.prepare(compared)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = rep.run([HOLDS])[0]
    assert not found[1] or any(operator in str(w.message) for w in caught)
