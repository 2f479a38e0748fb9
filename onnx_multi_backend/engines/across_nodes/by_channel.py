# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of arithmetic with a constant for each channel behind a reduction or a product.

It computes both in one kernel, and takes elements of the constant that belong to other channels. Seen behind

- every reduction and global pool of three axes, over the first or the last one, also where activations and arithmetic with one number stand
  between; never of two, four or five axes, but where the reduction drops axes and the result is quantized;
- a product of four or more axes with a constant matrix of as many columns as there are channels, which are taken for each other; it may be an
  operand of the product that is scaled, as the values of an attention are. So does a product of two quantized values, and of three axes one that is
  quantized by channel. Where a convolution whose weights have zero points reads it, the
  zero point of its input is such a constant, and a model of open shapes is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_versions
from onnx_multi_backend.adapt.sizes.told import ranks_of
from onnx_multi_backend.adapt.walked import NodeView, walked_of
from onnx_multi_backend.engines.across_nodes.apart import kept_types, outputs_apart
from onnx_multi_backend.engines.across_nodes.foldable import foldable
from onnx_multi_backend.engines.across_nodes.kernels import ARITHMETIC, DOMAINS, PASSING, in_one_kernel
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_AXES = 3
#: The reductions are called so.
_REDUCING = ("Reduce", "Global")
_PRODUCTS = frozenset({"Einsum", "FusedMatMul", "MatMul"})
#: What may have a number for each channel in its other inputs, whatever they are.
_BY_CHANNEL = frozenset({"BatchNormalization", "DequantizeLinear", "QuantizeLinear"})
#: A Slice of everything is left out.
_PASSING = PASSING | {"Slice"}
_REASON = "OpenVINO would take elements of a constant behind it for those of other channels"


def channels_apart(contents: Contents, *, stays_open: bool) -> Rewritten | None:
    """A copy of the model in which such reductions and products are kept apart from what reads them; None where there are none."""
    meant = contents.has(_PRODUCTS) or any(map(_is_reduction, contents.by_operator))
    if not meant or not contents.has(ARITHMETIC | _BY_CHANNEL):
        return None
    walked = walked_of(contents)
    kinds = kept_types(opset_versions(walked.flat).get("", 1))
    of_bytes, constants = contents.has({"DequantizeLinear"}), foldable(contents, stays_open=stays_open)
    found = [
        _Graph(nodes, constants, readers, kinds, of_bytes=of_bytes).found()
        for nodes, readers in zip(walked.views, walked.readers, strict=True)
    ]
    if not any(found):
        return None
    quantized = contents.has({"QuantizeLinear"})
    rank = ranks_of(contents)
    places = []
    for nodes, known in zip(walked.views, found, strict=True):
        own = (
            place
            for place, scaled in known.items()
            if _has_such_axes(nodes[place].proto, rank, quantized=quantized, scaled=scaled)
        )
        places.append(dict.fromkeys(own, (0,)))
    return outputs_apart(walked.flat, places, f"{CAST}channels", "channels_apart", _REASON)


def _has_such_axes(node: NodeProto, rank: Callable[[str], int | None], *, quantized: bool, scaled: bool) -> bool:
    """Whether a node may have as many axes as it is wrong of; those of constants are not told. `scaled`: it is quantized by channel."""
    if node.op_type in _PRODUCTS:
        ranks = [known for name in node.input if (known := rank(name)) is not None]
        return not ranks or max(ranks) > _AXES - scaled
    if quantized and any(a.name == "keepdims" and not a.i for a in node.attribute):
        return True
    return rank(node.input[0]) in (None, _AXES)


class _Graph:
    """Looks through one graph."""

    def __init__(
        self,
        nodes: list[NodeView],
        constants: Mapping[str, TensorProto | None],
        readers: Mapping[str, list[NodeProto]],
        kinds: Collection[int] | None,
        *,
        of_bytes: bool,
    ) -> None:
        self._nodes = nodes
        self._constants = constants
        self._readers = readers
        self._kinds = kinds
        self._of_bytes = of_bytes

    def found(self) -> dict[int, bool]:
        """The places of the reductions and products in question, and whether their results are quantized by channel."""
        of_products: set[str] = set()
        places = []
        for place, node in enumerate(self._nodes):
            is_product = node.proto.op_type in _PRODUCTS and canonical(node.proto.domain) in DOMAINS
            computed = not of_products.isdisjoint(node.input)
            if computed or (is_product and (self._of_bytes or not self._constants.keys().isdisjoint(node.input))):
                of_products.update(node.output)
                meant = is_product or _reduces(node.proto)
            else:
                meant = _reduces(node.proto)
            if meant:
                places.append(place)
        met = ((place, self._meets_channels(self._nodes[place].proto)) for place in places)
        return {place: scaled for place, scaled in met if scaled is not None}

    def _meets_channels(self, first: NodeProto) -> bool | None:
        """Whether what may be computed in the same kernel as a node is quantized by channel; None where nothing has a constant for each."""
        of_product, meets = first.op_type in _PRODUCTS, False
        for node, others in in_one_kernel(first, self._readers, self._constants, _PASSING):
            if node.op_type in _BY_CHANNEL and any(self._is_long(other) for other in others):
                return True
            if node.op_type in ARITHMETIC and any(self._is_long(other, as_column=of_product) for other in others):
                meets = True
            if meets and of_product and node.op_type == "QuantizeLinear":  # the constant becomes a part of its scales
                return True
            if of_product and node.op_type == "QuantizeLinear" and _is_convolved(node, self._readers):
                meets = True
        return False if meets else None

    def _is_long(self, name: str, *, as_column: bool = False) -> bool:
        """Whether it is a constant, and may have several elements; `as_column`: along another axis than the last."""
        if name not in self._constants:
            return False
        tensor = self._constants[name]
        if tensor is None:
            return self._kinds is None
        shaped = math.prod(tensor.dims) > 1 and (not as_column or tensor.dims[-1] == 1)
        return shaped and (self._kinds is None or tensor.data_type in self._kinds)


def _is_convolved(node: NodeProto, readers: Mapping[str, list[NodeProto]]) -> bool:
    """Whether what a QuantizeLinear makes is read by a Conv: of weights that have zero points, it is given one for each channel."""
    read = [reader for name in node.output[:1] for reader in readers.get(name, ())]
    return any(reader.op_type == "Conv" for one in read for name in one.output for reader in readers.get(name, ()))


def _reduces(node: NodeProto) -> bool:
    return _is_reduction(node.op_type) and canonical(node.domain) in DOMAINS and bool(node.input)


def _is_reduction(operator: str | bytes) -> bool:
    """Bytes are a name that is not UTF-8."""
    return isinstance(operator, str) and operator.startswith(_REDUCING)
