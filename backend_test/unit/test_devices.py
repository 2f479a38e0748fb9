# SPDX-License-Identifier: Apache-2.0
"""The device that is asked for is the device that is got, or an error says why not and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
import onnx_multi_backend.backend as router
from backend_test.unit import models
from onnx_multi_backend.engines import nvidia

MODEL = models.relu()
X = np.float32([[-1, 2, 3]])
NVIDIA = (
    "OrtCuda",
    "OrtTensorrt",
    "OrtTensorrtFloat",
    "OrtTensorrtFloatOptim",
    "OrtTensorrtInt8",
    "OrtTensorrtInt8QDQ",
)
TABLE = {"OrtTensorrtInt8": {"calibration_table": {"x": 1.0}}}


@pytest.mark.parametrize("device", ["GPU", "CPU:1", "CUDA:0", "", " CPU", "CPU\n", "TPU", 3, b"CPU", "CPU:-1"])
def test_a_string_that_is_no_device_of_the_preset_is_refused(device: object) -> None:
    with pytest.raises(omb.DeviceError, match="OrtCpu has no device .*'CPU'"):
        omb.OrtCpuBackend.prepare(MODEL, device)
    assert omb.OrtCpuBackend.supports_device(device) is False
    assert omb.OrtCpuBackend.is_compatible(MODEL, device) is False


@pytest.mark.parametrize("device", ["CUDA:", "CUDA:x", "CUDA:-1", "CUDA:1.5", "CPU", "CUDA:0,1"])
@pytest.mark.parametrize("name", ["OrtCuda", "OrtTensorrtFloat"])
def test_a_string_that_is_no_cuda_device_is_refused(name: str, device: str) -> None:
    with pytest.raises(omb.DeviceError, match="'CUDA' or 'CUDA:1'"):
        omb.presets()[name].prepare(MODEL, device)


@pytest.mark.parametrize(
    "device", ["GPU:0", "CPU.0", "AUTO:", "AUTO:CPU,", "AUTO:TPU", "CUDA", "MULTI:", "HETERO", "BATCH:CPU(x)", "GPU."]
)
@pytest.mark.parametrize("name", ["Openvino", "OrtOpenvino"])
def test_a_string_that_is_no_openvino_device_is_refused(name: str, device: str) -> None:
    with pytest.raises(omb.DeviceError, match="'AUTO:GPU,CPU'"):
        omb.presets()[name].prepare(MODEL, device)


@pytest.mark.parametrize("name", ["OrtCpu", "Openvino", "OrtOpenvino", "OrtCuda"])
def test_an_array_is_no_device(name: str) -> None:
    given = np.ones((2, 3), np.float32)
    with pytest.raises(omb.DeviceError, match=f"{name} has no device array"):
        omb.presets()[name].prepare(MODEL, given)


def test_the_device_comes_before_the_model() -> None:
    with pytest.raises(omb.DeviceError):
        omb.OrtCpuBackend.prepare("no such file", "CUDA")


@pytest.mark.parametrize("name", NVIDIA)
def test_without_a_gpu_cuda_is_refused_with_cause_and_cure(no_gpu: None, name: str) -> None:
    preset = omb.presets()[name]
    for device in (None, "CUDA", "CUDA:0", "CUDA:5"):
        with pytest.raises(omb.DeviceUnavailableError) as raised:
            preset.prepare(MODEL, device, **TABLE.get(name, {}))
        text = str(raised.value)
        assert text.startswith(f"{name} cannot run on CUDA")
        assert "NVIDIA driver" in text or "ExecutionProvider" in text or "NVIDIA library" in text
        assert "nstall" in text
    assert not preset.supports_device("CUDA")
    assert not preset.supports_device("CUDA:0")
    assert not preset.is_compatible(MODEL, **TABLE.get(name, {}))
    state = preset.availability()
    assert not state.usable
    assert state.reason in text


def test_on_the_gpu_wheel_without_a_driver_the_driver_is_the_cause(gpu_wheel: Path, no_gpu: None) -> None:
    with pytest.raises(omb.DeviceUnavailableError, match=r"NVIDIA driver.*Install the NVIDIA driver"):
        omb.OrtCudaBackend(MODEL)


def test_on_another_wheel_the_wheel_is_the_cause() -> None:
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("the installed ONNX Runtime is onnxruntime-gpu")
    with pytest.raises(omb.DeviceUnavailableError, match=r"has no CUDAExecutionProvider.*Install onnxruntime-gpu"):
        omb.OrtCudaBackend(MODEL)


@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
def test_a_missing_nvidia_library_is_called_by_its_name(gpu_wheel: Path, no_gpu: None, provider: str) -> None:
    told = nvidia.missing_library(gpu_wheel / "capi" / f"libonnxruntime_providers_{provider}.so")
    assert told is not None
    assert told.startswith("lib")
    assert ".so." in told
    assert "is missing" in told
    assert "onnxruntime" not in told


def test_a_provider_library_that_the_wheel_lacks_is_called_by_its_name(tmp_path: Path) -> None:
    told = nvidia.missing_library(tmp_path / "libonnxruntime_providers_cuda.so")
    assert told == "libonnxruntime_providers_cuda.so is not part of the installed wheel"


def test_what_supports_device_says_of_the_cpu(ort_cpu: type[omb.Preset]) -> None:
    assert ort_cpu.supports_device("CPU")
    assert ort_cpu.supports_device("CPU:0")
    assert omb.OrtBackend.supports_device("CPU")
    assert router.supports_device("CPU")


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.PresetWarning")
@pytest.mark.parametrize("name", sorted(omb.presets()))
def test_supports_device_agrees_with_prepare(name: str) -> None:
    preset = omb.presets()[name]
    options = {**TABLE, "Ort": {"provider_name": "CPUExecutionProvider"}}.get(name, {})
    for device in ("CPU", "CUDA", "CUDA:0", "CUDA:99", "GPU", "GPU.1", "NPU", "AUTO", "AUTO:CPU", "nonsense"):
        if name == "Ort" and device != "CPU":
            continue  # which provider is meant depends on its name
        try:
            preset.prepare(MODEL, device, fallback="full", **options)
            works = True
        except (omb.DeviceError, omb.DeviceUnavailableError):
            works = False
        assert preset.supports_device(device) is works, device


@pytest.mark.parametrize("device", ["AUTO", "AUTO:CPU", "CPU"])
def test_openvino_runs_on_the_devices_that_it_offers(openvino: type[omb.Preset], device: str) -> None:
    rep = openvino.prepare(MODEL, device)
    assert rep.device == device
    np.testing.assert_array_equal(rep.run(X)[0], np.maximum(X, 0))


@pytest.mark.parametrize("device", ["GPU.7", "NPU.7", "AUTO:GPU.7,CPU"])
def test_an_openvino_device_that_is_not_there_is_refused_with_what_is(openvino: type[omb.Preset], device: str) -> None:
    name = device.removeprefix("AUTO:").partition(",")[0]
    with pytest.raises(omb.DeviceUnavailableError, match=rf"no device '{name}' on this host; it offers CPU"):
        openvino.prepare(MODEL, device)
    assert not openvino.supports_device(device)


@pytest.mark.parametrize("device", ["GPU.7", "NPU.7"])
def test_a_device_that_the_openvino_ep_lacks_is_refused(openvino_ep: type[omb.Preset], device: str) -> None:
    with pytest.raises(omb.DeviceUnavailableError, match=rf"offers no device '{device}'"):
        openvino_ep.prepare(MODEL, device)
    assert not openvino_ep.supports_device(device)


def test_the_plugin_ep_is_found_and_says_why_it_has_no_device() -> None:
    pytest.importorskip("onnxruntime_ep_openvino", reason="the plugin EP is not installed")
    state = omb.availability()["OrtOpenvino"]
    vendor = Path("/proc/cpuinfo").read_text()
    if "GenuineIntel" in vendor:
        assert state.usable
        assert "CPU" in state.devices
        assert state.engine.endswith("(plugin)")
        for device, provider in (
            ("CPU", "OpenVINOExecutionProvider"),
            ("AUTO", "OpenVINOExecutionProvider.AUTO"),
            ("AUTO:CPU", "OpenVINOExecutionProvider.AUTO"),
        ):
            rep = omb.OrtOpenvinoBackend(MODEL, device=device)
            assert [n.provider for n in rep.placement()] == [provider]
            np.testing.assert_array_equal(rep.run(X)[0], np.maximum(X, 0))
        return
    with pytest.raises(omb.DeviceUnavailableError, match="onnxruntime_ep_openvino offers no device 'CPU'.*Intel"):
        omb.OrtOpenvinoBackend(MODEL)
    assert not state.usable


def test_an_index_that_is_not_there_is_refused_with_how_many_there_are(
    gpu_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's count stands in for the GPUs that most hosts lack."""
    monkeypatch.setattr(nvidia, "device_count", lambda: (2, None))
    with pytest.raises(omb.DeviceUnavailableError, match="no CUDA:2: this host has 2 CUDA devices.*below 2"):
        omb.OrtCudaBackend.prepare(MODEL, "CUDA:2")
    assert not omb.OrtCudaBackend.supports_device("CUDA:2")


