# SPDX-License-Identifier: Apache-2.0
"""Around Casts that OpenVINO's execution provider (1.24.1) takes as a group of their own, and that change nothing together.

OpenVINO computes integers of 16 to 64 bits in int32, and floating point in float32. Where such a group has an input of unknown shape, made
by a node that is left to the CPU provider, int32 that is cast to uint16 and back is passed on as it is: what reads it reads memory
that is no longer its own once the shape changes, or the heap is damaged. The same holds for an input of the model that a node on the
CPU provider reads behind them. What runs where is known once a session is built.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from onnx import GraphProto, NodeProto, TensorProto, TypeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import Typed, opset_versions, reads
from onnx_multi_backend.engines.across_nodes.apart import with_larger
from onnx_multi_backend.engines.ort.openvino_ep.cast_pairs import CASTS, passes
from onnx_multi_backend.engines.ort.providers import CPU
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import canonical

#: Since this opset Max takes all numbers.
_MAX_OF_ALL = 12
#: Types that OpenVINO computes in one.
_INTEGERS = frozenset(
    {
        *(TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    }
)
_REAL = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16})


class _Chain(NamedTuple):
    """Nodes that pass a value on, from the first to the last, each by its place."""

    source: str
    places: tuple[int, ...]
    end: str


def groups_apart(payload: Payload, placement: Sequence[NodePlacement]) -> tuple[Payload, tuple[Adaptation, ...]] | None:
    """The payload with the larger of a value and itself, which is that value, before each such group; None where there is none.

    Parameters
    ----------
    placement : sequence of NodePlacement
        Of the session that was built for the payload.
    """
    left = {(canonical(node.domain), node.op_type) for node in placement if node.provider == CPU}
    model = payload.adapted.proto
    chains = list(_chains(model.graph, left)) if left else []
    if not chains or opset_versions(model).get("", 1) < _MAX_OF_ALL:
        return None
    typed = Typed(model).model.graph
    types = {v.name: v.type for v in (*typed.input, *typed.value_info, *typed.output)}
    casts = {first for chain in chains if (first := _first_cast(model.graph, chain, types)) is not None}
    if not casts:
        return None
    copy, added = with_larger(model, casts, f"{CAST}group")
    change = Adaptation(
        "groups_apart",
        "",
        f"Max before Casts that change nothing behind a node on the CPU provider ({len(casts)})",
        "the OpenVINO execution provider drops such Casts, and their result is read from memory that is no longer its own",
    )
    return payload.changed(copy, change, inserted=added), (change,)


def _chains(graph: GraphProto, left: set[tuple[str, str]]) -> Iterator[_Chain]:
    """All that begin with an input of the model or a node of a kind that is left, and end with an output or such a node."""
    makers = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    readers: dict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in reads(node):
            readers[name].append(node)
    inputs, outputs = {v.name for v in graph.input}, {v.name for v in graph.output}

    def is_left(node: NodeProto) -> bool:
        return (canonical(node.domain), node.op_type) in left

    for end, last in makers.items():
        if not passes(graph.node[last]) or not (end in outputs or any(map(is_left, readers[end]))):
            continue
        name, places = end, list[int]()
        while (i := makers.get(name)) is not None and passes(graph.node[i]) and not is_left(graph.node[i]):
            places.insert(0, i)
            name = graph.node[i].input[0]
        maker = makers.get(name)
        begins = is_left(graph.node[maker]) if maker is not None else name in inputs and end not in outputs
        if begins and any(graph.node[i].op_type in CASTS for i in places):
            yield _Chain(name, tuple(places), end)


def _first_cast(graph: GraphProto, chain: _Chain, types: dict[str, TypeProto]) -> int | None:
    """The place of the first Cast of a chain that changes nothing, of a value of unknown shape; None of others."""
    tensors = [
        types[n].tensor_type if n in types else None
        for n in (chain.source, *(graph.node[i].output[0] for i in chain.places))
    ]
    kinds = {tensor.elem_type if tensor is not None else 0 for tensor in tensors}
    source, end = tensors[0], tensors[-1]
    if source is None or end is None or source.elem_type != end.elem_type:
        return None
    if len(kinds) > 1 and not kinds <= _INTEGERS and not kinds <= _REAL:
        return None
    if source.HasField("shape") and all(dim.HasField("dim_value") for dim in source.shape.dim):
        return None
    return next(i for i in chain.places if graph.node[i].op_type in CASTS)
