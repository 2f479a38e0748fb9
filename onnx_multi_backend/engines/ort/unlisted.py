# SPDX-License-Identifier: Apache-2.0
"""Nodes that ONNX Runtime leaves out of its list of placements (1.24 to 1.32).

The CPU provider has no kernel of float16 for them. Where no other provider takes one, it runs there all the same, between Casts, which ONNX Runtime
inserts when the list is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.single_node import infer
from onnx_multi_backend.adapt.walked import inner_first, tensor_types
from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.models.contents import Contents

#: Of others (a scan of random nodes of float16) the list tells.
_OPERATORS = ("QLinearMatMul",)
_SCALE = 1


def may_be_unlisted(contents: Contents) -> list[NodeProto]:
    """The nodes of a model that the list leaves out where no other provider takes them."""
    nodes = contents.of(*_OPERATORS)
    facts = Facts(contents.model, contents)
    if not nodes or not facts.may_hold(TensorProto.FLOAT16):
        return []
    types = tensor_types(inner_first(infer(contents.model).graph))

    def is_half(name: str) -> bool:
        kinds = facts.kinds.get(name) or {types[name].elem_type if name in types else 0}
        return TensorProto.FLOAT16 in kinds

    return [node for node in nodes if is_half(node.input[_SCALE])]


def with_unlisted(nodes: Sequence[NodeProto], listed: Sequence[NodePlacement]) -> tuple[NodePlacement, ...]:
    """The list with those of these nodes that it leaves out: they run on the CPU provider."""
    names = {node.name for node in listed if node.op_type in _OPERATORS}
    others = (node for node in nodes if node.name not in names)
    return (*listed, *(NodePlacement(n.name, n.op_type, n.domain, providers.CPU) for n in others))
