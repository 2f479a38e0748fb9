# SPDX-License-Identifier: Apache-2.0
"""The nodes and tensors of a model, walked through once for all that look at them."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping

from onnx import ModelProto, NodeProto, TensorProto

from onnx_multi_backend.models.graph_walk import all_nodes, all_tensors, may_hold_graphs


class Contents:
    """What a model holds, those of subgraphs and local functions included. The model is not to be changed as long as this is used.

    Attributes
    ----------
    model : onnx.ModelProto
    """

    def __init__(self, model: ModelProto) -> None:
        self.model = model

    @functools.cached_property
    def nodes(self) -> list[NodeProto]:
        """Its nodes."""
        return list(all_nodes(self.model))

    @functools.cached_property
    def tensors(self) -> list[TensorProto]:
        """Its tensors."""
        return list(all_tensors(self.model))

    @functools.cached_property
    def tensor_types(self) -> frozenset[int]:
        """The element types of its tensors."""
        return frozenset(tensor.data_type for tensor in self.tensors)

    @functools.cached_property
    def by_operator(self) -> Mapping[str, list[NodeProto]]:
        """Its nodes by operator, whatever the domain."""
        found: defaultdict[str, list[NodeProto]] = defaultdict(list)
        for node in self.nodes:
            found[node.op_type].append(node)
        return dict(found)

    @functools.cached_property
    def holding(self) -> list[NodeProto]:
        """The nodes that may hold graphs."""
        return [node for node in self.nodes if node.domain or may_hold_graphs(node.op_type)]

    def of(self, *operators: str) -> list[NodeProto]:
        """The nodes of some operators, one operator after the other."""
        return [node for name in operators for node in self.by_operator.get(name, ())]

    def has(self, operators: Iterable[str]) -> bool:
        """Whether there is a node of one of these operators."""
        return not self.by_operator.keys().isdisjoint(operators)
