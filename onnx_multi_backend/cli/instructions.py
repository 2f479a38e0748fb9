# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO makes of this processor, as ``presets`` and ``inspect`` show it."""

from __future__ import annotations

import dataclasses
from typing import Any

from onnx_multi_backend.cli import console
from onnx_multi_backend.engines.openvino import instructions


def show() -> None:
    """Print the instruction set and the native types; nothing where OpenVINO has no CPU device."""
    found = instructions.find()
    if found is None:
        return
    console.line()
    console.heading("OpenVINO on this CPU")
    limited = f" (ONEDNN_MAX_CPU_ISA={found.limit})" if found.limit else ""
    native = {name: getattr(found, name) for name in ("bf16", "fp16", "int8")}
    console.facts(
        [
            ("processor", found.device),
            ("instruction set", found.instruction_set + limited),
            *((name, "native" if yes else "not native") for name, yes in native.items()),
        ]
    )


def to_json() -> dict[str, Any] | None:
    """The same as a JSON object."""
    found = instructions.find()
    return dataclasses.asdict(found) if found else None
