# SPDX-License-Identifier: Apache-2.0
"""Errors that OpenVINO's built-in provider (1.24.1) loses where it has one thread, as in a container with one CPU.

It calls OpenVINO's `infer`, which computes in the calling thread then: an error while open shapes are inferred is lost, and the run returns
what an earlier one made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_multi_backend.engines.openvino import threads
from onnx_multi_backend.engines.ort.openvino_ep.threads import config_of, with_threads
from onnx_multi_backend.engines.ort.records import OPENVINO
from onnx_multi_backend.errors import PresetWarning
from onnx_multi_backend.host import cpus
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.user_warnings import warn

#: The provider's own option, and OpenVINO's property.
_OPTION, _PROPERTY = "num_of_threads", "INFERENCE_NUM_THREADS"


def tell(native: Any, given: Mapping[str, str], device: Device, *, preset: str, label: str) -> None:
    """Warn where a session may lose errors.

    Parameters
    ----------
    native : onnxruntime.InferenceSession
        The provider computes some of its nodes.
    given : mapping of str to str
        The provider's options.
    device : Device
        Where it runs.
    """
    values = (*native.get_inputs(), *native.get_outputs())
    is_open = any(not isinstance(size, int) for value in values for size in value.shape)
    if is_open and has_one_thread(given, device):
        warn(
            f"{preset}: with one thread OpenVINO loses errors. A run of {label} whose inputs do not fit together returns what an "
            "earlier run made, or nothing. Let the process use two CPUs, prepare the model for fixed shapes, or choose Openvino.",
            PresetWarning,
        )


def has_one_thread(given: Mapping[str, str], device: Device) -> bool:
    """Whether OpenVINO runs with one thread on the CPU, with these options of the provider."""
    if not threads.may_be_on_cpu(Device(given.get("device_type", device.text))):
        return False
    options = with_threads(OPENVINO, given, device)
    if _OPTION in options:
        return options[_OPTION] == "1"
    named = [part[_PROPERTY] for part in (config_of(options) or {}).values() if _PROPERTY in part]
    return str(named[0]) == "1" if named else cpus.usable().cores == 1
