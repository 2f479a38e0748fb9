# SPDX-License-Identifier: Apache-2.0
"""Numbers that are cut to integers before they become truth values: ONNX Runtime 1.24 leaves the first of two casts out, and 0.3 is true.

With Abs between the casts, which changes nothing of what is not 0, both stay. Newer releases are right (seen with 1.31).
"""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import inner_first
from onnx_multi_backend.engines.across_nodes.apart import flat_for
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, put_back

_PASS = "flags_apart"
_REASON = "ONNX Runtime would leave the first of two casts out"


def flags_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which both casts stay; None where there are none."""
    flags = [node for node in contents.of("Cast") if _kind(node) == TensorProto.BOOL]
    cut = {node.output[0] for node in contents.of("Cast") if _kind(node) in INTEGER_BITS}
    if not any(node.input[0] in cut for node in flags) or not applies({"onnxruntime": "<1.31"}):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    copy = ModelProto()
    copy.CopyFrom(flat)
    taken, changes, added = names_taken(copy), list[Adaptation](), set[str]()
    for graph in inner_first(copy.graph):
        _write(graph, taken, changes, added)
    return Rewritten(copy, tuple(changes), frozenset(added)) if changes else None


def _write(graph: GraphProto, taken: set[str], changes: list[Adaptation], added: set[str]) -> None:
    cut = {node.output[0] for node in graph.node if _kind(node) in INTEGER_BITS}
    nodes: list[NodeProto] = []
    for node in graph.node:
        if _kind(node) == TensorProto.BOOL and node.input[0] in cut:
            name = unused(f"{node.input[0]}{CAST}whole", taken)
            nodes.append(helper.make_node("Abs", [node.input[0]], [name], name=name))
            node.input[0] = name
            added.add(name)
            where = f"Cast {node.name or node.output[0]!r}"
            changes.append(Adaptation(_PASS, where, "kept apart from the Cast before it", _REASON))
        nodes.append(node)
    if len(nodes) > len(graph.node):
        put_back(graph, nodes)


def _kind(node: NodeProto) -> int:
    """The type that a Cast makes."""
    if node.op_type != "Cast" or canonical(node.domain):
        return int(TensorProto.UNDEFINED)
    return next((int(a.i) for a in node.attribute if a.name == "to"), int(TensorProto.UNDEFINED))
