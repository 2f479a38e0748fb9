# SPDX-License-Identifier: Apache-2.0
"""A model that declares the types of its inputs alone: what it declares of other values may be wrong."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, ValueInfoProto

from onnx_multi_backend.models.graph_walk import bodies

#: What gives the results of several steps.
_STEPPING = frozenset({"Loop", "Scan"})


def without_declared(model: ModelProto, *, steps: bool = False) -> ModelProto:
    """A copy whose values, other than the model's own inputs, have no declared shapes; results keep their element types.

    Parameters
    ----------
    steps : bool
        Whether the inputs and results of bodies that are run in steps keep theirs: onnx infers little of those.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    _clear(copy.graph, steps=steps)
    for value in copy.graph.output:
        _open(value)
    return copy


def _clear(graph: GraphProto, *, steps: bool) -> None:
    del graph.value_info[:]
    for node in graph.node:
        for body in bodies(node):
            _clear(body, steps=steps)
            for value in () if steps and node.op_type in _STEPPING else (*body.input, *body.output):
                _open(value)


def _open(value: ValueInfoProto) -> None:
    if value.type.HasField("tensor_type"):
        value.type.tensor_type.ClearField("shape")
