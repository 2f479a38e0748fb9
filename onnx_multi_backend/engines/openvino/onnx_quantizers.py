# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear of ONNX Runtime's domain as those of ONNX's own, which mean the same.

ONNX Runtime's quantizer writes them for 16 bits below opset 21. What is known of OpenVINO's is known of ONNX's operators.
"""

from __future__ import annotations

from onnx import ModelProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.engines.across_nodes.apart import flat_for
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes

_OPERATORS = ("QuantizeLinear", "DequantizeLinear")
#: Since this opset ONNX's have an axis too.
_ALONG_AXIS = 13
_REASON = "what OpenVINO gets wrong of quantization is known of ONNX's operators"


def onnx_quantizers(contents: Contents) -> Rewritten | None:
    """A copy of the model with ONNX's operators in their place; None where there are none."""
    if not any(node.domain == DOMAIN for node in contents.of(*_OPERATORS)) or (flat := flat_for(contents)) is None:
        return None
    if opset_versions(flat).get("", 1) < _ALONG_AXIS:
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    changes = []
    for node in all_nodes(copy):
        if node.domain == DOMAIN and node.op_type in _OPERATORS:
            node.domain = ""
            where = f"{DOMAIN}.{node.op_type} {node.name or node.output[0]!r}"
            changes.append(Adaptation("onnx_quantizers", where, "is that of ONNX's own domain", _REASON))
    return Rewritten(copy, tuple(changes))
