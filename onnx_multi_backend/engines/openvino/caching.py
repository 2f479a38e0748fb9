# SPDX-License-Identifier: Apache-2.0
"""Keeping a compiled model: OpenVINO's own export, which it imports again from memory.

The export is mapped into memory and shared with OpenVINO, so that weights are not copied; measured with 2026.4.1: 0.12
to 0.2 of the time of a cold start. Not every model comes back as it was; see `exports`. Ports keep their order and lose
names: the port of a node that was dropped, since it passes a value on, has two, of which either may be left. So the names
of the cold model are kept beside the export. OpenVINO's own cache (the property CACHE_DIR) is as fast and has the same faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.host.devices import Device

if TYPE_CHECKING:
    from onnx_multi_backend.cache.entry import Entry

_BLOB = "model.blob"
_LIST = "CACHING_PROPERTIES"


def parts_of(device: Device, properties: Mapping[str, Any]) -> tuple[object, ...] | None:
    """What decides about a compiled model on a device; None where it cannot be kept."""
    if device.kind != "CPU" or "CACHE_DIR" in properties:
        return None
    core = runtime.core()
    try:
        # OpenVINO's own list of what a compiled model depends on, where it has one.
        supported = core.get_property(device.text, "SUPPORTED_PROPERTIES")
        names = core.get_property(device.text, _LIST) if _LIST in supported else []
        telling = [(name, str(core.get_property(device.text, name))) for name in sorted({*names, "FULL_DEVICE_NAME"})]
    except runtime.all_errors():
        return None
    return (device.text, sorted(properties.items()), telling)


def write_into(compiled: Any, folder: Path) -> None:
    """Write a compiled model. Raises OSError, or the RuntimeError of OpenVINO."""
    (folder / _BLOB).write_bytes(compiled.export_model().getbuffer())


def restored(entry: Entry, device: Device, properties: Mapping[str, Any]) -> Any:
    """The CompiledModel of an entry. It shares the entry's memory, which has to live as long."""
    blob = np.frombuffer(entry.files[_BLOB], np.uint8)
    tensor = runtime.load().Tensor(blob, shared_memory=True)
    return runtime.core().import_model(tensor, device.text, dict(properties))


def ports(native: Any) -> list[list[str]]:
    """Types and shapes of a compiled model's inputs and outputs, as they must be found again."""
    return [[str(port.element_type), str(port.partial_shape)] for port in (*native.inputs, *native.outputs)]


def other_ports(native: Any, facts: Mapping[str, Any]) -> str | None:
    """None when the inputs and outputs of an imported model are those of the exported one, else what differs."""
    if ports(native) != [list(port) for port in facts["ports"]]:
        return "its inputs and outputs have other types or shapes"
    for port, names in zip((*native.inputs, *native.outputs), (*facts["names"][0], *facts["names"][1]), strict=True):
        if not port.names <= set(names):
            return f"the port of {', '.join(names)} is called {', '.join(port.names)}"
    return None
