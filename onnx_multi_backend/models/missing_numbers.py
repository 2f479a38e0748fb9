# SPDX-License-Identifier: Apache-2.0
"""Constants without elements where an operator asks for one number: ONNX's checker does not look at that, and some engines read it all the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from onnx import NodeProto, TensorProto

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import bodies, canonical
from onnx_multi_backend.models.tensors import constant_tensor

#: By operator, which inputs are one number each, with a name for messages. Source: ONNX's documentation.
_NUMBERS: Mapping[str, Mapping[int, str]] = {
    "CumProd": {1: "axis"},
    "CumSum": {1: "axis"},
    "Loop": {0: "M", 1: "cond"},
    "OneHot": {1: "depth"},
    "Range": {0: "start", 1: "limit", 2: "delta"},
    "STFT": {1: "frame_step", 3: "frame_length"},
    "TopK": {1: "K"},
    "Trilu": {1: "k"},
}
#: The attributes in which a Constant may write down no numbers.
_LISTS = frozenset({"value_floats", "value_ints"})
#: What has as many elements as it reads.
_PASSING = frozenset({"Cast", "Identity"})


def missing_number(contents: Contents) -> str | None:
    """What is wrong with the first such node; None where there is none."""
    if not contents.has(_NUMBERS) or not (contents.empty_tensors or _writes_nothing(contents)):
        return None
    graph = contents.model.graph
    found = [_lacking(graph.node, graph.initializer, [value.name for value in graph.input], frozenset())]
    found += [_lacking(function.node, (), function.input, frozenset()) for function in contents.model.functions]
    return next(chain.from_iterable(found), None)


def _writes_nothing(contents: Contents) -> bool:
    """Whether a Constant holds a list of nothing."""
    forms = (a for node in contents.of("Constant") for a in node.attribute if a.name in _LISTS)
    return any(not a.ints and not a.floats for a in forms)


def _lacking(
    nodes: Iterable[NodeProto], stored: Iterable[TensorProto], given: Iterable[str], outer: frozenset[str]
) -> Iterator[str]:
    """What is wrong with the nodes of a graph and its subgraphs; `outer`: the constants without elements around it."""
    empty = {
        *outer.difference(tensor.name for tensor in stored),
        *(tensor.name for tensor in stored if 0 in tensor.dims),
    }
    empty.difference_update(given)  # an initializer of its name is a default
    for node in nodes:
        if canonical(node.domain):
            pass
        elif node.op_type == "Constant" and (made := constant_tensor(node)) is not None and 0 in made.dims:
            empty.update(node.output)
        else:
            read = {place: name for place, name in enumerate(node.input) if name in empty}
            if read and node.op_type in _PASSING:
                empty.update(node.output)
            for place, number in _NUMBERS.get(node.op_type, {}).items():
                if place in read:
                    yield f"{node.op_type} {node.name!r} asks for one number as its {number}, and {read[place]!r} has none"
        for body in bodies(node):
            yield from _lacking(body.node, body.initializer, [value.name for value in body.input], frozenset(empty))
