# SPDX-License-Identifier: Apache-2.0
"""Pass: casts at the graph's edge for types that the engine computes but does not take from numpy."""

from __future__ import annotations

from onnx import TensorProto, ValueInfoProto, helper

from onnx_multi_backend.adapt.work import Adaptation, Edge, Work
from onnx_multi_backend.tensors import WIDER, element_name

_SUFFIX = "/omb_edge"


def edge_types(work: Work) -> None:
    """Give the engine a wider type at each input and output of an exotic type, and cast inside.

    The wider type holds every value of the narrow one, so the way in and out is exact for finite values and
    infinities; a NaN stays a NaN and may lose its payload. ``saturate=0`` keeps the infinities of the float8 types
    (source: Cast's documentation, table "saturate").
    """
    graph = work.model.graph
    initializers = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    for i, value in enumerate(graph.input):
        if value.name not in initializers and _needs_cast(work, value):
            _cast_input(work, i, value.name, value.type.tensor_type.elem_type)
    for i, value in enumerate(work.model.graph.output):
        if _needs_cast(work, value):
            _cast_output(work, i, value.name, value.type.tensor_type.elem_type)


def _needs_cast(work: Work, value: ValueInfoProto) -> bool:
    elem_type = value.type.tensor_type.elem_type if value.type.HasField("tensor_type") else TensorProto.UNDEFINED
    if elem_type not in WIDER or work.limits.takes_directly(elem_type):
        return False
    opset = next((o.version for o in work.model.opset_import if o.domain in ("", "ai.onnx")), None)
    return opset is not None and work.limits.can_cast(elem_type, opset)


def _cast_input(work: Work, index: int, name: str, elem_type: int) -> None:
    model = work.edit()
    wide, engine_name, node = WIDER[elem_type], _fresh(work, name + _SUFFIX), _fresh(work, f"{name}{_SUFFIX}_cast")
    value = model.graph.input[index]
    value.name = engine_name
    value.type.tensor_type.elem_type = wide
    cast = helper.make_node("Cast", [engine_name], [name], name=node, to=elem_type)
    if element_name(elem_type).startswith("float8") and elem_type != TensorProto.FLOAT8E8M0:
        cast.attribute.append(helper.make_attribute("saturate", 0))
    model.graph.node.insert(0, cast)
    work.inputs[name] = Edge(engine_name, wide)
    _record(work, f"input {name}", node, elem_type, wide)


def _cast_output(work: Work, index: int, name: str, elem_type: int) -> None:
    model = work.edit()
    wide, engine_name, node = WIDER[elem_type], _fresh(work, name + _SUFFIX), _fresh(work, f"{name}{_SUFFIX}_cast")
    value = model.graph.output[index]
    value.name = engine_name
    value.type.tensor_type.elem_type = wide
    model.graph.node.append(helper.make_node("Cast", [name], [engine_name], name=node, to=wide))
    work.outputs[name] = Edge(engine_name, wide)
    _record(work, f"output {name}", node, elem_type, wide)


def _record(work: Work, where: str, node: str, elem_type: int, wide: int) -> None:
    work.inserted.add(node)
    narrow_name, wide_name = element_name(elem_type), element_name(wide)
    work.changes.append(
        Adaptation(
            "edge_types",
            where,
            f"crosses the boundary as {wide_name}, cast inside",
            f"the engine exchanges no {narrow_name} arrays with numpy",
        )
    )


def _fresh(work: Work, wanted: str) -> str:
    graph = work.model.graph
    taken = {v.name for v in (*graph.input, *graph.output)} | {t.name for t in graph.initializer} | work.inserted
    taken.update(name for node in graph.node for name in (node.name, *node.input, *node.output))
    while wanted in taken:
        wanted += "_"
    return wanted
