# SPDX-License-Identifier: Apache-2.0
"""Which instruction set OpenVINO's CPU plugin takes on this processor, and which types it computes with natively."""

from __future__ import annotations

import os
from dataclasses import dataclass

from onnx_multi_backend.engines.byte_sums import byte_products
from onnx_multi_backend.engines.openvino import runtime
from onnx_multi_backend.host import processor

#: Any one of these instruction sets computes with the type; without, it is converted or widened.
_NATIVE = {
    "bf16": {"avx512_bf16", "amx_bf16", "bf16"},
    "fp16": {"avx512_fp16", "amx_fp16", "asimdhp"},
    "int8": byte_products.EXACT,
}

#: Limits oneDNN, and OpenVINO's own kernels with it.
_LIMIT = "ONEDNN_MAX_CPU_ISA"


@dataclass(frozen=True)
class Instructions:
    """What OpenVINO makes of a processor.

    Parameters
    ----------
    device : str
        The processor as OpenVINO calls it.
    instruction_set : str
        The widest that it takes, ``AVX2``.
    bf16, fp16, int8 : bool
        Whether products of the type are computed by instructions of their own.
    limit : str
        What the environment variable ``ONEDNN_MAX_CPU_ISA`` says; empty where it is not set.
    """

    device: str
    instruction_set: str
    bf16: bool
    fp16: bool
    int8: bool
    limit: str


def find() -> Instructions | None:
    """What OpenVINO takes on this processor; None where it is not installed or has no CPU device.

    OpenVINO lists bf16 and fp16 as capabilities where it can compute with them at all; the processor says whether that
    is native.
    """
    if "CPU" not in runtime.usable_devices():
        return None
    here = processor.current()
    capabilities = set(runtime.core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"))
    native = {
        name: name.upper() in capabilities and bool(here.instruction_sets & sets) for name, sets in _NATIVE.items()
    }
    device = str(runtime.core().get_property("CPU", "FULL_DEVICE_NAME")).strip()
    return Instructions(device, here.level, **native, limit=os.environ.get(_LIMIT, ""))
