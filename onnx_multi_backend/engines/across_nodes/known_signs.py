# SPDX-License-Identifier: Apache-2.0
"""Abs of what is made of constants and shapes alone, which OpenVINO (2025.4, 2026.4) takes for positive and leaves out.

The default of an input counts as a constant. The pure preset mends OpenVINO's own graph, which costs less; see `openvino.mends.folded`.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions, typed_of
from onnx_multi_backend.adapt.walked import inner_first, tensor_types, walked_of
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes, canonical, put_back, subgraphs

#: Since this opset there is Where, and Greater takes integers. Before, Max takes float32.
_WHERE = 9
#: What ONNX Runtime's CPU provider compares too; smaller integers are computed in int32 anyway.
_COMPARED = frozenset(
    {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64}
)
_SHAPES = frozenset({"Shape", "Size"})

_REASON = "OpenVINO takes what is computed from constants and shapes alone for positive"


def signs_told(contents: Contents) -> Rewritten | None:
    """A copy of the model in which the larger of a number and its negative is in such an Abs's place; None where there is none.

    Before opset 9 that of float32 alone.
    """
    if not contents.has({"Abs"}):
        return None
    flat = typed_of(contents.model).flat
    fixed = _fixed(flat)
    if not any(_is_lost(node, fixed) for node in all_nodes(flat)):
        return None
    opset = opset_versions(flat).get("", 1)
    kinds_written = _COMPARED if opset >= _WHERE else frozenset({TensorProto.FLOAT})
    copy = ModelProto()
    copy.CopyFrom(flat)
    typed = walked_of(contents).typed_graphs
    everywhere = tensor_types(typed)
    taken = {name for node in all_nodes(flat) for name in (node.name, *node.input, *node.output)}
    added: set[str] = set()
    changes: list[Adaptation] = []
    for graph, known in zip(inner_first(copy.graph), typed, strict=True):
        kinds = {name: kind.elem_type for name, kind in {**everywhere, **tensor_types([known])}.items()}
        kinds.update((tensor.name, tensor.data_type) for tensor in (*flat.graph.initializer, *graph.initializer))
        written = {name: kind for name, kind in kinds.items() if name in fixed and kind in kinds_written}
        _write(graph, written, opset >= _WHERE, taken, added, changes)
    return Rewritten(copy, tuple(changes), frozenset(added)) if added else None


def _fixed(model: ModelProto) -> set[str]:
    """The values that are made of constants and shapes alone, but for those that ONNX Runtime computes ahead: of constants alone, and no default."""
    given = {value.name for value in model.graph.input}
    folded = set(Facts(model, Contents(model)).known) - given
    fixed = given.intersection(tensor.name for tensor in model.graph.initializer)
    for node in all_nodes(model):
        read = [name for name in node.input if name]
        if not read or next(subgraphs(node), None) is not None:
            continue
        if folded.issuperset(read):
            folded.update(node.output)
        elif (node.op_type in _SHAPES and not canonical(node.domain)) or (folded | fixed).issuperset(read):
            fixed.update(name for name in node.output if name)
    return fixed


def _is_lost(node: NodeProto, fixed: set[str]) -> bool:
    return node.op_type == "Abs" and not canonical(node.domain) and node.input[0] in fixed


def _write(
    graph: GraphProto,
    fixed: Mapping[str, int],
    chooses: bool,
    taken: set[str],
    added: set[str],
    changes: list[Adaptation],
) -> None:
    """Do so in one graph, for values of these element types; `chooses`: whether the opset has Where."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        kind = fixed.get(node.input[0]) if node.op_type == "Abs" and not canonical(node.domain) else None
        if kind is None:
            nodes.append(node)
            continue
        x, made = node.input[0], node.output[0]
        prefix = f"{made}{CAST}sign"
        while any(name.startswith(prefix) for name in taken):
            prefix += "_"
        zero, is_positive, negative = (f"{prefix}_{part}" for part in ("zero", "positive", "negative"))
        new = [
            helper.make_node("Constant", [], [zero], zero, value=helper.make_tensor(zero, kind, [], [0])),
            helper.make_node("Sub", [zero, x], [negative], negative),  # 0 of -0
        ]
        if chooses:
            new.append(helper.make_node("Greater", [x, zero], [is_positive], is_positive))
            result = helper.make_node("Where", [is_positive, x, negative], [made], node.name)
        else:
            result = helper.make_node("Max", [x, negative], [made], node.name)
        added.update(each.name for each in new)
        nodes += [*new, result]
        where = f"Abs {node.name or made!r}"
        changes.append(
            Adaptation("signs_told", where, f"written with {result.op_type}, of a number and its negative", _REASON)
        )
    put_back(graph, nodes)
