# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO 2026.4 makes of reductions of quantized values of three axes, and 2025.4 too of their sums.

Its kernels read integers of three axes in an order that they are not in: elements of other rows are added up or compared, as over the second axis, or
behind a Transpose, or, of open shapes, zeros are where a batch is larger than that before. Behind the larger of a value and itself, which is
that value, they are computed in floating point.

A sum is taken of the integers, from which the zero point is subtracted as often as there are elements: that is written into the zero point, and where
other nodes read the same constant, theirs is another one too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.sizes.told import sizes_of
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.epsilons import Scaled
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

#: The reductions that scales are moved behind.
_REDUCING = frozenset({"GlobalAveragePool", "GlobalMaxPool", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"})
_AXES = 3
#: The place of a zero point.
_ZERO = 2
_WINDOWS = frozenset({"AveragePool", "Conv", "ConvTranspose", "MaxPool"})
#: Their attributes with a number for each of these axes.
_EACH = frozenset({"dilations", "kernel_shape", "strides"})
_KEEPING = frozenset({"Add", "Clip", "DequantizeLinear", "HardSwish", "Mul", "QuantizeLinear", "Relu", "Sub"})
_REASON = "OpenVINO would reduce integers of other rows, or subtract a zero point that other nodes share too often"


def reductions_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart from scales; None where there are none."""
    quantized = contents.has({"DequantizeLinear"}) and contents.has({"QuantizeLinear"})
    if not quantized or not contents.has(_REDUCING):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = walked.graphs
    constants, scaled = walked.fixed, Scaled(walked)
    summed = frozenset({"ReduceSum"}) if _shares_zero_points(graphs) else frozenset[str]()
    makers = walked.makers
    found = [
        [
            i
            for i, node in enumerate(graph.node)
            if node.op_type in _REDUCING
            and not canonical(node.domain)
            and scaled(name := node.input[0])
            and (node.op_type in summed or not (_is_image(name, makers) or _is_product(name, makers, constants)))
        ]
        for graph in graphs
    ]
    if not any(found):
        return None
    sizes = sizes_of(contents)

    def may_have_three_axes(name: str) -> bool:
        if name in sizes:
            return len(sizes[name]) == _AXES
        known = walked.types.get(name)
        return known is None or not known.HasField("shape") or len(known.shape.dim) == _AXES

    places = [
        {i: 0 for i in own if graph.node[i].op_type in summed or may_have_three_axes(graph.node[i].input[0])}
        for graph, own in zip(graphs, found, strict=True)
    ]
    change = "kept apart from scales before it"
    return inputs_apart(flat, places, f"{CAST}reduced", "reductions_apart", change, _REASON)


def _shares_zero_points(graphs: Iterable[GraphProto]) -> bool:
    """Whether a zero point is read by more than one pair of QuantizeLinear and DequantizeLinear."""
    readers: dict[str, set[str]] = {}
    for graph in graphs:
        for node in graph.node:
            if node.op_type == "DequantizeLinear" and len(node.input) > _ZERO and not canonical(node.domain):
                readers.setdefault(node.input[_ZERO], set()).update(node.output)
    return any(len(made) > 1 for made in readers.values())


def _is_image(name: str, makers: Mapping[str, NodeProto]) -> bool:
    """Whether it comes from a window over two axes or more, over operators that take away no axis: types need not be inferred then."""
    while (maker := makers.get(name)) is not None and not canonical(maker.domain):
        if maker.op_type in _KEEPING:
            name = maker.input[0]
            continue
        return maker.op_type in _WINDOWS and any(a.name in _EACH and len(a.ints) > 1 for a in maker.attribute)
    return False


def _is_product(name: str, makers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto | None]) -> bool:
    """Whether it is a product of computed values, such as a square: no scale is moved behind that."""
    maker = makers.get(name)
    return maker is not None and maker.op_type == "Mul" and constants.keys().isdisjoint(maker.input)
