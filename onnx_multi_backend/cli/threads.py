# SPDX-License-Identifier: Apache-2.0
"""How many threads engines get on the CPU, and why, as ``presets`` and ``inspect`` show it."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.cli import console
from onnx_multi_backend.host import cpus


def show() -> None:
    """Print the number and what decides about it."""
    here = cpus.usable()
    number = f"{here.threads} on the CPU" if here.limited else "the engine's default"
    console.line()
    console.heading("Threads, where you name no number")
    console.line(f"{number}: {here.why}", indent=2)


def to_json() -> dict[str, Any]:
    """The same as a JSON object; the number is null where it is the engine's own."""
    here = cpus.usable()
    number = here.threads if here.limited else None
    return {"number": number, "cpus": here.count, "cpus_of_host": here.host, "why": here.why}
