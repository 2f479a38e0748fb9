# SPDX-License-Identifier: Apache-2.0
"""Models whose graphs give each value a name of its own: exporters name values alike in both branches of an If.

What follows values from node to node leaves out names that mean several; see `Walked.makers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from onnx import GraphProto, ModelProto

from onnx_multi_backend.adapt.unused_names import names_taken
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import bodies


def with_distinct_names(contents: Contents) -> Contents:
    """A model in which no name means several values: the same one where none does."""
    if not (contents.holding or contents.model.functions):
        return contents
    walked = walked_of(contents)
    if not walked.several:
        return contents
    copy = ModelProto()
    copy.CopyFrom(walked.flat)
    new_names = _NewNames(names_taken(copy))
    for node in copy.graph.node:
        for body in bodies(node):
            _rename(body, {}, walked.several, new_names)
    return Contents(copy)


class _NewNames:
    """Numbers names; thousands of graphs may give a value the same one."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._counts: Counter[str] = Counter()

    def __call__(self, name: str) -> str:
        """A name like this one that is not taken; it is from now on."""
        while (new := f"{name}_{self._counts[name]}") in self._taken:
            self._counts[name] += 1
        self._taken.add(new)
        return new


def _rename(graph: GraphProto, outer: Mapping[str, str], several: Collection[str], new_names: _NewNames) -> None:
    """Give what a graph defines other names, where these mean several values; `outer`: the new names around it."""
    names = dict(outer)
    for name in _defined(graph):
        if name in several:
            names[name] = new_names(name)
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.name = names.get(value.name, value.name)
    for tensor in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
        tensor.name = names.get(tensor.name, tensor.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for body in bodies(node):
            _rename(body, names, several, new_names)


def _defined(graph: GraphProto) -> Iterator[str]:
    yield from dict.fromkeys(
        filter(
            None,
            (
                *(value.name for value in graph.input),
                *(tensor.name for tensor in graph.initializer),
                *(sparse.values.name for sparse in graph.sparse_initializer),
                *(name for node in graph.node for name in node.output),
            ),
        )
    )
