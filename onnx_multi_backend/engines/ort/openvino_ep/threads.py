# SPDX-License-Identifier: Apache-2.0
"""How many threads OpenVINO gets inside its execution provider, where the user names no number."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from onnx_multi_backend.engines.openvino import threads
from onnx_multi_backend.engines.ort import plugins
from onnx_multi_backend.engines.ort.records import OPENVINO
from onnx_multi_backend.host.devices import Device


def with_threads(provider: str, given: Mapping[str, str], device: Device) -> Mapping[str, str]:
    """The options of an execution provider, with the threads of the OpenVINO inside.

    They go into ``load_config``, whose part for the CPU counts on AUTO and HETERO too.

    Parameters
    ----------
    device : Device
        Where the first provider runs.
    """
    if any(name in given for name in ("num_of_threads", "num_streams")):
        return given
    if any(map(threads.names_threads, (config_of(given) or {}).values())):
        return given
    return with_properties(provider, given, device, threads.of_quota)


def with_properties(
    provider: str, given: Mapping[str, str], device: Device, added: Callable[[], Mapping[str, object]]
) -> Mapping[str, str]:
    """The options of an execution provider, with properties of the OpenVINO inside for the CPU, where it may compute there; those that are given stay."""
    if plugins.provider_without_meta(provider) != OPENVINO:
        return given
    config = config_of(given)
    if config is None or not threads.may_be_on_cpu(Device(given.get("device_type", device.text))):
        return given
    words = {name: _word(value) for name, value in added().items()}
    if not words:
        return given
    return {**given, "load_config": json.dumps({**config, "CPU": {**words, **config.get("CPU", {})}})}


def config_of(given: Mapping[str, str]) -> dict[str, dict[str, Any]] | None:
    """OpenVINO's properties by device; None where the option is not that, which the provider refuses."""
    try:
        config = json.loads(given.get("load_config", "{}"))
    except ValueError:
        return None
    if not isinstance(config, dict) or not all(isinstance(part, dict) for part in config.values()):
        return None
    return config


def _word(value: object) -> str:
    """A property as the provider reads it."""
    return {True: "YES", False: "NO"}[value] if isinstance(value, bool) else str(value)


def one_stream(options: Mapping[str, str]) -> bool:
    """Whether OpenVINO does one run at a time, which it does unless more streams are asked for."""
    parts = [{"NUM_STREAMS": options.get("num_streams") or 1}, *(config_of(options) or {}).values()]
    return all(str(part.get("NUM_STREAMS", 1)) == "1" and "PERFORMANCE_HINT" not in part for part in parts)
