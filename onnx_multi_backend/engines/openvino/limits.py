# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO accepts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from onnx import TensorProto

from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.models.tensors import PACKED_BITS

_T = TensorProto
_LACKING = frozenset({_T.FLOAT8E4M3FNUZ, _T.FLOAT8E5M2FNUZ, _T.INT2, _T.UINT2})
_NOT_SATURATING = frozenset({_T.FLOAT8E4M3FN, _T.FLOAT8E5M2, _T.FLOAT4E2M1})


class OpenvinoLimits(Limits):
    """`onnx_multi_backend.adapt.Limits` of OpenVINO.

    Its ONNX frontend reads every IR version and every opset (it takes the newest form of an operator that it knows), and
    its tensors hold every element type that it computes with.
    """

    sure_ir_version = 3
    sure_opsets: Mapping[str, int] = MappingProxyType({})
    sorts_nodes = True
    codes_strings = True

    def max_ir_version(self) -> int | None:
        return None

    def max_opset(self, domain: str) -> int | None:
        return None

    def boundary_type(self, elem_type: int) -> int:
        """float64 is computed in float32, and where OpenVINO converts one to the other it clamps infinities; numpy does not.

        Source: https://github.com/openvinotoolkit/openvino/issues/37968.
        """
        return _T.FLOAT if elem_type == _T.DOUBLE else elem_type

    def needs_carrier(self, elem_type: int, *, cast_to: bool, saturate: bool) -> bool:
        """The types that the frontend lacks, and those that its conversion does not saturate."""
        return elem_type in _LACKING or (cast_to and elem_type in _NOT_SATURATING)

    def has_optionals(self) -> bool:
        return False

    def moves(self, elem_type: int) -> bool:
        """It takes packed elements of this type for bytes: other elements come out, or the process ends."""
        return elem_type != _T.FLOAT4E2M1

    def gives_back(self, elem_type: int) -> bool:
        """A copy of packed elements writes beyond its memory; see `unsafe`."""
        return elem_type not in PACKED_BITS

    def can_cast(self, elem_type: int, opset: int, *, out: bool) -> bool:
        return elem_type == _T.DOUBLE