def test_with_a_gpu_but_without_its_libraries_the_library_is_the_cause(
    gpu_wheel: Path, no_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia, "device_count", lambda: (1, None))
    for name in ("OrtCuda", "OrtTensorrtFloat"):
        with pytest.raises(
            omb.DeviceUnavailableError, match=r"lib\w+\.so\.\d+ is missing.*onnxruntime-gpu\[cuda,cudnn\]"
        ):
            omb.presets()[name].prepare(MODEL, "CUDA:0")


def test_the_session_holds_the_provider_that_was_asked_for(preset: type[omb.Preset]) -> None:
    rep = preset.prepare(MODEL)
    placement = rep.placement()
    assert placement == (omb.NodePlacement("the_Relu", "Relu", "", rep.provider),)
    if preset.name == "Openvino":
        assert rep.provider == "OpenVINO"
        with pytest.raises(omb.OptionError, match="no execution providers"):
            rep.get_providers()
        return
    wanted = "CPUExecutionProvider" if preset.name == "OrtCpu" else "OpenVINOExecutionProvider"
    assert rep.provider == wanted
    assert rep.get_providers()[0] == wanted
    assert wanted in rep.get_provider_options()


def test_ort_takes_any_provider_by_name(ort_cpu: type[omb.Preset]) -> None:
    rep = omb.OrtBackend(MODEL, "CPUExecutionProvider")
    assert rep.get_providers() == ["CPUExecutionProvider"]
    np.testing.assert_array_equal(rep.run(X)[0], np.maximum(X, 0))
    with pytest.raises(omb.DeviceUnavailableError, match=r"no QNNExecutionProvider; it has .*CPUExecutionProvider"):
        omb.OrtBackend(MODEL, ["QNNExecutionProvider", "CPUExecutionProvider"])


