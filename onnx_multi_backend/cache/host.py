# SPDX-License-Identifier: Apache-2.0
"""What an entry depends on beside the model and the options: the CPU and the packages."""

from __future__ import annotations

import platform

import onnx

from onnx_multi_backend.host import processor
from onnx_multi_backend.host.versions import __version__


def cpu() -> tuple[str, ...]:
    """What engines may compile for: the model and the instruction sets of the processor, emulated or not."""
    p = processor.current()
    return (platform.machine(), p.vendor, f"{p.family} {p.model}", p.name, *sorted(p.instruction_sets))


def packages() -> tuple[str, ...]:
    """The packages that change a model before an engine gets it, with their versions."""
    return f"onnx_multi_backend {__version__}", f"onnx {onnx.__version__}"
