# SPDX-License-Identifier: Apache-2.0
"""Pass: casts at the graph's edge for types that the engine does not take from numpy, or takes and converts wrongly."""

from __future__ import annotations

from onnx import TensorProto, ValueInfoProto, helper

from onnx_multi_backend.adapt.work import Adaptation, BoundaryType, Work
from onnx_multi_backend.models.tensors import WIDER, element_name

_SUFFIX = "/omb_edge"


def boundary_types(work: Work) -> None:
    """Give the engine another type at each input and output of a type that does not pass its boundary, and cast inside.

    A wider type holds every value of the narrow one, so the way in and out is exact for finite values and
    infinities; a NaN stays a NaN and may lose its payload. ``saturate=0`` keeps the infinities of the float8 types
    (source: Cast's documentation, table "saturate"). A narrower type is the one that the engine computes in anyway.
    """
    graph = work.model.graph
    initializers = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    for i, value in enumerate(graph.input):
        if value.name not in initializers and _needs_cast(work, value, out=False):
            _cast_input(work, i, value.name, value.type.tensor_type.elem_type)
    for i, value in enumerate(work.model.graph.output):
        if _needs_cast(work, value, out=True):
            _cast_output(work, i, value.name)


def _needs_cast(work: Work, value: ValueInfoProto, *, out: bool) -> bool:
    elem_type = value.type.tensor_type.elem_type if value.type.HasField("tensor_type") else TensorProto.UNDEFINED
    if elem_type == TensorProto.UNDEFINED or work.limits.boundary_type(elem_type) == elem_type:
        return False
    opset = next((o.version for o in work.model.opset_import if o.domain in ("", "ai.onnx")), None)
    return opset is not None and work.limits.can_cast(elem_type, opset, out=out)


def _cast_input(work: Work, index: int, name: str, elem_type: int) -> None:
    edge, node = _retype(work, f"input {name}", work.edit().graph.input[index])
    cast = helper.make_node("Cast", [edge.engine_name], [name], name=node, to=elem_type)
    if element_name(elem_type).startswith("float8") and elem_type != TensorProto.FLOAT8E8M0:
        cast.attribute.append(helper.make_attribute("saturate", 0))
    work.edit().graph.node.insert(0, cast)
    work.inputs[name] = edge


def _cast_output(work: Work, index: int, name: str) -> None:
    edge, node = _retype(work, f"output {name}", work.edit().graph.output[index])
    work.edit().graph.node.append(helper.make_node("Cast", [name], [edge.engine_name], name=node, to=edge.elem_type))
    work.outputs[name] = edge


def _retype(work: Work, where: str, value: ValueInfoProto) -> tuple[BoundaryType, str]:
    """Give a graph input or output its boundary type and a name of its own; returns these, and a name for the Cast."""
    own, name = value.type.tensor_type.elem_type, value.name
    edge = BoundaryType(_fresh(work, name + _SUFFIX), work.limits.boundary_type(own))
    node = _fresh(work, f"{name}{_SUFFIX}_cast")
    value.name = edge.engine_name
    value.type.tensor_type.elem_type = edge.elem_type
    work.inserted.add(node)
    work.changes.append(
        Adaptation(
            "edge_types",
            where,
            f"crosses the boundary as {element_name(edge.elem_type)}, cast inside",
            f"the engine exchanges no {element_name(own)} arrays with numpy"
            if own in WIDER
            else f"the engine computes {element_name(own)} in {element_name(edge.elem_type)}, and clamps infinities where it converts",
        )
    )
    return edge, node


def _fresh(work: Work, wanted: str) -> str:
    graph = work.model.graph
    taken = {v.name for v in (*graph.input, *graph.output)} | {t.name for t in graph.initializer} | work.inserted
    taken.update(name for node in graph.node for name in (node.name, *node.input, *node.output))
    while wanted in taken:
        wanted += "_"
    return wanted