def test_ort_refuses_a_list_in_which_any_provider_is_not_usable(no_gpu: None, ort_cpu: type[omb.Preset]) -> None:
    for names in (["CUDAExecutionProvider", "CPUExecutionProvider"], ["CPUExecutionProvider", "CUDAExecutionProvider"]):
        with pytest.raises(omb.DeviceUnavailableError, match="no CUDAExecutionProvider|NVIDIA driver"):
            omb.OrtBackend(MODEL, names)


def test_ort_takes_the_built_in_ep_by_name_with_its_options(built_in_ep: type[omb.Preset]) -> None:
    rep = omb.OrtBackend(
        MODEL, ["OpenVINOExecutionProvider", "CPUExecutionProvider"], [{"num_of_threads": 1}, {}], device="CPU"
    )
    assert rep.get_providers()[0] == "OpenVINOExecutionProvider"
    assert rep.get_provider_options()["OpenVINOExecutionProvider"]["num_of_threads"] == "1"
    assert [n.provider for n in rep.placement()] == ["OpenVINOExecutionProvider"]


def test_a_device_that_is_not_there_is_told_before_the_model_is_read(no_gpu: None) -> None:
    with pytest.raises(omb.DeviceUnavailableError):
        omb.OrtCudaBackend.prepare("nowhere.onnx")


