# SPDX-License-Identifier: Apache-2.0
"""What the installed ONNX Runtime accepts, asked of itself with models of one node."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

import onnx
from onnx import ModelProto, TensorProto, helper

from onnx_multi_backend.adapt.limits import Limits
from onnx_multi_backend.engines.ort import errors, runtime
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.tensors import PACKED_BITS, WIDER


def _accepts(model: ModelProto) -> bool:
    ort = runtime.load()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        runtime.session_class()(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except errors.all_errors():
        return False
    return True


def _tiny(
    ir_version: int, opsets: dict[str, int], cast: tuple[int, int] = (TensorProto.FLOAT, TensorProto.FLOAT)
) -> ModelProto:
    value = helper.make_tensor_value_info
    node = helper.make_node("Cast", ["x"], ["y"], to=cast[1])
    graph = helper.make_graph([node], "probe", [value("x", cast[0], [1])], [value("y", cast[1], [1])])
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)


@functools.cache
def _max_ir_version() -> int:
    return next(v for v in range(onnx.IR_VERSION, 2, -1) if _accepts(_tiny(v, {"": 13})))


@functools.cache
def _max_opset(domain: str) -> int | None:
    newest = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": onnx.defs.onnx_ml_opset_version()}.get(domain)
    if newest is None:
        return None
    ir_version = _max_ir_version()
    opsets = ({"": v} if domain == "" else {"": 13, domain: v} for v in range(newest, 0, -1))
    return next((o[domain] for o in opsets if _accepts(_tiny(ir_version, o))), None)


@functools.cache
def _can_cast(elem_type: int, opset: int, out: bool) -> bool:
    wider = WIDER[elem_type]
    return _accepts(_tiny(_max_ir_version(), {"": opset}, (elem_type, wider) if out else (wider, elem_type)))


class OrtLimits(Limits):
    """`onnx_multi_backend.adapt.Limits` of the installed ONNX Runtime; every answer is probed once a process.

    Parameters
    ----------
    packed_outputs : bool
        Whether casts from packed types (4 and 2 bits) are to be trusted, and results of these types. The probe runs on the CPU
        execution provider; the OpenVINO one takes such a Cast and computes negative values wrongly, and a copy of such elements
        writes beyond its memory (seen with version 1.24.1).
    inside : Limits, optional
        Of an engine that computes inside an execution provider: what it needs carried is carried too.
    reads_flags : bool
        Whether a flag that is neither 0 nor 1 is read as ONNX Runtime's CPU provider reads it.
    hands_optionals_on : bool
        Whether an optional may hold what an execution provider computes: a run fails where CUDA's does (seen with version 1.31.1).
    """

    # What the oldest release reads that `runtime.MIN_VERSION` admits.
    sure_ir_version = 11
    sure_opsets: Mapping[str, int] = MappingProxyType({"": 24, "ai.onnx.ml": 5})
    sorts_nodes = True

    def __init__(
        self,
        *,
        packed_outputs: bool = True,
        inside: Limits | None = None,
        reads_flags: bool = True,
        hands_optionals_on: bool = True,
    ) -> None:
        self._reads_flags = reads_flags
        self._packed_outputs = packed_outputs
        self._hands_optionals_on = hands_optionals_on
        self._inside = inside

    def max_ir_version(self) -> int | None:
        return _max_ir_version()

    def max_opset(self, domain: str) -> int | None:
        return _max_opset(domain)

    def boundary_type(self, elem_type: int) -> int:
        return WIDER.get(elem_type, elem_type)

    def needs_carrier(self, elem_type: int, *, cast_to: bool, saturate: bool) -> bool:
        if self._inside is not None and self._inside.needs_carrier(elem_type, cast_to=cast_to, saturate=saturate):
            return True
        # What lies half way beyond the largest number is rounded down, or becomes NaN where there is an infinity (1.31).
        if not saturate and elem_type in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2):
            return True
        if not self._packed_outputs:
            return elem_type not in (TensorProto.FLOAT8E8M0, TensorProto.INT4, TensorProto.UINT4) or cast_to
        return elem_type == TensorProto.FLOAT4E2M1 and not self.can_cast(elem_type, 25, out=True)

    def takes_any_flag(self) -> bool:
        return self._reads_flags

    def has_optionals(self) -> bool:
        """Before 1.27 it refuses an optional of what is known ahead, or ends the process."""
        return self._hands_optionals_on and self._inside is None and applies({"onnxruntime": ">=1.27"})

    def gives_back(self, elem_type: int) -> bool:
        return self._packed_outputs or elem_type not in PACKED_BITS

    def can_cast(self, elem_type: int, opset: int, *, out: bool) -> bool:
        if out and elem_type in PACKED_BITS and not self._packed_outputs:
            return False
        limit = _max_opset("")
        return _can_cast(elem_type, opset if limit is None else min(opset, limit), out)
