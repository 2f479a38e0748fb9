# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2026.4) makes of convolutions with a window of 1x1 whose weights are stored in few bits.

Beside a Transpose or a Reshape it takes them for a matrix product, and the Transpose for one between NCHW and NHWC: any other one is lost, and so are
strides and padding. What is quantized on both sides suffers from some of it. Nothing is joined over the larger of a value and itself, which is
that value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, outputs_apart
from onnx_multi_backend.engines.across_nodes.quantized.scaled_rows import may_scale_stored
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_RESHAPING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
_MOVING = _RESHAPING | {"Transpose"}
#: What may be between, by a constant.
_ARITHMETIC = frozenset({"Add", "Cast", "Div", "Identity", "Mul", "Sub"})
#: What weights come through.
_SCALING = _ARITHMETIC | _MOVING | {"DequantizeLinear", "QuantizeLinear"}
_TO_NHWC, _TO_NCHW = [0, 2, 3, 1], [0, 3, 1, 2]
_PASS = "pointwise_apart"
_REASON = "OpenVINO would take both for a matrix product, and lose what moves elements, strides or padding"


def pointwise_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these convolutions are kept apart from what moves elements; None where there are none."""
    if not contents.has({"Conv"}) or not contents.has(_MOVING) or not may_scale_stored(contents):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    behind = outputs_apart(
        flat, [dict.fromkeys(own.moved_behind(), (0,)) for own in _graphs(contents)], f"{CAST}made", _PASS, _REASON
    )
    model, contents = (flat, contents) if behind is None else (behind.model, Contents(behind.model))
    before = inputs_apart(
        model,
        [dict.fromkeys(own.moved_before(), 0) for own in _graphs(contents)],
        f"{CAST}read",
        _PASS,
        "kept apart from what is before it",
        _REASON,
    )
    if behind is None or before is None:
        return behind or before
    return Rewritten(before.model, behind.changes + before.changes, behind.added | before.added)


def _graphs(contents: Contents) -> list[_Graph]:
    walked = walked_of(contents)
    return [_Graph(graph, walked.fixed, walked.makers) for graph in walked.graphs]


class _Graph:
    """Looks through one graph."""

    def __init__(
        self, graph: GraphProto, constants: Mapping[str, TensorProto | None], makers: Mapping[str, NodeProto]
    ) -> None:
        self._nodes = graph.node[:]
        self._constants = constants
        self._makers = makers
        self._pointwise = [i for i, node in enumerate(self._nodes) if self._is_pointwise(node)]

    def moved_behind(self) -> list[int]:
        """The places of those convolutions whose results are moved."""
        if not self._pointwise:
            return []
        readers: defaultdict[str, list[NodeProto]] = defaultdict(list)
        for node in self._nodes:
            for name in node.input:
                readers[name].append(node)
        return [i for i in self._pointwise if self._is_moved(self._nodes[i], readers)]

    def moved_before(self) -> list[int]:
        """The places of those convolutions whose images are moved."""
        return [i for i in self._pointwise if self._reads_moved(self._nodes[i])]

    def _is_pointwise(self, node: NodeProto) -> bool:
        if node.op_type != "Conv" or canonical(node.domain) or node.input[1] not in self._constants:
            return False
        window = next((list(a.ints) for a in node.attribute if a.name == "kernel_shape"), None)
        name, stored, orders = node.input[1], False, list[list[int]]()
        while (maker := self._makers.get(name)) is not None and maker.op_type in _SCALING:
            stored = stored or maker.op_type in ("Cast", "DequantizeLinear")
            if window is None and maker.op_type in _RESHAPING:
                return False
            if maker.op_type == "Transpose":
                orders.append(next((list(a.ints) for a in maker.attribute if a.name == "perm"), []))
            name = maker.input[0]
        tensor = self._constants.get(name)
        if window is None and tensor is not None:
            window = _ordered(list(tensor.dims), orders[::-1])[2:]
        return stored and window == [1, 1]

    def _is_moved(self, convolution: NodeProto, readers: Mapping[str, list[NodeProto]]) -> bool:
        waiting, seen = [convolution.output[0]], {convolution.output[0]}
        while waiting:
            read = waiting.pop()
            for node in readers.get(read, ()):
                if _is_lost(node, convolution, _TO_NHWC):
                    return True
                constant = all(name in self._constants for name in node.input if name and name != read)
                if node.op_type in _ARITHMETIC and constant and node.output[0] not in seen:
                    seen.add(node.output[0])
                    waiting.append(node.output[0])
        return False

    def _reads_moved(self, convolution: NodeProto) -> bool:
        name = convolution.input[0]
        while (maker := self._makers.get(name)) is not None:
            if _is_lost(maker, convolution, _TO_NCHW):
                return True
            given = [read for read in maker.input if read and read not in self._constants]
            if maker.op_type not in _ARITHMETIC or len(given) != 1:
                return False
            name = given[0]
        return False


def _ordered(sizes: list[int], orders: Sequence[Sequence[int]]) -> list[int]:
    """The sizes behind Transposes; without an order, one turns them round."""
    for order in orders:
        sizes = [sizes[i] for i in order] if len(order) == len(sizes) else sizes[::-1]
    return sizes


def _is_lost(moving: NodeProto, convolution: NodeProto, order: list[int]) -> bool:
    """Whether what moves elements, or how a convolution goes over its image, may be lost beside the other."""
    if moving.op_type not in _MOVING or canonical(moving.domain):
        return False
    perm = next((list(a.ints) for a in moving.attribute if a.name == "perm"), None)
    return (moving.op_type == "Transpose" and perm != order) or _steps(convolution)


def _steps(convolution: NodeProto) -> bool:
    """Whether it has strides or padding."""
    return any(
        (a.name == "strides" and any(size != 1 for size in a.ints))
        or (a.name == "pads" and any(a.ints))
        or (a.name == "auto_pad" and a.s not in (b"NOTSET", b"VALID"))
        for a in convolution.attribute
    )
