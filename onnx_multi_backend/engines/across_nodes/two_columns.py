# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a small product with a constant of two elements behind it, one for each column.

Its kernel for products of at most two rows and columns of what only a run tells leaves out such a constant, which it should compute with. Which
kernel computes a product is decided in a run. Nothing is computed in a product's kernel behind the larger of a value and itself, which is that
value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from onnx import GraphProto, NodeProto, TypeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.sizes.size import OPEN, Size
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import kept_types, outputs_apart
from onnx_multi_backend.engines.across_nodes.foldable import foldable
from onnx_multi_backend.engines.across_nodes.kernels import ARITHMETIC, DOMAINS, PASSING, in_one_kernel
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_PRODUCTS = frozenset({"Einsum", "FusedMatMul", "Gemm", "MatMul"})
_WITH_COLUMNS = ARITHMETIC | {"BatchNormalization", "BiasGelu", "FastGelu"}
#: What is left out where it changes nothing, too.
_OVER = PASSING | {"CastLike", "Concat", "Einsum", "Pad", "ReduceSum", "Slice", "Tile", "Transpose"}
_COLUMNS = 2
_REASON = "OpenVINO would leave out a constant for each column behind it, where it has two rows and columns at most"


def columns_apart(contents: Contents, *, stays_open: bool) -> Rewritten | None:
    """A copy of the model in which such products are kept apart from what reads them; None where there are none."""
    if not contents.has(_PRODUCTS) or not contents.has(_WITH_COLUMNS):
        return None
    walked = walked_of(contents)
    graphs, constants, several = walked.graphs, foldable(contents, stays_open=stays_open), walked.several
    stored, sizes = walked.stored.keys() - several, sizes_of(contents)

    def has_two(name: str) -> bool:
        """Whether it is a constant, and may have two elements, along the last axis."""
        if name not in constants or name in several:
            return name in several
        tensor = constants[name]
        known: Sequence[Size] | None = tensor.dims[:] if tensor is not None else sizes.get(name)
        if known is None or (None in known and _may_be_two(known)):
            known = _sizes(walked.told(name)) or known
        return known is None or _may_be_two(known)

    def meets_two(first: NodeProto, readers: Mapping[str, list[NodeProto]]) -> bool:
        return any(
            node.op_type in _WITH_COLUMNS and any(map(has_two, others))
            for node, others in in_one_kernel(first, readers, constants, _OVER)
        )

    products = [_products(graph, stored) for graph in graphs]
    if not any(products):
        return None
    found = [
        [place for place in own if meets_two(graph.node[place], readers)]
        for graph, own, readers in zip(graphs, products, walked.readers, strict=True)
    ]
    if not any(found):
        return None
    kinds = kept_types(opset_versions(walked.flat).get("", 1))

    def is_meant(node: NodeProto) -> bool:
        told = sizes.get(node.output[0])
        if told and told[-1] is not None and not _may_be_two(told[-1:]):
            return False
        made = walked.types.get(node.output[0])
        known = told or (None if node.output[0] in several else _sizes(made))
        is_kept = kinds is None or node.op_type == "FusedMatMul" or (made is not None and made.elem_type in kinds)
        return is_kept and (not known or _may_be_two(known[-1:]))

    places = [
        {place: (0,) for place in own if is_meant(graph.node[place])} for graph, own in zip(graphs, found, strict=True)
    ]
    return outputs_apart(walked.flat, places, f"{CAST}columns", "columns_apart", _REASON)


def _sizes(kind: TypeProto.Tensor | None) -> Sequence[Size] | None:
    """The sizes of a tensor as far as they are known; None without a rank."""
    if kind is None or not kind.HasField("shape"):
        return None
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]


def _may_be_two(sizes: Sequence[Size]) -> bool:
    """Whether these sizes may be those of two elements along the last axis."""
    return bool(sizes) and sizes[-1] in (OPEN, None, _COLUMNS) and all(size in (OPEN, None, 1) for size in sizes[:-1])


def _products(graph: GraphProto, stored: Collection[str]) -> list[int]:
    """The places of products by what only a run tells."""
    return [
        place
        for place, node in enumerate(graph.node)
        if node.op_type in _PRODUCTS and canonical(node.domain) in DOMAINS
        if len(node.input) > 1 and node.input[1] not in stored
    ]
