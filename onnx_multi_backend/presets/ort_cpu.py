# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.host import devices
from onnx_multi_backend.presets.options import Option, threads
from onnx_multi_backend.presets.ort import OrtPreset, thread_options

if TYPE_CHECKING:
    from onnx_multi_backend.presets.knobs import Host, Knob


class OrtCpuBackend(OrtPreset):
    """ONNX Runtime's CPU execution provider."""

    name = "OrtCpu"
    family = devices.CPU
    provider = providers.CPU
    options = (
        Option("inter_op_num_threads", threads, doc="threads that run nodes side by side (parallel execution mode)"),
        Option("intra_op_num_threads", threads, doc="threads inside one node"),
    )

    @classmethod
    def _session_options(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        chosen: dict[str, Any] = thread_options(settings)
        if chosen.get("inter_op_num_threads", 1) > 1:
            chosen["execution_mode"] = "ORT_PARALLEL"  # without it ONNX Runtime ignores the number
        return chosen

    @classmethod
    def knobs(cls, host: Host) -> tuple[Knob, ...]:
        from onnx_multi_backend.presets.knobs import ort_cpu_knobs

        return ort_cpu_knobs(host)
