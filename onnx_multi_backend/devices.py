# SPDX-License-Identifier: Apache-2.0
"""Device strings: what a preset understands, told apart from what is usable on this host (the engines know that)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from onnx_multi_backend.errors import DeviceError


@dataclass(frozen=True)
class DeviceFamily:
    """The device strings of a family of presets.

    Attributes
    ----------
    default : str
        What ``device=None`` means.
    pattern : str
        Regular expression of every string that is understood.
    examples : str
        How a message shows them.
    """

    default: str
    pattern: str
    examples: str

    def parse(self, device: str | None, preset: str) -> Device:
        """Read a device string.

        Raises
        ------
        DeviceError
            The string is not one of this family.
        """
        if device is None:
            return Device(self.default)
        if not isinstance(device, str) or not re.fullmatch(self.pattern, device):
            raise DeviceError(f"{preset} knows no device {device!r}. Its devices are written {self.examples}.")
        return Device(device)

    def knows(self, device: object) -> bool:
        """Whether a string could name a device of this family."""
        return isinstance(device, str) and re.fullmatch(self.pattern, device) is not None


@dataclass(frozen=True)
class Device:
    """One device, as written: ``CPU``, ``CUDA:1``, ``GPU.0``, ``AUTO:GPU,CPU``."""

    text: str

    @property
    def kind(self) -> str:
        """The part before the first ``:`` or ``.``."""
        return re.split(r"[:.]", self.text, maxsplit=1)[0]

    @property
    def index(self) -> int:
        """The number after it; 0 where there is none."""
        match = re.search(r"[:.](\d+)$", self.text)
        return int(match.group(1)) if match else 0

    def __str__(self) -> str:
        return self.text


CPU = DeviceFamily("CPU", r"CPU(:0)?", "'CPU'")
CUDA = DeviceFamily("CUDA:0", r"CUDA(:\d+)?", "'CUDA' or 'CUDA:1'")
_OPENVINO_DEVICE = r"(CPU|GPU(\.\d+)?|NPU(\.\d+)?)"
OPENVINO = DeviceFamily(
    "CPU",
    rf"{_OPENVINO_DEVICE}|AUTO(:{_OPENVINO_DEVICE}(,{_OPENVINO_DEVICE})*)?",
    "'CPU', 'GPU', 'GPU.1', 'NPU', 'AUTO' or 'AUTO:GPU,CPU'",
)
ANY = DeviceFamily("", r"[A-Za-z][\w.:,-]*", "as the provider writes them, for example 'CPU', 'CUDA:0' or 'GPU.1'")


@dataclass(frozen=True)
class Problem:
    """Why something cannot be used here, and what to do about it."""

    reason: str
    cure: str

    def __str__(self) -> str:
        return f"{self.reason}. {self.cure}."


def usable_cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
