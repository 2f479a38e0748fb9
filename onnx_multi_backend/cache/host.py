# SPDX-License-Identifier: Apache-2.0
"""What an entry depends on beside the model and the options: the CPU and the packages."""

from __future__ import annotations

import functools
import platform
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import onnx_multi_backend

_CPUINFO = Path("/proc/cpuinfo")

#: What sets CPUs apart in Linux's list, on x86 and on ARM; frequencies and the like change from minute to minute.
_TELLING = frozenset(
    {"vendor_id", "cpu family", "model", "stepping", "flags"}
    | {"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"}
)


@functools.cache
def cpu() -> tuple[str, ...]:
    """What engines may compile for: the CPU's model and its instruction sets.

    Linux lists them in ``/proc/cpuinfo``, of which the first CPU counts; elsewhere the platform's own words and the
    instruction sets that numpy found (`numpy.show_config`) must do.
    """
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].splitlines()
    except OSError:
        lines = []
    pairs = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    if told := tuple(f"{name}={value}" for name, value in pairs if name in _TELLING):
        return (platform.machine(), *told)
    config: Any = np.show_config(mode="dicts")
    found = config.get("SIMD Extensions", {}) if isinstance(config, dict) else {}
    return (platform.machine(), platform.processor(), *found.get("baseline", ()), *found.get("found", ()))


def packages() -> tuple[str, ...]:
    """The packages that change a model before an engine gets it, with their versions."""
    return f"onnx_multi_backend {onnx_multi_backend.__version__}", f"onnx {onnx.__version__}"
