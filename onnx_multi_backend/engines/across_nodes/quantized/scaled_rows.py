# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a matrix product with weights that are dequantized along the axis that is added up.

It takes the scales of the rows, or those of blocks of columns, for scales of the columns. With 2026.4 only where the other operand has two axes. Of
weights of more than two axes it mixes up all scales, leaves an axis of 1 out of the result, or fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, outputs_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_PRODUCTS = frozenset({"FusedGemm", "FusedMatMul", "Gemm", "MatMul"})
_DOMAINS = ("", "com.microsoft")
_PASSING = frozenset({"Cast", "Flatten", "Identity", "Neg", "Reshape"})
_BY_NUMBERS = frozenset({"Div", "Mul"})
_T = TensorProto
#: The axes of a matrix, which are the last ones of its tensor.
_MATRIX = 2
#: Weights of these types are kept as they are, and scaled in the product.
_STORED = frozenset({_T.INT8, _T.UINT8, _T.INT4, _T.UINT4, _T.INT2, _T.UINT2})
_REASON = "OpenVINO would take the scales of the weights' rows for those of their columns"


def may_scale_stored(contents: Contents) -> bool:
    """Whether weights of few bits may be scaled where they are read."""
    if contents.has({"DequantizeLinear"}):
        return True
    return contents.by_operator.keys() >= {"Cast", "Mul"} and not _STORED.isdisjoint(contents.tensor_types)


def rows_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these weights are scaled before the product; None where there are none."""
    if not contents.has(_PRODUCTS) or not may_scale_stored(contents):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    names = Weights(walked).scaled_along_rows()
    if not names:
        return None
    places = [
        {place: (0,) for place, node in enumerate(nodes) if names.intersection(node.output)} for nodes in walked.views
    ]
    return outputs_apart(flat, places, f"{CAST}rows", "rows_apart", _REASON)


class _Chain(NamedTuple):
    """What weights come from: the node that scales them, and the axis of its result that is added up."""

    maker: NodeProto
    axis: int


class Weights:
    """The second operands of a model's products."""

    def __init__(self, walked: Walked) -> None:
        self._views = walked.views
        self._constants = walked.fixed
        self._makers = walked.makers

    def scaled_along_rows(self) -> frozenset[str]:
        """The results of the nodes that scale weights along the axis that a product adds up."""
        return frozenset(
            maker.output[0]
            for nodes in self._views
            for node in nodes
            if node.proto.op_type in _PRODUCTS and canonical(node.proto.domain) in _DOMAINS
            for maker in self._scaling(node.proto)
        )

    def _scaling(self, product: NodeProto) -> list[NodeProto]:
        turned = any(a.name == "transB" and a.i for a in product.attribute)
        chain = self._chain(product.input[1], int(turned))
        return [maker for maker, axis in chain if self._scales(maker, axis)][:1]

    def _chain(self, name: str, axis: int) -> Iterator[_Chain]:
        """What makes a matrix, and its axis, from the last node to the first that only moves elements."""
        while (maker := self._makers.get(name)) is not None and not canonical(maker.domain):
            yield _Chain(maker, axis)
            if maker.op_type == "Transpose":
                order = next((list(a.ints) for a in maker.attribute if a.name == "perm"), [1, 0])
                before = len(order) - _MATRIX
                if sorted(order[before:]) == [before, before + 1]:  # the axes of the matrix stay the last ones
                    axis = order[before + axis] - before
            elif maker.op_type in _BY_NUMBERS:
                name = self._by_a_number(maker)
                continue
            elif maker.op_type not in _PASSING:
                return
            name = maker.input[0]

    def _by_a_number(self, maker: NodeProto) -> str:
        """What a node multiplies or divides by a constant of one element; nothing otherwise."""
        for data, number in ((maker.input[0], maker.input[1]), (maker.input[1], maker.input[0])):
            tensor = self._constants.get(number)
            if (
                tensor is not None
                and math.prod(tensor.dims) == 1
                and (maker.op_type == "Mul" or number == maker.input[1])
            ):
                return data
        return ""

    def _scales(self, maker: NodeProto, axis: int) -> bool:
        if maker.op_type == "Mul":
            return any(
                (stored := self._stored(one)) is not None and (_is_stack(stored) or self._is_long(other, axis))
                for one, other in (tuple(maker.input), tuple(reversed(maker.input)))
            )
        if maker.op_type != "DequantizeLinear" or maker.input[0] not in self._constants:
            return False
        data = self._constants[maker.input[0]]
        if data is not None and _is_stack(data):
            return True
        scale = self._constants.get(maker.input[1])
        if scale is None or math.prod(scale.dims) == 1:
            return scale is None and maker.input[1] in self._constants
        given = {a.name: a.i for a in maker.attribute}
        same = given.get("axis", 1) % _MATRIX == axis
        return not same if given.get("block_size") else same

    def _stored(self, name: str) -> TensorProto | None:
        """The constant of 8 bits or fewer that it is, once that is cast, less a zero point or not; None where it is no such."""
        maker = self._makers.get(name)
        if maker is not None and maker.op_type == "Sub":
            maker = self._makers.get(maker.input[0])
        stored = self._constants.get(maker.input[0]) if maker is not None and maker.op_type == "Cast" else None
        return stored if stored is not None and stored.data_type in _STORED else None

    def _is_long(self, name: str, axis: int) -> bool:
        """Whether a constant differs along an axis of the matrix."""
        tensor = self._constants.get(name)
        if tensor is None:
            return name in self._constants
        sizes = [1] * (2 - len(tensor.dims)) + list(tensor.dims)
        return sizes[-2:][axis] > 1


def _is_stack(tensor: TensorProto) -> bool:
    """Whether a tensor has more axes than a matrix."""
    return len(tensor.dims) > _MATRIX
