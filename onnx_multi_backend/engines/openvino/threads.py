# SPDX-License-Identifier: Apache-2.0
"""How many threads OpenVINO gets on the CPU, where the user names no number.

It counts the CPUs of the affinity mask itself and knows no quotas (seen with 2025.4 and 2026.4.1). Told a number, it pins that many
threads to the first CPUs of the mask; so do all processes under a quota on one computer, which then stand in line for CPU 0
while others are idle. So the threads that a quota leaves are not pinned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_multi_backend.host import cpus
from onnx_multi_backend.host.devices import Device

_NUMBER = "INFERENCE_NUM_THREADS"
_PINNING = "ENABLE_CPU_PINNING"
_DEVICES = "DEVICE_PROPERTIES"

#: Each names a number of threads: the user's counts.
_NAMES = (_NUMBER, "NUM_STREAMS")


def with_threads(device: Device, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Properties with those that `own` adds."""
    added = own(device, given)
    if not added:
        return given
    if device.kind in ("CPU", "BATCH"):
        return {**added, **given}
    inner = given.get(_DEVICES, {})
    return {**given, _DEVICES: {**inner, "CPU": {**added, **inner.get("CPU", {})}}}


def own(device: Device, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is added for a quota: nothing where OpenVINO's own number is within it, or the user names one."""
    inner = given.get(_DEVICES, {})
    of_cpu = inner.get("CPU", {}) if isinstance(inner, Mapping) else None
    if not may_be_on_cpu(device) or not isinstance(of_cpu, Mapping) or names_threads(given) or names_threads(of_cpu):
        return {}
    both_of_a_core = not str(given.get("PERFORMANCE_HINT")).endswith("LATENCY") or "ENABLE_HYPER_THREADING" in given
    return of_quota(both_of_a_core=both_of_a_core)


def of_quota(*, both_of_a_core: bool = False) -> dict[str, Any]:
    """The properties for a quota; empty where OpenVINO's own number is within it.

    Parameters
    ----------
    both_of_a_core : bool
        Whether OpenVINO would run two threads on a core that has two; for latency it runs one.
    """
    here = cpus.usable()
    if here.within_quota >= (len(here.mask) if both_of_a_core else here.cores):
        return {}
    return {_NUMBER: here.within_quota, _PINNING: False}


def names_threads(properties: Mapping[str, Any]) -> bool:
    """Whether a number of threads is named among properties of OpenVINO's."""
    return any(name in properties for name in _NAMES)


def may_be_on_cpu(device: Device) -> bool:
    """Whether OpenVINO may compute on the CPU; AUTO alone may choose it."""
    return "CPU" in device.parts if device.parts else True
