# SPDX-License-Identifier: Apache-2.0
"""What a measured time depends on, beside the model and the setup: the processor, the CPUs to use, the engines' versions."""

from __future__ import annotations

from collections.abc import Mapping

from onnx_multi_backend.host import cpus, processor, versions

#: The packages that compute.
PACKAGES = (
    *("onnx_multi_backend", "openvino"),
    *("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-ep-openvino"),
)


def surroundings() -> dict[str, str]:
    """The processor, the number of CPUs and the version of each package, in words."""
    found = {name: version for name in PACKAGES if (version := versions.installed_version(name))}
    return {"processor": str(processor.current()), "CPUs": str(cpus.usable().count), **found}


def differences(measured: Mapping[str, str]) -> list[str]:
    """What is different from where something was measured, each in words."""
    now = surroundings()
    return [
        f"{name} {now.get(name, 'not installed')} (measured: {measured.get(name, 'not installed')})"
        for name in dict.fromkeys((*measured, *now))
        if measured.get(name) != now.get(name)
    ]
