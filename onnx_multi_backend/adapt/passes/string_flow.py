# SPDX-License-Identifier: Apache-2.0
"""Where the strings of a model go, and whether its operators do more with them than codes allow."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping, Sequence

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import WITH_GRAPHS, canonical, subgraphs, tensors_of
from onnx_multi_backend.models.tensors import innermost

_STRING = TensorProto.STRING
#: Attributes of a Constant that are text.
_TEXTS = frozenset({"value_string", "value_strings"})

#: Operators that hand strings on, whatever they are. An element that none of their inputs gives is the empty string (Pad).
_MOVE = frozenset(
    {
        *("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile", "Concat", "Split"),
        *("Slice", "Pad", "Gather", "GatherElements", "GatherND", "Compress", "Where", "OneHot", "ReverseSequence"),
        *("Scatter", "ScatterElements", "ScatterND", "TensorScatter", "DepthToSpace", "SpaceToDepth"),
        *(
            "SequenceConstruct",
            "SequenceInsert",
            "SequenceErase",
            "SequenceAt",
            "SplitToSequence",
            "ConcatFromSequence",
        ),
        *("Optional", "OptionalGetElement"),
    }
)
#: Operators whose results are the same for any codes that differ where the strings do.
_LOOK = frozenset({"Shape", "Size", "Equal", "SequenceLength", "OptionalHasElement"})

#: By name, whether a value is strings: a tensor, a sequence or an optional of them.
_Known = MutableMapping[str, bool]


class _ComputedError(Exception):
    """An operator computes with strings, or makes some of other values."""


def is_string(kind: TypeProto) -> bool:
    """Whether a type is strings, in sequences and optionals too."""
    inner = innermost(kind)
    return inner.WhichOneof("value") == "tensor_type" and inner.tensor_type.elem_type == _STRING


def has_string_constants(contents: Contents) -> bool:
    """Whether a model holds strings, in initializers, attributes or Constants."""
    return _STRING in contents.tensor_types or not _TEXTS.isdisjoint(contents.constant_forms)


def text_of(node: NodeProto) -> AttributeProto | None:
    """The attribute of a Constant that is text without being a tensor."""
    return next((a for a in node.attribute if a.name in _TEXTS), None)


def string_outputs(graph: GraphProto) -> tuple[int, ...] | None:
    """The places of the outputs of a main graph that are strings; None where an operator does more than move or compare strings.

    Parameters
    ----------
    graph : onnx.GraphProto
        Its nodes in order, without local functions.
    """
    try:
        made = _outputs(graph, {}, ())
    except _ComputedError:
        return None
    if any(is_string(v.type) > found for v, found in zip(graph.output, made, strict=True)):
        return None  # an operator made them that is not known to
    return tuple(i for i, found in enumerate(made) if found)


def _outputs(graph: GraphProto, outer: _Known, given: Sequence[bool]) -> list[bool]:
    """Which outputs of a graph are strings.

    Parameters
    ----------
    given : sequence of bool
        The same of what a node gives to the inputs of its subgraph; none for a graph whose inputs are declared.
    """
    known = ChainMap({}, *(outer.maps if isinstance(outer, ChainMap) else [outer]))
    if any(sparse.values.data_type == _STRING for sparse in graph.sparse_initializer):
        raise _ComputedError
    known.update((t.name, t.data_type == _STRING) for t in graph.initializer)
    known.update((v.name, is_string(v.type)) for v in graph.input)
    known.update((v.name, True) for v, told in zip(graph.input, given, strict=False) if told)
    for node in graph.node:
        known.update((name, found) for name, found in zip(node.output, _made(node, known), strict=False) if name)
    return [known.get(v.name, False) for v in graph.output]


def _made(node: NodeProto, known: _Known) -> list[bool]:
    """Which outputs of a node are strings."""
    read = [known.get(name, False) for name in node.input]
    operator = "" if canonical(node.domain) else node.op_type
    if operator in WITH_GRAPHS:
        return _made_by_bodies(node, known, read)
    if operator == "Constant":
        return [_is_constant_string(node)]
    attributes = {a.name: a for a in node.attribute}
    if operator == "SequenceEmpty":
        return ["dtype" in attributes and attributes["dtype"].i == _STRING]
    if operator == "Optional" and "type" in attributes:
        return [is_string(attributes["type"].tp)]
    if operator == "Cast" and "to" in attributes and attributes["to"].i == _STRING:
        raise _ComputedError
    if any(tensor.data_type == _STRING for tensor in tensors_of(node)) or next(subgraphs(node), None) is not None:
        raise _ComputedError
    if not any(read) or operator in _LOOK:
        return [False] * len(node.output)
    if operator not in _MOVE or ("reduction" in attributes and attributes["reduction"].s != b"none"):
        raise _ComputedError
    return [True] * len(node.output)


def _made_by_bodies(node: NodeProto, known: _Known, read: list[bool]) -> list[bool]:
    bodies = list(subgraphs(node))
    if not bodies:
        raise _ComputedError
    if node.op_type == "If":
        return [any(found) for found in zip(*(_outputs(body, known, ()) for body in bodies), strict=False)]
    body = bodies[0]
    if node.op_type == "Loop":
        return _outputs(body, known, [False, False, *read[2:]])[1:]
    return _outputs(body, known, read[-len(body.input) :])  # Scan of opset 8 reads lengths first


def _is_constant_string(node: NodeProto) -> bool:
    for attribute in node.attribute:
        if attribute.HasField("sparse_tensor") and attribute.sparse_tensor.values.data_type == _STRING:
            raise _ComputedError
    return text_of(node) is not None or any(a.HasField("t") and a.t.data_type == _STRING for a in node.attribute)
