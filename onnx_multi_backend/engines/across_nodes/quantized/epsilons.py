# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of the normalization of quantized values.

Its low-precision transformations move the scale behind the normalization, which takes the mean and the variance of the integers, and leave
`epsilon` as it is: in units of the scale it is a thousand times smaller or more. Where the variance is not far above `epsilon`, the result is wrong.
No scale is moved behind the larger of a value and itself, which is that value.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, is_apart
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_NORMALIZING = frozenset(
    {"GroupNormalization", "InstanceNormalization", "LayerNormalization", "MeanVarianceNormalization"}
)
#: Written out, a normalization begins with the difference of a value and its mean.
_MEAN, _DIFFERENCE = "ReduceMean", "Sub"
#: What a scale is moved over.
_PASSING = frozenset(
    """Add AveragePool Clip Concat Conv ConvTranspose DepthToSpace Div Expand Flatten Gather Gemm GlobalAveragePool Identity MatMul Max MaxPool
    Min Mul Neg PRelu Pad ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape Resize Slice SpaceToDepth Split Squeeze Sub Transpose Unsqueeze
    Upsample LeakyRelu""".split()
)
_REASON = "OpenVINO would normalize the integers, with an epsilon that is not in their unit"


def epsilons_kept(contents: Contents) -> Rewritten | None:
    """A copy of the model in which what is normalized is kept apart from scales; None where there is none."""
    meant = contents.has(_NORMALIZING) or contents.by_operator.keys() >= {_MEAN, _DIFFERENCE}
    quantized = contents.has({"DequantizeLinear"}) and contents.has({"QuantizeLinear"})
    if not meant or not quantized:
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    graphs = walked.graphs
    scaled = Scaled(walked)
    places = [
        {place: 0 for name, readers in _normalized(graph).items() if scaled(name) for place in readers}
        for graph in graphs
    ]
    change = "kept apart from scales before it"
    return inputs_apart(flat, places, f"{CAST}normalized", "epsilons_kept", change, _REASON)


def _normalized(graph: GraphProto) -> dict[str, set[int]]:
    """What is normalized in a graph, with the places of the nodes that read it for that."""
    found: dict[str, set[int]] = {}
    means: dict[tuple[str, str], int] = {}
    for place, node in enumerate(graph.node):
        if canonical(node.domain):
            continue
        if node.op_type in _NORMALIZING:
            found.setdefault(node.input[0], set()).add(place)
        elif node.op_type == _MEAN:
            means[node.input[0], node.output[0]] = place
        elif node.op_type == _DIFFERENCE and tuple(node.input) in means:
            found.setdefault(node.input[0], set()).update((place, means[node.input[0], node.input[1]]))
    return found


def has_zero_point(node: NodeProto, walked: Walked) -> bool:
    """Whether a DequantizeLinear is known to have a zero point other than 0."""
    zero = walked.array(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    return zero is not None and bool(zero.any())


class Scaled:
    """Tells what scales of a DequantizeLinear may be moved to."""

    def __init__(self, walked: Walked) -> None:
        self._constants = walked.fixed
        self._makers = walked.makers

    def __call__(self, name: str) -> bool:
        """Whether what has this name comes from a DequantizeLinear, over operators that scales are moved over."""
        return next(self.sources(name), None) is not None

    def sources(self, name: str) -> Iterator[NodeProto]:
        """The DequantizeLinear nodes that it comes from in this way."""
        waiting, seen = [name], {name}
        while waiting:
            maker = self._makers.get(name := waiting.pop())
            if maker is None or canonical(maker.domain) or is_apart(maker):
                continue
            if maker.op_type == "MaxPool" and name != maker.output[0]:  # integers
                continue
            if maker.op_type == "DequantizeLinear" and maker.input[0] not in self._constants:
                yield maker
            if maker.op_type in _PASSING:
                read = {other for other in maker.input if other and other not in self._constants} - seen
                seen |= read
                waiting += read
