# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO 2026.4 makes of a sum or mean over one axis of three, of quantized values.

Over the second axis, all but the first of the batch are others; over the last one, of open shapes, a larger batch than that before gets zeros.
Behind the larger of a value and itself, which is that value, it is computed in floating point.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import typed_of
from onnx_multi_backend.engines.across_nodes.apart import (
    fixed_values,
    flat_for,
    has_fixed_inputs,
    inner_first,
    inputs_apart,
    makers_of,
    tensor_types,
)
from onnx_multi_backend.engines.across_nodes.quantized.epsilons import Scaled
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import is_whole

_SUMMING = frozenset({"GlobalAveragePool", "ReduceMean", "ReduceSum"})
_AXES = 3
_WINDOWS = frozenset({"AveragePool", "Conv", "ConvTranspose", "MaxPool"})
#: Their attributes with a number for each of these axes.
_EACH = frozenset({"dilations", "kernel_shape", "strides"})
_KEEPING = frozenset({"Add", "Clip", "DequantizeLinear", "HardSwish", "Mul", "QuantizeLinear", "Relu", "Sub"})
_REASON = "OpenVINO would add up integers of other rows"


def rows_added_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are kept apart from scales; None where there are none."""
    quantized = contents.has({"DequantizeLinear"}) and contents.has({"QuantizeLinear"})
    if not quantized or not contents.has(_SUMMING):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    graphs = inner_first(flat.graph)
    constants, scaled = fixed_values(graphs), Scaled(graphs)
    makers = makers_of(graphs)
    axes = {1, -2} if has_fixed_inputs(contents.model) else {1, 2, -1, -2}
    found = [
        [
            i
            for i in _found(graph, axes, constants)
            if scaled(name := graph.node[i].input[0]) and not _is_image(name, makers)
        ]
        for graph in graphs
    ]
    if not any(found):
        return None
    types = tensor_types(inner_first(typed_of(contents.model).model.graph))

    def may_have_three_axes(name: str) -> bool:
        known = types.get(name)
        return known is None or not known.HasField("shape") or len(known.shape.dim) == _AXES

    places = [
        {i: 0 for i in own if may_have_three_axes(graph.node[i].input[0])}
        for graph, own in zip(graphs, found, strict=True)
    ]
    change = "kept apart from scales before it"
    return inputs_apart(flat, places, f"{CAST}added", "rows_added_apart", change, _REASON)


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


def _found(graph: GraphProto, axes: Set[int], constants: Mapping[str, TensorProto | None]) -> list[int]:
    return [
        place
        for place, node in enumerate(graph.node)
        if node.op_type in _SUMMING and not canonical(node.domain) and _may_go_over(axes, node, constants)
    ]


def _may_go_over(wrong: Set[int], node: NodeProto, constants: Mapping[str, TensorProto | None]) -> bool:
    """Whether a reduction may go over one of these axes of three."""
    if node.op_type == "GlobalAveragePool":
        return _AXES - 1 in wrong
    axes = next((list(a.ints) for a in node.attribute if a.name == "axes"), None)
    if axes is None and len(node.input) > 1:
        tensor = constants.get(node.input[1])
        axes = numpy_helper.to_array(tensor).ravel().tolist() if tensor is not None and is_whole(tensor) else None
    return axes is None or (not wrong.isdisjoint(axes) and all(-_AXES <= axis < _AXES for axis in axes))
