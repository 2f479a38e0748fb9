# SPDX-License-Identifier: Apache-2.0
"""The module that is itself a backend and picks the preset by device."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import onnx_multi_backend as omb
import onnx_multi_backend.backend as router
from backend_test.unit import models

MODEL = models.relu()
X = np.float32([[-1, 2, 3]])
POSITIVE = np.maximum(X, 0)


def test_prepare_is_one_function_in_both_places() -> None:
    assert omb.prepare is router.prepare


def test_the_default_is_the_cpu(ort_cpu: type[omb.Preset]) -> None:
    rep = omb.prepare(MODEL)
    assert (rep.preset, rep.device) == ("OrtCpu", "CPU")


@pytest.mark.parametrize(
    ("device", "preset", "own"),
    [
        ("CPU", "OrtCpu", "CPU"),
        ("OPENVINO", "Openvino", "CPU"),
        ("OPENVINO:CPU", "Openvino", "CPU"),
        ("OPENVINO:AUTO", "Openvino", "AUTO"),
        ("OPENVINO:AUTO:CPU", "Openvino", "AUTO:CPU"),
        ("ORT_OPENVINO", "OrtOpenvino", "CPU"),
        ("ORT_OPENVINO:CPU", "OrtOpenvino", "CPU"),
    ],
)
def test_a_device_picks_its_preset(device: str, preset: str, own: str) -> None:
    if not omb.availability()[preset].usable:
        assert not router.supports_device(device)
        with pytest.raises(omb.DeviceUnavailableError, match=f"^{preset} cannot run"):
            omb.prepare(MODEL, device)
        return
    rep = omb.prepare(MODEL, device)
    assert (rep.preset, rep.device) == (preset, own)
    assert router.supports_device(device)
    np.testing.assert_array_equal(rep.run(X)[0], POSITIVE)


@pytest.mark.parametrize(
    ("device", "preset"),
    [("CUDA", "OrtCuda"), ("CUDA:1", "OrtCuda"), ("TENSORRT", "OrtTensorrtFloat"), ("TENSORRT:1", "OrtTensorrtFloat")],
)
def test_an_nvidia_device_picks_its_preset(no_gpu: None, device: str, preset: str) -> None:
    with pytest.raises(omb.DeviceUnavailableError, match=f"^{preset} cannot run on CUDA"):
        omb.prepare(MODEL, device)
    assert not router.supports_device(device)
    assert not router.is_compatible(MODEL, device)


@pytest.mark.parametrize("device", ["", "TPU", "CPU:1", "CUDA:", "OPENVINO:", "OPENVINO:TPU", "TENSORRT:x", 0])
def test_an_unknown_device_is_refused_and_the_known_ones_named(device: object) -> None:
    with pytest.raises(omb.DeviceError, match="(?i)devices"):
        omb.prepare(MODEL, device)
    assert router.supports_device(device) is False


def test_a_preset_by_name_takes_its_own_devices_and_the_routers(openvino: type[omb.Preset]) -> None:
    for device in (None, "CPU", "OPENVINO", "OPENVINO:CPU"):
        rep = omb.prepare(MODEL, device, preset="Openvino")
        assert (rep.preset, rep.device) == ("Openvino", "CPU")
    assert omb.prepare(MODEL, preset="Openvino").device == "CPU"
    assert omb.prepare(MODEL, "AUTO", preset="Openvino").device == "AUTO"
    with pytest.raises(omb.DeviceError, match="Openvino has no device 'CUDA:0'"):
        omb.prepare(MODEL, "CUDA:0", preset="Openvino")


def test_a_preset_by_name_with_a_device_that_it_has_not_is_refused() -> None:
    with pytest.raises(omb.DeviceError, match="OrtCuda has no device 'CPU'"):
        omb.prepare(MODEL, device="CPU", preset="OrtCuda")


def test_options_reach_the_preset(ort_cpu: type[omb.Preset]) -> None:
    rep = omb.prepare(MODEL, intra_op_num_threads=3)
    assert rep._session.native.get_session_options().intra_op_num_threads == 3
    with pytest.raises(omb.OptionError, match="no option 'threads'"):
        omb.prepare(MODEL, threads=3)
    rep = omb.prepare(MODEL, preset="Ort", provider_name="CPUExecutionProvider")
    assert (rep.preset, rep.get_providers()) == ("Ort", ["CPUExecutionProvider"])


def test_run_model_and_run_do_the_same(engine: type[omb.Preset]) -> None:
    device = "CPU" if engine.name == "OrtCpu" else "OPENVINO"
    np.testing.assert_array_equal(router.run_model(MODEL, X, device)[0], POSITIVE)
    np.testing.assert_array_equal(router.run(MODEL, [X], device)[0], POSITIVE)


def test_run_node_goes_to_the_devices_preset(engine: type[omb.Preset]) -> None:
    device = "CPU" if engine.name == "OrtCpu" else "OPENVINO:CPU"
    node = helper.make_node("Relu", ["x"], ["y"])
    np.testing.assert_array_equal(router.run_node(node, [X], device)["y"], POSITIVE)
    np.testing.assert_array_equal(router.run_node(node, X, preset=engine.name)[0], POSITIVE)


def test_is_compatible_asks_the_devices_preset(ort_cpu: type[omb.Preset], openvino: type[omb.Preset]) -> None:
    det = models.one_node("Det", [models.tensor("x", [4, 4])], [models.tensor("y", [])])
    assert router.is_compatible(det, "CPU") is True
    assert router.is_compatible(det, "OPENVINO") is False
    assert router.is_compatible(det, preset="Openvino") is False
    assert router.is_compatible(b"nonsense") is False


def test_is_compatible_never_raises_on_a_device_that_there_is_not(no_gpu: None) -> None:
    assert router.is_compatible(MODEL, "GPU") is False
