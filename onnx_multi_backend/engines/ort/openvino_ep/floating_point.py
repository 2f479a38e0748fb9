# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's execution provider without the low-precision transformations of the OpenVINO inside."""

from __future__ import annotations

import json
from collections.abc import Mapping

from onnx_multi_backend.engines.across_nodes.quantized.distrusted import SWITCH
from onnx_multi_backend.engines.openvino import threads
from onnx_multi_backend.engines.ort import plugins
from onnx_multi_backend.engines.ort.openvino_ep.threads import config_of
from onnx_multi_backend.engines.ort.records import OPENVINO
from onnx_multi_backend.host.devices import Device


def in_floating_point(provider: str, given: Mapping[str, str], device: Device) -> Mapping[str, str]:
    """The options of an execution provider, with which OpenVINO computes Q/DQ nodes as they are written.

    Parameters
    ----------
    device : Device
        Where the first provider runs.
    """
    config = config_of(given)
    if plugins.provider_without_meta(provider) != OPENVINO or config is None:
        return given
    if not threads.may_be_on_cpu(Device(given.get("device_type", device.text))):
        return given
    return {**given, "load_config": json.dumps({**config, "CPU": {SWITCH: "NO", **config.get("CPU", {})}})}
