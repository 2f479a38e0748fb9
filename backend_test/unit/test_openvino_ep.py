# SPDX-License-Identifier: Apache-2.0
"""The three presets on the OpenVINO execution provider differ in what they set, and compute what they say."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.model import load

RNG = np.random.default_rng(5)
SIZE = 64
SCALE = np.float32(1 / 63)  # 7 bits: processors without VNNI saturate when two products of 8 bits are added


def codes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.round(values / SCALE), -63, 63).astype(np.int8)


WEIGHTS = RNG.uniform(-1, 1, (SIZE, SIZE)).astype(np.float32)
X = RNG.uniform(-1, 1, (8, SIZE)).astype(np.float32)


def quantized() -> ModelProto:
    """A MatMul in int8: Q and DQ on its input, DQ on its weights."""
    nodes = [
        models.node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        models.node("DequantizeLinear", ["q", "s", "z"], ["d"], name="the_input_DQ"),
        models.node("DequantizeLinear", ["w", "s", "z"], ["wd"], name="the_weight_DQ"),
        models.node("MatMul", ["d", "wd"], ["y"]),
    ]
    weights = {"w": codes(WEIGHTS), "s": SCALE, "z": np.int8(0)}
    return models.model(nodes, [models.tensor("x", [8, SIZE])], [models.tensor("y", [8, SIZE])], initializers=weights)


def settings_of(name: str, *, device: str | None = None, **options: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """What a preset sets on its provider, and on the session."""
    preset = omb.presets()[name]
    parsed, settings = preset._settle(device, options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.PresetWarning)
        target = preset._target(settings, parsed, load(models.relu()))
    ((_, chosen),) = target.providers
    return dict(chosen), dict(target.session_options or {})


NAMES = ("OrtOpenvino", "OrtOpenvinoFloat", "OrtOpenvinoInt8")


def test_the_three_differ_in_what_they_set(openvino_ep: type[omb.Preset]) -> None:
    made = [settings_of(name) for name in NAMES]
    assert len({json.dumps(m, sort_keys=True) for m in made}) == 3
    default, floating, int8 = made
    assert default == ({"device_type": "CPU"}, {})
    assert floating[0]["precision"] == "FP32"
    assert "session.disable_double_qdq_remover" in int8[1]
    assert "precision" not in int8[0]


def test_the_plugin_gets_the_same_as_properties(monkeypatch: pytest.MonkeyPatch, ort_cpu: type[omb.Preset]) -> None:
    """Where the plugin has a device (on Intel), test_devices runs it; what it would get is the same everywhere."""
    monkeypatch.setattr(providers, "built_in", lambda provider: False)
    assert settings_of("OrtOpenvino")[0] == {}
    assert json.loads(settings_of("OrtOpenvinoFloat")[0]["load_config"]) == {"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}
    config = json.loads(settings_of("OrtOpenvinoFloat", device="GPU.1", openvino_num_threads=2)[0]["load_config"])
    assert config == {"GPU": {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "2"}}


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_is_set_is_accepted(openvino_ep: type[omb.Preset], tmp_path: Path, name: str) -> None:
    import onnxruntime

    options: dict[str, Any] = {"cache_dir": tmp_path}
    if name != "OrtOpenvino":
        options["openvino_num_threads"] = 1
    chosen, _ = settings_of(name, **options)
    assert chosen["cache_dir"].startswith(str(tmp_path))
    assert (chosen.get("num_of_threads") == "1") == (name != "OrtOpenvino")
    onnxruntime.SessionOptions().add_provider("OpenVINOExecutionProvider", chosen)
    for key in chosen:
        misspelt = {(f"{k}_" if k == key else k): v for k, v in chosen.items()}
        with pytest.raises((RuntimeError, ValueError, onnxruntime.capi.onnxruntime_pybind11_state.Fail)):
            onnxruntime.SessionOptions().add_provider("OpenVINOExecutionProvider", misspelt)


def test_threads_reach_the_session_and_openvino(openvino_ep: type[omb.Preset]) -> None:
    rep = omb.OrtOpenvinoFloatBackend(models.relu(), None, 2, 3, 1)
    made = rep._session.native.get_session_options()
    assert (made.inter_op_num_threads, made.intra_op_num_threads) == (2, 3)
    assert rep.get_provider_options()["OpenVINOExecutionProvider"]["num_of_threads"] == "1"


def test_float_computes_in_float32(openvino_ep: type[omb.Preset]) -> None:
    size = 512
    weights = RNG.standard_normal((size, size)).astype(np.float32)
    made = models.model(
        [models.node("MatMul", ["x", "w"], ["y"])],
        [models.tensor("x", ["N", size])],
        [models.tensor("y", ["N", size])],
        initializers={"w": weights},
    )
    x = RNG.standard_normal((16, size)).astype(np.float32)
    exact = x.astype(np.float64) @ weights.astype(np.float64)
    for preset in (omb.OrtOpenvinoFloatBackend, omb.OpenvinoBackend):
        assert np.abs(preset(made).run(x)[0] - exact).max() < 1e-3  # bfloat16 is off by 0.1


def test_int8_takes_the_quantized_weights_as_they_are(openvino_ep: type[omb.Preset]) -> None:
    rep = omb.OrtOpenvinoInt8Backend(quantized())
    places = {n.name: n.provider for n in rep.placement()}
    assert places["the_weight_DQ"] == "OpenVINOExecutionProvider"  # folded, OpenVINO would see float weights
    assert set(places.values()) == {"OpenVINOExecutionProvider"}
    exact = (codes(X).astype(np.float64) * SCALE) @ (codes(WEIGHTS).astype(np.float64) * SCALE)
    np.testing.assert_allclose(rep.run(X)[0], exact, atol=1e-3)


@pytest.mark.parametrize("name", ["OrtCpu", "Openvino", *NAMES])
def test_a_quantized_model_agrees_everywhere(name: str) -> None:
    if not omb.availability()[name].usable:
        pytest.skip(f"{name}: {omb.availability()[name].reason}")
    exact = (codes(X).astype(np.float64) * SCALE) @ (codes(WEIGHTS).astype(np.float64) * SCALE)
    np.testing.assert_allclose(omb.presets()[name].prepare(quantized()).run(X)[0], exact, atol=1e-3)


def test_openvino_computes_a_quantized_model_in_int8(openvino: type[omb.Preset]) -> None:
    native = openvino.prepare(quantized())._session.native
    precisions = set()
    for op in native.get_runtime_model().get_ops():
        info = op.get_rt_info()
        if str(getattr(info["layerType"], "value", info["layerType"])) in ("FullyConnected", "MatMul"):
            precisions.add(str(getattr(info["runtimePrecision"], "value", info["runtimePrecision"])))
    assert precisions & {"i8", "u8"}


def test_int8_on_a_model_without_qdq_nodes_warns(openvino_ep: type[omb.Preset]) -> None:
    with pytest.warns(omb.PresetWarning, match="no QuantizeLinear nodes.*quantize_static"):
        rep = omb.OrtOpenvinoInt8Backend(models.relu())
    np.testing.assert_array_equal(rep.run(np.float32([[-1, 0, 1]]))[0], [[0, 0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        omb.OrtOpenvinoInt8Backend(quantized())


def test_nodes_that_the_provider_claims_and_cannot_compile_are_named(openvino_ep: type[omb.Preset]) -> None:
    # ONNX Runtime does not infer the shape of what Scaler gives, and OpenVINO needs the rank.
    nodes = [
        models.node("Scaler", ["x"], ["scaled"], domain="ai.onnx.ml", offset=[1.0, 2.0, 3.0], scale=[2.0, 2.0, 2.0]),
        models.node("Concat", ["scaled", "z"], ["y"], axis=1),
    ]
    inputs = [models.tensor("x"), models.tensor("z")]
    made = models.model(nodes, inputs, [models.tensor("y", ("N", 6))], opsets={"ai.onnx.ml": 1})
    with pytest.raises(omb.UnsupportedModelError, match=r"Concat 'the_Concat'.*dynamic rank") as refused:
        openvino_ep.prepare(made)
    assert refused.value.operators == ("Concat",)
    with pytest.warns(omb.FallbackWarning, match="fails to compile"):
        model = openvino_ep.prepare(made, fallback="full")
    given = np.float32([[1, 2, 3]])
    np.testing.assert_array_equal(model.run([given, given])[0], [[0, 0, 0, 1, 2, 3]])
