# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO makes of int8 activations that are concatenated and read by a convolution: it takes them for uint8.

Seen with 2025.4 and 2026.4; errors of a third of the result. ``QuantizeLinear`` to uint8 with a zero point that is 128 larger gives the
same numbers, and these are right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import constants_of, names_read, subgraphs
from onnx_multi_backend.models.tensors import is_whole

_NEEDED = frozenset({"QuantizeLinear", "DequantizeLinear", "Concat"})
_SUFFIX = "/omb_unsigned"
_SHIFT = 128
_ZERO = 2


def unsigned(contents: Contents) -> Rewritten | None:
    """A copy of the model whose int8 activations are uint8; the weights stay int8. None where there is nothing to do."""
    model = contents.model
    if model.functions or not contents.by_operator.keys() >= _NEEDED or not any(_signed_pairs(model.graph)):
        return None
    copy = ModelProto()
    copy.CopyFrom(model)
    count = _shift(copy.graph)
    reason = "OpenVINO takes int8 activations for uint8 where a model concatenates tensors"
    change = Adaptation("unsigned_activations", "", f"int8 activations quantized to uint8 ({count})", reason)
    return Rewritten(copy, (change,))


def _shift(graph: GraphProto) -> int:
    """Make the pairs unsigned, and count them."""
    tensors = constants_of(graph)
    made: dict[str, str] = {}
    pairs = list(_signed_pairs(graph))
    for pair in pairs:
        for one in pair:
            _make_unsigned(one, graph, tensors, made)
    shifted = {pair[0].output[0] for pair in pairs}
    for value in graph.value_info:
        if value.name in shifted:
            value.type.tensor_type.elem_type = TensorProto.UINT8
    return len(pairs)


def _signed_pairs(graph: GraphProto) -> Iterator[list[NodeProto]]:
    """Each QuantizeLinear of activations to int8, with the nodes that read it."""
    tensors = constants_of(graph)
    known = _known(graph, tensors)
    readers: defaultdict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    elsewhere = {v.name for v in graph.output}
    elsewhere.update(n for node in graph.node for inner in subgraphs(node) for n in names_read(inner))
    for node in graph.node:
        if node.op_type != "QuantizeLinear" or node.input[0] in known:
            continue
        pair = [node, *readers[node.output[0]]]
        if node.output[0] not in elsewhere and all(_is_signed(n, tensors, first=n is node) for n in pair):
            yield pair


def _known(graph: GraphProto, tensors: Mapping[str, TensorProto]) -> set[str]:
    """What is computed from constants alone: weights."""
    known = set(tensors)
    for node in graph.node:
        if node.op_type == "Constant" or (node.input and known.issuperset(filter(None, node.input))):
            known.update(node.output)
    return known


def _is_signed(node: NodeProto, tensors: Mapping[str, TensorProto], *, first: bool) -> bool:
    """Whether a node makes, or reads, int8 of constant zero points."""
    if node.op_type != ("QuantizeLinear" if first else "DequantizeLinear"):
        return False
    if len(node.input) <= _ZERO or not node.input[_ZERO]:
        return False
    zero = tensors.get(node.input[_ZERO])
    return (
        zero is not None
        and zero.data_type == TensorProto.INT8
        and is_whole(zero)
        and not any(a.name == "output_dtype" and a.i not in (0, TensorProto.INT8) for a in node.attribute)
    )


def _make_unsigned(
    node: NodeProto, graph: GraphProto, tensors: Mapping[str, TensorProto], made: dict[str, str]
) -> None:
    name = node.input[_ZERO]
    if name not in made:
        zeros = numpy_helper.to_array(tensors[name]).astype(np.int16) + _SHIFT
        made[name] = f"{name}{_SUFFIX}"
        while made[name] in tensors:
            made[name] += "_"
        graph.initializer.append(numpy_helper.from_array(zeros.astype(np.uint8), made[name]))
    node.input[_ZERO] = made[name]
    for attribute in node.attribute:
        if attribute.name == "output_dtype" and node.op_type == "QuantizeLinear" and attribute.i:
            attribute.i = TensorProto.UINT8
