# SPDX-License-Identifier: Apache-2.0
"""Where a run took place: versions, CPU, command."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from onnx_multi_backend.conformance.reading import take, take_texts, take_versions
from onnx_multi_backend.devices import usable_cores


@dataclass(frozen=True, slots=True)
class Environment:
    """Where and when a run took place.

    Parameters
    ----------
    started : str
        ISO 8601, in UTC.
    command : tuple of str
        The command line.
    python, platform : str
    cpu : str
        The processor as its maker calls it.
    cores : int
        Those that the process may use.
    packages : mapping of str to str
        The version of every installed distribution.
    """

    started: str
    command: tuple[str, ...]
    python: str
    platform: str
    cpu: str
    cores: int
    packages: Mapping[str, str]

    @classmethod
    def current(cls, command: Sequence[str] | None = None) -> Environment:
        """Describe this process, started with `command` (its own command line when None)."""
        words = [Path(sys.argv[0]).name, *sys.argv[1:]] if command is None else command
        found = {d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"]}
        return cls(
            datetime.now(UTC).isoformat(timespec="seconds"),
            tuple(words),
            platform.python_version(),
            platform.platform(),
            _cpu(),
            usable_cores(),
            {name: found[name] for name in sorted(found, key=str.lower)},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the environment as JSON has it; `from_dict` is the way back."""
        return {
            "started": self.started,
            "command": list(self.command),
            "python": self.python,
            "platform": self.platform,
            "cpu": self.cpu,
            "cores": self.cores,
            "packages": dict(self.packages),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Environment:
        """Rebuild an environment from what `to_dict` returned."""
        started = take(values, "started", str)
        datetime.fromisoformat(started)  # a ValueError says what is wrong with it
        return cls(
            started,
            take_texts(values, "command"),
            take(values, "python", str),
            take(values, "platform", str),
            take(values, "cpu", str),
            take(values, "cores", int),
            take_versions(values, "packages"),
        )


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
