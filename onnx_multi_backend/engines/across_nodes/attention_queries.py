# SPDX-License-Identifier: Apache-2.0
"""Around an attention of fixed sizes that OpenVINO (2025.4, 2026.4) writes over its queries.

It takes the Transpose of the queries, of as many heads as there are queries, into the attention, whose result has the shape that they had before: it
shares their memory, though one head's result lies where others' queries are still to be read. Where the result is transposed back within the
attention, as before a projection, each head writes over its own queries. A product over an axis of one element, which changes no value, keeps the
weights apart from the values, or the queries from an `Attention`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import NodeProto, TypeProto

from onnx_multi_backend.adapt.sizes.size import Sizes, is_open
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import Walked
from onnx_multi_backend.engines.across_nodes.apart import has_fixed_inputs
from onnx_multi_backend.engines.across_nodes.attentions import (
    PRODUCTS,
    WHOLE,
    before,
    ends,
    may_be_added,
    walked_with,
    weighted,
    without_fusion,
)
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

#: How heads are put before the queries, and behind them again.
_HEADS = [0, 2, 1, 3]
_REASON = "OpenVINO would write the result of an attention over its queries"


def queries_kept(contents: Contents) -> Rewritten | None:
    """A copy of the model in which no attention is written over its queries; None where none would be."""
    if not contents.has({"Einsum", "Transpose"}) or (walked := walked_with(contents)) is None:
        return None
    search = _Search(walked, sizes_of(contents), is_fixed=has_fixed_inputs(contents.model))
    found = [{i: node.input[0] for i, node in own if search.finds(node)} for own in ends(walked, weighted(walked))]
    return without_fusion(walked, found, "queries_kept", _REASON)


class _Search:
    """Looks for such attentions."""

    def __init__(self, walked: Walked, sizes: Mapping[str, Sizes], *, is_fixed: bool) -> None:
        self._walked, self._sizes = walked, sizes
        self._is_fixed = is_fixed
        self._outputs = {value.name for graph in walked.graphs for value in graph.output}

    def finds(self, node: NodeProto) -> bool:
        """Whether an attention that ends with a node is such a one."""
        moved = [name for name in self._queries(node) for name in self._moved(name)]
        if not moved and self._is_put_behind(node.output[0]):
            return self._has_as_many_heads(node.output[0])
        if not moved or self._is_moved_back(node.output[0]):
            return False
        names = (node.output[0], *moved)
        return not all(map(self._is_declared_otherwise, names)) and self._has_as_many_heads(node.output[0])

    def _queries(self, node: NodeProto) -> Iterator[str]:
        """What may be the queries of an attention that ends with a node."""
        if node.op_type == WHOLE:
            yield node.input[0]
            return
        for maker in before(node.input[:1], self._walked.makers):
            if maker.op_type in PRODUCTS and not canonical(maker.domain):
                yield maker.output[0] if maker.op_type == "Einsum" else maker.input[0]

    def _moved(self, name: str) -> Iterator[str]:
        """What a Transpose or an Einsum reads on the way to a value."""
        makers = before([name], self._walked.makers)
        return (m.input[0] for m in makers if m.op_type in ("Einsum", "Transpose") and not canonical(m.domain))

    def _is_put_behind(self, name: str) -> bool:
        """Whether a Transpose of heads reads the result of an attention: it shares the memory of queries that another node makes then."""
        readers = (reader for readers in self._walked.readers for reader in readers.get(name, ()))
        return name not in self._walked.several and any(map(_puts_heads, readers))

    def _is_moved_back(self, name: str) -> bool:
        """Whether a Transpose of heads alone reads the result of an attention, and products alone what it makes."""
        if name in self._walked.several:
            return False
        readers = [reader for readers in self._walked.readers for reader in readers.get(name, ())]
        if len(readers) != 1 or not _puts_heads(readers[0]):
            return False
        made = readers[0].output[0]
        return self._outputs.isdisjoint({name, made}) and not may_be_added(made, self._walked)

    def _is_declared_otherwise(self, name: str) -> bool:
        """Whether a value is declared to have no heads, another number of them than of queries, or an open size: inference takes longer."""
        kind = self._walked.declared.get(name)
        if kind is None or not kind.HasField("shape"):
            return False
        if (heads := _heads(kind)) is None or not (self._is_fixed or _is_fixed(kind)):
            return True
        return 0 not in heads and heads[0] != heads[1]

    def _has_as_many_heads(self, name: str) -> bool:
        """Whether the result of an attention has, as far as is known, as many heads as queries, of fixed sizes."""
        told = self._sizes.get(name)
        if told is not None:
            if len(told) != len(_HEADS) or (is_open(told) and not self._is_fixed):
                return False
            if None not in told[1:3]:
                return told[1] == told[2]
        kind = self._walked.types.get(name)
        if kind is None or not kind.HasField("shape"):
            return self._is_fixed
        if (heads := _heads(kind)) is None:
            return False
        return (self._is_fixed or _is_fixed(kind)) and (0 in heads or heads[0] == heads[1])


def _puts_heads(node: NodeProto) -> bool:
    """Whether a node puts heads before queries, or behind them."""
    is_transpose = node.op_type == "Transpose" and not canonical(node.domain)
    return is_transpose and any(list(attribute.ints) == _HEADS for attribute in node.attribute)


def _is_fixed(kind: TypeProto.Tensor) -> bool:
    return all(size.HasField("dim_value") for size in kind.shape.dim)


def _heads(kind: TypeProto.Tensor) -> tuple[int, int] | None:
    """The sizes along the axes of heads and queries, 0 where one is not known; None where there are not four axes."""
    sizes = kind.shape.dim
    return (sizes[1].dim_value, sizes[2].dim_value) if len(sizes) == len(_HEADS) else None
