# SPDX-License-Identifier: Apache-2.0
"""The constructors of the twelve presets are a contract: names, order, defaults."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from onnx.backend.base import Backend

import onnx_multi_backend as omb
import onnx_multi_backend.backend
from backend_test.unit import models

REQUIRED: Any = inspect.Parameter.empty
COMMON = {
    "device": None,
    "input_example": None,
    "input_shapes": None,
    "adapt": True,
    "fallback": "partial",
    "cache_dir": None,
    "verify_weights": False,
    "isolate": False,
    "time_limit": None,
}
EXAMPLE = {"input_example": None}
THREADS = {"inter_op_num_threads": None, "intra_op_num_threads": None}

#: Class name to its positional parameters behind `model`, in order, with their defaults.
POSITIONAL: dict[str, dict[str, Any]] = {
    "OrtBackend": {"provider_name": REQUIRED, "provider_options": None, "session_options": None},
    "OrtCpuBackend": THREADS,
    "OrtCudaBackend": {"provider_options": None},
    "OrtTensorrtBackend": {"provider_options": None, **EXAMPLE},
    "OrtTensorrtFloatBackend": EXAMPLE,
    "OrtTensorrtFloatOptimBackend": EXAMPLE,
    "OrtTensorrtInt8Backend": {"calibration_table": REQUIRED, **EXAMPLE, "trt_fp16_enable": True},
    "OrtTensorrtInt8QDQBackend": {**EXAMPLE, "trt_fp16_enable": True},
    "OrtOpenvinoBackend": {"provider_options": None, **EXAMPLE, **THREADS},
    "OrtOpenvinoFloatBackend": {**EXAMPLE, **THREADS, "openvino_num_threads": None},
    "OrtOpenvinoInt8Backend": {**EXAMPLE, **THREADS, "openvino_num_threads": None},
    "OpenvinoBackend": EXAMPLE,
}
WARNS = {"precision_policy": "warn"}
#: Those of all presets on ONNX Runtime.
ON_ORT = {"session_options": None}
KEYWORDS = {
    "OpenvinoBackend": {"precision": "f32", "performance_hint": "LATENCY", **WARNS},
    "OrtBackend": {"plugin": None},
    "OrtOpenvinoBackend": {"precision": "f32", **WARNS},
    "OrtOpenvinoFloatBackend": WARNS,
    "OrtOpenvinoInt8Backend": {"precision": "f32", **WARNS},
}


@pytest.mark.parametrize("name", POSITIONAL)
def test_a_constructor_has_the_agreed_signature(name: str) -> None:
    parameters = inspect.signature(getattr(omb, name)).parameters.values()
    positional = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    keywords = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert list(positional.items()) == [("model", REQUIRED), *POSITIONAL[name].items()]
    shared = {**COMMON, **(ON_ORT if name != "OpenvinoBackend" else {})}
    assert keywords == {k: v for k, v in {**shared, **KEYWORDS.get(name, {})}.items() if k not in POSITIONAL[name]}
    others = [p for p in parameters if p.kind is p.VAR_KEYWORD]
    assert bool(others) == (name == "OpenvinoBackend")
    assert not any(p.kind is p.VAR_POSITIONAL for p in parameters)


@pytest.mark.parametrize("name", POSITIONAL)
def test_a_preset_is_a_backend_of_onnx_and_importable_from_both_places(name: str) -> None:
    preset = getattr(omb, name)
    assert preset is getattr(onnx_multi_backend.backend, name)
    assert issubclass(preset, Backend)
    assert name in omb.__all__
    assert name in onnx_multi_backend.backend.__all__
    for method in ("is_compatible", "prepare", "run_model", "run_node", "supports_device", "compatibility"):
        assert callable(getattr(preset, method))
    assert preset.__doc__


def test_positional_arguments_reach_the_options_they_stand_for(ort_cpu: type[omb.Preset]) -> None:
    with pytest.raises(omb.OptionError, match="inter_op_num_threads is at least 1"):
        omb.OrtCpuBackend(models.relu(), 0)
    with pytest.raises(omb.OptionError, match="intra_op_num_threads is at least 1"):
        omb.OrtCpuBackend(models.relu(), 1, 0)
    with pytest.raises(omb.OptionTypeError, match="provider_options is a mapping"):
        omb.OrtTensorrtBackend(models.relu(), 5)
    with pytest.raises(omb.OptionTypeError, match="calibration_table is a path"):
        omb.OrtTensorrtInt8Backend(models.relu(), 5)
    with pytest.raises(omb.OptionTypeError, match="trt_fp16_enable is True or False"):
        omb.OrtTensorrtInt8QDQBackend(models.relu(), None, "yes")
    with pytest.raises(omb.OptionTypeError, match="openvino_num_threads"):
        omb.OrtOpenvinoFloatBackend(models.relu(), None, 1, 1, "all")


def test_too_many_a_repeated_or_no_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="at most 3 positional arguments: model, inter_op_num_threads, intra_op"):
        omb.OrtCpuBackend(models.relu(), 1, 1, "CPU")
    with pytest.raises(TypeError, match="'inter_op_num_threads' twice"):
        omb.OrtCpuBackend(models.relu(), 1, inter_op_num_threads=1)
    with pytest.raises(TypeError, match="needs a model"):
        omb.OrtCpuBackend()
    with pytest.raises(TypeError, match="positional"):
        omb.OpenvinoBackend(models.relu(), None, "f32")


def test_a_preset_with_a_bound_option_has_it_no_more() -> None:
    class Bound(omb.OrtBackend):
        name = "Bound"
        bound = {"provider_name": "CPUExecutionProvider"}

    assert list(inspect.signature(Bound).parameters)[:3] == ["model", "provider_options", "session_options"]


def test_the_public_names_are_the_agreed_ones() -> None:
    assert sorted(omb.__all__) == omb.__all__
    assert all(hasattr(omb, name) for name in omb.__all__)
    wanted = {"prepare", "presets", "availability", "get_example", "PreparedModel", "TensorInfo", "NodePlacement"}
    assert wanted | {"Adaptation", "Compatibility", "OnnxMultiBackendError", "UnsupportedModelError"} <= {*omb.__all__}
