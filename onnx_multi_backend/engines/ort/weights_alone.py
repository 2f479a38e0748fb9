# SPDX-License-Identifier: Apache-2.0
"""Models whose weights alone are quantized: ONNX Runtime is to compute their products in the type of the other operand.

By default it quantizes that operand to int8, with errors of 0.5 % (4 bits in blocks with all releases, 8 bits with 1.31 and 1.32). Told
not to, it multiplies weights of 8 bits 200 times as slowly as floats. So these become floats when the session is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx import TensorProto

from onnx_multi_backend.models.contents import Contents

_IN_THEIR_TYPE = {"session.qdq_matmulnbits_accuracy_level": "0"}
_TO_FLOATS = {"session.disable_quant_qdq": "1"}
_QUANTIZE = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})
_BYTES = frozenset({TensorProto.INT8, TensorProto.UINT8})


def with_entries(contents: Contents, given: Any) -> Any:
    """Session options with what the model needs, unless the user decided it; an ``onnxruntime.SessionOptions`` stays as it is."""
    if not (given is None or isinstance(given, Mapping)):
        return given
    added = _entries(contents)
    decided = any(name in (given or ()) for name in (*_IN_THEIR_TYPE, *_TO_FLOATS))
    return {**added, **(given or {})} if added and not decided else given


def _entries(contents: Contents) -> dict[str, str]:
    readers = contents.of("DequantizeLinear")
    if not readers:
        return {}
    if contents.has(_QUANTIZE):
        return _IN_THEIR_TYPE
    read = {node.input[0] for node in readers if node.input}
    kinds = {tensor.data_type for tensor in contents.tensors if tensor.name in read}
    return {**_IN_THEIR_TYPE, **_TO_FLOATS} if kinds <= _BYTES else _IN_THEIR_TYPE
