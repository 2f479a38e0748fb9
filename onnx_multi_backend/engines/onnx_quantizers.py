# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear of ONNX Runtime's domain as those of ONNX's own, which mean the same.

ONNX Runtime's quantizer writes them if asked to, and for 16 bits below opset 21. Engines treat both alike, and what they get wrong is known of ONNX's.
"""

from __future__ import annotations

from collections.abc import Set

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.engines.across_nodes.apart import flat_for
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes, graphs_in

_OPERATORS = ("QuantizeLinear", "DequantizeLinear")
#: Since these opsets ONNX's have an axis too, and integers of other widths.
_ALONG_AXIS, _OTHER_WIDTHS = 13, 21
_BYTES = frozenset({TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32})
_REASON = "what engines get wrong of quantization is known of ONNX's operators"


def quantizers_of_onnx(contents: Contents) -> Rewritten | None:
    """A copy of the model with ONNX's operators in their place, of types that its opset has; None where there are none."""
    return _rewritten(contents, _BYTES)


def quantizers_of_any_width(contents: Contents) -> Rewritten | None:
    """The same for an engine that looks at no operator's opset."""
    return _rewritten(contents, None)


def _rewritten(contents: Contents, kinds: Set[int] | None) -> Rewritten | None:
    if not any(map(_is_meant, contents.of(*_OPERATORS))) or (flat := flat_for(contents)) is None:
        return None
    opset = opset_versions(flat).get("", 1)
    if opset < _ALONG_AXIS:
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    types = _types(copy)
    changes = []
    for node in all_nodes(copy):
        if not _is_meant(node):
            continue
        kind = _kind(node, types)
        if node.op_type == "QuantizeLinear":
            types[node.output[0]] = kind
        if kinds is None or opset >= _OTHER_WIDTHS or kind in kinds:
            node.domain = ""
            where = f"{DOMAIN}.{node.op_type} {node.name or node.output[0]!r}"
            changes.append(Adaptation("onnx_quantizers", where, "is that of ONNX's own domain", _REASON))
    return Rewritten(copy, tuple(changes)) if changes else None


def _is_meant(node: NodeProto) -> bool:
    """Whether it is one of that domain, with a scale: ONNX Runtime refuses another one."""
    return node.domain == DOMAIN and node.op_type in _OPERATORS and all((*node.input, "", "")[:2])


def _kind(node: NodeProto, types: dict[str, int]) -> int:
    """The integer type of a node; 0 where it is not known."""
    zero = node.input[2] if len(node.input) > 2 else ""
    if node.op_type == "QuantizeLinear":
        return types.get(zero, 0) if zero else int(TensorProto.UINT8)
    return types.get(node.input[0], 0) or types.get(zero, 0)


def _types(model: ModelProto) -> dict[str, int]:
    """The element types of values, as far as a model declares or holds them."""
    found = {name: tensor.data_type for name, tensor in Contents(model).named}
    for graph in graphs_in(model.graph):
        for value in (*graph.input, *graph.value_info, *graph.output):
            if elem_type := value.type.tensor_type.elem_type:
                found[value.name] = elem_type
    return found
