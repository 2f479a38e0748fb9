# SPDX-License-Identifier: Apache-2.0
"""Nodes that a plugin takes and then runs only to break the process's memory.

Both were seen with onnxruntime-ep-openvino 1.8.1 and are OpenVINO's own (`engines/openvino/unsafe.py`): a string is copied
byte by byte and then freed twice, and a plain copy of 4-bit elements takes a byte for each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.single_node import Scope, infer
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.models.graph_walk import all_nodes, all_tensors, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far
from onnx_multi_backend.models.tensors import PACKED_BITS

_MEANT = frozenset({TensorProto.STRING, *PACKED_BITS})


def why_unsafe(model: ModelProto, placement: Collection[NodePlacement], providers: Collection[str]) -> str | None:
    """Why a model must not run where it was placed; None: it may.

    Parameters
    ----------
    placement : collection of NodePlacement
    providers : collection of str
        Those that break the memory.
    """
    placed = {(node.name, node.op_type) for node in placement if node.provider in providers}
    if not placed or not _mentions(model):
        return None
    if expands_too_far(model):
        return "its local functions come to too many nodes to look for strings and 4-bit elements in them"
    graph = infer(inlined(model)).graph
    return next((words for node, words in _found(graph, Scope({}, {})) if (node.name, node.op_type) in placed), None)


def _found(graph: GraphProto, outer: Scope) -> Iterator[tuple[NodeProto, str]]:
    scope = outer.inside(graph)
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _found(inner, scope)
        kinds = {_kind(scope, name) for name in (*node.input, *node.output)}
        if TensorProto.STRING in kinds:
            yield node, f"OpenVINO computes nothing with strings ({node.op_type}, output {node.output[0]!r})"
        elif node.op_type == "Identity" and kinds & PACKED_BITS.keys():
            yield node, f"OpenVINO cannot pass 4-bit elements on as they are (Identity, output {node.output[0]!r})"


def _kind(scope: Scope, name: str) -> int:
    found = scope.types.get(name)
    return found.tensor_type.elem_type if found is not None and found.HasField("tensor_type") else 0


def _mentions(model: ModelProto) -> bool:
    """Whether there can be a value of such a type in a model."""
    graph = model.graph
    if any(v.type.tensor_type.elem_type in _MEANT for v in (*graph.input, *graph.output)):
        return True
    if any(tensor.data_type in _MEANT for tensor in all_tensors(model)):
        return True
    return any(_makes(attribute) for node in all_nodes(model) for attribute in node.attribute)


def _makes(attribute: AttributeProto) -> bool:
    if attribute.name in ("to", "dtype", "output_dtype"):
        return attribute.i in _MEANT
    return attribute.name in ("value_string", "value_strings")
