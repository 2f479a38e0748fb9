# SPDX-License-Identifier: Apache-2.0
"""Execution providers: which ones this host really offers, and on which devices."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnx_multi_backend import devices
from onnx_multi_backend.devices import Device, Problem
from onnx_multi_backend.engines import nvidia
from onnx_multi_backend.engines.ort import errors, runtime

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"

#: Python packages that carry a plugin execution provider, by the provider's name.
PLUGIN_PACKAGES = {
    OPENVINO: "onnxruntime_ep_openvino",
    "NvTensorRTRTXExecutionProvider": "onnxruntime_ep_nv_tensorrt_rtx",
}

_LIBRARY = "onnxruntime_providers_{}.dll" if sys.platform == "win32" else "libonnxruntime_providers_{}.so"
_NVIDIA_LIBRARIES = {CUDA: _LIBRARY.format("cuda"), TENSORRT: _LIBRARY.format("tensorrt")}

#: What to install for a provider that the wheel lacks.
_CURES = {
    CUDA: "Install onnxruntime-gpu: pip install 'onnx-multi-backend[gpu]'",
    TENSORRT: "Install onnxruntime-gpu (pip install 'onnx-multi-backend[gpu]') and TensorRT 10 from NVIDIA",
    OPENVINO: "Install onnxruntime-openvino (pip install 'onnx-multi-backend[openvino-ep]'), or on an Intel host the "
    "plugin onnxruntime-ep-openvino beside another ONNX Runtime",
}


#: How each provider writes its devices.
_FAMILIES = {CPU: devices.CPU, CUDA: devices.CUDA, TENSORRT: devices.CUDA, OPENVINO: devices.OPENVINO}


def family(provider: str) -> devices.DeviceFamily:
    """How a provider writes its devices."""
    return _FAMILIES.get(provider, devices.ANY)


def default_device(provider: str) -> str:
    """A provider's default device; empty where it has none to choose from."""
    return family(provider).default


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep ONNX Runtime's default logger off the terminal while a provider is probed; restores its default level."""
    ort = runtime.load()
    ort.set_default_logger_severity(4)
    try:
        yield
    finally:
        ort.set_default_logger_severity(2)


def built_in(provider: str) -> bool:
    """Whether the installed wheel was built with this provider (which does not mean that it is usable)."""
    return provider in runtime.load().get_available_providers()


@functools.cache
def _register_plugin(provider: str) -> str | None:
    """Register the provider's plugin package; the reason when that cannot be done."""
    package = PLUGIN_PACKAGES.get(provider)
    if package is None or importlib.util.find_spec(package) is None:
        return "no plugin package is installed"
    try:
        library = importlib.import_module(package).get_library_path()
        runtime.load().register_execution_provider_library(provider, library)
    except (OSError, ImportError, AttributeError) as error:
        return f"its plugin {package} cannot be loaded: {error}"
    except errors.all_errors() as error:
        return f"its plugin {package} cannot be loaded: {errors.first_line(error)}"
    return None


def plugin_devices(provider: str) -> list[Any]:
    """The OrtEpDevices of a plugin provider; registers its package first where one is installed."""
    if built_in(provider):
        return []
    _register_plugin(provider)
    return [d for d in runtime.load().get_ep_devices() if d.ep_name == provider]


def plugin_devices_for(provider: str, device: Device) -> list[Any]:
    """The OrtEpDevices that a device string stands for, in its order."""
    listed = device.text.partition(":")[2].split(",") if device.kind == "AUTO" and ":" in device.text else [device.text]
    found = plugin_devices(provider)
    if device.text in ("AUTO", ""):
        return found
    chosen = []
    for name in listed:
        of_kind = [d for d in found if d.device.type.name == Device(name).kind]
        chosen += of_kind[Device(name).index : Device(name).index + 1]
    return chosen


