# SPDX-License-Identifier: Apache-2.0
"""The three presets on the OpenVINO execution provider differ in what they set, and compute what they say."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.openvino import runtime as openvino_runtime
from onnx_multi_backend.engines.ort import plugins, providers
from onnx_multi_backend.models.loading import load

RNG = np.random.default_rng(5)
SIZE = 64
#: What OpenVINO is told so that it does not quantize what is multiplied by int8 weights.
ACTIVATIONS = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
UNQUANTIZED = json.dumps({"CPU": ACTIVATIONS})

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
        target = preset.make_target(settings, parsed, load(models.relu()))
    ((_, chosen),) = target.providers
    return dict(chosen), dict(target.session_options or {})


NAMES = ("OrtOpenvino", "OrtOpenvinoFloat", "OrtOpenvinoInt8")


def test_the_three_set_what_they_say(built_in_ep: None) -> None:
    default, floating, int8 = (settings_of(name) for name in NAMES)
    assert default == floating == ({"device_type": "CPU", "precision": "FP32", "load_config": UNQUANTIZED}, {})
    assert int8 == (default[0], {"session.disable_double_qdq_remover": "1"})
    assert settings_of("OrtOpenvino", precision="default")[0] == {"device_type": "CPU"}
    assert settings_of("OrtOpenvino", device="NPU")[0] == {"device_type": "NPU", "precision": "ACCURACY"}


@pytest.fixture
def plugin_ep(monkeypatch: pytest.MonkeyPatch, ort_cpu: type[omb.Preset]) -> None:
    """As if the provider came from the plugin: it has a device on Intel only; what it would get is the same everywhere."""
    own = [p for p in plugins.of_wheel() if p != providers.OPENVINO]
    monkeypatch.setattr(plugins, "of_wheel", lambda: tuple(own))


@pytest.fixture
def built_in_ep(openvino_ep: type[omb.Preset]) -> None:
    if not plugins.built_in(providers.OPENVINO):
        pytest.skip("the OpenVINO execution provider comes from the plugin here")


def config_of(name: str, **options: Any) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(settings_of(name, **options)[0].get("load_config", "{}"))
    return config


def test_the_plugin_gets_the_same_as_properties(plugin_ep: None) -> None:
    for name in NAMES:
        assert settings_of(name)[0].keys() == {"load_config"}
        assert config_of(name) == {"CPU": {"INFERENCE_PRECISION_HINT": "f32", **ACTIVATIONS}}
    config = config_of("OrtOpenvinoFloat", device="GPU.1", openvino_num_threads=2)
    assert config == {"GPU": {"INFERENCE_PRECISION_HINT": "f32", **ACTIVATIONS, "INFERENCE_NUM_THREADS": "2"}}
    assert settings_of("OrtOpenvino", precision="default")[0] == {}
    assert config_of("OrtOpenvino", precision="bf16") == {"CPU": {"INFERENCE_PRECISION_HINT": "bf16", **ACTIVATIONS}}


def test_what_the_user_writes_into_load_config_stays(plugin_ep: None) -> None:
    def given(**properties: str) -> dict[str, str]:
        return {"load_config": json.dumps({"CPU": properties}), "reshape_input": "x[1,3]"}

    chosen, _ = settings_of("OrtOpenvino", provider_options=given(NUM_STREAMS="2"))
    assert chosen["reshape_input"] == "x[1,3]"
    assert json.loads(chosen["load_config"]) == {
        "CPU": {"INFERENCE_PRECISION_HINT": "f32", **ACTIVATIONS, "NUM_STREAMS": "2"}
    }
    asked = given(INFERENCE_PRECISION_HINT="bf16")
    for options in ({}, {"precision": "bf16"}):
        found = settings_of("OrtOpenvino", provider_options=asked, **options)[0]
        assert json.loads(found["load_config"]) == {"CPU": {**ACTIVATIONS, "INFERENCE_PRECISION_HINT": "bf16"}}
    with pytest.raises(omb.OptionError, match=r"precision='f32'.*INFERENCE_PRECISION_HINT 'bf16'.*contradict"):
        settings_of("OrtOpenvino", provider_options=asked, precision="f32")
    for written in ("{", "[]", '{"CPU": 1}', str({"CPU": {}, "GPU": 1})):
        with pytest.raises(omb.OptionError, match="load_config is OpenVINO's properties by device in JSON"):
            settings_of("OrtOpenvino", provider_options={"load_config": written})


def test_two_precisions_that_contradict_each_other_are_refused(built_in_ep: None) -> None:
    options = {"precision": "ACCURACY"}
    found = settings_of("OrtOpenvino", provider_options=options)[0]
    assert found == {"device_type": "CPU", **options, "load_config": UNQUANTIZED}
    with pytest.raises(omb.OptionError, match=r"precision='bf16'.*'precision': 'ACCURACY'.*contradict"):
        omb.OrtOpenvinoBackend(models.relu(), options, precision="bf16")


def test_openvino_without_onnx_runtime_takes_the_same_words(openvino: type[omb.Preset]) -> None:
    def properties(**options: Any) -> dict[str, Any]:
        device, settings = omb.OpenvinoBackend._settle(None, options)
        return dict(omb.OpenvinoBackend.make_target(settings, device, None).properties)

    assert properties()["INFERENCE_PRECISION_HINT"] == "f32"
    assert "INFERENCE_PRECISION_HINT" not in properties(precision="default")
    assert properties(INFERENCE_PRECISION_HINT="bf16")["INFERENCE_PRECISION_HINT"] == "bf16"
    with pytest.raises(omb.OptionError, match=r"precision='f32' and INFERENCE_PRECISION_HINT='bf16' contradict"):
        omb.OpenvinoBackend(models.relu(), precision="f32", INFERENCE_PRECISION_HINT="bf16")


def test_less_precision_is_had_by_asking(openvino_ep: type[omb.Preset]) -> None:
    if "BF16" not in openvino_runtime.core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this processor computes no bfloat16")
    made, x, exact = product()
    hint = {"load_config": json.dumps({"CPU": {"INFERENCE_PRECISION_HINT": "bf16"}})}
    for options in ({"precision": "bf16"}, {"provider_options": hint}):
        assert np.abs(omb.OrtOpenvinoBackend(made, **options).run(x)[0] - exact).max() > 1e-2


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_is_set_is_accepted(built_in_ep: None, name: str) -> None:
    import onnxruntime

    options: dict[str, Any] = {}
    if name != "OrtOpenvino":
        options["openvino_num_threads"] = 1
    chosen, _ = settings_of(name, **options)
    assert (chosen.get("num_of_threads") == "1") == (name != "OrtOpenvino")
    onnxruntime.SessionOptions().add_provider("OpenVINOExecutionProvider", chosen)
    for key in chosen:
        misspelt = {(f"{k}_" if k == key else k): v for k, v in chosen.items()}
        with pytest.raises((RuntimeError, ValueError, onnxruntime.capi.onnxruntime_pybind11_state.Fail)):
            onnxruntime.SessionOptions().add_provider("OpenVINOExecutionProvider", misspelt)


def test_nothing_is_kept_on_the_cpu_where_that_takes_longer(openvino_ep: type[omb.Preset], tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.warns(omb.CacheWarning, match="keeps nothing of .* in the cache: on the CPU"):
            rep = omb.OrtOpenvinoBackend(models.relu(), cache_dir=tmp_path)
        assert "cache_dir" not in rep.get_provider_options()["OpenVINOExecutionProvider"]
    assert list(tmp_path.rglob("*")) == []


def test_threads_reach_the_session_and_openvino(openvino_ep: type[omb.Preset]) -> None:
    rep = omb.OrtOpenvinoFloatBackend(models.relu(), None, 2, 3, 1)
    made = rep._session.native.get_session_options()
    assert (made.inter_op_num_threads, made.intra_op_num_threads) == (2, 3)
    options = rep.get_provider_options()["OpenVINOExecutionProvider"]
    if plugins.built_in(providers.OPENVINO):
        assert options["num_of_threads"] == "1"
    else:
        assert json.loads(options["load_config"])["CPU"]["INFERENCE_NUM_THREADS"] == "1"


def product() -> tuple[ModelProto, np.ndarray, np.ndarray]:
    """A large MatMul, its input, and what it is in float64."""
    size = 512
    weights = RNG.standard_normal((size, size)).astype(np.float32)
    made = models.model(
        [models.node("MatMul", ["x", "w"], ["y"])],
        [models.tensor("x", ["N", size])],
        [models.tensor("y", ["N", size])],
        initializers={"w": weights},
    )
    x = RNG.standard_normal((16, size)).astype(np.float32)
    return made, x, x.astype(np.float64) @ weights.astype(np.float64)


def test_float32_is_computed_in_float32(openvino_ep: type[omb.Preset]) -> None:
    made, x, exact = product()
    for preset in (omb.OrtOpenvinoBackend, omb.OrtOpenvinoFloatBackend, omb.OpenvinoBackend):
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
    with pytest.warns(omb.PresetWarning, match="no QuantizeLinear nodes.*calibration.quantize"):
        rep = omb.OrtOpenvinoInt8Backend(models.relu())
    np.testing.assert_array_equal(rep.run(np.float32([[-1, 0, 1]]))[0], [[0, 0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        omb.OrtOpenvinoInt8Backend(quantized())


def test_nodes_that_the_provider_claims_and_cannot_compile_are_named(openvino_ep: type[omb.Preset]) -> None:
    # What SVMRegressor gives has no known rank where its input has none, and OpenVINO needs it.
    linear = {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 3.0], "coefficients": [1.0, 2.0, 3.0], "rho": [0.5]}
    nodes = [
        models.node("SVMRegressor", ["x"], ["sum"], domain="ai.onnx.ml", n_supports=0, **linear),
        models.node("Concat", ["sum", "z"], ["y"], axis=1),
    ]
    inputs = [models.tensor("x", None), models.tensor("z")]
    made = models.model(nodes, inputs, [models.tensor("y", ("N", 4))], opsets={"ai.onnx.ml": 1})
    with pytest.raises(omb.UnsupportedModelError, match=r"Concat 'the_Concat'.*(dynamic rank|rank range)") as refused:
        openvino_ep.prepare(made)
    assert refused.value.operators == ("Concat",)
    with pytest.warns(omb.FallbackWarning, match="fails to compile"):
        model = openvino_ep.prepare(made, fallback="full")
    given = np.float32([[1, 2, 3]])
    np.testing.assert_array_equal(model.run([given, given])[0], [[14.5, 1, 2, 3]])


@pytest.fixture
def on_the_plugin(openvino_ep: type[omb.Preset]) -> type[omb.Preset]:
    if plugins.built_in(providers.OPENVINO):
        pytest.skip("the OpenVINO execution provider is built in here")
    return openvino_ep


def test_an_option_that_the_plugin_would_ignore_is_refused(on_the_plugin: type[omb.Preset]) -> None:
    with pytest.raises(omb.OptionError, match=r"no option 'device_type', 'num_of_threads'.*load_config, reshape_input"):
        on_the_plugin.prepare(models.relu(), provider_options={"device_type": "CPU", "num_of_threads": 1})


@pytest.mark.parametrize("kind", [TensorProto.STRING, TensorProto.INT4])
def test_what_would_break_the_memory_is_refused(on_the_plugin: type[omb.Preset], kind: int) -> None:
    value = [helper.make_tensor_value_info(name, kind, [4]) for name in ("x", "y")]
    made = models.model([models.node("Identity", ["x"], ["y"])], value[:1], value[1:], opsets={"": 21}, ir_version=10)
    with pytest.raises(omb.UnsupportedModelError, match="OpenVINO (computes nothing with strings|cannot pass 4-bit)"):
        on_the_plugin.prepare(made, adapt=False)


def test_what_would_break_the_memory_goes_to_the_cpu_where_it_may(on_the_plugin: type[omb.Preset]) -> None:
    value = [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in ("x", "y")]
    made = models.model([models.node("Identity", ["x"], ["y"])], value[:1], value[1:])
    with pytest.warns(omb.FallbackWarning) as told:
        rep = on_the_plugin.prepare(made, fallback="full")
    assert any("OpenVINO computes nothing with strings" in str(warning.message) for warning in told)
    assert {n.provider for n in rep.placement()} == {"CPUExecutionProvider"}
    assert list(rep.run(np.array(["a", "b"], object))[0]) == ["a", "b"]


def test_the_plugin_has_not_the_faults_of_the_built_in_provider(on_the_plugin: type[omb.Preset]) -> None:
    """Unused inputs before others, and outputs of packed types."""
    inputs = [models.tensor(name, [3]) for name in "abc"]
    made = models.model([models.node("Sub", ["b", "c"], ["y"])], inputs, [models.tensor("y", [3])])
    rep = on_the_plugin.prepare(made)
    assert not rep.adaptations
    a, b, c = np.float32([[100, 200, 300], [1, 2, 3], [3, 2, 1]])
    np.testing.assert_array_equal(rep.run([a, b, c])[0], b - c)
    packed = helper.make_tensor_value_info("y", TensorProto.INT4, [3])
    cast = models.node("Cast", ["x"], ["y"], to=TensorProto.INT4)
    made = models.model([cast], [models.tensor("x", [3])], [packed], opsets={"": 21}, ir_version=10)
    np.testing.assert_array_equal(on_the_plugin.prepare(made).run(np.float32([1, -2, 3]))[0].astype(int), [1, -2, 3])


def test_what_openvino_computes_wrongly_is_refused_on_the_plugin_too(on_the_plugin: type[omb.Preset]) -> None:
    """One table serves the `openvino` package and the plugin; `adapt=False` shows that the form is still wrong."""
    generator = np.random.default_rng(3)
    shapes = {"w": (1, 12, 4), "r": (1, 12, 3), "p": (1, 9)}
    values = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    nodes = [models.node("LSTM", ["x", "w", "r", "", "", "", "", "p"], ["y"], hidden_size=3)]
    given, output = [models.tensor("x", [3, 2, 4])], [models.tensor("y", [3, 1, 2, 3])]
    made = models.model(nodes, given, output, initializers=values, opsets={"": 14})
    with pytest.raises(omb.UnsupportedModelError, match="LSTM.*peepholes"):
        on_the_plugin.prepare(made)
    x = generator.normal(size=(3, 2, 4)).astype(np.float32)
    rep = on_the_plugin.prepare(made, adapt=False)
    assert [n.provider for n in rep.placement()] == [providers.OPENVINO]
    assert not np.allclose(rep.run(x)[0], omb.OrtCpuBackend(made).run(x)[0], atol=1e-3)


def test_an_input_without_elements_is_not_lost_on_the_plugin(on_the_plugin: type[omb.Preset]) -> None:
    inputs = [models.tensor("x", [3]), models.tensor("like", [0], TensorProto.FLOAT16)]
    output = [models.tensor("y", [3], TensorProto.FLOAT16)]
    made = models.model([models.node("CastLike", ["x", "like"], ["y"])], inputs, output, opsets={"": 19})
    rep = on_the_plugin.prepare(made)
    assert {n.provider for n in rep.placement()} == {providers.OPENVINO}
    x = np.float32([1, -2, 3])
    np.testing.assert_array_equal(rep.run([x, np.zeros(0, np.float16)])[0], x.astype(np.float16))


def test_axes_that_are_an_empty_input_are_all_axes_on_the_plugin(on_the_plugin: type[omb.Preset]) -> None:
    inputs = [models.tensor("x", [2, 3]), models.tensor("axes", [0], TensorProto.INT64)]
    node = models.node("ReduceSum", ["x", "axes"], ["y"])
    rep = on_the_plugin.prepare(models.model([node], inputs, [models.tensor("y", [1, 1])]))
    assert [a.pass_name for a in rep.adaptations] == ["empty_inputs"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(rep.run([x, np.zeros(0, np.int64)])[0], [[15]])


@pytest.mark.parametrize("device", ["HETERO:CPU", "MULTI:CPU", "AUTO:CPU"])
def test_devices_that_the_execution_provider_makes_of_others(
    built_in_ep: None, openvino_ep: type[omb.Preset], device: str
) -> None:
    rep = openvino_ep.prepare(models.relu((2, 3)), device)
    assert rep.device == device
    assert {node.provider for node in rep.placement()} == {"OpenVINOExecutionProvider"}
    assert rep.run([np.float32([[-1, 0, 2]] * 2)])[0].tolist() == [[0, 0, 2]] * 2


def test_the_execution_provider_has_no_batch(built_in_ep: None, openvino_ep: type[omb.Preset]) -> None:
    with pytest.raises(omb.DeviceUnavailableError, match=r"has no BATCH.*Openvino for BATCH:CPU"):
        openvino_ep.prepare(models.relu(), "batch:CPU(4)")
    assert not openvino_ep.supports_device("BATCH:CPU")


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_shapes_between_groups_of_nodes_are_not_forgotten(built_in_ep: None, openvino_ep: type[omb.Preset]) -> None:
    """The provider leaves BitShift to the CPU, before and behind which it computes what the shift is written with."""
    made = models.model(
        [
            models.node("BitShift", ["x", "n"], ["y"], direction="LEFT"),
            models.node("ReduceLogSumExp", ["v"], ["z"], axes=[1, -1], keepdims=0),
        ],
        [
            models.tensor("v", [1, 1, 1]),
            models.tensor("x", [1, 4], TensorProto.UINT32),
            models.tensor("n", [1, 1], TensorProto.UINT32),
        ],
        [models.tensor("y", [1, 4], TensorProto.UINT32), models.tensor("z", [1])],
    )
    made.opset_import[0].version = 14
    prepared = openvino_ep.prepare(made)
    assert "declared_types" in {change.pass_name for change in prepared.adaptations}
    for shift in (3, 31, 3):
        x = np.array([[1, 2, 5, 2**30]], np.uint32)
        y, z = prepared.run([np.full((1, 1, 1), 100, np.float32), x, np.array([[shift]], np.uint32)])
        np.testing.assert_array_equal(y, x << np.uint32(shift))
        np.testing.assert_allclose(z, [100])


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("size", [3, 5])
def test_channels_may_be_known_only_at_run_time(openvino_ep: type[omb.Preset], size: int) -> None:
    """The built-in provider took an LRN of 5 channels, and refused each run."""
    nodes = [models.node("Neg", ["x"], ["a"]), models.node("LRN", ["a"], ["b"], size=size, alpha=0.5)]
    nodes += [models.node("Abs", ["b"], ["c"]), models.node("Exp", ["c"], ["y"])]
    unknown = [None] * 4
    prepared = openvino_ep.prepare(models.model(nodes, [models.tensor("x", unknown)], [models.tensor("y", unknown)]))
    for shape in ((2, 3, 2, 2), (1, 1, 3, 1), (2, 3, 2, 2)):
        x = RNG.normal(size=shape).astype(np.float32)
        before, behind = (size - 1) // 2, size // 2
        squares = [(x[:, max(0, c - before) : c + behind + 1] ** 2).sum(1, keepdims=True) for c in range(shape[1])]
        right = np.exp(np.abs(x) / (1 + np.float32(0.5) / size * np.concatenate(squares, 1)) ** 0.75)
        np.testing.assert_allclose(prepared.run([x])[0], right, rtol=1e-5)


def test_what_is_wrong_is_left_where_its_other_form_is_refused_beside_other_nodes(
    built_in_ep: None, openvino_ep: type[omb.Preset]
) -> None:
    """The provider takes the product in int32, and refuses it beside what a ReduceL2 of integers is written with."""
    made = models.model(
        [models.node("ReduceL2", ["x"], ["norm"]), models.node("Mul", ["one", "v"], ["y"])],
        [models.tensor("x", [], TensorProto.INT32), models.tensor("v", [None], TensorProto.UINT8)],
        [models.tensor("norm", [], TensorProto.INT32), models.tensor("y", [None], TensorProto.UINT8)],
        initializers={"one": np.uint8([1])},
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        prepared = openvino_ep.prepare(made, fallback="full")
    assert sum(w.category is omb.FallbackWarning for w in told) == 1  # of the session that is used, and no other
    for v in ([0], [163, 0, 255, 8, 112], [255]):
        norm, y = prepared.run([np.int32(-7), np.uint8(v)])
        assert norm == 7
        np.testing.assert_array_equal(y, np.uint8(v))
