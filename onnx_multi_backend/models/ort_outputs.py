# SPDX-License-Identifier: Apache-2.0
"""What the graphs of a model in ONNX Runtime's own format return.

ONNX Runtime forgets the outputs that are constants when it writes such a model as ONNX. The file has them, in the tables of FlatBuffers that
onnxruntime/core/flatbuffers/schema/ort.fbs describes.
"""

from __future__ import annotations

import importlib
from typing import Any

from onnx import AttributeProto, GraphProto, ValueInfoProto, helper

# The places of fields in their tables.
_MODEL_OF_SESSION, _GRAPH_OF_MODEL = 1, 7
_NODES, _OUTPUTS = 2, 6
_OUTPUTS_OF_NODE, _ATTRIBUTES = 9, 10
_NAME, _GRAPH_OF_ATTRIBUTE = 0, 7


def restore(graph: GraphProto, data: bytes) -> None:
    """Give the graph of a converted model and its subgraphs the outputs that the original has.

    Parameters
    ----------
    graph : onnx.GraphProto
        Main graph of what ONNX Runtime wrote.
    data : bytes
        The model in ONNX Runtime's format, which ONNX Runtime has accepted.
    """
    tables = importlib.import_module("flatbuffers.table")  # ONNX Runtime needs it, too
    root = tables.Table(data, int.from_bytes(data[:4], "little"))
    _restore(graph, _table(_table(root, _MODEL_OF_SESSION), _GRAPH_OF_MODEL))


def _restore(graph: GraphProto, table: Any) -> None:
    names = _strings(table, _OUTPUTS)
    if names != [value.name for value in graph.output]:
        known = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
        for tensor in graph.initializer:
            known[tensor.name] = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        # A body may return a value from outside.
        outputs = [known.get(name, ValueInfoProto(name=name)) for name in names]
        del graph.output[:]
        graph.output.extend(outputs)
    nodes = {tuple(node.output): node for node in graph.node}
    for node in _tables(table, _NODES):
        graphs = [(_string(a, _NAME), _table(a, _GRAPH_OF_ATTRIBUTE)) for a in _tables(node, _ATTRIBUTES)]
        bodies = {name: body for name, body in graphs if body is not None}
        written = nodes.get(tuple(_strings(node, _OUTPUTS_OF_NODE))) if bodies else None
        for attribute in written.attribute if written is not None else ():  # ONNX Runtime may have put casts around it
            if attribute.type == AttributeProto.GRAPH and attribute.name in bodies:
                _restore(attribute.g, bodies[attribute.name])


def _offset(table: Any, field: int) -> int:
    """Where a field is, from the beginning of its table; 0 where it is missing."""
    return int(table.Offset(4 + 2 * field))


def _table(table: Any, field: int) -> Any:
    offset = _offset(table, field)
    return type(table)(table.Bytes, table.Indirect(table.Pos + offset)) if offset else None


def _string(table: Any, field: int) -> str:
    offset = _offset(table, field)
    return table.String(table.Pos + offset).decode(errors="replace") if offset else ""


def _elements(table: Any, field: int) -> list[int]:
    """Where the elements of a vector of tables or texts are."""
    offset = _offset(table, field)
    return [table.Vector(offset) + 4 * i for i in range(table.VectorLen(offset))] if offset else []


def _tables(table: Any, field: int) -> list[Any]:
    return [type(table)(table.Bytes, table.Indirect(place)) for place in _elements(table, field)]


def _strings(table: Any, field: int) -> list[str]:
    return [table.String(place).decode(errors="replace") for place in _elements(table, field)]