def why_unusable(provider: str, device: Device) -> Problem | None:
    """None when the provider can run on the device here, else the cause and the cure."""
    if (reason := runtime.why_missing()) is not None:
        return Problem(reason, runtime.INSTALL_HINT)
    if provider == CPU:
        return None
    if provider in _NVIDIA_LIBRARIES:
        return _nvidia_problem(provider, device)
    if built_in(provider):
        return _openvino_problem(device) if provider == OPENVINO else None
    return _plugin_problem(provider, device)


def usable_devices(provider: str) -> tuple[str, ...]:
    """Every device of this host that the provider can run on."""
    if runtime.why_missing() is not None:
        return ()
    if provider == CPU:
        return ("CPU",)
    if provider in _NVIDIA_LIBRARIES:
        count, _ = nvidia.device_count()
        names = [f"CUDA:{i}" for i in range(count)]
    elif provider == OPENVINO and built_in(provider):
        names = ["CPU", "GPU", "NPU"]
    else:
        return tuple(dict.fromkeys(d.device.type.name for d in plugin_devices(provider)))
    return tuple(name for name in names if why_unusable(provider, Device(name)) is None)


def _not_built(provider: str) -> Problem:
    known = ", ".join(runtime.load().get_available_providers())
    return Problem(
        f"{runtime.describe()} has no {provider}; it has {known}",
        _CURES.get(provider, "Check the provider's name, or install a wheel or plugin that has it"),
    )


@functools.cache
def _missing_nvidia_library(provider: str) -> str | None:
    ort = runtime.load()
    with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does not find; the loader below names it
        ort.preload_dlls()
    return nvidia.missing_library(Path(ort.__file__).parent / "capi" / _NVIDIA_LIBRARIES[provider])


def _nvidia_problem(provider: str, device: Device) -> Problem | None:
    if not built_in(provider):
        return _not_built(provider)
    count, reason = nvidia.device_count()
    if reason is not None:
        return Problem(reason, "Install the NVIDIA driver, or run on a host with an NVIDIA GPU")
    if device.index >= count:
        return Problem(
            f"there is no {device}: this host has {count} CUDA device{'s' if count > 1 else ''}",
            f"Choose an index below {count}",
        )
    if (missing := _missing_nvidia_library(provider)) is not None:
        return Problem(
            missing,
            "Install CUDA and cuDNN with pip install 'onnx-multi-backend[gpu]'"
            + (", and TensorRT 10 from NVIDIA" if provider == TENSORRT else "")
            + ", and put their folders on the library path if they lie elsewhere",
        )
    return None


@functools.cache
def _openvino_problem(device: Device) -> Problem | None:
    if device.kind == "AUTO" and ":" not in device.text:
        return None
    ort = runtime.load()
    with quiet():
        try:
            ort.SessionOptions().add_provider(OPENVINO, {"device_type": device.text})
        except errors.all_errors():
            return Problem(
                f"the OpenVINO execution provider offers no device {device.text!r} on this host",
                "Choose another device, for example 'CPU', or install the device's driver",
            )
    return None


def _plugin_problem(provider: str, device: Device) -> Problem | None:
    if plugin_devices_for(provider, device):
        return None
    if provider not in PLUGIN_PACKAGES or importlib.util.find_spec(PLUGIN_PACKAGES[provider]) is None:
        return _not_built(provider)
    if (reason := _register_plugin(provider)) is not None:
        return Problem(f"{provider}: {reason}", f"Install a version of the plugin that fits {runtime.describe()}")
    offered = ", ".join(dict.fromkeys(d.device.type.name for d in plugin_devices(provider))) or "none"
    return Problem(
        f"the plugin {PLUGIN_PACKAGES[provider]} offers no device {device.text or 'at all'!r} on this host (it offers: "
        f"{offered}; on processors of other makers than Intel it offers none)",
        _CURES.get(provider, "Choose another device") if offered == "none" else "Choose another device",
    )
