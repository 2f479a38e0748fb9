# SPDX-License-Identifier: Apache-2.0
"""Results beyond int32 of constants that each run chooses from: whatever the inputs hold, no bound of theirs keeps such a result within."""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.operation import Made
from onnx_multi_backend.models.graph_walk import WITH_GRAPHS, canonical

_LONG = frozenset({TensorProto.INT64, TensorProto.UINT64})


class Chosen:
    """Notes the nodes whose results leave int32, computed from constants and from what is no wide integer of an input.

    What is computed from constants alone is computed ahead; see `constant_reductions`. Results of sizes are left out: they are bounded by what sizes
    are assumed to be.

    Parameters
    ----------
    graph : onnx.GraphProto
        Its nodes and those of its subgraphs are told in order.

    Attributes
    ----------
    leaving : list of NodeProto
    """

    def __init__(self, graph: GraphProto) -> None:
        self.leaving: list[NodeProto] = []
        self._fixed = {tensor.name for tensor in graph.initializer}  # OpenVINO makes constants of defaults too

    def __call__(self, node: NodeProto, made: Made) -> None:
        """Look at a node of any domain."""
        if node.op_type not in WITH_GRAPHS and all(name in self._fixed for name in node.input if name):
            self._fixed.update(node.output)
            return
        whole = made.whole
        if canonical(node.domain) or whole is None or whole.elem_type not in _LONG or whole.low is None:
            return
        if not (whole.sources or whole.assumed or whole.in_int32):
            self.leaving.append(node)
