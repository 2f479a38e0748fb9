# SPDX-License-Identifier: Apache-2.0
"""A model without its weights, for ONNX's checker to read."""

from __future__ import annotations

from typing import Any

from onnx import GraphProto, ModelProto, NodeProto

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes
from onnx_multi_backend.models.tensors import numpy_dtype

#: Initializers above this many bytes are left out of the copy that the ONNX checker reads.
CHECKED_INITIALIZER_BYTES = 64 * 1024

#: A model with fewer bytes of such weights is copied at once, weights included: piece by piece takes ten times as long.
_COPIED = 4 << 20

#: The other name of the default domain, which engines take for it and the checker does not.
_ALIAS = "ai.onnx"


def skeleton_of(contents: Contents) -> ModelProto:
    """The model as the checker can read it, its weights left out.

    Large and external initializers, and Constants whose values were not read, become graph inputs of the same type, and
    the default domain goes by one name.
    """
    proto = contents.model
    heavy = [t for t in proto.graph.initializer if t.ByteSize() > CHECKED_INITIALIZER_BYTES or t.external_data]
    nodes = proto.graph.node if contents.has({"Constant"}) and any(t.external_data for t in contents.tensors) else ()
    left = {i: n for i, n in enumerate(nodes) if n.op_type == "Constant" and _was_left(n)}
    constants = {n.output[0]: n.attribute[0].t for n in left.values()}
    aliased = any(o.domain == _ALIAS for o in proto.opset_import) or any(n.domain == _ALIAS for n in contents.holding)
    for kind in {tensor.data_type for tensor in (*heavy, *constants.values())}:
        numpy_dtype(kind)  # the checker, which will not see them, would refuse an unknown type
    if not heavy and not constants and not aliased:
        return proto
    dropped = {t.name for t in heavy}
    skeleton = ModelProto()
    if sum(t.ByteSize() for t in heavy) < _COPIED:
        skeleton.CopyFrom(proto)
        _delete(skeleton.graph.initializer, [i for i, t in enumerate(proto.graph.initializer) if t.name in dropped])
        _delete(skeleton.graph.node, list(left))
    else:
        copy_without_weights(proto, skeleton, dropped, frozenset(constants))
    declared = {v.name for v in proto.graph.input}
    for name, tensor in [*((t.name, t) for t in heavy if t.name not in declared), *constants.items()]:
        typed = skeleton.graph.input.add(name=name).type.tensor_type
        typed.elem_type = tensor.data_type
        typed.shape.SetInParent()
        for size in tensor.dims:
            typed.shape.dim.add(dim_value=size)
    named: Any
    for named in (*all_nodes(skeleton), *skeleton.opset_import) if aliased else ():
        if named.domain == _ALIAS:
            named.domain = ""
    return skeleton


def _was_left(node: NodeProto) -> bool:
    """Whether a Constant's values were left in the model's file."""
    attributes = node.attribute
    return (
        len(attributes) == 1
        and bool(attributes[0].t.external_data)
        and attributes[0].name == "value"
        and len(node.output) == 1
    )


def _delete(found: Any, places: list[int]) -> None:
    for i in reversed(places):
        del found[i]


def copy_without_weights(proto: ModelProto, skeleton: ModelProto, dropped: set[str], constants: frozenset[str]) -> None:
    """Copy a model piece by piece, so that its weights are not copied to be dropped."""
    for field, value in proto.ListFields():
        if field.name == "graph":
            _copy_graph_without_initializers(proto.graph, skeleton.graph, constants)
        elif field.name in ("opset_import", "functions", "metadata_props", "training_info", "configuration"):
            getattr(skeleton, field.name).extend(value)
        else:
            setattr(skeleton, field.name, value)
    skeleton.graph.initializer.extend(t for t in proto.graph.initializer if t.name not in dropped)


def _copy_graph_without_initializers(graph: GraphProto, into: GraphProto, constants: frozenset[str]) -> None:
    """Copy a graph, its initializers and these Constants left out."""
    for field, value in graph.ListFields():
        if field.name == "initializer":
            continue
        if field.name in ("name", "doc_string"):
            setattr(into, field.name, value)
        elif field.name == "node" and constants:
            into.node.extend(n for n in value if not (n.op_type == "Constant" and n.output[0] in constants))
        else:
            getattr(into, field.name).extend(value)
