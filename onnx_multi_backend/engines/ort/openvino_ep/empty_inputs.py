# SPDX-License-Identifier: Apache-2.0
"""Around inputs without elements, which the plugin with OpenVINO (1.8.1) loses."""

from __future__ import annotations

from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.renaming import renamed
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import defaults_of

_SUFFIX = "/omb_empty"


def is_empty(value: ValueInfoProto) -> bool:
    """Whether a tensor is declared with a shape of no elements, all of it known: then its value is known too."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or kind.elem_type == TensorProto.STRING:
        return False
    dims = [dim.dim_value if dim.WhichOneof("value") == "dim_value" else None for dim in kind.shape.dim]
    return 0 in dims and None not in dims


def with_constants(model: ModelProto) -> tuple[ModelProto, list[str]]:
    """The model reading constants instead of the inputs that are known to be empty, and the names of these inputs.

    OpenVINO folds away what it makes of an input without elements, and the input with it, which the plugin then misses.
    """
    defaults = defaults_of(model.graph)
    empty = {v.name: v.type.tensor_type for v in model.graph.input if v.name not in defaults and is_empty(v)}
    if not empty:
        return model, []
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    nodes = [renamed(node, lambda name: name + _SUFFIX if name in empty else name) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for name, kind in empty.items():
        shape = [dim.dim_value for dim in kind.shape.dim]
        graph.initializer.append(helper.make_tensor(name + _SUFFIX, kind.elem_type, shape, b"", raw=True))
    return copy, list(empty)


def without_empty_inputs(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the same done to its model."""
    model, names = with_constants(payload.adapted.proto)
    changes = tuple(
        Adaptation(
            "empty_inputs",
            f"input {name}",
            "a constant without elements is read in its place",
            "the execution provider loses an input that is known to be empty",
        )
        for name in names
    )
    if not changes:
        return payload, ()
    return payload.changed(model, *changes), changes
