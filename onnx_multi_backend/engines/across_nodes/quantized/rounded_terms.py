# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of a constant that is added to values without a zero point between their DequantizeLinear and a Conv.

Its low-precision transformations make a zero point of it, which is a whole number: all of a constant below half a scale is lost. No scale is moved
behind the larger of a value and itself, which is that value.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from onnx import NodeProto

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.walked import Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart
from onnx_multi_backend.engines.across_nodes.kernels import PASSING
from onnx_multi_backend.engines.across_nodes.quantized.epsilons import Scaled, has_zero_point
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical

_ADDING = frozenset({"Add", "Sub"})
#: What may stand between the sum and the Conv.
_BETWEEN = PASSING | {"MaxPool", "Pad"}
#: How far from a whole number of scales a constant may be, in scales.
_NEAR = 1e-3
_REASON = "OpenVINO would round the constant to a whole number of scales"


def terms_exact(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such values are kept apart from scales before them; None where there are none."""
    if not contents.has({"DequantizeLinear"}) or not contents.has({"Conv"}) or not contents.has(_ADDING):
        return None
    if (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    search = _Search(walked)
    found = [
        {place: number for place, node in enumerate(graph.node) for number in search.rounded(node)}
        for graph in walked.graphs
    ]
    change = "kept apart from scales before it"
    return inputs_apart(flat, found, f"{CAST}exact", "terms_exact", change, _REASON)


class _Search:
    def __init__(self, walked: Walked) -> None:
        self._walked = walked

    @functools.cached_property
    def _scaled(self) -> Scaled:
        return Scaled(self._walked)

    def rounded(self, node: NodeProto) -> Iterator[int]:
        """Which input of a sum with a constant is such a value."""
        if node.op_type not in _ADDING or canonical(node.domain) or len(node.input) != 2:
            return
        fixed = self._walked.fixed
        for i in (0, 1):
            term = node.input[1 - i]
            if node.input[i] in fixed or term not in fixed:
                continue
            sources = list(self._scaled.sources(node.input[i]))
            if any(self._may_be_rounded(source, term) for source in sources) and self._comes_to_conv(node.output[0]):
                yield i

    def _may_be_rounded(self, source: NodeProto, term: str) -> bool:
        """Whether a DequantizeLinear may have no zero point but 0, and a constant be no whole number of its scales."""
        if has_zero_point(source, self._walked):
            return False
        scale, value = self._walked.array(source.input[1]), self._walked.array(term)
        if scale is None or value is None or scale.size != 1 or not scale.all():
            return True
        scales = value.astype(np.float64) / scale.astype(np.float64).item()
        return bool(np.any(np.abs(scales - np.round(scales)) > _NEAR))

    def _comes_to_conv(self, name: str) -> bool:
        waiting, seen = [name], {name}
        while waiting:
            name = waiting.pop()
            for node in (node for readers in self._walked.readers for node in readers.get(name, ())):
                if node.op_type == "Conv" and not canonical(node.domain):
                    return True
                if node.op_type in _BETWEEN | _ADDING and (made := node.output[0]) not in seen:
                    seen.add(made)
                    waiting.append(made)
        return False
