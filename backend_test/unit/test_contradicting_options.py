# SPDX-License-Identifier: Apache-2.0
"""Two options that name the same thing: they agree, or an error names both."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.ort import plugins, providers


@pytest.fixture
def built_in_ep(openvino_ep: type[omb.Preset]) -> None:
    if not plugins.built_in(providers.OPENVINO):
        pytest.skip("the OpenVINO execution provider comes from the plugin here")


OV_DEVICES = [
    ("CPU", {"device_type": "HETERO:CPU"}),
    ("CPU", {"device_type": "GPU"}),
    ("AUTO:GPU,CPU", {"device_type": "CPU"}),
]


@pytest.mark.parametrize(("device", "given"), OV_DEVICES)
def test_two_devices_of_openvino(device: str, given: dict[str, str]) -> None:
    with pytest.raises(omb.OptionError, match="contradict") as raised:
        omb.OrtOpenvinoBackend.prepare(models.relu(), device, provider_options=given)
    assert repr(device) in str(raised.value)
    assert repr(given["device_type"]) in str(raised.value)


def test_two_devices_of_a_provider_by_name(built_in_ep: None) -> None:
    with pytest.raises(omb.OptionError, match=r"device='CPU'.*'device_type': 'GPU'.*contradict"):
        omb.OrtBackend(models.relu(), "OpenVINOExecutionProvider", {"device_type": "GPU"}, device="CPU")


@pytest.mark.parametrize("preset", [omb.OrtCudaBackend, omb.OrtTensorrtBackend])
def test_two_gpus(preset: Any) -> None:
    with pytest.raises(omb.OptionError, match=r"device='CUDA:1'.*'device_id': '0'.*contradict"):
        preset.prepare(models.relu(), "CUDA:1", provider_options={"device_id": 0})


@pytest.mark.parametrize("device", [None, "CUDA", "CUDA:1"])
def test_a_gpu_named_in_the_provider_s_option_is_the_device(device: str | None) -> None:
    parsed, _ = omb.OrtCudaBackend._settle(device, {"provider_options": {"device_id": 1}})
    assert parsed.text == "CUDA:1"


def test_the_device_in_the_provider_s_option_alone_is_the_model_s(built_in_ep: None) -> None:
    prepared = omb.OrtOpenvinoBackend.prepare(models.relu(), provider_options={"device_type": "AUTO:CPU"})
    assert prepared.device == "AUTO:CPU"
    again = pickle.loads(pickle.dumps(prepared))
    assert again.device == "AUTO:CPU"
    with pytest.raises(omb.OptionError, match="cache_dir"):
        omb.OrtOpenvinoBackend.prepare(models.relu(), provider_options={"cache_dir": "x"}, cache_dir=False)


OPENVINO = [
    ({"precision": "f32", "INFERENCE_PRECISION_HINT": "bf16"}, "precision='f32'.*INFERENCE_PRECISION_HINT='bf16'"),
    ({"performance_hint": "LATENCY", "PERFORMANCE_HINT": "THROUGHPUT"}, "performance_hint='LATENCY'.*'THROUGHPUT'"),
    ({"cache_dir": False, "CACHE_DIR": "x"}, "cache_dir=False.*CACHE_DIR='x'"),
]


@pytest.mark.parametrize(("options", "words"), OPENVINO)
def test_two_words_for_one_property(options: dict[str, Any], words: str) -> None:
    with pytest.raises(omb.OptionError, match=f"{words}.*contradict"):
        omb.OpenvinoBackend.prepare(models.relu(), **options)


def test_words_that_agree_are_taken() -> None:
    ov = pytest.importorskip("openvino")
    for options in (
        {"precision": "f32", "INFERENCE_PRECISION_HINT": ov.Type.f32},
        {"performance_hint": "THROUGHPUT", "PERFORMANCE_HINT": ov.properties.hint.PerformanceMode.THROUGHPUT},
        {"PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": np.int64(1)},
    ):
        prepared = omb.OpenvinoBackend.prepare(models.relu(), **options)
        assert prepared.run(np.array([[-1, 2, 3]], np.float32))[0].tolist() == [[0, 2, 3]]


@pytest.mark.parametrize("value", [None, [1], object(), {"CPU": object()}, b"1"])
def test_a_value_that_openvino_would_drop(value: Any) -> None:
    with pytest.raises(omb.OptionTypeError, match="NUM_STREAMS"):
        omb.OpenvinoBackend.prepare(models.relu(), NUM_STREAMS=value)
