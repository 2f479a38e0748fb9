# SPDX-License-Identifier: Apache-2.0
"""Device strings: what a preset understands, as opposed to what is usable on this host (the engines know that)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onnx_multi_backend.errors import DeviceError


@dataclass(frozen=True)
class DeviceFamily:
    """The device strings of a family of presets.

    Attributes
    ----------
    default : str
        What ``device=None`` means.
    pattern : str
        Regular expression of every string that is understood, in any case.
    examples : str
        How a message shows them.
    aliases : mapping of str to str
        Other names of a device, in capitals.
    """

    default: str
    pattern: str
    examples: str
    aliases: Mapping[str, str] = field(default_factory=dict)

    def parse(self, device: str | None, preset: str) -> Device:
        """Read a device string.

        Raises
        ------
        DeviceError
            The string is not one of this family.
        """
        if device is None:
            return Device(self.default)
        if (written := self.written(device)) is None:
            raise DeviceError(f"{preset} has no device {device!r}. Its devices are written {self.examples}.")
        return Device(written)

    def knows(self, device: object) -> bool:
        """Whether a string could name a device of this family."""
        return self.written(device) is not None

    def written(self, device: object) -> str | None:
        """A device as engines write it; None where it is not one of this family."""
        if not isinstance(device, str):
            return None
        if not self.pattern:  # whatever an execution provider calls its devices
            return in_capitals(device) if re.fullmatch(_ANY, device) else None
        head, separator, rest = in_capitals(device).partition(":")
        text = self.aliases.get(head, head) + separator + rest
        return text if re.fullmatch(self.pattern, text) else None


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

    @property
    def parts(self) -> list[str]:
        """The devices among which OpenVINO divides the work or chooses, itself where it is not such a list."""
        if self.kind not in ("AUTO", "MULTI", "HETERO", "BATCH"):
            return [self.text]
        return [re.sub(r"\(\d+\)$", "", name) for name in self.text.partition(":")[2].split(",") if name]

    def __str__(self) -> str:
        return self.text


#: Devices that engines write in capitals.
_CAPITALS = re.compile(r"(cpu|cuda|gpu|npu|auto|multi|hetero|batch)\b.*", re.IGNORECASE)


def in_capitals(device: str) -> str:
    """A device in capitals, where engines write it so: "cuda:0" is "CUDA:0"."""
    return device.upper() if _CAPITALS.fullmatch(device) else device


def similar(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: what it may have meant; empty where nothing is like it."""
    import difflib

    by_lower = {k.lower(): k for k in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f" Did you mean {by_lower[found[0]]!r}?" if found else ""


CPU = DeviceFamily("CPU", r"CPU(:0)?", "'CPU'")
CUDA = DeviceFamily("CUDA:0", r"CUDA(:\d+)?", "'CUDA' or 'CUDA:1'", {"GPU": "CUDA"})
_OPENVINO_DEVICE = r"(CPU|GPU(\.\d+)?|NPU(\.\d+)?)"
_SEVERAL = rf"{_OPENVINO_DEVICE}(,{_OPENVINO_DEVICE})*"
OPENVINO = DeviceFamily(
    "CPU",
    rf"{_OPENVINO_DEVICE}|AUTO(:{_SEVERAL})?|(MULTI|HETERO):{_SEVERAL}|BATCH:{_OPENVINO_DEVICE}(\(\d+\))?",
    "'CPU', 'GPU', 'GPU.1', 'NPU', 'AUTO', 'AUTO:GPU,CPU', 'HETERO:GPU,CPU', 'MULTI:GPU,CPU' or 'BATCH:GPU'",
)
_ANY = r"[A-Za-z][\w.:,-]*"
ANY = DeviceFamily("", "", "as the provider writes them, for example 'CPU', 'CUDA:0' or 'GPU.1'")


@dataclass(frozen=True)
class Problem:
    """Why something cannot be used here, and what to do about it."""

    reason: str
    cure: str

    def __str__(self) -> str:
        return f"{self.reason}. {self.cure}."
