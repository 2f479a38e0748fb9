# SPDX-License-Identifier: Apache-2.0
"""The nodes and tensors of a model, walked through once for all that look at them."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.models.graph_walk import all_nodes, all_tensors, canonical, may_hold_graphs


class _Walked(NamedTuple):
    """What one walk finds."""

    nodes: list[NodeProto]
    by_operator: Mapping[str, list[NodeProto]]
    holding: list[NodeProto]


def _grouped(nodes: list[NodeProto]) -> _Walked:
    by_operator: defaultdict[str, list[NodeProto]] = defaultdict(list)
    for node in nodes:
        by_operator[node.op_type].append(node)
    graphs = {operator for operator in by_operator if may_hold_graphs(operator)}
    return _Walked(
        nodes, dict(by_operator), [node for node in nodes if node.domain or (graphs and node.op_type in graphs)]
    )


class Contents:
    """What a model holds, those of subgraphs and local functions included. The model is not to be changed as long as this is used.

    Attributes
    ----------
    model : onnx.ModelProto
    """

    def __init__(self, model: ModelProto) -> None:
        self.model = model

    @property
    def nodes(self) -> list[NodeProto]:
        """Its nodes."""
        return self._walked.nodes

    @property
    def by_operator(self) -> Mapping[str, list[NodeProto]]:
        """Its nodes by operator, whatever the domain."""
        return self._walked.by_operator

    @property
    def holding(self) -> list[NodeProto]:
        """The nodes that may hold graphs."""
        return self._walked.holding

    @functools.cached_property
    def _walked(self) -> _Walked:
        walked = _grouped(self.model.graph.node[:])
        return _grouped(list(all_nodes(self.model))) if walked.holding or self.model.functions else walked

    @functools.cached_property
    def reads(self) -> list[list[str]]:
        """What each of its nodes reads: those of a protobuf message take five times as long to look at."""
        return [node.input[:] for node in self.nodes]

    @functools.cached_property
    def tensors(self) -> list[TensorProto]:
        """Its tensors."""
        return all_tensors(self.model)

    @functools.cached_property
    def empty_tensors(self) -> list[TensorProto]:
        """Those of them that have no elements."""
        return [tensor for tensor in self.tensors if 0 in tensor.dims]

    @functools.cached_property
    def of_constants(self) -> list[tuple[str, TensorProto]]:
        """What its Constants hold, by the name of their output."""
        holding = (node for node in self.of("Constant") if node.attribute and node.attribute[0].HasField("t"))
        return [(node.output[0], node.attribute[0].t) for node in holding]

    @functools.cached_property
    def named(self) -> list[tuple[str, TensorProto]]:
        """What its names stand for: initializers, other tensors that have one, and what Constants hold; without functions and subgraphs also what Identity makes of these."""
        found = [*((tensor.name, tensor) for tensor in self.tensors), *self.of_constants]
        if self.model.functions or self.holding:  # a name may mean something else in each graph
            return found
        known = dict(found) if "Identity" in self.by_operator else {}
        for node in self.of("Identity"):
            if node.input and node.output and not canonical(node.domain) and node.input[0] in known:
                known[node.output[0]] = known[node.input[0]]
                found.append((node.output[0], known[node.output[0]]))
        return found

    @functools.cached_property
    def constants(self) -> Mapping[str, TensorProto]:
        """The same by name; where a name stands twice, any of them."""
        return dict(self.named)

    @functools.cached_property
    def tensor_types(self) -> frozenset[int]:
        """The element types of its tensors."""
        return frozenset(tensor.data_type for tensor in self.tensors)

    @functools.cached_property
    def constant_forms(self) -> frozenset[str]:
        """The names of the attributes that its Constants hold their values in."""
        return frozenset(attribute.name for node in self.of("Constant") for attribute in node.attribute)

    @functools.cached_property
    def computing(self) -> list[NodeProto]:
        """Its nodes of every operator but Constant, one operator after the other; exporters write as many Constants."""
        if "Constant" not in self.by_operator:
            return self.nodes
        return [node for name, nodes in self.by_operator.items() if name != "Constant" for node in nodes]

    def of(self, *operators: str) -> list[NodeProto]:
        """The nodes of some operators, one operator after the other."""
        return [node for name in operators for node in self.by_operator.get(name, ())]

    def has(self, operators: Iterable[str]) -> bool:
        """Whether there is a node of one of these operators."""
        return not self.by_operator.keys().isdisjoint(operators)