def test_set_providers_prepares_the_model_again(openvino_ep: type[omb.Preset]) -> None:
    rep = omb.OrtCpuBackend(MODEL)
    rep.set_providers(["OpenVINOExecutionProvider"])
    assert [n.provider for n in rep.placement()] == ["OpenVINOExecutionProvider"]
    np.testing.assert_array_equal(rep.run(X)[0], np.maximum(X, 0))
    rep.set_providers(["CPUExecutionProvider"])
    assert [n.provider for n in rep.placement()] == ["CPUExecutionProvider"]


def test_set_providers_tells_of_the_new_session_what_was_adapted(openvino_ep: type[omb.Preset]) -> None:
    # OpenVINO ignores the zero.
    made = models.one_node("HardSigmoid", [models.tensor("x")], [models.tensor("y")], alpha=0.0)
    rep = openvino_ep.prepare(made)
    assert rep.adaptations
    rep.set_providers(["CPUExecutionProvider"])
    assert rep.adaptations == ()
    rep.set_providers(["OpenVINOExecutionProvider"])
    assert rep.adaptations


def test_set_providers_refuses_and_leaves_the_model_as_it_was(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(MODEL)
    with pytest.raises(omb.DeviceUnavailableError, match="QNNExecutionProvider"):
        rep.set_providers(["QNNExecutionProvider"])
    with pytest.raises(omb.OptionError):
        rep.set_providers("CPUExecutionProvider")
    with pytest.raises(omb.OptionError, match="2 mappings"):
        rep.set_providers(["CPUExecutionProvider"], [{}, {}])
    assert rep.get_providers() == ["CPUExecutionProvider"]
    np.testing.assert_array_equal(rep.run(X)[0], np.maximum(X, 0))


def test_a_provider_option_that_is_refused_is_no_silent_fallback(built_in_ep: type[omb.Preset]) -> None:
    with pytest.raises(omb.OptionError, match="(?i)OpenVINOExecutionProvider refuses its options"):
        built_in_ep.prepare(MODEL, provider_options={"num_of_thread": 1})


def test_a_broken_model_is_never_compatible_and_never_raises(preset: type[omb.Preset]) -> None:
    for broken in (b"", b"nonsense", "no/such/file", onnx.ModelProto()):
        assert preset.is_compatible(broken) is False
    assert preset.is_compatible(MODEL) is True
    answer = preset.compatibility(MODEL)
    assert (answer.ok, answer.reasons, [n.op_type for n in answer.placement]) == (True, (), ["Relu"])


@pytest.mark.parametrize("device", ["cpu", "Cpu", "CPU", "openvino", "OpenVINO:cpu"])
def test_a_device_may_be_written_in_any_case(
    openvino: type[omb.Preset], ort_cpu: type[omb.Preset], device: str
) -> None:
    rep = omb.prepare(models.relu((3,)), device)
    assert (rep.preset, rep.device) == ("OrtCpu" if device.lower() == "cpu" else "Openvino", "CPU")
    assert rep.run([np.float32([-1, 0, 2])])[0].tolist() == [0, 0, 2]
    assert ort_cpu.supports_device("cpu")


@pytest.mark.parametrize(
    ("device", "words"),
    [
        *((name, "OrtCuda cannot run on CUDA") for name in ("cuda", "Cuda:0")),
        *(
            (name, r"No GPU can be used here\. NVIDIA's, by CUDA: .*Intel's, by OpenVINO: ")
            for name in ("gpu", "GPU:0")
        ),
    ],
)
def test_a_gpu_is_nvidias_unless_openvino_alone_has_one(ort_cpu: type[omb.Preset], device: str, words: str) -> None:
    if omb.OrtCudaBackend.availability().usable or omb.OpenvinoBackend.supports_device("GPU"):
        pytest.skip("there is a GPU")
    with pytest.raises(omb.DeviceUnavailableError, match=words):
        omb.prepare(models.relu(), device)


def test_an_unknown_name_says_what_it_may_have_meant(ort_cpu: type[omb.Preset]) -> None:
    with pytest.raises(omb.DeviceError, match=r"no device 'openvin'\. Did you mean 'OPENVINO'\?"):
        omb.prepare(models.relu(), "openvin")
    for device, meant in (("NPU", "NPU"), ("auto", "AUTO"), ("HETERO:GPU,CPU", "HETERO:GPU,CPU"), ("GPU.1", "GPU.1")):
        with pytest.raises(omb.DeviceError, match=rf"no device '{device}'\. Did you mean 'OPENVINO:{meant}'\?"):
            omb.prepare(models.relu(), device)
    with pytest.raises(omb.DeviceError, match=r"for another execution provider preset='Ort' and provider_name=NAME"):
        omb.prepare(models.relu(), "DmlExecutionProvider")
    named = omb.prepare(models.relu(), preset="Ort", provider_name="CPUExecutionProvider")
    assert named.get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(omb.OptionError, match=r"no preset 'OrtCuba'\. Did you mean 'OrtCuda'\?"):
        omb.prepare(models.relu(), preset="OrtCuba")
    for name in ("ortcpu", "OrtCpuBackend"):
        assert omb.prepare(models.relu(), preset=name).preset == "OrtCpu"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CPUExecutionProvider", r"The preset of this execution provider is OrtCpu: pass preset='OrtCpu'\."),
        ("CUDAExecutionProvider", r"The preset of this execution provider is OrtCuda: pass preset='OrtCuda'\."),
        ("OpenVINOExecutionProvider", "execution provider is OrtOpenvino: pass preset='OrtOpenvino'"),
        ("tensorrtexecutionprovider", "execution provider is OrtTensorrt: pass preset='OrtTensorrt'"),
        ("DmlExecutionProvider", "pass preset='Ort' and provider_name='DmlExecutionProvider'"),
    ],
)
def test_an_execution_provider_in_place_of_a_preset_or_a_device(name: str, words: str) -> None:
    for given, error in (("preset", omb.OptionError), ("device", omb.DeviceError)):
        with pytest.raises(error, match=rf"There is no {given} '{name}'\. .*{words}"):
            omb.prepare(models.relu(), **{given: name})


