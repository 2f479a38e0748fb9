# SPDX-License-Identifier: Apache-2.0
"""Options are checked by name, type and value before anything is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models

ALL = sorted(omb.presets())
MODEL = models.relu()
X = np.float32([[1, 2, 3]])


def _required(name: str) -> dict[str, Any]:
    return {"Ort": {"provider_name": "CPUExecutionProvider"}, "OrtTensorrtInt8": {"calibration_table": {"x": 1.0}}}.get(
        name, {}
    )


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_option_is_refused_and_the_known_ones_named(name: str) -> None:
    with pytest.raises(omb.OptionError, match=r"no option 'input_exampel'.*device.*input_example.*fallback.*cache_dir"):
        omb.presets()[name].prepare(MODEL, input_exampel=None, **_required(name))


COMMON: dict[str, tuple[Any, type[Exception], str]] = {
    "adapt": ("yes", omb.OptionTypeError, "adapt is True or False; 'yes' was given"),
    "fallback": ("some", omb.OptionError, "fallback is one of 'partial', 'none', 'full'; 'some' was given"),
    "cache_dir": (True, omb.OptionTypeError, "cache_dir is a folder, False"),
}


@pytest.mark.parametrize("option", COMMON)
@pytest.mark.parametrize("name", ALL)
def test_a_wrong_common_option_is_refused_by_every_preset(name: str, option: str) -> None:
    value, error, message = COMMON[option]
    with pytest.raises(error, match=message):
        omb.presets()[name].prepare(MODEL, **{option: value}, **_required(name))


def test_a_fallback_that_cannot_be_hashed_is_refused_too() -> None:
    with pytest.raises(omb.OptionError, match="fallback is one of"):
        omb.OrtCpuBackend.prepare(MODEL, fallback=["partial"])


def test_a_cache_dir_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(omb.OptionError, match="is a file"):
        omb.OrtCpuBackend.prepare(MODEL, cache_dir=file)


WRONG: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "threads of a wrong type": ("OrtCpu", {"intra_op_num_threads": "2"}, omb.OptionTypeError, "number of threads"),
    "threads as bool": ("OrtCpu", {"intra_op_num_threads": True}, omb.OptionTypeError, "True was given"),
    "more threads than cores anywhere": ("OrtCpu", {"intra_op_num_threads": 10**9}, omb.OptionError, "at most 10000"),
    "a size beyond int64": ("OrtCpu", {"input_shapes": {"x": (2**63, 3)}}, omb.OptionError, "sizes of at most 922337"),
    "no threads": ("OrtCpu", {"inter_op_num_threads": 0}, omb.OptionError, "at least 1"),
    "negative threads": ("OrtOpenvino", {"intra_op_num_threads": -1}, omb.OptionError, "at least 1; -1 was given"),
    "a misspelt option": ("OrtCpu", {"fallbak": "none"}, omb.OptionError, r"'fallbak'\. Did you mean 'fallback'\?"),
    "a misspelt option of Openvino": ("Openvino", {"precison": "f32"}, omb.OptionError, r"Did you mean 'precision'\?"),
    "precision": ("Openvino", {"precision": "f8"}, omb.OptionError, "precision is one of 'f32', 'f16', 'bf16'"),
    "spelling": ("Openvino", {"precision": "fp16"}, omb.OptionError, r"'fp16' was given. Did you mean 'f16'"),
    "hint": ("Openvino", {"performance_hint": "FAST"}, omb.OptionError, "performance_hint is one of 'LATENCY'"),
    "property in lower case": ("Openvino", {"num_streams": 1}, omb.OptionError, "no option 'num_streams'.*in capitals"),
    "provider options as a list": ("OrtCuda", {"provider_options": ["a"]}, omb.OptionTypeError, "mapping of option"),
    "provider option that is not a name": (
        "OrtCuda",
        {"provider_options": {1: 2}},
        omb.OptionTypeError,
        "mapping of opt",
    ),
    "a CUDA option that there is not": (
        "OrtCuda",
        {"provider_options": {"gpu_memory_limit": 1}},
        omb.OptionError,
        "CUDAExecutionProvider has no option 'gpu_memory_limit'.*gpu_mem_limit",
    ),
    "no provider": ("Ort", {}, omb.OptionError, "Ort needs provider_name=VALUE"),
    "an empty list of providers": ("Ort", {"provider_name": []}, omb.OptionTypeError, "priority list"),
    "an empty provider": ("Ort", {"provider_name": ""}, omb.OptionTypeError, "provider's name"),
    "a number for a provider": ("Ort", {"provider_name": 3}, omb.OptionTypeError, "3 was given"),
    "fewer options than providers": (
        "Ort",
        {"provider_name": ["CPUExecutionProvider"], "provider_options": [{}, {}]},
        omb.OptionError,
        "2 mappings for 1 provider",
    ),
    "no table": ("OrtTensorrtInt8", {}, omb.OptionError, "needs calibration_table=VALUE.*flatbuffers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_option_is_refused(name: str) -> None:
    preset, options, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        omb.presets()[preset].prepare(MODEL, **options)


SESSION: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown name": (
        {"intra_op_threads": 1},
        omb.OptionError,
        r"no session option 'intra_op_threads'\. Did you mean '\w+_num_threads'\? Known: .*intra_op_num_threads",
    ),
    "more threads than cores anywhere": ({"intra_op_num_threads": 10**9}, omb.OptionError, "at most 10000"),
    "wrong type": ({"intra_op_num_threads": "two"}, omb.OptionTypeError, "'intra_op_num_threads'.*'two' was given"),
    "unknown word": (
        {"graph_optimization_level": "ORT_ENABLE_MOST"},
        omb.OptionError,
        "one of .*ORT_ENABLE_ALL.*'ORT_ENABLE_MOST'",
    ),
    "no mapping": (7, omb.OptionTypeError, "mapping of names to values or an onnxruntime.SessionOptions; int"),
    "no name": ({1: 2}, omb.OptionTypeError, "strings; 1 was given"),
}


@pytest.mark.parametrize("name", SESSION)
def test_a_wrong_session_option_is_refused(ort_cpu: type[omb.Preset], name: str) -> None:
    options, error, message = SESSION[name]
    with pytest.raises(error, match=message):
        omb.OrtBackend(MODEL, "CPUExecutionProvider", None, options)


def test_session_options_reach_the_session(ort_cpu: type[omb.Preset]) -> None:
    rep = omb.OrtBackend(
        MODEL,
        "CPUExecutionProvider",
        session_options={
            "intra_op_num_threads": 1,
            "graph_optimization_level": "ORT_DISABLE_ALL",
            "session.intra_op.allow_spinning": "0",
        },
    )
    made = rep._session.native.get_session_options()
    assert made.intra_op_num_threads == 1
    assert made.graph_optimization_level.name == "ORT_DISABLE_ALL"
    assert made.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_threads_reach_the_session(ort_cpu: type[omb.Preset]) -> None:
    made = omb.OrtCpuBackend(MODEL, 2, 3)._session.native.get_session_options()
    assert (made.inter_op_num_threads, made.intra_op_num_threads) == (2, 3)
    assert made.execution_mode.name == "ORT_PARALLEL"


def test_a_native_session_options_object_works(ort_cpu: type[omb.Preset]) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    rep = omb.OrtBackend(MODEL, "CPUExecutionProvider", None, options)
    np.testing.assert_array_equal(rep.run(X)[0], X)
    assert [n.op_type for n in rep.placement()] == ["Relu"]
    again = omb.OrtBackend(MODEL, "CPUExecutionProvider", None, options)
    np.testing.assert_array_equal(again.run(X)[0], X)


@pytest.mark.parametrize(
    "options", [{"MADE_UP_PROPERTY": 1}, {"INFERENCE_NUM_THREADS": "many"}, {"NUM_STREAMS": -7}], ids=str
)
def test_a_wrong_openvino_property_is_refused(openvino: type[omb.Preset], options: dict[str, Any]) -> None:
    with pytest.raises(omb.OptionError, match=next(iter(options))):
        openvino.prepare(MODEL, **options)


def _rewritten(hidden_size: int) -> ModelProto:
    """A model that OpenVINO computes wrongly as it stands."""
    rnn = models.node("RNN", ["x", "w", "r"], ["y", ""], hidden_size=hidden_size, layout=1)
    weights = {name: np.ones((1, hidden_size, n), np.float32) for name, n in (("w", 4), ("r", hidden_size))}
    return models.model([rnn], [models.tensor("x", (2, 3, 4))], [models.tensor("y", None)], initializers=weights)


def test_a_wrong_property_is_named_where_the_model_must_be_rewritten_and_leaves_nothing_behind(
    openvino: type[omb.Preset],
) -> None:
    model = _rewritten(5)  # a size that no other test asks OpenVINO about
    with pytest.raises(omb.OptionError, match="INFERENCE_NUM_THREADS"):
        openvino.prepare(model, INFERENCE_NUM_THREADS="many")
    assert openvino.prepare(model).adaptations


@pytest.mark.parametrize(
    "options",
    [{"optimized_model_filepath": "/nowhere/at/all/y.onnx"}, {"session.intra_op_thread_affinities": "garbage"}],
    ids=lambda options: next(iter(options)),
)
def test_a_wrong_session_option_is_named_where_the_model_must_be_rewritten(
    ort_cpu: type[omb.Preset], options: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(omb.OptionError, match=next(iter(options))):
        ort_cpu.prepare(_rewritten(7), session_options=options)
    assert capfd.readouterr() == ("", "")
    assert ort_cpu.prepare(_rewritten(7)).adaptations


def test_a_wrong_option_of_the_execution_provider_leaves_nothing_behind(openvino_ep: type[omb.Preset]) -> None:
    model = _rewritten(6)
    with pytest.raises(omb.OptionError, match="num_streams"):
        openvino_ep.prepare(model, fallback="full", provider_options={"num_streams": "many"})
    assert openvino_ep.prepare(model, fallback="full").run(np.ones((2, 3, 4), np.float32))


def test_openvino_properties_reach_the_compiled_model(openvino: type[omb.Preset]) -> None:
    native = openvino.prepare(MODEL, precision="bf16", INFERENCE_NUM_THREADS=1, NUM_STREAMS=1)._session.native
    assert native.get_property("INFERENCE_NUM_THREADS") == 1
    assert native.get_property("INFERENCE_PRECISION_HINT").get_type_name() in ("bf16", "f32")  # f32: no BF16 in the CPU
    default = openvino.prepare(MODEL)._session.native
    assert default.get_property("INFERENCE_PRECISION_HINT").get_type_name() == "f32"
    assert str(default.get_property("PERFORMANCE_HINT")).upper().endswith("LATENCY")


def test_the_tolerances_of_onnx_own_runner_are_ignored(preset: type[omb.Preset]) -> None:
    np.testing.assert_array_equal(preset.prepare(MODEL, rtol=1e-3, atol=1e-7).run(X)[0], X)
    assert preset.is_compatible(MODEL, rtol=1e-3, atol=1e-7)


def test_get_example_lists_and_finds_models(ort_cpu: type[omb.Preset]) -> None:
    names = omb.get_example()
    assert "sigmoid.onnx" in names
    assert omb.get_example("sigmoid") == omb.get_example("sigmoid.onnx")
    assert ort_cpu.prepare(omb.get_example("sigmoid")).get_inputs()[0].name == "x"
    with pytest.raises(omb.OptionError, match=r"no example model 'sigmoyd'.*sigmoid\.onnx"):
        omb.get_example("sigmoyd")
