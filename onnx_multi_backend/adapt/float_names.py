# SPDX-License-Identifier: Apache-2.0
"""Which values of a graph hold floating-point numbers, as far as the operators tell at a glance: nothing is inferred."""

from __future__ import annotations

import functools
from typing import NamedTuple

from onnx import GraphProto, NodeProto, TensorProto, defs

from onnx_multi_backend.models.graph_walk import canonical

_FLOATS = frozenset(f"tensor({name})" for name in ("float", "float16", "bfloat16", "double"))
_FLOAT_TYPES = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})


#: Operators whose type an attribute tells, and what it is without one.
_CONSTANTS = {"Constant": False, "ConstantOfShape": True}


class _Made(NamedTuple):
    """What an operator's first output is: floating-point numbers, or of the type that one of these inputs has."""

    floats: bool
    like: tuple[int, ...]


def float_names(graph: GraphProto) -> set[str]:
    """Names of values that hold floating-point numbers. Others may too; those of subgraphs are left out.

    Parameters
    ----------
    graph : onnx.GraphProto
        Its nodes in any order.
    """
    found = {value.name for value in graph.input if value.type.tensor_type.elem_type in _FLOAT_TYPES}
    found.update(tensor.name for tensor in graph.initializer if tensor.data_type in _FLOAT_TYPES)
    for node in graph.node:
        if not node.output or canonical(node.domain):
            continue
        made = _made(node.op_type)
        if (
            (node.op_type in _CONSTANTS and _holds_floats(node))
            or made.floats
            or any(i < len(node.input) and node.input[i] in found for i in made.like)
        ):
            found.add(node.output[0])
    return found


def _holds_floats(node: NodeProto) -> bool:
    value = next((a for a in node.attribute if a.name == "value"), None)
    return _CONSTANTS[node.op_type] if value is None else value.t.data_type in _FLOAT_TYPES


@functools.cache
def _made(op_type: str) -> _Made:
    """By the newest schema: an operator's types only grow with its opset. Source: ONNX's operator schemas."""
    try:
        schema = defs.get_schema(op_type)
    except defs.SchemaError:
        return _Made(False, ())
    if not schema.outputs or not schema.outputs[0].is_homogeneous:  # Loop's states have a type each
        return _Made(False, ())
    kind = schema.outputs[0].type_str
    types = next((set(c.allowed_type_strs) for c in schema.type_constraints if c.type_param_str == kind), {kind})
    like = tuple(i for i, value in enumerate(schema.inputs) if value.type_str == kind and value.is_homogeneous)
    return _Made(types <= _FLOATS, like)