def test_a_device_in_place_of_a_preset_and_a_preset_in_place_of_a_device() -> None:
    for device in ("gpu", "CUDA:1", "CPU"):
        with pytest.raises(omb.OptionError, match=rf"no preset '{device}'\. It is a device: pass device='{device}'\."):
            omb.prepare(models.relu(), preset=device)
    with pytest.raises(omb.OptionError, match=r"a device of OpenVINO: pass preset='Openvino' and device='npu'\."):
        omb.prepare(models.relu(), preset="npu")
    for preset in ("OrtCuda", "ortcuda", "OrtCudaBackend"):
        with pytest.raises(omb.DeviceError, match=rf"no device '{preset}'\. It is a preset: pass preset='OrtCuda'\."):
            omb.prepare(models.relu(), preset)


@pytest.mark.parametrize("device", ["HETERO:CPU", "MULTI:CPU", "AUTO:CPU", "BATCH:CPU(2)", "hetero:cpu"])
def test_devices_that_openvino_makes_of_others(openvino: type[omb.Preset], device: str) -> None:
    assert openvino.supports_device(device)
    rep = openvino.prepare(models.relu((2, 3)), device)
    assert rep.device == device.upper()
    assert rep.run([np.float32([[-1, 0, 2]] * 2)])[0].tolist() == [[0, 0, 2]] * 2
    assert not openvino.supports_device("HETERO:GPU,CPU") or "GPU" in openvino.availability().devices
