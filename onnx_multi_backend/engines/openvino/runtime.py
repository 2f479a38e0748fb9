# SPDX-License-Identifier: Apache-2.0
"""The installed OpenVINO: its import, its devices, its exceptions."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
from importlib import metadata
from typing import Any

from onnx_multi_backend.errors import EngineNotInstalledError, shortened
from onnx_multi_backend.host.devices import Device, Problem

INSTALL_HINT = "Install OpenVINO: pip install openvino (every extra of onnx-multi-backend brings it)"


def why_missing() -> str | None:
    """A sentence when OpenVINO cannot be used, else None. Imports nothing."""
    return None if importlib.util.find_spec("openvino") is not None else "OpenVINO is not installed"


@functools.cache
def load() -> Any:
    """Import OpenVINO.

    Raises
    ------
    EngineNotInstalledError
    """
    if (reason := why_missing()) is not None:
        raise EngineNotInstalledError(f"{reason}. {INSTALL_HINT}.")
    return importlib.import_module("openvino")


def describe() -> str:
    """``openvino`` and its version; empty when it is not installed. Imports nothing."""
    try:
        return f"openvino {metadata.version('openvino')}"
    except metadata.PackageNotFoundError:
        return ""


@functools.cache
def core() -> Any:
    """The process's one OpenVINO Core, which keeps the device plugins loaded."""
    return load().Core()


@functools.cache
def all_errors() -> tuple[type[Exception], ...]:
    """Everything that OpenVINO's native code raises."""
    load()
    frontend = importlib.import_module("openvino.frontend")
    failures = [getattr(frontend, name) for name in dir(frontend) if name.endswith("Failure")]
    return (*failures, RuntimeError, ValueError, TypeError)


def usable_devices() -> tuple[str, ...]:
    """The devices of this host, as OpenVINO names them."""
    return tuple(core().available_devices) if why_missing() is None else ()


#: Devices that OpenVINO has offered: asking again takes half a millisecond.
_found: set[str] = set()


def why_unusable(device: Device) -> Problem | None:
    """None when OpenVINO can run on the device here, else the cause and the cure."""
    if (reason := why_missing()) is not None:
        return Problem(reason, INSTALL_HINT)
    if _found.issuperset(device.parts):
        return None
    offered = usable_devices()
    _found.update(name for name in device.parts if any(o == name or o.startswith(f"{name}.") for o in offered))
    for name in device.parts:
        if name not in _found:
            return Problem(
                f"OpenVINO offers no device {name!r} on this host; it offers {', '.join(offered) or 'none'}",
                "Choose one of these, or install the device's driver",
            )
    return None


def settable_properties(device: Device) -> list[str]:
    """Names of the properties that a device lets one set."""
    supported: dict[str, str] = core().get_property(device.kind, "SUPPORTED_PROPERTIES")
    return sorted(name for name, access in supported.items() if access != "RO")


#: What OpenVINO's frontend says around each list of operators that it lacks.
_PREFACE = re.compile(
    r"FrontEnd API failed with \w+: |Model wasn't fully converted\. Summary: -- "
    r"| ?To facilitate the conversion of unsupported operations, refer to Frontend Extension documentation: \S+"
)


def first_line(error: BaseException) -> str:
    """OpenVINO's message without its source positions."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("Exception from", "Check '"))]
    words = _PREFACE.sub("", " ".join(told))
    return shortened(words or (lines[-1] if lines else "") or type(error).__name__)
