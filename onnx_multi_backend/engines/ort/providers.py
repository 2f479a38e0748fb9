# SPDX-License-Identifier: Apache-2.0
"""Execution providers: which ones this host really offers, and on which devices."""

from __future__ import annotations

import contextlib
import functools
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnx_multi_backend.engines import nvidia
from onnx_multi_backend.engines.ort import errors, plugins, records, runtime
from onnx_multi_backend.engines.ort.records import record
from onnx_multi_backend.host import devices
from onnx_multi_backend.host.devices import Device, Problem

CPU, CUDA, TENSORRT, OPENVINO = records.CPU, records.CUDA, records.TENSORRT, records.OPENVINO

_LIBRARY = "onnxruntime_providers_{}.dll" if sys.platform == "win32" else "libonnxruntime_providers_{}.so"

_NO_DRIVER = "Install the NVIDIA driver, or run on a host with an NVIDIA GPU"


def family(provider: str) -> devices.DeviceFamily:
    """How a provider writes its devices."""
    return record(provider).family


def default_device(provider: str) -> str:
    """A provider's default device; empty where it has none to choose from."""
    return family(provider).default


def on_device(provider: str, device: Device, *, plugin: bool = False) -> str:
    """The provider's name for a device: a plugin may have one of its own for devices that it chooses itself."""
    meta = record(provider, plugin=plugin or None).meta
    return f"{plugins.provider_without_meta(provider)}.{meta}" if meta and device.kind == meta else provider


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep ONNX Runtime's default logger off the terminal while a provider is probed; restores its default level."""
    ort = runtime.load()
    ort.set_default_logger_severity(4)
    try:
        yield
    finally:
        ort.set_default_logger_severity(2)


def plugin_devices(provider: str, library: str = "") -> list[Any]:
    """The OrtEpDevices of a plugin's provider; an installed plugin is registered first.

    Parameters
    ----------
    library : str, optional
        A registered library, where those of no other are meant.
    """
    if not library:
        if plugins.built_in(provider):
            return []
        plugins.installed(provider)
    return plugins.devices(provider, library)


def plugin_devices_for(provider: str, device: Device, library: str = "") -> list[Any]:
    """The OrtEpDevices that a device string stands for, in its order."""
    return plugins.chosen(plugin_devices(on_device(provider, device, plugin=bool(library)), library), device)


def why_unusable(provider: str, device: Device) -> Problem | None:
    """None when the provider can run on the device here, else the cause and the cure."""
    if (reason := runtime.why_missing()) is not None:
        return Problem(reason, runtime.INSTALL_HINT)
    if provider == CPU:
        return None
    if record(provider).nvidia_library:
        return _nvidia_problem(provider, device)
    if plugins.built_in(provider):
        return _openvino_problem(device) if provider == OPENVINO else None
    return _plugin_problem(provider, device)


def usable_devices(provider: str) -> tuple[str, ...]:
    """Every device of this host that the provider can run on."""
    if runtime.why_missing() is not None:
        return ()
    if provider == CPU:
        return ("CPU",)
    if record(provider).nvidia_library:
        count, _ = nvidia.device_count()
        names = [f"CUDA:{i}" for i in range(count)]
    elif provider == OPENVINO and plugins.built_in(provider):
        names = ["CPU", "GPU", "NPU"]
    else:
        return tuple(dict.fromkeys(d.device.type.name for d in plugin_devices(provider)))
    return tuple(name for name in names if why_unusable(provider, Device(name)) is None)


def describe(provider: str) -> str:
    """The wheel and, where a plugin has the provider, its release: ``onnxruntime 1.31.1, NAME 1.8.1 (plugin)``."""
    wheel = runtime.describe()
    if runtime.why_missing() is not None or plugins.built_in(provider):
        return wheel
    plugin, _ = plugins.find(provider)
    return f"{wheel}, {plugin.release or plugin.name} (plugin)" if plugin is not None else wheel


def _not_built(provider: str) -> Problem:
    known = ", ".join(plugins.of_wheel())
    return Problem(
        f"{runtime.describe()} has no {provider}; it has {known}",
        record(provider).cure,
    )


@functools.cache
def _missing_nvidia_library(provider: str) -> str | None:
    ort = runtime.load()
    with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does not find; the loader below names it
        ort.preload_dlls()
    return nvidia.missing_library(Path(ort.__file__).parent / "capi" / _LIBRARY.format(record(provider).nvidia_library))


def _nvidia_problem(provider: str, device: Device) -> Problem | None:
    if not plugins.built_in(provider):
        return _not_built(provider)
    count, reason = nvidia.device_count()
    if reason is not None:
        return Problem(reason, _NO_DRIVER)
    if device.index >= count:
        return Problem(
            f"there is no {device}: this host has {count} CUDA device{'s' if count > 1 else ''}",
            f"Choose an index below {count}",
        )
    if (missing := _missing_nvidia_library(provider)) is not None:
        return Problem(
            missing,
            f'Install CUDA and cuDNN with pip install "{records.GPU_WHEEL}"'
            + (", and TensorRT 10 from NVIDIA" if provider == TENSORRT else "")
            + ", and put their folders on the library path if they lie elsewhere",
        )
    return None


@functools.cache
def _openvino_problem(device: Device) -> Problem | None:
    if device.kind == "AUTO" and ":" not in device.text:
        return None
    if device.kind == "BATCH":
        return Problem(
            "the OpenVINO execution provider has no BATCH, only OpenVINO itself has",
            f"Choose the preset Openvino for {device}, or the device {device.parts[0]!r}",
        )
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
    known = record(provider, plugin=True)
    plugin, reason = plugins.installed(provider)
    if plugin is not None:
        return why_not_offered(provider, device, plugin)
    if not reason:
        return _not_built(provider)
    if known.on_cuda and (lacking := nvidia.device_count()[1]) is not None:
        return Problem(lacking, _NO_DRIVER)
    return Problem(f"{provider}: {reason}", f"Install a version of the plugin that fits {runtime.describe()}")


def why_not_offered(provider: str, device: Device, plugin: plugins.Plugin, library: str = "") -> Problem | None:
    """Why a registered plugin has no such device; None where it has."""
    if plugin_devices_for(provider, device, library):
        return None
    known = record(provider, plugin=True)
    offered = list(dict.fromkeys(d.device.type.name for d in plugin_devices(provider, library)))
    if offered:
        return Problem(
            f"the plugin {plugin.name} offers no device {device.text!r} on this host; it offers {', '.join(offered)}",
            "Choose one of these",
        )
    wanted = repr(device.text) if device.text else f"for {provider}"
    where = f"the plugin {plugin.name} offers no device {wanted} on this host"
    if known.on_cuda and (lacking := nvidia.device_count()[1]) is not None:
        return Problem(f"{where}: {lacking}", _NO_DRIVER)
    if not known.needs:
        return Problem(
            f"{where}: it found no hardware that it runs on", "Install that hardware's driver, if it is there"
        )
    return Problem(f"{where}: it needs {known.needs}", known.cure)
