# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO accepts."""

from __future__ import annotations


class OpenvinoLimits:
    """`onnx_multi_backend.adapt.Limits` of OpenVINO.

    Its ONNX frontend reads every IR version and every opset (it takes the newest form of an operator that it knows),
    and its tensors hold every element type that it computes with.
    """

    def max_ir_version(self) -> int | None:
        return None

    def max_opset(self, domain: str) -> int | None:
        return None

    def takes_directly(self, elem_type: int) -> bool:
        return True

    def can_cast(self, elem_type: int, opset: int, *, out: bool) -> bool:
        return False
