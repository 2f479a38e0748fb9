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

from onnx_multi_backend.conformance import processor_facts
from onnx_multi_backend.conformance.reading import take, take_texts, take_versions
from onnx_multi_backend.host import cpus, processor
from onnx_multi_backend.host.processor import Processor


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
    processor : Processor, optional
        What results may depend on; reports of older versions do not tell.
    """

    started: str
    command: tuple[str, ...]
    python: str
    platform: str
    cpu: str
    cores: int
    packages: Mapping[str, str]
    processor: Processor | None = None

    @property
    def hardware(self) -> str:
        """The processor with all that is known of it."""
        return str(self.processor) if self.processor else self.cpu

    @classmethod
    def current(cls, command: Sequence[str] | None = None) -> Environment:
        """Describe this process, started with `command` (its own command line when None)."""
        here = processor.current()
        words = [Path(sys.argv[0]).name, *sys.argv[1:]] if command is None else command
        found = {d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"]}
        return cls(
            datetime.now(UTC).isoformat(timespec="seconds"),
            tuple(words),
            platform.python_version(),
            platform.platform(),
            here.name,
            cpus.usable().count,
            {name: found[name] for name in sorted(found, key=str.lower)},
            here,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the environment as JSON has it; `from_dict` is the way back."""
        content = {
            "started": self.started,
            "command": list(self.command),
            "python": self.python,
            "platform": self.platform,
            "cpu": self.cpu,
            "cores": self.cores,
            "packages": dict(self.packages),
        }
        return content | ({"processor": processor_facts.to_dict(self.processor)} if self.processor else {})

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
            processor_facts.from_dict(values["processor"]) if "processor" in values else None,
        )
